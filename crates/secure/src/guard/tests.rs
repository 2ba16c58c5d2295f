//! Tests of guards against each other, and against an attacker between them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_wire::set::{Plan, Request, SetAck, SetAckStatus, SetSyn, TransferId, VERSION};
use proptest::prelude::*;

use super::*;
use crate::keys::{SecretKey, SharedKey};
use crate::layout::OVERHEAD;
use crate::node::WhoMay;
use crate::octets::Hex;
use crate::sender::Acquaintance;

const TRANSFER: TransferId = TransferId(0x0102_0304_0506_0708);

/// A clock under which greetings are numbered from 1.
fn first() -> u64 {
    1
}

/// A clock that advances with each call: numbers of one sender's greetings rise across transfers.
fn later() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

fn key(octet: u8) -> SecretKey {
    SecretKey::from_octets([octet; 32])
}

fn octets(message: &Message) -> Bytes {
    let mut octets = Vec::new();
    encode(message, &mut octets);
    octets.into()
}

fn request() -> Bytes {
    octets(&Message::Request(Request {
        version: VERSION,
        transfer: TRANSFER,
        length: 129_000,
        plan: Plan::Stripe,
        file: None,
        copy: false,
        manifest: None,
    }))
}

fn join(session: u8) -> Join {
    Join { transfer: TRANSFER, session, sessions: 3, plan: Plan::Stripe }
}

fn setsyn(session: u8) -> Bytes {
    let destination = "[fd00::2]:47200".parse().unwrap();
    octets(&Message::SetSyn(SetSyn { join: join(session), destination }))
}

/// Everything that a guard has for its socket.
fn sent(guard: &mut Guard) -> Bytes {
    let mut all = BytesMut::new();
    while let Some(octets) = guard.poll_transmit() {
        all.extend_from_slice(&octets);
    }
    all.freeze()
}

/// A sender, a gateway and a node that know each other.
struct World {
    sender: Arc<SenderKeys>,
    door: Arc<Doorkeeper>,
    node: Arc<NodeKeys>,
}

impl World {
    fn new() -> Self {
        let (sender, gateway, node) = (key(1), key(2), key(3));
        let who = WhoMay { own: Some(node.clone()), senders: vec![sender.public()], shared: Vec::new() };
        Self {
            door: Doorkeeper::new(gateway, [sender.public()]),
            sender: SenderKeys::new(sender, Acquaintance::Known(node.public()), first),
            node: NodeKeys::new(who),
        }
    }

    /// Runs the handshake of the control stream, up to the request.
    fn greet(&self) -> (Guard, Guard) {
        let (mut a, mut b) = (Guard::control(&self.sender).unwrap(), Guard::node(&self.node));
        a.write(request()).unwrap();
        assert_eq!(b.read(sent(&mut a)), Ok(None));
        assert_eq!(a.read(sent(&mut b)), Ok(None));
        assert_eq!(b.read(sent(&mut a)), Ok(Some(request())));
        (a, b)
    }

    /// The three guards of a session; `told` is what the gateway sends to the node.
    fn session(&self, number: u8) -> (Guard, Guard, Guard) {
        let mut a = Guard::session(&self.sender, key(2).public()).unwrap();
        a.write(setsyn(number)).unwrap();
        (a, Guard::gateway(&self.door), Guard::node(&self.node))
    }
}

fn setack() -> Bytes {
    octets(&Message::SetAck(SetAck { session: 0, status: SetAckStatus::Open }))
}

#[test]
fn a_transfer_passes_through_a_gateway_that_has_no_key_for_it() {
    let world = World::new();
    let (mut a, mut b) = world.greet();
    b.write(Bytes::from_static(b"accept")).unwrap();
    assert_eq!(a.read(sent(&mut b)), Ok(Some(Bytes::from_static(b"accept"))));

    let (mut sender, mut gateway, mut node) = world.session(0);
    sender.write(Bytes::from_static(b"the first ")).unwrap();
    sender.write(Bytes::from_static(b"chunks")).unwrap();
    let at_gateway = gateway.read(sent(&mut sender)).unwrap().unwrap();
    assert!(at_gateway.starts_with(&setsyn(0)));
    let ahead = at_gateway.slice(setsyn(0).len()..);
    assert!(!ahead.windows(6).any(|window| window == b"chunks"));
    gateway.write(setack()).unwrap();
    assert!(gateway.is_passing());
    assert_eq!(sender.read(sent(&mut gateway)), Ok(Some(setack())));

    let mut wireless = BytesMut::from(&join_octets(join(0))[..]);
    wireless.extend_from_slice(&ahead);
    let expected = [&join_octets(join(0))[..], b"the first chunks"].concat();
    assert_eq!(node.read(wireless.freeze()).unwrap().unwrap(), expected);
    assert!(node.is_proven());

    node.write(Bytes::from_static(b"ack")).unwrap();
    let up = gateway.read(sent(&mut node)).unwrap().unwrap();
    assert_eq!(sender.read(up), Ok(Some(Bytes::from_static(b"ack"))));
    assert_eq!((sender.end(), node.end()), (Ok(()), Ok(())));
}

