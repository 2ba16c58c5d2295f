//! The control loop in the simulated connection: the striped buffer after each change of the rates.

use anabranch_core::time::Instant;
use anabranch_scenario::units::Size;
use rayon::prelude::*;

use super::config::Constants;
use super::meter::Outcome;
use super::settings::{Grid, LOW};
use super::{Sockbuf, SockbufPoint, tables::rounded};
use crate::experiment::values::plain;
use crate::experiment::{RunError, Settings};
use crate::plot::csv;
use crate::reproduction;
use crate::work::Work;

/// A change of the rates, and the response.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// After each decision: seconds since the change, the decided size, and the set-point, in
    /// bytes.
    pub course: Vec<(f64, f64, f64)>,
    /// Size before the change.
    pub from: f64,
    /// Mean of the set-point until the next change.
    pub to: f64,
}

impl Step {
    /// Overshoot over the set-point, relative to the height of the step; `None` if the step is less
    /// than a tenth.
    pub fn overshoot(&self) -> Option<f64> {
        let height = self.to - self.from;
        let beyond = |(_, size, _): &(f64, f64, f64)| (size - self.to) * height.signum();
        let most = self.course.iter().map(beyond).fold(0.0, f64::max);
        (height.abs() >= 0.1 * self.to).then(|| most / height.abs())
    }

    /// Seconds until the size stays within 5 % of the set-point; `None` if it never does.
    pub fn settling(&self) -> Option<f64> {
        let off = |(_, size, set_point): &&(f64, f64, f64)| (size - set_point).abs() > 0.05 * set_point;
        match self.course.iter().rposition(|at| off(&at)) {
            None => Some(0.0),
            Some(last) => self.course.get(last + 1).map(|(after, ..)| *after),
        }
    }

    /// Largest deviation from the set-point in the last quarter, relative to the set-point.
    pub fn residue(&self) -> f64 {
        let last = &self.course[self.course.len() * 3 / 4..];
        last.iter().map(|(_, size, set_point)| (size / set_point - 1.0).abs()).fold(0.0, f64::max)
    }
}

/// A run with constants of the controller multiplied by a factor.
#[derive(Clone, PartialEq, Debug)]
pub struct Response {
    /// The constants.
    pub gains: Constants,
    /// The factor.
    pub factor: f64,
    /// All changes of the rates.
    pub steps: Vec<Step>,
}

/// Factors of the gains, for the claim `asked.stable`.
pub const FACTORS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];

/// Default target of the controller, in bandwidth-delay products (Figure 6, line 2).
const PRODUCTS: f64 = 2.0;

/// Limit on the relative deviation in the last quarter before the next change, below which the loop
/// counts as settled.
pub const SETTLED: f64 = 0.1;

impl Response {
    /// Makes one run for both sets of constants and each factor, with the same network and changes.
    ///
    /// # Errors
    ///
    /// The first failed run.
    pub fn run_all(grid: Grid, work: &Work<'_>) -> Result<Vec<Self>, RunError> {
        // With a quarter of the paper's gains, settling takes 290 s.
        let (step, steps) = if grid == Grid::Full { (400, 5) } else { (200, 1) };
        let kinds = [Constants::Paper, Constants::Damped];
        let cells: Vec<_> = kinds.iter().flat_map(|gains| FACTORS.map(|factor| (*gains, factor))).collect();
        let base = Settings::defaults(&Sockbuf)
            .with("memory", plain(&Size(LOW)))
            .with("duration", format!("{}s", step * (steps + 1)))
            .with("bandwidth_step", format!("{step}s"));
        let one = |(gains, factor): (Constants, f64)| {
            let settings = base.clone().with("gains", gains.word()).with("gain_factor", factor);
            let outcome = SockbufPoint::new(&work.settings(&Sockbuf, &settings))?.outcome(work.seed, 0)?;
            work.ran();
            Ok(Self { gains, factor, steps: steps_of(&outcome, PRODUCTS) })
        };
        cells.into_par_iter().map(one).collect()
    }

