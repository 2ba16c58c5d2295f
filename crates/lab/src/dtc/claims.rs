//! The paper's numbers and claims beside what we measure: every value and trend of [`crate::targets::dtc`].

use super::config::{Config, Mode};
use super::figures::Drawn;
use super::tables::{self, HOPS, LOSSES, Tables};
use super::{Dtc, DtcPoint};
use crate::experiment::{self, RunError};
use crate::targets::{self, Kind, Target};
use crate::verdict;
pub use crate::verdict::{Holds, Verdict};

/// Judges every claim by the tables and figures and a few more runs.
///
/// # Errors
///
/// A run that could not be made.
pub fn verdicts(tables: &Tables, drawn: &[Drawn], runs: usize, seed: u64) -> Result<Vec<Verdict>, RunError> {
    let always = Config { cache_probability: 1.0, ..tables::cell(Mode::Paper, 11, 0.1) };
    let always = experiment::run(&Dtc, &DtcPoint::new(always), runs, seed)?;
    let judge = Judge { tables, drawn, always: always.mean("data_transmissions").unwrap_or(f64::NAN) };
    let judged = targets::dtc().into_iter().filter(|t| t.kind != Kind::Param).map(|target| {
        let judged = judge.claim(&target);
        Verdict::of(target, judged)
    });
    Ok(judged.collect())
}

/// The verdicts as a page.
pub fn markdown(verdicts: &[Verdict], runs: usize, seed: u64) -> String {
    let text = format!(
        "# The DTC paper's numbers and claims beside ours\n\n\
         `anabranch lab reproduce dtc`, {runs} runs, seed {seed}. Written by the program.\n\n\
         A printed number holds if ours is within 5 % (data transmissions without caching), 12 % (end-to-end\n\
         retransmissions without caching), not more than 5 % (6 hops) or 10 % (11 hops) above it (data transmissions\n\
         with the paper's nodes), or within 10 % (all else); in part within twice that. What the paper leaves open and\n\
         how we read it is in `docs/dtc-experiments.md`.\n\n"
    );
    text + &verdict::table(verdicts)
}

struct Judge<'a> {
    tables: &'a Tables,
    drawn: &'a [Drawn],
    /// Data transmissions over 11 hops with 10 % loss where every segment is cached.
    always: f64,
}

type Judged = (Holds, String);

