//! Section VIII, measured: every deployment of the paper with every scheme, beside the printed
//! numbers.

use rayon::prelude::*;

use super::{Mptcp, MptcpPoint, Outcome, Scheme};
use crate::experiment::{RunError, Settings};
use crate::mptcp::TARGETS;
use crate::plot::csv;
use crate::reproduction;
use crate::stats::{self, Summary};
use crate::targets;
use crate::verdict::Figure;
use crate::work::Work;

/// A deployment of section VIII.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deployment {
    /// Name in the list of targets.
    pub id: &'static str,
    /// Name in reports.
    pub title: &'static str,
    /// The value of the parameter `deployment`.
    shape: &'static str,
    nodes: usize,
    multi_link: usize,
}

/// Deployments of section VIII-B to D, in the paper's order.
pub const DEPLOYMENTS: [Deployment; 8] = [
    square("n10", "square 10", 10),
    square("n20", "square 20", 20),
    square("n30", "square 30", 30),
    square("n40", "square 40", 40),
    square("n50", "square 50", 50),
    Deployment { id: "circle50", title: "sunflower 50", shape: "sunflower", nodes: 50, multi_link: 0 },
    Deployment { id: "corner25", title: "corner 25", shape: "corner", nodes: 25, multi_link: 0 },
    Deployment {
        id: "corner25ml",
        title: "corner 25, 1 multi-link",
        shape: "corner",
        nodes: 25,
        multi_link: 1,
    },
];

const fn square(id: &'static str, title: &'static str, nodes: usize) -> Deployment {
    Deployment { id, title, shape: "square", nodes, multi_link: 0 }
}

/// Transport of the packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// C-MPTCP.
    Conventional,
    /// P-MPTCP as the paper prints it, by which the claims are judged.
    Printed,
    /// Our variant: one path at a time, with the others as backups.
    Ours,
}

/// All schemes, with their names in reports.
pub const WAYS: [(Way, &str); 3] =
    [(Way::Conventional, "conventional"), (Way::Printed, "the paper's way"), (Way::Ours, "ours")];

/// Results kept of each run.
#[derive(Clone, PartialEq, Debug)]
pub struct Digest {
    transmissions: f64,
    delivery_percent: f64,
    delivered: Option<f64>,
    kilobits: Option<f64>,
    latencies: Vec<Option<f64>>,
    /// Longest period in seconds without transmissions before the last delivery.
    pub silence: f64,
}

/// A quantity that the paper prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// Number of data segments and acknowledgements passed to a radio.
    Transmissions,
    /// Time until the last packet was delivered, in seconds.
    DeliveryTime,
    /// Payload over that time, in kbit/s.
    Throughput,
    /// Share of the data segments passed to a radio that reached the next node, in per cent.
    DeliveryRatio,
}

/// All quantities, with their names in the list of targets and their titles.
pub const QUANTITIES: [(Quantity, &str, &str); 4] = [
    (Quantity::Transmissions, "transmissions", "Transmissions of data segments and acknowledgements"),
    (Quantity::DeliveryTime, "delivery_time", "Seconds until the last packet was delivered"),
    (Quantity::Throughput, "throughput", "Throughput, kbit/s"),
    (Quantity::DeliveryRatio, "pdr", "Delivery ratio, per cent"),
];

impl Digest {
    fn new(outcome: &Outcome, payload: f64) -> Self {
        let mut latencies = outcome.latencies.clone();
        latencies.sort_by(f64::total_cmp);
        let at = |percent: usize| latencies.get((percent * latencies.len()).div_ceil(100).checked_sub(1)?);
        Self {
            transmissions: outcome.transmissions() as f64,
            delivery_percent: 100.0 * outcome.delivery_ratio(),
            delivered: outcome.delivered(1.0),
            kilobits: outcome.throughput(payload).map(|bits| bits / 1e3),
            latencies: (1..=100).map(|percent| at(percent).copied()).collect(),
            silence: silence(outcome),
        }
    }

    /// The quantity in this run; `None` if it requires that all packets were delivered and they
    /// were not.
    pub fn of(&self, quantity: Quantity) -> Option<f64> {
        match quantity {
            Quantity::Transmissions => Some(self.transmissions),
            Quantity::DeliveryTime => self.delivered,
            Quantity::Throughput => self.kilobits,
            Quantity::DeliveryRatio => Some(self.delivery_percent),
        }
    }
}

