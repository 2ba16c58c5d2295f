//! The receive rate, from a median filter over 16 intervals (section 3.5.1, erratum H16).

use anabranch_wire::rdca::Seq;

use super::trend::WINDOW;
use crate::time::Instant;

/// Least number of intervals that must pass the filter.
const LEAST: usize = 8;

/// The Time Array of one sender: intervals between packets in microseconds.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    intervals: [u32; WINDOW],
    at: u8,
    len: u8,
    last: Option<(Seq, Instant)>,
    /// The last valid average; 0 before the first.
    average: u32,
    /// The share of packets whose first transmission was lost, in units of 1/[`WHOLE`]: an average
    /// with a weight of 1/16.
    lost: u16,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self::new()
    }
}

/// A share of 1.
const WHOLE: u16 = 1 << 15;

impl Arrivals {
    /// Creates an empty array.
    pub(super) const fn new() -> Self {
        Self { intervals: [0; WINDOW], at: 0, len: 0, last: None, average: 0, lost: 0 }
    }

    /// Records the first transmission of a packet. Only intervals between consecutive packets
    /// count: across a gap, a packet was lost, late or retransmitted.
    pub(super) fn arrived(&mut self, now: Instant, seq: Seq) {
        if let Some((last, at)) = self.last
            && seq == last + 1
        {
            let micros = now.saturating_since(at).as_nanos() / 1000;
            self.intervals[usize::from(self.at)] = micros.min(u64::from(u32::MAX)) as u32;
            self.at = (self.at + 1) % WINDOW as u8;
            self.len = (self.len + 1).min(WINDOW as u8);
        }
        self.last = Some((seq, now));
    }

    /// Records a packet without regard to its number.
    pub(super) fn came(&mut self, now: Instant) {
        let seq = self.last.map_or(Seq(0), |(last, _)| last + 1);
        self.arrived(now, seq);
    }

    /// Records the number of packets found missing before a packet.
    pub(super) fn missed(&mut self, packets: u32) {
        for _ in 0..packets.min(WINDOW as u32) {
            self.lost += (WHOLE - self.lost) / WINDOW as u16;
        }
        self.lost -= self.lost / WINDOW as u16;
    }

    /// Returns the average interval in microseconds as if the lost packets had never been sent.
    pub(super) fn average_less_losses(&mut self) -> u32 {
        let average = u64::from(self.average()) * u64::from(WHOLE) / u64::from(WHOLE - self.lost).max(1);
        average.min(u64::from(u32::MAX)) as u32
    }

    /// Records a retransmission: the interval that contains it does not count.
    pub(super) fn interrupted(&mut self) {
        self.last = None;
    }

    /// Returns the average interval in microseconds over the intervals within a factor of 2.5 of
    /// the median. If fewer than 8 remain, returns the previous average, or 0 if there is none.
    pub(super) fn average(&mut self) -> u32 {
        let len = usize::from(self.len);
        if len < LEAST {
            return self.average;
        }
        let mut sorted = self.intervals;
        let sorted = &mut sorted[..len];
        sorted.sort_unstable();
        let twice_median = u64::from(sorted[(len - 1) / 2]) + u64::from(sorted[len / 2]);
        let passes = |interval: u64| 4 * interval <= 5 * twice_median && 5 * interval >= twice_median;
        let (count, sum) = sorted
            .iter()
            .map(|interval| u64::from(*interval))
            .filter(|interval| passes(*interval))
            .fold((0, 0), |(count, sum), interval| (count + 1, sum + interval));
        if count >= LEAST as u64 {
            self.average = ((sum / count) as u32).max(1);
        }
        self.average
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    fn arrivals(intervals_ms: &[u64]) -> Arrivals {
        let mut arrivals = Arrivals::new();
        let mut now = Instant::ZERO;
        arrivals.arrived(now, Seq(u32::MAX));
        for (i, interval) in intervals_ms.iter().enumerate() {
            now += Duration::from_millis(*interval);
            arrivals.arrived(now, Seq(i as u32));
        }
        arrivals
    }

    #[test]
    fn too_long_and_too_short_intervals_do_not_count() {
        let steady = [75, 75, 75, 75, 75, 75, 75, 1, 900, 75, 75, 75, 75, 75, 75, 75];
        assert_eq!(arrivals(&steady).average(), 75_000);
        assert_eq!(arrivals(&[75; 7]).average(), 0, "too few");
    }

    #[test]
    fn h16_the_previous_rate_stays_where_fewer_than_eight_pass() {
        let odd = [1, 1, 1, 1, 1, 1, 1, 1, 10, 1000, 1000, 1000, 1000, 1000, 1000, 1000];
        assert_eq!(arrivals(&odd).average(), 0, "the erratum's example: the median is 5.5, and one is left");
        let mut late = arrivals(&[20; 16]);
        assert_eq!(late.average(), 20_000);
        late.intervals = odd.map(|ms| ms as u32 * 1000);
        assert_eq!(late.average(), 20_000);
    }

    #[test]
    fn what_is_missed_lowers_the_receive_rate() {
        let mut arrivals = arrivals(&[10; 16]);
        assert_eq!(arrivals.average_less_losses(), 10_000);
        for _ in 0..100 {
            arrivals.missed(1);
        }
        let half = arrivals.average_less_losses();
        assert!((19_000..=21_500).contains(&half), "every other one: {half}");
        arrivals.missed(u32::MAX);
        assert!(arrivals.average_less_losses() < 100_000, "an outage is no rate of zero");
        for _ in 0..200 {
            arrivals.missed(0);
        }
        assert!(arrivals.average_less_losses() <= 10_010, "forgotten");
    }

    #[test]
    fn h16_repetitions_and_the_gaps_that_they_cause_do_not_count() {
        let mut arrivals = arrivals(&[10; 10]);
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        arrivals.interrupted();
        arrivals.arrived(at(120), Seq(10));
        arrivals.arrived(at(150), Seq(12));
        assert_eq!(arrivals.len, 10);
        arrivals.arrived(at(160), Seq(13));
        assert_eq!((arrivals.len, arrivals.average()), (11, 10_000));
    }
}
