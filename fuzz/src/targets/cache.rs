//! The cache of a router: packets that anybody sends, reports of the link layer, and time.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch_core::dtc::LinkEvent;
use anabranch_core::time::{Duration, Instant};
use anabranch_host::packets::{Limits, Offload, PacketCache, Ruling, SEGMENT_MEMORY};
use anabranch_wire::ip::{self, Header, Protocol};
use anabranch_wire::tcp::{Flags, Options, SackBlock, Segment, SeqNumber, Timestamps};
use arbitrary::{Result, Unstructured};
use bytes::Bytes;

use crate::probe::Probe;

/// Cached segments and connections of the cache, few enough to be exceeded.
const SEGMENTS: u64 = 8;
const CONNECTIONS: usize = 3;

/// The first byte selects the input. Below 64 it is a capture: packets, each after its length in
/// two bytes. Otherwise the rest are steps.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Some((choice, rest)) = input.split_first() else { return };
    let memory = SEGMENTS * SEGMENT_MEMORY;
    let limits = Limits { memory, connections: CONNECTIONS, min_timeout: Duration::from_millis(10) };
    let cache = PacketCache::new(limits.config());
    let mut world = World { cache, now: Instant::ZERO, seen: Vec::new(), sent: HashMap::new() };
    if *choice < 64 {
        let mut rest = rest;
        while let Some((len, after)) = rest.split_first_chunk() {
            let len = usize::from(u16::from_be_bytes(*len)).min(after.len());
            world.packet(&after[..len], Offload::default(), probe);
            world.later(Duration::from_micros(len as u64 * 100), probe);
            rest = &after[len..];
        }
    } else {
        let mut octets = Unstructured::new(rest);
        // The run ends where the input ends.
        while !octets.is_empty() && world.step(&mut octets, probe).is_ok() {}
    }
    // Whatever happened, the cache comes to rest.
    for _ in 0..400 {
        world.later(Duration::from_secs(1), probe);
    }
    assert!(world.cache.connections() == 0, "idle connections are dropped");
    let landmarks =
        [("given up", world.cache.segments().given_up), ("full", world.cache.segments().not_cached)];
    landmarks.into_iter().filter(|(_, count)| *count > 0).for_each(|(name, _)| probe.reach(name));
}

struct World {
    cache: PacketCache,
    now: Instant,
    /// Segments that were handed to the cache, with their addresses.
    seen: Vec<(IpAddr, IpAddr, Segment)>,
    /// Number of copies of each data segment that the cache has sent since it was last handed in.
    sent: HashMap<(IpAddr, u16, u16, u32), u32>,
}

impl World {
    fn step(&mut self, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        match octets.int_in_range(0..=9)? {
            0 => {
                let millis = octets.int_in_range(0..=2000)?;
                self.later(Duration::from_millis(millis), probe);
            }
            1 => self.later(Duration::from_micros(octets.int_in_range(0..=999)?), probe),
            2 => {
                let raw = octets.arbitrary::<&[u8]>()?;
                self.packet(raw, Offload::default(), probe);
            }
            3 => {
                let event = *octets.choose(&[LinkEvent::Acknowledged, LinkEvent::TimedOut])?;
                let (packet, _) = packet(octets)?;
                // A driver reports what it was given.
                self.note(&packet, true);
                let whole = event == LinkEvent::TimedOut || octets.arbitrary()?;
                let len = if whole { packet.len() } else { packet.len().min(80) };
                self.cache.handle_report(self.now, &packet[..len], event);
            }
            _ => {
                let (mut packet, offload) = packet(octets)?;
                if octets.ratio(1, 16)? {
                    let at = octets.choose_index(packet.len())?;
                    packet[at] ^= octets.arbitrary::<u8>()?;
                }
                self.packet(&packet, offload, probe);
            }
        }
        self.drain(probe);
        Ok(())
    }

    /// Remembers a segment that the cache may keep.
    fn note(&mut self, packet: &[u8], offloaded: bool) -> bool {
        let Ok((header, range)) = ip::parse(packet) else { return false };
        let octets = Bytes::copy_from_slice(&packet[range]);
        let parse = if offloaded { ip::parse_tcp_offloaded } else { ip::parse_tcp };
        let Ok(segment) = parse(&header, octets) else { return false };
        let numbers = segment.seq.0..=segment.seq_end().0;
        self.sent.retain(|key, _| {
            (key.0, key.1, key.2) != (header.src, segment.src_port, segment.dst_port)
                || !numbers.contains(&key.3)
        });
        self.seen.push((header.src, header.dst, segment));
        true
    }

    fn packet(&mut self, packet: &[u8], offload: Offload, probe: &mut Probe) {
        let readable = self.note(packet, offload.checksum);
        let ruling = self.cache.handle_packet(self.now, packet, offload);
        probe.say(|| format!("{:?} {ruling:?} {packet:02x?}", self.now));
        if ruling == Ruling::Drop {
            assert!(readable, "only a segment may be dropped");
            probe.reach("held");
        }
        let counters = self.cache.packets();
        if counters.gso > 0 {
            probe.reach("GSO");
        }
        probe.feature((
            ruling == Ruling::Drop,
            counters.read > 0,
            counters.not_plain > 0,
            counters.unknown > 0,
        ));
        probe.feature(("connections", self.cache.connections()));
        let segments = self.cache.segments();
        probe.feature((segments.data_held.min(3), segments.acks_held.min(3), segments.data_answered.min(3)));
        probe.feature((segments.local_retransmissions.min(8), segments.local_timeouts.min(8)));
        probe.feature((segments.repaired.min(4), segments.given_up.min(4), segments.evicted.min(4)));
        self.drain(probe);
    }

