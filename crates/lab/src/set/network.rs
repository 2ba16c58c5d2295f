//! From a configuration to a scenario: Figure 9's network, as values of the scenario format.

use std::collections::BTreeMap;

use anabranch_core::time::Duration;
use anabranch_sim::link::QueueLimit;
use anabranch_sim::routing::Metric;
use anabranch_sim::scenario::advice::overhead;
use anabranch_sim::scenario::file::{
    EventAction, EventSection, FileConfig, GatewayChoice, LinkSection, Loss, NetworkSection, NodeKind,
    NodeSection, RouteSection, TransferKind, TransferSection,
};
use anabranch_sim::scenario::tcp::{Base, TcpProfile};
use anabranch_sim::scenario::units::{Probability, QueueSize, Rate, Span};
use anabranch_sim::scenario::{Scenario, Source};

use super::config::{Config, Medium, Scheme, Tcp};
use crate::experiment::RunError;

/// Octets of payload in a wired segment: sixteen wireless ones (errata S14).
pub(super) const WIRED_MSS: u16 = 1296;
/// Octets of payload in a wireless segment: what an 802.15.4 frame leaves for IPv6 at worst (errata S14).
pub(super) const WIRELESS_MSS: u16 = 81;
impl Config {
    /// The scenario.
    ///
    /// # Errors
    ///
    /// What the scenario format has against it.
    pub fn scenario(&self) -> Result<Scenario, RunError> {
        let file = self.file_config();
        // A scenario is understood from its text, so that what is simulated can always be written down.
        let text = toml::to_string(&file).map_err(|e| RunError::Scenario(e.to_string()))?;
        Source::new("set", text).scenario().map_err(|e| RunError::Scenario(e.to_string()))
    }

    /// The same as a scenario file.
    pub fn file_config(&self) -> FileConfig {
        let mut net = Net { nodes: Vec::new(), links: Vec::new(), routes: Vec::new() };
        net.node("cn", NodeKind::Host, None);
        (0..self.gateways)
            .for_each(|i| net.node(&gateway(i), NodeKind::Gateway, self.place(i, self.hops.of(i))));
        (0..=self.background).for_each(|j| net.node(&receiver(j), NodeKind::Host, self.receiver_place(j)));
        (0..self.gateways).for_each(|i| self.path(&mut net, i));
        let profile = |mss| TcpProfile {
            base: Some(match self.tcp {
                Tcp::Paper => Base::Paper,
                Tcp::Modern => Base::Modern,
            }),
            mss: Some(mss),
            // Twelve octets a segment that a 127-octet frame does not have.
            timestamps: Some(false),
            // The node is no host with more memory than its buffer: nobody offers more before it has spoken.
            receive_buffer: (self.node_buffer.0 < 65_535).then_some(self.node_buffer),
            ..TcpProfile::default()
        };
        let transfer: Vec<_> = (0..=self.background).map(|j| self.transfer(j)).collect();
        let mut tcp = BTreeMap::from([("default".to_owned(), profile(self.wired_mss()))]);
        if transfer.iter().any(|transfer| transfer.tcp_wireless.is_some()) {
            tcp.insert("wireless".to_owned(), profile(WIRELESS_MSS));
        }
        FileConfig {
            name: "set".to_owned(),
            stop: Span(Duration::from_secs(7 * 24 * 3600)),
            network: NetworkSection { ip: self.ip, metric: Metric::Delay, ..NetworkSection::default() },
            tcp,
            radio: self.radio(),
            node: net.nodes,
            link: net.links,
            route: net.routes,
            transfer,
            event: self.fail.iter().map(failure).collect(),
            ..FileConfig::default()
        }
    }

    /// The radio carries packets of 1280 octets, headers included, and some come over the wires that are for it.
    fn wired_mss(&self) -> u16 {
        match self.medium {
            Medium::Links => WIRED_MSS,
            Medium::Radio => 15 * WIRELESS_MSS,
        }
    }

    /// Over the air: the relays of gateway `i`, where there are any; the rest is a matter of distance.
    fn row(&self, net: &mut Net, i: usize) {
        let hops = self.hops.of(i);
        (1..hops).for_each(|hop| net.node(&relay(i, hop), NodeKind::Node, self.place(i, hops - hop)));
        let last = if hops == 1 { gateway(i) } else { relay(i, hops - 1) };
        self.pin_end_to_end(net, i, &last);
    }

    /// TCP from end to end goes through the first gateway; a request takes the shortest way: `default_gateway` sees to it
    /// at the correspondent node, and here at the receivers.
    fn pin_end_to_end(&self, net: &mut Net, i: usize, last: &str) {
        if i == 0 && self.scheme == Scheme::EndToEnd {
            let at_end = |j| RouteSection {
                at: receiver(j),
                to: "cn".to_owned(),
                via: last.to_owned(),
                interface: None,
            };
            net.routes.extend((0..=self.background).map(at_end));
        }
    }

