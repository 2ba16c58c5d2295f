//! Guarantees for applications: timers, listeners, restarts, the end of a run; and unusual fates of
//! packets.

use anabranch_core::tcp::Config;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::app::{App, Ctx};
use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Outcome, Sink};
use anabranch_sim::link::LinkConfig;
use anabranch_sim::network::{Forwarding, Fragmentation, NetworkConfig};
use anabranch_sim::packet::NodeId;
use anabranch_sim::sim::{Builder, Fault, Pause};
use anabranch_sim::stream::{ConnId, StreamEvent};
use anabranch_sim::world::Failure;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn link() -> LinkConfig {
    LinkConfig::new(1_000_000, Duration::from_millis(10))
}

fn send(to: NodeId, octets: u64, tcp: Config) -> BulkSender {
    BulkSender::new(BulkSenderConfig::new(to, 80, Content::Pattern(octets), tcp))
}

/// Sets its timer according to a plan and records the calls.
struct Clock {
    plan: Vec<Option<Instant>>,
    starts: Vec<Instant>,
    rings: Vec<Instant>,
}

impl App for Clock {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.starts.push(ctx.now());
        for deadline in &self.plan {
            ctx.set_timer(*deadline);
        }
    }

    fn on_stream(&mut self, _: &mut Ctx<'_>, _: ConnId, _: StreamEvent) {}

    fn on_timer(&mut self, ctx: &mut Ctx<'_>) {
        self.rings.push(ctx.now());
        match self.rings.len() {
            1 => ctx.set_timer(Some(at(0))),
            2 => ctx.set_timer(Some(at(500))),
            _ => ctx.stop(),
        }
    }
}

fn clock(plan: &[Option<u64>]) -> Clock {
    Clock { plan: plan.iter().map(|d| d.map(at)).collect(), starts: Vec::new(), rings: Vec::new() }
}

#[test]
fn the_last_deadline_counts_and_a_past_one_is_now() {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let node = builder.node("a", Forwarding::Off);
    let moved = builder.app(node, at(10), clock(&[Some(100), Some(50), None, Some(200)]));
    let never = builder.app(node, at(10), clock(&[Some(100), None]));
    let mut sim = builder.build();
    assert_eq!(sim.run_until_idle(), Pause::Stopped);
    assert_eq!(sim.app::<Clock>(moved).rings, [at(200), at(200), at(500)]);
    assert!(sim.app::<Clock>(never).rings.is_empty());
    assert_eq!((sim.now(), sim.run_until_idle()), (at(500), Pause::Idle));
}

#[test]
fn a_node_that_recovers_starts_its_applications_again() {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let node = builder.node("a", Forwarding::Off);
    let early = builder.app(node, at(10), clock(&[Some(150)]));
    let late = builder.app(node, at(1_000), clock(&[]));
    builder.fault(at(100), Fault::NodeFails(node, Failure::Silent));
    builder.fault(at(300), Fault::NodeRecovers(node));
    let mut sim = builder.build();
    sim.run_until(at(2_000));
    // The timer of the first life is lost; that of the second is already past when it is set.
    assert_eq!(sim.app::<Clock>(early).starts, [at(10), at(300)]);
    assert_eq!(sim.app::<Clock>(early).rings, [at(300), at(300), at(500)]);
    sim.run_until(at(2_000));
    assert_eq!(sim.app::<Clock>(late).starts, [at(1_000)]);
}

/// Listens with a backlog of one half-open connection.
struct Narrow {
    accepted: usize,
}

impl App for Narrow {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        ctx.listen_with_backlog(80, Config::default(), 1).expect("the port is free");
        assert!(ctx.listen(80, Config::default()).is_err(), "a port is listened on once");
    }

    fn on_stream(&mut self, ctx: &mut Ctx<'_>, id: ConnId, event: StreamEvent) {
        match event {
            StreamEvent::Accepted { port: 80, .. } => self.accepted += 1,
            StreamEvent::PeerClosed => ctx.close(id),
            _ => {}
        }
    }
}

#[test]
fn a_full_backlog_makes_the_others_try_again() {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let [a, b] = ["a", "b"].map(|n| builder.node(n, Forwarding::Off));
    builder.cable(a, b, link());
    let narrow = builder.app(b, at(0), Narrow { accepted: 0 });
    let senders: Vec<_> = (0..3).map(|_| builder.app(a, at(0), send(b, 0, Config::default()))).collect();
    let mut sim = builder.build();
    sim.run_until(at(900));
    assert_eq!(sim.app::<Narrow>(narrow).accepted, 1);
    sim.run_until_idle();
    assert_eq!(sim.app::<Narrow>(narrow).accepted, 3);
    assert!(senders.iter().all(|s| sim.app::<BulkSender>(*s).outcome == Outcome::Done));
}

#[test]
fn packets_that_cannot_go_on_are_counted() {
    let mss = Config { mss: 1440, syn_retries: 1, data_retries: 1, ..Config::default() };
    // Too many hops.
    let mut builder = Builder::new(NetworkConfig { hop_limit: 2, ..NetworkConfig::default() }, 1, 0);
    let nodes = ["a", "b", "c", "d"].map(|n| builder.node(n, Forwarding::On));
    nodes.windows(2).for_each(|w| _ = builder.cable(w[0], w[1], link()));
    builder.app(nodes[0], at(0), send(nodes[3], 1, mss));
    let mut sim = builder.build();
    sim.run_until_idle();
    assert_eq!(sim.world().network.node_metrics(nodes[2]).hop_limit, 2);
    // Too large, and fragmentation is forbidden.
    let config = NetworkConfig { fragmentation: Fragmentation::Forbidden, ..NetworkConfig::default() };
    let mut builder = Builder::new(config, 1, 0);
    let [a, b, c] = ["a", "b", "c"].map(|n| builder.node(n, Forwarding::On));
    builder.cable(a, b, link());
    let (narrow, _) = builder.cable(b, c, LinkConfig { mtu: 500, ..link() });
    builder.app(c, at(0), Sink::new(80, mss));
    builder.app(a, at(0), send(c, 5_000, mss));
    let mut sim = builder.build();
    sim.run_until_idle();
    let too_big = sim.world().network.node_metrics(b).too_big;
    assert!(too_big > 0);
    assert_eq!(sim.world().network.link(narrow).metrics().dropped_mtu, too_big);
    // No route: hosts do not forward.
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let [a, b, c] = ["a", "b", "c"].map(|n| builder.node(n, Forwarding::Off));
    builder.cable(a, b, link());
    builder.cable(b, c, link());
    builder.app(a, at(0), send(c, 1, mss));
    let mut sim = builder.build();
    sim.run_until_idle();
    assert_eq!(sim.world().network.node_metrics(a).no_route, 2);
}

#[test]
fn a_pinned_route_is_taken_while_it_is_up() {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let [a, b, c] = ["a", "b", "c"].map(|n| builder.node(n, Forwarding::On));
    builder.cable(a, c, link());
    let (first, _) = builder.cable(a, b, link());
    builder.cable(b, c, link());
    builder.pin_route(a, c, first);
    builder.fault(at(100), Fault::LinkDown(first));
    let mut sim = builder.build();
    let hops = |sim: &anabranch_sim::sim::Simulation| sim.world().network.path(a, c).map(|p| p.len());
    assert_eq!(hops(&sim), Some(2));
    sim.run_until_idle();
    assert_eq!(hops(&sim), Some(1));
}
