//! The same seed and run give the same bytes of trace and capture, whatever runs in parallel.

use std::thread;

use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::set::SetNode;
use anabranch_sim::capture::Capture;
use anabranch_sim::sim::Fault;
use anabranch_sim::trace::TextTrace;
use anabranch_sim::world::Failure;

use crate::set::star::{Star, path};

const RUNS: u64 = 6;

/// The trace and the capture of one run.
#[derive(PartialEq, Eq)]
struct Record {
    trace: Vec<u8>,
    capture: Vec<u8>,
}

/// Lossy gateways, one of which fails during the transfer.
fn record(seed: u64, run: u64) -> Record {
    let paths = [path(256_000, 25, 0.02), path(128_000, 60, 0.05), path(56_000, 10, 0.01)];
    let star = Star { seed, run, ..Star::new(&paths, 100_000) };
    let mut harness = star.build();
    harness.fault(
        Instant::ZERO + Duration::from_millis(1500),
        Fault::NodeFails(harness.gateways[1], Failure::Silent),
    );
    let mut sim = harness.builder.take().expect("it has not run").build();
    sim.observe(TextTrace::new(Vec::new()));
    sim.observe(Capture::new(Vec::new(), star.ip));
    sim.run_until(Instant::ZERO + Duration::from_secs(1000));
    assert!(sim.app::<SetNode>(harness.node).delivered == star.file, "run {run} did not deliver");
    let capture: Capture<Vec<u8>> = sim.take_observer().expect("it was added");
    let trace: TextTrace<Vec<u8>> = sim.take_observer().expect("it was added");
    Record {
        trace: trace.finish().expect("memory takes all"),
        capture: capture.finish().expect("memory takes all"),
    }
}

fn records(runs: impl Iterator<Item = u64>) -> Vec<(u64, Record)> {
    runs.map(|run| (run, record(1, run))).collect()
}

#[test]
fn the_same_seed_and_run_give_the_same_bytes() {
    let first = record(1, 0);
    assert!(first.trace.len() > 100_000 && first.capture.len() > 100_000, "there is something to compare");
    assert!(first == record(1, 0));
}

#[test]
fn two_threads_give_the_bytes_of_one() {
    let alone = records(0..RUNS);
    let mut side_by_side: Vec<(u64, Record)> = thread::scope(|scope| {
        let halves = [0, 1].map(|half| scope.spawn(move || records((half..RUNS).step_by(2))));
        halves.into_iter().flat_map(|half| half.join().expect("a run does not panic")).collect()
    });
    side_by_side.sort_by_key(|(run, _)| *run);
    assert!(alone == side_by_side);
}

#[test]
fn another_run_or_another_seed_is_another_story() {
    let first = record(1, 0);
    for other in [record(1, 1), record(2, 0)] {
        assert!(first.trace != other.trace && first.capture != other.capture);
    }
}
