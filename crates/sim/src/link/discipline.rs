//! Queueing disciplines: they select the next packet for a link's transmitter, and the packets to
//! drop.
//!
//! Without a discipline a link has a drop-tail queue, and the departure of a packet is known when
//! it is queued ([`crate::link`]). With a discipline it is decided when the transmitter is free.
//! Each discipline has its own file; only [`DisciplineConfig`] names them all.

pub mod codel;
pub mod fq_codel;
pub mod pie;
pub mod red;

use std::collections::VecDeque;
use std::fmt;

use anabranch_core::segment::Ecn;
use anabranch_core::time::Instant;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LinkConfig, LinkDrop, QueueLimit};
use crate::packet::{Flow, PacketHandle};
use crate::random::Stream;
use codel::{Codel, CodelConfig};
use fq_codel::{FqCodel, FqCodelConfig};
use pie::{Pie, PieConfig};
use red::{Red, RedConfig};

/// Queueing discipline of a link.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DisciplineConfig {
    /// First-in first-out. Packets are dropped when the queue is full, and marked above
    /// `ecn_threshold`.
    #[default]
    DropTail,
    /// CoDel (RFC 8289): signals congestion when packets have waited longer than `target` for a
    /// time of `interval`, and then at growing frequency. A packet is marked if its transport
    /// supports ECN, and dropped otherwise. The defaults are
    /// `{ codel = { target = "5 ms", interval = "100 ms" } }`. `target` should exceed the
    /// transmission time of a packet: if marks do not shorten the queue, nearly all packets without
    /// ECN are dropped.
    Codel(CodelConfig),
    /// FQ-CoDel (RFC 8290): each flow has its own "codel" queue. Queues take turns by bytes, so a
    /// flow that sends little does not wait for flows that send much. Flows are identified by
    /// addresses, transport and ports; `queue` limits all of them together.
    FqCodel(FqCodelConfig),
    /// PIE (RFC 8033): a controller sets the fraction of packets that signal congestion such that
    /// packets wait for `target`.
    Pie(PieConfig),
    /// RED (Floyd and Jacobson, 1993): the fraction of packets that signal congestion grows with
    /// the mean queue length, from `min` to `max`.
    Red(RedConfig),
}

impl DisciplineConfig {
    /// The discipline of a link; `None` for drop-tail. `stream` makes the random stream for a
    /// purpose.
    pub(super) fn make(
        &self,
        link: &LinkConfig,
        stream: impl Fn(&str) -> Stream,
    ) -> Option<Box<dyn Discipline>> {
        match *self {
            Self::DropTail => None,
            Self::Codel(config) => Some(Box::new(Codel::new(config, link.queue))),
            Self::FqCodel(config) => {
                let perturbation = stream("flow queues").bits();
                Some(Box::new(FqCodel::new(config, link.queue, link.mtu, perturbation)))
            }
            Self::Pie(config) => Some(Box::new(Pie::new(config, link.queue, stream("early drops")))),
            Self::Red(config) => Some(Box::new(Red::new(config, link, stream("early drops")))),
        }
    }

    /// Checks the options for a link with this queue.
    ///
    /// # Errors
    ///
    /// A value out of its range: the key, the reason, and a hint.
    pub fn check(&self, queue: QueueLimit) -> Result<(), [&'static str; 3]> {
        match self {
            Self::DropTail => Ok(()),
            Self::Codel(config) => config.check(),
            Self::FqCodel(config) => config.check(),
            Self::Pie(config) => config.check(),
            Self::Red(config) => config.check(queue),
        }
    }
}

/// A queueing discipline, which holds the packets that wait for a transmitter.
pub trait Discipline: fmt::Debug + Send {
    /// Handles a packet that can be sent at once, because nothing waits and nothing is in
    /// transmission. The packet may be marked. Returns false if it is dropped.
    fn pass(&mut self, now: Instant, packet: &mut PacketHandle, flow: Flow, verdicts: &mut Verdicts) -> bool;

    /// Adds a packet that has to wait. The discipline may drop this packet or others.
    fn enqueue(&mut self, now: Instant, packet: PacketHandle, flow: Flow, verdicts: &mut Verdicts);

    /// Takes the packet to send now that the transmitter is free.
    fn dequeue(&mut self, now: Instant, verdicts: &mut Verdicts) -> Option<PacketHandle>;

    /// Number of waiting packets and bytes.
    fn queued(&self) -> (usize, u64);

    /// Takes out all packets.
    fn clear(&mut self, now: Instant) -> Vec<PacketHandle>;

    /// Informs the discipline of a new rate of the transmitter.
    fn set_rate(&mut self, bit_per_s: u64) {
        let _ = bit_per_s;
    }
}

/// Drops and marks decided by a discipline.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verdicts {
    /// Dropped packets with their reasons.
    pub dropped: Vec<(PacketHandle, LinkDrop)>,
    /// Number of marked packets.
    pub marked: u64,
}

impl Verdicts {
    /// Drops a packet for lack of room.
    pub fn refuse(&mut self, packet: PacketHandle) {
        self.dropped.push((packet, LinkDrop::QueueFull));
    }

    /// Marks a packet to signal congestion, if its transport supports ECN (RFC 3168). If this
    /// returns false, the discipline has to drop the packet by [`Verdicts::drop_early`].
    pub fn marks(&mut self, packet: &mut PacketHandle) -> bool {
        if !packet.ecn.is_capable() {
            return false;
        }
        self.marked += u64::from(packet.ecn != Ecn::Ce);
        packet.ecn = Ecn::Ce;
        true
    }

    /// Drops a packet although there is room.
    pub fn drop_early(&mut self, packet: PacketHandle) {
        self.dropped.push((packet, LinkDrop::Early));
    }
}

/// A first-in first-out queue with a limit.
#[derive(Debug)]
pub struct Fifo {
    limit: QueueLimit,
    waiting: VecDeque<(PacketHandle, Instant)>,
    octets: u64,
}

impl Fifo {
    /// An empty queue.
    pub fn new(limit: QueueLimit) -> Self {
        Self { limit, waiting: VecDeque::new(), octets: 0 }
    }

    /// Whether there is room for a packet.
    pub fn has_room(&self, packet: &PacketHandle) -> bool {
        !self.limit.is_exceeded(self.waiting.len() + 1, self.octets + u64::from(packet.wire_len))
    }

    /// Adds a packet, or drops it if there is no room.
    pub fn push(&mut self, now: Instant, packet: PacketHandle, verdicts: &mut Verdicts) {
        if !self.has_room(&packet) {
            verdicts.refuse(packet);
            return;
        }
        self.octets += u64::from(packet.wire_len);
        self.waiting.push_back((packet, now));
    }

    /// Takes the oldest packet, with the time at which it was added.
    pub fn pop(&mut self) -> Option<(PacketHandle, Instant)> {
        let (packet, since) = self.waiting.pop_front()?;
        self.octets -= u64::from(packet.wire_len);
        Some((packet, since))
    }

    /// Number of waiting packets and bytes.
    pub fn queued(&self) -> (usize, u64) {
        (self.waiting.len(), self.octets)
    }

    /// Takes out all packets.
    pub fn clear(&mut self) -> Vec<PacketHandle> {
        self.octets = 0;
        self.waiting.drain(..).map(|(packet, _)| packet).collect()
    }
}

#[cfg(test)]
pub(super) mod tests;
