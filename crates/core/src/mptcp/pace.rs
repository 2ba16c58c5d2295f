//! How fast a path delivers: the time that its bottleneck spends on one segment, measured by
//! acknowledgements where the owner does not tell, and from it when a segment that leaves now would
//! arrive.

use crate::time::{Duration, Instant};

/// The bottleneck of one path, as a server that is busy until some time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// For one segment; measured.
    measured: Option<Duration>,
    /// Told by the owner.
    told: Option<Duration>,
    /// When all that was sent has passed the bottleneck, if the service time is right.
    free_at: Instant,
    /// When bytes were last acknowledged with more still on the way.
    busy_since: Option<Instant>,
    /// Of the first segments that nothing was known about.
    first_sent: Option<Instant>,
    acked: u64,
}

impl Pace {
    pub(crate) fn tell(&mut self, service: Option<Duration>) {
        self.told = service;
    }

    pub(crate) fn service(&self) -> Option<Duration> {
        self.told.or(self.measured)
    }

    /// A segment leaves.
    pub(crate) fn sent(&mut self, now: Instant) {
        self.first_sent.get_or_insert(now);
        self.free_at = self.free_at.max(now) + self.service().unwrap_or_default();
    }

    /// How long a segment that leaves now waits for those before it.
    pub(crate) fn wait(&self, now: Instant) -> Duration {
        self.free_at.saturating_since(now)
    }

    /// `acked` bytes were acknowledged since the beginning, `in_flight` are on the way.
    pub(crate) fn acknowledged(&mut self, now: Instant, acked: u64, in_flight: u32, path: (Duration, u32)) {
        let (min_rtt, mss) = path;
        let octets = acked - self.acked;
        if octets == 0 {
            return;
        }
        self.acked = acked;
        let per_segment = |time: Duration| time.mul_ratio(u64::from(mss), octets.max(u64::from(mss) / 2));
        match (self.busy_since, self.measured, self.first_sent) {
            // What the first of them took longer than the handshake.
            (_, None, Some(sent)) => {
                self.measured = Some(per_segment(now.saturating_since(sent).saturating_sub(min_rtt)));
            }
            // The shortest spacing counts: gaps come from windows too, but nothing is faster than
            // the bottleneck.
            (Some(since), Some(known), _) => {
                let sample = per_segment(now.saturating_since(since));
                self.measured = Some(if sample.is_zero() {
                    known
                } else if sample < known {
                    (known + sample) / 2
                } else {
                    known + (sample - known) / 16
                });
            }
            (_, None, None) | (None, Some(_), _) => {}
        }
        self.busy_since = (in_flight > 0).then_some(now);
        if in_flight == 0 {
            self.free_at = now;
        }
    }
}
