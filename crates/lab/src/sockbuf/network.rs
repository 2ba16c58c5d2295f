//! A simulation of the experiment: the topology of Figure 7 and what moves in it.

use anabranch_core::mptcp::{self, Reinjection};
use anabranch_core::tcp;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::cbr::{CbrConfig, CbrSink, CbrSource};
use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Interfaces, Sink};
use anabranch_sim::buffers::BuffersConfig;
use anabranch_sim::event::AppId;
use anabranch_sim::link::{LinkConfig, QueueLimit};
use anabranch_sim::network::{Forwarding, NetworkConfig};
use anabranch_sim::packet::{IpVersion, LinkId, NodeId};
use anabranch_sim::random::Stream;
use anabranch_sim::sim::{Builder, Fault, Simulation};
use anabranch_sim::transport::TransportConfig;

use super::config::{Config, FLOWS, Interface, SEGMENT};
use crate::experiment::RunError;

/// A wireless link of section 4.1: its rate in bit/s and its delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wireless {
    /// Bit/s.
    rate: u64,
    /// One way.
    delay: Duration,
}

/// The mobile host's interfaces, f1 to f3; their paths count from 1.
const INTERFACES: [Wireless; FLOWS] = [
    Wireless { rate: 11_000_000, delay: Duration::from_millis(10) },
    Wireless { rate: 2_000_000, delay: Duration::from_millis(120) },
    Wireless { rate: 7_000_000, delay: Duration::from_millis(70) },
];

/// Interfaces of f4 to f8 and beyond, in turn: the faster ones first, as somebody would choose who has one to choose.
const SINGLE_INTERFACES: [Interface; 3] = [Interface::Wlan, Interface::Hsupa, Interface::Geo];

/// A simulation about to begin.
pub(super) struct Network {
    pub(super) sim: Simulation,
    pub(super) host: NodeId,
    pub(super) striped: Flow,
    pub(super) singles: Vec<Flow>,
    /// When the rates of the wireless links change.
    pub(super) steps: Vec<Instant>,
}

/// A connection of the mobile host.
#[derive(Clone, Copy)]
pub(super) struct Flow {
    pub(super) source: AppId,
    pub(super) sink: AppId,
}

impl Config {
    /// TCP-SACK, as at the micro-flow level of section 4.1.
    fn tcp(&self) -> tcp::Config {
        tcp::Config {
            mss: SEGMENT,
            // The receiver's memory is no part of the question.
            receive_buffer: RECEIVE_BUFFER,
            window_scale: Some(14),
            timestamps: false,
            data_retries: 30,
            syn_retries: 15,
            ..tcp::Config::default()
        }
    }

    /// The striped connection: windows of their own on each path, as in pTCP and the other protocols that the paper means.
    fn striped(&self) -> mptcp::Config {
        mptcp::Config {
            tcp: tcp::Config { mss: SEGMENT + DSS, ..self.tcp() },
            scheduler: self.scheduler,
            reinjection: Reinjection::Opportunistic,
            ..mptcp::Config::default()
        }
    }

    /// A network of one run. `content` is what the striped connection sends.
    ///
    /// # Errors
    ///
    /// If the pool refuses its configuration.
    pub(super) fn network(&self, seed: u64, run: u64, content: Content) -> Result<Network, RunError> {
        let config = NetworkConfig { ip: IpVersion::V4, ..NetworkConfig::default() };
        let mut builder = Builder::new(config, seed, run);
        let mut nodes = |names: &[&str], forwarding| -> Vec<NodeId> {
            names.iter().map(|name| builder.node(name, forwarding)).collect()
        };
        let ends = nodes(&["mh", "fh"], Forwarding::Off);
        let (mh, fh) = (ends[0], ends[1]);
        let access = nodes(&["r0", "r1", "r2"], Forwarding::On);
        let backbone = nodes(&["r3", "r4", "r5"], Forwarding::On);
        let gateway = nodes(&["r6"], Forwarding::On)[0];
        let mut cables = Vec::new();
        for (i, _) in INTERFACES.iter().enumerate() {
            let (up, down) = builder.cable(mh, access[i], self.wireless(i));
            let (_, onward) = builder.cable(access[i], backbone[i], wired(30));
            let (_, back) = builder.cable(backbone[i], gateway, wired(30));
            let path = i as u8 + 1;
            for (at, to, link) in
                [(mh, fh, up), (gateway, mh, back), (backbone[i], mh, onward), (access[i], mh, down)]
            {
                builder.pin_path(at, to, path, link);
            }
            cables.push((up, down));
        }
        builder.cable(gateway, fh, wired(10));
        let interfaces = cables.iter().enumerate().map(|(i, (up, _))| (i as u8 + 1, *up)).collect();
        let pool = BuffersConfig { tuner: self.pool(), interfaces, reports: self.reporting() };
        builder.buffers(mh, pool).map_err(|error| RunError::Scenario(error.to_string()))?;
        let steps = self.plan_rates(&mut builder, &cables, seed, run);
        self.plan_handoff(&mut builder, &cables);
        self.add_background(&mut builder, &backbone, gateway);
        let all = Interfaces::new(&[1, 2, 3]);
        let striped = add_flow(&mut builder, (mh, fh, PORT), Instant::ZERO, all, self.striped(), content);
        let singles = (0..self.singles()).map(|i| {
            let interface = SINGLE_INTERFACES[i % SINGLE_INTERFACES.len()];
            let port = PORT + 1 + i as u16;
            let sink = if i < self.singles() - self.stalled {
                Sink::new(port, self.tcp())
            } else {
                let tcp = tcp::Config { receive_buffer: STALLED_BUFFER, ..self.tcp() };
                Sink::reading_until(Instant::ZERO + self.single_at + STALLED_AFTER, port, tcp)
            };
            let sink = builder.app(fh, Instant::ZERO, sink);
            let mut config = BulkSenderConfig::new(fh, port, Content::Endless, self.tcp());
            config.paths.interfaces = Interfaces::only(interface as u8 + 1);
            let mut at = Instant::ZERO + self.single_at;
            let Some(churn) = self.churn else {
                return Flow { source: builder.app(mh, at, BulkSender::new(config)), sink };
            };
            if i % 2 == 1 {
                at += churn;
            }
            let mut source = None;
            while at < Instant::ZERO + self.duration || source.is_none() {
                config.content = Content::Until(at + churn);
                source = Some(builder.app(mh, at, BulkSender::new(config.clone())));
                at += churn * 2;
            }
            Flow { source: source.expect("at least one"), sink }
        });
        let singles = singles.collect();
        Ok(Network { sim: builder.build(), host: mh, striped, singles, steps })
    }

