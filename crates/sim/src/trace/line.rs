//! The packets in a link as an observer knows them: since when each waits, and when its
//! transmission begins.

use std::collections::VecDeque;

use anabranch_core::time::Instant;

use super::Point;
use crate::link::LinkDrop;
use crate::packet::Packet;

/// A packet that a link has accepted.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Time of its acceptance.
    pub since: Instant,
    /// Planned start of its transmission; [`Instant::FAR_FUTURE`] while it is not known.
    pub start: Instant,
    /// Length in bytes.
    pub len: u32,
    /// Time at which `start` was reported; `None` for a packet that did not wait.
    told: Option<Instant>,
}

/// The packets in a link, waiting or in flight.
#[derive(Debug, Default)]
pub struct Line {
    /// With their numbers, in the order of acceptance, which is nearly always that of departure.
    /// Links may duplicate packets.
    packets: VecDeque<(u64, Waiting)>,
}

impl Line {
    /// Handles a call of [`super::Observer::on_packet`]. Returns the packet if it leaves the link.
    pub fn watch(&mut self, now: Instant, point: Point, packet: &Packet) -> Option<Waiting> {
        let at = match point {
            Point::Sent => {
                let waiting = Waiting { since: now, start: now, len: packet.wire_len, told: None };
                self.packets.push_back((packet.id, waiting));
                return None;
            }
            Point::Received | Point::Dropped(LinkDrop::Loss | LinkDrop::Down) => {
                self.first(packet.id, |_| true)
            }
            // A waiting packet; otherwise the packet was refused and never sent.
            Point::Dropped(LinkDrop::Early | LinkDrop::QueueFull) => {
                self.first(packet.id, |waiting| waiting.start > now)
            }
        };
        self.packets.remove(at?).map(|(_, waiting)| waiting)
    }

    /// Handles a call of [`super::Observer::on_departure`]. Returns the state of the packet before
    /// and after it.
    pub fn expect(&mut self, now: Instant, packet: u64, start: Instant) -> Option<(Waiting, Waiting)> {
        // The packet that has just been accepted, or else the first waiting one that was reported
        // before.
        let is_new =
            |(id, waiting): &&(u64, Waiting)| *id == packet && waiting.told.is_none() && waiting.since == now;
        let at = match self.packets.back().filter(is_new) {
            Some(_) => self.packets.len() - 1,
            None => self.first(packet, |w| w.start > now && w.told.is_some_and(|told| told < now))?,
        };
        let (_, waiting) = self.packets.get_mut(at)?;
        let before = *waiting;
        (waiting.start, waiting.told) = (start, Some(now));
        Some((before, *waiting))
    }

    /// Position of the first copy of a packet that fulfils a condition.
    fn first(&self, packet: u64, holds: impl Fn(&Waiting) -> bool) -> Option<usize> {
        self.packets.iter().position(|(id, waiting)| *id == packet && holds(waiting))
    }

    /// All packets.
    pub fn packets(&self) -> impl Iterator<Item = &Waiting> {
        self.packets.iter().map(|(_, waiting)| waiting)
    }
}
