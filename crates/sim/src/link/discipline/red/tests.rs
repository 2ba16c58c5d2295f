use anabranch_core::segment::Ecn;

use super::super::tests::{micros, packets};
use super::*;

/// 8 Mbit/s: 1000 bytes take 1 ms.
const RATE: u64 = 8_000_000;

fn red(config: RedConfig) -> Red {
    let queue = QueueLimit::Packets(1000);
    let link = LinkConfig { queue, ..LinkConfig::new(RATE, Duration::ZERO) };
    Red::new(config, &link, Stream::new(1, 0, "test", "red"))
}

/// Packets that find a queue of constant length, one after another: returns those that are dropped.
fn dropped(red: &mut Red, length: usize, n: usize, ecn: Ecn) -> (Vec<usize>, u64) {
    let mut verdicts = Verdicts::default();
    let all = packets(length + n, ecn);
    for packet in &all[..length] {
        red.fifo.push(micros(0), *packet, &mut verdicts);
    }
    red.idle_from = None;
    let mut which = Vec::new();
    for (i, packet) in all[length..].iter().enumerate() {
        let before = verdicts.dropped.len();
        red.enqueue(micros(i as u64), *packet, Flow::default(), &mut verdicts);
        match verdicts.dropped.len() > before {
            true => which.push(i),
            false => drop(red.dequeue(micros(i as u64), &mut verdicts)),
        }
    }
    (which, verdicts.marked)
}

/// The mean of n packets that find the length L is L (1 - (1 - w)^n). It decreases by a factor of
/// (1 - w) for each packet that could have left.
#[test]
fn the_mean_is_that_of_the_closed_form() {
    let mut red = red(RedConfig { weight: Probability(0.01), ..RedConfig::default() });
    let (which, _) = dropped(&mut red, 4, 150, Ecn::NotEct);
    assert!(which.is_empty(), "up to `min` none is dropped");
    let expected = 4.0 * (1.0 - 0.99_f64.powi(150));
    assert!((red.mean - expected).abs() < 1e-9, "{} instead of {expected}", red.mean);
    let mut verdicts = Verdicts::default();
    while red.dequeue(micros(1000), &mut verdicts).is_some() {}
    // The last one is sent until 2 ms; then there is time for 40 packets of 500 bytes.
    red.average(micros(22_000));
    let expected = expected * 0.99_f64.powi(40) * 0.99;
    assert!((red.mean - expected).abs() < 1e-9, "{} instead of {expected}", red.mean);
}

/// Between two drops are 1 to 1/p packets, all equally likely (section 7 of the paper, method 2).
#[test]
fn drops_are_spread_evenly() {
    for (length, share) in [(7, 0.02), (10, 0.05), (20, 0.1 + 0.9 / 3.0)] {
        let weight = Probability(0.999_999_999);
        let (which, _) = dropped(
            &mut red(RedConfig { weight, ..RedConfig::default() }),
            length,
            (3000.0 / share) as usize,
            Ecn::NotEct,
        );
        let gaps: Vec<usize> = which.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let most = (1.0_f64 / share).ceil() as usize;
        assert!(gaps.iter().all(|gap| (1..=most).contains(gap)), "{length}: more than {most}");
        let mean = gaps.iter().sum::<usize>() as f64 / gaps.len() as f64;
        // Each number of packets has the probability `share`, and the last one has the rest.
        let expected: f64 = (0..most).map(|passed| 1.0 - passed as f64 * share).sum();
        assert!((mean / expected - 1.0).abs() < 0.03, "{length}: {mean} instead of {expected}");
    }
}

#[test]
fn what_can_be_marked_is_marked_until_the_queue_is_far_too_long() {
    let weight = Probability(0.999_999_999);
    for (gentle, length, forced) in
        [(true, 14, false), (true, 29, false), (true, 31, true), (false, 14, false), (false, 16, true)]
    {
        let config = RedConfig { weight, gentle, ..RedConfig::default() };
        let (which, marked) = dropped(&mut red(config), length, 500, Ecn::Ect0);
        assert_eq!(
            (which.len(), marked == 0),
            if forced { (500, true) } else { (0, false) },
            "{gentle} {length}"
        );
        let (which, marked) = dropped(&mut red(config), length, 500, Ecn::NotEct);
        assert!(!which.is_empty() && marked == 0, "{gentle} {length}");
    }
}

