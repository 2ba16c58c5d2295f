//! Compares the paper's numbers and claims with our measurements: every value and trend of the list
//! of targets.

use super::config::Mode;
use super::figures::Drawn;
use super::tables::{HOPS, LOSSES, Tables};
use crate::dtc::TARGETS;
use crate::plot::Point;
use crate::stats::Summary;
use crate::targets::Target;
use crate::verdict::{self, Figure, Judged, MATTERS, Part, Tolerance, Verdict, shown};

/// Judges every claim by the tables and figures.
pub fn verdicts(tables: &Tables, drawn: &[Drawn]) -> Vec<Verdict> {
    let judge = Judge { tables, drawn };
    verdict::judge_list(TARGETS, |target| judge.claim(target))
}

struct Judge<'a> {
    tables: &'a Tables,
    drawn: &'a [Drawn],
}

/// Cause of deviations for numbers of the paper's nodes.
const NODES: &str = "section IV leaves choices open (D11, D14 to D16), of which D14 and D16 move these numbers; what else the paper's nodes do \
                     is not said";

/// Cause of deviations for comparisons with plain TCP.
const PLAIN: &str = "our plain TCP backs off as RFC 6298 has it, the paper's stack is not said (D22)";

/// Cause of any other deviation.
const OTHER: &str = "cause not found";

