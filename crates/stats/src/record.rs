//! Metrics as programs print them in JSON: the same keys for one run as for many.

use serde::Serialize;

use crate::{Median, Summary};

/// A metric over the runs of a point, as a member of `metrics` in the output of `--json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MetricRecord<'u> {
    /// The arithmetic mean.
    pub mean: Figure,
    /// Half the width of the mean's 95 % confidence interval; `null` for a single run.
    pub ci95: Figure,
    /// The smallest value.
    pub min: Figure,
    /// The largest value.
    pub max: Figure,
    /// The unit of all of them: `1`, `s`, `B`, `bit/s`, `J`.
    pub unit: &'u str,
    /// Number of runs without a value, such as a latency where nothing was delivered; left out if
    /// it is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub missing: usize,
    /// The median of times of which some are censored, in keys of its own; left out if none is.
    #[serde(flatten)]
    pub survival: Option<Median>,
}

/// A number, or one for each element of an array. What does not exist is `null`.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Figure {
    /// Of a metric that is a number.
    One(Option<f64>),
    /// Of a metric that is an array, such as one number for each node.
    Array(Vec<Option<f64>>),
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl<'u> MetricRecord<'u> {
    /// Of many runs: `summary` is over those that have a value, and `missing` is the number of the
    /// others.
    pub fn new(summary: Option<&Summary>, missing: usize, unit: &'u str) -> Self {
        Self::each(missing, unit, |figure| Figure::One(summary.and_then(figure)))
    }

    /// Of many runs with one value for each element.
    pub fn of_array(elements: &[Summary], missing: usize, unit: &'u str) -> Self {
        Self::each(missing, unit, |figure| Figure::Array(elements.iter().map(figure).collect()))
    }

    /// Of a single run.
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

    /// The same, with the median of all times if some of them are censored.
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
