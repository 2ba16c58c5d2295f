//! A paper's claim beside what we measured, and the rules by which a number is judged.

use serde::Serialize;

use crate::stats::Summary;
use crate::targets::Target;

/// What became of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Holds {
    /// It holds.
    #[serde(rename = "confirmed")]
    Yes,
    /// Ours is better than printed, by more than the tolerance.
    #[serde(rename = "exceeded")]
    Better,
    /// It holds in part; what was measured says in which.
    #[serde(rename = "in part")]
    Partly,
    /// It does not hold.
    #[serde(rename = "not reproduced")]
    No,
    /// It contradicts what else the paper prints.
    #[serde(rename = "contradicted by the paper itself")]
    Contradicted,
}

impl Holds {
    /// All, in the order of reports.
    pub const ALL: [Self; 5] = [Self::Yes, Self::Better, Self::Partly, Self::No, Self::Contradicted];

    /// The worse of two, of which neither is [`Holds::Contradicted`].
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let rank = |holds| match holds {
            Self::Better => 3,
            Self::Yes => 2,
            Self::Partly => 1,
            Self::No | Self::Contradicted => 0,
        };
        if rank(self) <= rank(other) { self } else { other }
    }

    /// In words.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Yes => "confirmed",
            Self::Better => "exceeded",
            Self::Partly => "in part",
            Self::No => "not reproduced",
            Self::Contradicted => "contradicted by the paper itself",
        }
    }
}

/// A number of ours, in the unit of the printed one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// The mean.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval.
    pub ci95: Option<f64>,
    /// Runs behind it; 0 for one that is computed.
    pub runs: usize,
}

impl Figure {
    /// A number that comes of a formula and of no run.
    pub const fn computed(mean: f64) -> Self {
        Self { mean, ci95: None, runs: 0 }
    }

    /// The same in another unit, of which `factor` are one, counted from `zero`.
    #[must_use]
    pub fn scaled(self, factor: f64, zero: f64) -> Self {
        let Self { mean, ci95, runs } = self;
        Self { mean: factor * mean + zero, ci95: ci95.map(|half| half * factor.abs()), runs }
    }

    /// With its interval, as many digits as that leaves sense in.
    pub fn text(&self) -> String {
        match self.ci95.filter(|half| *half > 0.0) {
            Some(half) => {
                let digits = digits(half, 1);
                format!("{} ± {half:.digits$}", unsigned_zero(self.mean, digits))
            }
            None => number(self.mean),
        }
    }
}

impl From<Summary> for Figure {
    fn from(summary: Summary) -> Self {
        Self { mean: summary.mean, ci95: summary.ci95, runs: summary.runs }
    }
}

/// A number with four digits that say something, at most.
pub fn number(value: f64) -> String {
    let text = unsigned_zero(value, digits(value, 3));
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Decimals, so that so many digits stand behind the first that is not zero.
fn digits(value: f64, behind: i32) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    (behind - value.abs().log10().floor() as i32).clamp(0, 9) as usize
}

fn unsigned_zero(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| matches!(c, '0' | '.')) => rest.to_owned(),
        _ => text,
    }
}

/// How a number is judged by the printed one. Tolerances are in its unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Rule {
    /// Neither more nor less is better, as with the numbers of somebody else's protocol.
    Near(f64),
    /// Less is better.
    Less(f64),
    /// More is better.
    More(f64),
    /// By how much one scheme is better than another: more is better, and any gain beyond doubt is one in part.
    Gain,
    /// The printed number is the most that the paper grants; the tolerance is how far beyond it is in part.
    AtMost(f64),
    /// The least that the paper grants.
    AtLeast(f64),
}

impl Rule {
    /// What becomes of a printed number. Up to the tolerance it is confirmed, up to twice that in part; in part becomes
    /// confirmed if our interval holds the printed number.
    pub fn judge(self, printed: f64, ours: &Figure) -> Holds {
        let off = ours.mean - printed;
        let sure = ours.ci95.unwrap_or(0.0);
        match self {
            Self::Near(tolerance) => near(off.abs(), tolerance, sure),
            Self::Less(tolerance) => one_sided(off, tolerance, sure),
            Self::More(tolerance) => one_sided(-off, tolerance, sure),
            Self::Gain if off - sure > 0.0 => Holds::Better,
            Self::Gain if off + sure >= 0.0 => Holds::Yes,
            // A single run has no interval, and leaves one no doubt.
            Self::Gain if ours.mean - sure > 0.0 => Holds::Partly,
            Self::Gain => Holds::No,
            Self::AtMost(tolerance) => bound(off, tolerance),
            Self::AtLeast(tolerance) => bound(-off, tolerance),
        }
    }

