//! The estimator by itself.

use super::*;

const MSS: u32 = 1000;

fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

fn range(i: u32) -> (SeqNumber, SeqNumber) {
    (SeqNumber(i * MSS), SeqNumber((i + 1) * MSS))
}

/// Segment `i` is sent at `at` with `before` segments in the network.
fn send(rate: &mut Rate, at: Instant, i: u32, before: u32) {
    rate.sent(at, range(i), (before * MSS, (before + 1) * MSS), false);
}

fn arrive(rate: &mut Rate, sent: Instant, now: Instant, i: u32) -> RateSample {
    let (seq, end) = range(i);
    rate.arrived(sent, seq, end);
    rate.acknowledged(end);
    rate.sample(now, None).expect("something has arrived")
}

/// A segment every 10 ms in both directions: 100 kB/s from the second on.
#[test]
fn the_rate_is_what_arrives_while_a_segment_is_under_way() {
    let mut rate = Rate::default();
    for i in 0..10 {
        send(&mut rate, ms(10 * u64::from(i)), i, i);
    }
    let first = arrive(&mut rate, ms(0), ms(100), 0);
    assert_eq!((first.delivered, first.interval), (1000, Duration::from_millis(100)));
    for i in 1..10 {
        let at = 10 * u64::from(i);
        let sample = arrive(&mut rate, ms(at), ms(100 + at), i);
        assert_eq!((sample.rtt, sample.tx_in_flight), (Some(Duration::from_millis(100)), (i + 1) * MSS));
        // All were sent before the first arrived, so they count from the beginning.
        assert_eq!(sample.delivered, u64::from(i + 1) * 1000);
        assert_eq!(sample.delivery_rate, u64::from(i + 1) * 1_000_000 / (100 + at));
    }
    send(&mut rate, ms(200), 10, 1);
    send(&mut rate, ms(210), 11, 2);
    arrive(&mut rate, ms(200), ms(300), 10);
    let last = arrive(&mut rate, ms(210), ms(310), 11);
    assert_eq!((last.prior_delivered, last.total_delivered), (10_000, 12_000));
}

/// Compressed acknowledgements do not raise the rate above the sending rate.
#[test]
fn a_bunch_of_acknowledgements_is_no_faster_than_what_was_sent() {
    let mut rate = Rate::default();
    for i in 0..10 {
        send(&mut rate, ms(10 * u64::from(i)), i, i);
    }
    arrive(&mut rate, ms(0), ms(90), 0);
    (10..20).for_each(|i| send(&mut rate, ms(10 * u64::from(i)), i, 9));
    for i in 1..20 {
        let (seq, end) = range(i);
        rate.arrived(ms(10 * u64::from(i)), seq, end);
    }
    rate.acknowledged(range(19).1);
    let sample = rate.sample(ms(191), None).expect("something has arrived");
    // 19 segments were delivered since the last one was sent; sending them took 190 ms.
    assert_eq!((sample.newly_acked, sample.delivered), (19_000, 19_000));
    assert_eq!(sample.interval, Duration::from_millis(190));
    assert_eq!(sample.delivery_rate, 100_000);
}

#[test]
fn too_short_an_interval_gives_no_rate() {
    let mut rate = Rate::default();
    send(&mut rate, ms(0), 0, 0);
    let (seq, end) = range(0);
    rate.arrived(ms(0), seq, end);
    let sample = rate.sample(ms(5), Some(Duration::from_millis(10))).expect("something has arrived");
    assert_eq!((sample.delivery_rate, sample.delivered), (0, 1000));
    assert_eq!(rate.sample(ms(5), None), None, "nothing new");
}

#[test]
fn samples_are_limited_until_what_was_in_flight_has_arrived() {
    let mut rate = Rate::default();
    send(&mut rate, ms(0), 0, 0);
    rate.limit(MSS);
    send(&mut rate, ms(1), 1, 1);
    assert!(!arrive(&mut rate, ms(0), ms(100), 0).app_limited);
    assert!(rate.is_limited());
    assert!(arrive(&mut rate, ms(1), ms(101), 1).app_limited);
    assert!(!rate.is_limited());
    send(&mut rate, ms(200), 2, 0);
    assert!(!arrive(&mut rate, ms(200), ms(300), 2).app_limited);
}

/// Each loss is reported with the bytes in flight and the losses since that segment was sent.
#[test]
fn losses_are_told_with_their_transmission() {
    let mut rate = Rate::default();
    (0..6).for_each(|i| send(&mut rate, ms(u64::from(i)), i, i));
    for i in [0, 1, 3] {
        rate.lost(ms(i.into()), range(i).0, range(i).1);
    }
    let told: Vec<LostSegment> = (0..4).map_while(|i| rate.next_loss(i, 3 * MSS)).collect();
    let figures: Vec<_> = told.iter().map(|loss| (loss.tx_in_flight, loss.lost, loss.apart)).collect();
    assert_eq!(figures, [(1000, 1000, true), (2000, 2000, false), (4000, 3000, true)]);
    assert_eq!(rate.next_loss(0, 0), None);
    let sample = arrive(&mut rate, ms(5), ms(100), 5);
    assert_eq!((sample.lost, sample.newly_lost), (3000, 3000));
}

/// A retransmitted segment counts with its last transmission, and its round-trip time is unknown.
#[test]
fn a_retransmission_is_not_timed() {
    let mut rate = Rate::default();
    (0..3).for_each(|i| send(&mut rate, ms(u64::from(i)), i, i));
    rate.sent(ms(50), range(0), (2000, 3000), true);
    let sample = arrive(&mut rate, ms(50), ms(150), 0);
    assert_eq!((sample.rtt, sample.tx_in_flight), (None, 3000));
    // Its first record was removed, and the record of the arrived segment waits until the earlier
    // ones are removed.
    assert_eq!(rate.log.len(), 3);
    arrive(&mut rate, ms(1), ms(151), 1);
    arrive(&mut rate, ms(2), ms(152), 2);
    assert!(rate.log.is_empty());
}
