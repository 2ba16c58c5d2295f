//! From what was said to what it means: every name is bound, every value is legal, or there is one error.

mod deployment;
mod emulation;
mod events;
mod interfaces;
mod radio;
mod random;
mod traffic;
mod transfers;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use anabranch_core::time::Instant;
use anabranch_core::{dtc, tcp};

use super::Tree;
use super::buffers::BuffersOptions;
use super::file::{FileConfig, FragmentationName, LinkSection, LossName, MetricName, NodeSection, fifty_ms};
use super::rdca::RdcaOptions;
use super::source::{Source, Step, matches};
use super::tcp::TcpProfile;
use super::units::{QueueSize, Size, quoted};
use super::{LinkSpec, NodeKind, NodeSpec, RouteSpec, Scenario, WaySpec};
use super::{ScenarioError, nearest};
use crate::link::{LinkConfig, QueueLimit};
use crate::loss::{Disturbance, LossFactors, LossModel};
use crate::network::{Fragmentation, NetworkConfig};
use crate::packet::{IpVersion, NodeId};
use crate::routing::Metric;

/// Smallest MTU: what every IPv4 module must take (RFC 791 section 3.2), and room for a piece with IPv6.
const SMALLEST_MTU: u32 = 68;

pub(super) use traffic::transport;

type Checked<T> = Result<T, ScenarioError>;

impl Source {
    /// Reads the scenario. A sweep is left aside: see [`Source::points`].
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        self.scenario_of(self.tree()?)
    }

    pub(super) fn scenario_of<'s>(&'s self, tree: Tree<'s>) -> Checked<Scenario> {
        let mut file: FileConfig = self.read(tree.clone())?;
        file.sweep.clear();
        let mut checker = Checker {
            source: self,
            tree,
            said: file.node.len(),
            members: file.nodes.iter().map(|nodes| nodes.count as usize).collect(),
            nodes: BTreeMap::new(),
            profiles: BTreeMap::new(),
            rdca: BTreeMap::new(),
            pools: BTreeMap::new(),
        };
        checker.scenario(file)
    }
}

struct Checker<'s> {
    source: &'s Source,
    tree: Tree<'s>,
    /// Number of `[[node]]`.
    said: usize,
    /// Number of nodes of each `[[nodes]]`, which come after them.
    members: Vec<usize>,
    nodes: BTreeMap<String, NodeId>,
    profiles: BTreeMap<String, tcp::Config>,
    rdca: BTreeMap<String, RdcaOptions>,
    pools: BTreeMap<String, BuffersOptions>,
}

/// A path into the file.
macro_rules! at {
    ($($step:expr),* $(,)?) => { &[$($crate::scenario::source::Step::from($step)),*] };
}
use at;