#[test]
fn thresholds_in_octets_count_octets_and_drop_by_length() {
    let octets = |n| QueueSize(QueueLimit::Bytes(n));
    let weight = Probability(0.999_999_999);
    let config = RedConfig {
        min: octets(5000),
        max: octets(15_000),
        weight,
        mean_packet: Size(1000),
        ..RedConfig::default()
    };
    let few =
        dropped(&mut red(RedConfig { mean_packet: Size(2000), ..config }), 10, 10_000, Ecn::NotEct).0.len();
    let many = dropped(&mut red(config), 10, 10_000, Ecn::NotEct).0.len();
    let ratio = many as f64 / few as f64;
    // 2p/(1+p) of p = 5 % and of 2.5 %.
    assert!((ratio / (0.1 / 1.05 / (0.05 / 1.025)) - 1.0).abs() < 0.1, "{ratio}");
}

#[test]
fn a_packet_that_could_go_at_once_is_dropped_too_while_the_mean_is_high() {
    let config = RedConfig { weight: Probability(0.01), ..RedConfig::default() };
    let mut red = red(config);
    red.mean = 40.0;
    red.idle_from = Some(micros(0));
    let mut verdicts = Verdicts::default();
    assert!(!red.pass(micros(0), &mut packets(1, Ecn::NotEct)[0], Flow::default(), &mut verdicts));
    assert_eq!(verdicts.dropped.len(), 1);
    // A second later the mean has decreased.
    assert!(red.pass(micros(1_000_000), &mut packets(1, Ecn::NotEct)[0], Flow::default(), &mut verdicts));
}

/// Two links with the same service time, one by its rate and one by the distance between
/// transmissions, have the same mean.
#[test]
fn the_mean_goes_down_while_the_transmitter_could_have_sent_and_no_faster() {
    let config = RedConfig { mean_packet: Size(1000), weight: Probability(0.1), ..RedConfig::default() };
    let mean = |rate: u64, spacing: u64| {
        let spacing = Duration::from_micros(spacing);
        let link = LinkConfig { spacing, ..LinkConfig::new(rate, Duration::ZERO) };
        let mut red = Red::new(config, &link, Stream::new(1, 0, "test", "red"));
        red.mean = 4.0;
        red.idle_from = Some(micros(0));
        let mut verdicts = Verdicts::default();
        assert!(red.pass(micros(5_000), &mut packets(1, Ecn::NotEct)[0], Flow::default(), &mut verdicts));
        red.average(micros(20_000));
        red.mean
    };
    assert_eq!(mean(RATE, 0), mean(100 * RATE, 1000));
    assert!(mean(100 * RATE, 0) < 0.01 * mean(RATE, 0));
}

#[test]
fn a_cut_leaves_an_idle_link() {
    let mut red = red(RedConfig::default());
    red.mean = 40.0;
    // Until a minute from now a transmission would have been in progress.
    red.idle_from = Some(micros(60_000_000));
    red.clear(micros(1_000_000));
    assert!(red.pass(
        micros(3_000_000),
        &mut packets(1, Ecn::NotEct)[0],
        Flow::default(),
        &mut Verdicts::default()
    ));
}

#[test]
fn what_finds_no_room_is_neither_marked_nor_dropped_early() {
    let mut red = Red::new(
        RedConfig { weight: Probability(0.999_999_999), ..RedConfig::default() },
        &LinkConfig { queue: QueueLimit::Packets(10), ..LinkConfig::new(RATE, Duration::ZERO) },
        Stream::new(1, 0, "test", "red"),
    );
    let mut verdicts = Verdicts::default();
    for packet in packets(1000, Ecn::Ect0) {
        red.enqueue(micros(0), packet, Flow::default(), &mut verdicts);
    }
    assert_eq!(red.queued().0, 10);
    assert!(verdicts.dropped.iter().all(|(_, why)| *why == crate::link::LinkDrop::QueueFull));
    assert!(verdicts.marked <= 10, "{}", verdicts.marked);
}
