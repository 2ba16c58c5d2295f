//! Turns a scenario into a simulation that is ready to run.

mod probe;
mod set;
mod traffic;

use std::collections::BTreeMap;

use anabranch_core::paths::NodeType;
use anabranch_core::time::Instant;
use anabranch_core::{coap, mptcp, tcp};
use bytes::Bytes;

pub use self::set::PlannedSet;
pub use self::traffic::PlannedTraffic;
pub(super) use self::traffic::TIMEOUT;
use super::deployment::{Drawn, Undrawable};
use super::file::LinkSection;
use super::radio::Channel;
use super::{ContentSpec, Interface, NodeKind, Scenario, Scheme, TransferSpec};
use anabranch_sim::apps::coap::{CoapConfig, CoapEnd};
use anabranch_sim::apps::packets::Spacing;
use anabranch_sim::apps::set::NODE_PORT;
use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Sink};
use anabranch_sim::event::AppId;
use anabranch_sim::network::Forwarding;
use anabranch_sim::packet::{LinkId, NodeId};
use anabranch_sim::radio::{Mover, Position};
use anabranch_sim::sim::{Builder, Fault, Simulation};
use anabranch_sim::transport::TransportConfig;

/// First port of the receivers of transfers without a request, in the order of the file. Wireshark
/// takes none of the next 2,000 ports for those of another protocol.
pub(super) const FIRST_PORT: u16 = 25_000;
/// First port of CoAP clients, in the order of the file: the ephemeral ports (RFC 6335).
pub(super) const CLIENT_PORT: u16 = 49_152;
/// Largest number of transfers in a scenario, the last of which may be one without a request: SET
/// uses the ports from `NODE_PORT` on.
pub(super) const MAX_TCP_TRANSFERS: usize = (NODE_PORT - FIRST_PORT) as usize;

/// A simulation that is ready to run.
#[derive(Debug)]
pub struct Plan {
    /// The network with its faults and applications. More can be added.
    pub builder: Builder,
    /// What is planned in it.
    pub planned: Planned,
}

/// The applications and events that are planned in a simulation, to find their results after the
/// run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Planned {
    /// Transfers over one connection, TCP or Multipath TCP.
    pub transfers: Vec<PlannedTransfer>,
    /// Transfers over CoAP.
    pub coaps: Vec<PlannedCoap>,
    /// Transfers that begin with a request.
    pub sets: Vec<PlannedSet>,
    /// The relays: one on every gateway, if a transfer needs them.
    pub relays: Vec<(NodeId, AppId)>,
    /// Traffic sources.
    pub traffic: Vec<PlannedTraffic>,
    /// The random events of this run, one event after the other.
    pub random: Vec<(Instant, Fault)>,
    /// The moving nodes of this run.
    pub movers: Vec<(NodeId, Mover)>,
}

/// A planned transfer over one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedTransfer {
    /// Its index in [`Scenario::transfers`].
    pub index: usize,
    /// Its [`BulkSender`]; the first one, if the transfer repeats.
    pub sender: AppId,
    /// Number of [`BulkSender`]s, one after the other.
    pub senders: u32,
    /// Its [`Sink`].
    pub sink: AppId,
}

/// A planned transfer over CoAP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedCoap {
    /// Its index in [`Scenario::transfers`].
    pub index: usize,
    /// The [`CoapEnd`] that is the client.
    pub client: AppId,
    /// The [`CoapEnd`] that is the server.
    pub server: AppId,
    /// The [`CoapEnd`] that receives the body: one of these.
    pub receiver: AppId,
}

impl PlannedTransfer {
    /// All [`BulkSender`]s of the transfer, in order of time.
    pub fn all_senders(&self) -> impl DoubleEndedIterator<Item = AppId> + use<> {
        self.sender.run(self.senders)
    }

    /// The sender of the latest connection that has begun, or the first sender before that.
    pub fn latest<'s>(&self, sim: &'s Simulation) -> &'s BulkSender {
        let mut senders = self.all_senders().rev().map(|sender| sim.app::<BulkSender>(sender));
        senders.find(|sender| sender.started.is_some()).unwrap_or_else(|| sim.app(self.sender))
    }
}

