//! Networks shared by benchmarks and tests that count their costs.

#![allow(dead_code, unreachable_pub, reason = "each benchmark uses its part")]

use anabranch_core::set::{Energy, Gateway, Outcome, ReceiverConfig, RelayConfig, SenderConfig};
use anabranch_core::tcp;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::address::address_of;
use anabranch_sim::apps::set::{GATEWAY_PORT, SetNode, SetRelay, SetSender, SetSenderConfig};
use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Sink};
use anabranch_sim::event::AppId;
use anabranch_sim::link::{LinkConfig, QueueLimit};
use anabranch_sim::network::{Forwarding, NetworkConfig};
use anabranch_sim::packet::{IpVersion, NodeId};
use anabranch_sim::routing::Metric;
use anabranch_sim::sim::{Builder, Simulation};
use bytes::Bytes;

/// Time at this distance from the start of a run.
pub fn after(span: Duration) -> Instant {
    Instant::ZERO + span
}

/// `flows` TCP flows, each between its own sender and receiver, share one bottleneck of 1 Gbit/s
/// and 10 ms between two routers. Every packet, data or acknowledgement, takes three links. Buffers
/// are 1 MiB.
pub fn dumbbell(flows: usize, tcp: tcp::Config) -> Simulation {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let [left, right] = ["left", "right"].map(|n| builder.node(n, Forwarding::On));
    let queue = QueueLimit::Packets(1000);
    let bottleneck = LinkConfig { queue, ..LinkConfig::new(1_000_000_000, Duration::from_millis(10)) };
    builder.cable(left, right, bottleneck);
    let access = LinkConfig { queue, ..LinkConfig::new(1_000_000_000, Duration::from_millis(1)) };
    let tcp = tcp::Config { send_buffer: 1 << 20, receive_buffer: 1 << 20, ..tcp };
    for i in 0..flows {
        let from = builder.node(&format!("s{i}"), Forwarding::Off);
        let to = builder.node(&format!("r{i}"), Forwarding::Off);
        builder.cable(from, left, access);
        builder.cable(right, to, access);
        builder.app(to, Instant::ZERO, Sink::new(80, tcp));
        let config = BulkSenderConfig::new(to, 80, Content::Endless, tcp);
        builder.app(from, after(Duration::from_millis(i as u64)), BulkSender::new(config));
    }
    builder.build()
}

/// Number of packets that have arrived at their destination: data and acknowledgements.
pub fn delivered(sim: &Simulation) -> u64 {
    let network = &sim.world().network;
    (0..network.node_count()).map(|n| network.node_metrics(NodeId(n as u32)).received).sum()
}

/// Two nodes, one cable of 100 Mbit/s and 1 ms, and one unlimited transfer in which every segment
/// is acknowledged; after its first second.
pub fn one_hop() -> Simulation {
    let mut builder = Builder::new(NetworkConfig::default(), 1, 0);
    let [a, b] = ["a", "b"].map(|n| builder.node(n, Forwarding::Off));
    builder.cable(a, b, LinkConfig::new(100_000_000, Duration::from_millis(1)));
    let tcp =
        tcp::Config { delayed_ack: tcp::DelayedAck::Off, window_limit: Some(32), ..tcp::Config::default() };
    builder.app(b, Instant::ZERO, Sink::new(80, tcp));
    let config = BulkSenderConfig::new(b, 80, Content::Endless, tcp);
    builder.app(a, Instant::ZERO, BulkSender::new(config));
    let mut sim = builder.build();
    sim.run_until(after(Duration::from_secs(1)));
    sim
}

/// A SET transfer that is ready to run.
pub struct Star {
    /// The network.
    pub sim: Simulation,
    sender: AppId,
    node: AppId,
    file: Bytes,
}

impl Star {
    /// `octets` bytes to a sensor node through three gateways, each of which is 100 Mbit/s and 10
    /// ms from the sender, and 256 kbit/s, 25 ms and an MTU of 141 bytes from the node.
    pub fn new(octets: usize) -> Self {
        let ip = IpVersion::V6;
        let network = NetworkConfig { ip, metric: Metric::Delay, ..NetworkConfig::default() };
        let mut builder = Builder::new(network, 1, 0);
        let [cn, sn] = ["cn", "sn"].map(|n| builder.node(n, Forwarding::Off));
        let wired = tcp::Config { mss: 1296, timestamps: false, ..tcp::Config::default() };
        let wireless = tcp::Config { mss: 81, ..wired };
        let relay = RelayConfig { segment: 1296, ..RelayConfig::default() };
        let mut gateways = Vec::new();
        for id in 1..=3 {
            let gw = builder.node(&format!("gw{id}"), Forwarding::On);
            builder.cable(cn, gw, LinkConfig::new(100_000_000, Duration::from_millis(10)));
            let link = LinkConfig { mtu: 141, ..LinkConfig::new(256_000, Duration::from_millis(25)) };
            builder.cable(gw, sn, link);
            builder.app(gw, Instant::ZERO, SetRelay::new(relay, wired, wireless));
            let address = (address_of(ip, gw), GATEWAY_PORT).into();
            gateways.push(Gateway {
                id,
                address,
                key: None,
                energy: Energy::High,
                hops: 1,
                shared_channel: false,
                neighbours: Vec::new(),
            });
        }
        let receiver = ReceiverConfig { gateways, ..ReceiverConfig::default() };
        let node = builder.app(sn, Instant::ZERO, SetNode::new(receiver, wired));
        let file: Bytes = (0..octets).map(|i| (i * 31 + i / 251) as u8).collect();
        let config = SetSenderConfig {
            node: sn,
            file: file.clone(),
            set: SenderConfig::default(),
            wired,
            control: wired,
            ip,
            stop_when_over: true,
        };
        let sender = builder.app(cn, Instant::ZERO, SetSender::new(config));
        Self { sim: builder.build(), sender, node, file }
    }

    /// Runs the transfer to its end.
    ///
    /// # Panics
    ///
    /// If the file does not arrive unchanged.
    pub fn run(&mut self) {
        self.sim.run_until_idle();
        assert_eq!(self.sim.app::<SetSender>(self.sender).outcome(), Some(Outcome::Delivered));
        assert!(self.sim.app::<SetNode>(self.node).delivered == self.file, "octets differ");
    }
}