fn silence(outcome: &Outcome) -> f64 {
    let activity = &outcome.activity;
    let last = outcome.arrivals.last().copied().unwrap_or(f64::INFINITY);
    let sent = activity.data.iter().chain(&activity.acks).copied();
    let mut sent: Vec<f64> = sent.filter(|at| *at <= last).collect();
    sent.sort_by(f64::total_cmp);
    sent.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max)
}

/// Results of a deployment with a scheme.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// The runs, in order.
    pub runs: Vec<Digest>,
    /// The complete first run.
    pub first: Outcome,
}

/// All measurements of section VIII.
#[derive(Clone, PartialEq, Debug)]
pub struct Tables {
    /// By deployment, then by scheme, in the order of [`DEPLOYMENTS`] and [`WAYS`].
    cells: Vec<Cell>,
}

impl Deployment {
    /// Parameters of the deployment's runs.
    pub fn settings(&self, way: Way) -> Settings {
        let scheme = match way {
            Way::Conventional => Scheme::Conventional,
            Way::Printed => Scheme::Proposed,
            Way::Ours => Scheme::Ours,
        };
        Settings::defaults(&Mptcp)
            .with("scheme", scheme.word())
            .with("deployment", self.shape)
            .with("nodes", self.nodes)
            .with("multi_link", self.multi_link)
    }
}

impl Tables {
    /// Makes `work.runs` runs (at least one) of every cell.
    ///
    /// # Errors
    ///
    /// The first failed run.
    pub fn run(work: &Work<'_>) -> Result<Self, RunError> {
        let Work { runs, seed, .. } = *work;
        let settings = DEPLOYMENTS.iter().flat_map(|place| WAYS.iter().map(|(way, _)| place.settings(*way)));
        let point = |settings| MptcpPoint::new(&work.settings(&Mptcp, &settings));
        let points = settings.map(point).collect::<Result<Vec<_>, _>>()?;
        let one = |i: usize| {
            let point = &points[i / runs];
            let outcome = point.outcome(seed, (i % runs) as u64)?;
            work.ran();
            let digest = Digest::new(&outcome, point.traffic().payload());
            // Times of a run take much memory, and only those of the first run are drawn.
            Ok((digest, i.is_multiple_of(runs).then_some(outcome)))
        };
        let all: Vec<_> =
            (0..points.len() * runs).into_par_iter().map(one).collect::<Result<_, RunError>>()?;
        let mut all = all.into_iter();
        let cell = |_| {
            let (digests, first): (Vec<_>, Vec<_>) = all.by_ref().take(runs).unzip();
            Cell { runs: digests, first: first.into_iter().flatten().next().expect("there is a first run") }
        };
        Ok(Self { cells: points.iter().map(cell).collect() })
    }

    /// Number of runs that [`Tables::run`] makes.
    pub const fn planned(runs: usize) -> usize {
        DEPLOYMENTS.len() * WAYS.len() * runs
    }

    /// A cell, by the deployment's name in the list of targets.
    ///
    /// # Panics
    ///
    /// There is no such deployment.
    pub fn cell(&self, id: &str, way: Way) -> &Cell {
        let place = DEPLOYMENTS.iter().position(|d| d.id == id).expect("a deployment of section VIII");
        let way = WAYS.iter().position(|w| w.0 == way).expect("every way is listed");
        &self.cells[place * WAYS.len() + way]
    }

    /// Summary of a quantity over the runs that have it; `None` if none has.
    pub fn summary(&self, id: &str, way: Way, quantity: Quantity) -> Option<Summary> {
        let values: Vec<f64> = self.cell(id, way).runs.iter().filter_map(|run| run.of(quantity)).collect();
        Summary::of(&values).ok()
    }

    /// Summary of `of(run)` over the runs for which it has a value; `None` if there are none.
    pub fn by_run(&self, of: impl Fn(usize) -> Option<f64>) -> Option<Summary> {
        Summary::by_run(self.cells.first().map_or(0, |cell| cell.runs.len()), of)
    }

    /// Percentile of the latencies of a run's packets, in seconds.
    pub fn latency(&self, id: &str, way: Way, run: usize, percent: usize) -> Option<f64> {
        self.cell(id, way).runs[run].latencies[percent - 1]
    }

    /// Ratio of a quantity between two cells, run by run.
    pub fn ratio(&self, a: (&str, Way), b: (&str, Way), quantity: Quantity) -> Option<Summary> {
        let (left, right) = self.pairs(a, b, quantity);
        stats::ratio(&left, &right).ok()
    }

