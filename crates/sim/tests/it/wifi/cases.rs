//! Small cases of the MAC with results known to the microsecond.

use anabranch_core::time::{Duration, Instant};
use anabranch_sim::wifi::{
    AirFrame, ConfigError, Effect, FirstAccess, FrameKind, MacConfig, Outcome, Outgoing, Position, SendError,
    Station, Wifi, WifiConfig,
};

use crate::dcf::{Dcf, Happening, after};

pub(crate) fn micros(n: u64) -> Duration {
    Duration::from_micros(n)
}

/// Backoffs of 0 or 1 slots, so that times are nearly known; data at 2 Mbit/s, all other frames at
/// 1 Mbit/s.
fn prompt() -> WifiConfig {
    let config = WifiConfig::dsss(100.0);
    WifiConfig { mac: MacConfig { cw_min: 1, cw_max: 1, ..config.mac }, ..config }
}

pub(crate) fn received(effects: &[Effect]) -> Vec<(u32, u64)> {
    let arrival = |effect: &Effect| match *effect {
        Effect::Received { at, tag, .. } => Some((at.0, tag)),
        _ => None,
    };
    effects.iter().filter_map(arrival).collect()
}

pub(crate) fn done(effects: &[Effect]) -> Vec<(u32, u64, Outcome, u8)> {
    let end = |effect: &Effect| match *effect {
        Effect::Done { station, tag, outcome, attempts } => Some((station.0, tag, outcome, attempts)),
        _ => None,
    };
    effects.iter().filter_map(end).collect()
}

/// Transmissions: start and end in microseconds, kind, sender, Duration field.
pub(crate) fn on_air(effects: &[Effect]) -> Vec<(u64, u64, FrameKind, u32, u64)> {
    let frame = |effect: &Effect| match *effect {
        Effect::Frame(AirFrame { start, end, kind, from, duration, .. }) => {
            let us = |at: Instant| at.as_nanos() / 1000;
            Some((us(start), us(end), kind, from.0, duration.as_nanos() / 1000))
        }
        _ => None,
    };
    effects.iter().filter_map(frame).collect()
}

const PAIR: [(f64, f64); 2] = [(0.0, 0.0), (80.0, 0.0)];

#[test]
fn data_and_its_acknowledgement() {
    let mut dcf = Dcf::new(WifiConfig::dsss(100.0), &PAIR, 1);
    dcf.wifi.show_frames();
    // The channel has long been clear: no backoff. 1000 bytes take 192 + 4000 µs, the ACK
    // 192 + 112.
    let effects = dcf.script(&[(1000, 0, Some(1), 1000)]);
    assert_eq!(on_air(&effects), [(1000, 5192, FrameKind::Data, 0, 314), (5202, 5506, FrameKind::Ack, 1, 0)]);
    assert_eq!(received(&effects), [(1, 0)]);
    assert_eq!(done(&effects), [(0, 0, Outcome::Acknowledged, 1)]);
    assert_eq!(dcf.wifi.link_metrics(Station(0), Station(1)).unwrap().acknowledged, 1);
}

#[test]
fn rts_and_cts_before_data() {
    let mut dcf = Dcf::new(WifiConfig::dsss(100.0).with_rts_threshold(999), &PAIR, 1);
    dcf.wifi.show_frames();
    let effects = dcf.script(&[(1000, 0, Some(1), 1000), (50_000, 0, Some(1), 999)]);
    let frames = on_air(&effects);
    assert_eq!(
        frames[..4],
        [
            (1000, 1352, FrameKind::Rts, 0, 10 + 304 + 10 + 4192 + 10 + 304),
            (1362, 1666, FrameKind::Cts, 1, 10 + 4192 + 10 + 304),
            (1676, 5868, FrameKind::Data, 0, 314),
            (5878, 6182, FrameKind::Ack, 1, 0),
        ]
    );
    // At the threshold there is no RTS.
    let kinds: Vec<_> = frames[4..].iter().map(|f| f.2).collect();
    assert_eq!(kinds, [FrameKind::Data, FrameKind::Ack]);
    assert_eq!(done(&effects)[0], (0, 0, Outcome::Acknowledged, 1));
}

