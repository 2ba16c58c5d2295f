//! Tests of the experiment's results. One seed for all, so that a failure can be repeated.

use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::{Outcome as Transfer, Sink};

use super::claims::verdicts;
use super::response::Response;
use super::settings::{Contender, Grid, Measured, RECEIVED, SENT, SETTINGS, SINGLE};
use super::*;
use crate::completeness::Once;
use crate::experiment::{RunError, grid, outcomes};
use crate::sockbuf::TARGETS;
use crate::targets::{self, Kind};

const SEED: u64 = 1;

fn point(given: &[&str]) -> SockbufPoint {
    let mut settings = Settings::defaults(&Sockbuf);
    for assignment in given {
        let (key, value) = assignment.split_once('=').expect("an assignment");
        settings.set(key, value).expect("a parameter");
    }
    SockbufPoint::new(&settings).expect("good settings")
}

fn seconds(n: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(n)
}

#[test]
fn a_run_measures_everything_and_keeps_within_the_memory() {
    for tuner in ["pid", "atbt", "atbt-original", "drs", "fixed"] {
        for (text, memory) in [("200kB", 200_000), ("2MB", 2_000_000)] {
            let given = [format!("tuner={tuner}"), format!("memory={text}")];
            let given: Vec<&str> = given.iter().map(String::as_str).collect();
            let point =
                point(&[&given[..], &["connections=8", "duration=60s", "bandwidth_step=15s"]].concat());
            let found = point.outcome(SEED, 0).expect("it runs");
            let case = format!("{tuner} with {memory}: {:?}", found.buffers);
            assert!(found.buffers.peak_limits <= memory, "{case}");
            assert!(found.buffers.peak_held <= found.buffers.peak_limits, "{case}");
            assert_eq!((found.buffers.overfull, found.buffers.refused), (0, 0), "{case}");
            assert_eq!((found.sent.len(), found.singles.len(), found.steps.len()), (6, 5, 3), "{case}");
            let all = |octets: &[u64]| octets.iter().sum::<u64>();
            assert!(all(&found.sent) >= all(&found.received), "{case}");
            assert!(found.striped_received() > 500_000.0, "{case}");
            assert!(found.single().expect("there are some") > 500_000.0, "{case}");
            assert!((0.2..=1.0).contains(&found.fairness()), "{case}");
            assert!(found.values().iter().all(Option::is_some), "{case}");
            assert_eq!(found.settling().len(), 3, "{case}");
            let lengths: Vec<usize> =
                found.arrays().into_iter().map(|array| array.expect("a series").len()).collect();
            assert_eq!(lengths, [6, 6, 6, 3], "{case}");
        }
    }
}

#[test]
fn without_single_connections_there_is_nothing_of_them() {
    let alone = ["connections=3", "duration=100s", "bandwidth_step=0s", "background=0bit/s", "loss=0"];
    let found = point(&alone).outcome(SEED, 0).expect("it runs");
    assert_eq!(found.single(), None);
    // The links' whole rate is available, except for headers and the sawteeth of the windows. In
    // the first 20 s the slow starts of the three flows dominate, each of which overshoots.
    assert!(found.striped_received() > 14e6, "{}", found.striped_received());
    assert!(found.striped_received() < 20e6, "{}", found.striped_received());
}

/// Paired runs with little and much memory, few and many connections.
#[test]
fn the_controller_brings_more_than_atbt_and_takes_less_from_others() {
    let ((measured, _), _) = measured();
    for setting in SETTINGS {
        let mean = |contender, name| measured.summary(setting, contender, name).expect("numbers").mean;
        let of = |contender| [SENT, RECEIVED, SINGLE].map(|name| mean(contender, name));
        let (ours, theirs) = (of(Contender::Ours), of(Contender::Atbt));
        let case = format!("{}: {ours:?} against {theirs:?}", setting.title());
        assert!(ours[0] > 1.1 * theirs[0] && ours[1] > 1.1 * theirs[1], "{case}");
        assert!(theirs[2] - ours[2] < ours[1] - theirs[1], "{case}");
    }
}

