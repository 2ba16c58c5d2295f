//! The paper's claims about SET beside what we measure: every value and trend of [`crate::targets`].

use super::Set;
use super::figures::{Drawn, SPLIT, set_curve};
use crate::experiment::{self, RunError, Settings};
use crate::set::TARGETS;
use crate::targets::{self, Kind, Target};
use crate::verdict::{Figure, Holds, Judged, Rule, Verdict};
use crate::work::Work;
use anabranch_model::set::establishment::Establishment;
use anabranch_model::set::{HandshakeEnd, OpenWait, Path};

/// Judges every claim by the drawn panels (all of them) and a few more runs.
///
/// # Errors
///
/// A run that could not be made.
///
/// # Panics
///
/// If a panel is missing.
pub fn verdicts(drawn: &[Drawn], work: &Work<'_>) -> Result<Vec<Verdict>, RunError> {
    let judge = Judge { drawn, work };
    let judged = targets::read(TARGETS).into_iter().filter(|t| t.kind != Kind::Param).map(|target| {
        let judged = judge.claim(&target)?;
        Ok(Verdict::of(target, judged))
    });
    judged.collect()
}

struct Judge<'a> {
    drawn: &'a [Drawn],
    work: &'a Work<'a>,
}

/// Runs that the claims need beside the panels: of [`Judge::ideal`], [`Judge::independent`] and [`Judge::failure`].
pub(super) const RUNS: usize = 4 + 2 + 3;

/// A claim in words: whether it holds, and what was measured.
type Claim = (Holds, String);

/// What is said where a claim does not hold: none did not so far.
const WHY: &str = "with these runs the figures do not show it";

