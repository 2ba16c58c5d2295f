//! The paper's numbers and claims beside what we measure: every value and trend of [`crate::targets::rdca`].

mod trends;

use super::Protocol;
use super::sweeps::{CONTENDERS, Load, Quantity, SWEEP_RATE, Sweeps, TCPS};
use super::tables::{TABLES, printed, rounded, shown};
use crate::targets::{self, Kind, Target};
use crate::verdict;
pub use crate::verdict::{Holds, Verdict};

/// Judges every claim, by our protocol.
pub fn verdicts(sweeps: &Sweeps) -> Vec<Verdict> {
    let judge = Judge { sweeps };
    let judged = targets::rdca().into_iter().filter(|t| t.kind != Kind::Param).map(|target| {
        let judged = judge.claim(&target);
        Verdict::of(target, judged)
    });
    judged.collect()
}

/// The verdicts as a page.
pub fn markdown(verdicts: &[Verdict], runs: usize, seed: u64) -> String {
    let text = format!(
        "# The numbers and claims of the paper on sink-driven rate control beside ours\n\n\
         `anabranch lab reproduce rdca`, {runs} runs, seed {seed}. Written by the program. {}.\n\n\
         The proposed protocol is judged by ours, `protocol=rdca`. A mean of it holds if ours is no worse than printed by \
         more than 10 %, one of a TCP if it is within 10 %, in part within twice that; a printed 0.03 is anything that \
         is rounded so. A standard deviation of the proposed protocol holds if ours is no larger, one of a TCP if it is \
         within 50 %, in part within twice that. Table 2 is in kB/s (erratum H1). The printed extremes of Tables 2 and 3 are the \
         mean and whole multiples of the standard deviation (H2): they are judged by those two. Where the paper \
         contradicts itself (H3, H4, H5, H19, H23) the reading is said. What it leaves open is in \
         `docs/rdca-experiments.md`.\n\n",
        verdict::tally(verdicts)
    );
    text + &verdict::table(verdicts)
}

struct Judge<'a> {
    sweeps: &'a Sweeps,
}

type Judged = (Holds, String);

