//! `anabranch sink`: collect records from many senders.

mod line;
mod mqtt;
mod output;
mod state;
mod target;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use anabranch_core::rdca::SinkConfig;
use anabranch_core::time::Instant as Moment;
use anabranch_net::clock::Clock;
use anabranch_net::rdca::{Collector, SINK_PORT, bind, outlet, run_sink};
use anabranch_secure::entropy;
use anabranch_units::Size;
use tokio::time::Instant;

use self::mqtt::Broker;
use self::state::State;
use self::target::Target;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::greetings::state_folder;
use crate::keys::OfSink;
use crate::log::{Class, Entry, Limiter, Logging, REPORT_EVERY};
use crate::metrics::{Kind, Metrics, Page};
use crate::say;
use crate::service::{self, Signals};

/// How long the end of the program waits for the output.
const FAREWELL: Duration = Duration::from_secs(5);
/// Part of `--memory` for packets out of order, and for records that wait for the output.
const PART: u64 = 4;

/// Options of `sink`.
///
/// Each record is one JSON object on a line, with sender, run, number, times and payload. So are
/// reports about lost records and ended runs.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Receive at this address and port
    #[arg(long, value_name = "ADDR[:PORT]", default_value = "[::]:47300")]
    listen: Endpoint,
    /// Append records to this file [default: standard output].
    ///
    /// A file is read again after a restart, so that no record is in it twice. SIGHUP opens it
    /// again, for log rotation.
    #[arg(long, value_name = "FILE", group = "output")]
    out: Option<PathBuf>,
    /// Write records to the standard input of this shell command
    #[arg(long, value_name = "COMMAND", group = "output")]
    pipe: Option<String>,
    /// Publish records under this topic and the sender's name, with QoS 1 and without TLS.
    ///
    /// A record is acknowledged to its sender when the broker has acknowledged it.
    #[arg(long, value_name = "mqtt://[USER:PASSWORD@]HOST[:PORT]/TOPIC", group = "output")]
    mqtt: Option<Broker>,
    #[command(flatten)]
    keys: OfSink,
    /// Folder for state that must survive a restart [default: $STATE_DIRECTORY,
    /// $XDG_STATE_HOME/anabranch or ~/.local/state/anabranch].
    ///
    /// It holds the number of the next record of each sender.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Limit on senders with a session; at the limit, a new one replaces one that was silent for a
    /// minute
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_senders: u32,
    /// Memory for records: a quarter each for packets out of order and for records that wait for
    /// the output
    #[arg(long, value_name = "SIZE", default_value = "64 MiB")]
    memory: Size,
    /// Do not log senders
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
    /// No socket is opened and no state is read or written.
    #[arg(long)]
    check: bool,
}