impl Scenario {
    /// Names of the files on which runs depend: transferred files, traces of links, and movement
    /// files.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let carried = self.transfers.iter().filter_map(|t| match &t.content {
            ContentSpec::File(name) => Some(name.as_str()),
            ContentSpec::Bytes(_) | ContentSpec::Endless => None,
        });
        let traces = self.resolved.link.iter().flat_map(LinkSection::files);
        let packets = self.traffic.iter().filter_map(|traffic| match &traffic.spacing {
            Spacing::Trace(trace) => Some(&*trace.name),
            _ => None,
        });
        carried.chain(traces).chain(packets).chain(self.read_from.iter().map(String::as_str))
    }

    /// Plans a run. `files` has the content of each transferred file of [`Scenario::files`].
    ///
    /// # Errors
    ///
    /// If the nodes cannot be placed as the scenario requires.
    ///
    /// # Panics
    ///
    /// If a file is missing.
    pub fn plan(&self, seed: u64, run: u64, files: &BTreeMap<String, Bytes>) -> Result<Plan, Undrawable> {
        let drawn = self.draw(seed, run)?;
        let (random, movers) = (self.draw_events(seed, run), self.movers(&drawn, seed, run));
        let planned = Planned { random, movers, ..Planned::default() };
        let mut plan = Plan { builder: self.builder_of(&drawn, &planned.random, seed, run), planned };
        for (index, transfer) in self.transfers.iter().enumerate() {
            let ends: [TransportConfig; 2] = match transfer.scheme {
                Scheme::Tcp => [transfer.tcp.into(), transfer.receiver.into()],
                Scheme::Mptcp(spec) => {
                    let congestion = spec.config.tcp.congestion;
                    let tcp = tcp::Config { congestion, ..transfer.receiver };
                    [spec.config.into(), mptcp::Config { tcp, ..spec.config }.into()]
                }
                Scheme::Coap(config) => {
                    plan.add_coap(index, transfer, config, files);
                    continue;
                }
                Scheme::Set(_) => continue,
            };
            plan.add_bulk(index, transfer, self.stop, ends, files);
        }
        self.plan_sets(&mut plan, files);
        self.plan_traffic(&mut plan, &drawn, (seed, run));
        self.plan_probes(&mut plan, &drawn);
        Ok(plan)
    }

    /// The positions and groups of a run.
    ///
    /// # Errors
    ///
    /// If the nodes cannot be placed as the scenario requires.
    pub fn draw(&self, seed: u64, run: u64) -> Result<Drawn, Undrawable> {
        let mut drawn = match &self.deployment {
            Some(deployment) => deployment.draw(seed, run)?,
            None => {
                let places = self.radio.iter().flat_map(|radio| radio.places.iter().copied());
                Drawn { places: places.collect(), groups: Vec::new() }
            }
        };
        for mobile in self.mobility.iter().filter(|mobile| !mobile.placed) {
            if let Ok(at) = drawn.places.binary_search_by_key(&mobile.node, |(node, _)| *node) {
                drawn.places[at].1 = mobile.mover(None, seed, run).place(Instant::ZERO);
            }
        }
        Ok(drawn)
    }

    /// The network with its faults, without transfers and traffic.
    ///
    /// # Errors
    ///
    /// If the nodes cannot be placed as the scenario requires.
    pub fn builder(&self, seed: u64, run: u64) -> Result<Builder, Undrawable> {
        Ok(self.builder_of(&self.draw(seed, run)?, &self.draw_events(seed, run), seed, run))
    }

    /// The moving nodes of a run, from its beginning.
    pub fn movers(&self, drawn: &Drawn, seed: u64, run: u64) -> Vec<(NodeId, Mover)> {
        let mover = |(node, place): &(NodeId, Position)| {
            Some((*node, self.mobile(*node)?.mover(Some(*place), seed, run)))
        };
        drawn.places.iter().filter_map(mover).collect()
    }

    /// The random events of a run.
    fn draw_events(&self, seed: u64, run: u64) -> Vec<(Instant, Fault)> {
        self.random_events.iter().flat_map(|event| event.draw(seed, run)).collect()
    }

    fn builder_of(&self, drawn: &Drawn, random: &[(Instant, Fault)], seed: u64, run: u64) -> Builder {
        let mut builder = Builder::new(self.network, seed, run);
        for node in &self.nodes {
            let forwarding = match node.kind {
                NodeKind::Host => Forwarding::Off,
                NodeKind::Router | NodeKind::Gateway | NodeKind::Node => Forwarding::On,
            };
            let id = builder.node(&node.name, forwarding);
            if let Some(config) = node.dtc {
                builder.caching(id, config);
            }
            if node.tun.is_some() {
                builder.outside(id);
            }
        }
        for link in self.cables(drawn) {
            let id = builder.link(link.from, link.to, link.config);
            if !link.course.is_none() {
                builder.follow(id, &link.course);
            }
        }
        for (node, mover) in self.movers(drawn, seed, run) {
            builder.mobile(node, mover);
        }
        if let Some(radio) = &self.radio {
            radio.csl_periods.iter().for_each(|(node, period)| builder.csl_period(*node, *period));
            let added = match radio.channel {
                Channel::Ieee802154(config, wireless) => builder.radio(config, wireless, &drawn.places),
                Channel::Ieee80211(options) => {
                    builder.wifi(options.channel, options.interface, &drawn.places)
                }
            };
            added.expect("a scenario's radio was checked when it was read");
        }
        for (config, (node, _)) in
            self.aodv.iter().flat_map(|config| drawn.places.iter().map(move |p| (config, p)))
        {
            let added = builder.aodv(*node, *config);
            added.expect("a scenario's AODV was checked when it was read");
        }
        if let Some(paths) = self.paths {
            self.routers(drawn).into_iter().for_each(|(node, kind)| builder.router(node, paths.config, kind));
        }
        for route in &self.routes {
            if let Some(link) = self.link_in(&builder, route.link) {
                builder.pin_route(route.at, route.to, link);
            }
        }
        for way in &self.ways {
            if let Some(link) = self.link_in(&builder, way.link) {
                builder.pin_path(way.at, way.to, way.path, link);
            }
        }
        for (i, node) in self.nodes.iter().enumerate() {
            if let Some(pool) = &node.buffers {
                let added = builder.buffers(NodeId(i as u32), pool.config(self.reporting(i)));
                added.expect("a scenario's pools were checked when it was read");
            }
        }
        for (at, fault) in random.iter().chain(&self.faults) {
            if let Some(fault) = self.fault_in(&builder, *fault) {
                builder.fault(*at, fault);
            }
        }
        builder
    }

    /// The nodes that build paths in a run, each with its type; the root has none. A node without a
    /// radio has the wired type.
    pub fn routers(&self, drawn: &Drawn) -> Vec<(NodeId, Option<NodeType>)> {
        let Some(paths) = &self.paths else { return Vec::new() };
        let (mut on_air, mut wired) = (vec![false; self.nodes.len()], vec![false; self.nodes.len()]);
        drawn.places.iter().for_each(|(node, _)| on_air[node.index()] = true);
        self.cables(drawn).iter().for_each(|link| wired[link.from.index()] = true);
        let kind = |i: usize| match (on_air[i], wired[i]) {
            (true, false) => NodeType::Ieee802154,
            (true, true) => NodeType::MultiLink,
            (false, _) => NodeType::BaseStation,
        };
        let nodes = (0..self.nodes.len()).map(|i| (NodeId(i as u32), kind(i)));
        nodes.map(|(node, kind)| (node, (node != paths.root).then_some(kind))).collect()
    }

    /// The link of a run that corresponds to a link of [`Scenario::edges`]; `None` if shadowing
    /// separates its ends in that run.
    fn link_in(&self, builder: &Builder, link: LinkId) -> Option<LinkId> {
        match link.index().checked_sub(self.links.len()) {
            None => Some(link),
            Some(over_air) => {
                let (from, to) = *self.radio.as_ref()?.links.get(over_air)?;
                builder.wireless_link(from, to)
            }
        }
    }

    /// The paths and links of a node whose link layers report their rates: its interfaces, or its
    /// only link.
    fn reporting(&self, node: usize) -> Vec<(u8, LinkId)> {
        let mut own = (0..).map(LinkId).zip(&self.links).filter(|(_, link)| link.from.index() == node);
        match (&*self.nodes[node].interfaces, own.next(), own.next()) {
            ([], Some((only, _)), None) => vec![(0, only)],
            (interfaces, ..) => {
                let link = |interface: &Interface| Some((interface.path, interface.outlet.link()?));
                interfaces.iter().filter_map(link).collect()
            }
        }
    }

    fn fault_in(&self, builder: &Builder, fault: Fault) -> Option<Fault> {
        let link = |link| self.link_in(builder, link);
        Some(match fault {
            Fault::NodeFails(..) | Fault::NodeRecovers(_) | Fault::Jam(..) => fault,
            Fault::LinkDown(id) => Fault::LinkDown(link(id)?),
            Fault::LinkUp(id) => Fault::LinkUp(link(id)?),
            Fault::Rate(id, rate) => Fault::Rate(link(id)?, rate),
            Fault::Delay(id, delay) => Fault::Delay(link(id)?, delay),
            Fault::Loss(id, loss) => Fault::Loss(link(id)?, loss),
        })
    }

    /// Whether the node is an end of a link that the scenario names; others are on the radio only.
    pub fn has_link(&self, node: NodeId) -> bool {
        self.links.iter().any(|link| link.from == node || link.to == node)
    }

    /// All nodes of a kind.
    pub fn nodes_of(&self, kind: NodeKind) -> impl Iterator<Item = NodeId> {
        let nodes = self.nodes.iter().enumerate().filter(move |(_, n)| n.kind == kind);
        nodes.map(|(i, _)| NodeId(i as u32))
    }
}

