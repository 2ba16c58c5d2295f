//! The packets in a link as an observer of it knows them: since when each waits, and when the transmitter begins with it.

use std::collections::BTreeMap;

use anabranch_core::time::Instant;

use super::Point;
use crate::link::LinkDrop;
use crate::packet::Packet;

/// A packet that a link has accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) since: Instant,
    /// When the transmitter begins with it, as things stand; [`Instant::FAR_FUTURE`] while that is not known.
    pub(crate) start: Instant,
    /// Octets.
    pub(crate) len: u32,
    /// When `start` was said; nothing is said of a packet that goes at once.
    told: Option<Instant>,
}

/// The packets in a link, those on their way included.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// By packet, and copy of it: links may double packets.
    packets: BTreeMap<(u64, u32), Waiting>,
}

impl Line {
    /// What [`super::Observer::on_packet`] has. A packet that leaves the link comes out.
    pub(crate) fn watch(&mut self, now: Instant, point: Point, packet: &Packet) -> Option<Waiting> {
        let copies = (packet.id, 0)..=(packet.id, u32::MAX);
        let gone = match point {
            Point::Sent => {
                let copy = self.packets.range(copies).next_back().map_or(0, |((_, copy), _)| copy + 1);
                let waiting = Waiting { since: now, start: now, len: packet.wire_len, told: None };
                self.packets.insert((packet.id, copy), waiting);
                return None;
            }
            Point::Received | Point::Dropped(LinkDrop::Loss | LinkDrop::Down) => {
                self.packets.range(copies).next()
            }
            // One that waits; or else it was refused, and never sent.
            Point::Dropped(LinkDrop::Early | LinkDrop::QueueFull) => {
                self.packets.range(copies).find(|(_, waiting)| waiting.start > now)
            }
        };
        let key = gone.map(|(key, _)| *key)?;
        self.packets.remove(&key)
    }

    /// What [`super::Observer::on_departure`] has. How the packet stood before, and how it stands now.
    pub(crate) fn expect(&mut self, now: Instant, packet: u64, start: Instant) -> Option<(Waiting, Waiting)> {
        let copies = (packet, 0)..=(packet, u32::MAX);
        let is_new = |waiting: &Waiting| waiting.told.is_none() && waiting.since == now;
        // Of one that has just come, or of the first that still waits and was told of before.
        let newest = self.packets.range(copies.clone()).next_back().filter(|(_, waiting)| is_new(waiting));
        let is_due = |waiting: &Waiting| waiting.start > now && waiting.told.is_some_and(|told| told < now);
        let first = || self.packets.range(copies).find(|(_, waiting)| is_due(waiting));
        let key = newest.or_else(first).map(|(key, _)| *key)?;
        let waiting = self.packets.get_mut(&key)?;
        let before = *waiting;
        (waiting.start, waiting.told) = (start, Some(now));
        Some((before, *waiting))
    }

    /// All of them.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Waiting> {
        self.packets.values()
    }
}
