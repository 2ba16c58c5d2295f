//! Verdicts on a paper's claims, and the one set of rules by which they are judged.
//!
//! The `claims` module of a paper provides the [`Evidence`] for each claim; [`judge`] decides all
//! claims of a paper together.
//!
//! A number must equal the printed one within a [`Tolerance`], in both directions. A claim in words
//! is divided into [`Part`]s. Parts that depend on chance are tests of paired runs; Holm's
//! correction keeps the probability of even one false success among all tests of the paper at 5 %.
//! A claim that the runs leave open is not judged.

use serde::{Deserialize, Serialize};

use crate::stats::{self, Summary};
use crate::targets::{self, Target};

/// Significance level of all tests of a paper together.
const LEVEL: f64 = 0.05;
/// Relative difference from which a comparison is relevant, if the paper does not state its size.
///
/// A significant difference holds however small it is. If no difference is significant and even the
/// confidence interval excludes this size, the claim does not hold, rather than being open.
pub const MATTERS: f64 = 0.05;

/// Verdict on a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Holds {
    /// The number is the printed one, or all parts of the claim hold.
    #[serde(rename = "reproduced")]
    Yes,
    /// The number differs from the printed one, but is better than the other scheme's as the paper
    /// states; or at least half of the claim's parts hold.
    #[serde(rename = "in trend only")]
    Trend,
    /// The claim does not hold.
    #[serde(rename = "not reproduced")]
    No,
    /// The runs leave the claim open, or nothing measures it.
    #[serde(rename = "cannot be judged")]
    Open,
}

impl Holds {
    /// All verdicts, in the order of reports.
    pub const ALL: [Self; 4] = [Self::Yes, Self::Trend, Self::No, Self::Open];

    /// Name of the verdict.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Yes => "reproduced",
            Self::Trend => "in trend only",
            Self::No => "not reproduced",
            Self::Open => "cannot be judged",
        }
    }
}

/// A measured or computed number, in the unit of the printed one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// Mean.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval.
    pub ci95: Option<f64>,
    /// Number of runs; 0 for a computed number.
    pub runs: usize,
}

impl Figure {
    /// A number from a formula instead of runs.
    pub const fn computed(mean: f64) -> Self {
        Self { mean, ci95: None, runs: 0 }
    }

    /// The number in another unit: `factor` times the number, plus `zero`.
    #[must_use]
    pub fn scaled(self, factor: f64, zero: f64) -> Self {
        let Self { mean, ci95, runs } = self;
        Self { mean: factor * mean + zero, ci95: ci95.map(|half| half * factor.abs()), runs }
    }

    /// The number with its interval, with the digits that the interval justifies.
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

/// A number with its interval, or a text that there is none.
pub fn shown(found: Option<impl Into<Figure>>) -> String {
    found.map_or("none".to_owned(), |found| found.into().text())
}

impl From<Summary> for Figure {
    fn from(summary: Summary) -> Self {
        Self { mean: summary.mean, ci95: summary.ci95, runs: summary.runs }
    }
}

/// Formats a number with at most four significant digits.
pub fn number(value: f64) -> String {
    let text = unsigned_zero(value, digits(value, 3));
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Number of decimals that leaves `behind` digits after the first non-zero one.
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

/// Permitted deviation from a printed number, by the kind of the number. Equal for all papers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Tolerance {
    /// A tenth, for a mean, a maximum or a bound.
    Mean,
    /// A quarter, for a standard deviation and for the difference or quotient of two numbers, each
    /// of which may deviate.
    Difference,
    /// One point, for a percentage close to 100.
    Points,
    /// Another deviation, in the number's unit.
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

/// Half a unit of the last printed digit.
fn half_a_digit(printed: f64) -> f64 {
    let decimals = printed.to_string().split_once('.').map_or(0, |(_, decimals)| decimals.len());
    0.5 * 10f64.powi(-(decimals as i32))
}

/// A statement that must hold.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// The statement, with its numbers.
    what: String,
    test: Test,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Test {
    /// A difference of paired runs is positive. From `matters` on it would be what the paper
    /// states.
    Effect { found: Option<Summary>, matters: f64 },
    /// A number is within a limit of 0, in both directions.
    Within { found: Option<Summary>, limit: f64 },
    /// A statement without chance.
    Fact(bool),
}

/// Result of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Holds,
    Fails,
    Open,
}

impl Part {
    /// A part that states that `found`, run by run, is positive; `matters` is the smallest relevant
    /// difference. `found` is `None` if no run completed.
    pub fn effect(what: impl Into<String>, found: Option<Summary>, matters: f64) -> Self {
        Self { what: what.into(), test: Test::Effect { found, matters } }
    }

