//! Transfers that resume after an interruption, and busy nodes.

use anabranch_core::set::*;
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::set::{self as wire, Ack, Decoder, Item, Message, Refuse, VERSION};
use proptest::prelude::*;

use super::world::*;

const LENGTH: usize = 60_000;

pub(super) fn identity(digest: u8) -> Option<FileIdentity> {
    Some(FileIdentity { digest: [digest; 32], signature: None, discard: false })
}

pub(super) fn asks() -> ReceiverConfig {
    ReceiverConfig { grant: Grant::Ask, ..ReceiverConfig::default() }
}

pub(super) fn with_identity() -> SenderConfig {
    SenderConfig { file: identity(7), ..SenderConfig::default() }
}

/// A transfer to a node that has the first bytes, of which no byte is sent again.
fn resumed(from: usize, config: SenderConfig) -> World {
    let config = SenderConfig { reinjection: Reinjection::Off, ..config };
    let mut world = World::new(&[path(40_000, 20), path(20_000, 60)], file(LENGTH), config, asks());
    world.has(&file(LENGTH)[..from]);
    world.run(Duration::from_secs(600));
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_transfer_goes_on_from_any_octet(from in 0..=LENGTH) {
        for plan in [Plan::Stripe, Plan::EndToEnd, Plan::Split] {
            let world = resumed(from, SenderConfig { plan, ..with_identity() });
            prop_assert_eq!(world.sender.outcome(), Some(Outcome::Delivered));
            prop_assert!(world.delivered == file(LENGTH));
            prop_assert_eq!(world.sender.resumed_from(), from as u64);
            let written: u64 = world.sender.sessions().map(|s| s.written).sum();
            match plan {
                Plan::Stripe => prop_assert_eq!(written, (LENGTH - from) as u64),
                Plan::EndToEnd | Plan::Split => {}
            }
        }
    }

    /// The sender is killed and restarted, and sometimes the node as well, until the file is
    /// complete.
    #[test]
    fn however_often_it_is_interrupted_the_file_is_the_file(
        lives in proptest::collection::vec((50u64..3000, any::<bool>(), 0usize..5000), 1..6)
    ) {
        let mut world = World::new(&[path(18_000, 25), path(9_000, 60)], file(LENGTH), with_identity(), asks());
        for (life, node_too, lost) in lives {
            world.run(world.now.saturating_since(Instant::ZERO) + Duration::from_millis(life));
            if world.sender.outcome().is_some() {
                break;
            }
            if node_too {
                // Data not yet written to disk is lost.
                let kept = world.delivered.len().saturating_sub(lost);
                world.delivered.truncate(kept);
                world.restart_node(asks());
            }
            let before = world.delivered.len() as u64;
            world.restart_sender(file(LENGTH), with_identity());
            world.run(world.now.saturating_since(Instant::ZERO) + Duration::from_millis(700));
            // The node's buffer is also known, so the offset may be a little larger.
            prop_assert!(world.sender.resumed_from() >= before.min(world.sender.delivered()));
        }
        world.run(Duration::from_secs(600));
        prop_assert_eq!(world.sender.outcome(), Some(Outcome::Delivered));
        prop_assert!(world.delivered == file(LENGTH));
    }
}

#[test]
fn what_is_there_already_is_delivered_without_a_session() {
    for (length, has) in [(0, 0), (5_000, 5_000)] {
        let mut world = World::new(&[path(40_000, 20)], file(length), with_identity(), asks());
        world.has(&file(has));
        world.run(Duration::from_secs(10));
        assert_eq!(world.sender.outcome(), Some(Outcome::Delivered));
        assert_eq!(world.sender.sessions().count(), 0);
    }
}

/// A sender of an earlier version that sends no file identity gets no information about existing
/// bytes.
#[test]
fn a_sender_without_an_identity_sends_all() {
    let world = resumed(1_000, SenderConfig::default());
    assert_eq!(world.sender.outcome(), Some(Outcome::Delivered));
    assert!(world.delivered == file(LENGTH));
    assert_eq!(world.sender.sessions().map(|s| s.written).sum::<u64>(), LENGTH as u64);
}

