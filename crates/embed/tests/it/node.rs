//! Answers of a node to unwanted input.

use anabranch_core::set::{Effect, FileIdentity, RefuseReason, StreamId};
use anabranch_core::time::{Duration, Instant};
use anabranch_node::api::abort;
use anabranch_node::node::{Config, Error, Event, Node};
use anabranch_node::sizes::Sizes;
use anabranch_wire::set::{self as wire, Message, Plan, Refuse, Request, TransferId, VERSION};
use sha2::{Digest, Sha256};

const NOW: Instant = Instant::ZERO;
/// When a transfer without progress gives way.
const LATER: Instant = Instant::from_nanos(60_000_000_000);
/// Two sessions of transfer 7.
const JOIN: &[u8] = &[0x50, 0, 0, 0, 0, 0, 0, 0, 7, 0, 2];

fn node(pieces: u16) -> Node {
    let sizes = Sizes { pieces, connections: 3, gateways: 0, ..Sizes::default() };
    Node::new(Config { sizes, idle: Duration::from_secs(60), gateways: &[], gateway_keys: &[] })
        .expect("these are possible")
}

fn request(transfer: u64, length: u64, digest: Option<[u8; 32]>) -> Vec<u8> {
    let mut octets = Vec::new();
    let file = digest.map(|digest| FileIdentity { digest, signature: None, discard: false });
    let transfer = TransferId(transfer);
    let request =
        Request { version: VERSION, transfer, length, plan: Plan::Stripe, file, copy: false, manifest: None };
    wire::encode(&Message::Request(request), &mut octets);
    octets
}

/// The request of transfer 7 for this file.
fn offer(file: &[u8]) -> Vec<u8> {
    request(7, file.len() as u64, Some(Sha256::digest(file).into()))
}

/// A chunk of at most 63 bytes; a two-byte offset, below 16,384.
fn chunk(at: u8, octets: &[u8]) -> Vec<u8> {
    let length = (octets.len() as u16 | 0x4000).to_be_bytes();
    [&[0x71, at][..], &length, octets].concat()
}

/// All pending events of a node.
fn events(node: &mut Node) -> Vec<Event> {
    std::iter::from_fn(|| node.poll()).collect()
}

/// A peer connects and sends bytes at `now`. Returns the events of both calls.
fn say(node: &mut Node, now: Instant, says: &[u8]) -> (StreamId, Vec<Event>) {
    let stream = node.accepted(now).expect("there is a place");
    let mut all = events(node);
    assert_eq!(node.data(now, stream, says), Ok(says.len()));
    all.extend(events(node));
    (stream, all)
}

fn connect(node: &mut Node, says: &[u8]) -> StreamId {
    let (stream, said) = say(node, NOW, says);
    if said.contains(&Event::Begin) {
        assert_eq!(node.accept(NOW), Ok(()));
        events(node);
    }
    stream
}

/// The file bytes among events.
fn delivered(events: &[Event]) -> Vec<u8> {
    let octets = events.iter().filter_map(|event| match event {
        Event::Deliver { octets, .. } => Some(octets.to_vec()),
        _ => None,
    });
    octets.flatten().collect()
}

/// The bytes that a node writes, among events.
fn written(events: &[Event]) -> Vec<u8> {
    let octets = events.iter().filter_map(|event| match event {
        Event::Stream(Effect::Write { octets, .. }) => Some(octets.to_vec()),
        _ => None,
    });
    octets.flatten().collect()
}

fn refused(reason: RefuseReason, delivered: u64) -> Vec<u8> {
    let mut octets = Vec::new();
    wire::encode(&Message::Refuse(Refuse { reason, delivered }), &mut octets);
    octets
}

#[test]
fn a_piece_too_many_resets_its_session_and_no_other() {
    let mut node = node(4);
    let mut file = [0x55; 64];
    [10, 20, 30, 40].iter().for_each(|at| file[*at] = 0xee);
    connect(&mut node, &offer(&file));
    let (poor, good) = (connect(&mut node, JOIN), connect(&mut node, JOIN));
    for at in [10, 20, 30, 40, 50] {
        assert_eq!(node.data(NOW, poor, &[0x71, at, 1, 0xee]), Ok(4));
        let reset = events(&mut node).contains(&Event::Stream(Effect::Abort { stream: poor }));
        assert_eq!(reset, at == 50, "four may wait");
    }
    assert_eq!(node.counters().rejected, 1);
    assert_eq!(node.data(NOW, poor, &[0]), Err(Error::Stream));

    let chunk = chunk(0, &[0x55; 64]);
    assert_eq!(node.data(NOW, good, &chunk), Ok(chunk.len()));
    assert!(!node.is_complete(), "its octets have not been polled");
    assert_eq!(delivered(&events(&mut node)), file, "what came first is kept");
    assert!(node.is_complete());
}

