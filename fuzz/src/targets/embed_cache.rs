//! The cache of TCP segments for C programs: packets from captures and made ones, changed and
//! repaired, in any order with reports of the link layer.

use std::collections::BTreeSet;
use std::net::IpAddr;

use anabranch_cache::cache::Cache;
use anabranch_cache::sizes::Sizes;
use anabranch_core::dtc::{Config, LinkEvent};
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::ip::{self, Header, Protocol};
use anabranch_wire::tcp::{Flags, Options, SackBlock, Segment, SeqNumber, Timestamps};
use arbitrary::{Result, Unstructured};

use super::ip_tcp::mend;
use crate::probe::Probe;

/// Packets of the kernel's TCP.
const CAPTURED: [&[u8]; 5] = [
    include_bytes!("../../corpus/ip_tcp/linux-v4-syn"),
    include_bytes!("../../corpus/ip_tcp/linux-v4-three-sack-blocks"),
    include_bytes!("../../corpus/ip_tcp/linux-v6-fin"),
    include_bytes!("../../corpus/ip_tcp/linux-v6-syn-ack"),
    include_bytes!("../../corpus/ip_tcp/linux-v6-two-sack-blocks"),
];

/// What a packet tells its receiver: addresses, ports, first sequence number, acknowledgement
/// number (of segments without data), and data.
type Told = ([IpAddr; 2], [u16; 2], SeqNumber, Option<SeqNumber>, Vec<u8>);

struct Checked {
    cache: Cache,
    sizes: Sizes,
    now: Instant,
    /// What was passed to the cache.
    passed: BTreeSet<Vec<u8>>,
    last: Vec<u8>,
}

/// An input that ends in the middle of a step ends the run there.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let mut octets = Unstructured::new(input);
    let _ = steps(&mut octets, probe);
}

fn steps(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let sizes = Sizes {
        segment: *octets.choose(&[16, 128, 1500])?,
        segments: *octets.choose(&[1, 3])?,
        connections: *octets.choose(&[1, 2])?,
    };
    let config = Config { min_rto: Duration::from_millis(*octets.choose(&[1, 100])?), ..Config::improved() };
    let cache = Cache::new(&sizes, config);
    let mut checked =
        Checked { cache, sizes, now: Instant::ZERO, passed: BTreeSet::new(), last: CAPTURED[0].to_vec() };
    for _ in 0..MAX_STEPS {
        checked.step(octets, probe)?;
        checked.poll(probe);
        if checked.cache.next_timeout().is_some_and(|at| at <= checked.now) {
            checked.cache.timeout(checked.now);
            checked.poll(probe);
            let due = checked.cache.next_timeout();
            assert!(due.is_none_or(|at| at > checked.now), "an answered time-out is still due");
        }
    }
    Ok(())
}

impl Checked {
    fn step(&mut self, octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
        match octets.int_in_range(0..=9)? {
            0 => self.now += Duration::from_micros(octets.int_in_range(0..=500_000)?),
            1 => self.now += Duration::from_millis(octets.int_in_range(0..=400_000)?),
            2 => self.now = self.cache.next_timeout().unwrap_or(self.now).max(self.now),
            3 => self.cache.link(self.now, &self.last, LinkEvent::Acknowledged),
            4 => {
                self.cache.link(self.now, &self.last, LinkEvent::TimedOut);
                self.note();
            }
            _ => {
                self.last = packet(octets)?;
                let is_forwarded = self.cache.packet(self.now, &self.last);
                probe.say(|| format!("{:?} {is_forwarded}: {:02x?}", self.now, self.last));
                probe.feature(("forwarded", is_forwarded));
                if !is_forwarded {
                    probe.reach("a packet held back");
                    assert!(told(&self.last).is_some(), "an unread packet was held back");
                }
                self.note();
            }
        }
        let counters = self.cache.counters();
        assert!(counters.connections <= self.sizes.connections.into());
        probe.feature((counters.cached.min(20), counters.repeated.min(20), counters.connections));
        Ok(())
    }

    /// Remembers what the last packet tells.
    fn note(&mut self) {
        self.passed.extend(told(&self.last).map(|told| format!("{told:?}").into_bytes()));
    }