impl Judge<'_> {
    fn claim(&self, target: &Target) -> Result<Judged, RunError> {
        match target.number() {
            Some(printed) => Ok(value(&target.id, printed)),
            None => Ok(self.trend(&target.id)?.because(WHY)),
        }
    }

    fn trend(&self, id: &str) -> Result<Judged, RunError> {
        let claim = match id {
            "set.trend.1" => self.more_gateways(&["10a", "10b", "10c"]),
            "set.trend.2" => self.falls_with_x(&["10a", "10b", "10c"]),
            "set.trend.3" => self.similar_buffers(),
            "set.trend.4" => self.small_buffers(),
            "set.trend.5" => self.delay_grows(&["11a", "11b", "11c"]),
            "set.trend.6" => self.delay_helps(),
            "set.trend.7" => self.pronounced(),
            "set.trend.8" => self.bandwidth(),
            "set.trend.9" => self.linear(),
            "set.trend.10" => self.slower_rise(),
            "set.trend.11" => self.hops(),
            "set.trend.12" => self.ideal()?,
            "set.trend.13" => self.independent()?,
            "set.trend.14" => self.failure()?,
            other => return Ok(Judged::unknown(other)),
        };
        Ok(claim.into())
    }

    fn panel(&self, id: &str) -> &Drawn {
        self.drawn.iter().find(|d| d.id == id).expect("every panel is drawn before claims are judged")
    }

    /// The mean latency with these settings, all others as they are by default.
    fn latency(&self, set: &[(&str, &str)]) -> Result<Option<f64>, RunError> {
        let defaults = Settings::defaults(&Set);
        let settings = set.iter().fold(defaults, |settings, (key, value)| settings.with(key, value));
        let outcome = experiment::run(&Set, &settings, self.work)?;
        Ok(outcome.mean("latency_s"))
    }

    /// SET's curves for 1, 2, 3 gateways.
    fn by_gateways(&self, id: &str) -> [Vec<(f64, f64)>; 3] {
        [1, 2, 3].map(|n| self.panel(id).curve(&set_curve(n)))
    }

    /// Latency over one gateway as a multiple of that over three, at each x.
    fn gains(&self, id: &str) -> Vec<(f64, f64)> {
        let [one, _, three] = self.by_gateways(id);
        one.iter().zip(&three).map(|(a, b)| (a.0, a.1 / b.1)).collect()
    }

    fn more_gateways(&self, ids: &[&str]) -> Claim {
        let (mut all, mut falls, mut except) = (0, 0, Vec::new());
        for id in ids {
            let [one, two, three] = self.by_gateways(id);
            for ((a, b), c) in one.iter().zip(&two).zip(&three) {
                all += 1;
                if a.1 > b.1 && b.1 > c.1 {
                    falls += 1;
                } else {
                    except.push(format!("{id} at {}: {:.2}/{:.2}/{:.2} s", a.0, a.1, b.1, c.1));
                }
            }
        }
        let mut text = format!("falls 1 > 2 > 3 at {falls} of {all} points");
        if !except.is_empty() {
            text += &format!("; not in {}", except.join(", "));
        }
        (part(falls, all), text)
    }

    fn falls_with_x(&self, ids: &[&str]) -> Claim {
        let (mut all, mut falls) = (0, 0);
        let mut text = Vec::new();
        for id in ids {
            for curve in self.by_gateways(id) {
                all += 1;
                // Past what the path can use a larger buffer changes nothing.
                let monotone = curve.windows(2).all(|w| w[1].1 <= w[0].1 * 1.02);
                falls += usize::from(monotone && ends(&curve).1 < ends(&curve).0);
            }
            let (first, last) = ends(&self.panel(id).curve(&set_curve(3)));
            text.push(format!("{id}, 3 gateways: {first:.2} to {last:.2} s"));
        }
        (part(falls, all), format!("{falls} of {all} curves fall until they are flat; {}", text.join(", ")))
    }

    fn similar_buffers(&self) -> Claim {
        // A gateway's 100 packets hold 100 segments of 81 octets: 8.1 kB.
        let mut worst = f64::INFINITY;
        let mut text = Vec::new();
        for id in ["10b", "10c"] {
            let gains = self.gains(id);
            let best = gains.iter().map(|g| g.1).fold(0.0, f64::max);
            let similar =
                gains.iter().filter(|g| (8.0..=64.0).contains(&g.0)).map(|g| g.1).fold(0.0, f64::max);
            let (first, last) = ends(&gains);
            worst = worst.min(similar / best);
            text.push(format!(
                "{id}: {first:.2} at the smallest, {similar:.2} at 8 to 64 kB, {last:.2} at the largest"
            ));
        }
        (holds(worst > 0.97), format!("gain of 3 gateways over 1, {}", text.join("; ")))
    }

    fn small_buffers(&self) -> Claim {
        let mut fine = true;
        let mut text = Vec::new();
        for id in ["10b", "10c"] {
            let gains = self.gains(id);
            let (small, large) = ends(&gains);
            fine &= small < large;
            text.push(format!("{id}: {small:.2} at {} kB against {large:.2}", gains[0].0));
        }
        (holds(fine), format!("gain of 3 gateways over 1, {}", text.join("; ")))
    }

    fn delay_grows(&self, ids: &[&str]) -> Claim {
        let grows = |curve: &[(f64, f64)]| curve.windows(2).all(|w| w[1].1 > w[0].1);
        let mut fine = true;
        for id in ids {
            let [one, two, three] = self.by_gateways(id);
            fine &= [&one, &two, &three].iter().all(|c| grows(c));
            fine &= one.iter().zip(&two).zip(&three).all(|((a, b), c)| b.1 < a.1 && c.1 < a.1);
        }
        let [one, _, three] = self.by_gateways("11c");
        let text = format!(
            "129 kB: 1 gateway {:.2} to {:.2} s, 3 gateways {:.2} to {:.2} s",
            ends(&one).0,
            ends(&one).1,
            ends(&three).0,
            ends(&three).1
        );
        (holds(fine), text)
    }

    fn delay_helps(&self) -> Claim {
        let saved = |id: &str| {
            let [one, _, three] = self.by_gateways(id);
            let first = one[0].1 - three[0].1;
            let (a, b) = (one[one.len() - 1].1, three[three.len() - 1].1);
            (first, a - b)
        };
        let all: Vec<(&str, (f64, f64))> = ["12a", "12b", "12c"].iter().map(|id| (*id, saved(id))).collect();
        let more = all.iter().filter(|(_, (first, last))| last > first).count();
        let text: Vec<String> =
            all.iter().map(|(id, (first, last))| format!("{id}: {first:.2} to {last:.2} s")).collect();
        (part(more, all.len()), format!("seconds saved by 3 gateways from 5 to 200 ms, {}", text.join(", ")))
    }

    fn pronounced(&self) -> Claim {
        let growth = |id: &str| {
            let (first, last) = ends(&self.panel(id).curve(&set_curve(1)));
            last / first
        };
        let pairs = [("11a", "12a"), ("11b", "12b"), ("11c", "12c")];
        let more = pairs.iter().filter(|(slow, fast)| growth(fast) > growth(slow)).count();
        let text: Vec<String> = pairs
            .iter()
            .map(|(slow, fast)| format!("{slow}/{fast}: x{:.1} / x{:.1}", growth(slow), growth(fast)))
            .collect();
        (part(more, pairs.len()), format!("latency from 5 to 200 ms, {}", text.join(", ")))
    }

    fn bandwidth(&self) -> Claim {
        let (falls, _) = self.more_gateways(&["13a", "13b", "13c"]);
        let mut text = Vec::new();
        let mut larger = true;
        let saved = |id: &str| -> Vec<f64> {
            let [one, _, three] = self.by_gateways(id);
            one.iter().zip(&three).map(|(a, b)| a.1 - b.1).collect()
        };
        for id in ["13a", "13b", "13c"] {
            let saved = saved(id);
            larger &= saved.windows(2).all(|w| w[0] > w[1]);
            text.push(format!("{id}: {:.2}/{:.2}/{:.2} s", saved[0], saved[1], saved[2]));
        }
        larger &= saved("13a")[0] < saved("13b")[0] && saved("13b")[0] < saved("13c")[0];
        let fine = falls == Holds::Yes && larger;
        (holds(fine), format!("saved by 3 gateways at 56/128/256 kbit/s, {}", text.join(", ")))
    }

    fn linear(&self) -> Claim {
        let mut text = Vec::new();
        let mut fine = true;
        for id in ["14a", "14b"] {
            let curve = self.panel(id).curve(SPLIT);
            let (slope, fit) = line(&curve);
            fine &= slope > 0.0 && fit > 0.95;
            text.push(format!("{id}: {slope:.3} s per transfer, R² = {fit:.4}"));
        }
        (holds(fine), text.join("; "))
    }

    fn slower_rise(&self) -> Claim {
        let mut text = Vec::new();
        let mut fine = true;
        for id in ["14a", "14b"] {
            let (one, _) = line(&self.panel(id).curve(SPLIT));
            let (three, _) = line(&self.panel(id).curve(&set_curve(3)));
            fine &= three < one;
            text.push(format!("{id}: {three:.3} against {one:.3} s per transfer"));
        }
        (holds(fine), text.join("; "))
    }

    fn hops(&self) -> Claim {
        let (split, three) = (self.panel("15").curve(SPLIT), self.panel("15").curve(&set_curve(3)));
        let grows = |curve: &[(f64, f64)]| curve.windows(2).all(|w| w[1].1 > w[0].1);
        let below = split.iter().zip(&three).all(|(a, b)| b.1 < a.1);
        let text = format!(
            "split {:.2} to {:.2} s, SET over 3 {:.2} to {:.2} s",
            ends(&split).0,
            ends(&split).1,
            ends(&three).0,
            ends(&three).1
        );
        (holds(grows(&split) && grows(&three) && below), text)
    }

    fn ideal(&self) -> Result<Claim, RunError> {
        let at = |gateways: &str| self.latency(&[("gateways", gateways), ("file", "1MB")]);
        let one = at("1")?;
        let mut text = Vec::new();
        let mut fine = true;
        for n in 2..=4 {
            let up = one.zip(at(&n.to_string())?).map_or(0.0, |(a, b)| a / b);
            fine &= up >= 0.95 * n as f64;
            text.push(format!("{up:.3} for {n}"));
        }
        Ok((holds(fine), format!("1 MB: {}", text.join(", "))))
    }

    fn independent(&self) -> Result<Claim, RunError> {
        let with = |rates| self.latency(&[("wireless_rate", rates), ("file", "1MB")]);
        let (mixed, together) = (with("256kbit/s+256kbit/s+56kbit/s")?, with("56kbit/s")?);
        let (Some(mixed), Some(together)) = (mixed, together) else {
            return Ok((Holds::No, "a transfer did not end".to_owned()));
        };
        let text = format!(
            "1 MB over 256, 256 and 56 kbit/s: {mixed:.1} s; one window for all would hold each to the slowest's \
             pace: {together:.1} s"
        );
        Ok((holds(mixed < together), text))
    }

    fn failure(&self) -> Result<Claim, RunError> {
        let plain = self.latency(&[])?;
        let mut text = Vec::new();
        let mut fine = true;
        for (word, fail) in [("silent", "gw2@1.5s"), ("reset", "gw2@1.5s:reset")] {
            let broken = self.latency(&[("fail", fail)])?;
            fine &= broken.is_some();
            text.push(broken.map_or(format!("{word}: not delivered"), |s| format!("{word}: {s:.2} s")));
        }
        let plain = plain.map_or(f64::NAN, |s| s);
        Ok((
            holds(fine),
            format!("129 kB, gw2 dies at 1.5 s: delivered, {} against {plain:.2} s", text.join(", ")),
        ))
    }
}

