//! Coordinated sampled listening, compared with calculated sums and closed forms.

use anabranch_core::time::{Duration, Instant};
use anabranch_sim::radio::{
    CslConfig, Effect, FrameKind, MacConfig, Outcome, PhyConfig, RadioConfig, SendError, Station,
};
use anabranch_sim::random::Stream;

use crate::air::{Air, Happening, after};

const PAIR: [(f64, f64); 2] = [(0.0, 0.0), (50.0, 0.0)];
/// 781 units of 160 µs.
const PERIOD: Duration = Duration::from_micros(124_960);
const NEVER: Duration = Duration::ZERO;

fn micros(n: u64) -> Duration {
    Duration::from_micros(n)
}

fn secs(n: u64) -> Instant {
    after(Duration::from_secs(n))
}

fn sampled(period: Duration) -> RadioConfig {
    let config = RadioConfig::o_qpsk(100.0);
    RadioConfig { csl: Some(CslConfig::new(period, &config.phy)), ..config }
}

fn unsynchronized(config: RadioConfig) -> RadioConfig {
    RadioConfig { csl: config.csl.map(|csl| CslConfig { synchronized: false, ..csl }), ..config }
}

/// No backoff.
fn prompt(config: RadioConfig) -> RadioConfig {
    RadioConfig { mac: MacConfig { min_be: 0, ..config.mac }, ..config }
}

/// Clocks that do not drift.
fn exact(config: RadioConfig) -> RadioConfig {
    RadioConfig { csl: config.csl.map(|csl| CslConfig { clock_accuracy_ppm: 0, ..csl }), ..config }
}

/// Duration of a wake-up frame in µs: frame control 2, PAN 2, address 2, IE 2 + 2, FCS 2; 6 bytes
/// before it.
const WAKEUP: u64 = (6 + 12) * 32;
/// Duration of an enhanced acknowledgement: 2 + 1 + 2 + 2 + 6 + 2 bytes, and 6 before it.
const ENH_ACK: u64 = (6 + 15) * 32;

#[test]
fn an_idle_station_is_awake_for_sample_over_period() {
    for (period, sample) in
        [(PERIOD, 128), (PERIOD, 5000), (micros(10_485_600), 128), (micros(10_000), 9_999)]
    {
        let config = sampled(period);
        let csl = CslConfig { sample: micros(sample), ..config.csl.unwrap() };
        let mut air = Air::sampling(RadioConfig { csl: Some(csl), ..config }, &PAIR, &[], 1);
        let hour = Duration::from_secs(3600);
        air.run(after(hour), |_, _| {});
        let time = air.radio.state_time(air.now, Station(0));
        assert_eq!(time.listen + time.sleep, hour);
        let share = time.listen.as_secs_f64() / 3600.0;
        let wanted = sample as f64 / (period.as_nanos() as f64 / 1e3);
        // One sample more or less, and clocks that deviate by 20 ppm.
        let slack = sample as f64 / 3600e6 + 2e-5 * wanted;
        assert!((share - wanted).abs() <= slack, "{share} {wanted}");
        // CC2420: 56.4 mW listening, 60 µW asleep.
        let energy = air.radio.energy_j(air.now, Station(0));
        let by_hand = 3600.0 * (0.0564 * wanted + 60e-6 * (1.0 - wanted));
        assert!((energy / by_hand - 1.0).abs() < 1e-3, "{energy} {by_hand}");
    }
}

#[test]
fn a_station_that_never_sleeps_is_as_without_csl() {
    let mut seen = Vec::new();
    for config in [RadioConfig::o_qpsk(100.0), sampled(NEVER)] {
        let mut air = Air::sampling(config, &PAIR, &[], 7);
        let mut all = Vec::new();
        air.send(0, 1, 127, 0).unwrap();
        air.run(secs(5), |air, happening| {
            let Happening::Effect(effect) = happening else { return };
            all.push((air.now, effect));
            if let Effect::Done { station, tag, .. } = effect {
                let to = if tag % 3 == 0 { None } else { Some(1) };
                air.offer(station.0, to, 20 + (tag % 100) as u16, tag + 1).unwrap();
            }
        });
        seen.push((all, air.radio.energy_j(air.now, Station(1)).to_bits()));
    }
    assert!(seen[0].0.len() > 1000);
    assert_eq!(seen[0], seen[1]);
}

