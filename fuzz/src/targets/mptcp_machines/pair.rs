//! Two connections over paths that lose, repeat and reorder, and at the end no longer do: then
//! everything written must arrive unchanged. An attacker who has seen the token, but no key, opens
//! subflows meanwhile.

use std::collections::BTreeMap;

use anabranch_core::mptcp::{Config, Connection, Event, PathId, Secrets, SubflowId, join_token};
use anabranch_core::segment::{
    AddressId, Dss, Flags, Key, Mapping, MpJoin, Mptcp, MptcpOption, Segment, SeqNumber, WireDsn,
};
use anabranch_core::tcp::{CloseReason, reset_for};
use anabranch_core::time::{Duration, Instant};
use anabranch_packetdrill::secrets;
use arbitrary::{Result, Unstructured};
use bytes::Bytes;

use super::{MAX_STEPS, MAX_TURNS, config, first};
use crate::probe::Probe;
use crate::targets::stream::{octet, survives_the_wire};

pub(super) fn run(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let mut pair = Pair::new(octets, probe)?;
    for _ in 0..MAX_STEPS {
        if octets.is_empty() || pair.step(octets, probe).is_err() {
            break;
        }
        pair.settle(probe);
    }
    pair.finish(probe);
    Ok(())
}

#[derive(Default)]
struct End {
    connection: Option<Connection>,
    written: u64,
    read: u64,
    closes: bool,
    aborts: bool,
    peer_closed: bool,
    closed: Option<CloseReason>,
    fell_back: bool,
    /// Subflows by local and remote port.
    flows: BTreeMap<(u16, u16), SubflowId>,
}

/// Segments of which the paths remove the MPTCP options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Strip {
    None,
    Syns,
    Joins,
    AfterSyns,
}

struct Pair {
    now: Instant,
    config: Config,
    keys: [Key; 2],
    ends: [End; 2],
    strip: Strip,
    network: Vec<(usize, Segment)>,
    /// Draws nonces and first numbers.
    next: u32,
    /// The attacker's subflow at the server: its first and next number, and those of the server.
    attack: Option<[SeqNumber; 2]>,
}

