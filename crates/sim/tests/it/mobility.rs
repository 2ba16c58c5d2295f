//! Moving stations on both radios: reception depends on the positions at the start of a frame.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use anabranch_core::time::{Duration, Instant};
use anabranch_sim::air::motion::{Area, Motion, RandomWaypoint, trace};
use anabranch_sim::event::{Agenda, Event};
use anabranch_sim::radio::{self, Mover, Position, Radio, RadioConfig, Station};
use anabranch_sim::random::Stream;
use anabranch_sim::wifi::{self, Wifi, WifiConfig};

fn after(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn stream(station: Station, purpose: &str) -> Stream {
    Stream::new(5, 0, &format!("station {}", station.0), purpose)
}

/// Station 1 passes station 0 at a distance of 60 m, in 60 s from 300 m west to 300 m east of it.
fn passer_by() -> Vec<(Station, Mover)> {
    let text = "$node_(1) set X_ -300\n$node_(1) set Y_ 60\n$ns_ at 0.0 \"$node_(1) setdest 300 60 10\"\n";
    let traces = trace::read(text).unwrap();
    let mover = |legs: &std::sync::Arc<[_]>| {
        Mover::new(&Motion::Trace(legs.clone()), None, stream(Station(1), "trace"))
    };
    traces.iter().map(|(node, legs)| (Station(*node), mover(legs))).collect()
}

/// Whether each of 600 frames, one every 100 ms, should be received: within 100 m.
fn expected() -> Vec<bool> {
    // sqrt(60² + 80²) = 100 m.
    (0..600).map(|i| (-300.0 + f64::from(i)).abs() <= 80.0).collect()
}

const TICK: Event = Event::Fault(0);

#[test]
fn a_passer_by_is_heard_over_802_11_while_it_is_near() {
    let places = [Position::default(); 2];
    let mut wifi = Wifi::with_movers(WifiConfig::dsss(100.0), &places, passer_by(), stream).unwrap();
    let mut agenda = Agenda::default();
    let mut heard = vec![false; 600];
    // 30 ms after each position of the list: a frame begins within 20 ms, in which the station
    // moves 0.2 m.
    (0..600).for_each(|i| agenda.push(after(100 * i + 30), TICK));
    let mut sent = 0;
    while let Some((now, event)) = agenda.pop() {
        match event {
            Event::Medium { station, what, generation, .. } => {
                wifi.handle_event(now, station, what, generation, &mut agenda);
            }
            _ => {
                let frame = wifi::Outgoing { to: None, mpdu_len: 100, tag: sent };
                wifi.send(now, Station(1), frame, &mut agenda).unwrap();
                sent += 1;
            }
        }
        while let Some(effect) = wifi.poll_effect() {
            if let wifi::Effect::Received { at: Station(0), tag, .. } = effect {
                heard[tag as usize] = true;
            }
        }
    }
    // The range boundary is crossed within the half metre between two frames.
    let wrong: Vec<usize> = (0..600).filter(|i| heard[*i] != expected()[*i]).collect();
    assert!(wrong.iter().all(|i| [220, 380].contains(i)), "{wrong:?}");
}

#[test]
fn a_passer_by_is_heard_over_802_15_4_and_acknowledged_while_it_is_near() {
    let places = [Position::default(); 2];
    let mut radio = Radio::with_movers(RadioConfig::o_qpsk(100.0), &places, passer_by(), stream).unwrap();
    let mut agenda = Agenda::default();
    let mut acknowledged = vec![false; 600];
    (0..600).for_each(|i| agenda.push(after(100 * i + 30), TICK));
    let mut sent = 0;
    while let Some((now, event)) = agenda.pop() {
        match event {
            Event::Medium { station, what, generation, .. } => {
                radio.handle_event(now, station, what, generation, &mut agenda);
            }
            _ => {
                let frame = radio::Outgoing { to: Some(Station(0)), psdu_len: 60, tag: sent, pending: false };
                radio.send(now, Station(1), frame, &mut agenda).unwrap();
                sent += 1;
            }
        }
        while let Some(effect) = radio.poll_effect() {
            if let radio::Effect::Done { tag, outcome: radio::Outcome::Acknowledged, .. } = effect {
                acknowledged[tag as usize] = true;
            }
        }
    }
    let wrong: Vec<usize> = (0..600).filter(|i| acknowledged[*i] != expected()[*i]).collect();
    assert!(wrong.iter().all(|i| [219, 220, 380].contains(i)), "{wrong:?}");
    let link = radio.link_metrics(Station(1), Station(0)).unwrap();
    // Four attempts for each frame that is not received.
    assert!(link.acknowledged == 160 || link.acknowledged == 161, "{link:?}");
    assert_eq!(link.lost, 4 * (600 - link.acknowledged));
}

#[test]
fn whatever_moves_the_channel_is_clear_in_the_end() {
    // A hundred times as fast as any vehicle: stations enter and leave the range during frames.
    let plan = RandomWaypoint {
        area: Area { corner: Position::default(), width: 600.0, height: 600.0 },
        slowest: 1000.0,
        fastest: 9000.0,
        pause: Duration::ZERO,
    };
    let movers = (0..20).map(|i| {
        let random = stream(Station(i), "mobility");
        (Station(i), Mover::new(&Motion::RandomWaypoint(plan), None, random))
    });
    let places = [Position::default(); 20];
    let mut wifi = Wifi::with_movers(WifiConfig::ns2(100.0), &places, movers.collect(), stream).unwrap();
    let mut agenda = Agenda::default();
    let mut received = 0;
    (0..20).for_each(|i| agenda.push(after(0), Event::Fault(i)));
    while let Some((now, event)) = agenda.pop() {
        let next = |wifi: &mut Wifi, agenda: &mut Agenda, station: u32, tag: u64| {
            let to = (!tag.is_multiple_of(3)).then_some(Station((station + 1 + tag as u32 % 19) % 20));
            if now < after(2000) {
                wifi.send(now, Station(station), wifi::Outgoing { to, mpdu_len: 700, tag }, agenda).unwrap();
            }
        };
        match event {
            Event::Medium { station, what, generation, .. } => {
                wifi.handle_event(now, station, what, generation, &mut agenda);
            }
            Event::Fault(station) => next(&mut wifi, &mut agenda, station, u64::from(station)),
            other => panic!("{other:?}"),
        }
        while let Some(effect) = wifi.poll_effect() {
            match effect {
                wifi::Effect::Done { station, tag, .. } => next(&mut wifi, &mut agenda, station.0, tag + 7),
                wifi::Effect::Received { .. } => received += 1,
                _ => {}
            }
        }
    }
    assert!(received > 200, "{received}");
    for station in (0..20).map(Station) {
        assert_eq!(wifi.busy_time(after(10_000), station), wifi.busy_time(after(20_000), station));
    }
}
