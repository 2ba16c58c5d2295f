//! Speed: the gain of several gateways over one.

use std::collections::BTreeMap;

use anabranch_core::set::{Plan, ReceiverConfig};

use super::star::*;

/// The paper's usual wireless link.
fn usual(gateways: usize) -> Vec<Path> {
    vec![path(256_000, 25, 0.0); gateways]
}

#[test]
fn equal_lossless_gateways_add_up() {
    let one = Star::new(&usual(1), 1_000_000).latency();
    for n in 2..=4 {
        let gain = one / Star::new(&usual(n), 1_000_000).latency();
        assert!(gain >= 0.95 * n as f64, "{n} gateways: {gain:.3} times as fast as one");
    }
}

/// The paper's TCP starts with one segment, which is expensive for a file of this size.
#[test]
fn three_gateways_gain_with_the_papers_tcp_too() {
    let gain = Star::lab(&usual(1), 129_000).latency() / Star::lab(&usual(3), 129_000).latency();
    assert!(gain >= 2.2, "{gain:.3} times as fast as one");
}

/// Throughput of three unequal gateways together, as a fraction of the sum of their single
/// throughputs.
fn share_of_the_sum(node_buffer: u32) -> f64 {
    let paths = [256_000, 128_000, 56_000].map(|rate| path(rate, 25, 0.0));
    let goodput = |paths: &[Path]| {
        let star = Star::new(paths, 1_000_000);
        let node = ReceiverConfig { buffer: node_buffer, ..star.node.clone() };
        1.0 / Star { node, ..star }.latency()
    };
    goodput(&paths) / paths.iter().map(|p| goodput(&[*p])).sum::<f64>()
}

#[test]
fn unequal_gateways_reach_the_sum_of_what_each_reaches_alone() {
    for node_buffer in [64_000, 128_000] {
        let share = share_of_the_sum(node_buffer);
        assert!(share >= 0.95, "together {share:.3} of the sum with a node buffer of {node_buffer} octets");
    }
}

#[test]
fn every_gateway_more_shortens_the_transfer() {
    for length in [5_000, 42_000, 129_000] {
        let latencies: Vec<f64> = (1..=3).map(|n| Star::lab(&usual(n), length).latency()).collect();
        assert!(latencies.is_sorted_by(|a, b| a > b), "{length} octets: {latencies:.3?}");
    }
}

/// Latency of a plan over these gateways with this node buffer.
fn latency(paths: &[Path], plan: Plan, length: usize, node_buffer: u32) -> f64 {
    let mut star = Star::new(paths, length);
    star.set.plan = plan;
    star.node.buffer = node_buffer;
    star.wired.receive_buffer = star.wired.receive_buffer.min(node_buffer);
    star.wireless.receive_buffer = star.wired.receive_buffer;
    star.latency()
}

/// Latency of SET over all gateways, the best of SET over each alone, and the best of split TCP
/// over each alone, with this node buffer.
fn against_each(paths: &[Path], length: usize, node_buffer: u32) -> (f64, f64, f64) {
    let latency = |paths: &[Path], plan| latency(paths, plan, length, node_buffer);
    let best = |plan| paths.iter().map(|p| latency(&[*p], plan)).fold(f64::MAX, f64::min);
    (latency(paths, Plan::Stripe), best(Plan::Stripe), best(Plan::Split))
}

#[test]
fn a_slow_gateway_does_not_hold_up_a_fast_one() {
    // A slow start that overruns the fast gateway's queue of 100 packets costs more than the slow
    // gateway contributes. The cost depends on the burst: with RFC 5681 and RFC 6582 alone there is
    // no SACK for recovery.
    let usual = [2, 3, 5].map(|fast| (256_000, fast, 1.02));
    let wide = [(256_000, 10), (10_000, 10), (256_000, 20), (256_000, 50), (100_000, 100)];
    let latency = |paths: &[Path], plan| latency(paths, plan, 3_000_000, 64_000);
    // Most gateways are in several pairs; alone they take the same time in each.
    let mut alone = BTreeMap::new();
    let mut alone = |path: Path| {
        *alone
            .entry(path.rate)
            .or_insert_with(|| [Plan::Stripe, Plan::Split].map(|plan| latency(&[path], plan)))
    };
    for (slow, fast, limit) in usual.into_iter().chain(wide.map(|(slow, fast)| (slow, fast, 1.25))) {
        let [fast_path, slow_path] = [fast * 1_000_000, slow].map(|rate| path(rate, 25, 0.0));
        let (fast_alone, slow_alone) = (alone(fast_path), alone(slow_path));
        let [alone, split] = [0, 1].map(|plan| fast_alone[plan].min(slow_alone[plan]));
        let together = latency(&[fast_path, slow_path], Plan::Stripe);
        let what = format!("{fast} Mbit/s beside {slow} bit/s: {together:.2} s");
        assert!(together <= limit * alone, "{what}, alone {alone:.2} s");
        assert!(together <= limit * split, "{what}, split {split:.2} s");
        let together = latency(&[slow_path, fast_path], Plan::Stripe);
        assert!(
            together <= 1.8 * split,
            "{fast} Mbit/s after {slow} bit/s: {together:.2} s, split {split:.2} s"
        );
    }
}

/// A gateway's TCP that was idle until the next chunks arrived lost bursts of them, and so its path
/// was taken for a slow one: 1.74 times the latency of split TCP at 10 Mbit/s.
#[test]
fn a_long_file_fills_a_fast_path_as_a_plain_stream_does() {
    for rate in [5_000_000, 10_000_000, 20_000_000, 50_000_000, 100_000_000] {
        let (_, alone, split) = against_each(&[path(rate, 25, 0.0)], 3_000_000, 64_000);
        assert!(alone <= 1.02 * split, "{rate}: {alone:.2} s, split {split:.2} s");
    }
    let both = [path(10_000_000, 25, 0.0); 2];
    let (together, _, split) = against_each(&both, 3_000_000, 64_000);
    assert!(together <= 1.10 * split, "{together:.2} s, split {split:.2} s");
}

#[test]
fn a_node_buffer_of_a_few_segments_costs_no_more_than_split_tcp() {
    for (buffer, wired_ms) in [(500, 10), (1_000, 10), (1_000, 50), (2_000, 10), (4_000, 10)] {
        for gateways in 1..=3 {
            let paths = vec![Path { wired_ms, ..path(256_000, 25, 0.0) }; gateways];
            let (together, alone, split) = against_each(&paths, 50_000, buffer);
            let what = format!("{gateways} gateways, {buffer} octets, {wired_ms} ms");
            assert!(together <= 1.06 * split, "{what}: {together:.2} s, split {split:.2} s");
            assert!(together <= 1.10 * alone, "{what}: {together:.2} s, alone {alone:.2} s");
        }
    }
}

/// TCP on the wireless half waits longer than the stall time-out when several time-outs follow each
/// other.
#[test]
fn a_path_that_loses_a_fifth_delivers_and_the_sender_learns_of_it() {
    for seed in 1..=12 {
        Star { seed, ..Star::new(&[path(256_000, 25, 0.2)], 50_000) }.latency();
    }
}
