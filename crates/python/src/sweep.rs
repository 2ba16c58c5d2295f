//! Many runs of a scenario or an experiment, made here or by others ([`driver`]).

pub(crate) mod driver;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use anabranch_lab::EXPERIMENTS;
use anabranch_scenario::identity::Files;
use anabranch_scenario::units::Span;
use anabranch_scenario::{self as sim};
use anabranch_sweep::spec::Runs;
use anabranch_sweep::{self as sweep, Point, Shard, Spec, Store, Table, Watch};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::fault::Fault;
use crate::frame::Frame;
use crate::policy::Call;
use crate::record::{What, record, series};
use crate::scenario::Scenario;
use crate::threads::{self, Threads};
use crate::work::{alone, caught, work};
use driver::Lent;

/// A sweep with its points and the store of its rows.
#[pyclass(frozen, module = "anabranch._anabranch")]
pub(crate) struct Sweep {
    pub(crate) inner: Arc<Inner>,
}

/// State shared with threads without Python.
pub(crate) struct Inner {
    pub(crate) sweep: sweep::Sweep,
    pub(crate) points: Vec<Point>,
    pub(crate) state: Mutex<State>,
    /// Whether some policies are written in Python.
    has_policies: bool,
}

/// Mutable state.
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) lent: Lent,
}

impl Inner {
    fn new(sweep: sweep::Sweep, out: Option<PathBuf>, has_policies: bool) -> Result<Self, Fault> {
        let points = sweep.all_points()?;
        let store = out.map_or_else(|| Ok(Store::in_memory()), Store::open)?;
        let state = Mutex::new(State { store, lent: Lent::default() });
        Ok(Self { sweep, points, state, has_policies })
    }

    /// Whether the sweep is a single run of a scenario. Runs of experiments cannot be stopped
    /// midway.
    fn is_one_run(&self) -> bool {
        let fixed =
            matches!(self.sweep.spec().runs, Runs::Fixed(1)) && self.sweep.spec().experiment().is_none();
        fixed && self.points.len() == 1 && self.sweep.seeds().len() == 1
    }

    /// Locks the state even if the mutex is poisoned: a row is either stored or not, so a panic
    /// leaves nothing incomplete.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[pymethods]
impl Sweep {
    /// Reads a sweep file, and the scenario or experiment that it names.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf, out: Option<PathBuf>) -> PyResult<Self> {
        Self::make(py, out, false, move || Spec::read(&path, EXPERIMENTS))
    }

    /// Parses the text of a sweep of an experiment. Errors call the text `name`.
    #[staticmethod]
    fn parse(py: Python<'_>, name: String, text: String, out: Option<PathBuf>) -> PyResult<Self> {
        let here = Path::new("");
        Self::make(py, out, false, move || Spec::parse(&name, &text, here, EXPERIMENTS))
    }

    /// Parses the text of a sweep of a scenario whose files are in `folder`. Errors call the text
    /// `name`.
    #[staticmethod]
    fn of(
        py: Python<'_>,
        name: String,
        text: String,
        scenario: &Scenario,
        folder: PathBuf,
        out: Option<PathBuf>,
    ) -> PyResult<Self> {
        let (source, has_policies) = (scenario.source.clone(), scenario.has_policies);
        if let (true, Some(out)) = (has_policies, &out) {
            let message = format!("rows of policies written in Python are not kept in {}", out.display());
            let hint = "nothing tells whether the code behind a class is still the same: leave `out` out, and write the \
                result with `write_parquet`";
            return Err(Fault::new(message).with_hint(hint).into());
        }
        Self::make(py, out, has_policies, move || Spec::parse_for(&name, &text, source, &folder))
    }

    /// Makes all missing runs of a shard on `threads` threads (0: one per core). `progress` is
    /// called regularly with the number of finished and of all runs.
    fn run(
        &self,
        py: Python<'_>,
        threads: usize,
        shard: (u32, u32),
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let shard = Shard::new(shard.0, shard.1).map_err(Fault::from)?;
        let (inner, watch) = (self.inner.clone(), Arc::new(Watch::default()));
        let watched = watch.clone();
        let look = |py: Python<'_>| show(py, progress.as_ref(), &watch);
        if inner.is_one_run() {
            return alone(py, &watch.cancel, look, |look| {
                let Inner { sweep, points, .. } = &*inner;
                Ok(sweep::execute_alone(sweep, points, &mut inner.state().store, shard, &watch, look)?)
            });
        }
        work(py, &watch.cancel, look, move || {
            let state = &mut *inner.state();
            let Inner { sweep, points, .. } = &*inner;
            if inner.has_policies {
                return threads::with_python(threads, || {
                    sweep::execute_here(sweep, points, &mut state.store, shard, &watched)?;
                    Ok(())
                });
            }
            let threads = Threads::borrow(threads)?;
            threads.install(|| sweep::execute_here(sweep, points, &mut state.store, shard, &watched))?;
            Ok(())
        })
    }

