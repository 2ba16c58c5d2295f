//! A gateway's own SETACK among the messages of the node.

use anabranch_core::set::*;
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::set::{self as wire, Ack, Decoder, Item, Join, Message, SetAck, SetAckStatus, SetSyn};
use bytes::Bytes;

const WIRED: StreamId = StreamId(0);
const WIRELESS: StreamId = StreamId(1);
const RTT: Duration = Duration::from_millis(50);

fn encoded(message: &Message) -> Bytes {
    let mut octets = Vec::new();
    wire::encode(message, &mut octets);
    octets.into()
}

fn setsyn() -> Bytes {
    let join = Join { transfer: TransferId(7), session: 0, sessions: 1, plan: Plan::Stripe };
    let destination = "[fd00::100]:5683".parse().expect("an address");
    encoded(&Message::SetSyn(SetSyn { join, destination }))
}

/// An acknowledgement of a node during a transfer: several bytes.
fn ack() -> Message {
    Message::Ack(Ack { delivered: 100_000, received: 70_000, held: Vec::new() })
}

fn setack() -> Message {
    Message::SetAck(SetAck { session: 0, status: SetAckStatus::Open })
}

/// A gateway as printed in the paper whose wireless half has just opened: it stays in OPEN-WAIT for
/// a round trip.
fn waiting() -> Relay {
    let mut relay = Relay::new(RelayConfig::paper());
    assert_eq!(relay.handle_accepted(Instant::ZERO), WIRED);
    relay.handle_stream(Instant::ZERO, WIRED, StreamEvent::Data(setsyn()));
    relay.handle_stream(Instant::ZERO, WIRELESS, StreamEvent::Opened);
    relay.handle_round_trip(Instant::ZERO, WIRELESS, RTT);
    relay
}

/// All data that the gateway wrote to the sender, as messages; `Err` if it cannot be decoded.
fn to_sender(relay: &mut Relay) -> Result<Vec<Message>, wire::DecodeError> {
    let mut decoder = Decoder::new();
    for effect in std::iter::from_fn(|| relay.poll_effect()) {
        if let Effect::Write { stream: WIRED, octets } = effect {
            decoder.push(octets);
        }
    }
    let mut messages = Vec::new();
    while let Some(item) = decoder.next_item()? {
        match item {
            Item::Message(message) => messages.push(message),
            Item::Data { .. } | Item::LongManifest(_) => panic!("nobody sends these to a sender"),
        }
    }
    Ok(messages)
}

#[test]
fn what_the_node_says_in_open_wait_comes_after_the_setack_and_whole() {
    let mut relay = waiting();
    relay.handle_stream(Instant::ZERO, WIRED, StreamEvent::Data(Bytes::from_static(&[0x70, 1, 0])));
    let mut first = encoded(&ack());
    let second = first.split_off(first.len() / 2);
    let soon = Instant::ZERO + Duration::from_millis(1);
    relay.handle_stream(soon, WIRELESS, StreamEvent::Data(first));
    let later = Instant::ZERO + RTT;
    relay.handle_timeout(later);
    relay.handle_stream(later, WIRELESS, StreamEvent::Data(second));
    assert_eq!(relay.next_timeout(), None, "OPEN-WAIT is over");
    assert_eq!(to_sender(&mut relay), Ok(vec![setack(), ack()]));
}

/// OPEN-WAIT lasts a round trip of the wireless half. A SETACK before its end would promise a node
/// that may not have received the SETSYN yet.
#[test]
fn open_wait_lasts_a_round_trip_of_the_wireless_half() {
    let mut relay = waiting();
    let over = Instant::ZERO + RTT;
    assert_eq!(relay.next_timeout(), Some(over));
    relay.handle_timeout(Instant::ZERO + (RTT - Duration::from_millis(1)));
    assert_eq!(to_sender(&mut relay), Ok(vec![]));
    relay.handle_timeout(over);
    assert_eq!(to_sender(&mut relay), Ok(vec![setack()]));
}

#[test]
fn a_setsyn_again_is_answered_until_the_node_has_spoken() {
    let mut relay = waiting();
    let mut now = Instant::ZERO + RTT;
    relay.handle_timeout(now);
    now += Duration::from_secs(3);
    relay.handle_stream(now, WIRED, StreamEvent::Data(setsyn()));
    let mut first = encoded(&ack());
    let second = first.split_off(first.len() / 2);
    relay.handle_stream(now, WIRELESS, StreamEvent::Data(first));
    relay.handle_stream(now, WIRED, StreamEvent::Data(setsyn()));
    relay.handle_stream(now, WIRELESS, StreamEvent::Data(second));
    assert_eq!(to_sender(&mut relay), Ok(vec![setack(), setack(), ack()]));
}

#[test]
fn a_node_that_may_not_be_dialled_is_forbidden_and_one_too_many_finds_it_congested() {
    for (why, status) in
        [(StreamClose::Forbidden, SetAckStatus::Forbidden), (StreamClose::Congested, SetAckStatus::Congested)]
    {
        let mut relay = Relay::new(RelayConfig::default());
        relay.handle_accepted(Instant::ZERO);
        relay.handle_stream(Instant::ZERO, WIRED, StreamEvent::Data(setsyn()));
        relay.handle_stream(Instant::ZERO, WIRELESS, StreamEvent::Closed(why));
        let RelayCounters { forbidden, congested, unreachable, .. } = relay.counters();
        assert_eq!((forbidden + congested, unreachable), (1, 0));
        assert_eq!(congested == 1, why == StreamClose::Congested);
        let answer = SetAck { session: 0, status };
        assert_eq!(to_sender(&mut relay), Ok(vec![Message::SetAck(answer)]));
    }
}

