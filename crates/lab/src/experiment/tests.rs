//! Tests of the papers' experiments as sweeps.

use std::collections::BTreeSet;

use anabranch_sweep::Table;

use super::*;
use crate::EXPERIMENTS;

/// Points that take little time; some have arrays, and some have equal runs.
const POINTS: [(&str, &[&str]); 7] = [
    ("set", &["file=5kB", "wireless_loss=2%", "gateways=1,2"]),
    ("set", &["file=5kB", "wireless_delay=5ms+10ms+20ms"]),
    ("dtc", &["segments=20", "hops=2,4"]),
    ("dtc", &["segments=20", "loss=0", "medium=links,radio"]),
    ("mptcp", &["nodes=4", "packets=3"]),
    ("rdca", &["duration=15s", "senders=1"]),
    ("sockbuf", &["duration=25s", "connections=3"]),
];

/// Rows contain what points measure, run by run, and outcomes contain what rows contain.
#[test]
fn outcomes_are_what_points_measure() {
    for (name, assignments) in POINTS {
        let experiment = crate::find(name).expect("an experiment");
        let (points, found) =
            (grid(experiment, assignments).expect("good settings"), outcomes(experiment, assignments, 2, 5));
        assert_eq!(points.len(), found.len());
        for (point, outcome) in points.iter().zip(&found) {
            assert_eq!(point.parameters(), outcome.parameters);
            let made = [0, 1].map(|run| point.measure(5, run).expect("a run"));
            for (i, metric) in outcome.metrics.iter().enumerate() {
                let values: Vec<_> = made.iter().map(|measured| measured.values[i]).collect();
                assert_eq!(metric.values, values, "{name}: {}", metric.metric.name);
            }
            for (i, array) in outcome.arrays.iter().enumerate() {
                let known: Vec<&Vec<f64>> =
                    made.iter().filter_map(|measured| measured.arrays[i].as_ref()).collect();
                let length = known.iter().map(|array| array.len()).min().unwrap_or(0);
                assert_eq!((array.elements.len(), array.missing()), (length, 2 - known.len()), "{name}");
                for (j, element) in array.elements.iter().enumerate() {
                    let mean = known.iter().map(|array| array[j]).sum::<f64>() / known.len() as f64;
                    assert!(
                        (element.mean - mean).abs() <= 1e-9 * mean.abs(),
                        "{name}: {}.{j}",
                        array.metric.name
                    );
                }
            }
        }
    }
}

/// Column names of a table are unique, whichever parameters vary.
#[test]
fn a_table_can_have_every_parameter_as_a_column() {
    for &experiment in EXPERIMENTS {
        let defaults = Settings::defaults(experiment);
        let assignments: Vec<String> =
            experiment.parameters().iter().map(|p| format!("{}={}", p.name, defaults.text(p.name))).collect();
        let sweep =
            Sweep::new(Spec::assigned(experiment, &assignments).expect("the defaults")).expect("one point");
        let (points, store) = (sweep.all_points().expect("the defaults"), Store::in_memory());
        let table = Table::new(&sweep, &points, &store).expect("a table");
        let mut names: BTreeSet<String> =
            table.schema().fields().iter().map(|field| field.name().clone()).collect();
        for metric in experiment.metrics() {
            assert!(names.insert(metric.name.to_owned()), "{}: {}", experiment.name(), metric.name);
        }
    }
}
