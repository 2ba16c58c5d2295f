//! What the experiment must come to. One seed for all, so that a failure can be had again.

use super::*;
use crate::experiment::{grid, run_all};

const SEED: u64 = 1;

fn config(scheme: Scheme, shape: deployment::Shape, nodes: usize, multi_link: usize) -> Config {
    Config { shape, nodes, multi_link, ..tables::defaults(scheme) }
}

fn outcome(config: &Config, run: u64) -> Outcome {
    MptcpPoint::new(config.clone()).outcome(SEED, run).expect("it runs")
}

/// Every packet is delivered in the end, in order, once: in each kind of deployment, by each scheme.
#[test]
fn every_packet_is_delivered_in_order_and_once() {
    use deployment::Shape;
    for scheme in [Scheme::Tcp, Scheme::Conventional, Scheme::Proposed] {
        for (shape, nodes, multi_link) in [
            (Shape::Square, 20, 0),
            (Shape::Sunflower, 50, 0),
            (Shape::Corner, 25, 0),
            (Shape::Corner, 25, 1),
        ] {
            let found = outcome(&config(scheme, shape, nodes, multi_link), 0);
            let case = format!("{scheme:?} {shape:?} {nodes} {multi_link}");
            assert_eq!((found.arrivals.len(), found.wrong), (found.expected, 0), "{case}");
            assert!(
                found.delivery_ratio() > 0.85 && found.delivery_ratio() <= 1.0,
                "{case}: {}",
                found.delivery_ratio()
            );
            assert!(
                found.latency(0.5) <= found.latency(0.9) && found.delivered(0.98) <= found.delivered(1.0)
            );
        }
    }
}

/// The proposed scheme against the conventional one, paired: transmissions, the time until 98 % are delivered, and how many
/// of the segments reached the next node. With queues that have an end, too, which is easier on the conventional scheme.
///
/// Without an end of the queues each pair of runs saves 0.44 to 0.64 (standard deviation at most 0.07) in at most 0.73 of
/// the time, so that two pairs decide. With 32 packets the savings of 0.21 to 0.51 come within 0.04 of the limits, and four
/// pairs are needed.
#[test]
fn the_proposed_scheme_sends_less_and_is_done_sooner_than_the_conventional() {
    use deployment::Shape;
    for (shape, nodes, multi_link, at_least) in [
        (Shape::Square, 30, 0, 0.20),
        (Shape::Square, 40, 0, 0.20),
        (Shape::Square, 50, 0, 0.20),
        (Shape::Corner, 25, 0, 0.25),
        (Shape::Corner, 25, 1, 0.40),
    ] {
        for (queue, pairs) in [(None, 2), (Some(32), 4)] {
            let [(sent, time), (sent_before, time_before)] =
                [Scheme::Proposed, Scheme::Conventional].map(|scheme| {
                    let config = Config { queue, ..config(scheme, shape, nodes, multi_link) };
                    let runs: Vec<Outcome> = (0..pairs).map(|run| outcome(&config, run)).collect();
                    assert!(runs.iter().all(|found| found.delivery_ratio() > 0.99));
                    let time = runs.iter().map(|found| found.delivered(0.98).expect("all are"));
                    (runs.iter().map(Outcome::transmissions).sum::<u64>(), time.sum::<f64>())
                });
            let case = format!("{shape:?} {nodes} {multi_link} {queue:?}");
            let saved = 1.0 - sent as f64 / sent_before as f64;
            assert!(saved >= at_least, "{case}: {sent} against {sent_before} transmissions");
            assert!(time <= 0.92 * time_before, "{case}: {time} against {time_before} s");
        }
    }
}

/// A node with a second interface takes load off the radio.
#[test]
fn a_multi_link_node_shortens_paths() {
    let sent = |multi_link| -> u64 {
        let config = config(Scheme::Proposed, deployment::Shape::Corner, 25, multi_link);
        (0..4).map(|run| outcome(&config, run).transmissions()).sum()
    };
    let (without, with) = (sent(0), sent(1));
    assert!(with * 10 <= without * 6, "{with} against {without}");
    let found = outcome(&config(Scheme::Proposed, deployment::Shape::Corner, 25, 1), 0);
    let [ml] = found.map.multi_link[..] else { panic!("one") };
    assert!(found.map.paths.iter().any(|p| p.len() > 3 && p.contains(&ml)), "nobody goes by {ml}");
}