    /// The way through gateway `i`: wired, then wireless as often as it has hops. Where there are several
    /// receivers a last node joins them to the wireless link, which they so share as they would a channel.
    fn path(&self, net: &mut Net, i: usize) {
        let gateway = gateway(i);
        net.links.push(LinkSection {
            name: Some(format!("wired{}", i + 1)),
            ..link("cn", &gateway, self.wired_rate.of(i), self.wired_delay.of(i), 1500)
        });
        if self.medium == Medium::Radio {
            return self.row(net, i);
        }
        let hops = self.hops.of(i);
        let shared = self.background > 0;
        let (mut from, mut last) = (gateway.clone(), gateway);
        for hop in 1..=hops {
            let to = if hop == hops && !shared { receiver(0) } else { relay(i, hop) };
            if to != receiver(0) {
                net.node(&to, NodeKind::Node, None);
            }
            let mtu = u32::from(WIRELESS_MSS) + overhead(self.ip);
            net.links.push(LinkSection {
                name: Some(format!("radio{}-{hop}", i + 1)),
                queue: self.gateway_buffer.of(i),
                loss: Loss::Bernoulli(Probability(self.wireless_loss.of(i))),
                ..link(&from, &to, self.wireless_rate.of(i), self.wireless_delay.of(i), mtu)
            });
            last = std::mem::replace(&mut from, to);
        }
        if shared {
            last.clone_from(&from);
            for j in 0..=self.background {
                net.links.push(LinkSection {
                    // Nothing may be lost or wait here: it is no link, but the end of the one before.
                    queue: QueueSize::UNLIMITED,
                    ..link(&from, &receiver(j), HERE.0, HERE.1, 1500)
                });
            }
        }
        self.pin_end_to_end(net, i, &last);
    }

    fn transfer(&self, j: usize) -> TransferSection {
        let only = |i| vec![gateway(i)];
        let all = || (0..self.gateways).map(gateway).collect();
        let (kind, gateways) = match self.scheme {
            Scheme::Set => (TransferKind::Set, Some(self.through.map_or_else(all, only))),
            Scheme::Split => (TransferKind::Split, Some(only(self.through.unwrap_or(0)))),
            Scheme::EndToEnd => (TransferKind::EndToEnd, None),
        };
        TransferSection {
            name: Some(if j == 0 { "update".to_owned() } else { format!("other{j}") }),
            bytes: Some(self.file),
            tcp_wireless: gateways.is_some().then(|| "wireless".to_owned()),
            gateways: gateways.map(GatewayChoice::Names),
            default_gateway: (self.scheme == Scheme::EndToEnd).then(|| gateway(0)),
            set: Some(self.section()),
            ..TransferSection::new(kind, "cn", receiver(j))
        }
    }
}

/// Nodes, links and routes so far.
struct Net {
    nodes: Vec<NodeSection>,
    links: Vec<LinkSection>,
    routes: Vec<RouteSection>,
}

impl Net {
    fn node(&mut self, name: &str, kind: NodeKind, position: Option<[f64; 2]>) {
        self.nodes.push(NodeSection { position, ..NodeSection::new(name, kind) });
    }
}

/// Rate and delay of what is no distance.
const HERE: (Rate, Span) = (Rate(100_000_000_000), Span(Duration::from_nanos(1)));

fn gateway(i: usize) -> String {
    format!("gw{}", i + 1)
}

fn relay(i: usize, hop: usize) -> String {
    format!("r{}-{hop}", i + 1)
}

fn receiver(j: usize) -> String {
    if j == 0 { "sn".to_owned() } else { format!("sn{}", j + 1) }
}

fn link(from: &str, to: &str, rate: Rate, delay: Span, mtu: u32) -> LinkSection {
    LinkSection {
        name: None,
        from: from.to_owned(),
        to: to.to_owned(),
        rate,
        delay,
        queue: QueueSize(QueueLimit::Packets(1000)),
        ecn_threshold: None,
        mtu,
        loss: Loss::default(),
        loss_factors: Default::default(),
        link_ack_timeout: None,
        reordering: Probability::default(),
        lateness: Span(Duration::from_millis(50)),
        duplication: Probability::default(),
        spacing: Span(Duration::ZERO),
        back: None,
        via: None,
        only: BTreeMap::new(),
        enabled: true,
    }
}

fn failure(failing: &super::config::Failing) -> EventSection {
    EventSection {
        at: Span(failing.at),
        action: EventAction::FailNode,
        node: Some(gateway(failing.gateway)),
        how: Some(failing.how),
        from: None,
        to: None,
        rate: None,
    }
}
