//! Output of a sweep on standard output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anabranch_deploy::error::Error;
use anabranch_deploy::output::{self, figure};
use anabranch_stats::MetricRecord;
use anabranch_sweep::spec::Runs;
use anabranch_sweep::{Point, Shard, Store, Sweep, Table};
use serde_json::{Value, json};

use super::failed;

/// Limit on the points printed as text; the tables contain all of them.
const SHOWN: usize = 60;
/// Number of metrics printed if none was named.
const METRICS: usize = 3;

/// Prints how many runs are done, missing, and due in this shard.
pub(super) fn standing(
    sweep: &Sweep,
    points: &[Point],
    store: &Store,
    shard: Shard,
    json: bool,
) -> Result<(), Error> {
    let (mut done, mut missing, mut due) = (0, 0, 0);
    for point in points {
        let standing = sweep.standing(point, store);
        missing += standing.missing.len();
        done += standing.runs as usize * sweep.seeds().len() - standing.missing.len();
        due += sweep.due(point, store, shard).len();
    }
    if json {
        return output::json(&json!({
            "sweep": sweep.spec().name, "points": points.len(), "seeds": sweep.seeds().len(),
            "runs_done": done, "runs_missing": missing, "runs_due": due,
        }));
    }
    let more = match sweep.spec().runs {
        Runs::Fixed(_) => "",
        Runs::Enough(_) => ", and possibly more after these",
    };
    let mut text = format!(
        "{}: {} points, {} seeds; {done} runs are done, {missing} are missing{more}\n",
        sweep.spec().name,
        points.len(),
        sweep.seeds().len()
    );
    if shard != Shard::ALL {
        text += &format!("shard {}/{}: {due} of these\n", shard.number, shard.of);
    }
    output::text(&text)
}

/// Prints that this shard is done while runs of other shards are missing.
pub(super) fn unfinished(folder: &Path, done: usize, missing: u64, json: bool) -> Result<(), Error> {
    if json {
        return output::json(&json!({ "runs_done": done, "runs_missing": missing }));
    }
    output::text(&format!(
        "this shard is done; {missing} runs of other shards are missing in {}, {done} are done; the last shard writes the tables\n",
        folder.display()
    ))
}

/// The metrics to print: those that were named; otherwise the metric whose mean has a target
/// precision, the first metrics of an experiment, or the transfers' latencies.
///
/// # Errors
/// A metric that the table does not contain.
pub(super) fn metrics(sweep: &Sweep, table: &Table<'_>, named: &[String]) -> Result<Vec<String>, Error> {
    let chosen: Vec<String> = match (&sweep.spec().runs, named) {
        (Runs::Enough(enough), []) => vec![enough.metric.clone()],
        (Runs::Fixed(_), []) => {
            if let Some(experiment) = sweep.spec().experiment() {
                return Ok(experiment
                    .metrics()
                    .iter()
                    .take(METRICS)
                    .map(|metric| metric.name.to_owned())
                    .collect());
            }
            let latency = |name: &&String| name.starts_with("transfer.") && name.ends_with(".latency_s");
            return Ok(table.metrics().iter().filter(latency).take(METRICS).cloned().collect());
        }
        (_, named) => named.to_vec(),
    };
    if !table.is_empty() {
        for name in &chosen {
            table.unit(name).map_err(failed)?;
        }
    }
    Ok(chosen)
}

