//! Route discovery, section by section of RFC 3561.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use crate::aodv_world::{Fate, HOP, World, node};
use anabranch_core::aodv::{
    Config, Event, Hello, IntermediateReplies, ReplyAcks, Route, RouteState, SequenceNumber, To,
};
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::aodv::{Message, RouteReply, RouteRequest};

const VALID: RouteState = RouteState::Valid;

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Times in milliseconds and TTLs of the messages that node 1 sent.
fn ring(world: &World) -> Vec<(u64, u8)> {
    let of_one = world.log.iter().filter(|s| s.from == 1 && matches!(s.message, Message::Request(_)));
    of_one.map(|sent| (sent.at.as_nanos() / 1_000_000, sent.ttl)).collect()
}

fn still(config: Config) -> Config {
    Config { jitter: Duration::ZERO, ..config }
}

/// Sections 6.3 and 6.4: TTL 1, 3, 5, 7 with RING_TRAVERSAL_TIME = 80 ms (TTL + 2) each, then
/// NET_DIAMETER three times with 2.8 s, 5.6 s and 11.2 s, then "Destination Unreachable".
#[test]
fn rings_widen_and_then_back_off() {
    let mut world = World::new(still(Config::default()), 1, 1);
    assert_eq!(world.send(1, 9), Fate::Waits(1));
    world.run(Duration::from_secs(60));
    let waits = [0, 240, 400, 560, 720, 2_800, 5_600, 11_200];
    let at: Vec<u64> = waits
        .iter()
        .scan(0, |t, w| {
            *t += w;
            Some(*t)
        })
        .collect();
    let ttls = [1, 3, 5, 7, 35, 35, 35];
    assert_eq!(ring(&world), at.iter().copied().zip(ttls).collect::<Vec<_>>());
    let failed = Event::Failed { destination: node(9) };
    assert_eq!(world.events, [(Instant::ZERO + millis(at[7]), 1, failed)]);
    assert_eq!(world.routers[&1].next_timeout(), None);
    let (sequences, ids): (Vec<_>, Vec<_>) =
        world.requests().iter().map(|(_, _, r)| (r.originator_sequence.0, r.id)).unzip();
    assert_eq!(sequences, [1, 2, 3, 4, 5, 6, 7], "section 6.1: incremented before each");
    assert_eq!(ids, [1, 2, 3, 4, 5, 6, 7]);
    assert!(world.requests().iter().all(|(_, _, r)| r.destination_sequence.is_none() && r.hop_count == 0));
}

/// ns-2.35: TTL 5, 7, then 30; no buffer in the time-out of a ring; no search for 10 s after a
/// failure.
#[test]
fn ns2_preset_searches_as_ns2() {
    let mut world = World::new(still(Config::ns2()), 1, 1);
    world.send(1, 9);
    world.run(Duration::from_secs(40));
    let ttls: Vec<_> = ring(&world).iter().map(|(_, ttl)| *ttl).collect();
    assert_eq!(ttls, [5, 7, 30, 30, 30, 30]);
    assert_eq!(ring(&world)[..3], [(0, 5), (300, 7), (720, 30)]);
    // 720 ms + 1.8 s (1 + 2 + 4 + 8).
    assert_eq!(world.events[0].0, Instant::ZERO + millis(27_720));
    world.now = Instant::ZERO + millis(37_719);
    assert_eq!(world.send(1, 9), Fate::Dropped(1));
    world.now += millis(1);
    assert_eq!(world.send(1, 9), Fate::Waits(1));
}

/// Section 6.4: the first TTL of a new search is the last known distance plus TTL_INCREMENT.
#[test]
fn a_known_distance_sets_the_first_ring() {
    let mut world = World::row(still(Config::default()), 4);
    // 3 hops need the second ring, after 240 ms.
    assert_eq!(world.connect(1, 4), Fate::Delivered(3));
    world.run(Duration::from_secs(10));
    world.log.clear();
    assert_eq!(world.send(1, 4), Fate::Waits(1));
    assert_eq!(world.requests()[0].1, 3 + 2);
    let known = world.requests()[0].2.destination_sequence;
    assert_eq!(known, Some(SequenceNumber(1)), "0 of the destination, and one for the end of its time");
}