    /// Repeats a run of a point and returns its record: `events`, `capture` or `trace`.
    fn record<'py>(
        &self,
        py: Python<'py>,
        point: usize,
        seed: u64,
        run: u64,
        what: &str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let what = What::of(what)?;
        let again = move |scenario: &sim::Scenario, files: &Files, stop: &AtomicBool| {
            record(scenario, files, (seed, run), what, stop)
        };
        Ok(PyBytes::new(py, &self.again(py, point, again)?))
    }

    /// Repeats a run of a point and returns its time series by name, with a row per interval
    /// `every` at most.
    fn series(
        &self,
        py: Python<'_>,
        point: usize,
        seed: u64,
        run: u64,
        every: &str,
    ) -> PyResult<Vec<(&'static str, Frame)>> {
        let every = Span::positive(every).map_err(|error| Fault::new(format!("`every`: {error}")))?;
        let again = move |scenario: &sim::Scenario, files: &Files, stop: &AtomicBool| {
            series(scenario, files, (seed, run), every, stop)
        };
        let tables = self.again(py, point, again)?;
        Ok(tables.into_iter().map(|(name, frame)| (name, Frame(frame))).collect())
    }

    /// The stored rows of all shards, the number of missing runs, and the points whose mean misses
    /// its target precision.
    fn frame(&self, py: Python<'_>) -> PyResult<(Frame, u64, Vec<usize>)> {
        let inner = self.inner.clone();
        let made = move || {
            let state = &mut *inner.state();
            state.store.refresh()?;
            let table = Table::new(&inner.sweep, &inner.points, &state.store)?;
            Ok::<_, Fault>((Frame(table.frame()?), table.missing(), table.unmet().to_vec()))
        };
        Ok(py.detach(made)?)
    }

    /// Parameters that differ from the scenario's text, and those of them that distinguish points.
    fn parameters(&self) -> (Vec<String>, Vec<String>) {
        let own = |names: &mut dyn Iterator<Item = &str>| names.map(str::to_owned).collect();
        (own(&mut self.inner.sweep.names()), own(&mut self.inner.sweep.varied()))
    }

    /// Number of rows of other builds in the folder. They are kept but not used.
    fn foreign(&self, py: Python<'_>) -> usize {
        py.detach(|| self.inner.state().store.foreign())
    }

    /// Name of the sweep.
    fn name(&self) -> String {
        self.inner.sweep.spec().name.clone()
    }

    /// Starts to hand out the missing runs of a shard. Returns their number as known now.
    fn begin(&self, py: Python<'_>, shard: (u32, u32)) -> PyResult<u64> {
        let shard = Shard::new(shard.0, shard.1).map_err(Fault::from)?;
        let inner = self.inner.clone();
        Ok(py.detach(move || inner.begin(shard)))
    }

    /// Takes a job of at most `most` runs: its number, its text, and its number of runs; `None` if
    /// no run is available at the moment.
    fn take(&self, py: Python<'_>, most: usize) -> PyResult<Option<(u64, String, usize)>> {
        let inner = self.inner.clone();
        Ok(py.detach(move || inner.take(most))?)
    }

    /// Accepts the rows of a job. Returns the number of runs that are known to be needed by now.
    fn put(&self, py: Python<'_>, number: u64, rows: Vec<u8>) -> PyResult<u64> {
        let inner = self.inner.clone();
        Ok(py.detach(move || inner.put(number, &rows))?)
    }

    /// Waits until all accepted rows are on the disk.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.inner.clone();
        Ok(py.detach(move || inner.state().store.sync().map_err(Fault::from))?)
    }
}

/// Reports the number of finished runs and of all runs.
pub(crate) fn show(py: Python<'_>, progress: Option<&Py<PyAny>>, watch: &Watch<'_>) -> PyResult<()> {
    let Some(progress) = progress else { return Ok(()) };
    let count = (watch.made.load(Ordering::Relaxed), watch.total.load(Ordering::Relaxed));
    progress.call1(py, count).map(drop)
}

impl Sweep {
    /// Repeats a run of a point on another thread.
    fn again<T: Send + 'static>(
        &self,
        py: Python<'_>,
        point: usize,
        make: impl FnOnce(&sim::Scenario, &Files, &AtomicBool) -> Result<T, Fault> + Send + 'static,
    ) -> PyResult<T> {
        let inner = self.inner.clone();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let made = move || {
            if inner.has_policies {
                // A thread that Python cannot name is not interrupted by Ctrl-C.
                let _ = Python::attach(|py| Call::here().join(py));
            }
            let point = inner.points.get(point).ok_or_else(|| Fault::new("there is no such point"))?;
            let (scenario, files) = inner.sweep.simulated(point)?.ok_or_else(|| {
                Fault::new("the runs of an experiment leave no record")
                    .with_hint("`anabranch.run` a scenario; those of the papers are in `scenarios/papers`")
            })?;
            make(&scenario, &files, &stopped)
        };
        work(py, &stop, |_| Ok(()), made)
    }
}

impl Sweep {
    fn make(
        py: Python<'_>,
        out: Option<PathBuf>,
        has_policies: bool,
        spec: impl FnOnce() -> Result<Spec, sweep::Error> + Send + 'static,
    ) -> PyResult<Self> {
        let sweep = py.detach(|| caught(|| Ok(sweep::Sweep::new(spec()?)?)))?;
        let made = if sweep.points() <= sweep::FEW {
            py.detach(|| caught(|| Inner::new(sweep, out, has_policies)))?
        } else {
            // Do not use the global thread pool: a forked process would have none of its threads.
            let make = move || Threads::borrow(0)?.install(|| Inner::new(sweep, out, has_policies));
            work(py, &Default::default(), |_| Ok(()), make)?
        };
        Ok(Self { inner: Arc::new(made) })
    }
}
