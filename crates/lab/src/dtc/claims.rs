//! The paper's numbers and claims beside what we measure: every value and trend of the list of targets.

use super::config::Mode;
use super::figures::Drawn;
use super::tables::{HOPS, LOSSES, Tables};
use crate::dtc::TARGETS;
use crate::targets::{self, Kind, Target};
use crate::verdict::{Figure, Holds, Judged, Rule, Verdict};

/// Judges every claim by the tables and figures.
pub fn verdicts(tables: &Tables, drawn: &[Drawn]) -> Vec<Verdict> {
    let judge = Judge { tables, drawn };
    let judged = targets::read(TARGETS).into_iter().filter(|t| t.kind != Kind::Param).map(|target| {
        let judged = judge.claim(&target);
        Verdict::of(target, judged)
    });
    judged.collect()
}

struct Judge<'a> {
    tables: &'a Tables,
    drawn: &'a [Drawn],
}

/// Why a number of the paper's nodes is missed.
const NODES: &str = "with much loss over 11 hops the paper's nodes as we read them send more than it prints; none of the open \
                     choices (D11, D14 to D16) moves these cells by more than 3.5 %, and what else its nodes do is not said";

/// Why anything else is missed, if it is.
const OTHER: &str = "the runs are too few, or differ from the paper's for a reason that we do not know";

