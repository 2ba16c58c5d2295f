//! The paper's numbers and claims beside what we measure: every value and trend of the list of targets.

mod trends;

use super::Protocol;
use super::sweeps::{CONTENDERS, Contender, Load, Quantity, SWEEP_RATE, Sweeps, TCPS};
use super::tables::{TABLES, Table, printed, rounded};
use crate::rdca::TARGETS;
use crate::stats::{self, Summary};
use crate::targets::{self, Kind, Target};
use crate::verdict::{Figure, Holds, Judged, Rule, Verdict};

/// Judges every claim, by our protocol.
pub fn verdicts(sweeps: &Sweeps) -> Vec<Verdict> {
    let judge = Judge { sweeps };
    let judged = targets::read(TARGETS).into_iter().filter(|t| t.kind != Kind::Param).map(|target| {
        let judged = judge.claim(&target);
        Verdict::of(target, judged)
    });
    judged.collect()
}

struct Judge<'a> {
    sweeps: &'a Sweeps,
}

impl Judge<'_> {
    fn claim(&self, target: &Target) -> Judged {
        let name = target.id.strip_prefix("rdca.").unwrap_or(&target.id);
        let Some(number) = target.number() else { return self.trend(name) };
        let parts: Vec<&str> = name.split('.').collect();
        let judged = match parts[..] {
            [table, statistic, whose, senders] => self.cell(name, table, (statistic, whose, senders), number),
            _ => self.value(name, number),
        };
        judged.because(why(name))
    }

    /// A cell of Table 2 or 3.
    fn cell(&self, name: &str, table: &str, of: (&str, &str, &str), number: f64) -> Judged {
        let (statistic, whose, senders) = of;
        let table = TABLES.into_iter().find(|t| t.name == table);
        let contender = CONTENDERS.iter().find(|c| c.target == Some(whose));
        let senders = senders.strip_prefix('s').and_then(|n| n.parse().ok());
        let (Some(table), Some(contender), Some(senders)) = (table, contender, senders) else {
            return Judged::unknown(name);
        };
        let load = Load { senders, rate: SWEEP_RATE };
        let (protocol, quantity) = (contender.protocol, table.quantity);
        match statistic {
            "mean" => self.mean(load, protocol, quantity, number),
            "std" => self.deviation(load, protocol, quantity, number),
            "min" | "max" => self.extreme((load, contender), table, statistic),
            _ => Judged::unknown(name),
        }
    }

    /// A printed extreme, which is none (H2): judged by mean and deviation.
    fn extreme(&self, (load, contender): (Load, &Contender), table: Table, statistic: &str) -> Judged {
        let whose = contender.target.unwrap_or_default();
        let of = |statistic: &str| {
            let id = format!("rdca.{}.{statistic}.{whose}.s{}", table.name, load.senders);
            printed(&id).unwrap_or(f64::NAN)
        };
        let (protocol, quantity) = (contender.protocol, table.quantity);
        let mean = self.mean(load, protocol, quantity, of("mean")).holds;
        let deviation = self.deviation(load, protocol, quantity, of("std")).holds;
        let kept = |holds| matches!(holds, Holds::Yes | Holds::Better);
        let holds = match (mean, deviation) {
            (mean, deviation) if kept(mean) && kept(deviation) => Holds::Yes,
            (Holds::No, Holds::No) => Holds::No,
            _ => Holds::Partly,
        };
        let Some(summary) = self.sweeps.summary(load, protocol, quantity) else { return nothing() };
        let extreme = if statistic == "min" { summary.min } else { summary.max };
        let ours = Figure { runs: summary.runs, ..Figure::computed(extreme) };
        let said = Judged::said(
            holds,
            "ours is the extreme of one run; the printed one is no extreme, and judged by mean and σ",
        );
        Judged { ours: Some(ours), ..said }.against("H2")
    }

    fn mean(&self, load: Load, protocol: Protocol, quantity: Quantity, printed: f64) -> Judged {
        let Some(ours) = self.sweeps.summary(load, protocol, quantity) else { return nothing() };
        // Half a unit of the last digit printed.
        let tolerance = (0.1 * printed).max(0.005);
        let rule = match (protocol, quantity) {
            (Protocol::Rdca, Quantity::Throughput) => Rule::More(tolerance),
            (Protocol::Rdca, _) => Rule::Less(tolerance),
            _ => Rule::Near(tolerance),
        };
        let judged = Judged::number(printed, ours, rule);
        if protocol != Protocol::Rdca {
            return judged;
        }
        let other = self.sweeps.summary(load, Protocol::RdcaPaper, quantity);
        judged.noting(format!(
            "the paper's way {}",
            other.map_or("none".to_owned(), |s| Figure::from(s).text())
        ))
    }

    fn deviation(&self, load: Load, protocol: Protocol, quantity: Quantity, printed: f64) -> Judged {
        let Some(ours) = self.sweeps.deviation(load, protocol, quantity) else {
            return Judged::said(Holds::No, "one run has no deviation");
        };
        let tolerance = (0.25 * printed).max(0.005);
        let rule = if protocol == Protocol::Rdca { Rule::Less(tolerance) } else { Rule::Near(tolerance) };
        Judged::number(printed, ours, rule)
    }

    fn value(&self, name: &str, number: f64) -> Judged {
        let (senders, rates) = (self.sweeps.by_senders(), self.sweeps.by_rate());
        let (ours, tcps) = (&[Protocol::Rdca][..], &TCPS[..]);
        let (most, least) = (Span::most as fn(&Span) -> Figure, Span::least as fn(&Span) -> Figure);
        let judged = |loads: &[Load], protocols: &[Protocol], quantity, of: fn(&Span) -> Figure, rule| {
            let Some(span) = self.span(loads, protocols, quantity) else { return nothing() };
            Judged::number(number, of(&span), rule).noting(span.text())
        };
        match name {
            // In part with twice the losses.
            "pdr.proposed" => {
                let found =
                    judged(&senders, ours, Quantity::DeliveryRatio, least, Rule::AtLeast(100.0 - number));
                let text = format!("{}; 0.15 dropped are per cent, not packets (H23)", found.measured);
                found.noting(text)
            }
            "pdr.others" => judged(&senders, tcps, Quantity::DeliveryRatio, Span::average, Rule::Near(1.0)),
            "ncl.proposed" => judged(&senders, ours, Quantity::Control, most, Rule::AtMost(0.005)).judged_by(
                0.01,
                Rule::AtMost(0.01),
                "H4",
            ),
            // Who opens a connection and loses no data says a little less than one word for each packet.
            "ncl.others" => judged(&senders, tcps, Quantity::Control, least, Rule::AtLeast(0.1)),
            "delay.proposed.max_4_1" => judged(&senders, ours, Quantity::Delay, most, Rule::AtMost(number)),
            "delay.others.min_4_1" => judged(&senders, tcps, Quantity::Delay, least, Rule::AtLeast(0.1))
                .judged_by(0.39, Rule::AtLeast(0.039), "H3"),
            "delay.others.max_4_1" => judged(&senders, tcps, Quantity::Delay, most, Rule::Near(0.1 * number)),
            "delay.improvement" => self.improvement(),
            "rate.capacity" => {
                let [one, seven] = [1, 7].map(|n| Figure::from(self.sweeps.capacity(n)));
                let judged = Judged::number(27.37, seven, Rule::AtLeast(2.737)).instead(27.37, "H5");
                judged.noting(format!(
                    "{} of one sender, {} of seven to the same sink",
                    one.text(),
                    seven.text()
                ))
            }
            "rate.dropped.proposed_max" => {
                judged(&rates, ours, Quantity::Lost, most, Rule::AtMost(number / 2.0))
            }
            "rate.dropped.tcp_max" => judged(&rates, tcps, Quantity::Lost, most, Rule::Near(0.1 * number)),
            "rate.delay.proposed" => {
                judged(&rates, ours, Quantity::Delay, Span::average, Rule::Less(0.1 * number))
            }
            "rate.delay.tcp" => {
                judged(&rates, tcps, Quantity::Delay, Span::average, Rule::Near(0.1 * number))
            }
            "rate.energy.tcp_min" => {
                let found = judged(&rates, tcps, Quantity::Energy, least, Rule::AtLeast(0.1 * number));
                let text = format!("{}; per 1000 packets, a total of the network", found.measured);
                found.noting(text).against("H19")
            }
            "rate.ncl.proposed_max" => judged(&rates, ours, Quantity::Control, most, Rule::AtMost(number)),
            other => Judged::unknown(other),
        }
    }

    /// How many times ours is the delay of the best TCP, where that is least.
    fn improvement(&self) -> Judged {
        let ratios = self.sweeps.by_senders().into_iter().map(|load| {
            let mean = |tcp: &Protocol| self.sweeps.mean(load, *tcp, Quantity::Delay);
            let best = TCPS.iter().copied().min_by(|a, b| mean(a).total_cmp(&mean(b)))?;
            self.sweeps.ratio(load, best, Protocol::Rdca, Quantity::Delay)
        });
        let Some(ratios) = ratios.collect::<Option<Vec<Summary>>>() else { return nothing() };
        let Some(least) = ratios.iter().min_by(|a, b| a.mean.total_cmp(&b.mean)) else { return nothing() };
        let list: Vec<String> = ratios.iter().map(|r| format!("{:.1}", r.mean)).collect();
        let holds = match least.mean {
            least if least >= 13.0 => Holds::Yes,
            least if least >= 3.0 => Holds::Partly,
            _ => Holds::No,
        };
        let text = format!(
            "against the best TCP {} by number of senders; Table 3 has 13 at least: in part from 3 on",
            list.join(", ")
        );
        Judged { ours: Some(Figure::from(*least)), ..Judged::said(holds, text) }.instead(13.0, "H3")
    }

    /// Means over the loads and protocols; `None` if a cell has none.
    fn span(&self, loads: &[Load], protocols: &[Protocol], quantity: Quantity) -> Option<Span> {
        let pairs = loads.iter().flat_map(|load| protocols.iter().map(move |protocol| (*load, *protocol)));
        let values = pairs.map(|(load, protocol)| self.sweeps.values(load, protocol, quantity)).collect();
        Span::of(values)
    }
}

