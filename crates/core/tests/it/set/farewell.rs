//! Transfers that fail finally, and the notification of their nodes.

use anabranch_core::set::*;
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::set::{self as wire, Decoder, Item, MAX_COPY, Message};

use super::resume::{Node, asks, with_identity};
use super::world::*;

const LENGTH: usize = 60_000;

/// A disturbance that keeps a transfer from completing.
type Disturb = Box<dyn FnOnce(&mut World)>;

/// Runs a transfer of `length` bytes that fails because of `disturb`.
fn failed(length: usize, config: SenderConfig, disturb: impl FnOnce(&mut World)) -> World {
    let paths = [path(18_000, 25), path(9_000, 60)];
    let mut world = World::new(&paths, file(length), config, asks());
    disturb(&mut world);
    world.run(world.now.saturating_since(Instant::ZERO) + Duration::from_secs(3600));
    world
}

fn no_table(world: &mut World) {
    world.node.set_gateways(Vec::new());
}

/// Both gateways fail after `milliseconds`.
fn no_gateway_after(milliseconds: u64, death: Death) -> impl FnOnce(&mut World) {
    move |world| {
        (0..2).for_each(|gateway| {
            world.kill(gateway, Instant::ZERO + Duration::from_millis(milliseconds), death);
        });
    }
}

/// Aborts the transfer and delivers the messages in transit.
fn give_up(world: &mut World) {
    world.sender.give_up(world.now);
    world.run(world.now.saturating_since(Instant::ZERO) + Duration::from_secs(2));
}

#[test]
fn a_node_is_free_as_soon_as_a_transfer_to_it_has_failed() {
    let cases: [(Failure, Disturb); 5] = [
        (Failure::NoGateway, Box::new(no_table)),
        (Failure::GatewaysLost, Box::new(no_gateway_after(0, Death::Reset))),
        (Failure::GatewaysLost, Box::new(no_gateway_after(1_500, Death::Reset))),
        (Failure::Stalled, Box::new(no_gateway_after(0, Death::Silent))),
        (Failure::Stalled, Box::new(no_gateway_after(1_500, Death::Silent))),
    ];
    for (index, (failure, disturb)) in cases.into_iter().enumerate() {
        let mut world = failed(LENGTH, with_identity(), disturb);
        assert_eq!(world.sender.outcome(), Some(Outcome::Failed(failure)), "case {index}");
        assert!(world.node.delivered().is_some(), "case {index}: the node has a place for it");
        give_up(&mut world);
        assert_eq!(world.node.delivered(), None, "case {index}");
        assert_eq!((world.requests, world.node.counters().rejected), (2, 0), "case {index}");
        assert_eq!(world.sender.outcome(), Some(Outcome::Failed(failure)), "case {index}");
        assert_eq!(world.sender.next_timeout(), None);
    }
}

/// A small file without a gateway, whose copy is lost.
#[test]
fn the_request_that_is_repeated_for_the_farewell_brings_no_copy() {
    let mut world = failed(MAX_COPY as usize, with_identity(), |world| {
        no_table(world);
        world.copies_arrive = Instant::FAR_FUTURE;
    });
    assert_eq!(world.sender.outcome(), Some(Outcome::Failed(Failure::NoGateway)));
    world.copies_arrive = Instant::ZERO;
    give_up(&mut world);
    assert_eq!(world.node.delivered(), None);
    assert!(world.delivered.is_empty());
}

/// Cancelled at any time: before the node has answered, before a session is open, with sessions.
#[test]
fn a_node_is_free_as_soon_as_a_transfer_is_cancelled() {
    let mut called_again = 0;
    for plan in [Plan::Stripe, Plan::Split] {
        for at in (0..1_500).step_by(20) {
            let config = SenderConfig { plan, ..with_identity() };
            let mut world = World::new(&[path(18_000, 25), path(9_000, 60)], file(LENGTH), config, asks());
            world.run(Duration::from_millis(at));
            give_up(&mut world);
            assert_eq!(world.sender.outcome(), Some(Outcome::Failed(Failure::Cancelled)), "at {at} ms");
            assert_eq!(world.node.delivered(), None, "{plan:?} at {at} ms");
            called_again += world.requests - 1;
            let is_told = world.sender.sessions().any(|session| session.establishment.is_some());
            assert!(!is_told || plan == Plan::Split || world.requests == 1, "CANCEL on a session is enough");
        }
    }
    assert!(called_again > 20, "{called_again}");
}