impl Judge<'_> {
    fn claim(&self, target: &Target) -> Judged {
        let name = target.id.strip_prefix("dtc.").unwrap_or(&target.id);
        let judged = match name.split_once(".n") {
            Some((row, place)) if place.contains(".p") => self.cell(row, place),
            _ if target.number().is_some() => self.value(name),
            _ => self.trend(name),
        };
        let judged = if judged.why.is_none() { judged.because(OTHER) } else { judged };
        match name {
            "dtc_data_tx.n11.p05" | "dtc_ack_tx.n11.p05" => judged.against("D9"),
            _ => judged,
        }
    }

    /// Judges a cell of Tables I and II.
    fn cell(&self, row: &str, place: &str) -> Judged {
        let (hops, column) = place.split_once('.').unwrap_or((place, ""));
        let hops = hops.parse().unwrap_or(HOPS[0]);
        let loss = LOSSES.iter().find(|l| l.1 == column).map_or(0.0, |l| l.0);
        let Some((nodes, row)) = row.split_once('_') else { return Judged::unknown(row) };
        let metric = match row {
            "data_tx" => "data_transmissions",
            "ack_tx" => "ack_transmissions",
            "e2e_retransmissions" => "end_to_end_retransmissions",
            other => return Judged::unknown(other),
        };
        let of = |mode| self.tables.summary(metric, mode, hops, loss);
        if nodes == "nodtc" {
            return Judged::number(of(Mode::Tcp), Tolerance::Mean).because(PLAIN);
        }
        let judged = Judged::number(of(Mode::Paper), Tolerance::Mean).because(NODES);
        let change = self.tables.ratio(metric, (Mode::Improved, Mode::Paper), hops, loss);
        let change = change.map(|ratio| Figure::from(ratio).scaled(100.0, -100.0));
        let judged = judged.beside(of(Mode::Improved), change);
        // Without loss no retransmission can be saved.
        if loss == 0.0 || row == "ack_tx" {
            return judged;
        }
        let spared = self.difference(metric, (Mode::Tcp, Mode::Paper), hops, loss);
        judged.or_at_least(Part::effect("less than plain TCP", spared, 0.0))
    }

    /// Difference of a metric between two modes, run by run.
    fn difference(&self, metric: &str, modes: (Mode, Mode), hops: usize, loss: f64) -> Option<Summary> {
        let of = |mode, run: usize| self.tables.cell(mode, hops, loss).metric(metric).values[run];
        self.tables.by_run(|run| Some(of(modes.0, run)? - of(modes.1, run)?))
    }

    fn bound(&self, metric: &str, hops: usize) -> f64 {
        self.tables.mean(metric, Mode::Tcp, hops, 0.1)
    }

    fn value(&self, name: &str) -> Judged {
        let hops = if name.contains("n6") || name.contains("6hops") { 6 } else { 11 };
        let bound =
            |metric| Judged::number(Some(Figure::computed(self.bound(metric, hops))), Tolerance::Own(1.0));
        let above = |metric, bound| {
            let judged = Judged::number(self.above(metric, bound, hops, Mode::Paper), Tolerance::Difference);
            judged.because(NODES).beside(self.above(metric, bound, hops, Mode::Improved), None::<Figure>)
        };
        match name {
            "throughput_improvement.n6" | "throughput_improvement.n11" => self.throughput(hops),
            "flying_start_duration_decrease.n6" | "flying_start_duration_decrease.n11" => {
                Judged::gain(self.tables.shortened(hops), "")
            }
            "omniscient.n6" | "omniscient.n11" => bound("bound_omniscient"),
            "hbh_data.n6" | "hbh_data.n11" => bound("bound_hop_by_hop_data"),
            "hbh_ack.n6" | "hbh_ack.n11" => bound("bound_hop_by_hop_acks"),
            "rtt_no_dtc_n11" => {
                let least = self.curve("6", 1).into_iter().fold(f64::INFINITY, f64::min);
                Judged::at_most(Some(Figure::computed(least)))
                    .noting("the least of the first run, slightly below")
            }
            "dtc_over_omniscient.n6" | "dtc_over_omniscient.n11" => {
                above("data_transmissions", "bound_omniscient")
            }
            "dtc_over_hbh_data.n11" => above("data_transmissions", "bound_hop_by_hop_data"),
            "dtc_over_hbh_data.n6_max" => {
                let of = |mode| self.above("data_transmissions", "bound_hop_by_hop_data", hops, mode);
                Judged::at_most(of(Mode::Paper)).because(NODES).beside(of(Mode::Improved), None::<Figure>)
            }
            "dtc_below_hbh_ack.n11" => {
                let below = |mode| {
                    let above = self.above("ack_transmissions", "bound_hop_by_hop_acks", hops, mode);
                    above.map(|figure| figure.scaled(-1.0, 0.0))
                };
                let judged = Judged::number(below(Mode::Paper), Tolerance::Difference).instead(3.3, "D3");
                judged.because(NODES).beside(below(Mode::Improved), None::<Figure>)
            }
            "data_reduction_6hops_low_loss" => self.saved(6, 0.05, "p05"),
            "data_reduction_11hops_high_loss" => self.saved(11, 0.15, "p15"),
            "flying_start_efficiency_min" | "flying_start_efficiency_max" => {
                let saved = |hops| shown(self.tables.saved_by_flying_start(hops, "data_transmissions"));
                let [six, eleven] = HOPS.map(saved);
                Judged::unmeasured(format!(
                    "of what it is a share is not said; of data transmissions flying start saves {six} % over 6 hops and {eleven} % over \
                     11, of the time what Table IV has"
                ))
                .against("D19")
            }
            "action32_effect_max" => {
                let effect = self.tables.effect_of_action_32();
                let size = effect.map(|effect| Figure { mean: effect.mean.abs(), ..effect });
                let effect = effect.map_or("none".to_owned(), |effect| effect.text());
                Judged::at_most(size).noting(format!(
                    "transmissions change by {effect} %: receivers have SACK, and 3.2 is for those without (D10)"
                ))
            }
            "e2e_factor_all" => {
                let list: Vec<String> =
                    lossy().map(|(hops, loss)| format!("{:.1}", self.factor(hops, loss))).collect();
                let above = self.tables.factors().map(|f| f.scaled(1.0, -1.0));
                let judged = Judged::number(self.tables.factors(), Tolerance::Difference).instead(9.1, "D5");
                let judged = judged.or_at_least(Part::effect("above 1", above, 0.0));
                judged.noting(format!("the mean of {}", list.join(", "))).because(NODES)
            }
            "e2e_factor_best" => {
                let factor = self.tables.of_factors(&[(11, 0.15)], |factors| factors[0]);
                let above = factor.map(|f| f.scaled(1.0, -1.0));
                let judged = Judged::number(factor, Tolerance::Difference).instead(24.4, "D5");
                judged.or_at_least(Part::effect("above 1", above, 0.0)).because(NODES)
            }
            other => Judged::unknown(other),
        }
    }

    /// Plain TCP's end-to-end retransmissions, divided by those with the paper's nodes.
    fn factor(&self, hops: usize, loss: f64) -> f64 {
        self.tables.of_factors(&[(hops, loss)], |factors| factors[0]).map_or(f64::NAN, |f| f.mean)
    }

    /// Judges Table III, in its lower reading.
    fn throughput(&self, hops: usize) -> Judged {
        let percent = |mode| self.tables.throughput(mode, hops).map(|t| Figure::from(t).scaled(100.0, 0.0));
        let faster = self.tables.throughput(Mode::Paper, hops).map(|t| t.scaled(1.0, -1.0));
        let judged = Judged::number(percent(Mode::Paper), Tolerance::Difference)
            .or_at_least(Part::effect("faster than plain TCP", faster, 0.0))
            .beside(percent(Mode::Improved), None::<Figure>);
        judged.noting("of plain TCP's throughput; printed is that, or 100 % more (D18)").because(PLAIN)
    }

    /// By how many per cent nodes exceed a bound, with 10 % loss.
    fn above(&self, metric: &str, bound: &str, hops: usize, mode: Mode) -> Option<Figure> {
        let figure = Figure::from(self.tables.summary(metric, mode, hops, 0.1)?);
        Some(figure.scaled(100.0 / self.bound(bound, hops), -100.0))
    }

    /// How many per cent of plain TCP's data transmissions the paper's nodes save.
    fn saved(&self, hops: usize, loss: f64, column: &str) -> Judged {
        let of = |mode| {
            let ratio = self.tables.ratio("data_transmissions", (mode, Mode::Tcp), hops, loss)?;
            Some(ratio.scaled(-100.0, 100.0))
        };
        let judged = Judged::gain(of(Mode::Paper), format!("dtc.nodtc_data_tx.n{hops}.{column}"));
        judged.because(NODES).beside(of(Mode::Improved), None::<Figure>)
    }

    fn trend(&self, name: &str) -> Judged {
        match name {
            "trend.1" => {
                let more = |what: String, cells: &[(usize, f64)]| {
                    let found = self.tables.of_factors(cells, |factors| factors[1] - factors[0]);
                    let less = self.factor(cells[0].0, cells[0].1);
                    Part::effect(what, found, MATTERS * less)
                };
                let with_loss = HOPS.iter().flat_map(|&hops| {
                    LOSSES[1..].windows(2).map(move |pair| [(hops, pair[0].0), (hops, pair[1].0)])
                });
                let with_hops = LOSSES[1..].iter().map(|&(loss, _)| HOPS.map(|hops| (hops, loss)));
                let parts = with_loss.chain(with_hops).map(|cells| {
                    let [a, b] = cells.map(|(hops, loss)| {
                        format!("{:.1} ({hops} hops, {:.0} %)", self.factor(hops, loss), 100.0 * loss)
                    });
                    more(format!("a factor of {b}, after {a}"), &cells)
                });
                Judged::parts(parts.collect())
            }
            "trend.2" => {
                let fewer = |(hops, loss): (usize, f64)| {
                    let of = |loss, run: usize| {
                        self.tables.cell(Mode::Paper, hops, loss).metric("ack_transmissions").values[run]
                    };
                    let found = self.tables.by_run(|run| Some(of(0.0, run)? - of(loss, run)?));
                    let [none, some] =
                        [0.0, loss].map(|l| self.tables.mean("ack_transmissions", Mode::Paper, hops, l));
                    let what =
                        format!("{hops} hops: {some:.0} with {:.0} % loss, {none:.0} without", 100.0 * loss);
                    // The paper prints 2 to 12 % less.
                    Part::effect(what, found, 0.01 * none)
                };
                // As printed: not over 11 hops with 10 % loss.
                Judged::parts([(6, 0.05), (6, 0.1), (11, 0.05)].map(fewer).to_vec()).against("D4")
            }
            "trend.3" => {
                // "Much more" is read as at least half as much again.
                let found = self.ends(Mode::Tcp, |first, last| first - 1.5 * last);
                Judged::parts(vec![Part::effect(self.first_and_last(Mode::Tcp), found, 0.0)])
            }
            "trend.4" => {
                let slightly = self.ends(Mode::Paper, |first, last| last - first);
                let even = self.ends(Mode::Paper, |first, last| first / last - 1.0);
                let text = self.first_and_last(Mode::Paper);
                let judged = Judged::parts(vec![
                    Part::within(format!("{text}: a quarter apart at most"), even, 0.25),
                    Part::effect("less near the sender", slightly, 0.0),
                ]);
                judged.noting(format!("our nodes: {}", self.first_and_last(Mode::Improved)))
            }
            "trend.5" => {
                let [with, without] = [0, 1].map(|i| self.curve("6", i));
                let least = |list: &[f64]| list.iter().copied().fold(f64::INFINITY, f64::min);
                let most = |list: &[f64]| list.iter().copied().fold(0.0, f64::max);
                Judged::parts(vec![
                    Part::fact(
                        format!(
                            "the least is {:.3} s, without caching {:.3} s",
                            least(&with),
                            least(&without)
                        ),
                        (least(&with) - least(&without)).abs() < 0.01,
                    ),
                    Part::fact(
                        format!("the most is {:.3} s, half as much again as the least", most(&with)),
                        most(&with) > 1.5 * least(&with),
                    ),
                ])
                .noting("the first run")
            }
            "trend.6" => {
                let spread = |list: &[f64]| {
                    let n = list.len().max(1) as f64;
                    let mean = list.iter().sum::<f64>() / n;
                    (mean, (list.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt())
                };
                let (far, near) = (spread(&self.curve("7", 0)), spread(&self.curve("8", 0)));
                Judged::parts(vec![
                    Part::fact(
                        format!("{:.2} s near the receiver, {:.2} s near the sender", near.0, far.0),
                        near.0 < far.0,
                    ),
                    Part::fact(format!("σ {:.2} s and {:.2} s", near.1, far.1), near.1 < far.1),
                ])
                .noting("the first run")
            }
            "trend.7" => {
                let of = |metric: &str, run: usize| {
                    self.tables.cell(Mode::Paper, 11, 0.1).metric(metric).values[run]
                };
                let (useless, all) = ("unnecessary_retransmissions", "segments_resent_by_sender");
                let rare = self.tables.by_run(|run| Some(0.05 * of(all, run)? - of(useless, run)?));
                let [useless, all] =
                    [useless, all].map(|metric| self.tables.mean(metric, Mode::Paper, 11, 0.1));
                let what = format!("{useless:.1} of {all:.1} segments that are sent again; rare is 5 %");
                Judged::parts(vec![Part::effect(what, rare, 0.0)])
            }
            "trend.8" => {
                // Index of the segment from which on the estimate stays within a tenth of its last
                // value; 0 is the handshake.
                let settled = |curve: usize| {
                    let points = self.points("9", curve);
                    let last = points.last().map_or(f64::NAN, |point| point.y);
                    let off = points.iter().rposition(|point| (point.y - last).abs() > 0.1 * last);
                    points.get(off.map_or(0, |i| i + 1)).map_or(f64::NAN, |point| point.x)
                };
                let [with, without] = [0, 1].map(settled);
                let what = format!(
                    "within a tenth of its last value from segment {with} on, without flying start from {without} on; much earlier is half"
                );
                Judged::parts(vec![Part::fact(what, 2.0 * with <= without && without > 0.0)])
                    .noting("the first run")
            }
            "trend.9" => {
                let half = |run: usize| {
                    self.tables.cell(Mode::Paper, 11, 0.1).metric("data_transmissions").values[run]
                };
                let always = self.tables.always.metric("data_transmissions");
                let found = self.tables.by_run(|run| Some(always.values[run]? - half(run)?));
                let all = always.summary.map_or(f64::NAN, |s| s.mean);
                let what = format!("{} data transmissions fewer than {all:.0} with always", shown(found));
                Judged::parts(vec![Part::effect(what, found, MATTERS * all)])
            }
            other => Judged::unknown(other),
        }
    }

    /// Applies `of` to the first and the last node's transmissions, with 11 hops and 10 % loss, run
    /// by run.
    fn ends(&self, mode: Mode, of: impl Fn(f64, f64) -> f64) -> Option<Summary> {
        let runs = &self.tables.cell(mode, 11, 0.1).array("transmissions_by_node").runs;
        self.tables.by_run(|run| {
            let nodes = runs[run].as_ref()?;
            Some(of(*nodes.first()?, *nodes.last()?))
        })
    }

    fn first_and_last(&self, mode: Mode) -> String {
        let [first, last] = [self.ends(mode, |first, _| first), self.ends(mode, |_, last| last)].map(shown);
        format!("{first} by the first node, {last} by the last")
    }

    fn points(&self, id: &str, curve: usize) -> &[Point] {
        let drawn = self.drawn.iter().find(|d| d.id == id);
        drawn.and_then(|d| d.chart.series.get(curve)).map_or(&[], |series| &series.points)
    }

    /// The y values of a figure's curve.
    fn curve(&self, id: &str, curve: usize) -> Vec<f64> {
        self.points(id, curve).iter().map(|point| point.y).collect()
    }
}

/// The cells with losses.
fn lossy() -> impl Iterator<Item = (usize, f64)> {
    HOPS.into_iter().flat_map(|hops| LOSSES[1..].iter().map(move |&(loss, _)| (hops, loss)))
}
