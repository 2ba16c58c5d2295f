//! Statistics of runs: summaries with confidence intervals, medians of censored times, paired
//! comparisons, corrections for multiple tests, ratios, and fairness.
//!
//! Intervals are two-sided with a level of 95 %. For means they use Student's t distribution, since
//! the variance is estimated. For success rates they use Wilson's score interval, which stays
//! within 0 to 1 and is valid for rates of 0 and 1.

#![forbid(unsafe_code)]

mod record;
mod survival;

pub use record::{Figure, MetricRecord};
pub use survival::{Median, Step, Survival};

use std::collections::BTreeMap;

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};
use thiserror::Error;

/// The 97.5 % quantile of the standard normal distribution.
const Z_975: f64 = 1.959_963_984_540_054;

/// Summary of a metric over the runs of one point, in the unit of the metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Arithmetic mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of the mean; `None` for a single run, which
    /// gives no information on the variance.
    pub ci95: Option<f64>,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Number of runs.
    pub runs: usize,
}

/// Why a statistic cannot be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StatsError {
    /// There are no runs.
    #[error("there is no run to summarise")]
    Empty,
    /// A value is not finite.
    #[error("run {run} has no finite value")]
    NotFinite {
        /// Number of the run, counted from 0.
        run: usize,
    },
    /// The two sides of a paired comparison have different numbers of runs.
    #[error("a paired comparison needs the same runs on both sides, not {left} and {right}")]
    Unpaired {
        /// Number of runs on the left side.
        left: usize,
        /// Number of runs on the right side.
        right: usize,
    },
    /// There are more successes than trials, or no trials.
    #[error("{successes} successes in {trials} trials are no share")]
    NoShare {
        /// Number of successes.
        successes: u64,
        /// Number of trials.
        trials: u64,
    },
}

impl Summary {
    /// Summarises one value per run.
    ///
    /// # Errors
    /// [`StatsError::Empty`] without runs, [`StatsError::NotFinite`] for a value that is not
    /// finite.
    pub fn of(values: &[f64]) -> Result<Self, StatsError> {
        if let Some(run) = values.iter().position(|value| !value.is_finite()) {
            return Err(StatsError::NotFinite { run });
        }
        let runs = values.len();
        if runs == 0 {
            return Err(StatsError::Empty);
        }
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Rounding could move the mean of equal values outside their range.
        let mean = (values.iter().sum::<f64>() / runs as f64).clamp(min, max);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let freedom = (runs - 1) as f64;
        let ci95 = student_975(runs - 1).map(|t| t * (squares / freedom / runs as f64).sqrt());
        Ok(Self { mean, ci95, min, max, runs })
    }

    /// The confidence interval of the mean as (low, high); `None` for a single run.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.ci95.map(|half| (self.mean - half, self.mean + half))
    }

    /// The one-sided p-value by Student's t: the probability of a mean at least this high if the
    /// true mean is `value` or less. `None` for a single run.
    pub fn p_above(&self, value: f64) -> Option<f64> {
        let quantile = student_975(self.runs.checked_sub(1)?)?;
        let error = self.ci95? / quantile;
        let over = self.mean - value;
        if error == 0.0 {
            // Equal runs have no variance. A difference within rounding counts as none.
            let rounding = 1e-12 * self.mean.abs().max(value.abs()).max(1.0);
            return Some(if over > rounding { 0.0 } else { 1.0 });
        }
        let law = StudentsT::new(0.0, 1.0, (self.runs - 1) as f64).ok()?;
        Some(law.sf(over / error))
    }

    /// Summarises `of(run)` over the runs for which it returns a value; `None` if there are none.
    pub fn by_run(runs: usize, of: impl Fn(usize) -> Option<f64>) -> Option<Self> {
        Self::of(&(0..runs).filter_map(of).collect::<Vec<_>>()).ok()
    }

    /// The summary of the values times `factor` plus `zero`.
    #[must_use]
    pub fn scaled(self, factor: f64, zero: f64) -> Self {
        let [a, b] = [self.min, self.max].map(|end| factor * end + zero);
        let mean = factor * self.mean + zero;
        let ci95 = self.ci95.map(|half| half * factor.abs());
        Self { mean, ci95, min: a.min(b), max: a.max(b), runs: self.runs }
    }

    /// True if the confidence interval excludes zero. For the [`paired`] difference of two schemes
    /// this means that they differ at the 5 % level.
    pub fn excludes_zero(&self) -> bool {
        self.interval().is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }
}

