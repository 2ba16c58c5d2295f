//! Small cases with known results.

use anabranch_core::time::{Duration, Instant};
use anabranch_sim::radio::{
    Capture, Effect, FrameKind, LogDistance, MacConfig, Outcome, Propagation, RadioConfig, SendError,
    Station, UnitDisk,
};

use crate::air::{Air, Happening, after};

const RANGE: f64 = 100.0;

fn micros(n: u64) -> Duration {
    Duration::from_micros(n)
}

/// Without backoff: a frame starts 320 µs (CCA and turnaround) after it was passed to the radio.
fn prompt(config: RadioConfig) -> RadioConfig {
    RadioConfig { mac: MacConfig { min_be: 0, ..config.mac }, ..config }
}

fn disk(disk: UnitDisk) -> RadioConfig {
    prompt(RadioConfig { propagation: Propagation::UnitDisk(disk), ..RadioConfig::o_qpsk(RANGE) })
}

fn received(effects: &[Effect]) -> Vec<(u32, u64)> {
    let arrival = |effect: &Effect| match *effect {
        Effect::Received { at, tag, .. } => Some((at.0, tag)),
        _ => None,
    };
    effects.iter().filter_map(arrival).collect()
}

fn done(effects: &[Effect]) -> Vec<(u32, u64, Outcome, u8)> {
    let end = |effect: &Effect| match *effect {
        Effect::Done { station, tag, outcome, attempts } => Some((station.0, tag, outcome, attempts)),
        _ => None,
    };
    effects.iter().filter_map(end).collect()
}

/// Gives frames to stations at their times and runs to the end.
fn script(air: &mut Air, frames: &[(u64, u32, Option<u32>, u16)]) -> Vec<Effect> {
    for (i, &(at, ..)) in frames.iter().enumerate() {
        air.timer(micros(at), i as u32);
    }
    let mut effects = Vec::new();
    air.run(Instant::FAR_FUTURE, |air, happening| match happening {
        Happening::Timer(i) => {
            let (_, from, to, len) = frames[i as usize];
            air.offer(from, to, len, u64::from(i)).expect("the station is idle");
        }
        Happening::Effect(effect) => effects.push(effect),
    });
    effects
}

#[test]
fn a_frame_and_its_acknowledgement_to_the_microsecond() {
    let mut air = Air::new(prompt(RadioConfig::o_qpsk(RANGE)), &[(0.0, 0.0), (50.0, 0.0)], 1);
    air.radio.show_frames();
    air.send(0, 1, 127, 7).unwrap();
    let data = FrameKind::Data { version: 0, pending: false };
    let frame = |start, end, from, to, psdu_len, kind| Effect::Frame {
        start: after(micros(start)),
        end: after(micros(end)),
        from: Station(from),
        to: Some(Station(to)),
        seq: 1,
        psdu_len,
        tag: 7,
        kind,
        cut: false,
        receivers: 1,
    };
    let (at, from) = (Station(1), Station(0));
    assert_eq!(
        air.finish(),
        [
            frame(320, 4576, 0, 1, 127, data),
            Effect::Received { at, from, tag: 7, psdu_len: 127, lqi: 128, rssi_dbm: None },
            frame(4768, 5120, 1, 0, 5, FrameKind::Ack(None)),
            Effect::Done { station: from, tag: 7, outcome: Outcome::Acknowledged, attempts: 1 },
        ]
    );
}

#[test]
fn the_next_frame_waits_for_the_interframe_space() {
    for (len, space) in [(127, 640), (18, 192)] {
        let mut air = Air::new(prompt(RadioConfig::o_qpsk(RANGE)), &[(0.0, 0.0), (50.0, 0.0)], 1);
        air.radio.show_frames();
        let mut starts = Vec::new();
        air.send(0, 1, len, 0).unwrap();
        air.run(after(micros(20_000)), |air, happening| match happening {
            Happening::Effect(Effect::Frame { start, end, kind, .. }) => {
                starts.push((start, end, matches!(kind, FrameKind::Ack(_))));
            }
            Happening::Effect(Effect::Done { tag: 0, .. }) => air.send(0, 1, len, 1).unwrap(),
            _ => {}
        });
        let gap = starts[2].0.saturating_since(starts[1].1);
        assert!(starts[1].2 && !starts[2].2);
        assert_eq!(gap, micros(space + 320), "after {len} octets");
    }
}