/// A node with senders that are driven message by message.
pub(super) struct Node {
    pub(super) machine: Receiver,
    pub(super) now: Instant,
}

impl Node {
    pub(super) fn new(config: ReceiverConfig) -> Self {
        Self { machine: Receiver::new(config), now: Instant::ZERO }
    }

    pub(super) fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    pub(super) fn request(&mut self, transfer: u64, digest: u8) -> StreamId {
        let stream = self.machine.handle_accepted(self.now);
        let transfer = TransferId(transfer);
        let file = identity(digest);
        let request = Request {
            version: VERSION,
            transfer,
            length: 100,
            plan: Plan::Stripe,
            file,
            copy: false,
            manifest: None,
        };
        self.say(stream, &Message::Request(request));
        stream
    }

    pub(super) fn say(&mut self, stream: StreamId, message: &Message) {
        let mut octets = Vec::new();
        wire::encode(message, &mut octets);
        self.machine.handle_stream(self.now, stream, StreamEvent::Data(octets.into()));
    }

    /// A session of `transfer` delivers this range of bytes.
    pub(super) fn bring(&mut self, transfer: u64, octets: std::ops::Range<u64>) -> StreamId {
        let stream = self.machine.handle_accepted(self.now);
        let transfer = TransferId(transfer);
        self.say(
            stream,
            &Message::Join(wire::Join { transfer, session: 0, sessions: 1, plan: Plan::Stripe }),
        );
        let chunk = chunk(octets.start, &octets.map(|i| i as u8).collect::<Vec<_>>());
        self.machine.handle_stream(self.now, stream, StreamEvent::Data(chunk.into()));
        stream
    }

    /// The node's messages on `stream`, and the number of bytes that it delivers.
    pub(super) fn says(&mut self, stream: StreamId) -> (Vec<Message>, u64) {
        let (mut decoder, mut messages, mut delivered) = (Decoder::new(), Vec::new(), 0);
        while let Some(effect) = self.machine.poll_effect() {
            match effect {
                Effect::Write { stream: to, octets } if to == stream => decoder.push(octets),
                Effect::Deliver { octets } => delivered += octets.len() as u64,
                _ => {}
            }
            while let Some(item) = decoder.next_item().expect("a message") {
                let Item::Message(message) = item else { panic!("no node sends data") };
                messages.push(message);
            }
        }
        (messages, delivered)
    }

