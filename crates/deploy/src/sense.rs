//! `anabranch sense`: send records to a sink.

mod source;

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use anabranch_core::rdca::Outcome;
use anabranch_core::time::Duration;
use anabranch_net::clock::Clock;
use anabranch_net::rdca::{DATAGRAM, SINK_PORT, Sense, SenseEvent, bind, run_sense, sender_config};
use anabranch_secure::datagram::{AnyProof, Name};
use anabranch_secure::entropy;
use anabranch_units::{Rate, Span};
use serde::Serialize;

use self::source::{Framing, Source};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::keys::OfSense;
use crate::log::{Entry, Logging};
use crate::metrics::{Kind, Metrics, Page};
use crate::output;
use crate::service::{self, Signals, Stop};

/// How often the sink's name is resolved again while the sink does not answer.
const SILENCE: std::time::Duration = std::time::Duration::from_secs(15);

/// Options of `sense`.
///
/// Each record is sent until the sink's output has it. At the end of the input the program waits
/// until all are confirmed.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Sink; the default port is 47300
    #[arg(long, value_name = "HOST[:PORT]")]
    to: Endpoint,
    #[command(flatten)]
    keys: OfSense,
    /// Name of this sender, unique among those of one key: 1 to 32 letters, digits, `.`, `_` or `-`
    /// [default: the host's name]
    #[arg(long, value_name = "NAME")]
    name: Option<Name>,
    /// Read records from this file or FIFO [default: standard input].
    ///
    /// A FIFO does not end when its last writer closes it; a line without a line feed then
    /// continues with what the next writer writes.
    #[arg(long, value_name = "PATH")]
    from: Option<PathBuf>,
    /// Where a record ends: at the end of a line, or after as many bytes as the 4 bytes before it
    /// say, in big-endian order
    #[arg(long, value_name = "FRAMING", value_enum, default_value_t = Framing::Lines)]
    framing: Framing,
    /// Limit on the rate of records, as in "40 kbit/s" [default: no limit]
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Length limit of UDP datagrams in bytes
    #[arg(long, value_name = "BYTES", default_value_t = DATAGRAM, value_parser = clap::value_parser!(u16).range(100..=65_000))]
    datagram: u16,
    /// Number of datagrams kept until they are confirmed; while all are in use, no input is read
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u16).range(4..=30_000))]
    queue: u16,
    /// After SIGINT or SIGTERM, wait at most this long for confirmations
    #[arg(long, value_name = "DURATION", default_value = "5 s")]
    linger: Span,
    /// Print a JSON object with the result on standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    logging: Logging,
    /// Serve metrics and health over HTTP at this address (default port 47202).
    ///
    /// The paths are /metrics, in the format of Prometheus, and /healthz.
    #[arg(long, value_name = "ADDR[:PORT]")]
    metrics: Option<Endpoint>,
    /// Check the options, read the keys and resolve the names, then exit
    #[arg(long)]
    check: bool,
}

/// The result of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    sender: String,
    run: String,
    /// Records read from the input, without those that are too long.
    records: u64,
    confirmed: u64,
    too_long: u64,
    /// Bytes after the last record that were read before the end of the program.
    unfinished_bytes: u64,
    repeated_packets: u32,
}