    /// A part that states that `found`, run by run, is within `limit` of 0, in both directions.
    pub fn within(what: impl Into<String>, found: Option<Summary>, limit: f64) -> Self {
        Self { what: what.into(), test: Test::Within { found, limit } }
    }

    /// A part that states a fact without chance.
    pub fn fact(what: impl Into<String>, is_so: bool) -> Self {
        Self { what: what.into(), test: Test::Fact(is_so) }
    }

    fn probability(&self) -> Option<f64> {
        match self.test {
            Test::Effect { found, .. } => found?.p_above(0.0),
            Test::Within { .. } | Test::Fact(_) => None,
        }
    }

    /// Result by the mean alone, as if the runs left no doubt; an irrelevant difference does not
    /// hold.
    fn by_mean(&self) -> Outcome {
        let is_so = match self.test {
            Test::Fact(is_so) => Some(is_so),
            Test::Within { found, limit } => found.map(|found| found.mean.abs() <= limit),
            // The means of equal runs differ only by rounding.
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

    /// Result of the test; `corrected` is the probability after Holm's correction, 1 without one.
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
                // Equal runs provide no further evidence, however small the relevant difference is.
                Some((_, high)) if high < matters || high <= 0.0 => Outcome::Fails,
                Some(_) => Outcome::Open,
            },
        }
    }
}

/// Number of parts that hold, each tested alone, as a text beside a verdict.
pub fn so(parts: &[Part]) -> String {
    let alone = |part: &&Part| part.outcome(part.probability().unwrap_or(1.0)) == Outcome::Holds;
    format!("{} of {} (each tested alone)", parts.iter().filter(alone).count(), parts.len())
}

/// Evidence for a claim.
#[derive(Clone, PartialEq, Debug)]
pub enum Evidence {
    /// A number that must equal the printed one.
    Number {
        /// Number of the paper's protocol.
        found: Figure,
        /// Permitted deviation.
        tolerance: Tolerance,
        /// Part that suffices for a trend: the number is better than another scheme's.
        trend: Option<Part>,
    },
    /// A number that must not exceed the printed one.
    AtMost(Figure),
    /// A number that must not be below the printed one.
    AtLeast(Figure),
    /// Parts that must all hold.
    Parts(Vec<Part>),
    /// Nothing measures it.
    Nothing,
}

/// Result of our protocol in the same network.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Beside {
    /// Its number.
    pub figure: Figure,
    /// How far that exceeds the number of the paper's protocol, run by run: in per cent of it, or
    /// in points.
    pub change: Option<Figure>,
}

/// A claim's evidence before the verdict.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// The evidence.
    pub evidence: Evidence,
    /// Text about the measurement.
    pub measured: String,
    /// Result of our protocol. It never changes a verdict.
    pub ours: Option<Beside>,
    /// The number that replaces a printed one which contradicts others.
    pub instead: Option<f64>,
    /// The erratum that describes the contradiction.
    pub erratum: Option<&'static str>,
    /// Why the claim is not reproduced, if it is not.
    pub why: Option<&'static str>,
    /// The row of the scheme over which this gain is measured. A gain larger than printed can only
    /// be a success if that row is reproduced.
    pub over: Option<String>,
}

impl Judged {
    /// A claim in words.
    pub fn parts(parts: Vec<Part>) -> Self {
        let none = parts.is_empty();
        Self::of(if none { Evidence::Nothing } else { Evidence::Parts(parts) })
    }

    /// A number of the paper's protocol that must equal the printed one; `None` if no run
    /// completed.
    pub fn number(found: Option<impl Into<Figure>>, tolerance: Tolerance) -> Self {
        Self::of(found.map_or(Evidence::Nothing, |found| Evidence::Number {
            found: found.into(),
            tolerance,
            trend: None,
        }))
    }

    /// The gain of one scheme over another, in the printed number's unit. For a trend it must be
    /// positive.
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

    /// A number that must not exceed the printed one.
    pub fn at_most(found: Option<impl Into<Figure>>) -> Self {
        Self::of(found.map_or(Evidence::Nothing, |found| Evidence::AtMost(found.into())))
    }

