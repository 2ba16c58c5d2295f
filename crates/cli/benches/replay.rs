//! Cost of a replay: a hundred nodes and a million events as a log, as a page, and in a browser.
//! Prints a table. With a folder as argument, the log and the page stay there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anabranch_scenario::{Plan, Scenario, Source};
use anabranch_sim::events::EventLog;
use anabranch_testkit::browser::{Browser, Scheme, View};
use anabranch_view::page;
use anabranch_view::replay::{Part, Replay};
use serde_json::Value;

#[path = "../tests/it/replay/million.rs"]
mod million;

/// Number of measurements. The minimum counts, since other programs can only add time.
const RUNS: usize = 3;

fn main() {
    let (side, transfers, kilobytes) = million::MILLION;
    let text = million::grid(side, transfers, kilobytes);
    let scenario = Source::new("grid", text).scenario().expect("a scenario");
    let (_, alone) = least(|| run(&scenario, false));
    let (log, watched) = least(|| run(&scenario, true));
    let (replay, read) = least(|| Replay::read(log.as_slice(), Part::default()).expect("a log"));
    let (page, made) = least(|| page::html(&replay));
    let million = replay.events as f64 / 1e6;
    println!("{} nodes, {million:.2} million events", replay.nodes.len());
    println!("log                 {:.2} MB for a million events", log.len() as f64 / 1e6 / million);
    println!("page                {:.2} MB for a million events", page.len() as f64 / 1e6 / million);
    println!("the run without it  {alone:.2} s of processor time, with it {watched:.2} s");
    println!("from log to page    {:.2} s of processor time", read + made);
    let kept = std::env::args().nth(1).filter(|folder| !folder.starts_with('-')).map(PathBuf::from);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = kept.as_deref().unwrap_or(folder.path());
    fs::create_dir_all(folder).expect("a folder");
    fs::write(folder.join("grid.ablog"), &log).expect("room for a log");
    let file = folder.join("grid.html");
    fs::write(&file, page).expect("room for a page");
    show(&file);
}

/// Prints the page's measurements of its own drawing.
fn show(file: &Path) {
    let Some(browser) = Browser::find() else { return };
    for (name, size) in [("desk, 1400 x 900", (1400, 900)), ("phone, 390 x 844", (390, 844))] {
        let view = View { file, fragment: "bench", size, scheme: Scheme::Light };
        let answers: Vec<Value> =
            (0..RUNS).map(|_| serde_json::from_str(&browser.answer(&view).json).expect("JSON")).collect();
        let figure = |key: &str| {
            answers.iter().filter_map(|answer| answer[key].as_f64()).fold(f64::INFINITY, f64::min)
        };
        println!(
            "{name}: {:.2} s to the first picture; while playing a picture takes {:.2} ms, one in ten no more than {:.2} ms",
            figure("ready") / 1e3,
            figure("median"),
            figure("tenth")
        );
    }
}

fn run(scenario: &Scenario, log: bool) -> Vec<u8> {
    let Plan { builder, .. } = scenario.plan(scenario.seed, 0, &BTreeMap::new()).expect("nothing is drawn");
    let mut sim = builder.build();
    if log {
        sim.observe(EventLog::new(Vec::new(), scenario.log_head(scenario.seed, 0)));
    }
    sim.run_until(scenario.stop);
    sim.take_observer::<EventLog<Vec<u8>>>().map_or(Vec::new(), |log| log.finish().expect("memory takes it"))
}

/// Result of `work`, and its minimum processor time in seconds.
fn least<T>(mut work: impl FnMut() -> T) -> (T, f64) {
    let mut best = f64::INFINITY;
    let mut made = None;
    for _ in 0..RUNS {
        let before = processor_time();
        made = Some(work());
        best = best.min(processor_time() - before);
    }
    (made.expect("it was done"), best)
}

/// Processor time of this process in seconds.
fn processor_time() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("a name").split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<f64>().expect("a number");
    // utime and stime, in hundredths of a second (proc(5)).
    (ticks(11) + ticks(12)) / 100.0
}
