//! What can be pending.

use anabranch_core::time::Instant;

use crate::engine::EventQueue;
use crate::packet::{LinkId, MediumId, NodeId};

/// An application, by its index over the whole simulation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AppId(pub(crate) u32);

/// What nodes may do beside forwarding, by the number that it has given itself: below 8, and no two
/// alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HookId(pub(crate) u8);

/// A pending event. Whatever it means is looked up when it comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The head of a link's list arrives.
    Arrival {
        /// The link.
        link: LinkId,
        /// The link's generation when this was scheduled; another one makes it void.
        generation: u32,
    },
    /// A connection's time-out may be due.
    Connection {
        /// Its node.
        node: NodeId,
        /// Its slot in the node's table.
        slot: u32,
        /// The slot's generation.
        generation: u32,
    },
    /// An application starts.
    Start(AppId),
    /// An application's timer may be due.
    Timer(AppId),
    /// A fault of the plan takes place, by its index.
    Fault(u32),
    /// Routing has learned of changes.
    Converged,
    /// A packet that was made late arrives; its number.
    Late(u32),
    /// Something at a station of a medium is due.
    Medium {
        /// The medium.
        medium: MediumId,
        /// The station.
        station: u32,
        /// What it is; the medium's affair.
        what: u32,
        /// Its generation when this was scheduled; another one makes it void.
        generation: u32,
    },
    /// Something is due for a hook of a node.
    Hook {
        /// The hook.
        hook: HookId,
        /// A node, or something else that the hook has a number for.
        at: u32,
        /// What it is; the hook's affair.
        what: u32,
    },
    /// The send buffers of a node may be due for a decision.
    Buffers(NodeId),
    /// The link layers of a node's interfaces sample their rates.
    Reports(NodeId),
    /// The transmitter of a link whose queue has a discipline may be free.
    Departure(LinkId),
}

/// An [`Event`] in two words, as the queue keeps it. Both are made in registers: an enum that is
/// stored field by field and loaded as a whole costs more than all else that the queue does with
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packed {
    /// What it is, whose it is, and above that one number.
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

/// The events of a run in the order in which they will happen.
#[derive(Debug, Default)]
pub struct Agenda {
    queue: EventQueue<Packed>,
}

impl Agenda {
    /// Schedules an event, after everything already scheduled for that instant; see
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

    /// When the next event happens.
    pub fn peek_time(&mut self) -> Option<Instant> {
        self.queue.peek_time()
    }

    /// Nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Events scheduled since the start.
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
