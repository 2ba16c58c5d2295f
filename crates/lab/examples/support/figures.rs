//! Figures of `docs`, measured and drawn: what the examples that draw them share.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io, process};

use anabranch_lab::plot::{Chart, Point};
use anabranch_lab::stats::Summary;

use crate::length::Length;

/// What each point costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Simulated seconds of each run.
    pub(crate) seconds: u64,
    pub(crate) runs: u64,
}

/// Draws the charts that `charts` measures, by their files' names, with the effort that the command
/// line asks for: in full into the folder that it names or `docs/evidence/figures`, briefly into a
/// temporary folder.
pub(crate) fn draw(
    short: Effort,
    full: Effort,
    charts: fn(Effort) -> [(&'static str, Chart); 2],
) -> ExitCode {
    let drawn = || {
        let length = Length::from_command_line()?;
        let temporary =
            env::temp_dir().join(format!("anabranch-{}-{}", env!("CARGO_CRATE_NAME"), process::id()));
        let published =
            || env::args_os().nth(2).map_or_else(|| PathBuf::from("docs/evidence/figures"), PathBuf::from);
        let folder = length.pick(temporary.clone(), published());
        for (name, chart) in charts(length.pick(short, full)) {
            write(&folder, name, &chart).map_err(|error| io::Error::other(format!("{name}: {error}")))?;
        }
        if length == Length::Short { fs::remove_dir_all(temporary) } else { Ok(()) }
    };
    match drawn() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path, name: &str, chart: &Chart) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let svg = chart.svg().map_err(io::Error::other)?;
    fs::write(folder.join(format!("{name}.svg")), svg)?;
    fs::write(folder.join(format!("{name}.csv")), chart.csv())
}

/// The mean over all runs with its 95 % confidence interval.
pub(crate) fn point(x: f64, effort: Effort, run: impl Fn(u64) -> f64) -> Point {
    let values: Vec<f64> = (1..=effort.runs).map(run).collect();
    let summary = Summary::of(&values).expect("shares and throughputs are finite");
    Point { x, y: summary.mean, ci95: summary.ci95 }
}
