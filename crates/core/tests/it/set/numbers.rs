//! Numbers of sessions: the keys of a transfer give each number nonces of its own, so that none may come twice under one request.

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
    /// The number of each session and the number of sessions that its SETSYN announced, under each request.
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
        neighbours: Vec::new(),
    }
}

impl Failing {
    fn new(gateways: u16, config: SenderConfig, kept: usize) -> Self {
        let node = "[fd00::100]:5683".parse().expect("an address");
        let mut sender =
            Sender::new(Instant::ZERO, config, node, TransferId(7), Bytes::from_static(b"octets"));
        sender.go_through((1..=gateways).map(row).collect());
        Self {
            sender,
            now: Instant::ZERO,
            gateways,
            requests: 0,
            sessions: Vec::new(),
            streams: BTreeSet::new(),
            kept,
        }
    }

    /// Goes on until the transfer is over, or for so many sessions.
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
        let mut decoder = Decoder::new();
        decoder.push(octets);
        match decoder.next_item() {
            Ok(Some(Item::Message(Message::Request(_)))) => {
                self.requests += 1;
                let gateways = (1..=self.gateways.min(15)).map(row).collect();
                let mut octets = Vec::new();
                wire::encode(&Message::Accept(wire::Accept { buffer: 1000, gateways }), &mut octets);
                self.sender.handle_stream(self.now, stream, StreamEvent::Data(octets.into()));
            }
            Ok(Some(Item::Message(Message::SetSyn(setsyn)))) if self.streams.insert(stream) => {
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

/// Neither a session nor the transfer is given up for its silence.
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

/// While one carries there is no new request: the session would lose its place for nothing.
#[test]
fn without_a_number_nothing_is_called_while_a_session_is_alive() {
    let config = SenderConfig { open: OpenWhen::AtOnce, ..patient() };
    let mut failing = Failing::new(300, config, 300);
    failing.poll();
    failing.assert_distinct();
    assert_eq!((failing.sessions.len(), failing.requests), (255, 1));
}

/// Gateways that open every session and swallow what it carries.
struct Hole {
    sender: Sender,
    now: Instant,
    dials: usize,
    requests: usize,
    close_after: Option<Duration>,
    open: Vec<(Instant, StreamId)>,
}

impl Hole {
    fn new(gateways: u16, close_after: Option<Duration>) -> Self {
        let node = "[fd00::100]:5683".parse().expect("an address");
        let mut sender = Sender::new(
            Instant::ZERO,
            SenderConfig::default(),
            node,
            TransferId(7),
            Bytes::from(vec![0; 100_000]),
        );
        sender.go_through((1..=gateways).map(row).collect());
        Self { sender, now: Instant::ZERO, dials: 0, requests: 0, close_after, open: Vec::new() }
    }
    fn poll(&mut self) {
        while let Some(effect) = self.sender.poll_effect(self.now) {
            match effect {
                Effect::Dial { stream, .. } => {
                    self.dials += 1;
                    self.sender.handle_stream(self.now, stream, StreamEvent::Opened)
                }
                Effect::Write { stream, octets } => {
                    let mut decoder = Decoder::new();
                    decoder.push(octets);
                    let mut out = Vec::new();
                    match decoder.next_item() {
                        Ok(Some(Item::Message(Message::Request(_)))) => {
                            self.requests += 1;
                            wire::encode(
                                &Message::Accept(wire::Accept { buffer: 64_000, gateways: vec![row(1)] }),
                                &mut out,
                            );
                        }
                        Ok(Some(Item::Message(Message::SetSyn(s)))) => {
                            wire::encode(
                                &Message::SetAck(wire::SetAck {
                                    session: s.join.session,
                                    status: wire::SetAckStatus::Open,
                                }),
                                &mut out,
                            );
                            self.open.push((self.now, stream));
                        }
                        _ => continue,
                    }
                    self.sender.handle_stream(self.now, stream, StreamEvent::Data(out.into()));
                    let status = StreamStatus {
                        mss: 1296,
                        cwnd: 60_000,
                        peer_window: 60_000,
                        ..StreamStatus::default()
                    };
                    self.sender.handle_status(self.now, stream, status);
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

/// Gateways that accept every session and pass nothing on, as in front of a node that hangs, or whose sessions are reset after
/// some time: the transfer ends, and what is remembered of it does not grow.
#[test]
fn a_transfer_that_delivers_nothing_ends() {
    for (gateways, close) in [(1, None), (2, None), (4, None), (2, Some(2)), (3, Some(4)), (8, Some(20))] {
        let mut hole = Hole::new(gateways, close.map(Duration::from_secs));
        hole.run(Duration::from_secs(1500));
        let what = format!("{gateways} gateways, reset after {close:?} s, {} calls", hole.dials);
        assert!(hole.sender.outcome().is_some(), "{what}");
        assert!(hole.sender.sessions().count() <= 2 * usize::from(gateways), "{what}");
    }
}

/// Everything is acknowledged and refused in one read.
#[test]
fn an_outcome_is_final() {
    for all_first in [true, false] {
        let mut hole = Hole::new(1, None);
        hole.poll();
        let stream = hole.open[0].1;
        let all = Message::Ack(wire::Ack { delivered: 100_000, received: 100_000, held: Vec::new() });
        let refused = Message::Refuse(wire::Refuse { reason: RefuseReason::Digest, delivered: 0 });
        let mut says = Vec::new();
        let order = if all_first { [&all, &refused] } else { [&refused, &all] };
        order.into_iter().for_each(|message| wire::encode(message, &mut says));
        hole.sender.handle_stream(hole.now, stream, StreamEvent::Data(says.into()));
        let failed = Outcome::Failed(Failure::Refused(RefuseReason::Digest));
        assert_eq!(hole.sender.outcome(), Some(if all_first { Outcome::Delivered } else { failed }));
    }
}

/// One gateway carries slowly for hours, the others refuse calls.
#[test]
fn a_gateway_that_was_away_for_hours_is_called_again() {
    for (n, away) in [(2u16, 3u64), (6, 1)] {
        let node = "[fd00::100]:5683".parse().expect("an address");
        let length = 100_000u64;
        let config = SenderConfig { ..SenderConfig::default() };
        let mut sender =
            Sender::new(Instant::ZERO, config, node, TransferId(7), Bytes::from(vec![0; length as usize]));
        sender.go_through((1..=n).map(row).collect());
        let mut now = Instant::ZERO;
        let back = Instant::ZERO + Duration::from_secs(away * 3600);
        let (mut calls, mut after, mut live, mut acked) = (0, 0, None, 0u64);
        let mut last = now;
        let mut tick = now;
        while now < back + Duration::from_secs(3600) && sender.outcome().is_none() {
            while let Some(effect) = sender.poll_effect(now) {
                match effect {
                    Effect::Dial { stream, to, leg } => {
                        let bad = leg != Leg::Control && to != row(1).address;
                        if bad {
                            calls += 1;
                            last = now;
                            if now >= back {
                                after += 1;
                            }
                        }
                        let event =
                            if bad { StreamEvent::Closed(StreamClose::Reset) } else { StreamEvent::Opened };
                        sender.handle_stream(now, stream, event);
                    }
                    Effect::Write { stream, octets } => {
                        let mut decoder = Decoder::new();
                        decoder.push(octets);
                        let mut out = Vec::new();
                        match decoder.next_item() {
                            Ok(Some(Item::Message(Message::Request(_)))) => wire::encode(
                                &Message::Accept(wire::Accept { buffer: 64_000, gateways: vec![row(1)] }),
                                &mut out,
                            ),
                            Ok(Some(Item::Message(Message::SetSyn(s)))) => {
                                live = Some(stream);
                                wire::encode(
                                    &Message::SetAck(wire::SetAck {
                                        session: s.join.session,
                                        status: wire::SetAckStatus::Open,
                                    }),
                                    &mut out,
                                )
                            }
                            _ => continue,
                        }
                        sender.handle_stream(now, stream, StreamEvent::Data(out.into()));
                        sender.handle_status(
                            now,
                            stream,
                            StreamStatus {
                                mss: 1296,
                                cwnd: 60_000,
                                peer_window: 60_000,
                                ..StreamStatus::default()
                            },
                        );
                    }
                    _ => {}
                }
            }
            let next = sender.next_timeout().unwrap().max(now);
            if tick + Duration::from_secs(1) <= next {
                tick += Duration::from_secs(1);
                now = now.max(tick);
                acked += 1;
                let mut out = Vec::new();
                wire::encode(
                    &Message::Ack(wire::Ack { delivered: acked, received: acked, held: vec![] }),
                    &mut out,
                );
                if let Some(stream) = live {
                    sender.handle_stream(now, stream, StreamEvent::Data(out.into()));
                }
                if sender.next_timeout().is_some_and(|t| t <= now) {
                    sender.handle_timeout(now);
                }
            } else {
                now = next;
                sender.handle_timeout(now);
            }
        }
        assert!(after > 0, "{n} gateways, away {away} h: {calls} calls, last at {last:?}");
    }
}

#[test]
fn a_congested_gateway_is_called_for_as_long_as_there_is_patience() {
    let patience = Duration::from_secs(24 * 3600);
    let config = SenderConfig { congestion_patience: patience, ..SenderConfig::default() };
    let mut sender = Sender::new(
        Instant::ZERO,
        config,
        "[fd00::100]:5683".parse().unwrap(),
        TransferId(7),
        Bytes::from(vec![0; 1000]),
    );
    sender.go_through(vec![row(1)]);
    let (mut now, mut calls, mut last) = (Instant::ZERO, 0, Instant::ZERO);
    while sender.outcome().is_none() && now < Instant::ZERO + Duration::from_secs(100_000) {
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
                    let mut d = Decoder::new();
                    d.push(octets);
                    let mut out = Vec::new();
                    match d.next_item() {
                        Ok(Some(Item::Message(Message::Request(_)))) => wire::encode(
                            &Message::Accept(wire::Accept { buffer: 8_000, gateways: vec![row(1)] }),
                            &mut out,
                        ),
                        Ok(Some(Item::Message(Message::SetSyn(s)))) => wire::encode(
                            &Message::SetAck(wire::SetAck {
                                session: s.join.session,
                                status: wire::SetAckStatus::Congested,
                            }),
                            &mut out,
                        ),
                        _ => continue,
                    }
                    sender.handle_stream(now, stream, StreamEvent::Data(out.into()));
                }
                _ => {}
            }
        }
        if sender.outcome().is_some() {
            break;
        }
        now = sender.next_timeout().unwrap().max(now);
        sender.handle_timeout(now);
    }
    assert!(
        calls > 1000 && last > Instant::ZERO + Duration::from_secs(80_000),
        "{calls} calls, last at {last:?}"
    );
}
