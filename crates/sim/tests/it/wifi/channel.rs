//! Interaction of stations: NAV, hidden terminals, EIFS, capture.

use anabranch_core::time::Duration;
use anabranch_sim::wifi::{Eifs, FrameKind, Locking, MacConfig, Outcome, Station, Thresholds, WifiConfig};

use super::cases::{done, on_air, received};
use crate::dcf::{Dcf, Flow, Traffic, after};

/// The carrier sense range equals the reception range.
fn short_sighted(range: f64) -> WifiConfig {
    let config = WifiConfig::dsss(range);
    let propagation = Thresholds { carrier_sense_range: range, ..config.propagation };
    WifiConfig { propagation, ..config }
}

/// 0 and 2 do not hear each other, 1 hears both.
const HIDDEN: [(f64, f64); 3] = [(0.0, 0.0), (90.0, 0.0), (180.0, 0.0)];

#[test]
fn frames_that_overlap_are_lost() {
    let mut dcf = Dcf::new(short_sighted(100.0), &HIDDEN, 1);
    let effects = dcf.script(&[(0, 0, None, 500), (1000, 2, None, 500)]);
    assert_eq!(received(&effects), []);
    assert_eq!(dcf.wifi.metrics(Station(1)).collisions, 2);
}

#[test]
fn a_nav_is_respected() {
    // Station 2 does not hear 0, but the CTS of 1.
    let mut dcf = Dcf::new(short_sighted(100.0).with_rts_threshold(0), &HIDDEN, 1);
    dcf.wifi.show_frames();
    // RTS 1000 to 1352, CTS 1362 to 1666, data 1676 to 5868, ACK 5878 to 6182. At 3000 the channel
    // is clear at station 2.
    let effects = dcf.script(&[(1000, 0, Some(1), 1000), (3000, 2, None, 100)]);
    let frames = on_air(&effects);
    let last = frames.last().unwrap();
    assert_eq!((last.2, last.3), (FrameKind::Data, 2));
    assert!(last.0 >= 6182 + 50 && (last.0 - 6182 - 50).is_multiple_of(20), "{last:?}");
    assert_eq!(done(&effects)[0], (0, 0, Outcome::Acknowledged, 1));
    // Without RTS and CTS there is no NAV, and the two frames collide.
    let mut dcf = Dcf::new(short_sighted(100.0), &HIDDEN, 1);
    dcf.script(&[(1000, 0, Some(1), 1000), (3000, 2, None, 100)]);
    assert_eq!(dcf.wifi.metrics(Station(1)).collisions, 2);
}

#[test]
fn a_station_with_a_nav_answers_no_rts() {
    // Station 3 is behind 2: its RTS finds 2 with the NAV of 1's CTS.
    let places = [(0.0, 0.0), (90.0, 0.0), (180.0, 0.0), (270.0, 0.0)];
    let mut dcf = Dcf::new(short_sighted(100.0).with_rts_threshold(0), &places, 1);
    let effects = dcf.script(&[(1000, 0, Some(1), 2000), (3000, 3, Some(2), 1000)]);
    assert!(dcf.wifi.metrics(Station(2)).cts_withheld > 0);
    let ends = done(&effects);
    assert_eq!(ends[0], (0, 0, Outcome::Acknowledged, 1));
    assert_eq!((ends[1].0, ends[1].2), (3, Outcome::Acknowledged));
    assert!(ends[1].3 > 1, "{ends:?}");
}

/// Two senders on both sides of a receiver at 2 Mbit/s, 1500 bytes, 25 frames/s each: the fraction
/// that arrives, and the number of transmissions of each frame.
fn two_senders(config: WifiConfig, metres: f64) -> (f64, f64) {
    let places = [(0.0, 0.0), (-metres, 0.0), (metres, 0.0)];
    let mut dcf = Dcf::new(config, &places, 1);
    let flow = |from| Flow { from, to: Some(0), mpdu_len: 1500, rate: 25.0 };
    let mut traffic = Traffic::new(&mut dcf, &[flow(1), flow(2)], 1);
    traffic.run(&mut dcf, after(Duration::from_secs(60)), |_| {});
    let sum = |f: fn(&anabranch_sim::wifi::StationMetrics) -> u64| {
        [1, 2].iter().map(|&s| f(&dcf.wifi.metrics(Station(s)))).sum::<u64>() as f64
    };
    let offered = sum(|m| m.offered);
    (dcf.wifi.metrics(Station(0)).received as f64 / offered, sum(|m| m.transmissions) / offered)
}

