//! Checks nodes with several interfaces, and pools for their send buffers.
//!
//! Packets of a path keep to one route in both directions: the shortest route over cables that
//! begins with the interface's link, unless a `[[route]]` for the interface says otherwise. Path
//! numbers are unique in the scenario, so that the paths of two nodes never share a number.

use std::collections::BTreeMap;

use super::super::buffers::BuffersOptions;
use super::super::file::{FileConfig, RouteSection};
use super::super::source::Step;
use super::super::units::quoted;
use super::super::{Interface, LinkSpec, NodeKind, NodeSpec, Scenario, WaySpec, did_you_mean};
use super::{Checked, Checker, at};
use anabranch_sim::apps::Interfaces;
use anabranch_sim::packet::{LinkId, NodeId};
use anabranch_sim::routing::{Edge, HOP, Metric, Routes};

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
                if !section.host.is_default() {
                    return self.fault(at, "the kernel plays this node and chooses its interfaces", None);
                }
                let link = self.link_of(at, file, name)?;
                let Some(link) =
                    [link, reverse(link)].into_iter().find(|link| from(links, *link).index() == i)
                else {
                    let message = format!("the link `{name}` is none of `{}`", section.name);
                    return self.fault(at, message, Some("a node's interfaces are links of its own"));
                };
                if section.interfaces[..j].contains(name) {
                    return self.fault(at, format!("`{name}` is named twice"), None);
                }
                path = match path.checked_add(1) {
                    Some(path) => path,
                    None => return self.fault(at, "a scenario has at most 255 interfaces", None),
                };
                nodes[i].interfaces.push(Interface { path, link });
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
        self.link_name(scenario, interface.link)
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
        let paths = interfaces.filter(|interface| [own, reverse(own)].contains(&interface.link));
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
        known: &mut BTreeMap<NodeId, Routes>,
    ) -> Checked<()> {
        for path in interfaces.paths() {
            let own = scenario.nodes[from.index()].interfaces.iter().find(|own| own.path == *path);
            let Some(first) = own.map(|own| own.link) else { continue };
            let routes = known.entry(from).or_insert_with(|| cables_without(scenario, from));
            let mut way = vec![first];
            while let Some(at) = way.last().map(|last| scenario.links[last.index()].to).filter(|at| *at != to)
            {
                let said = scenario.ways.iter().find(|way| (way.at, way.to, way.path) == (at, to, *path));
                let next = said.map(|way| way.link).or_else(|| routes.next(at, to));
                match next.filter(|_| scenario.nodes[at.index()].kind != NodeKind::Host) {
                    // A longer way than there are nodes has a loop.
                    Some(next) if way.len() < scenario.nodes.len() => way.push(next),
                    stuck => {
                        let [from, to, at] =
                            [from, to, at].map(|node| scenario.nodes[node.index()].name.as_str());
                        let name = self.link_name(scenario, first);
                        let message = format!("no packet gets from `{from}` over `{name}` to `{to}`");
                        let hint = match stuck {
                            Some(_) => format!("the `[[route]]`s for `{name}` lead in a circle"),
                            None => format!(
                                "it ends at `{at}`: hosts pass nothing on, and the way is one of links"
                            ),
                        };
                        return self.fault(at!["transfer", i, "interfaces"], message, Some(&hint));
                    }
                }
            }
            let hops = way.into_iter().flat_map(|link| {
                let LinkSpec { from: here, to: there, .. } = scenario.links[link.index()];
                [(here, to, link), (there, from, reverse(link))]
            });
            let hops: Vec<WaySpec> =
                hops.map(|(at, to, link)| WaySpec { at, to, path: *path, link }).collect();
            for hop in hops {
                let is_said = |way: &WaySpec| (way.at, way.to, way.path) == (hop.at, hop.to, hop.path);
                if !scenario.ways.iter().any(is_said) {
                    scenario.ways.push(hop);
                }
            }
        }
        Ok(())
    }
}

/// The other direction of a cable: the two directions have consecutive numbers.
fn reverse(link: LinkId) -> LinkId {
    LinkId(link.0 ^ 1)
}

fn from(links: &[LinkSpec], link: LinkId) -> NodeId {
    links[link.index()].from
}

/// Shortest routes over cables that do not lead back through `from`.
fn cables_without(scenario: &Scenario, from: NodeId) -> Routes {
    let edges = scenario.links.iter().enumerate().map(|(k, link)| Edge {
        link: LinkId(k as u32),
        from: link.from,
        to: link.to,
        weight: match scenario.network.metric {
            Metric::Hops => HOP,
            Metric::Delay => link.config.delay.as_nanos(),
        },
    });
    let edges: Vec<Edge> = edges.collect();
    // Without the sender: a path that led through it again would use another interface.
    let forwards = |n: NodeId| n != from && scenario.nodes[n.index()].kind != NodeKind::Host;
    Routes::compute(scenario.nodes.len(), &edges, forwards)
}
