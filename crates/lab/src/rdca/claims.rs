//! Compares the paper's numbers and claims with our measurements: every value and trend of the list
//! of targets.

mod trends;

use super::Protocol;
use super::sweeps::{CONTENDERS, Load, Quantity, SWEEP_RATE, Sweeps, TCPS};
use super::tables::{TABLES, printed, rounded};
use crate::rdca::TARGETS;
use crate::stats::{self, Summary};
use crate::targets::Target;
use crate::verdict::{self, Figure, Judged, Part, Tolerance, Verdict};

/// Judges every claim by the protocol as printed.
pub fn verdicts(sweeps: &Sweeps) -> Vec<Verdict> {
    let judge = Judge { sweeps };
    verdict::judge_list(TARGETS, |target| judge.claim(target))
}

struct Judge<'a> {
    sweeps: &'a Sweeps,
}

impl Judge<'_> {
    fn claim(&self, target: &Target) -> Judged {
        let name = target.id.strip_prefix("rdca.").unwrap_or(&target.id);
        if target.number().is_none() {
            return self.trend(name);
        }
        let parts: Vec<&str> = name.split('.').collect();
        let judged = match parts[..] {
            [table, statistic, whose, senders] => self.cell(name, table, (statistic, whose, senders)),
            _ => self.value(name),
        };
        judged.because(why(name))
    }

    /// Judges a cell of Table 2 or 3.
    fn cell(&self, name: &str, table: &str, of: (&str, &str, &str)) -> Judged {
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
            "mean" => self.mean(load, protocol, quantity),
            "std" => {
                let of = |protocol| self.sweeps.deviation(load, protocol, quantity);
                let judged = Judged::number(of(protocol), Tolerance::Difference);
                if whose == "proposed" { judged.beside(of(Protocol::Rdca), None::<Figure>) } else { judged }
            }
            "min" | "max" => {
                // The printed extremes are not extremes: they lie whole multiples of the deviation
                // from the mean.
                let of = |statistic: &str| {
                    let id = format!("rdca.{}.{statistic}.{whose}.s{senders}", table.name);
                    printed(&id).unwrap_or(f64::NAN)
                };
                let multiple = (of(statistic) - of("mean")) / of("std");
                let mean = self.sweeps.mean(load, protocol, quantity);
                let deviation = self.sweeps.deviation(load, protocol, quantity);
                let found = deviation.map(|d| Figure::from(d).scaled(multiple, mean));
                let judged = Judged::number(found, Tolerance::Difference).against("H2");
                judged.noting(format!(
                    "the printed one is no extreme but the mean and {} times the deviation, and so is this",
                    rounded(multiple)
                ))
            }
            _ => Judged::unknown(name),
        }
    }

    fn mean(&self, load: Load, protocol: Protocol, quantity: Quantity) -> Judged {
        let of = |protocol| self.sweeps.summary(load, protocol, quantity);
        let judged = Judged::number(of(protocol), Tolerance::Mean);
        if protocol != Protocol::RdcaPaper {
            return judged;
        }
        let change = self.sweeps.ratio(load, Protocol::Rdca, protocol, quantity);
        let change = change.map(|ratio| Figure::from(ratio).scaled(100.0, -100.0));
        let judged = judged.beside(of(Protocol::Rdca), change);
        // With one sender a protocol may have nothing to improve.
        judged.or_at_least(self.better(load, protocol, quantity, 1.0))
    }

    /// The TCP with the best mean.
    fn best(&self, load: Load, quantity: Quantity) -> Protocol {
        let sign = if quantity.is_better_if_more() { -1.0 } else { 1.0 };
        let badness = |tcp: &Protocol| sign * self.sweeps.mean(load, *tcp, quantity);
        TCPS.into_iter().min_by(|a, b| badness(a).total_cmp(&badness(b))).expect("there are TCPs")
    }

    /// A part that states that a protocol is better than `times` the TCP with the best mean.
    fn better(&self, load: Load, protocol: Protocol, quantity: Quantity, times: f64) -> Part {
        let mean = |protocol| self.sweeps.mean(load, protocol, quantity);
        let best = self.best(load, quantity);
        let found = self.sweeps.by_run(load, quantity, |of| {
            let gain = of(protocol)? - times * of(best)?;
            Some(if quantity.is_better_if_more() { gain } else { -gain })
        });
        let limit = if times == 1.0 { String::new() } else { format!("{times} times ") };
        let what = format!(
            "{} by {} kB/s: {} against {limit}{} of the best TCP",
            load.senders,
            load.rate / 1000,
            rounded(mean(protocol)),
            rounded(mean(best))
        );
        Part::effect(what, found, verdict::MATTERS * mean(best).abs())
    }

    fn value(&self, name: &str) -> Judged {
        let (senders, rates) = (self.sweeps.by_senders(), self.sweeps.by_rate());
        let (paper, tcps) = (&[Protocol::RdcaPaper][..], &TCPS[..]);
        let (most, least) = (Span::most as fn(&Span) -> Figure, Span::least as fn(&Span) -> Figure);
        type Of = fn(&Span) -> Figure;
        type Rule = fn(Option<Figure>) -> Judged;
        let judged = |loads: &[Load], protocols: &[Protocol], quantity, of: Of, rule: Rule| {
            let span = self.span(loads, protocols, quantity);
            let judged = rule(span.as_ref().map(of)).noting(span.map_or("none".to_owned(), |s| s.text()));
            if protocols != paper {
                return judged;
            }
            let ours = self.span(loads, &[Protocol::Rdca], quantity);
            judged.beside(ours.as_ref().map(of), None::<Figure>)
        };
        let number: Rule = |found| Judged::number(found, Tolerance::Mean);
        let (at_most, at_least): (Rule, Rule) = (Judged::at_most, Judged::at_least);
        match name {
            "pdr.proposed" => {
                let found = judged(&senders, paper, Quantity::DeliveryRatio, least, at_least);
                let text = format!("{}; 0.15 dropped are per cent, not packets (H23)", found.measured);
                found.noting(text)
            }
            "pdr.others" => judged(&senders, tcps, Quantity::DeliveryRatio, Span::average, |found| {
                Judged::number(found, Tolerance::Points)
            }),
            "ncl.proposed" => judged(&senders, paper, Quantity::Control, most, at_most).instead(0.01, "H4"),
            "ncl.others" => judged(&senders, tcps, Quantity::Control, least, at_least),
            "delay.proposed.max_4_1" => judged(&senders, paper, Quantity::Delay, most, at_most),
            "delay.others.min_4_1" => {
                judged(&senders, tcps, Quantity::Delay, least, at_least).instead(0.39, "H3")
            }
            "delay.others.max_4_1" => judged(&senders, tcps, Quantity::Delay, most, number),
            "delay.improvement" => self.improvement(),
            "rate.capacity" => {
                let [one, seven] = [1, 7].map(|n| self.sweeps.capacity(n));
                let judged = Judged::number(Some(one), Tolerance::Mean).against("H5");
                judged.noting(format!("{} of seven to the same sink", Figure::from(seven).text()))
            }
            "rate.dropped.proposed_max" => judged(&rates, paper, Quantity::Lost, most, at_most),
            "rate.dropped.tcp_max" => judged(&rates, tcps, Quantity::Lost, most, number),
            "rate.delay.proposed" => judged(&rates, paper, Quantity::Delay, Span::average, number),
            "rate.delay.tcp" => judged(&rates, tcps, Quantity::Delay, Span::average, number),
            "rate.energy.tcp_min" => {
                let found = judged(&rates, tcps, Quantity::Energy, least, at_least);
                let text = format!("{}; per 1000 packets, a total of the network", found.measured);
                found.noting(text).against("H19")
            }
            "rate.ncl.proposed_max" => judged(&rates, paper, Quantity::Control, most, at_most),
            other => Judged::unknown(other),
        }
    }

    /// Smallest ratio, over all loads, of the best TCP's delay to that of the proposed protocol.
    fn improvement(&self) -> Judged {
        let least = |protocol| {
            let ratios = self.sweeps.by_senders().into_iter().map(|load| {
                let best = self.best(load, Quantity::Delay);
                self.sweeps.ratio(load, best, protocol, Quantity::Delay)
            });
            let ratios = ratios.collect::<Option<Vec<Summary>>>()?;
            ratios.into_iter().reduce(|a, b| if b.mean < a.mean { b } else { a })
        };
        let [found, ours] = [Protocol::RdcaPaper, Protocol::Rdca].map(least);
        let judged = Judged::number(found, Tolerance::Difference).instead(13.0, "H3");
        let shorter = found.map(|f| f.scaled(1.0, -1.0));
        judged
            .or_at_least(Part::effect("shorter than the best TCP's", shorter, 0.0))
            .beside(ours, None::<Figure>)
            .noting("the least over the numbers of senders; Table 3 has 13 at least")
    }

    /// Smallest and largest mean over the loads and protocols; `None` if a cell has none.
    fn span(&self, loads: &[Load], protocols: &[Protocol], quantity: Quantity) -> Option<Span> {
        let pairs = loads.iter().flat_map(|load| protocols.iter().map(move |protocol| (*load, *protocol)));
        let values = pairs.map(|(load, protocol)| self.sweeps.values(load, protocol, quantity)).collect();
        Span::of(values)
    }
}

/// Means of several cells.
struct Span {
    cells: Vec<Summary>,
    average: Figure,
}

impl Span {
    /// From the values of each cell's runs, as far as they have a value.
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

/// Known cause why a claim does not hold.
fn why(name: &str) -> &'static str {
    match name {
        _ if name.contains("std") => "cause not found",
        _ if name.contains("proposed") || name == "trend.5" => {
            "what is printed of the protocol leaves its constants and its control packets open (H9 to H16)"
        }
        _ => {
            "our TCPs fare better than the paper's: what seven senders offer is little more than half of what the network carries, \
             whose carrier sense range and senders' distance are not said (H20, H20b), so that queues stay short and hardly a \
             packet is lost"
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