#[test]
fn every_parameter_changes_something_or_is_refused() {
    let given = [
        "scheme=conventional",
        "deployment=corner",
        "nodes=6",
        "multi_link=1",
        "multi_link_at=random",
        "packets=5",
        "payload=50B",
        "rate=2",
        "paths=2",
        "subflows=2",
        "scheduler=blest",
        "congestion=coupled",
        "reinjection=opportunistic",
        "ack_every=4",
        "ack_window=on",
        "ack_delay=300ms",
        "range=150m",
        "interference=2",
        "capture=off",
        "carrier_sense=2",
        "queue=10",
        "retries=4",
        "retry_delay=20ms",
        "access_retries=2",
        "phy=oqpsk250",
        "limit=500s",
    ];
    let points = grid(&Mptcp, &given).expect("good settings");
    let texts: Vec<String> = points[0].parameters().iter().map(|(n, t)| format!("{n}={t}")).collect();
    assert_eq!(grid(&Mptcp, &texts).expect("the same settings")[0].parameters(), points[0].parameters());
    let found = &run_all(&Mptcp, &points, 2, SEED).expect("runs")[0];
    assert_eq!(found.mean("complete"), Some(1.0));
    for bad in [
        "scheme=sctp",
        "nodes=1",
        "multi_link=50",
        "payload=11B",
        "rate=0",
        "paths=0",
        "scheduler=lifo",
        "ack_every=0",
        "ack_delay=11s",
        "range=0m",
        "capture=0.5",
        "phy=lora",
        "retries=16",
    ] {
        assert!(grid(&Mptcp, &[bad]).is_err(), "{bad}");
    }
    // Nobody hears anybody.
    let points = grid(&Mptcp, &["range=1m"]).expect("good settings");
    let refused = points[0].run(SEED, 0).expect_err("not connected").to_string();
    assert!(refused.contains("connected"), "{refused}");
}

/// The only point of these settings, and the mean of its `rtt_model_error`.
fn model_error(assignments: &[&str], runs: usize) -> f64 {
    let points = grid(&Mptcp, assignments).expect("good settings");
    let found = &run_all(&Mptcp, &points, runs, SEED).expect("runs")[0];
    found.mean("rtt_model_error").expect("packets went over first paths")
}

/// Section VI without load: the model has an assessment cost a whole period and a packet wait for its MAC
/// acknowledgement, which makes it up to a seventh too long over one hop. With load it knows nothing of repetitions.
#[test]
fn the_models_round_trip_is_near_the_measured_one_without_load() {
    let calm = ["rate=0.05", "packets=300", "limit=10000s", "retry_delay=0s"];
    for nodes in ["nodes=2", "nodes=5", "nodes=10"] {
        let ratio = model_error(&[&calm[..], &[nodes]].concat(), 4);
        assert!((0.95..1.17).contains(&ratio), "{nodes}: {ratio:.3}");
    }
    let several_hops = ["deployment=corner", "nodes=25", "rate=0.003", "packets=300", "limit=200000s"];
    // 0.87 over 20 runs; two of them differ by more than a twentieth.
    let ratio = model_error(&[&several_hops[..], &["retry_delay=0s"]].concat(), 8);
    assert!((0.82..1.15).contains(&ratio), "several hops: {ratio:.3}");
    let loaded = model_error(&["nodes=30"], 2);
    assert!(loaded < 0.3, "with load the model is far too short: {loaded:.3}");
}

/// What is noted fits together, and with a multi-link node paths over the base station are compared too.
#[test]
fn activity_is_in_order_and_round_trips_are_there() {
    for (scheme, multi_link) in [(Scheme::Proposed, 1), (Scheme::Conventional, 0)] {
        let found = outcome(&config(scheme, deployment::Shape::Corner, 25, multi_link), 0);
        for times in [&found.activity.data, &found.activity.acks] {
            assert!(times.windows(2).all(|w| w[0] <= w[1]) && times[0] >= 0.0);
        }
        assert_eq!(found.activity.data.len(), found.activity.arrived.len());
        assert_eq!(found.activity.transmissions(-1.0), 0);
        let half = found.delivered(0.5).expect("all is delivered");
        assert!((1..found.transmissions() as usize).contains(&found.activity.transmissions(half)));
        let round_trip = found.round_trip.expect("every node has a path");
        assert!(round_trip.measured > 0.02 && round_trip.ratio > 0.0, "{round_trip:?}");
    }
}