#[test]
fn a_shared_key_serves_as_well_and_another_does_not() {
    let shared = SharedKey::from_octets([9; 32]);
    let node = NodeKeys::new(WhoMay { shared: vec![("small".into(), shared.clone())], ..WhoMay::default() });
    let greet = |shared: SharedKey| {
        let sender = SenderKeys::new(key(1), Acquaintance::Shared(shared), first);
        let (mut a, mut b) = (Guard::control(&sender).unwrap(), Guard::node(&node));
        b.read(sent(&mut a))?;
        a.read(sent(&mut b))?;
        a.write(request()).unwrap();
        b.read(sent(&mut a))
    };
    assert_eq!(greet(shared), Ok(Some(request())));
    assert_eq!(greet(SharedKey::from_octets([8; 32])), Err(Refused::Stranger));
    // A key pair does not help if the node accepts only a pre-shared key.
    let world = World::new();
    let mut b = Guard::node(&node);
    assert_eq!(b.read(sent(&mut Guard::control(&world.sender).unwrap())), Err(Refused::Stranger));
}

#[test]
fn strangers_are_refused_by_node_and_gateway_alike() {
    let world = World::new();
    world.greet();
    let stranger = SenderKeys::new(key(7), Acquaintance::Known(key(3).public()), first);
    let mut a = Guard::control(&stranger).unwrap();
    assert_eq!(Guard::node(&world.node).read(sent(&mut a)), Err(Refused::Stranger));
    // A sender that expects another node's key.
    let lost = SenderKeys::new(key(1), Acquaintance::Known(key(4).public()), first);
    assert_eq!(
        Guard::node(&world.node).read(sent(&mut Guard::control(&lost).unwrap())),
        Err(Refused::Stranger)
    );
    // A greeting for a node is not valid at a gateway, even if both have the same key.
    let same = Doorkeeper::new(key(3), [key(1).public()]);
    assert_eq!(
        Guard::gateway(&same).read(sent(&mut Guard::control(&world.sender).unwrap())),
        Err(Refused::Stranger)
    );
    let other = Doorkeeper::new(key(2), [key(7).public()]);
    let (mut sender, ..) = world.session(0);
    assert_eq!(Guard::gateway(&other).read(sent(&mut sender)), Err(Refused::Stranger));
    let wrong = Doorkeeper::new(key(5), [key(1).public()]);
    let (mut sender, ..) = world.session(1);
    assert_eq!(Guard::gateway(&wrong).read(sent(&mut sender)), Err(Refused::Stranger));
}

#[test]
fn plaintext_is_refused_where_encryption_was_agreed() {
    let world = World::new();
    assert_eq!(Guard::node(&world.node).read(request()), Err(Refused::Garbled));
    assert_eq!(Guard::gateway(&world.door).read(setsyn(0)), Err(Refused::Garbled));
    assert_eq!(Guard::node(&world.node).read(join_octets(join(0))), Err(Refused::Unasked));
    // A node of an older version that answers in plaintext is refused.
    let mut a = Guard::control(&world.sender).unwrap();
    assert!(a.read(Bytes::from_static(&[0x20, 0x50, 0, 0])).is_err());
}

#[test]
fn what_was_said_once_does_not_count_again() {
    let world = World::new();
    let (mut sender, mut gateway, _) = {
        world.greet();
        world.session(0)
    };
    let greeting = sent(&mut sender);
    let wired = gateway.read(greeting.clone()).unwrap().unwrap();
    assert_eq!(Guard::gateway(&world.door).read(greeting), Err(Refused::Replayed));
    // The same session on a second stream, and under another number.
    let ahead = wired.slice(setsyn(0).len()..);
    let told = |join: Join| [&join_octets(join)[..], &ahead].concat();
    let mut node = Guard::node(&world.node);
    assert!(node.read(told(join(0)).into()).is_ok());
    assert_eq!(Guard::node(&world.node).read(told(join(0)).into()), Err(Refused::Replayed));
    assert_eq!(Guard::node(&world.node).read(told(join(1)).into()), Err(Refused::Tampered));
    // A gateway that changes the parameters of the session.
    let other = Join { sessions: 15, ..join(0) };
    assert_eq!(Guard::node(&world.node).read(told(other).into()), Err(Refused::Tampered));
    // Under the keys of another handshake of the same sender.
    world.greet();
    assert_eq!(Guard::node(&world.node).read(told(join(0)).into()), Err(Refused::Tampered));
}

