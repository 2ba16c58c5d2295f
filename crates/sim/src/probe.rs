//! What is measured in a part of a run: from a moment until another, or until applications have
//! done what they are for.
//!
//! A [`Probe`] is a window and a [`Measure`]. The simulation tells it when the window begins, and
//! when it ends: before anything happens at that moment, or as soon as the last application has
//! finished. Without a probe that costs one comparison for each event.

pub mod energy;
pub mod flows;
pub mod packets;
pub mod queues;

use anabranch_core::time::{Duration, Instant};

use self::flows::FlowFigures;
use crate::event::AppId;
use crate::world::World;

/// What a probe measures.
pub trait Measure: Send {
    /// The run is about to begin, which may be long before the window does.
    fn prepare(&mut self, world: &mut World) {
        let _ = world;
    }

    /// The window begins. What wants to see packets may add an observer to the network.
    fn begin(&mut self, now: Instant, world: &mut World);

    /// The window ends.
    fn end(&mut self, now: Instant, world: &mut World);

    /// What has come of the window, which has lasted until `now`: the same names in every run.
    fn figures(&self, now: Instant, world: &World) -> Vec<Figure>;

    /// Statistics of each flow, in the order of their first packets, of a measure that tells flows
    /// apart.
    fn flows(&self, now: Instant, world: &World) -> Vec<FlowFigures> {
        let _ = (now, world);
        Vec::new()
    }

    /// Time series are wanted: called before the window begins, if at all.
    fn keep_series(&mut self) {}

    /// The time series, if they are kept.
    fn series(&self, world: &World) -> Vec<Series> {
        let _ = world;
        Vec::new()
    }
}

/// A figure of a probe.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// What was measured; `None` if there is nothing to measure it by, or if the window never
    /// began.
    pub value: Option<f64>,
    /// Its unit: `1`, `s`, `B`, `bit/s`, `J`.
    pub unit: &'static str,
}

impl Figure {
    /// A figure with a value.
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
    /// Moments and values, in order of time.
    pub points: Vec<(Instant, f64)>,
}

/// A part of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    /// When it begins.
    pub from: Instant,
    /// When it ends. With applications, it does not end before.
    pub until: Instant,
    /// What happens at the moment of its end is still in it.
    pub closed: bool,
    /// It goes on until all of these have finished.
    pub apps: Vec<AppId>,
}

impl Window {
    /// The first moment that is no part of it, once all have finished.
    fn over(&self) -> Instant {
        let more = if self.closed { Duration::from_nanos(1) } else { Duration::ZERO };
        self.until.max(self.from) + more
    }
}

/// A window, and what is measured in it.
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
    /// A probe whose window is yet to begin.
    pub fn new(name: impl Into<String>, window: Window, measure: Box<dyn Measure>) -> Self {
        Self { name: name.into(), window, stage: Stage::Before, measure }
    }

    /// The run is about to begin.
    pub(crate) fn prepare(&mut self, world: &mut World) {
        self.measure.prepare(world);
    }

    /// When the window begins, or ends, next; `None` if no moment is known.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.stage {
            Stage::Before => Some(self.window.from),
            Stage::Within if self.window.apps.is_empty() => Some(self.window.over()),
            Stage::Within | Stage::Over(_) => None,
        }
        .filter(|at| *at < Instant::FAR_FUTURE)
    }

    /// It is `now`.
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

    /// An application has done what it is for.
    pub(crate) fn finished(&mut self, app: AppId, world: &mut World) {
        let Some(at) = self.window.apps.iter().position(|waited| *waited == app) else { return };
        self.window.apps.swap_remove(at);
        if self.window.apps.is_empty() {
            let now = world.now();
            // What has finished before the window began leaves nothing to measure.
            self.window.until = self.window.until.max(now);
            self.look(now, world);
        }
    }

    /// The figures of a run that has lasted until `end`, with the length of the window first.
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

    /// Until when the window has lasted in a run that has lasted until `end`.
    fn until(&self, end: Instant) -> Instant {
        match self.stage {
            Stage::Over(until) => until,
            // A caller of `Simulation::step` may have gone past the end without a look.
            Stage::Before | Stage::Within if self.window.apps.is_empty() => end.min(self.window.until),
            Stage::Before | Stage::Within => end,
        }
    }

    /// Has time series kept.
    pub(crate) fn keep_series(&mut self) {
        self.measure.keep_series();
    }

    /// The time series that were kept.
    pub fn series(&self, world: &World) -> Vec<Series> {
        self.measure.series(world)
    }
}
