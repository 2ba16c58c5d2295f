//! A paper's claims beside what we measured, and the one set of rules by which they are judged.
//!
//! A paper's `claims` say what a claim rests on ([`Evidence`]); [`judge`] decides, for all claims
//! of a paper together. A number shall be the printed one within a [`Tolerance`], neither less nor
//! more. What is said in words comes apart into [`Part`]s; where chance is in them they are tests
//! of paired runs, and Holm's correction keeps the probability of even one false success among all
//! tests of the paper at 5 %. What the runs leave open is not judged.

use serde::{Deserialize, Serialize};

use crate::stats::{self, Summary};
use crate::targets::{self, Target};

/// The level of all tests of a paper together.
const LEVEL: f64 = 0.05;
/// From which share of what it is compared with on a difference is worth a claim, where the paper
/// does not say how large it is. A difference beyond doubt holds however small it is; where none
/// is, and less than this is all that can be, the claim does not hold, and is not merely open.
pub const MATTERS: f64 = 0.05;

/// What became of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Holds {
    /// The number is the printed one, everything that the claim says is so.
    #[serde(rename = "reproduced")]
    Yes,
    /// The number is another, but differs from that of the other scheme in the direction that the
    /// paper has it; or at least half of what a claim says is so.
    #[serde(rename = "in trend only")]
    Trend,
    /// It is otherwise.
    #[serde(rename = "not reproduced")]
    No,
    /// The runs leave it open, or nothing measures it.
    #[serde(rename = "cannot be judged")]
    Open,
}

impl Holds {
    /// All, in the order of reports.
    pub const ALL: [Self; 4] = [Self::Yes, Self::Trend, Self::No, Self::Open];

    /// In words.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Yes => "reproduced",
            Self::Trend => "in trend only",
            Self::No => "not reproduced",
            Self::Open => "cannot be judged",
        }
    }
}

/// A number that was measured or computed, in the unit of the printed one.
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

/// A number with its interval, or that there is none.
pub fn shown(found: Option<impl Into<Figure>>) -> String {
    found.map_or("none".to_owned(), |found| found.into().text())
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

/// How far from a printed number ours may be, by what it is. The same for all papers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Tolerance {
    /// A tenth of it; a mean, a maximum, a bound.
    Mean,
    /// A quarter of it: a standard deviation, and the difference or the quotient of two numbers,
    /// each of which may be off.
    Difference,
    /// A point: a share in per cent of which little is missing.
    Points,
    /// What else, in the number's unit.
    Own(f64),
}

impl Tolerance {
    fn of(self, printed: f64) -> f64 {
        match self {
            Self::Mean => (0.1 * printed.abs()).max(half_a_digit(printed)),
            Self::Difference => (0.25 * printed.abs()).max(half_a_digit(printed)),
            Self::Points => 1.0,
            Self::Own(tolerance) => tolerance,
        }
    }
}

/// Half a unit of the last digit that is printed.
fn half_a_digit(printed: f64) -> f64 {
    let decimals = printed.to_string().split_once('.').map_or(0, |(_, decimals)| decimals.len());
    0.5 * 10f64.powi(-(decimals as i32))
}

/// Something that shall be so.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// What, with the numbers.
    what: String,
    test: Test,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Test {
    /// That a difference of paired runs is above nothing. From `matters` on it would be what the
    /// paper says.
    Effect { found: Option<Summary>, matters: f64 },
    /// That a number is within a limit of 0, on either side.
    Within { found: Option<Summary>, limit: f64 },
    /// No chance is in it.
    Fact(bool),
}

/// What became of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Holds,
    Fails,
    Open,
}

impl Part {
    /// That what was found, run by run, is above nothing; `matters` is the least that would be
    /// worth a claim. None was found where no run has come to an end.
    pub fn effect(what: impl Into<String>, found: Option<Summary>, matters: f64) -> Self {
        Self { what: what.into(), test: Test::Effect { found, matters } }
    }

    /// That what was found, run by run, is 0 but for `limit` at most, on either side.
    pub fn within(what: impl Into<String>, found: Option<Summary>, limit: f64) -> Self {
        Self { what: what.into(), test: Test::Within { found, limit } }
    }

    /// That something without chance is so.
    pub fn fact(what: impl Into<String>, is_so: bool) -> Self {
        Self { what: what.into(), test: Test::Fact(is_so) }
    }