/// A recorded greeting gets no answer when it is replayed, even from a node that was restarted.
#[test]
fn a_greeting_is_answered_once_by_a_node_and_by_the_one_started_after_it() {
    let stored = Arc::new(Mutex::new(BTreeMap::new()));
    let start = |shared: Vec<(Arc<str>, SharedKey)>| {
        let who = WhoMay { own: Some(key(3)), senders: vec![key(1).public()], shared };
        let (keys, store) = (NodeKeys::new(who), Arc::clone(&stored));
        let floors = stored.lock().unwrap().clone();
        let keep = move |sender, number| {
            store.lock().unwrap().insert(sender, number);
        };
        keys.remember(floors, Box::new(keep));
        keys
    };
    let shared = SharedKey::from_octets([9; 32]);
    let named = || vec![("small".into(), shared.clone())];
    let node = start(named());
    let known = SenderKeys::new(key(1), Acquaintance::Known(key(3).public()), first);
    let greetings: Vec<Bytes> = (0..5).map(|_| sent(&mut Guard::control(&known).unwrap())).collect();
    // Replays may arrive in any order.
    for greeting in greetings.iter().rev() {
        let mut guard = Guard::node(&node);
        assert_eq!(guard.read(greeting.clone()), Ok(None));
        assert!(!sent(&mut guard).is_empty());
    }
    let small = SenderKeys::new(key(1), Acquaintance::Shared(shared.clone()), first);
    let of_shared = sent(&mut Guard::control(&small).unwrap());
    assert_eq!(Guard::node(&node).read(of_shared.clone()), Ok(None));
    for greeting in greetings.iter().chain([&of_shared]) {
        assert_eq!(Guard::node(&node).read(greeting.clone()), Err(Refused::Replayed));
    }
    let node = start(named());
    for greeting in &greetings {
        assert_eq!(Guard::node(&node).read(greeting.clone()), Err(Refused::Replayed));
    }
    assert_eq!(Guard::node(&node).read(sent(&mut Guard::control(&known).unwrap())), Ok(None));
}

/// A sender of an older version does not number its greetings to a node. The node serves it.
#[test]
fn a_greeting_without_a_number_is_answered() {
    let world = World::new();
    let mut noise = greeting::begin(Purpose::Transfer, world.sender.proof(), None).unwrap();
    let old = greeting::first(Pattern::Known, &mut noise, &[]).unwrap();
    for _ in 0..2 {
        let mut guard = Guard::node(&world.node);
        assert_eq!(guard.read(old.clone()), Ok(None));
        assert!(!sent(&mut guard).is_empty() && !guard.is_proven());
    }
}

/// A restarted gateway does not call the node for a greeting that was seen before the restart.
#[test]
fn a_greeting_is_served_once_by_a_gateway_and_by_the_one_started_after_it() {
    let world = World::new();
    world.greet();
    let stored = Arc::new(Mutex::new(BTreeMap::new()));
    let start = || {
        let (door, store) = (Doorkeeper::new(key(2), [key(1).public()]), Arc::clone(&stored));
        let floors = stored.lock().unwrap().clone();
        let keep = move |sender, number| {
            store.lock().unwrap().insert(sender, number);
        };
        door.remember(floors, Box::new(keep));
        door
    };
    let greetings: Vec<Bytes> = (0..3).map(|number| sent(&mut world.session(number).0)).collect();
    let door = start();
    for greeting in greetings[..2].iter().rev() {
        assert!(matches!(Guard::gateway(&door).read(greeting.clone()), Ok(Some(_))));
    }
    for _ in 0..3 {
        let door = start();
        for greeting in &greetings[..2] {
            assert_eq!(Guard::gateway(&door).read(greeting.clone()), Err(Refused::Replayed));
        }
    }
    assert!(matches!(Guard::gateway(&start()).read(greetings[2].clone()), Ok(Some(_))));
}

/// Numbers follow the clock, not the start of the process, so a long push is not older than a push
/// that began after it.
#[test]
fn numbers_of_greetings_follow_the_clock_and_never_repeat() {
    static CLOCK: AtomicU64 = AtomicU64::new(0);
    fn clock() -> u64 {
        CLOCK.load(Ordering::Relaxed)
    }
    let sender = SenderKeys::new(key(1), Acquaintance::Known(key(3).public()), clock);
    let at = |time| {
        CLOCK.store(time, Ordering::Relaxed);
        sender.next_number()
    };
    assert_eq!([5, 5, 100, 90, 100, 200, u64::MAX].map(at), [5, 6, 100, 101, 102, 200, u64::MAX]);
}

