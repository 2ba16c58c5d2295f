//! Two multipath connections, several paths with rate, delay, queue, loss and reordering, and a
//! clock that jumps to the next event. Events at the same time keep the order of sending.

#![allow(unreachable_pub, reason = "its items are named as those of a library")]

use std::collections::BTreeMap;

use crate::mptcp_in_order::InOrder;
use anabranch_core::mptcp::{Config, Connection, Event, PathFacts, PathId, Secrets, SubflowId, join_token};
use anabranch_core::segment::{AddressId, Key, Segment, SeqNumber};
use anabranch_core::tcp::{self, reset_for};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::prng::Prng;
use bytes::{Buf, Bytes};

/// An endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum End {
    Client,
    Server,
}

/// Properties of a path in both directions.
#[derive(Clone, Debug)]
pub struct Path {
    pub bit_per_s: u64,
    /// One-way delay.
    pub delay: Duration,
    /// Number of lost segments of 1,000, for each direction.
    pub loss: u64,
    /// Number of segments of 100 that arrive up to 3 delays late.
    pub reorder: u64,
    /// Segments that would wait longer are dropped.
    pub queue: Duration,
    /// The path is down between these two times.
    pub down: Option<(Instant, Instant)>,
    /// Seed of the path: equal seeds lose the same segments.
    pub dice: u64,
    /// The path information given to the client.
    pub facts: PathFacts,
    /// Configuration of the client's subflow, if it differs from the first.
    pub tcp: Option<tcp::Config>,
}

impl Path {
    pub fn new(bit_per_s: u64, delay_ms: u64) -> Self {
        Self {
            bit_per_s,
            delay: Duration::from_millis(delay_ms),
            loss: 0,
            reorder: 0,
            queue: Duration::from_millis(500),
            down: None,
            dice: bit_per_s ^ delay_ms << 32,
            facts: PathFacts {
                service_time: Some(Duration::from_nanos(1068 * 8 * 1_000_000_000 / bit_per_s)),
                ..PathFacts::default()
            },
            tcp: None,
        }
    }
}

/// Fate of a segment, in addition to the effects of its path.
pub enum Verdict {
    Pass,
    Drop,
}

type Rule = Box<dyn FnMut(Instant, End, PathId, &mut Segment) -> Verdict>;

#[derive(Default)]
pub struct Side {
    pub connection: Option<Connection>,
    pub outbox: Bytes,
    pub closes: bool,
    pub reads: bool,
    pub inbox: Vec<u8>,
    pub events: Vec<Event>,
    pub sent: u64,
    /// Subflows by path and client port.
    ports: BTreeMap<(PathId, u16), SubflowId>,
}

pub struct World {
    pub now: Instant,
    pub client: Side,
    pub server: Side,
    pub paths: Vec<Path>,
    pub config: Config,
    /// Whether the client opens subflows on the further paths, and again when they are closed.
    pub joins: bool,
    pub rejoins: bool,
    pub rule: Option<Rule>,
    /// If set, the two ends acknowledge data only once it is in order on its subflow.
    pub in_order: Option<[InOrder; 2]>,
    busy: Vec<[Instant; 2]>,
    dice: Vec<Prng>,
    wire: BTreeMap<(Instant, u64), (End, PathId, Segment)>,
    sequence: u64,
    open: Vec<Option<SubflowId>>,
    next_port: u16,
    secrets: Prng,
}

impl World {
    pub fn new(client: Config, server: Config, paths: Vec<Path>, seed: u64) -> Self {
        let mut secrets = Prng::new(seed);
        let first = draw(&mut secrets);
        let mut connection = Connection::connect(Instant::ZERO, client, PathId(0), (PORT, 80), first);
        connection.set_path(SubflowId(0), paths[0].facts);
        let mut open = vec![None; paths.len()];
        open[0] = Some(SubflowId(0));
        let mut ports = BTreeMap::new();
        ports.insert((PathId(0), PORT), SubflowId(0));
        Self {
            now: Instant::ZERO,
            client: Side { connection: Some(connection), reads: true, ports, ..Side::default() },
            server: Side { reads: true, ..Side::default() },
            config: server,
            joins: true,
            rejoins: false,
            rule: None,
            in_order: None,
            busy: vec![[Instant::ZERO; 2]; paths.len()],
            dice: paths.iter().flat_map(|p| [1, 2].map(|way| Prng::new(seed ^ p.dice << 2 ^ way))).collect(),
            wire: BTreeMap::new(),
            sequence: 0,
            open,
            next_port: PORT + 1,
            secrets,
            paths,
        }
    }

    pub fn side(&mut self, end: End) -> &mut Side {
        match end {
            End::Client => &mut self.client,
            End::Server => &mut self.server,
        }
    }

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

    /// Runs until both endpoints are closed.
    pub fn run_to_end(&mut self, seconds: u64) -> bool {
        self.run_until(Instant::ZERO + Duration::from_secs(seconds), |world| {
            let over = |side: &Side| side.events.iter().any(|e| matches!(e, Event::Closed(_)));
            over(&world.client) && over(&world.server)
        })
    }

