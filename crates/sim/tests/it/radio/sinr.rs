//! Reception by received power.

use anabranch_core::time::{Duration, Instant};
use anabranch_sim::radio::{
    CcaMode, Effect, LogDistance, MacConfig, Modulation, Outcome, PhyConfig, RadioConfig, Station,
};

use crate::air::{Air, Flow, Happening, after};

/// No shadowing, no backoff.
fn plain(model: LogDistance) -> RadioConfig {
    let config = RadioConfig::o_qpsk(1.0).with_log_distance(LogDistance { shadowing_db: 0.0, ..model });
    RadioConfig { mac: MacConfig { min_be: 0, ..config.mac }, ..config }
}

/// Distance in metres for a received power in dBm.
fn metres(dbm: f64) -> f64 {
    10f64.powf((-40.2 - dbm) / 30.0)
}

fn ratio(db: f64) -> f64 {
    10f64.powf(db / 10.0)
}

/// Broadcasts `n` frames, one every 10 ms. Returns the number that arrives at station 1.
fn arrivals(air: &mut Air, n: u64, psdu_len: u16) -> u64 {
    air.timer(Duration::from_millis(1), 0);
    let mut left = n;
    air.run(Instant::FAR_FUTURE, |air, happening| {
        if let Happening::Timer(_) = happening {
            air.offer(0, None, psdu_len, 0).expect("the frame before is long done");
            left -= 1;
            if left > 0 {
                air.timer(Duration::from_millis(10), 0);
            }
        }
    });
    air.radio.metrics(Station(1)).received
}

#[test]
fn frame_errors_are_those_of_the_bits() {
    let n = 20_000;
    for (psdu_len, sinr_db) in [(20, 0.5), (127, 0.5), (127, 0.2), (127, 2.0)] {
        let model = LogDistance { noise_floor_dbm: -90.0, ..LogDistance::default() };
        let mut air = Air::new(plain(model), &[(0.0, 0.0), (metres(-90.0 + sinr_db), 0.0)], 1);
        let wrong = Modulation::OQpsk.bit_error_rate(ratio(sinr_db));
        let expected = (1.0 - wrong).powf(8.0 * f64::from(psdu_len + 6));
        let told = air.radio.clear_success(Station(0), Station(1), psdu_len);
        assert!((told - expected).abs() < 1e-9, "{told} against {expected}");
        let share = arrivals(&mut air, n, psdu_len) as f64 / n as f64;
        let deviation = (expected * (1.0 - expected) / n as f64).sqrt();
        assert!((share - expected).abs() < 4.0 * deviation + 1e-6, "{share} against {expected}");
    }
}

#[test]
fn one_in_a_hundred_fails_at_the_sensitivity() {
    // The standard's definition of sensitivity: 1 % with a PSDU of 20 bytes; for SUN FSK 10 %
    // with 250.
    for (model, phy, sensitivity, len, share) in [
        (LogDistance::default(), PhyConfig::o_qpsk(), -95.0, 20, 0.01),
        (LogDistance::sun_fsk(), PhyConfig::sun_fsk(), -88.0, 250, 0.1),
    ] {
        let sinr = ratio(sensitivity - model.noise_floor_dbm);
        let wrong = phy.modulation.bit_error_rate(sinr);
        let failed = 1.0 - (1.0 - wrong).powf(8.0 * f64::from(len + phy.header));
        assert!((failed / share - 1.0).abs() < 0.25, "{failed} against {share}");
    }
}

/// The formula of IEEE Std 802.15.4-2006, Annex E.4.1.8, implemented a second time with the
/// platform's exponential.
fn bit_error_rate(sinr: f64) -> f64 {
    let mut binomial = 16.0;
    let mut sum = 0.0;
    for k in 2..=16 {
        binomial *= f64::from(17 - k) / f64::from(k);
        sum += (-1f64).powi(k) * binomial * (20.0 * sinr * (1.0 / f64::from(k) - 1.0)).exp();
    }
    8.0 / 15.0 / 16.0 * sum
}

