//! `anabranch run`: simulate a scenario file.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use anabranch_deploy::error::Error;
use anabranch_deploy::files::check_apart;
use anabranch_deploy::output::{self, figure};
use anabranch_deploy::say;
use anabranch_sim::capture::Capture;
use anabranch_sim::scenario::ending::{Ending, NodeDrops};
use anabranch_sim::scenario::identity::{BUILD, Files, VERSION};
use anabranch_sim::scenario::record::{Metrics, censored_by};
use anabranch_sim::scenario::units::Span;
use anabranch_sim::scenario::{
    ContentSpec, Plan, Planned, Point, Policies, Scenario, ScenarioError, Source, TransferSpec, Undrawable,
};
use anabranch_sim::sim::Simulation;
use anabranch_sim::trace::TextTrace;
use anabranch_stats::{MetricRecord, Summary, Survival};
use bytes::Bytes;
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::events::{self, Every, Patience, Series, Tables};
use crate::progress::Progress;

/// The JSON Schema of scenario files. It is generated (`cargo xtask gen`), since what makes it
/// takes longer to build than to keep.
const SCHEMA: &str = include_str!("../../../docs/reference/scenario.schema.json");

/// Options of `run`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The scenario file
    #[arg(required_unless_present = "schema")]
    scenario: Option<PathBuf>,
    /// Overrides a value: `link.radio1.rate=56 kbit/s`; `link.*.loss=0.02` for all of a list
    #[arg(long = "set", value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Runs of every point
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// One run of many: the one of this number, from 0 on, as `--runs` and sweeps count them
    #[arg(long, value_name = "N", conflicts_with = "runs", value_parser = clap::value_parser!(u64).range(..u64::MAX))]
    run: Option<u64>,
    /// Root of all random streams, in place of the scenario's
    #[arg(long)]
    seed: Option<u64>,
    /// End every run at this time, as in "10 s", in place of the scenario's `stop`
    #[arg(long, value_name = "TIME")]
    until: Option<Span>,
    /// Print the metrics that are zero in every run too
    #[arg(long)]
    all: bool,
    /// One JSON object a line for every point and run
    #[arg(long)]
    json: bool,
    /// Writes everything that happens to this file; for one run of one point
    #[arg(long, value_name = "PATH")]
    trace: Option<PathBuf>,
    /// Writes every packet to this file, as pcapng for Wireshark; for one run of one point
    #[arg(long, value_name = "PATH")]
    pcap: Option<PathBuf>,
    /// Writes an event log to this file, which `anabranch view` replays; for one run of one point
    #[arg(long, value_name = "PATH")]
    events: Option<PathBuf>,
    /// Writes time series of connections, queues, radios and RDCA's senders, and statistics of the
    /// flows of probes, as CSV into this folder, made if it is not there; for one run of one point
    #[arg(long, value_name = "DIR")]
    series: Option<PathBuf>,
    /// Rows of the time series at multiples of this time; with `change` at each change of
    /// connections and queues, which takes several times as long as the run alone
    #[arg(long, value_name = "DURATION", requires = "series", default_value = "100ms")]
    series_every: Every,
    /// No progress
    #[arg(long)]
    quiet: bool,
    /// Prints the JSON Schema of scenario files
    #[arg(long, exclusive = true)]
    schema: bool,
}

pub(crate) fn main(arguments: &Arguments, policies: &Policies) -> Result<(), Error> {
    if arguments.schema {
        return output::text(SCHEMA);
    }
    let Some(path) = &arguments.scenario else { return Ok(()) };
    let until = arguments.until.map(|until| format!("stop={} s", until.0.as_secs_f64()));
    let set: Vec<String> = arguments.set.iter().cloned().chain(until).collect();
    let points = read(path, &set, policies)?;
    refuse_outside(path, &points)?;
    let tables = match (&arguments.series, points.first()) {
        (Some(folder), Some((point, _))) => {
            events::series_files(folder, &point.scenario, arguments.series_every)
        }
        _ => Default::default(),
    };
    let mut outputs =
        vec![("--trace", &arguments.trace), ("--pcap", &arguments.pcap), ("--events", &arguments.events)];
    outputs.extend(tables.iter().map(|file| ("--series", file)));
    refuse_overwriting(path, &points, &outputs)?;
    if outputs.iter().any(|(_, path)| path.is_some()) {
        return watched(arguments, &points, &tables);
    }
    let numbers = arguments.numbers();
    let progress = Progress::new(points.len() as u64 * (numbers.end - numbers.start), arguments.quiet);
    let made = unwatched(arguments, &points, &progress);
    said_if_interrupted(made, &progress)
}