#[test]
fn a_broadcast_reaches_all_in_range_once_and_is_not_acknowledged() {
    let places = [(0.0, 0.0), (100.0, 0.0), (-60.0, 0.0), (100.1, 0.0)];
    let mut air = Air::new(prompt(RadioConfig::o_qpsk(RANGE)), &places, 1);
    let effects = script(&mut air, &[(0, 0, None, 30)]);
    assert_eq!(received(&effects), [(1, 0), (2, 0)]);
    assert_eq!(done(&effects), [(0, 0, Outcome::Sent, 1)]);
    assert_eq!(air.radio.metrics(Station(1)).acks, 0);
    let neighbours: Vec<_> = air.radio.neighbours(Station(0)).map(|s| s.0).collect();
    assert_eq!(neighbours, [1, 2]);
}

/// Stations 0 and 2 do not hear each other; station 1 hears both.
const HIDDEN: [(f64, f64); 3] = [(0.0, 0.0), (90.0, 0.0), (180.0, 0.0)];

#[test]
fn frames_that_overlap_are_lost() {
    let mut air = Air::new(disk(UnitDisk::new(RANGE)), &HIDDEN, 1);
    let effects = script(&mut air, &[(0, 0, None, 50), (500, 2, None, 50)]);
    assert_eq!(received(&effects), []);
    assert_eq!(air.radio.metrics(Station(1)).collisions, 2);
    // One after the other, both arrive.
    let mut air = Air::new(disk(UnitDisk::new(RANGE)), &HIDDEN, 1);
    let effects = script(&mut air, &[(0, 0, None, 50), (5000, 2, None, 50)]);
    assert_eq!(received(&effects), [(1, 0), (1, 1)]);
}

#[test]
fn who_is_heard_but_not_received_disturbs_too() {
    let far = UnitDisk { interference_range: 150.0, ..UnitDisk::new(RANGE) };
    let places = [(0.0, 0.0), (90.0, 0.0), (230.0, 0.0)];
    let mut air = Air::new(disk(far), &places, 1);
    assert_eq!(received(&script(&mut air, &[(0, 0, None, 50), (500, 2, None, 50)])), []);
    let mut air = Air::new(disk(UnitDisk::new(RANGE)), &places, 1);
    assert_eq!(received(&script(&mut air, &[(0, 0, None, 50), (500, 2, None, 50)])), [(1, 0)]);
}

#[test]
fn who_is_in_carrier_sense_range_waits() {
    let wide = UnitDisk { carrier_sense_range: 200.0, ..UnitDisk::new(RANGE) };
    let mut air = Air::new(disk(wide), &HIDDEN, 3);
    let effects = script(&mut air, &[(0, 0, None, 50), (500, 2, None, 50)]);
    assert_eq!(received(&effects), [(1, 0), (1, 1)]);
    assert!(air.radio.metrics(Station(2)).busy_ccas > 0);
}

#[test]
fn the_nearer_captures() {
    // Station 1 is 30 m from 0 and 95 m from 2.
    let places = [(0.0, 0.0), (30.0, 0.0), (125.0, 0.0)];
    let (first, any) = (Capture::First(3.0), Capture::Any(3.0));
    let near_first = [(0, 0, None, 50), (500, 2, None, 50)];
    let far_first = [(0, 2, None, 50), (500, 0, None, 50)];
    let cases: [(Capture, _, &[(u32, u64)]); 5] = [
        (Capture::First(3.2), near_first, &[]),
        (first, near_first, &[(1, 0)]),
        (any, near_first, &[(1, 0)]),
        (first, far_first, &[]),
        (any, far_first, &[(1, 1)]),
    ];
    for (capture, frames, expected) in cases {
        let mut air = Air::new(disk(UnitDisk { capture, ..UnitDisk::new(RANGE) }), &places, 1);
        assert_eq!(received(&script(&mut air, &frames)), expected, "{capture:?} {frames:?}");
    }
}

