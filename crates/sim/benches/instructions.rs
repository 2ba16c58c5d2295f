//! Instruction counts of the hot paths, which other processes on the machine do not disturb. Needs
//! valgrind and the program gungraun-runner; `cargo xtask bench` fetches both. Without them it
//! prints a notice and measures nothing.

#![allow(missing_docs, reason = "the macros write what has none")]

mod support;

use std::hint::black_box;

use anabranch_core::segment::Segment;
use anabranch_core::tcp::Config;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::engine::EventQueue;
use anabranch_sim::event::Event;
use anabranch_sim::link::{LinkConfig, QueueLimit};
use anabranch_sim::network::{Forwarding, Network, NetworkConfig};
use anabranch_sim::packet::Ends;
use anabranch_sim::random::Stream;
use anabranch_sim::sim::Simulation;
use anabranch_testkit::instructions;
use bytes::Bytes;
use gungraun::{library_benchmark, library_benchmark_group};

use support::{Star, dumbbell, one_hop};

/// Number of operations per count, large enough to make the overhead negligible.
const ROUNDS: u64 = 1000;

fn pending() -> (EventQueue<[u64; 2]>, Vec<Duration>) {
    let mut stream = Stream::new(1, 0, "bench", "exponential");
    let draw = |_| Duration::from_nanos((stream.exponential() * 1e6) as u64);
    let increments: Vec<Duration> = (0..ROUNDS).map(draw).collect();
    let mut queue = EventQueue::new();
    for (i, increment) in (0..).zip(&increments) {
        queue.push(Instant::ZERO + *increment, [i, 0]);
    }
    (queue, increments)
}

// 1,000 operations with 1,000 events pending: take the next event and schedule another.
#[library_benchmark]
#[bench::exponential(pending())]
fn hold((mut queue, increments): (EventQueue<[u64; 2]>, Vec<Duration>)) -> usize {
    for increment in &increments {
        let (now, event) = queue.pop().expect("never empty");
        queue.push(now + *increment, event);
    }
    black_box(queue.len())
}

fn wire() -> (Network, Segment) {
    let mut network = Network::new(NetworkConfig::default());
    let [a, b] = ["a", "b"].map(|n| network.add_node(n, Forwarding::Off));
    let queue = QueueLimit::Packets(1000);
    let config = LinkConfig { queue, ..LinkConfig::new(1_000_000_000, Duration::from_micros(10)) };
    network.add_link(a, b, config, |purpose: &str| Stream::new(1, 0, "link", purpose));
    network.compute_routes();
    let segment = Segment { payload: Bytes::from(vec![0; 1440]), ..Segment::default() };
    for _ in 1..64 {
        network.send(Instant::ZERO, Ends::new(a, b), segment.clone());
    }
    (network, segment)
}

// 1,000 packets over one link with 64 packets in it: enqueue, transmit, deliver.
#[library_benchmark]
#[bench::queued(wire())]
fn packet((mut network, segment): (Network, Segment)) {
    let [a, b] = ["a", "b"].map(|n| network.find_node(n).expect("it was added"));
    let mut now = Instant::ZERO;
    for _ in 0..ROUNDS {
        network.send(now, Ends::new(a, b), segment.clone());
        let (at, event) = network.events.pop().expect("a packet is under way");
        now = at;
        if let Event::Arrival { link, generation } = event {
            black_box(network.handle_arrival(now, link, generation));
        }
    }
}

// One simulated second of segments and acknowledgements over one hop.
#[library_benchmark]
#[bench::second(one_hop())]
fn segment(mut sim: Simulation) -> u64 {
    sim.run_until(sim.now() + Duration::from_secs(1));
    black_box(sim.events())
}

// One simulated second of 20 flows over one bottleneck, including slow start and its losses.
#[library_benchmark]
#[bench::standard(dumbbell(20, Config::default()))]
#[bench::modern(dumbbell(20, Config::modern()))]
fn bottleneck(mut sim: Simulation) -> u64 {
    sim.run_until(sim.now() + Duration::from_secs(1));
    black_box(sim.events())
}

// 129 kB to a node through three gateways, without building the network.
#[library_benchmark]
#[bench::three_gateways(Star::new(129_000))]
fn set(mut star: Star) -> u64 {
    star.run();
    black_box(star.sim.events())
}

library_benchmark_group!(name = hot_paths; benchmarks = hold, packet, segment, bottleneck, set);

mod harness {
    use super::hot_paths;

    gungraun::main!(library_benchmark_groups = hot_paths);

    pub(super) fn run() {
        main();
    }
}

fn main() {
    if instructions::are_counted() {
        harness::run();
    }
}