/// Summarises `left - right`, run by run. If both schemes saw the same channel in the same run, the
/// variance due to the channel cancels.
///
/// # Errors
/// [`StatsError::Unpaired`] for different numbers of runs; otherwise as [`Summary::of`].
pub fn paired(left: &[f64], right: &[f64]) -> Result<Summary, StatsError> {
    if left.len() != right.len() {
        return Err(StatsError::Unpaired { left: left.len(), right: right.len() });
    }
    let differences: Vec<f64> = left.iter().zip(right).map(|(left, right)| left - right).collect();
    Summary::of(&differences)
}

/// The ratio of the means, `mean(left) / mean(right)`, over paired runs. Its interval is that of
/// the ratio estimator (Cochran, Sampling Techniques, 3rd edition, section 6.4), computed from
/// `left - ratio * right` divided by the mean of `right`. `min` and `max` are the extremes of the
/// runs' contributions, not of the ratios per run.
///
/// # Errors
/// As [`paired`]; also [`StatsError::NotFinite`] if the mean of `right` is 0.
pub fn ratio(left: &[f64], right: &[f64]) -> Result<Summary, StatsError> {
    paired(left, right)?;
    let (above, below) = (Summary::of(left)?.mean, Summary::of(right)?.mean);
    let parts: Vec<f64> =
        left.iter().zip(right).map(|(l, r)| above / below + (l - above / below * r) / below).collect();
    Summary::of(&parts)
}

/// The statistic `of` over all runs with a jackknife interval (Efron and Tibshirani, An
/// Introduction to the Bootstrap, chapter 11). `of` is called once with `None` for all runs, and
/// once with the number of each run to leave out. Use it for statistics other than means:
/// deviations, ratios of means, sums over several cells of the same runs. `min` and `max` are the
/// extremes over the calls that leave one run out.
///
/// # Errors
/// [`StatsError::Empty`] without runs; [`StatsError::NotFinite`] if the value for all runs is not
/// finite. If a value without one run is not finite, there is no interval.
pub fn jackknife(runs: usize, of: impl Fn(Option<usize>) -> f64) -> Result<Summary, StatsError> {
    if runs == 0 {
        return Err(StatsError::Empty);
    }
    let mean = of(None);
    if !mean.is_finite() {
        return Err(StatsError::NotFinite { run: 0 });
    }
    let without: Vec<f64> = (0..runs).map(|run| of(Some(run))).collect();
    let Ok(part) = Summary::of(&without) else {
        return Ok(Summary { mean, ci95: None, min: mean, max: mean, runs });
    };
    let squares: f64 = without.iter().map(|value| (value - part.mean).powi(2)).sum();
    let n = runs as f64;
    let ci95 = student_975(runs - 1).map(|t| t * ((n - 1.0) / n * squares).sqrt());
    Ok(Summary { mean, ci95, min: part.min, max: part.max, runs })
}

/// The sample standard deviation over the runs, with its interval; `None` for fewer than two runs.
pub fn deviation(values: &[f64]) -> Option<Summary> {
    let of = |without: Option<usize>| {
        let kept = || values.iter().enumerate().filter(|(i, _)| Some(*i) != without).map(|(_, v)| *v);
        let n = kept().count() as f64;
        let mean = kept().sum::<f64>() / n;
        (kept().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
    };
    if values.len() < 2 { None } else { jackknife(values.len(), of).ok() }
}

/// How much of the variance of values a grouping explains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Explained {
    /// Explained fraction of the variance: epsilon squared (Kelley 1935), the variance between
    /// groups minus its expectation under chance; at least 0. If the groups are the values of one
    /// of several independent parameters, this estimates the first-order index of that parameter
    /// (Sobol 1993).
    pub share: f64,
    /// The p-value of Fisher's F test: the probability of at least this much variance between
    /// meaningless groups.
    pub p: f64,
}

