//! Packets from the network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anabranch_core::mptcp::{Connection, PathId, SubflowId, join_token};
use anabranch_core::segment::{AddressId, Flags, Segment, SeqNumber};
use anabranch_core::tcp::{self, State};
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::ip::{self, Header, Protocol};
use bytes::Bytes;

use super::{Entry, Flow, Origin, Stack, Tuple, least_mtu, mss};

/// What an ICMP message says about a packet of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Notice {
    Unreachable,
    /// The packet was longer than this MTU.
    TooBig(u32),
}

impl Stack {
    /// Handles a packet that has arrived on a path.
    pub fn handle_packet(&mut self, now: Instant, path: PathId, packet: &[u8]) {
        let Ok((header, range)) = ip::parse(packet) else { return self.counters.dropped += 1 };
        let octets = &packet[range];
        let handled = match header.protocol {
            Protocol::TCP => self.handle_tcp(now, path, &header, octets),
            Protocol::ICMP | Protocol::ICMPV6 => self.handle_icmp(now, path, &header, octets),
            _ => false,
        };
        if !handled {
            self.counters.dropped += 1;
        }
    }

    fn handle_tcp(&mut self, now: Instant, path: PathId, header: &Header, octets: &[u8]) -> bool {
        let Ok((mut segment, len)) = ip::parse_tcp_header(header, octets) else { return false };
        if octets.len() > len {
            // A copy, since the packet's buffer is used again.
            segment.payload = Bytes::copy_from_slice(&octets[len..]);
        }
        let len = segment.payload.len();
        if self.paths.get_mut(&path).is_some_and(|path| path.received(now, header.src, len)) {
            self.join_again(path);
        }
        let tuple = Tuple {
            local: SocketAddr::new(header.dst, segment.dst_port),
            remote: SocketAddr::new(header.src, segment.src_port),
        };
        if let Some((slot, id)) = self.table.get(&tuple).copied()
            && let Some(entry) = self.entry(slot)
        {
            entry.connection.handle_segment(now, id, segment);
            self.touch(slot);
            return true;
        }
        self.handle_stranger(now, path, tuple, &segment)
    }

    /// Handles a segment without a connection.
    fn handle_stranger(&mut self, now: Instant, path: PathId, tuple: Tuple, segment: &Segment) -> bool {
        let has = |flag| segment.flags.contains(flag);
        if has(Flags::RST) {
            return true;
        }
        let opens = has(Flags::SYN) && !has(Flags::ACK);
        if let Some(waiting) = self.waiting.get(&tuple) {
            if !opens {
                // RFC 9293 section 3.10.7.4: a repeated FIN is acknowledged. Nothing else is, so
                // that two hosts in TIME-WAIT do not answer each other for ever.
                let ack = waiting.ack.as_deref().filter(|_| has(Flags::FIN)).cloned();
                let path = waiting.path;
                self.loose.extend(ack.map(|ack| (path, tuple, ack)));
                return true;
            }
            self.waiting.remove(&tuple);
        }
        if let Some(token) = join_token(segment) {
            return self
                .tokens
                .get(&token)
                .copied()
                .is_some_and(|slot| self.accept_join(now, slot, path, tuple, segment))
                || self.refuse(path, tuple, segment);
        }
        if !opens || !self.listening.contains(&tuple.local.port()) || !self.is_ours(tuple.local.ip()) {
            return self.refuse(path, tuple, segment);
        }
        let (limit, number) = self.accepted;
        if self.half_open >= MOST_HALF_OPEN || number >= limit || self.len() >= self.limit {
            // Without an answer, the peer tries again.
            return false;
        }
        let (config, secrets) = (self.config_on(now, path, tuple.remote.ip()), self.secrets(now, tuple));
        let Some(connection) = Connection::accept(now, config, path, segment, secrets) else { return false };
        self.half_open += 1;
        self.accepted.1 += 1;
        self.insert(Entry::new(connection, Origin::Theirs, (path, tuple), now));
        true
    }

    /// Accepts a further subflow; returns false if the connection refuses it.
    fn accept_join(&mut self, now: Instant, slot: u32, path: PathId, tuple: Tuple, syn: &Segment) -> bool {
        // A place of a closed subflow may be used again, so its end must be known.
        self.settle(now, slot);
        let secrets = self.secrets(now, tuple);
        let Some(entry) = self.entry(slot) else { return false };
        let address = address_id(entry, path);
        let Ok(id) = entry.connection.accept_join(now, path, syn, address, secrets) else { return false };
        self.add_flow(slot, id, Flow::new(path, tuple));
        true
    }

