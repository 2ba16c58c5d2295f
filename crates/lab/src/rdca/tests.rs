//! What the experiment must come to. One seed for all, so that a failure can be had again.

use anabranch_sim::random::Stream;

use super::deployment::{Topology, Wanted, draw};
use super::*;
use crate::experiment::{grid, run_all};

const SEED: u64 = 1;

fn outcome(protocol: Protocol, senders: usize, rate: u64, run: u64) -> Outcome {
    let config = Config { protocol, senders, rate, ..Config::default() };
    RdcaPoint::new(config).outcome(SEED, run).expect("it runs")
}

const ALL: [Protocol; 6] = [
    Protocol::Rdca,
    Protocol::RdcaPaper,
    Protocol::NewReno,
    Protocol::Westwood,
    Protocol::Elfn,
    Protocol::Cubic,
];

#[test]
fn deployments_have_what_is_asked_for() {
    let wanted = Wanted {
        nodes: 100,
        area: (450.0, 200.0),
        range: 100.0,
        topology: Topology::Random,
        senders: 7,
        event_hops: 2,
    };
    for i in 0..5 {
        let found = draw(&wanted, &mut Stream::new(1, i, "deployment", "places")).expect("dense enough");
        assert_eq!((found.places.len(), found.senders.len()), (100, 7));
        assert_eq!(found.hops[found.senders[0]], Some(2));
        assert!(found.senders.iter().all(|&s| (1..=3).contains(&found.hops[s].unwrap())));
        assert!(found.places.iter().all(|p| p.x <= 450.0 && p.y <= 200.0));
    }
    let row = Wanted { nodes: 4, topology: Topology::Row, senders: 1, event_hops: 3, ..wanted };
    let found = draw(&row, &mut Stream::new(1, 0, "deployment", "places")).expect("a row is connected");
    assert_eq!((found.senders, found.hops[3]), (vec![3], Some(3)));
    let far = Wanted { event_hops: 20, ..wanted };
    assert!(draw(&far, &mut Stream::new(1, 0, "deployment", "places")).is_none());
}

/// Point 2 of the issue, in short: what is offered arrives, soon, and with hardly a word back.
#[test]
fn modest_senders_are_served_at_once() {
    for senders in [1, 4, 7] {
        for run in 0..2 {
            let found = outcome(Protocol::Rdca, senders, 4000, run);
            let case = format!("{senders} senders, run {run}");
            let share = found.packets() as f64 / found.made as f64;
            assert!(share >= 0.97, "{case}: {share} of what is offered");
            let received = found.data_received as f64 / found.data_sent as f64;
            assert!(received >= 0.998, "{case}: {received} of what is sent");
            let delay = mean(&found.delays).expect("some came");
            assert!(delay < 0.1, "{case}: {delay} s");
            let control = found.control as f64 / found.data_sent as f64;
            assert!(control < 0.01, "{case}: {control} control packets for each");
            assert_eq!((found.wrong, found.gone), (0, 0), "{case}");
        }
    }
}

/// The best of the TCP variants, in one run.
fn best(tcps: &[Outcome], of: impl Fn(&Outcome) -> f64, better: fn(f64, f64) -> f64) -> f64 {
    tcps.iter().map(of).reduce(better).expect("there are three")
}

fn tcps(senders: usize, rate: u64, run: u64) -> Vec<Outcome> {
    sweeps::TCPS.iter().map(|tcp| outcome(*tcp, senders, rate, run)).collect()
}

fn delay(of: &Outcome) -> f64 {
    mean(&of.delays).expect("some came")
}

fn lost(of: &Outcome) -> u64 {
    of.data_sent - of.data_received
}

/// Point 3 of the issue, in short: one sender, from little to more than the path carries.
#[test]
fn a_single_sender_is_served_at_least_as_well_as_by_tcp() {
    for rate in [4000, 40_000] {
        for run in 0..2 {
            let (ours, tcps) = (outcome(Protocol::Rdca, 1, rate, run), tcps(1, rate, run));
            let case = format!("{rate} B/s, run {run}");
            // What is under way at the end is no difference.
            let packets = best(&tcps, |o| o.packets() as f64, f64::max);
            assert!(ours.packets() as f64 + 2.0 >= packets, "{case}: {} of {packets}", ours.packets());
            let theirs = best(&tcps, delay, f64::min);
            assert!(delay(&ours) <= 1.02 * theirs, "{case}: {} s against {theirs}", delay(&ours));
            let drops = best(&tcps, |o| lost(o) as f64, f64::min);
            assert!(2.0 * lost(&ours) as f64 <= drops, "{case}: {} drops against {drops}", lost(&ours));
            let joules = |o: &Outcome| o.energy / o.packets() as f64;
            assert!(joules(&ours) < best(&tcps, joules, f64::min), "{case}");
        }
    }
}

/// Point 4 of the issue, in short: seven senders load the network.
#[test]
fn a_loaded_network_is_shared_with_short_delays() {
    let runs: Vec<(Outcome, Vec<Outcome>)> =
        (0..5).map(|run| (outcome(Protocol::Rdca, 7, 4000, run), tcps(7, 4000, run))).collect();
    let ours: f64 = runs.iter().map(|(ours, _)| delay(ours)).sum();
    for (i, tcp) in sweeps::TCPS.iter().enumerate() {
        let theirs: f64 = runs.iter().map(|(_, tcps)| delay(&tcps[i])).sum();
        assert!(3.0 * ours <= theirs, "{tcp:?}: {ours} against {theirs}");
    }
    let ours = runs.iter().map(|(ours, _)| ours.fairness()).sum::<f64>() / 5.0;
    let newreno = runs.iter().map(|(_, tcps)| tcps[0].fairness()).sum::<f64>() / 5.0;
    assert!(ours >= 0.95 && ours > newreno, "{ours} against {newreno}");
}

/// Every protocol brings what it brings in order and once, with load and with losses.
#[test]
fn nothing_comes_wrong() {
    for protocol in ALL {
        for (rate, loss) in [(4000, 0.0), (20_000, 0.05)] {
            let config = Config { protocol, senders: 3, rate, loss, ..Config::default() };
            let found = RdcaPoint::new(config).outcome(SEED, 1).expect("it runs");
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
    let found = &run_all(&Rdca, &points, 2, SEED).expect("runs")[0];
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
        "loss=1",
    ] {
        assert!(grid(&Rdca, &[bad]).is_err(), "{bad}");
    }
    let points = grid(&Rdca, &["event_hops=20"]).expect("good settings");
    let refused = points[0].run(SEED, 0).expect_err("no node is so far").to_string();
    assert!(refused.contains("20 hops"), "{refused}");
}
