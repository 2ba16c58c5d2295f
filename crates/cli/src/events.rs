//! What a run writes into files as it goes: event logs, traces, captures. A file is there once it is whole.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_core::time::{Duration, Instant};
use anabranch_deploy::error::Error;
use anabranch_deploy::files::Whole;
use anabranch_sim::capture::Capture;
use anabranch_sim::events::{EventLog, Run};
use anabranch_sim::series::Series;
use anabranch_sim::sim::{Pause, Simulation};
use anabranch_sim::trace::TextTrace;
use signal_hook::consts::{SIGINT, SIGTERM};

/// A file on its way.
pub(crate) type Out = BufWriter<Whole>;

/// Begins a file, before the run.
pub(crate) fn create(path: &Path) -> Result<Out, Error> {
    Whole::create(path).map(BufWriter::new)
}

/// Gives a file its name after the run.
pub(crate) fn keep(out: Out, path: &Path) -> Result<(), Error> {
    let mut file = out.into_inner().map_err(|error| unfinished(path, error.error()))?;
    file.flush().map_err(|error| unfinished(path, &error))?;
    file.keep()
}

/// A file could not be written to its end.
pub(crate) fn unfinished(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::job(format!("cannot write {}: {error}", path.display()))
}

/// Has a run write an event log.
pub(crate) fn attach(sim: &mut Simulation, out: Out, head: Run) {
    sim.observe(EventLog::new(out, head));
}

/// Ends the capture of a run that is over.
pub(crate) fn finish_capture(sim: &mut Simulation, path: &Path) -> Result<(), Error> {
    let capture = sim.take_observer::<Capture<Out>>().expect("it was attached before");
    keep(capture.finish().map_err(|error| unfinished(path, &error))?, path)
}

/// Ends the trace of a run that is over.
pub(crate) fn finish_trace(sim: &mut Simulation, path: &Path) -> Result<(), Error> {
    let trace = sim.take_observer::<TextTrace<Out>>().expect("it was attached before");
    keep(trace.finish().map_err(|error| unfinished(path, &error))?, path)
}

/// The files of time series: connections, and queues.
pub(crate) const SERIES: [&str; 2] = ["connections.csv", "queues.csv"];

/// Begins the time series of a run, in a folder that is made if it is not there.
pub(crate) fn create_series(folder: &Path) -> Result<[Out; 2], Error> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Error::input(format!("cannot write {}: {error}", folder.display())))?;
    let [connections, queues] = SERIES.map(|name| create(&folder.join(name)));
    Ok([connections?, queues?])
}

/// Ends the time series of a run that is over.
pub(crate) fn finish_series(sim: &mut Simulation, folder: &Path) -> Result<(), Error> {
    let end = sim.now();
    let series = sim.take_observer::<Series<Out>>().expect("it was attached before");
    let (connections, queues) = series.finish(end).map_err(|error| unfinished(folder, &error))?;
    let [first, second] = SERIES.map(|name| folder.join(name));
    keep(connections, &first)?;
    keep(queues, &second)
}

/// Ends the log of a run that is over.
pub(crate) fn finish(sim: &mut Simulation, path: &Path) -> Result<(), Error> {
    let end = sim.now();
    let log = sim.take_observer::<EventLog<Out>>().expect("it was attached before");
    keep(log.finish_at(end).map_err(|error| unfinished(path, &error))?, path)
}

/// Whether the person at the keyboard has had enough. While one is there, a signal ends nothing by itself: files that are
/// half written go away first.
pub(crate) struct Patience(Arc<AtomicBool>);

impl Patience {
    pub(crate) fn new() -> Result<Self, Error> {
        let over = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The second one ends the program at once.
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&over))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&over)))
                .map_err(|error| Error::job(format!("cannot listen to signals: {error}")))?;
        }
        Ok(Self(over))
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.0.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Runs a simulation until `stop`, with a look at the signals between slices of it.
    pub(crate) fn run(&self, sim: &mut Simulation, stop: Instant) -> Result<(), Error> {
        let slice = (stop.saturating_since(sim.now()) / 10_000).max(Duration::from_millis(1));
        while sim.now() < stop && sim.run_until((sim.now() + slice).min(stop)) == Pause::Reached {
            self.check()?;
        }
        self.check()
    }
}
