//! Tables I to IV of section V, measured.

use super::Dtc;
use super::config::Mode;
use crate::dtc::TARGETS;
use crate::experiment::{self, Outcome, RunError, Settings};
use crate::plot::csv;
use crate::reproduction;
use crate::stats::{self, Summary};
use crate::targets;
use crate::verdict::{self, Figure};
use crate::work::Work;

/// Lengths of the chain in the tables.
pub const HOPS: [usize; 2] = [6, 11];
/// Losses in Tables I and II, with their names in the list of targets.
pub const LOSSES: [(f64, &str); 4] = [(0.0, "p00"), (0.05, "p05"), (0.1, "p10"), (0.15, "p15")];
/// Modes, with their names in reports.
pub const MODES: [(Mode, &str); 3] =
    [(Mode::Tcp, "TCP"), (Mode::Paper, "the paper's nodes"), (Mode::Improved, "our nodes")];
/// Rows of Tables I and II: metric, name in the list of targets, title.
const ROWS: [(&str, &str, &str); 3] = [
    ("data_transmissions", "data_tx", "data transmissions"),
    ("ack_transmissions", "ack_tx", "ACK transmissions"),
    ("end_to_end_retransmissions", "e2e_retransmissions", "end-to-end retransmissions"),
];

/// All measurements for the tables.
#[derive(Clone, PartialEq, Debug)]
pub struct Tables {
    /// 500 segments, for every combination of mode, hops and loss.
    full: Vec<(Mode, usize, f64, Outcome)>,
    /// 20 segments with 10 % loss and the paper's nodes: hops, result with flying start, result
    /// without.
    short: Vec<(usize, Outcome, Outcome)>,
    /// The paper's nodes with action 3.2, over 11 hops with 10 % loss.
    pub action_32: Outcome,
    /// The paper's nodes without action 3.2, with every segment cached.
    pub always: Outcome,
}

/// Number of runs of Table IV for each run of the other tables.
const SHORT: usize = 20;

fn outcome(settings: &Settings, work: &Work<'_>) -> Result<Outcome, RunError> {
    experiment::run(&Dtc, settings, work)
}

/// Values of a metric by run; NaN for a run that did not complete.
fn values(outcome: &Outcome, metric: &str) -> Vec<f64> {
    outcome.metric(metric).values.iter().map(|value| value.unwrap_or(f64::NAN)).collect()
}

impl Tables {
    /// Runs every cell.
    ///
    /// # Errors
    ///
    /// The first failed run.
    pub fn run(work: &Work<'_>) -> Result<Self, RunError> {
        let cells: Vec<(Mode, usize, f64)> = MODES
            .iter()
            .flat_map(|&(mode, _)| HOPS.iter().map(move |&hops| (mode, hops)))
            .flat_map(|(mode, hops)| LOSSES.iter().map(move |&(loss, _)| (mode, hops, loss)))
            .collect();
        let points: Vec<Settings> = cells.iter().map(|&(mode, hops, loss)| cell(mode, hops, loss)).collect();
        let outcomes = experiment::run_all(&Dtc, &points, work)?;
        let full = cells.into_iter().zip(outcomes);
        let full = full.map(|((mode, hops, loss), outcome)| (mode, hops, loss, outcome));
        let mut short = Vec::new();
        for hops in HOPS {
            let at = |flying_start| {
                let settings =
                    cell(Mode::Paper, hops, 0.1).with("segments", 20).with("flying_start", flying_start);
                // Short transfers vary much and take little time, so make more of them.
                outcome(&settings, &work.with_runs(work.runs * SHORT))
            };
            short.push((hops, at("on")?, at("off")?));
        }
        let action_32 = cell(Mode::Paper, 11, 0.1).with("duplicate_acks", "on");
        let always = cell(Mode::Paper, 11, 0.1).with("cache_probability", 1);
        Ok(Self {
            full: full.collect(),
            short,
            action_32: outcome(&action_32, work)?,
            always: outcome(&always, work)?,
        })
    }

    /// Number of runs that [`Tables::run`] makes.
    pub fn planned(runs: usize) -> usize {
        runs * (MODES.len() * HOPS.len() * LOSSES.len() + 2 * HOPS.len() * SHORT + 2)
    }

    /// The results of a cell.
    ///
    /// # Panics
    ///
    /// The tables have no such cell.
    pub fn cell(&self, mode: Mode, hops: usize, loss: f64) -> &Outcome {
        let found = self.full.iter().find(|c| c.0 == mode && c.1 == hops && (c.2 - loss).abs() < 1e-9);
        &found.expect("a cell of Tables I and II").3
    }

    /// Mean of a metric in a cell; NaN if no run completed.
    pub fn mean(&self, metric: &str, mode: Mode, hops: usize, loss: f64) -> f64 {
        self.cell(mode, hops, loss).mean(metric).unwrap_or(f64::NAN)
    }

