//! Whatever the packets, a cache allocates no more than its formula says: one payload with its
//! reference count in each call, and nothing else after the start. The library relies on this,
//! because a failed allocation would be fatal.

use anabranch_cache::cache::Cache;
use anabranch_cache::sizes::Sizes;
use anabranch_core::dtc::{Config, LinkEvent};
use anabranch_core::segment::{Flags, Options, SackBlock, Segment, SeqNumber, Timestamps};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::counting::{allocations, in_use};
use anabranch_testkit::prng::Prng;
use anabranch_wire::ip::{self, Header, Protocol};

use crate::ends::addresses;

/// Size of an allocation as the counters see it.
fn rounded(octets: usize) -> i64 {
    octets.next_multiple_of(16) as i64
}

/// A packet of one of 12 connections, with any numbers near those of an earlier one.
fn packet(random: &mut Prng, longest: u64) -> Vec<u8> {
    let mut ends = addresses(random.pick(&[4, 6]));
    let (mut ports, near) = ([random.below(6) as u16, 80], |random: &mut Prng| random.below(4000) as u32);
    if random.chance(40) {
        ends.swap(0, 1);
        ports.swap(0, 1);
    }
    let flags = random.pick(&[
        Flags::ACK,
        Flags::ACK,
        Flags::ACK,
        Flags::SYN,
        Flags::SYN.with(Flags::ACK),
        Flags::FIN.with(Flags::ACK),
        Flags::RST,
    ]);
    let length = if random.chance(60) { random.range(0..=longest + 4) } else { 0 };
    let timestamps = random.chance(50).then(|| Timestamps { value: near(random), echo: near(random) });
    let mut options = Options { timestamps, ..Options::default() };
    if random.chance(30) {
        let left = SeqNumber(near(random));
        options.sack.push(SackBlock { left, right: left + near(random) });
    }
    let segment = Segment {
        src_port: ports[0],
        dst_port: ports[1],
        seq: SeqNumber(near(random)),
        ack: SeqNumber(near(random)),
        flags,
        window: random.pick(&[0, 1000]),
        options,
        payload: random.octets(length as usize).into(),
        ..Segment::default()
    };
    let mut packet = Vec::new();
    ip::emit_tcp(&Header::new(ends[0], ends[1], Protocol::TCP), &segment, &mut packet).expect("it is short");
    packet
}

fn run(sizes: Sizes, seed: u64) {
    let mut random = Prng::new(seed);
    let before = in_use();
    let mut cache = Cache::new(&sizes, Config::improved());
    let lasting = in_use() - before;
    // The counters round each of the four tables.
    assert!(lasting <= sizes.lasting() as i64 + 4 * 16, "{lasting} bytes, {sizes:?}");
    // A payload with its reference count.
    let payload: i64 = sizes.blocks().iter().map(|blocks| rounded(blocks.octets)).sum();
    let mut now = Instant::ZERO;
    let mut last = packet(&mut random, sizes.segment.into());
    let mut buffer = vec![0; cache.longest()];
    for _ in 0..5000 {
        let next = packet(&mut random, sizes.segment.into());
        let outside = in_use();
        let calls = allocations();
        match random.below(6) {
            0 => cache.link(now, &last, LinkEvent::TimedOut),
            1 => cache.link(now, &last, LinkEvent::Acknowledged),
            2 => cache.timeout(now),
            _ => {
                cache.packet(now, &next);
            }
        }
        assert!(allocations() - calls <= 2, "seed {seed}");
        let mut polls = 0;
        while let Some(n) = cache.poll(now, &mut buffer) {
            let (header, range) = ip::parse(&buffer[..n]).expect("a packet");
            ip::parse_tcp_header(&header, &buffer[range]).expect("a segment");
            polls += 1;
            assert!(polls <= usize::from(sizes.segments) + 2 * usize::from(sizes.connections), "seed {seed}");
        }
        assert!(in_use() - outside <= payload, "seed {seed}");
        last = next;
        now += Duration::from_micros(random.pick(&[1, 5_000, 200_000, 2_000_000]) * random.below(3));
    }
    let counters = cache.counters();
    assert!(counters.cached > 100 && counters.repeated > 10, "seed {seed}: {counters:?}");
    // What is stored at the end, with all of the test's own memory returned.
    let kept = in_use();
    drop(cache);
    let freed = kept - in_use();
    assert!(freed <= lasting + i64::from(sizes.segments) * payload, "seed {seed}: {freed} bytes");
}

#[test]
fn no_input_allocates_more_than_the_formula_says() {
    for seed in 0..4 {
        run(Sizes::default(), seed);
        run(Sizes { segment: 500, segments: 5, connections: 3 }, seed);
        run(Sizes { segment: 16, segments: 64, connections: 8 }, seed);
    }
}