/// An interface fails for 10 s; no byte and no memory is lost.
#[test]
fn a_handoff_loses_nothing() {
    for interface in ["wlan", "geo", "hsupa"] {
        for tuner in ["pid", "atbt"] {
            let given = [format!("tuner={tuner}"), format!("handoff={interface}")];
            let given: Vec<&str> = given.iter().map(String::as_str).collect();
            let point =
                point(&[&given[..], &["connections=3", "handoff_at=5s", "bandwidth_step=0s"]].concat());
            let octets = 20_000_000;
            let source = TEMPLATE.source(&point.0.settings).expect("good settings");
            let scenario =
                source.set(format!("transfer.striped.bytes={octets} B")).scenario().expect("a scenario");
            let mut network = Network::new(&Templated { scenario, ..point.0 }, SEED, 0).expect("a network");
            network.sim.run_until(seconds(14));
            let case = format!("{interface}, {tuner}");
            let early = network.sim.app::<Sink>(network.striped.sink).bytes();
            assert!(early < octets, "{case}: it was over before the interface returned");
            let end = (15..=320).find(|second| {
                network.sim.run_until(seconds(*second));
                network.striped.latest(&network.sim).outcome == Transfer::Done
            });
            // TIME-WAIT holds memory for a minute; it has ended, too.
            network.sim.run_until(seconds(end.unwrap_or(320) + 70));
            assert_eq!(network.sim.app::<Sink>(network.striped.sink).bytes(), octets, "{case}");
            let sender = network.striped.latest(&network.sim);
            assert_eq!(sender.outcome, Transfer::Done, "{case}");
            let pool = network.sim.world().buffers(network.host).expect("a pool");
            assert_eq!(pool.now(), (0, 0), "{case}: memory is still held");
            assert!(pool.metrics().peak_limits <= pool.threshold(), "{case}");
        }
    }
}

#[test]
fn at_no_event_is_more_held_than_the_memory() {
    for tuner in ["pid", "atbt", "atbt-original"] {
        let tuner = format!("tuner={tuner}");
        let point = point(&[
            &tuner,
            "memory=150kB",
            "connections=8",
            "single_at=2s",
            "bandwidth_step=3s",
            "handoff=wlan",
            "handoff_at=6s",
            "handoff_for=4s",
        ]);
        let mut network = Network::new(&point.0, SEED, 3).expect("a network");
        while network.sim.now() < seconds(15) && network.sim.step() {
            let pool = network.sim.world().buffers(network.host).expect("a pool");
            let (limits, held) = pool.now();
            assert!(held <= limits && limits <= pool.threshold(), "{tuner}: {held} of {limits}");
        }
    }
}

/// Measurements of two runs of 60 s: both sets of constants, a quarter to four times, one change of
/// all rates; with the number of runs that were reported.
pub(crate) fn measured() -> &'static ((Measured, Vec<Response>), usize) {
    static MEASURED: Once<(Measured, Vec<Response>)> = Once::new();
    MEASURED.get(|work| {
        let measured = Measured::run(Grid::Quick, work)?;
        Ok::<_, RunError>((measured, Response::run_all(Grid::Quick, work)?))
    })
}

/// The claim `asked.stable`, in short.
#[test]
fn the_loop_settles_with_a_quarter_to_four_times_the_gains() {
    let ((_, responses), _) = measured();
    assert_eq!(responses.len(), 10);
    for response in responses {
        assert!(response.is_stable(), "{}", response.name());
        assert!(!response.steps.is_empty());
        for step in &response.steps {
            assert!(step.settling().is_some(), "{}", response.name());
        }
    }
    let overshoot =
        |response: &Response| response.steps.iter().filter_map(|s| s.overshoot()).fold(0.0, f64::max);
    let of = |gains| responses.iter().find(|r| r.gains == gains && r.factor == 1.0).expect("it was run");
    let (paper, ours) = (overshoot(of(Constants::Paper)), overshoot(of(Constants::Damped)));
    assert!((0.4..0.6).contains(&paper) && ours < 0.05, "{paper} and {ours}");
}

