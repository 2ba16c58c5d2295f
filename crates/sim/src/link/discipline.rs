//! Queue disciplines: which of the packets that wait for a link's transmitter goes next, and which
//! never does.
//!
//! Without one a link drops from its tail, and then it is decided when a packet comes when it will
//! go ([`crate::link`]). With one that is decided when the transmitter is free. A discipline is a
//! file of its own, and [`DisciplineConfig`] the only place that names them all.

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

/// How the packets that wait for a link's transmitter are treated.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DisciplineConfig {
    /// In the order in which they come, dropped when the queue is full, and marked above
    /// `ecn_threshold`.
    #[default]
    DropTail,
    /// CoDel (RFC 8289): once packets have waited for more than `target` for as long as `interval`,
    /// one is told of, and then more and more often: it is marked if its transport understands ECN,
    /// and otherwise dropped. `{ codel = { target = "5 ms", interval = "100 ms" } }` if they are
    /// not given. `target` should be more than the transmission of a packet takes: where marks
    /// alone do not shorten the queue, nearly all packets that cannot be marked are dropped.
    Codel(CodelConfig),
    /// FQ-CoDel (RFC 8290): each flow has a queue of its own, as "codel" has it, the queues take
    /// turns by octets, and a flow that sends little does not wait for those that send much. Flows
    /// are told apart by addresses, transport and ports; `queue` limits all together.
    FqCodel(FqCodelConfig),
    /// PIE (RFC 8033): a controller sets the share of packets that is told of congestion so that
    /// packets wait for `target`.
    Pie(PieConfig),
    /// RED (Floyd and Jacobson, 1993): the share of packets that is told of congestion grows with
    /// the mean length of the queue, from `min` to `max`.
    Red(RedConfig),
}

impl DisciplineConfig {
    /// The discipline of a link; `None` if it drops from its tail and does no more. `stream` makes
    /// the random stream for a purpose.
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

    /// What is wrong with the options, for a link with such a queue.
    ///
    /// # Errors
    ///
    /// A value out of its range: the key, the reason, and what to do.
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

/// Orders the packets that wait for a transmitter.
pub trait Discipline: fmt::Debug + Send {
    /// A packet of a flow can go to the transmitter at once: nothing waits, and nothing is under
    /// way. It may be marked; false if it is dropped.
    fn pass(&mut self, now: Instant, packet: &mut PacketHandle, flow: Flow, verdicts: &mut Verdicts) -> bool;

    /// A packet of a flow comes that has to wait, if it or others are not dropped for it.
    fn enqueue(&mut self, now: Instant, packet: PacketHandle, flow: Flow, verdicts: &mut Verdicts);

    /// The transmitter is free: the packet that goes now.
    fn dequeue(&mut self, now: Instant, verdicts: &mut Verdicts) -> Option<PacketHandle>;

    /// Packets and octets that wait.
    fn queued(&self) -> (usize, u64);

    /// Takes out all that waits.
    fn clear(&mut self, now: Instant) -> Vec<PacketHandle>;

    /// The transmitter has another rate from now on.
    fn set_rate(&mut self, bit_per_s: u64) {
        let _ = bit_per_s;
    }
}

/// What a discipline has decided against packets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verdicts {
    /// Packets that are dropped, and why.
    pub dropped: Vec<(PacketHandle, LinkDrop)>,
    /// Packets that were marked.
    pub marked: u64,
}

impl Verdicts {
    /// There is no room for a packet.
    pub fn refuse(&mut self, packet: PacketHandle) {
        self.dropped.push((packet, LinkDrop::QueueFull));
    }

    /// Marks a packet, if its transport understands that (RFC 3168), to tell of congestion. If this
    /// returns false, the discipline has to drop the packet by [`Verdicts::drop_early`].
    pub fn marks(&mut self, packet: &mut PacketHandle) -> bool {
        if !packet.ecn.is_capable() {
            return false;
        }
        self.marked += u64::from(packet.ecn != Ecn::Ce);
        packet.ecn = Ecn::Ce;
        true
    }

    /// A packet is dropped though there is room for it.
    pub fn drop_early(&mut self, packet: PacketHandle) {
        self.dropped.push((packet, LinkDrop::Early));
    }
}

/// Packets in the order in which they have come, with a limit.
#[derive(Debug)]
pub struct Fifo {
    limit: QueueLimit,
    waiting: VecDeque<(PacketHandle, Instant)>,
    octets: u64,
}

impl Fifo {
    /// Nothing waits.
    pub fn new(limit: QueueLimit) -> Self {
        Self { limit, waiting: VecDeque::new(), octets: 0 }
    }

    /// There is room for a packet.
    pub fn has_room(&self, packet: &PacketHandle) -> bool {
        !self.limit.is_exceeded(self.waiting.len() + 1, self.octets + u64::from(packet.wire_len))
    }

    /// Takes a packet, or refuses it if there is no room.
    pub fn push(&mut self, now: Instant, packet: PacketHandle, verdicts: &mut Verdicts) {
        if !self.has_room(&packet) {
            verdicts.refuse(packet);
            return;
        }
        self.octets += u64::from(packet.wire_len);
        self.waiting.push_back((packet, now));
    }

    /// The packet that has waited longest, and when it came.
    pub fn pop(&mut self) -> Option<(PacketHandle, Instant)> {
        let (packet, since) = self.waiting.pop_front()?;
        self.octets -= u64::from(packet.wire_len);
        Some((packet, since))
    }

    /// Packets and octets that wait.
    pub fn queued(&self) -> (usize, u64) {
        (self.waiting.len(), self.octets)
    }

    /// Takes out all that waits.
    pub fn clear(&mut self) -> Vec<PacketHandle> {
        self.octets = 0;
        self.waiting.drain(..).map(|(packet, _)| packet).collect()
    }
}

#[cfg(test)]
pub(super) mod tests;
