//! Compares our TCP with Linux's over a cellular trace: `scenarios/cellular.toml`, simulated and
//! emulated between two namespaces.
//!
//! The trace begins with the emulation, and the flow some tenths of a second later; the simulated
//! flow begins at the same point of the trace.

use std::env;
use std::fmt::Write;

use anabranch_core::time::{Duration, Instant};
use anabranch_scenario::identity::Files;
use anabranch_scenario::{Plan, Scenario, Source};
use anabranch_stats::Summary;
use anabranch_testkit::debian::{find_or_install, skipped};
use anabranch_testkit::netns;
use anabranch_testkit::processors::enough;
use serde_json::Value;

use super::kernel::{Emulated, Ends, Flows, Lag};
use super::table::{first_line, origin, value};
use super::{number, publish, side_by_side};

/// Names of congestion controls: ours, and the kernel's.
const CONTROLLERS: [[&str; 2]; 3] = [["newreno", "reno"], ["cubic", "cubic"], ["bbr", "bbr"]];
/// The emulator counts as late if more than 1 % of its batches are later than this, in seconds: a
/// tenth of the one-way delay.
const LATE: f64 = 0.0025;
/// The emulator counts as late if any batch is later than this, in seconds: the round trip.
const STALL: f64 = 0.050;
/// Maximum length of the headers of a download packet in bytes: IPv6, TCP and time stamps.
const HEADERS: f64 = 72.0;

/// A value of a run.
type Figure = fn(&Seen) -> f64;

/// A run of either TCP.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Seen {
    /// Acknowledged payload divided by the capacity of the trace in the same time.
    utilisation: f64,
    /// Smoothed round-trip time in seconds, a mean over samples 100 ms apart.
    srtt: f64,
    /// Mean wait of packets for the radio, in seconds.
    wait: f64,
    /// Number of retransmitted segments.
    again: f64,
}

/// Results of a controller: the kernel's, then ours.
struct Row {
    controller: usize,
    seen: [Vec<Seen>; 2],
    lag: Option<Lag>,
}

impl Row {
    /// Summarises the runs of a controller.
    fn of(controller: usize, runs: &[([Seen; 2], Lag)]) -> Self {
        let worst = |a: Lag, b: Lag| Lag {
            p99: a.p99.max(b.p99),
            max: a.max.max(b.max),
            processors: a.processors.min(b.processors),
        };
        Self {
            controller,
            seen: [0, 1].map(|side| runs.iter().map(|(seen, _)| seen[side]).collect()),
            lag: runs.iter().map(|(_, lag)| *lag).reduce(worst),
        }
    }

    fn is_late(&self) -> bool {
        self.lag.is_none_or(|lag| lag.p99 > LATE || lag.max > STALL || lag.processors < enough())
    }

    fn pair(&self, of: Figure) -> [Summary; 2] {
        let summary = |seen: &Vec<Seen>| Summary::of(&seen.iter().map(of).collect::<Vec<_>>());
        [0, 1].map(|side| summary(&self.seen[side]).expect("there is a run"))
    }

    /// Our value divided by the kernel's.
    fn ratio(&self, of: Figure) -> f64 {
        let [theirs, ours] = self.pair(of);
        ours.mean / theirs.mean
    }

    /// Limit on the relative difference of a short run. Linux's BBR is version 1, ours version 3.
    fn limit(&self) -> f64 {
        if CONTROLLERS[self.controller][0] == "bbr" { 0.5 } else { 0.25 }
    }

    /// Whether utilisation and round-trip time are within the limit.
    fn is_within(&self, share: f64) -> bool {
        let is_near = |of: Figure| (self.ratio(of) - 1.0).abs() <= share;
        is_near(|seen| seen.utilisation) && is_near(|seen| seen.srtt)
    }

