//! The paper's claims beside what we measure: every trend of the list of targets, and our own goals.

use super::response::{Response, SETTLED};
use super::settings::{
    BUFFER, Contender, LOW, Measured, Name, PEAK, RECEIVED, SENT, SETTINGS, SINGLE, Setting,
};
use super::tables::{percent, shown};
use crate::sockbuf::TARGETS;
use crate::stats::{self, Summary};
use crate::targets::{self, Kind};
use crate::verdict::{Holds, Judged, Verdict};

/// Judges every claim, the proposed mechanism by ours, and ATBT as it is printed.
pub fn verdicts(measured: &Measured, responses: &[Response]) -> Vec<Verdict> {
    let judge = Judge { measured };
    let printed = targets::read(TARGETS).into_iter().filter(|t| t.kind == Kind::Trend).map(|target| {
        let judged = judge.trend(target.id.strip_prefix("sockbuf.").unwrap_or(&target.id));
        Verdict::of(target, judged.because(WHY))
    });
    let own = ASKED.iter().map(|(id, claim)| {
        let (holds, measured) = judge.asked(id, responses);
        Verdict::asked(format!("sockbuf.{id}"), "own goal", claim, Judged::said(holds, measured).because(WHY))
    });
    printed.chain(own).collect()
}

/// Our own goals beside the paper's claims.
const ASKED: [(&str, &str); 4] = [
    (
        "asked.throughput",
        "striped throughput above ATBT in all four settings, sent and received; by 20 % at low memory",
    ),
    ("asked.others", "the other connections together lose less than the striped one gains"),
    ("asked.memory", "the pool's peak is never above the threshold"),
    ("asked.stable", "the loop is stable for every step of the bandwidth and 0.25 to 4 times the gains"),
];

struct Judge<'a> {
    measured: &'a Measured,
}

/// A claim in words: whether it holds, and what was measured.
type Claim = (Holds, String);

/// Why a claim does not hold, if it does not.
const WHY: &str = "the memory hardly binds: 2 MB are more than the controller asks for and much more than ATBT does, so that high \
                   and low memory, and mostly four and eight connections, give the same buffers; what else limited the paper's host \
                   is not said (B16)";

const OURS: (Contender, Contender) = (Contender::Ours, Contender::Atbt);

