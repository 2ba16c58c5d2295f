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
    last: Option<Sample>,
    /// When the first segment was sent.
    first_sent: Option<Instant>,
    acked: u64,
}

/// A measurement: the bytes acknowledged at one time, in the time since the acknowledgement before.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    time: Duration,
    octets: u64,
    /// The service time before it.
    known: Duration,
}

impl Sample {
    /// The service time with this sample. The shortest spacing counts: windows also cause gaps, but
    /// nothing passes faster than the bottleneck.
    fn service(&self, mss: u32) -> Duration {
        let (known, sample) = (self.known, per_segment(self.time, self.octets, mss));
        if sample.is_zero() {
            known
        } else if sample < known {
            (known + sample) / 2
        } else {
            known + (sample - known) / 16
        }
    }
}

fn per_segment(time: Duration, octets: u64, mss: u32) -> Duration {
    time.mul_ratio(u64::from(mss), octets.max(u64::from(mss) / 2))
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
        match (self.busy_since, self.measured, self.first_sent) {
            // The first sample: the time by which data took longer than the handshake.
            (_, None, Some(sent)) => {
                let time = now.saturating_since(sent).saturating_sub(min_rtt);
                self.measured = Some(per_segment(time, octets, mss));
            }
            (Some(since), Some(known), _) => {
                // A host may read several acknowledgements at once: together they are one sample.
                let together = self.last.filter(|last| last.at == now);
                let sample = match together {
                    Some(last) => Sample { octets: last.octets + octets, ..last },
                    None => Sample { at: now, time: now.saturating_since(since), octets, known },
                };
                self.measured = Some(sample.service(mss));
                self.last = Some(sample);
            }
            (_, None, None) | (None, Some(_), _) => {}
        }
        self.busy_since = (in_flight > 0).then_some(now);
        if in_flight == 0 {
            self.free_at = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One acknowledgement for two segments, which pass the bottleneck in 240 µs each. The host
    /// reads them once in this time.
    #[test]
    fn acknowledgements_that_are_read_together_do_not_make_a_path_slow() {
        const SEGMENT: u64 = 240;
        for turn in [1, 1000, 3000, 10_000] {
            let mut pace = Pace::default();
            pace.sent(Instant::ZERO);
            let path = (Duration::from_micros(100), 1000);
            for ack in 1..2000 {
                let arrival = 2 * SEGMENT * ack;
                let read = Instant::ZERO + Duration::from_micros(arrival.div_ceil(turn) * turn);
                pace.acknowledged(read, 2000 * ack, 50_000, path);
            }
            let (service, least) = (pace.service().expect("it is measured"), SEGMENT * 3 / 4);
            let range = Duration::from_micros(least)..=Duration::from_micros(SEGMENT + 10);
            assert!(range.contains(&service), "{turn} µs: {service}");
        }
    }
}
