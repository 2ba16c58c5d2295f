//! `anabranch node`: receive files from senders, through gateways.

mod device;
mod disk;
mod journal;
mod sequence;
mod sink;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time;

use anabranch_core::set::{MAX_GATEWAYS, RefuseReason};
use anabranch_core::time::Duration;
use anabranch_net::set::{NODE_PORT, Node, NodeConfig, NodeEvent, RefusedCounters};
use anabranch_secure::NodeKeys;
use anabranch_units::{Size, Span};
use serde::Serialize;
use tokio::time::Instant;

use self::device::{OfDevice, Trust};
use self::sink::{Images, Limits, Output};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::files::folder;
use crate::keys::{GatewayName, OfNode};
use crate::log::{Class, Entry, Level, Limiter, Logging};
use crate::metrics::{Kind, Metrics, Page};
use crate::output;
use crate::say;
use crate::service::{self, Signals};

/// Time limit for closing connections after the file was received.
const FAREWELL: time::Duration = time::Duration::from_secs(2);

/// Interval between log lines about refused connections.
const REFUSALS_EVERY: time::Duration = time::Duration::from_secs(1);

/// Options of `node`.
///
/// The node takes files from senders whose keys it knows, encrypted from end to end.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Accept senders and gateways at this address and port
    #[arg(long, value_name = "ADDR[:PORT]", default_value = "[::]:47200")]
    listen: Endpoint,
    /// Write each received file to this path; `-` is standard output.
    ///
    /// An existing file is replaced only when the new one is complete.
    #[arg(long, value_name = "FILE", required_unless_present = "pipe", conflicts_with = "pipe")]
    out: Option<PathBuf>,
    /// Run this shell command for each file, with the file's bytes on its standard input.
    ///
    /// The command gets the bytes as they arrive. The sender is told "delivered" only when the
    /// command exits with 0.
    #[arg(long, value_name = "CMD")]
    pipe: Option<String>,
    #[command(flatten)]
    keys: OfNode,
    #[command(flatten)]
    device: OfDevice,
    /// Collect the whole file in this folder before the command of --pipe starts.
    ///
    /// An interrupted push can then resume instead of starting again.
    #[arg(long, value_name = "DIR", requires = "pipe")]
    spool: Option<PathBuf>,
    /// Announce these gateways to senders, at most 15.
    ///
    /// Each may be followed by its public key, as text or as a file.
    #[arg(long, value_name = "HOST[:PORT][=KEY],...", value_delimiter = ',')]
    gateways: Vec<GatewayName>,
    /// Say that the paths to all gateways share one radio channel whose MAC gives up early.
    ///
    /// Senders then let the gateways take turns, which is up to 1.8 times as fast on such a
    /// channel: one radio of IEEE 802.15.4 with the default macMaxFrameRetries of 3. Do not use it
    /// with other networks, nor with a MAC that repeats a frame 7 times or more, as OpenThread's.
    #[arg(long, requires = "gateways")]
    shared_channel: bool,
    /// Size of the reorder buffer.
    ///
    /// It must hold the sum of the gateways' rates times the longest round-trip time.
    #[arg(long, value_name = "SIZE", default_value = "4 MiB")]
    buffer: Size,
    /// Limit on concurrent connections; the node resets further ones
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// Reset a connection after this time without any data.
    ///
    /// After the same time an unfinished file gives way to another one.
    #[arg(long, value_name = "DURATION", default_value = "60 s", value_parser = Span::positive)]
    idle: Duration,
    /// Refuse files larger than this, before any of their bytes are sent [default: no limit]
    #[arg(long, value_name = "SIZE")]
    max_size: Option<Size>,
    /// Refuse files that would leave less free space than this on the disk
    #[arg(long, value_name = "SIZE", default_value = "1 MiB")]
    reserve: Size,
    /// Exit after receiving one file
    #[arg(long)]
    once: bool,
    /// Print one JSON object per received file
    #[arg(long)]
    json: bool,
    /// Do not log the start of transfers and refused connections.
    ///
    /// Refused and failed transfers are still logged.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    logging: Logging,
    /// Serve metrics and health over HTTP at this address (default port 47202).
    ///
    /// The paths are /metrics, in the format of Prometheus, and /healthz.
    #[arg(long, value_name = "ADDR[:PORT]")]
    metrics: Option<Endpoint>,
    /// Check the options, read the keys and resolve the names, then exit.
    ///
    /// No socket is opened and nothing is written.
    #[arg(long)]
    check: bool,
}

