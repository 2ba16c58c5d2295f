//! Checks nodes with several interfaces, and pools for their send buffers.
//!
//! Packets of a path keep to one route in both directions: the shortest route that begins with the
//! interface's link, or over the radio, unless a `[[route]]` for the interface says otherwise. Path
//! numbers are unique in the scenario, so that the paths of two nodes never share a number. Two TUN
//! ends have a path for each pair of their addresses.

use std::collections::BTreeMap;

use super::super::buffers::BuffersOptions;
use super::super::emulation::Crossing;
use super::super::file::{FileConfig, RouteSection};
use super::super::source::Step;
use super::super::units::quoted;
use super::super::{Interface, LinkSpec, NodeKind, NodeSpec, Outlet, Scenario, WaySpec, did_you_mean};
use super::{Checked, Checker, at};
use anabranch_sim::apps::Interfaces;
use anabranch_sim::packet::{LinkId, NodeId};
use anabranch_sim::routing::{Edge, HOP, Metric, Routes};

/// Name of the interface to the channel of `[radio]` or `[wifi]`.
const RADIO: &str = "radio";
/// Largest number of paths, which have a number of one byte.
const MOST_PATHS: &str =
    "a scenario has at most 255 paths: interfaces, and pairs of interfaces of two TUN ends";

