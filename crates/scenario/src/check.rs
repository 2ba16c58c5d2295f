//! Checks a scenario file: binds every name and validates every value, or reports one error.

mod deployment;
mod emulation;
mod events;
mod interfaces;
mod links;
mod mobility;
mod probe;
mod radio;
mod random;
mod traffic;
mod transfers;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anabranch_core::time::Instant;
use anabranch_core::{dtc, tcp};
use anabranch_units::text;

use super::Tree;
use super::alias;
use super::buffers::BuffersOptions;
use super::chain;
use super::deployment::Drawn;
use super::file::{FileConfig, GatewayChoice, NodeSection, fifty_ms};
use super::identity::ScenarioDigest;
use super::rdca::RdcaOptions;
use super::source::traces::TraceFault;
use super::source::{Source, Step, matches};
use super::tcp::TcpProfile;
use super::topology;
use super::units::{keys_of, quoted};
use super::{ContentSpec, Gateways, NodeKind, NodeSpec, RouteSpec, Scenario, Scheme, WaySpec, advice};
use super::{ScenarioError, did_you_mean, nearest};
use anabranch_sim::network::NetworkConfig;
use anabranch_sim::packet::{IpVersion, NodeId};

type Checked<T> = Result<T, ScenarioError>;

impl Source {
    /// Reads and checks the scenario. A sweep is ignored: see [`Source::points`].
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        self.scenario_of(&|| self.tree())
    }

    /// [`Source::scenario`] without parsing the text again. `parsed` is [`Source::parsed`] of a
    /// source with the same text; it is shared when many scenarios are made of one file.
    ///
    /// # Errors
    /// As [`Source::scenario`].
    pub fn scenario_from<'s>(&'s self, parsed: &Tree<'s>) -> Result<Scenario, ScenarioError> {
        self.scenario_of(&|| self.changed(parsed.clone()))
    }

    /// The seed of the scenario. The rest of the scenario need not be runnable.
    ///
    /// # Errors
    /// If a key is unknown or a value is invalid on its own.
    pub fn seed(&self) -> Result<u64, ScenarioError> {
        let file: Result<FileConfig, _> = text::read_tree(&self.tree()?);
        Ok(file.map_err(|error| self.error_at_span(error))?.seed)
    }

    /// Checks the scenario of a tree. `tree` makes the tree again if an error needs positions: most
    /// scenarios have no error, so the tree is consumed first.
    pub(super) fn scenario_of<'s>(&'s self, tree: &dyn Fn() -> Checked<Tree<'s>>) -> Checked<Scenario> {
        let whole = || chain::spread(self, topology::grow(self, tree()?)?);
        let read = text::read_tree(&whole()?).map_err(|error| self.error_at_span(error));
        let mut file: FileConfig = read.or_else(|error| Err(alias::hinted(error, &whole()?)))?;
        file.sweep.clear();
        let names = std::mem::take(&mut file.alias).into_keys();
        let mut checker = Checker {
            source: self,
            whole: &whole,
            tree: OnceCell::new(),
            said: file.node.len(),
            members: file.nodes.iter().map(|nodes| nodes.count.total() as usize).collect(),
            nodes: BTreeMap::new(),
            profiles: BTreeMap::new(),
            rdca: BTreeMap::new(),
            coap: BTreeMap::new(),
            pools: BTreeMap::new(),
            first_links: Vec::new(),
            axes: OnceCell::new(),
        };
        checker.aliases(names)?;
        checker.scenario(file)
    }
}

impl Scenario {
    /// Releases unused capacity of lists: a sweep holds thousands of scenarios.
    fn shrink(&mut self) {
        let Self { nodes, links, transfers, traffic, resolved, .. } = self;
        nodes.shrink_to_fit();
        links.shrink_to_fit();
        transfers.shrink_to_fit();
        traffic.shrink_to_fit();
        resolved.node.shrink_to_fit();
        resolved.link.shrink_to_fit();
        resolved.transfer.shrink_to_fit();
        resolved.traffic.shrink_to_fit();
    }
}