/// One-way analysis of variance; `None` if the values do not vary, or no group has two values.
pub fn explained(groups: &[usize], values: &[f64]) -> Option<Explained> {
    let mut sums: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for (group, value) in groups.iter().zip(values) {
        let (count, sum) = sums.entry(*group).or_default();
        *count += 1.0;
        *sum += value;
    }
    let (n, k) = (values.len() as f64, sums.len() as f64);
    let mean = values.iter().sum::<f64>() / n;
    let total: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let between: f64 = sums.values().map(|(count, sum)| count * (sum / count - mean).powi(2)).sum();
    let within = (total - between).max(0.0) / (n - k);
    // Equal values vary only by rounding, which is not explained.
    if n <= k || total.is_nan() || total <= n * (1e-12 * mean.abs()).powi(2) {
        return None;
    }
    if k < 2.0 {
        return Some(Explained { share: 0.0, p: 1.0 });
    }
    let share = ((between - (k - 1.0) * within) / total).clamp(0.0, 1.0);
    let law = FisherSnedecor::new(k - 1.0, n - k).ok()?;
    let p = if within == 0.0 { 0.0 } else { law.sf(between / (k - 1.0) / within) };
    Some(Explained { share, p })
}

/// Holm's correction for multiple tests (Holm 1979, "A simple sequentially rejective multiple test
/// procedure"). Returns the adjusted p-values: rejecting all tests whose value is at most `level`
/// makes the probability of any false rejection at most `level`.
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let mut corrected = vec![1.0; probabilities.len()];
    let mut least = 0.0f64;
    for (rank, test) in order.into_iter().enumerate() {
        let left = (probabilities.len() - rank) as f64;
        least = least.max((left * probabilities[test]).min(1.0));
        corrected[test] = least;
    }
    corrected
}

/// The smallest value that at least the given fraction of values (greater than 0, at most 1) does
/// not exceed; `None` without values.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(((share * sorted.len() as f64).ceil() as usize).checked_sub(1)?).copied()
}

/// Jain's fairness index (Jain, Chiu and Hawe 1984): 1 if all shares are equal, 1 / n if one of n
/// has everything. `None` if all shares are zero.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|x| x * x).sum::<f64>());
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// A success rate with Wilson's 95 % score interval (Wilson 1927).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// Successes per trial.
    pub share: f64,
    /// Lower end of the interval, at least 0.
    pub low: f64,
    /// Upper end of the interval, at most 1.
    pub high: f64,
}

/// The rate of `successes` in `trials`.
///
/// # Errors
/// [`StatsError::NoShare`] without trials, or with more successes than trials.
pub fn wilson(successes: u64, trials: u64) -> Result<Share, StatsError> {
    if trials == 0 || successes > trials {
        return Err(StatsError::NoShare { successes, trials });
    }
    let (n, share) = (trials as f64, successes as f64 / trials as f64);
    let z2 = Z_975 * Z_975;
    let centre = share + z2 / (2.0 * n);
    let half = Z_975 * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    let end = |value: f64| (value / (1.0 + z2 / n)).clamp(0.0, 1.0);
    // For rates of 0 and 1, one end is exactly 0 or 1; rounding would leave it slightly inside.
    let low = if successes == 0 { 0.0 } else { end(centre - half) };
    let high = if successes == trials { 1.0 } else { end(centre + half) };
    Ok(Share { share, low, high })
}

