//! Checks of links, and of who is at their ends.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::super::file::{FactorsSection, FileConfig, LinkSection, Loss, fifty_ms};
use super::super::options::WordOrTable;
use super::super::source::Step;
use super::super::units::{QueueSize, Size};
use super::super::{GroupLinkSpec, LinkSpec};
use super::deployment::Named;
use super::{Checked, Checker, at};
use crate::link::discipline::DisciplineConfig;
use crate::link::{LinkConfig, QueueLimit};
use crate::loss::{Disturbance, LossFactors, LossModel};
use crate::packet::NodeId;

/// Smallest MTU: what every IPv4 module must take (RFC 791 section 3.2), and room for a piece with IPv6.
const SMALLEST_MTU: u32 = 68;

impl Checker<'_> {
    /// The links that every run has, each there and back, and those of drawn groups.
    pub(super) fn links(&mut self, file: &FileConfig) -> Checked<(Vec<LinkSpec>, Vec<GroupLinkSpec>)> {
        let (mut links, mut of_groups, mut pairs) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (i, section) in file.link.iter().enumerate() {
            self.first_links.push(links.len());
            let from = self.end(at!["link", i, "from"], &section.from, file)?;
            let to = self.end(at!["link", i, "to"], &section.to, file)?;
            let [there, back] = self.link(i, section)?;
            let (from, to) = match (from, to) {
                (Named::Nodes(from), Named::Nodes(to)) => (from, to),
                (Named::Group(group), Named::Nodes(to)) if to.len() < 2 => {
                    let spec = |to| GroupLinkSpec { group, from: None, to: Some(to), there, back };
                    of_groups.extend(to.into_iter().map(spec));
                    continue;
                }
                (Named::Nodes(from), Named::Group(group)) if from.len() < 2 => {
                    let spec = |from| GroupLinkSpec { group, from: Some(from), to: None, there, back };
                    of_groups.extend(from.into_iter().map(spec));
                    continue;
                }
                (Named::Group(_), _) | (_, Named::Group(_)) => return self.several_ends(i, section),
            };
            if from.len() > 1 && to.len() > 1 {
                return self.several_ends(i, section);
            }
            if from == to && from.len() == 1 {
                return self.fault(at!["link", i, "to"], "a link joins two different nodes", None);
            }
            for (from, to) in from.iter().flat_map(|from| to.iter().map(move |to| (*from, *to))) {
                // Of several nodes one may be the other end.
                if from == to {
                    continue;
                }
                self.is_first(i, (from, to), &mut pairs, file)?;
                links.push(LinkSpec { from, to, config: there });
                links.push(LinkSpec { from: to, to: from, config: back });
            }
        }
        self.first_links.push(links.len());
        self.names_differ(file)?;
        Ok((links, of_groups))
    }

    /// Where the discipline is chosen from outside, a threshold of the file is not meant for another one than "drop-tail".
    pub(super) fn leave_thresholds_aside(&self, file: &mut FileConfig) {
        for (i, section) in file.link.iter_mut().enumerate() {
            let is_managed = section.discipline.0 != DisciplineConfig::DropTail;
            if is_managed
                && section.ecn_threshold.is_some()
                && self.is_chosen(at!["link", i, "discipline"])
                && self.source.is_of_file(self.tree(), at!["link", i, "ecn_threshold"])
            {
                section.ecn_threshold = None;
            }
        }
    }

    /// Who is at an end of a link.
    fn end(&self, path: &[Step], name: &String, file: &FileConfig) -> Checked<Named> {
        let several = name.contains('*')
            || file.group.contains_key(name)
            || file.nodes.iter().any(|nodes| nodes.name == *name);
        if several {
            return self.nodes_named(path, std::slice::from_ref(name), file);
        }
        Ok(Named::Nodes(vec![self.node(path, name)?]))
    }

    fn several_ends<T>(&self, i: usize, section: &LinkSection) -> Checked<T> {
        let message = format!("`{}` and `{}` both mean several nodes", section.from, section.to);
        self.fault(at!["link", i, "to"], message, Some("name a single node at one end"))
    }

    /// Routes, events and metrics name a link by its ends, so a pair of nodes has one.
    fn is_first(
        &self,
        i: usize,
        (from, to): (NodeId, NodeId),
        pairs: &mut BTreeSet<(NodeId, NodeId)>,
        file: &FileConfig,
    ) -> Checked<()> {
        if pairs.insert((from.min(to), from.max(to))) {
            return Ok(());
        }
        let [from, to] = [from, to].map(|node| &file.node[node.index()].name);
        let hint = "for a second path put a router in between: a `[[node]]` with `kind = \"router\"`, and \
                    a link on each side of it";
        self.fault(at!["link", i], format!("there are two links between `{from}` and `{to}`"), Some(hint))
    }

    /// `--set` names a link by its name.
    fn names_differ(&self, file: &FileConfig) -> Checked<()> {
        let mut names = BTreeSet::new();
        for (i, section) in file.link.iter().enumerate() {
            let Some(name) = &section.name else { continue };
            if !names.insert(name) {
                let message = format!("there are two links of the name `{name}`");
                let hint = "names must differ, since `--set` and `[sweep]` use them";
                return self.fault(at!["link", i, "name"], message, Some(hint));
            }
        }
        Ok(())
    }

    /// How a link is, there and back.
    fn link(&self, i: usize, section: &LinkSection) -> Checked<[LinkConfig; 2]> {
        let there = LinkConfig {
            rate: section.rate.0,
            delay: section.delay.0,
            queue: section.queue.0,
            discipline: section.discipline.0,
            ecn_threshold: section.ecn_threshold.map(|size| size.0),
            mtu: section.mtu,
            loss: loss_model(section.loss),
            loss_factors: self.factors(at!["link", i, "loss_factors"], section.loss_factors)?,
            disturbance: Disturbance {
                reordering: section.reordering.0,
                lateness: section.lateness.unwrap_or_else(fifty_ms).0,
                duplication: section.duplication.0,
            },
            link_ack_timeout: section.link_ack_timeout.map(|span| span.0),
            spacing: section.spacing.0,
        };
        let is_never = section.reordering.0 == 0.0;
        if section.lateness.is_some() && is_never && !self.is_given(at!["link", i, "reordering"]) {
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
            if let Some(WordOrTable(discipline)) = other.discipline {
                back.discipline = discipline;
                if discipline != DisciplineConfig::DropTail {
                    // The threshold is that of the other direction.
                    back.ecn_threshold = None;
                }
            }
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
        Ok([there, back])
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
        if let Err([key, message, hint]) = link.discipline.check(link.queue) {
            return self.fault(&at("discipline"), format!("`{key}`: {message}"), Some(hint));
        }
        if link.ecn_threshold.is_some() && link.discipline != DisciplineConfig::DropTail {
            let message =
                "`ecn_threshold` beside a `discipline` that decides itself which packets are marked";
            let hint = "leave the threshold out, or say `discipline = \"drop-tail\"`";
            return self.fault(&at("ecn_threshold"), message, Some(hint));
        }
        match link.ecn_threshold {
            Some(threshold) if threshold.compare(link.queue).is_some_and(Ordering::is_gt) => {
                let (threshold, most) = (QueueSize(threshold), QueueSize(link.queue));
                let message = format!("no packet is ever marked: the queue holds {most}, not {threshold}");
                self.fault(&at("ecn_threshold"), message, Some("say less than the `queue`"))
            }
            _ => Ok(()),
        }
    }

    fn mtu(&self, path: &[Step], mtu: u32) -> Checked<()> {
        if mtu >= SMALLEST_MTU {
            return Ok(());
        }
        let message =
            format!("an MTU of {mtu} octets has no room for a packet; expected {SMALLEST_MTU} or more");
        self.fault(path, message, None)
    }

    fn factors(&self, path: &[Step], section: FactorsSection) -> Checked<LossFactors> {
        let legal = |factor: f64| factor.is_finite() && factor >= 0.0;
        let FactorsSection { data, ack, link_ack } = section;
        if legal(data) && legal(ack) && legal(link_ack) {
            return Ok(LossFactors { data, ack, link_ack });
        }
        self.fault(path, "a factor is a number from 0 on", None)
    }
}

fn loss_model(name: Loss) -> LossModel {
    match name {
        Loss::Bernoulli(p) if p.0 == 0.0 => LossModel::None,
        Loss::Bernoulli(p) => LossModel::Bernoulli { p: p.0 },
        Loss::GilbertElliott(section) => LossModel::GilbertElliott {
            good_to_bad: section.good_to_bad.0,
            bad_to_good: section.bad_to_good.0,
            loss_good: section.loss_good.0,
            loss_bad: section.loss_bad.0,
        },
    }
}
