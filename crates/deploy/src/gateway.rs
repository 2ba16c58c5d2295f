//! `anabranch gateway`: relay between senders and nodes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use anabranch_core::set::RelayCounters;
use anabranch_core::time::Duration;
use anabranch_net::set::{
    Allow, GATEWAY_PORT, Gateway, GatewayConfig, GatewayEvent, Gauges, LineError, RefusedCounters,
};
use anabranch_units::{Rate, Size, Span};
use tokio::time::Instant;

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::keys::OfGateway;
use crate::log::{Class, Entry, Limiter, Logging, REPORT_EVERY};
use crate::metrics::{Kind, Metrics, Page};
use crate::say;
use crate::service::{self, Signals};

/// Options of `gateway`.
///
/// The gateway serves senders whose keys it knows. It relays encrypted streams that it can neither
/// read nor change.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Accept senders at this address and port
    #[arg(long, value_name = "ADDR[:PORT]", default_value = "[::]:47201")]
    listen: Endpoint,
    /// Relay to nodes with this address prefix, as in 10.1.0.0/16 or [fd00::/64]:47200-47210.
    ///
    /// The default port is 47200. The option may be repeated; without it the gateway relays to no
    /// node.
    #[arg(long, value_name = "PREFIX[:PORTS]")]
    allow: Vec<Allow>,
    #[command(flatten)]
    keys: OfGateway,
    /// Limit on concurrent sessions; the gateway resets further senders
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// Limit on concurrent sessions per sender address, over IPv6 per /64 [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    per_host: Option<u32>,
    /// Limit on concurrent sessions per node.
    ///
    /// Further senders are told that the gateway is congested and retry later.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    per_node: u32,
    /// Limit on the rate to all nodes together, as in "40 kbit/s" [default: no limit]
    #[arg(long, value_name = "RATE")]
    rate_mesh: Option<Rate>,
    /// Limit on the rate to each node, as in "40 kbit/s" [default: no limit]
    #[arg(long, value_name = "RATE")]
    rate_node: Option<Rate>,
    /// Limit on senders that have not yet identified themselves and named a node.
    ///
    /// Beyond it, the oldest of them is reset.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    half_open: u32,
    /// Memory for the payload of all sessions together.
    ///
    /// Each session gets an equal share, between 32 KiB and 8 MiB.
    #[arg(long, value_name = "SIZE", default_value = "256 MiB")]
    memory: Size,
    /// Reset a session after this time without any data in either direction
    #[arg(long, value_name = "DURATION", default_value = "120 s", value_parser = Span::positive)]
    idle: Duration,
    /// Do not log sessions
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

