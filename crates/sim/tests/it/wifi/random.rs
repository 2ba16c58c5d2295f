//! Invariants under random load.

use std::collections::BTreeMap;

use anabranch_core::time::Duration;
use anabranch_sim::random::Stream;
use anabranch_sim::wifi::{AirFrame, Effect, FrameKind, PowerConfig, Rate, SendError, Station, WifiConfig};

use crate::dcf::{Dcf, Happening, after, scattered};

/// The network of a seed: its configuration and the positions of its stations.
fn network(seed: u64) -> (WifiConfig, Vec<(f64, f64)>) {
    let mut draw = Stream::new(seed, 0, "test", "network");
    let base = if draw.bernoulli(0.5) { WifiConfig::dsss(100.0) } else { WifiConfig::ns2(100.0) };
    let mut config = base
        .with_data_rate(Rate::ALL[draw.range(0..=3) as usize])
        .with_rts_threshold([0, 300, 2347][draw.range(0..=2) as usize]);
    config.propagation.loss = 0.2 * draw.uniform();
    config.propagation.carrier_sense_range = 100.0 + 120.0 * draw.uniform();
    config.power = PowerConfig::wavelan();
    config.initial_energy_j = draw.bernoulli(0.3).then_some(1.5);
    (config, scattered(12, 300.0, 200.0, seed))
}

/// Stations send to each other and to all as fast as they can, and go down and up, for two seconds;
/// then they stop.
fn run(config: WifiConfig, places: &[(f64, f64)], seed: u64) -> (Dcf, Vec<Effect>) {
    let mut dcf = Dcf::new(config, places, seed);
    dcf.wifi.show_frames();
    let mut draw = Stream::new(seed, 0, "test", "run");
    let mut effects = Vec::new();
    for i in 0..12 {
        dcf.timer(Duration::from_millis(u64::from(i)), i);
    }
    let mut tag = 0;
    let stop = after(Duration::from_secs(2));
    dcf.run(anabranch_core::time::Instant::FAR_FUTURE, |dcf, happening| {
        match happening {
            Happening::Timer(i) if dcf.now < stop => {
                if draw.bernoulli(0.03) {
                    let up = dcf.wifi.is_up(Station(i));
                    dcf.set_up(i, !up);
                } else {
                    let to = draw.bernoulli(0.8).then(|| draw.range(0..=11) as u32);
                    let len = draw.range(1..=700) as u16;
                    match dcf.send(i, to, len, tag) {
                        Ok(()) => tag += 1,
                        Err(SendError::Busy | SendError::Down | SendError::NoSuchStation) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                dcf.timer(Duration::from_micros(draw.range(1..=20_000)), i);
            }
            Happening::Timer(_) => {}
            Happening::Effect(effect) => effects.push(effect),
        }
        while let Some(effect) = dcf.wifi.poll_effect() {
            effects.push(effect);
        }
    });
    (dcf, effects)
}

#[test]
fn each_frame_has_one_end_and_each_arrival_a_frame() {
    for seed in 0..60 {
        let (config, places) = network(seed);
        let (dcf, effects) = run(config, &places, seed);
        let mut done = BTreeMap::new();
        let mut arrived = BTreeMap::new();
        let mut on_air: BTreeMap<u64, u32> = BTreeMap::new();
        for effect in &effects {
            match *effect {
                Effect::Done { tag, .. } => *done.entry(tag).or_insert(0) += 1,
                Effect::Received { at, tag, .. } => *arrived.entry((tag, at.0)).or_insert(0) += 1,
                Effect::Frame(AirFrame { kind: FrameKind::Data, tag, start, end, .. }) => {
                    assert!(start <= end);
                    *on_air.entry(tag).or_insert(0) += 1;
                }
                Effect::Frame(_) | Effect::Exhausted { .. } | Effect::Overheard { .. } => {}
            }
        }
        let sum = |f: fn(&anabranch_sim::wifi::StationMetrics) -> u64| {
            (0..12).map(|s| f(&dcf.wifi.metrics(Station(s)))).sum::<u64>()
        };
        let offered = sum(|m| m.offered);
        assert!(offered > 100, "seed {seed}: {offered}");
        assert_eq!(done.len() as u64, offered, "seed {seed}");
        assert!(done.values().all(|&n| n == 1), "seed {seed}");
        // A duplicate could pass only if another frame of its sender came in between; a station
        // sends one frame at a time.
        assert!(arrived.values().all(|&n| n == 1), "seed {seed}");
        assert!(arrived.keys().all(|(tag, _)| on_air.contains_key(tag)), "seed {seed}");
        assert_eq!(offered, sum(|m| m.acknowledged + m.broadcast + m.no_ack + m.down), "seed {seed}");
        let now = dcf.now;
        for s in 0..12 {
            let time = dcf.wifi.state_time(now, Station(s));
            assert_eq!(after(time.transmit + time.receive + time.listen + time.off), now, "seed {seed}");
        }
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 0..5 {
        let (config, places) = network(seed);
        assert_eq!(run(config, &places, seed).1, run(config, &places, seed).1);
    }
}

#[test]
fn stations_out_of_range_change_nothing() {
    for seed in 0..10 {
        let (config, mut places) = network(seed);
        let (few, effects) = run(config, &places, seed);
        places.extend(scattered(50, 300.0, 300.0, seed).iter().map(|&(x, y)| (x + 5000.0, y)));
        let (many, same) = run(config, &places, seed);
        assert_eq!(effects, same, "seed {seed}");
        assert_eq!(few.agenda.scheduled(), many.agenda.scheduled(), "seed {seed}");
    }
}