    fn probability(&self) -> Option<f64> {
        match self.test {
            Test::Effect { found, .. } => found?.p_above(0.0),
            Test::Within { .. } | Test::Fact(_) => None,
        }
    }

    /// By the mean alone, as if the runs left no doubt; what would not be worth a claim is none.
    fn by_mean(&self) -> Outcome {
        let is_so = match self.test {
            Test::Fact(is_so) => Some(is_so),
            Test::Within { found, limit } => found.map(|found| found.mean.abs() <= limit),
            // Equal runs differ by what rounding makes of them.
            Test::Effect { found, matters } => {
                found.map(|found| found.mean > matters.max(1e-12 * found.max.abs().max(1.0)))
            }
        };
        match is_so {
            Some(true) => Outcome::Holds,
            Some(false) => Outcome::Fails,
            None => Outcome::Open,
        }
    }

    /// `corrected` is by Holm, 1 where there is none.
    fn outcome(&self, corrected: f64) -> Outcome {
        match self.test {
            Test::Fact(true) => Outcome::Holds,
            Test::Fact(false) => Outcome::Fails,
            Test::Within { found: Some(Summary { mean, ci95: Some(half), .. }), limit } => match mean.abs() {
                off if off + half <= limit => Outcome::Holds,
                off if off - half > limit => Outcome::Fails,
                _ => Outcome::Open,
            },
            Test::Effect { found: None, .. } | Test::Within { .. } => Outcome::Open,
            Test::Effect { found: Some(found), matters } => match found.interval() {
                None => Outcome::Open,
                Some(_) if corrected <= LEVEL => Outcome::Holds,
                // Equal runs have no more to say, however little would matter.
                Some((_, high)) if high < matters || high <= 0.0 => Outcome::Fails,
                Some(_) => Outcome::Open,
            },
        }
    }
}

/// How many parts are so, each tested alone: what is said beside a verdict.
pub fn so(parts: &[Part]) -> String {
    let alone = |part: &&Part| part.outcome(part.probability().unwrap_or(1.0)) == Outcome::Holds;
    format!("{} of {} (each tested alone)", parts.iter().filter(alone).count(), parts.len())
}

/// What a claim rests on.
#[derive(Clone, PartialEq, Debug)]
pub enum Evidence {
    /// A number that shall be the printed one.
    Number {
        /// That of the paper's protocol.
        found: Figure,
        /// How far off it may be.
        tolerance: Tolerance,
        /// What shall be so at least: that it is better than another scheme's.
        trend: Option<Part>,
    },
    /// A number that shall not be above the printed one.
    AtMost(Figure),
    /// A number that shall not be below it.
    AtLeast(Figure),
    /// All of which shall be so.
    Parts(Vec<Part>),
    /// Nothing measures it.
    Nothing,
}

/// Our protocol in the same network.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Beside {
    /// Its number.
    pub figure: Figure,
    /// By how much that is above that of the paper's protocol, run by run, in per cent of it, or in
    /// points.
    pub change: Option<Figure>,
}

/// What is known of a claim before it is judged.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// What it rests on.
    pub evidence: Evidence,
    /// What is to be said of it.
    pub measured: String,
    /// Our protocol. It never changes a verdict.
    pub ours: Option<Beside>,
    /// The number that stands in for the printed one, where that contradicts others.
    pub instead: Option<f64>,
    /// The erratum that says why the paper contradicts itself here.
    pub erratum: Option<&'static str>,
    /// Why it is not reproduced, if it is not.
    pub why: Option<&'static str>,
    /// The row of the scheme that this one's gain is over: only where that is reproduced can more
    /// than the printed gain be a success.
    pub over: Option<String>,
}

impl Judged {
    /// A claim in words.
    pub fn parts(parts: Vec<Part>) -> Self {
        let none = parts.is_empty();
        Self::of(if none { Evidence::Nothing } else { Evidence::Parts(parts) })
    }

    /// A number of the paper's protocol that shall be the printed one; `None` where no run has come
    /// to an end.
    pub fn number(found: Option<impl Into<Figure>>, tolerance: Tolerance) -> Self {
        Self::of(found.map_or(Evidence::Nothing, |found| Evidence::Number {
            found: found.into(),
            tolerance,
            trend: None,
        }))
    }

