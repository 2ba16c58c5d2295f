//! Files that a run writes: event logs, traces, captures and time series. A file appears under its
//! name only when it is complete.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_core::time::{Duration, Instant};
use anabranch_deploy::error::Error;
use anabranch_deploy::files::Whole;
use anabranch_scenario::probe::ProbeKind;
use anabranch_scenario::series::{self, Changes, Csv, FLOWS, POSITIONS, RADIOS, RDCA, Sampler, TABLES};
use anabranch_scenario::traffic::Carrier;
use anabranch_scenario::units::Span;
use anabranch_scenario::{Planned, Scenario};
use anabranch_sim::capture::Capture;
use anabranch_sim::events::{EventLog, Run};
use anabranch_sim::sim::Simulation;
use anabranch_sim::trace::TextTrace;
use signal_hook::consts::{SIGINT, SIGTERM};

/// An output file in progress.
pub(crate) type Out = BufWriter<Whole>;

/// Creates a file before the run, so that a bad path fails early.
pub(crate) fn create(path: &Path) -> Result<Out, Error> {
    Whole::create(path).map(BufWriter::new)
}

/// Gives a file its name after the run.
pub(crate) fn keep(out: Out, path: &Path) -> Result<(), Error> {
    let mut file = out.into_inner().map_err(|error| unfinished(path, error.error()))?;
    file.flush().map_err(|error| unfinished(path, &error))?;
    file.keep()
}

/// Error for a file that could not be written completely.
pub(crate) fn unfinished(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::job(format!("cannot write {}: {error}", path.display()))
}

/// Attaches an event log to a simulation.
pub(crate) fn attach(sim: &mut Simulation, out: Out, head: Run) {
    sim.observe(EventLog::new(out, head));
}

/// Completes the capture of a finished run.
pub(crate) fn finish_capture(sim: &mut Simulation, path: &Path) -> Result<(), Error> {
    let capture = sim.take_observer::<Capture<Out>>().expect("it was attached before");
    keep(capture.finish().map_err(|error| unfinished(path, &error))?, path)
}

/// Completes the trace of a finished run.
pub(crate) fn finish_trace(sim: &mut Simulation, path: &Path) -> Result<(), Error> {
    let trace = sim.take_observer::<TextTrace<Out>>().expect("it was attached before");
    keep(trace.finish().map_err(|error| unfinished(path, &error))?, path)
}

/// When a time series has a new row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Every {
    /// At each change.
    Change,
    /// At multiples of this interval, if a value has changed.
    Interval(Duration),
}

impl FromStr for Every {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "change" => Ok(Self::Change),
            _ => Span::positive(text)
                .map(Self::Interval)
                .map_err(|error| format!("{error}, or \"change\" for a row at each change")),
        }
    }
}

/// Paths of the time series files of a scenario's run.
pub(crate) fn series_files(folder: &Path, scenario: &Scenario, every: Every) -> Tables<PathBuf> {
    let is_sampled = every != Every::Change;
    let has_rdca = scenario.traffic.iter().any(|traffic| matches!(traffic.carrier, Carrier::Rdca(_)));
    std::array::from_fn(|table| {
        let is_there = match table {
            RADIOS => is_sampled && scenario.radio.is_some(),
            RDCA => is_sampled && has_rdca,
            FLOWS => scenario.probes.iter().any(|probe| probe.kind == ProbeKind::Flows),
            POSITIONS => is_sampled && !scenario.mobility.is_empty(),
            _ => true,
        };
        is_there.then(|| folder.join(format!("{}.csv", TABLES[table].name)))
    })
}

/// One value for each table of time series; `None` for a table that the run does not have.
pub(crate) type Tables<T> = [Option<T>; TABLES.len()];

/// Creates the files, and their folder if it is missing.
pub(crate) fn create_series(folder: &Path, files: &Tables<PathBuf>) -> Result<Csv<Out>, Error> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Error::input(format!("cannot write {}: {error}", folder.display())))?;
    let mut outs = Tables::default();
    for (out, file) in outs.iter_mut().zip(files) {
        *out = file.as_deref().map(create).transpose()?;
    }
    Ok(Csv::new(outs))
}

/// Time series of a run in progress.
pub(crate) struct Series {
    /// Samples at intervals. `None` if an observer records each change instead.
    sampler: Option<Sampler<Csv<Out>>>,
    /// Latest end of the run.
    stop: Instant,
}

impl Series {
    /// Attaches the time series to a simulation.
    pub(crate) fn attach(
        csv: Csv<Out>,
        every: Every,
        (scenario, planned): (&Scenario, &Planned),
        sim: &mut Simulation,
    ) -> Self {
        let sampler = match every {
            Every::Interval(every) => Some(Sampler::new(csv, every, scenario, planned, sim)),
            Every::Change => {
                sim.observe(Changes::new(csv));
                None
            }
        };
        Self { sampler, stop: scenario.stop }
    }

    /// Completes the time series of a finished run.
    pub(crate) fn finish(
        self,
        sim: &mut Simulation,
        folder: &Path,
        files: &Tables<PathBuf>,
    ) -> Result<(), Error> {
        let end = sim.now();
        let csv = match self.sampler {
            Some(sampler) => sampler.finish(sim),
            None => {
                let changes = sim.take_observer::<Changes<Csv<Out>>>().expect("it was attached before");
                let mut csv = changes.finish(end);
                series::flows(sim, self.stop, &mut csv);
                csv
            }
        };
        let outs = csv.finish().map_err(|error| unfinished(folder, &error))?;
        let mut both = outs.into_iter().flatten().zip(files.iter().flatten());
        both.try_for_each(|(out, file)| keep(out, file))
    }
}

/// Completes the event log of a finished run.
pub(crate) fn finish(sim: &mut Simulation, path: &Path) -> Result<(), Error> {
    let end = sim.now();
    let log = sim.take_observer::<EventLog<Out>>().expect("it was attached before");
    keep(log.finish_at(end).map_err(|error| unfinished(path, &error))?, path)
}

/// Records whether the user has interrupted the process. While a `Patience` exists, the first
/// signal does not end the process, so that incomplete files are removed first.
pub(crate) struct Patience(Arc<AtomicBool>);

impl Patience {
    pub(crate) fn new() -> Result<Self, Error> {
        let over = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // A second signal ends the process at once.
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&over))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&over)))
                .map_err(|error| Error::job(format!("cannot listen to signals: {error}")))?;
        }
        Ok(Self(over))
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.0.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Runs a simulation until `stop`, and checks for signals between parts of the run.
    pub(crate) fn run(
        &self,
        sim: &mut Simulation,
        stop: Instant,
        series: Option<&mut Series>,
    ) -> Result<(), Error> {
        self.run_and_tell(sim, stop, series, |_| ())
    }

    /// Like [`Patience::run`], and calls `tell` with the simulated time after each part.
    pub(crate) fn run_and_tell(
        &self,
        sim: &mut Simulation,
        stop: Instant,
        series: Option<&mut Series>,
        mut tell: impl FnMut(Instant),
    ) -> Result<(), Error> {
        let mut sampler = series.and_then(|series| series.sampler.as_mut());
        let run = |sim: &mut Simulation, until| {
            let pause = match &mut sampler {
                Some(sampler) => sampler.run_until(sim, until),
                None => sim.run_until(until),
            };
            tell(sim.now());
            pause
        };
        sim.run_in_parts(stop, run, || self.check())
    }
}
