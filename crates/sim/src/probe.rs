//! Measurements of a part of a run: between two times, or until applications have finished.
//!
//! A [`Probe`] is a time window and a [`Measure`]. The simulation tells the probe when the window
//! begins and ends. The end is before any event at that time, or when the last application has
//! finished. A run without probes pays one comparison for each event.

pub mod energy;
pub mod flows;
pub mod packets;
pub mod queues;

use anabranch_core::time::{Duration, Instant};

use self::flows::FlowFigures;
use crate::event::AppId;
use crate::world::World;

/// A quantity that a probe measures.
pub trait Measure: Send {
    /// Called before the run begins, which may be long before the window.
    fn prepare(&mut self, world: &mut World) {
        let _ = world;
    }

    /// Called when the window begins. The measure may add an observer to the network.
    fn begin(&mut self, now: Instant, world: &mut World);

    /// Called when the window ends.
    fn end(&mut self, now: Instant, world: &mut World);

    /// The results of the window, which has lasted until `now`; the names are the same in every
    /// run.
    fn figures(&self, now: Instant, world: &World) -> Vec<Figure>;

    /// Statistics of each flow in the order of their first packets, if the measure distinguishes
    /// flows.
    fn flows(&self, now: Instant, world: &World) -> Vec<FlowFigures> {
        let _ = (now, world);
        Vec::new()
    }

    /// Requests time series. Called before the window begins, if at all.
    fn keep_series(&mut self) {}

    /// The time series, if they were requested.
    fn series(&self, world: &World) -> Vec<Series> {
        let _ = world;
        Vec::new()
    }
}

/// A result of a probe.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// The value; `None` if it is undefined, or if the window never began.
    pub value: Option<f64>,
    /// Its unit: `1`, `s`, `B`, `bit/s`, `J`.
    pub unit: &'static str,
}

impl Figure {
    /// A result with a value.
    pub fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value: Some(value), unit }
    }
}

/// A time series of a probe.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Its name.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: &'static str,
    /// Times and values, in order of time.
    pub points: Vec<(Instant, f64)>,
}

/// A part of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    /// Start of the window.
    pub from: Instant,
    /// End of the window. With applications, it does not end before this time.
    pub until: Instant,
    /// Whether events at the time of the end belong to the window.
    pub closed: bool,
    /// Applications that must have finished before the window ends.
    pub apps: Vec<AppId>,
}

impl Window {
    /// The first time after the window, once all applications have finished.
    fn over(&self) -> Instant {
        let more = if self.closed { Duration::from_nanos(1) } else { Duration::ZERO };
        self.until.max(self.from) + more
    }
}

/// A window and a measure.
pub struct Probe {
    /// Its name.
    pub name: String,
    window: Window,
    stage: Stage,
    measure: Box<dyn Measure>,
}

enum Stage {
    Before,
    Within,
    Over(Instant),
}

impl Probe {
    /// A probe whose window has not begun.
    pub fn new(name: impl Into<String>, window: Window, measure: Box<dyn Measure>) -> Self {
        Self { name: name.into(), window, stage: Stage::Before, measure }
    }

    /// Prepares the measure before the run begins.
    pub(crate) fn prepare(&mut self, world: &mut World) {
        self.measure.prepare(world);
    }

    /// Next time at which the window begins or ends; `None` if it is not known.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.stage {
            Stage::Before => Some(self.window.from),
            Stage::Within if self.window.apps.is_empty() => Some(self.window.over()),
            Stage::Within | Stage::Over(_) => None,
        }
        .filter(|at| *at < Instant::FAR_FUTURE)
    }

    /// Informs the probe of the current time.
    pub(crate) fn look(&mut self, now: Instant, world: &mut World) {
        if matches!(self.stage, Stage::Before) && self.window.from <= now {
            self.measure.begin(self.window.from, world);
            self.stage = Stage::Within;
        }
        if self.due().is_some_and(|at| at <= now) {
            let end = self.window.until.max(self.window.from);
            self.measure.end(end, world);
            self.stage = Stage::Over(end);
        }
    }

    /// Informs the probe that an application has finished.
    pub(crate) fn finished(&mut self, app: AppId, world: &mut World) {
        let Some(at) = self.window.apps.iter().position(|waited| *waited == app) else { return };
        self.window.apps.swap_remove(at);
        if self.window.apps.is_empty() {
            let now = world.now();
            // If all applications finished before the window began, the window is empty.
            self.window.until = self.window.until.max(now);
            self.look(now, world);
        }
    }

    /// The results of a run that has lasted until `end`, with the length of the window first.
    pub fn figures(&self, end: Instant, world: &World) -> Vec<Figure> {
        let until = self.until(end);
        let mut figures = self.measure.figures(until, world);
        let length = until.saturating_since(self.window.from).as_secs_f64();
        figures.insert(0, Figure::new("window_s", length, "s"));
        if matches!(self.stage, Stage::Before) {
            figures.iter_mut().for_each(|figure| figure.value = None);
        }
        figures
    }

    /// Statistics of each flow in a run that has lasted until `end`; empty unless the probe
    /// measures flows.
    pub fn flows(&self, end: Instant, world: &World) -> Vec<FlowFigures> {
        self.measure.flows(self.until(end), world)
    }

    /// The end of the window in a run that has lasted until `end`.
    fn until(&self, end: Instant) -> Instant {
        match self.stage {
            Stage::Over(until) => until,
            // A caller of `Simulation::step` may have passed the end without informing the probe.
            Stage::Before | Stage::Within if self.window.apps.is_empty() => end.min(self.window.until),
            Stage::Before | Stage::Within => end,
        }
    }

    /// Requests time series.
    pub(crate) fn keep_series(&mut self) {
        self.measure.keep_series();
    }

    /// The time series that were requested.
    pub fn series(&self, world: &World) -> Vec<Series> {
        self.measure.series(world)
    }
}