impl Judge<'_> {
    fn claim(&self, target: &Target) -> Judged {
        let name = target.id.strip_prefix("dtc.").unwrap_or(&target.id);
        let judged = match (name.split_once(".n"), target.number()) {
            (Some((row, place)), Some(printed)) if place.contains(".p") => self.cell(row, place, printed),
            (_, Some(printed)) => self.value(name, printed),
            (_, None) => self.trend(name),
        };
        let judged = if judged.why.is_none() { judged.because(OTHER) } else { judged };
        match name {
            "dtc_data_tx.n11.p05" | "dtc_ack_tx.n11.p05" => judged.against("D9"),
            _ => judged,
        }
    }

    /// A cell of Tables I and II.
    fn cell(&self, row: &str, place: &str, printed: f64) -> Judged {
        let (hops, column) = place.split_once('.').unwrap_or((place, ""));
        let hops = hops.parse().unwrap_or(HOPS[0]);
        let loss = LOSSES.iter().find(|l| l.1 == column).map_or(0.0, |l| l.0);
        let mode = if row.starts_with("nodtc") { Mode::Tcp } else { Mode::Paper };
        let (metric, rule) = match (row, hops) {
            ("nodtc_data_tx", _) => ("data_transmissions", Rule::Near(0.05 * printed)),
            ("nodtc_e2e_retransmissions", _) => ("end_to_end_retransmissions", Rule::Near(0.12 * printed)),
            ("dtc_data_tx", 6) => ("data_transmissions", Rule::Less(0.05 * printed)),
            ("dtc_data_tx", _) => ("data_transmissions", Rule::Less(0.10 * printed)),
            ("dtc_ack_tx", _) => ("ack_transmissions", Rule::Near(0.10 * printed)),
            _ => ("end_to_end_retransmissions", Rule::Less(0.10 * printed)),
        };
        let Some(ours) = self.tables.summary(metric, mode, hops, loss) else { return nothing() };
        Judged::number(printed, ours, rule).because(NODES)
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
        let hops = if name.contains("n6") || name.contains("6hops") { 6 } else { 11 };
        let bound =
            |metric| Judged::number(printed, Figure::computed(self.bound(metric, hops)), Rule::Near(1.0));
        let above = |figure: Option<Figure>, rule| match figure {
            Some(figure) => Judged::number(printed, figure, rule).because(NODES),
            None => nothing(),
        };
        // Give or take a third: a difference of two numbers that are near each other.
        let third = Rule::Less(0.33 * printed);
        match name {
            "throughput_improvement.n6" | "throughput_improvement.n11" => self.throughput(hops, printed),
            "flying_start_duration_decrease.n6" | "flying_start_duration_decrease.n11" => {
                above(self.tables.shortened(hops).map(Figure::from), Rule::Gain)
            }
            "omniscient.n6" | "omniscient.n11" => bound("bound_omniscient"),
            "hbh_data.n6" | "hbh_data.n11" => bound("bound_hop_by_hop_data"),
            "hbh_ack.n6" | "hbh_ack.n11" => bound("bound_hop_by_hop_acks"),
            "rtt_no_dtc_n11" => {
                let least = self.curve("6", 1).into_iter().fold(f64::INFINITY, f64::min);
                let ours = Figure { runs: 1, ..Figure::computed(least) };
                Judged::number(printed, ours, Rule::Near(0.05))
                    .noting("the least of the first run, below 0.5 s")
            }
            "dtc_over_omniscient.n6" | "dtc_over_omniscient.n11" => {
                above(self.above("data_transmissions", "bound_omniscient", hops), third)
            }
            "dtc_over_hbh_data.n11" => {
                above(self.above("data_transmissions", "bound_hop_by_hop_data", hops), third)
            }
            "dtc_over_hbh_data.n6_max" => {
                let figure = self.above("data_transmissions", "bound_hop_by_hop_data", hops);
                above(figure, Rule::AtMost(0.33 * printed))
            }
            "dtc_below_hbh_ack.n11" => {
                let figure = self.above("ack_transmissions", "bound_hop_by_hop_acks", hops);
                let below = figure.map(|f| f.scaled(-1.0, 0.0));
                let judged = below.map_or_else(nothing, |b| Judged::number(3.3, b, Rule::More(1.0)));
                judged.instead(3.3, "D3")
            }
            "data_reduction_6hops_low_loss" => above(self.saved(6, 0.05), Rule::More(0.1 * printed)),
            "data_reduction_11hops_high_loss" => above(self.saved(11, 0.15), Rule::More(0.1 * printed)),
            "flying_start_efficiency_min" | "flying_start_efficiency_max" => {
                let judged = Judged::said(
                    Holds::No,
                    "not measured; Table IV has the duration, which is shortened by more",
                );
                judged.against("D19").because("the paper does not say of what this is a share")
            }
            "action32_effect_max" => self.tables.effect_of_action_32().map_or_else(nothing, |effect| {
                let size = Figure { mean: effect.mean.abs(), ..effect };
                let judged = Judged::number(printed, size, Rule::AtMost(printed));
                judged.noting(format!(
                    "transmissions change by {} %: receivers have SACK, and 3.2 is for those without (D10)",
                    effect.text()
                ))
            }),
            "e2e_factor_all" => self.tables.factors().map_or_else(nothing, |mean| {
                let all =
                    HOPS.iter().flat_map(|&hops| LOSSES[1..].iter().map(move |&(loss, _)| (hops, loss)));
                let list: Vec<String> =
                    all.map(|(hops, loss)| format!("{:.1}", self.factor(hops, loss))).collect();
                let judged = Judged::number(9.1, mean, Rule::More(0.91)).instead(9.1, "D5");
                judged.noting(format!("the mean of {}", list.join(", "))).because(NODES)
            }),
            "e2e_factor_best" => {
                let metric = "end_to_end_retransmissions";
                let factor = self.tables.ratio(metric, (Mode::Tcp, Mode::Paper), 11, 0.15);
                let judged = factor.map_or_else(nothing, |f| Judged::number(24.4, f, Rule::More(2.44)));
                judged.instead(24.4, "D5").because(NODES)
            }
            other => Judged::unknown(other),
        }
    }

    /// Table III, in its lower reading.
    fn throughput(&self, hops: usize, printed: f64) -> Judged {
        let [paper, ours] = [Mode::Paper, Mode::Improved].map(|mode| self.tables.throughput(mode, hops));
        let (Some(paper), Some(ours)) = (paper, ours) else { return nothing() };
        let text = format!(
            "{:.1} times, with our nodes {:.1} times; printed are {:.1} times, or one more (D18)",
            paper.mean,
            ours.mean,
            printed / 100.0
        );
        Judged::number(printed, Figure::from(paper).scaled(100.0, 0.0), Rule::Gain).noting(text)
    }

    /// By how many per cent the paper's nodes are above a bound, with 10 % loss.
    fn above(&self, metric: &str, bound: &str, hops: usize) -> Option<Figure> {
        let figure = Figure::from(self.tables.summary(metric, Mode::Paper, hops, 0.1)?);
        Some(figure.scaled(100.0 / self.bound(bound, hops), -100.0))
    }

    /// How many per cent of plain TCP's data transmissions the paper's nodes save.
    fn saved(&self, hops: usize, loss: f64) -> Option<Figure> {
        let ratio = self.tables.ratio("data_transmissions", (Mode::Paper, Mode::Tcp), hops, loss)?;
        Some(Figure::from(ratio).scaled(-100.0, 100.0))
    }

    fn trend(&self, name: &str) -> Judged {
        let (holds, measured) = match name {
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
                let early = self.tables.shortened(11).map_or(f64::NAN, |s| s.mean);
                let text = format!(
                    "first estimates {:.3} s with, {:.3} s without, which comes later; Table IV: {early:.1} % less time",
                    first(&with),
                    first(&without)
                );
                (holds(early > 0.0), text)
            }
            "trend.9" => {
                let half = self.data(Mode::Paper, 11, 0.1);
                let always = self.tables.always.mean("data_transmissions").unwrap_or(f64::NAN);
                let text = format!("{half:.0} data transmissions with one half, {always:.0} with all");
                (holds(half < always), text)
            }
            other => return Judged::unknown(other),
        };
        let judged = Judged::said(holds, measured);
        if name == "trend.2" { judged.against("D4") } else { judged }
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

fn nothing() -> Judged {
    Judged::said(Holds::No, "no run has ended")
}

fn holds(it: bool) -> Holds {
    if it { Holds::Yes } else { Holds::No }
}

/// First and last.
fn ends(list: &[f64]) -> (f64, f64) {
    let or = |x: Option<&f64>| x.copied().unwrap_or(f64::NAN);
    (or(list.first()), or(list.last()))
}
