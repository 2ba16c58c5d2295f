//! Results of the protocol at a bottleneck: rate, delay, control load, shares.

use anabranch_core::rdca::{Config, Message};
use anabranch_core::time::Duration;
use anabranch_testkit::rdca::{Link, Source, World};

struct Figures {
    /// Payload of each sender in bytes per second.
    rates: Vec<f64>,
    delay: f64,
    control: f64,
    overflows: u64,
    congestions: usize,
}

/// Runs `senders` that each offer `offered` datagrams per second for 100 s, over a bottleneck of
/// `capacity` datagrams per second.
fn measure(config: Config, senders: u64, offered: f64, capacity: f64, jitter_ms: u64, loss: u64) -> Figures {
    let period = Duration::from_secs_f64(1.0 / offered);
    let source = |i| {
        let mut source = Source::new(period, (100.0 * offered) as u32);
        source.next += period.mul_ratio(i, senders);
        source
    };
    let mut up = Link::new(20);
    up.service = Duration::from_secs_f64(1.0 / capacity);
    up.jitter = Duration::from_millis(jitter_ms);
    up.loss = loss;
    let mut world = World::new(config, (0..senders).map(source).collect(), up, Link::new(20), 7);
    world.run_for(100);
    let mut delays = Vec::new();
    let mut rates = Vec::new();
    for sender in 0..senders as usize {
        let delivered = world.delivered(sender);
        rates.push(delivered.iter().map(|(_, payload, _)| payload.len() as f64).sum::<f64>() / 100.0);
        delays.extend(delivered.iter().map(|(_, _, delay)| delay.as_secs_f64()));
    }
    Figures {
        rates,
        delay: delays.iter().sum::<f64>() / delays.len() as f64,
        control: world.control_load(),
        overflows: world.up.overflows,
        congestions: world.count(|message| matches!(message, Message::Congestion(_))),
    }
}

fn jain(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>().powi(2) / (rates.len() as f64 * rates.iter().map(|r| r * r).sum::<f64>())
}

#[test]
fn a_modest_application_is_carried_with_little_control() {
    for (senders, capacity, jitter) in [(1, 100.0, 0), (1, 100.0, 10), (7, 120.0, 10), (7, 95.0, 10)] {
        let f = measure(Config::default(), senders, 13.3, capacity, jitter, 0);
        for rate in &f.rates {
            assert!(*rate >= 0.998 * 13.3 * 283.0 - 283.0 / 50.0, "{senders} senders: {:?}", f.rates);
        }
        assert!(f.delay < 0.05 && f.control < 0.005 && f.overflows == 0, "{} {}", f.delay, f.control);
    }
}

#[test]
fn an_overload_fills_the_path_and_not_its_queue() {
    for (offered, capacity) in [(53.0, 27.0), (133.0, 27.0), (133.0, 90.0)] {
        let f = measure(Config::default(), 1, offered, capacity, 5, 0);
        assert!(f.rates[0] >= 0.97 * capacity * 283.0, "{:?} of {capacity}", f.rates);
        assert_eq!(f.overflows, 0, "the queue takes 50");
        // Most of the delay is queueing at the sender: up to eight packets.
        assert!(f.delay < 0.2 + 8.0 / capacity && f.control < 0.02, "{} {}", f.delay, f.control);
    }
}

#[test]
fn losses_of_the_channel_do_not_cut_the_rate() {
    let f = measure(Config::default(), 1, 133.0, 90.0, 5, 10);
    assert!(f.rates[0] >= 0.96 * 90.0 * 283.0, "{:?}", f.rates);
    let f = measure(Config::default(), 1, 13.3, 100.0, 10, 20);
    assert!(f.rates[0] >= 0.997 * 13.3 * 283.0 && f.delay < 0.06, "{:?} {}", f.rates, f.delay);
}

#[test]
fn senders_share_an_overloaded_path() {
    let f = measure(Config::default(), 7, 13.3, 60.0, 10, 0);
    let sum: f64 = f.rates.iter().sum();
    assert!(sum >= 0.97 * 60.0 * 283.0 && jain(&f.rates) >= 0.95, "{:?}", f.rates);
}

/// The paper's trend test without our least queueing delay reports congestion without a queue
/// (erratum H6).
#[test]
fn h6_a_notification_without_a_queue_is_needless() {
    let ours = measure(Config::default(), 7, 13.3, 120.0, 10, 0);
    let paper = measure(Config::paper(), 7, 13.3, 120.0, 10, 0);
    assert!(ours.congestions == 0 && paper.congestions > 50, "{} {}", ours.congestions, paper.congestions);
}
