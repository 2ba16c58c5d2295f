//! TCP Westwood+: a loss sets the window to the measured capacity of the path, not to half of the
//! window (Mascolo, Casetti, Gerla, Sanadidi, Wang: "TCP Westwood", MobiCom 2001; Grieco, Mascolo:
//! "Performance Evaluation and Comparison of Westwood+, New Reno, and Vegas TCP Congestion
//! Control", CCR 34(2), 2004).
//!
//! Once per round trip the acknowledged bytes give a bandwidth sample, and a low-pass filter the
//! estimate BWE. Three duplicate acknowledgements or a time-out set ssthresh = max(2, BWE RTTmin /
//! segment). All else is NewReno.
//!
//! Choices that the papers leave open: the first sample is the estimate; without a sample a loss is
//! handled as in NewReno; a loss never enlarges the window; an idle time longer than the time-out
//! gives no sample.

use super::newreno::NewReno;
use super::{Controller, Repair, View, Windows};
use crate::time::{Duration, Instant};

/// The window, and the estimate of the path.
#[derive(Clone, Debug)]
pub(crate) struct Westwood {
    base: NewReno,
    /// BWE, in bytes per second times [`UNIT`].
    bandwidth: Option<u64>,
    /// The last measured round-trip time.
    rtt: Option<Duration>,
    /// Start of the current sample.
    since: Option<Instant>,
    /// Bytes acknowledged in the current sample.
    delivered: u64,
    /// Bytes already counted for duplicate acknowledgements, which a later acknowledgement covers
    /// again.
    accounted: u64,
}

impl Westwood {
    pub(crate) fn new(cwnd: u32, ssthresh: u32) -> Self {
        let base = NewReno::new(cwnd, ssthresh);
        Self { base, bandwidth: None, rtt: None, since: None, delivered: 0, accounted: 0 }
    }

    /// AckedCount of the MobiCom paper. A duplicate stands for one delivered segment. An
    /// acknowledgement of more than one segment is delayed, or covers bytes already counted for
    /// duplicates.
    fn count(&mut self, mss: u64, acked: u64) -> u64 {
        if acked == 0 {
            self.accounted += mss;
            return mss;
        }
        if acked <= mss {
            return acked;
        }
        if self.accounted >= acked {
            self.accounted -= acked;
            return mss;
        }
        acked - core::mem::take(&mut self.accounted)
    }

    /// b = D / T and BWE = 0.9 BWE + 0.1 b (CCR paper, section 2).
    fn sample(&mut self, octets: u64, time: Duration) {
        let nanos = u128::from(time.as_nanos().max(1));
        let sample = u128::from(octets) * u128::from(UNIT) * 1_000_000_000 / nanos;
        // Below this limit the filter cannot overflow.
        let sample = sample.min(u128::from(u64::MAX / 10)) as u64;
        self.bandwidth = Some(self.bandwidth.map_or(sample, |estimate| (9 * estimate + sample) / 10));
    }

    /// BWE RTTmin in bytes, at least two segments.
    fn pipe(&self, view: &View) -> Option<u32> {
        let (bandwidth, min_rtt) = (self.bandwidth?, view.min_rtt?);
        let octets =
            u128::from(bandwidth) * u128::from(min_rtt.as_nanos()) / (u128::from(UNIT) * 1_000_000_000);
        Some((octets.min(u128::from(u32::MAX)) as u32).max(view.least_ssthresh))
    }
}

impl Controller for Westwood {
    #[inline]
    fn cwnd(&self) -> u32 {
        self.base.cwnd()
    }

    fn ssthresh(&self) -> u32 {
        self.base.ssthresh()
    }

    #[inline]
    fn on_ack(&mut self, now: Instant, view: &View, acked: u32) {
        self.base.on_ack(now, view, acked);
    }

    fn on_delivery(&mut self, now: Instant, mss: u32, acked: u32) {
        let since = *self.since.get_or_insert(now);
        let time = now.saturating_since(since);
        // One sample per round trip: with a sample per acknowledgement, compressed acknowledgements
        // would inflate the estimate (CCR paper).
        if self.rtt.is_some_and(|rtt| !rtt.is_zero() && time >= rtt) {
            self.sample(self.delivered, time);
            self.since = Some(now);
            self.delivered = 0;
        }
        self.delivered += self.count(mss.into(), acked.into());
    }

    fn on_rtt(&mut self, _now: Instant, _view: &View, rtt: Duration) {
        self.rtt = Some(rtt);
    }

    fn on_slow_start_end(&mut self, now: Instant, view: &View) {
        self.base.on_slow_start_end(now, view);
    }

    fn on_loss(&mut self, now: Instant, view: &View) {
        match self.pipe(view) {
            // A loss never enlarges the window.
            Some(pipe) => self.base.reduce(pipe, self.base.cwnd().min(pipe)),
            None => self.base.on_loss(now, view),
        }
    }

    fn on_recovered(&mut self, now: Instant, view: &View) {
        self.base.on_recovered(now, view);
    }