/// Runs a gateway until it is stopped.
///
/// # Errors
/// The options conflict, a key cannot be read, or the address is not available.
pub fn main(arguments: Arguments) -> Result<(), Error> {
    arguments.logging.start("gateway");
    let door = arguments.keys.door()?;
    let Arguments {
        listen,
        allow,
        keys,
        connections,
        per_host,
        per_node,
        rate_mesh,
        rate_node,
        half_open,
        memory: Size(memory),
        idle,
        quiet,
        metrics,
        check,
        ..
    } = arguments;
    let address = listen.resolve(GATEWAY_PORT)?;
    let connections = connections as usize;
    let config = GatewayConfig {
        door,
        allow,
        connections,
        per_host: per_host.map_or(usize::MAX, |n| n as usize),
        per_node: per_node as usize,
        rate_mesh: rate_mesh.map(|Rate(rate)| rate),
        rate_node: rate_node.map(|Rate(rate)| rate),
        half_open: half_open as usize,
        memory,
        idle,
        ..GatewayConfig::new(address)
    };
    // Half of a session's share may wait in the kernel, half here for the node.
    let part = u64::from(config.session_buffer()) * 2;
    if part.saturating_mul(config.connections as u64) > config.memory {
        let message = format!("--memory {memory} is too small for {} sessions", config.connections);
        return Err(Error::input(message)
            .with_hint(format!("give at least {part} bytes per session, or lower --connections")));
    }
    if check {
        return service::checked("gateway");
    }
    if let Some(door) = &config.door {
        keys.remember(door, address.port());
    }
    service::runtime()?.block_on(async {
        let (mut signals, mut hangup) = Signals::of_service()?;
        let door = config.door.clone();
        let reload = || {
            let Some(door) = &door else { return Ok(()) };
            keys.served().map(|senders| door.reload(senders))
        };
        let rules: Vec<String> = config.allow.iter().map(Allow::to_string).collect();
        let insecure = config.door.is_none();
        let gateway = Gateway::bind(config).map_err(|e| service::cannot_listen(address, &e))?;
        let address = gateway.address().map_err(|e| service::cannot_listen(address, &e))?;
        let metrics = Metrics::bind(metrics.as_ref()).await?;
        Entry::info("listening", format!("listening on {address}")).write();
        metrics.announce();
        match rules.is_empty() {
            true => {
                let message = "no --allow given: no node can be reached; add --allow PREFIX[:PORTS]";
                Entry::warning("no allow", message).write();
            }
            false => Entry::info("allow", format!("relays to {}", rules.join(", "))).write(),
        }
        if insecure {
            Entry::info("insecure", "--insecure: any sender is served; for trusted networks only").write();
        }
        service::ready();
        let log = RefCell::new(Limiter::new(Instant::now()));
        let (gauges, totals) = (gateway.gauges(), RefCell::new(Totals::default()));
        let tell = |event| {
            let (peer, (class, kind), message) = line(&event);
            totals.borrow_mut().count(kind, &event);
            let entry = Entry::info(kind, message).with("peer", peer.to_string());
            if let Some(line) = entry.line().filter(|_| !quiet)
                && log.borrow_mut().admit(Instant::now(), (class, kind), peer.ip(), &line)
            {
                say!("{line}");
            }
        };
        let report = async {
            loop {
                tokio::time::sleep(REPORT_EVERY).await;
                if let Some(left_out) = log.borrow_mut().report(Instant::now()) {
                    Entry::info("left out", left_out).write();
                }
            }
        };
        let page = || totals.borrow().page(&gauges, log.borrow().suppressed());
        let health = || match gauges.is_deaf() {
            true => Err("cannot accept connections; raise the limit on open files (ulimit -n)".to_owned()),
            false => Ok(()),
        };
        tokio::select! {
            () = gateway.run(tell) => Ok(()),
            () = report => Ok(()),
            () = hangup.each(reload) => Ok(()),
            () = metrics.serve(page, health) => Ok(()),
            stop = signals.first() => stop.verdict(),
        }
    })
}

/// Results of finished sessions, as in the log and the metrics. The metrics contain each of them
/// from the start, so that a rate includes the first count.
const RESULTS: [&str; 7] =
    ["served", "unreachable", "forbidden", "congested", "reset", "without room", "pushed out"];

/// Counters since the start of the gateway.
#[derive(Default)]
struct Totals {
    results: BTreeMap<&'static str, u64>,
    refused: RefusedCounters,
}

impl Totals {
    fn count(&mut self, result: &'static str, event: &GatewayEvent) {
        *self.results.entry(result).or_default() += 1;
        if let GatewayEvent::Ended { refused, .. } = event {
            self.refused += *refused;
        }
    }

    fn page(&self, gauges: &Gauges, suppressed: u64) -> Page {
        let mut page = Page::of_process();
        let name = "anabranch_gateway_sessions";
        page.value(name, Kind::Gauge, "Sessions open now, half-open ones included.", gauges.sessions());
        let results = RESULTS.map(|result| (result, self.results.get(result).copied().unwrap_or(0)));
        let help = "Sessions that ended, by result.";
        page.counters("anabranch_gateway_sessions_total", help, "result", &results);
        let bytes = [("down", gauges.octets_down()), ("up", gauges.octets_up())];
        let help = "Bytes relayed, down to nodes and up to senders.";
        page.counters("anabranch_gateway_relayed_bytes_total", help, "direction", &bytes);
        page.refusals(&self.refused, suppressed);
        page
    }
}

