//! Session numbers: the keys of a transfer give each number its own nonces, so a number must not be
//! used twice under one request.

use std::collections::BTreeSet;

use anabranch_core::set::*;
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::set::{self as wire, Decoder, Item, Message};
use bytes::Bytes;

/// A sender whose calls all fail at once, and the node's answers.
struct Failing {
    sender: Sender,
    now: Instant,
    gateways: u16,
    requests: usize,
    /// For each session its request, its number, and the number of sessions announced in its
    /// SETSYN.
    sessions: Vec<(usize, u8, u8)>,
    streams: BTreeSet<StreamId>,
    /// Sessions that are not closed.
    kept: usize,
}

fn row(id: u16) -> Gateway {
    Gateway {
        id,
        address: format!("[fd00::{id:x}]:7").parse().expect("an address"),
        key: None,
        energy: Energy::High,
        hops: 1,
        shared_channel: false,
        neighbours: Vec::new(),
    }
}

/// A sender of `length` bytes with a list of gateways.
fn sender(config: SenderConfig, length: usize, gateways: u16) -> Sender {
    let node = "[fd00::100]:5683".parse().expect("an address");
    let file = Bytes::from(vec![0; length]);
    let mut sender = Sender::new(Instant::ZERO, config, node, TransferId(7), file);
    sender.go_through((1..=gateways).map(row).collect());
    sender
}

fn encoded(message: &Message) -> Bytes {
    let mut octets = Vec::new();
    wire::encode(message, &mut octets);
    octets.into()
}

/// The parsed message of the sender, and the answer of a node to a request, or of a gateway to a
/// SETSYN.
fn answer(octets: Bytes, buffer: u64, table: u16, status: SetAckStatus) -> Option<(Message, Bytes)> {
    let mut decoder = Decoder::new();
    decoder.push(octets);
    let Ok(Some(Item::Message(said))) = decoder.next_item() else { return None };
    let answer = match &said {
        Message::Request(_) => {
            Message::Accept(wire::Accept { buffer, gateways: (1..=table).map(row).collect() })
        }
        Message::SetSyn(setsyn) => Message::SetAck(wire::SetAck { session: setsyn.join.session, status }),
        _ => return None,
    };
    Some((said, encoded(&answer)))
}

/// TCP accepts all data that the sender writes.
fn wide() -> StreamStatus {
    StreamStatus { mss: 1296, cwnd: 60_000, peer_window: 60_000, ..StreamStatus::default() }
}

impl Failing {
    fn new(gateways: u16, config: SenderConfig, kept: usize) -> Self {
        Self {
            // Longer than a file that follows its request.
            sender: sender(config, wire::MAX_COPY as usize + 1, gateways),
            now: Instant::ZERO,
            gateways,
            requests: 0,
            sessions: Vec::new(),
            streams: BTreeSet::new(),
            kept,
        }
    }

    /// Continues until the transfer has ended or has called this number of sessions.
    fn run(&mut self, sessions: usize) {
        for _ in 0..20 * sessions {
            self.poll();
            if self.sessions.len() >= sessions || self.sender.outcome().is_some() {
                return;
            }
            self.now = self.sender.next_timeout().expect("it is not over");
            self.sender.handle_timeout(self.now);
        }
    }

    fn poll(&mut self) {
        while let Some(effect) = self.sender.poll_effect(self.now) {
            match effect {
                Effect::Dial { stream, .. } => {
                    self.sender.handle_stream(self.now, stream, StreamEvent::Opened);
                }
                Effect::Write { stream, octets } => self.answer(stream, octets),
                _ => {}
            }
        }
    }

    fn answer(&mut self, stream: StreamId, octets: Bytes) {
        match answer(octets, 1000, self.gateways.min(15), SetAckStatus::Open) {
            Some((Message::Request(_), octets)) => {
                self.requests += 1;
                self.sender.handle_stream(self.now, stream, StreamEvent::Data(octets));
            }
            Some((Message::SetSyn(setsyn), _)) if self.streams.insert(stream) => {
                let wire::Join { session, sessions, .. } = setsyn.join;
                self.sessions.push((self.requests, session, sessions));
                if self.sessions.len() > self.kept {
                    let reset = StreamEvent::Closed(StreamClose::Reset);
                    self.sender.handle_stream(self.now, stream, reset);
                }
            }
            _ => {}
        }
    }

    fn assert_distinct(&self) {
        let mut seen = BTreeSet::new();
        for &(request, number, sessions) in &self.sessions {
            assert!(number < sessions, "session {number} of {sessions} cannot be read");
            assert!(seen.insert((request, number)), "session {number} twice under request {request}");
        }
    }
}

/// Neither a session nor the transfer is aborted because of silence.
fn patient() -> SenderConfig {
    let patience = Duration::from_secs(1_000_000);
    SenderConfig { stall: patience, set_timeout: patience, ..SenderConfig::default() }
}

