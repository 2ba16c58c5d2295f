//! Measurement of a session: its delivery rate, and the time that a chunk takes.

use crate::rates::{octets_in, rate_of, time_of};
use crate::time::{Duration, Instant};

/// Sending state of a chunk, kept until it is acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    pub(super) written: Instant,
    /// When the acknowledgement is expected; later the chunk is overdue.
    pub(super) expected: Instant,
    delivered: u64,
    delivered_at: Instant,
    /// When the chunk acknowledged last at that time had been written.
    delivered_written: Instant,
    limited: Limited,
}

/// What limited the session when a chunk was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Limited {
    /// The path was full: the measured rate is the path's.
    ByPath,
    /// The sender had assigned less than the path carries: the measured rate is a lower bound.
    ByUs,
}

/// Number of consecutive rounds without growth by a quarter that end the startup (as in
/// draft-ietf-ccwg-bbr, "full pipe").
const FULL_ROUNDS: u32 = 3;

/// Startup phase of the rate estimate. Rounds are counted in bytes: a round ends when a chunk
/// written after its beginning is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct Startup {
    /// A chunk belongs to the next round if this many bytes had been delivered when it was written.
    round_end: u64,
    /// The rate to exceed.
    best: u64,
    /// Consecutive rounds in which the rate did not exceed it.
    flat: u32,
}

impl Startup {
    fn is_over(&self) -> bool {
        self.flat >= FULL_ROUNDS
    }

    fn acknowledged(&mut self, delivered: u64, delivered_before: u64, rate: u64, limited: Limited) {
        if self.is_over() {
            return;
        }
        if rate >= self.best + self.best / 4 {
            self.best = rate;
            self.flat = 0;
        }
        if delivered_before >= self.round_end {
            self.round_end = delivered;
            // A round that we limited says nothing about the capacity of the path.
            if limited == Limited::ByPath {
                self.flat += 1;
            }
        }
    }
}

/// Number of rounds for which a rate counts as the capacity of the path; it is forgotten after one
/// to two times that number. BBR's filter of the bottleneck bandwidth (draft-ietf-ccwg-bbr section
/// 5.5.1) uses ten.
const PEAK_ROUNDS: u32 = 8;

/// Highest recent rate. The mean predicts when a chunk arrives. A sender that gives a path only its
/// mean rate would never learn that the path can carry more, because each loss or pause lowers the
/// mean further.
#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    round_end: u64,
    rounds: u32,
    previous: u64,
    current: u64,
}

impl Peak {
    fn acknowledged(&mut self, delivered: u64, delivered_before: u64, sample: u64) {
        if delivered_before >= self.round_end {
            self.round_end = delivered;
            self.rounds += 1;
            if self.rounds == PEAK_ROUNDS {
                *self = Self { rounds: 0, previous: self.current, current: 0, ..*self };
            }
        }
        self.current = self.current.max(sample);
    }

    fn rate(&self) -> u64 {
        self.previous.max(self.current)
    }
}

/// Delivery rate and latency of one session, measured from writing chunks to their acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    delivered: u64,
    delivered_at: Instant,
    delivered_written: Instant,
    /// Smoothed rate in bytes per second.
    rate: Option<u64>,
    peak: Peak,
    startup: Startup,
    latency: Option<Duration>,
    variation: Duration,
    min_latency: Duration,
    /// Time to open the session: the only estimate before the first acknowledgement.
    supposed: Duration,
}

