//! Packets over the radio: 6LoWPAN, paths, and TCP above both.

use std::cell::RefCell;
use std::collections::BTreeSet;

use anabranch_core::mptcp::scheduler::{Demand, PathView, Pick, Scheduler};
use anabranch_core::mptcp::{self, CustomScheduler, PathFacts, SchedulerKind};
use anabranch_core::paths::{self, NodeType};
use anabranch_core::tcp;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::app::{App, Ctx};
use anabranch_sim::apps::packets::{PacketSink, PacketSource, PacketSourceConfig};
use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Sink};
use anabranch_sim::event::AppId;
use anabranch_sim::network::{Forwarding, NetworkConfig, WirelessConfig};
use anabranch_sim::packet::NodeId;
use anabranch_sim::radio::{LogDistance, Position, RadioConfig, Station};
use anabranch_sim::sim::{Builder, Fault, Simulation};
use anabranch_sim::stream::{ConnId, StreamEvent};
use anabranch_sim::world::Failure;
use bytes::Bytes;

/// A row of nodes 80 m apart with a range of 100 m, the root first.
fn row(nodes: usize, radio: RadioConfig, routers: bool) -> (Builder, Vec<NodeId>) {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let ids: Vec<NodeId> = (0..nodes).map(|i| builder.node(&format!("n{i}"), Forwarding::On)).collect();
    let places: Vec<_> =
        ids.iter().enumerate().map(|(i, &n)| (n, Position { x: 80.0 * i as f64, y: 0.0 })).collect();
    builder.radio(radio, WirelessConfig::default(), &places).expect("a radio");
    if routers {
        for (i, &node) in ids.iter().enumerate() {
            builder.router(node, paths::Config::default(), (i > 0).then_some(NodeType::Ieee802154));
        }
    }
    (builder, ids)
}

fn transfer(builder: &mut Builder, from: NodeId, to: NodeId, octets: u64, start: u64) -> AppId {
    let tcp = tcp::Config { mss: 100, ..tcp::Config::paper() };
    let sink = builder.app(to, Instant::ZERO, Sink::new(80, tcp));
    let config = BulkSenderConfig::new(to, 80, Content::Pattern(octets), tcp);
    builder.app(from, Instant::ZERO + Duration::from_secs(start), BulkSender::new(config));
    sink
}

fn run(builder: Builder, seconds: u64) -> Simulation {
    let mut sim = builder.build();
    sim.run_until(Instant::ZERO + Duration::from_secs(seconds));
    sim
}

#[test]
fn tcp_crosses_three_hops_in_pieces_and_whole() {
    for radio in [RadioConfig::o_qpsk(100.0), RadioConfig::sun_fsk(100.0)] {
        let (mut builder, ids) = row(4, radio, false);
        let sink = transfer(&mut builder, ids[3], ids[0], 10_000, 0);
        let sim = run(builder, 600);
        assert_eq!(sim.app::<Sink>(sink).bytes(), 10_000);
        let pieces = sim.world().network.wireless_metrics(ids[2]).expect("on air").joined;
        assert_eq!(pieces > 0, radio.phy.max_psdu == 127, "{pieces}");
        println!("{}", sim.now());
    }
}

#[test]
fn paths_form_over_the_radio_and_carry_tcp_both_ways() {
    let (mut builder, ids) = row(5, RadioConfig::o_qpsk(100.0), true);
    let up = transfer(&mut builder, ids[4], ids[0], 5_000, 60);
    let down = transfer(&mut builder, ids[0], ids[3], 5_000, 60);
    let across = transfer(&mut builder, ids[2], ids[4], 5_000, 60);
    let sim = run(builder, 900);
    for node in &ids {
        println!(
            "{node:?} {:?} {:?}",
            sim.world().network.own_paths(*node),
            sim.world().network.router(*node).map(|r| r.counters())
        );
    }
    for sink in [up, down, across] {
        assert_eq!(sim.app::<Sink>(sink).bytes(), 5_000);
    }
}

/// The root, two relays, and a source that hears only the relays.
fn diamond(subflows: usize, scheduler: SchedulerKind) -> (Builder, Vec<NodeId>, AppId, AppId) {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let places = [(0.0, 0.0), (80.0, 40.0), (80.0, -40.0), (160.0, 0.0)];
    let ids: Vec<NodeId> = (0..4).map(|i| builder.node(&format!("n{i}"), Forwarding::On)).collect();
    let sites: Vec<_> = ids.iter().zip(places).map(|(&n, (x, y))| (n, Position { x, y })).collect();
    builder.radio(RadioConfig::sun_fsk(100.0), WirelessConfig::default(), &sites).expect("a radio");
    for (i, &node) in ids.iter().enumerate() {
        builder.router(node, paths::Config::default(), (i > 0).then_some(NodeType::Ieee802154));
    }
    let tcp = tcp::Config { mss: 120, timestamps: false, ..tcp::Config::default() };
    let transport = mptcp::Config { tcp, scheduler, ..mptcp::Config::default() }.into();
    let sink = builder.app(ids[0], Instant::ZERO, PacketSink::new(80, 100, transport));
    let source = PacketSource::new(PacketSourceConfig {
        to: ids[0],
        port: 80,
        packets: 300,
        payload: 100,
        interval: Duration::from_millis(200),
        transport,
        adaptation: None,
        subflows,
    });
    let source = builder.app(ids[3], Instant::ZERO + Duration::from_secs(60), source);
    (builder, ids, sink, source)
}

