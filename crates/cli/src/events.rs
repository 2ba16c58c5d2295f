//! What a run writes into files as it goes: event logs, traces, captures. A file is there once it
//! is whole.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_core::time::{Duration, Instant};
use anabranch_deploy::error::Error;
use anabranch_deploy::files::Whole;
use anabranch_sim::capture::Capture;
use anabranch_sim::events::{EventLog, Run};
use anabranch_sim::scenario::probe::ProbeKind;
use anabranch_sim::scenario::traffic::Carrier;
use anabranch_sim::scenario::units::Span;
use anabranch_sim::scenario::{Planned, Scenario};
use anabranch_sim::series::{self, Changes, Csv, FLOWS, POSITIONS, RADIOS, RDCA, Sampler, TABLES};
use anabranch_sim::sim::Simulation;
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

/// How often a row of a time series is made at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Every {
    /// At each change.
    Change,
    /// At multiples of this time.
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

/// Files of the time series that a run of a scenario has.
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

/// A file for each table of time series, or none.
pub(crate) type Tables<T> = [Option<T>; TABLES.len()];

/// Begins the files, in a folder that is made if it is not there.
pub(crate) fn create_series(folder: &Path, files: &Tables<PathBuf>) -> Result<Csv<Out>, Error> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Error::input(format!("cannot write {}: {error}", folder.display())))?;
    let mut outs = Tables::default();
    for (out, file) in outs.iter_mut().zip(files) {
        *out = file.as_deref().map(create).transpose()?;
    }
    Ok(Csv::new(outs))
}

/// The time series of a run that is under way.
pub(crate) struct Series {
    /// What looks at intervals; an observer sees each change.
    sampler: Option<Sampler<Csv<Out>>>,
    /// When the run ends at the latest.
    stop: Instant,
}

impl Series {
    /// Has a run write them.
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

    /// Ends the time series of a run that is over.
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

/// Ends the log of a run that is over.
pub(crate) fn finish(sim: &mut Simulation, path: &Path) -> Result<(), Error> {
    let end = sim.now();
    let log = sim.take_observer::<EventLog<Out>>().expect("it was attached before");
    keep(log.finish_at(end).map_err(|error| unfinished(path, &error))?, path)
}

/// Whether the person at the keyboard has had enough. While one is there, a signal ends nothing by
/// itself: files that are half written go away first.
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

    /// Runs a simulation until `stop`, with a look at the signals between parts of it.
    pub(crate) fn run(
        &self,
        sim: &mut Simulation,
        stop: Instant,
        series: Option<&mut Series>,
    ) -> Result<(), Error> {
        self.run_and_tell(sim, stop, series, |_| ())
    }

    /// [`Patience::run`], which says after each part how far the simulation is.
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