    /// By how much one scheme is better than another, in the printed number's unit: at least more
    /// than nothing.
    pub fn gain(found: Option<Summary>, over: impl Into<String>) -> Self {
        let trend = Some(Part::effect("the gain is above 0", found, 0.0));
        match Self::number(found, Tolerance::Difference) {
            Self { evidence: Evidence::Number { found, tolerance, .. }, .. } => {
                let evidence = Evidence::Number { found, tolerance, trend };
                Self { over: Some(over.into()), ..Self::of(evidence) }
            }
            none => none,
        }
    }

    /// A number that shall not be above the printed one.
    pub fn at_most(found: Option<impl Into<Figure>>) -> Self {
        Self::of(found.map_or(Evidence::Nothing, |found| Evidence::AtMost(found.into())))
    }

    /// A number that shall not be below the printed one.
    pub fn at_least(found: Option<impl Into<Figure>>) -> Self {
        Self::of(found.map_or(Evidence::Nothing, |found| Evidence::AtLeast(found.into())))
    }

    /// Nothing measures it, and why.
    pub fn unmeasured(why: impl Into<String>) -> Self {
        Self::of(Evidence::Nothing).noting(why)
    }

    /// No rule knows its name.
    pub fn unknown(name: &str) -> Self {
        Self::unmeasured(format!("nothing measures `{name}`"))
    }

    fn of(evidence: Evidence) -> Self {
        let measured = match evidence {
            Evidence::Nothing => "no run has come to an end".to_owned(),
            _ => String::new(),
        };
        Self { evidence, measured, ours: None, instead: None, erratum: None, why: None, over: None }
    }

    /// A number that is in trend at least where that part is so.
    #[must_use]
    pub fn or_at_least(mut self, part: Part) -> Self {
        if let Evidence::Number { trend, .. } = &mut self.evidence {
            *trend = Some(part);
        }
        self
    }

    /// With words beside the number.
    #[must_use]
    pub fn noting(self, measured: impl Into<String>) -> Self {
        Self { measured: measured.into(), ..self }
    }

    /// With our protocol beside the paper's: its number, and by how much that is above, run by run.
    #[must_use]
    pub fn beside(self, figure: Option<impl Into<Figure>>, change: Option<impl Into<Figure>>) -> Self {
        let change = change.map(Into::into);
        Self { ours: figure.map(|figure| Beside { figure: figure.into(), change }), ..self }
    }

    /// The paper contradicts itself here.
    #[must_use]
    pub fn against(self, erratum: &'static str) -> Self {
        Self { erratum: Some(erratum), ..self }
    }

    /// Judged by another number than the printed one, which follows from what else the paper
    /// prints.
    #[must_use]
    pub fn instead(self, number: f64, erratum: &'static str) -> Self {
        Self { instead: Some(number), erratum: Some(erratum), ..self }
    }

    /// With the reason, which is told if it is not reproduced.
    #[must_use]
    pub fn because(self, why: &'static str) -> Self {
        Self { why: Some(why), ..self }
    }

    /// The number of the paper's protocol.
    pub fn found(&self) -> Option<Figure> {
        match &self.evidence {
            Evidence::Number { found, .. } | Evidence::AtMost(found) | Evidence::AtLeast(found) => {
                Some(*found)
            }
            Evidence::Parts(_) | Evidence::Nothing => None,
        }
    }

    /// By which rule it is judged, in words; `by` is the number that it is judged by.
    fn rule(&self, by: f64) -> Option<String> {
        let share = |tolerance: f64| match by {
            0.0 => number(tolerance),
            by => format!("{} %", number(100.0 * tolerance / by.abs())),
        };
        match &self.evidence {
            Evidence::Number { tolerance: Tolerance::Points, .. } => Some("within a point".to_owned()),
            Evidence::Number { tolerance: Tolerance::Own(own), .. } => {
                Some(format!("within {}", number(*own)))
            }
            Evidence::Number { tolerance, .. } => Some(format!("within {}", share(tolerance.of(by)))),
            Evidence::AtMost(_) => Some("upper bound".to_owned()),
            Evidence::AtLeast(_) => Some("lower bound".to_owned()),
            Evidence::Parts(_) | Evidence::Nothing => None,
        }
    }

