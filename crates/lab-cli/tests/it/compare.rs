//! Compares our TCP with a reference over the same bottleneck: the kernel's TCP, or that of ns-3.
//!
//! The tests are short forms; `cargo xtask compare` sets the variables for the long forms:
//! docs/evidence/validation.md.

mod aqm;
mod arrivals;
mod emulated;
mod kernel;
mod ns3;
mod radio;
mod rivals;
mod table;
mod trace;
mod worlds;

use std::env;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anabranch_campaign::bottleneck::{Cell, Grid, Start};
use anabranch_core::tcp::{self, CongestionAlgorithm};
use anabranch_stats::jain;
use anabranch_testkit::debian::{find_or_install, skipped};
use anabranch_testkit::netns;
use rayon::prelude::*;
use serde_json::Value;

use kernel::{Kernel, Lag};
use ns3::Ns3;
use table::Row;

const CONTROLLERS: [CongestionAlgorithm; 2] = [CongestionAlgorithm::NewReno, CongestionAlgorithm::Cubic];

/// The TCP that ours is compared with.
trait Reference: Sync {
    /// Name in the header of the table.
    const NAME: &'static str;
    /// Number of parallel runs, unless the plan sets it.
    const AT_ONCE: usize;

    fn version(&self) -> String;

    /// Whether all runs of the cell have the same result.
    fn is_deterministic(&self, cell: &Cell) -> bool;

    /// Runs a cell for `seconds` seconds. `worker` distinguishes parallel runs.
    fn run(&self, cell: &Cell, worker: usize, run: u64, seconds: u64) -> Result<Measured, String>;
}

/// A run of a reference.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Measured {
    start: Start,
    /// Delays of the emulator, if the network is emulated.
    lag: Option<Lag>,
    /// Share of the time in which a buffer was the limit, of the flow with the largest share.
    limited: f64,
    /// Largest payload of a segment, in bytes.
    mss: u64,
    /// Size of a packet of the bottleneck, in bytes.
    packet: f64,
}

impl Measured {
    fn is_late(&self) -> bool {
        self.lag.is_some_and(Lag::is_late)
    }
}

/// Cells, duration, and number of runs.
#[derive(Debug)]
struct Plan {
    cells: Vec<Cell>,
    seconds: u64,
    runs: u64,
    /// Number of parallel runs of the reference; `None` means the reference's default.
    at_once: Option<usize>,
    /// Limit on the attempts for a run that was late or failed. The last attempt counts, and is
    /// marked if it was late.
    attempts: u32,
}

impl Plan {
    /// Without random losses our simulator is deterministic. A second run is only useful if the
    /// reference is not.
    fn runs_of<R: Reference>(&self, reference: &R, cell: &Cell) -> u64 {
        if reference.is_deterministic(cell) { 1 } else { self.runs }
    }
}

/// A value for each flow of a report.
fn of_flows(report: &Value, key: &str) -> Option<Vec<f64>> {
    report["flows"].as_array()?.iter().map(|flow| flow[key].as_f64()).collect()
}

/// Result of the flows of a report over `seconds`, with `timeouts` time-outs.
fn start(report: &Value, seconds: f64, timeouts: f64) -> Option<Start> {
    let acked = of_flows(report, "acked")?;
    Some(Start {
        goodput: acked.iter().sum::<f64>() * 8.0 / seconds,
        retransmissions: of_flows(report, "again")?.iter().sum(),
        timeouts,
        srtt: report["srtt"].as_f64()?,
        jain: jain(&acked).unwrap_or(0.0),
    })
}

/// Name of the cell's congestion control in the reference's program.
fn controller(cell: &Cell) -> &'static str {
    if cell.controller == CongestionAlgorithm::Cubic { "cubic" } else { "reno" }
}

fn number(name: &str) -> Option<u64> {
    anabranch_testkit::given(&format!("ANABRANCH_COMPARE_{name}"))
}

fn plan() -> Plan {
    let all = Grid { controllers: &CONTROLLERS, ..Grid::default() };
    let one = Grid { delays: &[20], queues: &[1.0], flows: &[1], ..all };
    let (grid, seconds, runs) = match env::var("ANABRANCH_COMPARE").as_deref() {
        Ok("whole") => (Grid { losses: &[0.0, 0.001, 0.01], delays: &[5, 20, 60], ..all }, 20, 3),
        Ok("quick") => (Grid { losses: &[0.0, 0.01], flows: &[1, 8], ..one }, 10, 1),
        _ => (one, 6, 1),
    };
    let seconds = number("SECONDS").unwrap_or(seconds);
    let at_once = number("AT_ONCE").map(|n| n as usize);
    // The test in the suite must end soon.
    let attempts = if env::var_os("ANABRANCH_COMPARE").is_some() { 3 } else { 2 };
    Plan { cells: grid.cells(), seconds, runs: number("RUNS").unwrap_or(runs), at_once, attempts }
}

