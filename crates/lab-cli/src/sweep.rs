//! `anabranch sweep`: many runs of a scenario or an experiment.

mod progress;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_core::time::Duration;
use anabranch_deploy::error::Error;
use anabranch_deploy::files::{Whole, check_apart};
use anabranch_deploy::say;
use anabranch_scenario::Policies;
use anabranch_scenario::units::Span;
use anabranch_sweep::series::{Format, Series};
use anabranch_sweep::{Options, Point, Shard, Spec, Store, Sweep, Table, Watch, execute, pool};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use progress::Progress;

/// Options of `sweep`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Sweep file (TOML): a scenario or experiment, the parameters that vary, seeds and runs
    spec: PathBuf,
    /// Folder for the results of runs and the tables [default: NAME-sweep, with the name of the
    /// sweep file].
    ///
    /// Several sweeps and processes may share it.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Number of runs at the same time [default: the number of cores, which is also the maximum]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Run only one part of the sweep, for job arrays: `2/8` is the second of eight parts
    #[arg(long, value_name = "I/N", value_parser = shard, default_value = "1/1", hide_default_value = true)]
    shard: Shard,
    /// Print the numbers of points, runs and finished runs, and run nothing
    #[arg(long, conflicts_with_all = ["export", "partial"])]
    dry_run: bool,
    /// Write the tables from the finished runs, and run nothing
    #[arg(long)]
    export: bool,
    /// Write the tables even if runs are missing
    #[arg(long)]
    partial: bool,
    /// Write time series of each run into this folder.
    ///
    /// There is one folder per table and one file per run, with the parameters as columns.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["export", "dry_run"])]
    series: Option<PathBuf>,
    /// Interval between rows of the time series
    #[arg(long, value_name = "T", value_parser = every, default_value = "100ms", requires = "series")]
    series_every: Duration,
    /// File format of the time series
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "parquet", requires = "series")]
    series_format: SeriesFormat,
    /// Metric to print for each point; may be repeated [default: the transfers' latencies]
    #[arg(long = "metric", value_name = "NAME")]
    metrics: Vec<String>,
    /// Print one JSON object per line for each point, then one for the sweep
    #[arg(long)]
    json: bool,
    /// Do not show progress
    #[arg(long)]
    quiet: bool,
}

/// File format of time series.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum SeriesFormat {
    /// Apache Parquet
    Parquet,
    /// Comma-separated values
    Csv,
}

/// Parses the value of `--series-every`.
fn every(text: &str) -> Result<Duration, String> {
    Span::positive(text).map_err(|error| error.to_string())
}

/// Parses the value of `--shard`.
fn shard(text: &str) -> Result<Shard, String> {
    let numbers =
        text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
    let (number, of) = numbers.ok_or_else(|| "expected two numbers such as 2/8".to_owned())?;
    Shard::new(number, of).map_err(|_| "shards are numbered from 1, as in 1/8 to 8/8".to_owned())
}

/// Converts an error of a sweep into an error of the program.
pub(crate) fn failed(error: anabranch_sweep::Error) -> Error {
    let message = error.to_string();
    let made = if error.is_input() { Error::input(message) } else { Error::job(message) };
    match error.hint() {
        Some(hint) => made.with_hint(hint),
        None => made,
    }
}

pub(crate) fn main(arguments: &Arguments, policies: &Policies) -> Result<(), Error> {
    let spec = Spec::read(&arguments.spec, anabranch_lab::EXPERIMENTS).map_err(failed)?;
    let mut sweep = Sweep::new(spec.with_policies(policies.clone())).map_err(failed)?;
    let folder =
        arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}-sweep", stem(&arguments.spec))));
    check_apart(
        [("the spec", arguments.spec.as_path())],
        tables(&folder).iter().map(|file| ("--out", file.as_path())),
    )?;
    let threads = usize::from(arguments.jobs.unwrap_or(0));
    let points = pool(threads).and_then(|pool| pool.install(|| sweep.all_points())).map_err(failed)?;
    if let Some(folder) = &arguments.series {
        let format = match arguments.series_format {
            SeriesFormat::Parquet => Format::Parquet,
            SeriesFormat::Csv => Format::Csv,
        };
        let series = Series { folder: folder.clone(), every: arguments.series_every, format };
        sweep = sweep.with_series(series, &points).map_err(failed)?;
    }
    let mut store = open(&folder)?;
    if arguments.dry_run {
        return report::standing(&sweep, &points, &store, arguments.shard, arguments.json);
    }
    if !arguments.export {
        let options = Options { threads, shard: arguments.shard };
        run(&sweep, &points, &mut store, options, arguments.quiet)?;
    }
    let table = Table::new(&sweep, &points, &store).map_err(failed)?;
    let metrics = report::metrics(&sweep, &table, &arguments.metrics)?;
    if table.missing() > 0 && !arguments.partial {
        let (missing, done) = (table.missing(), table.len());
        if arguments.export {
            let message =
                format!("{}: no tables yet: {done} runs are done, {missing} are missing", folder.display());
            return Err(Error::job(message)
                .with_hint("run the other shards, or write tables of the finished runs with --partial"));
        }
        return report::unfinished(&folder, done, missing, arguments.json);
    }
    let files = write(&table, &folder)?;
    report::points(&sweep, &points, &table, &metrics, arguments.json)?;
    report::whole(&sweep, &table, &files, arguments.json)
}

