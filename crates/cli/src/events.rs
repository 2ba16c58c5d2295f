//! Event logs of runs, as files.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_core::time::{Duration, Instant};
use anabranch_deploy::error::Error;
use anabranch_deploy::files::Whole;
use anabranch_sim::events::{EventLog, Run};
use anabranch_sim::sim::{Pause, Simulation};
use signal_hook::consts::{SIGINT, SIGTERM};

/// A log on its way into its file.
type Log = EventLog<BufWriter<Whole>>;

/// A log that was begun; it is there once it is whole.
#[derive(Debug)]
pub(crate) struct File(Whole);

/// Begins a log, before the run.
pub(crate) fn create(path: &Path) -> Result<File, Error> {
    Whole::create(path).map(File)
}

/// Has a run write it.
pub(crate) fn attach(sim: &mut Simulation, file: File, head: Run) {
    sim.observe(EventLog::new(BufWriter::new(file.0), head));
}

/// Ends the log of a run that is over.
pub(crate) fn finish(sim: &mut Simulation, path: &Path) -> Result<(), Error> {
    let end = sim.now();
    let log = sim.take_observer::<Log>().expect("it was attached before");
    let unfinished =
        |error: &dyn std::fmt::Display| Error::job(format!("cannot write {}: {error}", path.display()));
    let out = log.finish_at(end).map_err(|error| unfinished(&error))?;
    let mut file = out.into_inner().map_err(|error| unfinished(error.error()))?;
    file.flush().map_err(|error| unfinished(&error))?;
    file.keep()
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