/// The 97.5 % quantile of Student's t distribution; `None` for zero degrees of freedom.
fn student_975(freedom: usize) -> Option<f64> {
    if freedom == 0 {
        return None;
    }
    StudentsT::new(0.0, 1.0, freedom as f64).ok().map(|law| law.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(value: f64, published: f64, slack: f64) {
        assert!((value - published).abs() <= slack, "{value} against {published}");
    }

    #[test]
    fn jains_index_is_1_of_equal_shares_and_1_over_n_of_one() {
        assert_eq!(jain(&[3.0; 4]), Some(1.0));
        assert_eq!(jain(&[0.0, 5.0, 0.0, 0.0]), Some(0.25));
        assert_eq!((jain(&[0.0, 0.0]), jain(&[])), (None, None));
    }

    /// The function of Ishigami and Homma (1990) with a = 7 and b = 0.1, whose first-order indices
    /// are known: 0.3139, 0.4424 and 0.
    #[test]
    fn shares_of_the_variance_are_the_published_ones() {
        let mut state = 1_u64;
        let mut uniform = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let points: Vec<[f64; 3]> = (0..20_000).map(|_| [0; 3].map(&mut uniform)).collect();
        let value = |point: &[f64; 3]| {
            let [x, y, z] = point.map(|u| std::f64::consts::PI * (2.0 * u - 1.0));
            x.sin() + 7.0 * y.sin().powi(2) + 0.1 * z.powi(4) * x.sin()
        };
        let values: Vec<f64> = points.iter().map(value).collect();
        let share = |of: usize| {
            let groups: Vec<usize> = points.iter().map(|point| (point[of] * 50.0) as usize).collect();
            explained(&groups, &values).expect("it varies").share
        };
        near(share(0), 0.3139, 0.015);
        near(share(1), 0.4424, 0.015);
        near(share(2), 0.0, 0.005);
    }

    #[test]
    fn no_share_of_a_variance_that_is_none() {
        assert_eq!(explained(&[0, 0, 1, 1], &[0.1 + 0.2, 0.3, 0.3, 0.3]), None);
        assert_eq!(explained(&[0, 1, 2], &[1.0, 2.0, 3.0]), None, "each alone in its group");
        assert_eq!(explained(&[], &[]), None);
        let of = |values| explained(&[0, 0, 1, 1], values).map(|e| (e.share, e.p));
        assert_eq!(of(&[1.0, 1.0, 2.0, 2.0]), Some((1.0, 0.0)));
        assert_eq!(of(&[1.0, 2.0, 1.0, 2.0]).map(|(share, p)| (share, p > 0.999)), Some((0.0, true)));
        assert_eq!(explained(&[3, 3, 3], &[1.0, 2.0, 3.0]).map(|e| (e.share, e.p)), Some((0.0, 1.0)));
    }

    /// Three groups of six with known sums of squares: 84 between, 68 within, F = 9.3 with 2 and 15
    /// degrees of freedom, p = 0.0024 (Wikipedia, "One-way analysis of variance").
    #[test]
    fn the_probability_is_that_of_fishers_tables() {
        let values =
            [6.0, 8.0, 4.0, 5.0, 3.0, 4.0, 8.0, 12.0, 9.0, 11.0, 6.0, 8.0, 13.0, 9.0, 11.0, 8.0, 7.0, 12.0];
        let groups: Vec<usize> = (0..18).map(|i| i / 6).collect();
        let found = explained(&groups, &values).expect("it varies");
        near(found.p, 0.0024, 0.0001);
        // (84 - 2 * 4.533) / 152
        near(found.share, 0.493, 0.001);
    }

    /// Student's data of 1908: hours of sleep gained by ten patients with each of two drugs.
    const SLEEP: [[f64; 10]; 2] = [
        [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
        [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
    ];

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let values = [3.0, 1.0, 2.0, 4.0];
        let shares = [0.01, 0.25, 0.26, 0.5, 0.95, 1.0];
        assert_eq!(shares.map(|share| quantile(&values, share)), [1.0, 1.0, 2.0, 2.0, 4.0, 4.0].map(Some));
        assert_eq!((quantile(&[], 0.5), quantile(&values, 0.0)), (None, None));
    }

    #[test]
    fn student_s_quantiles_are_the_printed_table_s() {
        for (freedom, published) in [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (5, 2.571),
            (9, 2.262),
            (10, 2.228),
            (19, 2.093),
            (29, 2.045),
            (60, 2.000),
            (120, 1.980),
            (1_000_000, 1.960),
        ] {
            near(student_975(freedom).expect("at least one degree"), published, 0.0005);
        }
    }

    #[test]
    fn the_sleep_data_s_paired_interval_is_the_published_one() {
        let difference = paired(&SLEEP[0], &SLEEP[1]).expect("ten pairs");
        let (low, high) = difference.interval().expect("more than one run");
        near(difference.mean, -1.58, 1e-12);
        near(low, -2.459_885_8, 1e-6);
        near(high, -0.700_114_2, 1e-6);
        assert!(difference.excludes_zero());
        // Unpaired, the drugs cannot be distinguished: the first one gains 0.75 +- 1.28 hours.
        let first = Summary::of(&SLEEP[0]).expect("ten runs");
        near(first.mean, 0.75, 1e-12);
        near(first.ci95.expect("ten runs"), 1.279_782_7, 1e-5);
        assert!(!first.excludes_zero());
        assert_eq!((first.min, first.max, first.runs), (-1.6, 3.7, 10));
    }

    #[test]
    fn the_sleep_data_s_probability_is_the_published_one() {
        let difference = paired(&SLEEP[1], &SLEEP[0]).expect("ten pairs");
        // Student 1908 by R's t.test(paired = TRUE): two-sided 0.002833.
        near(difference.p_above(0.0).expect("ten runs"), 0.002_833 / 2.0, 1e-6);
        near(difference.scaled(-1.0, 0.0).p_above(0.0).expect("ten runs"), 1.0 - 0.002_833 / 2.0, 1e-6);
        assert_eq!(Summary::of(&[1.0]).expect("a run").p_above(0.0), None);
        let equal = Summary::of(&[1.0; 3]).expect("runs");
        assert_eq!([0.5, 1.0, 2.0].map(|value| equal.p_above(value)), [Some(0.0), Some(1.0), Some(1.0)]);
    }

    #[test]
    fn a_scaled_summary_is_that_of_scaled_values() {
        let values = [1.0, 3.0, 2.0, 5.0];
        for (factor, zero) in [(1.0, -0.2), (-1.0, 0.0), (-100.0, 100.0), (100.0, 0.0)] {
            let scaled = Summary::of(&values).expect("runs").scaled(factor, zero);
            let wanted = Summary::of(&values.map(|v| factor * v + zero)).expect("runs");
            let ends = |s: Summary| [s.mean, s.ci95.expect("runs"), s.min, s.max];
            for (found, wanted) in ends(scaled).into_iter().zip(ends(wanted)) {
                near(found, wanted, 1e-12);
            }
            assert_eq!(scaled.runs, wanted.runs);
        }
        assert_eq!(
            Summary::by_run(4, |run| (run != 1).then_some(values[run])),
            Summary::of(&[1.0, 2.0, 5.0]).ok()
        );
        assert_eq!(Summary::by_run(4, |_| None), None);
    }

    #[test]
    fn holm_s_correction_is_the_worked_one() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, wanted) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            near(*found, wanted, 1e-12);
        }
        assert_eq!((holm(&[]), holm(&[0.7, 0.9])), (vec![], vec![1.0, 1.0]));
    }

    #[test]
    fn a_single_run_has_no_interval_and_equal_runs_have_none_to_speak_of() {
        let one = Summary::of(&[3.5]).expect("a run");
        assert_eq!(one, Summary { mean: 3.5, ci95: None, min: 3.5, max: 3.5, runs: 1 });
        assert!(!one.excludes_zero());
        let equal = Summary::of(&[0.1; 30]).expect("runs");
        assert_eq!((equal.mean, equal.ci95), (0.1, Some(0.0)));
    }

    #[test]
    fn the_ratio_of_paired_runs() {
        // Runs that differ much from each other, but little in their ratio, give a narrow interval.
        let (left, right) = ([8.0, 16.5, 31.5], [10.0, 20.0, 40.0]);
        let found = ratio(&left, &right).expect("three pairs");
        near(found.mean, 0.8, 1e-12);
        // Contributions 0.8, 0.8 + 0.5 / (70 / 3), 0.8 - 0.5 / (70 / 3): a standard deviation of
        // 0.021429 over three runs.
        near(found.ci95.expect("three runs"), 4.302_65 * 0.021_428_6 / 3f64.sqrt(), 1e-5);
        assert_eq!(ratio(&[1.0, 3.0], &[2.0, 6.0]).expect("two pairs").ci95, Some(0.0));
        assert!(matches!(ratio(&[1.0], &[0.0]), Err(StatsError::NotFinite { .. })));
        assert!(matches!(ratio(&[1.0], &[]), Err(StatsError::Unpaired { .. })));
    }

    #[test]
    fn the_jackknife_of_a_mean_is_the_mean_s_interval() {
        let values = SLEEP[0];
        let mean = |without: Option<usize>| {
            let kept: Vec<f64> =
                values.iter().enumerate().filter(|(i, _)| Some(*i) != without).map(|(_, v)| *v).collect();
            kept.iter().sum::<f64>() / kept.len() as f64
        };
        let (plain, found) = (Summary::of(&values).expect("ten"), jackknife(10, mean).expect("ten"));
        near(found.mean, plain.mean, 1e-12);
        near(found.ci95.expect("ten"), plain.ci95.expect("ten"), 1e-9);
        assert_eq!(jackknife(0, mean), Err(StatsError::Empty));
        assert_eq!(
            jackknife(1, |without| if without.is_none() { 2.0 } else { f64::NAN }).expect("one").ci95,
            None
        );
        assert_eq!(jackknife(2, |_| f64::NAN), Err(StatsError::NotFinite { run: 0 }));
    }

    #[test]
    fn a_deviation_has_an_interval_from_three_runs_on() {
        assert_eq!(deviation(&[1.0]), None);
        let two = deviation(&[1.0, 3.0]).expect("two");
        near(two.mean, 2f64.sqrt(), 1e-12);
        assert_eq!(two.ci95, None);
        let many = deviation(&[1.0, 3.0, 2.0, 5.0]).expect("four");
        assert!(many.ci95.expect("four") > 0.0);
        assert_eq!(deviation(&[2.0; 5]).map(|s| (s.mean, s.ci95)), Some((0.0, Some(0.0))));
    }

    #[test]
    fn nothing_is_said_about_nothing() {
        assert_eq!(Summary::of(&[]), Err(StatsError::Empty));
        assert_eq!(Summary::of(&[1.0, f64::NAN]), Err(StatsError::NotFinite { run: 1 }));
        assert_eq!(Summary::of(&[f64::INFINITY]), Err(StatsError::NotFinite { run: 0 }));
        assert_eq!(paired(&[1.0], &[]), Err(StatsError::Unpaired { left: 1, right: 0 }));
        assert_eq!(wilson(0, 0), Err(StatsError::NoShare { successes: 0, trials: 0 }));
        assert_eq!(wilson(3, 2), Err(StatsError::NoShare { successes: 3, trials: 2 }));
    }

    #[test]
    fn wilson_s_intervals_are_newcombe_s() {
        // R. G. Newcombe, "Two-sided confidence intervals for the single proportion", 1998, table
        // I, method 3.
        for (successes, trials, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let share = wilson(successes, trials).expect("a share");
            near(share.low, low, 0.00005);
            near(share.high, high, 0.00005);
        }
        let all = wilson(20, 20).expect("a share");
        near(all.low, 1.0 - 0.1611, 0.00005);
        assert_eq!((all.share, all.high), (1.0, 1.0));
    }
}