/// A received file, as it is reported.
#[derive(Debug, Serialize)]
struct Received {
    /// Transfer identifier, in hexadecimal.
    transfer: String,
    bytes: u64,
    sha256: String,
    /// Destination of the file.
    to: String,
}

/// Runs a node until it is stopped, or with `--once` until it has received one file.
///
/// # Errors
/// The options conflict, a key cannot be read, the address is not available, or with `--once` the
/// file failed.
pub fn main(arguments: Arguments) -> Result<(), Error> {
    arguments.logging.start("node");
    let address = arguments.listen.resolve(NODE_PORT)?;
    let config = config(&arguments, address)?;
    let signers = arguments.keys.signers()?;
    let device = arguments.device.device()?;
    let images = if arguments.device.mcuboot { Images::Mcuboot } else { Images::Any };
    // `--check` must not write: the steps below restore state and create files.
    if arguments.check {
        return service::checked("node");
    }
    if let Some(keys) = &config.who {
        arguments.keys.remember(keys, address.port());
    }
    let mut output =
        Output::new(arguments.out.as_deref(), arguments.pipe.as_deref(), arguments.spool.as_deref())?
            .signed_by(signers)?
            .only(images)?
            .within(Limits {
                size: arguments.max_size.map_or(u64::MAX, |size| size.0),
                reserve: arguments.reserve.0,
            });
    if let Err(error) = output.release() {
        Entry::warning(
            "space",
            format!("cannot release the disk space reserved for an unfinished file: {error}"),
        )
        .write();
    }
    if let Some(device) = device {
        output = output.for_device(device, arguments.keys.state().as_deref())?;
    }
    service::runtime()?.block_on(async {
        let (mut signals, mut hangup) = Signals::of_service()?;
        let (insecure, keys, signers) = (config.who.is_none(), config.who.clone(), output.signers());
        let node = Node::bind(config, output).map_err(|e| service::cannot_listen(address, &e))?;
        let metrics = Metrics::bind(arguments.metrics.as_ref()).await?;
        Entry::info("listening", format!("listening on {}", node.address())).write();
        metrics.announce();
        service::ready();
        if !arguments.quiet && insecure {
            let message = "--insecure: no encryption and no authentication; for trusted networks only";
            Entry::info("insecure", message).write();
        }
        let totals = RefCell::new(Totals::default());
        let announced = node.announced();
        let reload = || {
            let (who, signed_by) = (arguments.keys.who()?, arguments.keys.trusted()?);
            let gateways = GatewayName::resolve_all(&arguments.gateways, arguments.shared_channel)?;
            if let (Some(keys), Some(who)) = (&keys, who) {
                keys.reload(who);
            }
            if signers.set(signed_by) == Trust::Nobody {
                let message = "--revoked has all keys of --signers: no file is accepted";
                Entry::warning("no signers", message).write();
            }
            announced.set(gateways);
            Ok(())
        };
        tokio::select! {
            () = hangup.each(reload) => Ok(()),
            () = metrics.serve(|| totals.borrow().page(), || totals.borrow().health(&arguments)) => Ok(()),
            ended = serve(node, &arguments, &totals) => ended,
            stop = signals.first() => stop.verdict(),
        }
    })
}

fn config(arguments: &Arguments, listen: SocketAddr) -> Result<NodeConfig, Error> {
    if arguments.gateways.len() > MAX_GATEWAYS {
        let message = format!(
            "--gateways: {} gateways; at most {MAX_GATEWAYS} can be announced",
            arguments.gateways.len()
        );
        return Err(Error::input(message).with_hint("announce fewer gateways"));
    }
    let buffer = u32::try_from(arguments.buffer.0).ok().filter(|octets| (1_000..1 << 30).contains(octets));
    let buffer = buffer
        .ok_or_else(|| Error::input(format!("--buffer {} is not from 1 kB to 1 GiB", arguments.buffer.0)))?;
    Ok(NodeConfig {
        who: arguments.keys.who()?.map(NodeKeys::new),
        gateways: GatewayName::resolve_all(&arguments.gateways, arguments.shared_channel)?,
        buffer,
        connections: arguments.connections as usize,
        idle: arguments.idle,
        ..NodeConfig::new(listen)
    })
}