/// The frames of an unsynchronised transmission, to the microsecond.
#[test]
fn a_wake_up_sequence_lasts_a_period_and_ends_where_it_says() {
    let mut air = Air::sampling(prompt(sampled(PERIOD)), &PAIR, &[(0, NEVER)], 1);
    air.radio.show_frames();
    air.send(0, 1, 127, 7).unwrap();
    let mut frames = Vec::new();
    let mut effects = Vec::new();
    air.run(secs(1), |_, happening| match happening {
        Happening::Effect(Effect::Frame { start, end, psdu_len, kind, .. }) => {
            frames.push((start, end, psdu_len, kind));
        }
        Happening::Effect(effect) => effects.push(effect),
        Happening::Timer(_) => {}
    });
    // 124,960 µs plus twice 20 ppm are 217 frames of 576 µs.
    let n = 217;
    assert_eq!(frames.len(), n + 2);
    for (i, (start, end, psdu_len, kind)) in frames[..n].iter().enumerate() {
        assert_eq!(
            (*start, *end),
            (after(micros(320 + WAKEUP * i as u64)), after(micros(320 + WAKEUP * (i as u64 + 1))))
        );
        let rendezvous = (WAKEUP * (n - 1 - i) as u64 / 160) as u16;
        assert_eq!((*psdu_len, *kind), (12, FrameKind::Wakeup { rendezvous }));
    }
    let begins = 320 + WAKEUP * n as u64;
    let data = FrameKind::Data { version: 2, pending: false };
    assert_eq!(frames[n], (after(micros(begins)), after(micros(begins + 4256)), 127, data));
    let (start, end, psdu_len, kind) = frames[n + 1];
    assert_eq!(
        (start, end),
        (after(micros(begins + 4256 + 192)), after(micros(begins + 4256 + 192 + ENH_ACK)))
    );
    assert!(matches!(kind, FrameKind::Ack(Some(csl)) if csl.period == 781 && csl.phase < 781), "{kind:?}");
    assert_eq!(psdu_len, 15);
    assert!(matches!(effects[0], Effect::Received { at: Station(1), tag: 7, .. }));
    assert!(matches!(effects[1], Effect::Done { outcome: Outcome::Acknowledged, attempts: 1, .. }));
    // The receiver slept except for samples, one or two wake-up frames, the rendezvous and the
    // frame. It has listened for at most a sample in each period, less than two wake-up frames
    // until it had a complete one, and two units around the rendezvous.
    let time = air.radio.state_time(air.now, Station(1));
    let most = 8 * 128 + 2 * WAKEUP + 4256 + 192 + 4 * 160;
    assert!(time.receive + time.listen <= micros(most), "{time:?}");
    assert_eq!(time.transmit, micros(ENH_ACK));
    assert_eq!(air.radio.metrics(Station(1)).missed, 0);
    assert_eq!(
        (air.radio.metrics(Station(0)).wakeups, air.radio.metrics(Station(0)).transmissions),
        (217, 1)
    );
}

/// Sends a frame at a random time of each second. Returns the mean time until its arrival in
/// seconds, without the first frame.
fn mean_delay(config: RadioConfig, frames: u64, pause: Duration) -> f64 {
    let mut air = Air::sampling(config, &PAIR, &[(0, NEVER)], 3);
    let mut random = Stream::new(5, 0, "frames", "times");
    let (mut asked, mut sum, mut arrived) = (Vec::new(), 0.0, 0);
    air.timer(Duration::ZERO, 0);
    air.run(after(pause * (frames + 2)), |air, happening| match happening {
        Happening::Timer(i) => {
            asked.push(air.now);
            air.send(0, 1, 50, u64::from(i)).expect("an idle station sends");
            if u64::from(i) < frames {
                let jitter = (random.uniform() * 0.5 * pause.as_nanos() as f64) as u64;
                let next = after(pause * u64::from(i + 1)) + Duration::from_nanos(jitter);
                air.timer(next.saturating_since(air.now), i + 1);
            }
        }
        Happening::Effect(Effect::Received { tag, .. }) if tag > 0 => {
            arrived += 1;
            sum += air.now.saturating_since(asked[tag as usize]).as_secs_f64();
        }
        Happening::Effect(_) => {}
    });
    assert_eq!(arrived, frames, "every frame arrives");
    sum / frames as f64
}

