//! What the paper claims of its figures in words.

use super::{Holds, Judge, Judged, nothing, rounded, why};
use crate::rdca::Protocol;
use crate::rdca::sweeps::{Load, Quantity, TCPS};
use crate::verdict::Figure;

/// A claim in words: whether it holds, and what was measured.
type Claim = (Holds, String);

impl Judge<'_> {
    pub(super) fn trend(&self, name: &str) -> Judged {
        let (senders, rates) = (self.sweeps.by_senders(), self.sweeps.by_rate());
        let claim = match name {
            "trend.1" => Some(self.grows_linearly(&senders)),
            "trend.2" => Some(self.better(&senders, Quantity::DeliveryRatio, 1.0).judged()),
            "trend.3" => {
                let times = self.better(&senders, Quantity::Delay, 0.1);
                self.stable(&senders, Quantity::Delay, 2.0)
                    .map(|(flat, text)| times.and(flat, &format!("a tenth of theirs; {text}")))
            }
            "trend.4" => {
                let less = self.better(&senders, Quantity::Energy, 1.0);
                self.stable(&senders, Quantity::Energy, 1.5).map(|(stable, text)| less.and(stable, &text))
            }
            "trend.5" => self.hardly_a_word(&senders),
            "trend.6" => self.saturates(&rates),
            "trend.7" => Some(self.better(&rates, Quantity::Lost, 1.0).judged()),
            "trend.8" => Some(self.better(&rates, Quantity::Delay, 1.0).judged()),
            "trend.9" => {
                let less = self.better(&rates, Quantity::Energy, 1.0);
                self.tcps_nearly_equal(&rates).map(|(equal, text)| less.and(equal, &text))
            }
            "trend.10" => {
                let count = self.better(&rates, Quantity::Control, 0.1);
                Some(Count { text: format!("a tenth of theirs; {}", count.text), ..count }.judged())
            }
            "trend.11" => Some(self.near_and_far(&senders)),
            other => return Judged::unknown(other),
        };
        let Some((holds, measured)) = claim else { return nothing() };
        let judged = Judged::said(holds, measured).because(why(name));
        if name == "trend.6" { judged.against("H5") } else { judged }
    }

    /// Throughput in proportion to the senders, and of no TCP.
    fn grows_linearly(&self, loads: &[Load]) -> Claim {
        let linear = |protocol| {
            let of = |load: &Load| self.sweeps.mean(*load, protocol, Quantity::Throughput);
            let one = of(&loads[0]);
            loads.iter().filter(|load| of(load) >= 0.97 * one * load.senders as f64).count()
        };
        let (ours, all) = (linear(Protocol::Rdca), loads.len());
        let theirs = TCPS.map(linear);
        let holds = match ours == all {
            true if theirs.iter().all(|&n| n < all) => Holds::Yes,
            true => Holds::Partly,
            false => Holds::No,
        };
        let list: Vec<String> = theirs.iter().map(ToString::to_string).collect();
        (
            holds,
            format!(
                "at least 97 % of so many times one sender's in {ours} of {all} cases; the TCPs in {}",
                list.join(", ")
            ),
        )
    }

    /// In how many cases ours is better than `times` the best TCP's.
    fn better(&self, loads: &[Load], quantity: Quantity, times: f64) -> Count {
        let higher = matches!(quantity, Quantity::DeliveryRatio | Quantity::Throughput);
        let of = |load: &Load, protocol| self.sweeps.mean(*load, protocol, quantity);
        let best = |load: &Load| {
            let theirs = TCPS.iter().map(|tcp| of(load, *tcp));
            if higher {
                theirs.fold(f64::NEG_INFINITY, f64::max)
            } else {
                theirs.fold(f64::INFINITY, f64::min)
            }
        };
        let gains = |load: &Load| {
            let gain = of(load, Protocol::Rdca) - times * best(load);
            if higher { gain } else { -gain }
        };
        let list: Vec<String> = loads
            .iter()
            .map(|load| {
                let [ours, best] = [of(load, Protocol::Rdca), best(load)].map(rounded);
                format!("{ours}/{best}")
            })
            .collect();
        Count {
            holding: loads.iter().filter(|load| gains(load) > 0.0).count(),
            no_worse: loads.iter().filter(|load| gains(load) >= 0.0).count(),
            all: loads.len(),
            text: format!("ours/best TCP {}", list.join(", ")),
        }
    }

    /// Whether the most is no more than `times` the least.
    fn stable(&self, loads: &[Load], quantity: Quantity, times: f64) -> Option<(bool, String)> {
        let span = self.span(loads, &[Protocol::Rdca], quantity)?;
        let (least, most) = (span.least().mean, span.most().mean);
        let [from, to] = [least, most].map(rounded);
        Some((most <= times * least, format!("from {from} to {to}, stable is {times} times")))
    }

    fn hardly_a_word(&self, loads: &[Load]) -> Option<Claim> {
        let ours = self.span(loads, &[Protocol::Rdca], Quantity::Control)?.most().mean;
        let theirs = self.span(loads, &TCPS, Quantity::Control)?.least().mean;
        let text = format!("ours at most {ours:.5}, the TCPs at least {theirs:.3}");
        let holds = match (ours < 0.01, theirs >= 0.9) {
            (true, true) => Holds::Yes,
            (false, false) => Holds::No,
            _ => Holds::Partly,
        };
        Some((holds, text))
    }

    fn saturates(&self, loads: &[Load]) -> Option<Claim> {
        let of = |load: &Load| self.sweeps.mean(*load, Protocol::Rdca, Quantity::Throughput);
        let (most, last) = (loads.iter().map(of).reduce(f64::max)?, of(loads.last()?));
        // A single sender that keeps up with every rate does not saturate.
        let offered = loads.last().map_or(0.0, |load| load.rate as f64 / 1e3);
        let saturates = last < 0.9 * offered && last > 0.9 * most;
        let highest = self.better(loads, Quantity::Throughput, 1.0);
        let holds = match (saturates, 2 * highest.holding > highest.all) {
            (true, true) => Holds::Yes,
            (false, false) => Holds::No,
            _ => Holds::Partly,
        };
        let text = format!(
            "{last:.2} kB/s at the highest rate, {most:.2} at most, the path carries {}; highest in {} of {}; {}; 8 kB/s \
             contradicts Table 2 (H5)",
            Figure::from(self.sweeps.capacity(1)).text(),
            highest.holding,
            highest.all,
            highest.text
        );
        Some((holds, text))
    }

    fn tcps_nearly_equal(&self, loads: &[Load]) -> Option<(bool, String)> {
        let apart = loads.iter().map(|load| {
            let span = self.span(&[*load], &TCPS, Quantity::Energy)?;
            Some(span.most().mean / span.least().mean)
        });
        let most = apart.collect::<Option<Vec<f64>>>()?.into_iter().fold(1.0, f64::max);
        Some((
            most <= 1.1,
            format!("the TCPs at most {:.0} % apart; totals of the network (H19)", 100.0 * (most - 1.0)),
        ))
    }

    /// Jain's index where there are several senders.
    fn near_and_far(&self, loads: &[Load]) -> Claim {
        let several: Vec<Load> = loads.iter().copied().filter(|load| load.senders > 1).collect();
        let of = |load: &Load, protocol| self.sweeps.mean(*load, protocol, Quantity::Fairness);
        let fair = several.iter().filter(|load| of(load, Protocol::Rdca) >= 0.95).count();
        let list: Vec<String> = several
            .iter()
            .map(|load| format!("{:.4}/{:.4}", of(load, Protocol::Rdca), of(load, Protocol::NewReno)))
            .collect();
        let text = format!("Jain's index, ours/NewReno {}; 0.95 is fair", list.join(", "));
        Count { holding: fair, no_worse: fair, all: several.len(), text }.judged()
    }
}

/// In how many cases something holds.
struct Count {
    holding: usize,
    /// The same and ties.
    no_worse: usize,
    all: usize,
    text: String,
}

impl Count {
    fn judged(self) -> Claim {
        let holds = match self.holding {
            n if n == self.all => Holds::Yes,
            0 if self.no_worse < self.all => Holds::No,
            _ => Holds::Partly,
        };
        (holds, format!("in {} of {} cases; {}", self.holding, self.all, self.text))
    }

    /// Something else must hold too.
    fn and(self, other: bool, text: &str) -> Claim {
        let (holds, measured) = self.judged();
        let holds = match (holds, other) {
            (Holds::Yes, true) => Holds::Yes,
            (Holds::No, false) => Holds::No,
            _ => Holds::Partly,
        };
        (holds, format!("{measured}; {text}"))
    }
}
