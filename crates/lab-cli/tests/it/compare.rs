//! Our TCP and the kernel's over the same bottleneck, side by side.
//!
//! The kernel's segments pass `anabranch emulate`, ours the same network simulated. A short form is a test;
//! `cargo xtask compare linux` sets the variables that make it the long one: docs/validation.md.

mod kernel;
mod table;

use std::env;
use std::sync::Mutex;
use std::thread;

use anabranch_core::tcp::{self, CongestionAlgorithm};
use anabranch_lab::campaign::bottleneck::{Cell, Grid, Start};
use anabranch_testkit::debian::find_or_install;
use anabranch_testkit::netns;
use rayon::prelude::*;

use kernel::Measured;
use table::Row;

const CONTROLLERS: [CongestionAlgorithm; 2] = [CongestionAlgorithm::NewReno, CongestionAlgorithm::Cubic];

/// Which cells, how long, how often.
#[derive(Debug)]
struct Plan {
    cells: Vec<Cell>,
    seconds: u64,
    runs: u64,
    /// Emulations side by side.
    at_once: usize,
    /// A run that was late, or failed, is repeated; the last attempt counts and is marked where it is late.
    attempts: u32,
}

fn number(name: &str) -> Option<u64> {
    let text = env::var(format!("ANABRANCH_COMPARE_{name}")).ok()?;
    Some(text.parse().expect("a whole number"))
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
    let at_once = number("AT_ONCE").map_or(8, |n| n as usize);
    // The test of the suite has to be over soon.
    let attempts = if env::var_os("ANABRANCH_COMPARE").is_some() { 3 } else { 2 };
    Plan { cells: grid.cells(), seconds, runs: number("RUNS").unwrap_or(runs), at_once, attempts }
}

/// Linux's results, run by run for each cell.
fn emulate(plan: &Plan) -> Vec<Vec<Measured>> {
    let mut work: Vec<_> =
        (0..plan.cells.len()).flat_map(|cell| (1..=plan.runs).map(move |run| (cell, run))).collect();
    work.reverse();
    let (work, results) = (Mutex::new(work), Mutex::new(vec![Vec::new(); plan.cells.len()]));
    thread::scope(|scope| {
        for worker in 0..plan.at_once {
            let (work, results) = (&work, &results);
            scope.spawn(move || {
                loop {
                    let Some((cell, run)) = work.lock().expect("nobody panics").pop() else { return };
                    let attempt = || kernel::run(&plan.cells[cell], &format!("c{worker}"), run, plan.seconds);
                    let mut result = attempt();
                    for _ in 1..plan.attempts {
                        if result.as_ref().is_ok_and(|measured| !measured.is_late()) {
                            break;
                        }
                        result = attempt();
                    }
                    match result {
                        Ok(measured) => results.lock().expect("nobody panics")[cell].push(measured),
                        // The others are worth having; the row says that it has fewer runs.
                        Err(why) => eprintln!("{:?}, run {run}: {why}", plan.cells[cell]),
                    }
                }
            });
        }
    });
    results.into_inner().expect("nobody panics")
}

fn simulate(cell: &Cell, plan: &Plan) -> Vec<Start> {
    let seconds = plan.seconds as f64;
    (1..=plan.runs).map(|run| cell.measure_start(tcp::Config::modern(), run, seconds)).collect()
}

#[test]
fn our_tcp_does_as_linux_does_over_a_bottleneck() {
    if netns::skipped() || find_or_install("python3", "python3").is_none() {
        return;
    }
    let plan = plan();
    let linux = emulate(&plan);
    let ours: Vec<Vec<Start>> = plan.cells.par_iter().map(|cell| simulate(cell, &plan)).collect();
    let rows: Vec<Row> = plan
        .cells
        .iter()
        .zip(linux.iter().zip(&ours))
        .filter_map(|(cell, (linux, ours))| Row::new(*cell, linux, ours))
        .collect();
    let text = table::page(&rows, &plan, &linux.concat());
    println!("{text}");
    if let Ok(file) = env::var("ANABRANCH_COMPARE_OUT") {
        std::fs::write(&file, &text).unwrap_or_else(|error| panic!("cannot write {file}: {error}"));
    }
    assert_eq!(rows.len(), plan.cells.len(), "some cells have no run: see above");
    if env::var_os("ANABRANCH_COMPARE").is_none() {
        for row in &rows {
            // A machine that is too busy twice in a row shows nothing.
            assert!(row.is_near() || row.is_late(), "{text}");
        }
    }
}
