//! The paper's numbers and claims beside what we measure: every value and trend of [`crate::targets::mptcp`].

use super::tables::{DEPLOYMENTS, QUANTITIES, Quantity, Tables, Way, shown};
use crate::stats::Summary;
use crate::targets::{self, Kind, Target};
use crate::verdict;
pub use crate::verdict::{Holds, Verdict};

/// Judges every claim, by our way of the proposed scheme.
pub fn verdicts(tables: &Tables) -> Vec<Verdict> {
    let judge = Judge { tables };
    let judged = targets::mptcp().into_iter().filter(|t| t.kind != Kind::Param).map(|target| {
        let judged = judge.claim(&target);
        Verdict::of(target, judged)
    });
    judged.collect()
}

/// The verdicts as a page.
pub fn markdown(verdicts: &[Verdict], runs: usize, seed: u64) -> String {
    let text = format!(
        "# The numbers and claims of the paper on multipath TCP beside ours\n\n\
         `anabranch lab reproduce mptcp`, {runs} runs, seed {seed}. Written by the program.\n\n\
         P is judged by our way, `scheme=proposed`; the paper's way (`subflows=3`) stands beside it. A number of C holds if\n\
         ours is within 10 % of it (delivery ratio: 1 point), one of P if ours is no worse than that, in part within twice\n\
         that. A reduction or gain holds if ours reaches it, or its 95 % interval does, and holds in part if it is one\n\
         beyond doubt, that is if its interval leaves zero out. Where the paper contradicts itself (errata M24, M25, M26) we judge\n\
         by the number that follows from its others, and say so. What it leaves open is in `docs/mptcp-experiments.md`.\n\n"
    );
    text + &verdict::table(verdicts)
}

/// Numbers that contradict others of the paper: what follows from those, and the erratum.
pub(super) const CORRECTED: [(&str, f64, &str); 8] = [
    // Printed are the differences in kbit/s, and for the sunflower something else.
    ("n10.throughput.gain", 11.4, "M24"),
    ("n20.throughput.gain", 39.4, "M24"),
    ("circle50.throughput.gain", 8.9, "M24"),
    // Packets of 800 bit over the printed times.
    ("n40.throughput.P", 22.9, "M25"),
    ("n40.throughput.gain", 17.6, "M25"),
    ("corner25.throughput.P", 13.3, "M25"),
    // The printed times.
    ("n10.delivery_time.reduction", 9.8, "M26"),
    ("corner25.delivery_time.reduction", 25.0, "M26"),
];

struct Judge<'a> {
    tables: &'a Tables,
}

type Judged = (Holds, String);

