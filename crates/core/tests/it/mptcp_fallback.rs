//! Checksums of the data, MP_FAIL and the infinite mapping, and other ways back to TCP (RFC 8684
//! sections 3.3.1 and 3.7).

use std::cell::RefCell;
use std::rc::Rc;

use crate::mptcp_world::{End, Path, Verdict, World};
use anabranch_core::mptcp::{Config, Event, PathId, SubflowId};
use anabranch_core::segment::{AddressId, CapableForm, Flags, Mptcp, MptcpOption, Segment};
use anabranch_core::tcp::{self, CloseReason};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::prng::Prng;
use bytes::Bytes;

const UP: usize = 200_000;
const DOWN: usize = 150_000;

fn octets(seed: u64, n: usize) -> Bytes {
    Bytes::from(Prng::new(seed).octets(n))
}

fn config(checksums: bool) -> Config {
    Config { tcp: tcp::Config { mss: 1000, ..tcp::Config::default() }, checksums, ..Config::default() }
}

fn paths(n: usize) -> Vec<Path> {
    vec![Path::new(1_000_000, 20), Path::new(1_000_000, 30)][..n].to_vec()
}

/// A transfer in both directions. Returns the world and the number of bytes that differ at the
/// server and at the client.
fn exchange(mut world: World) -> (World, [usize; 2]) {
    world.client.outbox = octets(5, UP);
    world.server.outbox = octets(6, DOWN);
    world.client.closes = true;
    world.server.closes = true;
    assert!(world.run_to_end(1_000), "at {} {:?}", world.now, world.client.events);
    let differ = |got: &[u8], sent: Bytes| {
        assert_eq!(got.len(), sent.len());
        got.iter().zip(&sent).filter(|(a, b)| a != b).count()
    };
    for side in [&world.client, &world.server] {
        let last = &side.events[side.events.len().saturating_sub(6)..];
        assert_eq!(last.last(), Some(&Event::Closed(CloseReason::Graceful)), "{last:?}");
    }
    let differ = [differ(&world.server.inbox, octets(5, UP)), differ(&world.client.inbox, octets(6, DOWN))];
    (world, differ)
}

/// Whether a mapping or an MP_CAPABLE with data has a checksum; `None` if the segment has neither.
fn has_checksum(segment: &Segment) -> Option<bool> {
    let capable = segment.mptcp.options().iter().find_map(|option| match option {
        MptcpOption::MpCapable(capable) => match capable.form {
            CapableForm::Data { checksum, .. } => Some(checksum.is_some()),
            _ => None,
        },
        _ => None,
    });
    capable.or(segment.mptcp.dss()?.mapping().map(|mapping| mapping.checksum.is_some()))
}

#[test]
fn both_ends_send_checksums_if_one_requires_them() {
    for (ours, theirs) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut world = World::new(config(ours), config(theirs), paths(2), 41);
        let seen = Rc::new(RefCell::new([0, 0]));
        let count = seen.clone();
        world.rule = Some(Box::new(move |_, _, _, segment| {
            if let Some(with) = has_checksum(segment) {
                count.borrow_mut()[usize::from(with)] += 1;
            }
            Verdict::Pass
        }));
        let (world, differ) = exchange(world);
        assert_eq!(differ, [0, 0]);
        let all = seen.borrow();
        assert!(all[usize::from(ours || theirs)] > 300, "{all:?}");
        assert_eq!(all[usize::from(!(ours || theirs))], 0, "{ours} {theirs}");
        let multipath = |events: &[Event]| !events.contains(&Event::FellBack);
        assert!(multipath(&world.client.events) && multipath(&world.server.events));
    }
}

type Rule = Box<dyn FnMut(Instant, End, PathId, &mut Segment) -> Verdict>;

/// Changes one byte on the way from one end, on the first path, after `spare` segments with data.
/// Counts the segments with MP_FAIL and infinite mappings of each end.
fn damage(from: End, mut spare: u32) -> (Rc<RefCell<[[u32; 2]; 2]>>, Rule) {
    let seen = Rc::new(RefCell::new([[0; 2]; 2]));
    let count = seen.clone();
    let mut done = false;
    let rule = move |_, end: End, path, segment: &mut Segment| {
        let fails = segment.mptcp.options().iter().any(|o| matches!(o, MptcpOption::MpFail { .. }));
        let infinite = segment.mptcp.dss().and_then(|dss| dss.mapping()).is_some_and(|m| m.len == 0);
        let all = &mut count.borrow_mut()[end as usize];
        all[0] += u32::from(fails);
        all[1] += u32::from(infinite);
        if end == from && path == PathId(0) && !segment.payload.is_empty() && !done {
            done = spare == 0;
            spare = spare.saturating_sub(1);
            if done {
                let mut octets = segment.payload.to_vec();
                octets[7] ^= 0x80;
                segment.payload = octets.into();
            }
        }
        Verdict::Pass
    };
    (seen, Box::new(rule))
}