/// Backoff, CCA, turnaround, the complete period and the frame.
#[test]
fn an_unsynchronized_hop_takes_a_period() {
    for period in [PERIOD, micros(500_000)] {
        let delay = mean_delay(unsynchronized(sampled(period)), 400, Duration::from_secs(2));
        let sequence = (period.as_nanos() as f64 * 1.00004 / (WAKEUP as f64 * 1e3)).ceil() * WAKEUP as f64;
        let by_hand = (1120.0 + 128.0 + 192.0 + sequence + 56.0 * 32.0) / 1e6;
        // The mean of 400 backoffs is within 0.1 ms.
        assert!((delay - by_hand).abs() < 1.5e-4, "{delay} {by_hand}");
    }
}

/// Half a period on average until the next sample that can be reached.
#[test]
fn a_synchronized_hop_takes_half_a_period() {
    for period in [PERIOD, micros(500_000)] {
        let delay = mean_delay(exact(sampled(period)), 2000, Duration::from_secs(2));
        let half = period.as_secs_f64() / 2.0;
        // The frame begins after the wake-up frames that cover lead and unit: within one wake-up
        // frame and a unit after the sample. Before it: lead, CCA, turnaround.
        let before = (1120.0 + 128.0 + 192.0) / 1e6;
        let (least, most) =
            (half + before + 56.0 * 32e-6, half + before + (160.0 + 576.0 + 56.0 * 32.0) / 1e6);
        // The mean of uniformly distributed waits: 3 standard errors.
        let error = 3.0 * period.as_secs_f64() / 12f64.sqrt() / 2000f64.sqrt();
        assert!((least - error..most + error).contains(&delay), "{delay}: {least} to {most}");
    }
}

/// Clocks that deviate by 20 ppm, over minutes: the guard time grows with the time since the last
/// acknowledgement, and nothing is lost.
#[test]
fn drifting_clocks_cost_wake_up_frames_and_no_frame() {
    for (pause, guard) in [(10, 0.0004), (600, 0.024)] {
        for seed in 0..5 {
            let mut air = Air::sampling(prompt(sampled(PERIOD)), &PAIR, &[], seed);
            let mut done = Vec::new();
            air.timer(Duration::ZERO, 0);
            air.run(secs(pause * 20), |air, happening| match happening {
                Happening::Timer(i) => {
                    air.send(0, 1, 50, u64::from(i)).unwrap();
                    air.timer(Duration::from_secs(pause), i + 1);
                }
                Happening::Effect(Effect::Done { outcome, attempts, .. }) => {
                    done.push((outcome, attempts, air.radio.metrics(Station(0)).wakeups));
                }
                Happening::Effect(_) => {}
            });
            assert_eq!(done.len(), 20);
            for pair in done.windows(2) {
                assert_eq!((pair[1].0, pair[1].1), (Outcome::Acknowledged, 1));
                // Twice the guard time for both clocks, and the unit of the phase.
                let wakeups = (pair[1].2 - pair[0].2) as f64;
                let by_hand = (2.0 * guard + 160e-6) / (WAKEUP as f64 / 1e6);
                assert!((by_hand.floor()..=by_hand.ceil() + 1.0).contains(&wakeups), "{wakeups} {by_hand}");
            }
        }
    }
}

/// When the clocks may have drifted by a period, the phase is unknown, and the complete sequence is
/// sent.
#[test]
fn a_phase_too_old_is_no_phase() {
    let mut air = Air::sampling(prompt(sampled(PERIOD)), &PAIR, &[(0, NEVER)], 1);
    air.timer(Duration::ZERO, 0);
    // 20 ppm for each clock, in both directions: after 1562 s the drift is a period.
    air.timer(Duration::from_secs(1700), 1);
    let mut acknowledged = 0;
    air.run(secs(1800), |air, happening| match happening {
        Happening::Timer(i) => air.send(0, 1, 50, u64::from(i)).unwrap(),
        Happening::Effect(Effect::Done { outcome: Outcome::Acknowledged, .. }) => acknowledged += 1,
        Happening::Effect(_) => {}
    });
    assert_eq!((acknowledged, air.radio.metrics(Station(0)).wakeups), (2, 2 * 217));
}