#[test]
fn a_broadcast_is_slow_and_not_acknowledged() {
    let places = [(0.0, 0.0), (100.0, 0.0), (-60.0, 0.0), (100.1, 0.0)];
    let mut dcf = Dcf::new(WifiConfig::dsss(100.0).with_rts_threshold(0), &places, 1);
    dcf.wifi.show_frames();
    let effects = dcf.script(&[(1000, 0, None, 100)]);
    assert_eq!(on_air(&effects), [(1000, 1992, FrameKind::Data, 0, 0)]);
    assert_eq!(received(&effects), [(1, 0), (2, 0)]);
    assert_eq!(done(&effects), [(0, 0, Outcome::Sent, 1)]);
    let Some(Effect::Received { rssi_dbm, to: None, .. }) =
        effects.iter().find(|e| matches!(e, Effect::Received { .. }))
    else {
        panic!("it was received")
    };
    // 281.8 mW at 100 m with two-ray ground: 24.5 + 10 log10(1.5^4 / 100^4) dBm.
    assert_eq!(*rssi_dbm, -48);
}

#[test]
fn a_channel_that_is_clear_for_less_than_difs_is_waited_for() {
    let places = [(0.0, 0.0), (80.0, 0.0), (0.0, 80.0)];
    let mut dcf = Dcf::new(prompt(), &places, 1);
    dcf.wifi.show_frames();
    // The broadcast ends at 1992; station 2 gets its frame 20 µs later, and sends when DIFS has
    // passed.
    let effects = dcf.script(&[(1000, 0, None, 100), (2012, 2, None, 100)]);
    assert_eq!(on_air(&effects)[1].0, 1992 + 50);
}

#[test]
fn a_busy_channel_is_followed_by_a_backoff() {
    let places = [(0.0, 0.0), (80.0, 0.0), (0.0, 80.0)];
    let mut starts = Vec::new();
    for seed in 1..200 {
        let mut dcf = Dcf::new(WifiConfig::dsss(100.0), &places, seed);
        dcf.wifi.show_frames();
        let effects = dcf.script(&[(1000, 0, None, 100), (1500, 2, None, 100)]);
        starts.push(on_air(&effects)[1].0 - 1992 - 50);
    }
    assert!(starts.iter().all(|us| us % 20 == 0 && *us <= 31 * 20), "{starts:?}");
    assert!(starts.contains(&0) && starts.contains(&620), "all of 0 to 31 slots");
    let mean = starts.iter().sum::<u64>() as f64 / starts.len() as f64;
    assert!((mean / 310.0 - 1.0).abs() < 0.15, "{mean} µs");
}

#[test]
fn a_backoff_freezes_and_goes_on_with_the_slots_that_are_left() {
    // Stations 0 and 1 send next to 2; 2 draws its backoff at 1500, which is interrupted by 1.
    let places = [(0.0, 0.0), (80.0, 0.0), (0.0, 80.0)];
    let mut frozen = 0;
    for seed in 1..100 {
        let slots = |second: Option<u64>| {
            let mut dcf = Dcf::new(WifiConfig::dsss(100.0), &places, seed);
            dcf.wifi.show_frames();
            let mut frames = vec![(1000, 0, None, 100), (1500, 2, None, 100)];
            frames.extend(second.map(|at| (at, 1, None, 200)));
            on_air(&dcf.script(&frames))
        };
        let alone = slots(None)[1].0;
        // Station 1 has a clear channel since 1992 + 50 and sends immediately, unless 2 is sending.
        let at = 1992 + 50 + 110;
        if alone <= at + 20 {
            continue;
        }
        frozen += 1;
        let frames = slots(Some(at));
        assert_eq!((frames[1].0, frames[1].3), (at, 1));
        // Five whole slots have passed in 110 µs.
        let left = (alone - 2042) / 20 - 5;
        assert_eq!(frames[2].0, frames[1].1 + 50 + left * 20, "seed {seed}");
    }
    assert!(frozen > 50, "{frozen}");
}