    /// Summary of a metric over the runs of a cell; `None` if no run completed.
    pub fn summary(&self, metric: &str, mode: Mode, hops: usize, loss: f64) -> Option<Summary> {
        self.cell(mode, hops, loss).metric(metric).summary
    }

    /// Ratio of a metric between two modes, run by run.
    pub fn ratio(&self, metric: &str, modes: (Mode, Mode), hops: usize, loss: f64) -> Option<Summary> {
        let of = |mode| values(self.cell(mode, hops, loss), metric);
        stats::ratio(&of(modes.0), &of(modes.1)).ok()
    }

    /// Summary of `of(run)` over the runs of a cell; `None` if it has no value for any run.
    pub fn by_run(&self, of: impl Fn(usize) -> Option<f64>) -> Option<Summary> {
        Summary::by_run(self.full.first().map_or(0, |cell| cell.3.runs), of)
    }

    /// Table III: throughput with caching nodes, divided by plain TCP's, with 10 % loss.
    pub fn throughput(&self, mode: Mode, hops: usize) -> Option<Summary> {
        self.ratio("completion_s", (Mode::Tcp, mode), hops, 0.1)
    }

    /// Change of the data transmissions by action 3.2 in per cent, over 11 hops with 10 % loss.
    pub fn effect_of_action_32(&self) -> Option<Figure> {
        let without = values(self.cell(Mode::Paper, 11, 0.1), "data_transmissions");
        let ratio = stats::ratio(&values(&self.action_32, "data_transmissions"), &without).ok()?;
        Some(Figure::from(ratio).scaled(100.0, -100.0))
    }

    /// Factor by which the paper's nodes reduce the sender's retransmissions, averaged over all
    /// cells with losses.
    pub fn factors(&self) -> Option<Summary> {
        let cells: Vec<(usize, f64)> =
            HOPS.iter().flat_map(|&hops| LOSSES[1..].iter().map(move |&(loss, _)| (hops, loss))).collect();
        self.of_factors(&cells, |factors| factors.iter().sum::<f64>() / factors.len() as f64)
    }

    /// Applies `of` to the factors of some cells, with a jackknife estimate of the error.
    pub fn of_factors(&self, cells: &[(usize, f64)], of: impl Fn(&[f64]) -> f64) -> Option<Summary> {
        let values: Vec<[Vec<f64>; 2]> = cells
            .iter()
            .map(|&(hops, loss)| {
                [Mode::Tcp, Mode::Paper]
                    .map(|mode| values(self.cell(mode, hops, loss), "end_to_end_retransmissions"))
            })
            .collect();
        let runs = values.first().map_or(0, |[plain, _]| plain.len());
        let sum = |list: &[f64], without: Option<usize>| -> f64 {
            list.iter().enumerate().filter(|(i, _)| Some(*i) != without).map(|(_, v)| v).sum()
        };
        let all = |without| {
            let factors: Vec<f64> =
                values.iter().map(|[plain, paper]| sum(plain, without) / sum(paper, without)).collect();
            of(&factors)
        };
        stats::jackknife(runs, all).ok()
    }

    /// Table IV: by how many per cent flying start shortens a transfer of 20 segments.
    pub fn shortened(&self, hops: usize) -> Option<Summary> {
        self.saved_by_flying_start(hops, "completion_s")
    }

    /// How many per cent of a metric flying start saves in a transfer of 20 segments.
    pub fn saved_by_flying_start(&self, hops: usize, metric: &str) -> Option<Summary> {
        let (_, with, without) = self.short.iter().find(|s| s.0 == hops).expect("a length of Table IV");
        let ratio = stats::ratio(&values(with, metric), &values(without, metric)).ok()?;
        Some(ratio.scaled(-1.0, 1.0).scaled(100.0, 0.0))
    }