    fn refuse(&mut self, path: PathId, tuple: Tuple, segment: &Segment) -> bool {
        self.counters.refused += 1;
        if self.loose.len() < MOST_LOOSE {
            self.loose.extend(tcp::reset_for(segment).map(|reset| (path, tuple, reset)));
        }
        true
    }

    fn handle_icmp(&mut self, now: Instant, path: PathId, header: &Header, octets: &[u8]) -> bool {
        let Some((notice, tuple, seq)) = notice(header, octets) else { return false };
        let Some((slot, id)) = self.table.get(&tuple).copied() else { return false };
        let Some(entry) = self.entry(slot) else { return false };
        let opening = entry.connection.subflow_info(id).is_some_and(|info| info.tcp.state == State::SynSent);
        match notice {
            // RFC 5927 section 4: elsewhere it is a soft error, since anybody can send it.
            Notice::Unreachable if !opening => {}
            Notice::Unreachable if id == SubflowId(0) => {
                if !self.reopen(now, slot) {
                    self.entry(slot).into_iter().for_each(|entry| entry.connection.abort(now));
                }
            }
            Notice::Unreachable => {
                entry.connection.drop_subflow(now, id);
            }
            Notice::TooBig(mtu) => {
                let remote = tuple.remote.ip();
                // RFC 8201 section 4: IPv6 has no smaller MTU, so the notice is discarded.
                if remote.is_ipv6() && mtu < least_mtu(remote) {
                    return false;
                }
                let mtu = mtu.max(least_mtu(remote));
                // Only a notice about data in flight is believed.
                if !entry.connection.handle_path_mtu(now, id, mss(mtu, remote), seq) {
                    return false;
                }
                if self.mtus.len() >= MOST_MTUS {
                    self.mtus.clear();
                }
                self.mtus.insert((path, remote), (mtu, now + MTU_TIME));
            }
        }
        self.touch(slot);
        true
    }

    fn is_ours(&self, address: IpAddr) -> bool {
        self.paths.values().any(|path| path.address(address.is_ipv4()) == Some(address))
    }
}

/// The id of our address on a path: 0 is that of the first subflow (RFC 8684 section 3.2).
pub(super) fn address_id(entry: &Entry, path: PathId) -> AddressId {
    match entry.flows.first() {
        Some(first) if first.path == path => AddressId(0),
        _ => AddressId(path.0.saturating_add(1).min(255) as u8),
    }
}

/// Reads an ICMP error about a TCP segment of ours (RFC 792, RFC 1191, RFC 4443): what it says, and
/// the addresses and the sequence number of the segment.
fn notice(header: &Header, octets: &[u8]) -> Option<(Notice, Tuple, SeqNumber)> {
    let (head, packet) = octets.split_at_checked(8)?;
    let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let notice = match (header.src.is_ipv4(), head[0], head[1]) {
        (true, 3, 4) => Notice::TooBig(word(6).into()),
        (true, 3, 0..=3 | 9..=13) | (false, 1, _) => Notice::Unreachable,
        (false, 2, _) => Notice::TooBig(u32::from(word(4)) << 16 | u32::from(word(6))),
        _ => return None,
    };
    let (source, destination, segment) = if header.src.is_ipv4() {
        let len = usize::from(packet.first()? & 0x0f) * 4;
        if packet.first()? >> 4 != 4 || *packet.get(9)? != Protocol::TCP.0 || len < 20 {
            return None;
        }
        let address = |at: usize| Some(IpAddr::V4(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?)));
        (address(12)?, address(16)?, packet.get(len..)?)
    } else {
        if packet.first()? >> 4 != 6 || *packet.get(6)? != Protocol::TCP.0 {
            return None;
        }
        let address = |at: usize| Some(IpAddr::V6(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?)));
        (address(8)?, address(24)?, packet.get(40..)?)
    };
    let port = |at: usize| Some(u16::from_be_bytes(*segment.get(at..)?.first_chunk::<2>()?));
    let local = SocketAddr::new(source, port(0)?);
    let remote = SocketAddr::new(destination, port(2)?);
    let seq = SeqNumber(u32::from_be_bytes(*segment.get(4..)?.first_chunk()?));
    Some((notice, Tuple { local, remote }, seq))
}

/// Connections of listeners whose handshake is not complete, at most: as many as
/// net.ipv4.tcp_max_syn_backlog of a small host.
const MOST_HALF_OPEN: usize = 512;
/// Destinations whose MTU is known, at most.
const MOST_MTUS: usize = 1024;
/// Time after which a destination may have a larger MTU again (RFC 8201 section 4).
const MTU_TIME: Duration = Duration::from_secs(600);
/// Resets that wait for their path, at most.
const MOST_LOOSE: usize = 1024;
