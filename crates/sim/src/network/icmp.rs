//! ICMPv6 (RFC 4443) for hosts outside of the simulation: answers to echo requests, and errors for
//! packets that the network drops. Simulated transports ignore ICMP, so their packets cause no
//! errors, and a network without hosts outside sends none. Over IPv4 the network sends no ICMP.

use std::net::IpAddr;

use anabranch_core::time::Instant;
use anabranch_wire::icmpv6::{self, Header, Kind};
use anabranch_wire::ip::{Protocol, UdpDatagram};
use bytes::Bytes;

use super::Network;
use super::forwarding::{Heard, Past};
use super::problem::Problem;
use crate::address::address_of;
use crate::octets;
use crate::packet::{Ends, NodeId, Opaque, Outer, Packet, Payload, Whole};

/// Nothing follows (RFC 8200 section 4.7).
const NO_NEXT_HEADER: Protocol = Protocol(59);
/// Largest packet with an error message, in bytes (RFC 4443 section 2.4 (c)).
const LONGEST: usize = 1280;
impl Network {
    /// Answers an echo request (RFC 4443 section 4.2). Returns false for any other message.
    pub(super) fn answer_echo(&mut self, now: Instant, heard: Heard, opaque: &Opaque) -> bool {
        let Heard { at, src, .. } = heard;
        let Some((header, body)) = self.parse_icmpv6([src, at], opaque) else { return false };
        if header.kind != Kind::ECHO_REQUEST {
            return false;
        }
        self.relays[at.index()].metrics.received += 1;
        let header = Header { kind: Kind::ECHO_REPLY, code: 0 };
        self.send_icmpv6(now, at, (src, None), header, &body);
        true
    }

    /// Reports a problem to the source of a packet, if the source is outside of the simulation.
    pub(super) fn report_problem(&mut self, now: Instant, at: NodeId, packet: &Packet, problem: Problem) {
        if !self.relays.get(packet.src.index()).is_some_and(|relay| relay.outside) || is_error(packet) {
            return;
        }
        if matches!(&packet.payload, Payload::Fragment(piece) if piece.offset > 0) {
            return;
        }
        let Ok(mut invoking) = octets::write(self.config.ip, packet) else { return };
        if !self.relays[at.index()].errors.take(now) {
            return;
        }
        let (header, word) = problem.message();
        let room = LONGEST - self.config.ip.header_len() as usize - icmpv6::HEADER_LEN - size_of::<u32>();
        invoking.truncate(room);
        let body = [&word.to_be_bytes()[..], &invoking].concat();
        let behind = packet.outer.as_ref().and_then(|outer| outer.src);
        self.send_icmpv6(now, at, (packet.src, behind), header, &body);
    }

    /// Counts a datagram for a port that no application of the node has bound, and says so.
    pub(crate) fn refuse_datagram(&mut self, now: Instant, at: NodeId, src: NodeId, datagram: UdpDatagram) {
        self.refuse(now, (at, src), Payload::Udp(datagram), Problem::NoListener);
    }

    /// Counts a packet of a protocol that the node does not have, and says so.
    pub(super) fn refuse_protocol(&mut self, now: Instant, heard: Heard, opaque: Opaque) {
        let problem = match opaque.protocol {
            // Implemented; the message is bad, or of a kind that needs no answer.
            Protocol::TCP | Protocol::UDP | Protocol::ICMPV6 | NO_NEXT_HEADER => {
                return self.count_not_spoken(heard.at);
            }
            _ => Problem::UnknownProtocol,
        };
        self.refuse(now, (heard.at, heard.src), Payload::Opaque(opaque), problem);
    }

    fn refuse(&mut self, now: Instant, (at, src): (NodeId, NodeId), payload: Payload, problem: Problem) {
        self.count_not_spoken(at);
        if self.relays[src.index()].outside {
            let handle = self.make_packet(src, Ends::new(src, at), self.config.hop_limit, 0, payload);
            let packet = self.packets.remove(handle);
            self.report_problem(now, at, &packet, problem);
        }
    }

    /// Counts a packet that no protocol or application of the node accepts.
    fn count_not_spoken(&mut self, at: NodeId) {
        self.relays[at.index()].metrics.not_spoken += 1;
    }

    fn parse_icmpv6(&self, ends: [NodeId; 2], opaque: &Opaque) -> Option<(Header, Bytes)> {
        if opaque.protocol != Protocol::ICMPV6 {
            return None;
        }
        let [IpAddr::V6(src), IpAddr::V6(dst)] = ends.map(|node| address_of(self.config.ip, node)) else {
            return None;
        };
        let (header, body) = icmpv6::parse(&opaque.octets, [src, dst]).ok()?;
        Some((header, opaque.octets.slice(body)))
    }

    /// Sends a message to a node, or to a host behind it.
    fn send_icmpv6(
        &mut self,
        now: Instant,
        at: NodeId,
        (to, behind): (NodeId, Option<IpAddr>),
        header: Header,
        body: &[u8],
    ) {
        let ip = self.config.ip;
        let ends = (address_of(ip, at), behind.unwrap_or_else(|| address_of(ip, to)));
        let (IpAddr::V6(src), IpAddr::V6(dst)) = ends else { return };
        let mut octets = Vec::with_capacity(icmpv6::HEADER_LEN + body.len());
        icmpv6::emit(&header, body, [src, dst], &mut octets);
        let len = octets.len();
        let opaque = Opaque { protocol: Protocol::ICMPV6, octets: Bytes::from(octets) };
        let handle =
            self.make_packet(at, Ends::new(at, to), self.config.hop_limit, len, Payload::Opaque(opaque));
        self.packets.get_mut(handle).outer = Outer { dst: behind, ..Outer::default() }.boxed();
        self.relays[at.index()].metrics.sent += 1;
        if at == to {
            self.depart(now, at, handle);
        } else {
            self.send_on(now, at, Past::NONE, handle);
        }
    }
}

/// Whether no error may be sent about the packet: it is an ICMPv6 error itself, or a redirect (RFC
/// 4443 section 2.4 (e)).
fn is_error(packet: &Packet) -> bool {
    let opaque = match &packet.payload {
        Payload::Opaque(opaque) => opaque,
        Payload::Fragment(piece) => match &*piece.whole {
            Whole::Opaque(opaque) => opaque,
            Whole::Tcp(_) | Whole::Udp(_) => return false,
        },
        Payload::Tcp(_) | Payload::Udp(_) => return false,
    };
    let kind = opaque.octets.first().map(|kind| Kind(*kind));
    opaque.protocol == Protocol::ICMPV6 && kind.is_none_or(|kind| kind.is_error() || kind == Kind::REDIRECT)
}
