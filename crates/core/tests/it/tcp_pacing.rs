//! End-to-end tests of pacing: when segments leave, and that nothing waits forever.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_core::segment::Segment;
use anabranch_core::tcp::{Config, CongestionAlgorithm, InitialWindow};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::pair::{End, Pair, Verdict};
use bytes::Bytes;

/// When the client's data segments left, and the length of each.
type Departures = Rc<RefCell<Vec<(Instant, usize)>>>;

/// A wire of 50 ms in each direction that records departures and loses the data segments for whose
/// number `lost` returns true.
fn pair(config: Config, lost: impl Fn(usize) -> bool + 'static) -> (Pair, Departures) {
    let departures = Departures::default();
    let noted = departures.clone();
    let rule = move |now: Instant, from: End, segment: &Segment| {
        if from == End::Server || segment.payload.is_empty() {
            return Verdict::Pass;
        }
        noted.borrow_mut().push((now, segment.payload.len()));
        if lost(noted.borrow().len() - 1) { Verdict::Drop } else { Verdict::Pass }
    };
    let mut pair = Pair::new(config, config, Duration::from_millis(50)).with_rule(rule);
    pair.client.outbox = Bytes::from(vec![1; 400_000]);
    (pair, departures)
}

fn config(pacing: bool) -> Config {
    Config { pacing, window_limit: Some(40), initial_ssthresh: Some(14_400), ..Config::default() }
}

/// Largest number of bytes that left at one instant.
fn largest_burst(departures: &[(Instant, usize)]) -> usize {
    let bursts = departures.chunk_by(|a, b| a.0 == b.0);
    bursts.map(|burst| burst.iter().map(|(_, len)| len).sum()).max().unwrap_or(0)
}

#[test]
fn paced_segments_leave_one_by_one() {
    let end = Instant::ZERO + Duration::from_secs(30);
    for (pacing, most) in [(false, 10 * 1440), (true, 1440)] {
        let (mut pair, departures) = pair(config(pacing), |_| false);
        assert!(pair.run_until(end, |pair| pair.server.inbox.len() == 400_000));
        let departures = departures.borrow();
        let burst = largest_burst(&departures);
        assert!(if pacing { burst <= most } else { burst > 1440 * 2 }, "{pacing}: {burst}");
    }
}

/// 1.2 windows per round trip: 12 segments of 1440 bytes in 100 ms while the window is 10 segments.
#[test]
fn the_rate_is_that_of_the_window() {
    let initial_window = InitialWindow::Segments(10);
    let config = Config { initial_window, window_limit: Some(10), initial_ssthresh: Some(1), ..config(true) };
    let (mut pair, departures) = pair(config, |_| false);
    pair.run_until(Instant::ZERO + Duration::from_millis(150), |_| false);
    let departures = departures.borrow();
    let first: Vec<Duration> =
        departures.iter().take(10).map(|(at, _)| at.saturating_since(departures[0].0)).collect();
    for (i, at) in first.iter().enumerate() {
        let expected = i as f64 * 0.100 / 12.0;
        assert!((at.as_secs_f64() - expected).abs() < 0.0005, "{i}: {at} and not {expected} s");
    }
}

/// A retransmission after a time-out leaves when the timer expires, and the following segments soon
/// after.
#[test]
fn time_outs_do_not_wait() {
    // A whole window and some retransmissions are lost, so that only the timer repairs the loss.
    for (congestion, window) in [(CongestionAlgorithm::NewReno, 15), (CongestionAlgorithm::Bbr, 42)] {
        let config = Config { congestion, ..config(true) };
        let (mut pair, departures) = pair(config, move |n| (60..60 + window).contains(&n));
        let end = Instant::ZERO + Duration::from_secs(60);
        let timed_out = |pair: &mut Pair| pair.client.tcp().info().timeouts > 0;
        assert!(pair.run_until(end, timed_out), "{congestion:?}: no time-out");
        let expired = pair.now;
        assert!(pair.run_until(end, |pair| pair.server.inbox.len() == 400_000), "{congestion:?}");
        let departures = departures.borrow();
        assert!(departures.iter().any(|(at, _)| *at == expired), "{congestion:?}: nothing left at {expired}");
        assert!(pair.now < expired + Duration::from_secs(8), "{congestion:?}: {} after {expired}", pair.now);
    }
}

/// Acknowledgements are not data: the receiver on a paced connection is not slowed down.
#[test]
fn acknowledgements_do_not_wait() {
    let quick = |pacing| {
        let (mut pair, _) = pair(Config { pacing, ..config(false) }, |_| false);
        pair.server.outbox = Bytes::from(vec![2; 100_000]);
        let end = Instant::ZERO + Duration::from_secs(30);
        assert!(pair.run_until(end, |pair| pair.client.inbox.len() == 100_000));
        pair.now
    };
    let (bursts, paced) = (quick(false), quick(true));
    assert!(paced < bursts + Duration::from_millis(300), "{bursts} {paced}");
}