impl Checker<'_> {
    /// Resolves the pools of send buffers.
    pub(super) fn pools(&mut self, file: &mut FileConfig) -> Checked<()> {
        for (name, profile) in &mut file.buffers {
            match profile.resolve() {
                Ok(options) => self.pools.insert(name.clone(), options),
                Err((keys, message)) => {
                    let keys = keys.into_iter().map(Step::from);
                    let path: Vec<Step> = at!["buffers", name.as_str()].iter().cloned().chain(keys).collect();
                    return self.fault(&path, message, None);
                }
            };
        }
        Ok(())
    }

    /// The pool of a node.
    pub(super) fn pool(&self, i: usize, file: &FileConfig) -> Checked<Option<BuffersOptions>> {
        let section = &file.node[i];
        let Some(name) = &section.buffers else { return Ok(None) };
        let at = at!["node", i, "buffers"];
        if !section.host.is_default() {
            return self.fault(at, "the kernel plays this node and has its own buffers", None);
        }
        Ok(Some(*self.named(at, ("pool", "buffers"), name, &self.pools)?))
    }

    /// Binds the interfaces of nodes to their links, and assigns path numbers.
    pub(super) fn interfaces(
        &self,
        file: &FileConfig,
        nodes: &mut [NodeSpec],
        links: &[LinkSpec],
    ) -> Checked<()> {
        let mut path = 0u8;
        for (i, section) in file.node.iter().enumerate() {
            for (j, name) in section.interfaces.iter().enumerate() {
                let at = at!["node", i, "interfaces", j];
                if file.paths.is_some() {
                    let hint = Some("remove `[paths]` or `interfaces`");
                    return self.fault(at, "an interface has no meaning where nodes build paths", hint);
                }
                let outlet = if name == RADIO && !has_link(file, RADIO) {
                    if file.radio.is_none() && file.wifi.is_none() {
                        let hint = "add `[radio]`, or name a link";
                        return self.fault(at, "the scenario has no radio", Some(hint));
                    }
                    Outlet::Radio
                } else {
                    let link = self.link_of(at, file, name)?;
                    let own = [link, reverse(link)].into_iter().find(|link| from(links, *link).index() == i);
                    let Some(link) = own else {
                        let message = format!("the link `{name}` is none of `{}`", section.name);
                        return self.fault(at, message, Some("a node's interfaces are links of its own"));
                    };
                    Outlet::Link(link)
                };
                if section.interfaces[..j].contains(name) {
                    return self.fault(at, format!("`{name}` is named twice"), None);
                }
                path = match path.checked_add(1) {
                    Some(path) => path,
                    None => return self.fault(at, MOST_PATHS, None),
                };
                nodes[i].interfaces.push(Interface { path, outlet });
            }
        }
        Ok(())
    }

    /// Refuses the radio as the interface of a node that has none, or whose routes over the air are
    /// not those of the whole run.
    pub(super) fn radio_interfaces(&self, scenario: &Scenario) -> Checked<()> {
        for (i, node) in scenario.nodes.iter().enumerate() {
            let Some(j) = node.interfaces.iter().position(|own| own.outlet == Outlet::Radio) else {
                continue;
            };
            let at = at!["node", i, "interfaces", j];
            if !scenario.is_on_air(NodeId(i as u32)) {
                let message = format!("`{}` is not on the radio", node.name);
                return self.fault(at, message, Some("give it a `position`"));
            }
            if scenario.deployment.is_some() || !scenario.mobility.is_empty() || scenario.aodv.is_some() {
                let message = "the radio is an interface only where its routes do not change";
                let hint = "give all nodes fixed positions, and remove `[aodv]` and movements";
                return self.fault(at, message, Some(hint));
            }
        }
        Ok(())
    }

    /// Adds a path for each pair of addresses of two TUN ends of which one has several.
    pub(super) fn crossings(&self, scenario: &mut Scenario) -> Checked<()> {
        let ends: Vec<NodeId> = (0..)
            .map(NodeId)
            .zip(&scenario.nodes)
            .filter(|(_, node)| node.tun.is_some())
            .map(|(id, _)| id)
            .collect();
        let mut number = scenario.nodes.iter().map(|node| node.interfaces.len()).sum::<usize>();
        let mut joined = vec![false; number + 1];
        for (k, &from) in ends.iter().enumerate() {
            for &to in &ends[k + 1..] {
                let [ours, theirs] = [from, to].map(|end| outlets(scenario, end));
                for (i, (own, leave)) in ours.iter().enumerate() {
                    for (j, (other, arrive)) in theirs.iter().enumerate() {
                        let path = match (*own, *other) {
                            (0, 0) => continue,
                            (path, 0) | (0, path) => path,
                            _ => u8::try_from(number + 1).or_else(|_| {
                                self.fault(at!["node", to.index(), "interfaces"], MOST_PATHS, None)
                            })?,
                        };
                        let routes = routes_between(scenario, (from, *leave), (to, *arrive));
                        let Ok(way) = walk(scenario, &routes, (from, None), to, path) else { continue };
                        number += usize::from(*own != 0 && *other != 0);
                        [own, other].into_iter().for_each(|own| joined[usize::from(*own)] = true);
                        keep_to(scenario, way, (from, to), path);
                        scenario.crossings.push(Crossing { ends: [(from, i), (to, j)], path });
                    }
                }
            }
        }
        for end in ends.iter().filter(|_| ends.len() > 1) {
            let own = &scenario.nodes[end.index()].interfaces;
            if let Some(j) = own.iter().position(|own| !joined[usize::from(own.path)]) {
                let name = self.interface_name(scenario, &own[j]);
                let node = &scenario.nodes[end.index()].name;
                let message = format!("no packet gets from `{node}` over `{name}` to another TUN end");
                let hint = "add links or nodes that join them; hosts pass nothing on";
                return self.fault(at!["node", end.index(), "interfaces", j], message, Some(hint));
            }
        }
        Ok(())
    }

    /// The link with this name, in its forward direction. A name of several links is an error.
    pub(super) fn link_of(&self, at: &[Step], file: &FileConfig, name: &str) -> Checked<LinkId> {
        if let Some(k) = file.link.iter().position(|link| link.name.as_deref() == Some(name)) {
            let first = self.first_links[k];
            return match self.first_links[k + 1] - first {
                2 => Ok(LinkId(first as u32)),
                directions => {
                    let message = format!("`{name}` is the name of {} links", directions / 2);
                    let hint =
                        "an interface is one link: let the `name` have `{i}`, as the end with the nodes";
                    self.fault(at, message, Some(hint))
                }
            };
        }
        let names = || file.link.iter().filter_map(|link| link.name.as_ref());
        let hint = match did_you_mean(name, names()) {
            Some(hint) => hint,
            None if names().next().is_none() => "give the links that are meant a `name`".to_owned(),
            None => format!("the names of links are {}", quoted(names())),
        };
        self.fault(at, format!("there is no link of the name `{name}`"), Some(&hint))
    }

    fn link_name<'f>(&self, scenario: &'f Scenario, link: LinkId) -> &'f str {
        let section = self.first_links.partition_point(|first| *first <= link.index()) - 1;
        scenario.resolved.link[section].name.as_deref().unwrap_or_default()
    }

    fn interface_name<'f>(&self, scenario: &'f Scenario, interface: &Interface) -> &'f str {
        interface.outlet.link().map_or(RADIO, |link| self.link_name(scenario, link))
    }

    /// Adds the routes for packets that keep to an interface: one for each path that begins at its
    /// link.
    pub(super) fn way(
        &self,
        i: usize,
        section: &RouteSection,
        scenario: &Scenario,
        (at, to, link): (NodeId, NodeId, LinkId),
    ) -> Checked<Vec<WaySpec>> {
        let Some(name) = &section.interface else { return Ok(Vec::new()) };
        let place = at!["route", i, "interface"];
        let own = self.link_of(place, &scenario.resolved, name)?;
        let interfaces = scenario.nodes.iter().flat_map(|node| &node.interfaces);
        let paths = interfaces.filter(|interface| {
            interface.outlet.link().is_some_and(|link| [own, reverse(own)].contains(&link))
        });
        let ways: Vec<WaySpec> =
            paths.map(|interface| WaySpec { at, to, path: interface.path, link }).collect();
        if ways.is_empty() {
            let hint = format!("set `interfaces = [\"{name}\"]` at one of its ends");
            return self.fault(place, format!("`{name}` is not an interface of any node"), Some(&hint));
        }
        if scenario.is_wireless(link) {
            let message = "packets that keep to an interface go over links, not over the air";
            return self.fault(at!["route", i, "via"], message, None);
        }
        Ok(ways)
    }

    /// The interfaces that a transfer names, or its default interfaces.
    pub(super) fn interfaces_of(
        &self,
        i: usize,
        names: &[String],
        node: &NodeSpec,
        scenario: &Scenario,
    ) -> Checked<Vec<Interface>> {
        let mut found = Vec::new();
        for (j, name) in names.iter().enumerate() {
            let at = at!["transfer", i, "interfaces", j];
            let mut own =
                node.interfaces.iter().map(|interface| (interface, self.interface_name(scenario, interface)));
            match own.find(|(_, own)| *own == name) {
                Some((interface, _)) if !found.contains(interface) => found.push(*interface),
                Some(_) => return self.fault(at, format!("`{name}` is named twice"), None),
                None => {
                    let own =
                        || node.interfaces.iter().map(|interface| self.interface_name(scenario, interface));
                    let hint = match did_you_mean(name, own()) {
                        Some(hint) => hint,
                        None if node.interfaces.is_empty() => {
                            format!("set `interfaces = [\"{name}\"]` at the node `{}`", node.name)
                        }
                        None => format!("its interfaces are {}", quoted(own())),
                    };
                    return self.fault(at, format!("`{}` has no interface `{name}`", node.name), Some(&hint));
                }
            }
        }
        Ok(found)
    }

    /// Adds the routes of these paths from `from` to `to` and back, except those that are given.
    pub(super) fn ways(
        &self,
        i: usize,
        scenario: &mut Scenario,
        (from, to): (NodeId, NodeId),
        interfaces: &Interfaces,
        known: &mut BTreeMap<u8, Routes>,
    ) -> Checked<()> {
        for path in interfaces.paths() {
            let own = scenario.nodes[from.index()].interfaces.iter().find(|own| own.path == *path);
            let Some(own) = own.copied() else { continue };
            let any = (to, None);
            let routes =
                known.entry(*path).or_insert_with(|| routes_between(scenario, (from, Some(own.outlet)), any));
            match walk(scenario, routes, (from, own.outlet.link()), to, *path) {
                Ok(way) => keep_to(scenario, way, (from, to), *path),
                Err(stuck) => {
                    let name = |node: NodeId| scenario.nodes[node.index()].name.as_str();
                    let interface = self.interface_name(scenario, &own);
                    let message =
                        format!("no packet gets from `{}` over `{interface}` to `{}`", name(from), name(to));
                    let hint = match stuck {
                        Stuck::Circle => format!("the `[[route]]`s for `{interface}` lead in a circle"),
                        Stuck::At(node) => format!("it ends at `{}`: hosts pass nothing on", name(node)),
                    };
                    return self.fault(at!["transfer", i, "interfaces"], message, Some(&hint));
                }
            }
        }
        Ok(())
    }
}

