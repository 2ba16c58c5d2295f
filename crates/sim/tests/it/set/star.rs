//! A correspondent node, gateways and a sensor node: the network of the paper's Figure 9.

use anabranch_core::set::{Energy, Gateway, Outcome, ReceiverConfig, RelayConfig, SenderConfig};
use anabranch_core::tcp::Config;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::address::address_of;
use anabranch_sim::apps::set::{GATEWAY_PORT, SetNode, SetRelay, SetSender, SetSenderConfig};
use anabranch_sim::event::AppId;
use anabranch_sim::link::LinkConfig;
use anabranch_sim::loss::LossModel;
use anabranch_sim::network::{Forwarding, NetworkConfig};
use anabranch_sim::packet::{IpVersion, NodeId};
use anabranch_sim::routing::Metric;
use anabranch_sim::sim::{Builder, Fault, Simulation};
use bytes::Bytes;

/// The links of one gateway.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) wired_ms: u64,
    pub(crate) rate: u64,
    pub(crate) wireless_ms: u64,
    pub(crate) loss: f64,
}

pub(crate) fn path(rate: u64, wireless_ms: u64, loss: f64) -> Path {
    Path { wired_ms: 10, rate, wireless_ms, loss }
}

/// Parameters of a star.
#[derive(Clone, Debug)]
pub(crate) struct Star {
    pub(crate) paths: Vec<Path>,
    pub(crate) file: Bytes,
    pub(crate) set: SenderConfig,
    pub(crate) relay: RelayConfig,
    pub(crate) node: ReceiverConfig,
    pub(crate) wired: Config,
    pub(crate) wireless: Config,
    pub(crate) seed: u64,
    pub(crate) run: u64,
    pub(crate) ip: IpVersion,
}

pub(crate) const WIRED_MSS: u16 = 1296;
pub(crate) const WIRELESS_MSS: u16 = 81;

pub(crate) fn file(length: usize) -> Bytes {
    (0..length).map(|i| (i * 31 + i / 251) as u8).collect()
}

impl Star {
    /// Anabranch's SET over a present-day TCP.
    pub(crate) fn new(paths: &[Path], length: usize) -> Self {
        let wired = Config { mss: WIRED_MSS, timestamps: false, ..Config::default() };
        Self {
            paths: paths.to_vec(),
            file: file(length),
            set: SenderConfig::default(),
            relay: RelayConfig { segment: u32::from(WIRED_MSS), ..RelayConfig::default() },
            node: ReceiverConfig::default(),
            wired,
            wireless: Config { mss: WIRELESS_MSS, ..wired },
            seed: 1,
            run: 0,
            ip: IpVersion::V6,
        }
    }

    /// The paper's SET over the paper's TCP.
    pub(crate) fn paper(paths: &[Path], length: usize) -> Self {
        let wired = Config { mss: WIRED_MSS, ..Config::paper() };
        Self {
            set: SenderConfig::paper(),
            relay: RelayConfig { segment: u32::from(WIRED_MSS), ..RelayConfig::paper() },
            node: ReceiverConfig::paper(),
            wired,
            wireless: Config { mss: WIRELESS_MSS, ..wired },
            ..Self::new(paths, length)
        }
    }

    /// The paper's session set-up and TCP with Anabranch's striping.
    pub(crate) fn lab(paths: &[Path], length: usize) -> Self {
        let paper = SenderConfig::paper();
        let set = SenderConfig { start: paper.start, ..SenderConfig::default() };
        Self { set, node: ReceiverConfig::default(), ..Self::paper(paths, length) }
    }

    pub(crate) fn build(&self) -> Run {
        let ip = self.ip;
        let network = NetworkConfig { ip, metric: Metric::Delay, ..NetworkConfig::default() };
        let mut builder = Builder::new(network, self.seed, self.run);
        let cn = builder.node("cn", Forwarding::Off);
        let sn = builder.node("sn", Forwarding::Off);
        let mut gateways = Vec::new();
        for (i, p) in self.paths.iter().enumerate() {
            let gw = builder.node(&format!("gw{}", i + 1), Forwarding::On);
            builder.cable(cn, gw, LinkConfig::new(100_000_000, Duration::from_millis(p.wired_ms)));
            let loss = if p.loss > 0.0 { LossModel::Bernoulli { p: p.loss } } else { LossModel::None };
            let wireless = LinkConfig {
                mtu: 141,
                loss,
                ..LinkConfig::new(p.rate, Duration::from_millis(p.wireless_ms))
            };
            builder.cable(gw, sn, wireless);
            builder.app(gw, Instant::ZERO, SetRelay::new(self.relay, self.wired, self.wireless));
            gateways.push(gw);
        }
        let table = gateways.iter().enumerate().map(|(i, gw)| Gateway {
            id: i as u16 + 1,
            address: (address_of(ip, *gw), GATEWAY_PORT).into(),
            key: None,
            energy: Energy::High,
            hops: 1,
            shared_channel: false,
            neighbours: Vec::new(),
        });
        let node = ReceiverConfig { gateways: table.collect(), ..self.node.clone() };
        let node = builder.app(sn, Instant::ZERO, SetNode::new(node, self.wired));
        let sender = builder.app(
            cn,
            Instant::ZERO,
            SetSender::new(SetSenderConfig {
                node: sn,
                file: self.file.clone(),
                set: self.set,
                wired: self.wired,
                control: self.wired,
                ip,
                stop_when_over: true,
            }),
        );
        Run { sim: None, builder: Some(builder), gateways, sender, node, file: self.file.clone() }
    }

    /// Runs it to the end and returns the seconds from the request to the last byte in order.
    pub(crate) fn latency(&self) -> f64 {
        let mut run = self.build();
        run.go();
        run.latency()
    }
}

pub(crate) struct Run {
    pub(crate) builder: Option<Builder>,
    sim: Option<Simulation>,
    pub(crate) gateways: Vec<NodeId>,
    pub(crate) sender: AppId,
    pub(crate) node: AppId,
    pub(crate) file: Bytes,
}

impl Run {
    pub(crate) fn fault(&mut self, at: Instant, fault: Fault) {
        self.builder.as_mut().expect("faults come before the run").fault(at, fault);
    }

    pub(crate) fn go(&mut self) {
        let mut sim = self.builder.take().expect("a run runs once").build();
        sim.run_until(Instant::ZERO + Duration::from_secs(100_000));
        self.sim = Some(sim);
    }

    pub(crate) fn sim(&self) -> &Simulation {
        self.sim.as_ref().expect("it has run")
    }

    pub(crate) fn sender(&self) -> &SetSender {
        self.sim().app(self.sender)
    }

    pub(crate) fn node(&self) -> &SetNode {
        self.sim().app(self.node)
    }

    pub(crate) fn latency(&self) -> f64 {
        let delivered = self.sender().delivered();
        assert_eq!(
            self.sender().outcome(),
            Some(Outcome::Delivered),
            "{delivered} octets at {}",
            self.sim().now()
        );
        assert!(self.node().delivered == self.file);
        self.node().completed.expect("complete").as_secs_f64()
    }
}