/// The log line of an event, with the sender's address and the kind of the line.
fn line(event: &GatewayEvent) -> (SocketAddr, (Class, &'static str), String) {
    match event {
        GatewayEvent::Full { peer, of_one_host } => {
            let why = match of_one_host {
                false => "--connections is reached",
                true => "--per-host is reached",
            };
            (*peer, (Class::Refused, "without room"), format!("{peer} reset: {why}"))
        }
        GatewayEvent::Evicted { peer } => {
            let line = format!("{peer} reset: not identified while --half-open was reached");
            (*peer, (Class::Refused, "pushed out"), line)
        }
        GatewayEvent::Ended { peer, counters, refused, error } => {
            let RelayCounters { opened, unreachable, forbidden, congested, rejected, octets_down, octets_up } =
                *counters;
            let unreached = ((Class::Refused, "unreachable"), "the node was not reached".to_owned());
            let is_refused = (Class::Refused, "reset");
            let (kind, what) = match (opened, forbidden, rejected) {
                (1.., _, _) => {
                    let what = format!("{octets_down} bytes to the node, {octets_up} back");
                    ((Class::Served, "served"), what)
                }
                (_, 1.., _) => {
                    ((Class::Refused, "forbidden"), "requested a node outside of --allow".to_owned())
                }
                (0, 0, _) if congested > 0 => (
                    (Class::Refused, "congested"),
                    "refused as congested: --per-node is reached, or its turn would be in more than 10 s"
                        .to_owned(),
                ),
                // The node was unreachable, whatever the sender did after the answer.
                (0, 0, _) if unreachable > 0 => unreached,
                (0, 0, _) if refused.total() > refused.silent => (is_refused, "reset".to_owned()),
                (_, _, 1..) => (is_refused, "reset: no request received".to_owned()),
                (0, 0, 0) if refused.silent > 0 => (is_refused, "reset: no request received".to_owned()),
                (0, 0, 0) => unreached,
            };
            // A sender that knows the file is complete closes its connection with acknowledgements
            // unread, which resets it. The same holds for a sender that was told the node is
            // unreachable. Neither is an error.
            let is_end = |e: &LineError| {
                opened + unreachable > 0
                    && e.leg.is_none()
                    && e.error.kind() == io::ErrorKind::ConnectionReset
            };
            let why = error.as_ref().filter(|e| !is_end(e));
            let why = why.map_or(String::new(), |e| format!("; {}: {}", e.peer, e.error));
            (*peer, kind, format!("{peer} {what}{why}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_core::set::Leg;

    use super::*;

    /// A connection error after the end of the work is not logged; an error that prevents the work
    /// is.
    #[test]
    fn a_sender_that_hangs_up_when_all_is_there_leaves_no_error_in_the_log() {
        let [sender, node] = [1, 2].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let said = |opened, leg: Option<Leg>, kind: io::ErrorKind| {
            let counters =
                RelayCounters { opened, octets_down: 300, octets_up: 20, ..RelayCounters::default() };
            let peer = if leg.is_none() { sender } else { node };
            let error = Some(LineError { peer, leg, error: kind.into() });
            let refused = RefusedCounters::default();
            line(&GatewayEvent::Ended { peer: sender, counters, refused, error }).2
        };
        let (reset, silent) = (io::ErrorKind::ConnectionReset, io::ErrorKind::TimedOut);
        assert_eq!(said(1, None, reset), "127.0.0.1:1 300 bytes to the node, 20 back");
        assert!(said(1, None, silent).contains("; 127.0.0.1:1: "));
        assert!(said(1, Some(Leg::Wireless), reset).contains("; 127.0.0.1:2: "));
        assert!(said(0, None, reset).contains("; 127.0.0.1:1: "));
    }

    /// This holds whether the sender stays until it is reset or falls silent.
    #[test]
    fn a_session_whose_node_was_called_in_vain_is_unreachable() {
        let [peer, node] = [1, 2].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        for (rejected, silent) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let counters = RelayCounters { unreachable: 1, rejected, ..RelayCounters::default() };
            let refused = RefusedCounters { silent, ..RefusedCounters::default() };
            let error = io::ErrorKind::ConnectionRefused.into();
            let error = Some(LineError { peer: node, leg: Some(Leg::Wireless), error });
            let (_, (_, kind), said) = line(&GatewayEvent::Ended { peer, counters, refused, error });
            assert_eq!(kind, "unreachable");
            assert_eq!(said, "127.0.0.1:1 the node was not reached; 127.0.0.1:2: connection refused");
        }
    }
}