/// A coefficient of the model of session establishment.
fn value(id: &str, printed: f64) -> Judged {
    let still = Path { wired_rtt: 0.0, wireless_rtt: 0.0, ..Path::new(0.0, 0.0, 1e9) };
    let wired = Path { wired_rtt: 1.0, ..still };
    let of = |path, end| Establishment::of(&path, OpenWait::Counted, end);
    // Equation (5)'s coefficient of the round-trip time that is one, all else being none.
    let total = |path| {
        let ours = of(path, HandshakeEnd::SynAck).total();
        let text = format!("our gateway, which knows of its connection at the SYN/ACK: {ours}");
        (of(path, HandshakeEnd::LastAck).total(), text)
    };
    let (model, text) = match id {
        "set.ce.lossless_rtt1_coeff" => total(wired),
        "set.ce.lossless_rtt2_coeff" => total(Path { wireless_rtt: 1.0, ..still }),
        "set.ce.handshake_coeff" => {
            (of(wired, HandshakeEnd::LastAck).wired, "the wired handshake".to_owned())
        }
        "set.ce.setack_coeff" => (of(wired, HandshakeEnd::LastAck).set_ack, "SETACK's way back".to_owned()),
        other => return Judged::unknown(other),
    };
    Judged::number(printed, Figure::computed(model), Rule::Near(1e-9)).noting(text)
}

