//! Two connections, a wire with latency and rules, and a clock that jumps to the next event.
//!
//! The wire has no rate limit: segments sent at one instant arrive at one instant, in order, unless
//! a [`Rule`] says otherwise.

use std::collections::BTreeMap;

use anabranch_core::segment::{Ecn, Segment, SeqNumber};
use anabranch_core::tcp::{Config, Connection, Event};
use anabranch_core::time::{Duration, Instant};
use bytes::{Buf, Bytes};

/// An end of the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum End {
    /// The end that connects.
    Client,
    /// The end that accepts.
    Server,
}

impl End {
    /// The opposite end.
    pub fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// Fate of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It arrives after the wire's latency.
    Pass,
    /// It arrives later by this time.
    Delay(Duration),
    /// It arrives later by this time and is ECN-marked (RFC 3168), if the sender supports ECN.
    Mark(Duration),
    /// It is lost.
    Drop,
    /// It arrives twice, the copy later by this time.
    Duplicate(Duration),
}

/// Decides the fate of segments; any closure of this shape is a rule.
pub trait Rule {
    /// Decides the fate of `segment`, which `from` sends at `now`.
    fn on_segment(&mut self, now: Instant, from: End, segment: &Segment) -> Verdict;
}

impl<F: FnMut(Instant, End, &Segment) -> Verdict> Rule for F {
    fn on_segment(&mut self, now: Instant, from: End, segment: &Segment) -> Verdict {
        self(now, from, segment)
    }
}

/// One end: its connection, the data to write, and the data received.
#[derive(Debug, Default)]
pub struct Side {
    /// The connection, once it exists.
    pub connection: Option<Connection>,
    /// Data to write as the send buffer permits; afterwards the direction is closed if `closes` is
    /// set.
    pub outbox: Bytes,
    /// Limit on the bytes of one write; 0 means no limit.
    pub chunk: usize,
    /// Whether to close after the outbox is written.
    pub closes: bool,
    /// Whether to read data as soon as it arrives.
    pub reads: bool,
    /// Data read.
    pub inbox: Vec<u8>,
    /// Events in order.
    pub events: Vec<Event>,
    /// Number of segments sent.
    pub sent: u64,
}

/// Two ends and the wire between them.
pub struct Pair {
    /// Current time.
    pub now: Instant,
    /// The end that connects.
    pub client: Side,
    /// The end that accepts.
    pub server: Side,
    latency: Duration,
    server_config: Config,
    server_iss: SeqNumber,
    rule: Box<dyn Rule>,
    wire: BTreeMap<(Instant, u64), (End, Segment)>,
    sequence: u64,
}

impl Pair {
    /// A client that will connect to a server, with `latency` one way.
    pub fn new(client: Config, server: Config, latency: Duration) -> Self {
        let connection =
            Connection::connect(Instant::ZERO, client, CLIENT_PORT, SERVER_PORT, SeqNumber(1_000));
        Self {
            now: Instant::ZERO,
            client: Side { connection: Some(connection), reads: true, ..Side::default() },
            server: Side { reads: true, ..Side::default() },
            latency,
            server_config: server,
            server_iss: SeqNumber(5_000),
            rule: Box::new(|_: Instant, _: End, _: &Segment| Verdict::Pass),
            wire: BTreeMap::new(),
            sequence: 0,
        }
    }

    /// Sets the initial sequence numbers. Call it before the first step.
    pub fn with_sequence_numbers(mut self, config: Config, client: SeqNumber, server: SeqNumber) -> Self {
        self.client.connection =
            Some(Connection::connect(Instant::ZERO, config, CLIENT_PORT, SERVER_PORT, client));
        self.server_iss = server;
        self
    }

    /// Sets the rule of the wire.
    pub fn with_rule(mut self, rule: impl Rule + 'static) -> Self {
        self.rule = Box::new(rule);
        self
    }

    /// One of the sides.
    pub fn side(&mut self, end: End) -> &mut Side {
        match end {
            End::Client => &mut self.client,
            End::Server => &mut self.server,
        }
    }