#[test]
fn a_station_that_sends_does_not_receive() {
    // Practically no carrier sense: both send at the same time.
    let deaf = UnitDisk { carrier_sense_range: 1.0, ..UnitDisk::new(RANGE) };
    let mut air = Air::new(disk(deaf), &[(0.0, 0.0), (50.0, 0.0)], 1);
    let effects = script(&mut air, &[(0, 0, None, 50), (300, 1, None, 20)]);
    assert_eq!(received(&effects), []);
    assert_eq!([0, 1].map(|s| air.radio.metrics(Station(s)).missed), [1, 1]);
}

#[test]
fn a_station_in_its_backoff_receives() {
    let config =
        RadioConfig { mac: MacConfig { min_be: 3, ..MacConfig::default() }, ..disk(UnitDisk::new(RANGE)) };
    // A seed for which station 1 draws a longer backoff than station 0.
    let both = (0..20).any(|seed| {
        let mut air = Air::new(config, &[(0.0, 0.0), (50.0, 0.0)], seed);
        let effects = script(&mut air, &[(0, 0, Some(1), 20), (1, 1, Some(0), 20)]);
        received(&effects) == [(1, 0), (0, 1)]
    });
    assert!(both);
}

#[test]
fn a_copy_is_acknowledged_again_and_not_delivered_again() {
    let mut air = Air::new(disk(UnitDisk::new(RANGE)), &[(0.0, 0.0), (50.0, 0.0)], 1);
    // No acknowledgement is received.
    assert!(air.radio.set_loss(Station(1), Station(0), 1.0));
    let success = |from, to| air.radio.clear_success(Station(from), Station(to), 50);
    assert_eq!((success(0, 1), success(1, 0), success(0, 0)), (1.0, 0.0, 0.0));
    let effects = script(&mut air, &[(0, 0, Some(1), 50)]);
    assert_eq!(received(&effects), [(1, 0)]);
    assert_eq!(done(&effects), [(0, 0, Outcome::NoAck, 4)]);
    let receiver = air.radio.metrics(Station(1));
    assert_eq!((receiver.received, receiver.duplicates, receiver.acks), (1, 3, 4));
    let link = air.radio.link_metrics(Station(0), Station(1)).unwrap();
    assert_eq!((link.sent, link.acknowledged, link.lost), (4, 0, 4));
}

#[test]
fn retries_have_a_limit_and_a_time_out() {
    for retries in [0, 3, 7] {
        let config = disk(UnitDisk { loss: 1.0, ..UnitDisk::new(RANGE) });
        let config = RadioConfig { mac: MacConfig { max_frame_retries: retries, ..config.mac }, ..config };
        let mut air = Air::new(config, &[(0.0, 0.0), (50.0, 0.0)], 1);
        let effects = script(&mut air, &[(0, 0, Some(1), 127)]);
        assert_eq!(done(&effects), [(0, 0, Outcome::NoAck, retries + 1)]);
        assert_eq!(received(&effects), []);
        // CCA, turnaround, frame and macAckWaitDuration for each attempt; min_be is 0.
        assert_eq!(air.now, after(micros(128 + 192 + 4256 + 864) * (u64::from(retries) + 1)));
        assert_eq!(air.radio.metrics(Station(0)).retries, u64::from(retries));
        assert_eq!(air.radio.metrics(Station(1)).lost, u64::from(retries) + 1);
    }
}

#[test]
fn a_retry_may_wait_longer() {
    let config = disk(UnitDisk { loss: 1.0, ..UnitDisk::new(RANGE) });
    let mac = MacConfig { max_frame_retries: 15, retry_delay: micros(40_000), ..config.mac };
    let mut air = Air::new(RadioConfig { mac, ..config }, &[(0.0, 0.0), (50.0, 0.0)], 1);
    script(&mut air, &[(0, 0, Some(1), 127)]);
    let delays = air.now.saturating_since(after(micros(128 + 192 + 4256 + 864) * 16));
    // Fifteen delays of 20 ms on average: a standard deviation of 45 ms.
    assert!((delays.as_secs_f64() - 0.3).abs() < 0.135, "{delays:?}");
}