#[test]
fn hidden_terminals_are_what_rts_and_cts_are_for() {
    let basic = short_sighted(100.0);
    let rts = basic.with_rts_threshold(0);
    let (near, near_sent) = two_senders(basic, 40.0);
    let (hidden, hidden_sent) = two_senders(basic, 90.0);
    let (reserved, reserved_sent) = two_senders(rts, 90.0);
    println!(
        "in range {near} {near_sent}, hidden {hidden} {hidden_sent}, with RTS {reserved} {reserved_sent}"
    );
    assert!(near > 0.999 && near_sent < 1.03);
    assert!(hidden_sent > 1.25, "{hidden_sent}");
    assert!(reserved > 0.999 && reserved_sent < 1.03, "{reserved} {reserved_sent}");
}

#[test]
fn the_first_frame_survives_one_that_is_ten_times_weaker() {
    // With two-ray ground, power falls with d^4 beyond 86 m: a power ratio of 10 is a distance
    // ratio of 1.78.
    for (interferer, survives) in [(200.0, true), (170.0, false), (100.0, false)] {
        for (first, second) in [(0, 2), (2, 0)] {
            let mut config = WifiConfig::dsss(220.0);
            config.propagation.carrier_sense_range = 220.0;
            config.mac.first_access = anabranch_sim::wifi::FirstAccess::Immediate;
            let places = [(-100.0, 0.0), (0.0, 0.0), (interferer, 0.0)];
            let hidden = places[2].0 - places[0].0 > 220.0;
            let mut dcf = Dcf::new(config, &places, 1);
            let effects = dcf.script(&[(0, first, None, 500), (1000, second, None, 500)]);
            if !hidden {
                continue;
            }
            let got: Vec<u64> = received(&effects).iter().filter(|r| r.0 == 1).map(|r| r.1).collect();
            let expected: &[u64] = match (survives, first) {
                (true, 0) => &[0],
                _ => &[],
            };
            assert_eq!(got, expected, "interferer at {interferer} m, {first} first");
        }
    }
}

#[test]
fn a_strong_frame_amid_a_signal_that_is_only_sensed() {
    // Station 2 is sensed at 1, but not received; 0 is far stronger, and begins during 2's frame.
    let base = WifiConfig::dsss(100.0);
    for (locking, expected) in [(Locking::Strong, 1), (Locking::First, 0)] {
        let propagation = Thresholds { locking, carrier_sense_range: 150.0, ..base.propagation };
        let places = [(-20.0, 0.0), (0.0, 0.0), (140.0, 0.0)];
        let mut dcf = Dcf::new(WifiConfig { propagation, ..base }, &places, 1);
        let effects = dcf.script(&[(0, 2, None, 500), (1000, 0, None, 100)]);
        let got = received(&effects).iter().filter(|r| **r == (1, 1)).count();
        assert_eq!(got, expected, "{locking:?}");
    }
}

/// Stations 0 and 2 collide at 1; 3 hears only 0, or both.
#[test]
fn eifs_follows_a_frame_in_error() {
    for (eifs, wait) in [(Eifs::Off, 50), (Eifs::Frames, 364), (Eifs::Signals, 414)] {
        let base = short_sighted(100.0);
        let mac = MacConfig { eifs, cw_min: 1, cw_max: 1, ..base.mac };
        let mut gaps = Vec::new();
        for seed in 1..20 {
            let mut dcf = Dcf::new(WifiConfig { mac, ..base }, &HIDDEN, seed);
            dcf.wifi.show_frames();
            // Both end at 192 + 4000 at the earliest; 1 gets its frame during them.
            let effects = dcf.script(&[(0, 0, None, 500), (1000, 2, None, 500), (2000, 1, None, 100)]);
            let frames = on_air(&effects);
            gaps.push(frames[2].0 - frames[1].1);
        }
        assert!(gaps.iter().all(|gap| *gap == wait || *gap == wait + 20), "{eifs:?}: {gaps:?}");
    }
}

