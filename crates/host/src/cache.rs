//! `anabranch cache`: a box on the path that caches TCP segments of other hosts and repairs losses.

mod link;
mod report;
mod serve;

use std::path::PathBuf;

use anabranch_core::time::Duration;
use anabranch_deploy::endpoint::Endpoint;
use anabranch_deploy::error::Error;
use anabranch_deploy::log::{Entry, Logging};
use anabranch_deploy::metrics::Metrics;
use anabranch_deploy::output;
use anabranch_deploy::programs::{self, definition};
use anabranch_deploy::service::{self, Signals};
use anabranch_units::{Size, Span};
use clap::{Command, value_parser};

use crate::commands::{CommandError, PRIVILEGES};
use crate::nfqueue::{Queue, QueueOptions};
use crate::packets::{Limits, SEGMENT_MEMORY};
use crate::raw::RawSender;
use crate::rules::{Rules, RulesError};
use serve::Serving;

/// Options of `cache`.
///
/// The cache keeps TCP segments that this host forwards, and sends a lost one again itself. The
/// ends of the connections need no change. Encrypted and unknown packets pass unread.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Receive packets from this queue of the packet filter (NFQUEUE)
    #[arg(long, value_name = "N")]
    queue: u16,
    /// Add rules that bring forwarded TCP into the queue, and remove them at the end.
    ///
    /// They are in a chain of their own. After a crash, packets pass them unchanged; the next
    /// --setup replaces them.
    #[arg(long, conflicts_with = "teardown")]
    setup: bool,
    /// Remove the rules that an earlier process has left, and exit
    #[arg(long)]
    teardown: bool,
    /// Mark of packets that the cache sends, by which the rules recognise them
    #[arg(long, value_name = "N", default_value_t = MARK, value_parser = value_parser!(u32).range(1..))]
    mark: u32,
    /// Memory for cached segments
    #[arg(long, value_name = "SIZE", default_value = "32 MiB")]
    memory: Size,
    /// Limit on connections with a state of their own
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = value_parser!(u32).range(1..=65_536))]
    connections: u32,
    /// Shortest time after which an unacknowledged segment is sent again.
    ///
    /// The time is otherwise 1.5 round trips between this host and the destination, as measured.
    #[arg(long, value_name = "DURATION", default_value = "10 ms", value_parser = Span::positive)]
    min_timeout: Duration,
    /// Receive reports of the link layer at this Unix datagram socket.
    ///
    /// A radio driver reports for each packet whether the next hop has received it.
    #[arg(long, value_name = "SOCKET")]
    next_hop_acks: Option<PathBuf>,
    /// Print one JSON object with all counters each second and at the end
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
    /// No queue is opened and no rule is changed.
    #[arg(long, conflicts_with = "teardown")]
    check: bool,
}

/// The program `anabranch-cache`.
#[must_use]
pub fn program() -> Command {
    definition::<Arguments>("anabranch-cache", programs::CACHE)
}

/// Runs a cache until it is stopped.
///
/// # Errors
/// A privilege or a program is missing, or the queue belongs to another process.
pub fn main(arguments: Arguments) -> Result<(), Error> {
    arguments.logging.start("cache");
    let rules = Rules { queue: arguments.queue, mark: arguments.mark };
    if arguments.teardown {
        return rules.tear_down().map_err(without_rules);
    }
    let config = limits(&arguments)?.config();
    if arguments.check {
        return service::checked("cache");
    }
    let runtime = service::runtime()?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::catch()?;
        let number = arguments.queue;
        let queue = Queue::open(QueueOptions { number, length: QUEUE_LENGTH, buffer: QUEUE_BUFFER })
            .map_err(|error| without_queue(number, &error))?;
        let raw = RawSender::open(arguments.mark).map_err(|error| {
            Error::missing(format!("cannot open a raw socket: {error}")).with_hint(PRIVILEGES)
        })?;
        let serving = Serving::new(queue, raw, config)?;
        let serving = match &arguments.next_hop_acks {
            Some(path) => serving.with_reports(path)?,
            None => serving,
        };
        let metrics = Metrics::bind(arguments.metrics.as_ref()).await?;
        // The last step that can fail, so that no error leaves rules.
        let _placed = arguments.setup.then(|| Placed::new(rules)).transpose()?;
        Entry::info("listening", format!("listening on queue {number}")).write();
        metrics.announce();
        service::ready();
        let reports = output::Reports::default();
        let outcome = tokio::select! {
            failed = serving.run() => Err(failed),
            () = reports.each_second(|| report::report(&serving)), if arguments.json => Ok(()),
            () = metrics.serve(|| report::page(&serving), || Ok(())) => Ok(()),
            stop = signals.first() => stop.verdict(),
        };
        if arguments.json {
            reports.finish(report::report(&serving)).await;
        }
        outcome
    });
    // A report that is not read must not hold back the end.
    runtime.shutdown_background();
    outcome
}