impl Judge<'_> {
    fn claim(&self, target: &Target) -> Judged {
        let name = target.id.strip_prefix("rdca.").unwrap_or(&target.id);
        let number = target.value.as_ref().and_then(|v| v.as_float().or(v.as_integer().map(|n| n as f64)));
        let Some(number) = number else { return self.trend(name) };
        let parts: Vec<&str> = name.split('.').collect();
        match parts[..] {
            [table, statistic, whose, senders] => self.cell(name, table, (statistic, whose, senders), number),
            _ => self.value(name, number),
        }
    }

    /// A cell of Table 2 or 3.
    fn cell(&self, name: &str, table: &str, of: (&str, &str, &str), number: f64) -> Judged {
        let (statistic, whose, senders) = of;
        let table = TABLES.into_iter().find(|t| t.name == table);
        let contender = CONTENDERS.iter().find(|c| c.target == Some(whose));
        let senders = senders.strip_prefix('s').and_then(|n| n.parse().ok());
        let (Some(table), Some(contender), Some(senders)) = (table, contender, senders) else {
            return unknown(name);
        };
        let load = Load { senders, rate: SWEEP_RATE };
        let (protocol, quantity) = (contender.protocol, table.quantity);
        match statistic {
            "mean" => self.mean(load, protocol, quantity, number),
            "std" => self.deviation(load, protocol, quantity, number),
            "min" | "max" => {
                let of = |statistic: &str| {
                    let id = format!("rdca.{}.{statistic}.{whose}.s{senders}", table.name);
                    printed(&id).unwrap_or(f64::NAN)
                };
                let (mean, _) = self.mean(load, protocol, quantity, of("mean"));
                let (deviation, _) = self.deviation(load, protocol, quantity, of("std"));
                let extreme = self
                    .sweeps
                    .summary(load, protocol, quantity)
                    .map_or("none".to_owned(), |s| rounded(if statistic == "min" { s.min } else { s.max }));
                let holds = match (mean, deviation) {
                    (Holds::Yes, Holds::Yes) => Holds::Yes,
                    (Holds::No, Holds::No) => Holds::No,
                    _ => Holds::Partly,
                };
                (
                    holds,
                    format!("{extreme} in one of the runs; no extreme in print: judged by mean and σ (H2)"),
                )
            }
            _ => unknown(name),
        }
    }

    fn mean(&self, load: Load, protocol: Protocol, quantity: Quantity, printed: f64) -> Judged {
        let Some(ours) = self.sweeps.summary(load, protocol, quantity) else { return nothing() };
        let off = ours.mean - printed;
        let worse = if quantity == Quantity::Throughput { -off } else { off };
        let far = if protocol == Protocol::Rdca { worse.max(0.0) } else { off.abs() };
        // Half a unit of the last digit printed.
        let tolerance = (0.1 * printed).max(0.005);
        let mut text = format!("{} ({:+.0} %)", shown(&ours), 100.0 * off / printed);
        if protocol == Protocol::Rdca {
            let other = self.sweeps.summary(load, Protocol::RdcaPaper, quantity);
            text += &format!("; the paper's way {}", other.map_or("none".to_owned(), |s| shown(&s)));
        }
        (within(far, tolerance), text)
    }

    fn deviation(&self, load: Load, protocol: Protocol, quantity: Quantity, printed: f64) -> Judged {
        let Some(ours) = self.sweeps.deviation(load, protocol, quantity) else {
            return (Holds::No, "one run has no deviation".to_owned());
        };
        let holds = match protocol {
            Protocol::Rdca if ours < printed + 0.005 => Holds::Yes,
            Protocol::Rdca => within(ours - printed, printed),
            _ => within((ours - printed).abs(), 0.5 * printed),
        };
        (holds, rounded(ours))
    }

    fn value(&self, name: &str, number: f64) -> Judged {
        let (senders, rates) = (self.sweeps.by_senders(), self.sweeps.by_rate());
        let (ours, tcps) = (&[Protocol::Rdca][..], &TCPS[..]);
        match name {
            "pdr.proposed" => {
                let Span { least, .. } = self.span(&senders, ours, Quantity::DeliveryRatio);
                let text = format!("at least {least:.3} %; 0.15 dropped are per cent, not packets (H23)");
                // In part with twice the losses.
                let holds = match number - least {
                    off if off <= 0.0 => Holds::Yes,
                    off if off <= 100.0 - number => Holds::Partly,
                    _ => Holds::No,
                };
                (holds, text)
            }
            "pdr.others" => {
                let Span { average, least, most } = self.span(&senders, tcps, Quantity::DeliveryRatio);
                let text = format!("{average:.2} % on average, from {least:.2} to {most:.2}");
                (within((average - number).abs(), 1.0), text)
            }
            "ncl.proposed" => {
                let Span { most, .. } = self.span(&senders, ours, Quantity::Control);
                let text = format!("at most {most:.5}; judged by 0.01, as section 4.2 has it (H4)");
                (below(most, 0.01), text)
            }
            "ncl.others" => {
                let Span { least, most, .. } = self.span(&senders, tcps, Quantity::Control);
                // Who opens a connection and loses no data says a little less than one word for each packet.
                let holds = if least >= 0.995 * number { Holds::Yes } else { within(number - least, 0.05) };
                (holds, format!("from {least:.3} to {most:.3}"))
            }
            "delay.proposed.max_4_1" => {
                let Span { most, .. } = self.span(&senders, ours, Quantity::Delay);
                (below(most, number), format!("at most {most:.4} s"))
            }
            "delay.others.min_4_1" => {
                let Span { least, .. } = self.span(&senders, tcps, Quantity::Delay);
                let text = format!("at least {least:.3} s; judged by 0.39 s, the least of Table 3 (H3)");
                (within(0.39 - least, 0.039), text)
            }
            "delay.others.max_4_1" => {
                let Span { most, .. } = self.span(&senders, tcps, Quantity::Delay);
                (within((most - number).abs(), 0.1 * number), format!("up to {most:.3} s"))
            }
            "delay.improvement" => self.improvement(number),
            "rate.capacity" => {
                let [one, seven] = [1, 7].map(|n| self.sweeps.capacity(n));
                let text = format!(
                    "{} of one sender, {} of seven; judged by 27.37, which seven senders bring to the same sink in Table 2 \
                     (H5)",
                    shown(&one),
                    shown(&seven)
                );
                (within(27.37 - seven.mean, 2.737), text)
            }
            "rate.dropped.proposed_max" => {
                let Span { most, .. } = self.span(&rates, ours, Quantity::Lost);
                (within(most - number, number / 2.0), format!("at most {most:.2}"))
            }
            "rate.dropped.tcp_max" => {
                let Span { most, .. } = self.span(&rates, tcps, Quantity::Lost);
                (within((most - number).abs(), 0.1 * number), format!("up to {most:.1}"))
            }
            "rate.delay.proposed" => {
                let Span { average, least, most } = self.span(&rates, ours, Quantity::Delay);
                let text = format!("{average:.3} s on average, from {least:.3} to {most:.3}");
                (within(average - number, 0.1 * number), text)
            }
            "rate.delay.tcp" => {
                let Span { average, least, most } = self.span(&rates, tcps, Quantity::Delay);
                let text = format!("{average:.3} s on average, from {least:.3} to {most:.3}");
                (within((average - number).abs(), 0.1 * number), text)
            }
            "rate.energy.tcp_min" => {
                let Span { least, most, .. } = self.span(&rates, tcps, Quantity::Energy);
                let text =
                    format!("from {least:.1} to {most:.1} J per 1000 packets, a total of the network (H19)");
                (within(number - least, 0.1 * number), text)
            }
            "rate.ncl.proposed_max" => {
                let Span { most, .. } = self.span(&rates, ours, Quantity::Control);
                (below(most, number), format!("at most {most:.5}"))
            }
            other => unknown(other),
        }
    }

    /// How many times the delay of the best TCP is ours.
    fn improvement(&self, printed: f64) -> Judged {
        let ratios = self.sweeps.by_senders().into_iter().map(|load| {
            let of = |protocol| self.sweeps.mean(load, protocol, Quantity::Delay);
            TCPS.iter().map(|tcp| of(*tcp)).fold(f64::INFINITY, f64::min) / of(Protocol::Rdca)
        });
        let ratios: Vec<f64> = ratios.collect();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let list: Vec<String> = ratios.iter().map(|r| format!("{r:.1}")).collect();
        let holds = match least {
            least if least >= 13.0 => Holds::Yes,
            least if least >= printed => Holds::Partly,
            _ => Holds::No,
        };
        let text = format!(
            "against the best TCP {} by number of senders; Table 3 has 13 at least (H3): in part from 3 on",
            list.join(", ")
        );
        (holds, text)
    }

    /// Means over the loads and protocols.
    fn span(&self, loads: &[Load], protocols: &[Protocol], quantity: Quantity) -> Span {
        let pairs = loads.iter().flat_map(|load| protocols.iter().map(move |protocol| (*load, *protocol)));
        let means: Vec<f64> =
            pairs.map(|(load, protocol)| self.sweeps.mean(load, protocol, quantity)).collect();
        Span {
            least: means.iter().copied().fold(f64::INFINITY, f64::min),
            average: means.iter().sum::<f64>() / means.len() as f64,
            most: means.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// Of the means of several cells.
struct Span {
    least: f64,
    average: f64,
    most: f64,
}

/// Up to the tolerance, or up to twice that.
fn within(off: f64, tolerance: f64) -> Holds {
    match off {
        off if off <= tolerance => Holds::Yes,
        off if off <= 2.0 * tolerance => Holds::Partly,
        _ => Holds::No,
    }
}

/// Below a bound, or below twice that.
fn below(value: f64, bound: f64) -> Holds {
    match value {
        value if value < bound => Holds::Yes,
        value if value < 2.0 * bound => Holds::Partly,
        _ => Holds::No,
    }
}

fn nothing() -> Judged {
    (Holds::No, "no run has delivered anything".to_owned())
}

fn unknown(name: &str) -> Judged {
    (Holds::No, format!("nothing measures `{name}`"))
}

#[cfg(test)]
mod tests;
