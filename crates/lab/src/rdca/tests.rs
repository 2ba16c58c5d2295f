//! Tests of the experiment's results. One seed for all, so that a failure can be repeated.

use std::sync::atomic::{AtomicUsize, Ordering};

use anabranch_scenario::deployment::hops;

use super::claims::tests::sweeps;
use super::sweeps::{Grid, Load, SWEEP_RATE, TCPS};
use super::*;
use crate::experiment::{grid, outcomes, run};

const SEED: u64 = 1;

const ALL: [Protocol; 6] = [
    Protocol::Rdca,
    Protocol::RdcaPaper,
    Protocol::NewReno,
    Protocol::Westwood,
    Protocol::Elfn,
    Protocol::Cubic,
];

/// Settings with these parameters and defaults for the others.
fn settings(quick: bool, parameters: &[(&str, &str)]) -> Settings {
    let grid = if quick { Grid::Quick } else { Grid::Full };
    parameters.iter().fold(grid.network(), |settings, (key, value)| settings.with(key, value))
}

#[test]
fn deployments_have_what_is_asked_for() {
    let point = RdcaPoint::new(&settings(false, &[("senders", "7")])).expect("it can be");
    for run in 0..5 {
        let drawn = point.0.scenario.draw(1, run).expect("dense enough");
        let places: Vec<_> = drawn.places.iter().map(|(_, place)| *place).collect();
        let (hops, senders) = (hops(&places, 100.0, &[0]), &drawn.groups[0]);
        assert_eq!((places.len(), senders.len()), (100, 7));
        assert_eq!(hops[senders[0].index()], Some(2));
        assert!(senders.iter().all(|s| (1..=3).contains(&hops[s.index()].expect("connected"))));
        assert!(places.iter().all(|p| p.x <= 450.0 && p.y <= 200.0));
    }
    let row = [("nodes", "4"), ("topology", "row"), ("event_hops", "3")];
    let drawn =
        RdcaPoint::new(&settings(false, &row)).expect("a row").0.scenario.draw(1, 0).expect("connected");
    assert_eq!(drawn.groups[0], [NodeId(3)]);
    assert_eq!(drawn.places[3].1.distance(drawn.places[0].1), 240.0);
    assert!(RdcaPoint::new(&settings(false, &[("event_hops", "20")])).is_err());
}

/// Protocols differ only in the transport of the packets.
#[test]
fn protocols_differ_in_what_carries_the_packets() {
    let point = |protocol: Protocol| {
        RdcaPoint::new(&settings(false, &[("protocol", protocol.word())])).expect("it can be").0.scenario
    };
    let ours = point(Protocol::Rdca);
    for protocol in ALL.into_iter().skip(1).chain([Protocol::Datagrams]) {
        let other = point(protocol);
        assert_ne!(other.traffic[0].carrier, ours.traffic[0].carrier, "{protocol:?}");
        let same = TrafficSpec { carrier: ours.traffic[0].carrier.clone(), ..other.traffic[0].clone() };
        assert_eq!(same, ours.traffic[0], "{protocol:?}");
        assert_eq!(
            (other.radio, other.aodv, other.deployment),
            (ours.radio.clone(), ours.aodv, ours.deployment.clone())
        );
    }
}

/// Values of a metric in the two short runs.
fn of(protocol: Protocol, (senders, rate): (usize, u64), metric: &str) -> Vec<f64> {
    let outcome = sweeps().outcome(Load { senders, rate }, protocol);
    outcome.metric(metric).values.iter().map(|value| value.expect("a number")).collect()
}

/// Best value of the three TCPs, run by run.
fn best(load: (usize, u64), metric: &str, better: fn(f64, f64) -> f64) -> Vec<f64> {
    let all = TCPS.map(|tcp| of(tcp, load, metric));
    let runs = 0..all[0].len();
    runs.map(|run| all.iter().map(|of| of[run]).reduce(better).expect("there are three")).collect()
}

/// Offered packets arrive, with a short delay and hardly any control packets.
#[test]
fn modest_senders_are_served_at_once() {
    for senders in [1, 3, 5, 7] {
        let all = |metric| of(Protocol::Rdca, (senders, SWEEP_RATE), metric);
        let (throughput, offered) = (all("throughput_byte_per_s"), all("offered_byte_per_s"));
        for run in 0..throughput.len() {
            let case = format!("{senders} senders, run {run}");
            let share = throughput[run] / offered[run];
            assert!(share >= 0.97, "{case}: {share} of what is offered");
            let received = all("delivery_ratio")[run];
            assert!(received >= 0.998, "{case}: {received} of what is sent");
            let delay = all("delay_mean_s")[run];
            assert!(delay < 0.1, "{case}: {delay} s");
            let control = all("control_load")[run];
            assert!(control < 0.01, "{case}: {control} control packets for each");
            assert_eq!((all("packets_wrong")[run], all("packets_gone")[run]), (0.0, 0.0), "{case}");
        }
    }
}