    /// In words, for a printed number.
    pub fn text(self, printed: f64) -> String {
        let of = |tolerance: f64| match printed {
            0.0 => number(tolerance),
            _ => format!("{} %", number(100.0 * tolerance / printed.abs())),
        };
        match self {
            Self::Near(tolerance) if tolerance < 1e-6 => "equal".to_owned(),
            Self::Near(tolerance) => format!("within {}", of(tolerance)),
            Self::Less(tolerance) => format!("at most {} more", of(tolerance)),
            Self::More(tolerance) => format!("at most {} less", of(tolerance)),
            Self::Gain => "gain".to_owned(),
            Self::AtMost(_) => "upper bound".to_owned(),
            Self::AtLeast(_) => "lower bound".to_owned(),
        }
    }
}

fn near(far: f64, tolerance: f64, sure: f64) -> Holds {
    match far {
        far if far <= tolerance => Holds::Yes,
        far if far <= 2.0 * tolerance && far <= sure => Holds::Yes,
        far if far <= 2.0 * tolerance => Holds::Partly,
        _ => Holds::No,
    }
}

/// `worse` is by how much ours is on the worse side.
fn one_sided(worse: f64, tolerance: f64, sure: f64) -> Holds {
    match worse {
        worse if worse < -tolerance && worse < -sure => Holds::Better,
        worse if worse <= 0.0 => Holds::Yes,
        worse => near(worse, tolerance, sure),
    }
}

fn bound(beyond: f64, tolerance: f64) -> Holds {
    match beyond {
        beyond if beyond <= 0.0 => Holds::Yes,
        beyond if beyond <= tolerance => Holds::Partly,
        _ => Holds::No,
    }
}

/// What a judge says of a claim.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// Whether it holds, by the reading that we take.
    pub holds: Holds,
    /// What was measured, or what is to be said of it.
    pub measured: String,
    /// Our number.
    pub ours: Option<Figure>,
    /// By which rule a number was judged.
    pub rule: Option<String>,
    /// The number that stands in for the printed one, where that contradicts others.
    pub instead: Option<f64>,
    /// The erratum that says why the paper contradicts itself here.
    pub erratum: Option<&'static str>,
    /// Why it does not hold.
    pub why: Option<&'static str>,
}

impl Judged {
    /// A claim in words, or what cannot be measured.
    pub fn said(holds: Holds, measured: impl Into<String>) -> Self {
        let measured = measured.into();
        Self { holds, measured, ours: None, rule: None, instead: None, erratum: None, why: None }
    }

    /// A number by a rule.
    pub fn number(printed: f64, ours: impl Into<Figure>, rule: Rule) -> Self {
        let ours = ours.into();
        let said = Self::said(rule.judge(printed, &ours), String::new());
        Self { ours: Some(ours), rule: Some(rule.text(printed)), ..said }
    }

    /// Nothing measures it.
    pub fn unknown(name: &str) -> Self {
        Self::said(Holds::No, format!("nothing measures `{name}`"))
    }

    /// With words beside the number.
    #[must_use]
    pub fn noting(self, measured: impl Into<String>) -> Self {
        Self { measured: measured.into(), ..self }
    }

    /// The paper contradicts itself here.
    #[must_use]
    pub fn against(self, erratum: &'static str) -> Self {
        Self { erratum: Some(erratum), ..self }
    }

    /// Judged by another number than the printed one, which follows from what else the paper prints.
    #[must_use]
    pub fn instead(self, number: f64, erratum: &'static str) -> Self {
        Self { instead: Some(number), erratum: Some(erratum), ..self }
    }

    /// As [`Judged::instead`], by another rule.
    #[must_use]
    pub fn judged_by(self, number: f64, rule: Rule, erratum: &'static str) -> Self {
        let holds = self.ours.map_or(self.holds, |ours| rule.judge(number, &ours));
        Self { holds, rule: Some(rule.text(number)), ..self }.instead(number, erratum)
    }

    /// With the reason, if it does not hold.
    #[must_use]
    pub fn because(self, why: &'static str) -> Self {
        let why = matches!(self.holds, Holds::No).then_some(why);
        Self { why, ..self }
    }
}