/// The key of one sender is revoked while it sends.
#[test]
fn a_key_that_is_revoked_ends_its_streams_and_begins_no_others() {
    let world = World::new();
    let (mut control, mut at_node) = world.greet();
    let (mut sender, mut gateway, mut node) = world.session(0);
    let wired = gateway.read(sent(&mut sender)).unwrap().unwrap();
    gateway.write(setack()).unwrap();
    let ahead = wired.slice(setsyn(0).len()..);
    let join = [&join_octets(join(0))[..], &ahead].concat();
    assert!(node.read(join.into()).unwrap().is_some());

    world.door.reload([key(7).public()]);
    let who = WhoMay { senders: vec![key(7).public()], ..WhoMay::default() };
    world.node.reload(who);
    sender.read(sent(&mut gateway)).unwrap();
    sender.write(Bytes::from_static(b"more")).unwrap();
    let more = sent(&mut sender);
    assert_eq!(gateway.read(more.clone()), Err(Refused::Revoked));
    assert_eq!(node.read(more), Err(Refused::Revoked));
    control.write(Bytes::from_static(b"more")).unwrap();
    assert_eq!(at_node.read(sent(&mut control)), Err(Refused::Revoked));
    assert!(world.node.of(TRANSFER).is_none());
    let mut again = Guard::control(&world.sender).unwrap();
    assert_eq!(Guard::node(&world.node).read(sent(&mut again)), Err(Refused::Stranger));
    let next = sent(&mut world.session(1).0);
    assert_eq!(Guard::gateway(&world.door).read(next), Err(Refused::Stranger));
}

/// Holders of different pre-shared keys count as different senders.
#[test]
fn holders_of_different_pre_shared_keys_are_told_apart() {
    let [one, two, none] = [11, 12, 13].map(|octet| SharedKey::from_octets([octet; 32]));
    let shared = vec![("one".into(), one.clone()), ("two".into(), two.clone())];
    let node = NodeKeys::new(WhoMay { shared, ..WhoMay::default() });
    let ask = |shared: &SharedKey| {
        let sender = SenderKeys::new(key(1), Acquaintance::Shared(shared.clone()), later);
        ask(&sender, &node, TRANSFER)
    };
    assert_eq!(ask(&none), Err(Refused::Stranger));
    assert_eq!(ask(&two), Ok(()));
    assert_eq!(ask(&one), Err(Refused::Stranger), "the transfer is that of another");
    node.reload(WhoMay { shared: vec![("one".into(), one.clone())], ..WhoMay::default() });
    assert_eq!(ask(&two), Err(Refused::Stranger), "its key was revoked");
    assert_eq!(ask(&one), Ok(()));
}

/// A sender that requests many transfers evicts only its own keys.
#[test]
fn no_number_of_requests_evicts_another_sender_s_keys() {
    let senders = [1, 6].map(key);
    let who = WhoMay {
        own: Some(key(3)),
        senders: senders.iter().map(SecretKey::public).collect(),
        shared: vec![("small".into(), SharedKey::from_octets([9; 32]))],
    };
    let node = NodeKeys::new(who);
    let [one, two] = senders.map(|own| SenderKeys::new(own, Acquaintance::Known(key(3).public()), first));
    let small = SenderKeys::new(key(1), Acquaintance::Shared(SharedKey::from_octets([9; 32])), first);
    assert_eq!(ask(&one, &node, TRANSFER), Ok(()));
    for number in 0..100 {
        assert_eq!(ask(&two, &node, TransferId(number)), Ok(()));
        assert_eq!(ask(&small, &node, TransferId(1_000 + number)), Ok(()));
    }
    assert!(node.of(TRANSFER).is_some());
    let kept = (0..2_000).filter(|number| node.of(TransferId(*number)).is_some()).count();
    assert_eq!(kept, 2 * 8, "what is kept for each is bounded");
}

/// Several pushes under one key may wait while one transfer runs and the node's owner decides about
/// another.
#[test]
fn no_request_evicts_the_keys_of_a_live_transfer() {
    let senders = [1, 6].map(key);
    let who = WhoMay {
        own: Some(key(3)),
        senders: senders.iter().map(SecretKey::public).collect(),
        ..WhoMay::default()
    };
    let node = NodeKeys::new(who);
    let [one, two] = senders.map(|own| SenderKeys::new(own, Acquaintance::Known(key(3).public()), first));
    let asked = TransferId(TRANSFER.0 + 1);
    assert_eq!([TRANSFER, asked].map(|transfer| ask(&one, &node, transfer)), [Ok(()), Ok(())]);
    node.set_live([Some(TRANSFER), Some(asked)]);
    for number in 1_000..1_100 {
        assert_eq!(ask(&one, &node, TransferId(number)), Ok(()));
        assert_eq!(ask(&two, &node, TransferId(1_000 + number)), Ok(()));
        assert!(node.of(TRANSFER).is_some() && node.of(asked).is_some(), "after {number}");
    }
    assert_eq!(ask(&two, &node, TRANSFER), Err(Refused::Stranger));
    let others = (0..3_000).filter(|number| node.of(TransferId(*number)).is_some()).count();
    assert_eq!(others + 2, 2 * 8, "what is kept for each is bounded");
    node.set_live([None, None]);
    (1_000..1_010).for_each(|number| assert_eq!(ask(&one, &node, TransferId(number)), Ok(())));
    assert!(node.of(TRANSFER).is_none(), "it is over");
}