/// Runs every point, and says of each what came out once all of its runs are over.
fn unwatched(arguments: &Arguments, points: &[PointWithFiles], progress: &Progress) -> Result<(), Error> {
    let patience = Patience::new()?;
    let mut verdict = Verdict::default();
    for (point, files) in points {
        let seed = arguments.seed.unwrap_or(point.scenario.seed);
        let axes = axes(point);
        let runs = arguments.numbers().into_par_iter().map(|run| {
            let Plan { builder, planned } = point.scenario.plan(seed, run, files).map_err(undrawable)?;
            let mut sim = builder.build();
            let stop = point.scenario.stop;
            let mut shown = progress.begin(format!("run {run}{axes}"), stop);
            patience.run_and_tell(&mut sim, stop, None, |now| shown.at(now))?;
            shown.finish();
            Ok((point.scenario.metrics(&planned, &sim), End::of(&point.scenario, &planned, &sim)))
        });
        let runs: Vec<(Metrics, End)> = runs.collect::<Result<_, Error>>()?;
        let (runs, ends): (Vec<Metrics>, Vec<End>) = runs.into_iter().unzip();
        progress.aside(|| {
            report(arguments, point, files, seed, &runs)?;
            verdict.judge((point, files, arguments), &runs, &ends);
            Ok::<_, Error>(())
        })?;
    }
    progress.finish();
    verdict.result()
}

/// Says how far the runs were if they were interrupted.
fn said_if_interrupted(outcome: Result<(), Error>, progress: &Progress) -> Result<(), Error> {
    match outcome {
        Err(Error::Interrupted) => progress.say_interrupted(),
        Err(_) => progress.finish(),
        Ok(()) => {}
    }
    outcome
}

/// The values of a point's axes, as they follow the name of a run.
fn axes(point: &Point) -> String {
    point.axes.iter().map(|(path, value)| format!(", {path} = {value}")).collect()
}

impl Arguments {
    /// Numbers of the runs of every point.
    fn numbers(&self) -> Range<u64> {
        match self.run {
            Some(run) => run..run + 1,
            None => 0..self.runs.into(),
        }
    }
}

/// A run whose nodes cannot be placed.
pub(crate) fn undrawable(error: Undrawable) -> Error {
    Error::input(error.to_string()).with_hint(error.hint())
}

/// A point, and the contents that it carries.
pub(crate) type PointWithFiles = (Point, Files);

/// A scenario with nodes for which the kernel stands cannot be simulated.
pub(crate) fn refuse_outside(path: &Path, points: &[PointWithFiles]) -> Result<(), Error> {
    if points.iter().any(|(point, _)| point.scenario.nodes.iter().any(|node| node.tun.is_some())) {
        let message = format!("{}: the kernel stands for some of its nodes", path.display());
        return Err(Error::input(message).with_hint("run it with `anabranch emulate`"));
    }
    Ok(())
}

/// No output may be the scenario file, a file that a transfer carries or a link follows, or another
/// output.
pub(crate) fn refuse_overwriting(
    path: &Path,
    points: &[PointWithFiles],
    outputs: &[(&str, &Option<PathBuf>)],
) -> Result<(), Error> {
    let carried: BTreeSet<&String> = points.iter().flat_map(|(_, files)| files.keys()).collect();
    let carried: Vec<PathBuf> = carried.into_iter().map(|name| content(path, name)).collect();
    let carried = carried.iter().map(|file| ("a file that the scenario names,", file.as_path()));
    check_apart(std::iter::once(("the scenario file", path)).chain(carried), given(outputs))
}

/// Those of the outputs that the command names.
pub(crate) fn given<'a>(
    outputs: &'a [(&'a str, &'a Option<PathBuf>)],
) -> impl Iterator<Item = (&'a str, &'a Path)> {
    outputs.iter().filter_map(|(option, path)| Some((*option, path.as_deref()?)))
}