async fn serve(mut node: Node<Output>, arguments: &Arguments, totals: &RefCell<Totals>) -> Result<(), Error> {
    let mut said = Said { total: 0, at: None, log: Limiter::new(Instant::now()) };
    loop {
        let event = node.next().await;
        if !arguments.quiet {
            said.look(node.refused());
        }
        totals.borrow_mut().look(&node, event.as_ref(), said.log.suppressed());
        let Some(event) = event else { continue };
        match event {
            NodeEvent::Began { transfer, from } => {
                let id = transfer.0;
                let line = match from {
                    0 => format!("transfer {id:016x} has begun"),
                    _ => format!("transfer {id:016x} resumes at byte {from}"),
                };
                if !arguments.quiet {
                    said.say(
                        Entry::info("begun", line).with("transfer", format!("{id:016x}")).with("from", from),
                    );
                }
            }
            NodeEvent::Declined { transfer, reason, delivered } => {
                let id = format!("{:016x}", transfer.0);
                let refusal = node.sink().refusal().map(str::to_owned);
                let why = refusal.unwrap_or_else(|| why(reason, delivered));
                let line = format!("transfer {id} was refused: {why}");
                // Without disk space the node takes no file until its operator acts, so the line is
                // a warning.
                let level = if reason == RefuseReason::NoRoom { Level::Warning } else { Level::Info };
                let entry = Entry::new(level, "refused", line);
                said.say(entry.with("transfer", id).with("reason", word(reason)));
            }
            NodeEvent::Finished { transfer, octets } => {
                let received = Received {
                    transfer: format!("{:016x}", transfer.0),
                    bytes: octets,
                    sha256: node.sink().sha256(),
                    to: node.sink().to_string(),
                };
                received.print(arguments)?;
                if arguments.once {
                    return farewell(node).await;
                }
            }
            NodeEvent::Abandoned { transfer, octets } => {
                let entry = Entry::info("given up", format!("abandoned after {octets} bytes"));
                said.say(entry.with("transfer", format!("{:016x}", transfer.0)).with("bytes", octets));
                if arguments.once {
                    return Err(Error::job(format!("the file was abandoned after {octets} bytes")));
                }
            }
            NodeEvent::Failed { error, .. } => {
                let message = format!("{}: {error}", node.sink());
                if arguments.once {
                    return Err(Error::job(message));
                }
                said.say(Entry::new(Level::Error, "failed", format!("error: {message}")));
            }
        }
    }
}

/// State of the log: at most one line per second about refused connections, and lines about
/// transfers as the [`Limiter`] admits.
#[derive(Debug)]
struct Said {
    /// Number of refused connections in the last line about them.
    total: u64,
    at: Option<Instant>,
    log: Limiter,
}

impl Said {
    fn look(&mut self, refused: RefusedCounters) {
        let total = refused.total();
        if total > self.total && self.at.is_none_or(|at| at.elapsed() >= REFUSALS_EVERY) {
            self.at = Some(Instant::now());
            let message = format!("{total} connections refused so far: {refused}");
            Entry::info("connections refused", message).with("connections", total).write();
            self.total = total;
        }
        if let Some(left_out) = self.log.report(Instant::now()) {
            Entry::info("left out", left_out).write();
        }
    }

    /// Writes a line about a transfer, rate-limited since senders can cause any number of
    /// transfers.
    fn say(&mut self, entry: Entry) {
        // The node's machine does not report the host of a transfer, so all transfers share one
        // budget.
        let nowhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let what = (Class::Served, entry.event());
        if let Some(line) = entry.line()
            && self.log.admit(Instant::now(), what, nowhere, &line)
        {
            say!("{line}");
        }
    }
}

/// Counters since the start of the node, as of the last event.
#[derive(Default)]
struct Totals {
    begun: u64,
    finished: u64,
    abandoned: u64,
    failed: u64,
    declined: BTreeMap<&'static str, u64>,
    refused: RefusedCounters,
    received: u64,
    present: u64,
    connections: usize,
    is_deaf: bool,
    suppressed: u64,
}

impl Totals {
    fn look(&mut self, node: &Node<Output>, event: Option<&NodeEvent>, suppressed: u64) {
        match event {
            Some(NodeEvent::Began { .. }) => self.begun += 1,
            Some(NodeEvent::Finished { .. }) => self.finished += 1,
            Some(NodeEvent::Abandoned { .. }) => self.abandoned += 1,
            Some(NodeEvent::Failed { .. }) => self.failed += 1,
            Some(NodeEvent::Declined { reason, .. }) => *self.declined.entry(word(*reason)).or_default() += 1,
            None => {}
        }
        (self.refused, self.suppressed) = (node.refused(), suppressed);
        (self.received, self.present) = (node.received(), node.taken());
        (self.connections, self.is_deaf) = (node.connections(), node.is_deaf());
    }