/// Opens the store of a folder.
pub(crate) fn open(folder: &Path) -> Result<Store, Error> {
    let store = Store::open(folder).map_err(failed)?;
    if store.foreign() > 0 {
        say!(
            "{} rows in {} are from other builds of this program; they are kept but not used",
            store.foreign(),
            folder.display()
        );
    }
    Ok(store)
}

/// Name of the sweep file, without its extension.
fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "spec".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// Runs the missing runs, with a progress bar, until all are stored or the user interrupts.
/// Afterwards the store also contains the rows of other processes.
pub(crate) fn run(
    sweep: &Sweep,
    points: &[Point],
    store: &mut Store,
    options: Options,
    quiet: bool,
) -> Result<(), Error> {
    let watch = Watch::default();
    let (stop, over) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The first signal waits for runs in progress; the second ends the process at once. The
        // order of registration matters: the shutdown must check the flag before it is set.
        let caught =
            flag::register_conditional_shutdown(signal, Error::Interrupted.code().into(), stop.clone())
                .and_then(|_| flag::register(signal, stop.clone()));
        caught.map_err(|e| Error::missing(format!("cannot catch signals: {e}")))?;
    }
    let outcome = std::thread::scope(|scope| {
        let shown = scope.spawn(|| {
            let progress = Progress::new(quiet);
            while !over.load(Ordering::Acquire) {
                if stop.load(Ordering::Relaxed) {
                    watch.cancel.store(true, Ordering::Relaxed);
                }
                progress.show(&watch);
                std::thread::park_timeout(progress::PERIOD);
            }
            progress.finish(&watch);
        });
        let outcome = execute(sweep, points, store, options, &watch);
        over.store(true, Ordering::Release);
        shown.thread().unpark();
        outcome
    })
    .map_err(failed)?;
    if outcome.cancelled {
        say!("interrupted: {} runs are done and kept; repeat the command to resume", outcome.made);
        return Err(Error::Interrupted);
    }
    if outcome.made > 0 && !quiet {
        say!(
            "{} runs in {:.1} s; {} threads were {:.0} % busy, overhead was {:.1} % of the runs' processor time",
            outcome.made,
            outcome.wall.as_secs_f64(),
            outcome.threads,
            outcome.busy() * 100.0,
            outcome.overhead() * 100.0
        );
    }
    store.refresh().map_err(failed)
}

/// Paths of the tables in a folder.
fn tables(folder: &Path) -> [PathBuf; 2] {
    ["table.parquet", "table.csv"].map(|name| folder.join(name))
}

/// Writes the tables of a folder; each file appears only when it is complete.
pub(crate) fn write(table: &Table<'_>, folder: &Path) -> Result<[PathBuf; 2], Error> {
    let files = tables(folder);
    fs::create_dir_all(folder).map_err(|e| Error::unwritable(folder, &e))?;
    let whole = |path: &Path, fill: &dyn Fn(&mut Whole) -> Result<(), anabranch_sweep::Error>| {
        let mut file = Whole::create(path)?;
        fill(&mut file).map_err(|e| unwritten(path, &e))?;
        file.keep()
    };
    whole(&files[0], &|file| table.write_parquet(file))?;
    whole(&files[1], &|file| table.write_csv(file))?;
    Ok(files)
}

/// Error for a file that could not be written in a folder whose stored runs are kept.
pub(crate) fn unwritten(path: &Path, error: &dyn std::error::Error) -> Error {
    Error::job(format!("cannot write {}: {error}", path.display()))
        .with_hint("free space and repeat the command to resume; finished runs are kept")
}
