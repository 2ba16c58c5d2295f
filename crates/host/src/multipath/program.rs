//! The command: its options, and what it starts.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use anabranch_core::mptcp::SchedulerKind;
use anabranch_core::tcp::CongestionAlgorithm;
use anabranch_core::time::Duration;
use anabranch_deploy::endpoint::Endpoint;
use anabranch_deploy::error::Error;
use anabranch_deploy::log::{Entry, Logging};
use anabranch_deploy::metrics::{self, Metrics};
use anabranch_deploy::programs::{self, definition};
use anabranch_deploy::service::{self, Signals, cannot_listen};
use anabranch_units::{Size, Span, UnitError};
use clap::Command;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::rand::{GetRandomFlags, getrandom};
use tokio::net::TcpListener;
use tokio::task::{LocalSet, spawn_local};

use super::engine::Engine;
use super::links::Links;
use super::proxy::Target;
use super::relay::{self, Entrants, Service};
use super::report::Reports;
use super::stack::Options;
use crate::routes::Routes;

/// Options of `multipath`.
///
/// Programs reach the network through this host by a proxy (SOCKS or HTTP CONNECT) or by forwarded
/// ports. Each of their connections uses all interfaces at once if the peer supports Multipath TCP.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Use this interface; may be repeated.
    ///
    /// [default: all interfaces that are up and have an address]
    #[arg(long, value_name = "IF", value_parser = interface)]
    interface: Vec<String>,
    /// Use this interface only while no other works; may be repeated
    #[arg(long, value_name = "IF", value_parser = interface)]
    backup: Vec<String>,
    /// How data is divided among the interfaces
    #[arg(long, value_name = "SCHEDULER", value_enum, default_value_t = Scheduler::Fastest)]
    scheduler: Scheduler,
    /// Congestion control of each subflow
    #[arg(long, value_name = "ALGORITHM", value_enum, default_value_t = Congestion::Cubic)]
    congestion: Congestion,
    /// Queueing delay that a transfer may cause on an interface while other connections exchange
    /// messages there, 1 ms to 1 s; 0s is unlimited.
    ///
    /// Otherwise the transfer fills the queue of the slowest link, and a request waits behind it.
    /// No effect with BBR, and on interfaces with a round trip of more than twelve times this.
    #[arg(long, value_name = "DURATION", default_value = "10 ms", value_parser = queue_delay)]
    queue_delay: Span,
    /// Serve SOCKS version 5 at this address (default port 1080).
    ///
    /// Without this option and the options `connect`, `forward` and `listen`, the address is
    /// 127.0.0.1:1080.
    #[arg(long, value_name = "ADDR[:PORT]")]
    socks: Vec<Endpoint>,
    /// Serve the method CONNECT of HTTP at this address (default port 8080)
    #[arg(long, value_name = "ADDR[:PORT]")]
    connect: Vec<Endpoint>,
    /// Forward connections to a local address to a destination; may be repeated.
    ///
    /// As in 127.0.0.1:8443=example.org:443; a port alone is one of 127.0.0.1.
    #[arg(long, value_name = "LISTEN=HOST:PORT", value_parser = forward)]
    forward: Vec<Forward>,
    /// Accept connections to this port on all interfaces, and pass them to a server; may be
    /// repeated.
    ///
    /// As in 443=127.0.0.1:443. Peers need no Multipath TCP.
    #[arg(long, value_name = "PORT=HOST:PORT", value_parser = listen)]
    listen: Vec<Listen>,
    /// Allow proxies and forwards at addresses that other hosts reach.
    ///
    /// The proxies have no authentication: everyone who reaches them can use this host's network.
    #[arg(long)]
    allow_remote: bool,
    /// Memory for the buffers of all connections, beyond 64 KiB for each.
    ///
    /// A connection needs the bytes of four round trips of the slowest interface at its full rate.
    #[arg(long, value_name = "SIZE", default_value = "64 MiB")]
    memory: Size,
    /// Print one JSON object each second and at the end: bytes, rate, loss, round-trip time and
    /// share of each interface.
    ///
    /// Without it, a terminal gets a line each second.
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
    /// No device is made and no rule is changed.
    #[arg(long, conflicts_with = "teardown")]
    check: bool,
    /// Remove devices, routes and rules that a killed process has left, and exit
    #[arg(long)]
    teardown: bool,
}