impl Judge<'_> {
    fn claim(&self, target: &Target) -> Judged {
        let printed = target.value.as_ref().and_then(|v| v.as_float().or(v.as_integer().map(|n| n as f64)));
        let name = target.id.strip_prefix("mptcp.").unwrap_or(&target.id);
        let Some(printed) = printed else { return self.trend(name) };
        let Some((_, follows, erratum)) = CORRECTED.iter().find(|c| c.0 == name) else {
            return self.value(name, printed);
        };
        let (holds, measured) = self.value(name, *follows);
        (
            holds,
            format!(
                "{measured}; judged by {follows}, which follows from the paper's other numbers ({erratum})"
            ),
        )
    }

    fn value(&self, name: &str, printed: f64) -> Judged {
        if name == "n10_40.pdr.min" {
            return self.ratios_of_small_deployments(printed);
        }
        let mut parts = name.split('.');
        let (Some(place), Some(what), Some(which)) = (parts.next(), parts.next(), parts.next()) else {
            return unknown(name);
        };
        if !DEPLOYMENTS.iter().any(|d| d.id == place) {
            return unknown(name);
        }
        let of = QUANTITIES.iter().find(|q| q.1 == what).map(|q| q.0);
        match (of, which) {
            (Some(quantity), "C" | "P") => self.number(place, quantity, which, printed),
            (Some(quantity), "gain" | "reduction") => self.change(place, quantity, printed),
            (None, "C") if what == "ml_reduction" => self.by_multi_link(Way::Conventional, printed),
            (None, "P") if what == "ml_reduction" => self.by_multi_link(Way::Ours, printed),
            _ => unknown(name),
        }
    }

    /// A number of a scheme.
    fn number(&self, place: &str, quantity: Quantity, which: &str, printed: f64) -> Judged {
        let way = if which == "C" { Way::Conventional } else { Way::Ours };
        let Some(ours) = self.tables.summary(place, way, quantity) else { return nothing() };
        let (off, tolerance, unit) = match quantity {
            Quantity::DeliveryRatio => (ours.mean - printed, 1.0, "points"),
            _ => (100.0 * (ours.mean / printed - 1.0), 10.0, "%"),
        };
        let worse = match quantity {
            Quantity::Transmissions | Quantity::DeliveryTime => off,
            Quantity::Throughput | Quantity::DeliveryRatio => -off,
        };
        let far = if way == Way::Conventional { off.abs() } else { worse.max(0.0) };
        let mut text = format!("{} ({off:+.1} {unit})", shown(&ours));
        if way == Way::Ours {
            text += &format!("; the paper's way {}", self.shown(place, Way::Printed, quantity));
        }
        (within(far, tolerance), text)
    }

    /// By how much P is better than C.
    fn change(&self, place: &str, quantity: Quantity, printed: f64) -> Judged {
        let of = |way| self.better((place, way), (place, Way::Conventional), quantity);
        let Some(ours) = of(Way::Ours) else { return nothing() };
        let unit = if quantity == Quantity::DeliveryRatio { "points" } else { "%" };
        let other = of(Way::Printed).map_or("none".to_owned(), |s| shown(&s));
        (reaches(&ours, printed), format!("{} {unit}; the paper's way {other} {unit}", shown(&ours)))
    }

    /// By how much one cell is better than another: in per cent, the delivery ratio in points.
    fn better(&self, a: (&str, Way), b: (&str, Way), quantity: Quantity) -> Option<Summary> {
        if quantity == Quantity::DeliveryRatio {
            return self.tables.difference(a, b, quantity);
        }
        let ratio = self.tables.ratio(a, b, quantity)?;
        let sign = match quantity {
            Quantity::Transmissions | Quantity::DeliveryTime => -100.0,
            Quantity::Throughput | Quantity::DeliveryRatio => 100.0,
        };
        Some(Summary { mean: sign * (ratio.mean - 1.0), ci95: ratio.ci95.map(|c| 100.0 * c), ..ratio })
    }

    fn by_multi_link(&self, way: Way, printed: f64) -> Judged {
        let of = |way| self.better(("corner25ml", way), ("corner25", way), Quantity::Transmissions);
        let Some(ours) = of(way) else { return nothing() };
        let mut text = format!("{} %", shown(&ours));
        if way == Way::Ours {
            let other = of(Way::Printed).map_or("none".to_owned(), |s| shown(&s));
            text += &format!("; the paper's way {other} %");
        }
        (reaches(&ours, printed), text)
    }

    fn ratios_of_small_deployments(&self, printed: f64) -> Judged {
        let places = ["n10", "n20", "n30", "n40"];
        let of = |place, way| self.mean(place, way, Quantity::DeliveryRatio);
        let pairs = places.map(|place| (of(place, Way::Conventional), of(place, Way::Ours)));
        let least = pairs.iter().map(|(c, p)| c.min(*p)).fold(f64::INFINITY, f64::min);
        let higher = pairs.iter().filter(|(c, p)| p >= c).count();
        let list: Vec<String> = pairs.iter().map(|(c, p)| format!("{c:.1}/{p:.1}")).collect();
        let text = format!("C/P {}; at least {least:.1}, P not lower in {higher} of 4", list.join(", "));
        let holds = match least {
            least if least >= printed && higher == 4 => Holds::Yes,
            least if least >= printed - 1.0 => Holds::Partly,
            _ => Holds::No,
        };
        (holds, text)
    }

    fn trend(&self, name: &str) -> Judged {
        match name {
            "trend.1" => self.fewer_and_the_gap_grows(),
            "trend.2" => self.distributions(),
            "trend.3" => self.more_transmissions("circle50", "n50"),
            "trend.4" => {
                let (share, text) = self.earlier("circle50", 80);
                (if share == 80 { Holds::Yes } else { Holds::No }, text)
            }
            "trend.5" => self.more_transmissions("corner25", "n30"),
            "trend.6" => self.multi_link_helps(),
            "trend.7" => self.plateaus(),
            "trend.8" => {
                let (share, text) = self.earlier("corner25", 100);
                let holds = match share {
                    100 => Holds::Yes,
                    90.. => Holds::Partly,
                    _ => Holds::No,
                };
                (holds, text)
            }
            other => unknown(other),
        }
    }

    fn fewer_and_the_gap_grows(&self) -> Judged {
        let gaps = ["n10", "n20", "n30", "n40", "n50"].map(|place| {
            let (c, p) = ((place, Way::Conventional), (place, Way::Ours));
            self.tables.difference(c, p, Quantity::Transmissions)
        });
        let fewer = gaps.iter().flatten().filter(|gap| gap.mean > 0.0 && is_sure(gap)).count();
        let means: Vec<f64> = gaps.iter().flatten().map(|gap| gap.mean).collect();
        let grows = means.windows(2).filter(|pair| pair[1] > pair[0]).count();
        let list: Vec<String> = gaps.iter().flatten().map(shown).collect();
        let holds = match (fewer, grows) {
            (5, 4) => Holds::Yes,
            (5, _) => Holds::Partly,
            _ => Holds::No,
        };
        (holds, format!("C less P: {}; fewer in {fewer} of 5", list.join(", ")))
    }

    fn distributions(&self) -> Judged {
        let (mut similar, mut faster, mut text) = (0, 0, Vec::new());
        for place in ["n10", "n20"] {
            let [c, p] = self.medians(place);
            // As far as two curves of one figure may lie apart and still be called similar.
            similar += usize::from((p / c - 1.0).abs() <= 0.15);
            text.push(format!("{place}: medians {c:.1} and {p:.1} s"));
        }
        for place in ["n30", "n40", "n50"] {
            let (share, found) = self.earlier(place, 90);
            faster += usize::from(share == 90);
            text.push(format!("{place}: {found}"));
        }
        let holds = match (similar, faster) {
            (2, 3) => Holds::Yes,
            (_, 3) | (2, _) => Holds::Partly,
            _ => Holds::No,
        };
        (holds, text.join("; "))
    }

    fn medians(&self, place: &str) -> [f64; 2] {
        [Way::Conventional, Way::Ours].map(|way| self.tables.latencies(place, way)[49])
    }

    /// For how many of the first `percent` per cent of packets the latency that they do not exceed is smaller with P.
    fn earlier(&self, place: &str, percent: usize) -> (usize, String) {
        let of = |way| self.tables.latencies(place, way);
        let (c, p) = (of(Way::Conventional), of(Way::Ours));
        let earlier = c.iter().zip(&p).take(percent).filter(|(c, p)| p < c).count();
        let (c, p) = (c[percent - 1], p[percent - 1]);
        (
            earlier,
            format!(
                "{percent} % within {c:.1} s and {p:.1} s, P smaller at {earlier} of {percent} per cents"
            ),
        )
    }

    fn more_transmissions(&self, more: &str, less: &str) -> Judged {
        let (mut holding, mut text) = (0, Vec::new());
        for (way, word) in [(Way::Conventional, "C"), (Way::Ours, "P")] {
            let ends = |place, sign: f64| {
                let found = self.tables.summary(place, way, Quantity::Transmissions);
                found.map_or(f64::NAN, |s| s.mean + sign * s.ci95.unwrap_or(0.0))
            };
            // Not the same channel: the intervals must not meet.
            holding += usize::from(ends(more, -1.0) > ends(less, 1.0));
            let [a, b] = [more, less].map(|place| self.shown(place, way, Quantity::Transmissions));
            text.push(format!("{word}: {a} against {b}"));
        }
        (part(holding, 2), text.join("; "))
    }

    fn multi_link_helps(&self) -> Judged {
        let (mut holding, mut text) = (0, Vec::new());
        for (quantity, word, unit) in [
            (Quantity::Transmissions, "transmissions", "%"),
            (Quantity::DeliveryTime, "time", "%"),
            (Quantity::DeliveryRatio, "delivery ratio", "points"),
        ] {
            for (way, scheme) in [(Way::Conventional, "C"), (Way::Ours, "P")] {
                let Some(found) = self.better(("corner25ml", way), ("corner25", way), quantity) else {
                    continue;
                };
                holding += usize::from(found.mean > 0.0 && is_sure(&found));
                let sure = found.ci95.unwrap_or(0.0);
                text.push(format!("{word} {scheme}: {:.2} ± {sure:.2} {unit}", found.mean));
            }
        }
        (part(holding, 6), format!("better by {}; beyond doubt in {holding} of 6", text.join(", ")))
    }

    /// Figure 3: times in which nobody transmits. A twentieth of a second is a pause between two packets, a second is not.
    fn plateaus(&self) -> Judged {
        let (mut holding, mut text) = (0, Vec::new());
        for (way, word) in [(Way::Conventional, "C"), (Way::Ours, "P")] {
            let places = ["n10", "n20", "n30", "n40", "n50"];
            let runs = || places.iter().flat_map(|place| &self.tables.cell(place, way).runs);
            let with = runs().filter(|run| run.silence >= 1.0).count();
            let longest = runs().map(|run| run.silence).fold(0.0, f64::max);
            holding += usize::from(2 * with >= runs().count());
            text.push(format!("{word}: in {with} of {} runs, the longest {longest:.1} s", runs().count()));
        }
        (part(holding, 2), format!("at least 1 s without a transmission, {}", text.join("; ")))
    }

    fn mean(&self, place: &str, way: Way, quantity: Quantity) -> f64 {
        self.tables.summary(place, way, quantity).map_or(f64::NAN, |s| s.mean)
    }

    fn shown(&self, place: &str, way: Way, quantity: Quantity) -> String {
        self.tables.summary(place, way, quantity).map_or("none".to_owned(), |s| shown(&s))
    }
}

/// Up to the tolerance, or up to twice that.
pub(super) fn within(off: f64, tolerance: f64) -> Holds {
    match off {
        off if off <= tolerance => Holds::Yes,
        off if off <= 2.0 * tolerance => Holds::Partly,
        _ => Holds::No,
    }
}

/// An improvement that reaches the printed one, or is one at all.
pub(super) fn reaches(ours: &Summary, printed: f64) -> Holds {
    if ours.mean + ours.ci95.unwrap_or(0.0) >= printed {
        Holds::Yes
    } else if ours.mean > 0.0 && is_sure(ours) {
        Holds::Partly
    } else {
        Holds::No
    }
}

/// Beyond doubt, as far as the number of runs lets one doubt: a single run has no interval.
fn is_sure(found: &Summary) -> bool {
    found.ci95.is_none() || found.excludes_zero()
}

fn part(some: usize, all: usize) -> Holds {
    match some {
        0 => Holds::No,
        some if some == all => Holds::Yes,
        _ => Holds::Partly,
    }
}

fn nothing() -> Judged {
    (Holds::No, "no run has delivered everything".to_owned())
}

fn unknown(name: &str) -> Judged {
    (Holds::No, format!("nothing measures `{name}`"))
}

#[cfg(test)]
mod tests;