    /// What is tested of it.
    fn tested(&self) -> &[Part] {
        match &self.evidence {
            Evidence::Number { trend, .. } => trend.as_slice(),
            Evidence::Parts(parts) => parts,
            Evidence::AtMost(_) | Evidence::AtLeast(_) | Evidence::Nothing => &[],
        }
    }
}

/// A number against the printed one.
fn near(printed: f64, found: &Figure, tolerance: f64) -> Holds {
    let (off, half) = ((found.mean - printed).abs(), found.ci95.unwrap_or(0.0));
    // One run of several has no interval, and may be far from the next.
    let is_one_run = found.runs == 1 && found.ci95.is_none();
    match off {
        off if !off.is_finite() || is_one_run => Holds::Open,
        off if off <= tolerance && half <= tolerance.max(1e-12) => Holds::Yes,
        off if off - half > tolerance => Holds::No,
        _ => Holds::Open,
    }
}

/// A number that shall not be above 0, in which `found` is by how much it is.
fn bound(found: f64, figure: &Figure) -> Holds {
    let half = figure.ci95.unwrap_or(0.0);
    match found {
        found if !found.is_finite() || (figure.runs == 1 && figure.ci95.is_none()) => Holds::Open,
        found if found + half <= 0.0 => Holds::Yes,
        found if found - half > 0.0 => Holds::No,
        _ => Holds::Open,
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
    /// What it rests on.
    pub judged: Judged,
    /// By which rule a number is judged.
    pub rule: Option<String>,
    /// How many parts of a claim in words are so, of how many.
    pub parts: Option<[usize; 2]>,
    /// What became of it: where the paper contradicts itself, by the reading that we take.
    pub holds: Holds,
    /// It contradicts what else the paper prints.
    pub contradicted: bool,
    /// The gain is more than printed, beyond doubt, over a scheme whose own number is reproduced.
    pub exceeded: bool,
}

/// Judges every value and trend of a list of targets, by what `of` knows of each.
pub fn judge_list(list: &str, of: impl Fn(&Target) -> Judged) -> Vec<Verdict> {
    let claims = targets::claims(list).map(|target| {
        let judged = of(&target);
        (target, judged)
    });
    judge(claims.collect())
}

/// Judges all claims of a paper.
pub fn judge(claims: Vec<(Target, Judged)>) -> Vec<Verdict> {
    let tested = || claims.iter().flat_map(|(_, judged)| judged.tested());
    let mut corrected = stats::holm(&tested().filter_map(Part::probability).collect::<Vec<_>>()).into_iter();
    let mut outcome = |part: &Part| {
        let corrected = part.probability().and_then(|_| corrected.next());
        part.outcome(corrected.unwrap_or(1.0))
    };
    let outcomes: Vec<Vec<Outcome>> =
        claims.iter().map(|(_, judged)| judged.tested().iter().map(&mut outcome).collect()).collect();
    let mut verdicts: Vec<Verdict> = claims
        .into_iter()
        .zip(outcomes)
        .map(|((target, judged), outcomes)| Verdict::new(target, judged, &outcomes))
        .collect();
    let reproduced: Vec<String> =
        verdicts.iter().filter(|v| v.holds == Holds::Yes).map(|v| v.id.clone()).collect();
    for verdict in &mut verdicts {
        let over = verdict.judged.over.clone();
        verdict.exceed(over.is_some_and(|over| reproduced.contains(&over)));
    }
    verdicts
}

impl Verdict {
    fn new(target: Target, mut judged: Judged, outcomes: &[Outcome]) -> Self {
        let printed = target.number();
        let by = judged.instead.or(printed);
        let (holds, parts) = match (&judged.evidence, by) {
            (Evidence::Number { found, tolerance, .. }, Some(by)) => {
                (in_trend(near(by, found, tolerance.of(by)), outcomes.first()), None)
            }
            (Evidence::AtMost(found), Some(by)) => (bound(found.mean - by, found), None),
            (Evidence::AtLeast(found), Some(by)) => (bound(by - found.mean, found), None),
            (Evidence::Parts(_), _) => {
                let so = outcomes.iter().filter(|outcome| **outcome == Outcome::Holds).count();
                (all_of(outcomes), Some([so, outcomes.len()]))
            }
            (_, None) | (Evidence::Nothing, _) => (Holds::Open, None),
        };
        if let Evidence::Parts(parts) = &judged.evidence {
            judged.measured = told(parts, outcomes, &judged.measured);
        }
        if holds == Holds::Yes {
            judged.why = None;
        }
        let claim = target.text.clone().unwrap_or_else(|| target.circumstances());
        Self {
            rule: by.and_then(|by| judged.rule(by)),
            contradicted: target.suspect || judged.erratum.is_some(),
            id: target.id,
            section: target.section,
            claim,
            printed,
            unit: target.unit.unwrap_or_default(),
            judged,
            parts,
            holds,
            exceeded: false,
        }
    }

    /// A gain that is not the printed one: more is a success only where its baseline is what the
    /// paper's is.
    fn exceed(&mut self, is_over_reproduced: bool) {
        let (Evidence::Number { found, tolerance, .. }, Some(by)) = (&self.judged.evidence, self.by()) else {
            return;
        };
        if self.judged.over.is_none() || self.holds == Holds::Yes {
            return;
        }
        let sure = found.mean - found.ci95.unwrap_or(f64::INFINITY) > by + tolerance.of(by);
        self.exceeded = sure && is_over_reproduced;
        if self.exceeded {
            self.holds = Holds::Yes;
            self.judged.why = None;
        } else if sure {
            self.judged.why = Some(
                "the gain is more than printed, but the number of the scheme that it is over is not reproduced",
            );
        } else if self.holds == Holds::Trend {
            self.judged.why = Some("the gain is less than printed");
        }
    }

    /// What became of it by the means alone, as if the runs left no doubt: for many settings with
    /// few runs of each, whose share has an interval of its own. A gain that is more than printed
    /// is in trend only.
    pub fn by_means(&self) -> Holds {
        let outcomes: Vec<Outcome> = self.judged.tested().iter().map(Part::by_mean).collect();
        let exact = |found: &Figure| Figure { ci95: None, runs: 0, ..*found };
        match (&self.judged.evidence, self.by()) {
            (Evidence::Number { found, tolerance, .. }, Some(by)) => {
                in_trend(near(by, &exact(found), tolerance.of(by)), outcomes.first())
            }
            (Evidence::AtMost(found), Some(by)) => bound(found.mean - by, &exact(found)),
            (Evidence::AtLeast(found), Some(by)) => bound(by - found.mean, &exact(found)),
            (Evidence::Parts(_), _) => all_of(&outcomes),
            (_, None) | (Evidence::Nothing, _) => Holds::Open,
        }
    }

    /// The number that a claim is about: the one that was found, or the share of its parts that are
    /// so by the means.
    pub fn measure(&self) -> Option<f64> {
        let of_parts = |parts: &[Part]| {
            let so = parts.iter().filter(|part| part.by_mean() == Outcome::Holds).count();
            so as f64 / parts.len() as f64
        };
        match &self.judged.evidence {
            Evidence::Parts(parts) => Some(of_parts(parts)),
            _ => self.judged.found().map(|found| found.mean),
        }
        .filter(|value| value.is_finite())
    }

    /// The number that it is judged by.
    pub fn by(&self) -> Option<f64> {
        self.judged.instead.or(self.printed)
    }

    /// The verdict in words.
    pub fn text(&self) -> String {
        match self.parts {
            _ if self.exceeded => "reproduced, exceeded".to_owned(),
            Some([so, all]) if 0 < so && so < all => format!("{}: {so} of {all}", self.holds.word()),
            _ => self.holds.word().to_owned(),
        }
    }

    /// By how much what was found is off the number that it is judged by: in per cent of it, or in
    /// points where it is per cent itself; the difference where that is 0.
    pub fn off(&self) -> Option<String> {
        let (printed, found) = (self.by()?, self.judged.found()?.mean);
        let off = found - printed;
        let (value, unit) = match self.unit.as_str() {
            unit if targets::is_percent(unit) => (off, "points"),
            unit if printed == 0.0 => (off, unit),
            _ => (100.0 * off / printed, "%"),
        };
        let value = if value.abs() < 0.05 { 0.0 } else { value };
        Some(format!("{value:+.1} {unit}").trim_end().to_owned())
    }

    /// What was found as a multiple of the number that it is judged by, unless that is 0.
    pub fn ratio(&self) -> Option<f64> {
        let (printed, found) = (self.by()?, self.judged.found()?.mean);
        (printed != 0.0).then_some(found / printed)
    }

    /// The verdict as a program reads it.
    pub fn record(&self) -> Record<'_> {
        let (found, ours) = (self.judged.found(), self.judged.ours);
        let change = ours.and_then(|ours| ours.change);
        Record {
            id: &self.id,
            section: &self.section,
            claim: &self.claim,
            printed: self.printed,
            unit: &self.unit,
            found: found.map(|f| f.mean),
            ci95: found.and_then(|f| f.ci95),
            runs: found.map(|f| f.runs),
            ratio: self.ratio(),
            rule: self.rule.as_deref(),
            verdict: self.holds,
            exceeded: self.exceeded,
            parts: self.parts,
            contradicted: self.contradicted,
            instead: self.judged.instead,
            erratum: self.judged.erratum,
            ours: ours.map(|o| o.figure.mean),
            ours_ci95: ours.and_then(|o| o.figure.ci95),
            ours_above: change.map(|c| c.mean),
            ours_above_ci95: change.and_then(|c| c.ci95),
            measured: &self.judged.measured,
            why: self.judged.why,
        }
    }
}