#[test]
fn a_backoff_follows_each_frame() {
    let mut gaps = Vec::new();
    for seed in 1..200 {
        let mut dcf = Dcf::new(WifiConfig::dsss(100.0), &PAIR, seed);
        dcf.wifi.show_frames();
        dcf.send(0, None, 100, 0).unwrap();
        let mut frames = Vec::new();
        dcf.run(after(micros(20_000)), |dcf, happening| match happening {
            Happening::Effect(Effect::Frame(frame)) => frames.push(frame),
            Happening::Effect(Effect::Done { tag: 0, .. }) => dcf.send(0, None, 100, 1).unwrap(),
            _ => {}
        });
        gaps.push(frames[1].start.saturating_since(frames[0].end).as_nanos() / 1000 - 50);
    }
    assert!(gaps.iter().all(|us| us % 20 == 0 && *us <= 620) && gaps.iter().any(|us| *us > 500), "{gaps:?}");
    // Long after it, the backoff has ended.
    let mut dcf = Dcf::new(WifiConfig::dsss(100.0), &PAIR, 1);
    dcf.wifi.show_frames();
    let effects = dcf.script(&[(1000, 0, None, 100), (9000, 0, None, 100)]);
    assert_eq!(on_air(&effects)[1].0, 9000);
    // In ns-2 there is also a backoff before the first frame.
    let config = WifiConfig::dsss(100.0);
    let config = WifiConfig { mac: MacConfig { first_access: FirstAccess::Backoff, ..config.mac }, ..config };
    let starts: Vec<u64> = (1..50)
        .map(|seed| {
            let mut dcf = Dcf::new(config, &PAIR, seed);
            dcf.wifi.show_frames();
            on_air(&dcf.script(&[(1000, 0, None, 100)]))[0].0 - 1050
        })
        .collect();
    assert!(starts.iter().all(|us| us % 20 == 0) && starts.iter().any(|us| *us > 400), "{starts:?}");
}

#[test]
fn retries_end_at_the_limits() {
    // The destination does not exist: 7 attempts of a short frame, and 7 of an RTS.
    for (threshold, rts) in [(2347, 0), (0, 7)] {
        let mut dcf =
            Dcf::new(WifiConfig::dsss(100.0).with_rts_threshold(threshold), &[(0.0, 0.0), (150.0, 0.0)], 1);
        let effects = dcf.script(&[(0, 0, Some(1), 500)]);
        assert_eq!(done(&effects), [(0, 0, Outcome::NoAck, 7)]);
        let metrics = dcf.wifi.metrics(Station(0));
        assert_eq!((metrics.rts, metrics.transmissions, metrics.no_ack), (rts, 7 - rts, 1));
    }
    // The CTS arrives, the data is lost: 4 attempts.
    let mut dcf = Dcf::new(WifiConfig::dsss(100.0).with_rts_threshold(0), &PAIR, 1);
    dcf.wifi.show_frames();
    dcf.timer(micros(1700), 0);
    dcf.send(0, Some(1), 500, 0).unwrap();
    let mut effects = Vec::new();
    let mut lose = false;
    dcf.run(Instant::FAR_FUTURE, |dcf, happening| {
        let Happening::Effect(effect) = happening else { return };
        if let Effect::Frame(AirFrame { kind, .. }) = effect {
            // The link loses the frame after a CTS, and nothing else.
            lose = kind == FrameKind::Cts;
            dcf.wifi.set_loss(Station(0), Station(1), if lose { 1.0 } else { 0.0 });
        }
        effects.push(effect);
    });
    assert_eq!(done(&effects), [(0, 0, Outcome::NoAck, 4)]);
    let metrics = dcf.wifi.metrics(Station(0));
    assert_eq!((metrics.rts, metrics.transmissions, metrics.retries, metrics.acks_missing), (4, 4, 3, 4));
}

#[test]
fn a_cts_resets_the_short_retry_count() {
    // Six RTS are lost, the seventh gets a CTS, the data is lost; six more RTS are lost: 12 short
    // failures, but never 7 in a row.
    let mut dcf = Dcf::new(WifiConfig::dsss(100.0).with_rts_threshold(0), &PAIR, 1);
    dcf.wifi.show_frames();
    dcf.wifi.set_loss(Station(0), Station(1), 1.0);
    dcf.send(0, Some(1), 500, 0).unwrap();
    let mut effects = Vec::new();
    let (mut rts, mut cts) = (0, 0);
    dcf.run(Instant::FAR_FUTURE, |dcf, happening| {
        let Happening::Effect(effect) = happening else { return };
        if let Effect::Frame(AirFrame { kind, .. }) = effect {
            rts += u32::from(kind == FrameKind::Rts);
            cts += u32::from(kind == FrameKind::Cts);
            let passes = rts == 6 && cts == 0 || rts >= 13;
            dcf.wifi.set_loss(Station(0), Station(1), if passes { 0.0 } else { 1.0 });
        }
        effects.push(effect);
    });
    assert_eq!(done(&effects), [(0, 0, Outcome::Acknowledged, 14)]);
    let metrics = dcf.wifi.metrics(Station(0));
    assert_eq!((metrics.cts_missing, metrics.acks_missing, metrics.transmissions), (12, 1, 2));
}

