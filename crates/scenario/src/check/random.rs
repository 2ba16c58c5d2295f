//! Checks random events.

use anabranch_core::time::{Duration, Instant};

use super::super::random::{RandomAction, RandomEvent, RandomEventSection, RandomFault};
use super::super::units::{Span, quoted};
use super::{Checked, Checker, Step, at, matches};
use crate::Scenario;
use crate::did_you_mean;
use anabranch_sim::packet::{LinkId, NodeId};
use anabranch_sim::world::Failure;

/// Largest mean number of events of one `[[random-event]]`: all of them are drawn before the run.
const MOST_EVENTS: u64 = 1_000_000;
/// Largest factor on a rate or delay.
const MOST_SHARE: f64 = 1000.0;

impl Checker<'_> {
    pub(super) fn random_events(&self, scenario: &Scenario) -> Checked<Vec<RandomEvent>> {
        let sections = &scenario.resolved.random_event;
        let mut all = Vec::new();
        for (i, section) in sections.iter().enumerate() {
            if sections[..i].iter().any(|other| other.name == section.name) {
                let message = format!("there are two random events of the name `{}`", section.name);
                let hint = Some("names must differ: what is drawn depends on them");
                return self.fault(at!["random-event", i, "name"], message, hint);
            }
            all.extend(self.random_event(i, section, scenario)?);
        }
        Ok(all)
    }

    /// Checks a random event; `None` if it is off.
    fn random_event(
        &self,
        i: usize,
        section: &RandomEventSection,
        scenario: &Scenario,
    ) -> Checked<Option<RandomEvent>> {
        let what = self.random_fault(i, section, scenario)?;
        let stop = section.stop.map_or(scenario.stop, |stop| Instant::ZERO + stop.0);
        let start = Instant::ZERO + section.start.0;
        if start >= stop || stop > scenario.stop {
            let key = if section.stop.is_some() { "stop" } else { "start" };
            let message = format!(
                "it begins at {} and ends at {}, and the simulation ends at {}",
                section.start,
                Span(stop.saturating_since(Instant::ZERO)),
                scenario.resolved.stop
            );
            let hint = Some("raise `stop`, or let it begin earlier");
            return self.fault(at!["random-event", i, key], message, hint);
        }
        let Some(Span(every)) = section.every.0 else { return Ok(None) };
        if every.is_zero() || stop.saturating_since(start).as_nanos() / every.as_nanos() > MOST_EVENTS {
            let message = format!("expected at most {MOST_EVENTS} events, or \"off\" for none");
            return self.fault(at!["random-event", i, "every"], message, Some("set a longer time"));
        }
        let (name, pick, spacing) = (section.name.clone(), section.pick, section.spacing);
        Ok(Some(RandomEvent { name, what, pick, every, spacing, start, stop }))
    }

    fn random_fault(
        &self,
        i: usize,
        section: &RandomEventSection,
        scenario: &Scenario,
    ) -> Checked<RandomFault> {
        let (action, keys): (_, &[&str]) = match section.action {
            RandomAction::SetRate => ("set-rate", &["links", "rate_share"]),
            RandomAction::SetDelay => ("set-delay", &["links", "delay_share"]),
            RandomAction::SetLoss => ("set-loss", &["links", "loss_between"]),
            RandomAction::LinkDown => ("link-down", &["links", "lasts"]),
            RandomAction::FailNode => ("fail-node", &["nodes", "lasts", "how"]),
        };
        let given = [
            ("links", section.links.is_some()),
            ("nodes", section.nodes.is_some()),
            ("rate_share", section.rate_share.is_some()),
            ("delay_share", section.delay_share.is_some()),
            ("loss_between", section.loss_between.is_some()),
            ("lasts", section.lasts.is_some()),
            ("how", section.how.is_some()),
        ];
        if let Some((key, _)) = given.iter().find(|(key, given)| *given && !keys.contains(key)) {
            let message = format!("`{key}` has no meaning for the action \"{action}\"");
            let hint = format!("remove it: \"{action}\" reads {}", quoted(keys.iter()));
            return self.fault(at!["random-event", i, *key], message, Some(&hint));
        }
        let missing = given.iter().find(|(key, given)| !*given && *key != "how" && keys.contains(key));
        if let Some((key, _)) = missing {
            let message = format!("the action \"{action}\" needs `{key}`");
            return self.fault(at!["random-event", i, "action"], message, None);
        }
        match section.action {
            RandomAction::SetRate => {
                let [least, most] = section.rate_share.unwrap_or([1.0; 2]);
                if !(least > 0.0 && least <= most && most <= MOST_SHARE) {
                    let message =
                        format!("expected two shares, the least first, more than 0 and up to {MOST_SHARE}");
                    return self.fault(at!["random-event", i, "rate_share"], message, None);
                }
                let rated = |link: LinkId| (link, scenario.links[link.index()].config.rate);
                let links = self.links_named(i, section, scenario)?;
                if links.iter().flatten().any(|link| scenario.follows_rates(*link)) {
                    let hint = Some("change the trace, or name other links");
                    let message = "the rate of a link follows a trace";
                    return self.fault(at!["random-event", i, "links"], message, hint);
                }
                let links = links.into_iter();
                Ok(RandomFault::Rate { links: links.map(|both| both.map(rated)).collect(), least, most })
            }
            RandomAction::SetDelay => {
                let [least, most] = section.delay_share.unwrap_or([1.0; 2]);
                if !(least >= 0.0 && least <= most && most <= MOST_SHARE) {
                    let message =
                        format!("expected two shares, the least first, from 0 on and up to {MOST_SHARE}");
                    return self.fault(at!["random-event", i, "delay_share"], message, None);
                }
                let links = self.links_named(i, section, scenario)?;
                let of = |link: &LinkId| &scenario.links[link.index()];
                if links.iter().flatten().any(|link| of(link).course.delay.is_some()) {
                    let hint = Some("change the trace, or name other links");
                    let message = "the delay of a link follows a trace";
                    return self.fault(at!["random-event", i, "links"], message, hint);
                }
                let delayed = |link: LinkId| (link, of(&link).config.delay);
                let links = links.into_iter().map(|both| both.map(delayed)).collect();
                Ok(RandomFault::Delay { links, least, most })
            }
            RandomAction::SetLoss => {
                let [least, most] = section.loss_between.map_or([0.0; 2], |both| both.map(|p| p.0));
                if least > most {
                    let message = "expected two probabilities, the least first";
                    return self.fault(at!["random-event", i, "loss_between"], message, None);
                }
                let links = self.links_named(i, section, scenario)?;
                let is_bound = |link: &LinkId| {
                    scenario.links[link.index()].config.arq.is_some() && scenario.follows_rates(*link)
                };
                if links.iter().flatten().any(is_bound) {
                    let message =
                        "the losses of a link cannot change that has both `arq` and a trace of rates";
                    let hint = Some("remove one of them, or name other links");
                    return self.fault(at!["random-event", i, "links"], message, hint);
                }
                Ok(RandomFault::Loss { links, least, most })
            }
            RandomAction::LinkDown => {
                let links = self.links_named(i, section, scenario)?;
                Ok(RandomFault::Outage { links, lasts: self.lasting(i, section)? })
            }
            RandomAction::FailNode => {
                let how = section.how.unwrap_or(Failure::Silent);
                let nodes = self.nodes_that_die(i, section)?;
                Ok(RandomFault::Death { nodes, lasts: self.lasting(i, section)?, how })
            }
        }
    }

    fn lasting(&self, i: usize, section: &RandomEventSection) -> Checked<Duration> {
        match section.lasts {
            Some(Span(lasts)) if !lasts.is_zero() => Ok(lasts),
            _ => self.fault(at!["random-event", i, "lasts"], "an outage lasts some time", None),
        }
    }

    /// The links that names and patterns stand for, each once, in both directions.
    fn links_named(
        &self,
        i: usize,
        section: &RandomEventSection,
        scenario: &Scenario,
    ) -> Checked<Vec<[LinkId; 2]>> {
        let names = section.links.as_deref().unwrap_or_default();
        let links = &scenario.resolved.link;
        let found = self.all_named(at!["random-event", i, "links"], names, "link", || {
            links.iter().enumerate().filter_map(|(k, link)| Some((link.name.as_deref()?, k)))
        })?;
        Ok(found.into_iter().map(|k| [LinkId(2 * k as u32), LinkId(2 * k as u32 + 1)]).collect())
    }

    fn nodes_that_die(&self, i: usize, section: &RandomEventSection) -> Checked<Vec<NodeId>> {
        let names = section.nodes.as_deref().unwrap_or_default();
        let mut nodes: Vec<(&str, usize)> =
            self.nodes.iter().map(|(name, node)| (name.as_str(), node.index())).collect();
        nodes.sort_by_key(|(_, node)| *node);
        let found =
            self.all_named(at!["random-event", i, "nodes"], names, "node", || nodes.iter().copied())?;
        Ok(found.into_iter().map(|node| NodeId(node as u32)).collect())
    }

    /// The entries of `there` that names and patterns stand for, each once, in the order of the
    /// names.
    fn all_named<'n, I: Iterator<Item = (&'n str, usize)>>(
        &self,
        path: &[Step],
        names: &[String],
        kind: &str,
        there: impl Fn() -> I,
    ) -> Checked<Vec<usize>> {
        let mut found = Vec::new();
        for (j, name) in names.iter().enumerate() {
            let meant: Vec<usize> =
                there().filter(|(other, _)| matches(name, other)).map(|(_, index)| index).collect();
            if meant.is_empty() {
                let hint = did_you_mean(name, there().map(|(other, _)| other))
                    .unwrap_or_else(|| format!("the names are {}", quoted(there().map(|(other, _)| other))));
                let path = [path, &[Step::from(j)]].concat();
                return self.fault(&path, format!("there is no {kind} of the name `{name}`"), Some(&hint));
            }
            found.extend(meant);
        }
        let mut seen = std::collections::BTreeSet::new();
        found.retain(|index| seen.insert(*index));
        match found.is_empty() {
            false => Ok(found),
            true => self.fault(path, format!("at least one {kind} is needed"), None),
        }
    }
}
