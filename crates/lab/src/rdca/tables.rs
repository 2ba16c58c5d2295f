//! Tables 2 and 3, and the numbers behind the figures, as pages.

use super::sweeps::{CONTENDERS, Contender, Load, Quantity, SWEEP_RATE, Sweeps};
use crate::plot::csv;
use crate::stats::Summary;
use crate::targets;

/// A table of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Table {
    /// Its number.
    pub id: u8,
    /// What it shows.
    pub title: &'static str,
    /// The quantity's name in the list of targets.
    pub name: &'static str,
    /// The quantity.
    pub quantity: Quantity,
}

/// Both.
pub const TABLES: [Table; 2] = [
    Table { id: 2, title: "Throughput, kB/s", name: "throughput", quantity: Quantity::Throughput },
    Table { id: 3, title: "Mean delay, s", name: "delay", quantity: Quantity::Delay },
];

/// The columns of both.
const SENDERS: [usize; 4] = [1, 3, 5, 7];

impl Table {
    /// The table as CSV: what is printed and ours.
    pub fn csv(&self, sweeps: &Sweeps) -> String {
        let header = ["protocol", "senders", "published_mean", "published_std", "mean", "ci95", "std"];
        let mut text = csv::record(&header);
        for contender in CONTENDERS {
            for senders in SENDERS {
                let Ours { summary, deviation } = self.ours(sweeps, contender, senders);
                let [mean, std] = ["mean", "std"].map(|s| self.printed(contender, s, senders));
                let text_of = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
                text += &csv::record(&[
                    contender.title.to_owned(),
                    senders.to_string(),
                    text_of(mean),
                    text_of(std),
                    text_of(summary.map(|s| s.mean)),
                    text_of(summary.and_then(|s| s.ci95)),
                    text_of(deviation),
                ]);
            }
        }
        text
    }

    fn markdown(&self, sweeps: &Sweeps) -> String {
        let mut text = format!("\n## Table {}: {}\n\n| protocol |", self.id, self.title);
        for senders in SENDERS {
            text += &format!(" {senders}: the paper | ours |");
        }
        text += &format!("\n|---|{}\n", "---|".repeat(2 * SENDERS.len()));
        for contender in CONTENDERS {
            text += &format!("| {} |", contender.title);
            for senders in SENDERS {
                let [mean, std] = ["mean", "std"].map(|s| self.printed(contender, s, senders));
                let printed =
                    mean.zip(std).map_or("–".to_owned(), |(mean, std)| format!("{mean} (σ {std})"));
                let Ours { summary, deviation } = self.ours(sweeps, contender, senders);
                let spread = deviation.map(|d| format!(" (σ {})", rounded(d))).unwrap_or_default();
                let ours = summary.map_or("none".to_owned(), |s| shown(&s) + &spread);
                text += &format!(" {printed} | {ours} |");
            }
            text.push('\n');
        }
        if self.quantity == Quantity::Throughput {
            text += "| capacity, datagrams |";
            for senders in SENDERS {
                text += &format!(" – | {} |", shown(&sweeps.capacity(senders)));
            }
            text.push('\n');
        }
        text
    }

    fn ours(&self, sweeps: &Sweeps, contender: Contender, senders: usize) -> Ours {
        let load = Load { senders, rate: SWEEP_RATE };
        Ours {
            summary: sweeps.summary(load, contender.protocol, self.quantity),
            deviation: sweeps.deviation(load, contender.protocol, self.quantity),
        }
    }

    fn printed(&self, contender: Contender, statistic: &str, senders: usize) -> Option<f64> {
        printed(&format!("rdca.{}.{statistic}.{}.s{senders}", self.name, contender.target?))
    }
}

struct Ours {
    summary: Option<Summary>,
    deviation: Option<f64>,
}

/// The number that the paper prints under this name.
pub(super) fn printed(id: &str) -> Option<f64> {
    let value = targets::rdca().into_iter().find(|t| t.id == id)?.value?;
    value.as_float().or(value.as_integer().map(|n| n as f64))
}

/// The quantities of the pages behind the figures.
const QUANTITIES: [(Quantity, &str); 7] = [
    (Quantity::Throughput, "Throughput, kB/s"),
    (Quantity::DeliveryRatio, "Delivery ratio, per cent"),
    (Quantity::Delay, "Mean delay, s"),
    (Quantity::Energy, "Energy per 1000 packets, J"),
    (Quantity::Control, "Control packets per data packet"),
    (Quantity::Lost, "Data packets that did not come to the sink"),
    (Quantity::Fairness, "Jain's index over the senders"),
];

/// Both tables, then every number of the figures, as a page.
pub fn markdown(sweeps: &Sweeps, runs: usize, seed: u64) -> String {
    let mut text = format!(
        "# Section 4's numbers beside ours\n\n`anabranch lab reproduce rdca`, {runs} runs, seed {seed}. Written by the \
         program. Means with 95 % intervals; σ is the standard deviation over the runs. Table 2 is in kB/s, not in \
         packets per second (erratum H1), and the printed extremes are none (H2) and left out. The capacity is what \
         datagrams bring to the sink at the best of {} constant rates.\n",
        super::sweeps::TRIED.len()
    );
    for table in TABLES {
        text += &table.markdown(sweeps);
    }
    for (quantity, title) in QUANTITIES {
        text += &format!("\n## {title}: senders at {} kB/s\n\n", SWEEP_RATE / 1000);
        text += &rows(sweeps, &sweeps.by_senders(), quantity, |load| load.senders.to_string());
    }
    for (quantity, title) in QUANTITIES.into_iter().filter(|q| q.0 != Quantity::Fairness) {
        text += &format!("\n## {title}: one sender\n\n");
        text += &rows(sweeps, &sweeps.by_rate(), quantity, |load| format!("{} kB/s", load.rate / 1000));
    }
    text
}

fn rows(sweeps: &Sweeps, loads: &[Load], quantity: Quantity, name: impl Fn(&Load) -> String) -> String {
    let mut text = "| |".to_owned();
    for load in loads {
        text += &format!(" {} |", name(load));
    }
    text += &format!("\n|---|{}\n", "---|".repeat(loads.len()));
    for contender in CONTENDERS {
        text += &format!("| {} |", contender.title);
        for load in loads {
            let found = sweeps.summary(*load, contender.protocol, quantity);
            text += &format!(" {} |", found.map_or("none".to_owned(), |s| shown(&s)));
        }
        text.push('\n');
    }
    if quantity == Quantity::Throughput {
        text += "| capacity, datagrams |";
        for load in loads {
            text += &format!(" {} |", shown(&sweeps.capacity(load.senders)));
        }
        text.push('\n');
    }
    text
}

/// A number with as many digits as its size asks for.
pub(super) fn rounded(value: f64) -> String {
    format!("{value:.*}", digits(value))
}

fn digits(value: f64) -> usize {
    match value.abs() {
        large if large >= 100.0 => 0,
        large if large >= 10.0 => 1,
        large if large >= 1.0 => 2,
        large if large >= 0.1 => 3,
        _ => 4,
    }
}

/// A mean with its interval.
pub(super) fn shown(summary: &Summary) -> String {
    let digits = digits(summary.mean);
    match summary.ci95 {
        Some(sure) => format!("{:.digits$} ± {sure:.digits$}", summary.mean),
        None => format!("{:.digits$}", summary.mean),
    }
}
