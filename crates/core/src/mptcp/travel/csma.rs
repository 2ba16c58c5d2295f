//! Section V, equations (1) to (4): non-slotted CSMA-CA of IEEE 802.15.4 as a chain of back-offs.
//!
//! Time is counted in back-off periods from 1. The i-th back-off waits for a random number of
//! 0..W_i periods and assesses the channel in the next one, so it takes `(W_i + 1) / 2` periods on
//! average (M8: the assessment takes a whole period, as in the paper). If all `max_backoffs + 1`
//! assessments find the channel busy, the attempt fails.
//!
//! The chain is exact by default: it keeps the distribution of the period in which each back-off
//! begins. The printed chain has a single start period, the mean k_i (M6). Both agree if the
//! channel is equally busy in every period.

use alloc::vec;
use alloc::vec::Vec;

use super::error::{ModelError, within};
use super::reading::{Reading, Rounding, StageWeights, StartPeriod};

/// Parameters of channel access. [`Csma::default`] has the values of the standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Csma {
    /// macMinBE: exponent of the first window; 0..=`max_be`, 3 in the standard.
    pub min_be: u32,
    /// macMaxBE: exponent of the largest window; 3..=8, 5 in the standard.
    pub max_be: u32,
    /// macMaxCSMABackoffs, the paper's NB_max: back-offs after the first; 0..=5, 4 in the standard.
    pub max_backoffs: u32,
}

impl Default for Csma {
    fn default() -> Self {
        Self { min_be: 3, max_be: 5, max_backoffs: 4 }
    }
}

impl Csma {
    /// W_i in periods, for valid parameters.
    pub fn window(&self, i: u32) -> u32 {
        1 << self.min_be.saturating_add(i).min(self.max_be).min(MAX_BE)
    }

    /// T_max: duration of the longest attempt in periods.
    pub fn longest(&self) -> u32 {
        (0..=self.max_backoffs.min(MAX_BACKOFFS)).map(|i| self.window(i)).sum()
    }

    /// `(W_i + 1) / 2`: mean duration of the i-th back-off in periods, assessment included.
    fn mean(&self, i: u32) -> f64 {
        f64::from(self.window(i) + 1) / 2.0
    }

    pub(super) fn check(&self) -> Result<(), ModelError> {
        within("max_be", f64::from(self.max_be), 3.0, f64::from(MAX_BE))?;
        within("min_be", f64::from(self.min_be), 0.0, f64::from(self.max_be))?;
        within("max_backoffs", f64::from(self.max_backoffs), 0.0, f64::from(MAX_BACKOFFS))
    }
}

/// p_b^k: the probability that an assessment in period k finds the channel busy; 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub enum Busy {
    /// Equal in every period.
    Constant(f64),
    /// For period 1, 2, ...; the last value holds for all later ones. Not empty.
    ByPeriod(Vec<f64>),
}

impl Busy {
    /// Evaluates a function of the period, counted from 1, up to the longest attempt.
    pub fn from_fn(csma: &Csma, busy: impl FnMut(u32) -> f64) -> Self {
        Self::ByPeriod((1..=csma.longest()).map(busy).collect())
    }

    fn at(&self, period: u32) -> f64 {
        match self {
            Self::Constant(p) => *p,
            Self::ByPeriod(each) => {
                let i = (period.max(1) - 1) as usize;
                each.get(i).or(each.last()).copied().unwrap_or(0.0)
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), ModelError> {
        match self {
            Self::Constant(p) => within("busy", *p, 0.0, 1.0),
            Self::ByPeriod(each) if each.is_empty() => Err(ModelError::Empty { what: "busy" }),
            Self::ByPeriod(each) => each.iter().try_for_each(|&p| within("busy", p, 0.0, 1.0)),
        }
    }
}

/// One back-off of an attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stage {
    /// W_i: number of periods to draw from.
    pub window: u32,
    /// b_{i-1}: probability that the attempt reaches this back-off.
    pub reached: f64,
    /// b_i: probability that it does and finds the channel busy.
    pub busy: f64,
}

/// Result of an attempt to gain the channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// The back-offs in their order.
    pub stages: Vec<Stage>,
    /// p(T): probability that the channel is gained.
    pub won: f64,
    /// p(F): probability that every assessment finds it busy.
    pub lost: f64,
    /// N_bp of equation (4): mean number of back-off periods of an attempt, successful or not.
    pub periods: f64,
    /// Mean number of periods if the channel is gained (M7); `None` if it never is.
    pub periods_if_won: Option<f64>,
    /// Mean number of periods if it is not; `None` if it always is.
    pub periods_if_lost: Option<f64>,
    /// Probability that the channel is gained by the assessment in period 1, 2, ...; the sum is
    /// `won`.
    pub won_at: Vec<f64>,
}

/// Computes the chain for `busy`; `reading` selects the start periods (M6) and the weights of
/// equation (4) (M2).
///
/// # Errors
/// A parameter or probability is outside its range.
pub fn access(csma: &Csma, busy: &Busy, reading: Reading) -> Result<Access, ModelError> {
    let mut chain = Chain::new(csma, busy)?;
    chain.won_at = vec![0.0; chain.starts.len()];
    let (stages, periods) = chain.run(csma, reading);
    Ok(chain.done(stages, periods))
}