/// The options as limits of the cache.
fn limits(arguments: &Arguments) -> Result<Limits, Error> {
    let Size(memory) = arguments.memory;
    if memory < SEGMENT_MEMORY {
        return Err(Error::input(format!("--memory {memory} is too small for one segment"))
            .with_hint(format!("give at least {SEGMENT_MEMORY} bytes")));
    }
    let connections = arguments.connections as usize;
    Ok(Limits { memory, connections, min_timeout: arguments.min_timeout })
}

/// Rules that are removed on drop.
struct Placed(Rules);

impl Placed {
    fn new(rules: Rules) -> Result<Self, Error> {
        rules.set_up().map(|()| Self(rules)).map_err(without_rules)
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        if let Err(error) = self.0.tear_down() {
            Entry::warning("rules remain", without_rules(error).to_string()).write();
        }
    }
}

fn without_queue(number: u16, error: &std::io::Error) -> Error {
    let message = format!("cannot open queue {number}: {error}");
    match error.kind() {
        std::io::ErrorKind::AddrInUse => Error::input(format!("queue {number} belongs to another process"))
            .with_hint("stop that process, or choose another --queue"),
        std::io::ErrorKind::PermissionDenied => Error::missing(message).with_hint(PRIVILEGES),
        _ => Error::missing(message).with_hint("the kernel needs NFQUEUE: modprobe nfnetlink_queue"),
    }
}

fn without_rules(error: RulesError) -> Error {
    match error {
        RulesError::Translates { program, rule } => Error::input(format!(
            "this host translates addresses, which --setup does not support: {program} -t nat {rule}"
        ))
        .with_hint("leave out --setup and add rules of your own for connections that are not translated"),
        RulesError::Other { chain } => Error::input(format!("another cache has rules: the chain {chain}"))
            .with_hint("stop that cache, or remove its rules with --teardown and its --queue"),
        RulesError::Command(error) => {
            let is_missing = matches!(error, CommandError::Program { .. });
            let error = error.into_error("change the rules", "iptable_security ip6table_security");
            if is_missing { error.with_hint(WITHOUT_PROGRAM) } else { error }
        }
    }
}

const WITHOUT_PROGRAM: &str = "install iptables, or add the rules with another program and leave out --setup";
/// "dtc" in ASCII: a value that other programs hardly use.
const MARK: u32 = 0x64_7463;
/// Number of packets that may wait for a verdict.
const QUEUE_LENGTH: u32 = 4096;
/// Receive buffer of the queue in bytes: 100 ms of packets at 1 Gbit/s, for which the kernel counts
/// about twice their length.
const QUEUE_BUFFER: usize = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_table_is_named_with_its_modules() {
        let command = "iptables -w -t security -S".to_owned();
        let reason = "can't initialize iptables table `security': Table does not exist".to_owned();
        let said = format!("{:?}", without_rules(CommandError::Failed { command, reason }.into()));
        assert!(said.contains("modprobe -a iptable_security"), "{said}");
    }
}
