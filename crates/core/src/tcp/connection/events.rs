//! Events that were not polled yet.

use super::{CloseReason, Event};

/// A set of events, reported in the order of [`Event`]'s variants. A repeated event is reported
/// once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Events {
    pending: u8,
    reason: Option<CloseReason>,
}

impl Events {
    #[inline]
    pub(super) fn raise(&mut self, event: Pending) {
        self.pending |= event as u8;
    }

    pub(super) fn close(&mut self, reason: CloseReason) {
        self.reason = Some(reason);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Event> {
        if self.pending != 0 {
            let lowest = self.pending & self.pending.wrapping_neg();
            self.pending ^= lowest;
            let found = ORDER.iter().find(|(bit, _)| *bit as u8 == lowest);
            return found.map(|(_, event)| *event);
        }
        self.reason.take().map(Event::Closed)
    }
}

/// Events without data, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Pending {
    Established = 1,
    Readable = 2,
    Writable = 4,
    PeerClosed = 8,
}

const ORDER: [(Pending, Event); 4] = [
    (Pending::Established, Event::Established),
    (Pending::Readable, Event::Readable),
    (Pending::Writable, Event::Writable),
    (Pending::PeerClosed, Event::PeerClosed),
];