/// With the defaults only bit errors decide: the fraction of frames that arrive falls from 1 to 0
/// between 61 and 85 m.
#[test]
fn the_transitional_region_is_that_of_the_bits() {
    let n = 40_000;
    let mut between = 0;
    for (psdu_len, distances) in [(127, 58..84), (20, 64..94)] {
        for metres in distances.step_by(2) {
            let mut air = Air::new(plain(LogDistance::default()), &[(0.0, 0.0), (f64::from(metres), 0.0)], 1);
            let sinr_db = -40.2 - 30.0 * f64::from(metres).log10() + 95.5;
            let expected = (1.0 - bit_error_rate(ratio(sinr_db))).powf(8.0 * f64::from(psdu_len + 6));
            // ns-3's `LrWpanPhy` uses the same formula, and locks on frames only above -5 dB.
            let ns3 = if sinr_db > -5.0 { expected } else { 0.0 };
            let share = arrivals(&mut air, n, psdu_len) as f64 / n as f64;
            let told = air.radio.clear_success(Station(0), Station(1), psdu_len);
            println!("{psdu_len} octets, {metres} m, {sinr_db:.2} dB: {share:.3} of {expected:.3}");
            assert!((share - expected).abs() < 0.01, "{metres} m: {share} against {expected}");
            assert!((share - ns3).abs() < 0.02, "{metres} m: {share} against {ns3}");
            assert!((told - expected).abs() < 1e-6, "{metres} m: {told} against {expected}");
            between += u32::from(expected > 0.02 && expected < 0.98);
        }
    }
    assert!(between >= 12, "{between} distances in the transitional region");
}

#[test]
fn an_overlapped_frame_needs_the_co_channel_rejection() {
    let noise_alone = LogDistance::default();
    let model = LogDistance { co_channel_rejection_db: Some(3.0), ..noise_alone };
    // -75 dBm against -77 and -79 dBm: 2 and 4 dB, at which bit errors are rare.
    for late in [0, 1000, 4000] {
        let arrives = |model, interferer_dbm| !disturbed(model, interferer_dbm, late, 1).is_empty();
        assert!(arrives(noise_alone, -77.0) && arrives(noise_alone, -79.0));
        assert!(!arrives(model, -77.0) && arrives(model, -79.0), "{late} us late");
    }
    // After the end of the frame the interferer has no effect.
    assert!(!disturbed(model, -77.0, 4257, 1).is_empty());
    for (db, good) in [(-20.0, true), (40.0, true), (-20.1, false), (40.1, false), (f64::NAN, false)] {
        let model = LogDistance { co_channel_rejection_db: Some(db), ..noise_alone };
        assert_eq!(plain(model).check().is_ok(), good, "{db} dB");
    }
}

/// A frame of 127 bytes to station 1, and another one that disturbs it and begins `late` µs after
/// it.
fn disturbed(model: LogDistance, interferer_dbm: f64, late: u64, seed: u64) -> Vec<Effect> {
    // The two senders are on opposite sides, too far apart to sense each other's frames.
    let places = [(0.0, 0.0), (metres(-75.0), 0.0), (metres(-75.0) + metres(interferer_dbm), 0.0)];
    let model = LogDistance { cca_mode: CcaMode::Energy, cca_threshold_dbm: -60.0, ..model };
    let mut air = Air::new(plain(model), &places, seed);
    air.offer(0, None, 127, 0).expect("idle");
    air.timer(Duration::from_micros(late), 0);
    let mut effects = Vec::new();
    air.run(Instant::FAR_FUTURE, |air, happening| match happening {
        Happening::Timer(_) => air.offer(2, None, 127, 1).expect("idle"),
        Happening::Effect(effect) => effects.push(effect),
    });
    effects.retain(|e| matches!(e, Effect::Received { at: Station(1), .. }));
    effects
}