    /// One direction of a wireless link.
    fn wireless(&self, i: usize) -> LinkConfig {
        let Wireless { rate, delay, .. } = INTERFACES[i];
        LinkConfig {
            queue: QueueLimit::Packets(self.queue),
            loss: self.channel(),
            mtu: MTU,
            ..LinkConfig::new(rate, delay)
        }
    }

    /// Every `bandwidth_step` each wireless link gets another rate, the same both ways.
    fn plan_rates(
        &self,
        builder: &mut Builder,
        cables: &[(LinkId, LinkId)],
        seed: u64,
        run: u64,
    ) -> Vec<Instant> {
        let Some(step) = self.bandwidth_step else { return Vec::new() };
        let mut random = Stream::new(seed, run, "wireless links", "rates");
        let mut steps = Vec::new();
        let mut at = Instant::ZERO + step;
        while at < Instant::ZERO + self.duration {
            for ((up, down), wireless) in cables.iter().zip(INTERFACES) {
                let share = self.depth + (1.0 - self.depth) * random.uniform();
                let rate = (wireless.rate as f64 * share) as u64;
                builder.fault(at, Fault::Rate(*up, rate));
                builder.fault(at, Fault::Rate(*down, rate));
            }
            steps.push(at);
            at += step;
        }
        steps
    }

    fn plan_handoff(&self, builder: &mut Builder, cables: &[(LinkId, LinkId)]) {
        let Some(interface) = self.handoff else { return };
        let (up, down) = cables[interface as usize];
        let (from, to) =
            (Instant::ZERO + self.handoff_at, Instant::ZERO + self.handoff_at + self.handoff_for);
        for link in [up, down] {
            builder.fault(from, Fault::LinkDown(link));
            builder.fault(to, Fault::LinkUp(link));
        }
    }

    /// f9 and f10 are TCP, f11 and f12 UDP; n1 to n4 are at the backbone, n5 to n8 at the gateway.
    fn add_background(&self, builder: &mut Builder, backbone: &[NodeId], gateway: NodeId) {
        let Some(rate) = self.background else { return };
        for i in 0..4 {
            let source = builder.node(&format!("n{}", i + 1), Forwarding::Off);
            let sink = builder.node(&format!("n{}", i + 5), Forwarding::Off);
            builder.cable(source, backbone[i % backbone.len()], wired(1));
            builder.cable(gateway, sink, wired(1));
            if i < 2 {
                let tcp = tcp::Config { receive_buffer: 65_535, ..self.tcp() };
                add_flow(
                    builder,
                    (source, sink, PORT),
                    Instant::ZERO,
                    Interfaces::default(),
                    tcp,
                    Content::Endless,
                );
            } else {
                let interval = Duration::from_secs_f64(f64::from(DATAGRAM) * 8.0 / rate as f64);
                let packets = (self.duration.as_secs_f64() / interval.as_secs_f64()) as u32 + 1;
                builder.app(sink, Instant::ZERO, CbrSink::new(PORT));
                let config =
                    CbrConfig { to: sink, port: PORT, from_port: PORT, packets, payload: DATAGRAM, interval };
                builder.app(source, Instant::ZERO, CbrSource::new(config));
            }
        }
    }
}

fn add_flow(
    builder: &mut Builder,
    (from, to, port): (NodeId, NodeId, u16),
    at: Instant,
    interfaces: Interfaces,
    transport: impl Into<TransportConfig>,
    content: Content,
) -> Flow {
    let transport = transport.into();
    let sink = builder.app(to, Instant::ZERO, Sink::new(port, transport));
    let mut config = BulkSenderConfig::new(to, port, content, transport);
    config.paths.interfaces = interfaces;
    Flow { source: builder.app(from, at, BulkSender::new(config)), sink }
}

/// A link of the wired part: 100 Mbit/s, a millisecond or more, and a queue that background does not fill.
fn wired(delay_ms: u64) -> LinkConfig {
    let delay = Duration::from_millis(delay_ms);
    LinkConfig { queue: QueueLimit::Packets(1000), mtu: MTU, ..LinkConfig::new(100_000_000, delay) }
}

const PORT: u16 = 5_001;
/// Octets of the receive buffer of a peer that stops reading: a host of 2008 without scaling.
const STALLED_BUFFER: u32 = 65_535;
/// How long such a peer reads.
const STALLED_AFTER: Duration = Duration::from_secs(10);
/// Octets of a background datagram.
const DATAGRAM: u16 = 1000;
/// Octets of the DSS option with mapping and DATA_ACK, each of four octets (RFC 8684 section 3.3).
const DSS: u16 = 20;
/// A segment of 1460 octets with all its options is one packet, as in ns-2, which knows no MTU.
const MTU: u32 = 1600;
/// Octets: more than any of the buffers at the sender can fill.
const RECEIVE_BUFFER: u32 = 64 << 20;