struct Checker<'s> {
    source: &'s Source,
    /// Makes the tree again.
    whole: &'s dyn Fn() -> Checked<Tree<'s>>,
    /// The tree, once it has been asked for.
    tree: OnceCell<Tree<'s>>,
    /// Number of tables `[[node]]`.
    said: usize,
    /// Number of nodes of each `[[nodes]]` table; these nodes follow those of `[[node]]`.
    members: Vec<usize>,
    nodes: BTreeMap<String, NodeId>,
    profiles: BTreeMap<String, tcp::Config>,
    rdca: BTreeMap<String, RdcaOptions>,
    coap: BTreeMap<String, anabranch_core::coap::Config>,
    pools: BTreeMap<String, BuffersOptions>,
    /// Index of the first link of each table `[[link]]`, followed by the number of links. A table
    /// makes any number of links, each in both directions.
    first_links: Vec<usize>,
    /// Positions of the axes of the file's own sweep, once they have been asked for. The tree of a
    /// point no longer has the sweep.
    axes: OnceCell<Vec<Range<usize>>>,
}

/// A path into the file.
macro_rules! at {
    ($($step:expr),* $(,)?) => { &[$($crate::source::Step::from($step)),*] };
}
use at;

impl<'s> Checker<'s> {
    fn tree(&self) -> &Tree<'s> {
        self.tree.get_or_init(|| (self.whole)().expect("it could be made before"))
    }

    fn fault<T>(&self, path: &[Step], message: impl Into<String>, hint: Option<&str>) -> Checked<T> {
        Err(self.error(path, message.into(), hint))
    }

    /// Turns the result of reading another file into an error of the scenario; `what` names that
    /// file.
    fn of_file<T>(&self, path: &[Step], what: &str, read: Result<T, TraceFault>) -> Checked<T> {
        read.or_else(|fault| match fault {
            TraceFault::Wrong(error) => Err(error),
            TraceFault::Unreadable(why) => {
                let hint = "the name of the file is relative to the folder of the scenario";
                self.fault(path, format!("cannot read {what}: {why}"), Some(hint))
            }
        })
    }

    fn error(&self, path: &[Step], message: String, hint: Option<&str>) -> ScenarioError {
        let path = &*self.section_of(path);
        self.source.error_at(self.tree(), path, message, hint.map(str::to_owned))
    }

    /// The path of the table that describes a path's value: a node of `[[nodes]]` has no table of
    /// its own.
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

    /// Whether an override or an axis has chosen the value at `path`.
    fn is_chosen(&self, path: &[Step]) -> bool {
        self.source.is_chosen(self.tree(), path, self.axes.get_or_init(|| self.source.axis_spans()))
    }

    /// Refuses an alias with the name of a section: it would hide the section from overrides and
    /// axes.
    fn aliases(&self, names: impl Iterator<Item = String>) -> Checked<()> {
        for name in names {
            let hides = match name.as_str() {
                "" => Some("an alias needs a name".to_owned()),
                dotted if dotted.contains('.') => Some(format!("`{name}` is a path")),
                key if keys_of::<FileConfig>().contains(&key) => {
                    Some(format!("`{name}` is a key of scenario files"))
                }
                _ => None,
            };
            if let Some(message) = hides {
                return self.fault(
                    at!["alias", name.as_str()],
                    message,
                    Some("choose another name for the alias"),
                );
            }
        }
        Ok(())
    }

    fn scenario(&mut self, mut file: FileConfig) -> Checked<Scenario> {
        if file.stop.0.is_zero() {
            return self.fault(at!["stop"], "the simulation would end before it begins", None);
        }
        let network = self.network(&file)?;
        self.profiles(&mut file)?;
        self.rdca = self.rdca_profiles(&mut file)?;
        self.coap = self.coap_profiles(&mut file)?;
        self.pools(&mut file)?;
        let deployment = self.expand(&mut file)?;
        let mut nodes = self.nodes(&file, network.ip)?;
        let emulation = self.emulation(&mut file, &nodes)?;
        let commands = self.commands(&file, &nodes)?;
        self.leave_thresholds_aside(&mut file);
        let (links, group_links) = self.links(&file)?;
        self.interfaces(&file, &mut nodes, &links)?;
        for section in &mut file.link {
            // Without reordering, `lateness` is invalid, so the resolved scenario leaves it out.
            // The default value is left out too.
            let means = section.reordering.0 > 0.0;
            section.lateness = section.lateness.filter(|span| means && *span != fifty_ms());
        }
        let channel = self.channel(&mut file)?;
        let said: Vec<bool> = file.node.iter().map(|node| node.position.is_some()).collect();
        let (mobility, read_from) = self.mobility(&deployment, &mut file)?;
        let (deployment, drawn) = self.deployment(deployment, channel.as_ref(), &mut file)?.unzip();
        let radio = self.radio(channel, &mut file)?;
        let aodv = self.aodv(&mut file)?;
        let mut scenario = Scenario {
            name: file.name.clone(),
            seed: file.seed,
            stop: Instant::ZERO + file.stop.0,
            network,
            nodes,
            links,
            group_links,
            radio,
            aodv,
            deployment,
            mobility,
            paths: None,
            routes: Vec::new(),
            ways: Vec::new(),
            transfers: Vec::new(),
            traffic: Vec::new(),
            probes: Vec::new(),
            faults: Vec::new(),
            random_events: Vec::new(),
            emulation,
            crossings: Vec::new(),
            commands,
            read_from,
            advised: BTreeMap::new(),
            digest: ScenarioDigest::default(),
            resolved: file,
        };
        self.connected(&scenario, &drawn.unwrap_or_default())?;
        scenario.paths = self.paths(&mut scenario)?;
        (scenario.routes, scenario.ways) = self.routes(&scenario)?;
        self.neighbours(&mut scenario)?;
        self.radio_devices(&scenario)?;
        self.radio_interfaces(&scenario)?;
        self.crossings(&mut scenario)?;
        self.transfers(&mut scenario)?;
        scenario.traffic = self.traffic(&mut scenario)?;
        scenario.probes = self.probes(&scenario)?;
        self.unused_profiles(&mut scenario)?;
        for i in 0..scenario.resolved.event.len() {
            let section = scenario.resolved.event[i].clone();
            let at = Instant::ZERO + section.at.0;
            let faults = self.event(i, &section, &scenario)?;
            scenario.faults.extend(faults.into_iter().map(|(after, fault)| (at + after, fault)));
        }
        scenario.random_events = self.random_events(&scenario)?;
        // The resolved scenario lists groups of nodes as tables `[[nodes]]`, not as single nodes.
        scenario.resolved.node.truncate(self.said);
        // The start of a moving node differs between runs, so it is not part of the resolved
        // scenario.
        for (node, said) in scenario.resolved.node.iter_mut().zip(said) {
            node.position = node.position.filter(|_| said);
        }
        self.advise(&mut scenario)?;
        scenario.digest = ScenarioDigest::of(&mut scenario.resolved, self.source.policies());
        scenario.shrink();
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
            fragmentation: section.fragmentation,
            metric: section.metric,
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
            **profile = TcpProfile::complete(profile.base.unwrap_or_default(), &config);
            self.profiles.insert(name.clone(), config);
        }
        Ok(())
    }

    /// Refuses a profile that no section names: it is probably misspelt. If profiles are selected
    /// from outside, an unused profile is removed instead.
    fn unused_profiles(&self, scenario: &mut Scenario) -> Checked<()> {
        let file = &scenario.resolved;
        let transfers = file.transfer.iter();
        let transfers =
            transfers.flat_map(|t| [Some(&t.tcp), t.tcp_wireless.as_ref(), t.tcp_receiver.as_ref()]);
        let traffic = || file.traffic.iter();
        let tcp: BTreeSet<String> =
            transfers.flatten().chain(traffic().filter_map(|t| t.tcp.as_ref())).cloned().collect();
        let dtc: BTreeSet<String> = file.node.iter().filter_map(|node| node.dtc.clone()).collect();
        let rdca: BTreeSet<String> = traffic().filter_map(|t| t.rdca.clone()).collect();
        let coap: BTreeSet<String> = file.transfer.iter().filter_map(|t| t.coap.clone()).collect();
        let buffers: BTreeSet<String> = file.node.iter().filter_map(|node| node.buffers.clone()).collect();
        let unused_buffers = file.buffers.keys().find(|name| !buffers.contains(*name));
        let unused_tcp = file.tcp.keys().find(|name| *name != "default" && !tcp.contains(*name));
        let unused_dtc = file.dtc.keys().find(|name| !dtc.contains(*name));
        let unused_rdca = file.rdca.keys().find(|name| *name != "default" && !rdca.contains(*name));
        let unused_coap = file.coap.keys().find(|name| *name != "default" && !coap.contains(*name));
        let kinds = [
            ("tcp", unused_tcp, &tcp, "transfer or traffic", "`tcp`, `tcp_wireless` or `tcp_receiver`"),
            ("dtc", unused_dtc, &dtc, "node", "`dtc`"),
            ("rdca", unused_rdca, &rdca, "traffic", "`rdca`"),
            ("coap", unused_coap, &coap, "transfer", "`coap`"),
            ("buffers", unused_buffers, &buffers, "node", "`buffers`"),
        ];
        for (kind, unused, used, user, keys) in kinds {
            let Some(name) = unused else { continue };
            if self.source.selects_profiles() {
                break;
            }
            let hint = match nearest(name, used.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `[{kind}.{near}]`, which a {user} names?"),
                None => format!("name it in {keys} of a {user}, or remove it"),
            };
            let message = format!("no {user} uses the profile `{kind}.{name}`");
            return self.fault(at![kind, name.as_str()], message, Some(&hint));
        }
        scenario.resolved.tcp.retain(|name, _| name == "default" || tcp.contains(name));
        scenario.resolved.dtc.retain(|name, _| dtc.contains(name));
        scenario.resolved.rdca.retain(|name, _| rdca.contains(name));
        scenario.resolved.coap.retain(|name, _| coap.contains(name));
        scenario.resolved.buffers.retain(|name, _| buffers.contains(name));
        Ok(())
    }

    /// Replaces `gateways = "best"` of each transfer by a number.
    fn advise(&self, scenario: &mut Scenario) -> Checked<()> {
        for transfer in 0..scenario.transfers.len() {
            let i = scenario.transfers[transfer].section;
            if !matches!(scenario.resolved.transfer[i].gateways, Some(GatewayChoice::Best(_))) {
                continue;
            }
            let at = at!["transfer", i, "gateways"];
            let hint = Some("give the number of gateways, or their names");
            let octets = match &scenario.transfers[transfer].content {
                ContentSpec::Bytes(octets) => *octets,
                ContentSpec::File(name) => match self.source.length_of(name) {
                    Some(octets) => octets,
                    None => {
                        let message = format!(
                            "the best number depends on the length of `{name}`, which cannot be read"
                        );
                        return self.fault(at, message, hint);
                    }
                },
                ContentSpec::Endless => 0,
            };
            let best = match advice::number(scenario, transfer, octets) {
                Ok(best) => best,
                Err(message) => return self.fault(at, message, hint),
            };
            let number = best.gateways as u32;
            if let Scheme::Set(spec) = &mut scenario.transfers[transfer].scheme {
                spec.gateways = Gateways::AtMost(number);
            }
            scenario.resolved.transfer[i].gateways = Some(GatewayChoice::Count(number));
            scenario.advised.insert(transfer, best);
        }
        Ok(())
    }

    fn nodes(&mut self, file: &FileConfig, ip: IpVersion) -> Checked<Vec<NodeSpec>> {
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
                tun: self.tun(i, file, ip)?,
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
        let profile = self.named(at, ("profile", "dtc"), name, &file.dtc)?;
        match profile.config() {
            Ok(config) => Ok(Some(config)),
            Err((key, message)) => self.fault(at!["dtc", name.as_str(), key], message, None),
        }
    }

    /// The entry of a table `[kind.NAME]` with a name that is given at `path`. Errors call the
    /// entry a `noun`.
    fn named<'n, T>(
        &self,
        path: &[Step],
        (noun, kind): (&str, &str),
        name: &str,
        all: &'n BTreeMap<String, T>,
    ) -> Checked<&'n T> {
        if let Some(found) = all.get(name) {
            return Ok(found);
        }
        let hint = did_you_mean(name, all.keys()).unwrap_or_else(|| format!("add `[{kind}.{name}]`"));
        self.fault(path, format!("there is no {noun} `{kind}.{name}`"), Some(&hint))
    }

    /// The node with a name that is given at `path`.
    fn node(&self, path: &[Step], name: &str) -> Checked<NodeId> {
        if let Some(node) = self.nodes.get(name) {
            return Ok(*node);
        }
        let hint = did_you_mean(name, self.nodes.keys())
            .unwrap_or_else(|| format!("the nodes are {}", quoted(self.nodes.keys())));
        self.fault(path, format!("there is no node `{name}`"), Some(&hint))
    }

    /// Whether the file or an override has exactly this key.
    fn is_given(&self, path: &[Step]) -> bool {
        self.source.has(self.tree(), path)
    }

    /// Checks that every node can be reached from the first, over links in any direction, in the
    /// first run of the scenario.
    fn connected(&self, scenario: &Scenario, drawn: &Drawn) -> Checked<()> {
        if scenario.deployment.as_ref().is_some_and(|deployment| !deployment.section.connected) {
            return Ok(());
        }
        let nodes = &scenario.nodes;
        let mut neighbours = vec![Vec::new(); nodes.len()];
        let cables = scenario.cables(drawn).into_iter().map(|link| (link.from, link.to));
        let edges = scenario.edges().map(|(_, from, to)| (from, to)).chain(cables);
        edges.for_each(|(from, to)| neighbours[from.index()].push(to));
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
                return self.fault(at!["route", i], message, Some("remove `[paths]` or the route"));
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