/// A claim of which all parts shall be so.
fn all_of(outcomes: &[Outcome]) -> Holds {
    let count = |of| outcomes.iter().filter(|outcome| **outcome == of).count();
    let (so, open, all) = (count(Outcome::Holds), count(Outcome::Open), outcomes.len());
    match 2 * so {
        twice if twice == 2 * all => Holds::Yes,
        twice if twice >= all => Holds::Trend,
        // What is open may still make it half.
        twice if twice + 2 * open >= all => Holds::Open,
        _ => Holds::No,
    }
}

/// A number that is off, but on the side that the paper says.
fn in_trend(holds: Holds, trend: Option<&Outcome>) -> Holds {
    match (holds, trend) {
        (Holds::No, Some(Outcome::Holds)) => Holds::Trend,
        (holds, _) => holds,
    }
}

/// Between the parts of a claim.
pub const PARTS: &str = " | ";

/// The parts of a claim, each with what became of it.
fn told(parts: &[Part], outcomes: &[Outcome], more: &str) -> String {
    let sign = |outcome: &Outcome| match outcome {
        Outcome::Holds => "✓",
        Outcome::Fails => "✗",
        Outcome::Open => "?",
    };
    let told = parts.iter().zip(outcomes).map(|(part, outcome)| format!("{} {}", sign(outcome), part.what));
    told.chain((!more.is_empty()).then(|| more.to_owned())).collect::<Vec<_>>().join(PARTS)
}

