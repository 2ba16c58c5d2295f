//! `anabranch tune`: the send buffers of running programs under a memory budget.

mod record;
mod report;
mod state;

use std::cell::RefCell;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use anabranch_core::sockbuf::{Config, PidConfig, PolicyConfig};
use anabranch_net::clock::Clock;
use anabranch_net::sockbuf::{AddError, Process, ProgramConfig, ProgramTuner};
use anabranch_units::Size;
use serde_json::json;

use self::record::Log;
use self::state::{Folder, Guard};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::log::{Entry, Logging};
use crate::metrics::Metrics;
use crate::output;
use crate::service::{self, Signals};

/// Options of `tune`.
///
/// The program keeps running and needs no change. Its sockets get their old settings when this
/// command ends, also when it is killed.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Process whose TCP sockets are managed; may be repeated.
    ///
    /// The command ends when all of these processes have ended.
    #[arg(long, value_name = "PID", required_unless_present_any = ["restore", "check", "guard"])]
    pid: Vec<u32>,
    /// Kernel memory for the send queues of all these sockets
    #[arg(long, value_name = "SIZE", default_value = "2 MB")]
    budget: Size,
    /// How the budget is divided
    #[arg(long, value_name = "POLICY", value_enum, default_value_t = Policy::Pid)]
    policy: Policy,
    /// Part of an equal share that each connection keeps, with the policy `pid`: 0 to 1.
    ///
    /// More protects connections that begin to need memory; less leaves more for striped ones.
    #[arg(long, value_name = "FRACTION", default_value_t = GUARANTEE, value_parser = fraction)]
    guarantee: f64,
    /// Addresses of one peer; may be repeated.
    ///
    /// Connections to one peer from several local addresses are one striped connection. Without
    /// this option each address is a peer of its own.
    #[arg(long, value_name = "ADDR,ADDR...", value_parser = peers)]
    peer: Vec<Peers>,
    /// Unsent bytes at which a socket stops being writable (TCP_NOTSENT_LOWAT) [default: unchanged]
    #[arg(long, value_name = "SIZE")]
    unsent: Option<Size>,
    /// Folder for the old settings of the sockets.
    ///
    /// [default: the folder that systemd gives, /run/anabranch-tune for root, or
    /// $XDG_RUNTIME_DIR/anabranch-tune]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Restore the sockets that killed processes of this command have left, and exit
    #[arg(long, conflicts_with = "pid")]
    restore: bool,
    /// Restore the sockets of this file when standard input ends.
    #[arg(long, value_name = "FILE", hide = true)]
    guard: Option<PathBuf>,
    /// Write an event log to this file, from which `anabranch view` makes a page.
    ///
    /// It has ten records a second for each socket that sends.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Print one JSON object with the state of all sockets each second and at the end
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    logging: Logging,
    /// Serve metrics and health over HTTP at this address (default port 47202).
    ///
    /// The paths are /metrics, in the format of Prometheus, and /healthz.
    #[arg(long, value_name = "ADDR[:PORT]")]
    metrics: Option<Endpoint>,
    /// Check the options, then exit.
    ///
    /// No process is opened.
    #[arg(long, conflicts_with = "restore")]
    check: bool,
}

/// The policies of `--policy`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Policy {
    /// A PID controller gives the striped connection twice its bandwidth-delay product, from the
    /// memory that others leave unused
    Pid,
    /// Automatic TCP buffer tuning of Semke, Mahdavi and Mathis: two to four windows, at most a
    /// fair share
    Atbt,
    /// Dynamic right-sizing: twice the bytes acknowledged within a round trip
    Drs,
    /// The same size for all connections
    Fixed,
}

/// Addresses of one peer.
#[derive(Clone, Debug)]
struct Peers(Vec<IpAddr>);

fn peers(text: &str) -> Result<Peers, String> {
    let address = |word: &str| word.trim().parse().map_err(|_| format!("`{word}` is no IP address"));
    text.split(',').map(address).collect::<Result<_, _>>().map(Peers)
}

fn fraction(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| (0.0..=1.0).contains(value));
    value.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

impl Policy {
    fn config(self, guarantee: f64) -> PolicyConfig {
        match self {
            Self::Pid => PolicyConfig::Pid(PidConfig { guarantee, ..PidConfig::default() }),
            Self::Atbt => PolicyConfig::AtbtOriginal,
            Self::Drs => PolicyConfig::RightSizing,
            // The tuner cuts requests above the budget to equal shares.
            Self::Fixed => PolicyConfig::Fixed(u64::MAX),
        }
    }
}

/// A running tuner.
struct Tuning {
    tuner: RefCell<ProgramTuner>,
    log: RefCell<Option<Log>>,
    policy: Policy,
    clock: Clock,
}