#[test]
fn out_of_range_is_no_acknowledgement() {
    let mut air = Air::new(disk(UnitDisk::new(RANGE)), &[(0.0, 0.0), (101.0, 0.0)], 1);
    assert_eq!(done(&script(&mut air, &[(0, 0, Some(1), 50)])), [(0, 0, Outcome::NoAck, 4)]);
    assert_eq!(air.radio.link_metrics(Station(0), Station(1)), None);
    assert!(!air.radio.set_loss(Station(0), Station(1), 0.5));
}

#[test]
fn a_channel_that_stays_busy_is_an_access_failure() {
    // The longest frame of SUN FSK, 164 ms, against five assessments with at most 7 periods before
    // each.
    let config = RadioConfig::sun_fsk(RANGE);
    let config = RadioConfig { mac: MacConfig { min_be: 0, max_be: 3, ..config.mac }, ..config };
    let mut air = Air::new(config, &[(0.0, 0.0), (50.0, 0.0)], 1);
    let effects = script(&mut air, &[(0, 0, None, 2047), (2000, 1, Some(0), 20)]);
    assert_eq!(done(&effects)[0], (1, 1, Outcome::ChannelAccessFailure, 0));
    let metrics = air.radio.metrics(Station(1));
    assert_eq!((metrics.ccas, metrics.busy_ccas, metrics.channel_access_failures), (5, 5, 1));
    assert_eq!(metrics.busy_probability(), 1.0);
    // 2055 bytes of 80 µs.
    assert_eq!(air.radio.busy_time(air.now, Station(1)), micros(2055 * 80));
}

#[test]
fn a_station_that_dies_breaks_off_its_frame() {
    let mut air = Air::new(disk(UnitDisk::new(RANGE)), &[(0.0, 0.0), (50.0, 0.0)], 1);
    air.radio.show_frames();
    air.send(0, 1, 127, 0).unwrap();
    air.run(after(micros(2000)), |_, _| {});
    air.radio.set_up(air.now, Station(0), false, &mut air.agenda);
    assert_eq!(air.send(0, 1, 10, 1), Err(SendError::Down));
    let mut effects: Vec<Effect> = std::iter::from_fn(|| air.radio.poll_effect()).collect();
    effects.extend(air.finish());
    assert!(matches!(effects[0], Effect::Frame { end, cut: true, .. } if end == after(micros(2000))));
    assert_eq!(done(&effects), [(0, 0, Outcome::Down, 1)]);
    assert_eq!((received(&effects), air.radio.metrics(Station(1)).missed), (vec![], 1));
    // After it has come up again, it works as before.
    air.radio.set_up(air.now, Station(0), true, &mut air.agenda);
    air.send(0, 1, 127, 2).unwrap();
    assert_eq!(done(&air.finish()), [(0, 2, Outcome::Acknowledged, 1)]);
}

#[test]
fn a_dead_receiver_answers_nothing() {
    let mut air = Air::new(disk(UnitDisk::new(RANGE)), &[(0.0, 0.0), (50.0, 0.0)], 1);
    air.send(0, 1, 127, 0).unwrap();
    // It goes down between the frame and its acknowledgement.
    air.run(after(micros(4600)), |_, _| {});
    air.radio.set_up(air.now, Station(1), false, &mut air.agenda);
    let effects = air.finish();
    assert_eq!(done(&effects), [(0, 0, Outcome::NoAck, 4)]);
    assert_eq!(air.radio.metrics(Station(1)).acks, 0);
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let mut air = Air::new(disk(UnitDisk::new(RANGE)), &[(0.0, 0.0), (50.0, 0.0)], 1);
    assert_eq!(air.send(0, 1, 128, 0), Err(SendError::TooLong { len: 128, max: 127 }));
    assert_eq!(air.send(0, 1, 0, 0), Err(SendError::Empty));
    assert_eq!(air.send(0, 0, 10, 0), Err(SendError::NoSuchStation));
    assert_eq!(air.send(0, 2, 10, 0), Err(SendError::NoSuchStation));
    assert_eq!(air.send(2, 0, 10, 0), Err(SendError::NoSuchStation));
    air.send(0, 1, 10, 0).unwrap();
    assert_eq!(air.send(0, 1, 10, 1), Err(SendError::Busy));
}

