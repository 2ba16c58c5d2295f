//! Metrics in the JSON output of programs, with the same keys for one run and for many.

use serde::Serialize;

use crate::{Median, Summary};

/// A metric over the runs of a point: a member of `metrics` in the output of `--json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MetricRecord<'u> {
    /// Arithmetic mean.
    pub mean: Figure,
    /// Half the width of the 95 % confidence interval of the mean; `null` for a single run.
    pub ci95: Figure,
    /// Smallest value.
    pub min: Figure,
    /// Largest value.
    pub max: Figure,
    /// Unit of all values: `1`, `s`, `B`, `bit/s`, `J`.
    pub unit: &'u str,
    /// Number of runs without a value, such as a latency of a transfer that was not delivered;
    /// omitted if 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub missing: usize,
    /// Median of times of which some are censored, as separate keys; omitted if none is censored.
    #[serde(flatten)]
    pub survival: Option<Median>,
}

/// A number, or one number per element of an array. Missing numbers are `null`.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Figure {
    /// A scalar metric.
    One(Option<f64>),
    /// An array metric, such as one number for each node.
    Array(Vec<Option<f64>>),
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl<'u> MetricRecord<'u> {
    /// The record of many runs: `summary` covers the runs with a value, `missing` counts the
    /// others.
    pub fn new(summary: Option<&Summary>, missing: usize, unit: &'u str) -> Self {
        Self::each(missing, unit, |figure| Figure::One(summary.and_then(figure)))
    }

    /// The record of many runs of an array metric.
    pub fn of_array(elements: &[Summary], missing: usize, unit: &'u str) -> Self {
        Self::each(missing, unit, |figure| Figure::Array(elements.iter().map(figure).collect()))
    }

    /// The record of a single run.
    pub fn of_run(value: Option<f64>, unit: &'u str) -> Self {
        let summary = value.and_then(|value| Summary::of(&[value]).ok());
        Self::new(summary.as_ref(), usize::from(summary.is_none()), unit)
    }

    fn each(missing: usize, unit: &'u str, of: impl Fn(fn(&Summary) -> Option<f64>) -> Figure) -> Self {
        Self {
            mean: of(|summary| Some(summary.mean)),
            ci95: of(|summary| summary.ci95),
            min: of(|summary| Some(summary.min)),
            max: of(|summary| Some(summary.max)),
            unit,
            missing,
            survival: None,
        }
    }

    /// Adds the median of all times, if some of them are censored.
    #[must_use]
    pub fn with_survival(mut self, median: Option<Median>) -> Self {
        self.survival = median.filter(|median| median.censored > 0);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(record: &MetricRecord<'_>) -> serde_json::Value {
        serde_json::to_value(record).expect("plain data")
    }

    #[test]
    fn one_run_has_the_keys_of_many() {
        let many = Summary::of(&[1.0, 3.0]).expect("two values");
        let many = keys(&MetricRecord::new(Some(&many), 0, "s"));
        let one = keys(&MetricRecord::of_run(Some(2.0), "s"));
        assert_eq!(
            one,
            serde_json::json!({ "mean": 2.0, "ci95": null, "min": 2.0, "max": 2.0, "unit": "s" })
        );
        let names =
            |record: &serde_json::Value| record.as_object().map(|o| o.keys().cloned().collect::<Vec<_>>());
        assert_eq!(names(&one), names(&many));
    }

    #[test]
    fn censored_times_add_their_median() {
        let median = |ended: &[f64], censored: &[f64]| {
            let found = crate::Survival::of(ended, censored).expect("times").median();
            let summary = Summary::of(ended).ok();
            keys(&MetricRecord::new(summary.as_ref(), censored.len(), "s").with_survival(Some(found)))
        };
        let some = median(&[1.0, 2.0, 3.0], &[9.0, 9.0]);
        assert_eq!((&some["mean"], &some["missing"], &some["censored"]), (&2.0.into(), &2.into(), &2.into()));
        assert_eq!((&some["median"], some["median_ci95"].as_array().map(Vec::len)), (&3.0.into(), Some(2)));
        let none = median(&[1.0, 2.0, 3.0], &[]);
        assert_eq!(none.as_object().map(serde_json::Map::len), Some(5), "{none}");
    }

    #[test]
    fn runs_without_a_value_are_counted() {
        let none = serde_json::json!({ "mean": null, "ci95": null, "min": null, "max": null, "unit": "s", "missing": 1 });
        assert_eq!(keys(&MetricRecord::of_run(None, "s")), none);
        assert_eq!(keys(&MetricRecord::of_run(Some(f64::NAN), "s")), none);
        let some = Summary::of(&[1.0]).expect("a value");
        assert_eq!(keys(&MetricRecord::new(Some(&some), 2, "s"))["missing"], 2);
        assert_eq!(
            keys(&MetricRecord::of_array(&[some, some], 0, "1"))["mean"],
            serde_json::json!([1.0, 1.0])
        );
    }
}
