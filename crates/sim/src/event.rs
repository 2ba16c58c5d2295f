//! Pending events.

use anabranch_core::time::Instant;

use crate::engine::EventQueue;
use crate::packet::{LinkId, MediumId, NodeId};

/// An application, by its index in the simulation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AppId(pub(crate) u32);

impl AppId {
    /// This application and those added after it, `count` in all.
    pub fn run(self, count: u32) -> impl DoubleEndedIterator<Item = Self> + use<> {
        (self.0..self.0 + count).map(Self)
    }
}

/// A hook of nodes, by the number that it has chosen: below 8 and unique.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HookId(pub(crate) u8);

/// A pending event. The state to which it refers is looked up when it happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The first packet in a link's list arrives.
    Arrival {
        /// The link.
        link: LinkId,
        /// The link's generation at the time of scheduling; the event is void if it has changed.
        generation: u32,
    },
    /// The time-out of a connection may be due.
    Connection {
        /// Node of the connection.
        node: NodeId,
        /// Slot in the node's table.
        slot: u32,
        /// Generation of the slot.
        generation: u32,
    },
    /// An application starts.
    Start(AppId),
    /// The timer of an application may be due.
    Timer(AppId),
    /// A planned fault happens, by its index.
    Fault(u32),
    /// Routing learns of changes.
    Converged,
    /// A late packet arrives, by its number.
    Late(u32),
    /// An event of a medium at a station.
    Medium {
        /// The medium.
        medium: MediumId,
        /// The station.
        station: u32,
        /// Kind of event; the medium defines its meaning.
        what: u32,
        /// Generation at the time of scheduling; the event is void if it has changed.
        generation: u32,
    },
    /// An event of a hook.
    Hook {
        /// The hook.
        hook: HookId,
        /// A node, or another index of the hook.
        at: u32,
        /// Kind of event; the hook defines its meaning.
        what: u32,
    },
    /// A decision about the send buffers of a node may be due.
    Buffers(NodeId),
    /// The link layers of a node's interfaces sample their rates.
    Reports(NodeId),
    /// The transmitter of a link with a queueing discipline may be free.
    Departure(LinkId),
}

/// An [`Event`] in two words, as the queue stores it. Both words are made in registers: storing an
/// enum field by field and loading it as a whole would cost more than all other work of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packed {
    /// Kind and owner of the event, and one number in the upper bits.
    head: u64,
    /// Two further numbers.
    tail: u64,
}

impl From<Event> for Packed {
    #[inline]
    fn from(event: Event) -> Self {
        let (tag, a, b, c) = match event {
            Event::Arrival { link, generation } => (0, link.0, generation, 0),
            Event::Connection { node, slot, generation } => (1, node.0, slot, generation),
            Event::Start(app) => (2, app.0, 0, 0),
            Event::Timer(app) => (3, app.0, 0, 0),
            Event::Fault(index) => (4, index, 0, 0),
            Event::Converged => (5, 0, 0, 0),
            Event::Late(slot) => (6, slot, 0, 0),
            Event::Medium { medium, station, what, generation } => {
                (7 | u64::from(medium.0) << 8, station, what, generation)
            }
            Event::Hook { hook, at, what } => (8 | u64::from(hook.0) << 8, at, what, 0),
            Event::Buffers(node) => (9, node.0, 0, 0),
            Event::Reports(node) => (10, node.0, 0, 0),
            Event::Departure(link) => (11, link.0, 0, 0),
        };
        Self { head: tag | u64::from(a) << 32, tail: u64::from(b) | u64::from(c) << 32 }
    }
}

impl From<Packed> for Event {
    #[inline]
    fn from(packed: Packed) -> Self {
        let (a, b, c) = ((packed.head >> 32) as u32, packed.tail as u32, (packed.tail >> 32) as u32);
        let owner = (packed.head >> 8) as u8;
        match packed.head as u8 {
            0 => Self::Arrival { link: LinkId(a), generation: b },
            1 => Self::Connection { node: NodeId(a), slot: b, generation: c },
            2 => Self::Start(AppId(a)),
            3 => Self::Timer(AppId(a)),
            4 => Self::Fault(a),
            5 => Self::Converged,
            6 => Self::Late(a),
            7 => Self::Medium { medium: MediumId(owner), station: a, what: b, generation: c },
            8 => Self::Hook { hook: HookId(owner), at: a, what: b },
            9 => Self::Buffers(NodeId(a)),
            10 => Self::Reports(NodeId(a)),
            _ => Self::Departure(LinkId(a)),
        }
    }
}

/// The events of a run, in the order in which they will happen.
#[derive(Debug, Default)]
pub struct Agenda {
    queue: EventQueue<Packed>,
}

impl Agenda {
    /// Schedules an event after all events already scheduled for the same time; see
    /// [`EventQueue::push`].
    #[inline]
    pub fn push(&mut self, at: Instant, event: Event) {
        self.queue.push(at, event.into());
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Instant, Event)> {
        self.pop_until(Instant::FAR_FUTURE)
    }

    /// Takes the next event if it is not after `stop`.
    #[inline]
    pub fn pop_until(&mut self, stop: Instant) -> Option<(Instant, Event)> {
        self.queue.pop_until(stop).map(|(at, packed)| (at, packed.into()))
    }

    /// Time of the next event.
    pub fn peek_time(&mut self) -> Option<Instant> {
        self.queue.peek_time()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Number of events scheduled since the start.
    pub fn scheduled(&self) -> u64 {
        self.queue.scheduled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_loses_nothing() {
        let (link, node, slot, generation) = (LinkId(u32::MAX), NodeId(7), u32::MAX - 1, u32::MAX);
        for event in [
            Event::Arrival { link, generation },
            Event::Connection { node, slot, generation },
            Event::Start(AppId(3)),
            Event::Timer(AppId(u32::MAX)),
            Event::Fault(9),
            Event::Converged,
            Event::Late(3),
            Event::Medium { medium: MediumId(u8::MAX), station: u32::MAX, what: 4, generation },
            Event::Hook { hook: HookId(u8::MAX), at: u32::MAX, what: 6 },
            Event::Buffers(NodeId(3)),
            Event::Reports(NodeId(2)),
            Event::Departure(link),
        ] {
            assert_eq!(Event::from(Packed::from(event)), event);
        }
    }
}
