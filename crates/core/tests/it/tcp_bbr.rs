//! End-to-end tests of BBR over a link with a queue.

use anabranch_core::segment::Segment;
use anabranch_core::tcp::{Config, CongestionAlgorithm, Info};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::pair::{End, Pair, Verdict};
use anabranch_testkit::prng::Prng;
use bytes::Bytes;

/// A link in the direction of the data.
#[derive(Clone, Copy)]
struct Link {
    /// Bytes per second.
    rate: u64,
    /// One-way delay in milliseconds.
    delay: u64,
    /// Queue size in bytes.
    queue: u64,
    /// Random loss of segments in per cent.
    loss: u64,
}

/// 40 ms and 10 Mbit/s with a queue of one bandwidth-delay product.
const LINK: Link = Link { rate: 1_250_000, delay: 20, queue: 50_000, loss: 0 };

/// Sends for `seconds`. Returns the bytes per second delivered in the second half, and the sender's
/// statistics.
fn goodput(config: Config, link: Link, seconds: u64, seed: u64) -> (f64, Info) {
    let (mut prng, mut free) = (Prng::new(seed), Instant::ZERO);
    let rule = move |now: Instant, from: End, segment: &Segment| {
        if from == End::Server {
            return Verdict::Pass;
        }
        let per_second = |bytes: u64| Duration::from_nanos(bytes * 1_000_000_000 / link.rate);
        let full = free.saturating_since(now) > per_second(link.queue);
        if full || (!segment.payload.is_empty() && prng.chance(link.loss)) {
            return Verdict::Drop;
        }
        free = free.max(now) + per_second(segment.payload.len() as u64 + 52);
        Verdict::Delay(free.saturating_since(now))
    };
    let config = Config { window_scale: Some(9), ..config };
    let mut pair = Pair::new(config, config, Duration::from_millis(link.delay)).with_rule(rule);
    pair.client.outbox = Bytes::from(vec![0; (link.rate * seconds * 2) as usize]);
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    pair.run_until(at(seconds / 2), |_| false);
    let (before, began) = (pair.client.tcp().info().bytes_acked, pair.now);
    pair.run_until(at(seconds), |_| false);
    let info = pair.client.tcp().info();
    ((info.bytes_acked - before) as f64 / pair.now.saturating_since(began).as_secs_f64(), info)
}

fn bbr() -> Config {
    Config { congestion: CongestionAlgorithm::Bbr, ..Config::modern() }
}

#[test]
fn a_link_is_used() {
    let queues = [12_000, 50_000, 250_000].map(|queue| Link { queue, ..LINK });
    for link in queues {
        let (rate, info) = goodput(bbr(), link, 40, 1);
        assert!(rate > 0.92 * link.rate as f64, "{rate} {info:?}");
        assert_eq!(info.timeouts, 0, "{info:?}");
    }
}

/// Without SACK, losses are found by duplicate acknowledgements: slower, but the transfer
/// continues.
#[test]
fn it_works_without_sack() {
    let config = Config { sack: anabranch_core::tcp::SackRole::Off, rack_tlp: false, ..bbr() };
    let (rate, info) = goodput(config, LINK, 40, 1);
    assert!(rate > 0.3 * LINK.rate as f64, "{rate} {info:?}");
}

/// Without RACK-TLP, losses are found by RFC 6675.
#[test]
fn it_works_without_rack() {
    let (rate, info) =
        goodput(Config { congestion: CongestionAlgorithm::Bbr, ..Config::default() }, LINK, 40, 1);
    assert!(rate > 0.9 * LINK.rate as f64, "{rate} {info:?}");
}

/// 1 % of random loss is below BBR.LossThresh; with CUBIC it costs most of the link's capacity.
#[test]
fn random_loss_hardly_costs_anything() {
    let link = Link { rate: 12_500_000, queue: 500_000, loss: 1, ..LINK };
    let (lossy, info) = goodput(bbr(), link, 40, 7);
    let cubic = Config { congestion: CongestionAlgorithm::Cubic, ..bbr() };
    let (other, _) = goodput(cubic, link, 40, 7);
    assert!(lossy > 0.75 * link.rate as f64 && lossy > 10.0 * other, "{lossy} CUBIC {other} {info:?}");
}

/// IEEE 802.15.4 over several hops: 250 kbit/s, segments of 81 bytes, half a second.
#[test]
fn low_power_radio_is_used() {
    let link = Link { rate: 31_250, delay: 250, queue: 8_000, loss: 0 };
    let (rate, info) = goodput(Config { mss: 81, ..bbr() }, link, 120, 1);
    let payload = f64::from(info.mss) / f64::from(info.mss + 52);
    assert!(rate > 0.85 * payload * link.rate as f64, "{rate} {info:?}");
    assert_eq!(info.timeouts, 0);
    assert!(info.retransmissions * 20 * u64::from(info.mss) < info.bytes_sent, "{info:?}");
}

/// The random choices depend only on the connection.
#[test]
fn two_runs_are_alike() {
    let run = || goodput(bbr(), LINK, 20, 3);
    assert_eq!(run(), run());
}
