//! Tests of rate limits of gateways and senders, and of gateways at their capacity.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anabranch_core::set::{Failure, Outcome};
use anabranch_core::time;
use anabranch_net::set::{Allow, GatewayConfig, Push, PushConfig};
use anabranch_testkit::processors::{Busy, Processors};
use tokio::time::Instant;

use super::world::*;

/// In bits per second.
const MEGABIT: u64 = 1_000_000;

/// A gateway that may relay to all loopback addresses.
fn paced(change: impl FnOnce(&mut GatewayConfig)) -> Running {
    gateway_with(V4, |config| {
        config.allow = vec!["127.0.0.0/8:1-65535".parse::<Allow>().expect("a rule")];
        change(config);
    })
}

/// The loopback device has enough addresses for several nodes.
fn host(last: u8) -> IpAddr {
    Ipv4Addr::new(127, 0, 0, last).into()
}

fn octets_at(node: &Receiving) -> u64 {
    node.sink.look().octets.len() as u64
}

/// Starts a long push, and waits until bytes have arrived.
async fn begin(node: &Receiving, change: impl FnOnce(&mut PushConfig)) {
    let mut config = config(node.address);
    change(&mut config);
    let mut push = Push::new(config, contents(20_000_000));
    tokio::spawn(async move { while push.step().await.is_none() {} });
    until(|| octets_at(node) > 0).await;
}

/// Bits per second received by each node since `start`, when it had `before` bytes.
fn rates(nodes: &[&Receiving], start: Instant, before: &[u64]) -> Vec<f64> {
    let seconds = start.elapsed().as_secs_f64();
    let come = nodes.iter().zip(before).map(|(node, before)| octets_at(node) - before);
    come.map(|octets| octets as f64 * 8.0 / seconds).collect()
}

/// Asserts that the rates in `parts`, each given with its limit, reach 0.88 of the limit within a
/// second and a half, and never exceed it from `start` on, when nothing had arrived.
///
/// A limit includes headers and records; the sender and the gateway may each have a burst of 50 ms.
/// Other load on the machine can only reduce a rate, so the best of several attempts counts, unless
/// no attempt had enough processor time. Bytes delayed by other load arrive all at once afterwards,
/// so the limits apply to the whole time.
async fn expect_caps(nodes: &[&Receiving], start: Instant, parts: impl Fn(&[f64]) -> Vec<(f64, u64)>) {
    let shares =
        |rates: &[f64]| -> Vec<f64> { parts(rates).iter().map(|(rate, cap)| rate / *cap as f64).collect() };
    let (mut attempts, mut busy) = (Vec::new(), Busy::default());
    while attempts.len() < 5 {
        let since = Processors::since_now();
        let (now, before) = (Instant::now(), nodes.iter().map(|node| octets_at(node)).collect::<Vec<_>>());
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let rates = self::rates(nodes, now, &before);
        println!("{rates:.0?}");
        let whole = self::rates(nodes, start, &vec![0; nodes.len()]);
        let most = 1.02 + 0.1 / start.elapsed().as_secs_f64();
        assert!(
            shares(&whole).iter().all(|share| *share <= most),
            "above its cap: {whole:?} since the start"
        );
        let shares = shares(&rates);
        if shares.iter().all(|share| *share >= 0.88) {
            return;
        }
        attempts.push(rates);
        busy.note(&since);
    }
    assert!(busy.says_nothing_of("what comes within caps"), "below their caps: {attempts:?}");
}

#[test]
fn a_mesh_has_its_cap_whoever_pushes() {
    on_one_thread(async {
        let gateway = paced(|config| config.rate_mesh = Some(8 * MEGABIT));
        let nodes = [node(host(1), &[&gateway]), node(host(2), &[&gateway])];
        let start = Instant::now();
        for node in &nodes {
            begin(node, |_| {}).await;
        }
        // Neither starves.
        let parts = |rates: &[f64]| {
            let each = rates.iter().map(|rate| (*rate, 4 * MEGABIT));
            each.chain([(rates[0] + rates[1], 8 * MEGABIT)]).collect()
        };
        expect_caps(&nodes.each_ref(), start, parts).await;
    });
}

#[test]
fn each_node_has_its_own_cap() {
    on_one_thread(async {
        let gateway = paced(|config| {
            config.rate_node = Some(3 * MEGABIT);
            config.rate_mesh = Some(100 * MEGABIT);
        });
        let nodes = [node(host(1), &[&gateway]), node(host(2), &[&gateway])];
        let start = Instant::now();
        for node in &nodes {
            begin(node, |_| {}).await;
        }
        let parts = |rates: &[f64]| rates.iter().map(|rate| (*rate, 3 * MEGABIT)).collect();
        expect_caps(&nodes.each_ref(), start, parts).await;
    });
}