    /// Difference of a quantity between two cells, run by run.
    pub fn difference(&self, a: (&str, Way), b: (&str, Way), quantity: Quantity) -> Option<Summary> {
        let (left, right) = self.pairs(a, b, quantity);
        stats::paired(&left, &right).ok()
    }

    fn pairs(&self, a: (&str, Way), b: (&str, Way), quantity: Quantity) -> (Vec<f64>, Vec<f64>) {
        let runs = self.cell(a.0, a.1).runs.iter().zip(&self.cell(b.0, b.1).runs);
        runs.filter_map(|(a, b)| a.of(quantity).zip(b.of(quantity))).unzip()
    }

    /// Latencies that 1, 2, ... 100 % of a run's packets did not exceed, in seconds, as means over
    /// the runs.
    pub fn latencies(&self, id: &str, way: Way) -> Vec<f64> {
        let runs = &self.cell(id, way).runs;
        let mean = |i: usize| {
            let values: Vec<f64> = runs.iter().filter_map(|run| run.latencies[i]).collect();
            Summary::of(&values).map_or(f64::NAN, |s| s.mean)
        };
        (0..100).map(mean).collect()
    }

    /// All numbers as CSV.
    pub fn csv(&self) -> String {
        let mut text = csv::record(&["quantity", "deployment", "scheme", "published", "mean", "ci95"]);
        for (quantity, name, _) in QUANTITIES {
            for place in DEPLOYMENTS {
                for (way, word) in WAYS {
                    let summary = self.summary(place.id, way, quantity);
                    let mean = summary.map(|s| s.mean.to_string()).unwrap_or_default();
                    let ci95 = summary.and_then(|s| s.ci95).map(|c| c.to_string()).unwrap_or_default();
                    let printed = printed(place.id, name, way);
                    text += &csv::record(&[name, place.id, word, &printed, &mean, &ci95]);
                }
            }
        }
        text
    }

    /// One table for each quantity, with every deployment beside the printed numbers.
    pub fn pages(&self, command: &str) -> Vec<reproduction::Table> {
        let page = |(quantity, name, title): (Quantity, &str, &str)| {
            let head = [
                "deployment",
                "printed: C",
                "conventional",
                "printed: P",
                "the paper's way",
                "ours",
                "the paper's way against conventional",
                "ours against conventional",
            ];
            let mut lines = csv::record(&head);
            let row = |place: &Deployment| {
                let printed = |way| match printed(place.id, name, way) {
                    none if none.is_empty() => "–".to_owned(),
                    number => number,
                };
                let shown = |way| {
                    let summary = self.summary(place.id, way, quantity);
                    summary.map_or("none".to_owned(), |s| Figure::from(s).text())
                };
                let against = |way| self.against(place.id, way, quantity).unwrap_or("none".to_owned());
                vec![
                    place.title.to_owned(),
                    printed(Way::Conventional),
                    shown(Way::Conventional),
                    printed(Way::Ours),
                    shown(Way::Printed),
                    shown(Way::Ours),
                    against(Way::Printed),
                    against(Way::Ours),
                ]
            };
            let rows: Vec<Vec<String>> = DEPLOYMENTS.iter().map(row).collect();
            lines += &rows.iter().map(|row| csv::record(row)).collect::<String>();
            reproduction::Table {
                name: format!("table-{}", name.replace('_', "-")),
                title: title.to_owned(),
                note: String::new(),
                head: head.map(str::to_owned).to_vec(),
                rows,
                csv: lines,
                command: command.to_owned(),
            }
        };
        QUANTITIES.map(page).to_vec()
    }

    fn against(&self, id: &str, way: Way, quantity: Quantity) -> Option<String> {
        let (ours, other) = ((id, way), (id, Way::Conventional));
        if quantity == Quantity::DeliveryRatio {
            return Some(Figure::from(self.difference(ours, other, quantity)?).text() + " points");
        }
        let ratio = Figure::from(self.ratio(ours, other, quantity)?).scaled(100.0, -100.0);
        let sign = if ratio.mean > 0.0 { "+" } else { "" };
        Some(format!("{sign}{} %", ratio.text()))
    }
}

/// The printed number; empty if there is none, as for our scheme.
fn printed(place: &str, quantity: &str, way: Way) -> String {
    let scheme = match way {
        Way::Conventional => "C",
        Way::Printed | Way::Ours => "P",
    };
    let id = format!("mptcp.{place}.{quantity}.{scheme}");
    let found = targets::read(TARGETS).into_iter().find(|t| t.id == id).and_then(|t| t.value);
    found.map(|value| value.to_string()).unwrap_or_default()
}
