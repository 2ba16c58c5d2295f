//! TCP and RDCA over several hops.

use anabranch_core::aodv;
use anabranch_core::rdca::{self, StreamEnd};
use anabranch_core::tcp;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::packets::{FirstSent, PacketSink, PacketSource, PacketSourceConfig, Spacing};
use anabranch_sim::apps::rdca::{Outcome, RdcaConfig, RdcaSink, RdcaSource, RouteNotices};
use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Sink, pattern};
use anabranch_sim::event::AppId;
use anabranch_sim::packet::NodeId;
use anabranch_sim::sim::{Builder, Fault};
use anabranch_sim::world::Failure;

use super::support::{after, diamond, row, trace};

const TCP: fn() -> tcp::Config = || tcp::Config { mss: 500, ..tcp::Config::default() };

fn rdca(
    builder: &mut Builder,
    (from, to): (NodeId, NodeId),
    packets: u32,
    notices: RouteNotices,
) -> (AppId, AppId) {
    let config = rdca::Config::default();
    let sink = builder.app(to, Instant::ZERO, RdcaSink::new(700, config.sink));
    let source = RdcaSource::new(RdcaConfig {
        to,
        port: 700,
        from_port: 701,
        packets,
        payload: 283,
        interval: Duration::from_millis(75),
        sender: config.sender,
        notices,
    });
    (builder.app(from, after(500), source), sink)
}

#[test]
fn tcp_crosses_three_hops_both_ways_bit_by_bit() {
    let (mut builder, nodes) = row(4, Some(aodv::Config::default()));
    let mut sinks = Vec::new();
    for (from, to, start) in [(0, 3, 0), (3, 0, 50)] {
        sinks.push(builder.app(nodes[to], Instant::ZERO, Sink::keeping(80, TCP())));
        let config = BulkSenderConfig::new(nodes[to], 80, Content::Pattern(10_000), TCP());
        builder.app(nodes[from], after(start), BulkSender::new(config));
    }
    let mut sim = builder.build();
    sim.run_until(after(30_000));
    for sink in sinks {
        let transfers = &sim.app::<Sink>(sink).transfers;
        assert_eq!(transfers.len(), 1);
        assert_eq!(transfers[0].kept, pattern()[..10_000]);
    }
}

#[test]
fn rdca_crosses_three_hops_bit_by_bit() {
    let (mut builder, nodes) = row(4, Some(aodv::Config::default()));
    let (source, sink) = rdca(&mut builder, (nodes[3], nodes[0]), 300, RouteNotices::default());
    let mut sim = builder.build();
    sim.run_until(after(60_000));
    let (source, sink): (&RdcaSource, &RdcaSink) = (sim.app(source), sim.app(sink));
    assert_eq!((sink.arrived.len(), sink.wrong, sink.gone, sink.again), (300, 0, 0, 0));
    assert_eq!(source.outcome.map(|o| o.0), Some(Outcome::Complete));
    assert_eq!(sink.ended, [(nodes[3], StreamEnd::Complete)]);
    assert_eq!((source.made().len(), source.sent().len(), source.waiting()), (300, 300, 0));
    for arrived in &sink.arrived {
        let number = arrived.number as usize;
        let (made, sent) = (source.made()[number], source.sent()[number]);
        assert!(arrived.made == made && made <= sent && sent < arrived.at, "{arrived:?}");
    }
    // 42 bytes of headers and 10 or 20 ms: three hops at 2 Mbit/s.
    let least = sink.arrived.iter().map(|a| a.at.saturating_since(source.sent()[a.number as usize])).min();
    assert!(
        least.unwrap() > Duration::from_millis(5) && least.unwrap() < Duration::from_millis(20),
        "{least:?}"
    );
}

#[test]
fn rdca_loses_nothing_when_a_relay_dies() {
    for notices in [RouteNotices::Heeded, RouteNotices::Ignored] {
        let (mut builder, nodes) = diamond(aodv::Config::default());
        let (source, sink) = rdca(&mut builder, (nodes[0], nodes[3]), 300, notices);
        let mut sim = builder.build();
        sim.run_until(after(8_000));
        let used = if sim.world().network.node_metrics(nodes[1]).forwarded > 50 { 1 } else { 2 };
        sim.inject(Fault::NodeFails(nodes[used], Failure::Silent));
        sim.run_until(after(60_000));
        let (source, sink): (&RdcaSource, &RdcaSink) = (sim.app(source), sim.app(sink));
        assert_eq!((sink.arrived.len(), sink.wrong, sink.gone), (300, 0, 0), "{notices:?}");
        assert_eq!(source.outcome.map(|o| o.0), Some(Outcome::Complete));
    }
}