    fn deliver(&mut self) {
        while let Some(entry) = self.wire.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let (to, path, segment) = entry.remove();
            let (now, config) = (self.now, self.config);
            let known = self.side(to).ports.get(&port_key(to, path, &segment)).copied();
            let secrets = draw(&mut self.secrets);
            let key = port_key(to, path, &segment);
            if let Some(ends) = &mut self.in_order {
                ends[to as usize].receive(key, &segment);
            }
            let side = self.side(to);
            match (&mut side.connection, known) {
                (Some(connection), Some(id)) => connection.handle_segment(now, id, segment),
                (Some(connection), None) if join_token(&segment).is_some() => {
                    match connection.accept_join(now, path, &segment, AddressId(path.0 as u8), secrets) {
                        Ok(id) => {
                            side.ports.insert(key, id);
                        }
                        Err(_) => self.refuse(to, path, &segment),
                    }
                }
                (Some(_), None) => self.refuse(to, path, &segment),
                (None, _) => {
                    side.connection = Connection::accept(now, config, path, &segment, secrets);
                    side.ports.insert(key, SubflowId(0));
                }
            }
        }
    }

    fn refuse(&mut self, from: End, path: PathId, segment: &Segment) {
        if let Some(reset) = reset_for(segment) {
            self.transmit(from, path, reset);
        }
    }

    pub fn settle(&mut self) {
        for end in [End::Client, End::Server] {
            loop {
                if end == End::Client && self.joins {
                    self.join();
                }
                let now = self.now;
                let side = self.side(end);
                side.act(now);
                let Some(connection) = &mut side.connection else { break };
                let Some((id, segment)) = connection.poll_transmit(now) else { break };
                side.sent += 1;
                let path = connection.subflow_info(id).expect("it has just spoken").path;
                self.transmit(end, path, segment);
            }
        }
    }

    fn join(&mut self) {
        let Some(connection) = &mut self.client.connection else { return };
        for (i, open) in self.open.iter_mut().enumerate() {
            let path = PathId(i as u16);
            if open.is_some_and(|id| connection.subflows().any(|(other, _)| other == id)) {
                continue;
            }
            if open.is_some() && !self.rejoins || !connection.can_join() {
                continue;
            }
            let port = self.next_port;
            self.next_port += 1;
            let secrets = draw(&mut self.secrets);
            let id = connection
                .join(self.now, (path, AddressId(i as u8)), (port, 80), self.paths[i].tcp, secrets)
                .expect("it can join");
            connection.set_path(id, self.paths[i].facts);
            self.client.ports.insert((path, port), id);
            *open = Some(id);
        }
    }

    fn transmit(&mut self, from: End, path: PathId, mut segment: Segment) {
        let received = self.side(from).connection.as_ref().map_or(0, |c| c.info().bytes_received);
        if let Some(ends) = &mut self.in_order {
            ends[from as usize].acknowledge(received, &mut segment);
        }
        if let Some(rule) = &mut self.rule
            && matches!(rule(self.now, from, path, &mut segment), Verdict::Drop)
        {
            return;
        }
        assert!(segment.options_len() <= 40, "{segment:?}");
        let i = usize::from(path.0);
        let way = from as usize;
        let dice = &mut self.dice[i * 2 + way];
        let (lost, late) = (dice.below(1000), dice.below(100));
        let this = &self.paths[i];
        let octets = segment.wire_len() as u64 + 40;
        let busy = &mut self.busy[i][way];
        let start = (*busy).max(self.now);
        if start.saturating_since(self.now) > this.queue {
            return;
        }
        *busy = start + Duration::from_nanos(octets * 8 * 1_000_000_000 / this.bit_per_s);
        let down = this.down.is_some_and(|(from, to)| from <= self.now && self.now < to);
        if lost < this.loss || down {
            return;
        }
        let extra = if late < this.reorder { this.delay * 3 } else { Duration::ZERO };
        self.sequence += 1;
        let to = if from == End::Client { End::Server } else { End::Client };
        self.wire.insert((*busy + this.delay + extra, self.sequence), (to, path, segment));
    }
}

impl Side {
    fn act(&mut self, now: Instant) {
        let Some(connection) = &mut self.connection else { return };
        while !self.outbox.is_empty() {
            match connection.write(&mut self.outbox.clone()) {
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

    pub fn mptcp(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("the handshake has begun at this end")
    }
}

/// Port of the client.
fn port_key(to: End, path: PathId, segment: &Segment) -> (PathId, u16) {
    (path, if to == End::Client { segment.dst_port } else { segment.src_port })
}

fn draw(prng: &mut Prng) -> Secrets {
    Secrets { key: Key(prng.bits()), nonce: prng.bits() as u32, iss: SeqNumber(prng.bits() as u32) }
}

const PORT: u16 = 49_152;
