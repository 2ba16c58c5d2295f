//! Invariants: every frame has one outcome, received frames were sent, and equal seeds give equal
//! runs.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_core::time::{Duration, Instant};
use anabranch_sim::radio::{
    Capture, Effect, LogDistance, MacConfig, Outcome, Propagation, RadioConfig, Station, UnitDisk,
};
use proptest::prelude::*;

use crate::air::{Air, Flow, Happening, after, scattered};

/// An operation of the caller.
#[derive(Clone, Copy, Debug)]
enum Op {
    Send { from: u32, to: Option<u32>, psdu_len: u16 },
    Turn { station: u32, up: bool },
}

fn op(stations: u32) -> impl Strategy<Value = Op> {
    let send = (0..stations, proptest::option::weighted(0.8, 0..stations), 1u16..=127);
    let turn = (0..stations, any::<bool>());
    prop_oneof![
        15 => send.prop_map(|(from, to, psdu_len)| Op::Send { from, to, psdu_len }),
        1 => turn.prop_map(|(station, up)| Op::Turn { station, up }),
    ]
}

fn propagation() -> impl Strategy<Value = Propagation> {
    let capture = prop_oneof![
        Just(Capture::Off),
        (1.0..4.0).prop_map(Capture::First),
        (1.0..4.0).prop_map(Capture::Any)
    ];
    let disk = (30.0..120.0, 1.0..2.0, 0.2..2.0, 0.0..0.5, capture).prop_map(
        |(range, interference, sense, loss, capture)| {
            let (interference_range, carrier_sense_range) = (range * interference, range * sense);
            Propagation::UnitDisk(UnitDisk { range, interference_range, carrier_sense_range, loss, capture })
        },
    );
    let capture = proptest::option::of(3.0..10.0);
    let model = (2.0..4.0, 0.0..8.0, capture).prop_map(|(exponent, shadowing_db, capture_sinr_db)| {
        let model = LogDistance { exponent, shadowing_db, capture_sinr_db, ..LogDistance::default() };
        Propagation::LogDistance(model)
    });
    prop_oneof![disk, model]
}

/// Outcomes of the frames of a run, by tag.
#[derive(Default)]
struct Ledger {
    accepted: BTreeMap<u64, (u32, Option<u32>)>,
    done: BTreeMap<u64, Outcome>,
    received: BTreeSet<(u32, u64)>,
}

impl Ledger {
    fn note(&mut self, effect: Effect, retries: u8) {
        match effect {
            Effect::Received { at, from, tag, .. } => {
                let (sender, to) = self.accepted[&tag];
                assert!(from.0 == sender && at != from && to.is_none_or(|to| to == at.0), "{effect:?}");
                assert!(self.received.insert((at.0, tag)), "received twice: {effect:?}");
                assert!(to.is_some() || !self.done.contains_key(&tag) || self.done[&tag] == Outcome::Sent);
            }
            Effect::Done { station, tag, outcome, attempts } => {
                let (sender, to) = self.accepted[&tag];
                assert_eq!(station.0, sender);
                assert!(self.done.insert(tag, outcome).is_none(), "done twice: {effect:?}");
                assert!(attempts <= retries + 1);
                match outcome {
                    Outcome::Acknowledged => {
                        let to = to.expect("a broadcast is not acknowledged");
                        assert!(self.received.contains(&(to, tag)), "acknowledged, not received: {effect:?}");
                    }
                    Outcome::Sent => assert!(to.is_none() && attempts == 1),
                    Outcome::NoAck => assert!(to.is_some() && attempts == retries + 1),
                    Outcome::ChannelAccessFailure | Outcome::Down => {}
                }
            }
            Effect::Frame { .. } => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_frame_has_one_end(
        propagation in propagation(),
        ops in proptest::collection::vec((0u64..6000, op(8)), 1..120),
        retries in 0u8..5,
        seed in any::<u64>(),
    ) {
        let config = RadioConfig::o_qpsk(1.0);
        let mac = MacConfig { max_frame_retries: retries, ..config.mac };
        let mut air = Air::new(RadioConfig { mac, propagation, ..config }, &scattered(8, 150.0, seed), seed);
        let mut ledger = Ledger::default();
        let mut at = Duration::ZERO;
        for (i, &(gap, _)) in ops.iter().enumerate() {
            at += Duration::from_micros(gap);
            air.timer(at, i as u32);
        }
        air.run(Instant::FAR_FUTURE, |air, happening| match happening {
            Happening::Timer(i) => match ops[i as usize].1 {
                Op::Send { from, to, psdu_len } => {
                    if air.offer(from, to, psdu_len, u64::from(i)).is_ok() {
                        ledger.accepted.insert(u64::from(i), (from, to));
                    }
                }
                Op::Turn { station, up } => air.radio.set_up(air.now, Station(station), up, &mut air.agenda),
            },
            Happening::Effect(effect) => ledger.note(effect, retries),
        });
        prop_assert!(ledger.accepted.keys().eq(ledger.done.keys()), "every frame has its end");
        let total = air.now.saturating_since(Instant::ZERO);
        for s in (0..8).map(Station) {
            let m = air.radio.metrics(s);
            let ends = m.acknowledged + m.broadcast + m.no_ack + m.channel_access_failures + m.down;
            prop_assert_eq!(m.offered, ends);
            let time = air.radio.state_time(air.now, s);
            prop_assert_eq!(time.transmit + time.receive + time.listen + time.off, total);
            prop_assert!(time.receive <= air.radio.busy_time(air.now, s));
            prop_assert!(air.radio.busy_time(air.now, s) <= total);
            for to in (0..8).map(Station) {
                let Some(link) = air.radio.link_metrics(s, to) else { continue };
                prop_assert!(link.sent >= link.acknowledged + link.lost);
                prop_assert!(link.sent == link.acknowledged + link.lost || m.down > 0);
            }
        }
    }
}

/// All effects of ten busy seconds, and the number of events.
fn trace(config: RadioConfig, places: &[(f64, f64)], seed: u64) -> (Vec<Effect>, u64) {
    let mut air = Air::new(config, places, seed);
    air.radio.show_frames();
    let to = |from: u32| (!from.is_multiple_of(5)).then(|| (from + 1) % 20);
    let flows: Vec<Flow> = (0..20).map(|from| Flow { from, to: to(from), psdu_len: 60, rate: 8.0 }).collect();
    let mut trace = Vec::new();
    air.poisson(&flows, 9, after(Duration::from_secs(10)), |&effect| trace.push(effect));
    (trace, air.agenda.scheduled())
}

#[test]
fn the_same_seed_is_the_same_run_and_stations_out_of_range_change_nothing() {
    for config in [
        RadioConfig {
            propagation: Propagation::UnitDisk(UnitDisk { loss: 0.1, ..UnitDisk::new(60.0) }),
            ..RadioConfig::o_qpsk(60.0)
        },
        RadioConfig::o_qpsk(60.0).with_log_distance(LogDistance::default()),
    ] {
        let mut places = scattered(20, 150.0, 4);
        let first = trace(config, &places, 4);
        assert!(first.0.len() > 3000 && first.0.iter().any(|e| matches!(e, Effect::Received { .. })));
        assert!(first == trace(config, &places, 4), "the same seed");
        assert!(first != trace(config, &places, 5), "another seed");
        places.extend([(1e5, 0.0), (1e5, 10.0), (-1e6, 3.0)]);
        assert!(first == trace(config, &places, 4), "stations far away");
    }
}
