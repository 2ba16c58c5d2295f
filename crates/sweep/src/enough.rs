//! Enough runs? How sure a mean is to be, and after how many runs somebody looks.
//!
//! The runs of a point are looked at when there are `min`, and after every further half of those
//! that there were, until the interval is narrow enough or there are `max`. So the answer depends
//! on what the runs say and on nothing else. Looking repeatedly makes the interval a little too
//! narrow now and then; the half keeps that rare.

use anabranch_stats::Summary;

/// When a point has enough runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Enough {
    /// Whose mean is to be known well.
    pub metric: String,
    /// How well.
    pub width: Width,
    /// Runs with each seed before anybody looks, at least 2.
    pub min: u64,
    /// Runs with each seed at most.
    pub max: u64,
}

/// Half the width of the mean's 95 % confidence interval, at most.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Width {
    /// As a share of the mean: 0.05 is 5 %.
    Relative(f64),
    /// In the metric's own unit.
    Absolute(f64),
}

impl Enough {
    /// How many runs there are when one looks for the first time.
    pub fn first(&self) -> u64 {
        self.min.min(self.max)
    }

    /// How many there are when one looks next; `None` after the last time.
    pub fn next(&self, runs: u64) -> Option<u64> {
        (runs < self.max).then(|| (runs + runs.div_ceil(2)).min(self.max))
    }

    /// Whether these are enough: the metric of every run that has it, in the order of runs.
    pub fn is_met(&self, values: &[f64]) -> bool {
        let Some((summary, half)) = Summary::of(values).ok().and_then(|s| Some((s, s.ci95?))) else {
            return false;
        };
        match self.width {
            Width::Relative(share) => half <= share * summary.mean.abs(),
            Width::Absolute(width) => half <= width,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_looks_at_fixed_numbers_of_runs() {
        let enough = Enough { metric: "m".into(), width: Width::Absolute(1.0), min: 10, max: 100 };
        let looks: Vec<u64> = std::iter::successors(Some(enough.first()), |n| enough.next(*n)).collect();
        assert_eq!(looks, [10, 15, 23, 35, 53, 80, 100]);
    }

    #[test]
    fn the_interval_decides() {
        let met = |width, values: &[f64]| Enough { metric: "m".into(), width, min: 2, max: 9 }.is_met(values);
        // 95 % of the mean of 9 and 11 lie within 12.706 of 10.
        assert!(met(Width::Absolute(12.71), &[9.0, 11.0]) && !met(Width::Absolute(12.70), &[9.0, 11.0]));
        assert!(met(Width::Relative(1.271), &[-9.0, -11.0]) && !met(Width::Relative(1.270), &[9.0, 11.0]));
        assert!(!met(Width::Relative(9.0), &[3.0]) && !met(Width::Relative(9.0), &[]));
        assert!(met(Width::Relative(0.01), &[0.0, 0.0]));
    }
}