/// One sender, with loads from low to more than the path carries.
#[test]
fn a_single_sender_is_served_at_least_as_well_as_by_tcp() {
    let point = RdcaPoint::new(&settings(true, &[])).expect("it can be");
    let event = point.traffic().stop.saturating_since(point.traffic().start);
    // Packets in flight at the end do not count as a difference.
    let two_packets = 2.0 * point.packet() / event.as_secs_f64();
    for load in sweeps().by_rate().into_iter().map(|load| (load.senders, load.rate)) {
        let ours = |metric| of(Protocol::Rdca, load, metric);
        let (throughput, delay) = (ours("throughput_byte_per_s"), ours("delay_mean_s"));
        let (lost, energy) = (ours("packets_lost"), ours("energy_j_per_1000_packets"));
        for run in 0..throughput.len() {
            let case = format!("{} B/s, run {run}", load.1);
            let theirs = best(load, "throughput_byte_per_s", f64::max)[run];
            // Loads within the capacity arrive in every run; for higher loads see the next test.
            let is_fair = throughput[run] + two_packets >= theirs || load.1 >= OVERLOAD;
            assert!(is_fair, "{case}: {} of {theirs} B/s", throughput[run]);
            let theirs = best(load, "delay_mean_s", f64::min)[run];
            assert!(delay[run] <= 1.02 * theirs, "{case}: {} s against {theirs}", delay[run]);
            let theirs = best(load, "packets_lost", f64::min)[run];
            assert!(2.0 * lost[run] <= theirs, "{case}: {} lost against {theirs}", lost[run]);
            let theirs = best(load, "energy_j_per_1000_packets", f64::min)[run];
            assert!(energy[run] < theirs, "{case}: {} J against {theirs}", energy[run]);
        }
    }
}

/// Rate of one sender in bytes per second that no path of these deployments carries: TCP reaches 21
/// to 33 thousand.
const OVERLOAD: u64 = 40_000;

/// One sender that offers more than the path carries. The best TCP fills the path at the price of a
/// queue. RDCA keeps the queue empty, so after a notification lowers its rate it needs seconds to
/// regain it: run by run it delivers 0.89 to 1.23 of the best TCP's throughput. A requirement on
/// every run would only reflect the chosen runs; on average RDCA is not slower, and its delay is a
/// tenth.
#[test]
fn a_sender_with_too_much_is_served_as_well_as_by_tcp_in_the_mean() {
    let runs = 20;
    let measured = |protocol: Protocol| {
        let settings = settings(true, &[("protocol", protocol.word()), ("rate", &rate_text(OVERLOAD))]);
        let outcome = run(&Rdca, &settings, &Work::new(runs, SEED)).expect("runs");
        ["throughput_byte_per_s", "delay_mean_s"].map(|metric| {
            let values = &outcome.metric(metric).values;
            values.iter().map(|value| value.expect("a number")).collect::<Vec<f64>>()
        })
    };
    let [ours, delay] = measured(Protocol::Rdca);
    let theirs = TCPS.map(measured);
    let best: Vec<f64> =
        (0..runs).map(|run| theirs.iter().map(|[brought, _]| brought[run]).fold(0.0, f64::max)).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let shares: Vec<f64> = ours.iter().zip(&best).map(|(ours, best)| ours / best).collect();
    println!("{:.0} of {:.0} B/s; run by run {shares:.2?}", mean(&ours), mean(&best));
    assert!(mean(&ours) >= mean(&best), "{} of {} B/s", mean(&ours), mean(&best));
    for [_, waits] in &theirs {
        assert!(5.0 * mean(&delay) <= mean(waits), "{} s against {}", mean(&delay), mean(waits));
    }
}