impl Checker<'_> {
    fn fault<T>(&self, path: &[Step], message: impl Into<String>, hint: Option<&str>) -> Checked<T> {
        let path = &*self.section_of(path);
        Err(self.source.error_at(&self.tree, path, message.into(), hint.map(str::to_owned)))
    }

    /// Where the file says what a path means: a node of `[[nodes]]` has no section of its own.
    fn section_of<'p>(&self, path: &'p [Step]) -> Cow<'p, [Step]> {
        let [Step::Key(key), Step::Index(node), rest @ ..] = path else { return Cow::Borrowed(path) };
        match node.checked_sub(self.said) {
            Some(mut member) if key == "node" => {
                let fits = |members: &&usize| match member.checked_sub(**members) {
                    Some(left) => {
                        member = left;
                        true
                    }
                    None => false,
                };
                let section = self.members.iter().take_while(fits).count();
                Cow::Owned([at!["nodes", section], rest].concat())
            }
            _ => Cow::Borrowed(path),
        }
    }

    fn scenario(&mut self, mut file: FileConfig) -> Checked<Scenario> {
        if file.stop.0.is_zero() {
            return self.fault(at!["stop"], "the simulation would end before it begins", None);
        }
        let network = self.network(&file)?;
        self.profiles(&mut file)?;
        self.rdca = self.rdca_profiles(&mut file)?;
        self.pools(&mut file)?;
        let deployment = self.expand(&mut file)?;
        let mut nodes = self.nodes(&file)?;
        let emulation = self.emulation(&mut file, &nodes)?;
        let mut links = Vec::new();
        for (i, section) in file.link.iter().enumerate() {
            links.extend(self.link(i, section)?);
        }
        self.links_differ(&file, &links)?;
        self.interfaces(&file, &mut nodes, &links)?;
        for section in file.link.iter_mut().filter(|section| section.reordering.0 == 0.0) {
            // Without reordering it means nothing, and alone it is not legal.
            section.lateness = fifty_ms();
        }
        let channel = self.channel(&mut file)?;
        let deployment = self.deployment(deployment, channel.as_ref(), &mut file)?;
        let radio = self.radio(channel, &file)?;
        let aodv = self.aodv(&mut file)?;
        let mut scenario = Scenario {
            name: file.name.clone(),
            seed: file.seed,
            stop: Instant::ZERO + file.stop.0,
            network,
            nodes,
            links,
            radio,
            aodv,
            deployment,
            paths: None,
            routes: Vec::new(),
            ways: Vec::new(),
            transfers: Vec::new(),
            traffic: Vec::new(),
            faults: Vec::new(),
            random_events: Vec::new(),
            emulation,
            resolved: file,
        };
        self.connected(&scenario)?;
        scenario.paths = self.paths(&mut scenario)?;
        (scenario.routes, scenario.ways) = self.routes(&scenario)?;
        self.neighbours(&mut scenario)?;
        self.transfers(&mut scenario)?;
        scenario.traffic = self.traffic(&mut scenario)?;
        for i in 0..scenario.resolved.event.len() {
            let section = scenario.resolved.event[i].clone();
            let at = Instant::ZERO + section.at.0;
            let faults = self.event(i, &section, &scenario)?;
            scenario.faults.extend(faults.into_iter().map(|fault| (at, fault)));
        }
        scenario.random_events = self.random_events(&scenario)?;
        // Groups of nodes are said once.
        scenario.resolved.node.truncate(self.said);
        Ok(scenario)
    }

    fn network(&self, file: &FileConfig) -> Checked<NetworkConfig> {
        let section = &file.network;
        let ip = match section.ip {
            4 => IpVersion::V4,
            6 => IpVersion::V6,
            other => {
                return self.fault(at!["network", "ip"], format!("expected 4 or 6, found {other}"), None);
            }
        };
        if section.hop_limit == 0 {
            return self.fault(at!["network", "hop_limit"], "a hop limit is in 1..=255", None);
        }
        Ok(NetworkConfig {
            ip,
            fragmentation: match section.fragmentation {
                FragmentationName::Allowed => Fragmentation::Allowed,
                FragmentationName::Forbidden => Fragmentation::Forbidden,
            },
            metric: match section.metric {
                MetricName::Hops => Metric::Hops,
                MetricName::Delay => Metric::Delay,
            },
            convergence: section.convergence.0,
            hop_limit: section.hop_limit,
        })
    }

    fn profiles(&mut self, file: &mut FileConfig) -> Checked<()> {
        file.tcp.entry("default".to_owned()).or_default();
        for (name, profile) in &mut file.tcp {
            if let Some((key, message, hint)) = profile.contradiction() {
                return self.fault(at!["tcp", name.as_str(), key], message, Some(&hint));
            }
            let config = match profile.config(self.source.policies()) {
                Ok(config) => config,
                Err((key, message)) => return self.fault(at!["tcp", name.as_str(), key], message, None),
            };
            *profile = TcpProfile::complete(profile.base.unwrap_or_default(), &config);
            self.profiles.insert(name.clone(), config);
        }
        Ok(())
    }

    fn nodes(&mut self, file: &FileConfig) -> Checked<Vec<NodeSpec>> {
        if file.node.is_empty() {
            return self.fault(&[], "the network has no node", Some("add `[[node]]` with a `name`"));
        }
        let mut nodes = Vec::new();
        for (i, section) in file.node.iter().enumerate() {
            let at = at!["node", i, "name"];
            if section.name.is_empty() {
                return self.fault(at, "a node needs a name", None);
            }
            if self.nodes.insert(section.name.clone(), NodeId(i as u32)).is_some() {
                let message = format!("there are two nodes of the name `{}`", section.name);
                return self.fault(
                    at,
                    message,
                    Some("names must differ, since links and transfers use them"),
                );
            }
            nodes.push(NodeSpec {
                name: section.name.clone(),
                kind: section.kind,
                energy: section.energy,
                neighbours: Vec::new(),
                dtc: self.caching(i, section, file)?,
                interfaces: Vec::new(),
                buffers: self.pool(i, file)?,
                tun: self.tun(i, file)?,
            });
        }
        Ok(nodes)
    }

    fn caching(&self, i: usize, section: &NodeSection, file: &FileConfig) -> Checked<Option<dtc::Config>> {
        let Some(name) = &section.dtc else { return Ok(None) };
        let at = at!["node", i, "dtc"];
        if section.kind == NodeKind::Host {
            let hint = "kinds \"node\", \"router\" and \"gateway\" pass packets on";
            return self.fault(at, "a host passes nothing on that it could cache", Some(hint));
        }
        let Some(profile) = file.dtc.get(name) else {
            let hint = match nearest(name, file.dtc.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("add `[dtc.{name}]`"),
            };
            return self.fault(at, format!("there is no profile `dtc.{name}`"), Some(&hint));
        };
        match profile.config() {
            Ok(config) => Ok(Some(config)),
            Err((key, message)) => self.fault(at!["dtc", name.as_str(), key], message, None),
        }
    }

    /// The node of a name, which stands at `path`.
    fn node(&self, path: &[Step], name: &str) -> Checked<NodeId> {
        if let Some(node) = self.nodes.get(name) {
            return Ok(*node);
        }
        let hint = match nearest(name, self.nodes.keys().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the nodes are {}", quoted(self.nodes.keys())),
        };
        self.fault(path, format!("there is no node `{name}`"), Some(&hint))
    }

    fn link(&self, i: usize, section: &LinkSection) -> Checked<[LinkSpec; 2]> {
        let from = self.node(at!["link", i, "from"], &section.from)?;
        let to = self.node(at!["link", i, "to"], &section.to)?;
        if from == to {
            return self.fault(at!["link", i, "to"], "a link joins two different nodes", None);
        }
        let there = LinkConfig {
            rate: section.rate.0,
            delay: section.delay.0,
            queue: section.queue.0,
            ecn_threshold: section.ecn_threshold.map(|size| size.0),
            mtu: section.mtu,
            loss: loss_model(section.loss),
            loss_factors: self.factors(at!["link", i, "loss_factors"], section.loss_factors)?,
            disturbance: Disturbance {
                reordering: section.reordering.0,
                lateness: section.lateness.0,
                duplication: section.duplication.0,
            },
            link_ack_timeout: section.link_ack_timeout.map(|span| span.0),
            spacing: section.spacing.0,
        };
        if self.is_given(at!["link", i, "lateness"]) && !self.is_given(at!["link", i, "reordering"]) {
            let message = "no packet is late: the link has no `reordering`";
            let hint = "say how many are, as in `reordering = \"1 %\"`, or leave `lateness` out";
            return self.fault(at!["link", i, "lateness"], message, Some(hint));
        }
        self.mtu(at!["link", i, "mtu"], there.mtu)?;
        self.queue(at!["link", i], &there)?;
        let mut back = there;
        if let Some(other) = &section.back {
            back.rate = other.rate.map_or(back.rate, |rate| rate.0);
            back.delay = other.delay.map_or(back.delay, |span| span.0);
            back.queue = other.queue.map_or(back.queue, |queue| queue.0);
            back.ecn_threshold = other.ecn_threshold.map_or(back.ecn_threshold, |size| Some(size.0));
            back.spacing = other.spacing.map_or(back.spacing, |span| span.0);
            back.mtu = other.mtu.unwrap_or(back.mtu);
            back.loss = other.loss.map_or(back.loss, loss_model);
            if let Some(factors) = other.loss_factors {
                back.loss_factors = self.factors(at!["link", i, "back", "loss_factors"], factors)?;
            }
            self.mtu(at!["link", i, "back", "mtu"], back.mtu)?;
            self.queue(at!["link", i, "back"], &back)?;
        }
        Ok([LinkSpec { from, to, config: there }, LinkSpec { from: to, to: from, config: back }])
    }

    /// Routes, events and metrics name a link by its ends, so a pair of nodes has one; `--set` names it by its name.
    fn links_differ(&self, file: &FileConfig, links: &[LinkSpec]) -> Checked<()> {
        let (mut pairs, mut names) = (BTreeSet::new(), BTreeSet::new());
        for (i, section) in file.link.iter().enumerate() {
            // Each section makes two links, there and back.
            let LinkSpec { from, to, .. } = links[2 * i];
            if !pairs.insert((from.min(to), from.max(to))) {
                let message = format!("there are two links between `{}` and `{}`", section.from, section.to);
                let hint = "for a second path put a router in between: a `[[node]]` with `kind = \"router\"`, and \
                            a link on each side of it";
                return self.fault(at!["link", i], message, Some(hint));
            }
            let Some(name) = &section.name else { continue };
            if !names.insert(name) {
                let message = format!("there are two links of the name `{name}`");
                let hint = "names must differ, since `--set` and `[sweep]` use them";
                return self.fault(at!["link", i, "name"], message, Some(hint));
            }
        }
        Ok(())
    }

    /// A queue has room for a packet, and can grow above its threshold.
    fn queue(&self, path: &[Step], link: &LinkConfig) -> Checked<()> {
        let at = |key: &str| [path, &[Step::from(key)]].concat();
        if let QueueLimit::Bytes(bytes @ 1..) = link.queue
            && bytes < link.mtu.into()
        {
            let message =
                format!("a queue of {} holds no packet of the link's `mtu`, {} B", Size(bytes), link.mtu);
            let hint = "say as many bytes as the `mtu` or more, a number of packets, or a smaller `mtu`";
            return self.fault(&at("queue"), message, Some(hint));
        }
        let above = match (link.ecn_threshold, link.queue) {
            (Some(QueueLimit::Packets(threshold)), QueueLimit::Packets(most)) => threshold > most,
            (Some(QueueLimit::Bytes(threshold)), QueueLimit::Bytes(most)) => threshold > most,
            _ => false,
        };
        match link.ecn_threshold {
            Some(threshold) if above => {
                let (threshold, most) = (QueueSize(threshold), QueueSize(link.queue));
                let message = format!("no packet is ever marked: the queue holds {most}, not {threshold}");
                self.fault(&at("ecn_threshold"), message, Some("say less than the `queue`"))
            }
            _ => Ok(()),
        }
    }

    /// The file or an override has exactly this key.
    fn is_given(&self, path: &[Step]) -> bool {
        self.source.has(&self.tree, path)
    }

    fn mtu(&self, path: &[Step], mtu: u32) -> Checked<()> {
        if mtu >= SMALLEST_MTU {
            return Ok(());
        }
        let message =
            format!("an MTU of {mtu} octets has no room for a packet; expected {SMALLEST_MTU} or more");
        self.fault(path, message, None)
    }

    fn factors(&self, path: &[Step], section: super::file::FactorsSection) -> Checked<LossFactors> {
        let legal = |factor: f64| factor.is_finite() && factor >= 0.0;
        let super::file::FactorsSection { data, ack, link_ack } = section;
        if legal(data) && legal(ack) && legal(link_ack) {
            return Ok(LossFactors { data, ack, link_ack });
        }
        self.fault(path, "a factor is a number from 0 on", None)
    }

    /// Every node can be reached from the first, over links in any direction.
    fn connected(&self, scenario: &Scenario) -> Checked<()> {
        let nodes = &scenario.nodes;
        let mut neighbours = vec![Vec::new(); nodes.len()];
        scenario.edges().for_each(|(_, from, to)| neighbours[from.index()].push(to));
        let mut reached = vec![false; nodes.len()];
        reached[0] = true;
        let mut open = vec![NodeId(0)];
        while let Some(at) = open.pop() {
            for to in &neighbours[at.index()] {
                if !std::mem::replace(&mut reached[to.index()], true) {
                    open.push(*to);
                }
            }
        }
        let Some(lonely) = reached.iter().position(|r| !r) else { return Ok(()) };
        let message = format!(
            "the network is not connected: no link leads from `{}` to `{}`",
            nodes[0].name, nodes[lonely].name
        );
        let hint = match scenario.is_on_air(NodeId(lonely as u32)) {
            true => format!("move `{}` nearer to another node that is on the air", nodes[lonely].name),
            false => format!("add a `[[link]]` that joins `{}` to the others", nodes[lonely].name),
        };
        self.fault(at!["node", lonely, "name"], message, Some(&hint))
    }

    fn routes(&self, scenario: &Scenario) -> Checked<(Vec<RouteSpec>, Vec<WaySpec>)> {
        let (mut routes, mut ways) = (Vec::new(), Vec::new());
        for (i, section) in scenario.resolved.route.iter().enumerate() {
            if scenario.paths.is_some() {
                let message = "a route has no meaning where packets follow the nodes' own paths";
                return self.fault(at!["route", i], message, Some("leave `[paths]` or the route out"));
            }
            let at = self.node(at!["route", i, "at"], &section.at)?;
            let to = self.node(at!["route", i, "to"], &section.to)?;
            let via = self.node(at!["route", i, "via"], &section.via)?;
            let Some((link, ..)) = scenario.edges().find(|(_, from, to)| *from == at && *to == via) else {
                let message = format!("`{}` has no link to `{}`", section.at, section.via);
                return self.fault(at!["route", i, "via"], message, Some("a route goes via a neighbour"));
            };
            match section.interface {
                None => routes.push(RouteSpec { at, to, link }),
                Some(_) => ways.extend(self.way(i, section, scenario, (at, to, link))?),
            }
        }
        Ok((routes, ways))
    }

    fn neighbours(&self, scenario: &mut Scenario) -> Checked<()> {
        for i in 0..scenario.nodes.len() {
            let said = scenario.resolved.node[i].neighbours.clone();
            let mut found = Vec::new();
            for (j, name) in said.iter().enumerate() {
                found.push(self.node(at!["node", i, "neighbours", j], name)?);
            }
            if said.is_empty() && scenario.nodes[i].kind == NodeKind::Gateway {
                let nearby = scenario.edges().filter(|(_, from, _)| from.index() == i).map(|(_, _, to)| to);
                found = nearby.filter(|n| scenario.nodes[n.index()].kind == NodeKind::Node).collect();
                found.dedup();
                let name = |n: &NodeId| scenario.nodes[n.index()].name.clone();
                scenario.resolved.node[i].neighbours = found.iter().map(name).collect();
            }
            scenario.nodes[i].neighbours = found;
        }
        Ok(())
    }
}

fn loss_model(name: LossName) -> LossModel {
    match name {
        LossName::Bernoulli(p) if p.0 == 0.0 => LossModel::None,
        LossName::Bernoulli(p) => LossModel::Bernoulli { p: p.0 },
        LossName::GilbertElliott(section) => LossModel::GilbertElliott {
            good_to_bad: section.good_to_bad.0,
            bad_to_good: section.bad_to_good.0,
            loss_good: section.loss_good.0,
            loss_bad: section.loss_bad.0,
        },
    }
}