/// PHY-RXSTART.indication follows a correct PLCP header; without it a station has only sensed a
/// busy channel.
#[test]
fn eifs_needs_a_plcp_header() {
    let gap = |eifs, places: &[(f64, f64)], second: u64| {
        let base = short_sighted(100.0);
        let mac = MacConfig { eifs, cw_min: 1, cw_max: 1, ..base.mac };
        let mut dcf = Dcf::new(WifiConfig { mac, ..base }, places, 1);
        dcf.wifi.show_frames();
        let effects =
            dcf.script(&[(1000, 0, None, 500), (1000 + second, 2, None, 500), (3000, 1, None, 100)]);
        let frames = on_air(&effects);
        assert_eq!([frames[0].3, frames[1].3, frames[2].3], [0, 2, 1]);
        frames[2].0 - frames[1].1
    };
    for (second, eifs, wait) in [
        (0, Eifs::Frames, 50),
        (191, Eifs::Frames, 50),
        (192, Eifs::Frames, 364),
        (0, Eifs::Signals, 414),
        (0, Eifs::Off, 50),
    ] {
        let gap = gap(eifs, &HIDDEN, second);
        assert!(gap == wait || gap == wait + 20, "{eifs:?}, {second} µs apart: {gap}");
    }
    // Station 1 receives the frame of 0, which is close, in spite of that of 2, which ends later
    // and on which it never locked.
    let captured = [(0.0, 0.0), (10.0, 0.0), (105.0, 0.0)];
    for second in [0, 100, 1000] {
        let gap = gap(Eifs::Frames, &captured, second);
        assert!(gap == 50 || gap == 70, "{second} µs apart: {gap}");
    }
}

#[test]
fn a_good_frame_ends_eifs() {
    // Station 1 hears the collision of 0 and 2, then a correct frame of 3; it waits for DIFS only.
    let places = [(0.0, 0.0), (90.0, 0.0), (180.0, 0.0), (90.0, 50.0)];
    let base = short_sighted(100.0);
    let mac = MacConfig { cw_min: 1, cw_max: 1, ..base.mac };
    let mut dcf = Dcf::new(WifiConfig { mac, ..base }, &places, 1);
    dcf.wifi.show_frames();
    // Station 3 senses neither 0 (103 m) nor 2; its frame begins when both have ended.
    let effects =
        dcf.script(&[(0, 0, None, 500), (1000, 2, None, 500), (5300, 3, None, 100), (5400, 1, None, 100)]);
    let frames = on_air(&effects);
    assert_eq!((frames[2].3, frames[3].3), (3, 1));
    let gap = frames[3].0 - frames[2].1;
    assert!(gap == 50 || gap == 70, "{gap}");
}

#[test]
fn eifs_is_waited_for_once() {
    // Station 1 hears the collision of 0 and 2. Long after the end of EIFS, 3 sends a frame that 1
    // senses but cannot receive.
    let places = [(0.0, 0.0), (90.0, 0.0), (180.0, 0.0), (90.0, 140.0)];
    for (eifs, wait) in [(Eifs::Frames, 50), (Eifs::Off, 50)] {
        let base = WifiConfig::dsss(100.0);
        let propagation = Thresholds { carrier_sense_range: 150.0, ..base.propagation };
        let mac = MacConfig { eifs, cw_min: 1, cw_max: 1, ..base.mac };
        let mut dcf = Dcf::new(WifiConfig { mac, propagation, ..base }, &places, 1);
        dcf.wifi.show_frames();
        let effects = dcf.script(&[
            (0, 0, None, 500),
            (1000, 2, None, 500),
            (7000, 3, None, 500),
            (8000, 1, None, 100),
        ]);
        let frames = on_air(&effects);
        assert_eq!((frames[2].3, frames[3].3), (3, 1));
        let gap = frames[3].0 - frames[2].1;
        assert!(gap == wait || gap == wait + 20, "{eifs:?}: {gap}");
    }
}

#[test]
fn stations_that_start_within_a_slot_collide() {
    // Stations 0 and 2 hear each other. Frames that begin less than a slot apart collide at 1;
    // frames a slot apart do not.
    let places = [(0.0, 0.0), (40.0, 0.0), (80.0, 0.0)];
    for (gap, survives) in [(0, false), (19, false), (20, true)] {
        let mut dcf = Dcf::new(WifiConfig::dsss(100.0), &places, 1);
        let effects = dcf.script(&[(1000, 0, None, 100), (1000 + gap, 2, None, 100)]);
        let got = received(&effects).iter().filter(|r| r.0 == 1).count();
        assert_eq!(got == 2, survives, "{gap} µs apart");
    }
}

#[test]
fn losses_of_a_link_are_those_asked_for() {
    let mut dcf = Dcf::new(WifiConfig::dsss(100.0), &HIDDEN[..2], 1);
    dcf.wifi.set_loss(Station(0), Station(1), 0.2);
    let flow = Flow { from: 0, to: None, mpdu_len: 50, rate: 200.0 };
    let mut traffic = Traffic::new(&mut dcf, &[flow], 1);
    traffic.run(&mut dcf, after(Duration::from_secs(100)), |_| {});
    let (sent, metrics) = (dcf.wifi.metrics(Station(0)).broadcast, dcf.wifi.metrics(Station(1)));
    assert_eq!(metrics.received + metrics.lost, sent);
    assert!((metrics.lost as f64 / sent as f64 - 0.2).abs() < 0.01);
}