/// Sends the input's records.
///
/// # Errors
/// The options conflict, a key or the input cannot be read, or records were given up.
pub fn main(arguments: Arguments) -> Result<(), Error> {
    arguments.logging.start("sense");
    let proof = arguments.keys.proof()?;
    let to = arguments.to.resolve(SINK_PORT)?;
    let name = arguments.name.map_or_else(host_name, Ok)?;
    if let Some(path) = &arguments.from {
        source::check(path)?;
    }
    if arguments.check {
        return service::checked("sense");
    }
    let mut run = [0; 8];
    let no_entropy = |e| Error::missing(format!("{e}"));
    entropy(&mut run).map_err(no_entropy)?;
    let run = u64::from_be_bytes(run);
    let is_insecure = matches!(proof, AnyProof::Clear);
    let config = sender_config(arguments.datagram, arguments.queue);
    let cap = arguments.rate.map(|Rate(rate)| rate);
    let sense = RefCell::new(Sense::new(config, proof, (&name, run), cap, entropy));
    let longest = sense.borrow().longest();
    service::runtime()?.block_on(async {
        let mut signals = Signals::catch()?;
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }.parse().expect("an address");
        let socket = bind(any).await.map_err(|e| service::cannot_listen(any, &e))?;
        let metrics = Metrics::bind(arguments.metrics.as_ref()).await?;
        metrics.announce();
        Entry::info("sending", format!("sends as {name}, run {run:016x}, to {to}")).write();
        if is_insecure {
            Entry::info("insecure", "--insecure: nothing is encrypted; for trusted networks only").write();
        }
        service::ready();
        let (source, mut records) = Source::start(arguments.from.as_deref(), arguments.framing, longest)?;
        let clock = Clock::start();
        let mut connections = 0_u64;
        let tell = |event| {
            if let SenseEvent::Connected = event {
                connections += 1;
                let message = if connections == 1 { "connected" } else { "connected again" };
                Entry::info("connected", message).write();
            }
        };
        let page = || page(&sense.borrow(), source.too_long());
        let health = || Ok(());
        let at = Cell::new(to);
        let follow = async {
            let mut is_told = false;
            loop {
                tokio::time::sleep(SILENCE).await;
                let is_silent = |at| clock.now().saturating_since(at) >= Duration::from_secs(10);
                let is_lost = {
                    let machine = sense.borrow();
                    !machine.is_connected() || machine.silent_since().is_some_and(is_silent)
                };
                if is_lost && !is_told {
                    let hint = "check that the sink runs, that it accepts this sender's key, and --sink-key";
                    let message = format!("no answer from {}; records wait", at.get());
                    Entry::warning("no answer", message).hinted(hint).write();
                }
                is_told = is_lost;
                if is_lost {
                    let found = arguments.to.resolve_again(SINK_PORT, at.get()).await;
                    if at.replace(found) != found {
                        Entry::info("sink moved", format!("{} is now {found}", arguments.to.text())).write();
                    }
                }
            }
        };
        let (outcome, stop) = {
            let work = run_sense((&socket, &at), &clock, &sense, &mut records, tell);
            tokio::pin!(work);
            let first = tokio::select! {
                outcome = &mut work => Ok(outcome),
                () = metrics.serve(page, health) => unreachable!("it serves for ever"),
                () = follow => unreachable!("it follows for ever"),
                stop = signals.first() => Err(stop),
            };
            match first {
                Ok(outcome) => (Some(outcome), None),
                Err(stop) => {
                    source.close();
                    let linger = to_std(arguments.linger);
                    let outcome = tokio::select! {
                        outcome = &mut work => Some(outcome),
                        () = tokio::time::sleep(linger) => None,
                        _ = signals.first() => None,
                    };
                    (outcome, Some(stop))
                }
            }
        };
        let failed = |e| Error::job(format!("cannot read the socket: {e}"));
        let outcome = outcome.transpose().map_err(failed)?;
        let machine = sense.borrow();
        let unconfirmed = machine.unconfirmed();
        let report = Report {
            sender: name.to_string(),
            run: format!("{run:016x}"),
            records: source.read(),
            confirmed: unconfirmed.start,
            too_long: source.too_long(),
            unfinished_bytes: source.unfinished(),
            repeated_packets: machine.info().counters.repeated,
        };
        verdict(&report, arguments.json, outcome, stop, source.failure())
    })
}

/// Prints the report and derives the exit code.
fn verdict(
    report: &Report,
    json: bool,
    outcome: Option<Outcome>,
    stop: Option<Stop>,
    failure: Option<Error>,
) -> Result<(), Error> {
    if json {
        output::json(report)?;
    }
    let Report { records, confirmed, too_long, .. } = report;
    let message = format!("{confirmed} of {records} records confirmed");
    Entry::info("ended", message).write();
    if let Some(failure) = failure {
        return Err(failure);
    }
    if confirmed < records {
        let (first, last) = (confirmed, records - 1);
        let why = match outcome {
            Some(Outcome::Refused(_)) => "the sink refuses this version",
            Some(Outcome::Reset) => "the sink has aborted the stream",
            _ => "no confirmation in time",
        };
        return Err(Error::job(format!("records {first} to {last} are given up: {why}"))
            .with_hint("the sink may have received them; check that it runs and accepts this sender's key"));
    }
    if *too_long > 0 {
        return Err(Error::job(format!("{too_long} records are given up: too long"))
            .with_hint("raise --queue or --datagram; a record has at most 65,525 bytes"));
    }
    if report.unfinished_bytes > 0 {
        let octets = report.unfinished_bytes;
        return Err(Error::job(format!("{octets} bytes of a record whose end was not read are given up")));
    }
    stop.map_or(Ok(()), Stop::verdict)
}

fn page(sense: &Sense<AnyProof>, too_long: u64) -> Page {
    let mut page = Page::of_process();
    let (info, session, unconfirmed) = (sense.info(), sense.session(), sense.unconfirmed());
    let records = [("accepted", unconfirmed.end), ("confirmed", unconfirmed.start), ("too_long", too_long)];
    page.counters("anabranch_sense_records_total", "Records, by state.", "state", &records);
    let packets = [("first", info.counters.packets.into()), ("repeated", info.counters.repeated.into())];
    page.counters("anabranch_sense_packets_total", "Packets sent, by kind.", "kind", &packets);
    let help = "Packets in the queue, not confirmed yet.";
    page.value("anabranch_sense_queue_packets", Kind::Gauge, help, info.queued);
    let help = "Rate that congestion control permits, in bytes per second.";
    page.value("anabranch_sense_rate_bytes", Kind::Gauge, help, info.rate);
    let help = "Round-trip time in seconds.";
    let seconds = info.rtt.as_nanos() as f64 / 1e9;
    page.value("anabranch_sense_round_trip_seconds", Kind::Gauge, help, seconds);
    let help = "Sessions with the sink since the start.";
    page.value("anabranch_sense_sessions_total", Kind::Counter, help, session.completed);
    page
}

/// This host's name, if it can be a sender's.
fn host_name() -> Result<Name, Error> {
    let uname = rustix::system::uname();
    let text = uname.nodename().to_string_lossy().into_owned();
    text.parse().map_err(|error| {
        Error::input(format!("the host's name `{text}` cannot be a sender's: {error}"))
            .with_hint("give a name with --name")
    })
}

fn to_std(Span(duration): Span) -> std::time::Duration {
    let duration: Duration = duration;
    std::time::Duration::from_nanos(duration.as_nanos())
}