/// Requests a transfer.
fn ask(sender: &Arc<SenderKeys>, node: &Arc<NodeKeys>, transfer: TransferId) -> Result<(), Refused> {
    let (mut a, mut b) = (Guard::control(sender).unwrap(), Guard::node(node));
    b.read(sent(&mut a))?;
    a.read(sent(&mut b))?;
    let request = Request {
        version: VERSION,
        transfer,
        length: 129_000,
        plan: Plan::Stripe,
        file: None,
        copy: false,
        manifest: None,
    };
    a.write(octets(&Message::Request(request))).unwrap();
    b.read(sent(&mut a)).map(drop)
}

#[test]
fn a_transfer_belongs_to_the_sender_that_asked_for_it() {
    let (one, two, node) = (key(1), key(6), key(3));
    let who =
        WhoMay { own: Some(node.clone()), senders: vec![one.public(), two.public()], shared: Vec::new() };
    let keys = NodeKeys::new(who);
    let ask = |own: SecretKey| {
        let sender = SenderKeys::new(own, Acquaintance::Known(node.public()), later);
        let (mut a, mut b) = (Guard::control(&sender).unwrap(), Guard::node(&keys));
        b.read(sent(&mut a))?;
        a.read(sent(&mut b))?;
        a.write(request()).unwrap();
        b.read(sent(&mut a))
    };
    assert!(ask(one.clone()).is_ok());
    assert_eq!(ask(two), Err(Refused::Stranger));
    assert!(ask(one).is_ok());
}

/// The type byte and the length suffice to refuse an invalid greeting: a stranger cannot make a
/// peer wait or buffer 64 KiB.
#[test]
fn a_greeting_of_a_length_that_cannot_be_is_refused_before_it_has_come() {
    let world = World::new();
    for (length, answer) in [
        (0, Err(Refused::Garbled)),
        (256, Ok(None)),
        (257, Err(Refused::Garbled)),
        (u16::MAX, Err(Refused::Garbled)),
    ] {
        for pattern in [0xb0, 0xb1] {
            let [high, low] = length.to_be_bytes();
            let octets = Bytes::copy_from_slice(&[pattern, high, low]);
            assert_eq!(Guard::gateway(&world.door).read(octets.clone()), answer, "gateway: {octets:?}");
            assert_eq!(Guard::node(&world.node).read(octets.clone()), answer, "node: {octets:?}");
        }
    }
}

/// SET numbers sessions from 0 to 254. Each may begin once, independently of the others.
#[test]
fn every_session_of_a_transfer_begins_once() {
    let world = World::new();
    world.greet();
    let begins = |session: u8| {
        let join = Join { session, sessions: 255, ..join(0) };
        let destination = "[fd00::2]:47200".parse().unwrap();
        let setsyn = octets(&Message::SetSyn(SetSyn { join, destination }));
        let mut sender = Guard::session(&world.sender, key(2).public()).unwrap();
        sender.write(setsyn.clone()).unwrap();
        let wired = Guard::gateway(&world.door).read(sent(&mut sender)).unwrap().unwrap();
        let ahead = wired.slice(setsyn.len()..);
        let said = Bytes::from([&join_octets(join)[..], &ahead].concat());
        assert!(Guard::node(&world.node).read(said.clone()).is_ok(), "session {session}");
        said
    };
    let said: Vec<Bytes> = (0..255).map(begins).collect();
    for (session, said) in said.into_iter().enumerate() {
        assert_eq!(Guard::node(&world.node).read(said), Err(Refused::Replayed), "session {session}");
    }
}

/// A sender that reuses a session number is refused before anything is sealed with it: under the
/// same keys both sessions would use the same nonces.
#[test]
fn a_session_number_is_sealed_with_once_under_the_same_keys() {
    let world = World::new();
    world.greet();
    let begin = |session: u8| {
        let join = Join { session, sessions: 255, ..join(0) };
        let destination = "[fd00::2]:47200".parse().unwrap();
        let mut sender = Guard::session(&world.sender, key(2).public()).unwrap();
        let written = sender.write(octets(&Message::SetSyn(SetSyn { join, destination })));
        written.map(|()| sent(&mut sender).len())
    };
    for session in 0..255 {
        assert!(begin(session).is_ok(), "session {session}");
    }
    for session in 0..=255 {
        // Number 255 belongs to the control stream, and no message carries it.
        assert!(begin(session).is_err(), "session {session}");
    }
    assert_eq!(begin(254), Err(Refused::Repeated));
    // The keys of another handshake have their own nonces.
    world.greet();
    assert!(begin(254).is_ok());
}