    /// A number that must not be below the printed one.
    pub fn at_least(found: Option<impl Into<Figure>>) -> Self {
        Self::of(found.map_or(Evidence::Nothing, |found| Evidence::AtLeast(found.into())))
    }

    /// A claim that nothing measures, with the reason.
    pub fn unmeasured(why: impl Into<String>) -> Self {
        Self::of(Evidence::Nothing).noting(why)
    }

    /// A claim whose name no rule knows.
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

    /// The number is at least in trend if this part holds.
    #[must_use]
    pub fn or_at_least(mut self, part: Part) -> Self {
        if let Evidence::Number { trend, .. } = &mut self.evidence {
            *trend = Some(part);
        }
        self
    }

    /// Adds a text beside the number.
    #[must_use]
    pub fn noting(self, measured: impl Into<String>) -> Self {
        Self { measured: measured.into(), ..self }
    }

    /// Adds the number of our protocol, and how far that exceeds the paper's, run by run.
    #[must_use]
    pub fn beside(self, figure: Option<impl Into<Figure>>, change: Option<impl Into<Figure>>) -> Self {
        let change = change.map(Into::into);
        Self { ours: figure.map(|figure| Beside { figure: figure.into(), change }), ..self }
    }

    /// Marks the claim as one in which the paper contradicts itself.
    #[must_use]
    pub fn against(self, erratum: &'static str) -> Self {
        Self { erratum: Some(erratum), ..self }
    }

    /// Judges by another number than the printed one; it follows from other printed numbers.
    #[must_use]
    pub fn instead(self, number: f64, erratum: &'static str) -> Self {
        Self { instead: Some(number), erratum: Some(erratum), ..self }
    }

    /// Adds the reason, which is reported if the claim is not reproduced.
    #[must_use]
    pub fn because(self, why: &'static str) -> Self {
        Self { why: Some(why), ..self }
    }

    /// Number of the paper's protocol.
    pub fn found(&self) -> Option<Figure> {
        match &self.evidence {
            Evidence::Number { found, .. } | Evidence::AtMost(found) | Evidence::AtLeast(found) => {
                Some(*found)
            }
            Evidence::Parts(_) | Evidence::Nothing => None,
        }
    }

    /// The rule of the verdict in words; `by` is the number to compare with.
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

    /// Parts of the claim that are tested.
    fn tested(&self) -> &[Part] {
        match &self.evidence {
            Evidence::Number { trend, .. } => trend.as_slice(),
            Evidence::Parts(parts) => parts,
            Evidence::AtMost(_) | Evidence::AtLeast(_) | Evidence::Nothing => &[],
        }
    }
}

/// Compares a number with the printed one.
fn near(printed: f64, found: &Figure, tolerance: f64) -> Holds {
    let (off, half) = ((found.mean - printed).abs(), found.ci95.unwrap_or(0.0));
    // A single run of several has no interval, and the next may differ much.
    let is_one_run = found.runs == 1 && found.ci95.is_none();
    match off {
        off if !off.is_finite() || is_one_run => Holds::Open,
        off if off <= tolerance && half <= tolerance.max(1e-12) => Holds::Yes,
        off if off - half > tolerance => Holds::No,
        _ => Holds::Open,
    }
}

/// Judges a number that must not be positive; `found` is its value.
fn bound(found: f64, figure: &Figure) -> Holds {
    let half = figure.ci95.unwrap_or(0.0);
    match found {
        found if !found.is_finite() || (figure.runs == 1 && figure.ci95.is_none()) => Holds::Open,
        found if found + half <= 0.0 => Holds::Yes,
        found if found - half > 0.0 => Holds::No,
        _ => Holds::Open,
    }
}

/// A claim with its verdict.
#[derive(Clone, PartialEq, Debug)]
pub struct Verdict {
    /// Name in the list of targets.
    pub id: String,
    /// Place in the paper.
    pub section: String,
    /// The claim in words, or the conditions of the number.
    pub claim: String,
    /// Printed number.
    pub printed: Option<f64>,
    /// Unit; empty for a pure number.
    pub unit: String,
    /// Evidence.
    pub judged: Judged,
    /// Rule by which a number is judged.
    pub rule: Option<String>,
    /// Number of parts of a claim in words that hold, and number of all parts.
    pub parts: Option<[usize; 2]>,
    /// The verdict. If the paper contradicts itself, by our reading.
    pub holds: Holds,
    /// Whether the claim contradicts other printed numbers.
    pub contradicted: bool,
    /// Whether the gain is significantly larger than printed, over a scheme whose own number is
    /// reproduced.
    pub exceeded: bool,
}

