use anabranch_core::segment::Ecn;

use super::super::tests::{micros, packets};
use super::*;

fn pie(config: PieConfig) -> Pie {
    Pie::new(config, QueueLimit::Packets(u32::MAX), Stream::new(1, 0, "test", "pie"))
}

/// Sends packets of 1000 bytes in each millisecond, of which one leaves, for a number of
/// milliseconds. Returns PIE, the times of its drops, and its mean delay in the second half, in
/// seconds.
fn overloaded(config: PieConfig, per_milli: usize, millis: u64, ecn: Ecn) -> (Pie, Vec<u64>, f64) {
    let mut pie = pie(config);
    let mut waited = 0.0;
    let mut all = packets(per_milli * millis as usize, ecn).into_iter();
    let (mut dropped, mut verdicts) = (Vec::new(), Verdicts::default());
    for milli in 0..millis {
        for packet in all.by_ref().take(per_milli) {
            pie.enqueue(micros(1000 * milli), packet, Flow::default(), &mut verdicts);
        }
        dropped.resize(verdicts.dropped.len(), milli);
        pie.dequeue(micros(1000 * milli + 500), &mut verdicts);
        waited += if milli >= millis / 2 { pie.delay.as_secs_f64() } else { 0.0 };
    }
    (pie, dropped, waited / (millis - millis / 2) as f64)
}

/// If half of the arrivals is too much, half is dropped, and packets wait for the target: the
/// controller with a constant probability is at rest only then.
#[test]
fn packets_wait_for_the_target_where_they_do_not_slow_down() {
    for millis in [10, 15, 40] {
        let target = Span(Duration::from_millis(millis));
        let (pie, dropped, delay) =
            overloaded(PieConfig { target, ..PieConfig::default() }, 2, 60_000, Ecn::NotEct);
        assert!((delay * 1e3 / millis as f64 - 1.0).abs() < 0.05, "{delay} s");
        assert!((pie.share - 0.5).abs() < 0.1, "{}", pie.share);
        let late = dropped.iter().filter(|at| **at >= 30_000).count();
        assert!((late as f64 / 30_000.0 - 1.0).abs() < 0.02, "{late}");
    }
}

#[test]
fn nothing_is_dropped_in_a_burst() {
    let (_, dropped, _) = overloaded(PieConfig::default(), 3, 2000, Ecn::NotEct);
    assert!(dropped[0] >= 150, "{} ms", dropped[0]);
    let burst = Span(Duration::from_millis(600));
    let (_, dropped, _) = overloaded(PieConfig { burst, ..PieConfig::default() }, 3, 2000, Ecn::NotEct);
    assert!(dropped[0] >= 600, "{} ms", dropped[0]);
}

#[test]
fn marks_up_to_a_share_and_drops_above_it() {
    let mut pie = pie(PieConfig::default());
    pie.burst = Duration::ZERO;
    for (share, marks) in [(0.05, true), (0.1, true), (0.11, false)] {
        (pie.share, pie.last_delay) = (share, Duration::from_millis(100));
        pie.next_update = Instant::FAR_FUTURE;
        let mut verdicts = Verdicts::default();
        for packet in packets(500, Ecn::Ect0) {
            pie.enqueue(micros(0), packet, Flow::default(), &mut verdicts);
        }
        assert_eq!((verdicts.marked > 10, verdicts.dropped.len() > 10), (marks, !marks), "{share}");
        pie.clear(micros(0));
    }
}

#[test]
fn a_light_queue_is_left_alone() {
    let mut pie = pie(PieConfig { burst: Span(Duration::ZERO), ..PieConfig::default() });
    (pie.share, pie.next_update) = (0.19, Instant::FAR_FUTURE);
    let mut verdicts = Verdicts::default();
    for packet in packets(1000, Ecn::NotEct) {
        pie.enqueue(micros(0), packet, Flow::default(), &mut verdicts);
    }
    assert!(verdicts.dropped.is_empty(), "it has waited for less than half the target");
    pie.clear(micros(0));
    pie.last_delay = Duration::from_millis(20);
    for packet in packets(1000, Ecn::NotEct) {
        let few = pie.queued().1 <= 3000;
        let before = verdicts.dropped.len();
        pie.enqueue(micros(0), packet, Flow::default(), &mut verdicts);
        assert!(!few || verdicts.dropped.len() == before, "three packets are no queue");
        if pie.queued().0 > 6 {
            pie.dequeue(micros(0), &mut verdicts);
        }
    }
    assert!(verdicts.dropped.len() > 100);
}

/// A second implementation of the controller of RFC 8033, section 4.2, with an update at each of
/// its times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Controller {
    p: f64,
    old: f64,
    burst: f64,
}

impl Controller {
    fn update(&mut self, config: &PieConfig, now: f64) {
        let [target, interval, burst] =
            [config.target, config.interval, config.burst].map(|span| span.0.as_secs_f64());
        let mut p = config.alpha * (now - target) + config.beta * (now - self.old);
        for (below, by) in
            [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)]
        {
            if self.p < below {
                p /= by;
                break;
            }
        }
        if self.p >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.p += p;
        if now == 0.0 && self.old == 0.0 {
            self.p *= 0.98;
        }
        self.p = self.p.clamp(0.0, 1.0);
        let light = self.p == 0.0 && now < target / 2.0 && self.old < target / 2.0;
        self.burst = if light { burst } else { (self.burst - interval).max(0.0) };
        self.old = now;
    }
}

proptest::proptest! {
    /// Updates that are made up for have the same effect as updates at their times, also after a
    /// long silence.
    #[test]
    fn the_share_is_that_of_a_controller_that_sleeps_never(
        steps in proptest::collection::vec((0..400_000u64, 0..300_000u64, 0..10u8), 1..60),
        interval in 1000..50_000u64,
    ) {
        let config = PieConfig { interval: Span(Duration::from_micros(interval)), ..PieConfig::default() };
        let mut pie = pie(config);
        let mut controller = Controller { burst: 0.15, ..Controller::default() };
        let (mut now, mut next, mut delay) = (0, interval, 0.0);
        for (wait, new, long) in steps {
            now += if long == 0 { wait * 1000 } else { wait };
            pie.catch_up(micros(now));
            while next <= now {
                controller.update(&config, delay);
                next += interval;
            }
            proptest::prop_assert!((pie.share - controller.p).abs() < 1e-12, "{} instead of {}", pie.share, controller.p);
            proptest::prop_assert!((pie.burst.as_secs_f64() - controller.burst).abs() < 1e-9);
            let new = if long < 4 { 0 } else { new };
            pie.delay = Duration::from_micros(new);
            delay = pie.delay.as_secs_f64();
        }
    }
}

#[test]
fn after_silence_a_burst_may_be_as_long_as_at_first() {
    let mut pie = pie(PieConfig::default());
    (pie.share, pie.last_delay, pie.burst) = (0.01, Duration::from_millis(20), Duration::ZERO);
    pie.catch_up(micros(60_000_000));
    assert_eq!((pie.share, pie.burst), (0.0, Duration::from_millis(150)));
}

/// An update for every 100 µs of a year would take hours.
#[test]
fn a_packet_that_waits_for_a_year_costs_no_more_than_another() {
    let mut pie = pie(PieConfig { interval: Span(Duration::from_micros(100)), ..PieConfig::default() });
    pie.delay = Duration::from_secs(1);
    pie.catch_up(Instant::ZERO + Duration::from_secs(31_000_000));
    assert_eq!((pie.share, pie.burst), (1.0, Duration::ZERO));
}