    /// Description.
    pub fn name(&self) -> String {
        let whose = match self.gains {
            Constants::Damped => "ours",
            Constants::Paper => "the paper's",
        };
        if self.factor == 1.0 { whose.to_owned() } else { format!("{whose}, {} times", self.factor) }
    }

    /// Whether the size reaches the set-point after every change and stays there.
    pub fn is_stable(&self) -> bool {
        self.steps.iter().all(|step| step.residue() <= SETTLED)
    }
}

/// Changes of the rates in a run whose controller targets this number of bandwidth-delay products.
pub(super) fn steps_of(outcome: &Outcome, products: f64) -> Vec<Step> {
    let shares: Vec<(Instant, f64, f64)> = outcome
        .striped_shares()
        .map(|(at, share)| (at, share.target as f64, products * share.product))
        .filter(|(.., set_point)| *set_point > 0.0)
        .collect();
    let ends = outcome.steps.iter().skip(1).copied().chain([Instant::FAR_FUTURE]);
    let step = |(from, to): (Instant, Instant)| {
        let before = shares.iter().rev().find(|(at, ..)| *at < from)?.1;
        let course: Vec<(f64, f64, f64)> = shares
            .iter()
            .filter(|(at, ..)| *at >= from && *at < to)
            .map(|(at, size, set_point)| (at.saturating_since(from).as_secs_f64(), *size, *set_point))
            .collect();
        let mean = course.iter().map(|(.., set_point)| set_point).sum::<f64>() / course.len().max(1) as f64;
        (!course.is_empty()).then_some(Step { course, from: before, to: mean })
    };
    outcome.steps.iter().copied().zip(ends).filter_map(step).collect()
}

/// Number of runs that [`Response::run_all`] makes.
pub const RUNS: usize = 2 * FACTORS.len();

/// The responses as a table.
pub fn page(responses: &[Response], command: String) -> reproduction::Table {
    let steps = responses.first().map_or(0, |r| r.steps.len());
    let head = [
        "constants",
        "times",
        "overshoot, mean, %",
        "most, %",
        "settling, mean, s",
        "most, s",
        "left, %",
        "settled",
    ];
    let rows: Vec<Vec<String>> = responses.iter().map(row).collect();
    let mut text = csv::record(&head);
    text += &rows.iter().map(|row| csv::record(row)).collect::<String>();
    reproduction::Table {
        name: "loop".to_owned(),
        title: "The control loop in the simulated connection: one run of each".to_owned(),
        note: format!(
            "All wireless rates change {steps} times, long apart, at 2 MB and with four connections. The overshoot is the largest \
             by the height of the step, over steps of at least a tenth; settling is until the size stays within 5 % of the \
             set-point; what is left is the most by which the size is off in the last quarter before the next change. Up to {} % \
             the loop has settled.",
            100.0 * SETTLED
        ),
        head: head.map(str::to_owned).to_vec(),
        rows,
        csv: text,
        command,
    }
}

fn row(response: &Response) -> Vec<String> {
    let overshoots: Vec<f64> = response.steps.iter().filter_map(Step::overshoot).collect();
    let settling: Vec<f64> = response.steps.iter().filter_map(Step::settling).collect();
    let left = response.steps.iter().map(Step::residue).fold(0.0, f64::max);
    let whose = match response.gains {
        Constants::Damped => "ours",
        Constants::Paper => "the paper's",
    };
    let mean = |v: &[f64]| (!v.is_empty()).then(|| v.iter().sum::<f64>() / v.len() as f64);
    let most = |v: &[f64]| v.iter().copied().reduce(f64::max);
    let percent = |v: Option<f64>| v.map_or("–".to_owned(), |v| format!("{:.1}", 100.0 * v));
    let seconds = |v: Option<f64>| v.map_or("–".to_owned(), rounded);
    let all = settling.len() == response.steps.len();
    vec![
        whose.to_owned(),
        response.factor.to_string(),
        percent(mean(&overshoots)),
        percent(most(&overshoots)),
        seconds(mean(&settling)),
        if all { seconds(most(&settling)) } else { "not always".to_owned() },
        percent(Some(left)),
        if response.is_stable() { "yes" } else { "no" }.to_owned(),
    ]
}