/// The schedulers of `--scheduler`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Scheduler {
    /// The interface with the shortest round-trip time that has room
    Fastest,
    /// Each packet on the interface where it arrives in order
    Predictive,
    /// One packet on each interface in turn
    RoundRobin,
    /// All data on every interface
    Redundant,
    /// As fastest, but a slow interface is left out if it would block the others
    Blest,
    /// By the ratio of delays
    Daps,
}

/// The algorithms of `--congestion`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Congestion {
    /// NewReno (RFC 5681, RFC 6582)
    #[value(name = "newreno")]
    NewReno,
    /// CUBIC (RFC 9438)
    Cubic,
    /// Linked increases (RFC 6356): no faster than one flow where the interfaces share a bottleneck
    Coupled,
    /// TCP Westwood+
    Westwood,
    /// BBR version 3
    Bbr,
}

/// A local address whose connections have one destination.
#[derive(Clone, Debug)]
struct Forward {
    listen: SocketAddr,
    to: Target,
}

/// A port whose connections go to one server.
#[derive(Clone, Debug)]
struct Listen {
    port: u16,
    to: Target,
}

/// The name of an interface, which need not exist yet.
fn interface(text: &str) -> Result<String, String> {
    match text {
        "lo" => Err("the loopback interface reaches no other host".to_owned()),
        // As the kernel's dev_valid_name() and IFNAMSIZ have it.
        "" | "." | ".." => Err("expected the name of an interface".to_owned()),
        _ if text.contains(|c: char| c.is_whitespace() || c == '/' || c == ':') => {
            Err("the name of an interface has no space, slash or colon".to_owned())
        }
        _ if text.len() > 15 => Err("the name of an interface has at most 15 bytes".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// Less than a segment takes at ordinary rates cannot be held, and no one waits for more than a
/// second.
fn queue_delay(text: &str) -> Result<Span, String> {
    let Span(delay) = text.parse().map_err(|error: UnitError| error.to_string())?;
    let good = delay.is_zero() || (Duration::from_millis(1)..=Duration::from_secs(1)).contains(&delay);
    if good { Ok(Span(delay)) } else { Err("expected 1 ms to 1 s, or 0s for no limit".to_owned()) }
}

fn forward(text: &str) -> Result<Forward, String> {
    let expected = "expected LISTEN=HOST:PORT, as in 127.0.0.1:8443=example.org:443";
    let (listen, to) = text.split_once('=').ok_or(expected)?;
    let port = listen.parse().map(|port: u16| SocketAddr::from(([127, 0, 0, 1], port)));
    let listen = port.or_else(|_| listen.parse()).map_err(|_| expected)?;
    Ok(Forward { listen, to: Target::parse(to).ok_or(expected)? })
}

fn listen(text: &str) -> Result<Listen, String> {
    let expected = "expected PORT=HOST:PORT, as in 443=127.0.0.1:443";
    let (port, to) = text.split_once('=').ok_or(expected)?;
    let port = port.parse().ok().filter(|port| *port != 0).ok_or(expected)?;
    Ok(Listen { port, to: Target::parse(to).ok_or(expected)? })
}

/// The program `anabranch-multipath`.
#[must_use]
pub fn program() -> Command {
    definition::<Arguments>("anabranch-multipath", programs::MULTIPATH)
}

/// Runs the host until it is stopped.
///
/// # Errors
/// A privilege or a program is missing, or an address is in use.
pub fn main(arguments: Arguments) -> Result<(), Error> {
    let scheduler = arguments.scheduler.into();
    run(arguments, scheduler)
}

/// As [`main`], with a scheduler that may be a user's own
/// ([`CustomScheduler`](anabranch_core::mptcp::CustomScheduler)).
///
/// # Errors
/// As [`main`].
pub fn run(arguments: Arguments, scheduler: SchedulerKind) -> Result<(), Error> {
    arguments.logging.start("multipath");
    if arguments.teardown {
        return Ok(Routes::tear_down()?);
    }
    named_once(&arguments)?;
    let services = services(&arguments)?;
    if arguments.check {
        return service::checked("multipath");
    }
    let mut options = Options::new(secret()?);
    options.memory = arguments.memory.0;
    options.queue_delay = Some(arguments.queue_delay.0).filter(|delay| !delay.is_zero());
    // Each connection has a socket of the kernel, and each client that has none yet.
    let descriptors = descriptors();
    let entrants = MOST_ENTRANTS.min(descriptors / 4);
    let others = OTHER_DESCRIPTORS + entrants;
    options.connections = options.connections.min(descriptors.saturating_sub(others));
    options.accepted = options.connections / 2;
    options.config.scheduler = scheduler;
    options.config.tcp.congestion = arguments.congestion.into();
    let runtime = service::runtime()?;
    let outcome = LocalSet::new().block_on(&runtime, serve(&arguments, services, options, entrants));
    // A report that is not read must not hold back the end.
    runtime.shutdown_background();
    outcome
}

async fn serve(
    arguments: &Arguments,
    services: Vec<(SocketAddr, Service)>,
    options: Options,
    entrants: usize,
) -> Result<(), Error> {
    let mut signals = Signals::catch()?;
    let metrics = Metrics::bind(arguments.metrics.as_ref()).await?;
    let (engine, mut accepted) = Engine::new(options);
    let mut listeners = Vec::new();
    for (address, service) in services {
        let listener = TcpListener::bind(address).await.map_err(|error| cannot_listen(address, &error))?;
        listeners.push((listener, service));
    }
    let ports: Vec<u16> = arguments.listen.iter().map(|listen| listen.port).collect();
    engine.stack(|stack| ports.iter().for_each(|port| stack.listen(*port)));
    let names = RefCell::default();
    let links = Links::open(Rc::clone(&engine), &names, &arguments.interface, &arguments.backup, ports)?;
    // A share for each listener, so that the clients of one do not keep others out. Its next client
    // has a descriptor, too.
    let share = (entrants / listeners.len().max(1)).max(1);
    for (listener, service) in listeners {
        if let Ok(address) = listener.local_addr() {
            Entry::info("listening", format!("{}: listening on {address}", service.name())).write();
        }
        let entrants = Entrants::new(share);
        let service = relay::serve(Rc::clone(&engine), listener, service, entrants, arguments.allow_remote);
        spawn_local(service);
    }
    for Listen { port, to } in &arguments.listen {
        Entry::info("listening", format!("passing to {to}: listening on port {port}")).write();
    }
    metrics.announce();
    service::ready();
    let pass = async {
        while let Some((id, port, _)) = accepted.recv().await {
            // Dropping the stream aborts the connection.
            let stream = engine.accept(id);
            if let Some(listen) = arguments.listen.iter().find(|listen| listen.port == port) {
                spawn_local(relay::pass(stream, listen.to.clone()));
            }
        }
    };
    let reports = Reports::new(&engine, &names);
    let outcome = tokio::select! {
        () = engine.run() => Ok(()),
        () = pass => Ok(()),
        failed = links.follow() => Err(failed),
        () = reports.each_second(arguments.json) => Ok(()),
        () = metrics.serve(|| reports.page(), || Ok(())) => Ok(()),
        stop = signals.first() => stop.verdict(),
    };
    let last = arguments.json.then(|| reports.report());
    // Before anything that takes long.
    engine.stop().await;
    if let Some(last) = last {
        reports.finish(last).await;
    }
    outcome
}

/// Refuses an interface that is named twice: it cannot be a backup and none.
fn named_once(Arguments { interface, backup, .. }: &Arguments) -> Result<(), Error> {
    let twice = |names: &[String]| {
        let again = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name));
        again.map(|(_, name)| name.clone())
    };
    let (message, hint) = if let Some(both) = interface.iter().find(|name| backup.contains(name)) {
        let message = format!("the interface {both} is named by --interface and by --backup");
        (message, "leave one of them out: an interface of --backup is also used, while no other works")
    } else if let Some(again) = twice(interface).or_else(|| twice(backup)) {
        (format!("the interface {again} is named twice"), "name each interface once")
    } else {
        return Ok(());
    };
    Err(Error::input(message).with_hint(hint))
}

/// The addresses at which programs are served.
fn services(arguments: &Arguments) -> Result<Vec<(SocketAddr, Service)>, Error> {
    let mut services = Vec::new();
    for endpoint in &arguments.socks {
        services.push((endpoint.resolve(SOCKS_PORT)?, Service::Socks));
    }
    for endpoint in &arguments.connect {
        services.push((endpoint.resolve(CONNECT_PORT)?, Service::Connect));
    }
    for Forward { listen, to } in &arguments.forward {
        services.push((*listen, Service::Forward(to.clone())));
    }
    if services.is_empty() && arguments.listen.is_empty() {
        services.push((SocketAddr::from(([127, 0, 0, 1], SOCKS_PORT)), Service::Socks));
    }
    let named = services.iter().map(|(address, service)| (*address, service.name()));
    let everywhere = |port| SocketAddr::from(([0, 0, 0, 0], port));
    let ports =
        arguments.listen.iter().map(|Listen { port, to }| (everywhere(*port), format!("passing to {to}")));
    let metrics = arguments.metrics.as_ref().map(|endpoint| endpoint.resolve(metrics::PORT)).transpose()?;
    let metrics = metrics.map(|address| (address, "metrics".to_owned()));
    let all: Vec<_> = named.clone().chain(metrics.clone()).collect();
    // Packets to a port of `listen` pass loopback addresses by.
    let outside = |(address, _): &(SocketAddr, String)| !address.ip().is_loopback();
    let outer: Vec<_> = named.chain(metrics).filter(outside).chain(ports).collect();
    if let Some((first, second, address)) = clash(&all).or_else(|| clash(&outer)) {
        let message = format!("two services want port {}: {first}, and {second}", address.port());
        return Err(Error::input(message).with_hint("choose another port or address for one of them"));
    }
    let open = services.iter().find(|(address, _)| !address.ip().is_loopback());
    match open {
        Some((address, _)) if !arguments.allow_remote => {
            let message = format!("{address} can be reached by other hosts, and has no authentication");
            Err(Error::input(message).with_hint("use a loopback address, or add --allow-remote"))
        }
        _ => Ok(services),
    }
}

/// The two that cannot listen at the same time, of addresses with what listens there.
fn clash(services: &[(SocketAddr, String)]) -> Option<(&str, &str, SocketAddr)> {
    let covers = |a: &SocketAddr, b: &SocketAddr| {
        // On Linux, [::] is for IPv4 too.
        a.ip().to_canonical() == b.ip().to_canonical()
            || (a.ip().is_unspecified() && (a.is_ipv6() || b.is_ipv4()))
    };
    services.iter().enumerate().find_map(|(i, (b, second))| {
        let same = |(a, _): &&(SocketAddr, String)| {
            a.port() == b.port() && a.port() != 0 && (covers(a, b) || covers(b, a))
        };
        services[..i].iter().find(same).map(|(_, first)| (first.as_str(), second.as_str(), *b))
    })
}

/// Raises the limit on descriptors as far as the system permits, and returns it.
fn descriptors() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit { current: limit.maximum, ..limit };
    let limit = if setrlimit(Resource::Nofile, most).is_ok() { most } else { limit };
    limit.current.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// The kernel's entropy.
fn secret() -> Result<[u8; 32], Error> {
    let mut secret = [0; 32];
    match getrandom(&mut secret[..], GetRandomFlags::empty()) {
        Ok(32) => Ok(secret),
        _ => Err(Error::missing("the kernel gives no random numbers")),
    }
}

impl From<Scheduler> for SchedulerKind {
    fn from(scheduler: Scheduler) -> Self {
        match scheduler {
            Scheduler::Fastest => Self::FastestRtt,
            Scheduler::Predictive => Self::Predictive,
            Scheduler::RoundRobin => Self::RoundRobin,
            Scheduler::Redundant => Self::Redundant,
            Scheduler::Blest => Self::Blest,
            Scheduler::Daps => Self::Daps,
        }
    }
}

impl From<Congestion> for CongestionAlgorithm {
    fn from(congestion: Congestion) -> Self {
        match congestion {
            Congestion::NewReno => Self::NewReno,
            Congestion::Cubic => Self::Cubic,
            Congestion::Coupled => Self::Coupled,
            Congestion::Westwood => Self::Westwood,
            Congestion::Bbr => Self::Bbr,
        }
    }
}

/// Port of SOCKS (RFC 1928 section 3).
const SOCKS_PORT: u16 = 1080;
/// Limit on clients whose connection is not open yet; further ones wait in the kernel.
const MOST_ENTRANTS: usize = 1024;
/// Descriptors for devices, listeners and programs.
const OTHER_DESCRIPTORS: usize = 64;
/// A common port of HTTP proxies.
const CONNECT_PORT: u16 = 8080;