    fn on_timeout(&mut self, now: Instant, view: &View) {
        // RFC 5681 section 3.1: a repeated time-out for the same byte keeps the threshold.
        let pipe = self.pipe(view).filter(|_| view.repair != Repair::RepeatedTimeout);
        self.base.on_timeout(now, view);
        if let Some(pipe) = pipe {
            self.base.reduce(pipe, view.mss);
        }
    }

    fn on_spurious(&mut self, now: Instant, view: &View, prior: Windows) {
        self.base.on_spurious(now, view, prior);
    }

    fn on_idle(&mut self, now: Instant, view: &View) {
        self.base.on_idle(now, view);
        self.since = None;
        self.delivered = 0;
    }
}

/// Fixed-point unit of the estimate, which keeps the filter precise on slow paths.
const UNIT: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    fn view(repair: Repair) -> View {
        View {
            in_flight: 40 * MSS,
            srtt: Some(Duration::from_millis(100)),
            min_rtt: Some(Duration::from_millis(80)),
            ..View::of(MSS, repair)
        }
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Runs rounds of acknowledgements of 100 ms each.
    fn rounds(westwood: &mut Westwood, octets: &[u32]) {
        for (n, octets) in octets.iter().enumerate() {
            let now = at(100 * n as u64);
            westwood.on_rtt(now, &view(Repair::Sack), Duration::from_millis(100));
            (0..octets / MSS).for_each(|_| westwood.on_delivery(now, MSS, MSS));
        }
    }

    #[test]
    fn samples_are_taken_once_in_a_round_trip_and_filtered() {
        let mut westwood = Westwood::new(40 * MSS, u32::MAX);
        rounds(&mut westwood, &[10_000]);
        assert_eq!(westwood.bandwidth, None);
        rounds(&mut westwood, &[]);
        let octets = |w: &Westwood| w.bandwidth.map(|b| b / UNIT);
        westwood.on_delivery(at(99), MSS, MSS);
        assert_eq!(octets(&westwood), None, "99 ms are no round trip");
        westwood.on_delivery(at(100), MSS, MSS);
        // 11 segments in 100 ms.
        assert_eq!(octets(&westwood), Some(110_000));
        (0..20).for_each(|_| westwood.on_delivery(at(150), MSS, MSS));
        westwood.on_delivery(at(200), MSS, MSS);
        // 0.9 * 110 kB/s + 0.1 * 210 kB/s
        assert_eq!(octets(&westwood), Some(120_000));
    }

    #[test]
    fn acknowledgements_count_what_has_arrived() {
        let mut westwood = Westwood::new(40 * MSS, u32::MAX);
        let mut count = |acked: u64| westwood.count(1000, acked);
        assert_eq!(
            [count(1000), count(400), count(2000)],
            [1000, 400, 2000],
            "one, a short one, a delayed one"
        );
        assert_eq!([count(0), count(0), count(0)], [1000; 3], "each duplicate is one segment");
        // The hole is filled: 3 of the 4 segments were counted before.
        assert_eq!(count(4000), 1000);
        assert_eq!(count(2000), 2000);
        assert_eq!([count(0), count(0), count(0)], [1000; 3]);
        // Partial acknowledgements: 2 of the 3 counted segments, of which one was retransmitted.
        assert_eq!([count(2000), count(2000)], [1000, 1000]);
    }

    /// BWE 200 kB/s, RTTmin 80 ms: 16 segments.
    #[test]
    fn losses_set_the_threshold_to_the_pipe() {
        let mut westwood = Westwood::new(40 * MSS, u32::MAX);
        rounds(&mut westwood, &[20_000; 8]);
        let mut timed_out = westwood.clone();
        westwood.on_loss(at(800), &view(Repair::Sack));
        assert_eq!((westwood.ssthresh(), westwood.cwnd()), (16_000, 16_000));
        timed_out.on_timeout(at(800), &view(Repair::FirstTimeout));
        assert_eq!((timed_out.ssthresh(), timed_out.cwnd()), (16_000, MSS));
        timed_out.bandwidth = Some(1);
        timed_out.on_timeout(at(900), &view(Repair::RepeatedTimeout));
        assert_eq!(timed_out.ssthresh(), 16_000, "RFC 5681 section 3.1");
        timed_out.on_loss(at(900), &view(Repair::Sack));
        assert_eq!(
            (timed_out.ssthresh(), timed_out.cwnd()),
            (2_000, MSS),
            "two segments, and no larger window"
        );
        let mut fresh = Westwood::new(40 * MSS, u32::MAX);
        fresh.on_loss(at(0), &view(Repair::Sack));
        assert_eq!((fresh.ssthresh(), fresh.cwnd()), (20_000, 20_000), "without a sample as NewReno");
    }

    #[test]
    fn a_silence_is_no_sample() {
        let mut westwood = Westwood::new(40 * MSS, u32::MAX);
        rounds(&mut westwood, &[20_000; 8]);
        let before = westwood.bandwidth;
        westwood.on_idle(at(60_000), &view(Repair::Sack));
        westwood.on_delivery(at(60_100), MSS, MSS);
        assert_eq!(westwood.bandwidth, before);
    }
}
