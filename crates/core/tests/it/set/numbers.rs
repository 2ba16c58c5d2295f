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
