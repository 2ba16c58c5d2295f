//! The files that traces of links name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::super::{Place, ScenarioError};
use super::Source;
use crate::link::course::{Course, CourseError, Opportunities, RateCourse, Steps};

/// What a file has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::scenario) enum TraceKind {
    Mahimahi,
    Rate,
    Delay,
}

/// Why there is no trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::scenario) enum TraceFault {
    /// The file cannot be read.
    Unreadable(String),
    /// It has something wrong in it.
    Wrong(ScenarioError),
}

/// The name of a file, what it is read as, and whether that repeats.
type Key = (String, TraceKind, bool);

/// Traces that are known, for a source and all that are cloned from it: a file is read once for all points of a sweep.
#[derive(Clone, Default, Debug)]
pub(super) struct Traces(Arc<Mutex<BTreeMap<Key, Course>>>);

impl Source {
    /// What a file of that name says.
    pub(in crate::scenario) fn trace(
        &self,
        name: &str,
        kind: TraceKind,
        repeats: bool,
    ) -> Result<Course, TraceFault> {
        let key = (name.to_owned(), kind, repeats);
        let mut known = self.traces.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(course) = known.get(&key) {
            return Ok(course.clone());
        }
        let text = self.text_of(name).map_err(TraceFault::Unreadable)?;
        let course = parse(&text, kind, repeats);
        let course = course.map_err(|error| TraceFault::Wrong(placed(name.to_owned(), error)))?;
        known.insert(key, course.clone());
        Ok(course)
    }
}

fn parse(text: &str, kind: TraceKind, repeats: bool) -> Result<Course, CourseError> {
    let rate = |rate| Course { rate: Some(rate), delay: None };
    Ok(match kind {
        TraceKind::Mahimahi => rate(RateCourse::Opportunities(Arc::new(Opportunities::parse(text)?))),
        TraceKind::Rate => rate(RateCourse::Steps(Arc::new(Steps::rates(text, repeats)?))),
        TraceKind::Delay => Course { rate: None, delay: Some(Arc::new(Steps::delays(text, repeats)?)) },
    })
}

fn placed(name: String, CourseError { line, message, hint }: CourseError) -> ScenarioError {
    let place = match line {
        Some(line) => Place::File { name, line, column: 1, span: 0..0 },
        None => Place::Whole { name },
    };
    ScenarioError { place, message, hint: Some(hint.to_owned()) }
}