/// Bytes that the socket does not take yet are counted, so that the machine knows when to stop
/// writing.
#[test]
fn what_waits_shares_records_and_is_counted_until_it_is_handed_out() {
    let world = World::new();
    let (mut a, _) = world.greet();
    // Before the node's first answer its buffer is unknown, and records are short.
    a.write(vec![0; 300].into()).unwrap();
    let records = std::iter::from_fn(|| a.poll_transmit()).map(|record| record.len());
    assert_eq!(records.collect::<Vec<_>>(), [256 + OVERHEAD, 44 + OVERHEAD]);
    let (mut a, mut b) = World::new().greet();
    b.write(Bytes::from_static(b"an answer")).unwrap();
    a.read(sent(&mut b)).unwrap();
    assert_eq!(a.waiting(), 0);
    let pieces = [7_000, 7_000, 7_000, 20_000, 1].map(|n| (0..n).map(|i| i as u8).collect::<Vec<_>>());
    for piece in &pieces {
        a.write(piece.clone().into()).unwrap();
    }
    let plain = pieces.concat();
    assert_eq!(a.waiting(), plain.len());
    let (mut got, mut records) = (Vec::new(), 0);
    while let Some(record) = a.poll_transmit() {
        assert!(record.len() <= MAX_PLAIN + OVERHEAD);
        got.extend_from_slice(&b.read(record).unwrap().unwrap());
        assert_eq!(a.waiting(), plain.len() - got.len());
        records += 1;
    }
    assert_eq!(a.waiting(), 0);
    assert!(got == plain);
    assert_eq!(records, plain.len().div_ceil(MAX_PLAIN));
}

#[test]
fn a_setsyn_that_is_repeated_has_no_place() {
    let world = World::new();
    world.greet();
    let (mut sender, mut gateway, _) = world.session(0);
    sender.write(setsyn(0)).unwrap();
    let wired = gateway.read(sent(&mut sender)).unwrap().unwrap();
    sender.write(setsyn(0)).unwrap();
    assert_eq!(sent(&mut sender), Bytes::new());
    assert_eq!(wired.len(), setsyn(0).len() + join_octets(join(0)).len() + OVERHEAD);
}

#[test]
fn a_stream_that_ends_within_a_record_is_cut_short() {
    let world = World::new();
    let (mut a, mut b) = world.greet();
    a.write(Bytes::from_static(b"something")).unwrap();
    let record = sent(&mut a);
    assert_eq!(b.read(record.slice(..record.len() - 1)), Ok(None));
    assert_eq!(b.end(), Err(Refused::Truncated));
}

/// All bytes that a sender writes on a session: greeting and records.
fn recorded(pieces: &[usize]) -> (World, Bytes, Vec<u8>) {
    let world = World::new();
    world.greet();
    let (mut sender, ..) = world.session(0);
    let mut plain = join_octets(join(0)).to_vec();
    let mut wire = BytesMut::from(&sent(&mut sender)[..]);
    for (i, n) in pieces.iter().enumerate() {
        let piece = vec![i as u8; *n];
        plain.extend_from_slice(&piece);
        sender.write(piece.into()).unwrap();
        wire.extend_from_slice(&sent(&mut sender));
    }
    (world, wire.freeze(), plain)
}

