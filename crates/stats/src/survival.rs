//! Censored times, which are only known to exceed the observation: the Kaplan-Meier estimator.

use serde::Serialize;

use crate::{StatsError, Z_975};

/// The survival function as estimated by Kaplan and Meier (1958, "Nonparametric estimation from
/// incomplete observations"): the probability that a time exceeds t. Censored times are
/// right-censored: they exceed the given value.
#[derive(Clone, PartialEq, Debug)]
pub struct Survival {
    /// Steps in order of time.
    pub steps: Vec<Step>,
    /// Number of all times, including censored ones.
    pub runs: usize,
    /// Number of censored times.
    pub censored: usize,
}

/// A time at which the survival function decreases.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Step {
    /// The time, in the unit of the input.
    pub time: f64,
    /// Number of times that are not shorter, including times censored at the same time.
    pub at_risk: usize,
    /// Number of times that end here.
    pub events: usize,
    /// Estimate from this time on, 0 to 1.
    pub survival: f64,
    /// 95 % confidence interval, from the normal distribution of log(-log S) with Greenwood's
    /// variance; `None` if the estimate is 0.
    pub ci95: Option<(f64, f64)>,
}

/// The median of partly censored times, as printed next to a mean in JSON.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Median {
    /// Estimate; `null` if more than half of the times exceed the observation.
    pub median: Option<f64>,
    /// 95 % confidence interval (Brookmeyer and Crowley 1982, by log(-log S)); an unknown end is
    /// `null`.
    pub median_ci95: (Option<f64>, Option<f64>),
    /// Number of censored times.
    pub censored: usize,
}

impl Median {
    /// The median as text without a unit; `figure` formats the numbers:
    /// `Kaplan-Meier: median 23, 95 % 13 to ?; 12 censored`. `?` is an unknown end.
    pub fn text(&self, figure: impl Fn(f64) -> String) -> String {
        let end = |end: Option<f64>| end.map_or_else(|| "?".to_owned(), &figure);
        let median =
            self.median.map_or_else(|| "no median".to_owned(), |median| format!("median {}", figure(median)));
        let (low, high) = self.median_ci95;
        let interval = match (low, high) {
            (None, None) => String::new(),
            (low, high) => format!(", 95 % {} to {}", end(low), end(high)),
        };
        format!("Kaplan-Meier: {median}{interval}; {} censored", self.censored)
    }
}

impl Survival {
    /// Estimates the function from finished and censored times.
    ///
    /// # Errors
    /// [`StatsError::Empty`] without times, [`StatsError::NotFinite`] for a time that is not
    /// finite; its `run` counts through both lists.
    pub fn of(ended: &[f64], censored: &[f64]) -> Result<Self, StatsError> {
        let mut all = ended.iter().chain(censored);
        if let Some(run) = all.position(|time| !time.is_finite()) {
            return Err(StatsError::NotFinite { run });
        }
        let runs = ended.len() + censored.len();
        if runs == 0 {
            return Err(StatsError::Empty);
        }
        let sort = |times: &[f64]| {
            let mut times = times.to_vec();
            times.sort_by(f64::total_cmp);
            times
        };
        let (ended, lost) = (sort(ended), sort(censored));
        let (mut steps, mut survival, mut greenwood) = (Vec::new(), 1.0, 0.0);
        for tied in ended.chunk_by(|a, b| a == b) {
            let (time, events) = (tied[0], tied.len());
            let gone = ended.partition_point(|t| *t < time) + lost.partition_point(|t| *t < time);
            let at_risk = runs - gone;
            let left = at_risk - events;
            survival *= left as f64 / at_risk as f64;
            greenwood += events as f64 / (at_risk as f64 * left as f64);
            steps.push(Step { time, at_risk, events, survival, ci95: interval(survival, greenwood) });
        }
        Ok(Self { steps, runs, censored: lost.len() })
    }