#[test]
fn sessions_past_the_255th_are_numbered_under_a_new_request() {
    for gateways in [1, 15, 255, 256, 270] {
        let config = SenderConfig { redials: 600, ..patient() };
        let mut failing = Failing::new(gateways, config, 0);
        failing.run(600);
        failing.assert_distinct();
        assert!(failing.sessions.len() >= 600, "{gateways} gateways");
        assert_eq!(failing.requests, failing.sessions.len().div_ceil(255), "{gateways} gateways");
        let announced = failing.sessions.iter().map(|(_, _, sessions)| *sessions).max();
        assert!(announced >= Some(gateways.min(255) as u8), "{gateways} gateways, {announced:?} sessions");
    }
}

/// While one session carries data there is no new request: the session would lose its place for
/// nothing.
#[test]
fn without_a_number_nothing_is_called_while_a_session_is_alive() {
    let config = SenderConfig { open: OpenWhen::AtOnce, ..patient() };
    let mut failing = Failing::new(300, config, 300);
    failing.poll();
    failing.assert_distinct();
    assert_eq!((failing.sessions.len(), failing.requests), (255, 1));
}

/// Gateways that open every session and discard its data.
struct Hole {
    sender: Sender,
    now: Instant,
    dials: usize,
    close_after: Option<Duration>,
    open: Vec<(Instant, StreamId)>,
}

impl Hole {
    fn new(gateways: u16, close_after: Option<Duration>) -> Self {
        let sender = sender(SenderConfig::default(), 100_000, gateways);
        Self { sender, now: Instant::ZERO, dials: 0, close_after, open: Vec::new() }
    }

    fn poll(&mut self) {
        while let Some(effect) = self.sender.poll_effect(self.now) {
            match effect {
                Effect::Dial { stream, .. } => {
                    self.dials += 1;
                    self.sender.handle_stream(self.now, stream, StreamEvent::Opened);
                }
                Effect::Write { stream, octets } => {
                    let Some((said, octets)) = answer(octets, 64_000, 1, SetAckStatus::Open) else {
                        continue;
                    };
                    if matches!(said, Message::SetSyn(_)) {
                        self.open.push((self.now, stream));
                    }
                    self.sender.handle_stream(self.now, stream, StreamEvent::Data(octets));
                    self.sender.handle_status(self.now, stream, wide());
                }
                _ => {}
            }
        }
    }

    fn run(&mut self, limit: Duration) {
        while self.sender.outcome().is_none() && self.now < Instant::ZERO + limit {
            self.poll();
            let Some(next) = self.sender.next_timeout() else { break };
            let first = self.close_after.zip(self.open.first().copied());
            match first.map(|(after, (since, _))| since + after).filter(|at| *at <= next) {
                Some(at) => {
                    let (_, stream) = self.open.remove(0);
                    self.now = self.now.max(at);
                    self.sender.handle_stream(self.now, stream, StreamEvent::Closed(StreamClose::Reset));
                }
                None => {
                    self.now = self.now.max(next);
                    self.sender.handle_timeout(self.now);
                }
            }
        }
    }
}

/// Gateways that accept every session and forward nothing, as in front of a node that hangs, or
/// whose sessions are reset after some time. The transfer ends, and its stored state does not grow.
#[test]
fn a_transfer_that_delivers_nothing_ends() {
    for (gateways, close) in [(1, None), (2, None), (4, None), (2, Some(2)), (3, Some(4)), (8, Some(20))] {
        let mut hole = Hole::new(gateways, close.map(Duration::from_secs));
        hole.run(Duration::from_secs(1500));
        let what = format!("{gateways} gateways, reset after {close:?} s, {} calls", hole.dials);
        assert!(hole.sender.outcome().is_some(), "{what}");
        assert!(hole.sender.sessions().count() <= usize::from(gateways), "{what}");
    }
}

/// All data is acknowledged and refused in one read.
#[test]
fn an_outcome_is_final() {
    for all_first in [true, false] {
        let mut hole = Hole::new(1, None);
        hole.poll();
        let stream = hole.open[0].1;
        let all = Message::Ack(wire::Ack { delivered: 100_000, received: 100_000, held: Vec::new() });
        let refused = Message::Refuse(wire::Refuse { reason: RefuseReason::Digest, delivered: 0 });
        let order = if all_first { [&all, &refused] } else { [&refused, &all] };
        let says = order.map(encoded).concat();
        hole.sender.handle_stream(hole.now, stream, StreamEvent::Data(says.into()));
        let failed = Outcome::Failed(Failure::Refused(RefuseReason::Digest));
        assert_eq!(hole.sender.outcome(), Some(if all_first { Outcome::Delivered } else { failed }));
    }
}

