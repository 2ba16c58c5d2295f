//! Small files that follow their request on the control stream.

use anabranch_core::set::*;
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::set::{self as wire, Ack, Decoder, Item, MAX_COPY, Message, Refuse, VERSION};

use super::world::*;

const NODE: &str = "[fd00::100]:5683";

/// A transfer of `length` bytes over a far gateway and a near one, to its end.
fn transferred(length: usize, config: SenderConfig, node: ReceiverConfig) -> World {
    let mut world = World::new(&[path(40_000, 400), path(40_000, 200)], file(length), config, node);
    world.run(Duration::from_secs(600));
    assert_eq!(world.sender.outcome(), Some(Outcome::Delivered), "{}", world.describe());
    assert!(world.delivered == file(length));
    world
}

#[test]
fn a_small_file_does_not_wait_for_a_session() {
    let plain = SenderConfig { start: Start::AfterSetAck, ..SenderConfig::default() };
    for length in [1, 81, 500, MAX_COPY as usize] {
        for grant in [Grant::AtOnce, Grant::Ask] {
            let node = ReceiverConfig { grant, ..ReceiverConfig::default() };
            let with = transferred(length, SenderConfig::default(), node.clone()).completed;
            let without = transferred(length, plain, node).completed;
            let [with, without] = [with, without].map(|at| at.expect("it is complete"));
            let saved = without.saturating_since(with);
            assert!(saved >= Duration::from_millis(200), "{length} bytes: {with} and {without}");
        }
    }
}

#[test]
fn longer_files_and_the_papers_choices_bring_no_copy() {
    let paper = SenderConfig { start: Start::AfterSetAck, ..SenderConfig::default() };
    let cases =
        [(MAX_COPY as usize + 1, SenderConfig::default()), (500, SenderConfig::paper()), (500, paper)];
    for (length, config) in cases {
        let world = transferred(length, config, ReceiverConfig::default());
        let written: u64 = world.sender.sessions().map(|session| session.written).sum();
        assert!(written >= length as u64, "sessions carry all of it");
        let mut sender = Sender::new(
            Instant::ZERO,
            config,
            NODE.parse().expect("an address"),
            TransferId(7),
            file(length),
        );
        assert!(!says_copy(&mut sender), "{length} bytes");
    }
}

/// Whether the first request of a sender says that a copy follows.
fn says_copy(sender: &mut Sender) -> bool {
    sender.handle_stream(Instant::ZERO, StreamId(0), StreamEvent::Opened);
    matches!(&requested(sender)[..], [Request { copy: true, .. }])
}

/// The requests that a sender makes now; data that follows one is passed over.
fn requested(sender: &mut Sender) -> Vec<Request> {
    let mut requests = Vec::new();
    let mut decoder = Decoder::new();
    while let Some(effect) = sender.poll_effect(Instant::ZERO) {
        if let Effect::Write { octets, .. } = effect {
            decoder.push(octets);
        }
        while let Ok(Some(item)) = decoder.next_item() {
            if let Item::Message(Message::Request(request)) = item {
                requests.push(request);
            }
        }
    }
    requests
}

#[test]
fn a_node_of_a_version_before_copies_is_asked_again_without_one() {
    let config = SenderConfig::default();
    let node = NODE.parse().expect("an address");
    let mut sender = Sender::new(Instant::ZERO, config, node, TransferId(7), file(500));
    assert!(says_copy(&mut sender));
    sender.handle_stream(Instant::ZERO, StreamId(0), StreamEvent::Closed(StreamClose::Reset));
    let later = sender.next_timeout().expect("it tries again");
    assert!(later <= Instant::ZERO + config.patience);
    sender.handle_timeout(later);
    sender.handle_stream(later, StreamId(1), StreamEvent::Opened);
    let requests = requested(&mut sender);
    assert!(matches!(requests[..], [Request { copy: false, .. }]), "{requests:?}");
}

/// Behind a copy there is no place for the plain file.
#[test]
fn a_node_that_does_not_stripe_gets_the_file_once() {
    for length in [1, 500, MAX_COPY as usize] {
        let node = ReceiverConfig { striping: NodeStriping::Refused, ..ReceiverConfig::default() };
        let world = transferred(length, SenderConfig::default(), node);
        assert_eq!(world.node.counters().duplicate_octets, 0);
    }
}

