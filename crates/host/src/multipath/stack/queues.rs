//! Short queues: a transfer that fills all paths delays the messages of other connections by the
//! length of the queues that it keeps there, whichever path their scheduler chooses. While other
//! connections exchange messages on a path, a transfer limits its queue there
//! ([`tcp::Connection::limit_queue`](anabranch_core::tcp::Connection::limit_queue)).
//!
//! A message is data written to a connection in which none waits to be sent: a request, a response,
//! or the beginning of a transfer. A transfer is a connection in which data mostly waits.

use anabranch_core::time::{Duration, Instant};

use super::{Entry, Stack, entry_of};

/// The last messages on a path: when, and the slot of the connection. The two are of different
/// connections, so that one that has become a transfer is told from the others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Messages {
    last: [Option<(Instant, u32)>; 2],
}

impl Messages {
    fn note(&mut self, now: Instant, slot: u32) {
        if self.last[0].is_some_and(|(_, last)| last != slot) {
            self.last[1] = self.last[0];
        }
        self.last[0] = Some((now, slot));
    }

    /// Whether other connections than that of the slot have sent messages recently.
    pub(super) fn are_exchanged(&self, now: Instant, but: u32) -> bool {
        let recent = |(at, slot): (Instant, u32)| slot != but && now.saturating_since(at) < RECENT;
        self.last.into_iter().flatten().any(recent)
    }
}

impl Entry {
    /// Notes whether data waits to be sent.
    pub(super) fn note_waiting(&mut self) {
        self.waits = match self.connection.unsent() {
            0 => self.waits.saturating_sub(1),
            _ => (self.waits + 1).min(2 * TRANSFER),
        };
    }

    /// Notes that nothing has happened since the last measurement, and that no data waits.
    pub(super) fn note_idle(&mut self, now: Instant) {
        let idle = now.saturating_since(self.measure_at).as_millis() / MEASURE.as_millis();
        self.waits = self.waits.saturating_sub(u8::try_from(idle).unwrap_or(u8::MAX));
    }

    /// Whether data mostly waits here: there is more than messages.
    pub(super) fn is_transfer(&self) -> bool {
        self.waits >= TRANSFER
    }
}

impl Stack {
    /// Notes that data was written to a connection in which none waited.
    pub(super) fn note_message(&mut self, now: Instant, slot: u32) {
        let Some(entry) = entry_of(&mut self.slots, slot).filter(|entry| !entry.is_transfer()) else {
            return;
        };
        for flow in entry.flows.iter().filter(|flow| flow.alive) {
            if let Some(path) = self.paths.get_mut(&flow.path) {
                path.messages.note(now, slot);
            }
        }
    }
}

/// Time for which a message counts: people and programs ask again.
const RECENT: Duration = Duration::from_secs(10);
/// Time between two measurements of a connection.
pub(super) const MEASURE: Duration = Duration::from_millis(100);
/// Measurements after which data that waits is that of a transfer.
const TRANSFER: u8 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_counts_for_ten_seconds_and_for_other_connections() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut messages = Messages::default();
        assert!(!messages.are_exchanged(at(0), 1));
        messages.note(at(0), 1);
        assert!(messages.are_exchanged(at(9999), 2) && !messages.are_exchanged(at(10_000), 2));
        assert!(!messages.are_exchanged(at(0), 1));
        // One connection's messages do not hide those of another.
        messages.note(at(5000), 2);
        messages.note(at(6000), 2);
        assert!(messages.are_exchanged(at(9999), 2) && !messages.are_exchanged(at(10_000), 2));
        assert!(messages.are_exchanged(at(15_999), 1) && !messages.are_exchanged(at(16_000), 1));
    }
}
