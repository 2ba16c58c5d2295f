//! Shared code of the examples that measure and draw figures of `docs`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io, process};

use anabranch_lab::plot::{Chart, Point};
use anabranch_lab::stats::Summary;

use crate::length::Length;

/// Effort for each point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Simulated seconds of each run.
    pub(crate) seconds: u64,
    pub(crate) runs: u64,
}

/// Draws the charts that `charts` measures, by file name. With `full` on the command line, the
/// files go to the given folder or to `docs/evidence/figures`; otherwise short runs go to a
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

/// Mean over all runs with its 95 % confidence interval.
pub(crate) fn point(x: f64, effort: Effort, run: impl Fn(u64) -> f64) -> Point {
    let values: Vec<f64> = (1..=effort.runs).map(run).collect();
    let summary = Summary::of(&values).expect("shares and throughputs are finite");
    Point { x, y: summary.mean, ci95: summary.ci95 }
}
