//! The packets in a link as an observer of it knows them: since when each waits, and when the
//! transmitter begins with it.

use std::collections::VecDeque;

use anabranch_core::time::Instant;

use super::Point;
use crate::link::LinkDrop;
use crate::packet::Packet;

/// A packet that a link has accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) since: Instant,
    /// When the transmitter begins with it, as things stand; [`Instant::FAR_FUTURE`] while that is
    /// not known.
    pub(crate) start: Instant,
    /// Octets.
    pub(crate) len: u32,
    /// When `start` was said; nothing is said of a packet that goes at once.
    told: Option<Instant>,
}

/// The packets in a link, those on their way included.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// With their numbers, in the order in which they came, which is nearly always that in which
    /// they leave. Links may double packets.
    packets: VecDeque<(u64, Waiting)>,
}

impl Line {
    /// What [`super::Observer::on_packet`] has. A packet that leaves the link comes out.
    pub(crate) fn watch(&mut self, now: Instant, point: Point, packet: &Packet) -> Option<Waiting> {
        let at = match point {
            Point::Sent => {
                let waiting = Waiting { since: now, start: now, len: packet.wire_len, told: None };
                self.packets.push_back((packet.id, waiting));
                return None;
            }
            Point::Received | Point::Dropped(LinkDrop::Loss | LinkDrop::Down) => {
                self.first(packet.id, |_| true)
            }
            // One that waits; or else it was refused, and never sent.
            Point::Dropped(LinkDrop::Early | LinkDrop::QueueFull) => {
                self.first(packet.id, |waiting| waiting.start > now)
            }
        };
        self.packets.remove(at?).map(|(_, waiting)| waiting)
    }

    /// What [`super::Observer::on_departure`] has. How the packet stood before, and how it stands
    /// now.
    pub(crate) fn expect(&mut self, now: Instant, packet: u64, start: Instant) -> Option<(Waiting, Waiting)> {
        // Of the one that has just come, or of the first that still waits and was told of before.
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

    /// Where the first copy of a packet is of which this holds.
    fn first(&self, packet: u64, holds: impl Fn(&Waiting) -> bool) -> Option<usize> {
        self.packets.iter().position(|(id, waiting)| *id == packet && holds(waiting))
    }

    /// All of them.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Waiting> {
        self.packets.iter().map(|(_, waiting)| waiting)
    }
}
