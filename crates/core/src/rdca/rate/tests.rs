//! Tests of the cautious range and of rate reductions.

use anabranch_wire::rdca::{Ranges, Seq};

use super::*;
use crate::rdca::config::Caution;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn report(interval: u32, share: u32) -> Report {
    Report { interval, share, rtt: 50_000, delayed: true, ..Report::default() }
}

fn snack(missing: u32, share: u32) -> Snack {
    let mut ranges = Ranges::EMPTY;
    assert!(ranges.push(anabranch_wire::rdca::Range { start: Seq(0), end: Seq(missing) }));
    Snack { report: report(100_000, share), missing: ranges }
}

/// A sender that has reached 3000 bytes per second (ten packets) and has sent for a while.
fn at_ten_a_second(config: &SenderConfig) -> RateControl {
    let mut control = RateControl::new(at(0), config, Duration::from_millis(50));
    control.notified(at(0), config, &report(100_000, 0), false);
    (0..40).for_each(|i| control.sends(at(i * 100)));
    control
}

fn ours() -> SenderConfig {
    // Without a rate increase, so that only the tested event changes the rate.
    SenderConfig { raise_step: 0, ..SenderConfig::default() }
}

#[test]
fn packets_that_come_in_a_bunch_are_no_receive_rate() {
    for (config, least, most) in [(ours(), 3700, 3800), (SenderConfig::paper(), 300_000, 310_000)] {
        let mut control = at_ten_a_second(&config);
        control.notified(at(4000), &config, &report(1000, 0), false);
        assert!((least..=most).contains(&control.rate(&config)), "{}", control.rate(&config));
    }
}

#[test]
fn a_path_that_breaks_cuts_the_rate_once() {
    let config = ours();
    let mut control = at_ten_a_second(&config);
    control.broken(at(4000), &config);
    assert_eq!(control.rate(&config), 2100);
    control.broken(at(4500), &config);
    assert_eq!(control.rate(&config), 2100, "the same trouble");
    control.broken(at(5500), &config);
    assert_eq!(control.rate(&config), 1470);
    let paper = SenderConfig { raise_step: 0, ..SenderConfig::paper() };
    let mut control = at_ten_a_second(&paper);
    control.broken(at(4000), &paper);
    assert_eq!(control.rate(&paper), 3000);
}

#[test]
fn the_rate_stays_below_that_of_a_broken_path_for_a_minute() {
    let config = SenderConfig::default();
    let mut control = at_ten_a_second(&config);
    control.broken(at(4000), &config);
    let after = |seconds: u64| {
        let mut control = control.clone();
        control.grow(at(4000 + 1000 * seconds), &config, true);
        control.rate(&config)
    };
    // 85 % of 3000 bytes per second is soon reached.
    assert!((2550..=2700).contains(&after(30)), "{}", after(30));
    assert!((2550..=3150).contains(&after(60)), "{}", after(60));
    // Then 1/32, 2/32, 4/32, 8/32 of 2100 in the first four seconds: 15/32 in total.
    assert!((3500..=3700).contains(&after(64)) && after(75) > 6000, "{} {}", after(64), after(75));
}

#[test]
fn nothing_rises_while_nothing_can_be_sent() {
    let config = SenderConfig::default();
    let mut control = at_ten_a_second(&config);
    control.grow(at(4000), &config, true);
    let before = control.rate(&config);
    control.resume(at(64_000), &config);
    control.grow(at(64_100), &config, true);
    assert!(control.rate(&config) <= before + 80, "{before} {}", control.rate(&config));
}

/// The rate this number of seconds after a SNACK, with an increase of 100 bytes per second in each
/// second and a cautious time of one minute.
fn seconds_after(snack: &Snack, seconds: u64) -> u32 {
    let ours = SenderConfig::default();
    let caution = ours.caution.map(|caution| Caution { lasts: Duration::from_secs(60), ..caution });
    let config = SenderConfig { acceleration: None, caution, ..ours };
    let mut control = at_ten_a_second(&config);
    control.lost(at(4000), &config, snack, false);
    control.grow(at(4000 + 1000 * seconds), &config, true);
    control.rate(&config)
}

#[test]
fn a_rise_with_any_interval_stays_below_the_greatest_rate() {
    for nanos in [0, 1, 1_000, 10_000_000, 100_000_000_000, 10_000_000_000_000, u64::MAX] {
        let config = SenderConfig { raise_every: Duration::from_nanos(nanos), ..SenderConfig::default() };
        let mut control = at_ten_a_second(&config);
        for packet in 0..1000 {
            // One packet per microsecond, confirmed by the sink: a rate far above any real one.
            let now = at(5000) + Duration::from_micros(packet);
            control.sends(now);
            control.notified(now, &config, &report(1, 0), false);
        }
        let before = control.rate(&config);
        control.grow(at(60_000_000), &config, true);
        assert!(
            (before..=MOST_RATE).contains(&control.rate(&config)),
            "{nanos} ns: {}",
            control.rate(&config)
        );
    }
}

#[test]
fn many_losses_slow_the_rise_and_single_ones_do_not() {
    let rises =
        |missing, from, to| seconds_after(&snack(missing, 0), to) - seconds_after(&snack(missing, 0), from);
    assert!((395..=405).contains(&rises(2, 2, 6)), "{}", rises(2, 2, 6));
    // 3000 is within 85 to 105 % of itself: the increase is 100/32 bytes per second.
    assert!((10..=14).contains(&rises(3, 2, 6)), "{}", rises(3, 2, 6));
    // The caution ends after a minute.
    assert!((395..=405).contains(&rises(3, 70, 74)), "{}", rises(3, 70, 74));
}

#[test]
fn the_slow_rise_is_around_the_share() {
    // 250 ms: 1200 bytes per second. From there the increase is slow, although this sender used
    // 3000 bytes per second.
    assert!((1200..=1220).contains(&seconds_after(&snack(3, 250_000), 5)), "no more than the share");
    // 60 ms: 5000 bytes per second. Up to 85 % of it the increase is fast.
    let fast = seconds_after(&snack(3, 60_000), 10);
    assert!((3890..=4010).contains(&fast), "{fast}");
    let slow = seconds_after(&snack(3, 60_000), 30) - seconds_after(&snack(3, 60_000), 20);
    assert!((28..=34).contains(&slow), "{slow}");
}