/// Section 6.3: RREQ_RATELIMIT.
#[test]
fn no_more_than_ten_requests_leave_in_a_second() {
    let mut world = World::new(still(Config::default()), 1, 1);
    for n in 10..30 {
        world.send(1, n);
    }
    world.run(Duration::from_secs(30));
    let at: Vec<u64> = ring(&world).iter().map(|(at, _)| *at).collect();
    assert!(at.windows(11).all(|w| w[10] - w[0] >= 1_000), "{at:?}");
    let all: Vec<_> = world.requests().iter().map(|(_, _, r)| r.destination).collect();
    assert!((10..30).all(|n| all.contains(&node(n))));
}

/// Sections 6.5 and 6.7: each node has a route in each direction, with hop count, next hop and
/// lifetime, over the shortest path.
#[test]
fn a_search_leaves_routes_both_ways() {
    let mut world = World::row(still(Config::default()), 4);
    // A longer path.
    world.up(2, 5);
    world.join(5, still(Config::default()));
    world.up(5, 6);
    world.join(6, still(Config::default()));
    world.up(6, 4);
    world.send(1, 4);
    world.run(millis(1_000));
    assert_eq!(world.route(1, 4), Some((2, 3, VALID)));
    assert_eq!(world.route(2, 4), Some((3, 2, VALID)));
    assert_eq!(world.route(3, 4), Some((4, 1, VALID)));
    assert_eq!(world.route(4, 1), Some((3, 3, VALID)));
    assert_eq!(world.route(3, 1), Some((2, 2, VALID)));
    assert_eq!(world.events.last().unwrap().2, Event::Found { destination: node(4) });
    let found = world.events.last().unwrap().0;
    let entry = world.routers[&1].entry(node(4)).unwrap();
    assert_eq!(entry.expires, found + Config::default().my_route_timeout);
    // Section 6.7: each node's precursor is the node to which it sent the reply.
    let precursors =
        |world: &World, n: u8, to: u8| world.routers[&n].entry(node(to)).unwrap().precursors.clone();
    assert_eq!(precursors(&world, 2, 4), [node(1)]);
    assert_eq!(precursors(&world, 3, 4), [node(2)]);
    assert_eq!(precursors(&world, 2, 3), [node(1)], "and of the next hop too");
    // Section 6.5: now + 2 NET_TRAVERSAL_TIME - 2 hops NODE_TRAVERSAL_TIME, at node 4 from the
    // first copy.
    let reverse = world.routers[&4].entry(node(1)).unwrap();
    let asked = Instant::from_nanos(found.as_nanos() - 3_000_000);
    assert_eq!(reverse.expires, asked + millis(5_600 - 240));
    let Some(last) = world.replies().last().copied() else { panic!("a reply") };
    assert_eq!((last.0, last.1, last.2.hop_count), (2, To::Neighbour(node(1)), 2));
    assert_eq!(world.send(1, 4), Fate::Delivered(3));
    assert_eq!(world.send(4, 1), Fate::Delivered(3));
}

/// Section 6.5: a request, identified by its originator and ID, is processed once in
/// PATH_DISCOVERY_TIME.
#[test]
fn a_request_is_known_again() {
    let mut world = World::new(still(Config::default()), 1, 1);
    let request = RouteRequest {
        join: false,
        repair: false,
        gratuitous: false,
        destination_only: false,
        hop_count: 1,
        id: 7,
        destination: node(9),
        destination_sequence: None,
        originator: node(8),
        originator_sequence: SequenceNumber(5),
    };
    let tell = |world: &mut World| world.tell(1, 2, 4, &Message::Request(request));
    tell(&mut world);
    tell(&mut world);
    assert_eq!(
        world.requests(),
        [(1, 3, RouteRequest { hop_count: 2, ..request })],
        "TTL less one, a hop more"
    );
    world.run(millis(5_599));
    tell(&mut world);
    assert_eq!(world.requests().len(), 1);
    world.run(millis(1));
    tell(&mut world);
    assert_eq!(world.requests().len(), 2);
    world.tell(1, 2, 1, &Message::Request(RouteRequest { id: 8, ..request }));
    assert_eq!(world.requests().len(), 2, "TTL 1 goes no further");
    let own = RouteRequest { id: 9, originator: node(1), ..request };
    world.tell(1, 2, 4, &Message::Request(own));
    assert_eq!(world.requests().len(), 2, "the node's own comes back");
}