#[test]
fn a_session_that_is_lost_with_cancel_on_its_way_is_replaced_by_a_call() {
    let mut world = World::new(&[path(18_000, 25)], file(LENGTH), with_identity(), asks());
    world.run(Duration::from_secs(1));
    world.kill(0, world.now, Death::Silent);
    give_up(&mut world);
    assert_eq!((world.node.delivered().is_some(), world.requests), (true, 1));
    let stream = world.sender.sessions().next().expect("a session").stream;
    world.sender.handle_stream(world.now, stream, StreamEvent::Closed(StreamClose::TimedOut));
    world.run(world.now.saturating_since(Instant::ZERO) + Duration::from_secs(2));
    assert_eq!((world.node.delivered(), world.requests), (None, 2));
}

#[test]
fn a_transfer_that_needs_no_farewell_calls_nobody() {
    // The transfer is complete.
    let mut world = failed(LENGTH, with_identity(), |_| {});
    give_up(&mut world);
    assert_eq!((world.sender.outcome(), world.requests), (Some(Outcome::Delivered), 1));
    // The node has aborted the transfer.
    let mut world = World::new(&[path(18_000, 25)], file(LENGTH), with_identity(), asks());
    world.run(Duration::from_secs(1));
    world.node.abort(world.now, RefuseReason::NoRoom);
    world.run(Duration::from_secs(5));
    give_up(&mut world);
    assert_eq!(world.sender.outcome(), Some(Outcome::Failed(Failure::Refused(RefuseReason::NoRoom))));
    assert_eq!(world.requests, 1);
    // Between two attempts the node keeps the transfer.
    let world = failed(LENGTH, with_identity(), no_gateway_after(1_500, Death::Reset));
    assert_eq!((world.requests, world.node.delivered().is_some()), (1, true));
}

/// After plain bytes, CANCEL would count as one more of them.
#[test]
fn no_farewell_follows_a_plain_transfer() {
    let config = SenderConfig { plan: Plan::EndToEnd, ..with_identity() };
    let mut world = World::new(&[path(18_000, 25)], file(LENGTH), config, asks());
    world.run(Duration::from_secs(1));
    let before = world.delivered.len();
    give_up(&mut world);
    assert_eq!(world.requests, 1);
    assert!(before > 0 && world.delivered[..] == file(LENGTH)[..world.delivered.len()]);
}

/// The node already serves another transfer, has not answered, or violates the protocol.
#[test]
fn a_farewell_that_is_not_accepted_ends_without_another() {
    let node = "[fd00::100]:5683".parse().expect("an address");
    let encoded = |message: &Message| {
        let mut octets = Vec::new();
        wire::encode(message, &mut octets);
        StreamEvent::Data(octets.into())
    };
    let accept = Message::Accept(wire::Accept { buffer: 1000, gateways: Vec::new() });
    let busy = Message::Refuse(wire::Refuse { reason: RefuseReason::Busy, delivered: 0 });
    let answers = [
        Some(encoded(&busy)),
        Some(encoded(&Message::Cancel)),
        Some(StreamEvent::Data(vec![0xff].into())),
        Some(StreamEvent::Ended),
        Some(StreamEvent::Closed(StreamClose::Refused)),
        None,
    ];
    for answer in answers {
        let now = Instant::ZERO;
        let mut sender = Sender::new(now, with_identity(), node, TransferId(7), file(LENGTH));
        sender.handle_stream(now, StreamId(0), StreamEvent::Opened);
        sender.handle_stream(now, StreamId(0), encoded(&accept));
        assert_eq!(sender.outcome(), Some(Outcome::Failed(Failure::NoGateway)));
        let effects =
            |sender: &mut Sender| -> Vec<Effect> { std::iter::from_fn(|| sender.poll_effect(now)).collect() };
        effects(&mut sender);
        sender.give_up(now);
        let called = effects(&mut sender);
        let [Effect::Dial { stream, leg: Leg::Control, .. }] = called[..] else { panic!("{called:?}") };
        sender.handle_stream(now, stream, StreamEvent::Opened);
        assert!(matches!(effects(&mut sender)[..], [Effect::Write { .. }]));
        let Some(answer) = answer else { continue };
        let is_gone = matches!(answer, StreamEvent::Closed(_));
        sender.handle_stream(now, stream, answer);
        let expected = if is_gone { vec![] } else { vec![Effect::Abort { stream }] };
        assert_eq!(effects(&mut sender), expected);
        sender.give_up(now);
        assert_eq!(effects(&mut sender), []);
    }
}