/// Every point of the scenario in a file.
pub(crate) fn read(path: &Path, set: &[String], policies: &Policies) -> Result<Vec<PointWithFiles>, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::unreadable(path, &error))?;
    let mut source = Source::new(path.display().to_string(), text).with_policies(policies.clone());
    for assignment in set {
        source = source.set(assignment.as_str());
    }
    let points = source.with_folder(path.parent().unwrap_or(Path::new("")));
    let points = points.points().map_err(|error| if_a_spec(path, &points, error))?;
    if !points.is_empty() && points.iter().all(|point| point.scenario.has_unheard_link_acks()) {
        say!(
            "warning: {}: `link_ack_timeout` has no effect: no node has `dtc`, and the link repeats nothing",
            path.display()
        );
    }
    points.into_iter().map(|point| files(&point.scenario, path).map(|files| (point, files))).collect()
}

/// What to say of a sweep's spec that is given for a scenario.
fn if_a_spec(path: &Path, source: &Source, error: ScenarioError) -> Error {
    let has = |key: &str| source.tree().is_ok_and(|tree| tree.get_ref().get(key).is_some());
    if !has("scenario") {
        return error.into();
    }
    let path = path.display();
    Error::input(format!("{path}: this is the spec of a sweep, not a scenario"))
        .with_hint(format!("run it with `anabranch sweep {path}`"))
}

/// How the transfers of a run have ended, and what became of packets that left no link.
struct End {
    transfers: Vec<Ending>,
    drops: NodeDrops,
}

impl End {
    fn of(scenario: &Scenario, planned: &Planned, sim: &Simulation) -> Self {
        Self { transfers: scenario.endings(planned, sim), drops: scenario.node_drops(sim) }
    }

    /// What the nodes dropped, as a clause of a message, and what to do about it.
    fn dropped(&self) -> Vec<(String, &'static str)> {
        let NodeDrops { no_route, hop_limit, down } = self.drops;
        let reasons = [
            (
                no_route,
                "had no route",
                "see `node.*.dropped_no_route` and the events that take links and nodes down",
            ),
            (hop_limit, "reached their hop limit", "raise `hop_limit` in `[network]`"),
            (
                down,
                "came to a node that was down",
                "see `node.*.dropped_down` and the events that fail nodes",
            ),
        ];
        let any = reasons.into_iter().filter(|(packets, ..)| *packets > 0);
        any.map(|(packets, what, hint)| (format!("{packets} packets of the run {what}"), hint)).collect()
    }
}

/// Which transfers of all runs were to be delivered, and were not.
#[derive(Default)]
struct Verdict {
    due: usize,
    undelivered: usize,
    /// What to do about it, in the order of appearance.
    hints: Vec<&'static str>,
}

impl Verdict {
    /// Says on standard error which transfers of a point's runs were not delivered, how far they
    /// got, and why. Those without end are cut at `stop` and owe nothing.
    fn judge(
        &mut self,
        (point, files, arguments): (&Point, &Files, &Arguments),
        runs: &[Metrics],
        ends: &[End],
    ) {
        let axes = axes(point);
        for (run, (metrics, end)) in arguments.numbers().zip(runs.iter().zip(ends)) {
            for (transfer, ending) in point.scenario.transfers.iter().zip(&end.transfers) {
                let Some(octets) = octets(transfer, files) else { continue };
                let figure = |name: &str| {
                    metrics.get(&format!("transfer.{}.{name}", transfer.name)).and_then(|metric| metric.value)
                };
                self.due += 1;
                if figure("delivered") != Some(1.0) {
                    self.undelivered += 1;
                    let (name, got) = (&transfer.name, figure("delivered_bytes").unwrap_or(0.0));
                    let mut why = ending.to_string();
                    self.hint(ending.hint());
                    for (dropped, hint) in end.dropped() {
                        why += &format!("; {dropped}");
                        self.hint(hint);
                    }
                    say!(
                        "not delivered: transfer `{name}` of run {run}{axes}: {got} of {octets} octets; {why}"
                    );
                }
            }
        }
    }

