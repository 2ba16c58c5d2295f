//! Changing delays and losses, jitter, and a link layer that retransmits.

use proptest::prelude::*;

use super::*;
use crate::jitter::{Distribution, JitterConfig};
use crate::link::ArqConfig;

fn stream(purpose: &str) -> Stream {
    Stream::new(1, 0, "test", purpose)
}

fn roomy() -> LinkConfig {
    LinkConfig { queue: QueueLimit::Packets(u32::MAX), ..config() }
}

fn arrivals(driven: &Driven) -> Vec<u64> {
    driven.arrived.iter().map(|(at, ..)| at.as_nanos() / 1_000_000).collect()
}

/// Six packets at the same time, each of which takes 1 ms; the delay changes from 10 ms to `delay`
/// at 2.5 ms.
fn after_a_change(delay: Duration) -> Vec<u64> {
    let mut driven = Driven::new(link(roomy()));
    for handle in handles(6) {
        driven.act(at(0), Deed::Offer(1000), handle);
    }
    let now = Instant::from_nanos(2_500_000);
    driven.run(now);
    driven.arrival = driven.link.set_delay(now, delay);
    driven.run(Instant::FAR_FUTURE);
    arrivals(&driven)
}

#[test]
fn a_new_delay_is_for_what_has_not_left_the_transmitter() {
    // Two have left by then.
    assert_eq!(after_a_change(MS * 100), [11, 12, 103, 104, 105, 106]);
    // The others would arrive at 4 to 7 ms, before those two.
    assert_eq!(after_a_change(MS), [11, 12, 12, 12, 12, 12]);
    assert_eq!(after_a_change(MS * 8), [11, 12, 12, 12, 13, 14]);
}

#[test]
fn new_losses_are_for_what_has_not_begun() {
    let mut driven = Driven::new(link(roomy()));
    for handle in handles(6) {
        driven.act(at(0), Deed::Offer(1000), handle);
    }
    let now = Instant::from_nanos(2_500_000);
    driven.run(now);
    driven.arrival = driven.link.set_loss(now, LossModel::Bernoulli { p: 1.0 }, stream);
    driven.run(at(5));
    // The transmission of the last one has begun.
    driven.arrival = driven.link.set_loss(at(5), LossModel::None, stream);
    driven.run(Instant::FAR_FUTURE);
    let lost: Vec<bool> = driven.arrived.iter().map(|(.., lost)| *lost).collect();
    assert_eq!(lost, [false, false, false, true, true, true]);
    assert_eq!((driven.link.metrics().dropped_loss, driven.link.metrics().delivered), (3, 3));
}

/// The losses of packets after a change do not depend on what happened before it.
#[test]
fn each_change_of_losses_has_a_stream_of_its_own() {
    let lost = |before: usize| {
        let mut driven = Driven::new(link(LinkConfig { loss: LossModel::Bernoulli { p: 0.5 }, ..roomy() }));
        let h = handles(before + 50);
        let send = |driven: &mut Driven, i: usize| {
            driven.run(at(100 * i as u64));
            driven.act(at(100 * i as u64), Deed::Offer(1000), h[i]);
        };
        (0..before).for_each(|i| send(&mut driven, i));
        let now = at(100 * before as u64);
        driven.run(now);
        driven.arrival = driven.link.set_loss(now, LossModel::Bernoulli { p: 0.3 }, stream);
        (before..before + 50).for_each(|i| send(&mut driven, i));
        driven.run(Instant::FAR_FUTURE);
        driven.arrived[before..].iter().map(|(.., lost)| *lost).collect::<Vec<_>>()
    };
    assert_eq!(lost(3), lost(40));
    assert!((5..25).contains(&lost(3).iter().filter(|lost| **lost).count()));
}

/// A saturated link of 1 ms per packet. Returns the number of packets, the time and the link.
fn saturated(config: LinkConfig, packets: usize) -> (f64, Driven) {
    let mut driven = Driven::new(link(config));
    for handle in handles(packets) {
        driven.act(at(0), Deed::Offer(1000), handle);
    }
    driven.run(Instant::FAR_FUTURE);
    let end = driven.arrived.last().unwrap().0.as_secs_f64();
    (end - config.delay.as_secs_f64(), driven)
}