fn reply(sequence: u32, hop_count: u8) -> RouteReply {
    RouteReply {
        repair: false,
        acknowledge: false,
        prefix_size: 0,
        hop_count,
        destination: node(9),
        destination_sequence: SequenceNumber(sequence),
        originator: node(1),
        lifetime: 6_000,
        hello_interval: None,
    }
}

/// Section 6.7: a route must be newer, or equally new and shorter; section 6.1: also when numbers
/// wrap.
#[test]
fn news_is_what_is_newer_or_shorter() {
    let mut world = World::new(still(Config::default()), 1, 1);
    let mut hear = |from, sequence, hops| {
        world.tell(1, from, 10, &Message::Reply(reply(sequence, hops)));
        let (next, hops, _) = world.route(1, 9).unwrap();
        (next, hops)
    };
    assert_eq!(hear(2, u32::MAX, 4), (2, 5));
    assert_eq!(hear(3, u32::MAX, 4), (2, 5), "as new and as long");
    assert_eq!(hear(3, u32::MAX, 3), (3, 4), "as new and shorter");
    assert_eq!(hear(4, u32::MAX - 1, 0), (3, 4), "older");
    assert_eq!(hear(4, 0, 9), (4, 10), "newer, since it has wrapped");
    assert_eq!(hear(2, u32::MAX, 0), (4, 10));
    assert_eq!(hear(2, 1, 255), (4, 10), "too far");
    assert_eq!(world.routers[&1].counters().refused, 1);
}

/// Section 6.7 (iii): an equal number is accepted while the route is invalid.
#[test]
fn a_route_that_broke_wants_a_newer_number() {
    let mut world = World::new(still(Config::default()), 1, 1);
    world.tell(1, 2, 10, &Message::Reply(reply(5, 1)));
    let now = world.now;
    world.router(1).handle_link_break(now, node(2), None);
    world.tell(1, 3, 10, &Message::Reply(reply(5, 1)));
    assert_eq!(world.route(1, 9), Some((2, 2, RouteState::Invalid)), "section 6.11: it counts 6 now");
    world.tell(1, 3, 10, &Message::Reply(reply(6, 1)));
    assert_eq!(world.route(1, 9), Some((3, 2, VALID)));
}

/// Sections 6.6.1 and 6.1: the destination takes over the number in the request if it is newer.
#[test]
fn a_destination_takes_the_number_it_is_asked_for() {
    for (asked, own) in [(None, 0), (Some(0), 0), (Some(1), 1), (Some(5), 5), (Some(u32::MAX), 0)] {
        let mut world = World::new(still(Config::default()), 1, 1);
        let request = RouteRequest {
            join: false,
            repair: false,
            gratuitous: false,
            destination_only: true,
            hop_count: 0,
            id: 7,
            destination: node(1),
            destination_sequence: asked.map(SequenceNumber),
            originator: node(2),
            originator_sequence: SequenceNumber(5),
        };
        world.up(1, 2);
        world.join(2, Config::default());
        world.tell(1, 2, 1, &Message::Request(request));
        let (_, to, said) = world.replies()[0];
        assert_eq!((to, said.destination_sequence.0, said.hop_count), (To::Neighbour(node(2)), own, 0));
        assert_eq!((said.lifetime, said.originator), (6_000, node(2)));
        assert_eq!(world.routers[&1].sequence().0, own);
    }
}

