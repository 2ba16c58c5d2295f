//! A simulation of the experiment.

use anabranch_core::tcp::{CongestionAlgorithm, DelayedAck};
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
use anabranch_sim::wifi::WifiConfig;

use super::config::{Config, Protocol};
use super::deployment;
use crate::experiment::RunError;

/// A simulation about to begin.
pub(super) struct Network {
    pub(super) sim: Simulation,
    pub(super) nodes: Vec<NodeId>,
    pub(super) sink: AppId,
    /// With their nodes, in the order of the deployment's senders.
    pub(super) sources: Vec<(NodeId, AppId)>,
}

/// The port of the sink.
pub(super) const PORT: u16 = 9_100;
/// The port of a source, where it has one.
const FROM_PORT: u16 = 9_101;
/// How long a probe of ELFN waits (Holland and Vaidya, MobiCom 1999: 2 s was best).
const PROBE: Duration = Duration::from_secs(2);

impl Config {
    /// The radio: ns-2's, with the experiment's ranges and rate.
    pub(super) fn wifi(&self) -> WifiConfig {
        let mut wifi = WifiConfig::ns2(self.range).with_data_rate(self.bit_rate);
        wifi.mac.rts_threshold = if self.rts { 0 } else { u16::MAX };
        wifi.propagation.carrier_sense_range = self.carrier_sense;
        wifi.propagation.loss = self.loss;
        wifi
    }

    /// TCP as ns-2's one-way agents have it: an acknowledgement for every segment (the paper's control load of 1), a window
    /// of 20 segments, no time stamps.
    pub(super) fn tcp(&self) -> tcp::Config {
        let congestion = match self.protocol {
            Protocol::Westwood => CongestionAlgorithm::Westwood,
            Protocol::Cubic => CongestionAlgorithm::Cubic,
            Protocol::Rdca
            | Protocol::RdcaPaper
            | Protocol::NewReno
            | Protocol::Elfn
            | Protocol::Datagrams => CongestionAlgorithm::NewReno,
        };
        tcp::Config {
            mss: self.payload(),
            congestion,
            delayed_ack: DelayedAck::Off,
            timestamps: false,
            window_scale: Some(7),
            receive_buffer: self.tcp_window * u32::from(self.payload()),
            elfn: (self.protocol == Protocol::Elfn).then_some(PROBE),
            data_retries: 30,
            syn_retries: 15,
            ..tcp::Config::default()
        }
    }

    /// A network of one run.
    ///
    /// # Errors
    ///
    /// If no deployment has what is asked for, or the radio refuses its configuration.
    pub(super) fn network(&self, seed: u64, run: u64) -> Result<Network, RunError> {
        let placement = run.checked_rem(self.topologies).unwrap_or(run);
        let mut random = Stream::new(seed, placement, "deployment", "places");
        let Some(deployment) = deployment::draw(&self.wanted(), &mut random) else {
            let message = format!(
                "of a thousand deployments of {} nodes none is connected with a node {} hops from the sink",
                self.nodes, self.event_hops
            );
            let hint = "take more `nodes`, another `range` or `area`, or fewer `event_hops`";
            return Err(RunError::Impossible { message, hint });
        };
        let config = NetworkConfig { ip: IpVersion::V4, ..NetworkConfig::default() };
        let mut builder = Builder::new(config, seed, run);
        let name = |i: usize| if i == 0 { "sink".to_owned() } else { format!("n{i}") };
        let nodes: Vec<NodeId> = (0..self.nodes).map(|i| builder.node(&name(i), Forwarding::On)).collect();
        let sites: Vec<_> = nodes.iter().copied().zip(deployment.places.iter().copied()).collect();
        let adhoc = AdhocConfig { queue: self.queue, ..AdhocConfig::ns2() };
        let refused = |error: &dyn std::error::Error| RunError::Scenario(error.to_string());
        builder.wifi(self.wifi(), adhoc, &sites).map_err(|e| refused(&e))?;
        for &node in &nodes {
            builder.aodv(node, aodv::Config::ns2()).map_err(|e| refused(&e))?;
        }
        let sink = self.add_sink(&mut builder, nodes[0]);
        let interval = Duration::from_secs_f64(1.0 / self.packets_per_second());
        // The event is not seen at one instant: sources that began together would meet at every packet.
        let mut begins = Stream::new(seed, run, "event", "beginnings");
        let sources = deployment.senders.iter().map(|&i| {
            let begin = Instant::ZERO + self.event_at + interval.mul_ratio(begins.range(0..=999), 1000);
            (nodes[i], self.add_source(&mut builder, (nodes[i], nodes[0]), begin, interval))
        });
        let sources = sources.collect();
        Ok(Network { sim: builder.build(), nodes, sink, sources })
    }

    fn add_sink(&self, builder: &mut Builder, at: NodeId) -> AppId {
        let begin = Instant::ZERO;
        match self.protocol {
            Protocol::Rdca | Protocol::RdcaPaper => {
                builder.app(at, begin, RdcaSink::new(PORT, self.rdca().sink))
            }
            Protocol::Datagrams => builder.app(at, begin, CbrSink::new(PORT)),
            Protocol::NewReno | Protocol::Westwood | Protocol::Elfn | Protocol::Cubic => {
                builder.app(at, begin, PacketSink::new(PORT, self.payload(), self.tcp().into()))
            }
        }
    }

    fn rdca(&self) -> rdca::Config {
        let mut config = match self.protocol {
            Protocol::RdcaPaper => rdca::Config::paper(),
            _ => rdca::Config::default(),
        };
        config.sender.datagram = self.packet;
        config
    }

    fn add_source(
        &self,
        builder: &mut Builder,
        (at, to): (NodeId, NodeId),
        begin: Instant,
        interval: Duration,
    ) -> AppId {
        let until = Instant::ZERO + self.duration;
        let packets = until.saturating_since(begin).as_secs_f64() / interval.as_secs_f64();
        // `as` rounds down: none after the end.
        let packets = packets as u32 + 1;
        let payload = self.payload();
        match self.protocol {
            Protocol::Rdca | Protocol::RdcaPaper => {
                let notices = match self.protocol {
                    Protocol::RdcaPaper => RouteNotices::Ignored,
                    _ => RouteNotices::Heeded,
                };
                let sender = self.rdca().sender;
                let config = RdcaConfig {
                    to,
                    port: PORT,
                    from_port: FROM_PORT,
                    packets,
                    payload,
                    interval,
                    sender,
                    notices,
                };
                builder.app(at, begin, RdcaSource::new(config))
            }
            Protocol::Datagrams => {
                let config = CbrConfig { to, port: PORT, from_port: FROM_PORT, packets, payload, interval };
                builder.app(at, begin, CbrSource::new(config))
            }
            Protocol::NewReno | Protocol::Westwood | Protocol::Elfn | Protocol::Cubic => {
                let source = PacketSource::new(PacketSourceConfig {
                    to,
                    port: PORT,
                    packets,
                    payload,
                    interval,
                    transport: self.tcp().into(),
                    adaptation: None,
                    subflows: 1,
                });
                builder.app(at, begin, source.spaced(Spacing::Constant))
            }
        }
    }
}