#[test]
fn every_claim_has_a_verdict_and_every_figure_is_drawn() {
    let ((measured, responses), _) = measured();
    let verdicts = verdicts(measured, responses);
    let printed = targets::read(TARGETS).into_iter().filter(|t| t.kind != Kind::Param).map(|t| t.id);
    let ids: Vec<String> = verdicts.iter().map(|v| v.id.clone()).collect();
    assert_eq!(ids[..8], printed.collect::<Vec<_>>());
    assert_eq!(ids.len(), 12);
    for v in &verdicts {
        let text = &v.judged.measured;
        assert!(!text.contains("nothing measures") && !text.contains("NaN"), "{}: {text}", v.id);
    }
    let drawn = figures::draw(measured, responses);
    let ids: Vec<&str> = drawn.iter().map(|d| d.id).collect();
    assert_eq!(ids, ["8", "9", "10", "11", "12", "13", "14", "15", "15-buffer", "16", "loss", "step"]);
    for figure in drawn {
        figure.chart.svg().expect(figure.id);
    }
    let mut pages = tables::pages(measured, |assignments| assignments.join(" "));
    assert_eq!(pages.len(), 6);
    pages.push(response::page(responses, String::new()));
    for page in pages {
        assert!(page.rows.iter().all(|row| row.len() == page.head.len()), "{}", page.title);
        let text = page.rows.concat().join(" ");
        assert!(!text.contains("NaN") && !text.contains('{'), "{text}");
    }
    for setting in SETTINGS {
        for name in [SENT, RECEIVED, SINGLE] {
            assert!(measured.gain(setting, (Contender::Ours, Contender::Atbt), name).is_some());
        }
    }
}

#[test]
fn every_parameter_changes_something_or_is_refused() {
    let given = [
        "tuner=atbt",
        "connections=5",
        "memory=1MB",
        "duration=40s",
        "loss=0.002",
        "burst=1.5",
        "bandwidth_step=15s",
        "depth=0.25",
        "single_at=5s",
        "gains=paper",
        "gain_factor=0.5",
        "set_point=slowest",
        "products=3",
        "excess=bandwidth",
        "guarantee=0.5",
        "period=200ms",
        "reports=sampled",
        "report_period=50ms",
        "report_delay=200ms",
        "report_noise=0.2",
        "report_loss=0.1",
        "fixed=64kB",
        "scheduler=blest",
        "queue=40",
        "background=1Mbit/s",
        "churn=3s",
        "stalled=1",
        "handoff=geo",
        "handoff_at=20s",
        "handoff_for=5s",
    ];
    let points = grid(&Sockbuf, &given).expect("good settings");
    let texts: Vec<String> = points[0].parameters().iter().map(|(n, t)| format!("{n}={t}")).collect();
    assert_eq!(grid(&Sockbuf, &texts).expect("the same settings")[0].parameters(), points[0].parameters());
    assert_eq!(given.len(), points[0].parameters().len());
    let found = &outcomes(&Sockbuf, &given, 2, SEED)[0];
    assert!(found.mean(RECEIVED).expect("a number") > 1e6);
    for bad in [
        "tuner=tcp",
        "connections=2",
        "connections=65",
        "memory=2900B",
        "memory=-1MB",
        "memory=NaN",
        "duration=0s",
        "duration=10s",
        "loss=1",
        "loss=NaN",
        "burst=0.5",
        "burst=NaN",
        "bandwidth_step=10ms",
        "depth=0",
        "depth=2",
        "single_at=400s",
        "gains=best",
        "gain_factor=0",
        "gain_factor=-1",
        "gain_factor=NaN",
        "products=inf",
        "guarantee=2",
        "period=0s",
        "fixed=many",
        "queue=0",
        "background=-1Mbit/s",
        "reports=maybe",
        "report_period=0s",
        "report_noise=2",
        "report_loss=-1",
        "churn=10ms",
        "stalled=2",
        "handoff=bluetooth",
    ] {
        assert!(grid(&Sockbuf, &[bad]).is_err(), "{bad}");
    }
    let refused = grid(&Sockbuf, &["memory=2900B"]).expect_err("too little").to_string();
    let expected =
        "--set memory=2900B: expected at least one segment for each connection, 2920 B for 2 of them";
    assert!(refused.contains(expected), "{refused}");
    assert!(grid(&Sockbuf, &["handoff=wlan", "handoff_at=395s"]).is_err());
}