#[test]
fn energy_adds_up_to_time() {
    let mut air = Air::new(RadioConfig::o_qpsk(RANGE), &[(0.0, 0.0), (50.0, 0.0), (500.0, 0.0)], 1);
    air.radio.set_up(Instant::ZERO, Station(2), false, &mut air.agenda);
    let stop = after(Duration::from_secs(2));
    air.saturate(&[0], 1, 127, stop);
    for station in [0, 1, 2].map(Station) {
        let time = air.radio.state_time(stop, station);
        assert_eq!(time.transmit + time.receive + time.listen + time.off, Duration::from_secs(2));
        let by_hand = 0.0522 * time.transmit.as_secs_f64()
            + 0.0564 * (time.receive + time.listen).as_secs_f64()
            + 60e-9 * time.off.as_secs_f64();
        assert!((air.radio.energy_j(stop, station) - by_hand).abs() < 1e-12);
    }
    let [sender, receiver, off] = [0, 1, 2].map(|s| air.radio.state_time(stop, Station(s)));
    assert_eq!(off.off, Duration::from_secs(2));
    let sent = air.radio.metrics(Station(0));
    // All but the frame in transmission at the end.
    let on_air = micros(4256) * sent.acknowledged;
    assert!(sender.transmit >= on_air && sender.transmit <= on_air + micros(4256));
    let acks = air.radio.metrics(Station(1)).acks;
    assert!(micros(352) * acks <= receiver.transmit + micros(352));
}

#[test]
fn a_channel_that_is_busy_for_a_moment_of_the_cca_is_busy() {
    // Station 1's frame of 26 bytes lasts from 320 to 1152 µs; station 0's CCA takes the 128 µs
    // from the given start.
    for (cca_from, busy) in
        [(191, false), (192, false), (193, true), (600, true), (1151, true), (1152, false)]
    {
        let mut air = Air::new(disk(UnitDisk::new(RANGE)), &[(0.0, 0.0), (50.0, 0.0)], 1);
        script(&mut air, &[(0, 1, None, 20), (cca_from, 0, None, 20)]);
        let metrics = air.radio.metrics(Station(0));
        assert_eq!(metrics.busy_ccas > 0, busy, "from {cca_from} µs");
        assert_eq!(metrics.busy_probability() > 0.0, busy);
    }
}

#[test]
fn a_cca_before_and_during_its_own_acknowledgement_is_busy() {
    // The frame ends at 1152 µs; its acknowledgement lasts from 1344 to 1696 µs.
    for (cca_from, busy) in [(1160, true), (1400, true), (1690, true), (1696, false)] {
        let mut air = Air::new(disk(UnitDisk::new(RANGE)), &[(0.0, 0.0), (50.0, 0.0)], 1);
        let effects = script(&mut air, &[(0, 0, Some(1), 20), (cca_from, 1, Some(0), 20)]);
        assert_eq!(received(&effects), [(1, 0), (0, 1)]);
        assert_eq!(air.radio.metrics(Station(1)).busy_ccas > 0, busy, "from {cca_from} µs");
        assert!(done(&effects).iter().all(|end| end.2 == Outcome::Acknowledged && end.3 == 1));
    }
}

#[test]
fn a_station_that_turns_around_is_deaf() {
    // Station 0's frame begins at 320 µs. Station 1, which senses nothing, assesses from 180 to 308
    // µs and sends from 500 µs: the frame begins while it turns around.
    let deaf = UnitDisk { carrier_sense_range: 1.0, ..UnitDisk::new(RANGE) };
    let mut air = Air::new(disk(deaf), &[(0.0, 0.0), (50.0, 0.0)], 1);
    let effects = script(&mut air, &[(0, 0, None, 100), (180, 1, None, 1)]);
    assert_eq!(received(&effects), []);
    assert_eq!([0, 1].map(|s| air.radio.metrics(Station(s)).missed), [1, 1]);
}

#[test]
fn a_frame_that_begins_as_another_ends_does_not_disturb_it() {
    // Both last 832 µs; the second begins when the first ends, at 1152 µs.
    let mut air = Air::new(disk(UnitDisk::new(RANGE)), &HIDDEN, 1);
    let effects = script(&mut air, &[(0, 0, None, 20), (832, 2, None, 20)]);
    assert_eq!(received(&effects), [(1, 0), (1, 1)]);
    // The turnaround of SUN FSK is longer than its shortest frame, 720 µs: the start was planned
    // before the end.
    let mut air = Air::new(prompt(RadioConfig::sun_fsk(RANGE)), &HIDDEN, 1);
    let effects = script(&mut air, &[(0, 0, None, 1), (720, 2, None, 1)]);
    assert!(received(&effects).contains(&(1, 0)), "{effects:?}");
}

