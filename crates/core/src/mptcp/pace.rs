//! Rate of a path: the time that its bottleneck needs for one segment. It is measured by
//! acknowledgements unless the owner knows it, and predicts when a segment sent now arrives.

use crate::time::{Duration, Instant};

/// The bottleneck of one path, modelled as a server that is busy until some time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Measured time per segment.
    measured: Option<Duration>,
    /// Time per segment as set by the owner.
    told: Option<Duration>,
    /// When the bottleneck has forwarded all sent data, if the service time is right.
    free_at: Instant,
    /// When bytes were last acknowledged while more were in flight.
    busy_since: Option<Instant>,
    /// When the first segment was sent.
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

    /// Records a sent segment.
    pub(crate) fn sent(&mut self, now: Instant) {
        self.first_sent.get_or_insert(now);
        self.free_at = self.free_at.max(now) + self.service().unwrap_or_default();
    }

    /// Time that a segment sent now waits for earlier ones.
    pub(crate) fn wait(&self, now: Instant) -> Duration {
        self.free_at.saturating_since(now)
    }

    /// Processes an acknowledgement: `acked` bytes in total, `in_flight` bytes still in flight.
    pub(crate) fn acknowledged(&mut self, now: Instant, acked: u64, in_flight: u32, path: (Duration, u32)) {
        let (min_rtt, mss) = path;
        let octets = acked - self.acked;
        if octets == 0 {
            return;
        }
        self.acked = acked;
        let per_segment = |time: Duration| time.mul_ratio(u64::from(mss), octets.max(u64::from(mss) / 2));
        match (self.busy_since, self.measured, self.first_sent) {
            // The first sample: the time by which data took longer than the handshake.
            (_, None, Some(sent)) => {
                self.measured = Some(per_segment(now.saturating_since(sent).saturating_sub(min_rtt)));
            }
            // The shortest spacing counts. Windows also cause gaps, but nothing passes faster than
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