#[test]
fn damaged_data_on_the_only_subflow_ends_multipath() {
    for from in [End::Client, End::Server] {
        // Also the first data, which has the keys.
        for spare in [0, 1, 60] {
            let mut world = World::new(config(true), config(false), paths(1), 42);
            let (seen, rule) = damage(from, spare);
            world.rule = Some(rule);
            let (world, differ) = exchange(world);
            let expected = if from == End::Client { [1, 0] } else { [0, 1] };
            assert_eq!(differ, expected, "{from:?} {spare}");
            let seen = seen.borrow();
            for end in [End::Client, End::Server] {
                // A retransmission repeats the mapping.
                let [fails, infinite] = seen[end as usize];
                assert!(fails == 1 && infinite > 0, "{from:?} {spare} {end:?}: {seen:?}");
            }
            for side in [&world.client, &world.server] {
                assert!(side.events.contains(&Event::FellBack));
                assert!(!side.connection.as_ref().unwrap().is_multipath());
            }
        }
    }
}

#[test]
fn damaged_data_on_one_of_two_subflows_is_sent_on_the_other() {
    for from in [End::Client, End::Server] {
        let mut world = World::new(config(true), config(true), paths(2), 43);
        let (seen, rule) = damage(from, 60);
        world.rule = Some(rule);
        let (world, differ) = exchange(world);
        assert_eq!(differ, [0, 0], "{from:?}");
        let expected = if from == End::Client { [[0, 0], [1, 0]] } else { [[1, 0], [0, 0]] };
        assert_eq!(*seen.borrow(), expected, "{from:?}");
        for side in [&world.client, &world.server] {
            let closed = |event: &Event| matches!(event, Event::SubflowClosed(SubflowId(0), _));
            assert!(side.events.iter().any(closed) && !side.events.contains(&Event::FellBack));
        }
    }
}

#[test]
fn first_data_without_options_is_plain_tcp() {
    for from in [End::Client, End::Server] {
        let config = Config { repeat_keys: true, ..config(false) };
        let mut world = World::new(config, config, paths(2), 44);
        world.joins = false;
        world.rule = Some(Box::new(move |_, end, _, segment| {
            if end == from && !segment.payload.is_empty() {
                segment.mptcp = Mptcp::NONE;
            }
            Verdict::Pass
        }));
        let (world, differ) = exchange(world);
        assert_eq!(differ, [0, 0], "{from:?}");
        for side in [&world.client, &world.server] {
            assert!(side.events.contains(&Event::FellBack), "{from:?}");
        }
    }
}

#[test]
fn late_first_data_is_no_reason_to_fall_back_if_the_keys_went_ahead() {
    for repeat_keys in [false, true] {
        let config = Config { repeat_keys, ..config(false) };
        let mut world = World::new(config, config, paths(1), 45);
        let mut lost = false;
        world.rule = Some(Box::new(move |_, end, _, segment| {
            let first = end == End::Client && !segment.payload.is_empty() && !lost;
            lost |= first;
            if first { Verdict::Drop } else { Verdict::Pass }
        }));
        let (world, differ) = exchange(world);
        assert_eq!(differ, [0, 0]);
        // Our own end waits for the keys; Linux falls back without them.
        assert!(!world.server.events.contains(&Event::FellBack), "{repeat_keys}");
    }
}

#[test]
fn the_keys_go_ahead_of_the_data_and_with_it() {
    let config = Config { repeat_keys: true, ..config(false) };
    let mut world = World::new(config, config, paths(1), 46);
    let forms = Rc::new(RefCell::new(Vec::new()));
    let seen = forms.clone();
    world.rule = Some(Box::new(move |_, end, _, segment| {
        if end == End::Client && segment.flags.contains(Flags::ACK) && seen.borrow().len() < 3 {
            let options = segment.mptcp.options().first();
            let keys = matches!(options, Some(MptcpOption::MpCapable(_)));
            seen.borrow_mut().push((keys, !segment.payload.is_empty()));
        }
        Verdict::Pass
    }));
    let (_, differ) = exchange(world);
    assert_eq!(differ, [0, 0]);
    assert_eq!(*forms.borrow(), [(true, false), (true, true), (true, true)]);
}

