//! Seven sources near an event send to one sink through 100 nodes on IEEE 802.11 with AODV. Prints
//! the results and the time of the simulation.
//!
//! `cargo run --release -p anabranch-sim --example adhoc -- full`. Without `full`, the same rows
//! from short runs.

#![expect(clippy::disallowed_types, reason = "it measures the wall's time")]

use std::io;
use std::time::Instant as Clock;

use anabranch_core::time::{Duration, Instant};
use anabranch_core::{aodv, rdca, tcp};
use anabranch_sim::apps::cbr::{CbrConfig, CbrSink, CbrSource};
use anabranch_sim::apps::packets::{PacketSink, PacketSource, PacketSourceConfig, Spacing};
use anabranch_sim::apps::rdca::{RdcaConfig, RdcaSink, RdcaSource, RouteNotices};
use anabranch_sim::event::AppId;
use anabranch_sim::network::{AdhocConfig, Forwarding, NetworkConfig};
use anabranch_sim::packet::{IpVersion, NodeId};
use anabranch_sim::random::Stream;
use anabranch_sim::sim::{Builder, Simulation};
use anabranch_sim::wifi::{Position, WifiConfig};

#[path = "../benches/support/length.rs"]
mod length;

use length::Length;

const SENDERS: usize = 7;
/// 13.3 packets of 300 bytes per second, including the header of RDCA or as UDP payload: 4 kB/s.
const INTERVAL: Duration = Duration::from_millis(75);

#[derive(Clone, Copy, Debug)]
enum Transport {
    Cbr,
    Rdca,
    NewReno,
}

fn network(wifi: WifiConfig, adhoc: AdhocConfig, seed: u64) -> (Builder, Vec<NodeId>, NodeId) {
    let config = NetworkConfig { ip: IpVersion::V4, ..NetworkConfig::default() };
    let mut builder = Builder::new(config, seed, 0);
    let mut random = Stream::new(seed, 0, "example", "places");
    let places: Vec<_> = (0..100)
        .map(|i| {
            let node = builder.node(&format!("n{i}"), Forwarding::On);
            (node, Position::new(450.0 * random.uniform(), 200.0 * random.uniform()))
        })
        .collect();
    builder.wifi(wifi, adhoc, &places).expect("a radio");
    for (node, _) in &places {
        builder.aodv(*node, aodv::Config::default()).expect("IPv4 on the air");
    }
    // The sink, and the nodes at 100 to 170 m from it, around an event two hops away.
    let sink = places[0];
    let far = |p: &Position| (p.x - sink.1.x).hypot(p.y - sink.1.y);
    let event = places.iter().find(|(_, p)| (120.0..160.0).contains(&far(p))).expect("somebody is there").1;
    let mut near: Vec<_> = places.iter().filter(|(n, p)| *n != sink.0 && far(p) > 100.0).collect();
    let to_event = |p: &Position| (p.x - event.x).hypot(p.y - event.y);
    near.sort_by(|a, b| to_event(&a.1).total_cmp(&to_event(&b.1)));
    (builder, near.iter().take(SENDERS).map(|(n, _)| *n).collect(), sink.0)
}

/// Number of packets that a source makes in this many simulated seconds.
fn packets(seconds: u64) -> u64 {
    seconds * 1000 / INTERVAL.as_millis()
}

fn load(builder: &mut Builder, transport: Transport, sources: &[NodeId], to: NodeId, seconds: u64) -> AppId {
    let packets = packets(seconds) as u32;
    let tcp = tcp::Config { mss: 283, ..tcp::Config::default() };
    let sink = match transport {
        Transport::Cbr => builder.app(to, Instant::ZERO, CbrSink::new(700)),
        Transport::Rdca => builder.app(to, Instant::ZERO, RdcaSink::new(700, rdca::SinkConfig::default())),
        Transport::NewReno => builder.app(to, Instant::ZERO, PacketSink::new(700, 283, tcp.into())),
    };
    for (i, source) in sources.iter().enumerate() {
        let start = Instant::ZERO + Duration::from_millis(1000 + 10 * i as u64);
        let (port, from_port, payload, interval) = (700, 701, 283, INTERVAL);
        match transport {
            Transport::Cbr => {
                let config = CbrConfig { to, port, from_port, packets, payload: 300, interval };
                builder.app(*source, start, CbrSource::new(config));
            }
            Transport::Rdca => {
                let (sender, notices) = (rdca::SenderConfig::default(), RouteNotices::default());
                let config = RdcaConfig { to, port, from_port, packets, payload, interval, sender, notices };
                builder.app(*source, start, RdcaSource::new(config));
            }
            Transport::NewReno => {
                let (transport, adaptation) = (tcp.into(), None);
                let config = PacketSourceConfig {
                    to,
                    port,
                    packets,
                    payload,
                    interval,
                    transport,
                    adaptation,
                    subflows: 1,
                };
                builder.app(*source, start, PacketSource::new(config).spaced(Spacing::Constant));
            }
        }
    }
    sink
}

fn report(sim: &Simulation, transport: Transport, sink: AppId, preset: &str, made: u64, wall: f64) {
    let arrived = match transport {
        Transport::Cbr => &sim.app::<CbrSink>(sink).arrived,
        Transport::Rdca => &sim.app::<RdcaSink>(sink).arrived,
        Transport::NewReno => &sim.app::<PacketSink>(sink).arrived,
    };
    let delays = arrived.iter().map(|a| a.at.saturating_since(a.made).as_secs_f64()).sum::<f64>();
    let network = &sim.world().network;
    let all = || (0..network.node_count() as u32).map(NodeId);
    let interfaces = || all().filter_map(|n| network.adhoc_metrics(n));
    let routers = || all().filter_map(|n| network.aodv(n)).map(|r| *r.counters());
    println!(
        "| {preset} | {transport:?} | {:.3} | {:.3} | {} | {} | {} | {} | {} | {:.2} | {:.3} |",
        arrived.len() as f64 / made as f64,
        delays / arrived.len().max(1) as f64,
        interfaces().map(|m| m.packets).sum::<u64>(),
        interfaces().map(|m| m.routing).sum::<u64>(),
        interfaces().map(|m| m.queue_drops).sum::<u64>(),
        interfaces().map(|m| m.failures).sum::<u64>(),
        routers().map(|c| c.searches).sum::<u64>(),
        sim.events() as f64 / 1e6,
        wall,
    );
}

fn main() -> io::Result<()> {
    let seconds = Length::from_command_line()?.pick(5, 100);
    let made = packets(seconds) * SENDERS as u64;
    println!(
        "| MAC | transport | delivered | delay, s | packets on air | routing | queue drops | link failures | searches | events, million | seconds of CPU |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let presets = [
        ("standard", WifiConfig::dsss(100.0), AdhocConfig::default()),
        ("ns-2", WifiConfig::ns2(100.0), AdhocConfig::ns2()),
    ];
    for (name, wifi, adhoc) in presets {
        for transport in [Transport::Cbr, Transport::Rdca, Transport::NewReno] {
            let begun = Clock::now();
            let (mut builder, sources, to) = network(wifi, adhoc, 1);
            let sink = load(&mut builder, transport, &sources, to, seconds);
            let mut sim = builder.build();
            sim.run_until(Instant::ZERO + Duration::from_secs(seconds + 2));
            report(&sim, transport, sink, name, made, begun.elapsed().as_secs_f64());
        }
    }
    Ok(())
}