/// Frames that one station sends to another continuously, with or without frame pending. Returns
/// the number of frames in `seconds`.
fn stream(config: RadioConfig, pending: bool, seconds: u64) -> (u64, Air) {
    let mut air = Air::sampling(config, &PAIR, &[], 1);
    let send = move |air: &mut Air, tag| match pending {
        true => air.send_with_more(0, 1, 127, tag),
        false => air.send(0, 1, 127, tag),
    };
    send(&mut air, 0).expect("an idle station sends");
    let mut frames = 0;
    air.run(secs(seconds), |air, happening| {
        if let Happening::Effect(Effect::Done { outcome, tag, .. }) = happening {
            assert_eq!(outcome, Outcome::Acknowledged);
            frames += 1;
            send(air, tag + 1).expect("its last frame is done");
        }
    });
    (frames, air)
}

#[test]
fn frame_pending_makes_a_stream_as_fast_as_without_sleep() {
    let (always_on, _) = stream(RadioConfig::o_qpsk(100.0), false, 100);
    let (pending, air) = stream(sampled(PERIOD), true, 100);
    // The acknowledgement is 10 bytes longer, and the first frame waits for a period: 6880 µs
    // become 7200.
    let by_hand = always_on as f64 * 6880.0 / 7200.0 * (1.0 - 0.125 / 100.0);
    assert!((pending as f64 / by_hand - 1.0).abs() < 0.005, "{pending} {by_hand}");
    assert_eq!(air.radio.metrics(Station(0)).wakeups, 217);
    // Without it one frame is sent in a period.
    let (one_by_one, _) = stream(sampled(PERIOD), false, 100);
    let periods = 100.0 / PERIOD.as_secs_f64();
    assert!((one_by_one as f64 - periods).abs() < 3.0, "{one_by_one} {periods}");
}

/// The receiver sleeps after a frame without a successor, although it was told of one before: the
/// next frame needs wake-up frames.
#[test]
fn a_receiver_sleeps_once_no_frame_follows() {
    let config = sampled(PERIOD);
    let csl = CslConfig { frame_pending_wait: Duration::from_millis(400), ..config.csl.unwrap() };
    let mut air = Air::sampling(RadioConfig { csl: Some(csl), ..config }, &PAIR, &[], 1);
    air.send_with_more(0, 1, 127, 0).unwrap();
    let mut attempts = Vec::new();
    air.run(secs(2), |air, happening| match happening {
        Happening::Effect(Effect::Done { tag, attempts: times, .. }) => {
            attempts.push((tag, times));
            match tag {
                0 => air.send(0, 1, 127, 1).unwrap(),
                1 => air.timer(Duration::from_millis(100), 2),
                _ => {}
            }
        }
        Happening::Timer(_) => air.send(0, 1, 127, 2).unwrap(),
        Happening::Effect(_) => {}
    });
    assert_eq!(attempts, [(0, 1), (1, 1), (2, 1)]);
}

#[test]
fn a_broadcast_has_the_whole_sequence_and_reaches_all() {
    let places = [(0.0, 0.0), (50.0, 0.0), (-50.0, 0.0), (0.0, 60.0), (300.0, 0.0)];
    for seed in 0..20 {
        let mut air = Air::sampling(sampled(PERIOD), &places, &[(2, NEVER), (3, micros(64_000))], seed);
        let mut received = Vec::new();
        for i in 0..10 {
            air.timer(Duration::from_millis(1000 * i), i as u32);
        }
        air.run(secs(11), |air, happening| match happening {
            Happening::Timer(i) => air.offer(0, None, 60, u64::from(i)).unwrap(),
            Happening::Effect(Effect::Received { at, tag, .. }) => received.push((tag, at.0)),
            Happening::Effect(_) => {}
        });
        received.sort_unstable();
        let all: Vec<_> = (0..10).flat_map(|tag| [1, 2, 3].map(|at| (tag, at))).collect();
        assert_eq!(received, all);
        assert_eq!(air.radio.metrics(Station(0)).wakeups, 2170);
    }
}

/// A frame to a station that never sleeps is sent immediately, with an immediate acknowledgement;
/// the sender sleeps before and after.
#[test]
fn a_sleeper_sends_to_one_that_listens_as_always() {
    let mut air = Air::sampling(prompt(sampled(PERIOD)), &PAIR, &[(1, NEVER)], 1);
    air.radio.show_frames();
    air.send(0, 1, 127, 7).unwrap();
    let mut done = None;
    air.run(secs(1), |air, happening| {
        if let Happening::Effect(Effect::Done { outcome, .. }) = happening {
            done = Some((air.now, outcome));
        }
    });
    assert_eq!(done, Some((after(micros(5120)), Outcome::Acknowledged)));
    let time = air.radio.state_time(air.now, Station(0));
    assert_eq!(time.transmit, micros(4256));
    // CCA, turnaround, the other's turnaround and its acknowledgement; 8 samples, or 7.
    let awake = (time.listen + time.receive).as_nanos() / 1000;
    let busy = 128 + 192 + 192 + 352;
    assert!([busy + 7 * 128, busy + 8 * 128].contains(&awake), "{awake}");
}

