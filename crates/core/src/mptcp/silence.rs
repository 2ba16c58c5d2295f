//! Silence of a subflow: data in flight, and no answer for longer than a round trip takes.
//!
//! A path that loses everything shows it first by silence. The tail loss probe (RFC 8985 section 7)
//! follows two round trips after the last data, and the time-out a round trip later. Other subflows
//! can carry the data much earlier (RFC 8684 section 3.3.6). A copy costs little and a pause much,
//! so the limit is that of a round trip rather than that of a time-out.
//!
//! Losses do not count as silence, since selective acknowledgements answer the data that follows
//! them. A subflow that answers after all, without a retransmission, may be silent for two round
//! trips the next time: paths whose delay jumps do not fill the others with copies.

use crate::tcp;
use crate::time::{Duration, Instant};

/// The silence of one subflow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence {
    /// Since when data in flight waits for an answer.
    since: Option<Instant>,
    /// Number of retransmissions when the limit was reached; `None` if it was not.
    broken: Option<u64>,
    /// What the peer has acknowledged, cumulatively and selectively.
    heard: (u64, u32),
    /// Number of time-outs when the last answer came.
    timeouts: u64,
    /// Until when the limit is at least two round trips.
    patient_until: Instant,
}

impl Silence {
    /// Notes that data was sent.
    pub(crate) fn sent(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// The handshake is over: its time-outs do not count.
    pub(crate) fn opened(&mut self, tcp: &tcp::Info) {
        self.timeouts = tcp.timeouts;
    }

    /// Notes that a segment has arrived. Returns whether it ends a silence beyond the limit.
    pub(crate) fn received(&mut self, now: Instant, tcp: &tcp::Info) -> bool {
        let heard = (tcp.bytes_acked, tcp.sacked);
        if heard == self.heard {
            return false;
        }
        self.heard = heard;
        self.timeouts = tcp.timeouts;
        self.since = is_outstanding(tcp).then_some(now);
        let Some(retransmissions) = self.broken.take() else { return false };
        if retransmissions == tcp.retransmissions {
            self.patient_until = now + MEMORY;
        }
        true
    }

    /// Whether the subflow has been silent for longer than the limit.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Number of time-outs since the last answer.
    pub(crate) fn timeouts(&self, tcp: &tcp::Info) -> u64 {
        tcp.timeouts.saturating_sub(self.timeouts)
    }

    /// When the limit is reached, if no answer arrives; `least` is added to the round-trip time at
    /// least.
    pub(crate) fn deadline(&self, tcp: &tcp::Info, least: Duration) -> Option<Instant> {
        let since = self.since?;
        if self.is_broken() || !is_outstanding(tcp) {
            return None;
        }
        // The probe of TCP is due after two round trips, and shows that this is no false alarm.
        let patience = if since < self.patient_until { tcp.srtt? * 2 } else { Duration::ZERO };
        Some(since + limit(tcp, least)?.max(patience))
    }

    /// Notes that the limit is reached.
    pub(crate) fn give_up(&mut self, tcp: &tcp::Info) {
        self.broken = Some(tcp.retransmissions);
    }
}

/// Time in which an answer is due: a round trip with its deviation, and at least `least` beyond a
/// round trip. `None` before the first measurement.
pub(crate) fn limit(tcp: &tcp::Info, least: Duration) -> Option<Duration> {
    let srtt = tcp.srtt?;
    Some(srtt + (tcp.rttvar * 4).max(srtt / 4).max(least).max(GRANULARITY))
}

/// Whether an answer is due. Data that a time-out has declared lost counts: it is sent again
/// without a call of [`Silence::sent`].
fn is_outstanding(tcp: &tcp::Info) -> bool {
    tcp.buffered > tcp.unsent
}

/// Resolution of the time-outs (RFC 6298 section 2.4). A path without delay has no limit of 0.
const GRANULARITY: Duration = Duration::from_millis(1);

/// How long a silence that was none is remembered.
const MEMORY: Duration = Duration::from_secs(10);
