//! What is measured in a part of a run: from a moment until another, or until applications have done what they are for.
//!
//! A [`Probe`] is a window and a [`Measure`]. The simulation tells it when the window begins and ends, after all that happens at
//! that moment; without a probe that costs one comparison for each event.

pub mod energy;

use anabranch_core::time::Instant;

use crate::event::AppId;
use crate::world::World;

/// What a probe measures.
pub trait Measure: Send {
    /// The window begins.
    fn begin(&mut self, now: Instant, world: &World);

    /// What has come of it from then until `now`: the same names in every run.
    fn figures(&self, now: Instant, world: &World) -> Vec<Figure>;
}

/// A figure of a probe.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// What was measured; `None` if there is nothing to measure it by, or if the window never began.
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

/// A part of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    /// When it begins.
    pub from: Instant,
    /// When it ends. With applications, it does not end before.
    pub until: Instant,
    /// It goes on until all of these have finished.
    pub apps: Vec<AppId>,
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
    Over(Instant, Vec<Figure>),
}

impl Probe {
    /// A probe whose window is yet to begin.
    pub fn new(name: impl Into<String>, window: Window, measure: Box<dyn Measure>) -> Self {
        Self { name: name.into(), window, stage: Stage::Before, measure }
    }

    /// When the window begins, or ends, next; `None` if no moment is known.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.stage {
            Stage::Before => Some(self.window.from),
            Stage::Within if self.window.apps.is_empty() => Some(self.window.until),
            Stage::Within | Stage::Over(..) => None,
        }
        .filter(|at| *at < Instant::FAR_FUTURE)
    }

    /// All that happens until `now` has happened.
    pub(crate) fn look(&mut self, now: Instant, world: &World) {
        if matches!(self.stage, Stage::Before) && self.window.from <= now {
            self.measure.begin(self.window.from, world);
            self.stage = Stage::Within;
        }
        if self.due().is_some_and(|at| at <= now) {
            let end = self.window.until.max(self.window.from);
            self.stage = Stage::Over(end, self.measure.figures(end, world));
        }
    }

    /// An application has done what it is for.
    pub(crate) fn finished(&mut self, now: Instant, app: AppId, world: &World) {
        let Some(at) = self.window.apps.iter().position(|waited| *waited == app) else { return };
        self.window.apps.swap_remove(at);
        if self.window.apps.is_empty() {
            // What has finished before the window began leaves nothing to measure.
            self.window.until = self.window.until.max(now);
            self.look(now, world);
        }
    }

    /// The figures of a run that has lasted until `end`, with the length of the window first.
    pub fn figures(&self, end: Instant, world: &World) -> Vec<Figure> {
        let (until, mut figures) = match &self.stage {
            Stage::Over(until, figures) => (*until, figures.clone()),
            Stage::Before | Stage::Within => {
                // A caller of `Simulation::step` may have gone past the end without a look.
                let end = if self.window.apps.is_empty() { end.min(self.window.until) } else { end };
                (end, self.measure.figures(end, world))
            }
        };
        let length = until.saturating_since(self.window.from).as_secs_f64();
        figures.insert(0, Figure::new("window_s", length, "s"));
        if matches!(self.stage, Stage::Before) {
            figures.iter_mut().for_each(|figure| figure.value = None);
        }
        figures
    }
}