impl Judge<'_> {
    fn claim(&self, target: &Target) -> Judged {
        let printed = target.value.as_ref().and_then(|v| v.as_float().or(v.as_integer().map(|n| n as f64)));
        let name = target.id.strip_prefix("dtc.").unwrap_or(&target.id);
        match (name.split_once(".n"), printed) {
            (Some((row, place)), Some(printed)) if place.contains(".p") => self.cell(row, place, printed),
            (_, Some(printed)) => self.value(name, printed),
            (_, None) => self.trend(name),
        }
    }

    /// A cell of Tables I and II.
    fn cell(&self, row: &str, place: &str, printed: f64) -> Judged {
        let (hops, column) = place.split_once('.').unwrap_or((place, ""));
        let hops = hops.parse().unwrap_or(HOPS[0]);
        let loss = LOSSES.iter().find(|l| l.1 == column).map_or(0.0, |l| l.0);
        let mode = if row.starts_with("nodtc") { Mode::Tcp } else { Mode::Paper };
        let (metric, tolerance, above_only) = match (row, hops) {
            ("nodtc_data_tx", _) => ("data_transmissions", 0.05, false),
            ("nodtc_e2e_retransmissions", _) => ("end_to_end_retransmissions", 0.12, false),
            ("dtc_data_tx", 6) => ("data_transmissions", 0.05, true),
            ("dtc_data_tx", _) => ("data_transmissions", 0.10, true),
            ("dtc_ack_tx", _) => ("ack_transmissions", 0.10, false),
            _ => ("end_to_end_retransmissions", 0.10, false),
        };
        let ours = self.tables.mean(metric, mode, hops, loss);
        let off = if printed == 0.0 { ours } else { ours / printed - 1.0 };
        let far = if above_only { off.max(0.0) } else { off.abs() };
        (within(far, tolerance), format!("{ours:.1} ({:+.1} %)", 100.0 * off))
    }

    fn data(&self, mode: Mode, hops: usize, loss: f64) -> f64 {
        self.tables.mean("data_transmissions", mode, hops, loss)
    }

    fn bound(&self, metric: &str, hops: usize) -> f64 {
        self.tables.mean(metric, Mode::Tcp, hops, 0.1)
    }

    /// Plain TCP's end-to-end retransmissions as a multiple of those with the paper's nodes.
    fn factor(&self, hops: usize, loss: f64) -> f64 {
        let of = |mode| self.tables.mean("end_to_end_retransmissions", mode, hops, loss);
        of(Mode::Tcp) / of(Mode::Paper)
    }

    fn value(&self, name: &str, printed: f64) -> Judged {
        let near =
            |ours: f64, unit: &str| (within((ours / printed - 1.0).abs(), 0.10), format!("{ours:.1}{unit}"));
        let at_least = |ours: f64, unit: &str| (holds(ours >= printed), format!("{ours:.1}{unit}"));
        let above = |ours: f64, bound: f64| 100.0 * (ours / bound - 1.0);
        let paper = |hops, loss| self.data(Mode::Paper, hops, loss);
        let saved = |hops, loss| 100.0 * (1.0 - paper(hops, loss) / self.data(Mode::Tcp, hops, loss));
        match name {
            "throughput_improvement.n6" | "throughput_improvement.n11" => {
                let hops = if name.ends_with("n6") { 6 } else { 11 };
                let [paper, ours] =
                    [Mode::Paper, Mode::Improved].map(|mode| self.tables.throughput(mode, hops));
                let text = format!("{paper:.1} times, with our nodes {ours:.1} times");
                (holds(100.0 * paper >= printed), text)
            }
            "flying_start_duration_decrease.n6" => at_least(self.tables.shortened(6), " %"),
            "flying_start_duration_decrease.n11" => at_least(self.tables.shortened(11), " %"),
            "omniscient.n6" => near(self.bound("bound_omniscient", 6), ""),
            "omniscient.n11" => near(self.bound("bound_omniscient", 11), ""),
            "hbh_data.n6" => near(self.bound("bound_hop_by_hop_data", 6), ""),
            "hbh_data.n11" => near(self.bound("bound_hop_by_hop_data", 11), ""),
            "hbh_ack.n6" => near(self.bound("bound_hop_by_hop_acks", 6), ""),
            "hbh_ack.n11" => near(self.bound("bound_hop_by_hop_acks", 11), ""),
            "rtt_no_dtc_n11" => {
                let rtt = self.curve("6", 1).into_iter().fold(f64::INFINITY, f64::min);
                (holds(rtt < printed && rtt > 0.9 * printed), format!("{rtt:.3} s"))
            }
            "dtc_over_omniscient.n6" => at_most(above(paper(6, 0.1), 3333.3), printed, " %"),
            "dtc_over_omniscient.n11" => at_most(above(paper(11, 0.1), 6111.1), printed, " %"),
            "dtc_over_hbh_data.n11" => {
                at_most(above(paper(11, 0.1), self.bound("bound_hop_by_hop_data", 11)), printed, " %")
            }
            "dtc_over_hbh_data.n6_max" => {
                at_most(above(paper(6, 0.1), self.bound("bound_hop_by_hop_data", 6)), printed, " %")
            }
            "dtc_below_hbh_ack.n11" => {
                let acks = self.tables.mean("ack_transmissions", Mode::Paper, 11, 0.1);
                let below = -above(acks, self.bound("bound_hop_by_hop_acks", 11));
                (holds(below > 0.0), format!("{below:.1} %"))
            }
            "data_reduction_6hops_low_loss" => near(saved(6, 0.05), " %"),
            "data_reduction_11hops_high_loss" => near(saved(11, 0.15), " %"),
            "flying_start_efficiency_min" | "flying_start_efficiency_max" => {
                (Holds::Partly, "the paper does not say of what; see Table IV".to_owned())
            }
            "action32_effect_max" => (Holds::Partly, "action 3.2 is left out, as the paper does".to_owned()),
            "e2e_factor_all" => {
                let all: Vec<f64> = HOPS
                    .iter()
                    .flat_map(|&hops| LOSSES[1..].iter().map(move |&(loss, _)| self.factor(hops, loss)))
                    .collect();
                let mean = all.iter().sum::<f64>() / all.len() as f64;
                let list: Vec<String> = all.iter().map(|f| format!("{f:.1}")).collect();
                let text = format!("{mean:.1} in the mean of {}", list.join(", "));
                (within((1.0 - mean / printed).max(0.0), 0.10), text)
            }
            "e2e_factor_best" => near(self.factor(11, 0.15), ""),
            other => (Holds::No, format!("nothing measures `{other}`")),
        }
    }

    fn trend(&self, name: &str) -> Judged {
        match name {
            "trend.1" => {
                let by_loss = HOPS.map(|hops| LOSSES[1..].iter().map(move |l| (hops, l.0)));
                let lists: Vec<Vec<f64>> =
                    by_loss.into_iter().map(|list| list.map(|(h, l)| self.factor(h, l)).collect()).collect();
                let grows = lists.iter().all(|list| list.windows(2).all(|w| w[1] > w[0]));
                let longer = lists[0].iter().zip(&lists[1]).all(|(six, eleven)| eleven > six);
                let text =
                    |list: &Vec<f64>| list.iter().map(|f| format!("{f:.1}")).collect::<Vec<_>>().join("/");
                let text = format!("6 hops {}, 11 hops {}", text(&lists[0]), text(&lists[1]));
                (if grows && longer { Holds::Yes } else { Holds::Partly }, text)
            }
            "trend.2" => {
                let acks = |hops| {
                    [0.0, 0.05, 0.1].map(|l| self.tables.mean("ack_transmissions", Mode::Paper, hops, l))
                };
                let (six, eleven) = (acks(6), acks(11));
                let as_printed = six[1] < six[0] && six[2] < six[0] && eleven[1] < eleven[0];
                let text = format!("6 hops {six:.0?}, 11 hops {eleven:.0?}");
                (holds(as_printed), text)
            }
            "trend.3" => {
                let nodes = self.nodes(Mode::Tcp);
                let (first, last) = ends(&nodes);
                (holds(nodes.windows(2).all(|w| w[0] > w[1])), format!("{first:.0} to {last:.0}"))
            }
            "trend.4" => {
                let (first, last) = ends(&self.nodes(Mode::Paper));
                let (ours_first, ours_last) = ends(&self.nodes(Mode::Improved));
                let text =
                    format!("{first:.0} to {last:.0}; with our nodes {ours_first:.0} to {ours_last:.0}");
                (holds(first <= last), text)
            }
            "trend.5" => {
                let [with, without] = [0, 1].map(|i| self.curve("6", i));
                let least = |list: &[f64]| list.iter().copied().fold(f64::INFINITY, f64::min);
                let most = |list: &[f64]| list.iter().copied().fold(0.0, f64::max);
                let text = format!(
                    "with {:.3} to {:.3} s, without {:.3} to {:.3} s",
                    least(&with),
                    most(&with),
                    least(&without),
                    most(&without)
                );
                let same = (least(&with) - least(&without)).abs() < 0.01;
                (holds(same && most(&with) > 1.5 * least(&with)), text)
            }
            "trend.6" => {
                let spread = |list: &[f64]| {
                    let n = list.len().max(1) as f64;
                    let mean = list.iter().sum::<f64>() / n;
                    (mean, (list.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt())
                };
                let (far, near) = (spread(&self.curve("7", 0)), spread(&self.curve("8", 0)));
                let text = format!(
                    "near the sender {:.2} ± {:.2} s, near the receiver {:.2} ± {:.2} s",
                    far.0, far.1, near.0, near.1
                );
                (holds(near.0 < far.0 && near.1 < far.1), text)
            }
            "trend.7" => {
                let of = |metric: &str| self.tables.mean(metric, Mode::Paper, 11, 0.1);
                let (useless, all) = (of("unnecessary_retransmissions"), of("segments_resent_by_sender"));
                (holds(useless < 0.05 * all), format!("{useless:.1} of {all:.1} segments"))
            }
            "trend.8" => {
                let [with, without] = [0, 1].map(|i| self.curve("9", i));
                let first = |list: &[f64]| list.first().copied().unwrap_or(f64::NAN);
                let early = self.tables.shortened(11);
                let text = format!(
                    "first estimates {:.3} s with, {:.3} s without, which comes later; Table IV: {early:.1} % less time",
                    first(&with),
                    first(&without)
                );
                (holds(early > 0.0), text)
            }
            "trend.9" => {
                let half = self.data(Mode::Paper, 11, 0.1);
                let text = format!("{half:.0} data transmissions with one half, {:.0} with all", self.always);
                (holds(half < self.always), text)
            }
            other => (Holds::No, format!("nothing measures `{other}`")),
        }
    }

    fn nodes(&self, mode: Mode) -> Vec<f64> {
        self.tables.cell(mode, 11, 0.1).array("transmissions_by_node").means()
    }

    /// The y of a figure's curve.
    fn curve(&self, id: &str, curve: usize) -> Vec<f64> {
        let drawn = self.drawn.iter().find(|d| d.id == id);
        let series = drawn.and_then(|d| d.chart.series.get(curve));
        series.map(|s| s.points.iter().map(|p| p.y).collect()).unwrap_or_default()
    }
}

/// Up to the tolerance, or up to twice that.
fn within(off: f64, tolerance: f64) -> Holds {
    if off <= tolerance {
        Holds::Yes
    } else if off <= 2.0 * tolerance {
        Holds::Partly
    } else {
        Holds::No
    }
}

/// At most what is printed, give or take a third of it.
fn at_most(ours: f64, printed: f64, unit: &str) -> Judged {
    (within((ours / printed - 1.0).max(0.0), 0.33), format!("{ours:.1}{unit}"))
}

fn holds(it: bool) -> Holds {
    if it { Holds::Yes } else { Holds::No }
}

/// First and last.
fn ends(list: &[f64]) -> (f64, f64) {
    let or = |x: Option<&f64>| x.copied().unwrap_or(f64::NAN);
    (or(list.first()), or(list.last()))
}