/// Why there is no route for an interface.
enum Stuck {
    /// No link leads on from this node.
    At(NodeId),
    /// The routes that were given lead in a circle.
    Circle,
}

/// The links from `from` to `to`, over `first` if it is given.
fn walk(
    scenario: &Scenario,
    routes: &Routes,
    (from, first): (NodeId, Option<LinkId>),
    to: NodeId,
    path: u8,
) -> Result<Vec<LinkId>, Stuck> {
    let Some(first) = first.or_else(|| routes.next(from, to)) else { return Err(Stuck::At(from)) };
    let mut way = vec![first];
    while let Some(at) = way.last().map(|last| ends_of(scenario, *last).1).filter(|at| *at != to) {
        let said = scenario.ways.iter().find(|way| (way.at, way.to, way.path) == (at, to, path));
        let next = said.map(|way| way.link).or_else(|| routes.next(at, to));
        match next.filter(|_| scenario.nodes[at.index()].kind != NodeKind::Host) {
            // A longer way than there are nodes has a loop.
            Some(next) if way.len() < scenario.nodes.len() => way.push(next),
            Some(_) => return Err(Stuck::Circle),
            None => return Err(Stuck::At(at)),
        }
    }
    Ok(way)
}

/// Makes the packets of a path keep to these links from `from` to `to`, and back, except where
/// other links were given.
fn keep_to(scenario: &mut Scenario, way: Vec<LinkId>, (from, to): (NodeId, NodeId), path: u8) {
    for link in way {
        let (here, there) = ends_of(scenario, link);
        let back = match scenario.is_wireless(link) {
            false => Some(reverse(link)),
            true => {
                scenario.edges().find(|(_, from, to)| (*from, *to) == (there, here)).map(|(link, ..)| link)
            }
        };
        for (at, to, link) in
            [Some((here, to, link)), back.map(|back| (there, from, back))].into_iter().flatten()
        {
            if !scenario.ways.iter().any(|way| (way.at, way.to, way.path) == (at, to, path)) {
                scenario.ways.push(WaySpec { at, to, path, link });
            }
        }
    }
}