/// Section 6.6.2: an intermediate node answers with its own distance and the remaining lifetime.
#[test]
fn a_node_on_the_way_answers() {
    let mut world = World::row(still(Config::default()), 4);
    world.send(2, 4);
    world.run(millis(1_000));
    assert_eq!(world.send(2, 4), Fate::Delivered(2));
    world.log.clear();
    let (left, at) = (world.routers[&2].entry(node(4)).unwrap().expires, world.now);
    assert_eq!(world.send(1, 4), Fate::Waits(1));
    world.run(millis(10));
    let (from, to, said) = world.replies()[0];
    assert_eq!((from, to, said.hop_count, said.destination), (2, To::Neighbour(node(1)), 2, node(4)));
    assert_eq!(u64::from(said.lifetime), left.saturating_since(at + HOP).as_millis());
    assert_eq!(world.requests().len(), 1, "the request ends there");
    assert_eq!(world.routers[&2].entry(node(4)).unwrap().precursors, [node(1)]);
    assert!(world.routers[&2].entry(node(1)).unwrap().precursors.contains(&node(3)));
    assert_eq!(world.route(4, 1), None, "without G the destination is not told");
    assert_eq!(world.send(1, 4), Fate::Delivered(3));
}

/// Section 6.6.3: with the G flag, the destination also gets a route to the originator.
#[test]
fn a_gratuitous_reply_tells_the_destination() {
    let config = Config { intermediate_replies: IntermediateReplies::Gratuitous, ..still(Config::default()) };
    let mut world = World::row(config, 4);
    world.send(2, 4);
    world.run(millis(1_000));
    world.log.clear();
    world.send(1, 4);
    world.run(millis(10));
    let gratuitous: Vec<_> =
        world.replies().into_iter().filter(|(_, _, r)| r.originator == node(4)).collect();
    let said = gratuitous[0].2;
    assert_eq!((gratuitous[0].0, gratuitous[0].1, said.destination), (2, To::Neighbour(node(3)), node(1)));
    assert_eq!((said.hop_count, said.destination_sequence), (1, SequenceNumber(1)));
    assert_eq!(world.route(4, 1), Some((3, 3, VALID)));
    assert_eq!(world.send(4, 1), Fate::Delivered(3));
}

/// Section 6.6: with the D flag only the destination answers; a node with an older number than the
/// request does not.
#[test]
fn a_node_on_the_way_may_not_always_answer() {
    let config = Config { intermediate_replies: IntermediateReplies::Refused, ..still(Config::default()) };
    let mut world = World::row(config, 4);
    world.send(2, 4);
    world.run(millis(1_000));
    world.log.clear();
    world.send(1, 4);
    world.run(millis(1_000));
    assert_eq!(world.replies()[0].0, 4);
    let mut world = World::row(still(Config::default()), 3);
    world.send(2, 3);
    world.run(millis(1_000));
    world.log.clear();
    let known = world.routers[&2].entry(node(3)).unwrap().sequence.unwrap();
    let request = RouteRequest {
        join: false,
        repair: false,
        gratuitous: false,
        destination_only: false,
        hop_count: 0,
        id: 99,
        destination: node(3),
        destination_sequence: Some(known.next()),
        originator: node(1),
        originator_sequence: SequenceNumber(50),
    };
    world.tell(2, 1, 5, &Message::Request(request));
    assert_eq!(world.replies(), []);
    assert_eq!(world.requests()[0].2.destination_sequence, Some(known.next()));
    world.run(millis(5));
    assert_eq!(world.replies()[0].2.destination_sequence, known.next(), "section 6.6.1");
}

/// A route to a neighbour from a Hello makes the neighbour's reply no news, but the reply must
/// still be forwarded.
#[test]
fn a_reply_without_news_goes_on() {
    let config = Config {
        hello: Hello::On,
        intermediate_replies: IntermediateReplies::Refused,
        ..still(Config::default())
    };
    let mut world = World::row(config, 3);
    world.send(1, 2);
    world.send(2, 3);
    world.run(Duration::from_secs(4));
    world.send(1, 3);
    world.run(millis(500));
    assert_eq!(world.send(1, 3), Fate::Delivered(2));
}

