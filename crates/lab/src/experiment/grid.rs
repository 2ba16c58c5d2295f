//! From `key=v1,v2` to the points of a grid.

use super::{Experiment, ParameterError, Point, Settings};

/// Every combination of the values in `assignments` (`key=value` or `key=value,value,...`), the last axis
/// fastest, each understood by the experiment. All are checked before the first can be run.
///
/// # Errors
///
/// The first thing that is wrong.
pub fn grid<S: AsRef<str>>(
    experiment: &dyn Experiment,
    assignments: &[S],
) -> Result<Vec<Box<dyn Point>>, ParameterError> {
    settings(experiment, assignments)?.iter().map(|s| experiment.point(s)).collect()
}

/// The same combinations, not understood yet.
///
/// # Errors
///
/// A key that is unknown or set twice, or a text that is no assignment.
pub fn settings<S: AsRef<str>>(
    experiment: &dyn Experiment,
    assignments: &[S],
) -> Result<Vec<Settings>, ParameterError> {
    let mut points = vec![Settings::defaults(experiment)];
    let mut seen: Vec<&str> = Vec::new();
    for assignment in assignments {
        let text = assignment.as_ref();
        let Some((key, values)) = text.split_once('=') else {
            return Err(ParameterError::NoAssignment { text: text.to_owned() });
        };
        let key = key.trim();
        if seen.contains(&key) {
            return Err(ParameterError::Twice { key: key.to_owned() });
        }
        seen.push(key);
        let mut next = Vec::with_capacity(points.len());
        for point in points {
            for value in values.split(',') {
                let mut point = point.clone();
                point.set(key, value)?;
                next.push(point);
            }
        }
        points = next;
    }
    Ok(points)
}