/// Of the means of several cells.
struct Span {
    cells: Vec<Summary>,
    average: Figure,
}

impl Span {
    /// Of each cell's runs, as far as they have a value.
    fn of(cells: Vec<Vec<Option<f64>>>) -> Option<Self> {
        let mean = |cell: &[Option<f64>], without: Option<usize>| {
            let kept = cell.iter().enumerate().filter(|(i, _)| Some(*i) != without);
            let kept: Vec<f64> = kept.filter_map(|(_, value)| *value).collect();
            kept.iter().sum::<f64>() / kept.len() as f64
        };
        let all = |without| cells.iter().map(|cell| mean(cell, without)).sum::<f64>() / cells.len() as f64;
        let average = stats::jackknife(cells.iter().map(Vec::len).min()?, all).ok()?.into();
        let summary =
            |cell: &Vec<Option<f64>>| Summary::of(&cell.iter().copied().flatten().collect::<Vec<_>>()).ok();
        Some(Self { cells: cells.iter().map(summary).collect::<Option<_>>()?, average })
    }

    fn least(&self) -> Figure {
        let least = self.cells.iter().copied().reduce(|a, b| if b.mean < a.mean { b } else { a });
        least.expect("an average is one of some cells").into()
    }

    fn most(&self) -> Figure {
        let most = self.cells.iter().copied().reduce(|a, b| if b.mean > a.mean { b } else { a });
        most.expect("an average is one of some cells").into()
    }

    fn average(&self) -> Figure {
        self.average
    }

    fn text(&self) -> String {
        let [least, average, most] = [self.least(), self.average, self.most()].map(|f| rounded(f.mean));
        format!("{average} on average, from {least} to {most}")
    }
}

fn nothing() -> Judged {
    Judged::said(Holds::No, "no run has delivered anything")
}

/// Why a claim of that name does not hold, if it does not.
fn why(name: &str) -> &'static str {
    match name {
        "rate.delay.proposed" | "pdr.proposed" => "the network is loaded, and packets wait for it",
        _ if name.contains("proposed") => "runs differ more than the paper's, or are too few",
        _ => {
            "our TCPs fare better than the paper's: what seven senders offer is little more than half of what the network carries, \
             whose carrier sense range and senders' distance are not said (H20, H20b), so that queues stay short and hardly a \
             packet is lost"
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