/// Section 6.9: one Hello per HELLO_INTERVAL while on a route; 6.10: a neighbour counts as lost
/// after ALLOWED_HELLO_LOSS silent intervals.
#[test]
fn hellos_tell_who_is_there() {
    let config = Config { hello: Hello::On, ..still(Config::default()) };
    let mut world = World::row(config, 2);
    world.run(Duration::from_secs(5));
    assert!(world.log.is_empty(), "nobody is on a route");
    world.send(1, 2);
    world.run(millis(3_500));
    let hello = *world.replies().iter().rev().find(|(from, ..)| *from == 2).unwrap();
    assert_eq!(hello.1, To::Broadcast);
    assert_eq!((hello.2.destination, hello.2.hop_count, hello.2.lifetime), (node(2), 0, 2_000));
    assert_eq!(world.send(1, 2), Fate::Delivered(1));
    let last = world.log.iter().rev().find(|sent| sent.from == 2).unwrap().at + HOP;
    world.down(1, 2);
    world.run(Duration::from_secs(4));
    let broken = Event::Broken { destinations: vec![node(2)] };
    assert!(world.events.contains(&(last + millis(2_000), 1, broken)), "{:?}", world.events);
}

/// Section 6.8: without an RREP-ACK within NEXT_HOP_WAIT, requests of that neighbour are ignored
/// for BLACKLIST_TIMEOUT, and the other path is taken.
#[test]
fn a_link_that_leads_one_way_is_found_out() {
    let config = Config { reply_acks: ReplyAcks::On, ttl_start: 4, ..still(Config::default()) };
    let mut world = World::new(config, 3, 1);
    // Node 3 hears 1, but 1 does not hear 3; 2 lies between them.
    world.up_one_way(1, 3);
    world.up(1, 2);
    world.up(2, 3);
    let request = RouteRequest {
        join: false,
        repair: false,
        gratuitous: false,
        destination_only: false,
        hop_count: 0,
        id: 1,
        destination: node(3),
        destination_sequence: None,
        originator: node(1),
        originator_sequence: SequenceNumber(1),
    };
    // The reply is lost without a report of the link layer: the test removes it.
    let mut payload = Vec::new();
    anabranch_wire::aodv::emit(&Message::Request(request), &mut payload).unwrap();
    let now = world.now;
    world.router(3).handle_message(now, node(1), 4, &payload);
    let lost = world.router(3).poll_transmit(0).unwrap();
    assert_eq!((lost.to, lost.payload[1]), (To::Neighbour(node(1)), 0x40), "A is set");
    world.run(millis(50));
    world.tell(3, 1, 4, &Message::Request(RouteRequest { id: 2, ..request }));
    assert_eq!(world.routers[&3].counters().ignored, 1);
    world.run(millis(5_599));
    world.tell(3, 1, 4, &Message::Request(RouteRequest { id: 3, ..request }));
    assert_eq!(world.routers[&3].counters().ignored, 2);
    world.run(millis(1));
    world.log.clear();
    // The direct link is tried once more and then abandoned.
    assert_eq!(world.connect(1, 3), Fate::Delivered(2));
    assert!(world.log.iter().any(|sent| sent.from == 1 && sent.message == Message::ReplyAck));
}

/// Messages that are not AODV are counted and change nothing.
#[test]
fn nonsense_is_refused() {
    let mut world = World::new(Config::default(), 1, 1);
    let now = world.now;
    for payload in [&[][..], &[9, 9], &[1, 0, 0], &[3, 0, 0, 0]] {
        world.router(1).handle_message(now, node(2), 1, payload);
    }
    world.tell(1, 1, 1, &Message::ReplyAck);
    let nobody = RouteReply { destination: std::net::Ipv4Addr::UNSPECIFIED, ..reply(1, 1) };
    world.tell(1, 2, 1, &Message::Reply(nobody));
    assert_eq!(world.routers[&1].counters().refused, 6);
    assert_eq!(world.router(1).route(now, node(1)), Route::Via(node(1)));
    let small = Config { max_routes: 2, ..Config::default() };
    let mut world = World::new(small, 1, 1);
    (2..9).for_each(|n| world.tell(1, n, 1, &Message::Reply(reply(1, 1))));
    assert_eq!(world.routers[&1].entries().count(), 2);
    assert!(world.routers[&1].counters().table_full > 0);
}
