//! The user timeout (RFC 9293 section 3.10.8) as a local setting; the option of RFC 5482 is not
//! sent.

use super::Connection;
use crate::segment::{Segment, SeqNumber};
use crate::time::{Duration, Instant};

/// Limit of the time without an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct UserTimeout {
    after: Duration,
    /// Since when an acknowledgement is outstanding.
    since: Option<Instant>,
}

impl Connection {
    /// Limits the time that sent data may stay unacknowledged; then the connection is closed.
    /// [`syn_retries`](crate::tcp::Config::syn_retries) and
    /// [`data_retries`](crate::tcp::Config::data_retries) still apply. `None`, the initial value,
    /// leaves the limit to them alone.
    ///
    /// A changed length counts from the original start of the clock; a first one counts from now.
    pub fn set_user_timeout(&mut self, now: Instant, after: Option<Duration>) {
        let since = match self.user_timeout {
            Some(timeout) => timeout.since,
            None => (self.tx.una() != self.tx.max()).then_some(now),
        };
        self.user_timeout = after.map(|after| UserTimeout { after, since });
    }

    /// Starts the clock when a segment that takes sequence numbers is sent.
    #[inline]
    pub(super) fn note_owed(&mut self, now: Instant, segment: &Segment) {
        if let Some(timeout) = &mut self.user_timeout
            && segment.seq_len() > 0
        {
            timeout.since.get_or_insert(now);
        }
    }

    /// Handles an accepted segment; `una` is SND.UNA before it. A peer that answers a probe of its
    /// closed window owes nothing until the next probe: the connection stays open as long as it
    /// answers (RFC 9293 section 3.8.6.1).
    #[inline]
    pub(super) fn note_answer(&mut self, now: Instant, una: SeqNumber) {
        let Some(timeout) = &mut self.user_timeout else { return };
        if self.tx.una() == self.tx.max() || self.tx.peer_window() == 0 {
            timeout.since = None;
        } else if self.tx.una() != una {
            timeout.since = Some(now);
        }
    }

    /// When the user timeout expires.
    #[inline]
    pub(super) fn user_timeout_at(&self) -> Option<Instant> {
        let timeout = self.user_timeout?;
        Some(timeout.since? + timeout.after)
    }
}