    /// The first time at which `curve` is at most 1/2. If it is exactly 1/2 over a whole step, the
    /// middle of the step, as for the median of an even number of values. `None` if it stays above
    /// 1/2.
    fn half(&self, curve: impl Fn(&Step) -> Option<f64>) -> Option<f64> {
        // Products of fractions are subject to rounding.
        const ROUNDING: f64 = 1e-12;
        let at = self.steps.iter().position(|step| curve(step).is_some_and(|s| s <= 0.5 + ROUNDING))?;
        let (step, next) = (&self.steps[at], self.steps.get(at + 1));
        let is_half = curve(step).is_some_and(|s| s >= 0.5 - ROUNDING);
        Some(match next.filter(|_| is_half) {
            Some(next) => f64::midpoint(step.time, next.time),
            None => step.time,
        })
    }

    /// The median and its interval: the times at which the interval of the survival function
    /// contains 1/2.
    pub fn median(&self) -> Median {
        let bound = |of: fn(&(f64, f64)) -> f64| self.half(|step| step.ci95.as_ref().map(of));
        Median {
            median: self.half(|step| Some(step.survival)),
            median_ci95: (bound(|(low, _)| *low), bound(|(_, high)| *high)),
            censored: self.censored,
        }
    }
}

/// S to the power of e to the ± z s, where s is the standard error of log(-log S).
fn interval(survival: f64, greenwood: f64) -> Option<(f64, f64)> {
    if survival <= 0.0 {
        return None;
    }
    let width = Z_975 * greenwood.sqrt() / survival.ln().abs();
    Some((survival.powf(width.exp()), survival.powf((-width).exp())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weeks of remission of 42 patients with leukaemia, with 6-MP or a placebo (Freireich et al.
    /// 1963; data from Cox 1972).
    const DRUG: ([f64; 9], [f64; 12]) = (
        [6.0, 6.0, 6.0, 7.0, 10.0, 13.0, 16.0, 22.0, 23.0],
        [6.0, 9.0, 10.0, 11.0, 17.0, 19.0, 20.0, 25.0, 32.0, 32.0, 34.0, 35.0],
    );
    const PLACEBO: [f64; 21] = [
        1.0, 1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 5.0, 5.0, 8.0, 8.0, 8.0, 8.0, 11.0, 11.0, 12.0, 12.0, 15.0, 17.0,
        22.0, 23.0,
    ];

    #[track_caller]
    fn near(found: f64, published: f64) {
        assert!((found - published).abs() < 0.000_06, "{found} against {published}");
    }

    #[test]
    fn the_steps_are_the_published_ones() {
        // Kleinbaum and Klein, "Survival Analysis", 3rd edition, chapter 2; intervals as printed by
        // Stata's `sts list`.
        let found = Survival::of(&DRUG.0, &DRUG.1).expect("21 patients");
        let published = [
            (6.0, 21, 3, 0.8571, 0.6197, 0.9516),
            (7.0, 17, 1, 0.8067, 0.5631, 0.9228),
            (10.0, 15, 1, 0.7529, 0.5032, 0.8894),
            (13.0, 12, 1, 0.6902, 0.4316, 0.8491),
            (16.0, 11, 1, 0.6275, 0.3675, 0.8049),
            (22.0, 7, 1, 0.5378, 0.2678, 0.7468),
            (23.0, 6, 1, 0.4482, 0.1881, 0.6801),
        ];
        assert_eq!((found.steps.len(), found.runs, found.censored), (published.len(), 21, 12));
        for (step, (time, at_risk, events, survival, low, high)) in found.steps.iter().zip(published) {
            assert_eq!((step.time, step.at_risk, step.events), (time, at_risk, events));
            let interval = step.ci95.expect("it is above 0");
            near(step.survival, survival);
            near(interval.0, low);
            near(interval.1, high);
        }
    }

    #[test]
    fn the_medians_are_the_published_ones() {
        let median = |ended: &[f64], censored: &[f64]| Survival::of(ended, censored).expect("times").median();
        let drug = Median { median: Some(23.0), median_ci95: (Some(13.0), None), censored: 12 };
        assert_eq!(median(&DRUG.0, &DRUG.1), drug);
        let placebo = Median { median: Some(8.0), median_ci95: (Some(4.0), Some(11.0)), censored: 0 };
        assert_eq!(median(&PLACEBO, &[]), placebo);
        let text = |median: Median| median.text(|value| value.to_string());
        assert_eq!(text(drug), "Kaplan-Meier: median 23, 95 % 13 to ?; 12 censored");
        assert_eq!(text(median(&[], &[1.0])), "Kaplan-Meier: no median; 1 censored");
    }

    #[test]
    fn without_censoring_it_is_the_share_of_longer_times() {
        let found = Survival::of(&PLACEBO, &[]).expect("times");
        for step in &found.steps {
            let longer = PLACEBO.iter().filter(|time| **time > step.time).count();
            assert!((step.survival - longer as f64 / 21.0).abs() < 1e-14, "{step:?}");
        }
        let last = found.steps.last().expect("steps");
        assert_eq!((last.survival, last.ci95), (0.0, None));
        // The median of an even number of values lies between two of them.
        for (values, median) in [(&[1.0, 2.0, 4.0, 8.0][..], 3.0), (&[5.0, 1.0, 3.0], 3.0), (&[7.0], 7.0)] {
            assert_eq!(Survival::of(values, &[]).expect("times").median().median, Some(median));
        }
        // Rounding of the products does not hide a value of 1/2: (9/10) (8/9) (7/8) ...
        let tens: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(Survival::of(&tens, &[]).expect("times").median().median, Some(5.5));
    }

    #[test]
    fn where_most_are_censored_there_is_no_median() {
        let of = |ended: &[f64], censored: &[f64]| Survival::of(ended, censored).map(|found| found.median());
        let none = |censored| Median { median: None, median_ci95: (None, None), censored };
        assert_eq!(of(&[], &[10.0; 3]), Ok(none(3)));
        // S(1) = 0.9 of ten, with the interval from 0.4730 to 0.9853: the median may be 1.
        assert_eq!(of(&[1.0], &[10.0; 9]), Ok(Median { median_ci95: (Some(1.0), None), ..none(9) }));
        // The mean of the finished times would be 2, but more than half of the times exceed 10.
        let few = of(&[1.0, 2.0, 3.0], &[10.0; 5]).expect("times");
        assert_eq!((few.median, few.median_ci95.0.is_some(), few.median_ci95.1), (None, true, None));
        // Censored before the first event: no information, but counted.
        assert_eq!(of(&[2.0], &[1.0]).expect("times").median, Some(2.0));
        assert_eq!(of(&[], &[]), Err(StatsError::Empty));
        assert_eq!(of(&[1.0], &[2.0, f64::NAN]), Err(StatsError::NotFinite { run: 2 }));
    }

    /// The interval contains the true median in about 95 of 100 cases: exponential times, of which
    /// a third are censored at the same moment.
    #[test]
    fn the_interval_holds_what_it_promises() {
        let mut state = 9_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        };
        let (truth, end) = (std::f64::consts::LN_2, 3f64.ln());
        let trials = 2000;
        let held = (0..trials).filter(|_| {
            let times: Vec<f64> = (0..40).map(|_| -f64::ln(uniform())).collect();
            let ended: Vec<f64> = times.iter().copied().filter(|time| *time < end).collect();
            let (low, high) =
                Survival::of(&ended, &vec![end; 40 - ended.len()]).expect("times").median().median_ci95;
            low.is_some_and(|low| low <= truth) && high.is_none_or(|high| truth <= high)
        });
        let share = held.count() as f64 / f64::from(trials);
        assert!((0.93..0.98).contains(&share), "{share}");
    }
}