    fn hint(&mut self, hint: &'static str) {
        if !self.hints.contains(&hint) {
            self.hints.push(hint);
        }
    }

    fn result(&self) -> Result<(), Error> {
        if self.undelivered == 0 {
            return Ok(());
        }
        let message = format!("{} of {} transfers were not delivered", self.undelivered, self.due);
        Err(Error::job(message).with_hint(self.hints.join("\n  hint: ")))
    }
}

/// What a transfer carries; `None` if it has no end.
fn octets(transfer: &TransferSpec, files: &Files) -> Option<u64> {
    match &transfer.content {
        ContentSpec::Bytes(octets) => Some(*octets),
        ContentSpec::File(name) => Some(files.get(name).map_or(0, |file| file.len() as u64)),
        ContentSpec::Endless => None,
    }
}

fn report(
    arguments: &Arguments,
    point: &Point,
    files: &Files,
    seed: u64,
    runs: &[Metrics],
) -> Result<(), Error> {
    if !arguments.json {
        return output::text(&table(point, seed, arguments, runs));
    }
    let resolved: Value =
        serde_json::from_str(&point.scenario.canonical_json()).expect("canonical JSON is JSON");
    let (hash, root) = (point.scenario.hash(), point.scenario.root(files));
    for (run, metrics) in arguments.numbers().zip(runs) {
        output::json(&json!({
            "scenario": point.scenario.name,
            "params": point.axes,
            "runs": 1,
            "seed": seed,
            "run": run,
            "resolved": resolved,
            "hash": hash,
            "id": root.run(seed, run).to_string(),
            "version": VERSION,
            "build": BUILD,
            "metrics": of_run(metrics),
        }))?;
    }
    Ok(())
}

/// The metrics of one run, by name, as they are printed.
pub(crate) fn of_run(metrics: &Metrics) -> BTreeMap<&str, MetricRecord<'_>> {
    let metrics = metrics.iter();
    metrics.map(|(name, metric)| (name.as_str(), MetricRecord::of_run(metric.value, metric.unit))).collect()
}

/// The contents that the scenario carries, from where it says.
fn files(scenario: &Scenario, path: &Path) -> Result<Files, Error> {
    let read = |name: &str| {
        let file = content(path, name);
        let octets = std::fs::read(&file).map_err(|error| Error::unreadable(&file, &error))?;
        Ok((name.to_owned(), Bytes::from(octets)))
    };
    scenario.files().map(read).collect()
}

/// Where the scenario at `path` says that a content is.
fn content(path: &Path, name: &str) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).join(name)
}

/// One run, and files with all that happens in it.
fn watched(arguments: &Arguments, points: &[PointWithFiles], tables: &Tables<PathBuf>) -> Result<(), Error> {
    let ([(point, files)], 1) = (points, arguments.runs) else {
        let (points, runs) = (points.len(), arguments.runs);
        let message = format!(
            "--trace, --pcap, --events and --series are for one run, not {points} points with {runs} runs"
        );
        let hint = "leave --runs out or choose one with --run, and set the sweep's axes with --set";
        return Err(Error::input(message).with_hint(hint));
    };
    // All files are open before the run begins: it may be a long one.
    let create = |path: &Option<PathBuf>| path.as_deref().map(events::create).transpose();
    let (trace, pcap, log) =
        (create(&arguments.trace)?, create(&arguments.pcap)?, create(&arguments.events)?);
    let every = arguments.series_every;
    let folder = arguments.series.as_deref();
    let series = folder.map(|folder| events::create_series(folder, tables)).transpose()?;
    let patience = Patience::new()?;

    let seed = arguments.seed.unwrap_or(point.scenario.seed);
    let run = arguments.numbers().start;
    let Plan { builder, planned } = point.scenario.plan(seed, run, files).map_err(undrawable)?;
    let mut sim = builder.build();
    if let Some(out) = trace {
        sim.observe(TextTrace::new(out));
    }
    if let Some(out) = pcap {
        sim.observe(Capture::new(out, point.scenario.network.ip));
    }
    if let Some(log) = log {
        events::attach(&mut sim, log, point.scenario.log_head(seed, run));
    }
    let mut series =
        series.map(|series| Series::attach(series, every, (&point.scenario, &planned), &mut sim));
    let progress = Progress::new(1, arguments.quiet);
    let stop = point.scenario.stop;
    let mut shown = progress.begin(format!("run {run}"), stop);
    let outcome = patience.run_and_tell(&mut sim, stop, series.as_mut(), |now| shown.at(now));
    said_if_interrupted(outcome, &progress)?;
    progress.finish();
    if let Some(path) = &arguments.events {
        events::finish(&mut sim, path)?;
    }
    if let Some(path) = &arguments.trace {
        events::finish_trace(&mut sim, path)?;
    }
    if let Some(path) = &arguments.pcap {
        events::finish_capture(&mut sim, path)?;
    }
    if let (Some(folder), Some(series)) = (folder, series) {
        series.finish(&mut sim, folder, tables)?;
    }
    let runs = [point.scenario.metrics(&planned, &sim)];
    report(arguments, point, files, seed, &runs)?;
    let mut verdict = Verdict::default();
    verdict.judge((point, files, arguments), &runs, &[End::of(&point.scenario, &planned, &sim)]);
    verdict.result()
}

