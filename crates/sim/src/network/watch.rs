//! Notification of observers.

use std::any::Any;
use std::fmt;

use anabranch_core::set::Moments;
use anabranch_core::time::Instant;

use super::Network;
use crate::packet::{LinkId, NodeId, PacketHandle};
use crate::stream::{ConnId, StreamEvent};
use crate::trace::{ChunkView, ConnectionView, Incident, Observer, Point};

/// Handle of an observer in a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObserverId(u32);

/// All observers, in the order in which they were added.
#[derive(Default)]
pub(super) struct Observers {
    all: Vec<(ObserverId, Box<dyn Observer>)>,
    next: u32,
}

impl Observers {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    #[inline]
    pub(super) fn tell(&mut self, mut of: impl FnMut(&mut dyn Observer)) {
        self.all.iter_mut().for_each(|(_, observer)| of(&mut **observer));
    }
}

impl Network {
    /// Adds an observer.
    pub fn observe(&mut self, mut observer: Box<dyn Observer>) -> ObserverId {
        self.attach_to_media(&mut *observer);
        let links = &self.graph.links;
        let ends: Vec<_> = links.iter().map(|l| (l.from(), l.to())).collect();
        (0..).map(LinkId).zip(links).for_each(|(id, link)| observer.on_attach_link(id, link.config()));
        observer.on_attach(&self.graph.node_names(), &ends);
        self.connections_watched |= observer.wants_connections();
        let id = ObserverId(self.observers.next);
        self.observers.next += 1;
        self.observers.all.push((id, observer));
        id
    }

    /// An observer that has not been taken out, if it is a `T`.
    pub fn observer<T: Observer>(&self, id: ObserverId) -> Option<&T> {
        let (_, observer) = self.observers.all.iter().find(|(of, _)| *of == id)?;
        (&**observer as &dyn Any).downcast_ref()
    }

    /// An observer that has not been taken out, if it is a `T`.
    pub fn observer_mut<T: Observer>(&mut self, id: ObserverId) -> Option<&mut T> {
        let (_, observer) = self.observers.all.iter_mut().find(|(of, _)| *of == id)?;
        (&mut **observer as &mut dyn Any).downcast_mut()
    }

    /// Takes out the first observer for which `wanted` is true.
    pub fn take_observer(&mut self, wanted: impl Fn(&dyn Observer) -> bool) -> Option<Box<dyn Observer>> {
        let all = &mut self.observers.all;
        let found = all.iter().position(|(_, o)| wanted(&**o))?;
        let (_, taken) = all.remove(found);
        self.connections_watched = all.iter().any(|(_, o)| o.wants_connections());
        Some(taken)
    }

    #[inline]
    pub(super) fn watch(&mut self, now: Instant, link: LinkId, point: Point, handle: PacketHandle) {
        if !self.observers.is_empty() {
            let packet = self.packets.peek(handle);
            self.observers.tell(|o| o.on_packet(now, link, point, packet));
        }
    }

    /// Tells the observers when the transmission of a waiting packet begins: see
    /// [`Observer::on_departure`].
    pub(super) fn watch_departure(
        &mut self,
        now: Instant,
        link: LinkId,
        handle: PacketHandle,
        start: Instant,
    ) {
        if !self.observers.is_empty() {
            let packet = self.packets.peek(handle).id;
            self.observers.tell(|o| o.on_departure(now, link, packet, start));
        }
    }

    /// Passes a note to the observers.
    pub(crate) fn note(&mut self, now: Instant, node: Option<NodeId>, text: fmt::Arguments<'_>) {
        self.observers.tell(|o| o.on_note(now, node, text));
    }

    /// Passes an event of a byte stream to the observers.
    #[inline]
    pub(crate) fn watch_stream(&mut self, now: Instant, node: NodeId, id: ConnId, event: StreamEvent) {
        if !self.observers.is_empty() {
            self.observers.tell(|o| o.on_stream(now, node, id, event));
        }
    }

    /// Whether an observer wants to see connections.
    #[inline]
    pub(crate) fn watches_connections(&self) -> bool {
        self.connections_watched
    }

    /// Passes the state of a connection to the observers.
    pub(crate) fn watch_connection(&mut self, now: Instant, seen: &ConnectionView<'_>) {
        self.observers.tell(|o| o.on_connection(now, seen));
    }

    /// Passes a SET chunk to the observers.
    pub(crate) fn watch_chunk(&mut self, now: Instant, chunk: &ChunkView) {
        self.observers.tell(|o| o.on_chunk(now, chunk));
    }

    /// Passes the phases of a SET transfer to the observers.
    pub(crate) fn watch_phases(&mut self, now: Instant, from: NodeId, to: NodeId, moments: &Moments) {
        self.observers.tell(|o| o.on_phases(now, from, to, moments));
    }

    /// Passes an incident to the observers.
    pub(super) fn watch_incident(&mut self, now: Instant, what: Incident) {
        self.observers.tell(|o| o.on_incident(now, what));
    }
}
