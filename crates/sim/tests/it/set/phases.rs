//! The phases of a transfer on links of known delay.

use anabranch_core::set::{OpenWait, RelayConfig};
use anabranch_core::time::Duration;

use super::star::*;

/// Durations of the phases in seconds, the last end of which is when the sender knew.
fn phases(run: &Run) -> Vec<f64> {
    let sender = run.sender();
    let moments = sender.moments().expect("it has started");
    assert_eq!((moments.established, moments.delivered), (sender.established, sender.finished));
    let lengths: Vec<Duration> = moments.phases().map(|span| span.length()).collect();
    let sum = lengths.iter().fold(Duration::ZERO, |sum, length| sum + *length);
    assert_eq!(Some(moments.started + sum), sender.finished);
    lengths.iter().map(|length| length.as_secs_f64()).collect()
}

/// Links so fast that only delays count. The control stream takes a round trip of TCP and one of
/// the request. A session takes a round trip of TCP to the gateway, SETSYN, a round trip of TCP
/// from the gateway to the node, and SETACK. The printed gateway waits for another round trip.
#[test]
fn request_and_handshakes_are_whole_round_trips() {
    for (wired_ms, wireless_ms) in [(10, 25), (40, 5), (1, 200)] {
        for open_wait in [OpenWait::None, OpenWait::RoundTrip] {
            let fast = Path { wired_ms, rate: 10_000_000_000, wireless_ms, loss: 0.0 };
            let star = Star::new(&[fast], 100_000);
            let mut run = Star { relay: RelayConfig { open_wait, ..star.relay }, ..star }.build();
            run.go();
            let phases = phases(&run);
            let (wired, wireless) = (wired_ms as f64 / 1000.0, wireless_ms as f64 / 1000.0);
            let waits = if open_wait == OpenWait::None { 0.0 } else { 2.0 * wireless };
            let expected = [4.0 * (wired + wireless), 4.0 * wired + 2.0 * wireless + waits];
            for (length, expected) in phases.iter().zip(expected) {
                // At 100 Mbit/s, the few packets of the cable take some ten microseconds.
                assert!((0.0..0.000_2).contains(&(length - expected)), "{length} instead of {expected}");
            }
            // The last acknowledgement crosses both halves.
            let knows = phases.iter().sum::<f64>() - run.latency() - wired - wireless;
            assert!((0.0..0.000_2).contains(&knows), "{knows}");
        }
    }
}

#[test]
fn several_gateways_delay_neither_request_nor_handshakes() {
    let measured = |n: usize| {
        let mut run = Star::new(&vec![path(256_000, 25, 0.0); n], 129_000).build();
        run.go();
        phases(&run)
    };
    let (one, three) = (measured(1), measured(3));
    // The gateway table is longer.
    assert!((three[0] - one[0]) < 0.02 && (three[1] - one[1]).abs() < 1e-6, "{one:?} {three:?}");
    assert!(three[3] < one[3] / 2.0, "striping is what they speed up: {one:?} {three:?}");
}
