//! How fast: what several gateways gain over one.

use anabranch_core::set::ReceiverConfig;

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

/// The paper's TCP starts with one segment, which costs a file of this size dearly.
#[test]
fn three_gateways_gain_with_the_papers_tcp_too() {
    let gain = Star::lab(&usual(1), 129_000).latency() / Star::lab(&usual(3), 129_000).latency();
    assert!(gain >= 2.2, "{gain:.3} times as fast as one");
}

/// What three unequal gateways reach together, as a part of the sum of what each reaches alone.
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
