//! Compares the formulas with the TCP of the core, for random and for evenly spaced losses.

use anabranch_core::segment::Segment;
use anabranch_core::tcp::{AutoTune, Config};
use anabranch_core::time::Instant;
use anabranch_sim::random::Stream;
use anabranch_testkit::pair::{End, Pair, Verdict};
use bytes::Bytes;

use super::*;

/// Mean window over these seeds, divided by the formula's.
fn ratio(path: Lossy, formula: f64) -> f64 {
    SEEDS.map(|seed| path.window(seed, 150.0)).iter().sum::<f64>() / SEEDS.len() as f64 / formula
}

/// With independent losses instead of losses 1/p apart, the mean is a little larger (Ott, Kemperman
/// and Mathis 1996: 1.31 instead of sqrt(3/2) = 1.22). Small windows lose a round trip to each
/// recovery, which the formula does not include.
#[test]
fn newreno_follows_mathis() {
    for loss in [0.0003, 0.001, 0.003, 0.01] {
        let path = Lossy { controller: CongestionAlgorithm::NewReno, loss, rtt: Duration::from_millis(100) };
        let found = ratio(path, mathis(loss));
        assert!((0.85..=1.15).contains(&found), "{loss}: {found} of sqrt(3/2) / sqrt(p)");
    }
}

/// Loss rates and round trips (in ms) for which CUBIC's window is more than twice Reno's.
const STEEP: [(f64, u64); 3] = [(0.0003, 400), (0.001, 400), (0.0001, 200)];

#[test]
fn cubic_follows_its_response_function() {
    for (loss, rtt) in STEEP {
        let rtt = Duration::from_millis(rtt);
        let formula = cubic(loss, rtt);
        assert!(formula > 2.0 * mathis(loss), "outside of the Reno-friendly region");
        let found = evenly_spaced(loss, rtt) / formula;
        assert!((0.8..=1.2).contains(&found), "{loss} {rtt}: {found}");
        let path = Lossy { controller: CongestionAlgorithm::Cubic, loss, rtt };
        let random = ratio(path, formula) / cubic_at_random();
        assert!((0.8..=1.2).contains(&random), "{loss} {rtt}: {random} with independent losses");
    }
}

/// Ratio of the mean window with independent losses to that with evenly spaced losses, if the
/// window follows RFC 9438's equations exactly: figures 1 and 2, and fast convergence (section
/// 4.7).
///
/// The window grows ever faster, so that a late loss adds more than an early one takes. The ratio
/// depends on neither loss rate nor round trip: time is in units in which C is 1, and a loss comes
/// after one unit of window times time on average.
fn cubic_at_random() -> f64 {
    let (beta, losses) = (0.7_f64, 20_000);
    let even = ((3.0 + beta) / (4.0 * (1.0 - beta))).powf(0.25);
    let mut random = Stream::new(1, 1, "cubic", "losses");
    let (mut w_max, mut start) = (even, beta * even);
    let (mut time, mut sent) = (0.0, 0.0);
    for _ in 0..losses {
        let apart = random.exponential();
        let k = (w_max - start).cbrt();
        // Time t at which the integral of the window (t - K)^3 + W_max from 0 to t equals `apart`.
        let until = |t: f64| ((t - k).powi(4) - k.powi(4)) / 4.0 + w_max * t;
        let (mut low, mut high) = (0.0, 100.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            *(if until(middle) < apart { &mut low } else { &mut high }) = middle;
        }
        let window = (low - k).powi(3) + w_max;
        (time, sent, start) = (time + low, sent + apart, beta * window);
        w_max = if window < w_max { window * 0.5 * (1.0 + beta) } else { window };
    }
    sent / time / even
}

/// CUBIC's mean window from the 10th loss to the 40th, where every 1/p-th segment is lost and
/// nothing else.
fn evenly_spaced(loss: f64, rtt: Duration) -> f64 {
    let apart = (1.0 / loss) as u64;
    let (mut sent, mut free) = (0_u64, Instant::ZERO);
    let rule = move |now: Instant, from: End, segment: &Segment| {
        if from == End::Server || segment.payload.is_empty() {
            return Verdict::Pass;
        }
        sent += 1;
        // Segments arrive slightly apart, so that each has an acknowledgement of its own.
        free = free.max(now) + Duration::from_nanos(100);
        if sent.is_multiple_of(apart) { Verdict::Drop } else { Verdict::Delay(free.saturating_since(now)) }
    };
    let buffer = 1 << 25;
    let config = Config {
        mss: SEGMENT as u16 + TIMESTAMPS,
        congestion: CongestionAlgorithm::Cubic,
        delayed_ack: DelayedAck::Off,
        send_buffer: buffer,
        receive_buffer: buffer,
        auto_tune: None::<AutoTune>,
        window_scale: Some(9),
        ..Config::modern()
    };
    let mut pair = Pair::new(config, config, rtt / 2).with_rule(rule);
    pair.client.outbox = Bytes::from(vec![0; (apart * SEGMENT * 45) as usize]);
    let mut at = |losses: u64| {
        let far = Instant::ZERO + Duration::from_secs(1_000_000);
        assert!(pair.run_until(far, |pair| {
            pair.server.inbox.clear();
            pair.client.tcp().info().fast_retransmits >= losses
        }));
        (pair.now, pair.client.tcp().info().bytes_acked)
    };
    let (began, before) = at(10);
    let (ended, after) = at(40);
    (after - before) as f64 / SEGMENT as f64 * rtt.as_secs_f64() / ended.saturating_since(began).as_secs_f64()
}

/// Segment size in bytes.
const SEGMENT: u64 = 600;
const SEEDS: [u64; 3] = [1, 2, 3];
