//! `anabranch lab`: the experiments of the papers.

mod progress;
mod reproduce;
mod robustness;

use std::path::PathBuf;

use anabranch_deploy::error::Error;
use anabranch_deploy::output::{self, figure};
use anabranch_deploy::service::{self, Signals};
use anabranch_lab::experiment::{Experiment, Outcome, ParameterError, RunError};
use anabranch_lab::reproduction::ReproduceError;
use anabranch_sweep::spec::Runs;
use anabranch_sweep::{Options, Point, Shard, Spec, Store, Sweep, Table, Watch, execute_here};
use clap::Subcommand;

use crate::sweep;
use progress::Progress;

/// Commands of `lab`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the experiments with their parameters, defaults and metrics
    List {
        /// List only this experiment
        name: Option<String>,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Run one point of an experiment, or a grid of points
    Run(RunArguments),
    /// Reproduce the published tables and figures of the papers, with a verdict for each claim, as
    /// an HTML page, SVG and CSV
    Reproduce(reproduce::Arguments),
    /// Test how robust the claims of a paper are: vary the parameters that it leaves open, and
    /// count in how many settings each claim holds
    Robustness(robustness::Arguments),
}

/// Options of `lab run`.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArguments {
    /// Experiment to run, as `anabranch lab list` names it
    name: String,
    /// Set a parameter: `key=value`; may be repeated.
    ///
    /// `key=v1,v2` makes an axis of a grid, and `key=v1+v2` gives one value per gateway.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Number of runs of each point
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Seed of all runs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Store a row for each run in this folder, and write tables as `sweep` does.
    ///
    /// Runs that are already stored are skipped. The tables are `table.parquet` and `table.csv`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    /// Do not show progress
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn main(command: &Command) -> Result<(), Error> {
    match command {
        Command::List { name, json } => list(name.as_deref(), *json),
        Command::Run(arguments) => run(arguments),
        Command::Reproduce(arguments) => reproduce::main(arguments),
        Command::Robustness(arguments) => robustness::main(arguments),
    }
}

/// Converts a parameter error into an error of the program.
pub(crate) fn unfit(error: ParameterError) -> Error {
    let input = Error::input(error.to_string());
    match error.hint() {
        Some(hint) => input.with_hint(hint),
        None => input,
    }
}

/// Converts a failed run into an error of the program.
pub(crate) fn not_run(error: RunError) -> Error {
    match error {
        RunError::Impossible { message, hint } => Error::input(message).with_hint(hint),
        other => Error::job(other.to_string()),
    }
}

/// Runs `work` on a blocking thread until it ends or a signal arrives. After a signal, the
/// unfinished work ends with the process.
fn until_interrupted<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    let runtime = service::runtime()?;
    let made = runtime.block_on(async {
        let mut signals = Signals::catch()?;
        let work = tokio::task::spawn_blocking(work);
        tokio::select! {
            made = work => Ok(made.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()))),
            _ = signals.first() => Err(Error::Interrupted),
        }
    });
    runtime.shutdown_background();
    made
}

/// Converts a failed reproduction into an error of the program.
fn not_reproduced(error: ReproduceError) -> Error {
    match error {
        ReproduceError::Run(error) => not_run(error),
        other => Error::job(other.to_string()),
    }
}

/// Converts a failed sweep into an error of the program, for an experiment that the command line
/// describes.
fn failed(error: anabranch_sweep::Error) -> Error {
    match error {
        anabranch_sweep::Error::Parameter(error) => unfit(error),
        anabranch_sweep::Error::Run { error, .. } => not_run(error),
        other => sweep::failed(other),
    }
}

fn list(name: Option<&str>, json: bool) -> Result<(), Error> {
    let chosen: Vec<&dyn Experiment> = match name {
        Some(name) => vec![anabranch_lab::find(name).map_err(unfit)?],
        None => anabranch_lab::EXPERIMENTS.to_vec(),
    };
    for experiment in chosen {
        if json {
            output::json(&described(experiment))?;
        } else {
            output::text(&description(experiment))?;
        }
    }
    Ok(())
}

fn described(experiment: &dyn Experiment) -> serde_json::Value {
    let parameters = experiment.parameters().iter().map(
        |p| serde_json::json!({ "name": p.name, "default": p.default, "takes": p.takes, "about": p.about }),
    );
    let metrics = experiment
        .metrics()
        .iter()
        .chain(experiment.arrays())
        .map(|m| serde_json::json!({ "name": m.name, "unit": m.unit, "about": m.about }));
    serde_json::json!({
        "experiment": experiment.name(),
        "about": experiment.about(),
        "parameters": parameters.collect::<Vec<_>>(),
        "metrics": metrics.collect::<Vec<_>>(),
    })
}

fn description(experiment: &dyn Experiment) -> String {
    let mut text = format!("{}: {}\n\nparameters\n", experiment.name(), experiment.about());
    for p in experiment.parameters() {
        text += &format!("  {:16} {:13} {}; {}\n", p.name, p.default, p.about, p.takes);
    }
    text += "\nmetrics\n";
    for m in experiment.metrics().iter().chain(experiment.arrays()) {
        text += &format!("  {:25} {:6} {}\n", m.name, m.unit, m.about);
    }
    text
}