/// With a loss probability of p and up to n retransmissions, a packet takes (1 - p^(n+1)) / (1 - p)
/// transmissions on average, and is given up with probability p^(n+1).
#[test]
fn repetitions_are_those_of_the_closed_form() {
    let packets = 40_000;
    for (p, limit, wait) in [(0.3, 1, 0), (0.3, 3, 5), (0.6, 2, 2), (0.1, 0, 7), (0.5, 100, 1)] {
        let arq = Some(ArqConfig { limit, delay: MS * wait });
        let config = LinkConfig { loss: LossModel::Bernoulli { p }, arq, ..roomy() };
        let (time, driven) = saturated(config, packets);
        let m = *driven.link.metrics();
        let n = packets as f64;
        let residual = p.powi(limit as i32 + 1);
        let transmissions = (1.0 - residual) / (1.0 - p);
        // Four standard deviations of a binomial variable.
        let lost = m.dropped_loss as f64 / n;
        assert!(
            (lost - residual).abs() <= 4.0 * (residual * (1.0 - residual) / n).sqrt() + 1e-9,
            "{p}, {limit}: {lost}"
        );
        let repeated = 1.0 + driven.link.repeated(Instant::FAR_FUTURE) as f64 / n;
        assert!((repeated / transmissions - 1.0).abs() < 0.01, "{p}, {limit}: {repeated}, {transmissions}");
        // 1 ms for each transmission, and the wait before each but the first.
        let each = transmissions * 1e-3 + (transmissions - 1.0) * wait as f64 * 1e-3;
        assert!((time / n / each - 1.0).abs() < 0.015, "{p}, {limit}: {}, {each}", time / n);
        // In order, and exactly as long as the transmissions.
        let repeats = driven.link.repeated(Instant::FAR_FUTURE) as f64;
        let exact = (n + repeats) * 1e-3 + repeats * wait as f64 * 1e-3;
        assert!((time - exact).abs() < 1e-6, "{time}, {exact}");
        assert!(driven.arrived.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }
}

#[test]
fn a_packet_that_is_repeated_holds_up_those_behind_it() {
    let arq = Some(ArqConfig { limit: 2, delay: MS * 3 });
    let mut driven = Driven::new(link(LinkConfig { loss: LossModel::Bernoulli { p: 1.0 }, arq, ..roomy() }));
    for handle in handles(2) {
        driven.act(at(0), Deed::Offer(1000), handle);
    }
    // Sent at 0, 4 and 8 ms, and given up at 9 ms; the next at 9, 13 and 17 ms.
    assert_eq!(
        (driven.link.repeated(at(8)), driven.link.repeated(at(9)), driven.link.repeated(at(18))),
        (0, 2, 4)
    );
    assert_eq!(driven.link.queued(at(8)), (1, 1000));
    driven.run(Instant::FAR_FUTURE);
    assert_eq!(arrivals(&driven), [19, 28]);
    assert_eq!(driven.link.metrics().dropped_loss, 2);
    // A packet that is cut is not retransmitted.
    let mut driven = Driven::new(link(LinkConfig { loss: LossModel::Bernoulli { p: 1.0 }, arq, ..roomy() }));
    for handle in handles(2) {
        driven.act(at(0), Deed::Offer(1000), handle);
    }
    driven.act(at(10), Deed::Cut, handles(1)[0]);
    assert_eq!((driven.link.repeated(at(10)), driven.link.metrics().cut), (2, 1));
}

/// Packets far apart have delays of the distribution. Close together, a faster packet arrives with
/// the one before it.
#[test]
fn packets_with_jitter_keep_their_order_unless_they_may_overtake() {
    let jitter =
        |overtaking| Some(JitterConfig { distribution: Distribution::Uniform { most: MS * 50 }, overtaking });
    let mut driven = Driven::new(link(LinkConfig { jitter: jitter(false), ..roomy() }));
    for (i, handle) in handles(2000).into_iter().enumerate() {
        let now = at(5 * i as u64);
        driven.run(now);
        driven.act(now, Deed::Offer(1000), handle);
    }
    driven.run(Instant::FAR_FUTURE);
    let extra: Vec<f64> = driven
        .arrived
        .iter()
        .enumerate()
        .map(|(i, (at, ..))| at.as_secs_f64() * 1e3 - 5.0 * i as f64 - 11.0)
        .collect();
    assert!(extra.iter().all(|extra| (0.0..=50.0).contains(extra)));
    // The maximum of its own delay and the remaining delays of the packets before it.
    let mut alone = Jitter::new(Distribution::Uniform { most: MS * 50 }, stream("jitter"));
    let mut latest = 0.0f64;
    for (i, extra) in extra.iter().enumerate() {
        latest = latest.max(5.0 * i as f64 + alone.draw().as_secs_f64() * 1e3);
        assert!((extra + 5.0 * i as f64 - latest).abs() < 1e-6);
    }
    // With overtaking the link has the plain delay, and each packet is late by its own jitter.
    let mut link = link(LinkConfig { jitter: jitter(true), ..roomy() });
    let mut alone = Jitter::new(Distribution::Uniform { most: MS * 50 }, stream("jitter"));
    for (i, handle) in handles(100).into_iter().enumerate() {
        let now = at(20 * i as u64);
        let Offer::AcceptedFirst(arrival) = link.offer(now, of_length(handle, 1000), Flow::default) else {
            panic!()
        };
        assert_eq!(arrival, now + MS * 11);
        assert_eq!(link.arrive(arrival).fate, Fate::Late(alone.draw()));
    }
}

/// Changes besides those of `Deed`.
#[derive(Clone, Copy, Debug)]
enum Change {
    Deed(Deed),
    Delay(u64),
    Loss(f64),
}

fn changes() -> impl Strategy<Value = Vec<(u64, Change)>> {
    let change = prop_oneof![
        20 => (40..1500u32).prop_map(|len| Change::Deed(Deed::Offer(len))),
        1 => (100_000..50_000_000u64).prop_map(|rate| Change::Deed(Deed::Rate(rate))),
        1 => Just(Change::Deed(Deed::Cut)),
        1 => Just(Change::Deed(Deed::Down)),
        2 => Just(Change::Deed(Deed::Up)),
        1 => (0..20_000u64).prop_map(Change::Delay),
        1 => (0.0..1.0f64).prop_map(Change::Loss),
    ];
    proptest::collection::vec((0..2000u64, change), 1..150)
}

fn losses() -> Vec<LossModel> {
    let [mean_good, mean_bad] = [8, 3].map(Duration::from_millis);
    vec![
        LossModel::None,
        LossModel::Bernoulli { p: 0.4 },
        LossModel::GilbertElliottInTime { mean_good, mean_bad, loss_good: 0.1, loss_bad: 0.9 },
    ]
}

proptest::proptest! {
    /// Whatever changes, each packet arrives once or is dropped once, in order and not too early,
    /// and the counters agree.
    #[test]
    fn nothing_that_varies_loses_count(
        changes in changes(),
        loss in proptest::sample::select(losses()),
        course in proptest::sample::select(courses::courses()),
        discipline in proptest::sample::select([vec![DisciplineConfig::DropTail], disciplines()].concat()),
        repeats in proptest::option::of(0..4u32),
        jitter: bool,
    ) {
        let queue = QueueLimit::Packets(20);
        let arq = repeats.map(|limit| ArqConfig { limit, delay: Duration::from_micros(700) });
        let exponential = Distribution::Exponential { mean: MS * 2 };
        let jitter = jitter.then_some(JitterConfig { distribution: exponential, overtaking: false });
        let config = LinkConfig { queue, loss, discipline, arq, jitter, rate: 2_000_000, ..config() };
        let mut link = link(config);
        if !course.is_none() {
            link.follow(&course);
        }
        let mut driven = Driven::new(link);
        let (mut now, mut offered) = (Instant::ZERO, 0);
        for (handle, (wait, change)) in handles(changes.len()).into_iter().zip(&changes) {
            now += Duration::from_micros(*wait);
            driven.run(now);
            match *change {
                Change::Deed(deed) => driven.act(now, deed, handle),
                Change::Delay(micros) => driven.arrival = driven.link.set_delay(now, Duration::from_micros(micros)),
                Change::Loss(p) => driven.arrival = driven.link.set_loss(now, LossModel::Bernoulli { p }, stream),
            }
            offered += u64::from(matches!(change, Change::Deed(Deed::Offer(_))));
            let m = *driven.link.metrics();
            prop_assert_eq!(m.enqueued + m.dropped_full + m.dropped_down, offered);
            let ends = m.delivered + m.dropped_loss + m.dropped_early + m.cut;
            prop_assert_eq!(m.enqueued, ends + driven.link.in_flight() as u64);
            prop_assert!(driven.link.busy(now) <= now.saturating_since(Instant::ZERO));
            prop_assert!(driven.link.repeated(now) <= m.repeated);
        }
        driven.run(Instant::FAR_FUTURE);
        prop_assert_eq!(driven.link.in_flight(), 0);
        prop_assert_eq!((driven.arrived.len() + driven.gone.len()) as u64, offered);
        prop_assert!(driven.arrived.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        prop_assert!(arq.is_some() || driven.link.metrics().repeated == 0);
    }
}