    fn page(&self) -> Page {
        let mut page = Page::of_process();
        let help = "Connections open now.";
        page.value("anabranch_node_connections", Kind::Gauge, help, self.connections);
        let help = "Transfers that began or resumed.";
        page.value("anabranch_node_transfers_begun_total", Kind::Counter, help, self.begun);
        let ended = [("finished", self.finished), ("abandoned", self.abandoned), ("failed", self.failed)];
        let help = "Transfers that ended, by result.";
        page.counters("anabranch_node_transfers_total", help, "result", &ended);
        let declined = REASONS.map(word).map(|word| (word, self.declined.get(word).copied().unwrap_or(0)));
        let help = "Transfers that were refused before data was sent, by reason.";
        page.counters("anabranch_node_transfers_refused_total", help, "reason", &declined);
        let help = "Bytes of files that arrived in order.";
        page.value("anabranch_node_received_bytes_total", Kind::Counter, help, self.received);
        let help = "Bytes received of the current transfer.";
        page.value("anabranch_node_transfer_bytes", Kind::Gauge, help, self.present);
        page.refusals(&self.refused, self.suppressed);
        page
    }

    /// Checks whether the node can take files at present.
    ///
    /// # Errors
    /// Why it cannot: the kernel grants no more connections, the disk has less free space than
    /// `--reserve`, or the disk cannot be examined.
    fn health(&self, arguments: &Arguments) -> Result<(), String> {
        if self.is_deaf {
            return Err("cannot accept connections; raise the limit on open files (ulimit -n)".to_owned());
        }
        let place = arguments.out.as_deref().map(folder).or(arguments.spool.as_deref());
        // Standard output and commands without a spool use no disk of the node.
        let Some(place) = place.filter(|_| arguments.out.as_deref() != Some("-".as_ref())) else {
            return Ok(());
        };
        // The port does not authenticate callers, so health names no files.
        let disk = if arguments.out.is_some() { "the disk of --out" } else { "the disk of --spool" };
        let free = sink::free(place).map_err(|error| format!("{disk}: {error}"))?;
        let reserve = arguments.reserve.0;
        match free < reserve {
            true => Err(format!("{disk}: {free} bytes are free, less than --reserve {reserve}")),
            false => Ok(()),
        }
    }
}

/// Every reason with which the output refuses a transfer. The metrics contain each of them from the
/// start, so that a rate includes the first count.
const REASONS: [RefuseReason; 8] = [
    RefuseReason::Unfinished,
    RefuseReason::TooLarge,
    RefuseReason::NoRoom,
    RefuseReason::Signature,
    RefuseReason::Rollback,
    RefuseReason::WrongDevice,
    RefuseReason::Expired,
    RefuseReason::Image,
];

/// Name of a reason in logs and metrics.
fn word(reason: RefuseReason) -> &'static str {
    match reason {
        RefuseReason::Busy => "busy",
        RefuseReason::Unfinished => "unfinished",
        RefuseReason::TooLarge => "too large",
        RefuseReason::NoRoom => "no room",
        RefuseReason::Signature => "signature",
        RefuseReason::Digest => "digest",
        RefuseReason::Rollback => "rollback",
        RefuseReason::WrongDevice => "wrong device",
        RefuseReason::Expired => "expired",
        RefuseReason::Image => "image",
        _ => "unwanted",
    }
}

/// Why a transfer was refused, as text for the log.
fn why(reason: RefuseReason, delivered: u64) -> String {
    match reason {
        RefuseReason::Unfinished => {
            format!("an unfinished transfer of another file holds {delivered} bytes")
        }
        RefuseReason::NoRoom => "the node's disk is full".to_owned(),
        other => word(other).to_owned(),
    }
}

/// Waits until connections are closed, so that the sender learns that the file was received.
async fn farewell(mut node: Node<Output>) -> Result<(), Error> {
    let end = async {
        while !node.is_idle() {
            node.next().await;
        }
    };
    let _ = tokio::time::timeout(FAREWELL, end).await;
    Ok(())
}

impl Received {
    fn print(&self, arguments: &Arguments) -> Result<(), Error> {
        let Self { transfer, bytes, sha256, to } = self;
        let line = format!("{bytes} bytes in {to}, SHA-256 {sha256}");
        let entry = Entry::info("received", line.as_str())
            .with("transfer", transfer.as_str())
            .with("bytes", *bytes)
            .with("sha256", sha256.as_str())
            .with("to", to.as_str());
        // This is a result, not a log line: neither `--quiet` nor `--log-level` suppresses it,
        // unless standard output carries the file.
        match arguments.out.as_deref() == Some("-".as_ref()) {
            true if arguments.quiet => Ok(()),
            true => {
                entry.write();
                Ok(())
            }
            false if arguments.json => output::json(self),
            false => output::text(&entry.result().unwrap_or(line + "\n")),
        }
    }
}