#[test]
fn a_node_without_memory_for_copies_takes_the_file_from_sessions() {
    for grant in [Grant::AtOnce, Grant::Ask] {
        let node = ReceiverConfig { grant, copy: 0, ..ReceiverConfig::default() };
        let world = transferred(500, SenderConfig::default(), node);
        assert_eq!(world.node.counters().rejected, 0);
    }
}

/// A request of `length` bytes with the copy flag, and what of the copy follows it, as one read or byte by byte.
fn say(node: &mut Receiver, length: u64, behind: &[u8], at_once: bool) -> StreamId {
    let stream = node.handle_accepted(Instant::ZERO);
    let (version, transfer) = (VERSION, TransferId(1));
    let request =
        Request { version, transfer, length, plan: Plan::Stripe, file: None, copy: true, manifest: None };
    let mut octets = Vec::new();
    wire::encode(&Message::Request(request), &mut octets);
    octets.extend_from_slice(behind);
    for part in octets.chunks(if at_once { usize::MAX } else { 1 }) {
        node.handle_stream(Instant::ZERO, stream, StreamEvent::Data(part.to_vec().into()));
    }
    stream
}

/// What a node says on `stream`, what it delivers, and whether it resets the stream.
fn answers(node: &mut Receiver, stream: StreamId) -> (Vec<Message>, Vec<u8>, bool) {
    let (mut decoder, mut messages, mut delivered, mut reset) =
        (Decoder::new(), Vec::new(), Vec::new(), false);
    while let Some(effect) = node.poll_effect() {
        match effect {
            Effect::Write { stream: to, octets } if to == stream => decoder.push(octets),
            Effect::Deliver { octets } => delivered.extend_from_slice(&octets),
            Effect::Abort { stream: to } if to == stream => reset = true,
            _ => {}
        }
        while let Ok(Some(Item::Message(message))) = decoder.next_item() {
            messages.push(message);
        }
    }
    (messages, delivered, reset)
}

#[test]
fn what_the_owner_has_not_let_in_is_neither_delivered_nor_acknowledged() {
    for at_once in [true, false] {
        let asks = ReceiverConfig { grant: Grant::Ask, ..ReceiverConfig::default() };
        let mut node = Receiver::new(asks.clone());
        let stream = say(&mut node, 5, &chunk(0, b"12345"), at_once);
        assert_eq!(answers(&mut node, stream), (vec![], vec![], false), "it is asked");
        node.grant(Instant::ZERO, TransferId(1), 0);
        let (messages, delivered, _) = answers(&mut node, stream);
        assert!(matches!(messages[..], [Message::Accept(_), Message::Ack(Ack { delivered: 5, .. })]));
        assert_eq!(delivered, b"12345");

        let mut node = Receiver::new(asks);
        let stream = say(&mut node, 5, &chunk(0, b"12345"), at_once);
        node.decline(Instant::ZERO, TransferId(1), RefuseReason::NoRoom, 0);
        let (messages, delivered, _) = answers(&mut node, stream);
        assert!(matches!(messages[..], [Message::Refuse(Refuse { reason: RefuseReason::NoRoom, .. })]));
        assert_eq!(delivered, b"");
    }
}

#[test]
fn what_a_copy_cannot_be_resets_its_stream() {
    let chunks = |start, octets| chunk(start, octets);
    let bad = [
        // Beyond the file, a message, and more than any copy has.
        chunks(3, b"12345"),
        vec![0x90],
        [chunks(0, &[7; 5]), chunks(0, &[7; 5])].concat().repeat(200),
    ];
    for behind in bad {
        for (at_once, grant) in
            [(true, Grant::AtOnce), (false, Grant::AtOnce), (true, Grant::Ask), (false, Grant::Ask)]
        {
            let mut node = Receiver::new(ReceiverConfig { grant, ..ReceiverConfig::default() });
            let stream = say(&mut node, 5, &behind, at_once);
            node.grant(Instant::ZERO, TransferId(1), 0);
            let (_, delivered, reset) = answers(&mut node, stream);
            // A second copy of the same bytes is no fault, and nothing is read behind the end of the file.
            let whole = delivered == [7; 5];
            assert!(reset || whole && grant == Grant::AtOnce, "{behind:?}, {grant:?}, {at_once}");
            assert!(delivered.is_empty() || whole, "{delivered:?}");
        }
    }
}
