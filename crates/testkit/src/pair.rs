//! Two connections, a wire with latency and rules, and a clock that jumps to the next thing that
//! happens.
//!
//! The wire has no rate: what is polled at one instant arrives at one instant, in order, unless a
//! [`Rule`] says otherwise. Ties are broken by the order of sending.

use std::collections::BTreeMap;

use anabranch_core::segment::{Ecn, Segment, SeqNumber};
use anabranch_core::tcp::{Config, Connection, Event};
use anabranch_core::time::{Duration, Instant};
use bytes::{Buf, Bytes};

/// An end of the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum End {
    /// The one that connects.
    Client,
    /// The one that accepts.
    Server,
}

impl End {
    /// The other one.
    pub fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// What becomes of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It arrives after the latency of the wire.
    Pass,
    /// It arrives that much later still.
    Delay(Duration),
    /// It arrives that much later and with a mark (RFC 3168), if the sender understands that.
    Mark(Duration),
    /// It is lost.
    Drop,
    /// It arrives twice, the copy that much later.
    Duplicate(Duration),
}

/// What a wire does to segments; any closure of this shape is one.
pub trait Rule {
    /// `from` sends `segment` at `now`.
    fn on_segment(&mut self, now: Instant, from: End, segment: &Segment) -> Verdict;
}

impl<F: FnMut(Instant, End, &Segment) -> Verdict> Rule for F {
    fn on_segment(&mut self, now: Instant, from: End, segment: &Segment) -> Verdict {
        self(now, from, segment)
    }
}

/// One end: its connection, what is still to be written, what has come.
#[derive(Debug, Default)]
pub struct Side {
    /// The connection, once there is one.
    pub connection: Option<Connection>,
    /// Written as room allows; then the direction is closed if `closes`.
    pub outbox: Bytes,
    /// Most octets handed over in one write; 0 is no limit.
    pub chunk: usize,
    /// Close after the outbox is written.
    pub closes: bool,
    /// Whether to read at once what arrives.
    pub reads: bool,
    /// What was read.
    pub inbox: Vec<u8>,
    /// Events in order.
    pub events: Vec<Event>,
    /// Segments sent.
    pub sent: u64,
}

/// The pair.
pub struct Pair {
    /// The clock.
    pub now: Instant,
    /// The one that connects.
    pub client: Side,
    /// The one that accepts.
    pub server: Side,
    latency: Duration,
    server_config: Config,
    server_iss: SeqNumber,
    rule: Box<dyn Rule>,
    wire: BTreeMap<(Instant, u64), (End, Segment)>,
    sequence: u64,
}

impl Pair {
    /// A client that will connect and a server that will accept, `latency` apart.
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

    /// Other initial sequence numbers; only before the first step.
    pub fn with_sequence_numbers(mut self, config: Config, client: SeqNumber, server: SeqNumber) -> Self {
        self.client.connection =
            Some(Connection::connect(Instant::ZERO, config, CLIENT_PORT, SERVER_PORT, client));
        self.server_iss = server;
        self
    }

    /// What the wire does to segments from now on.
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

    /// Lets both ends act, then goes to the next instant and lets it happen; false if nothing ever
    /// will.
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

    /// Steps until `done` or nothing happens or `limit` is past; true if `done`.
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

    /// Steps until both ends are closed; true if they are.
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

    /// Applications and connections act until neither has anything to do at this instant.
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
    /// The application: write what fits, close, read, note events.
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

    /// The connection, which must exist.
    pub fn tcp(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("the handshake has begun at this end")
    }
}

const CLIENT_PORT: u16 = 49_152;
const SERVER_PORT: u16 = 80;
