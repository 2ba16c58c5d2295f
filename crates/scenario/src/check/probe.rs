//! Checks probes.

use anabranch_core::time::Instant;

use super::super::probe::{During, ProbeKind, ProbeSection, ProbeSpec};
use super::super::traffic::Senders;
use super::super::units::{Span, quoted};
use super::super::{Scenario, did_you_mean};
use super::deployment::Named;
use super::{Checked, Checker, at, matches};
use anabranch_sim::packet::NodeId;
use anabranch_sim::probe::packets::HopMedium;

impl Checker<'_> {
    pub(super) fn probes(&self, scenario: &Scenario) -> Checked<Vec<ProbeSpec>> {
        let sections = scenario.resolved.probe.iter();
        sections.map(|(name, section)| self.probe(name, section, scenario)).collect()
    }

    fn probe(&self, name: &str, section: &ProbeSection, scenario: &Scenario) -> Checked<ProbeSpec> {
        if name.is_empty() || name.contains('.') {
            let message = format!("`{name}` cannot be the name of a probe");
            let hint = Some("figures are `probe.NAME.FIGURE`: choose a name without a dot");
            return self.fault(at!["probe", name], message, hint);
        }
        let of_radios = section.kind.is_of_radios();
        if section.medium.is_some() && section.kind != ProbeKind::Packets {
            let message = "`medium` says which hops of packets count, and this probe counts none";
            return self.fault(at!["probe", name, "medium"], message, Some("remove it"));
        }
        let no_radio = scenario.radio.is_none();
        if of_radios && no_radio {
            let hint = Some("remove the probe, or add `[radio]` or `[wifi]`");
            return self.fault(at!["probe", name, "kind"], "no node has a radio whose energy counts", hint);
        }
        if section.medium == Some(HopMedium::Air) && no_radio {
            let hint = Some("remove `medium`, or add `[radio]` or `[wifi]`");
            return self.fault(at!["probe", name, "medium"], "no node has a radio", hint);
        }
        if section.medium == Some(HopMedium::Cable) && scenario.resolved.link.is_empty() {
            let hint = Some("remove `medium`, or add a `[[link]]`");
            return self.fault(at!["probe", name, "medium"], "no two nodes are joined by a cable", hint);
        }
        let nodes = match &section.nodes {
            None => {
                let nodes = (0..scenario.nodes.len() as u32).map(NodeId);
                Senders::Nodes(nodes.filter(|node| !of_radios || scenario.is_on_air(*node)).collect())
            }
            Some(names) => {
                let path = at!["probe", name, "nodes"];
                if names.names().is_empty() {
                    let hint = Some(match of_radios {
                        true => "remove `nodes` for all nodes on the air",
                        false => "remove `nodes` for all nodes",
                    });
                    return self.fault(path, "a probe of no nodes measures nothing", hint);
                }
                match self.nodes_named(path, names.names(), &scenario.resolved)? {
                    Named::Group(group) => Senders::Group(group),
                    Named::Nodes(nodes) => {
                        let wired = nodes.iter().find(|node| of_radios && !scenario.is_on_air(**node));
                        if let Some(wired) = wired {
                            let message =
                                format!("`{}` is not on the air", scenario.nodes[wired.index()].name);
                            let hint = "name nodes that have a `position`, or remove `nodes` for all of them";
                            return self.fault(path, message, Some(hint));
                        }
                        Senders::Nodes(nodes)
                    }
                }
            }
        };
        let to = self.probe_ends(name, section, scenario)?;
        if let (ProbeKind::Queues, Senders::Nodes(from), true) =
            (section.kind, &nodes, scenario.group_links.is_empty())
        {
            let ends_there = |node| to.as_ref().is_none_or(|to| to.contains(&node));
            if !scenario.links.iter().any(|link| from.contains(&link.from) && ends_there(link.to)) {
                let hint = Some(
                    "`nodes` are where cables begin, and `to` is where they end: the two ends of a `[[link]]`",
                );
                return self.fault(at!["probe", name], "no cable leads from these nodes to those", hint);
            }
        }
        let during = self.window(name, section, scenario)?;
        let &ProbeSection { kind, medium, .. } = section;
        Ok(ProbeSpec { name: name.to_owned(), kind, nodes, medium, to, during })
    }

    /// The nodes at which measured cables or flows end.
    fn probe_ends(
        &self,
        name: &str,
        section: &ProbeSection,
        scenario: &Scenario,
    ) -> Checked<Option<Vec<NodeId>>> {
        let path = at!["probe", name, "to"];
        if section.kind == ProbeKind::Queues && scenario.resolved.link.is_empty() {
            let hint = Some("remove the probe, or add a `[[link]]`");
            return self.fault(at!["probe", name, "kind"], "no two nodes are joined by a cable", hint);
        }
        let Some(names) = &section.to else { return Ok(None) };
        if names.names().is_empty() {
            return self.fault(
                path,
                "a probe of no nodes measures nothing",
                Some("remove `to` for all nodes"),
            );
        }
        if !matches!(section.kind, ProbeKind::Flows | ProbeKind::Queues) {
            let message = "`to` says where queues or flows end, and this probe counts neither";
            return self.fault(path, message, Some("remove it"));
        }
        match self.nodes_named(path, names.names(), &scenario.resolved)? {
            Named::Nodes(nodes) => Ok(Some(nodes)),
            Named::Group(_) => {
                let hint = Some("name nodes or a pattern such as \"n*\"");
                self.fault(path, "the nodes of a group are drawn anew for each run", hint)
            }
        }
    }

    fn window(&self, name: &str, section: &ProbeSection, scenario: &Scenario) -> Checked<During> {
        let Some(during) = &section.during else {
            let from = section.from.map_or(Instant::ZERO, |from| Instant::ZERO + from.0);
            let until = section.until.map_or(Instant::FAR_FUTURE, |until| Instant::ZERO + until.0);
            let late = |key, message: String| self.fault(at!["probe", name, key], message, None);
            if from >= scenario.stop {
                return late("from", format!("the simulation ends at {}", scenario.resolved.stop));
            }
            if section.until.is_some() && until > scenario.stop {
                return late("until", format!("the simulation ends at {}", scenario.resolved.stop));
            }
            if until <= from {
                return late(
                    "until",
                    format!(
                        "the window begins at {} and ends before, or then",
                        Span(from.saturating_since(Instant::ZERO))
                    ),
                );
            }
            return Ok(During::Moments(from, until));
        };
        for (key, given) in [("from", section.from.is_some()), ("until", section.until.is_some())] {
            if given {
                let message = format!("`during` says when, and so does `{key}`");
                return self.fault(at!["probe", name, key], message, Some("remove one of them"));
            }
        }
        let transfers: Vec<&str> = scenario.transfers.iter().map(|transfer| &*transfer.name).collect();
        let traffic: Vec<&str> = scenario.traffic.iter().map(|traffic| &*traffic.name).collect();
        let meant = |names: &[&str]| -> Vec<usize> {
            names.iter().enumerate().filter(|(_, name)| matches(during, name)).map(|(i, _)| i).collect()
        };
        let (these, those) = (meant(&transfers), meant(&traffic));
        if !these.is_empty() || !those.is_empty() {
            return Ok(During::These(these, those));
        }
        let known = || transfers.iter().chain(&traffic);
        let hint = did_you_mean(during, known().copied()).unwrap_or_else(|| match known().next() {
            Some(_) => format!("there are {}", quoted(known())),
            None => "remove `during`: nothing is carried".to_owned(),
        });
        let message = format!("there is no transfer and no traffic `{during}`");
        self.fault(at!["probe", name, "during"], message, Some(&hint))
    }
}