/// A verdict as a program reads it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Record<'a> {
    pub(crate) id: &'a str,
    pub(crate) section: &'a str,
    pub(crate) claim: &'a str,
    pub(crate) printed: Option<f64>,
    pub(crate) unit: &'a str,
    /// With the paper's protocol.
    pub(crate) found: Option<f64>,
    pub(crate) ci95: Option<f64>,
    pub(crate) runs: Option<usize>,
    pub(crate) ratio: Option<f64>,
    pub(crate) rule: Option<&'a str>,
    /// By the reading that we take, where the paper contradicts itself.
    pub(crate) verdict: Holds,
    pub(crate) exceeded: bool,
    /// Of a claim in words: how many parts are so, of how many.
    pub(crate) parts: Option<[usize; 2]>,
    pub(crate) contradicted: bool,
    pub(crate) instead: Option<f64>,
    pub(crate) erratum: Option<&'static str>,
    /// With our protocol in the same network.
    pub(crate) ours: Option<f64>,
    pub(crate) ours_ci95: Option<f64>,
    /// By how much that is above, in per cent or points.
    pub(crate) ours_above: Option<f64>,
    pub(crate) ours_above_ci95: Option<f64>,
    pub(crate) measured: &'a str,
    pub(crate) why: Option<&'static str>,
}

/// How many verdicts there are of each kind, in the order of [`Holds::ALL`].
pub fn tally(verdicts: &[Verdict]) -> [usize; 4] {
    Holds::ALL.map(|holds| verdicts.iter().filter(|v| v.holds == holds).count())
}

#[cfg(test)]
mod tests;