    /// Checks what the cache sends.
    fn poll(&mut self, probe: &mut Probe) {
        let mut buffer = vec![0xff; self.cache.longest()];
        let mut turns = 0;
        while let Some(n) = self.cache.poll(self.now, &mut buffer) {
            turns += 1;
            assert!(turns <= 8, "it does not stop sending");
            probe.say(|| format!("-> {:02x?}", &buffer[..n]));
            let told = told(&buffer[..n]).expect("what is sent can be read");
            probe.reach(if told.3.is_some() { "an acknowledgement repeated" } else { "a segment repeated" });
            let told = format!("{told:?}").into_bytes();
            assert!(self.passed.contains(&told), "sent what no endpoint has sent");
        }
    }
}

/// What a packet tells; `None` if it cannot be read.
fn told(packet: &[u8]) -> Option<Told> {
    let (header, range) = ip::parse(packet).ok()?;
    let (segment, head) = ip::parse_tcp_header(&header, &packet[range.clone()]).ok()?;
    let payload = &packet[range][head..];
    let has_flag = |flag| segment.flags.contains(flag);
    let is_bare = payload.is_empty() && !has_flag(Flags::SYN) && !has_flag(Flags::FIN);
    let ports = [segment.src_port, segment.dst_port];
    let ack = is_bare.then_some(segment.ack);
    Some(([header.src, header.dst], ports, segment.seq, ack, payload.to_vec()))
}

/// A captured packet, or one of two connections with numbers near those of others; mostly valid.
fn packet(octets: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut packet = if octets.ratio(1, 4)? { octets.choose(&CAPTURED)?.to_vec() } else { made(octets)? };
    if octets.ratio(1, 4)? {
        for _ in 0..octets.int_in_range(1..=3)? {
            let at = octets.choose_index(packet.len())?;
            packet[at] = octets.arbitrary()?;
        }
        if octets.ratio(3, 4)? {
            mend(&mut packet);
        }
    }
    if octets.ratio(1, 32)? {
        packet.truncate(octets.choose_index(packet.len())?);
    }
    Ok(packet)
}

fn made(octets: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let is_v4: bool = octets.arbitrary()?;
    let texts = if is_v4 { ["192.0.2.1", "192.0.2.2"] } else { ["fd00::1", "fd00::2"] };
    let mut ends = texts.map(|text| text.parse().expect("an address"));
    let mut ports = [1000 + u16::from(octets.int_in_range(0..=3u8)?), 80];
    if octets.arbitrary()? {
        ends.swap(0, 1);
        ports.swap(0, 1);
    }
    let number = |octets: &mut Unstructured<'_>| -> Result<SeqNumber> {
        Ok(SeqNumber(u32::MAX - 20) + u32::from(octets.int_in_range(0..=12u8)?) * 10)
    };
    let timestamps = if octets.arbitrary()? {
        Some(Timestamps { value: octets.int_in_range(0..=5)?, echo: octets.int_in_range(0..=5)? })
    } else {
        None
    };
    let mut options = Options { timestamps, ..Options::default() };
    for _ in 0..octets.int_in_range(0..=2)? {
        options.sack.push(SackBlock { left: number(octets)?, right: number(octets)? });
    }
    let flags = octets.choose(&[Flags::ACK, Flags::ACK, Flags::SYN, Flags::FIN, Flags::RST])?;
    let length = octets.int_in_range(0..=3)? * 10;
    let segment = Segment {
        src_port: ports[0],
        dst_port: ports[1],
        seq: number(octets)?,
        ack: number(octets)?,
        flags: if octets.ratio(7, 8)? { flags.with(Flags::ACK) } else { *flags },
        window: octets.int_in_range(0..=2)?,
        options,
        payload: vec![7; length].into(),
        ..Segment::default()
    };
    let mut packet = Vec::new();
    ip::emit_tcp(&Header::new(ends[0], ends[1], Protocol::TCP), &segment, &mut packet)
        .expect("its options fit");
    Ok(packet)
}

/// Limit on the steps of a run.
const MAX_STEPS: usize = 300;