#[test]
fn connections_too_many_are_refused_and_counted() {
    let mut node = node(4);
    let first = connect(&mut node, &offer(&[1; 64]));
    connect(&mut node, JOIN);
    connect(&mut node, &[]);
    assert_eq!(node.accepted(NOW), Err(Error::Full));
    assert_eq!(node.counters().refused, 1);
    assert_eq!(node.closed(NOW, first), Ok(()));
    assert_eq!(node.accepted(NOW), Err(Error::Poll), "what closing meant has not been polled");
    events(&mut node);
    assert!(node.accepted(NOW).is_ok());
}

#[test]
fn sizes_that_cannot_be_make_no_node() {
    let possible = Sizes::default();
    for sizes in [
        Sizes { buffer: 100, ..possible },
        Sizes { pieces: 0, ..possible },
        Sizes { read: 1, ..possible },
        Sizes { connections: 9, ..possible },
        Sizes { gateways: 1, ..possible },
    ] {
        assert!(
            Node::new(Config { sizes, idle: Duration::ZERO, gateways: &[], gateway_keys: &[] }).is_none(),
            "{sizes:?}"
        );
    }
}

#[test]
fn a_file_ends_before_its_sender_hears_of_it_and_only_with_its_digest() {
    let file = [0x55; 64];
    for (sent, right) in [(file, true), ([0x56; 64], false)] {
        let mut node = node(4);
        connect(&mut node, &offer(&file));
        let session = connect(&mut node, JOIN);
        assert_eq!(node.data(NOW, session, &chunk(0, &sent)), Ok(68));
        let events = events(&mut node);
        assert_eq!(delivered(&events), sent);
        let octets = events.iter().position(|event| matches!(event, Event::Deliver { .. })).expect("octets");
        assert_eq!(node.is_complete(), right);
        if right {
            assert_eq!(events[octets + 1], Event::End { length: 64 });
            assert!(!written(&events[octets..]).is_empty(), "the acknowledgement");
        } else {
            assert_eq!(events[octets + 1], Event::Abort(abort::DIGEST));
            assert!(written(&events).is_empty(), "{events:?}");
            assert!(events.contains(&Event::Stream(Effect::Abort { stream: session })));
        }
        // Independently of the result, the next file starts from the beginning.
        let (_, next) = say(&mut node, NOW, &request(8, 0, Some(Sha256::digest([]).into())));
        assert_eq!(next.last(), Some(&Event::Begin), "{next:?}");
        assert_eq!(node.accept(NOW), Ok(()));
        assert_eq!(self::events(&mut node)[0], Event::End { length: 0 });
    }
}

#[test]
fn more_than_was_announced_resets_the_stream_and_delivers_nothing() {
    let mut node = node(4);
    connect(&mut node, &offer(&[1; 32]));
    let session = connect(&mut node, JOIN);
    assert_eq!(node.data(NOW, session, &chunk(0, &[1; 33])), Ok(37));
    let events = events(&mut node);
    assert_eq!(events, [Event::Stream(Effect::Abort { stream: session })]);
}

#[test]
fn a_file_that_is_offered_without_a_digest_is_refused() {
    let mut node = node(4);
    let (_, said) = say(&mut node, NOW, &request(7, 64, None));
    assert!(!said.contains(&Event::Begin));
    assert_eq!(written(&said), refused(RefuseReason::Unwanted, 0));
    assert_eq!(node.accept(NOW), Err(Error::Offer));

    // The refusal is an effect like others: calls are refused until it is polled.
    let stream = node.accepted(NOW).expect("there is a place");
    events(&mut node);
    let says = request(9, 64, None);
    assert_eq!(node.data(NOW, stream, &says), Ok(says.len()));
    while !matches!(node.poll(), Some(Event::Stream(Effect::Write { .. }))) {}
    assert_eq!(node.timeout(NOW), Err(Error::Poll));
    events(&mut node);
    assert_eq!(node.timeout(NOW), Ok(()));
}

/// A transfer of which 10 bytes are delivered and 10 are held.
fn half_way(file: &[u8; 64]) -> (Node, StreamId) {
    let mut node = node(4);
    connect(&mut node, &offer(file));
    let session = connect(&mut node, JOIN);
    for at in [0, 30] {
        let chunk = chunk(at, &file[at.into()..][..10]);
        assert_eq!(node.data(NOW, session, &chunk), Ok(14));
        events(&mut node);
    }
    (node, session)
}