/// The fastest-RTT scheduler, which also records the model's round trips for each subflow.
#[derive(Debug)]
struct Watching;

thread_local! {
    static TOLD: RefCell<BTreeSet<(usize, Duration)>> = const { RefCell::new(BTreeSet::new()) };
}

impl Scheduler for Watching {
    fn pick(&mut self, demand: &Demand, paths: &[PathView]) -> Pick {
        let rtts = paths.iter().filter_map(|path| Some((path.index, path.facts.rtt?)));
        TOLD.with_borrow_mut(|told| told.extend(rtts));
        let open = paths.iter().filter(|path| demand.unsent > 0 && path.takes(demand.unsent));
        let fastest = open.min_by_key(|path| path.rtt);
        fastest.map_or(Pick::Wait, |path| Pick::Send { index: path.index, skip: 0 })
    }
}

#[test]
fn several_subflows_are_told_how_their_paths_are_by_now() {
    let scheduler = SchedulerKind::Custom(CustomScheduler::new("watching", |()| Box::new(Watching)));
    let (builder, _, sink, _) = diamond(2, scheduler);
    let sim = run(builder, 300);
    assert_eq!(sim.app::<PacketSink>(sink).arrived.len(), 300);
    let of = |index| TOLD.with_borrow(|told| told.iter().filter(|(i, _)| *i == index).count());
    // Nodes measure every other second; the packets take a minute.
    assert!(of(0) > 5 && of(1) > 5, "{} and {} round trips", of(0), of(1));
}

/// Every packet is finally delivered, in order and once, when a relay fails during the transfer and
/// when it recovers. The source sometimes asks for the facts about its first path, and for the
/// duration of a handshake on it.
#[derive(Default)]
struct Curious {
    to: Option<NodeId>,
    heard_before_start: bool,
    started: bool,
    facts: PathFacts,
    measured: Vec<f64>,
}

impl App for Curious {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.started = true;
        self.on_timer(ctx);
    }

    fn on_paths(&mut self, _: &mut Ctx<'_>) {
        self.heard_before_start |= !self.started;
    }

    fn on_stream(&mut self, ctx: &mut Ctx<'_>, id: ConnId, event: StreamEvent) {
        if event == StreamEvent::Opened {
            self.measured.extend(ctx.info(id).and_then(|info| info.srtt).map(|rtt| rtt.as_secs_f64()));
            ctx.abort(id);
        }
    }

    fn on_timer(&mut self, ctx: &mut Ctx<'_>) {
        let first = ctx.paths().next().map(|path| path.id);
        if let Some(path) = first {
            self.facts = ctx.path_facts(path, 100);
        }
        let to = self.to.expect("it was told");
        ctx.connect(to, 80, tcp::Config::default()).expect("a port is free");
        ctx.set_timer(Some(ctx.now() + Duration::from_secs(1)));
    }
}

#[test]
fn a_node_knows_the_round_trip_of_its_paths_before_it_has_sent_anything() {
    for hops in [1, 3] {
        // One hop for carrier sense, which reaches all nodes.
        let (mut builder, ids) = row(hops + 1, RadioConfig::sun_fsk(100.0), true);
        let sink = Sink::new(80, tcp::Config::default());
        builder.app(ids[0], Instant::ZERO, sink);
        let curious = Curious { to: Some(ids[0]), ..Curious::default() };
        let curious = builder.app(ids[hops], Instant::ZERO + Duration::from_secs(120), curious);
        let sim = run(builder, 320);
        let curious: &Curious = sim.app(curious);
        assert!(curious.started && !curious.heard_before_start);
        assert_eq!(curious.facts.hops, Some(hops as u16));
        let mean = curious.measured.iter().sum::<f64>() / curious.measured.len() as f64;
        let expected = curious.facts.rtt.expect("every link is known").as_secs_f64();
        assert!((expected / mean - 1.0).abs() < 0.2, "{hops} hops: {expected} s expected, {mean} s measured");
        // 100 bytes at 100 kbit/s, once for each hop; with headers at least 12 ms.
        assert_eq!(curious.facts.payload_time, Some(Duration::from_millis(8 * hops as u64)));
        let service = curious.facts.service_time.expect("the first link is known").as_secs_f64();
        assert!(service > 0.012 && service < 0.03, "{service}");
    }
}