    fn line(&self) -> String {
        let mut text = format!("| {} |", CONTROLLERS[self.controller][0]);
        let figures: [(Figure, usize); 4] = [
            (|seen| seen.utilisation * 100.0, 1),
            (|seen| seen.srtt * 1e3, 0),
            (|seen| seen.wait * 1e3, 0),
            (|seen| seen.again, 0),
        ];
        for (of, digits) in figures {
            let [theirs, ours] = self.pair(of);
            let (theirs, ours) = (value(&theirs, digits), value(&ours, digits));
            let _ = write!(text, " {theirs} | {ours} | {:.2} |", self.ratio(of));
        }
        let within = if self.is_within(0.1) { "10 %" } else { "**beyond 10 %**" };
        let late = if self.is_late() { ", late" } else { "" };
        format!("{text} {within}{late} |")
    }
}

fn path(name: &str) -> String {
    format!("{}/../../scenarios/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// `cellular.toml` with this congestion control as in Linux, which ends slow start early only in
/// CUBIC.
fn scenario(controller: &str, begin: f64, seconds: u64) -> Scenario {
    let text = std::fs::read_to_string(path("cellular.toml")).expect("the scenario is there");
    let settings = [
        format!("congestion={controller}"),
        format!("tcp.default.hystart={}", controller == "cubic"),
        // Buffers must not be the limit, and Linux does not request ECN.
        "tcp.default.ecn=off".to_owned(),
        "tcp.default.send_buffer=4 MB".to_owned(),
        "tcp.default.receive_buffer=4 MB".to_owned(),
        format!("transfer.download.start={begin:.3} s"),
        format!("stop={:.3} s", begin + seconds as f64),
    ];
    let source = settings.into_iter().fold(Source::new("cellular.toml", text), Source::set);
    source.with_folder(path("")).scenario().unwrap_or_else(|error| panic!("{error}"))
}

/// Payload in bytes that the trace permits from `begin` on.
fn capacity(scenario: &Scenario, begin: f64, seconds: f64, mss: f64) -> f64 {
    let course = scenario.links[0].course.rate.as_ref().expect("the link follows a trace");
    let until = |s: f64| course.capacity(Instant::ZERO + Duration::from_secs_f64(s)) as f64;
    (until(begin + seconds) - until(begin)) * mss / (mss + HEADERS)
}

fn simulate(controller: &str, begin: f64, seconds: u64) -> Seen {
    let scenario = scenario(controller, begin, seconds);
    let Plan { builder, planned } = scenario.plan(1, 0, &Files::new()).expect("nothing is drawn");
    let mut sim = builder.build();
    let from = scenario.transfers[0].from;
    let info = |sim: &_| planned.transfers[0].latest(sim).current(sim.world(), from).0;
    let (mut sum, mut samples) = (0.0, 0_u32);
    for tick in 1..=10 * seconds {
        sim.run_until(Instant::ZERO + Duration::from_secs_f64(begin + tick as f64 / 10.0));
        if let Some(info) = info(&sim) {
            sum += info.srtt.map_or(0.0, Duration::as_secs_f64);
            samples += 1;
        }
    }
    let metrics = scenario.metrics(&planned, &sim);
    let info = info(&sim).expect("the transfer has begun");
    Seen {
        utilisation: info.bytes_acked as f64 / capacity(&scenario, begin, seconds as f64, 1428.0),
        srtt: sum / f64::from(samples.max(1)),
        wait: metrics["probe.queue.wait_mean_s"].value.unwrap_or(0.0),
        again: info.retransmissions as f64,
    }
}

/// Runs the kernel's TCP; returns the results, the start of the flow, and the lateness of the
/// emulator.
fn emulate(controller: &'static str, worker: usize, seconds: u64) -> Result<(Seen, f64, Lag), String> {
    let ends = Ends::new(&format!("r{worker}"));
    let [server, phone] = &ends.names;
    let netns =
        [("server", server), ("phone", phone)].map(|(node, name)| format!("node.{node}.netns={name}"));
    let file = path("cellular-tun.toml");
    let flows = Flows { controller, flows: 1, seconds };
    let emulated = ends.emulate(&[&file, "--set", &netns[0], "--set", &netns[1]], flows)?;
    let Emulated { sent, report, begun, .. } = &emulated;
    let lag = emulated.lag();
    let seen = || {
        let flow = &sent["flows"][0];
        let figure = |value: &Value| value.as_f64();
        let scenario = scenario("cubic", 0.0, seconds);
        let (mss, elapsed) = (figure(&flow["mss"])?, figure(&sent["elapsed"])?);
        Some(Seen {
            utilisation: figure(&flow["acked"])? / capacity(&scenario, *begun, elapsed, mss),
            srtt: figure(&sent["srtt"])?,
            wait: figure(&report["metrics"]["probe.queue.wait_mean_s"]["mean"])?,
            again: figure(&flow["again"])?,
        })
    };
    let unread = || format!("cannot read {sent} and {report}");
    Ok((seen().ok_or_else(unread)?, *begun, lag.ok_or_else(unread)?))
}

/// Runs the kernel and the simulator once. An emulation that was late is repeated twice at most.
fn measure(controller: usize, worker: usize, seconds: u64) -> ([Seen; 2], Lag) {
    let [ours, theirs] = CONTROLLERS[controller];
    let mut result = emulate(theirs, worker, seconds);
    for _ in 0..2 {
        if result.as_ref().is_ok_and(|(.., lag)| lag.p99 <= LATE && lag.max <= STALL) {
            break;
        }
        result = emulate(theirs, worker, seconds);
    }
    let (seen, begun, lag) = result.unwrap_or_else(|why| panic!("{theirs}: {why}"));
    ([seen, simulate(ours, begun.max(0.0), seconds)], lag)
}

fn page(rows: &[Row], seconds: u64, runs: u64) -> String {
    let most =
        |of: fn(&Lag) -> f64| rows.iter().filter_map(|row| row.lag.as_ref()).map(of).fold(0.0, f64::max);
    let mut text = format!(
        "{} {runs} run{} of {seconds} s of each controller. Largest 99th percentile of the emulator's lag {:.3} ms, largest lag \
         {:.1} ms.\n\n",
        origin("Linux", &first_line("uname", &["-r"])),
        if runs == 1 { "" } else { "s" },
        most(|lag| lag.p99) * 1e3,
        most(|lag| lag.max) * 1e3,
    );
    text.push_str(
        "| controller | utilisation, %: Linux | ours | ratio | SRTT, ms: Linux | ours | ratio | wait for the radio, ms: Linux | \
         ours | ratio | segments sent again: Linux | ours | ratio | utilisation and SRTT within |\n",
    );
    let _ = writeln!(text, "|{}", " --- |".repeat(14));
    for row in rows {
        let _ = writeln!(text, "{}", row.line());
    }
    text
}

#[test]
fn our_tcp_does_as_linux_does_over_a_trace() {
    if netns::skipped() || find_or_install("python3", "python3").is_none() {
        return;
    }
    let (seconds, runs) = match env::var("ANABRANCH_COMPARE").as_deref() {
        Ok("whole") => (60, 5),
        Ok("quick") => (20, 1),
        _ => (10, 1),
    };
    let (seconds, runs) = (number("SECONDS").unwrap_or(seconds), number("RUNS").unwrap_or(runs));
    let at_once = number("AT_ONCE").unwrap_or(3) as usize;
    let measured = side_by_side(CONTROLLERS.len() * runs as usize, at_once, |job, worker| {
        measure(job / runs as usize, worker, seconds)
    });
    let rows = measured.chunks(runs as usize).enumerate().map(|(controller, runs)| Row::of(controller, runs));
    let mut rows: Vec<Row> = rows.collect();
    let is_whole = env::var_os("ANABRANCH_COMPARE").is_some();
    for row in rows.iter_mut().filter(|row| !is_whole && !row.is_within(row.limit())) {
        // One run of 10 s may leave slow start at another moment. Three have the same mean.
        let more: Vec<_> = (0..3).map(|worker| measure(row.controller, worker, seconds)).collect();
        *row = Row::of(row.controller, &more);
    }
    let text = page(&rows, seconds, runs);
    publish(&text);
    if !is_whole {
        for row in rows.iter().filter(|row| !row.is_within(row.limit())) {
            // A machine that is too busy three times in a row proves nothing.
            assert!(row.is_late(), "{text}");
            skipped("Linux beside ours over a trace: the machine was too busy");
        }
    }
}