fn run(arguments: &RunArguments) -> Result<(), Error> {
    let experiment = anabranch_lab::find(&arguments.name).map_err(unfit)?;
    let mut spec = Spec::assigned(experiment, &arguments.set).map_err(unfit)?;
    spec.runs = Runs::Fixed(arguments.runs.into());
    spec.seeds = vec![arguments.seed];
    let sweep = Sweep::new(spec).map_err(failed)?;
    // Check the whole grid before the first point runs, so that bad input writes nothing.
    let points = sweep.all_points().map_err(failed)?;
    // JSON lines contain all parameters, so no column selection is needed.
    let varied = if arguments.json { Vec::new() } else { varied(&sweep, &points, &arguments.set)? };
    let mut printer = Printer { sweep: &sweep, varied, json: arguments.json, header: true };
    if let Some(folder) = &arguments.out {
        let mut store = sweep::open(folder)?;
        sweep::run(&sweep, &points, &mut store, Options::default(), arguments.quiet)?;
        points.iter().try_for_each(|point| printer.print(point, &store))?;
        sweep::write(&Table::new(&sweep, &points, &store).map_err(failed)?, folder)?;
        return Ok(());
    }
    let planned = points.len() as u64 * u64::from(arguments.runs);
    // The printed points already show progress; a bar is useful only on a terminal.
    let progress = if arguments.quiet { Progress::none() } else { Progress::on_a_terminal(planned) };
    let each = || progress.advance(1);
    let watch = Watch { each: Some(&each), ..Watch::default() };
    let mut store = Store::in_memory();
    // Chunks are large enough to keep all threads busy; the points of a chunk are printed before
    // the next chunk starts.
    for points in points.chunks(rayon::current_num_threads().max(1) * 4) {
        execute_here(&sweep, points, &mut store, Shard::ALL, &watch).map_err(failed)?;
        points.iter().try_for_each(|point| progress.aside(|| printer.print(point, &store)))?;
    }
    progress.finish();
    Ok(())
}

/// Prints the points of a grid.
struct Printer<'s> {
    sweep: &'s Sweep,
    varied: Vec<String>,
    json: bool,
    /// The next point is the first: it also prints the parameters that all points share.
    header: bool,
}

impl Printer<'_> {
    fn print(&mut self, point: &Point, store: &Store) -> Result<(), Error> {
        let outcome = Outcome::of(self.sweep, point, store).map_err(failed)?;
        match self.json {
            true => output::json(&outcome.record()),
            false => output::text(&table(&outcome, &self.varied, std::mem::take(&mut self.header))),
        }
    }
}

/// Parameters that distinguish the points: those with more than one value, and those derived from
/// them.
fn varied(sweep: &Sweep, points: &[Point], assignments: &[String]) -> Result<Vec<String>, Error> {
    let axes =
        assignments.iter().filter_map(|a| a.split_once('=')).filter(|(_, values)| values.contains(','));
    let mut varied: Vec<String> = axes.map(|(key, _)| key.trim().to_owned()).collect();
    let all = points.iter().map(|point| sweep.resolved(point)).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(failed)?;
    let Some((first, others)) = all.split_first() else { return Ok(varied) };
    for (i, (name, _)) in first.iter().enumerate() {
        if others.iter().any(|other| other[i] != first[i]) && !varied.iter().any(|axis| axis == name) {
            varied.push(name.to_string());
        }
    }
    Ok(varied)
}

/// Formats a point as text: its parameters, then one line per metric.
fn table(outcome: &Outcome, varied: &[String], first: bool) -> String {
    let mut text = String::new();
    if first {
        let fixed = outcome.parameters.iter().filter(|(name, _)| !varied.iter().any(|v| v == name));
        let fixed: Vec<String> = fixed.map(|(name, value)| format!("{name}={value}")).collect();
        text += &format!(
            "{}, {} runs, seed {}: {}\n",
            outcome.experiment,
            outcome.runs,
            outcome.seed,
            fixed.join(" ")
        );
    }
    let place: Vec<String> =
        varied.iter().filter_map(|v| Some(format!("{v}={}", outcome.parameter(v)?))).collect();
    text += &format!("\n{}\n", place.join(" "));
    text += &format!("  {:25} {:>13} {:>11} {:>13} {:>13}  unit\n", "metric", "mean", "±95 %", "min", "max");
    for m in &outcome.metrics {
        let Some(s) = m.summary else {
            text += &format!("  {:25} {:>13}\n", m.metric.name, "none");
            continue;
        };
        let sure = s.ci95.map_or_else(|| "-".to_owned(), figure);
        text += &format!(
            "  {:25} {:>13} {sure:>11} {:>13} {:>13}  {}",
            m.metric.name,
            figure(s.mean),
            figure(s.min),
            figure(s.max),
            m.metric.unit
        );
        if m.missing() > 0 {
            text += &format!("  ({} of {} runs have none)", m.missing(), outcome.runs);
        }
        text.push('\n');
    }
    for a in &outcome.arrays {
        let means: Vec<String> = a.means().into_iter().map(figure).collect();
        text += &format!("  {:25} {}  {}\n", a.metric.name, means.join(" "), a.metric.unit);
    }
    text
}
