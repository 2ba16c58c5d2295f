//! Failing paths, peers without MPTCP, wrong HMACs, small windows.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use crate::mptcp_world::{End, Path, Verdict, World};
use anabranch_core::mptcp::{
    Config, Event, JoinError, PathId, Reinjection, SchedulerKind, Secrets, SubflowId,
};
use anabranch_core::segment::{
    AddressId, CapableForm, Flags, Key, MpJoin, Mptcp, MptcpOption, Segment, SeqNumber, Token,
};
use anabranch_core::tcp::{self, CloseReason, CongestionAlgorithm, DsnWidth, State};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::prng::Prng;
use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn octets(seed: u64, n: usize) -> Bytes {
    Bytes::from(Prng::new(seed).octets(n))
}

fn config() -> Config {
    Config { tcp: tcp::Config { mss: 1000, ..tcp::Config::default() }, ..Config::default() }
}

fn two_paths() -> Vec<Path> {
    vec![Path::new(1_000_000, 20), Path::new(1_000_000, 30)]
}

fn send(world: &mut World, n: usize, seconds: u64) -> bool {
    let data = octets(5, n);
    world.client.outbox = data.clone();
    world.client.closes = true;
    world.server.closes = true;
    let over = world.run_to_end(seconds);
    assert!(world.server.inbox == data[..world.server.inbox.len()], "octets differ");
    over && world.server.inbox.len() == n
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

#[test]
fn a_path_that_dies_takes_nothing_with_it() {
    for dead in [0, 1] {
        let mut paths = two_paths();
        paths[dead].down = Some((at(1), at(100_000)));
        let mut config = config();
        config.tcp.data_retries = 4;
        let mut world = World::new(config, config, paths, 21);
        assert!(send(&mut world, 600_000, 4_000), "at {}\n{:?}", world.now, world.client.events);
        let id = SubflowId(dead as u16);
        let closed = |event: &Event| matches!(event, Event::SubflowClosed(i, _) if *i == id);
        assert!(world.client.events.iter().any(closed), "{:?}", world.client.events);
        assert!(world.client.mptcp().info().reinjections > 0);
        // The second path alone needs 5 s for the data; a failing path costs time-outs, not
        // minutes.
        let all_there = world.server.events.contains(&Event::PeerClosed);
        assert!(all_there);
    }
}

#[test]
fn a_path_that_comes_back_is_used_again() {
    let mut paths = two_paths();
    paths[1].down = Some((at(1), at(5)));
    let mut world = World::new(config(), config(), paths, 22);
    world.client.outbox = octets(5, 3_000_000);
    world.run_until(at(1), |_| false);
    let before = world.client.mptcp().subflow_info(SubflowId(1)).unwrap().tcp.bytes_acked;
    assert!(world.run_until(at(200), |w| w.server.inbox.len() == 3_000_000), "at {}", world.now);
    let after = world.client.mptcp().subflow_info(SubflowId(1)).unwrap().tcp.bytes_acked;
    assert!(after > before + 500_000, "{before} {after}");
    assert!(world.server.inbox == octets(5, 3_000_000));
}

#[test]
fn a_subflow_that_is_closed_is_opened_again() {
    let mut world = World::new(config(), config(), two_paths(), 23);
    world.rejoins = true;
    world.client.outbox = octets(5, 500_000);
    world.run_until(at(1), |_| false);
    let now = world.now;
    world.client.mptcp().close_subflow(now, SubflowId(1));
    assert!(world.run_until(at(200), |w| {
        w.server.inbox.len() == 500_000 && w.server.events.contains(&Event::SubflowEstablished(SubflowId(2)))
    }));
    assert!(world.server.inbox == octets(5, 500_000));
    // The last subflow stays.
    let now = world.now;
    world.client.mptcp().close_subflow(now, SubflowId(2));
    world.client.mptcp().close_subflow(now, SubflowId(0));
    assert!(world.client.mptcp().subflow_info(SubflowId(0)).unwrap().ready);
}

/// Removes the MPTCP options of segments, as a peer or a middlebox without MPTCP does.
fn strips(only: fn(End, &Segment) -> bool) -> impl FnMut(Instant, End, PathId, &mut Segment) -> Verdict {
    move |_, end, _, segment| {
        if only(end, segment) {
            segment.mptcp = Mptcp::NONE;
        }
        Verdict::Pass
    }
}

#[test]
fn without_the_option_it_is_plain_tcp() {
    let cases: [fn(End, &Segment) -> bool; 4] = [
        |_, _| true,
        |end, segment| end == End::Client && segment.flags.contains(Flags::SYN),
        |end, segment| end == End::Server && segment.flags.contains(Flags::SYN),
        // The handshake passes; later options do not.
        |_, segment| !segment.flags.contains(Flags::SYN),
    ];
    for (i, case) in cases.into_iter().enumerate() {
        let mut world = World::new(config(), config(), two_paths(), 24);
        world.rule = Some(Box::new(strips(case)));
        world.server.outbox = octets(6, 50_000);
        assert!(send(&mut world, 200_000, 1_000), "case {i} at {} {:?}", world.now, world.server.events);
        assert!(world.client.inbox == octets(6, 50_000), "case {i}");
        assert!(!world.client.mptcp().is_multipath() && !world.server.mptcp().is_multipath(), "case {i}");
        assert!(world.client.events.contains(&Event::FellBack), "case {i}");
        let last = world.client.events.last();
        assert_eq!(last, Some(&Event::Closed(CloseReason::Graceful)), "case {i}");
    }
}

#[test]
fn a_wrong_proof_opens_no_subflow() {
    for side in [End::Client, End::Server] {
        let mut world = World::new(config(), config(), two_paths(), 25);
        world.rule = Some(Box::new(move |_, end, path, segment| {
            let option = segment.mptcp.options().first().cloned();
            if end == side && path == PathId(1) {
                match option {
                    Some(MptcpOption::MpJoin(MpJoin::SynAck { backup, address, hmac, nonce })) => {
                        let join = MpJoin::SynAck { backup, address, hmac: hmac ^ 1, nonce };
                        segment.mptcp = Mptcp::only(MptcpOption::MpJoin(join));
                    }
                    Some(MptcpOption::MpJoin(MpJoin::Ack { mut hmac })) => {
                        hmac[19] ^= 1;
                        segment.mptcp = Mptcp::only(MptcpOption::MpJoin(MpJoin::Ack { hmac }));
                    }
                    _ => {}
                }
            }
            Verdict::Pass
        }));
        assert!(send(&mut world, 100_000, 1_000), "{side:?} at {} {:?}", world.now, world.server.events);
        let opened = |event: &Event| matches!(event, Event::SubflowEstablished(_));
        assert!(!world.server.events.iter().any(opened), "{:?}", world.server.events);
        assert!(world.client.mptcp().info().dropped + world.server.mptcp().info().dropped > 0);
    }
}

/// A subflow that was refused sends nothing more: its peer has received a reset.
#[test]
fn a_wrong_proof_in_the_answer_ends_the_attempt() {
    let mut world = World::new(config(), config(), two_paths(), 25);
    let sent = Rc::new(RefCell::new(Vec::new()));
    let log = sent.clone();
    world.rule = Some(Box::new(move |_, end, path, segment| {
        if path == PathId(1) {
            if end == End::Client {
                log.borrow_mut().push(segment.flags);
            }
            if let Some(MptcpOption::MpJoin(MpJoin::SynAck { hmac, .. })) = segment.mptcp.options().first() {
                let hmac = hmac ^ 1;
                let join = MpJoin::SynAck { backup: false, address: AddressId(1), hmac, nonce: 7 };
                segment.mptcp = Mptcp::only(MptcpOption::MpJoin(join));
            }
        }
        Verdict::Pass
    }));
    world.client.outbox = octets(5, 1_000);
    world.run_until(at(200), |_| false);
    assert_eq!(*sent.borrow(), [Flags::SYN, Flags::RST], "{:?}", world.client.events);
    let state = world.client.mptcp().subflow_info(SubflowId(1)).map(|subflow| subflow.tcp.state);
    assert_eq!(state, Some(State::Closed));
}

#[test]
fn only_the_right_token_joins() {
    let mut world = World::new(config(), config(), vec![Path::new(1_000_000, 10)], 26);
    world.client.outbox = octets(5, 1_000);
    world.run_until(at(1), |_| false);
    let token = world.server.mptcp().token();
    let syn = |token| Segment {
        flags: Flags::SYN,
        mptcp: Mptcp::only(MptcpOption::MpJoin(MpJoin::Syn {
            backup: true,
            address: AddressId(3),
            token,
            nonce: 7,
        })),
        ..Segment::default()
    };
    let secrets = Secrets { key: Key(0), nonce: 1, iss: SeqNumber(2) };
    let now = world.now;
    let mut join =
        |segment: &Segment| world.server.mptcp().accept_join(now, PathId(1), segment, AddressId(1), secrets);
    assert_eq!(join(&syn(Token(token.0 ^ 1))), Err(JoinError::Token));
    assert_eq!(join(&Segment { flags: Flags::SYN, ..Segment::default() }), Err(JoinError::NotJoin));
    assert_eq!(join(&syn(token)), Ok(SubflowId(1)));
}

#[test]
fn a_small_shared_buffer_does_not_deadlock() {
    for scheduler in [
        SchedulerKind::FastestRtt,
        SchedulerKind::RoundRobin,
        SchedulerKind::Blest,
        SchedulerKind::Daps,
        SchedulerKind::Predictive,
        SchedulerKind::SectionVii,
    ] {
        for reinjection in [Reinjection::OnFailure, Reinjection::Opportunistic] {
            let mut config = Config { scheduler, reinjection, ..config() };
            config.tcp.receive_buffer = 5_000;
            config.tcp.window_scale = Some(0);
            let paths = vec![Path::new(2_000_000, 5), Path { loss: 20, ..Path::new(300_000, 150) }];
            let mut world = World::new(config, config, paths, 27);
            assert!(send(&mut world, 150_000, 2_000), "{scheduler:?} {reinjection:?} at {}", world.now);
        }
    }
}

#[test]
fn a_window_that_closes_is_probed() {
    let mut config = config();
    config.tcp.receive_buffer = 10_000;
    let paths = two_paths();
    let mut world = World::new(config, config, paths, 28);
    let lost = Rc::new(Cell::new(0));
    let count = lost.clone();
    world.server.reads = false;
    world.client.outbox = octets(5, 100_000);
    world.run_until(at(20), |_| false);
    assert!(world.server.mptcp().info().readable >= 9_000, "{:?}", world.server.mptcp().info());
    let deaf = world.now + Duration::from_secs(5);
    // All segments that open the window are lost for a while.
    world.rule = Some(Box::new(move |now, end, _, _| {
        let drop = end == End::Server && now < deaf;
        count.set(count.get() + u32::from(drop));
        if drop { Verdict::Drop } else { Verdict::Pass }
    }));
    world.server.reads = true;
    assert!(world.run_until(at(300), |w| w.server.inbox.len() == 100_000), "at {}", world.now);
    assert!(lost.get() > 0 && world.server.inbox == octets(5, 100_000));
}

/// Linux keeps the window of each subflow on its own.
#[test]
fn a_window_that_was_closed_opens_on_every_subflow() {
    let mut config = config();
    config.tcp.receive_buffer = 10_000;
    let mut world = World::new(config, config, two_paths(), 28);
    world.server.reads = false;
    world.client.outbox = octets(5, 100_000);
    world.run_until(at(20), |_| false);
    let told = Rc::new(RefCell::new(BTreeSet::new()));
    let paths = told.clone();
    world.rule = Some(Box::new(move |_, end, path, segment| {
        if end == End::Server && segment.window > 0 {
            paths.borrow_mut().insert(path);
        }
        Verdict::Pass
    }));
    world.server.reads = true;
    // The client's next probe makes the server read.
    assert!(world.run_until(at(100), |world| !world.server.inbox.is_empty()));
    let now = world.now;
    world.run_until(now + Duration::from_millis(1), |_| false);
    assert_eq!(told.borrow().len(), 2, "{told:?}");
}

#[test]
fn a_lost_path_s_subflow_is_dropped_unless_it_is_the_last() {
    let mut world = World::new(config(), config(), two_paths(), 28);
    world.client.outbox = octets(5, 500_000);
    world.run_until(at(1), |_| false);
    let now = world.now;
    let connection = world.client.mptcp();
    assert!(connection.drop_subflow(now, SubflowId(0)));
    assert!(!connection.drop_subflow(now, SubflowId(1)));
    assert!(world.run_until(at(100), |world| world.server.inbox.len() == 500_000), "at {}", world.now);
    assert!(world.client.events.contains(&Event::SubflowClosed(SubflowId(0), CloseReason::Aborted)));
}

#[test]
fn abort_resets_all_subflows_at_both_ends() {
    let mut world = World::new(config(), config(), two_paths(), 29);
    world.client.outbox = octets(5, 500_000);
    world.run_until(at(1), |_| false);
    let now = world.now;
    world.client.mptcp().abort(now);
    assert!(world.run_to_end(10));
    assert_eq!(world.client.events.last(), Some(&Event::Closed(CloseReason::Aborted)));
    assert_eq!(world.server.events.last(), Some(&Event::Closed(CloseReason::Reset)));
}

#[test]
fn addresses_and_priorities_are_told() {
    let mut world = World::new(config(), config(), two_paths(), 30);
    world.client.outbox = octets(5, 10_000);
    world.run_until(at(1), |_| false);
    let address = "2001:db8::7".parse().unwrap();
    let now = world.now;
    assert!(!world.client.mptcp().add_address(now, AddressId(9), address, Some(80)));
    let now = world.now;
    assert!(world.client.mptcp().add_address(now, AddressId(9), address, None));
    world.client.mptcp().set_backup(SubflowId(1), true);
    world.client.mptcp().remove_address(AddressId(9));
    world.run_until(at(2), |_| false);
    let events = &world.server.events;
    assert!(events.contains(&Event::AddressAdded { id: AddressId(9), address, port: None }), "{events:?}");
    assert!(events.contains(&Event::Priority(SubflowId(1), true)));
    assert!(events.contains(&Event::AddressRemoved(AddressId(9))));
    let before = world.client.mptcp().subflow_info(SubflowId(1)).unwrap().bytes_assigned;
    world.client.outbox = octets(6, 100_000);
    world.run_until(at(10), |_| false);
    assert_eq!(world.client.mptcp().subflow_info(SubflowId(1)).unwrap().bytes_assigned, before);
}

/// RFC 8684 section 3.3.8: MP_PRIO is about the data that its sender is to receive, so it does not
/// take back what the receiver of the option has declared.
#[test]
fn a_peer_cannot_end_the_backup_of_this_end() {
    for ours in [true, false] {
        let mut world = World::new(config(), config(), two_paths(), 30);
        world.client.outbox = octets(5, 10_000);
        world.run_until(at(1), |_| false);
        world.client.mptcp().set_backup(SubflowId(1), ours);
        world.server.mptcp().set_backup(SubflowId(1), true);
        world.run_until(at(2), |_| false);
        world.server.mptcp().set_backup(SubflowId(1), false);
        world.run_until(at(3), |_| false);
        let backup = |world: &mut World| world.client.mptcp().subflow_info(SubflowId(1)).unwrap();
        let before = backup(&mut world);
        assert_eq!((before.backup, before.backup_here), (ours, ours));
        world.client.outbox = octets(6, 200_000);
        world.run_until(at(20), |_| false);
        assert_eq!(backup(&mut world).bytes_assigned == before.bytes_assigned, ours);
    }
}

/// TCP has acknowledged the data of a segment with a wrong key: the connection must not go on
/// without it.
#[test]
fn data_with_a_wrong_key_ends_the_connection() {
    for repeat_keys in [false, true] {
        let config = Config { repeat_keys, ..config() };
        let mut world = World::new(config, config, two_paths(), 7);
        world.rule = Some(Box::new(|_, end, _, segment| {
            if let (End::Client, [MptcpOption::MpCapable(capable)]) = (end, segment.mptcp.options()) {
                let mut capable = *capable;
                if let CapableForm::Ack { receiver, .. } | CapableForm::Data { receiver, .. } =
                    &mut capable.form
                {
                    receiver.0 ^= 1;
                }
                segment.mptcp = Mptcp::only(MptcpOption::MpCapable(capable));
            }
            Verdict::Pass
        }));
        world.client.outbox = octets(5, 20_000);
        (world.client.closes, world.server.closes) = (true, true);
        assert!(world.run_to_end(600), "{repeat_keys}");
        assert_eq!(world.client.events.last(), Some(&Event::Closed(CloseReason::Reset)));
        assert!(world.server.inbox.is_empty());
    }
}

#[test]
fn the_first_segments_are_those_of_the_rfc() {
    let said = Rc::new(Cell::new(0));
    let count = said.clone();
    let mut world = World::new(config(), config(), vec![Path::new(1_000_000, 10)], 31);
    world.rule = Some(Box::new(move |_, end, _, segment| {
        let form = segment.mptcp.options().first().and_then(|option| match option {
            MptcpOption::MpCapable(capable) => Some(capable.form),
            _ => None,
        });
        match (count.get(), end, form) {
            (0, End::Client, Some(CapableForm::Syn)) | (1, End::Server, Some(CapableForm::SynAck { .. })) => {
            }
            (2, End::Client, Some(CapableForm::Data { len: 964, .. })) => {
                assert_eq!(segment.payload.len(), 964)
            }
            (0..3, ..) => panic!("{} {end:?} {segment:?}", count.get()),
            _ => assert!(segment.mptcp.dss().is_some_and(|dss| dss.data_ack().is_some()) || form.is_some()),
        }
        count.set(count.get() + 1);
        Verdict::Pass
    }));
    assert!(send(&mut world, 20_000, 100));
    assert!(said.get() > 20);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150, rng_seed: RngSeed::Fixed(8684), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn every_octet_comes_once_and_in_order(seed: u64) {
        let mut prng = Prng::new(seed);
        let scheduler = prng.pick(&SchedulerKind::ALL);
        let mut config = Config {
            scheduler,
            reinjection: prng.pick(&[Reinjection::OnFailure, Reinjection::OnTimeout, Reinjection::Opportunistic]),
            dsn_width: prng.pick(&[DsnWidth::Four, DsnWidth::Eight]),
            silence: prng.pick(&[None, Some(Duration::from_millis(50))]),
            repeat_keys: prng.chance(50),
            ..config()
        };
        config.tcp.mss = prng.pick(&[200, 536, 1400]);
        config.tcp.timestamps = prng.chance(50);
        config.tcp.sack = prng.pick(&[tcp::SackRole::Off, tcp::SackRole::Both]);
        config.tcp.window_scale = prng.pick(&[None, Some(0), Some(7)]);
        config.tcp.receive_buffer = prng.pick(&[3_000, 20_000, 200_000]);
        config.tcp.send_buffer = prng.pick(&[3_000, 200_000]);
        let adaptive = |phases| {
            let bounds = tcp::AdaptiveNewReno { w_min: 2, w_max: 20, update_every: 2, phases };
            CongestionAlgorithm::AdaptiveNewReno(bounds)
        };
        config.tcp.congestion = prng.pick(&[
            CongestionAlgorithm::NewReno,
            CongestionAlgorithm::Coupled,
            adaptive(tcp::AdaptivePhases::Grow),
            adaptive(tcp::AdaptivePhases::ExploreHold),
        ]);
        config.tcp.data_retries = 30;
        config.tcp.syn_retries = 30;
        let mut paths: Vec<Path> = (0..1 + prng.below(3))
            .map(|_| Path {
                loss: prng.below(100),
                reorder: prng.below(10),
                queue: Duration::from_millis(100 + prng.below(1000)),
                dice: prng.bits(),
                ..Path::new(100_000 << prng.below(5), 1 + prng.below(100))
            })
            .collect();
        for path in paths.iter_mut().skip(1) {
            if prng.chance(20) {
                let from = prng.below(3);
                path.down = Some((at(from), at(from + prng.below(20))));
            }
        }
        let (up, down) = (prng.below(100_000) as usize, prng.pick(&[0, 1, 20_000]));
        let mut world = World::new(config, config, paths, prng.bits());
        world.rejoins = prng.chance(50);
        world.in_order = prng.chance(50).then(Default::default);
        let (there, back) = (octets(1, up), octets(2, down));
        world.client.outbox = there.clone();
        world.server.outbox = back.clone();
        (world.client.closes, world.server.closes) = (true, true);
        let over = world.run_to_end(40_000);
        let summary = format!(
            "seed {seed} at {} {scheduler:?}\n{:?}\n{:?}\n{:?}",
            world.now,
            (0..4).map(|i| world.client.mptcp().subflow_info(SubflowId(i)).map(|s| s.tcp)).collect::<Vec<_>>(),
            world.client.connection.as_ref().map(|c| c.info()),
            world.server.connection.as_ref().map(|c| c.info())
        );
        prop_assert!(world.server.inbox == there && world.client.inbox == back, "octets: {}", summary);
        prop_assert!(over, "not torn down: {}", summary);
    }
}

/// RFC 8684 section 3.2: the third segment of a join is repeated until the fourth arrives. The
/// listener, whose subflow is already open, answers each time.
#[test]
fn a_join_whose_fourth_segment_is_lost_is_open_after_the_next() {
    let mut world = World::new(config(), config(), two_paths(), 31);
    let lost = Rc::new(Cell::new(0));
    let count = lost.clone();
    world.rule = Some(Box::new(move |_, from, path, segment| {
        let fourth = from == End::Server && path == PathId(1) && !segment.flags.contains(Flags::SYN);
        if fourth && count.get() < 2 {
            count.set(count.get() + 1);
            return Verdict::Drop;
        }
        Verdict::Pass
    }));
    world.client.outbox = octets(5, 3_000_000);
    assert!(world.run_until(at(200), |w| w.server.inbox.len() == 3_000_000), "at {}", world.now);
    assert_eq!(lost.get(), 2);
    let second = world.client.mptcp().subflow_info(SubflowId(1)).unwrap();
    assert!(second.ready && second.tcp.bytes_acked > 500_000, "{second:?}");
}

/// The data of a failed path is sent on the other path. A subflow with pacing does not wait for an
/// acknowledgement between two of these segments.
#[test]
fn a_paced_subflow_repeats_for_a_dead_one_at_its_pace() {
    let seconds = |pacing, reinjection| {
        let mut config = Config { reinjection, ..config() };
        config.tcp.pacing = pacing;
        config.tcp.initial_window = tcp::InitialWindow::Segments(40);
        let paths = vec![Path::new(4_000_000, 100), Path::new(4_000_000, 100)];
        let mut world = World::new(config, config, paths, 31);
        world.run_until(at(1), |_| false);
        let begin = world.now;
        world.rule =
            Some(Box::new(|_, _, path, _| if path == PathId(1) { Verdict::Drop } else { Verdict::Pass }));
        world.client.outbox = octets(5, 60_000);
        assert!(world.run_until(at(60), |w| w.server.inbox.len() == 60_000));
        world.now.saturating_since(begin).as_secs_f64()
    };
    for reinjection in [Reinjection::OnTimeout, Reinjection::Opportunistic] {
        let (plain, paced) = (seconds(false, reinjection), seconds(true, reinjection));
        println!("{reinjection:?}: {plain} s, paced {paced} s");
        assert!(paced < plain + 0.3, "{reinjection:?}: {plain} s, paced {paced} s");
    }
}
