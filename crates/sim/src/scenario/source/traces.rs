//! The files that traces of links name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use super::super::{Place, ScenarioError};
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

type Read = dyn Fn(&str) -> Result<String, String> + Send + Sync;
/// The name of a file, what it is read as, and whether that repeats.
type Key = (String, TraceKind, bool);

/// Reads traces, each once for all points of a sweep.
#[derive(Clone, Default)]
pub(in crate::scenario) struct Traces(Arc<Shelf>);

/// What all clones of a source share.
#[derive(Default)]
struct Shelf {
    read: Option<Box<Read>>,
    known: Mutex<BTreeMap<Key, Course>>,
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Traces")
    }
}

impl Traces {
    pub(super) fn new(read: impl Fn(&str) -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shelf { read: Some(Box::new(read)), known: Mutex::default() }))
    }

    /// What a file of that name says.
    pub(in crate::scenario) fn read(
        &self,
        name: &str,
        kind: TraceKind,
        repeats: bool,
    ) -> Result<Course, TraceFault> {
        let key = (name.to_owned(), kind, repeats);
        let mut known = self.0.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(course) = known.get(&key) {
            return Ok(course.clone());
        }
        let nowhere = || TraceFault::Unreadable("this scenario comes without its files".to_owned());
        let read = self.0.read.as_ref().ok_or_else(nowhere)?;
        let text = read(name).map_err(TraceFault::Unreadable)?;
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