#[test]
fn windows_double_up_to_the_greatest() {
    // 7 attempts without an answer: gaps are the time-out, 222 µs, plus up to 63, 127, 255, 511,
    // 1023, 1023 slots.
    let mut most = [0; 6];
    for seed in 1..300 {
        let mut dcf = Dcf::new(WifiConfig::dsss(100.0), &[(0.0, 0.0), (150.0, 0.0)], seed);
        dcf.wifi.show_frames();
        let frames = on_air(&dcf.script(&[(0, 0, Some(1), 50)]));
        for (i, pair) in frames.windows(2).enumerate() {
            let gap = pair[1].0 - pair[0].1 - 222;
            assert!(gap.is_multiple_of(20), "{gap}");
            most[i] = most[i].max(gap / 20);
        }
    }
    for (i, (most, window)) in most.into_iter().zip([63, 127, 255, 511, 1023, 1023]).enumerate() {
        assert!(most <= window && most > window * 9 / 10, "{i}: {most} of {window}");
    }
}

#[test]
fn a_copy_is_acknowledged_and_dropped() {
    let mut dcf = Dcf::new(WifiConfig::dsss(100.0), &PAIR, 1);
    dcf.wifi.show_frames();
    dcf.wifi.set_loss(Station(1), Station(0), 1.0);
    dcf.timer(micros(6000), 0);
    dcf.send(0, Some(1), 500, 9).unwrap();
    let mut effects = Vec::new();
    dcf.run(Instant::FAR_FUTURE, |dcf, happening| match happening {
        Happening::Timer(_) => assert!(dcf.wifi.set_loss(Station(1), Station(0), 0.0)),
        Happening::Effect(effect) => effects.push(effect),
    });
    assert_eq!(received(&effects), [(1, 9)]);
    let [(0, 9, Outcome::Acknowledged, attempts)] = done(&effects)[..] else { panic!("{effects:?}") };
    let metrics = dcf.wifi.metrics(Station(1));
    assert!(attempts > 1);
    assert_eq!((metrics.received, metrics.duplicates), (1, u64::from(attempts) - 1));
    assert_eq!(metrics.acks, u64::from(attempts));
    let retries = effects.iter().filter(|e| matches!(e, Effect::Frame(AirFrame { retry: true, .. })));
    assert_eq!(retries.count(), usize::from(attempts) - 1);
}