    /// Tables I to IV as CSV: file names and contents.
    pub fn csv(&self) -> Vec<(&'static str, String)> {
        let mut all: Vec<(&'static str, String)> = HOPS
            .iter()
            .zip(["table-1.csv", "table-2.csv"])
            .map(|(&hops, name)| (name, self.counts_csv(hops)))
            .collect();
        let mut text = csv::record(&["hops", "nodes", "published_percent", "times", "percent"]);
        for hops in HOPS {
            for (mode, word) in &MODES[1..] {
                let times = self.throughput(*mode, hops).map_or(f64::NAN, |t| t.mean);
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
            text += &csv::record(&[
                hops.to_string(),
                published,
                two(self.shortened(hops).map_or(f64::NAN, |s| s.mean)),
            ]);
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

    /// Tables I to IV beside the paper's.
    pub fn pages(&self, command: impl Fn(usize, &[&str]) -> String) -> Vec<reproduction::Table> {
        let runs = self.full.first().map_or(1, |cell| cell.3.runs);
        let names = ["table-1", "table-2", "table-3", "table-4"];
        let csv = |i: usize| self.csv().swap_remove(i).1;
        let count = |i: usize| {
            let hops = HOPS[i];
            let (head, rows) = self.counts(hops);
            let hops_set = format!("hops={hops}");
            reproduction::Table {
                name: names[i].to_owned(),
                title: format!("Table {}: {hops} hops, 500 segments", ["I", "II"][i]),
                note: "Our nodes are our own algorithm, which no paper has printed numbers of.".to_owned(),
                head,
                rows,
                csv: csv(i),
                command: command(runs, &["mode=tcp,dtc-paper,dtc", &hops_set, "loss=0,0.05,0.1,0.15"]),
            }
        };
        let texts = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let times =
            |mode, hops| self.throughput(mode, hops).map_or("none".to_owned(), |t| Figure::from(t).text());
        let third = reproduction::Table {
            name: names[2].to_owned(),
            title: "Table III: throughput with 10 % loss as a multiple of plain TCP's".to_owned(),
            note: "Printed are 450 and 670 %: 4.5 and 6.7 times, or 5.5 and 7.7 times (D18).".to_owned(),
            head: texts(&["hops", "printed, %", "the paper's nodes, times", "our nodes, times"]),
            rows: HOPS
                .map(|hops| {
                    let published = number(&format!("dtc.throughput_improvement.n{hops}"));
                    vec![hops.to_string(), published, times(Mode::Paper, hops), times(Mode::Improved, hops)]
                })
                .to_vec(),
            csv: csv(2),
            command: command(runs, &["mode=tcp,dtc-paper,dtc", "hops=6,11"]),
        };
        let shorter = |hops| self.shortened(hops).map_or("none".to_owned(), |s| Figure::from(s).text());
        let fourth = reproduction::Table {
            name: names[3].to_owned(),
            title: "Table IV: by how much flying start shortens 20 segments, 10 % loss, the paper's nodes"
                .to_owned(),
            note: format!("{} runs: short transfers differ much from each other.", runs * SHORT),
            head: texts(&["hops", "printed, %", "measured, %"]),
            rows: HOPS
                .map(|hops| {
                    let published = number(&format!("dtc.flying_start_duration_decrease.n{hops}"));
                    vec![hops.to_string(), published, shorter(hops)]
                })
                .to_vec(),
            csv: csv(3),
            command: command(
                runs * SHORT,
                &["mode=dtc-paper", "hops=6,11", "segments=20", "flying_start=on,off"],
            ),
        };
        vec![count(0), count(1), third, fourth]
    }

    /// Header and rows of Table I or II.
    fn counts(&self, hops: usize) -> (Vec<String>, Vec<Vec<String>>) {
        let mut head = vec!["row".to_owned(), "nodes".to_owned()];
        for (loss, _) in LOSSES {
            head.extend(["printed", "measured"].map(|whose| format!("{:.0} % loss: {whose}", 100.0 * loss)));
        }
        let mut rows = Vec::new();
        for (metric, id, row) in ROWS {
            for (mode, word) in MODES {
                let mut cells = vec![row.to_owned(), word.to_owned()];
                for (loss, column) in LOSSES {
                    let published = cell_value(mode, id, hops, column);
                    cells.push(if published.is_empty() { "–".to_owned() } else { published });
                    let ours = self.summary(metric, mode, hops, loss);
                    cells.push(ours.map_or("none".to_owned(), |s| Figure::from(s).text()));
                }
                rows.push(cells);
            }
        }
        let mut bound = vec!["omniscient bound".to_owned(), "computed".to_owned()];
        for (loss, _) in LOSSES {
            let of = self.mean("bound_omniscient", Mode::Tcp, hops, loss);
            bound.extend(["–".to_owned(), verdict::number(of)]);
        }
        rows.push(bound);
        (head, rows)
    }
}

/// Settings of a cell of Tables I and II.
pub(super) fn cell(mode: Mode, hops: usize, loss: f64) -> Settings {
    Settings::defaults(&Dtc).with("mode", mode.word()).with("hops", hops).with("loss", loss)
}

/// The published value of a cell; empty if there is none, as for our nodes.
fn cell_value(mode: Mode, row: &str, hops: usize, column: &str) -> String {
    let nodes = match mode {
        Mode::Tcp => "nodtc",
        Mode::Paper => "dtc",
        Mode::Improved => return String::new(),
    };
    number(&format!("dtc.{nodes}_{row}.n{hops}.{column}"))
}

/// A published number; empty if the list of targets has none of that name.
fn number(id: &str) -> String {
    let found = targets::read(TARGETS).into_iter().find(|t| t.id == id).and_then(|t| t.value);
    found.map(|value| value.to_string()).unwrap_or_default()
}

fn two(value: f64) -> String {
    format!("{value:.2}")
}