    /// A short description of the answer to a request.
    pub(super) fn answers(&mut self, transfer: u64, digest: u8) -> &'static str {
        let stream = self.request(transfer, digest);
        match &self.says(stream).0[..] {
            [] => "waits",
            [Message::Accept(_)] => "accept",
            [Message::Ack(_), Message::Accept(_)] => "ack, accept",
            [Message::Refuse(Refuse { reason: RefuseReason::Busy, .. })] => "busy",
            [Message::Refuse(Refuse { reason: RefuseReason::Unwanted, .. })] => "unwanted",
            [Message::Refuse(Refuse { reason: RefuseReason::Unfinished, .. })] => "unfinished",
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn grant(&mut self, transfer: u64, from: u64) {
        self.machine.grant(self.now, TransferId(transfer), from);
    }

    pub(super) fn cancel(&mut self, transfer: u64) {
        let stream = self.bring(transfer, 0..1);
        self.say(stream, &Message::Cancel);
    }
}

#[test]
fn the_owner_answers_and_nobody_else_begins_before() {
    let mut node = Node::new(asks());
    let stream = node.request(1, 1);
    assert_eq!(node.says(stream).0, []);
    assert_eq!(node.machine.asked().map(|r| (r.transfer, r.length)), Some((TransferId(1), 100)));
    assert_eq!(node.answers(2, 2), "busy");
    node.grant(2, 0);
    assert_eq!(node.machine.delivered(), None, "2 is not the one that waits");
    node.grant(1, 40);
    let (said, delivered) = node.says(stream);
    let has = Ack { delivered: 40, received: 40, held: Vec::new() };
    assert!(matches!(&said[..], [Message::Ack(ack), Message::Accept(_)] if *ack == has), "{said:?}");
    assert_eq!(delivered, 0, "the owner has them");
    assert_eq!(node.machine.asked(), None);
    let session = node.bring(1, 30..60);
    assert_eq!(node.says(session).1, 20, "only what is beyond is delivered");
}

#[test]
fn a_transfer_that_is_declined_leaves_no_trace() {
    let mut node = Node::new(asks());
    let stream = node.request(1, 1);
    node.machine.decline(node.now, TransferId(1), RefuseReason::Unfinished, 55);
    let refuse = Refuse { reason: RefuseReason::Unfinished, delivered: 55 };
    assert_eq!(node.says(stream).0, [Message::Refuse(refuse)]);
    assert_eq!((node.machine.asked(), node.machine.delivered()), (None, None));
    assert_eq!(node.answers(2, 2), "waits");
}

/// For any other data in transit, and any path of the bytes.
#[test]
fn a_transfer_that_the_node_gives_up_ends_at_once_with_the_reason() {
    let patient = || SenderConfig { stall: Duration::from_secs(3600), ..with_identity() };
    for plan in [Plan::Stripe, Plan::EndToEnd, Plan::Split] {
        for at in [200, 500, 1_000, 1_500] {
            let paths = [path(18_000, 25), path(9_000, 60)];
            let config = SenderConfig { plan, ..patient() };
            let mut world = World::new(&paths, file(LENGTH), config, asks());
            world.run(Duration::from_millis(at));
            let known = world.node.delivered().is_some();
            world.node.abort(world.now, RefuseReason::NoRoom);
            assert_eq!(world.node.delivered(), None, "the node is free");
            let before = world.delivered.len();
            world.run(Duration::from_millis(at) + Duration::from_secs(10));
            assert_eq!(world.delivered.len(), before, "{plan:?} at {at} ms: nothing is delivered any more");
            let refused = Some(Outcome::Failed(Failure::Refused(RefuseReason::NoRoom)));
            assert_eq!(world.sender.outcome(), refused.filter(|_| known), "{plan:?} at {at} ms");
        }
    }
}

/// An acknowledgement of bytes that the program has not accepted is not sent.
#[test]
fn a_node_that_gives_up_acknowledges_nothing_more() {
    let mut node = Node::new(asks());
    node.request(1, 1);
    node.machine.grant(node.now, TransferId(1), 0);
    let session = node.bring(1, 0..100);
    node.machine.abort(node.now, RefuseReason::Digest);
    let refuse = Message::Refuse(Refuse { reason: RefuseReason::Digest, delivered: 0 });
    assert_eq!(node.says(session), (vec![refuse], 0));
}

#[test]
fn who_asks_again_joins_and_is_told_what_is_there() {
    let mut node = Node::new(asks());
    assert_eq!(node.answers(1, 1), "waits");
    assert_eq!(node.answers(1, 1), "waits", "the first try was given up");
    node.grant(1, 0);
    node.bring(1, 0..10);
    node.bring(1, 20..30);
    let again = node.request(1, 1);
    let (said, _) = node.says(again);
    let held = vec![wire::Range { start: 20, end: 30 }];
    let has = Ack { delivered: 10, received: 10, held };
    assert!(matches!(&said[..], [Message::Ack(ack), Message::Accept(_)] if *ack == has), "{said:?}");
}

#[test]
fn another_file_under_the_same_number_is_not_taken_for_it() {
    let mut node = Node::new(asks());
    assert_eq!(node.answers(1, 1), "waits");
    assert_eq!(node.answers(1, 2), "unwanted");
    node.grant(1, 0);
    assert_eq!(node.answers(1, 2), "unwanted");
    assert_eq!(node.answers(1, 1), "accept");
}

/// A corrupted request does not block the transfer forever.
#[test]
fn a_transfer_without_news_makes_way_for_another_file_under_its_number() {
    let mut node = Node::new(asks());
    node.request(1, 1);
    node.grant(1, 0);
    node.bring(1, 0..10);
    node.now += asks().idle - Duration::from_millis(1);
    assert_eq!(node.answers(1, 2), "unwanted");
    node.now += Duration::from_millis(1);
    assert_eq!(node.answers(1, 2), "waits");
    assert_eq!(node.machine.delivered(), None, "the octets of the first are not its own");
    assert_eq!(node.answers(1, 1), "unwanted");
    node.grant(1, 0);
    assert_eq!(node.answers(1, 2), "accept");
}

#[test]
fn a_cancelled_transfer_makes_way_at_once() {
    let mut node = Node::new(asks());
    assert_eq!(node.answers(1, 1), "waits");
    node.grant(1, 0);
    assert_eq!(node.answers(2, 2), "busy");
    node.cancel(1);
    assert_eq!(node.machine.delivered(), None);
    assert_eq!(node.answers(2, 2), "waits");
}

#[test]
fn a_silent_transfer_makes_way_when_its_time_is_over() {
    let mut node = Node::new(asks());
    assert_eq!(node.answers(1, 1), "waits");
    node.grant(1, 0);
    node.pass(59);
    assert_eq!(node.answers(2, 2), "busy");
    node.pass(1);
    assert_eq!(node.answers(2, 2), "waits");
    assert_eq!(node.machine.delivered(), None, "its owner is told before it is asked");
}

#[test]
fn those_who_wait_are_served_in_order() {
    let mut node = Node::new(asks());
    assert_eq!(node.answers(1, 1), "waits");
    node.grant(1, 0);
    for _ in 0..2 {
        assert_eq!((node.answers(2, 2), node.answers(3, 3)), ("busy", "busy"));
        node.pass(1);
    }
    node.cancel(1);
    assert_eq!(node.answers(4, 4), "busy", "two were there before");
    assert_eq!(node.answers(3, 3), "busy");
    assert_eq!(node.answers(2, 2), "waits");
    node.grant(2, 100);
    assert_eq!(node.answers(3, 3), "waits");
    node.grant(3, 100);
    // The fourth sender has asked only once and never returns.
    assert_eq!(node.answers(5, 5), "waits");
}

#[test]
fn a_busy_node_is_asked_again_for_as_long_as_its_sender_is_patient() {
    let node = "[fd00::100]:5683".parse().expect("an address");
    let mut busy = Vec::new();
    wire::encode(&Message::Refuse(Refuse { reason: RefuseReason::Busy, delivered: 3 }), &mut busy);
    let asked = |patience: u64| {
        let busy_patience = Duration::from_secs(patience);
        let config = SenderConfig { busy_patience, request_tries: 1, ..with_identity() };
        let mut now = Instant::ZERO;
        let mut sender = Sender::new(now, config, node, TransferId(7), file(1000));
        let mut times = Vec::new();
        while sender.outcome().is_none() {
            while let Some(effect) = sender.poll_effect(now) {
                let Effect::Dial { stream, .. } = effect else { continue };
                times.push(now.as_secs_f64());
                sender.handle_stream(now, stream, StreamEvent::Opened);
                sender.handle_stream(now, stream, StreamEvent::Data(busy.clone().into()));
            }
            if let Some(at) = sender.next_timeout() {
                now = at;
                sender.handle_timeout(now);
            }
        }
        assert_eq!(sender.outcome(), Some(Outcome::Failed(Failure::Refused(RefuseReason::Busy))));
        times
    };
    assert_eq!(asked(0), [0.0]);
    assert_eq!(asked(10), [0.0, 1.0, 3.0, 7.0, 10.0]);
    // Longer than the time after which a transfer without progress is aborted.
    assert_eq!(asked(400).last(), Some(&400.0));
}

#[test]
fn a_node_that_claims_more_than_the_file_has_breaks_the_protocol() {
    let node = "[fd00::100]:5683".parse().expect("an address");
    let mut sender = Sender::new(Instant::ZERO, with_identity(), node, TransferId(7), file(1000));
    let mut octets = Vec::new();
    wire::encode(&Message::Ack(Ack { delivered: 1001, ..Ack::default() }), &mut octets);
    sender.handle_stream(Instant::ZERO, StreamId(0), StreamEvent::Opened);
    sender.handle_stream(Instant::ZERO, StreamId(0), StreamEvent::Data(octets.into()));
    assert_eq!(sender.outcome(), Some(Outcome::Failed(Failure::Protocol)));
}

/// A file that is complete after a restart, and that the owner then cannot publish.
#[test]
fn a_file_that_was_all_there_and_is_given_up_is_not_acknowledged() {
    let mut node = Node::new(asks());
    let control = node.request(1, 1);
    node.machine.grant(node.now, TransferId(1), 100);
    node.machine.abort(node.now, RefuseReason::Digest);
    let (said, _) = node.says(control);
    assert!(matches!(said[..], [Message::Refuse(Refuse { delivered: 0, .. })]), "{said:?}");
}

/// A plain transfer whose last bytes the owner does not accept.
#[test]
fn a_plain_transfer_that_is_given_up_at_its_end_is_not_acknowledged() {
    let mut node = Node::new(asks());
    let stream = node.machine.handle_accepted(node.now);
    let request = Request {
        version: VERSION,
        transfer: TransferId(1),
        length: 100,
        plan: Plan::EndToEnd,
        file: identity(1),
        copy: false,
        manifest: None,
    };
    node.say(stream, &Message::Request(request));
    node.machine.grant(node.now, TransferId(1), 0);
    let (said, _) = node.says(stream);
    assert!(matches!(said[..], [Message::Refuse(_)]), "{said:?}");
    node.machine.handle_stream(node.now, stream, StreamEvent::Data(vec![0u8; 100].into()));
    node.machine.abort(node.now, RefuseReason::NoRoom);
    let (said, delivered) = node.says(stream);
    assert_eq!(delivered, 0);
    assert!(matches!(said[..], [Message::Refuse(Refuse { delivered: 0, .. })]), "{said:?}");
}

/// Without encryption a bit may change in transit. An acknowledgement of too many bytes is
/// detected, and the bytes are sent again.
#[test]
fn a_false_acknowledgement_delivers_nothing() {
    let all = LENGTH as u64;
    for plan in [Plan::Stripe, Plan::EndToEnd] {
        for at in [300, 800, 1_500, 2_500] {
            for (ahead, held) in [(1, 0), (1_440, 0), (20_000, 0), (all, 0), (0, 1), (0, 5_000), (0, all)] {
                let config = SenderConfig { plan, ..SenderConfig::default() };
                let paths = [path(18_000, 25), path(9_000, 60)];
                let mut world = World::new(&paths, file(LENGTH), config, ReceiverConfig::default());
                world.run(Duration::from_millis(at));
                let now = world.node.delivered().map_or(0, |(_, octets)| octets);
                if world.sender.outcome().is_some() {
                    continue;
                }
                let stream = world.sender.sessions().next().map_or(StreamId(0), |session| session.stream);
                let delivered = (now + ahead).min(all - 1);
                let start = all.saturating_sub(held).max(delivered + 1);
                let held = (start < all).then_some(wire::Range { start, end: all });
                let mut lie = Vec::new();
                let ack = Ack { delivered, received: 0, held: held.into_iter().collect() };
                wire::encode(&Message::Ack(ack), &mut lie);
                world.sender.handle_stream(world.now, stream, StreamEvent::Data(lie.into()));
                world.run(Duration::from_secs(4_000));
                let case = format!("{plan:?}, {ahead} ahead and {held:?} at {at} ms: {}", world.describe());
                assert_eq!(world.sender.outcome(), Some(Outcome::Delivered), "{case}");
                assert!(world.delivered == file(LENGTH), "{case}");
            }
        }
    }
}

/// The bytes of a request of transfer `id` with a manifest of this length.
fn with_manifest(id: u64, octets: usize) -> Vec<u8> {
    let request = Request {
        version: VERSION,
        transfer: TransferId(id),
        length: 100,
        plan: Plan::Stripe,
        file: identity(1),
        copy: false,
        manifest: Some(vec![7; octets].into()),
    };
    let mut said = Vec::new();
    wire::encode(&Message::Request(request), &mut said);
    said
}

#[test]
fn a_manifest_that_is_too_long_is_refused_with_the_reason() {
    let mut node = Node::new(ReceiverConfig { manifest: 300, ..asks() });
    for (octets, is_taken) in [(301, false), (1024, false), (300, true)] {
        let stream = node.machine.handle_accepted(node.now);
        // Data after the refusal is not read.
        for piece in with_manifest(1, octets).chunks(40) {
            node.machine.handle_stream(node.now, stream, StreamEvent::Data(piece.to_vec().into()));
        }
        let (said, _) = node.says(stream);
        let reasons = said.iter().filter_map(|message| match message {
            Message::Refuse(refuse) => Some(refuse.reason),
            _ => None,
        });
        let expected = if is_taken { vec![] } else { vec![RefuseReason::LongManifest] };
        assert_eq!(reasons.collect::<Vec<_>>(), expected, "{octets}");
        assert_eq!(node.machine.take_manifest().map(|octets| octets.len()), is_taken.then_some(300));
    }
    assert_eq!(node.machine.take_manifest(), None, "it is the owner's now");
    assert_eq!(node.machine.counters().rejected, 0);
}

/// A peer that is silent in the middle of a manifest does not keep other peers from asking.
#[test]
fn of_connections_that_hold_part_of_a_manifest_the_oldest_makes_way() {
    let mut node = Node::new(ReceiverConfig { manifest: 300, manifests: 2, ..asks() });
    let whole = with_manifest(1, 300);
    let streams: Vec<StreamId> = (0..4).map(|_| node.machine.handle_accepted(node.now)).collect();
    for (stream, cut) in streams.iter().zip([200, 200, 100, 200]) {
        let part = whole[..cut].to_vec();
        node.machine.handle_stream(node.now, *stream, StreamEvent::Data(part.into()));
    }
    let mut reset = Vec::new();
    while let Some(effect) = node.machine.poll_effect() {
        if let Effect::Abort { stream } = effect {
            reset.push(stream);
        }
    }
    assert_eq!(reset, [streams[0]], "the third had not come to its manifest");
    let rest = whole[200..].to_vec();
    node.machine.handle_stream(node.now, streams[3], StreamEvent::Data(rest.into()));
    assert_eq!(node.machine.asked().map(|request| request.transfer), Some(TransferId(1)));
}

#[test]
fn a_session_that_goes_on_as_a_request_is_reset_before_its_manifest() {
    let mut node = Node::new(ReceiverConfig { manifest: 300, manifests: 1, ..asks() });
    let control = node.request(1, 1);
    node.machine.grant(node.now, TransferId(1), 0);
    node.says(control);
    let mut says = Vec::new();
    let join = wire::Join { transfer: TransferId(1), session: 0, sessions: 1, plan: Plan::Stripe };
    wire::encode(&Message::Join(join), &mut says);
    let request = with_manifest(2, 300);
    says.extend_from_slice(&request[..request.len() - 300]);
    let stream = node.machine.handle_accepted(node.now);
    node.machine.handle_stream(node.now, stream, StreamEvent::Data(says.into()));
    let effects: Vec<Effect> = std::iter::from_fn(|| node.machine.poll_effect()).collect();
    assert_eq!(effects.last(), Some(&Effect::Abort { stream }), "{effects:?}");
}