#[test]
fn a_transfer_that_is_over_says_why_and_leaves_nothing_to_the_next() {
    let file = [0x55; 64];
    // The sender cancels it.
    let (mut node, session) = half_way(&file);
    assert_eq!(node.data(NOW, session, &[0x90]), Ok(1));
    assert_eq!(events(&mut node)[0], Event::Abort(abort::CANCELLED));
    // The sender has disconnected.
    let (mut node, session) = half_way(&file);
    assert_eq!(node.closed(NOW, session), Ok(()));
    events(&mut node);
    assert_eq!(node.next_timeout(), Some(LATER));
    assert_eq!(node.timeout(LATER), Ok(()));
    assert_eq!(events(&mut node)[0], Event::Abort(abort::LOST));
    assert_eq!(node.next_timeout(), None);
    // Another sender asks too early, and again after the timeout.
    let (mut node, _) = half_way(&file);
    let next = request(8, 64, Some(Sha256::digest([0x66; 64]).into()));
    let (early, said) = say(&mut node, NOW, &next);
    assert_eq!(written(&said), refused(RefuseReason::Busy, 10));
    assert_eq!(node.closed(NOW, early), Ok(()));
    events(&mut node);
    let (_, said) = say(&mut node, LATER, &next);
    assert_eq!(said.iter().find(|e| matches!(e, Event::Abort(_))), Some(&Event::Abort(abort::MADE_WAY)));
    assert_eq!(said.last(), Some(&Event::Begin));
    assert_eq!(node.accept(LATER), Ok(()));
    assert!(delivered(&events(&mut node)).is_empty());
    assert_eq!(node.delivered(), 0);
}

#[test]
fn a_file_goes_on_from_what_the_program_has_and_its_digest_is_of_all() {
    let file = [0x55; 64];
    for (has, right) in [(&[0x55; 40][..], true), (&[0x56; 40], false), (&file, true), (&[0x54; 64], false)] {
        let mut node = node(4);
        let (_, said) = say(&mut node, NOW, &offer(&file));
        assert_eq!(said.last(), Some(&Event::Begin));
        let (first, second) = has.split_at(13);
        assert_eq!((node.have(first), node.have(second)), (Ok(()), Ok(())));
        assert_eq!(node.have(&[0; 25]), Err(Error::Offer), "no file of 64 octets has 65");
        assert_eq!(node.accept(NOW), Ok(()));
        let mut said = events(&mut node);
        if has.len() < 64 {
            // An acknowledgement tells the sender.
            assert_eq!(written(&said)[..2], [0x80, 40]);
            let session = connect(&mut node, JOIN);
            assert_eq!(node.data(NOW, session, &chunk(40, &file[40..])), Ok(28));
            said = events(&mut node);
            assert_eq!(delivered(&said), file[40..]);
        }
        assert_eq!(said.contains(&Event::End { length: 64 }), right);
        assert_eq!(said.contains(&Event::Abort(abort::DIGEST)), !right);
    }
}

#[test]
fn a_program_may_refuse_or_answer_later() {
    let file = [0x55; 64];
    for reason in [RefuseReason::Busy, RefuseReason::Unfinished, RefuseReason::Unwanted] {
        let mut node = node(4);
        let (_, said) = say(&mut node, NOW, &offer(&file));
        assert_eq!(said.last(), Some(&Event::Begin));
        assert_eq!(node.refuse(NOW, reason, 12), Ok(()));
        assert_eq!(written(&events(&mut node)), refused(reason, 12));
        assert_eq!(node.offer(), None);
        assert_eq!(node.accept(NOW), Err(Error::Offer));
    }
    let mut node = node(4);
    let (asks, said) = say(&mut node, NOW, &offer(&file));
    assert_eq!(said.last(), Some(&Event::Begin));
    let other = request(8, 64, Some([9; 32]));
    let (busy, said) = say(&mut node, NOW, &other);
    assert_eq!(written(&said), refused(RefuseReason::Busy, 0));
    // The sender may disconnect and ask again meanwhile; that is the same offer.
    for stream in [asks, busy] {
        assert_eq!(node.closed(NOW, stream), Ok(()));
        events(&mut node);
    }
    let (_, said) = say(&mut node, NOW, &offer(&file));
    assert!(!said.contains(&Event::Begin));
    assert_eq!(node.offer().map(|request| request.transfer), Some(TransferId(7)));
    assert_eq!(node.accept(NOW), Ok(()));
    assert_eq!(written(&events(&mut node))[0] >> 4, 2, "ACCEPT");
}

#[test]
fn what_a_program_cannot_keep_is_not_acknowledged() {
    let file = [0x55; 64];
    let is_octets = |event: &Event| matches!(event, Event::Deliver { .. });
    let is_end = |event: &Event| matches!(event, Event::End { .. });
    for fails in [is_octets, is_end] {
        let mut node = node(4);
        connect(&mut node, &offer(&file));
        let session = connect(&mut node, JOIN);
        assert_eq!(node.data(NOW, session, &chunk(0, &file)), Ok(68));
        while !fails(&node.poll().expect("it comes")) {}
        assert_eq!(node.abort(NOW), Ok(()));
        let said = events(&mut node);
        assert_eq!(said[0], Event::Abort(abort::PROGRAM));
        assert!(written(&said).is_empty() && !node.is_complete(), "{said:?}");
        assert!(said.contains(&Event::Stream(Effect::Abort { stream: session })));
        assert_eq!(node.abort(NOW), Err(Error::Offer));
    }
}
