//! Small files that follow their request on the control stream.

use anabranch_core::set::*;
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::set::{self as wire, Ack, Decoder, Item, MAX_COPY, Message, Refuse, VERSION};

use super::world::*;

const NODE: &str = "[fd00::100]:5683";

/// Runs a transfer of `length` bytes over a far gateway and a near one to its end.
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

/// Runs a transfer of `length` bytes whose copy arrives at a given time, with the test's own
/// changes.
fn disturbed(length: usize, node: ReceiverConfig, disturb: impl FnOnce(&mut World)) -> World {
    let paths = [path(40_000, 400), path(40_000, 200)];
    let mut world = World::new(&paths, file(length), SenderConfig::default(), node);
    disturb(&mut world);
    world.run(Duration::from_secs(600));
    world
}

/// Asserts that the file was delivered, and no byte twice.
fn assert_delivered(world: &World, length: usize) {
    assert_eq!(world.sender.outcome(), Some(Outcome::Delivered), "{}", world.describe());
    assert!(world.delivered == file(length), "{} of {length} bytes", world.delivered.len());
    assert_eq!(world.node.counters().rejected, 0);
}

fn asks() -> ReceiverConfig {
    ReceiverConfig { grant: Grant::Ask, ..ReceiverConfig::default() }
}

const LENGTHS: [usize; 4] = [1, 128, 129, MAX_COPY as usize];
const NEVER: Instant = Instant::FAR_FUTURE;

#[test]
fn a_copy_that_is_acknowledged_opens_no_session() {
    for length in LENGTHS {
        for node in [ReceiverConfig::default(), asks()] {
            let world = disturbed(length, node, |_| {});
            assert_delivered(&world, length);
            assert_eq!((world.dials, world.sender.sessions().count()), (0, 0), "{length} bytes");
            assert_eq!(world.node.counters().duplicate_octets, 0);
        }
    }
}

/// The wait starts with the request: four trips of 410 ms here, plus the transmission time of its
/// bytes.
#[test]
fn a_copy_that_is_lost_makes_way_for_sessions_after_the_time_of_a_request() {
    for length in LENGTHS {
        for lost_until in [Instant::ZERO + Duration::from_secs(30), NEVER] {
            let world = disturbed(length, asks(), |world| world.copies_arrive = lost_until);
            assert_delivered(&world, length);
            let called = world.first_dial.expect("a session").saturating_since(Instant::ZERO);
            let (least, most) = (Duration::from_millis(8 * 410), Duration::from_millis(9 * 410));
            assert!((least..most).contains(&called), "{length} bytes: {called}");
            assert!(world.completed < Some(Instant::ZERO + Duration::from_secs(6)), "{length} bytes");
        }
    }
}

#[test]
fn an_application_that_does_not_read_is_waited_for_by_sessions() {
    for (seconds, has_sessions) in [(1, false), (20, true)] {
        let world = disturbed(500, asks(), |world| world.reading_takes = Duration::from_secs(seconds));
        assert_delivered(&world, 500);
        assert_eq!(world.dials > 0, has_sessions, "{seconds} s");
    }
}

#[test]
fn a_copy_needs_no_gateway() {
    // The node knows no gateway.
    let no_table = |world: &mut World| world.node.set_gateways(Vec::new());
    assert_delivered(&disturbed(500, asks(), no_table), 500);
    let late = |world: &mut World| {
        no_table(world);
        world.copies_arrive = Instant::ZERO + Duration::from_secs(20);
    };
    assert_delivered(&disturbed(500, asks(), late), 500);
    // No gateway accepts calls, and the copy is late.
    let dead = |world: &mut World| {
        (0..2).for_each(|gateway| world.kill(gateway, Instant::ZERO, Death::Reset));
        world.copies_arrive = Instant::ZERO + Duration::from_secs(20);
    };
    let world = disturbed(500, asks(), dead);
    assert_delivered(&world, 500);
    assert!(world.dials >= 2, "they were tried");
}

#[test]
fn without_gateway_and_copy_the_transfer_fails_of_that() {
    let no_table = |world: &mut World| world.node.set_gateways(Vec::new());
    let lost = |world: &mut World| world.copies_arrive = NEVER;
    let dead = |world: &mut World| {
        (0..2).for_each(|gateway| world.kill(gateway, Instant::ZERO, Death::Reset));
    };
    let no_copies = ReceiverConfig { copy: 0, ..asks() };
    let failed = |world: World, failure, seconds| {
        assert_eq!(world.sender.outcome(), Some(Outcome::Failed(failure)), "{}", world.describe());
        assert!(world.now < Instant::ZERO + Duration::from_secs(seconds), "at {}", world.now);
        assert!(world.delivered.is_empty());
    };
    // A node that accepts no copies says so: there is nothing to wait for.
    failed(disturbed(500, no_copies.clone(), no_table), Failure::NoGateway, 5);
    failed(disturbed(500, no_copies, dead), Failure::GatewaysLost, 30);
    failed(disturbed(MAX_COPY as usize + 1, asks(), no_table), Failure::NoGateway, 5);
    // A copy that never arrives is waited for until the transfer counts as stalled.
    let both = |world: &mut World| {
        no_table(world);
        lost(world);
    };
    failed(disturbed(500, asks(), both), Failure::NoGateway, 130);
    let both = |world: &mut World| {
        dead(world);
        lost(world);
    };
    failed(disturbed(500, asks(), both), Failure::GatewaysLost, 130);
}

