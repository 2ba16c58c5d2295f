//! Stopping rule: how precise a mean must be, and when the precision is checked.
//!
//! The runs of a point are checked after `min` runs, and again each time their number has grown by
//! half, until the confidence interval is narrow enough or `max` is reached. The decision therefore
//! depends only on the results of the runs. Repeated checks make the interval slightly too narrow
//! now and then; growth by half keeps the number of checks small.

use anabranch_stats::Summary;

/// When a point has enough runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Enough {
    /// Metric whose mean is estimated.
    pub metric: String,
    /// Required precision.
    pub width: Width,
    /// Number of runs per seed before the first check, at least 2.
    pub min: u64,
    /// Upper limit of runs per seed.
    pub max: u64,
}

/// Upper limit for half the width of the 95 % confidence interval of the mean.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Width {
    /// As a fraction of the mean: 0.05 is 5 %.
    Relative(f64),
    /// In the unit of the metric.
    Absolute(f64),
}

impl Enough {
    /// Number of runs at the first check.
    pub fn first(&self) -> u64 {
        self.min.min(self.max)
    }

    /// Number of runs at the next check; `None` after the last one.
    pub fn next(&self, runs: u64) -> Option<u64> {
        (runs < self.max).then(|| (runs + runs.div_ceil(2)).min(self.max))
    }

    /// True if the precision is reached. `values` are the metric of all runs that have it, in the
    /// order of runs.
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
        // For 9 and 11, the 95 % interval of the mean is 10 ± 12.706.
        assert!(met(Width::Absolute(12.71), &[9.0, 11.0]) && !met(Width::Absolute(12.70), &[9.0, 11.0]));
        assert!(met(Width::Relative(1.271), &[-9.0, -11.0]) && !met(Width::Relative(1.270), &[9.0, 11.0]));
        assert!(!met(Width::Relative(9.0), &[3.0]) && !met(Width::Relative(9.0), &[]));
        assert!(met(Width::Relative(0.01), &[0.0, 0.0]));
    }
}
