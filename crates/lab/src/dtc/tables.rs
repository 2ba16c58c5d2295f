//! Section V: Tables I to IV, measured.

use super::config::{Config, Mode};
use super::{Dtc, DtcPoint};
use crate::experiment::{self, Outcome, Point, RunError};
use crate::plot::csv;
use crate::targets;

/// The lengths of the chain in the tables.
pub const HOPS: [usize; 2] = [6, 11];
/// The losses in Tables I and II, with the names that the list of targets has for them.
pub const LOSSES: [(f64, &str); 4] = [(0.0, "p00"), (0.05, "p05"), (0.1, "p10"), (0.15, "p15")];
/// The modes, with the words of the reports.
pub const MODES: [(Mode, &str); 3] =
    [(Mode::Tcp, "TCP"), (Mode::Paper, "the paper's nodes"), (Mode::Improved, "our nodes")];
/// The rows of Tables I and II: metric, its name in the list of targets, title.
const ROWS: [(&str, &str, &str); 3] = [
    ("data_transmissions", "data_tx", "data transmissions"),
    ("ack_transmissions", "ack_tx", "ACK transmissions"),
    ("end_to_end_retransmissions", "e2e_retransmissions", "end-to-end retransmissions"),
];

/// Everything that the tables need.
#[derive(Clone, PartialEq, Debug)]
pub struct Tables {
    /// 500 segments: every combination of mode, hops and loss.
    full: Vec<(Mode, usize, f64, Outcome)>,
    /// 20 segments with 10 % loss and the paper's nodes: hops, with flying start, without.
    short: Vec<(usize, Outcome, Outcome)>,
}

fn outcome(config: Config, runs: usize, seed: u64) -> Result<Outcome, RunError> {
    experiment::run(&Dtc, &DtcPoint::new(config), runs, seed)
}

impl Tables {
    /// Runs every cell.
    ///
    /// # Errors
    ///
    /// The first that could not be run.
    pub fn run(runs: usize, seed: u64) -> Result<Self, RunError> {
        let cells: Vec<Config> = MODES
            .iter()
            .flat_map(|&(mode, _)| HOPS.iter().map(move |&hops| (mode, hops)))
            .flat_map(|(mode, hops)| LOSSES.iter().map(move |&(loss, _)| (mode, hops, loss)))
            .map(|(mode, hops, loss)| cell(mode, hops, loss))
            .collect();
        let points: Vec<Box<dyn Point>> =
            cells.iter().map(|c| Box::new(DtcPoint::new(c.clone())) as Box<dyn Point>).collect();
        let outcomes = experiment::run_all(&Dtc, &points, runs, seed)?;
        let full = cells.into_iter().zip(outcomes).map(|(c, outcome)| (c.mode, c.hops, c.loss, outcome));
        let mut short = Vec::new();
        for hops in HOPS {
            let at = |flying_start| {
                let config = Config { segments: 20, flying_start, ..cell(Mode::Paper, hops, 0.1) };
                // Short transfers differ much from each other, and cost little.
                outcome(config, runs * 20, seed)
            };
            short.push((hops, at(true)?, at(false)?));
        }
        Ok(Self { full: full.collect(), short })
    }

    /// The outcome of a cell.
    ///
    /// # Panics
    ///
    /// If the tables have no such cell.
    pub fn cell(&self, mode: Mode, hops: usize, loss: f64) -> &Outcome {
        let found = self.full.iter().find(|c| c.0 == mode && c.1 == hops && (c.2 - loss).abs() < 1e-9);
        &found.expect("a cell of Tables I and II").3
    }

    /// The mean of a metric in a cell; no number where no run has ended.
    pub fn mean(&self, metric: &str, mode: Mode, hops: usize, loss: f64) -> f64 {
        self.cell(mode, hops, loss).mean(metric).unwrap_or(f64::NAN)
    }

    /// Table III: the throughput with caching nodes as a multiple of plain TCP's, with 10 % loss.
    pub fn throughput(&self, mode: Mode, hops: usize) -> f64 {
        let of = |mode| self.mean("completion_s", mode, hops, 0.1);
        of(Mode::Tcp) / of(mode)
    }

    /// Table IV: by how much flying start shortens a transfer of 20 segments, in per cent.
    pub fn shortened(&self, hops: usize) -> f64 {
        let (_, with, without) = self.short.iter().find(|s| s.0 == hops).expect("a length of Table IV");
        let of = |outcome: &Outcome| outcome.mean("completion_s").unwrap_or(f64::NAN);
        100.0 * (1.0 - of(with) / of(without))
    }