/// Judges every value and trend of a list of targets; `of` provides the evidence for each.
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

    /// Handles a gain that is not the printed one: a larger gain is a success only if its baseline
    /// is reproduced.
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

    /// Verdict by the means alone, as if the runs left no doubt. It is meant for many settings with
    /// few runs each, whose share of successes has a confidence interval of its own. A gain larger
    /// than printed counts only as a trend.
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

    /// The number of a claim: the measured one, or the share of its parts that hold by the means.
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

    /// The number that the claim is compared with.
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

    /// Deviation of the measured number from the one that it is compared with: in per cent of it,
    /// or in points if it is a percentage; the difference if it is 0.
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

    /// The measured number divided by the one that it is compared with, unless that is 0.
    pub fn ratio(&self) -> Option<f64> {
        let (printed, found) = (self.by()?, self.judged.found()?.mean);
        (printed != 0.0).then_some(found / printed)
    }

    /// The verdict in machine-readable form.
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

/// Verdict on a claim whose parts must all hold.
fn all_of(outcomes: &[Outcome]) -> Holds {
    let count = |of| outcomes.iter().filter(|outcome| **outcome == of).count();
    let (so, open, all) = (count(Outcome::Holds), count(Outcome::Open), outcomes.len());
    match 2 * so {
        twice if twice == 2 * all => Holds::Yes,
        twice if twice >= all => Holds::Trend,
        // Open parts could still make it at least half.
        twice if twice + 2 * open >= all => Holds::Open,
        _ => Holds::No,
    }
}

/// Turns a failure into a trend if the number differs in the direction that the paper states.
fn in_trend(holds: Holds, trend: Option<&Outcome>) -> Holds {
    match (holds, trend) {
        (Holds::No, Some(Outcome::Holds)) => Holds::Trend,
        (holds, _) => holds,
    }
}

/// Separator between the parts of a claim.
pub const PARTS: &str = " | ";

/// The parts of a claim, each with its result.
fn told(parts: &[Part], outcomes: &[Outcome], more: &str) -> String {
    let sign = |outcome: &Outcome| match outcome {
        Outcome::Holds => "✓",
        Outcome::Fails => "✗",
        Outcome::Open => "?",
    };
    let told = parts.iter().zip(outcomes).map(|(part, outcome)| format!("{} {}", sign(outcome), part.what));
    told.chain((!more.is_empty()).then(|| more.to_owned())).collect::<Vec<_>>().join(PARTS)
}

/// Machine-readable form of a verdict.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Record<'a> {
    pub(crate) id: &'a str,
    pub(crate) section: &'a str,
    pub(crate) claim: &'a str,
    pub(crate) printed: Option<f64>,
    pub(crate) unit: &'a str,
    /// Number of the paper's protocol.
    pub(crate) found: Option<f64>,
    pub(crate) ci95: Option<f64>,
    pub(crate) runs: Option<usize>,
    pub(crate) ratio: Option<f64>,
    pub(crate) rule: Option<&'a str>,
    /// Verdict by our reading, if the paper contradicts itself.
    pub(crate) verdict: Holds,
    pub(crate) exceeded: bool,
    /// For a claim in words: number of parts that hold, and number of all parts.
    pub(crate) parts: Option<[usize; 2]>,
    pub(crate) contradicted: bool,
    pub(crate) instead: Option<f64>,
    pub(crate) erratum: Option<&'static str>,
    /// Number of our protocol in the same network.
    pub(crate) ours: Option<f64>,
    pub(crate) ours_ci95: Option<f64>,
    /// How far our number exceeds that of the paper's protocol, in per cent or points.
    pub(crate) ours_above: Option<f64>,
    pub(crate) ours_above_ci95: Option<f64>,
    pub(crate) measured: &'a str,
    pub(crate) why: Option<&'static str>,
}

/// Number of verdicts of each kind, in the order of [`Holds::ALL`].
pub fn tally(verdicts: &[Verdict]) -> [usize; 4] {
    Holds::ALL.map(|holds| verdicts.iter().filter(|v| v.holds == holds).count())
}

#[cfg(test)]
mod tests;