/// Seven senders load the network.
#[test]
fn a_loaded_network_is_shared_with_short_delays() {
    let sum = |protocol, metric| of(protocol, (7, SWEEP_RATE), metric).iter().sum::<f64>();
    let ours = sum(Protocol::Rdca, "delay_mean_s");
    for tcp in TCPS {
        let theirs = sum(tcp, "delay_mean_s");
        assert!(3.0 * ours <= theirs, "{tcp:?}: {ours} against {theirs}");
    }
    // One run of each placement: in some placements NewReno is as fair.
    let fairness = |protocol: Protocol| {
        let runs = 0..5;
        let settings = settings(true, &[("protocol", protocol.word()), ("senders", "7")]);
        let point = RdcaPoint::new(&settings).expect("it can be");
        let all: f64 = runs.clone().map(|run| point.outcome(SEED, run).expect("it runs").fairness()).sum();
        all / f64::from(runs.end as u32)
    };
    let (ours, newreno) = (fairness(Protocol::Rdca), fairness(Protocol::NewReno));
    assert!(ours >= 0.95 && ours > newreno, "{ours} against {newreno}");
}

/// The capacity is the highest throughput of all rates although rates far above it are skipped;
/// progress counts every rate.
#[test]
fn the_capacity_is_the_most_that_any_rate_brings() {
    let quick = [("senders", "3"), ("event_hops", "4"), ("duration", "15s")];
    let point = RdcaPoint::new(&settings(true, &quick)).expect("it can be");
    let rates = [2_000, 4_000, 8_000, 12_000, 16_000, 24_000].map(|all| all / 3 * 2);
    for run in 0..2 {
        let told = AtomicUsize::new(0);
        let watch = || {
            told.fetch_add(1, Ordering::Relaxed);
        };
        let work = Work::new(1, SEED);
        let found = point.capacity(&rates, run, &work.watched(&watch)).expect("it runs");
        assert_eq!(told.into_inner(), rates.len());
        let alone = rates.map(|rate| point.capacity(&[rate], run, &work).expect("it runs"));
        let best = alone.into_iter().reduce(|a, b| if b.0 > a.0 { b } else { a });
        assert_eq!(Some(found), best, "{alone:?}");
    }
}

/// Every protocol delivers packets in order and once, with load and with losses.
#[test]
fn nothing_comes_wrong() {
    for protocol in ALL {
        for (rate, loss) in [("4kB/s", "0"), ("20kB/s", "0.05")] {
            let parameters =
                [("protocol", protocol.word()), ("senders", "3"), ("rate", rate), ("loss", loss)];
            let point = RdcaPoint::new(&settings(true, &parameters)).expect("it can be");
            let found = point.outcome(SEED, 1).expect("it runs");
            assert_eq!(found.wrong, 0, "{protocol:?} at {rate}");
            assert!(found.packets() > 0, "{protocol:?} at {rate}");
        }
    }
}

#[test]
fn every_parameter_changes_something_or_is_refused() {
    let given = [
        "protocol=westwood",
        "senders=2",
        "rate=2kB/s",
        "nodes=6",
        "area=300mx100m",
        "range=120m",
        "carrier_sense=200m",
        "topology=row",
        "topologies=0",
        "event_hops=3",
        "queue=20",
        "packet=200B",
        "duration=20s",
        "event_at=2s",
        "bit_rate=11Mbit/s",
        "rts=off",
        "loss=0.01",
        "tcp_window=8",
    ];
    let points = grid(&Rdca, &given).expect("good settings");
    let texts: Vec<String> = points[0].parameters().iter().map(|(n, t)| format!("{n}={t}")).collect();
    assert_eq!(grid(&Rdca, &texts).expect("the same settings")[0].parameters(), points[0].parameters());
    let found = &outcomes(&Rdca, &given, 2, SEED)[0];
    assert!(found.mean("throughput_byte_per_s").expect("a number") > 3_500.0);
    for bad in [
        "protocol=sctp",
        "senders=0",
        "senders=100",
        "rate=4kB",
        "rate=0B/s",
        "area=450m",
        "area=0mx10m",
        "range=nowhere",
        "carrier_sense=50m",
        "packet=39B",
        "event_at=100s",
        "bit_rate=54Mbit/s",
        "loss=1.5",
        "nodes=1",
        "tcp_window=0",
        "queue=0",
        "rts=perhaps",
        "topologies=-1",
    ] {
        let error = grid(&Rdca, &[bad]).err().unwrap_or_else(|| panic!("{bad} is accepted")).to_string();
        assert!(error.starts_with(&format!("--set {bad}: ")), "{bad}: {error}");
    }
    let refused = grid(&Rdca, &["event_hops=20"]).expect_err("no node is so far").to_string();
    assert!(refused.contains("none of 1000 deployments"), "{refused}");
}