/// Manages the send buffers of processes until they end or this process is stopped.
///
/// # Errors
/// A process does not exist or may not be traced, or the budget is too small.
pub fn main(arguments: Arguments) -> Result<(), Error> {
    arguments.logging.start("tune");
    if let Some(file) = &arguments.guard {
        return state::guard(file);
    }
    let config = config(&arguments)?;
    if arguments.check {
        return service::checked("tune");
    }
    let folder = Folder::open(arguments.state.as_deref())?;
    let left = folder.restore_abandoned()?;
    if arguments.restore {
        let report = json!({ "restored": left.sockets, "closed": left.closed, "locked": left.locked });
        return if arguments.json { output::json(&report) } else { Ok(()) };
    }
    folder.refuse_tuned(&arguments.pid)?;
    let processes = arguments.pid.iter().map(|pid| Process::claim(*pid).map_err(|e| no_process(*pid, &e)));
    let processes = processes.collect::<Result<Vec<_>, _>>()?;
    let (clock, policy) = (Clock::start(), arguments.policy);
    let tuner = ProgramTuner::new(clock.now(), config, processes).map_err(|error| too_small(&error))?;
    let log = arguments.record.as_deref().map(Log::create).transpose()?;
    let tuning = Tuning { tuner: RefCell::new(tuner), log: RefCell::new(log), policy, clock };
    service::runtime()?.block_on(async {
        let mut signals = Signals::catch()?;
        let metrics = Metrics::bind(arguments.metrics.as_ref()).await?;
        let mut guard = Guard::start(&folder, &arguments.pid)?;
        let pids: Vec<String> = arguments.pid.iter().map(u32::to_string).collect();
        let (pids, Size(budget)) = (pids.join(", "), arguments.budget);
        let text = format!("tuning the sockets of process {pids} with a budget of {budget} bytes");
        Entry::info("tuning", text).with("budget_bytes", budget).write();
        metrics.announce();
        service::ready();
        let outcome = tokio::select! {
            () = tuning.run(&guard) => Ok(()),
            failed = tuning.each_second(), if arguments.json => Err(failed),
            failed = tuning.record() => Err(failed),
            () = metrics.serve(|| tuning.page(), || Ok(())) => Ok(()),
            stop = signals.first() => stop.verdict(),
        };
        let printed = if arguments.json { output::json(&tuning.report()) } else { Ok(()) };
        let restored = tuning.tuner.borrow_mut().restore();
        guard.dismiss();
        state::log(restored);
        let logged = tuning.log.take().map_or(Ok(()), |log| log.finish(clock.now()));
        printed.and(logged).and(outcome)
    })
}

impl Tuning {
    /// Writes the event log, if there is one.
    async fn record(&self) -> Error {
        if self.log.borrow().is_none() {
            return std::future::pending().await;
        }
        let mut interval = tokio::time::interval(RECORD);
        loop {
            interval.tick().await;
            let (now, tuner, mut log) = (self.clock.now(), self.tuner.borrow(), self.log.borrow_mut());
            let Some(log) = log.as_mut() else { continue };
            if let Err(error) = tuner.sockets().try_for_each(|socket| log.add(now, &socket)) {
                return Error::job(format!("cannot write the event log: {error}"));
            }
        }
    }

    /// Steps until no process is left.
    async fn run(&self, guard: &Guard) {
        let (mut failed, mut crowded) = (false, 0);
        loop {
            let now = self.clock.now();
            let (pause, is_needed) = {
                let mut tuner = self.tuner.borrow_mut();
                match tuner.step(now, |saved| guard.save(saved)) {
                    Ok(()) => failed = false,
                    Err(error) if !failed => {
                        failed = true;
                        let text = format!("new sockets stay unmanaged: cannot save their settings: {error}");
                        Entry::warning("not saved", text).write();
                    }
                    Err(_) => {}
                }
                let waiting = tuner.population().crowded;
                if waiting > 0 && crowded == 0 {
                    let text = format!("the budget has no room for {waiting} more sockets that send");
                    Entry::warning("crowded", text).hinted("raise --budget").write();
                }
                crowded = waiting;
                (tuner.next_timeout(now).saturating_since(self.clock.now()), tuner.is_needed())
            };
            if !is_needed {
                Entry::info("ended", "the processes have ended").write();
                return;
            }
            tokio::time::sleep(Duration::from_nanos(pause.as_nanos()).max(LEAST_PAUSE)).await;
        }
    }
}

fn config(arguments: &Arguments) -> Result<ProgramConfig, Error> {
    let Size(threshold) = arguments.budget;
    let policy = arguments.policy.config(arguments.guarantee);
    let config = ProgramConfig {
        unsent_mark: arguments.unsent.map(|Size(unsent)| unsent),
        peers: arguments.peer.iter().map(|Peers(addresses)| addresses.clone()).collect(),
        ..ProgramConfig::new(Config { threshold, policy, ..Config::default() })
    };
    if let Some(twice) = arguments.pid.iter().enumerate().find(|(i, pid)| arguments.pid[..*i].contains(pid)) {
        return Err(Error::input(format!("--pid {} is given twice", twice.1)).with_hint("give it once"));
    }
    // Without processes it changes nothing.
    let checked = ProgramTuner::new(Clock::start().now(), config.clone(), Vec::new());
    checked.map(|_| config).map_err(|error| too_small(&error))
}

fn too_small(error: &AddError) -> Error {
    match error {
        AddError::Full { needed, budget } => {
            Error::input(format!("--budget {budget} bytes is too small for one socket"))
                .with_hint(format!("give at least {needed} bytes"))
        }
        other => Error::input(format!("invalid --budget: {other}")),
    }
}

fn no_process(pid: u32, error: &std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => Error::input(format!("--pid {pid}: no such process")).with_hint(
            "`pidof PROGRAM` and `systemctl show --property MainPID UNIT` print the number of a process",
        ),
        ErrorKind::PermissionDenied => {
            Error::missing(format!("--pid {pid}: no permission to duplicate its sockets")).with_hint(
                "run as root, with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, or as its user if kernel.yama.ptrace_scope is 0",
            )
        }
        ErrorKind::ResourceBusy => Error::input(format!("--pid {pid}: another command tunes the process"))
            .with_hint("stop it first, or give it both --pid options"),
        _ => Error::missing(format!("--pid {pid}: cannot open the process: {error}"))
            .with_hint("this needs Linux 5.6 and /proc"),
    }
}

/// Default of `--guarantee`.
const GUARANTEE: f64 = 0.25;
/// Interval of the records of `--record`.
const RECORD: Duration = Duration::from_millis(100);
/// Shortest pause between two steps.
const LEAST_PAUSE: Duration = Duration::from_millis(1);
