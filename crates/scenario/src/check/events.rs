//! Checks events.

use anabranch_core::time::{Duration, Instant};

use super::super::units::Span;
use super::deployment::Named;
use super::{Checked, Checker, at};
use crate::Scenario;
use crate::file::{EventAction, EventSection};
use anabranch_sim::packet::{LinkId, NodeId};
use anabranch_sim::sim::Fault;
use anabranch_sim::world::Failure;

impl Checker<'_> {
    /// The faults of an event, each with the time from the event to it.
    pub(super) fn event(
        &self,
        i: usize,
        section: &EventSection,
        scenario: &Scenario,
    ) -> Checked<Vec<(Duration, Fault)>> {
        self.happens(i, section, scenario)?;
        if section.action == EventAction::Jam {
            return self.jam(i, section, scenario);
        }
        let faults = self.change(i, section, scenario)?;
        Ok(faults.into_iter().map(|fault| (Duration::ZERO, fault)).collect())
    }

    fn jam(&self, i: usize, section: &EventSection, scenario: &Scenario) -> Checked<Vec<(Duration, Fault)>> {
        let lasts = match section.lasts {
            Some(Span(lasts)) if !lasts.is_zero() => lasts,
            Some(_) => return self.fault(at!["event", i, "lasts"], "a jammer sends for some time", None),
            None => return self.fault(at!["event", i, "action"], "this action needs `lasts`", None),
        };
        let path = at!["event", i, "nodes"];
        let nodes = match &section.nodes {
            None => (0..scenario.nodes.len() as u32).map(NodeId).filter(|n| scenario.is_on_air(*n)).collect(),
            Some(names) => match self.nodes_named(path, names.names(), &scenario.resolved)? {
                Named::Nodes(nodes) => nodes,
                Named::Group(_) => {
                    let hint = Some("name nodes, or remove `nodes` for all nodes on the air");
                    return self.fault(path, "a jammer cannot be near the nodes of a drawn group", hint);
                }
            },
        };
        if let Some(wired) = nodes.iter().find(|node| !scenario.is_on_air(**node)) {
            let message = format!("`{}` is not on the air", scenario.nodes[wired.index()].name);
            let hint = Some("name nodes that have a `position`, or remove `nodes` for all of them");
            return self.fault(path, message, hint);
        }
        if nodes.is_empty() {
            let hint = Some("give nodes a `position`, and the scenario a `[radio]` or `[wifi]`");
            return self.fault(at!["event", i, "action"], "there is no node on the air to jam", hint);
        }
        let jam = |(after, begins)| nodes.iter().map(move |node| (after, Fault::Jam(*node, begins)));
        Ok([(Duration::ZERO, true), (lasts, false)].into_iter().flat_map(jam).collect())
    }

    fn change(&self, i: usize, section: &EventSection, scenario: &Scenario) -> Checked<Vec<Fault>> {
        let node = || match &section.node {
            Some(name) => self.node(at!["event", i, "node"], name),
            None => self.fault(at!["event", i, "action"], "this action needs `node`", None),
        };
        let EventSection { from, to, .. } = section;
        let ends = || match (from, to) {
            (Some(from), Some(to)) => {
                let a = self.node(at!["event", i, "from"], from)?;
                let b = self.node(at!["event", i, "to"], to)?;
                if scenario.edges().any(|(_, from, to)| from == a && to == b) {
                    return Ok((a, b));
                }
                self.fault(at!["event", i, "to"], format!("there is no link from `{from}` to `{to}`"), None)
            }
            _ => self.fault(at!["event", i, "action"], "this action needs `from` and `to`", None),
        };
        let ids = |keep: &dyn Fn(NodeId, NodeId) -> bool| -> Vec<LinkId> {
            scenario.edges().filter(|(_, from, to)| keep(*from, *to)).map(|(link, ..)| link).collect()
        };
        Ok(match section.action {
            EventAction::FailNode => {
                vec![Fault::NodeFails(node()?, section.how.unwrap_or(Failure::Silent))]
            }
            EventAction::RecoverNode => vec![Fault::NodeRecovers(node()?)],
            EventAction::LinkDown | EventAction::LinkUp => {
                let (a, b) = ends()?;
                let both = ids(&|from, to| (from, to) == (a, b) || (from, to) == (b, a));
                let down = section.action == EventAction::LinkDown;
                both.into_iter()
                    .map(|id| if down { Fault::LinkDown(id) } else { Fault::LinkUp(id) })
                    .collect()
            }
            EventAction::SetRate => {
                let (a, b) = ends()?;
                let Some(rate) = section.rate else {
                    return self.fault(at!["event", i, "action"], "this action needs `rate`", None);
                };
                let mut one_way = ids(&|from, to| (from, to) == (a, b));
                one_way.retain(|link| !scenario.is_wireless(*link));
                if one_way.is_empty() {
                    let message = "the rate of a radio is that of its physical layer";
                    let hint = Some("choose another `phy` in `[radio]`, or take the link down");
                    return self.fault(at!["event", i, "action"], message, hint);
                }
                if one_way.iter().any(|link| scenario.follows_rates(*link)) {
                    let hint = Some("change the trace, or remove it");
                    return self.fault(at!["event", i, "action"], "the link's rate follows a trace", hint);
                }
                one_way.into_iter().map(|id| Fault::Rate(id, rate.0)).collect()
            }
            EventAction::SetDelay => {
                let Some(Span(delay)) = section.delay else {
                    return self.fault(at!["event", i, "action"], "this action needs `delay`", None);
                };
                let cable = self.cable(i, section, scenario)?;
                if scenario.links[cable.index()].course.delay.is_some() {
                    let hint = Some("change the trace, or remove it");
                    return self.fault(at!["event", i, "action"], "the link's delay follows a trace", hint);
                }
                vec![Fault::Delay(cable, delay)]
            }
            EventAction::SetLoss => {
                let Some(loss) = section.loss else {
                    return self.fault(at!["event", i, "action"], "this action needs `loss`", None);
                };
                let loss = self.loss(at!["event", i, "loss"], loss)?;
                let cable = self.cable(i, section, scenario)?;
                if scenario.links[cable.index()].config.arq.is_some() && scenario.follows_rates(cable) {
                    let message =
                        "the losses of a link cannot change that has both `arq` and a trace of rates";
                    let hint = Some("remove one of them");
                    return self.fault(at!["event", i, "action"], message, hint);
                }
                vec![Fault::Loss(cable, loss)]
            }
            EventAction::Jam => Vec::new(),
        })
    }

    /// The cable from one node to another that an event changes.
    fn cable(&self, i: usize, section: &EventSection, scenario: &Scenario) -> Checked<LinkId> {
        let (Some(from), Some(to)) = (&section.from, &section.to) else {
            return self.fault(at!["event", i, "action"], "this action needs `from` and `to`", None);
        };
        let a = self.node(at!["event", i, "from"], from)?;
        let b = self.node(at!["event", i, "to"], to)?;
        if let Some(cable) = scenario.links.iter().position(|link| (link.from, link.to) == (a, b)) {
            return Ok(LinkId(cable as u32));
        }
        if scenario.edges().any(|(_, from, to)| (from, to) == (a, b)) {
            let message = "delay and losses of a radio are those of its channel";
            return self.fault(
                at!["event", i, "action"],
                message,
                Some("take the link down, or move the nodes"),
            );
        }
        self.fault(at!["event", i, "to"], format!("there is no link from `{from}` to `{to}`"), None)
    }

    /// Checks that the event is before the end and has only keys that its action reads.
    fn happens(&self, i: usize, section: &EventSection, scenario: &Scenario) -> Checked<()> {
        if section.at.0 >= scenario.stop.saturating_since(Instant::ZERO) {
            let message = format!(
                "it happens at {}, and the simulation ends at {}",
                section.at, scenario.resolved.stop
            );
            return self.fault(
                at!["event", i, "at"],
                message,
                Some("raise `stop`, or let it happen earlier"),
            );
        }
        let (action, keys): (_, &[&str]) = match section.action {
            EventAction::FailNode => ("fail-node", &["node", "how"]),
            EventAction::RecoverNode => ("recover-node", &["node"]),
            EventAction::LinkDown => ("link-down", &["from", "to"]),
            EventAction::LinkUp => ("link-up", &["from", "to"]),
            EventAction::SetRate => ("set-rate", &["from", "to", "rate"]),
            EventAction::SetDelay => ("set-delay", &["from", "to", "delay"]),
            EventAction::SetLoss => ("set-loss", &["from", "to", "loss"]),
            EventAction::Jam => ("jam", &["nodes", "lasts"]),
        };
        let given = [
            ("node", section.node.is_some()),
            ("how", section.how.is_some()),
            ("from", section.from.is_some()),
            ("to", section.to.is_some()),
            ("rate", section.rate.is_some()),
            ("delay", section.delay.is_some()),
            ("loss", section.loss.is_some()),
            ("nodes", section.nodes.is_some()),
            ("lasts", section.lasts.is_some()),
        ];
        let Some((key, _)) = given.iter().find(|(key, given)| *given && !keys.contains(key)) else {
            return Ok(());
        };
        let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        let message = format!("`{key}` has no meaning for the action \"{action}\"");
        let hint = format!("remove it: \"{action}\" reads {}", keys.join(", "));
        self.fault(at!["event", i, *key], message, Some(&hint))
    }
}
