//! Tests of the experiment's results. One seed for all, so that a failure can be repeated.

use anabranch_scenario::Drawn;
use anabranch_scenario::deployment::hops;

use super::*;
use crate::experiment::{grid, outcomes};

const SEED: u64 = 1;

fn settings(scheme: Scheme, shape: &str, nodes: usize, multi_link: usize) -> Settings {
    Settings::defaults(&Mptcp)
        .with("scheme", scheme.word())
        .with("deployment", shape)
        .with("nodes", nodes)
        .with("multi_link", multi_link)
}

fn outcome(settings: &Settings, run: u64) -> Outcome {
    MptcpPoint::new(settings).expect("it can be").outcome(SEED, run).expect("it runs")
}

/// Every packet is delivered once and in order, in each kind of deployment, with each scheme.
#[test]
fn every_packet_is_delivered_in_order_and_once() {
    for scheme in [Scheme::Tcp, Scheme::Conventional, Scheme::Proposed, Scheme::Ours] {
        for (shape, nodes, multi_link) in
            [("square", 20, 0), ("sunflower", 50, 0), ("corner", 25, 0), ("corner", 25, 1)]
        {
            let found = outcome(&settings(scheme, shape, nodes, multi_link), 0);
            let case = format!("{scheme:?} {shape} {nodes} {multi_link}");
            assert_eq!((found.arrivals.len(), found.wrong), (found.expected, 0), "{case}");
            assert!(
                found.delivery_ratio() > 0.8 && found.delivery_ratio() <= 1.0,
                "{case}: {}",
                found.delivery_ratio()
            );
            assert!(
                found.latency(0.5) <= found.latency(0.9) && found.delivered(0.98) <= found.delivered(1.0)
            );
        }
    }
}

/// Compares ours with the conventional scheme, the printed one and a single path in paired runs:
/// transmissions, and time until 98 % are delivered, with the standard's MAC and in the reference
/// setting, with unlimited queues and queues of 32 packets. Over 30 runs ours sends 7 to 48 % less
/// and takes 5 to 60 % less time, except for 10 nodes with the standard's MAC.
#[test]
fn ours_sends_less_and_is_done_sooner_than_the_others() {
    let reference = reproduction::PAPER.reference();
    for (shape, nodes, multi_link) in
        [("square", 30, 0), ("square", 50, 0), ("corner", 25, 0), ("corner", 25, 1)]
    {
        for (network, queue) in
            [(&[][..], "unlimited"), (&reference[..], "unlimited"), (&reference[..], "32")]
        {
            let sum = |scheme, subflows: &str| {
                let settings = settings(scheme, shape, nodes, multi_link).with("queue", queue);
                let settings = settings.with("subflows", subflows);
                let settings = network.iter().fold(settings, |all, (key, value)| all.with(key, value));
                let runs: Vec<Outcome> = (0..3).map(|run| outcome(&settings, run)).collect();
                let time = runs.iter().map(|found| found.delivered(0.98).expect("all are"));
                (runs.iter().map(Outcome::transmissions).sum::<u64>(), time.sum::<f64>())
            };
            let (sent, time) = sum(Scheme::Ours, "auto");
            let others =
                [(Scheme::Conventional, "auto"), (Scheme::Proposed, "auto"), (Scheme::Proposed, "1")];
            for (scheme, subflows) in others {
                let (other_sent, other_time) = sum(scheme, subflows);
                let case = format!("{shape} {nodes} {multi_link} {network:?} {queue}: {scheme:?} {subflows}");
                assert!(sent < other_sent, "{case}: {sent} against {other_sent} transmissions");
                assert!(time < other_time, "{case}: {time} against {other_time} s");
            }
        }
    }
}

/// Parameters that choose between paths have no effect with one path.
#[test]
fn schedulers_and_phases_matter_where_there_are_several_paths() {
    let sent = |subflows: usize, congestion: &str| {
        ["predictive", "section-vii", "fastest-rtt"].map(|scheduler| {
            let settings = settings(Scheme::Proposed, "square", 20, 0)
                .with("subflows", subflows)
                .with("congestion", congestion)
                .with("scheduler", scheduler);
            let found = outcome(&settings, 0);
            assert_eq!((found.arrivals.len(), found.wrong), (found.expected, 0), "{scheduler}");
            (found.transmissions(), found.delivered(1.0))
        })
    };
    let [one, several] = [1, 3].map(|subflows| sent(subflows, "adaptive"));
    assert!(one[0] == one[1] && one[1] == one[2], "{one:?}");
    assert!(several[0] != several[1] && several[1] != several[2] && several[0] != several[2], "{several:?}");
    let held = sent(3, "adaptive-explore-hold");
    assert!(held.iter().zip(&several).all(|(held, grown)| held != grown), "{held:?}, {several:?}");
}