/// With and without the file's identity; the node has nothing, a part, or all of the file.
#[test]
fn a_copy_of_a_file_that_is_there_in_part_delivers_the_rest() {
    let identity = FileIdentity { digest: [7; 32], signature: None, discard: false };
    for has in [0, 1, 300, 499, 500] {
        let config = SenderConfig { file: Some(identity), ..SenderConfig::default() };
        let mut world = World::new(&[path(40_000, 200)], file(500), config, asks());
        world.has(&file(500)[..has]);
        world.run(Duration::from_secs(60));
        assert_delivered(&world, 500);
        assert_eq!((world.dials, world.sender.resumed_from()), (0, has as u64), "{has} of 500 bytes");
    }
}

#[test]
fn whoever_is_killed_the_copy_of_the_next_try_delivers() {
    let identity = FileIdentity { digest: [7; 32], signature: None, discard: false };
    let config = SenderConfig { file: Some(identity), ..SenderConfig::default() };
    // From before the request arrives until after the file was delivered.
    for after in (0..1200).step_by(50) {
        for node_dies in [false, true] {
            let mut world = World::new(&[path(40_000, 200)], file(500), config, asks());
            world.run(Duration::from_millis(after));
            world.now = Instant::ZERO + Duration::from_millis(after);
            if node_dies {
                world.restart_node(asks());
            }
            world.restart_sender(file(500), config);
            world.run(Duration::from_secs(120));
            assert_delivered(&world, 500);
            assert_eq!(world.dials, 0, "after {after} ms");
        }
    }
}

/// A sender that has sent a copy and was accepted after 400 ms.
fn accepted() -> Sender {
    let node = NODE.parse().expect("an address");
    let mut sender = Sender::new(Instant::ZERO, SenderConfig::default(), node, TransferId(7), file(1000));
    sender.handle_stream(at(200), CONTROL, StreamEvent::Opened);
    while let Some(effect) = sender.poll_effect(at(200)) {
        drop(effect);
    }
    sender.handle_timeout(at(200));
    sender.handle_status(at(200), CONTROL, backlog(1100));
    let gateway = Gateway {
        id: 1,
        address: "[fd00::1]:7".parse().expect("an address"),
        key: None,
        energy: Energy::High,
        hops: 1,
        shared_channel: false,
        neighbours: Vec::new(),
    };
    let accept = wire::Accept { buffer: 1000, gateways: vec![gateway] };
    sender.handle_stream(at(400), CONTROL, said(&Message::Accept(accept)));
    sender
}

const CONTROL: StreamId = StreamId(0);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn backlog(in_flight: u32) -> StreamStatus {
    StreamStatus { in_flight, mss: 81, ..StreamStatus::default() }
}

fn said(message: &Message) -> StreamEvent {
    let mut octets = Vec::new();
    wire::encode(message, &mut octets);
    StreamEvent::Data(octets.into())
}

/// When the sender calls a gateway if only time passes.
fn calls_at(sender: &mut Sender, mut now: Instant) -> Option<Instant> {
    for _ in 0..10 {
        while let Some(effect) = sender.poll_effect(now) {
            if matches!(effect, Effect::Dial { leg: Leg::Wired, .. }) {
                return Some(now);
            }
        }
        now = sender.next_timeout()?;
        sender.handle_timeout(now);
    }
    panic!("it turns in a circle");
}

#[test]
fn a_copy_that_tcp_brings_nearer_is_waited_for() {
    assert_eq!(calls_at(&mut accepted(), at(400)), Some(at(800)));
    let mut sender = accepted();
    for (ms, in_flight) in [(700, 900), (1000, 900), (1050, 100)] {
        sender.handle_timeout(at(ms));
        sender.handle_status(at(ms), CONTROL, backlog(in_flight));
    }
    assert_eq!(calls_at(&mut sender, at(1050)), Some(at(1450)));
    let mut sender = accepted();
    sender.handle_status(at(700), CONTROL, backlog(900));
    sender.handle_status(at(1000), CONTROL, backlog(900));
    assert_eq!(calls_at(&mut sender, at(1000)), Some(at(1100)), "nothing moved the second time");
}

#[test]
fn a_stream_that_ends_without_an_acknowledgement_is_not_waited_for() {
    for event in [StreamEvent::Ended, StreamEvent::Closed(StreamClose::Reset), said(&Message::Cancel)] {
        let mut sender = accepted();
        sender.handle_stream(at(410), CONTROL, event);
        assert_eq!(calls_at(&mut sender, at(410)), Some(at(410)));
    }
}