/// To a receiver that is down: macMaxFrameRetries further sequences, one after another, then no
/// acknowledgement.
#[test]
fn a_frame_without_acknowledgement_is_woken_for_again() {
    let mut air = Air::sampling(prompt(sampled(PERIOD)), &PAIR, &[(0, NEVER)], 1);
    air.radio.set_up(air.now, Station(1), false, &mut air.agenda);
    air.send(0, 1, 50, 0).unwrap();
    let mut ends = Vec::new();
    air.run(secs(2), |air, happening| {
        if let Happening::Effect(Effect::Done { outcome, attempts, .. }) = happening {
            ends.push((air.now, outcome, attempts));
        }
    });
    let wait = 864 + ENH_ACK;
    let once = 320 + 217 * WAKEUP + 56 * 32 + wait;
    assert_eq!(ends, [(after(micros(4 * once)), Outcome::NoAck, 4)]);
    assert_eq!(air.radio.metrics(Station(0)).wakeups, 4 * 217);
    // After it has come up, it samples at another time, and is found.
    air.radio.set_up(air.now, Station(1), true, &mut air.agenda);
    air.send(0, 1, 50, 1).unwrap();
    air.run(secs(4), |_, happening| {
        if let Happening::Effect(Effect::Done { outcome, .. }) = happening {
            ends.push((Instant::ZERO, outcome, 0));
        }
    });
    assert_eq!(ends[1].1, Outcome::Acknowledged);
}

/// A receiver that comes up with another phase: the frame sent by the old phase is lost, and the
/// next one arrives.
#[test]
fn a_phase_that_has_become_wrong_is_forgotten() {
    let mut air = Air::sampling(exact(sampled(micros(496_000))), &PAIR, &[(0, NEVER)], 1);
    let mut ends = Vec::new();
    (0..4).for_each(|i| air.timer(Duration::from_secs(10 * i), i as u32));
    air.run(secs(40), |air, happening| match happening {
        Happening::Timer(i) => {
            if i == 2 {
                air.radio.set_up(air.now, Station(1), false, &mut air.agenda);
                air.radio.set_up(air.now, Station(1), true, &mut air.agenda);
            }
            air.send(0, 1, 50, u64::from(i)).unwrap();
        }
        Happening::Effect(Effect::Done { outcome, .. }) => ends.push(outcome),
        Happening::Effect(_) => {}
    });
    use Outcome::{Acknowledged, NoAck};
    assert_eq!(ends, [Acknowledged, Acknowledged, NoAck, Acknowledged]);
}

/// A station that has a frame while the channel is occupied by a sequence for another station waits
/// for its end, and does not fail.
#[test]
fn others_wait_for_the_end_of_a_sequence() {
    let places = [(0.0, 0.0), (50.0, 0.0), (0.0, 50.0)];
    for sleeper in [PERIOD, NEVER] {
        for seed in 0..30 {
            let mut air = Air::sampling(sampled(PERIOD), &places, &[(0, NEVER), (2, sleeper)], seed);
            let mut ends = Vec::new();
            air.send(0, 1, 50, 0).unwrap();
            air.timer(micros(20_000), 0);
            air.run(secs(2), |air, happening| match happening {
                Happening::Timer(_) => air.send(2, 0, 50, 1).unwrap(),
                Happening::Effect(Effect::Done { tag, outcome, .. }) => ends.push((tag, outcome)),
                Happening::Effect(_) => {}
            });
            assert_eq!(ends, [(0, Outcome::Acknowledged), (1, Outcome::Acknowledged)], "seed {seed}");
        }
    }
}