impl Pair {
    fn new(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<Self> {
        let (ours, config) = (config(octets)?, config(octets)?);
        let strip = *octets.choose(&[
            Strip::None,
            Strip::None,
            Strip::None,
            Strip::Joins,
            Strip::Syns,
            Strip::AfterSyns,
        ])?;
        probe.say(|| format!("{ours:?}\n{config:?}\n{strip:?}"));
        let keys = [Key(octets.arbitrary()?), Key(octets.arbitrary()?)];
        let next = octets.arbitrary()?;
        let ends = [End::default(), End::default()];
        let now = Instant::ZERO;
        let mut this = Self { now, config, keys, ends, strip, network: Vec::new(), next, attack: None };
        let secrets = this.secrets(0);
        let client = Connection::connect(now, ours, PathId(0), (4000, 80), secrets);
        this.ends[0].connection = Some(client);
        this.ends[0].flows.insert((4000, 80), SubflowId(0));
        this.settle(probe);
        Ok(this)
    }

    fn secrets(&mut self, who: usize) -> Secrets {
        self.next = self.next.wrapping_mul(0x9e37_79b1).wrapping_add(7);
        Secrets { key: self.keys[who], nonce: self.next, iss: SeqNumber(self.next ^ 0x5a5a_5a5a) }
    }

    fn step(&mut self, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        let who = usize::from(octets.arbitrary::<bool>()?);
        match octets.int_in_range(0..=31)? {
            0 => self.now += Duration::from_millis(octets.int_in_range(0..=3_000)?),
            1..=3 => self.now += Duration::from_micros(octets.int_in_range(0..=50_000)?),
            4 => drop(self.time_out()),
            5..=8 => self.ends[who].write(octets.int_in_range(0..=9_000)?),
            9 => self.ends[who].take(octets.int_in_range(0..=9_000)?),
            10..=12 => self.join(who),
            13 => self.command(who, octets)?,
            14 | 15 => self.attack(octets, probe)?,
            16..=19 if !self.network.is_empty() => {
                let at = octets.choose_index(self.network.len())?;
                match octets.int_in_range(0..=3)? {
                    0 | 1 => drop(self.network.remove(at)),
                    2 => self.network.push(self.network[at].clone()),
                    _ => self.deliver(at, probe),
                }
            }
            20..=23 => {
                for _ in 0..self.network.len() {
                    self.deliver(0, probe);
                }
            }
            _ if !self.network.is_empty() => self.deliver(0, probe),
            _ => {}
        }
        Ok(())
    }

    fn join(&mut self, who: usize) {
        let (now, secrets) = (self.now, self.secrets(who));
        let end = &mut self.ends[who];
        let port = 5000 + end.flows.len() as u16;
        // As seen by this end.
        let ports = if who == 0 { (port, 80) } else { (80, port) };
        let Some(connection) = &mut end.connection else { return };
        if end.flows.contains_key(&ports) {
            return;
        }
        if let Ok(id) = connection.join(now, (PathId(1), AddressId(1)), ports, None, secrets) {
            end.flows.insert(ports, id);
        }
    }

    fn command(&mut self, who: usize, octets: &mut Unstructured<'_>) -> Result<()> {
        let (now, end) = (self.now, &mut self.ends[who]);
        let Some(connection) = &mut end.connection else { return Ok(()) };
        let subflow = SubflowId(octets.int_in_range(0..=3)?);
        match octets.int_in_range(0..=9)? {
            0 | 1 => {
                connection.close(now);
                end.closes = true;
            }
            2 => connection.close_subflow(now, subflow),
            3 => connection.set_backup(subflow, octets.arbitrary()?),
            4 => drop(connection.remove_address(AddressId(octets.int_in_range(1..=2)?))),
            5 => drop(connection.add_address(now, AddressId(1), [10, 0, 0, 1].into(), None)),
            6 => connection.set_send_buffer(octets.int_in_range(0..=50_000)?),
            7 => connection.set_receive_buffer(octets.int_in_range(0..=50_000)?),
            8 if octets.ratio(1, 4)? => {
                connection.abort(now);
                end.aborts = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// The attacker opens a subflow to the server, or says something on it, without the keys.
    fn attack(&mut self, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        let ports = (6666, 80);
        let id = self.ends[1].flows.get(&(80, 6666)).copied();
        let (now, secrets) = (self.now, self.secrets(1));
        let Some(server) = &mut self.ends[1].connection else { return Ok(()) };
        let (src_port, dst_port) = ports;
        let base = Segment { src_port, dst_port, window: 60_000, ..Segment::default() };
        let (Some([nxt, theirs]), Some(id)) = (self.attack, id) else {
            let (seq, token) = (SeqNumber(9), secrets::token(self.keys[1]));
            let syn = MpJoin::Syn { backup: false, address: AddressId(1), token, nonce: 1 };
            let mptcp = Mptcp::only(MptcpOption::MpJoin(syn));
            let syn = Segment { seq, flags: Flags::SYN, mptcp, ..base };
            if let Ok(id) = server.accept_join(now, PathId(9), &syn, AddressId(0), secrets) {
                probe.reach("an attacker's subflow");
                self.ends[1].flows.insert((80, 6666), id);
                self.attack = Some([seq + 1, secrets.iss + 1]);
            }
            return Ok(());
        };
        let dsn = first(self.keys[0]) + self.ends[1].read + u64::from(octets.arbitrary::<u8>()?);
        let len = octets.int_in_range(0..=40_u16)?;
        let mapping = Mapping { dsn: WireDsn::Short(dsn.0 as u32), subflow_seq: 1, len, checksum: None };
        let ack = first(self.keys[1]) + self.ends[1].written;
        let mut mptcp = Mptcp::dss_only(match octets.int_in_range(0..=2)? {
            0 => Dss::default().with_data_ack(WireDsn::Short(ack.0 as u32)),
            1 => Dss::default().with_mapping(mapping),
            _ => Dss::default().with_mapping(mapping).with_data_fin(),
        });
        for _ in 0..octets.int_in_range(0..=1)? {
            mptcp.push(match octets.int_in_range(0..=4)? {
                0 => MptcpOption::RemoveAddr(vec![AddressId(0), AddressId(1)]),
                1 => MptcpOption::MpFail { dsn },
                2 => MptcpOption::MpFastclose { receiver: Key(0) },
                3 => MptcpOption::MpPrio { backup: true },
                _ => MptcpOption::MpJoin(MpJoin::Ack { hmac: octets.arbitrary()? }),
            });
        }
        let flags = *octets.choose(&[Flags::ACK, Flags::ACK, Flags::ACK.with(Flags::FIN)])?;
        let payload = Bytes::from(vec![0xee; len.into()]);
        let segment = Segment { seq: nxt, ack: theirs, flags, mptcp, payload, ..base };
        probe.say(|| format!("{now} attack {segment:?}"));
        server.handle_segment(now, id, segment);
        Ok(())
    }

    fn deliver(&mut self, at: usize, probe: &mut Probe) {
        let (to, segment) = self.network.remove(at);
        let (now, secrets) = (self.now, self.secrets(to));
        let ports = (segment.dst_port, segment.src_port);
        let end = &mut self.ends[to];
        let known = end.flows.get(&ports).copied();
        let reset = match (&mut end.connection, known) {
            (Some(connection), Some(id)) => {
                connection.handle_segment(now, id, segment);
                None
            }
            (Some(connection), None) if join_token(&segment).is_some() => {
                match connection.accept_join(now, PathId(1), &segment, AddressId(1), secrets) {
                    Ok(id) => {
                        end.flows.insert(ports, id);
                        None
                    }
                    Err(error) => error.reset_for(&segment),
                }
            }
            (Some(_), None) => reset_for(&segment),
            (None, _) => {
                end.connection = Connection::accept(now, self.config, PathId(0), &segment, secrets);
                end.flows.insert(ports, SubflowId(0));
                None
            }
        };
        self.network.extend(reset.map(|reset| (1 - to, reset)));
        self.settle(probe);
    }

    /// Takes all effects of both ends.
    fn settle(&mut self, probe: &mut Probe) {
        let (now, strip) = (self.now, self.strip);
        for (who, end) in self.ends.iter_mut().enumerate() {
            let Some(connection) = &mut end.connection else { continue };
            for turn in 0.. {
                assert!(turn < MAX_TURNS, "sends without end");
                let Some((id, mut segment)) = connection.poll_transmit(now) else { break };
                probe.say(|| format!("{now} {who}.{} > {segment:?}", id.0));
                survives_the_wire(&segment);
                let syn = segment.flags.contains(Flags::SYN);
                let strips = match strip {
                    Strip::None => false,
                    Strip::Syns => syn,
                    Strip::Joins => syn && id.0 > 0,
                    Strip::AfterSyns => !syn,
                };
                if strips {
                    segment.mptcp = Mptcp::NONE;
                }
                // The attacker is elsewhere.
                if segment.dst_port != 6666 {
                    self.network.push((1 - who, segment));
                }
            }
            while let Some(event) = connection.poll_event() {
                probe.say(|| format!("{now} {who}: {event:?}"));
                probe.feature((who, std::mem::discriminant(&event)));
                assert!(end.closed.is_none(), "{event:?} after the end");
                match event {
                    Event::Closed(reason) => end.closed = Some(reason),
                    Event::PeerClosed => end.peer_closed = true,
                    Event::FellBack => end.fell_back = true,
                    Event::SubflowEstablished(_) => probe.reach("a subflow between both"),
                    _ => {}
                }
            }
            let info = connection.info();
            probe.feature((who, info.multipath, info.subflows, info.reinjections.min(5)));
            probe.feature((who, info.dropped.min(5), (info.bytes_received / 2000).min(20)));
        }
    }

    fn time_out(&mut self) -> bool {
        let connections = || self.ends.iter().filter_map(|end| end.connection.as_ref());
        let Some(next) = connections().filter_map(Connection::next_timeout).min() else { return false };
        self.now = self.now.max(next);
        for connection in self.ends.iter_mut().filter_map(|end| end.connection.as_mut()) {
            if connection.next_timeout().is_some_and(|at| at <= self.now) {
                connection.handle_timeout(self.now);
            }
        }
        true
    }

    /// The paths are perfect from now on, and both ends read what they receive.
    fn finish(&mut self, probe: &mut Probe) {
        probe.say(|| "the paths are perfect from here on");
        let (mut idle, mut last, mut since) = (0, None, self.now);
        while idle < MAX_IDLE_ROUNDS || self.now.saturating_since(since) < PATIENCE {
            for end in &mut self.ends {
                if let Some(connection) = &mut end.connection {
                    connection.set_receive_buffer(100_000);
                }
                end.take(usize::MAX);
            }
            self.settle(probe);
            let done = |from: &End, to: &End| from.written == to.read && (!from.closes || to.peer_closed);
            let [a, b] = &self.ends;
            if self.network.is_empty() && done(a, b) && done(b, a) {
                break;
            }
            let progress = Some([a.read, b.read]);
            idle += 1;
            if progress != last {
                (idle, last, since) = (0, progress, self.now);
            }
            if self.network.is_empty() && !self.time_out() {
                break;
            }
            self.now += Duration::from_millis(1);
            for _ in 0..self.network.len() {
                self.deliver(0, probe);
            }
        }
        let [a, b] = &self.ends;
        let broken = |end: &End| match end.closed {
            None => end.connection.is_none(),
            Some(reason) => reason != CloseReason::Graceful || end.aborts,
        };
        if broken(a) || broken(b) {
            return probe.feature(("broken", a.closed.is_some(), b.closed.is_some()));
        }
        for (from, to) in [(a, b), (b, a)] {
            assert_eq!(to.read, from.written, "bytes read of those written");
            assert!(!from.closes || to.peer_closed, "the DATA_FIN never arrives");
        }
        probe.reach("all data arrived");
        probe.feature(("fell back", a.fell_back, b.fell_back));
    }
}

impl End {
    fn write(&mut self, len: usize) {
        let Some(connection) = &mut self.connection else { return };
        let len = len.min(MOST_WRITTEN.saturating_sub(self.written) as usize);
        let mut data: Bytes = (0..len).map(|i| octet(self.written as u32 + i as u32)).collect();
        self.written += connection.write(&mut data).unwrap_or(0) as u64;
    }

    fn take(&mut self, max: usize) {
        let Some(connection) = &mut self.connection else { return };
        let mut left = max;
        while let Some(data) = connection.read(left) {
            left -= data.len();
            for byte in &data {
                assert_eq!(*byte, octet(self.read as u32), "byte {} of what was read", self.read);
                self.read += 1;
            }
        }
    }
}

/// Limits on rounds and time without progress. A round is half a round trip or a time-out; after
/// the longest time-out the peer is asked on another subflow.
const MAX_IDLE_ROUNDS: usize = 400;
const PATIENCE: Duration = Duration::from_secs(600);
/// Limit on the bytes that an end writes.
const MOST_WRITTEN: u64 = 60_000;