    /// Tables I to IV as pages: their names and texts.
    pub fn csv(&self) -> Vec<(&'static str, String)> {
        let mut all: Vec<(&'static str, String)> = HOPS
            .iter()
            .zip(["table-1.csv", "table-2.csv"])
            .map(|(&hops, name)| (name, self.counts_csv(hops)))
            .collect();
        let mut text = csv::record(&["hops", "nodes", "published_percent", "times", "percent"]);
        for hops in HOPS {
            for (mode, word) in &MODES[1..] {
                let times = self.throughput(*mode, hops);
                let published = number(&format!("dtc.throughput_improvement.n{hops}"));
                let fields =
                    [hops.to_string(), (*word).to_owned(), published, two(times), two(100.0 * (times - 1.0))];
                text += &csv::record(&fields);
            }
        }
        all.push(("table-3.csv", text));
        let mut text = csv::record(&["hops", "published_percent", "percent"]);
        for hops in HOPS {
            let published = number(&format!("dtc.flying_start_duration_decrease.n{hops}"));
            text += &csv::record(&[hops.to_string(), published, two(self.shortened(hops))]);
        }
        all.push(("table-4.csv", text));
        all
    }

    fn counts_csv(&self, hops: usize) -> String {
        let mut text = csv::record(&["row", "nodes", "loss", "published", "mean", "ci95"]);
        for (metric, id, _) in ROWS {
            for (mode, word) in MODES {
                for (loss, column) in LOSSES {
                    let summary = self.cell(mode, hops, loss).metric(metric).summary;
                    let sure = summary.and_then(|s| s.ci95).map(two).unwrap_or_default();
                    let mean = summary.map(|s| two(s.mean)).unwrap_or_default();
                    let fields = [
                        metric.to_owned(),
                        word.to_owned(),
                        loss.to_string(),
                        cell_value(mode, id, hops, column),
                        mean,
                        sure,
                    ];
                    text += &csv::record(&fields);
                }
            }
        }
        text
    }

    /// All tables as one page.
    pub fn markdown(&self, runs: usize, seed: u64) -> String {
        let mut text = format!(
            "# The DTC paper's tables beside ours\n\n`anabranch lab reproduce dtc`, {runs} runs, seed {seed}. Written \
             by the program. Published / ours (95 % interval).\n"
        );
        for (hops, title) in HOPS.iter().zip(["Table I", "Table II"]) {
            text += &format!("\n## {title}: {hops} hops\n\n| row | nodes |");
            text += &LOSSES.map(|(loss, _)| format!(" {:.0} % |", 100.0 * loss)).concat();
            text += "\n|---|---|---|---|---|---|\n";
            for (metric, id, row) in ROWS {
                for (mode, word) in MODES {
                    text += &format!("| {row} | {word} |");
                    for (loss, column) in LOSSES {
                        let published = cell_value(mode, id, *hops, column);
                        let ours = self
                            .cell(mode, *hops, loss)
                            .metric(metric)
                            .summary
                            .map_or("none".to_owned(), |s| shown(s.mean, s.ci95));
                        let published = if published.is_empty() { "–" } else { &published };
                        text += &format!(" {published} / {ours} |");
                    }
                    text.push('\n');
                }
            }
            text += "| omniscient bound | |";
            for (loss, _) in LOSSES {
                text += &format!(" {:.0} |", self.mean("bound_omniscient", Mode::Tcp, *hops, loss));
            }
            text.push('\n');
        }
        text += "\n## Table III: throughput, 10 % loss, as a multiple of plain TCP's\n\n\
                 The paper says 450 % and 670 %: 4.5 and 6.7 times, or 5.5 and 7.7 times (erratum D18).\n\n\
                 | hops | published | the paper's nodes | our nodes |\n|---|---|---|---|\n";
        for hops in HOPS {
            let published = number(&format!("dtc.throughput_improvement.n{hops}"));
            let [paper, ours] = [Mode::Paper, Mode::Improved].map(|mode| self.throughput(mode, hops));
            text += &format!("| {hops} | {published} % | {paper:.1} | {ours:.1} |\n");
        }
        text += "\n## Table IV: how much flying start shortens 20 segments, 10 % loss, the paper's nodes\n\n\
                 | hops | published | ours |\n|---|---|---|\n";
        for hops in HOPS {
            let published = number(&format!("dtc.flying_start_duration_decrease.n{hops}"));
            text += &format!("| {hops} | {published} % | {:.1} % |\n", self.shortened(hops));
        }
        text
    }
}

/// The configuration of a cell of Tables I and II.
pub(super) fn cell(mode: Mode, hops: usize, loss: f64) -> Config {
    Config { mode, hops, loss, cache_probability: mode.cache_probability(), ..Config::default() }
}

/// What the paper prints in a cell; empty where it prints nothing, as for our nodes.
fn cell_value(mode: Mode, row: &str, hops: usize, column: &str) -> String {
    let nodes = match mode {
        Mode::Tcp => "nodtc",
        Mode::Paper => "dtc",
        Mode::Improved => return String::new(),
    };
    number(&format!("dtc.{nodes}_{row}.n{hops}.{column}"))
}

/// A printed number; empty if the list of targets has none of that name.
fn number(id: &str) -> String {
    let found = targets::dtc().into_iter().find(|t| t.id == id).and_then(|t| t.value);
    found.map(|value| value.to_string()).unwrap_or_default()
}

fn two(value: f64) -> String {
    format!("{value:.2}")
}

fn shown(mean: f64, ci95: Option<f64>) -> String {
    match ci95.filter(|c| *c > 0.0) {
        Some(sure) if mean < 1000.0 => format!("{mean:.1} ± {sure:.1}"),
        Some(sure) => format!("{mean:.0} ± {sure:.0}"),
        None => format!("{mean:.0}"),
    }
}