fn holds(it: bool) -> Holds {
    if it { Holds::Yes } else { Holds::No }
}

/// How much of it holds.
fn part(some: usize, all: usize) -> Holds {
    match some {
        0 => Holds::No,
        n if n == all => Holds::Yes,
        _ => Holds::Partly,
    }
}

/// First and last y.
fn ends(curve: &[(f64, f64)]) -> (f64, f64) {
    let y = |p: Option<&(f64, f64)>| p.map_or(f64::NAN, |p| p.1);
    (y(curve.first()), y(curve.last()))
}

/// Slope and R² of the least-squares line.
pub(super) fn line(curve: &[(f64, f64)]) -> (f64, f64) {
    let n = curve.len() as f64;
    let mean = |f: fn(&(f64, f64)) -> f64| curve.iter().map(f).sum::<f64>() / n;
    let (mx, my) = (mean(|p| p.0), mean(|p| p.1));
    let sum = |f: &dyn Fn(&(f64, f64)) -> f64| curve.iter().map(f).sum::<f64>();
    let xy = sum(&|p| (p.0 - mx) * (p.1 - my));
    let (xx, yy) = (sum(&|p| (p.0 - mx).powi(2)), sum(&|p| (p.1 - my).powi(2)));
    (xy / xx, xy * xy / (xx * yy))
}
