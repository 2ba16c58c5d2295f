//! Compares the paper's claims with our measurements: every trend of the list of targets, and our
//! own goals.

use super::response::{Response, SETTLED};
use super::settings::{
    BUFFER, Contender, LOW, Measured, Name, PEAK, RECEIVED, SENT, SETTINGS, SINGLE, Setting,
};
use super::tables::{percent, shown};
use crate::sockbuf::TARGETS;
use crate::stats::{self, Summary};
use crate::targets::Target;
use crate::verdict::{self, Judged, MATTERS, Part, Verdict};

/// Judges every claim by the controller with the paper's constants against ATBT as printed, and our
/// own goals by our constants.
pub fn verdicts(measured: &Measured, responses: &[Response]) -> Vec<Verdict> {
    let judge = Judge { measured };
    let printed = verdict::judge_list(TARGETS, |target| {
        judge.trend(target.id.strip_prefix("sockbuf.").unwrap_or(&target.id)).because(WHY)
    });
    let own = ASKED.iter().map(|(id, claim)| {
        let judged = Judged::parts(judge.asked(id, responses)).because(WHY);
        (Target::own(format!("sockbuf.{id}"), "own goal", claim), judged)
    });
    // Our goals are not claims of the paper, so they are judged separately.
    printed.into_iter().chain(verdict::judge(own.collect())).collect()
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

/// Known cause why a claim does not hold.
const WHY: &str = "the memory hardly binds: 2 MB are more than the controller asks for and much more than ATBT does, so that high \
                   and low memory, and mostly four and eight connections, give the same buffers; what else limited the paper's host \
                   is not said (B16)";

/// The judged mechanism, and the one that it is compared with.
type Pair = (Contender, Contender);

/// As in the paper.
const PRINTED: Pair = (Contender::Paper, Contender::Atbt);
const OURS: Pair = (Contender::Ours, Contender::Atbt);
/// Against ATBT as its authors describe it.
const ORIGINAL: Pair = (Contender::Paper, Contender::AtbtOriginal);

impl Judge<'_> {
    fn trend(&self, name: &str) -> Judged {
        let of: fn(&Self, Pair) -> Vec<Part> = match name {
            "trend.1" => |judge, pair| judge.throughput(SETTINGS[0], pair),
            "trend.2" => Self::eight,
            "trend.3" => Self::allocation,
            "trend.4" => |judge, pair| {
                let settings = [(SETTINGS[0], SETTINGS[2], "4 connections"), (SETTINGS[1], SETTINGS[3], "8")];
                judge.buffers(&settings, ["high", "low"], pair)
            },
            "trend.5" => Self::large_gap,
            "trend.6" => Self::high_at_first,
            "trend.7" => |judge, pair| {
                let settings = [(SETTINGS[0], SETTINGS[1], "100 MB"), (SETTINGS[2], SETTINGS[3], "2 MB")];
                judge.buffers(&settings, ["4", "8"], pair)
            },
            "trend.8" => Self::shrinks_with_loss,
            other => return Judged::unknown(other),
        };
        let [ours, original] = [OURS, ORIGINAL].map(|pair| verdict::so(&of(self, pair)));
        let judged = Judged::parts(of(self, PRINTED));
        judged.noting(format!("ours: {ours}; against the original ATBT: {original}"))
    }

    fn asked(&self, name: &str, responses: &[Response]) -> Vec<Part> {
        match name {
            "asked.throughput" => self.above_everywhere(),
            "asked.others" => self.others(),
            "asked.memory" => self.peaks(),
            _ => stable(responses),
        }
    }

    /// A part that states that the first mechanism has more of a metric than the second, by at
    /// least a twentieth unless stated otherwise.
    fn more(&self, setting: Setting, pair: Pair, name: Name, word: &str) -> Part {
        let gain = self.measured.gain(setting, pair, name);
        Part::effect(format!("{}: {word} {}", setting.title(), percent(gain)), gain, MATTERS)
    }

    fn throughput(&self, setting: Setting, pair: Pair) -> Vec<Part> {
        [(SENT, "sent"), (RECEIVED, "received")]
            .map(|(name, word)| self.more(setting, pair, name, word))
            .to_vec()
    }

    fn eight(&self, pair: Pair) -> Vec<Part> {
        let eight = SETTINGS[1];
        let four = self.measured.outcome(SETTINGS[0], pair.0);
        let ratio = super::settings::gain(self.measured.outcome(eight, pair.0), four, RECEIVED);
        let mut parts = self.throughput(eight, pair);
        parts.push(Part::effect(
            format!("received {} of what it is with 4", percent(ratio)),
            ratio.map(|s| s.scaled(-1.0, 0.0)),
            0.01,
        ));
        let slightly = ratio.map(|s| s.scaled(1.0, 0.25));
        parts.push(Part::effect("slightly is up to a quarter less", slightly, 0.0));
        parts
    }

    fn allocation(&self, pair: Pair) -> Vec<Part> {
        let setting = SETTINGS[1];
        let text = |c| self.summary(setting, c, BUFFER, 1e-3);
        let gain = self.measured.gain(setting, pair, BUFFER);
        let what = format!(
            "{}: buffer {} ({} kB against {} kB)",
            setting.title(),
            percent(gain),
            text(pair.0),
            text(pair.1)
        );
        vec![Part::effect(what, gain, MATTERS), self.within(setting, pair.0)]
    }

    /// Parts that state that the striped buffer is larger in the first setting of each pair, for
    /// both mechanisms.
    fn buffers(&self, settings: &[(Setting, Setting, &str)], words: [&str; 2], pair: Pair) -> Vec<Part> {
        let part = |contender: Contender, (a, b, about): &(Setting, Setting, &str)| {
            let values = |s: &Setting| {
                let metric = self.measured.outcome(*s, contender).metric(BUFFER);
                metric.values.iter().map(|v| v.unwrap_or(f64::NAN)).collect::<Vec<_>>()
            };
            let found = stats::ratio(&values(a), &values(b)).ok();
            let found = found.map(|s| s.scaled(1.0, -1.0));
            let [left, right] = [a, b].map(|s| self.summary(*s, contender, BUFFER, 1e-3));
            let [first, second] = words;
            let what = format!("{}, {about}: {first} {left}, {second} {right} kB", contender.title());
            Part::effect(what, found, MATTERS)
        };
        [pair.0, pair.1].into_iter().flat_map(|c| settings.iter().map(move |s| part(c, s))).collect()
    }

    fn large_gap(&self, pair: Pair) -> Vec<Part> {
        let setting = SETTINGS[2];
        let gap = self.measured.gain(setting, pair, SENT);
        let large = gap.map(|s| s.scaled(1.0, -0.2));
        let of = |contender, run| variation(self.series(setting, contender, run)?);
        let by_run = |of: &dyn Fn(usize) -> Option<f64>| self.by_run(setting, of);
        let [first, second] = [pair.0, pair.1].map(|c| by_run(&|run| of(c, run)));
        let twice = by_run(&|run| Some(of(pair.0, run)? - 2.0 * of(pair.1, run)?));
        vec![
            Part::effect(format!("sent {}, large is from 20 % on", percent(gap)), large, 0.0),
            Part::effect(
                format!(
                    "over time (σ) it varies by {}, ATBT by {}; strongly is twice as much",
                    percent(first),
                    percent(second)
                ),
                twice,
                0.0,
            ),
            Part::effect("ATBT: nearly constant is up to 15 %", below(second, 0.15), 0.0),
        ]
    }

    /// Bytes sent in each ten seconds of a run.
    fn series(&self, setting: Setting, contender: Contender, run: usize) -> Option<&[f64]> {
        let array = self.measured.outcome(setting, contender).array("striped_sent_series_bit_per_s");
        array.runs.get(run)?.as_deref()
    }

    fn by_run(&self, setting: Setting, of: impl Fn(usize) -> Option<f64>) -> Option<Summary> {
        Summary::by_run(self.measured.outcome(setting, OURS.0).runs, of)
    }

    fn high_at_first(&self, pair: Pair) -> Vec<Part> {
        let setting = SETTINGS[3];
        let first_by_late = |run| {
            let (first, late) = self.series(setting, pair.0, run)?.split_first()?;
            Some(first / mean(late)? - 1.0)
        };
        let high = self.by_run(setting, first_by_late);
        let varies = self.by_run(setting, |run| variation(self.series(setting, pair.0, run)?));
        let fifth = high.map(|s| s.scaled(1.0, -0.2));
        vec![
            Part::effect(
                format!("{} in the first 10 s of what is sent after; high is a fifth more", percent(high)),
                fifth,
                0.0,
            ),
            Part::effect(
                format!("then it varies by {} (σ), nearly constant is up to 15 %", percent(varies)),
                below(varies, 0.15),
                0.0,
            ),
        ]
    }

    fn shrinks_with_loss(&self, pair: Pair) -> Vec<Part> {
        let losses = self.measured.losses();
        let (least, most) = (losses[0], losses[losses.len() - 1]);
        let kept = |contender| {
            let of = |loss, run: usize| {
                self.measured.with_loss(loss, contender).metric(BUFFER).values.get(run).copied()?
            };
            self.by_run(SETTINGS[2], |run| Some(of(most, run)? / of(least, run)?))
        };
        let [first, atbt] = [pair.0, pair.1].map(kept);
        let text = |share: Option<Summary>, whose: &str, limit: &str| {
            let (from, to) = (100.0 * least, 100.0 * most);
            format!("from {from} to {to} % loss {whose} keeps {}, {limit}", percent(share))
        };
        // Queues that losses keep empty do not count as part of the bandwidth-delay product.
        vec![
            Part::effect(
                text(first, "the striped buffer", "80 % at least"),
                first.map(|s| s.scaled(1.0, -0.8)),
                0.0,
            ),
            Part::effect(text(atbt, "ATBT's", "50 % at most"), below(atbt, 0.5), 0.0),
        ]
    }

    fn above_everywhere(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        for setting in SETTINGS {
            for (name, word) in [(SENT, "sent"), (RECEIVED, "received")] {
                parts.push(self.more(setting, OURS, name, word));
                if setting.memory == LOW {
                    let gain = self.measured.gain(setting, OURS, name);
                    let fifth = gain.map(|s| s.scaled(1.0, -0.2));
                    parts.push(Part::effect("a fifth more", fifth, 0.0));
                }
            }
        }
        parts
    }

    fn others(&self) -> Vec<Part> {
        let part = |setting: Setting| {
            let found = self.by_run(setting, |run| {
                let of = |contender, name| self.measured.outcome(setting, contender).metric(name).values[run];
                let all = |contender| Some(of(contender, RECEIVED)? + of(contender, SINGLE)?);
                Some(all(OURS.0)? - all(OURS.1)?)
            });
            let text = |s: Option<Summary>| s.map_or("–".to_owned(), |s| shown(&s, 1e-6));
            let gains = self.measured.difference(setting, OURS, RECEIVED);
            let loses = self.measured.difference(setting, (OURS.1, OURS.0), SINGLE);
            let what =
                format!("{}: gains {}, they lose {} Mbit/s", setting.title(), text(gains), text(loses));
            Part::effect(what, found, 0.0)
        };
        SETTINGS.map(part).to_vec()
    }

    fn within(&self, setting: Setting, contender: Contender) -> Part {
        let peak = self.measured.summary(setting, contender, PEAK).map_or(f64::NAN, |s| s.max);
        let what = format!("{}: the pool has at most {:.0} kB", setting.title(), peak * 1e-3);
        Part::fact(what, peak <= setting.memory as f64)
    }

    fn peaks(&self) -> Vec<Part> {
        SETTINGS.map(|setting| self.within(setting, OURS.0)).to_vec()
    }

    fn summary(&self, setting: Setting, contender: Contender, name: Name, scale: f64) -> String {
        self.measured.summary(setting, contender, name).map_or("–".to_owned(), |s| shown(&s, scale))
    }
}

/// By how much a value is below a limit.
fn below(found: Option<Summary>, limit: f64) -> Option<Summary> {
    found.map(|s| s.scaled(-1.0, limit))
}

fn mean(list: &[f64]) -> Option<f64> {
    (!list.is_empty()).then(|| list.iter().sum::<f64>() / list.len() as f64)
}

/// Standard deviation of a series divided by its mean, from the time when the single flows send.
fn variation(series: &[f64]) -> Option<f64> {
    let late = series.get(2..)?;
    let middle = mean(late)?;
    let squares: Vec<f64> = late.iter().map(|v| (v - middle).powi(2)).collect();
    Some(mean(&squares)?.sqrt() / middle)
}

fn stable(responses: &[Response]) -> Vec<Part> {
    let part = |response: &Response| {
        let most = response.steps.iter().map(super::response::Step::residue).fold(0.0, f64::max);
        let what = format!(
            "{}: off by {:.1} % in the last quarter before the next step, {} % is stable",
            response.name(),
            100.0 * most,
            100.0 * SETTLED
        );
        Part::fact(what, response.is_stable())
    };
    responses.iter().map(part).collect()
}
