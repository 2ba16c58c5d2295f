//! Failures and recoveries of links and nodes, and their effect on routing.

use anabranch_core::time::{Duration, Instant};

use super::Network;
use super::graph::Change;
use crate::event::Event;
use crate::fragment::Reassembly;
use crate::link::LinkDrop;
use crate::loss::LossModel;
use crate::packet::{LinkId, NodeId, PacketHandle};
use crate::random::Stream;
use crate::trace::{Incident, Point};

/// What happens to the packets that a failing node has queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LastWords {
    /// They are lost.
    Lost,
    /// They are still sent.
    Sent,
}

impl Network {
    /// Takes one direction of a link down.
    pub fn link_down(&mut self, now: Instant, link: LinkId) {
        if !self.link(link).is_up() {
            return;
        }
        let mut cut = Vec::new();
        let next = self.graph.link_mut(link).take_down(now, |handle| cut.push(handle));
        self.after_cut(now, link, next, cut);
        self.set_link_on_media(link, false);
        self.watch_incident(now, Incident::LinkDown(link));
        self.change(now, Change::Link(link, false));
    }

    /// Brings one direction of a link up again.
    pub fn link_up(&mut self, now: Instant, link: LinkId) {
        if !self.link(link).is_up() {
            self.graph.link_mut(link).bring_up();
            self.set_link_on_media(link, true);
            self.watch_incident(now, Incident::LinkUp(link));
            self.change(now, Change::Link(link, true));
        }
    }

    /// Changes the rate of one direction of a link, in bit/s, at least 1.
    pub fn set_rate(&mut self, now: Instant, link: LinkId, rate: u64) {
        // A packet that is due for departure still uses the old rate.
        self.handle_departure(now, link);
        let next = self.graph.link_mut(link).set_rate(now, rate);
        self.schedule_arrival(link, next);
        self.watch_incident(now, Incident::Rate(link, rate));
        self.watch_plans(now, link);
    }

    /// Changes the delay of one direction of a cable, for packets that have not left its
    /// transmitter.
    pub fn set_delay(&mut self, now: Instant, link: LinkId, delay: Duration) {
        let Some(cable) = self.graph.link_mut(link).cable_mut() else { return };
        let next = cable.set_delay(now, delay);
        self.schedule_arrival(link, next);
        let name = self.graph.link_name(link);
        self.note(now, None, format_args!("{name}: a delay of {} s", delay.as_secs_f64()));
    }

    /// Changes the loss model of one direction of a cable, for packets whose transmission has not
    /// begun. `stream` makes the random stream for a purpose.
    pub(crate) fn set_loss(
        &mut self,
        now: Instant,
        link: LinkId,
        loss: LossModel,
        stream: impl Fn(&str, &str) -> Stream,
    ) {
        // A packet that is due for departure still meets the old channel.
        self.handle_departure(now, link);
        let name = self.graph.link_name(link);
        let Some(cable) = self.graph.link_mut(link).cable_mut() else { return };
        let next = cable.set_loss(now, loss, |purpose| stream(&name, purpose));
        self.schedule_arrival(link, next);
        self.note(now, None, format_args!("{name}: a loss of {} on average", loss.stationary_loss()));
        self.watch_plans(now, link);
    }

    /// Tells the observers when the waiting packets will leave.
    fn watch_plans(&mut self, now: Instant, link: LinkId) {
        let cable = self.graph.link(link).cable();
        let waiting: Vec<_> = cable.into_iter().flat_map(|cable| cable.departures(now)).collect();
        for (handle, start) in waiting {
            self.watch_departure(now, link, handle, start);
        }
    }

    /// One more jammer begins, or one ends, at a node: see [`crate::sim::Fault::Jam`].
    pub(crate) fn jam(&mut self, now: Instant, node: NodeId, begins: bool) {
        self.jam_on_media(now, node, begins);
        let what = if begins { "begins" } else { "ends" };
        self.note(now, Some(node), format_args!("a jammer {what}"));
    }

    /// Takes a node down: it ignores arriving packets and sends nothing.
    pub(crate) fn node_down(&mut self, now: Instant, node: NodeId, last_words: LastWords) {
        if !self.is_up(node) {
            return;
        }
        self.graph.nodes[node.index()].up = false;
        // Incomplete packets are lost with the node.
        self.relays[node.index()].reassembly = Reassembly::default();
        self.set_node_on_media(now, node, false);
        self.set_node_on_hooks(now, node, false);
        if last_words == LastWords::Lost {
            for i in 0..self.graph.links.len() {
                if self.graph.links[i].from() == node {
                    let mut cut = Vec::new();
                    let next = self.graph.links[i].cut(now, |handle| cut.push(handle));
                    self.after_cut(now, LinkId(i as u32), next, cut);
                }
            }
        }
        self.watch_incident(now, Incident::NodeDown(node));
        self.change(now, Change::Node(node, false));
    }

    /// Brings a node up again.
    pub(crate) fn node_up(&mut self, now: Instant, node: NodeId) {
        if !self.is_up(node) {
            self.graph.nodes[node.index()].up = true;
            self.watch_incident(now, Incident::NodeUp(node));
            // Media before hooks: a hook may send as soon as it learns that the node is up.
            self.set_node_on_media(now, node, true);
            self.set_node_on_hooks(now, node, true);
            self.change(now, Change::Node(node, true));
        }
    }

    /// Makes routing learn the changes that are due.
    pub(crate) fn handle_converged(&mut self, now: Instant) {
        self.graph.learn_changes(now);
        self.compute_routes();
        self.note(now, None, format_args!("routes recomputed"));
    }

    fn change(&mut self, now: Instant, change: Change) {
        let due = now + self.config.convergence;
        self.graph.note_change(due, change);
        self.events.push(due, Event::Converged);
    }

    fn after_cut(&mut self, now: Instant, link: LinkId, next: Option<Instant>, cut: Vec<PacketHandle>) {
        self.schedule_arrival(link, next);
        for handle in cut {
            self.watch(now, link, Point::Dropped(LinkDrop::Down), handle);
            self.packets.remove(handle);
        }
    }
}