/// Computes [`Access::periods`] alone, in a quarter of the time.
///
/// # Errors
/// As for [`access`].
pub fn mean_periods(csma: &Csma, busy: &Busy, reading: Reading) -> Result<f64, ModelError> {
    Ok(Chain::new(csma, busy)?.run(csma, reading).1)
}

/// N_bp in closed form if every period is equally busy: `sum p_b^i (W_i + 1) / 2`.
///
/// # Errors
/// A parameter or probability is outside its range.
pub fn periods_at_constant(csma: &Csma, busy: f64) -> Result<f64, ModelError> {
    csma.check()?;
    within("busy", busy, 0.0, 1.0)?;
    let (mut sum, mut reached) = (0.0, 1.0);
    for i in 0..=csma.max_backoffs {
        sum += reached * csma.mean(i);
        reached *= busy;
    }
    Ok(sum)
}

/// State of an attempt as a distribution.
struct Chain<'a> {
    busy: &'a Busy,
    /// By elapsed periods: probability that the next back-off begins then.
    starts: Vec<f64>,
    /// Empty if only the number of periods is requested.
    won_at: Vec<f64>,
}

impl<'a> Chain<'a> {
    fn new(csma: &Csma, busy: &'a Busy) -> Result<Self, ModelError> {
        csma.check()?;
        busy.check()?;
        let longest = csma.longest() as usize;
        // The rounded means of equation (1) may exceed the start of the longest attempt by one.
        let mut starts = vec![0.0; longest + 2];
        starts[0] = 1.0;
        Ok(Self { busy, starts, won_at: Vec::new() })
    }

    /// Runs all back-offs; returns them and N_bp of equation (4).
    fn run(&mut self, csma: &Csma, reading: Reading) -> (Vec<Stage>, f64) {
        let (mut product, mut mean_start, mut weighted) = (1.0, 0.0, 0.0);
        let mut stages = Vec::new();
        for i in 0..=csma.max_backoffs {
            if let StartPeriod::Mean(rounding) = reading.start {
                self.gather(rounded(mean_start, rounding));
            }
            let reached = self.reached();
            let weight = match reading.weights {
                StageWeights::Joint => reached,
                StageWeights::Product => product,
            };
            weighted += weight * csma.mean(i);
            if i == csma.max_backoffs && self.won_at.is_empty() {
                // The end of the last back-off has no effect on the number of periods.
                break;
            }
            let window = csma.window(i);
            self.back_off(window);
            let stage = Stage { window, reached, busy: self.reached() };
            product *= stage.busy;
            mean_start += csma.mean(i);
            stages.push(stage);
        }
        (stages, weighted)
    }

    /// Probability that another back-off begins.
    fn reached(&self) -> f64 {
        self.starts.iter().sum()
    }

    /// Moves the whole distribution to one start: equation (1).
    fn gather(&mut self, elapsed: usize) {
        let all = self.reached();
        self.starts.fill(0.0);
        self.starts[elapsed] = all;
    }

    fn back_off(&mut self, window: u32) {
        let mut next = vec![0.0; self.starts.len()];
        let share = 1.0 / f64::from(window);
        for (elapsed, &p) in self.starts.iter().enumerate().filter(|(_, p)| **p > 0.0) {
            let (first, last) = (elapsed + 1, elapsed + window as usize);
            let next = &mut next[first..=last];
            let won_at = self.won_at.get_mut(first - 1..last).unwrap_or_default();
            match self.busy {
                // Equals the other arm without an access per period, so that the compiler can
                // vectorise it.
                Busy::Constant(busy) => {
                    next.iter_mut().for_each(|next| *next += p * share * busy);
                    won_at.iter_mut().for_each(|won| *won += p * share * (1.0 - busy));
                }
                Busy::ByPeriod(_) => {
                    let busy = |end: usize| self.busy.at(end as u32);
                    (first..).zip(next).for_each(|(end, next)| *next += p * share * busy(end));
                    (first..).zip(won_at).for_each(|(end, won)| *won += p * share * (1.0 - busy(end)));
                }
            }
        }
        self.starts = next;
    }

    fn done(mut self, stages: Vec<Stage>, periods: f64) -> Access {
        let mean = |chances: &[f64], first: f64| {
            let all: f64 = chances.iter().sum();
            let sum: f64 = chances.iter().zip(0_u32..).map(|(p, k)| p * (f64::from(k) + first)).sum();
            (all, (all > 0.0).then(|| sum / all))
        };
        let (won, periods_if_won) = mean(&self.won_at, 1.0);
        let (lost, periods_if_lost) = mean(&self.starts, 0.0);
        while self.won_at.last().is_some_and(|p| *p == 0.0) {
            self.won_at.pop();
        }
        // Sums of a thousand terms may exceed 1 by rounding errors.
        let (won, lost) = (won.min(1.0), lost.min(1.0));
        Access { stages, won, lost, periods, periods_if_won, periods_if_lost, won_at: self.won_at }
    }
}

fn rounded(mean: f64, rounding: Rounding) -> usize {
    // The mean is not negative, and `core` lacks the standard library's rounding.
    let down = mean as usize;
    match rounding {
        Rounding::Up if (down as f64) < mean => down + 1,
        Rounding::Down | Rounding::Up => down,
    }
}

/// The standard's upper limit of macMaxBE.
const MAX_BE: u32 = 8;
/// The standard's upper limit of macMaxCSMABackoffs.
const MAX_BACKOFFS: u32 = 5;
