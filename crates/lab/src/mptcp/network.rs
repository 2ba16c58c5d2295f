//! From a configuration to a simulation about to begin.

use anabranch_core::mptcp;
use anabranch_core::mptcp::prediction::Adaptation;
use anabranch_core::paths::{self, NodeType};
use anabranch_core::tcp::{self, CongestionAlgorithm, DelayedAck, InitialWindow, Push};
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::packets::{PacketSink, PacketSource, PacketSourceConfig};
use anabranch_sim::event::AppId;
use anabranch_sim::link::{LinkConfig, QueueLimit};
use anabranch_sim::network::{Forwarding, NetworkConfig, WirelessConfig};
use anabranch_sim::packet::NodeId;
use anabranch_sim::radio::{Capture, Fcs, Position, Propagation, RadioConfig, UnitDisk};
use anabranch_sim::random::Stream;
use anabranch_sim::scenario::radio::Phy;
use anabranch_sim::sim::{Builder, Simulation};
use anabranch_sim::transport::TransportConfig;

use super::config::{Config, Congestion, Scheme, Siting};
use super::deployment;
use crate::experiment::RunError;

/// Until when paths are built and nothing is sent.
pub(super) const BEGIN: Duration = Duration::from_secs(60);
/// LTE's bandwidth of section VIII-A, and a delay for each of the two links over the base station.
pub(super) const CELLULAR_RATE: u64 = 10_000_000;
pub(super) const CELLULAR_DELAY: Duration = Duration::from_millis(15);
/// Not one that a dissector takes for something else.
const PORT: u16 = 8_765;
/// Octets of the DSS option with mapping and DATA_ACK, each of four octets (RFC 8684 section 3.3).
const DSS: u16 = 20;

/// A network, and who does what in it.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) sim: Simulation,
    pub(super) sink: AppId,
    pub(super) sources: Vec<(NodeId, AppId)>,
    pub(super) places: Vec<Position>,
    /// The nodes with a cellular interface, the data centre left out.
    pub(super) multi_link: Vec<NodeId>,
}

impl Config {
    /// TCP, of each path or of the only one.
    pub(super) fn tcp(&self) -> tcp::Config {
        tcp::Config {
            // RFC 6691: what options take is taken from the payload, and a packet is to be one segment.
            mss: self.payload + if self.scheme == Scheme::Tcp { 0 } else { DSS },
            initial_window: InitialWindow::Segments(1),
            delayed_ack: DelayedAck::Every { segments: self.ack_every(), timeout: self.ack_delay },
            ack_on_push: self.ack_window,
            push: if self.ack_window { Push::Window } else { Push::Buffer },
            rto: tcp::RtoConfig {
                initial: Duration::from_secs(1),
                min: Duration::from_secs(1),
                max: Duration::from_secs(60),
                granularity: Duration::ZERO,
                backoff: tcp::Backoff::Double,
            },
            timestamps: false,
            // What a node has to deliver fits into its memory: the paper's K is infinite.
            send_buffer: 1 << 20,
            receive_buffer: 1 << 20,
            window_scale: Some(7),
            data_retries: 30,
            syn_retries: 15,
            ..tcp::Config::default()
        }
    }

    /// What carries the packets.
    fn transport(&self) -> TransportConfig {
        let tcp = self.tcp();
        if self.scheme == Scheme::Tcp {
            return tcp.into();
        }
        let congestion = match self.congestion {
            Congestion::NewReno | Congestion::Adaptive => CongestionAlgorithm::NewReno,
            Congestion::Coupled => CongestionAlgorithm::Coupled,
        };
        // Section VIII-A's first slow-start threshold; the rest of A-NewReno follows from each node's paths.
        let adaptive = self.congestion == Congestion::Adaptive;
        let initial_ssthresh = adaptive.then(|| 16 * u32::from(self.payload));
        mptcp::Config {
            tcp: tcp::Config { congestion, initial_ssthresh, ..tcp },
            scheduler: self.scheduler,
            reinjection: self.reinjection,
            ..mptcp::Config::default()
        }
        .into()
    }

    /// The radio that all nodes share.
    pub(super) fn radio(&self) -> RadioConfig {
        let mut radio = match self.phy {
            Phy::Fsk100k => RadioConfig::sun_fsk(self.range),
            Phy::OQpsk250k => RadioConfig::o_qpsk(self.range),
        };
        // The FCS of 2 octets with which all of the paper's figures were reproduced. The standard's default for SUN FSK, 4
        // octets, makes frames of 100 octets 1.7 % longer; the paper names no FCS.
        radio.phy = radio.phy.with_fcs(Fcs::Crc16);
        radio.mac.max_frame_retries = self.retries;
        radio.mac.retry_delay = self.retry_delay;
        radio.propagation = Propagation::UnitDisk(UnitDisk {
            interference_range: self.range * self.interference,
            carrier_sense_range: self.range * self.carrier_sense,
            capture: self.capture.map_or(Capture::Off, Capture::First),
            ..UnitDisk::new(self.range)
        });
        radio
    }

