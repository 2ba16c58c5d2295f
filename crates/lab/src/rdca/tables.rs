//! Tables 2 and 3 and the numbers behind the figures, as tables of the report.

use super::sweeps::{CONTENDERS, Contender, Load, Quantity, SWEEP_RATE, Sweeps};
use crate::plot::csv;
use crate::rdca::TARGETS;
use crate::reproduction;
use crate::stats::Summary;
use crate::targets;
use crate::verdict::{Figure, number};

/// A table of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Table {
    /// Number of the table.
    pub id: u8,
    /// Title.
    pub title: &'static str,
    /// Name of the quantity in the list of targets.
    pub name: &'static str,
    /// The quantity.
    pub quantity: Quantity,
}

/// Both tables.
pub const TABLES: [Table; 2] = [
    Table { id: 2, title: "Throughput, kB/s", name: "throughput", quantity: Quantity::Throughput },
    Table { id: 3, title: "Mean delay, s", name: "delay", quantity: Quantity::Delay },
];

/// Numbers of senders, the columns of both tables.
const SENDERS: [usize; 4] = [1, 3, 5, 7];

impl Table {
    /// The table as CSV, with printed and measured numbers.
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
                    text_of(deviation.map(|d| d.mean)),
                ]);
            }
        }
        text
    }

    /// The table beside the paper's.
    pub fn page(&self, sweeps: &Sweeps, command: String) -> reproduction::Table {
        let mut head = vec!["protocol".to_owned()];
        for senders in SENDERS {
            let plural = if senders == 1 { "sender" } else { "senders" };
            head.extend(["printed", "measured"].map(|whose| format!("{senders} {plural}: {whose}")));
        }
        let mut rows: Vec<Vec<String>> = Vec::new();
        for contender in CONTENDERS {
            let mut row = vec![contender.title.to_owned()];
            for senders in SENDERS {
                let [mean, std] = ["mean", "std"].map(|s| self.printed(contender, s, senders));
                let printed = mean.zip(std).map(|(mean, std)| format!("{mean} (σ {std})"));
                row.push(printed.unwrap_or("–".to_owned()));
                let Ours { summary, deviation } = self.ours(sweeps, contender, senders);
                let spread = deviation.map(|d| format!(" (σ {})", number(d.mean))).unwrap_or_default();
                row.push(summary.map_or("none".to_owned(), |s| Figure::from(s).text() + &spread));
            }
            rows.push(row);
        }
        if self.quantity == Quantity::Throughput {
            let of = |senders| ["–".to_owned(), Figure::from(sweeps.capacity(senders)).text()];
            let row = ["capacity, datagrams".to_owned()].into_iter().chain(SENDERS.into_iter().flat_map(of));
            rows.push(row.collect());
        }
        reproduction::Table {
            name: format!("table-{}", self.id),
            title: format!("Table {}: {}, senders at {} kB/s", self.id, self.title, SWEEP_RATE / 1000),
            note: "σ is the standard deviation over the runs. Table 2 is in kB/s, not in packets per second (H1); the printed \
                   extremes are none (H2), and left out."
                .to_owned(),
            head,
            rows,
            csv: self.csv(sweeps),
            command,
        }
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
    deviation: Option<Summary>,
}

/// The printed number of this name.
pub(super) fn printed(id: &str) -> Option<f64> {
    targets::read(TARGETS).iter().find(|t| t.id == id)?.number()
}

/// Quantities of the tables behind the figures.
const QUANTITIES: [(Quantity, &str); 7] = [
    (Quantity::Throughput, "Throughput, kB/s"),
    (Quantity::DeliveryRatio, "Delivery ratio, per cent"),
    (Quantity::Delay, "Mean delay, s"),
    (Quantity::Energy, "Energy per 1000 packets, J"),
    (Quantity::Control, "Control packets per data packet"),
    (Quantity::Lost, "Data packets that did not come to the sink"),
    (Quantity::Fairness, "Jain's index over the senders"),
];

/// All numbers of the figures: one table for each quantity and sweep.
pub fn pages(sweeps: &Sweeps, commands: [&str; 2]) -> Vec<reproduction::Table> {
    let about = format!("senders at {} kB/s", SWEEP_RATE / 1000);
    let by_senders = QUANTITIES.into_iter().map(|quantity| {
        let loads = sweeps.by_senders();
        rows(sweeps, &loads, (quantity, "senders", &about), commands[0], |load| load.senders.to_string())
    });
    let several = QUANTITIES.into_iter().filter(|q| q.0 != Quantity::Fairness);
    let by_rate = several.map(|quantity| {
        let loads = sweeps.by_rate();
        let name = |load: &Load| format!("{} kB/s", load.rate / 1000);
        rows(sweeps, &loads, (quantity, "rate", "one sender"), commands[1], name)
    });
    by_senders.chain(by_rate).collect()
}

/// A quantity with its title, the varied parameter, and a note.
type About<'a> = ((Quantity, &'static str), &'static str, &'a str);

fn rows(
    sweeps: &Sweeps,
    loads: &[Load],
    ((quantity, title), by, about): About<'_>,
    command: &str,
    name: impl Fn(&Load) -> String,
) -> reproduction::Table {
    let head: Vec<String> = ["protocol".to_owned()].into_iter().chain(loads.iter().map(name)).collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for contender in CONTENDERS {
        let of = |load: &Load| {
            let found = sweeps.summary(*load, contender.protocol, quantity);
            found.map_or("none".to_owned(), |s| Figure::from(s).text())
        };
        rows.push([contender.title.to_owned()].into_iter().chain(loads.iter().map(of)).collect());
    }
    if quantity == Quantity::Throughput {
        let of = |load: &Load| Figure::from(sweeps.capacity(load.senders)).text();
        rows.push(["capacity, datagrams".to_owned()].into_iter().chain(loads.iter().map(of)).collect());
    }
    let csv = [&head].into_iter().chain(&rows).map(|row| csv::record(row)).collect();
    let word = format!("{quantity:?}").to_lowercase();
    reproduction::Table {
        name: format!("numbers-{word}-by-{by}"),
        title: format!("{title}: {about}"),
        note: String::new(),
        head,
        rows,
        csv,
        command: command.to_owned(),
    }
}

/// A number with digits that suit its size.
pub(super) fn rounded(value: f64) -> String {
    let digits = match value.abs() {
        large if large >= 100.0 => 0,
        large if large >= 10.0 => 1,
        large if large >= 1.0 => 2,
        large if large >= 0.1 => 3,
        _ => 4,
    };
    format!("{value:.digits$}")
}
