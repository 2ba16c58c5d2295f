//! The Sender Queue. The Sender Loss List is a mark on its packets (section 3.4).

use alloc::collections::VecDeque;

use anabranch_wire::rdca::{Piece, Range, Seq};
use bytes::Bytes;

use crate::time::{Duration, Instant};

/// A packet, from the application's `write` until it is confirmed. If the queue needs space, a
/// packet may be presumed to have arrived.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub payload: Bytes,
    pub piece: Piece,
    /// Time of the last transmission.
    pub sent: Instant,
    /// Whether the packet is in the Loss List.
    wanted: bool,
    pub repeated: bool,
}

/// The queue: first the transmitted packets, then the packets not yet sent.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    packets: VecDeque<Packet>,
    first: Seq,
    sent: usize,
    wanted: usize,
}

impl Queue {
    pub(super) fn new(first: Seq, most: usize) -> Self {
        Self { packets: VecDeque::with_capacity(most), first, sent: 0, wanted: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn unsent(&self) -> usize {
        self.packets.len() - self.sent
    }

    /// Number of packets in the Loss List.
    pub(super) fn wanted(&self) -> usize {
        self.wanted
    }

    /// Number of the first packet in the queue.
    pub(super) fn first(&self) -> Seq {
        self.first
    }

    /// Number of the first packet not yet sent.
    pub(super) fn next_unsent(&self) -> Seq {
        self.first + self.sent as u32
    }

    /// Number after the last packet.
    pub(super) fn end(&self) -> Seq {
        self.first + self.packets.len() as u32
    }

    pub(super) fn push(&mut self, piece: Piece, payload: Bytes) -> Seq {
        let seq = self.end();
        self.packets.push_back(Packet {
            payload,
            piece,
            sent: Instant::ZERO,
            wanted: false,
            repeated: false,
        });
        seq
    }

    /// Returns the packet to send next. The Loss List has priority over new packets.
    pub(super) fn send(&mut self, now: Instant) -> Option<(Seq, &Packet)> {
        let wanted = self.packets.iter().take(self.sent).position(|packet| packet.wanted);
        let at = match wanted {
            Some(at) => {
                self.wanted -= 1;
                at
            }
            None if self.unsent() > 0 => {
                self.sent += 1;
                self.sent - 1
            }
            None => return None,
        };
        let packet = &mut self.packets[at];
        (packet.wanted, packet.repeated, packet.sent) = (false, wanted.is_some(), now);
        Some((self.first + at as u32, packet))
    }

    /// Removes all packets before `next`, which have arrived.
    pub(super) fn confirm(&mut self, next: Seq) {
        while self.sent > 0 && self.first.lt(next) {
            self.release();
        }
    }

    /// Adds packets to the Loss List, except those sent within `on_its_way`: the sink cannot yet
    /// have received that copy when it sent its request.
    pub(super) fn want(&mut self, range: Range, now: Instant, on_its_way: Duration) {
        let range = range.within(Range { start: self.first, end: self.next_unsent() });
        let from = range.start.distance(self.first).max(0) as usize;
        for packet in self.packets.iter_mut().skip(from).take(range.len() as usize) {
            if !packet.wanted && now.saturating_since(packet.sent) >= on_its_way {
                packet.wanted = true;
                self.wanted += 1;
            }
        }
    }

    /// Returns when the first `packets` may be presumed to have arrived; `None` if one of them was
    /// not sent or is in the Loss List.
    pub(super) fn releasable(&self, packets: usize, retention: Duration) -> Option<Instant> {
        let first = self.packets.iter().take(packets);
        let may_go = packets <= self.sent && !first.clone().any(|packet| packet.wanted);
        first.map(|packet| packet.sent + retention).max().filter(|_| may_go)
    }

    /// Removes the first packet.
    pub(super) fn release(&mut self) {
        if let Some(packet) = self.packets.pop_front() {
            self.sent -= 1;
            self.wanted -= usize::from(packet.wanted);
            self.first = self.first + 1;
        }
    }

    /// Makes all packets unsent.
    pub(super) fn rewind(&mut self) {
        (self.sent, self.wanted) = (0, 0);
        for packet in &mut self.packets {
            (packet.wanted, packet.repeated) = (false, false);
        }
    }

    /// Removes all transmitted packets.
    pub(super) fn release_sent(&mut self) {
        while self.sent > 0 {
            self.release();
        }
    }

    /// Returns the number of packets in flight, and when the first of them leaves this state. A
    /// packet sent less than a round-trip time ago counts as not yet acknowledged (section 3.4).
    pub(super) fn in_flight(&self, now: Instant, rtt: Duration) -> (u32, Option<Instant>) {
        let flying =
            self.packets.iter().take(self.sent).map(|packet| packet.sent + rtt).filter(|until| *until > now);
        flying.fold((0, None), |(count, first), until| {
            (count + 1, Some(first.map_or(until, |first: Instant| first.min(until))))
        })
    }

    /// Memory for one packet in bytes, without its payload.
    pub(super) const PER_PACKET: usize = size_of::<Packet>();
}