#[test]
fn sequence_numbers_go_round() {
    let mut dcf = Dcf::new(prompt(), &PAIR, 1);
    dcf.wifi.show_frames();
    let mut seqs = Vec::new();
    let mut arrived = 0;
    dcf.send(0, Some(1), 30, 0).unwrap();
    dcf.run(Instant::FAR_FUTURE, |dcf, happening| match happening {
        Happening::Effect(Effect::Frame(AirFrame { kind: FrameKind::Data, seq, .. })) => seqs.push(seq),
        Happening::Effect(Effect::Received { .. }) => arrived += 1,
        Happening::Effect(Effect::Done { tag, .. }) if tag < 4999 => {
            dcf.send(0, Some(1), 30, tag + 1).unwrap();
        }
        _ => {}
    });
    assert!(seqs.iter().zip(0..).all(|(&seq, i)| seq == i % 4096), "0 to 4095, and again");
    assert_eq!(arrived, 5000);
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let mut dcf = Dcf::new(WifiConfig::dsss(100.0), &PAIR, 1);
    assert_eq!(dcf.send(0, Some(1), 0, 0), Err(SendError::Empty));
    assert_eq!(dcf.send(0, Some(1), 2347, 0), Err(SendError::TooLong { len: 2347, max: 2346 }));
    for (from, to) in [(0, Some(0)), (0, Some(2)), (2, Some(1)), (2, None)] {
        assert_eq!(dcf.send(from, to, 10, 0), Err(SendError::NoSuchStation), "{from} to {to:?}");
    }
    dcf.send(0, Some(1), 2346, 0).unwrap();
    assert_eq!(dcf.send(0, None, 10, 0), Err(SendError::Busy));
    dcf.set_up(1, false);
    assert_eq!(dcf.send(1, None, 10, 0), Err(SendError::Down));
    dcf.set_up(7, false);
    assert!(!dcf.wifi.set_loss(Station(7), Station(0), 0.5));
    assert!(!dcf.wifi.set_loss(Station(0), Station(7), 0.5));
    let stream = |_: Station, _: &str| anabranch_sim::random::Stream::new(1, 0, "none", "none");
    for x in [f64::NAN, f64::INFINITY, 1e9] {
        let places = [Position::default(), Position::new(x, 0.0)];
        let error = Wifi::new(WifiConfig::dsss(100.0), &places, stream).unwrap_err();
        assert_eq!(error, ConfigError::Position(1));
    }
    for range in [0.0, -5.0, f64::NAN] {
        assert!(Wifi::new(WifiConfig::dsss(range), &[], stream).is_err());
    }
    // Events that were never scheduled are void.
    let mut wifi = Wifi::new(WifiConfig::dsss(100.0), &[Position::default()], stream).unwrap();
    let mut agenda = anabranch_sim::event::Agenda::default();
    wifi.handle_event(Instant::ZERO, 5, 0, 0, &mut agenda);
    wifi.handle_event(Instant::ZERO, 0, 99, 0, &mut agenda);
    let frame = Outgoing { to: None, mpdu_len: 1, tag: 0 };
    assert_eq!(wifi.send(Instant::ZERO, Station(0), frame, &mut agenda), Ok(()));
}

#[test]
fn a_station_that_goes_down_breaks_off() {
    let places = [(0.0, 0.0), (80.0, 0.0), (40.0, 60.0)];
    let mut dcf = Dcf::new(WifiConfig::dsss(100.0), &places, 1);
    dcf.wifi.show_frames();
    dcf.timer(micros(2000), 0);
    dcf.timer(micros(2500), 1);
    dcf.timer(micros(3000), 2);
    dcf.send(0, Some(1), 1000, 5).unwrap();
    let mut effects = Vec::new();
    dcf.run(Instant::FAR_FUTURE, |dcf, happening| match happening {
        Happening::Timer(0) => {
            // Station 2 waits for the end of the frame, which is earlier than expected.
            dcf.send(2, Some(1), 100, 6).unwrap();
            dcf.set_up(0, false);
            while let Some(effect) = dcf.wifi.poll_effect() {
                effects.push(effect);
            }
        }
        Happening::Timer(1) => assert_eq!(dcf.send(0, None, 10, 7), Err(SendError::Down)),
        Happening::Timer(_) => {
            dcf.set_up(0, true);
            dcf.send(0, None, 10, 8).unwrap();
        }
        Happening::Effect(effect) => effects.push(effect),
    });
    let ends = done(&effects);
    assert_eq!(ends[0], (0, 5, Outcome::Down, 0));
    assert!(ends.contains(&(2, 6, Outcome::Acknowledged, 1)) && ends.contains(&(0, 8, Outcome::Sent, 1)));
    let Effect::Frame(AirFrame { cut: true, end, .. }) = effects[1] else { panic!("{effects:?}") };
    assert_eq!(end, after(micros(2000)));
    assert_eq!(received(&effects), [(1, 6), (1, 8), (2, 8)]);
}

#[test]
fn frames_for_others_are_told_of_where_asked_for() {
    let places = [(0.0, 0.0), (80.0, 0.0), (0.0, 80.0)];
    let mut dcf = Dcf::new(WifiConfig::dsss(100.0), &places, 1);
    dcf.wifi.overhear();
    let effects = dcf.script(&[(0, 0, Some(1), 100)]);
    let heard = Effect::Overheard { at: Station(2), from: Station(0), to: Station(1), tag: 0 };
    assert_eq!(effects.iter().filter(|e| **e == heard).count(), 1);
    assert_eq!(received(&effects), [(1, 0)]);
}
