//! Attackers who know the token and no key, and peers that break the rules.

use std::cell::Cell;
use std::rc::Rc;

use crate::mptcp_world::{End, Path, Verdict, World};
use anabranch_core::mptcp::{Config, Connection, Event, JoinError, PathId, Secrets, SubflowId};
use anabranch_core::segment::{
    AddressId, CapableForm, DataSeqNumber, Dss, Flags, Key, Mapping, MpCapable, MpJoin, MpTcpRst, Mptcp,
    MptcpOption, ResetReason, Segment, SeqNumber, Token, WireDsn,
};
use anabranch_core::tcp::{self, State};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::prng::Prng;
use bytes::Bytes;

const SECRETS: Secrets = Secrets { key: Key(0), nonce: 1, iss: SeqNumber(2) };

fn world() -> World {
    let config = Config { tcp: tcp::Config { mss: 1000, ..tcp::Config::default() }, ..Config::default() };
    World::new(config, config, vec![Path::new(1_000_000, 10)], 3)
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn join(option: MpJoin) -> Mptcp {
    Mptcp::only(MptcpOption::MpJoin(option))
}

fn join_syn(token: Token) -> Segment {
    let syn = MpJoin::Syn { backup: false, address: AddressId(7), token, nonce: 7 };
    Segment { seq: SeqNumber(9), flags: Flags::SYN, mptcp: join(syn), window: 9000, ..Segment::default() }
}

/// Two ends whose connection is confirmed.
fn connected() -> World {
    let mut world = world();
    world.client.outbox = Bytes::from(Prng::new(5).octets(100));
    world.run_until(at(1), |_| false);
    world
}

/// A subflow of which the server has answered the SYN.
fn joined(server: &mut Connection, now: Instant) -> SubflowId {
    let syn = join_syn(server.token());
    let id = server.accept_join(now, PathId(0), &syn, AddressId(1), SECRETS).expect("the token is right");
    while server.poll_transmit(now).is_some() {}
    id
}

/// RFC 8684 section 3.2: data, acknowledgements and options of a subflow count only after the HMAC
/// of its third segment, which also may not carry them with a wrong HMAC.
#[test]
fn a_subflow_without_proof_says_nothing() {
    let wrong = MptcpOption::MpJoin(MpJoin::Ack { hmac: [0; 20] });
    for option in [
        wrong,
        MptcpOption::RemoveAddr(vec![AddressId(0)]),
        MptcpOption::MpPrio { backup: true },
        MptcpOption::MpFail { dsn: DataSeqNumber(1) },
    ] {
        for payload in [&b""[..], b"evil"] {
            let data = Bytes::from(Prng::new(5).octets(3_000));
            let mut world = world();
            let next = Rc::new(Cell::new(DataSeqNumber(0)));
            let seen = next.clone();
            world.rule = Some(Box::new(move |_, end, _, segment| {
                if let (End::Client, Some(mapping)) = (end, segment.mptcp.dss().and_then(Dss::mapping)) {
                    seen.set(mapping.dsn.expand(seen.get()) + u64::from(mapping.len));
                }
                Verdict::Pass
            }));
            world.client.outbox = data.slice(..2_000);
            world.run_until(at(1), |_| false);
            let (now, server) = (world.now, world.server.mptcp());
            let id = joined(server, now);
            let dsn = WireDsn::Short(next.get().0 as u32);
            let mapping = Mapping { dsn, subflow_seq: 1, len: 4, checksum: None };
            let mut mptcp = Mptcp::dss_only(Dss::default().with_mapping(mapping));
            mptcp.push(option.clone());
            let third = Segment {
                seq: SeqNumber(10),
                ack: SeqNumber(3),
                flags: Flags::ACK,
                mptcp,
                payload: Bytes::from_static(payload),
                ..join_syn(Token(0))
            };
            server.handle_segment(now, id, third);
            // Data without an MP_JOIN is only dropped: the third segment may be behind it.
            if payload.is_empty() || matches!(option, MptcpOption::MpJoin(_)) {
                let reset = server.poll_transmit(now).expect("a reset").1;
                let why = MpTcpRst { transient: false, reason: ResetReason::MPTCP_SPECIFIC };
                assert!(reset.flags.contains(Flags::RST), "{option:?}: {reset:?}");
                assert_eq!(reset.mptcp, Mptcp::only(MptcpOption::MpTcpRst(why)));
                assert!(server.subflows().eq([(SubflowId(0), PathId(0))]));
            }
            world.client.outbox = data.slice(2_000..);
            world.run_until(at(5), |_| false);
            assert_eq!(world.server.inbox, data, "{option:?}");
            let spoken = |event: &Event| matches!(event, Event::Priority(..) | Event::AddressRemoved(_));
            assert!(!world.server.events.iter().any(spoken), "{:?}", world.server.events);
        }
    }
}

#[test]
fn a_subflow_that_is_closed_before_its_proof_says_nothing() {
    let mut world = connected();
    let (now, server) = (world.now, world.server.mptcp());
    let id = joined(server, now);
    server.close_subflow(now, id);
    let mptcp = Mptcp::only(MptcpOption::MpPrio { backup: true });
    let third =
        Segment { seq: SeqNumber(10), ack: SeqNumber(3), flags: Flags::ACK, mptcp, ..join_syn(Token(0)) };
    server.handle_segment(now, id, third);
    assert!(server.poll_transmit(now).expect("a reset").1.flags.contains(Flags::RST));
    let events: Vec<_> = core::iter::from_fn(|| server.poll_event()).collect();
    assert!(matches!(events[..], [Event::SubflowClosed(closed, _)] if closed == id), "{events:?}");
}

/// A SYN without ACK would open the subflow without the HMAC of the SYN/ACK.
#[test]
fn a_simultaneous_open_of_a_subflow_proves_nothing() {
    let mut world = connected();
    let (now, client) = (world.now, world.client.mptcp());
    let id = client.join(now, (PathId(0), AddressId(1)), (5, 80), None, SECRETS).expect("it can join");
    while client.poll_transmit(now).is_some() {}
    let syn = join_syn(client.token());
    client.handle_segment(now, id, syn.clone());
    let ack = Segment { seq: SeqNumber(10), ack: SeqNumber(3), flags: Flags::ACK, ..syn };
    client.handle_segment(now, id, Segment { mptcp: Mptcp::dss_only(Dss::default()), ..ack });
    assert_eq!(client.subflow_info(id).map(|subflow| subflow.tcp.state), Some(State::SynSent));
}

/// RFC 8684 section 3.1: an MP_CAPABLE with flag B, without flag H or of another version is
/// ignored, so both ends continue as TCP.
#[test]
fn offers_of_another_kind_are_ignored() {
    type Change = fn(&mut MpCapable);
    let changes: [Change; 3] = [
        |capable| capable.extended = true,
        |capable| capable.hmac_sha256 = false,
        |capable| capable.version = 0,
    ];
    let places: [fn(&CapableForm) -> bool; 3] = [
        |form| matches!(form, CapableForm::Syn),
        |form| matches!(form, CapableForm::SynAck { .. }),
        |form| matches!(form, CapableForm::Ack { .. } | CapableForm::Data { .. }),
    ];
    for change in changes {
        for place in places {
            let mut world = world();
            world.rule = Some(Box::new(move |_, _, _, segment| {
                if let [MptcpOption::MpCapable(capable)] = segment.mptcp.options()
                    && place(&capable.form)
                {
                    let mut capable = *capable;
                    change(&mut capable);
                    segment.mptcp = Mptcp::only(MptcpOption::MpCapable(capable));
                }
                Verdict::Pass
            }));
            let data = Bytes::from(Prng::new(5).octets(5_000));
            (world.client.outbox, world.server.outbox) = (data.clone(), data.clone());
            world.run_until(at(10), |_| false);
            assert!(!world.client.mptcp().is_multipath() && !world.server.mptcp().is_multipath());
            assert_eq!((&world.client.inbox[..], &world.server.inbox[..]), (&data[..], &data[..]));
        }
    }
}

/// Places are limited, and those of closed subflows are used again.
#[test]
fn a_peer_uses_up_no_places_of_subflows() {
    let mut world = connected();
    let (now, server) = (world.now, world.server.mptcp());
    let syn = join_syn(server.token());
    let mut last = SubflowId(0);
    for _ in 0..5000 {
        let id = server.accept_join(now, PathId(0), &syn, AddressId(1), SECRETS).expect("a place");
        let reset = Segment { seq: SeqNumber(10), flags: Flags::RST, ..Segment::default() };
        server.handle_segment(now, id, reset);
        while server.poll_transmit(now).is_some() || server.poll_event().is_some() {}
        last = last.max(id);
    }
    assert_eq!(last, SubflowId(63));
    let open: Vec<_> =
        (0..9).map(|_| server.accept_join(now, PathId(0), &syn, AddressId(1), SECRETS)).collect();
    assert_eq!(open.iter().filter(|id| id.is_ok()).count(), 7);
    let refused = open[8].expect_err("no place is left");
    assert_eq!(refused, JoinError::TooMany);
    let why = MpTcpRst { transient: true, reason: ResetReason::LACK_OF_RESOURCES };
    let reset = refused.reset_for(&syn).expect("a reset");
    assert_eq!((reset.ack, reset.mptcp), (SeqNumber(10), Mptcp::only(MptcpOption::MpTcpRst(why))));
}