/// A node that has accepted transfer 1 on the returned stream.
fn accepted() -> (Node, StreamId) {
    let mut node = Node::new(asks());
    let stream = node.request(1, 1);
    node.grant(1, 0);
    assert!(matches!(node.says(stream).0[..], [Message::Accept(_)]));
    (node, stream)
}

#[test]
fn cancel_on_an_accepted_request_frees_the_node_from_that_transfer_alone() {
    let (mut node, stream) = accepted();
    node.say(stream, &Message::Cancel);
    assert_eq!(node.machine.delivered(), None);
    assert_eq!(node.answers(2, 2), "waits");

    // The transfer was replaced by another one.
    let (mut node, stream) = accepted();
    node.cancel(1);
    node.request(2, 2);
    node.grant(2, 0);
    node.say(stream, &Message::Cancel);
    assert_eq!(node.machine.delivered(), Some((TransferId(2), 0)));

    // A sender that asks again gets the answer that the file is complete.
    let (mut node, stream) = accepted();
    node.bring(1, 0..100);
    node.say(stream, &Message::Cancel);
    assert!(node.machine.is_complete());
    assert_eq!(node.answers(1, 1), "ack, accept");
}

#[test]
fn nothing_but_cancel_is_read_behind_an_accepted_request() {
    let (mut node, stream) = accepted();
    node.say(stream, &Message::SetAck(wire::SetAck { session: 0, status: SetAckStatus::Open }));
    node.say(stream, &Message::Cancel);
    node.machine.handle_stream(node.now, stream, StreamEvent::Data(vec![0xff; 5_000].into()));
    assert_eq!(node.machine.delivered(), Some((TransferId(1), 0)));
    assert_eq!((node.machine.counters().rejected, node.machine.poll_effect()), (0, None));
    node.machine.handle_stream(node.now, stream, StreamEvent::Ended);
    assert_eq!(node.machine.poll_effect(), Some(Effect::Shutdown { stream }));
}

/// The sender's farewell is a request that nodes of earlier versions treat like any other.
#[test]
fn the_farewell_is_a_request_and_cancel() {
    let node = "[fd00::100]:5683".parse().expect("an address");
    let file_identity = FileIdentity { digest: [7; 32], signature: Some([1; 64]), discard: true };
    let config = SenderConfig { file: Some(file_identity), ..SenderConfig::default() };
    let now = Instant::ZERO;
    let mut sender = Sender::new(now, config, node, TransferId(7), file(LENGTH));
    sender.bring(Some(vec![7; 50].into()));
    let mut octets = Vec::new();
    wire::encode(&Message::Accept(wire::Accept { buffer: 1000, gateways: Vec::new() }), &mut octets);
    sender.handle_stream(now, StreamId(0), StreamEvent::Opened);
    sender.handle_stream(now, StreamId(0), StreamEvent::Data(octets.clone().into()));
    sender.give_up(now);
    let stream = StreamId(1);
    sender.handle_stream(now, stream, StreamEvent::Opened);
    sender.handle_stream(now, stream, StreamEvent::Data(octets.into()));
    let mut decoder = Decoder::new();
    let mut is_shut = false;
    while let Some(effect) = sender.poll_effect(now) {
        match effect {
            Effect::Write { stream: of, octets } if of == stream => decoder.push(octets),
            Effect::Shutdown { stream: of } => is_shut |= of == stream,
            _ => {}
        }
    }
    let Ok(Some(Item::Message(Message::Request(request)))) = decoder.next_item() else { panic!("a request") };
    let expected = FileIdentity { signature: None, discard: false, ..file_identity };
    assert_eq!((request.transfer, request.length), (TransferId(7), LENGTH as u64));
    assert_eq!((request.file, request.copy, request.manifest), (Some(expected), false, None));
    assert_eq!(decoder.next_item(), Ok(Some(Item::Message(Message::Cancel))));
    assert!(is_shut);
}