/// Prints every point with its parameters and the results of its runs.
pub(super) fn points(
    sweep: &Sweep,
    points: &[Point],
    table: &Table<'_>,
    metrics: &[String],
    json: bool,
) -> Result<(), Error> {
    if json {
        return points.iter().try_for_each(|point| output::json(&record(sweep, point, table, metrics)));
    }
    let unit = |name: &String| match table.unit(name) {
        Ok("1") | Err(_) => name.clone(),
        Ok(unit) => format!("{name} [{unit}]"),
    };
    let mut header = vec!["point".to_owned()];
    header.extend(sweep.varied().map(str::to_owned));
    header.push("runs".to_owned());
    header.extend(metrics.iter().map(unit));
    let mut lines = vec![header];
    for point in points.iter().take(SHOWN) {
        let parameters = sweep.parameters(point.index);
        let mut line = vec![point.index.to_string()];
        line.extend(sweep.varied().map(|path| parameters.get(path).map_or_else(String::new, plain)));
        line.push(table.runs(point.index).to_string());
        line.extend(metrics.iter().map(|metric| cell(table, point.index, metric)));
        lines.push(line);
    }
    let mut text = aligned(&lines);
    if points.len() > SHOWN {
        text += &format!("and {} more points in the tables\n", points.len() - SHOWN);
    }
    output::text(&text)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Formats a mean, its confidence interval and the number of runs without the metric. For
/// latencies, the median over all runs replaces that number.
fn cell(table: &Table<'_>, point: usize, metric: &str) -> String {
    let survival = table.survival(point, metric).map(|found| found.text(figure));
    let Some(summary) = table.summary(point, metric) else {
        return survival.map_or_else(|| "none".to_owned(), |survival| format!("none ({survival})"));
    };
    let sure = summary.ci95.map_or_else(|| "-".to_owned(), figure);
    let lacking = table.runs(point) - summary.runs;
    let lacking = match survival {
        Some(survival) => format!(" ({survival})"),
        None if lacking > 0 => format!(" ({lacking} runs have none)"),
        None => String::new(),
    };
    format!("{} ± {sure}{lacking}", figure(summary.mean))
}

/// Aligns the columns of a table.
fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        lines.iter().filter_map(|line| Some(line.get(column)?.chars().count())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |cells: &Vec<String>| {
        let cells: Vec<String> =
            cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
        cells.join("  ") + "\n"
    };
    lines.iter().map(line).collect()
}

fn record(sweep: &Sweep, point: &Point, table: &Table<'_>, metrics: &[String]) -> Value {
    let runs = table.runs(point.index);
    let of = |metric: &String| {
        let summary = table.summary(point.index, metric);
        let missing = runs - summary.map_or(0, |summary| summary.runs);
        let record = MetricRecord::new(summary.as_ref(), missing, table.unit(metric).unwrap_or("1"));
        (metric.clone(), record.with_survival(table.survival(point.index, metric)))
    };
    let seed = match sweep.seeds() {
        [seed] => json!(seed),
        seeds => json!(seeds),
    };
    json!({
        "sweep": sweep.spec().name,
        "params": sweep.parameters(point.index),
        "runs": runs,
        "seed": seed,
        "point": point.index,
        "hash": point.hash,
        "enough": matches!(sweep.spec().runs, Runs::Enough(_)).then(|| !table.unmet().contains(&point.index)),
        "metrics": metrics.iter().map(of).collect::<BTreeMap<_, _>>(),
    })
}

/// Prints the files that were written, and the points whose precision target was not met.
pub(super) fn whole(sweep: &Sweep, table: &Table<'_>, files: &[PathBuf], json: bool) -> Result<(), Error> {
    if json {
        return output::json(&json!({
            "sweep": sweep.spec().name,
            "version": anabranch_sweep::VERSION,
            "runs_done": table.len(),
            "runs_missing": table.missing(),
            "not_enough": table.unmet(),
            "files": files,
        }));
    }
    let mut text = format!("\n{}: {} points, {} runs", sweep.spec().name, sweep.points(), table.len());
    if table.missing() > 0 {
        text += &format!("; {} are missing", table.missing());
    }
    text.push('\n');
    if let Runs::Enough(enough) = &sweep.spec().runs {
        text += &match table.unmet() {
            [] => format!("the mean of {} meets the target precision at every point\n", enough.metric),
            unmet => {
                let numbers: Vec<String> = unmet.iter().take(SHOWN).map(usize::to_string).collect();
                let dots = if unmet.len() > SHOWN { " …" } else { "" };
                format!(
                    "{} runs are not enough for the mean of {} at {} points: {}{dots}\n",
                    enough.max,
                    enough.metric,
                    unmet.len(),
                    numbers.join(" ")
                )
            }
        };
    }
    for file in files {
        text += &format!("written: {}\n", file.display());
    }
    output::text(&text)
}
