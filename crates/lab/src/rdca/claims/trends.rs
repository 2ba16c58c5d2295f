//! Claims that the paper makes about its figures in words.

use super::{Judge, Judged, rounded, why};
use crate::rdca::Protocol;
use crate::rdca::sweeps::{Load, Quantity, TCPS};
use crate::stats::Summary;
use crate::verdict::{self, Figure, Part};

impl Judge<'_> {
    pub(super) fn trend(&self, name: &str) -> Judged {
        let of: fn(&Self, Protocol) -> Vec<Part> = match name {
            "trend.1" => Self::grows_linearly,
            "trend.2" => {
                |judge, whose| judge.all(judge.sweeps.by_senders(), whose, Quantity::DeliveryRatio, 1.0)
            }
            "trend.3" => |judge, whose| {
                // "An order of magnitude" is read as a tenth.
                let times = judge.all(judge.sweeps.by_senders(), whose, Quantity::Delay, 0.1);
                times.into_iter().chain([judge.stable(whose, Quantity::Delay, 2.0)]).collect()
            },
            "trend.4" => |judge, whose| {
                let less = judge.all(judge.sweeps.by_senders(), whose, Quantity::Energy, 1.0);
                less.into_iter().chain([judge.stable(whose, Quantity::Energy, 1.5)]).collect()
            },
            "trend.5" => Self::hardly_a_word,
            "trend.6" => Self::saturates,
            "trend.7" => |judge, whose| judge.all(judge.sweeps.by_rate(), whose, Quantity::Lost, 1.0),
            "trend.8" => |judge, whose| judge.all(judge.sweeps.by_rate(), whose, Quantity::Delay, 1.0),
            "trend.9" => |judge, whose| {
                let less = judge.all(judge.sweeps.by_rate(), whose, Quantity::Energy, 1.0);
                less.into_iter().chain([judge.tcps_nearly_equal()]).collect()
            },
            // "Well below" is read as a tenth.
            "trend.10" => |judge, whose| judge.all(judge.sweeps.by_rate(), whose, Quantity::Control, 0.1),
            "trend.11" => Self::near_and_far,
            other => return Judged::unknown(other),
        };
        let ours = verdict::so(&of(self, Protocol::Rdca));
        let judged = Judged::parts(of(self, Protocol::RdcaPaper)).because(why(name));
        let judged = judged.noting(format!("ours: {ours}"));
        if name == "trend.6" { judged.against("H5") } else { judged }
    }

    /// Parts that state that a protocol is better than `times` the best TCP at each load.
    fn all(&self, loads: Vec<Load>, whose: Protocol, quantity: Quantity, times: f64) -> Vec<Part> {
        loads.into_iter().map(|load| self.better(load, whose, quantity, times)).collect()
    }

    /// Parts that state that the protocol's throughput is proportional to the number of senders,
    /// and that no TCP's is.
    fn grows_linearly(&self, whose: Protocol) -> Vec<Part> {
        let loads = self.sweeps.by_senders();
        let (first, last) = (loads[0], loads[loads.len() - 1]);
        let times = last.senders as f64 / first.senders as f64;
        // By how much the throughput exceeds that multiple of one sender's throughput, less 3 %.
        // The networks differ, so any pairing of runs is valid.
        let above = |protocol| {
            let [one, all] =
                [first, last].map(|load| self.sweeps.values(load, protocol, Quantity::Throughput));
            let gains = one.into_iter().zip(all).filter_map(|(one, all)| Some(all? - 0.97 * times * one?));
            Summary::of(&gains.collect::<Vec<_>>()).ok()
        };
        let part = |protocol: Protocol, found, word: &str| {
            let of = |load| rounded(self.sweeps.mean(load, protocol, Quantity::Throughput));
            let what = format!("{}: {} to {} kB/s, {word}", protocol.word(), of(first), of(last));
            Part::effect(what, found, 0.0)
        };
        let linear = part(whose, above(whose), "97 % of linear or more");
        let saturate = TCPS.map(|tcp| part(tcp, above(tcp).map(|s| s.scaled(-1.0, 0.0)), "less than that"));
        [linear].into_iter().chain(saturate).collect()
    }

    /// A part that states that the largest mean over the numbers of senders is at most `times` the
    /// smallest.
    fn stable(&self, whose: Protocol, quantity: Quantity, times: f64) -> Part {
        let Some(span) = self.span(&self.sweeps.by_senders(), &[whose], quantity) else {
            return Part::effect("stable", None, 0.0);
        };
        let (least, most) = (span.least().mean, span.most().mean);
        let what = format!("means from {} to {}, stable is {times} times", rounded(least), rounded(most));
        Part::fact(what, most <= times * least)
    }

    fn hardly_a_word(&self, whose: Protocol) -> Vec<Part> {
        let parts = self.sweeps.by_senders().into_iter().flat_map(|load| {
            let mean = |protocol| self.sweeps.mean(load, protocol, Quantity::Control);
            let little = self.sweeps.by_run(load, Quantity::Control, |of| Some(0.01 - of(whose)?));
            let much = self.sweeps.by_run(load, Quantity::Control, |of| {
                let all = TCPS.iter().map(|tcp| of(*tcp)).collect::<Option<Vec<f64>>>()?;
                Some(all.into_iter().reduce(f64::min)? - 0.9)
            });
            let theirs = TCPS.map(mean).into_iter().fold(f64::INFINITY, f64::min);
            [
                Part::effect(
                    format!("{} senders: {:.4}, near 0 is 0.01", load.senders, mean(whose)),
                    little,
                    0.0,
                ),
                Part::effect(format!("the TCPs {theirs:.3} at least, about 1 is 0.9"), much, 0.0),
            ]
        });
        parts.collect()
    }

    fn saturates(&self, whose: Protocol) -> Vec<Part> {
        let loads = self.sweeps.by_rate();
        let last = loads[loads.len() - 1];
        let offered = last.rate as f64 / 1e3;
        let of = |load: Load, protocol| self.sweeps.values(load, protocol, Quantity::Throughput);
        let runs = of(last, whose).len();
        let by_run = |of: &dyn Fn(usize) -> Option<f64>| {
            Summary::of(&(0..runs).filter_map(of).collect::<Vec<_>>()).ok()
        };
        let at_last = by_run(&|run| of(last, whose)[run]);
        let shown = at_last.map_or("none".to_owned(), |s| Figure::from(s).text());
        let more = |least: f64| at_last.map(|s| s.scaled(1.0, -least));
        // Share of rates at which no TCP delivers more.
        let highest = by_run(&|run| {
            let is_highest = |load: &Load| {
                let theirs = TCPS.iter().map(|tcp| of(*load, *tcp)[run]).collect::<Option<Vec<f64>>>()?;
                Some(f64::from(u8::from(
                    theirs.into_iter().all(|tcp| of(*load, whose)[run].is_some_and(|o| o > tcp)),
                )))
            };
            let all = loads.iter().map(is_highest).collect::<Option<Vec<f64>>>()?;
            Some(all.iter().sum::<f64>() / all.len() as f64)
        });
        let share = highest.map_or("none".to_owned(), |s| Figure::from(s).scaled(100.0, 0.0).text());
        vec![
            Part::effect(
                format!("{shown} kB/s of {offered} at the highest rate: saturated is nine tenths at most"),
                more(0.9 * offered).map(|s| s.scaled(-1.0, 0.0)),
                0.0,
            ),
            Part::within("near 8 kB/s is a tenth more or less", more(8.0), 0.8),
            Part::effect(
                format!("highest at {share} % of the rates, most is above 50 %"),
                highest.map(|s| s.scaled(1.0, -0.5)),
                0.0,
            ),
        ]
    }

    fn tcps_nearly_equal(&self) -> Part {
        let apart = self.sweeps.by_rate().into_iter().map(|load| {
            let span = self.span(&[load], &TCPS, Quantity::Energy)?;
            Some(span.most().mean / span.least().mean)
        });
        let Some(apart) = apart.collect::<Option<Vec<f64>>>() else {
            return Part::effect("the TCPs nearly equal", None, 0.0);
        };
        let most = apart.into_iter().fold(1.0, f64::max);
        let what = format!(
            "the TCPs' means at most {:.0} % apart, a tenth is nearly equal; totals of the network (H19)",
            100.0 * (most - 1.0)
        );
        Part::fact(what, most <= 1.1)
    }

    /// Parts about Jain's index with several senders.
    fn near_and_far(&self, whose: Protocol) -> Vec<Part> {
        let several = self.sweeps.by_senders().into_iter().filter(|load| load.senders > 1);
        let part = |load: Load| {
            let of = |protocol| self.sweeps.mean(load, protocol, Quantity::Fairness);
            let found = self.sweeps.by_run(load, Quantity::Fairness, |of| Some(of(whose)? - 0.95));
            let what = format!(
                "{} senders: Jain's index {:.4}, NewReno's {:.4}; 0.95 is similar",
                load.senders,
                of(whose),
                of(Protocol::NewReno)
            );
            Part::effect(what, found, 0.0)
        };
        several.map(part).collect()
    }
}
