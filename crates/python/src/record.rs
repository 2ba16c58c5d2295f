//! Repeats a run with observers: its event log, capture, trace or time series, and views of an
//! event log.

mod events;
mod series;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_scenario::identity::Files;
use anabranch_scenario::{Plan, Scenario};
use anabranch_sim::capture::Capture;
use anabranch_sim::events::EventLog;
use anabranch_sim::sim::Simulation;
use anabranch_sim::trace::TextTrace;
use anabranch_view::page;
use anabranch_view::replay::{Part, Replay};
use pyo3::prelude::*;

use crate::fault::Fault;

pub(crate) use events::event_table;
pub(crate) use series::series;

/// What to record of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// The event log, which `anabranch view` replays.
    Events,
    /// Every packet, as pcapng.
    Capture,
    /// Each event of each packet, as text.
    Trace,
}

impl What {
    pub(crate) fn of(name: &str) -> Result<Self, Fault> {
        match name {
            "events" => Ok(Self::Events),
            "capture" => Ok(Self::Capture),
            "trace" => Ok(Self::Trace),
            other => Err(Fault::new(format!("a run leaves no `{other}`"))
                .with_hint("one of `events`, `capture` and `trace`")),
        }
    }
}

/// Makes a run and returns its record; `None` if `stop` becomes true first.
pub(crate) fn record(
    scenario: &Scenario,
    files: &Files,
    (seed, run): (u64, u64),
    what: What,
    stop: &AtomicBool,
) -> Result<Vec<u8>, Fault> {
    let Plan { builder, .. } = scenario
        .plan(seed, run, files)
        .map_err(|error| Fault::new(error.to_string()).with_hint(error.hint()))?;
    let mut sim = builder.build();
    match what {
        What::Events => sim.observe(EventLog::new(Vec::new(), scenario.log_head(seed, run))),
        What::Capture => sim.observe(Capture::new(Vec::new(), scenario.network.ip)),
        What::Trace => sim.observe(TextTrace::new(Vec::new())),
    }
    sim.run_in_parts(scenario.stop, Simulation::run_until, || look(stop))?;
    let end = sim.now();
    let failed = |error: &dyn std::fmt::Display| Fault::new(format!("cannot record the run: {error}"));
    let gone = || failed(&"its observer is gone");
    match what {
        What::Events => {
            let log = sim.take_observer::<EventLog<Vec<u8>>>().ok_or_else(gone)?;
            log.finish_at(end).map_err(|error| failed(&error))
        }
        What::Capture => {
            let capture = sim.take_observer::<Capture<Vec<u8>>>().ok_or_else(gone)?;
            capture.finish().map_err(|error| failed(&error))
        }
        What::Trace => {
            let trace = sim.take_observer::<TextTrace<Vec<u8>>>().ok_or_else(gone)?;
            trace.finish().map_err(|error| failed(&error))
        }
    }
}

/// Ends a run that was told to stop.
fn look(stop: &AtomicBool) -> Result<(), Fault> {
    if stop.load(Ordering::Relaxed) { Err(Fault::new("the run was stopped")) } else { Ok(()) }
}

/// The page that replays an event log from `start` to `end` (in seconds), with at most `limit`
/// rows.
#[pyfunction]
pub(crate) fn replay_page(
    py: Python<'_>,
    log: Vec<u8>,
    start: f64,
    end: Option<f64>,
    limit: u64,
) -> PyResult<String> {
    let log = Arc::new(log);
    let made = move || {
        let nanos = |seconds: f64| (seconds * 1e9).round() as u64;
        let part = Part { from: nanos(start), until: end.map_or(u64::MAX, nanos), limit };
        if part.from > part.until {
            return Err(Fault::new("the part of the run ends before it begins"));
        }
        let replay = Replay::read(log.as_slice(), part).map_err(|error| {
            Fault::new(error.to_string())
                .with_hint("show a part of the run with `start` and `end`, or raise `limit`")
        })?;
        Ok(page::html(&replay))
    };
    Ok(py.detach(made)?)
}