/// A node's second interface reduces the load of the radio.
#[test]
fn a_multi_link_node_shortens_paths() {
    let sent = |multi_link| -> u64 {
        let settings = settings(Scheme::Proposed, "corner", 25, multi_link);
        (0..4).map(|run| outcome(&settings, run).transmissions()).sum()
    };
    let (without, with) = (sent(0), sent(1));
    assert!(with * 10 <= without * 6, "{with} against {without}");
    let found = outcome(&settings(Scheme::Proposed, "corner", 25, 1), 0);
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
        "conventional_acks=window",
        "ack_every=4",
        "ack_window=on",
        "ack_delay=300ms",
        "ack_gaps=off",
        "rto_min=2s",
        "rto_max=30s",
        "window_limit=12",
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
    let found = &outcomes(&Mptcp, &given, 2, SEED)[0];
    assert_eq!(found.mean("complete"), Some(1.0));
    for bad in [
        "scheme=sctp",
        "deployment=ring",
        "nodes=1",
        "nodes=201",
        "multi_link=50",
        "multi_link_at=nowhere",
        "packets=0",
        "payload=11B",
        "payload=1001B",
        "rate=0",
        "paths=0",
        "subflows=9",
        "scheduler=lifo",
        "congestion=cubic",
        "reinjection=never",
        "conventional_acks=all",
        "ack_every=0",
        "ack_window=perhaps",
        "ack_delay=11s",
        "ack_gaps=maybe",
        "rto_min=soon",
        "rto_max=never",
        "window_limit=0",
        "range=0m",
        "interference=0.9",
        "capture=0.5",
        "carrier_sense=6",
        "queue=0",
        "retries=16",
        "retry_delay=11s",
        "access_retries=256",
        "phy=lora",
        "limit=0",
    ] {
        let error = grid(&Mptcp, &[bad]).err().unwrap_or_else(|| panic!("{bad} is accepted")).to_string();
        assert!(error.starts_with(&format!("--set {bad}: ")), "{bad}: {error}");
    }
    let refused = grid(&Mptcp, &["range=1m"]).expect_err("not connected").to_string();
    assert!(refused.contains("none of 1000 deployments of 50 nodes is connected"), "{refused}");
}

/// Records contain the values of "auto", so that a record can be repeated even if "auto" changes.
#[test]
fn auto_is_written_out_by_the_scheme() {
    let texts = |scheme: Scheme| {
        let point = MptcpPoint::new(&settings(scheme, "square", 10, 0)).expect("it can be");
        let of = |key| point.parameters().into_iter().find(|(name, _)| *name == key).expect("a parameter").1;
        let keys =
            ["subflows", "scheduler", "congestion", "reinjection", "ack_every", "ack_window", "ack_delay"];
        (keys.map(of), ["ack_gaps", "rto_min", "rto_max", "window_limit"].map(of))
    };
    let printed = ["8", "section-vii", "adaptive-explore-hold", "timeout", "20", "on", "5s"];
    assert_eq!(
        texts(Scheme::Proposed),
        (printed.map(Into::into), ["on", "1s", "60s", "none"].map(Into::into))
    );
    let ours = ["1", "predictive", "newreno", "timeout", "20", "on", "2s"];
    assert_eq!(texts(Scheme::Ours), (ours.map(Into::into), ["off", "5s", "20s", "10"].map(Into::into)));
    let others = ["8", "fastest-rtt", "newreno", "timeout", "2", "off", "200ms"];
    for scheme in [Scheme::Conventional, Scheme::Tcp] {
        assert_eq!(texts(scheme), (others.map(Into::into), ["on", "1s", "60s", "none"].map(Into::into)));
    }
}

/// Erratum M28: `conventional_acks` can give the conventional scheme the acknowledgements of the
/// proposed one, and changes no other scheme.
#[test]
fn the_conventional_scheme_can_acknowledge_windows() {
    let decided = |scheme: Scheme, acks: &str| {
        let settings = settings(scheme, "square", 10, 0).with("conventional_acks", acks);
        MptcpPoint::new(&settings).expect("it can be").parameters()
    };
    let differing = |scheme| {
        let (rfc, window) = (decided(scheme, "rfc"), decided(scheme, "window"));
        let changed =
            rfc.into_iter().zip(window).filter(|(a, b)| a != b).map(|(_, (key, value))| (key, value));
        changed.filter(|(key, _)| *key != "conventional_acks").collect::<Vec<_>>()
    };
    let acks = [("ack_every", "20"), ("ack_window", "on"), ("ack_delay", "5s")];
    assert_eq!(differing(Scheme::Conventional), acks.map(|(key, value)| (key, value.to_owned())));
    for scheme in [Scheme::Proposed, Scheme::Ours, Scheme::Tcp] {
        assert_eq!(differing(scheme), [], "{scheme:?}");
    }
}