/// The paths and outlets of a TUN end by the index of the address; those without `interfaces` have
/// one address, and any outlet.
fn outlets(scenario: &Scenario, end: NodeId) -> Vec<(u8, Option<Outlet>)> {
    match &*scenario.nodes[end.index()].interfaces {
        [] => vec![(0, None)],
        own => own.iter().map(|own| (own.path, Some(own.outlet))).collect(),
    }
}

fn has_link(file: &FileConfig, name: &str) -> bool {
    file.link.iter().any(|link| link.name.as_deref() == Some(name))
}

fn ends_of(scenario: &Scenario, link: LinkId) -> (NodeId, NodeId) {
    match link.index().checked_sub(scenario.links.len()) {
        None => (scenario.links[link.index()].from, scenario.links[link.index()].to),
        Some(over_air) => scenario.radio.as_ref().expect("a link over the air needs a radio").links[over_air],
    }
}

/// The other direction of a cable: the two directions have consecutive numbers.
fn reverse(link: LinkId) -> LinkId {
    LinkId(link.0 ^ 1)
}

fn from(links: &[LinkSpec], link: LinkId) -> NodeId {
    links[link.index()].from
}

/// Shortest routes that leave `from` by its outlet, do not lead back through it, and reach `to` by
/// the outlet of `to`; any outlet if it is `None`.
fn routes_between(
    scenario: &Scenario,
    (from, leave): (NodeId, Option<Outlet>),
    (to, arrive): (NodeId, Option<Outlet>),
) -> Routes {
    let uses = |outlet: Option<Outlet>, link: LinkId| match outlet {
        None => true,
        Some(Outlet::Link(own)) => link == own,
        Some(Outlet::Radio) => scenario.is_wireless(link),
    };
    let back = |link: LinkId| if scenario.is_wireless(link) { link } else { reverse(link) };
    let lengths = scenario.links.iter().map(|link| link.config.delay.as_nanos());
    let over_air = scenario.radio.iter().flat_map(|radio| &radio.lengths);
    let lengths: Vec<u64> = match scenario.network.metric {
        Metric::Hops => lengths.map(|_| HOP).chain(over_air.copied()).collect(),
        Metric::Delay => lengths.chain(over_air.map(|_| 0)).collect(),
    };
    let edges = scenario.edges().zip(lengths);
    let edges: Vec<Edge> = edges
        .map(|((link, from, to), weight)| Edge { link, from, to, weight })
        .filter(|edge| edge.from != from || uses(leave, edge.link))
        .filter(|edge| edge.to != to || uses(arrive, back(edge.link)))
        .collect();
    // Without the sender: a path that led through it again would use another interface.
    let forwards = |n: NodeId| n != from && scenario.nodes[n.index()].kind != NodeKind::Host;
    Routes::compute(scenario.nodes.len(), &edges, forwards)
}
