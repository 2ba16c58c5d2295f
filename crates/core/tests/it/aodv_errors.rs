//! Route lifetimes, errors and repairs, section by section of RFC 3561.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use crate::aodv_world::{Fate, World, node};
use anabranch_core::aodv::{Config, Event, LocalRepair, RouteState, SequenceNumber, To};
use anabranch_core::time::Duration;
use anabranch_wire::aodv::{Message, RouteError, Unreachable};

const VALID: RouteState = RouteState::Valid;
const INVALID: RouteState = RouteState::Invalid;

fn still() -> Config {
    Config { jitter: Duration::ZERO, ..Config::default() }
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A row in which node 1 and the last node have exchanged packets, with no message left in transit.
fn talking(config: Config, nodes: u8) -> World {
    let mut world = World::row(config, nodes);
    world.send(1, nodes);
    world.run(millis(2_000));
    assert_eq!(world.send(1, nodes), Fate::Delivered(usize::from(nodes) - 1));
    assert_eq!(world.send(nodes, 1), Fate::Delivered(usize::from(nodes) - 1));
    world.log.clear();
    world.events.clear();
    world
}

fn broken(destinations: &[u8]) -> Event {
    Event::Broken { destinations: destinations.iter().map(|n| node(*n)).collect() }
}

/// Section 6.2: each use extends the routes to source, destination and both neighbours by
/// ACTIVE_ROUTE_TIMEOUT. Section 6.11 and the constants: then the route expires, and it is deleted
/// after DELETE_PERIOD.
#[test]
fn use_keeps_routes_and_silence_ends_them() {
    let mut world = talking(still(), 4);
    for _ in 0..20 {
        world.run(millis(2_900));
        assert_eq!(world.send(1, 4), Fate::Delivered(3));
    }
    assert!(world.log.is_empty(), "no search was needed");
    let until = world.now + secs(3);
    for (at, to) in [(2, 1), (2, 4), (2, 3), (3, 1), (3, 2), (1, 2), (4, 3), (4, 1)] {
        assert_eq!(world.routers[&at].entry(node(to)).unwrap().expires, until, "{to} at {at}");
    }
    world.run(millis(2_999));
    assert_eq!(world.route(2, 4), Some((3, 2, VALID)));
    let before = world.routers[&2].entry(node(4)).unwrap().sequence.unwrap();
    world.run(millis(1));
    assert_eq!(world.route(2, 4), Some((3, 2, INVALID)));
    assert_eq!(world.routers[&2].entry(node(4)).unwrap().sequence, Some(before.next()));
    world.run(millis(14_999));
    assert!(world.route(2, 4).is_some());
    world.run(millis(1));
    assert_eq!(world.route(2, 4), None);
    assert!(world.events.is_empty(), "a time that is over is no break");
}

/// Section 6.11 case i: the list, the sequence numbers, and the propagation from precursor to
/// precursor.
#[test]
fn a_break_is_reported_to_those_who_use_the_route() {
    let mut world = talking(still(), 5);
    world.up(3, 6);
    world.join(6, still());
    let known = world.routers[&3].entry(node(5)).unwrap().sequence.unwrap();
    world.down(3, 4);
    assert_eq!(world.send(1, 5), Fate::Broke(3));
    world.run(millis(20));
    let errors = world.errors();
    let listed = |error: &RouteError| error.unreachable.iter().map(|u| u.destination).collect::<Vec<_>>();
    assert_eq!((errors[0].0, errors[0].1), (3, To::Neighbour(node(2))), "one listener gets it alone");
    assert_eq!(listed(&errors[0].2), [node(4), node(5)]);
    assert_eq!(errors[0].2.unreachable[1].sequence, known.next());
    assert_eq!((errors[1].0, errors[1].1, listed(&errors[1].2)), (2, To::Neighbour(node(1)), vec![node(5)]));
    assert_eq!(errors.len(), 2, "node 1 has no precursor, and node 6 is none");
    for n in 1..=3 {
        let entry = world.routers[&n].entry(node(5)).unwrap();
        assert_eq!((entry.state, entry.sequence), (INVALID, Some(known.next())), "copied by {n}");
    }
    assert!(world.events.iter().any(|(_, n, event)| *n == 3 && *event == broken(&[4, 5])));
    assert!(world.events.iter().any(|(_, n, event)| *n == 1 && *event == broken(&[5])), "{:?}", world.events);
    // The routes on the other side of the broken link at 3 stay valid until they are used.
    assert_eq!(world.route(4, 5), Some((5, 1, VALID)));
    assert_eq!(world.send(1, 5), Fate::Waits(1));
}

/// Several precursors get one broadcast with TTL 1.
#[test]
fn two_listeners_hear_a_broadcast() {
    let mut world = talking(still(), 4);
    world.up(6, 2);
    world.join(6, still());
    world.send(6, 4);
    world.run(millis(1_000));
    assert_eq!(world.send(6, 4), Fate::Delivered(3));
    world.log.clear();
    world.down(2, 3);
    let now = world.now;
    world.router(2).handle_link_break(now, node(3), None);
    world.run(millis(20));
    let (from, to, error) = world.errors()[0].clone();
    assert_eq!((from, to), (2, To::Broadcast));
    assert_eq!(world.log[0].ttl, 1);
    assert!(error.unreachable.iter().any(|u| u.destination == node(4)));
    assert_eq!((world.route(1, 4).unwrap().2, world.route(6, 4).unwrap().2), (INVALID, INVALID));
}

/// Section 6.11 case iii: an error counts only from the next hop of the route.
#[test]
fn an_error_of_somebody_else_changes_nothing() {
    let mut world = talking(still(), 4);
    let unreachable = vec![Unreachable { destination: node(4), sequence: SequenceNumber(900) }];
    let error = Message::Error(RouteError { no_delete: false, unreachable });
    world.tell(2, 1, 1, &error);
    assert_eq!(world.route(2, 4), Some((3, 2, VALID)));
    world.tell(2, 3, 1, &error);
    assert_eq!(world.route(2, 4), Some((3, 2, INVALID)));
    assert_eq!(world.routers[&2].entry(node(4)).unwrap().sequence, Some(SequenceNumber(900)));
}

/// An error with an old number also ends the route, with the next number: a number never decreases.
#[test]
fn a_number_never_falls() {
    let mut world = talking(still(), 4);
    let known = world.routers[&2].entry(node(4)).unwrap().sequence.unwrap();
    for old in [known.previous(), SequenceNumber(0)] {
        let mut world = talking(still(), 4);
        let unreachable = vec![Unreachable { destination: node(4), sequence: old }];
        world.tell(2, 3, 1, &Message::Error(RouteError { no_delete: false, unreachable }));
        let entry = world.routers[&2].entry(node(4)).unwrap();
        assert_eq!((entry.state, entry.sequence), (INVALID, Some(known.next())));
    }
    // A message from the neighbour undoes the increment of the break.
    let now = world.now;
    world.router(3).handle_link_break(now, node(4), None);
    world.tell(
        3,
        4,
        1,
        &Message::Error(RouteError {
            no_delete: true,
            unreachable: vec![Unreachable { destination: node(77), sequence: known }],
        }),
    );
    assert_eq!(world.routers[&3].entry(node(4)).unwrap().state, INVALID, "an error makes no route");
    let hello = anabranch_wire::aodv::RouteReply {
        repair: false,
        acknowledge: false,
        prefix_size: 0,
        hop_count: 3,
        destination: node(99),
        destination_sequence: known,
        originator: node(98),
        lifetime: 1,
        hello_interval: None,
    };
    world.tell(3, 4, 1, &Message::Reply(hello));
    let entry = world.routers[&3].entry(node(4)).unwrap();
    assert_eq!((entry.state, entry.sequence), (VALID, Some(known)));
}

/// Section 6.11 case ii: a packet without a route is answered with an error, so that no further
/// packet follows.
#[test]
fn a_packet_without_a_route_is_answered() {
    let mut world = talking(still(), 4);
    let now = world.now;
    // The link is lost, and so is the error about it.
    world.router(3).handle_link_break(now, node(4), None);
    while world.router(3).poll_transmit(0).is_some() {}
    let number = world.routers[&3].entry(node(4)).unwrap().sequence.unwrap();
    assert_eq!(world.send(1, 4), Fate::Dropped(3));
    world.run(millis(20));
    let (from, to, error) = world.errors()[0].clone();
    assert_eq!((from, to), (3, To::Neighbour(node(2))));
    assert_eq!(
        error.unreachable,
        [Unreachable { destination: node(4), sequence: number }],
        "not counted again"
    );
    assert_eq!(world.route(1, 4).unwrap().2, INVALID);
    assert_eq!(world.send(1, 4), Fate::Waits(1));
}

/// RERR_RATELIMIT.
#[test]
fn no_more_than_ten_errors_leave_in_a_second() {
    let mut world = World::row(still(), 2);
    for n in 50..80 {
        let now = world.now;
        world.router(2).forward(now, node(n), node(1));
        world.run(millis(1));
    }
    assert_eq!(world.errors().len(), 10);
    assert_eq!(world.routers[&2].counters().errors_suppressed, 20);
}

fn repairing() -> Config {
    Config { local_repair: LocalRepair::On, ..still() }
}

/// Section 6.12: the node before the break sends a request and holds packets. The TTL is
/// max(MIN_REPAIR_TTL, 0.5 #hops) plus LOCAL_ADD_TTL. A longer route is reported with the N flag,
/// and no node deletes a route for it.
#[test]
fn a_local_repair_finds_another_way() {
    let mut world = talking(repairing(), 5);
    // 3 - 6 - 7 - 5 is a path around 4.
    for n in [6, 7] {
        world.join(n, repairing());
    }
    world.up(3, 6);
    world.up(6, 7);
    world.up(7, 5);
    world.down(3, 4);
    assert_eq!(world.send(1, 5), Fate::Broke(3));
    assert_eq!(world.route(3, 5), Some((4, 2, RouteState::Repairing)));
    assert_eq!(world.requests()[0].1, 2 + 2);
    assert_eq!(world.send(1, 5), Fate::Waits(3), "the next packet waits there as well");
    world.run(millis(100));
    assert!(world.events.iter().any(|(_, n, e)| *n == 3 && *e == Event::Found { destination: node(5) }));
    let no_delete: Vec<_> = world.errors().into_iter().filter(|(.., e)| e.no_delete).collect();
    let to: Vec<_> = no_delete.iter().map(|(from, to, _)| (*from, *to)).collect();
    assert_eq!(to, [(3, To::Neighbour(node(2))), (2, To::Neighbour(node(1)))]);
    assert_eq!(world.route(1, 5), Some((2, 4, VALID)), "kept");
    assert_eq!(world.send(1, 5), Fate::Delivered(5));
    assert_eq!(world.routers[&3].counters().repaired, 1);
    assert!(!world.events.iter().any(|(_, n, e)| *n == 1 && matches!(e, Event::Broken { .. })));
}

/// Section 6.12: a failed repair is reported as a break after the time-out of the ring.
#[test]
fn a_local_repair_may_fail() {
    let mut world = talking(repairing(), 5);
    world.down(3, 4);
    let start = world.now;
    world.send(1, 5);
    world.run(millis(400));
    let about_five = |world: &World| {
        world.errors().iter().any(|(.., e)| e.unreachable.iter().any(|u| u.destination == node(5)))
    };
    assert!(!about_five(&world));
    // 80 ms (4 + 2).
    world.run(millis(100));
    assert!(about_five(&world));
    let failed = (start + millis(480), 3, Event::Failed { destination: node(5) });
    assert!(world.events.contains(&failed), "{:?}", world.events);
    assert_eq!(world.route(3, 5).unwrap().2, INVALID);
    assert_eq!(world.route(1, 5).unwrap().2, INVALID);
}

/// Section 6.12: no repair beyond MAX_REPAIR_TTL, and none for a packet of the node itself.
#[test]
fn a_local_repair_is_for_near_destinations_of_others() {
    let mut world = talking(Config { max_repair_ttl: 1, ..repairing() }, 5);
    world.down(3, 4);
    world.send(1, 5);
    assert_eq!(world.route(3, 5).unwrap().2, INVALID);
    let mut world = talking(repairing(), 5);
    world.down(1, 2);
    assert_eq!(world.send(1, 5), Fate::Broke(1));
    assert_eq!(world.route(1, 5).unwrap().2, INVALID);
    assert_eq!(world.events[0].2, broken(&[2, 5]));
}

/// Section 6.13: silence for DELETE_PERIOD; packets are refused, and each extends the silence.
#[test]
fn a_node_that_rebooted_is_quiet() {
    let mut world = talking(still(), 4);
    let now = world.now;
    world.router(2).reset(now);
    world.run(secs(1));
    assert_eq!(world.send(1, 4), Fate::Dropped(2));
    let quiet = world.now + secs(15);
    world.run(millis(10));
    assert_eq!(world.errors()[0].2.unreachable[0].sequence, SequenceNumber(0), "it knows no number");
    assert_eq!(world.route(1, 4).unwrap().2, INVALID);
    assert_eq!(world.send(1, 4), Fate::Waits(1));
    let now = world.now;
    assert_eq!(world.router(2).route(now, node(4)), anabranch_core::aodv::Route::Discovering);
    world.run(secs(4));
    assert!(world.route(2, 1).is_some(), "it learns");
    assert!(world.log.iter().all(|sent| sent.from != 2 || matches!(sent.message, Message::Error(_))));
    assert_eq!(world.routers[&2].quiet_until(), Some(quiet));
    let mut fate = Fate::Waits(1);
    while world.now < quiet + secs(12) && fate != Fate::Delivered(3) {
        world.run(millis(500));
        fate = world.send(1, 4);
    }
    assert_eq!(fate, Fate::Delivered(3));
    assert!(
        world
            .events
            .iter()
            .any(|(at, n, e)| *n == 2 && *at >= quiet && *e == Event::Found { destination: node(4) })
    );
}