/// Collects records until it is stopped.
///
/// # Errors
/// The options conflict, a key or the state cannot be read, or the output fails.
pub fn main(arguments: Arguments) -> Result<(), Error> {
    arguments.logging.start("sink");
    let accepts = arguments.keys.accepts()?;
    let address = arguments.listen.resolve(SINK_PORT)?;
    let Arguments { out, pipe, mqtt, keys, state, max_senders, memory: Size(memory), quiet, metrics, .. } =
        arguments;
    let target = match (out, pipe, mqtt) {
        (Some(path), ..) => Target::File(path),
        (_, Some(command), _) => Target::Command(command),
        (_, _, Some(broker)) => Target::Broker(broker),
        _ => Target::Standard,
    };
    if arguments.check {
        return service::checked("sink");
    }
    let senders = max_senders as usize;
    let folder = state_folder(state.as_deref())
        .ok_or_else(|| Error::input("no folder for state").with_hint("give one with --state, or set HOME"))?;
    let part = usize::try_from(memory / PART).unwrap_or(usize::MAX).max(1 << 16);
    service::runtime()?.block_on(async {
        let (mut signals, mut hangup) = Signals::of_service()?;
        let socket = bind(address).await.map_err(|e| service::cannot_listen(address, &e))?;
        let address = socket.local_addr().map_err(|e| service::cannot_listen(address, &e))?;
        // A sink whose port is taken must not touch the files of the one that has it.
        let state = State::open(&folder, address.port(), &target, 4 * senders)?;
        let clock = Clock::start();
        let no_entropy = |e| Error::missing(format!("{e}"));
        let config = SinkConfig::deployed(senders, part);
        let is_insecure = keys.is_insecure();
        let collector = Collector::new(clock.now(), config, accepts, state.ledger().clone(), entropy);
        let collector = RefCell::new(collector.map_err(no_entropy)?);
        let (outlet, intake) = outlet(part);
        let (give_up, gave_up) = tokio::sync::oneshot::channel();
        let (reopen, reopened) = mpsc::channel();
        let writer = output::start(target, state, intake, reopened, give_up)?;
        let metrics = Metrics::bind(metrics.as_ref()).await?;
        Entry::info("listening", format!("listening on {address}")).write();
        metrics.announce();
        if is_insecure {
            Entry::info("insecure", "--insecure: any sender is accepted; for trusted networks only").write();
        }
        service::ready();
        let log = RefCell::new(Limiter::new(Instant::now()));
        let tell = |entry: &Entry, from: SocketAddr| {
            if let Some(line) = entry.line().filter(|_| !quiet)
                && log.borrow_mut().admit(Instant::now(), (Class::Refused, entry.event()), from.ip(), &line)
            {
                say!("{line}");
            }
        };
        let each = |_: Moment, collector: &mut Collector| {
            while let Some(refusal) = collector.poll_refusal() {
                let message = format!("{} refused: {}", refusal.from, refusal.why);
                tell(&Entry::info("refused", message).with("peer", refusal.from.to_string()), refusal.from);
            }
            while let Some((from, name)) = collector.poll_usurper() {
                let message = format!("{from} refused: the name {name} belongs to another key");
                let hint = "give each sender a name of its own; to move a name to another key, stop the sink and remove the name's lines from the state file";
                tell(&Entry::warning("name taken", message).hinted(hint).with("peer", from.to_string()), from);
            }
        };
        let reload = || {
            let _ = reopen.send(());
            keys.accepts().map(|accepts| collector.borrow_mut().accept(accepts))
        };
        let report = async {
            loop {
                tokio::time::sleep(REPORT_EVERY).await;
                if let Some(left_out) = log.borrow_mut().report(Instant::now()) {
                    Entry::info("left out", left_out).write();
                }
            }
        };
        let page = || page(&collector.borrow(), log.borrow().suppressed());
        let health = || match collector.borrow().is_full() {
            true => Err("the output is behind, and packets are dropped; senders repeat them".to_owned()),
            false => Ok(()),
        };
        let failed = |e| Error::job(format!("cannot read the socket: {e}"));
        let outcome = tokio::select! {
            end = run_sink(&socket, &clock, &collector, outlet, each) => end.map_err(failed),
            _ = gave_up => Ok(()),
            () = report => Ok(()),
            () = hangup.each(reload) => Ok(()),
            () = metrics.serve(page, health) => Ok(()),
            stop = signals.first() => stop.verdict(),
        };
        // The sink's end of the way to the output is gone, so the writer ends after what it has.
        drop(reopen);
        writer.join(FAREWELL).and(outcome)
    })
}

fn page(collector: &Collector, suppressed: u64) -> Page {
    let mut page = Page::of_process();
    let (records, rdca, sessions) = collector.counters();
    page.value("anabranch_sink_senders", Kind::Gauge, "Senders with a session.", collector.senders());
    let help = "Packets held out of order.";
    page.value("anabranch_sink_held_packets", Kind::Gauge, help, collector.held());
    let samples = [
        ("delivered", records.records),
        ("lost", records.lost),
        ("duplicate", records.duplicates),
        ("malformed", records.malformed),
    ];
    page.counters("anabranch_sink_records_total", "Records, by result.", "result", &samples);
    let samples = [
        ("new", rdca.packets),
        ("duplicate", rdca.duplicates),
        ("without_room", rdca.no_room),
        ("held_back", records.held_back),
    ];
    page.counters("anabranch_sink_packets_total", "Packets received, by result.", "result", &samples);
    let samples = [("snack", rdca.snacks), ("congestion", rdca.congestions), ("confirm", rdca.confirms)];
    page.counters("anabranch_sink_messages_total", "Messages sent to senders, by type.", "type", &samples);
    let samples = [
        ("malformed", sessions.malformed),
        ("forged", sessions.forged),
        ("replayed", sessions.replayed),
        ("unknown_session", sessions.unknown),
    ];
    page.counters("anabranch_sink_dropped_total", "Datagrams dropped, by reason.", "reason", &samples);
    let samples = [
        ("cookie", sessions.cookies),
        ("welcome", sessions.welcomes),
        ("refused", sessions.refused + records.usurped),
    ];
    page.counters("anabranch_sink_handshakes_total", "Handshakes, by answer.", "answer", &samples);
    let help = "Changes of senders' addresses.";
    page.value("anabranch_sink_moves_total", Kind::Counter, help, sessions.moved);
    let help = "Log lines that the rate limit left out.";
    page.value("anabranch_log_lines_suppressed_total", Kind::Counter, help, suppressed);
    page
}