/// Frames of station 0 to station 1 while a jammer is at some of them.
fn jammed(
    config: RadioConfig,
    jammers: &[(u64, u32, bool)],
    frames: &[(u64, u32, Option<u32>, u16)],
) -> (Air, Vec<Effect>) {
    let mut air = Air::new(config, &[(0.0, 0.0), (50.0, 0.0), (-50.0, 0.0)], 1);
    for (i, &(at, ..)) in (0..).zip(frames) {
        air.timer(micros(at), i);
    }
    for (i, &(at, ..)) in (1_000..).zip(jammers) {
        air.timer(micros(at), i);
    }
    let mut effects = Vec::new();
    air.run(Instant::FAR_FUTURE, |air, happening| match happening {
        Happening::Timer(i) if i >= 1_000 => {
            let (at, station, begins) = jammers[i as usize - 1_000];
            air.radio.jam(after(micros(at)), Station(station), begins);
        }
        Happening::Timer(i) => {
            let (_, from, to, len) = frames[i as usize];
            air.offer(from, to, len, u64::from(i)).expect("the station is idle");
        }
        Happening::Effect(effect) => effects.push(effect),
    });
    (air, effects)
}

#[test]
fn a_jammed_station_neither_sends_nor_receives() {
    let log_distance = RadioConfig {
        propagation: Propagation::LogDistance(LogDistance::default()),
        ..prompt(RadioConfig::o_qpsk(RANGE))
    };
    let capture = UnitDisk { capture: Capture::Any(1.5), ..UnitDisk::new(RANGE) };
    for config in [disk(UnitDisk::new(RANGE)), disk(capture), log_distance] {
        let go = |jammers: &[(u64, u32, bool)]| {
            let (air, effects) = jammed(config, jammers, &[(10_000, 0, Some(1), 127)]);
            let collisions = air.radio.metrics(Station(1)).collisions;
            (received(&effects).len(), done(&effects)[0].2, done(&effects)[0].3, collisions)
        };
        // The frame is on the air from 10,320 to 14,576 µs, its acknowledgement up to 15,120 µs.
        assert_eq!(go(&[]), (1, Outcome::Acknowledged, 1, 0));
        assert_eq!(go(&[(0, 0, true)]), (0, Outcome::ChannelAccessFailure, 0, 0), "at the sender");
        assert_eq!(go(&[(0, 1, true)]), (0, Outcome::NoAck, 4, 4), "at the receiver");
        assert_eq!(go(&[(0, 2, true)]), (1, Outcome::Acknowledged, 1, 0), "at another station");
        // A jammer that begins during the frame destroys it; one that has ended does not. The
        // sender sends again after a jammer of 100 µs.
        assert_eq!(go(&[(14_000, 1, true), (14_100, 1, false)]), (1, Outcome::Acknowledged, 2, 1));
        assert_eq!(go(&[(0, 1, true), (10_000, 1, false)]), (1, Outcome::Acknowledged, 1, 0));
        // One at the sender destroys the acknowledgement. The receiver has the frame all the same.
        assert_eq!(go(&[(14_700, 0, true), (15_000, 0, false)]), (1, Outcome::Acknowledged, 2, 0));
        // Two jammers: the later end counts.
        let both = [(0, 1, true), (5_000, 1, true), (9_000, 1, false), (10_400, 1, false)];
        assert_eq!(go(&both), (1, Outcome::Acknowledged, 2, 1));
    }
}

#[test]
fn a_jammer_is_as_long_on_the_air_as_it_sends() {
    let (air, _) =
        jammed(disk(UnitDisk::new(RANGE)), &[(1_000, 0, true), (51_000, 0, false), (60_000, 0, false)], &[]);
    let busy = |station| air.radio.busy_time(after(micros(100_000)), Station(station));
    assert_eq!((busy(0), busy(1)), (micros(50_000), Duration::ZERO));
}