#[test]
fn a_sender_keeps_to_its_rate_and_to_that_of_each_gateway() {
    on_one_thread(async {
        let gateways = [paced(|_| {}), paced(|_| {})];
        let nodes = [node(host(1), &gateways.each_ref()), node(host(2), &gateways.each_ref())];
        let start = Instant::now();
        begin(&nodes[0], |config| config.rate = Some(4 * MEGABIT)).await;
        begin(&nodes[1], |config| config.rate_gateway = Some(3 * MEGABIT)).await;
        let parts = |rates: &[f64]| vec![(rates[0], 4 * MEGABIT), (rates[1], 6 * MEGABIT)];
        expect_caps(&nodes.each_ref(), start, parts).await;
    });
}

#[test]
fn gateways_with_different_caps_are_both_used() {
    on_one_thread(async {
        let gateways = [6, 2].map(|rate| paced(|config| config.rate_mesh = Some(rate * MEGABIT)));
        let node = node(V4, &gateways.each_ref());
        let file = contents(1_500_000);
        // Other load on the machine can only reduce the rate, so the best of several attempts
        // counts.
        let (mut attempts, mut busy) = (Vec::new(), Busy::default());
        while attempts.len() < 5 {
            let since = Processors::since_now();
            let (outcome, push) = run(Push::new(config(node.address), file.clone()), |_| {}).await;
            assert_eq!(outcome, Outcome::Delivered);
            assert!(node.sink.look().octets == file);
            let shares: Vec<_> = push.sessions().map(|session| session.delivered).collect();
            let seconds = push.latency().expect("it was delivered").as_secs_f64();
            println!("{shares:?} in {seconds:.3} s");
            assert!(shares[0] > 750_000 && shares[1] > 200_000, "{shares:?}");
            assert!(seconds >= 1.4, "12 Mbit at 8 Mbit/s: {seconds} s");
            if seconds < 2.1 {
                return;
            }
            attempts.push(seconds);
            busy.note(&since);
        }
        assert!(busy.says_nothing_of("two caps"), "12 Mbit at 8 Mbit/s: {attempts:?} s");
    });
}

/// One session per node: the second push waits for a free place.
#[test]
fn a_congested_gateway_is_called_again_and_carries_then() {
    on_one_thread(async {
        let gateway = paced(|config| {
            config.per_node = 1;
            config.rate_node = Some(8 * MEGABIT);
        });
        let nodes = [node(V4, &[&gateway]), node(V4, &[&gateway])];
        let mut first = Push::new(config(nodes[0].address), contents(600_000));
        while first.delivered() == 0 {
            assert_eq!(first.step().await, None);
        }
        let first = tokio::spawn(run(first, |_| {}));
        let mut config = config(nodes[1].address);
        config.set.congestion_backoff = time::Duration::from_millis(200);
        config.set.congestion_patience = time::Duration::from_secs(20);
        let (outcome, second) = run(Push::new(config, contents(50_000)), |_| {}).await;
        assert_eq!(outcome, Outcome::Delivered);
        // Stream 0 is the control stream, and stream 1 the refused session.
        let streams: Vec<_> = second.sessions().map(|session| session.stream.0).collect();
        assert!(streams.len() == 1 && streams[0] > 1, "it was called again: {streams:?}");
        assert_eq!(first.await.expect("no panic").0, Outcome::Delivered);
    });
}

#[test]
fn when_every_gateway_is_congested_the_push_says_so() {
    on_one_thread(async {
        let gateways = [paced(|config| config.per_node = 0), paced(|config| config.per_node = 0)];
        let node = node(V4, &gateways.each_ref());
        // A file that follows its request needs no gateway.
        let (outcome, _) = run(Push::new(config(node.address), contents(2_000)), |_| {}).await;
        assert_eq!(outcome, Outcome::Failed(Failure::Congested));
        let mut config = config(node.address);
        config.set.congestion_backoff = time::Duration::from_millis(100);
        config.set.congestion_patience = time::Duration::from_millis(400);
        let start = Instant::now();
        let again = super::world::node(V4, &gateways.each_ref());
        config.node = again.address;
        let (outcome, push) = run(Push::new(config, contents(2_000)), |_| {}).await;
        assert_eq!(outcome, Outcome::Failed(Failure::Congested));
        assert!(start.elapsed() >= Duration::from_millis(400));
        assert!(push.sessions().any(|session| session.stream.0 > 2), "they were called again");
    });
}
