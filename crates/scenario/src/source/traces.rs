//! Trace files of links and of traffic.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use super::super::{Place, ScenarioError};
use super::Source;
use anabranch_sim::apps::schedule::Schedule;
use anabranch_sim::csv::FileError;
use anabranch_sim::link::course::{Course, Opportunities, RateCourse, Steps};

/// Format of a trace file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum TraceKind {
    Mahimahi,
    Rate,
    Delay,
}

/// Reason why there is no trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TraceFault {
    /// The file cannot be read.
    Unreadable(String),
    /// The file has an error.
    Wrong(ScenarioError),
}

/// Name of a file, its format, and whether the trace repeats.
type Key = (String, TraceKind, bool);

/// Traces that have been read, shared by a source and its clones: a sweep reads each file once for
/// all points.
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
    /// The trace in the file with this name.
    pub(crate) fn trace(&self, name: &str, kind: TraceKind, repeats: bool) -> Result<Course, TraceFault> {
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

    /// The packets in the file with this name.
    pub(crate) fn schedule(&self, name: &str) -> Result<Arc<Schedule>, TraceFault> {
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
