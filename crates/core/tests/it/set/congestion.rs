//! Gateways without capacity for a session.

use anabranch_core::set::tcp_manager::State;
use anabranch_core::set::*;
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::set::{self as wire, Message, SetAck};
use bytes::Bytes;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn said(message: &Message) -> StreamEvent {
    let mut octets = Vec::new();
    wire::encode(message, &mut octets);
    StreamEvent::Data(octets.into())
}

/// A sender with the node's answer, and its calls.
struct Calls {
    sender: Sender,
    dialled: Vec<StreamId>,
}

impl Calls {
    fn new(gateways: u16, config: SenderConfig) -> Self {
        let node = "[fd00::100]:5683".parse().expect("an address");
        // Longer than a file that follows its request and needs no gateway.
        let file = Bytes::from(vec![7; wire::MAX_COPY as usize + 1]);
        let sender = Sender::new(Instant::ZERO, config, node, TransferId(7), file);
        let mut calls = Self { sender, dialled: Vec::new() };
        let row = |id| Gateway {
            id,
            address: format!("[fd00::{id}]:7").parse().expect("an address"),
            key: None,
            energy: Energy::High,
            hops: 1,
            shared_channel: false,
            neighbours: Vec::new(),
        };
        let table = wire::Accept { buffer: 1000, gateways: (1..=gateways).map(row).collect() };
        calls.sender.handle_stream(at(0), StreamId(0), StreamEvent::Opened);
        calls.sender.handle_stream(at(0), StreamId(0), said(&Message::Accept(table)));
        calls.poll(at(0));
        calls
    }

    fn poll(&mut self, now: Instant) {
        while let Some(effect) = self.sender.poll_effect(now) {
            if let Effect::Dial { stream, leg: Leg::Wired, .. } = effect {
                self.dialled.push(stream);
            }
        }
    }

    /// The gateway of the last call answers with this status.
    fn answer(&mut self, now: Instant, status: SetAckStatus) {
        let (session, stream) = (self.dialled.len() - 1, *self.dialled.last().expect("a call"));
        self.sender.handle_stream(now, stream, StreamEvent::Opened);
        let answer = SetAck { session: session as u8, status };
        self.sender.handle_stream(now, stream, said(&Message::SetAck(answer)));
        self.poll(now);
    }

    /// Advances the time until there is another call or an outcome.
    fn pass(&mut self) -> Instant {
        let calls = self.dialled.len();
        for _ in 0..100 {
            let now = self.sender.next_timeout().expect("it is not over");
            self.sender.handle_timeout(now);
            self.poll(now);
            if self.dialled.len() > calls || self.sender.outcome().is_some() {
                return now;
            }
        }
        panic!("it turns in a circle");
    }
}

fn patient(seconds: u64) -> SenderConfig {
    SenderConfig { congestion_patience: Duration::from_secs(seconds), ..SenderConfig::default() }
}

#[test]
fn a_congested_gateway_is_called_again_after_pauses_that_double() {
    let mut calls = Calls::new(1, patient(1000));
    let mut times = Vec::new();
    let mut now = at(0);
    for _ in 0..7 {
        calls.answer(now, SetAckStatus::Congested);
        let next = calls.pass();
        times.push(next.saturating_since(now).as_millis() / 1000);
        now = next;
    }
    assert_eq!(times, [5, 10, 20, 40, 60, 60, 60]);
    calls.answer(now, SetAckStatus::Open);
    assert!(calls.sender.is_established());
    let states: Vec<_> = calls.sender.sessions().map(|session| session.state).collect();
    assert_eq!(states, [State::Opened], "a call that came to nothing leaves nothing");
}

#[test]
fn when_all_are_congested_it_fails_at_once_or_when_patience_ends() {
    for (seconds, calls_made) in [(0, 1), (12, 2)] {
        let mut calls = Calls::new(1, patient(seconds));
        calls.answer(at(0), SetAckStatus::Congested);
        let mut now = at(0);
        while calls.sender.outcome().is_none() {
            now = calls.pass();
            if calls.sender.outcome().is_none() {
                calls.answer(now, SetAckStatus::Congested);
            }
        }
        assert_eq!(calls.sender.outcome(), Some(Outcome::Failed(Failure::Congested)));
        assert_eq!((now, calls.dialled.len()), (at(seconds * 1000), calls_made));
    }
}

#[test]
fn the_others_carry_meanwhile_and_it_joins_them_later() {
    let mut calls = Calls::new(2, SenderConfig { open: OpenWhen::OneByOne, ..SenderConfig::default() });
    calls.answer(at(0), SetAckStatus::Congested);
    assert_eq!(calls.dialled.len(), 2);
    calls.answer(at(10), SetAckStatus::Open);
    assert_eq!(calls.pass(), at(5000));
    calls.answer(at(5010), SetAckStatus::Open);
    assert_eq!(calls.sender.sessions().filter(|session| session.state == State::Opened).count(), 2);
    assert_eq!(calls.sender.outcome(), None);
}
