//! The files that traces of links and of traffic name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use super::super::{Place, ScenarioError};
use super::Source;
use crate::apps::schedule::Schedule;
use crate::csv::FileError;
use crate::link::course::{Course, Opportunities, RateCourse, Steps};

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

/// Traces that are known, for a source and all that are cloned from it: a file is read once for all
/// points of a sweep.
#[derive(Clone, Default, Debug)]
pub(super) struct Traces(Arc<Mutex<Known>>);

#[derive(Default, Debug)]
struct Known {
    courses: BTreeMap<Key, Course>,
    schedules: BTreeMap<String, Arc<Schedule>>,
}

impl Traces {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Source {
    /// What a file of that name says.
    pub(in crate::scenario) fn trace(
        &self,
        name: &str,
        kind: TraceKind,
        repeats: bool,
    ) -> Result<Course, TraceFault> {
        let key = (name.to_owned(), kind, repeats);
        let courses = &mut self.traces.known().courses;
        if let Some(course) = courses.get(&key) {
            return Ok(course.clone());
        }
        let text = self.text_of(name).map_err(TraceFault::Unreadable)?;
        let course = parse(&text, kind, repeats);
        let course = course.map_err(|error| TraceFault::Wrong(placed(name.to_owned(), error)))?;
        courses.insert(key, course.clone());
        Ok(course)
    }

    /// The packets that a file of that name says.
    pub(in crate::scenario) fn schedule(&self, name: &str) -> Result<Arc<Schedule>, TraceFault> {
        let schedules = &mut self.traces.known().schedules;
        if let Some(schedule) = schedules.get(name) {
            return Ok(Arc::clone(schedule));
        }
        let text = self.text_of(name).map_err(TraceFault::Unreadable)?;
        let schedule = Schedule::parse(&text);
        let schedule = schedule.map_err(|error| TraceFault::Wrong(placed(name.to_owned(), error)))?;
        let schedule = Arc::new(schedule);
        schedules.insert(name.to_owned(), Arc::clone(&schedule));
        Ok(schedule)
    }
}

fn parse(text: &str, kind: TraceKind, repeats: bool) -> Result<Course, FileError> {
    let rate = |rate| Course { rate: Some(rate), delay: None };
    Ok(match kind {
        TraceKind::Mahimahi => rate(RateCourse::Opportunities(Arc::new(Opportunities::parse(text)?))),
        TraceKind::Rate => rate(RateCourse::Steps(Arc::new(Steps::rates(text, repeats)?))),
        TraceKind::Delay => Course { rate: None, delay: Some(Arc::new(Steps::delays(text, repeats)?)) },
    })
}

fn placed(name: String, FileError { line, message, hint }: FileError) -> ScenarioError {
    let place = match line {
        Some(line) => Place::File { name, line, column: 1, span: 0..0 },
        None => Place::Whole { name },
    };
    ScenarioError { place, message, hint: Some(hint.to_owned()) }
}