impl Plan {
    fn add_coap(
        &mut self,
        index: usize,
        transfer: &TransferSpec,
        coap: coap::Config,
        files: &BTreeMap<String, Bytes>,
    ) {
        let TransferSpec { from, to, port, .. } = *transfer;
        let body = set::content(&transfer.content, files);
        let is_put = coap.method.is_put();
        let (here, there) = if is_put { (from, to) } else { (to, from) };
        // Of two transfers that begin at a node, one may go to a port that is the other's default.
        let own = CLIENT_PORT + (index % usize::from(u16::MAX - CLIENT_PORT)) as u16;
        let end = |peer, port, peer_port| CoapConfig { peer, port, peer_port, body: body.clone(), coap };
        let server = CoapEnd::server(end(here, port, own));
        let server = self.builder.app(there, Instant::ZERO, server);
        let client = CoapEnd::client(end(there, own, port));
        let client = self.builder.app(here, Instant::ZERO + transfer.start, client);
        let receiver = if is_put { server } else { client };
        self.planned.coaps.push(PlannedCoap { index, client, server, receiver });
    }

    fn add_bulk(
        &mut self,
        index: usize,
        transfer: &TransferSpec,
        end: Instant,
        [here, there]: [TransportConfig; 2],
        files: &BTreeMap<String, Bytes>,
    ) {
        let TransferSpec { from, to, port, reads_until, .. } = *transfer;
        let sink = self.builder.app(to, Instant::ZERO, Sink::reading_until(reads_until, port, there));
        let senders = transfer.connections(end).into_iter().map(|(begin, until)| {
            let content = match (&transfer.content, until) {
                (ContentSpec::Bytes(n), _) => Content::Pattern(*n),
                (ContentSpec::Endless, None) => Content::Endless,
                (ContentSpec::Endless, Some(until)) => Content::Until(until),
                (ContentSpec::File(name), _) => {
                    Content::Data(files.get(name).cloned().expect("every file is given"))
                }
            };
            let mut config = BulkSenderConfig::new(to, port, content, here);
            config.paths.interfaces = transfer.interfaces;
            if let Scheme::Mptcp(spec) = &transfer.scheme {
                config.paths.subflows = spec.subflows;
                config.paths.adaptation = spec.adaptation;
            }
            self.builder.app(from, begin, BulkSender::new(config))
        });
        let senders: Vec<AppId> = senders.collect();
        let sender = *senders.first().expect("a transfer has a connection");
        self.planned.transfers.push(PlannedTransfer { index, sender, senders: senders.len() as u32, sink });
    }
}