/// Section VIII-B to D: positions of nodes, and which of them have a cellular interface.
#[test]
fn deployments_are_where_they_belong() {
    let drawn = |settings: &Settings, run| {
        MptcpPoint::new(settings).expect("it can be").0.scenario.draw(SEED, run).expect("dense enough")
    };
    let places = |drawn: &Drawn| drawn.places.iter().map(|(_, place)| *place).collect::<Vec<_>>();
    for (shape, nodes, corner) in [("square", 30, 300.0), ("corner", 25, 250.0)] {
        let places = places(&drawn(&settings(Scheme::Proposed, shape, nodes, 0), 0));
        assert_eq!(places.len(), nodes);
        assert!(places.iter().all(|p| (0.0..=250.0).contains(&p.x) && (0.0..=corner).contains(&p.y)));
        assert!(hops(&places, 120.0, &[0]).iter().all(Option::is_some));
    }
    let sunflower = places(&drawn(&settings(Scheme::Proposed, "sunflower", 50, 0), 0));
    let furthest = sunflower.iter().map(|p| p.distance(sunflower[0])).fold(0.0, f64::max);
    assert!((furthest - 250.0).abs() < 1e-9);
    // Planned, the cellular nodes minimise the sum of all path lengths; at random, each run has
    // others.
    let planned = settings(Scheme::Proposed, "corner", 25, 2);
    let random = planned.clone().with("multi_link_at", "random");
    for run in 0..5 {
        let (planned, random) = (drawn(&planned, run), drawn(&random, run));
        let sum = |chosen: &[NodeId]| {
            let ends: Vec<usize> = [0].into_iter().chain(chosen.iter().map(|node| node.index())).collect();
            hops(&places(&planned), 120.0, &ends).into_iter().flatten().sum::<u32>()
        };
        assert!(sum(&planned.groups[0]) <= sum(&random.groups[0]), "run {run}");
        assert_eq!((planned.groups[0].len(), random.groups[0].len()), (2, 2));
        assert!(!random.groups[0].contains(&NodeId(0)), "the data centre has its own link");
    }
}

/// Schemes differ only in the transport of the packets.
#[test]
fn schemes_differ_in_what_carries_the_packets() {
    let scenario =
        |scheme| MptcpPoint::new(&settings(scheme, "corner", 25, 1)).expect("it can be").0.scenario;
    let ours = scenario(Scheme::Proposed);
    for scheme in [Scheme::Ours, Scheme::Conventional, Scheme::Tcp] {
        let other = scenario(scheme);
        assert_ne!(other.traffic[0].carrier, ours.traffic[0].carrier, "{scheme:?}");
        let same = TrafficSpec { carrier: ours.traffic[0].carrier.clone(), ..other.traffic[0].clone() };
        assert_eq!(same, ours.traffic[0], "{scheme:?}");
        assert_eq!((&other.radio, &other.paths, &other.links), (&ours.radio, &ours.paths, &ours.links));
        assert_eq!((&other.deployment, &other.group_links), (&ours.deployment, &ours.group_links));
    }
}

/// Mean of `rtt_model_error` at the only point of these settings.
fn model_error(assignments: &[&str], runs: usize) -> f64 {
    let found = &outcomes(&Mptcp, assignments, runs, SEED)[0];
    found.mean("rtt_model_error").expect("packets went over first paths")
}

/// Section VI without load. In the model an assessment takes a whole period and a packet waits for
/// its MAC acknowledgement, which makes it up to a seventh too long over one hop. With load the
/// model ignores retransmissions.
#[test]
fn the_models_round_trip_is_near_the_measured_one_without_load() {
    let calm = ["rate=0.05", "packets=300", "limit=10000s", "retry_delay=0s"];
    for nodes in ["nodes=2", "nodes=5", "nodes=10"] {
        let ratio = model_error(&[&calm[..], &[nodes]].concat(), 4);
        assert!((0.95..1.17).contains(&ratio), "{nodes}: {ratio:.3}");
    }
    let several_hops = ["deployment=corner", "nodes=25", "rate=0.003", "packets=300", "limit=200000s"];
    // The ratio is 0.87 over 20 runs; two of them differ by more than a twentieth.
    let ratio = model_error(&[&several_hops[..], &["retry_delay=0s"]].concat(), 8);
    assert!((0.82..1.15).contains(&ratio), "several hops: {ratio:.3}");
    let loaded = model_error(&["nodes=30"], 2);
    assert!(loaded < 0.7, "with load the model is far too short: {loaded:.3}");
}

/// The recorded values are consistent, and with a multi-link node paths over the base station are
/// compared too.
#[test]
fn activity_is_in_order_and_round_trips_are_there() {
    for (scheme, multi_link) in [(Scheme::Proposed, 1), (Scheme::Conventional, 0)] {
        let found = outcome(&settings(scheme, "corner", 25, multi_link), 0);
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
