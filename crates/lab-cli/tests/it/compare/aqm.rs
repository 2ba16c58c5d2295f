//! Compares queue disciplines shared by several flows with those of ns-3: the wait for the
//! transmitter and the goodput after the flows have found their rates.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write;

use anabranch_scenario::{Plan, Source};
use anabranch_stats::Summary;

use super::ns3::{self, Program};
use super::table::origin;
use super::{number, of_flows, publish, side_by_side};

/// Length of the queue in packets.
const QUEUE: u32 = 1000;
/// Delay in each direction in milliseconds.
const DELAY: u32 = 20;

/// Flows behind a discipline.
#[derive(Clone, Copy, Debug)]
struct Cell {
    discipline: &'static str,
    controller: &'static str,
    /// Mbit/s.
    rate: u32,
    flows: u32,
}

/// Seconds of a run, seconds that do not count, and number of runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    pub(super) seconds: u64,
    pub(super) warmup: u64,
    pub(super) runs: u64,
}

/// Result of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Measured {
    /// Mean wait for the transmitter, in seconds.
    wait: f64,
    /// Goodput of all flows in bit/s.
    goodput: f64,
}

impl Cell {
    fn ours(self, Length { seconds, warmup, .. }: Length, run: u64) -> Measured {
        let Self { discipline, controller, rate, flows } = self;
        let (controller, hystart) =
            if controller == "reno" { ("newreno", false) } else { (controller, true) };
        let mut text = format!(
            "stop = \"{seconds} s\"\n[tcp.default]\ncongestion = \"{controller}\"\nhystart = {hystart}\necn = \"off\"\n\
             receive_buffer = \"8 MiB\"\nwindow_scale = 9\nsend_buffer = \"8 MiB\"\n\
             [[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n\
             [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"{rate} Mbit/s\"\ndelay = \"{DELAY} ms\"\nqueue = \"{QUEUE} packets\"\n\
             discipline = \"{discipline}\"\nback = {{ discipline = \"drop-tail\", queue = \"unlimited\" }}\n\
             [probe.queue]\nkind = \"queues\"\nnodes = \"a\"\nto = \"b\"\nfrom = \"{warmup} s\"\n"
        );
        for flow in 0..flows {
            let _ = write!(
                text,
                "[[transfer]]\nname = \"flow{flow}\"\nkind = \"tcp\"\nfrom = \"a\"\nto = \"b\"\nstart = \"{} ms\"\n",
                10 * flow
            );
        }
        let scenario = Source::new("aqm.toml", text).scenario().unwrap_or_else(|error| panic!("{error}"));
        let Plan { builder, planned } = scenario.plan(1, run, &BTreeMap::new()).expect("nothing is drawn");
        let mut sim = builder.build();
        let delivered = |metrics: &anabranch_scenario::record::Metrics| -> f64 {
            let of = |flow| metrics[&format!("transfer.flow{flow}.delivered_bytes")].value.unwrap_or(0.0);
            (0..flows).map(of).sum()
        };
        sim.run_until(anabranch_core::time::Instant::from_nanos(warmup * 1_000_000_000));
        let before = delivered(&scenario.metrics(&planned, &sim));
        sim.run_until(scenario.stop);
        let metrics = scenario.metrics(&planned, &sim);
        Measured {
            wait: metrics["probe.queue.wait_mean_s"].value.expect("packets have waited"),
            goodput: (delivered(&metrics) - before) * 8.0 / (seconds - warmup) as f64,
        }
    }

    fn theirs(
        self,
        program: &Program,
        Length { seconds, warmup, .. }: Length,
        run: u64,
    ) -> Result<Measured, String> {
        let Self { discipline, controller, rate, flows } = self;
        let report = program.run(&[
            ("controller", controller.to_owned()),
            ("rate", (u64::from(rate) * 1_000_000).to_string()),
            ("delay", DELAY.to_string()),
            ("queue", QUEUE.to_string()),
            ("flows", flows.to_string()),
            ("seconds", seconds.to_string()),
            ("warmup", warmup.to_string()),
            ("disc", discipline.to_owned()),
            ("run", run.to_string()),
        ])?;
        let read = || {
            let acked: f64 = of_flows(&report, "acked")?.iter().sum();
            let goodput = acked * 8.0 / (seconds - warmup) as f64;
            Some(Measured { wait: report["wait"].as_f64()?, goodput })
        };
        read().ok_or_else(|| format!("cannot read {report}"))
    }
}