/// A point for a person: what was asked of the network first, then what happened in it.
fn table(point: &Point, seed: u64, arguments: &Arguments, runs: &[Metrics]) -> String {
    let count = |runs: usize| format!("{runs} run{}", if runs == 1 { "" } else { "s" });
    let which = arguments.run.map_or_else(|| count(runs.len()), |run| format!("run {run}"));
    let mut text = format!("{}, {which}, seed {seed}", point.scenario.name);
    text += &axes(point);
    text +=
        &format!("\n  {:44} {:>14} {:>12} {:>14} {:>14}  unit\n", "metric", "mean", "±95 %", "min", "max");
    // Not every run has all of them: how many subflows there are is no two runs' agreement.
    let names: Metrics = runs.iter().flatten().map(|(name, metric)| (name.clone(), *metric)).collect();
    let is_zero = |name: &str| runs.iter().all(|run| run.get(name).is_none_or(|m| m.value == Some(0.0)));
    let (headlines, rest): (Vec<_>, Vec<_>) = names.iter().partition(|(name, _)| is_headline(name));
    let shown = rest.into_iter().filter(|(name, _)| arguments.all || !is_zero(name));
    let shown: Vec<_> = headlines.into_iter().chain(shown).collect();
    for (name, first) in &shown {
        let values: Vec<f64> = runs.iter().filter_map(|run| run.get(*name)?.value).collect();
        let survival = survival(name, &values, runs);
        let Ok(s) = Summary::of(&values) else {
            text += &format!("  {name:44} {:>14}\n", "none");
            text += &survival;
            continue;
        };
        let sure = s.ci95.map_or_else(|| "-".to_owned(), figure);
        text += &format!(
            "  {name:44} {:>14} {sure:>12} {:>14} {:>14}  {}",
            figure(s.mean),
            figure(s.min),
            figure(s.max),
            first.unit
        );
        if values.len() < runs.len() {
            text += &format!("  ({} have none)", count(runs.len() - values.len()));
        }
        text.push('\n');
        text += &survival;
    }
    if shown.len() < names.len() {
        let zero = names.len() - shown.len();
        text += &format!("  {zero} more metrics are zero in every run; --all prints them\n");
    }
    text + "\n"
}

/// Whether a metric is about what the scenario asks for: a transfer, traffic, or a probe.
fn is_headline(name: &str) -> bool {
    ["transfer.", "traffic.", "probe."].iter().any(|start| name.starts_with(start))
}

/// A line on the median latency of a transfer if it was not delivered in some of several runs.
fn survival(name: &str, values: &[f64], runs: &[Metrics]) -> String {
    let Some(censored) = censored_by(name).filter(|_| runs.len() > 1) else { return String::new() };
    let censored: Vec<f64> = runs.iter().filter_map(|run| run.get(&censored)?.value).collect();
    match Survival::of(values, &censored) {
        Ok(found) if !censored.is_empty() => format!("    {}\n", found.median().text(figure)),
        Ok(_) | Err(_) => String::new(),
    }
}