    /// A network of one run.
    ///
    /// # Errors
    ///
    /// If no deployment is connected, or the radio refuses its configuration.
    pub(super) fn network(&self, seed: u64, run: u64) -> Result<Network, RunError> {
        let places = deployment::draw(
            self.shape,
            self.nodes,
            self.range,
            &mut Stream::new(seed, run, "deployment", "places"),
        );
        let Some(places) = places else {
            let (nodes, range) = (self.nodes, self.range);
            let message = format!(
                "of a thousand deployments of {nodes} nodes none is connected with a range of {range} m"
            );
            return Err(RunError::Impossible { message, hint: "raise `range`, or take more `nodes`" });
        };
        let mut builder = Builder::new(NetworkConfig::default(), seed, run);
        let name = |i: usize| if i == 0 { "dc".to_owned() } else { format!("n{i}") };
        let nodes: Vec<NodeId> = (0..self.nodes).map(|i| builder.node(&name(i), Forwarding::On)).collect();
        let sites: Vec<_> = nodes.iter().copied().zip(places.iter().copied()).collect();
        let wireless = WirelessConfig {
            queue: self.queue.unwrap_or(u32::MAX),
            access_retries: self.access_retries,
            ..WirelessConfig::default()
        };
        builder.radio(self.radio(), wireless, &sites).map_err(|e| RunError::Scenario(e.to_string()))?;
        let multi_link = self.multi_link_nodes(&places, seed, run);
        let multi_link: Vec<NodeId> = multi_link.into_iter().map(|i| nodes[i]).collect();
        self.add_cellular(&mut builder, &nodes, &multi_link);
        self.add_routers(&mut builder, &nodes, &multi_link);
        let sink =
            builder.app(nodes[0], Instant::ZERO, PacketSink::new(PORT, self.payload, self.transport()));
        let sources = nodes[1..].iter().map(|&node| {
            let source = PacketSource::new(PacketSourceConfig {
                to: nodes[0],
                port: PORT,
                packets: self.packets,
                payload: self.payload,
                interval: Duration::from_secs_f64(1.0 / self.rate),
                transport: self.transport(),
                subflows: self.subflows,
                adaptation: (self.congestion == Congestion::Adaptive).then(Adaptation::default),
            });
            (node, builder.app(node, Instant::ZERO + BEGIN, source))
        });
        let sources = sources.collect();
        Ok(Network { sim: builder.build(), sink, sources, places, multi_link })
    }

    /// Which places have a second interface, beside the first, in order.
    fn multi_link_nodes(&self, places: &[Position], seed: u64, run: u64) -> Vec<usize> {
        let mut chosen = match self.multi_link_at {
            Siting::Planned => deployment::plan(places, self.range, self.multi_link),
            Siting::Random => {
                let mut random = Stream::new(seed, run, "deployment", "multi-link nodes");
                let mut rest: Vec<usize> = (1..places.len()).collect();
                let mut draw = || rest.swap_remove(random.range(0..=rest.len() as u64 - 1) as usize);
                (0..self.multi_link).map(|_| draw()).collect()
            }
        };
        chosen.sort_unstable();
        chosen
    }

    /// The base station, and links to it from the data centre and those nodes that have a second interface.
    fn add_cellular(&self, builder: &mut Builder, nodes: &[NodeId], chosen: &[NodeId]) {
        if chosen.is_empty() {
            return;
        }
        let station = builder.node("bs", Forwarding::On);
        let link =
            LinkConfig { queue: QueueLimit::Packets(1000), ..LinkConfig::new(CELLULAR_RATE, CELLULAR_DELAY) };
        builder.cable(nodes[0], station, link);
        for &node in chosen {
            builder.cable(node, station, link);
        }
    }

    fn add_routers(&self, builder: &mut Builder, nodes: &[NodeId], multi_link: &[NodeId]) {
        let config = paths::Config { max_paths: self.paths, ..paths::Config::paper() };
        for &node in nodes {
            let kind = if node == nodes[0] {
                None
            } else if multi_link.contains(&node) {
                Some(NodeType::MultiLink)
            } else {
                Some(NodeType::Ieee802154)
            };
            builder.router(node, config, kind);
        }
        if !multi_link.is_empty() {
            builder.router(NodeId(nodes.len() as u32), config, Some(NodeType::BaseStation));
        }
    }
}
