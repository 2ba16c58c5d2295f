//! Faulty clocks, hops and senders, and their effect on other senders.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_core::rdca::{Config, PeerId};
use anabranch_core::time::Duration;
use anabranch_testkit::rdca::{Case, Change, Link, Source, Way, World, step_run};
use anabranch_wire::rdca::Message;

/// A clock that is not set until the first answer of a time server.
#[test]
fn a_clock_that_is_set_back_by_minutes_stops_no_sender() {
    for step in [-1_500, -10_000, -60_000, -600_000, -1_800_000] {
        for (offered, loss) in [(13.3, 50), (133.0, 0), (133.0, 20)] {
            let mut config = Config::default();
            (config.sender.queue_packets, config.sink.reorder_packets) = (512, 512);
            let changes = vec![Change::Clock(1, step), Change::Clock(1, 0), Change::Clock(1, 0)];
            let case = Case { loss, ..Case::plain(1, offered, 100.0, changes) };
            let steps = step_run(&case, config, 1);
            assert!(steps.worst().0 >= 0.85 && steps.gone == 0, "{step} ms, {case:?}: {steps:#?}");
        }
    }
}

/// Senders that join one after the other at intervals of `apart`, each with a packet every `every`,
/// over a bottleneck with a path of 20 ms.
fn crowd(senders: u64, apart: Duration, every: Duration, service: Duration, config: Config) -> World {
    let source = |i| {
        let mut source = Source::new(every, u32::MAX);
        source.next += apart * i;
        source
    };
    let up = Link { service, ..Link::new(20) };
    let mut world = World::new(config, (0..senders).map(source).collect(), up, Link::new(20), 1);
    world.records = false;
    world
}

/// A quarter of the capacity is in use. One sender of ten loses 20 packets every 3 s on its own
/// hop.
#[test]
fn an_outage_of_one_senders_own_hop_slows_no_other() {
    let (ms, us) = (Duration::from_millis, Duration::from_micros);
    let mut config = Config::default();
    (config.sender.queue_packets, config.sink.reorder_packets) = (200, 512);
    let mut world = crowd(10, ms(3), ms(20), us(500), config);
    let mut sent = 0;
    world.rule = Some(Box::new(move |_, way, message| {
        if way != Way::Up(0) || !matches!(message, Message::Data(_)) {
            return true;
        }
        sent += 1;
        sent < 1000 || sent % 150 >= 20
    }));
    world.run_for(330);
    for (i, source) in world.sources.iter().enumerate().skip(1) {
        let congestions = world.senders[i].info().counters.congestions;
        assert_eq!((source.refused, congestions), (0, 0), "sender {i}");
    }
}

/// One of 50 senders claims a round-trip time of an hour once a second, in a copy of its last
/// packet.
#[test]
fn a_forged_round_trip_does_not_stop_the_sharing_of_a_full_queue() {
    let overflows = |forged: bool| {
        let (apart, every) = (Duration::from_millis(37), Duration::from_secs_f64(1.0 / 13.3));
        let mut world = crowd(50, apart, every, Duration::from_millis(3), Config::default());
        let last = Rc::new(RefCell::new(None));
        let kept = Rc::clone(&last);
        world.rule = Some(Box::new(move |_, way, message| {
            if let (Way::Up(0), Message::Data(data)) = (way, message) {
                kept.replace(Some(data.clone()));
            }
            true
        }));
        for _ in 0..200 {
            world.run(world.now + Duration::from_secs(1), |_| false);
            if let (true, Some(mut data)) = (forged, last.borrow().clone()) {
                data.rtt = Some(u32::MAX);
                world.sink.handle_message(world.now, PeerId(0), &Message::Data(data));
            }
        }
        world.up.overflows
    };
    let (honest, forged) = (overflows(false), overflows(true));
    assert!(forged <= honest * 2 + 100, "{honest} packets overflow, {forged} with a forged round trip");
}