fn plan() -> (Vec<Cell>, Length) {
    let whole = env::var("ANABRANCH_COMPARE").ok();
    let (rates, flows, length): (&[u32], &[u32], Length) = match whole.as_deref() {
        Some("whole") => (&[10, 100], &[1, 4, 16, 100], Length { seconds: 60, warmup: 20, runs: 5 }),
        Some(_) => (&[10, 100], &[1, 16], Length { seconds: 30, warmup: 10, runs: 2 }),
        None => (&[10], &[4], Length { seconds: 30, warmup: 10, runs: 2 }),
    };
    let seconds = number("SECONDS").unwrap_or(length.seconds);
    let length = Length {
        seconds,
        warmup: length.warmup.min(seconds / 3),
        runs: number("RUNS").unwrap_or(length.runs),
    };
    let controllers: &[&str] = if whole.is_some() { &["reno", "cubic"] } else { &["reno"] };
    let mut cells = Vec::new();
    for discipline in ["red", "codel", "pie", "fq-codel"] {
        for &controller in controllers {
            for &rate in rates {
                cells.extend(flows.iter().map(|&flows| Cell { discipline, controller, rate, flows }));
            }
        }
    }
    (cells, length)
}

/// A value of a run, and its unit.
type Figure = (fn(&Measured) -> f64, f64);
/// Waits in ms, goodputs in Mbit/s.
const FIGURES: [Figure; 2] = [(|m| m.wait, 1e-3), (|m| m.goodput, 1e6)];

/// The page, and the ratios of the means of all cells, for waits and goodputs.
fn page(cells: &[Cell], length: Length, results: &[Vec<(Measured, Measured)>]) -> (String, Vec<[f64; 2]>) {
    let Length { seconds, warmup, runs } = length;
    let mut text = format!(
        "# Queue disciplines, beside those of ns-3\n\n{}\n\nOne hop with {DELAY} ms in each direction and room for {QUEUE} packets; {runs} runs of {seconds} s \
         without the first {warmup} s. Waits in the queue in ms, goodputs in Mbit/s, means of the runs and their range. ns-3's device has \
         room for a packet behind the discipline.\n\n\
         | discipline | controller | Mbit/s | flows | wait, ns-3 | wait, ours | ratio | goodput, ns-3 | goodput, ours | ratio |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        origin("ns-3", &ns3::version())
    );
    let mut ratios = Vec::new();
    for (cell, runs) in cells.iter().zip(results) {
        let Cell { discipline, controller, rate, flows } = cell;
        let _ = write!(text, "| {discipline} | {controller} | {rate} | {flows} ");
        let mut both = [0.0; 2];
        for (figure, (of, unit)) in FIGURES.into_iter().enumerate() {
            let summary = |values: Vec<f64>| Summary::of(&values).expect("there are runs");
            let theirs = summary(runs.iter().map(|(theirs, _)| of(theirs) / unit).collect());
            let ours = summary(runs.iter().map(|(_, ours)| of(ours) / unit).collect());
            let show = |s: &Summary| match s.max - s.min > 0.005 * s.mean {
                true => format!("{:.2} ({:.2} to {:.2})", s.mean, s.min, s.max),
                false => format!("{:.2}", s.mean),
            };
            both[figure] = ours.mean / theirs.mean;
            let _ = write!(text, "| {} | {} | {:.2} ", show(&theirs), show(&ours), both[figure]);
        }
        text += "|\n";
        ratios.push(both);
    }
    (text, ratios)
}

#[test]
fn our_queues_do_as_ns3_does() {
    let Some(program) = ns3::bottleneck() else { return };
    let (cells, length) = plan();
    let runs = length.runs as usize;
    let measured = side_by_side(cells.len() * runs, number("AT_ONCE").map_or(2, |n| n as usize), |job, _| {
        let (cell, run) = (cells[job / runs], (job % runs) as u64 + 1);
        let theirs = cell.theirs(&program, length, run).unwrap_or_else(|error| panic!("{cell:?}: {error}"));
        (theirs, cell.ours(length, run))
    });
    let results: Vec<Vec<_>> = measured.chunks(runs).map(<[_]>::to_vec).collect();
    let (text, ratios) = page(&cells, length, &results);
    publish(&text);
    if env::var_os("ANABRANCH_COMPARE").is_none() {
        for (cell, [wait, goodput]) in cells.iter().zip(ratios) {
            assert!((0.85..1.15).contains(&goodput) && (0.8..1.25).contains(&wait), "{cell:?}: {text}");
        }
    }
}