/// One gateway carries data slowly for hours; the others refuse calls.
#[test]
fn a_gateway_that_was_away_for_hours_is_called_again() {
    for (gateways, away) in [(2, 3), (6, 1)] {
        let mut sender = sender(SenderConfig::default(), 100_000, gateways);
        let mut now = Instant::ZERO;
        let back = Instant::ZERO + Duration::from_secs(away * 3600);
        let (mut calls, mut after, mut live, mut acknowledged) = (0, 0, None, 0);
        let (mut last, mut tick) = (now, now);
        while now < back + Duration::from_secs(3600) && sender.outcome().is_none() {
            while let Some(effect) = sender.poll_effect(now) {
                match effect {
                    Effect::Dial { stream, to, leg } if leg != Leg::Control && to != row(1).address => {
                        calls += 1;
                        last = now;
                        after += u32::from(now >= back);
                        sender.handle_stream(now, stream, StreamEvent::Closed(StreamClose::Reset));
                    }
                    Effect::Dial { stream, .. } => sender.handle_stream(now, stream, StreamEvent::Opened),
                    Effect::Write { stream, octets } => {
                        let Some((said, octets)) = answer(octets, 64_000, 1, SetAckStatus::Open) else {
                            continue;
                        };
                        if matches!(said, Message::SetSyn(_)) {
                            live = Some(stream);
                        }
                        sender.handle_stream(now, stream, StreamEvent::Data(octets));
                        sender.handle_status(now, stream, wide());
                    }
                    _ => {}
                }
            }
            let next = sender.next_timeout().expect("it is not over").max(now);
            if tick + Duration::from_secs(1) > next {
                now = next;
                sender.handle_timeout(now);
                continue;
            }
            tick += Duration::from_secs(1);
            now = now.max(tick);
            acknowledged += 1;
            if let Some(stream) = live {
                let all = wire::Ack { delivered: acknowledged, received: acknowledged, held: Vec::new() };
                sender.handle_stream(now, stream, StreamEvent::Data(encoded(&Message::Ack(all))));
            }
            if sender.next_timeout().is_some_and(|at| at <= now) {
                sender.handle_timeout(now);
            }
        }
        assert!(after > 0, "{gateways} gateways, away {away} h: {calls} calls, last at {last:?}");
    }
}

#[test]
fn a_congested_gateway_is_called_for_as_long_as_there_is_patience() {
    let patience = Duration::from_secs(24 * 3600);
    let config = SenderConfig { congestion_patience: patience, ..SenderConfig::default() };
    let mut sender = sender(config, 1000, 1);
    let (mut now, mut calls, mut last) = (Instant::ZERO, 0, Instant::ZERO);
    while now < Instant::ZERO + Duration::from_secs(100_000) {
        while let Some(effect) = sender.poll_effect(now) {
            match effect {
                Effect::Dial { stream, leg, .. } => {
                    if leg != Leg::Control {
                        calls += 1;
                        last = now;
                    }
                    sender.handle_stream(now, stream, StreamEvent::Opened);
                }
                Effect::Write { stream, octets } => {
                    if let Some((_, octets)) = answer(octets, 8_000, 1, SetAckStatus::Congested) {
                        sender.handle_stream(now, stream, StreamEvent::Data(octets));
                    }
                }
                _ => {}
            }
        }
        if sender.outcome().is_some() {
            break;
        }
        now = sender.next_timeout().expect("it is not over").max(now);
        sender.handle_timeout(now);
    }
    assert!(
        calls > 1000 && last > Instant::ZERO + Duration::from_secs(80_000),
        "{calls} calls, last at {last:?}"
    );
}

/// Without patience, a call that is not answered immediately is aborted.
#[test]
fn calls_without_patience_are_not_repeated_at_one_instant() {
    let config =
        SenderConfig { patience: Duration::ZERO, open: OpenWhen::OneByOne, ..SenderConfig::default() };
    let mut sender = sender(config, 5000, 3);
    let now = Instant::ZERO;
    let mut dialled = Vec::new();
    let mut opened = false;
    for _ in 0..100 {
        while let Some(effect) = sender.poll_effect(now) {
            match effect {
                Effect::Dial { stream, .. } => dialled.push(stream),
                Effect::Write { stream, octets } => {
                    if let Some((_, octets)) = answer(octets, 1000, 3, SetAckStatus::Open) {
                        sender.handle_stream(now, stream, StreamEvent::Data(octets));
                    }
                }
                _ => {}
            }
        }
        // The control stream and one session are open; no other gateway answers.
        for stream in dialled.iter().take(2).filter(|_| !opened) {
            sender.handle_stream(now, *stream, StreamEvent::Opened);
        }
        opened = dialled.len() > 1;
        if sender.next_timeout().is_some_and(|at| at <= now) {
            sender.handle_timeout(now);
        }
    }
    assert!(dialled.len() < 20, "{} calls at one instant", dialled.len());
}