/// Linux falls back if the first segment after the SYN that arrives has no MP_CAPABLE. With half of
/// the segments lost, this is often a later one than the first with data.
#[test]
fn any_segment_that_arrives_first_has_the_keys() {
    let (mut later, mut plain) = (0, 0);
    for seed in 0..100 {
        let config = Config { repeat_keys: true, ..config(false) };
        let mut world = World::new(config, config, paths(1), seed);
        world.joins = false;
        let mut dice = Prng::new(seed);
        let first = Rc::new(RefCell::new(None));
        let seen = first.clone();
        world.rule = Some(Box::new(move |_, end, _, segment| {
            if end == End::Server || segment.flags.contains(Flags::SYN) {
                return Verdict::Pass;
            }
            if dice.chance(50) {
                return Verdict::Drop;
            }
            let keys = segment.mptcp.options().iter().find_map(|option| match option {
                MptcpOption::MpCapable(capable) => Some(capable.form),
                _ => None,
            });
            seen.borrow_mut().get_or_insert((keys, segment.payload.len()));
            Verdict::Pass
        }));
        world.client.outbox = octets(5, 20_000);
        let done =
            world.run_until(Instant::ZERO + Duration::from_secs(1_000), |w| w.server.inbox.len() == 20_000);
        assert!(done && world.server.inbox == octets(5, 20_000), "{seed}");
        match *first.borrow() {
            Some((Some(CapableForm::Data { len, .. }), payload)) => {
                later += u32::from(usize::from(len) != payload)
            }
            Some((Some(_), _)) => {}
            _ => plain += 1,
        }
        assert!(!world.server.events.contains(&Event::FellBack), "{seed}");
    }
    assert!(plain == 0 && later > 10, "{plain} without keys, {later} after the first");
}

/// Repeating the keys costs no round trip: the window of the first flight arrives as one.
#[test]
fn the_first_flight_need_not_wait_for_the_confirmation() {
    for repeat_keys in [false, true] {
        let config = Config { repeat_keys, ..config(false) };
        let mut world = World::new(config, config, paths(1), 3);
        world.client.outbox = octets(5, 9_000);
        assert!(world.run_until(Instant::ZERO + Duration::from_secs(9), |w| w.server.inbox.len() == 9_000));
        // One round trip for the handshake, half of one for the data, and its transmission.
        let (rtt, sends) = (Duration::from_millis(40), Duration::from_millis(9 * 10));
        assert!(world.now < Instant::ZERO + rtt + rtt / 2 + sends, "{repeat_keys} {}", world.now);
    }
}

#[test]
fn unanswered_offers_are_withdrawn() {
    for (syns, outcome) in [(2, true), (0, false)] {
        let config = Config { capable_syns: syns, ..config(false) };
        let mut world = World::new(config, config, paths(1), 47);
        let offers = Rc::new(RefCell::new(0));
        let count = offers.clone();
        world.rule = Some(Box::new(move |_, _, _, segment| {
            let offered = segment.flags.contains(Flags::SYN) && !segment.mptcp.is_empty();
            *count.borrow_mut() += u32::from(offered);
            if offered { Verdict::Drop } else { Verdict::Pass }
        }));
        if outcome {
            let (world, differ) = exchange(world);
            assert_eq!((differ, *offers.borrow()), ([0, 0], 2));
            assert!(world.client.events.contains(&Event::FellBack));
        } else {
            world.run_until(Instant::ZERO + Duration::from_secs(20), |_| false);
            assert!(*offers.borrow() > 3 && world.server.connection.is_none());
        }
    }
}

#[test]
fn an_address_is_announced_until_it_is_echoed() {
    for (loses, expected) in [(0, 1), (2, 3), (100, 4)] {
        let mut world = World::new(config(false), config(false), paths(1), 48);
        let said = Rc::new(RefCell::new(0));
        let count = said.clone();
        world.rule = Some(Box::new(move |_, end, _, segment| {
            let add = segment
                .mptcp
                .options()
                .iter()
                .any(|o| matches!(o, MptcpOption::AddAddr(a) if a.hmac.is_some()));
            if end == End::Client && add {
                *count.borrow_mut() += 1;
                if *count.borrow() <= loses {
                    return Verdict::Drop;
                }
            }
            Verdict::Pass
        }));
        world.client.outbox = octets(5, 10_000);
        world.run_until(Instant::ZERO + Duration::from_secs(1), |_| false);
        let now = world.now;
        assert!(world.client.mptcp().add_address(now, AddressId(3), "10.1.2.3".parse().unwrap(), None));
        world.run_until(Instant::ZERO + Duration::from_secs(100), |_| false);
        assert_eq!(*said.borrow(), expected, "{loses}");
        let added = |event: &Event| matches!(event, Event::AddressAdded { id: AddressId(3), .. });
        assert_eq!(world.server.events.iter().any(added), loses < 4);
    }
}