#[test]
fn a_relay_that_dies_takes_no_packet_with_it() {
    for subflows in [1, 2] {
        for relay in [1, 2] {
            let (mut builder, ids, sink, source) = diamond(subflows, SchedulerKind::FastestRtt);
            let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
            builder.fault(at(80), Fault::NodeFails(ids[relay], Failure::Silent));
            builder.fault(at(400), Fault::NodeRecovers(ids[relay]));
            let mut sim = builder.build();
            sim.run_until(at(60));
            assert_eq!(sim.world().network.own_paths(ids[3]).len(), 2, "a path by each relay");
            sim.run_until(at(1800));
            let sink: &PacketSink = sim.app(sink);
            let case = format!("{subflows} subflows, relay {relay}");
            assert_eq!((sink.arrived.len(), sink.wrong), (300, 0), "{case}");
            assert!(sim.app::<PacketSource>(source).finished.is_some(), "{case}");
            let relays = |paths: &[paths::OwnPath]| paths.iter().map(|p| p.nodes[1]).collect::<Vec<_>>();
            let now = relays(sim.world().network.own_paths(ids[3]));
            assert_eq!(now.len(), 2, "{case}: both are back: {now:?}");
        }
    }
}

/// At 76 m one in five frames of 127 bytes arrives; a node midway receives from both without
/// losses.
#[test]
fn static_routes_prefer_two_good_hops_to_a_bad_one() {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let ids: Vec<NodeId> = (0..3).map(|i| builder.node(&format!("n{i}"), Forwarding::On)).collect();
    let sites: Vec<_> =
        ids.iter().zip([0.0, 76.0, 38.0]).map(|(&n, x)| (n, Position { x, y: 0.0 })).collect();
    let model = LogDistance { shadowing_db: 0.0, ..LogDistance::default() };
    let radio = RadioConfig::o_qpsk(1.0).with_log_distance(model);
    builder.radio(radio, WirelessConfig::default(), &sites).expect("a radio");
    let sink = transfer(&mut builder, ids[0], ids[1], 5_000, 0);
    let sim = run(builder, 60);
    let network = &sim.world().network;
    assert!(network.find_link(ids[0], ids[1]).is_some(), "they hear each other");
    assert_eq!(network.path(ids[0], ids[1]).expect("a way").len(), 2);
    assert_eq!(sim.app::<Sink>(sink).bytes(), 5_000);
}

/// Sends packets to the root faster than the channel can carry them.
struct Flood {
    to: NodeId,
}

impl App for Flood {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.on_timer(ctx);
    }

    fn on_stream(&mut self, _: &mut Ctx<'_>, _: ConnId, _: StreamEvent) {}

    fn on_timer(&mut self, ctx: &mut Ctx<'_>) {
        ctx.send_datagram(self.to, 4000, 4000, Bytes::from_static(&[0; 60])).expect("a short datagram");
        ctx.set_timer(Some(ctx.now() + Duration::from_millis(100)));
    }
}

/// 40 nodes that all hear each other and the root offer more than the channel can carry: 400
/// packets per second. With the paper's rule, under which a link works or does not, no path is
/// lost. The ETX counts collisions, so it may sometimes end a path.
#[test]
fn a_busy_channel_is_no_sign_that_a_neighbour_is_gone() {
    assert_eq!(paths_lost_on_a_busy_channel(paths::Config::paper()), 0);
    let lost = paths_lost_on_a_busy_channel(paths::Config::default());
    assert!(lost < 10, "{lost} of the paths of 40 nodes");
}

fn paths_lost_on_a_busy_channel(config: paths::Config) -> u64 {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let ids: Vec<NodeId> = (0..41).map(|i| builder.node(&format!("n{i}"), Forwarding::On)).collect();
    let places = crate::air::star(40, 20.0);
    let sites: Vec<_> = ids.iter().zip(places).map(|(&n, (x, y))| (n, Position { x, y })).collect();
    builder.radio(RadioConfig::o_qpsk(100.0), WirelessConfig::default(), &sites).expect("a radio");
    for (i, &node) in ids.iter().enumerate() {
        builder.router(node, config, (i > 0).then_some(NodeType::Ieee802154));
        if i > 0 {
            builder.app(node, Instant::ZERO + Duration::from_secs(60), Flood { to: ids[0] });
        }
    }
    let sim = run(builder, 540);
    let network = &sim.world().network;
    let radio = network.radio().expect("on air");
    let refused: u64 = (1..41).map(|s| radio.metrics(Station(s)).channel_access_failures).sum();
    let unanswered: u64 = (1..41).map(|s| radio.metrics(Station(s)).no_ack).sum();
    let lost: u64 = ids.iter().map(|&n| network.router(n).expect("a router").counters().lost).sum();
    println!("{refused} channel access failures, {unanswered} without acknowledgement, {lost} paths lost");
    assert!(refused > 10_000, "saturated");
    lost
}