/// Performs jobs 0 to `jobs - 1` in order with `workers` parallel workers. `job` gets its number
/// and its worker's.
fn side_by_side<T: Send>(jobs: usize, workers: usize, job: impl Fn(usize, usize) -> T + Sync) -> Vec<T> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for worker in 0..workers {
            let (next, results, job) = (&next, &results, &job);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= jobs {
                        return;
                    }
                    let result = job(number, worker);
                    results.lock().expect("nobody panics").push((number, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("nobody panics");
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Writes a report to standard output, and to the user's file.
fn publish(text: &str) {
    println!("{text}");
    if let Ok(file) = env::var("ANABRANCH_COMPARE_OUT") {
        std::fs::write(&file, text).unwrap_or_else(|error| panic!("cannot write {file}: {error}"));
    }
}

/// Results of the reference, by cell and run.
fn refer<R: Reference>(reference: &R, plan: &Plan) -> Vec<Vec<Measured>> {
    let runs = |cell: usize| (1..=plan.runs_of(reference, &plan.cells[cell])).map(move |run| (cell, run));
    let work: Vec<_> = (0..plan.cells.len()).flat_map(runs).collect();
    let measured = side_by_side(work.len(), plan.at_once.unwrap_or(R::AT_ONCE), |job, worker| {
        let (cell, run) = work[job];
        let attempt = || reference.run(&plan.cells[cell], worker, run, plan.seconds);
        let mut result = attempt();
        for _ in 1..plan.attempts {
            if result.as_ref().is_ok_and(|measured| !measured.is_late()) {
                break;
            }
            result = attempt();
        }
        // The other runs are still useful; the row shows that it has fewer runs.
        result.inspect_err(|why| eprintln!("{:?}, run {run}: {why}", plan.cells[cell])).ok()
    });
    let mut results = vec![Vec::new(); plan.cells.len()];
    for (&(cell, _), measured) in work.iter().zip(measured) {
        results[cell].extend(measured);
    }
    results
}

/// Our TCP with the reference's behaviour: neither Linux nor ns-3 ends slow start early for Reno,
/// as HyStart++ does.
fn ours(cell: &Cell) -> tcp::Config {
    tcp::Config { hystart: cell.controller == CongestionAlgorithm::Cubic, ..tcp::Config::modern() }
}

fn simulate(cell: &Cell, runs: u64, seconds: u64) -> Vec<Start> {
    (1..=runs).map(|run| cell.measure_start(ours(cell), run, seconds as f64)).collect()
}

fn compare<R: Reference>(reference: &R) {
    let plan = plan();
    let theirs = refer(reference, &plan);
    let ours: Vec<Vec<Start>> = plan
        .cells
        .par_iter()
        .map(|cell| simulate(cell, plan.runs_of(reference, cell), plan.seconds))
        .collect();
    let rows: Vec<Row> = plan
        .cells
        .iter()
        .zip(theirs.iter().zip(&ours))
        .filter_map(|(cell, (theirs, ours))| Row::new(*cell, theirs, ours))
        .collect();
    let text = table::page(&rows, &plan, reference, &theirs.concat());
    publish(&text);
    assert_eq!(rows.len(), plan.cells.len(), "some cells have no run: see above");
    if env::var_os("ANABRANCH_COMPARE").is_none() {
        for row in rows.iter().filter(|row| !row.is_near()) {
            // A machine that is too busy twice in a row proves nothing.
            assert!(row.is_late(), "{text}");
            skipped(&format!("{} beside ours: the machine was too busy", R::NAME));
        }
    }
}

// `cargo xtask compare` selects one of the two by its name.

#[test]
fn our_tcp_does_as_linux_does_over_a_bottleneck() {
    if !netns::skipped() && find_or_install("python3", "python3").is_some() {
        compare(&Kernel);
    }
}

#[test]
fn our_tcp_does_as_ns3_does_over_a_bottleneck() {
    if let Some(ns3) = Ns3::compile() {
        compare(&ns3);
    }
}