impl Estimate {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            delivered: 0,
            delivered_at: now,
            delivered_written: now,
            rate: None,
            peak: Peak::default(),
            startup: Startup::default(),
            latency: None,
            variation: Duration::ZERO,
            min_latency: Duration::MAX,
            supposed: Duration::ZERO,
        }
    }

    /// Sets the latency assumed before the first measurement.
    pub(super) fn suppose(&mut self, latency: Duration) {
        self.supposed = latency;
    }

    /// Delivery rate in bytes per second; `None` before the first measurement.
    pub(super) fn rate(&self) -> Option<u64> {
        self.rate
    }

    /// Highest recent rate of the path in bytes per second; 0 before the first measurement.
    pub(super) fn capacity(&self) -> u64 {
        self.rate.map_or(0, |rate| rate.max(self.peak.rate()))
    }

    /// Smoothed time from writing a chunk to its acknowledgement; `None` before the first
    /// measurement.
    pub(super) fn latency(&self) -> Option<Duration> {
        self.latency
    }

    /// Forgets the latency: from now on chunks do not wait for each other.
    pub(super) fn forget_latency(&mut self) {
        self.latency = None;
        self.variation = Duration::ZERO;
    }

    /// Mean deviation of the latency.
    pub(super) fn variation(&self) -> Duration {
        self.variation
    }

    /// Time for `octets` at the measured rate; zero before the first measurement.
    pub(super) fn drain(&self, octets: u64) -> Duration {
        self.rate.map_or(Duration::ZERO, |rate| time_of(octets, rate))
    }

    /// Time for `octets` more bytes after `outstanding`: the drain time, but at least the shortest
    /// time that a chunk ever took. Before the first measurement, one supposed latency for each
    /// chunk ahead.
    pub(super) fn time_for(&self, outstanding: u64, octets: u64) -> Duration {
        match self.rate {
            Some(_) => self.drain(outstanding + octets).max(self.min_latency),
            None => self.supposed * (1 + outstanding / octets.max(1)),
        }
    }

    /// Number of bytes in flight that keep the path busy with little queueing: what the path
    /// carries in the shortest latency, a quarter more, and `spare`.
    ///
    /// The bound is tight because unassigned bytes can still go to another session. During startup
    /// it is twice the bandwidth-latency product, so that the rate can double in each round as in
    /// slow start. A session that `leads` clearly uses its highest recent rate: a pause caused by a
    /// slower session must not lower its estimate.
    pub(super) fn enough(&self, leads: bool, spare: u64) -> u64 {
        let rate = if leads { self.capacity() } else { self.rate.unwrap_or(0) };
        let quarters = if self.startup.is_over() { 5 } else { 8 };
        octets_in(rate, self.min_latency / 4 * quarters).saturating_add(spare)
    }

    /// Bytes that the path carries at its highest recent rate in `round_trips` times the shortest
    /// latency.
    pub(super) fn pipes(&self, round_trips: u64) -> u64 {
        octets_in(self.capacity(), self.min_latency * round_trips)
    }

    /// Records that a chunk is written.
    pub(super) fn stamp(&mut self, now: Instant, outstanding: u64, octets: u64) -> Stamp {
        if outstanding == 0 {
            // Idle time is not slowness, so the interval of the rate starts here after a pause.
            self.delivered_at = now;
            self.delivered_written = now;
        }
        let pipe = self.rate.map_or(0, |rate| octets_in(rate, self.min_latency));
        let limited = if outstanding + octets > pipe { Limited::ByPath } else { Limited::ByUs };
        Stamp {
            written: now,
            expected: now + self.time_for(outstanding, octets),
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            delivered_written: self.delivered_written,
            limited,
        }
    }

    /// Records the acknowledgement of a chunk of `octets` bytes that only this session carried.
    ///
    /// The rate follows draft-cheng-iccrg-delivery-rate-estimation: the bytes delivered since the
    /// chunk was written, divided by the longer of the times for writing and for acknowledging
    /// them.
    pub(super) fn acknowledged(&mut self, now: Instant, stamp: &Stamp, octets: u64) {
        self.delivered += octets;
        self.delivered_at = now;
        self.delivered_written = stamp.written;
        self.fold_latency(now.saturating_since(stamp.written));
        let writing = stamp.written.saturating_since(stamp.delivered_written);
        let span = now.saturating_since(stamp.delivered_at).max(writing).max(Duration::from_micros(1));
        let sample = rate_of(self.delivered - stamp.delivered, span);
        self.fold_rate(sample, stamp.limited);
        self.peak.acknowledged(self.delivered, stamp.delivered, sample);
        self.startup.acknowledged(
            self.delivered,
            stamp.delivered,
            self.rate.unwrap_or(sample),
            stamp.limited,
        );
    }

    fn fold_rate(&mut self, sample: u64, limited: Limited) {
        self.rate = Some(match (self.rate, limited) {
            (None, _) => sample,
            // A rate limited by the sender is only a lower bound of the path's rate.
            (Some(rate), Limited::ByUs) if sample < rate => rate,
            (Some(rate), _) if sample > rate && !self.startup.is_over() => sample,
            (Some(rate), _) => (rate * 7 + sample) / 8,
        });
    }

    /// The averages of RFC 6298, applied to chunks.
    fn fold_latency(&mut self, sample: Duration) {
        self.min_latency = self.min_latency.min(sample);
        match self.latency {
            None => {
                self.latency = Some(sample);
                self.variation = sample / 2;
            }
            Some(smooth) => {
                let deviation = if smooth > sample { smooth - sample } else { sample - smooth };
                self.variation = self.variation.mul_ratio(3, 4) + deviation / 4;
                self.latency = Some(smooth.mul_ratio(7, 8) + sample / 8);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_steady_path_shows_its_rate() {
        let mut path = Estimate::new(at(0));
        let mut stamps = std::collections::VecDeque::new();
        // 1000 bytes every 100 ms, three chunks in flight: 10 kB/s at 300 ms.
        for i in 0..30u64 {
            let outstanding = 1000 * stamps.len() as u64;
            stamps.push_back(path.stamp(at(i * 100), outstanding, 1000));
            if stamps.len() == 3 {
                let stamp = stamps.pop_front().unwrap();
                path.acknowledged(at(i * 100 + 100), &stamp, 1000);
            }
        }
        let rate = path.rate().unwrap();
        assert!((9_000..=10_500).contains(&rate), "{rate}");
        assert_eq!(path.latency().unwrap().as_millis(), 300);
    }

    #[test]
    fn our_own_restraint_does_not_lower_the_rate() {
        let mut path = Estimate::new(at(0));
        let first = path.stamp(at(0), 0, 1000);
        path.acknowledged(at(100), &first, 1000);
        let second = path.stamp(at(1000), 0, 100);
        path.acknowledged(at(1100), &second, 100);
        assert_eq!(path.rate(), Some(10_000));
    }
}