impl Judge<'_> {
    fn trend(&self, name: &str) -> Judged {
        let claim = match name {
            "trend.1" => self.throughput(SETTINGS[0]),
            "trend.2" => self.eight(),
            "trend.3" => self.allocation(SETTINGS[1]),
            "trend.4" => self.buffers(
                &[(SETTINGS[0], SETTINGS[2], "4 connections"), (SETTINGS[1], SETTINGS[3], "8")],
                "high",
                "low",
            ),
            "trend.5" => self.large_gap(),
            "trend.6" => self.high_at_first(),
            "trend.7" => self.buffers(
                &[(SETTINGS[0], SETTINGS[1], "100 MB"), (SETTINGS[2], SETTINGS[3], "2 MB")],
                "4",
                "8",
            ),
            "trend.8" => self.shrinks_with_loss(),
            other => return Judged::unknown(other),
        };
        claim.into()
    }

    fn asked(&self, name: &str, responses: &[Response]) -> Claim {
        match name {
            "asked.throughput" => self.above_everywhere(),
            "asked.others" => self.others(),
            "asked.memory" => self.peaks(),
            _ => stable(responses),
        }
    }

    fn more(&self, setting: Setting, name: Name) -> bool {
        self.measured.difference(setting, OURS, name).is_some_and(|s| above(&s))
    }

    fn gains(&self, setting: Setting) -> String {
        let gain = |name| percent(self.measured.gain(setting, OURS, name));
        format!("sent {}, received {}", gain(SENT), gain(RECEIVED))
    }

    fn throughput(&self, setting: Setting) -> Claim {
        (of(&[SENT, RECEIVED].map(|name| self.more(setting, name))), self.gains(setting))
    }

    fn eight(&self) -> Claim {
        let eight = SETTINGS[1];
        let four = self.measured.outcome(SETTINGS[0], Contender::Ours);
        let ratio = super::settings::gain(self.measured.outcome(eight, Contender::Ours), four, RECEIVED);
        let less = ratio.is_some_and(|s| s.mean < 0.0 && s.mean > -0.25);
        let text = format!(
            "{}; received {} of what it is with 4, slightly is up to a quarter less",
            self.gains(eight),
            percent(ratio)
        );
        (of(&[self.more(eight, SENT), self.more(eight, RECEIVED), less]), text)
    }

    fn allocation(&self, setting: Setting) -> Claim {
        let text = |c| self.summary(setting, c, BUFFER, 1e-3);
        let within = self.within(setting);
        let peak = self.summary(setting, Contender::Ours, PEAK, 1e-3);
        let text = format!(
            "{} kB, ATBT {} kB; pool at most {peak} kB",
            text(Contender::Ours),
            text(Contender::Atbt)
        );
        (of(&[self.more(setting, BUFFER), within]), text)
    }

    /// Whether the striped buffer is larger in the first of each pair of settings, for both mechanisms.
    fn buffers(&self, pairs: &[(Setting, Setting, &str)], first: &str, second: &str) -> Claim {
        let (mut held, mut texts) = (Vec::new(), Vec::new());
        for contender in [OURS.0, OURS.1] {
            for (a, b, about) in pairs {
                let [left, right] = [a, b].map(|s| {
                    let metric = self.measured.outcome(*s, contender).metric(BUFFER);
                    metric.values.iter().map(|v| v.unwrap_or(f64::NAN)).collect::<Vec<_>>()
                });
                held.push(stats::paired(&left, &right).is_ok_and(|s| above(&s)));
                let [left, right] = [a, b].map(|s| self.summary(*s, contender, BUFFER, 1e-3));
                texts.push(format!("{}, {about}: {first} {left}, {second} {right} kB", contender.title()));
            }
        }
        (of(&held), texts.join("; "))
    }

    fn large_gap(&self) -> Claim {
        let setting = SETTINGS[2];
        let gap = self.measured.gain(setting, OURS, SENT);
        let large = gap.is_some_and(|s| s.mean >= 0.2 && above(&s));
        let [ours, atbt] = [OURS.0, OURS.1].map(|c| self.variation(setting, c));
        let text = format!(
            "sent {}, large is from 20 % on; over time it varies by {:.0} % (σ), ATBT by {:.0} %, strongly is twice as much",
            percent(gap),
            100.0 * ours,
            100.0 * atbt
        );
        (of(&[large, ours >= 2.0 * atbt]), text)
    }

    /// The deviation of the mean series of what is sent, from when the single flows send, by its mean.
    fn variation(&self, setting: Setting, contender: Contender) -> f64 {
        let series = self.series(setting, contender);
        let late = series.get(2..).unwrap_or(&[]);
        let mean = late.iter().sum::<f64>() / late.len().max(1) as f64;
        let square = late.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / late.len().max(1) as f64;
        square.sqrt() / mean
    }

    fn series(&self, setting: Setting, contender: Contender) -> Vec<f64> {
        self.measured.outcome(setting, contender).array("striped_sent_series_bit_per_s").means()
    }

    fn high_at_first(&self) -> Claim {
        let setting = SETTINGS[3];
        let series = self.series(setting, Contender::Ours);
        let (first, late) = series.split_at(1);
        let mean = late.iter().sum::<f64>() / late.len().max(1) as f64;
        let varies = self.variation(setting, Contender::Ours);
        let text = format!(
            "{:.2} Mbit/s in the first 10 s, {:.2} after; then it varies by {:.0} % (σ), constant is up to 15 %",
            first[0] * 1e-6,
            mean * 1e-6,
            100.0 * varies
        );
        (of(&[first[0] >= 1.2 * mean, varies <= 0.15]), text)
    }

    fn shrinks_with_loss(&self) -> Claim {
        let buffer = |loss, contender| {
            let summary = self.measured.with_loss(loss, contender).metric(BUFFER).summary;
            summary.map_or(f64::NAN, |s| s.mean)
        };
        let losses = self.measured.losses();
        let (least, most) = (losses[0], losses[losses.len() - 1]);
        let [ours, atbt] = [OURS.0, OURS.1].map(|c| buffer(most, c) / buffer(least, c));
        let text = format!(
            "from {} to {} % loss the striped buffer comes to {:.0} % of what it was, ATBT's to {:.0} %",
            100.0 * least,
            100.0 * most,
            100.0 * ours,
            100.0 * atbt
        );
        // Queues that losses keep empty are no part of the product.
        (of(&[ours >= 0.8, atbt <= 0.5]), text)
    }

    fn above_everywhere(&self) -> Claim {
        let (mut held, mut texts) = (Vec::new(), Vec::new());
        for setting in SETTINGS {
            for name in [SENT, RECEIVED] {
                held.push(self.more(setting, name));
                let gain = self.measured.gain(setting, OURS, name);
                if setting.memory == LOW {
                    held.push(gain.is_some_and(|s| s.mean >= 0.2));
                }
            }
            texts.push(format!("{}: {}", setting.title(), self.gains(setting)));
        }
        (of(&held), texts.join("; "))
    }

    fn others(&self) -> Claim {
        let (mut held, mut texts) = (Vec::new(), Vec::new());
        for setting in SETTINGS {
            let gains = self.measured.difference(setting, OURS, RECEIVED);
            let loses = self.measured.difference(setting, (OURS.1, OURS.0), SINGLE);
            held.push(gains.zip(loses).is_some_and(|(gains, loses)| loses.mean < gains.mean));
            let text = |s: Option<Summary>| s.map_or("–".to_owned(), |s| shown(&s, 1e-6));
            texts.push(format!(
                "{}: gains {}, they lose {} Mbit/s",
                setting.title(),
                text(gains),
                text(loses)
            ));
        }
        (of(&held), texts.join("; "))
    }

    fn within(&self, setting: Setting) -> bool {
        let peak = self.measured.summary(setting, Contender::Ours, PEAK);
        peak.is_some_and(|s| s.max <= setting.memory as f64)
    }

    fn peaks(&self) -> Claim {
        let of_setting = |s: Setting| {
            let peak = self.measured.summary(s, Contender::Ours, PEAK).map_or(f64::NAN, |s| s.max);
            format!("{}: at most {:.0} kB", s.title(), peak * 1e-3)
        };
        (of(&SETTINGS.map(|s| self.within(s))), SETTINGS.map(of_setting).join("; "))
    }

    fn summary(&self, setting: Setting, contender: Contender, name: Name, scale: f64) -> String {
        self.measured.summary(setting, contender, name).map_or("–".to_owned(), |s| shown(&s, scale))
    }
}

fn stable(responses: &[Response]) -> Claim {
    let held: Vec<bool> = responses.iter().map(Response::is_stable).collect();
    let left = |r: &Response| {
        let most = r.steps.iter().map(super::response::Step::residue).fold(0.0, f64::max);
        format!("{} {:.1} %", r.name(), 100.0 * most)
    };
    let texts: Vec<String> = responses.iter().map(left).collect();
    let text = format!(
        "off in the last quarter before the next step by at most ({} % is stable): ",
        100.0 * SETTLED
    );
    (of(&held), text + &texts.join(", "))
}

/// All of it, some of it, or nothing.
fn of(held: &[bool]) -> Holds {
    match held.iter().filter(|held| **held).count() {
        0 => Holds::No,
        n if n == held.len() => Holds::Yes,
        _ => Holds::Partly,
    }
}

/// More than nothing, at the 5 % level.
fn above(summary: &Summary) -> bool {
    summary.mean > 0.0 && summary.excludes_zero()
}
