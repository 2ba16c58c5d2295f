//! What breaks and heals: links, nodes, and what routing learns of it.

use std::fmt;

use anabranch_core::time::Instant;

use super::{Change, Network};
use crate::event::Event;
use crate::fragment::Reassembly;
use crate::link::LinkDrop;
use crate::packet::{LinkId, NodeId, PacketHandle};
use crate::stream::{ConnId, StreamEvent};
use crate::trace::{ChunkView, ConnectionView, Incident, Point};

/// What becomes of the packets that a dying node has queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LastWords {
    /// They are gone with it.
    Lost,
    /// They still go out.
    Sent,
}

impl Network {
    /// Takes one direction of a link down.
    pub fn link_down(&mut self, now: Instant, link: LinkId) {
        if !self.link(link).is_up() {
            return;
        }
        let mut cut = Vec::new();
        let next = self.links[link.index()].take_down(now, |handle| cut.push(handle));
        self.after_cut(now, link, next, cut);
        self.set_adhoc_link(link, false);
        self.watch_incident(now, Incident::LinkDown(link));
        self.change(now, Change::Link(link, false));
    }

    /// Brings one direction of a link up again.
    pub fn link_up(&mut self, now: Instant, link: LinkId) {
        if !self.link(link).is_up() {
            self.links[link.index()].bring_up();
            self.set_adhoc_link(link, true);
            self.watch_incident(now, Incident::LinkUp(link));
            self.change(now, Change::Link(link, true));
        }
    }

    /// Changes the rate of one direction of a link, in bit/s, at least 1.
    pub fn set_rate(&mut self, now: Instant, link: LinkId, rate: u64) {
        let next = self.links[link.index()].set_rate(now, rate);
        self.schedule_arrival(link, next);
        self.watch_incident(now, Incident::Rate(link, rate));
        for (handle, start) in self.links[link.index()].departures(now) {
            let packet = self.packets.peek(handle).id;
            self.observers.iter_mut().for_each(|o| o.on_departure(now, link, packet, start));
        }
    }

    /// A node dies: nothing that arrives is looked at, nothing is sent.
    pub(crate) fn node_down(&mut self, now: Instant, node: NodeId, last_words: LastWords) {
        if !self.is_up(node) {
            return;
        }
        self.nodes[node.index()].up = false;
        self.nodes[node.index()].reassembly = Reassembly::default();
        self.set_on_air(now, node, false);
        self.set_on_adhoc(now, node, false);
        self.stop_aodv(now, node);
        if last_words == LastWords::Lost {
            for i in 0..self.links.len() {
                if self.links[i].from() == node {
                    let mut cut = Vec::new();
                    let next = self.links[i].cut(now, |handle| cut.push(handle));
                    self.after_cut(now, LinkId(i as u32), next, cut);
                }
            }
        }
        self.watch_incident(now, Incident::NodeDown(node));
        self.change(now, Change::Node(node, false));
    }

    /// A node lives again.
    pub(crate) fn node_up(&mut self, now: Instant, node: NodeId) {
        if !self.is_up(node) {
            self.nodes[node.index()].up = true;
            self.watch_incident(now, Incident::NodeUp(node));
            self.restart_caching(node);
            self.set_on_air(now, node, true);
            self.set_on_adhoc(now, node, true);
            self.restart_router(now, node);
            self.restart_aodv(now, node);
            self.change(now, Change::Node(node, true));
        }
    }

    /// Routing learns of the changes that are due.
    pub(crate) fn handle_converged(&mut self, now: Instant) {
        while let Some(&(_, change)) = self.changes.front().filter(|(due, _)| *due <= now) {
            self.changes.pop_front();
            match change {
                Change::Link(link, up) => self.known_links[link.index()] = up,
                Change::Node(node, up) => self.known_nodes[node.index()] = up,
            }
        }
        self.compute_routes();
        self.note(now, None, format_args!("routes recomputed"));
    }

    /// Tells the observers.
    pub(crate) fn note(&mut self, now: Instant, node: Option<NodeId>, text: fmt::Arguments<'_>) {
        self.observers.iter_mut().for_each(|o| o.on_note(now, node, text));
    }

    /// Tells the observers.
    #[inline]
    pub(crate) fn watch_stream(&mut self, now: Instant, node: NodeId, id: ConnId, event: StreamEvent) {
        if !self.observers.is_empty() {
            self.observers.iter_mut().for_each(|o| o.on_stream(now, node, id, event));
        }
    }

    /// An observer wants to see connections.
    #[inline]
    pub(crate) fn watches_connections(&self) -> bool {
        self.connections_watched
    }

    /// Tells the observers.
    pub(crate) fn watch_connection(&mut self, now: Instant, seen: &ConnectionView<'_>) {
        self.observers.iter_mut().for_each(|o| o.on_connection(now, seen));
    }

    /// Tells the observers.
    pub(crate) fn watch_chunk(&mut self, now: Instant, chunk: &ChunkView) {
        self.observers.iter_mut().for_each(|o| o.on_chunk(now, chunk));
    }

    /// Tells the observers.
    fn watch_incident(&mut self, now: Instant, what: Incident) {
        self.observers.iter_mut().for_each(|o| o.on_incident(now, what));
    }

    fn change(&mut self, now: Instant, change: Change) {
        let due = now + self.config.convergence;
        self.changes.push_back((due, change));
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