    /// Lets both ends act, then advances to the next event and processes it. Returns false if no
    /// event is pending.
    pub fn step(&mut self) -> bool {
        self.settle();
        let timeouts = [&self.client, &self.server]
            .map(|side| side.connection.as_ref().and_then(Connection::next_timeout));
        let arrival = self.wire.keys().next().map(|(at, _)| *at);
        let Some(next) = timeouts.into_iter().flatten().chain(arrival).min() else { return false };
        self.now = self.now.max(next);
        self.deliver();
        for end in [End::Client, End::Server] {
            let now = self.now;
            if let Some(connection) = &mut self.side(end).connection
                && connection.next_timeout().is_some_and(|at| at <= now)
            {
                connection.handle_timeout(now);
            }
        }
        self.settle();
        true
    }

    /// Steps until `done` holds, no event is pending, or `limit` has passed. Returns whether `done`
    /// holds.
    pub fn run_until(&mut self, limit: Instant, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        self.settle();
        loop {
            if done(self) {
                return true;
            }
            if self.now > limit || !self.step() {
                return done(self);
            }
        }
    }

    /// Steps until both ends are closed. Returns whether they are.
    pub fn run_to_end(&mut self, limit: Instant) -> bool {
        self.run_until(limit, |pair| {
            let over = |side: &Side| side.events.iter().any(|e| matches!(e, Event::Closed(_)));
            over(&pair.client) && over(&pair.server)
        })
    }

    fn deliver(&mut self) {
        while let Some(entry) = self.wire.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let (to, segment) = entry.remove();
            let (now, config, iss) = (self.now, self.server_config, self.server_iss);
            let side = self.side(to);
            match &mut side.connection {
                Some(connection) => connection.handle_segment(now, segment),
                None => side.connection = Connection::accept(now, config, &segment, iss),
            }
        }
    }

    /// Lets applications and connections act until neither has work at this instant.
    pub fn settle(&mut self) {
        for end in [End::Client, End::Server] {
            loop {
                let now = self.now;
                let side = self.side(end);
                side.act(now);
                let Some(connection) = &mut side.connection else { break };
                let Some(segment) = connection.poll_transmit(now) else { break };
                side.sent += 1;
                self.transmit(end, segment);
            }
        }
    }

    fn transmit(&mut self, from: End, mut segment: Segment) {
        let arrives = self.now + self.latency;
        match self.rule.on_segment(self.now, from, &segment) {
            Verdict::Pass => self.carry(arrives, from, segment),
            Verdict::Delay(extra) => self.carry(arrives + extra, from, segment),
            Verdict::Mark(extra) => {
                if segment.ecn.is_capable() {
                    segment.ecn = Ecn::Ce;
                }
                self.carry(arrives + extra, from, segment);
            }
            Verdict::Drop => {}
            Verdict::Duplicate(later) => {
                self.carry(arrives, from, segment.clone());
                self.carry(arrives + later, from, segment);
            }
        }
    }

    fn carry(&mut self, at: Instant, from: End, segment: Segment) {
        self.sequence += 1;
        self.wire.insert((at, self.sequence), (from.peer(), segment));
    }
}

impl Side {
    /// Acts as the application: writes what fits, closes, reads and records events.
    fn act(&mut self, now: Instant) {
        let Some(connection) = &mut self.connection else { return };
        while !self.outbox.is_empty() {
            let most = if self.chunk == 0 { self.outbox.len() } else { self.chunk.min(self.outbox.len()) };
            match connection.write(&mut self.outbox.slice(..most)) {
                Ok(0) | Err(_) => break,
                Ok(n) => self.outbox.advance(n),
            }
        }
        if self.closes && self.outbox.is_empty() {
            self.closes = false;
            connection.close(now);
        }
        while self.reads {
            let Some(data) = connection.read(usize::MAX) else { break };
            self.inbox.extend_from_slice(&data);
        }
        while let Some(event) = connection.poll_event() {
            self.events.push(event);
        }
    }

    /// The connection.
    ///
    /// # Panics
    /// It does not exist yet.
    pub fn tcp(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("the handshake has begun at this end")
    }
}

const CLIENT_PORT: u16 = 49_152;
const SERVER_PORT: u16 = 80;