/// A refused sender must close. One that continues is finally reset, regardless of its messages.
#[test]
fn a_refused_sender_that_stays_is_reset() {
    for why in [StreamClose::Forbidden, StreamClose::Congested, StreamClose::Refused, StreamClose::TimedOut] {
        for says in [&b""[..], b"anything", &setsyn()] {
            let mut relay = Relay::new(RelayConfig::default());
            relay.handle_accepted(Instant::ZERO);
            relay.handle_stream(Instant::ZERO, WIRED, StreamEvent::Data(setsyn()));
            relay.handle_stream(Instant::ZERO, WIRELESS, StreamEvent::Closed(why));
            let deadline = Instant::ZERO + RelayConfig::default().setsyn_timeout;
            assert_eq!(relay.next_timeout(), Some(deadline));
            let answers = to_sender(&mut relay).expect("messages");
            assert_eq!(answers.len(), 1, "{answers:?}");
            for ms in 1..100 {
                let now = Instant::ZERO + Duration::from_millis(ms);
                relay.handle_stream(now, WIRED, StreamEvent::Data(Bytes::copy_from_slice(says)));
                relay.handle_timeout(now);
            }
            assert_eq!(relay.poll_effect(), None, "it is not answered again");
            relay.handle_timeout(deadline);
            assert_eq!(relay.poll_effect(), Some(Effect::Abort { stream: WIRED }));
            assert_eq!((relay.poll_effect(), relay.next_timeout()), (None, None));
        }
        // A sender that closes is not reset.
        let mut relay = Relay::new(RelayConfig::default());
        relay.handle_accepted(Instant::ZERO);
        relay.handle_stream(Instant::ZERO, WIRED, StreamEvent::Data(setsyn()));
        relay.handle_stream(Instant::ZERO, WIRELESS, StreamEvent::Closed(why));
        to_sender(&mut relay).expect("messages");
        relay.handle_stream(Instant::ZERO, WIRED, StreamEvent::Ended);
        relay.handle_stream(Instant::ZERO, WIRED, StreamEvent::Closed(StreamClose::Graceful));
        assert_eq!((relay.poll_effect(), relay.next_timeout()), (None, None));
        assert_eq!(relay.counters().rejected, 0);
    }
}

/// The sender's early data has filled the window. The relay still reads it; otherwise it would not
/// notice the close.
#[test]
fn a_sender_whose_node_is_not_reached_is_read_until_it_hangs_up() {
    let mut relay = Relay::new(RelayConfig::default());
    relay.handle_accepted(Instant::ZERO);
    let early = vec![0x70; RelayConfig::default().initial_window as usize];
    relay.handle_stream(Instant::ZERO, WIRED, StreamEvent::Data(setsyn()));
    relay.handle_stream(Instant::ZERO, WIRED, StreamEvent::Data(early.into()));
    let limit = |relay: &mut Relay| {
        let limits = std::iter::from_fn(|| relay.poll_effect()).filter_map(|effect| match effect {
            Effect::LimitReceive { stream: WIRED, octets } => Some(octets),
            _ => None,
        });
        limits.last()
    };
    assert_eq!(limit(&mut relay), Some(0));
    relay.handle_stream(Instant::ZERO, WIRELESS, StreamEvent::Closed(StreamClose::Refused));
    assert!(limit(&mut relay) > Some(0));
    relay.handle_stream(Instant::ZERO, WIRED, StreamEvent::Closed(StreamClose::Reset));
    assert_eq!((relay.poll_effect(), relay.next_timeout()), (None, None));
    let RelayCounters { unreachable, rejected, .. } = relay.counters();
    assert_eq!((unreachable, rejected), (1, 0));
}

/// The sender's owner names the gateway, and the node's table has another address.
#[test]
fn named_gateways_go_before_the_table() {
    let gateway = |id, address: &str| Gateway {
        id,
        address: address.parse().expect("an address"),
        key: None,
        energy: Energy::High,
        hops: 1,
        shared_channel: false,
        neighbours: Vec::new(),
    };
    let node = "[fd00::100]:5683".parse().expect("an address");
    let file = Bytes::from(vec![7; wire::MAX_COPY as usize + 1]);
    let mut sender = Sender::new(Instant::ZERO, SenderConfig::default(), node, TransferId(7), file);
    sender.go_through(vec![gateway(9, "[fd00::9]:7")]);
    let control = StreamId(0);
    sender.handle_stream(Instant::ZERO, control, StreamEvent::Opened);
    let table = wire::Accept { buffer: 1000, gateways: vec![gateway(1, "[fd00::1]:7")] };
    sender.handle_stream(Instant::ZERO, control, StreamEvent::Data(encoded(&Message::Accept(table))));
    let effects = std::iter::from_fn(|| sender.poll_effect(Instant::ZERO));
    let dialled: Vec<_> = effects
        .filter_map(|effect| match effect {
            Effect::Dial { to, leg: Leg::Wired, .. } => Some(to),
            _ => None,
        })
        .collect();
    assert_eq!(dialled, ["[fd00::9]:7".parse().expect("an address")]);
}