/// What the node's machine receives if the sender's bytes arrive cut into pieces at `cuts`.
fn received(world: &World, wire: &Bytes, cuts: &[usize]) -> (Vec<u8>, Result<(), Refused>) {
    let (mut gateway, mut node) = (Guard::gateway(&world.door), Guard::node(&world.node));
    let mut plain = Vec::new();
    let mut first = true;
    let mut at = 0;
    for cut in cuts.iter().map(|cut| cut % (wire.len() + 1)).chain([wire.len()]) {
        if cut <= at {
            continue;
        }
        let piece = wire.slice(at..cut);
        at = cut;
        let passed = match gateway.read(piece) {
            Ok(passed) => passed,
            Err(refused) => return (plain, Err(refused)),
        };
        let Some(mut passed) = passed else { continue };
        if std::mem::take(&mut first) {
            let rest = passed.split_off(setsyn(0).len().min(passed.len()));
            passed = [&join_octets(join(0))[..], &rest].concat().into();
        }
        match node.read(passed) {
            Ok(octets) => plain.extend_from_slice(&octets.unwrap_or_default()),
            Err(refused) => return (plain, Err(refused)),
        }
    }
    (plain, gateway.end().and(node.end()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn octets_arrive_however_the_network_cuts_them(
        pieces in prop::collection::vec(1_usize..40_000, 0..6),
        mut cuts in prop::collection::vec(any::<usize>(), 0..40),
    ) {
        let (world, wire, plain) = recorded(&pieces);
        cuts.iter_mut().for_each(|cut| *cut %= wire.len() + 1);
        cuts.sort_unstable();
        prop_assert_eq!(received(&world, &wire, &cuts), (plain, Ok(())));
    }

    /// Whatever is changed, the node never accepts a byte that the sender has not written at this
    /// position.
    #[test]
    fn what_is_changed_is_refused(
        pieces in prop::collection::vec(1_usize..2_000, 1..5),
        at in any::<prop::sample::Index>(),
        bit in 0_u32..8,
        deed in 0..4,
    ) {
        let (world, wire, plain) = recorded(&pieces);
        let mut changed = wire.to_vec();
        let at = at.index(changed.len());
        match deed {
            0 => changed[at] ^= 1 << bit,
            1 => { changed.remove(at); }
            2 => changed.insert(at, bit as u8),
            _ => changed.truncate(at),
        }
        if changed == wire {
            return Ok(());
        }
        let (got, ended) = received(&world, &changed.into(), &[]);
        prop_assert!(plain.starts_with(&got));
        prop_assert!(ended.is_err() || got.len() < plain.len(), "{:?}", ended);
    }
}

/// The worked example of docs/explanation/set-security.md.
#[test]
fn the_documented_example_holds() {
    let document: String =
        include_str!("../../../../docs/explanation/set-security.md").split_whitespace().collect::<String>();
    let world = World::new();
    let mut a = Guard::control_with(&world.sender, Some(&[0x11; 32])).unwrap();
    let first = sent(&mut a);
    let (keys, answer) = answer(&world.node, Pattern::Known, &first[3..], Some(&[0x22; 32])).unwrap();
    assert_eq!(a.read(answer.clone()), Ok(None));
    a.write(request()).unwrap();
    let record = sent(&mut a);
    let mut b = Guard::at(Stage::AwaitRequest {
        shared: Arc::clone(&world.node),
        sealed: Sealed::new(&Arc::new(keys), CONTROL).unwrap(),
    });
    assert_eq!(b.read(record.clone()), Ok(Some(request())));
    for octets in [&first, &answer, &record] {
        let octets = Hex(octets).to_string();
        assert!(document.contains(&octets), "not in the page: {octets}");
    }
}

/// Each row of the table of promises in docs/explanation/set-security.md names tests by crate,
/// modules and function. All of them must exist.
#[test]
fn every_promise_names_a_test_that_exists() {
    let page = include_str!("../../../../docs/explanation/set-security.md");
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut known = HashMap::new();
    let mut rows = 0;
    let table = page.lines().filter(|line| line.starts_with("| ") && line.matches(" | ").count() == 3);
    for row in table.filter(|row| !row.starts_with("| attacker |") && !row.starts_with("| ---")) {
        let tests = row.rsplit(" | ").next().unwrap();
        let names: Vec<&str> = tests.split('`').filter(|text| text.contains("::")).collect();
        assert!(!names.is_empty(), "no test: {row}");
        for name in names {
            let (member, _) = name.split_once("::").unwrap();
            let tests: &HashSet<String> =
                known.entry(member.to_owned()).or_insert_with(|| tests_of(crates, member));
            let function = name.rsplit("::").next().unwrap();
            let elsewhere: Vec<&String> =
                tests.iter().filter(|test| test.rsplit("::").next() == Some(function)).collect();
            assert!(tests.contains(name), "no test {name}, but {elsewhere:?}");
        }
        rows += 1;
    }
    assert!(rows > 20, "{rows} promises with tests");
}

/// Only functions that run as tests count, in the modules that contain them.
#[test]
fn a_promise_is_kept_by_a_test_and_by_no_other_function() {
    let tests = tests_of(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap(), "secure");
    let is_test = |name: &str| tests.contains(name);
    assert!(is_test("secure::guard::a_promise_is_kept_by_a_test_and_by_no_other_function"));
    assert!(is_test("secure::guard::what_is_changed_is_refused"), "within proptest!");
    assert!(is_test("secure::octets::nothing_is_left_of_a_key_that_goes"), "in a module of its file");
    assert!(!is_test("secure::what_is_changed_is_refused"), "another module");
    assert!(!is_test("secure::guard::recorded"), "a function that the tests call");
    let page = "mod tests {\n    #[test]\n    #[ignore]\n    fn no() {}\n    /// Text.\n    #[test]\n    fn yes() {}\n}\n\
                // #[test]\nfn no() {}\n#[test]\nfn yes() {}\n";
    let mut found = HashSet::new();
    tests_in(page, Path::new("."), "a::b", &mut found);
    assert_eq!(found, HashSet::from(["a::b::yes".to_owned()]));
}

/// All tests of a crate: its name, the modules without those named `tests`, and the function.
fn tests_of(crates: &Path, member: &str) -> HashSet<String> {
    let folder = crates.join(member);
    let entries = std::fs::read_dir(folder.join("tests")).into_iter().flatten();
    let binaries = entries.map(|entry| entry.unwrap().path().join("main.rs"));
    let roots = [folder.join("src/lib.rs"), folder.join("src/main.rs")].into_iter().chain(binaries);
    let mut found = HashSet::new();
    for root in roots.filter(|root| root.is_file()) {
        tests_in(&std::fs::read_to_string(&root).unwrap(), root.parent().unwrap(), member, &mut found);
    }
    assert!(!found.is_empty(), "no tests in {}", folder.display());
    found
}

/// The tests in the text of `module` and in the modules that it declares, whose files are in
/// `folder`. It relies on rustfmt: an item begins its line, and the closing brace of a module is
/// indented as the module is.
fn tests_in(text: &str, folder: &Path, module: &str, found: &mut HashSet<String>) {
    let join = |path: &str, name: &str| match name {
        "tests" => path.to_owned(),
        name => format!("{path}::{name}"),
    };
    let mut within = vec![(0, module.to_owned(), folder.to_owned())];
    let mut attributes = Vec::new();
    for line in text.lines() {
        let item = line.trim_start();
        let indented = line.len() - item.len();
        let (at, path, folder) = within.last().unwrap().clone();
        if item.starts_with("//") {
            continue;
        }
        if item.starts_with("#[") {
            attributes.push(item);
            continue;
        }
        if item == "}" && within.len() > 1 && indented == at {
            within.pop();
        }
        let item =
            ["pub ", "pub(crate) ", "pub(super) "].iter().find_map(|p| item.strip_prefix(p)).unwrap_or(item);
        if let Some(name) = item.strip_prefix("mod ") {
            if let Some(name) = name.strip_suffix(" {") {
                within.push((indented, join(&path, name), folder.join(name)));
            } else if let Some(name) = name.strip_suffix(';') {
                let files = [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")];
                // A module with `#[path]` has its tests elsewhere; the table names none of them.
                if let Some(file) = files.iter().find(|file| file.is_file()) {
                    let text = std::fs::read_to_string(file).unwrap();
                    tests_in(&text, &folder.join(name), &join(&path, name), found);
                }
            }
        }
        let is_test = attributes.iter().any(|it| *it == "#[test]" || it.starts_with("#[tokio::test"));
        let is_ignored = attributes.iter().any(|it| it.starts_with("#[ignore"));
        let function = item.strip_prefix("fn ").or_else(|| item.strip_prefix("async fn "));
        if let Some(function) = function.filter(|_| is_test && !is_ignored) {
            found.insert(format!("{path}::{}", function.split('(').next().unwrap()));
        }
        attributes.clear();
    }
}

/// The gateway sends more than a SETACK in its answer.
#[test]
fn a_gateway_says_no_more_than_a_setack() {
    use anabranch_wire::set::{Ack, Refuse, RefuseReason};
    for forged in [
        octets(&Message::Ack(Ack { delivered: 129_000, received: 129_000, held: vec![] })),
        octets(&Message::Refuse(Refuse { reason: RefuseReason::Digest, delivered: 0 })),
    ] {
        let world = World::new();
        world.greet();
        let (mut sender, mut gateway, _) = world.session(0);
        gateway.read(sent(&mut sender)).unwrap();
        let answer = [&setack()[..], &forged[..]].concat();
        gateway.write(answer.into()).unwrap();
        let heard = sender.read(sent(&mut gateway));
        assert!(heard.is_err() || heard == Ok(Some(setack())), "{heard:?}");
    }
}

/// The first of two pre-shared keys in a file is removed, so the second takes over its name.
#[test]
fn a_pre_shared_key_whose_name_another_gets_ends_its_streams() {
    let (bad, good) = (SharedKey::from_octets([8; 32]), SharedKey::from_octets([9; 32]));
    let node = NodeKeys::new(WhoMay {
        shared: vec![("f:1".into(), bad.clone()), ("f:2".into(), good.clone())],
        ..WhoMay::default()
    });
    let begin = |shared: SharedKey| {
        let sender = SenderKeys::new(key(1), Acquaintance::Shared(shared), later);
        let (mut a, mut b) = (Guard::control(&sender).unwrap(), Guard::node(&node));
        b.read(sent(&mut a)).unwrap();
        a.read(sent(&mut b)).unwrap();
        (a, b)
    };
    let (mut thief, mut at_node) = begin(bad);
    node.reload(WhoMay { shared: vec![("f:1".into(), good)], ..WhoMay::default() });
    thief.write(request()).unwrap();
    assert_eq!(at_node.read(sent(&mut thief)), Err(Refused::Revoked));
}