impl From<(Holds, String)> for Judged {
    fn from((holds, measured): (Holds, String)) -> Self {
        Self::said(holds, measured)
    }
}

/// A claim beside what we measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Verdict {
    /// The claim's name in the list of targets.
    pub id: String,
    /// Where the paper makes it.
    pub section: String,
    /// The claim in words, or the circumstances of the number.
    pub claim: String,
    /// The printed number.
    pub printed: Option<f64>,
    /// Its unit; empty for a pure number.
    pub unit: String,
    /// By the reading that we take.
    pub reading: Holds,
    /// What the judge says.
    pub judged: Judged,
    /// What became of it.
    pub holds: Holds,
}

impl Verdict {
    /// What became of an entry of the list of targets.
    pub fn of(target: Target, judged: impl Into<Judged>) -> Self {
        let judged = judged.into();
        let contradicted = target.suspect || judged.erratum.is_some();
        let printed = target.number();
        let claim = target.text.clone().unwrap_or_else(|| target.circumstances());
        Self {
            id: target.id,
            section: target.section,
            claim,
            printed,
            unit: target.unit.unwrap_or_default(),
            reading: judged.holds,
            holds: if contradicted { Holds::Contradicted } else { judged.holds },
            judged,
        }
    }

    /// A claim that is in no list: what an issue asks for.
    pub fn asked(id: String, section: &str, claim: &str, judged: impl Into<Judged>) -> Self {
        let judged = judged.into();
        Self {
            id,
            section: section.to_owned(),
            claim: claim.to_owned(),
            printed: None,
            unit: String::new(),
            reading: judged.holds,
            holds: judged.holds,
            judged,
        }
    }

    /// The verdict in words.
    pub fn word(&self) -> &'static str {
        self.holds.word()
    }

    /// By how much ours is off what is printed: in per cent of it, or in points where it is per cent itself; the difference
    /// where nothing is printed but 0.
    pub fn off(&self) -> Option<String> {
        let (printed, ours) = (self.printed?, self.judged.ours?.mean);
        let off = ours - printed;
        let (value, unit) = match self.unit.as_str() {
            "%" | "percentage points" => (off, "points"),
            _ if printed == 0.0 => (off, self.unit.as_str()),
            _ => (100.0 * off / printed, "%"),
        };
        let value = if value.abs() < 0.05 { 0.0 } else { value };
        Some(format!("{value:+.1} {unit}").trim_end().to_owned())
    }

    /// Ours as a multiple of the printed number, unless that is 0.
    pub fn ratio(&self) -> Option<f64> {
        let (printed, ours) = (self.printed?, self.judged.ours?.mean);
        (printed != 0.0).then_some(ours / printed)
    }

    /// The verdict as a program reads it.
    pub fn record(&self) -> Record<'_> {
        let ours = self.judged.ours;
        Record {
            id: &self.id,
            section: &self.section,
            claim: &self.claim,
            printed: self.printed,
            unit: &self.unit,
            ours: ours.map(|o| o.mean),
            ci95: ours.and_then(|o| o.ci95),
            runs: ours.map(|o| o.runs),
            ratio: self.ratio(),
            rule: self.judged.rule.as_deref(),
            verdict: self.holds,
            reading: self.reading,
            instead: self.judged.instead,
            erratum: self.judged.erratum,
            measured: &self.judged.measured,
            why: self.judged.why,
        }
    }
}

/// A verdict as a program reads it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Record<'a> {
    id: &'a str,
    section: &'a str,
    claim: &'a str,
    printed: Option<f64>,
    unit: &'a str,
    ours: Option<f64>,
    ci95: Option<f64>,
    runs: Option<usize>,
    ratio: Option<f64>,
    rule: Option<&'a str>,
    verdict: Holds,
    /// By the reading that we take, which differs where the paper contradicts itself.
    reading: Holds,
    instead: Option<f64>,
    erratum: Option<&'static str>,
    measured: &'a str,
    why: Option<&'static str>,
}

/// How many verdicts there are of each kind, in the order of [`Holds::ALL`].
pub fn tally(verdicts: &[Verdict]) -> [usize; 5] {
    Holds::ALL.map(|holds| verdicts.iter().filter(|v| v.holds == holds).count())
}

#[cfg(test)]
mod tests;