/// Several stations that target the same sample of a receiver: their leads separate most of them.
#[test]
fn senders_to_the_same_sample_share_it() {
    let places = [(0.0, 0.0), (20.0, 0.0), (0.0, 20.0), (-20.0, 0.0), (0.0, -20.0)];
    let mut air =
        Air::sampling(sampled(PERIOD), &places, &[(1, NEVER), (2, NEVER), (3, NEVER), (4, NEVER)], 1);
    let mut ends = Vec::new();
    // Each learns the phase alone first.
    for i in 0..4 {
        air.timer(Duration::from_secs(u64::from(i)), i);
    }
    for i in 0..400 {
        air.timer(Duration::from_secs(10 + u64::from(i / 4)), i);
    }
    air.run(secs(120), |air, happening| match happening {
        Happening::Timer(i) => air.send(1 + i % 4, 0, 50, u64::from(i)).unwrap(),
        Happening::Effect(Effect::Done { outcome, .. }) => ends.push(outcome),
        Happening::Effect(_) => {}
    });
    assert_eq!(ends.len(), 404);
    let good = ends.iter().filter(|o| **o == Outcome::Acknowledged).count();
    assert!(good >= 380, "{good} of 404");
}

/// Two hidden senders that wake the same receiver at the same time: it goes back to sleep, and
/// continues to sample.
#[test]
fn a_receiver_amid_noise_goes_back_to_sleep() {
    let hidden = [(0.0, 0.0), (90.0, 0.0), (180.0, 0.0)];
    let mac = MacConfig { max_frame_retries: 0, ..MacConfig::default() };
    let config = prompt(RadioConfig { mac, ..sampled(PERIOD) });
    let mut air = Air::sampling(config, &hidden, &[(0, NEVER), (2, NEVER)], 1);
    air.send(0, 1, 100, 0).unwrap();
    air.send(2, 1, 100, 1).unwrap();
    let mut ends = Vec::new();
    air.run(secs(2), |_, happening| {
        if let Happening::Effect(Effect::Done { outcome, .. }) = happening {
            ends.push(outcome);
        }
    });
    assert_eq!(ends, [Outcome::NoAck, Outcome::NoAck]);
    let time = air.radio.state_time(air.now, Station(1));
    // At most the longest frame and two wake-up frames, once or twice, in addition to its 17
    // samples.
    let most = micros(2 * (4256 + 2 * WAKEUP + 128) + 17 * 128);
    assert!(time.listen + time.receive <= most, "{time:?}");
}

#[test]
fn a_sleeping_station_hears_nothing_between_its_samples() {
    // A stream between two other stations that never sleep: the sleeping station receives only in
    // its samples.
    let places = [(0.0, 0.0), (50.0, 0.0), (0.0, 50.0)];
    let mut air = Air::sampling(sampled(PERIOD), &places, &[(0, NEVER), (1, NEVER)], 1);
    air.saturate(&[0], 1, 127, secs(100));
    let time = air.radio.state_time(air.now, Station(2));
    let awake = (time.receive + time.listen).as_secs_f64();
    // Each of 800 samples may last until the end of the current frame, its acknowledgement and a
    // clear sample.
    let samples = 100.0 / PERIOD.as_secs_f64();
    assert!(awake > samples * 128e-6 && awake < samples * 0.0075, "{awake}");
    assert_eq!(air.radio.metrics(Station(2)).received, 0);
    assert_eq!(time.transmit + time.receive + time.listen + time.sleep, Duration::from_secs(100));
}

#[test]
fn what_cannot_be_a_period_is_refused() {
    let mut air = Air::new(sampled(PERIOD), &PAIR, 1);
    for period in [micros(128), micros(124_961)] {
        assert!(air.radio.set_csl_period(Station(0), period).is_err(), "{period:?}");
    }
    assert!(air.radio.set_csl_period(Station(0), micros(129)).is_ok());
    let mut air = Air::new(RadioConfig::o_qpsk(100.0), &PAIR, 1);
    assert!(air.radio.set_csl_period(Station(0), PERIOD).is_err());
    assert_eq!(air.send(0, 5, 10, 0), Err(SendError::NoSuchStation));
}

#[test]
fn the_other_phy_sleeps_too() {
    let phy = PhyConfig::sun_fsk();
    let config = RadioConfig::sun_fsk(100.0);
    let csl = CslConfig::new(micros(500_000), &phy);
    let (frames, _) = stream(RadioConfig { csl: Some(csl), ..config }, true, 60);
    let (always_on, _) = stream(config, false, 60);
    // The acknowledgement has 10 more bytes of 80 µs, in 18.86 ms.
    let by_hand = always_on as f64 * 18_860.0 / 19_660.0;
    assert!((frames as f64 / by_hand - 1.0).abs() < 0.02, "{frames} {by_hand}");
}