#[test]
fn only_the_bits_under_interference_suffer() {
    // SINR of 0.3 dB while they overlap, and 20 dB without errors before.
    let wrong = Modulation::OQpsk.bit_error_rate(ratio(0.3));
    for late in [0, 1064, 2128, 3192, 4256] {
        let expected = (1.0 - wrong).powf(0.25 * (4256 - late) as f64);
        let n = 2000;
        let arrived =
            (0..n).filter(|&seed| !disturbed(LogDistance::default(), -75.34, late, seed).is_empty());
        let share = arrived.count() as f64 / n as f64;
        assert!((share - expected).abs() < 0.04, "{share} against {expected}, {late} us late");
    }
}

#[test]
fn a_later_frame_takes_over_only_where_it_may() {
    let keeps = LogDistance::default();
    let yields = LogDistance { capture_sinr_db: Some(6.0), ..keeps };
    let tag = |effects: Vec<Effect>| match effects[..] {
        [] => None,
        [Effect::Received { tag, .. }] => Some(tag),
        _ => panic!("two frames at once: {effects:?}"),
    };
    assert_eq!(tag(disturbed(keeps, -65.0, 1000, 1)), None);
    assert_eq!(tag(disturbed(yields, -65.0, 1000, 1)), Some(1));
    assert_eq!(tag(disturbed(yields, -70.0, 1000, 1)), None, "5 dB are not 6");
    assert_eq!(tag(disturbed(keeps, -90.0, 1000, 1)), Some(0));
}

#[test]
fn quality_is_told() {
    let mut air = Air::new(plain(LogDistance::default()), &[(0.0, 0.0), (metres(-85.4), 0.0)], 1);
    air.send(0, 1, 50, 0).unwrap();
    let effects = air.finish();
    // 10.1 dB above the noise, of 25.
    assert!(matches!(effects[0], Effect::Received { lqi: 103, rssi_dbm: Some(-85), .. }), "{effects:?}");
    assert!(matches!(effects[1], Effect::Done { outcome: Outcome::Acknowledged, .. }));
}

#[test]
fn quality_falls_with_interference() {
    let lqi = |interferer_dbm, late| match disturbed(LogDistance::default(), interferer_dbm, late, 1)[..] {
        [Effect::Received { lqi, tag: 0, .. }] => lqi,
        ref other => panic!("one frame arrives: {other:?}"),
    };
    // -75 dBm against a noise of -95.5 dBm alone, and with -85 dBm for the whole frame: 20.5 and
    // 9.6 dB, of 25.
    assert_eq!((lqi(-120.0, 0), lqi(-85.0, 0)), (209, 98));
    assert!((99..209).contains(&lqi(-85.0, 2128)), "half of it");
}

#[test]
fn energies_add_up_to_a_busy_channel() {
    // At station 0 each of the others is 1 dB below the threshold, and both together are 2 dB above
    // it.
    let far = metres(-78.0);
    for (others, busy) in [(1, false), (2, true)] {
        let model = LogDistance { cca_mode: CcaMode::Energy, ..LogDistance::default() };
        let mut air = Air::new(plain(model), &[(0.0, 0.0), (far, 0.0), (-far, 0.0)], 1);
        for station in 1..=others {
            air.offer(station, None, 127, 0).expect("idle");
        }
        air.timer(Duration::from_micros(1000), 0);
        air.run(after(Duration::from_micros(1200)), |air, happening| {
            if let Happening::Timer(_) = happening {
                air.offer(0, None, 10, 0).expect("idle");
            }
        });
        assert_eq!(air.radio.metrics(Station(0)).busy_ccas > 0, busy, "{others} others");
    }
    // A decodable carrier is sufficient in these modes.
    for mode in [CcaMode::Carrier, CcaMode::EnergyOrCarrier] {
        let model = LogDistance { cca_mode: mode, ..LogDistance::default() };
        let mut air = Air::new(plain(model), &[(0.0, 0.0), (far, 0.0)], 1);
        let flow = |from| Flow { from, to: None, psdu_len: 127, rate: 100.0 };
        air.poisson(&[flow(0), flow(1)], 1, after(Duration::from_secs(1)), |_| {});
        assert!(air.radio.metrics(Station(0)).busy_ccas > 0, "{mode:?}");
    }
}