#[test]
fn a_node_that_gives_up_says_so_behind_the_copy() {
    let mut sender = accepted();
    let refuse = Refuse { reason: RefuseReason::Digest, delivered: 0 };
    sender.handle_stream(at(410), CONTROL, said(&Message::Refuse(refuse)));
    assert_eq!(sender.outcome(), Some(Outcome::Failed(Failure::Refused(RefuseReason::Digest))));
    assert_eq!(calls_at(&mut sender, at(410)), None);

    // A node whose owner aborts the transfer while the copy arrives, or after it has arrived.
    for behind in [chunk(0, b"12"), chunk(0, b"12345")] {
        let mut node = Receiver::new(asks());
        let stream = say(&mut node, 5, &behind, true);
        node.grant(Instant::ZERO, TransferId(1), 0);
        node.abort(Instant::ZERO, RefuseReason::Digest);
        let (messages, delivered, _) = answers(&mut node, stream);
        assert!(matches!(messages[..], [.., Message::Refuse(Refuse { reason: RefuseReason::Digest, .. })]));
        assert!(!messages.iter().any(|message| matches!(message, Message::Ack(_))), "{messages:?}");
        assert_eq!(delivered, b"");
    }
}

#[test]
fn a_busy_node_takes_nothing_of_a_copy_and_is_asked_again_without_one() {
    let mut node = Receiver::new(asks());
    say(&mut node, 100, &[], true);
    node.grant(Instant::ZERO, TransferId(1), 0);
    for at_once in [true, false] {
        let stream = say_as(&mut node, TransferId(2), 5, &chunk(0, b"12345"), at_once);
        let (messages, delivered, reset) = answers(&mut node, stream);
        assert!(matches!(messages[..], [Message::Refuse(Refuse { reason: RefuseReason::Busy, .. })]));
        assert_eq!((delivered, reset), (vec![], false));
        assert_eq!(node.delivered(), Some((TransferId(1), 0)));
    }

    let config = SenderConfig { busy_patience: Duration::from_secs(60), ..SenderConfig::default() };
    let node = NODE.parse().expect("an address");
    let mut sender = Sender::new(Instant::ZERO, config, node, TransferId(7), file(500));
    assert!(says_copy(&mut sender));
    let busy = Refuse { reason: RefuseReason::Busy, delivered: 0 };
    sender.handle_stream(Instant::ZERO, CONTROL, said(&Message::Refuse(busy)));
    let later = sender.next_timeout().expect("it asks again");
    sender.handle_timeout(later);
    sender.handle_stream(later, StreamId(1), StreamEvent::Opened);
    assert!(matches!(requested(&mut sender)[..], [Request { copy: false, .. }]));
}

#[test]
fn a_node_that_takes_no_copies_ends_its_side() {
    let mut node = Receiver::new(ReceiverConfig { copy: 0, ..asks() });
    let stream = say(&mut node, 5, &chunk(0, b"12345"), true);
    node.grant(Instant::ZERO, TransferId(1), 0);
    let effects: Vec<Effect> = core::iter::from_fn(|| node.poll_effect()).collect();
    assert!(matches!(effects[..], [.., Effect::Shutdown { stream: last }] if last == stream), "{effects:?}");
    node.handle_stream(Instant::ZERO, stream, StreamEvent::Data(chunk(0, b"12345").into()));
    assert_eq!(answers(&mut node, stream), (vec![], vec![], false), "what follows is ignored");
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

/// Whether the sender's first request announces a copy.
fn says_copy(sender: &mut Sender) -> bool {
    sender.handle_stream(Instant::ZERO, StreamId(0), StreamEvent::Opened);
    matches!(&requested(sender)[..], [Request { copy: true, .. }])
}

/// The requests that a sender makes now, without the data that follows them.
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
    // Immediate: such a node has read the request.
    sender.handle_stream(Instant::ZERO, StreamId(1), StreamEvent::Opened);
    let requests = requested(&mut sender);
    assert!(matches!(requests[..], [Request { copy: false, .. }]), "{requests:?}");
    // A second reset has another reason.
    sender.handle_stream(Instant::ZERO, StreamId(1), StreamEvent::Closed(StreamClose::Reset));
    assert_eq!(sender.next_timeout(), Some(Instant::ZERO + config.patience));
}

/// A request with a copy cannot be followed by the plain file.
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

/// Sends a request of `length` bytes with the copy flag, followed by a part of the copy, as one
/// read or byte by byte.
fn say(node: &mut Receiver, length: u64, behind: &[u8], at_once: bool) -> StreamId {
    say_as(node, TransferId(1), length, behind, at_once)
}

fn say_as(node: &mut Receiver, transfer: TransferId, length: u64, behind: &[u8], at_once: bool) -> StreamId {
    let stream = node.handle_accepted(Instant::ZERO);
    let version = VERSION;
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

/// The node's messages on `stream`, the bytes that it delivers, and whether it resets the stream.
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
        // A chunk beyond the file, a message, and more data than any copy has.
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
            // A second copy of the same bytes is no violation, and nothing after the end of the
            // file is read.
            let whole = delivered == [7; 5];
            assert!(reset || whole && grant == Grant::AtOnce, "{behind:?}, {grant:?}, {at_once}");
            assert!(delivered.is_empty() || whole, "{delivered:?}");
        }
    }
}