#[test]
fn an_end_that_takes_no_joins_at_its_address_is_known() {
    for from in [End::Client, End::Server] {
        let mut world = World::new(config(false), config(false), paths(1), 49);
        world.rule = Some(Box::new(move |_, end, _, segment| {
            if let Some(MptcpOption::MpCapable(capable)) = segment.mptcp.options().first()
                && end == from
            {
                let closed = anabranch_core::segment::MpCapable { no_joins_here: true, ..*capable };
                segment.mptcp = Mptcp::only(MptcpOption::MpCapable(closed));
            }
            Verdict::Pass
        }));
        let (mut world, _) = exchange(world);
        assert_eq!(world.client.mptcp().joins_here(), from == End::Client);
        assert_eq!(world.server.connection.as_ref().unwrap().joins_here(), from == End::Server);
    }
}

/// A route that changes to one with a middlebox which removes all options: no DATA_ACK arrives, and
/// the receiver takes the rest as plain TCP. Data that was sent again would arrive twice.
#[test]
fn options_that_vanish_during_the_transfer_end_multipath() {
    let mut world = World::new(config(false), config(false), paths(1), 7);
    let data = octets(5, 400_000);
    world.client.outbox = data.clone();
    world.client.closes = true;
    world.server.closes = true;
    world.rule = Some(Box::new(|now, _, _, segment| {
        if now > Instant::ZERO + Duration::from_secs(1) {
            segment.mptcp = Mptcp::NONE;
        }
        Verdict::Pass
    }));
    assert!(world.run_to_end(100), "at {}", world.now);
    assert_eq!(world.server.inbox.len(), data.len());
    assert!(world.server.inbox == data, "octets differ");
    for side in [&world.client, &world.server] {
        assert!(side.events.contains(&Event::FellBack), "{:?}", side.events);
    }
}

/// A join that never opened has carried no data: the connection falls back as if it had not been
/// tried, and both applications get what was sent.
#[test]
fn a_join_that_never_opened_changes_nothing_about_a_fallback() {
    // In the slow start and later.
    for (refused, moment) in [(true, 200), (false, 200), (true, 1000), (false, 1000), (true, 1900)] {
        let config = Config { repeat_keys: true, silence: Some(Duration::from_millis(50)), ..config(false) };
        let mut world = World::new(config, config, paths(2), 7);
        world.rule = Some(Box::new(move |now, _, path, segment| {
            if path == PathId(1) && !refused {
                return Verdict::Drop;
            }
            if path == PathId(1) || now > Instant::ZERO + Duration::from_millis(moment) {
                segment.mptcp = Mptcp::NONE;
            }
            Verdict::Pass
        }));
        let (world, differ) = exchange(world);
        assert_eq!(differ, [0, 0], "refused {refused}, {moment} ms");
        for side in [&world.client, &world.server] {
            assert!(side.events.contains(&Event::FellBack), "{refused}, {moment} ms: {:?}", side.events);
        }
    }
}

/// As without the join: the bytes of the only subflow cannot be sent again, so the damaged one is
/// delivered.
#[test]
fn damage_after_a_join_that_was_refused_ends_no_connection() {
    for from in [End::Client, End::Server] {
        let mut world = World::new(config(true), config(true), paths(2), 42);
        let (_, mut rule) = damage(from, 60);
        world.rule = Some(Box::new(move |now, end, path, segment| {
            if path == PathId(1) {
                segment.mptcp = Mptcp::NONE;
            }
            rule(now, end, path, segment)
        }));
        let (world, differ) = exchange(world);
        assert_eq!(differ, if from == End::Client { [1, 0] } else { [0, 1] });
        assert!(world.client.events.contains(&Event::FellBack), "{from:?}: {:?}", world.client.events);
    }
}

/// Where another subflow has been used, plain TCP is not possible: the connection ends, and what
/// has arrived until then is right.
#[test]
fn without_options_a_connection_that_had_two_subflows_ends() {
    for (early, closed) in [(true, true), (true, false), (false, true)] {
        let mut world = World::new(config(false), config(false), paths(2), 7);
        let data = octets(5, 400_000);
        if early {
            world.client.outbox = data.clone();
        }
        world.rule = Some(Box::new(|now, _, _, segment| {
            if now > Instant::ZERO + Duration::from_millis(1000) {
                segment.mptcp = Mptcp::NONE;
            }
            Verdict::Pass
        }));
        world.run_until(Instant::ZERO + Duration::from_millis(700), |_| false);
        if closed {
            let now = world.now;
            world.client.mptcp().close_subflow(now, SubflowId(1));
        }
        world.run_until(Instant::ZERO + Duration::from_millis(1100), |_| false);
        if !early {
            world.client.outbox = data.clone();
        }
        let is_over = |event: &Event| matches!(event, Event::Closed(_));
        let over = |world: &mut World| world.client.events.iter().any(is_over);
        let case = format!("early {early}, closed {closed}");
        assert!(world.run_until(Instant::ZERO + Duration::from_secs(600), over), "{case}");
        assert!(!world.client.events.contains(&Event::FellBack), "{case}");
        assert!(world.server.inbox.len() < data.len() && data.starts_with(&world.server.inbox), "{case}");
    }
}