/// Packets of 288 bytes over TCP at 13.3 per second.
fn packets(builder: &mut Builder, (from, to): (NodeId, NodeId), tcp: tcp::Config) -> (AppId, AppId) {
    let transport = tcp.into();
    let sink = builder.app(to, Instant::ZERO, PacketSink::new(80, 283, transport));
    let source = PacketSource::new(PacketSourceConfig {
        to,
        port: 80,
        packets: 300,
        payload: 283,
        interval: Duration::from_millis(75),
        transport,
        adaptation: None,
        subflows: 1,
    });
    (builder.app(from, after(500), source.spaced(Spacing::Constant)), sink)
}

#[test]
fn evenly_spaced_packets_over_tcp_and_when_they_were_first_sent() {
    let (mut builder, nodes) = row(4, Some(aodv::Config::default()));
    let (source, sink) = packets(&mut builder, (nodes[3], nodes[0]), TCP());
    let mut sim = builder.build();
    sim.observe(FirstSent::new(80, 283));
    sim.run_until(after(60_000));
    let first = sim.take_observer::<FirstSent>().unwrap();
    let (source, sink): (&PacketSource, &PacketSink) = (sim.app(source), sim.app(sink));
    assert_eq!((sink.arrived.len(), sink.wrong), (300, 0));
    let even = source.made().windows(2).all(|p| p[1].saturating_since(p[0]) == Duration::from_millis(75));
    assert!(even);
    for arrived in &sink.arrived {
        let sent = first.time(nodes[3], arrived.number).unwrap();
        assert!(arrived.made <= sent && sent < arrived.at, "{arrived:?} {sent}");
    }
    assert_eq!(first.time(nodes[3], 300), None);
}

/// The second relay of a row fails for 5 s: the connection is told, stands by, and continues
/// without a long time-out.
#[test]
fn a_broken_route_reaches_elfn() {
    let run = |elfn: Option<Duration>| {
        let (mut builder, nodes) = row(4, Some(aodv::Config::default()));
        let (source, sink) = packets(&mut builder, (nodes[3], nodes[0]), tcp::Config { elfn, ..TCP() });
        builder.fault(after(6_000), Fault::NodeFails(nodes[1], Failure::Silent));
        builder.fault(after(11_000), Fault::NodeRecovers(nodes[1]));
        let mut sim = builder.build();
        sim.run_until(after(8_000));
        let world = sim.world();
        let id = world.connections(nodes[3]).next().unwrap();
        let info = world.info(nodes[3], id).unwrap();
        sim.run_until(after(200_000));
        assert_eq!(sim.app::<PacketSink>(sink).arrived.len(), 300);
        (info.route_failures, info.timeouts, sim.app::<PacketSource>(source).finished.unwrap())
    };
    let (failures, timeouts, _) = run(Some(Duration::from_secs(2)));
    assert!(failures > 0 && timeouts == 0, "{failures} notices, {timeouts} time-outs");
    let (failures, timeouts, _) = run(None);
    assert!(failures > 0 && timeouts > 0, "{failures} notices, {timeouts} time-outs");
}

fn busy() -> Vec<u8> {
    let (mut builder, nodes) = diamond(aodv::Config::default());
    rdca(&mut builder, (nodes[0], nodes[3]), 200, RouteNotices::Heeded);
    packets(&mut builder, (nodes[3], nodes[0]), TCP());
    builder.fault(after(4_000), Fault::NodeFails(nodes[1], Failure::Silent));
    builder.fault(after(9_000), Fault::NodeRecovers(nodes[1]));
    builder.fault(after(10_000), Fault::NodeFails(nodes[2], Failure::Silent));
    trace(builder.build(), 20_000)
}

#[test]
fn the_same_seed_makes_the_same_trace_on_any_thread() {
    let here = busy();
    assert!(here.len() > 100_000, "{}", here.len());
    let there = [(); 2].map(|()| std::thread::spawn(busy));
    for thread in there {
        assert!(thread.join().unwrap() == here);
    }
}