    fn later(&mut self, span: Duration, probe: &mut Probe) {
        self.now += span;
        if self.cache.next_timeout().is_some_and(|at| at <= self.now) {
            self.cache.handle_timeout(self.now);
        }
        self.drain(probe);
        assert!(
            self.cache.next_timeout().is_none_or(|at| at > self.now),
            "an answered timer is no longer due"
        );
    }

    fn drain(&mut self, probe: &mut Probe) {
        let mut packet = Vec::new();
        while let Some(destination) = self.cache.poll_transmit(self.now, &mut packet) {
            let (header, range) = ip::parse(&packet).unwrap_or_else(|error| panic!("{error}: {packet:02x?}"));
            assert_eq!(header.dst, destination);
            let segment = ip::parse_tcp(&header, Bytes::copy_from_slice(&packet[range]))
                .unwrap_or_else(|error| panic!("{error}: {packet:02x?}"));
            probe.say(|| format!("sent {segment:?}"));
            self.known(&header, &segment, probe);
        }
        let (segments, octets) = self.cache.cached();
        assert!(
            segments as u64 <= SEGMENTS && octets as u64 <= SEGMENTS * SEGMENT_MEMORY,
            "{segments} {octets}"
        );
        assert!(self.cache.connections() <= CONNECTIONS);
    }

    /// Checks that a sent segment was handed in before.
    fn known(&mut self, header: &Header, sent: &Segment, probe: &mut Probe) {
        let of_flow = self.seen.iter().filter(|(src, dst, seen)| {
            (*src, *dst, seen.src_port, seen.dst_port)
                == (header.src, header.dst, sent.src_port, sent.dst_port)
        });
        let mut of_flow = of_flow.map(|(_, _, seen)| seen);
        if sent.seq_len() == 0 {
            probe.reach("acknowledgement repeated");
            let said = |seen: &Segment| seen.flags.contains(Flags::ACK) && seen.ack == sent.ack;
            assert!(of_flow.any(said), "{sent:?}");
            return;
        }
        let part = |seen: &Segment| {
            let from = sent.seq.0.wrapping_sub(seen.seq.0) as usize;
            let has = |flag| !sent.flags.contains(flag) || seen.flags.contains(flag);
            has(Flags::SYN)
                && has(Flags::FIN)
                && seen.payload.get(from..from.saturating_add(sent.payload.len())) == Some(&sent.payload[..])
        };
        let whole = of_flow.find(|seen| part(seen)).unwrap_or_else(|| panic!("{sent:?}"));
        probe.reach(if whole.payload.len() == sent.payload.len() {
            "data repeated"
        } else {
            "part repeated"
        });
        let key = (header.src, sent.src_port, sent.dst_port, sent.seq.0);
        let copies = self.sent.entry(key).or_default();
        *copies += 1;
        assert!(*copies <= 64, "{sent:?}: {copies} copies");
    }
}

/// A packet of one of a few connections, mostly of one that a stack could send.
fn packet(octets: &mut Unstructured<'_>) -> Result<(Vec<u8>, Offload)> {
    let v6 = octets.ratio(1, 4)?;
    let forth = octets.arbitrary::<bool>()?;
    let end = |last: u8| match v6 {
        false => IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)),
        true => IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last.into())),
    };
    let client = octets.int_in_range(1..=5)?;
    let (src, dst) = if forth { (end(1), end(2)) } else { (end(2), end(1)) };
    // Mostly near each other; sometimes anywhere.
    let number = |octets: &mut Unstructured<'_>| match octets.ratio(1, 32)? {
        true => octets.arbitrary().map(SeqNumber),
        false => Ok(SeqNumber(u32::MAX - 500) + 100 * octets.int_in_range(0..=20)?),
    };
    let seq = number(octets)?;
    let ack = number(octets)?;
    let common = [
        Flags::ACK,
        Flags::ACK.with(Flags::PSH),
        Flags::SYN,
        Flags::SYN.with(Flags::ACK),
        Flags::ACK.with(Flags::FIN),
    ];
    let flags = if octets.ratio(1, 32)? { Flags(octets.arbitrary()?) } else { *octets.choose(&common)? };
    let mut options = Options::default();
    if flags.contains(Flags::SYN) {
        options.mss = Some(*octets.choose(&[0, 300, 536, 1460])?);
        options.sack_permitted = true;
    }
    if octets.arbitrary()? {
        options.timestamps = Some(Timestamps { value: octets.arbitrary()?, echo: 1 });
    }
    for _ in 0..octets.int_in_range(0..=2)? {
        let left = number(octets)?;
        options.sack.push(SackBlock { left, right: left + 100 * octets.int_in_range(1..=5)? });
    }
    let segments = octets.ratio(1, 8)?;
    let len =
        if segments { octets.int_in_range(0..=4000)? } else { *octets.choose(&[0, 0, 1, 100, 100, 200])? };
    // The bytes follow from their numbers, unless the segment is forged.
    let forged = u8::from(octets.ratio(1, 16)?);
    let payload: Vec<u8> = (0..len).map(|i| ((seq.0.wrapping_add(i) >> 2) as u8) ^ forged).collect();
    let (src_port, dst_port) = if forth { (client, 80) } else { (80, client) };
    let segment = Segment {
        src_port,
        dst_port,
        seq,
        ack,
        flags,
        window: 1000,
        options,
        payload: Bytes::from(payload),
        ..Segment::default()
    };
    let mut packet = Vec::new();
    ip::emit_tcp(&Header::new(src, dst, Protocol::TCP), &segment, &mut packet).expect("a legal packet");
    let checksum = octets.arbitrary()?;
    Ok((packet, Offload { checksum, segments }))
}
