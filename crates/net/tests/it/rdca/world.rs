//! Hosts with clocks of their own, a network with faults, and an output that survives kills.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use anabranch_core::rdca::{Outcome, SinkConfig};
use anabranch_core::time::{Duration, Instant};
use anabranch_net::rdca::{Collector, Item, Ledger, Sense, SenseEvent, Taken, What, Why, sender_config};
use anabranch_secure::datagram::{Accepts, AnyProof, Forward, Known, Shared};
use anabranch_secure::{SecretKey, SharedKey};
use anabranch_testkit::prng::Prng;
use bytes::Bytes;

use super::entropy;

/// How senders and sink authenticate each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keys {
    Clear,
    Known,
    Shared,
    Forward,
}

/// What survives a kill of the sink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Output {
    /// Items and numbers together: a file.
    Exact,
    /// Items first, numbers later: a pipe.
    Repeats,
}

fn secret(octet: u8) -> SecretKey {
    SecretKey::from_octets([octet; 32])
}

fn shared() -> SharedKey {
    SharedKey::from_octets([9; 32])
}

/// A process that sends.
pub(super) struct Host {
    machine: Sense<AnyProof>,
    name: String,
    /// Changes with each start.
    pub run: u64,
    /// By how much this host's clock is ahead.
    pub ahead: Duration,
    pub address: SocketAddr,
    /// The payloads that the machine has accepted, by run.
    pub accepted: BTreeMap<u64, Vec<Bytes>>,
    pub closed: Option<Outcome>,
    period: Duration,
    next: Instant,
    left: u32,
}

/// A datagram on its way: number of the sender, direction, source address.
type Flying = (usize, bool, SocketAddr, Vec<u8>);

pub(super) struct World {
    pub prng: Prng,
    pub now: Instant,
    pub hosts: Vec<Host>,
    keys: Keys,
    output: Output,
    sink: Collector,
    pub sink_ahead: Duration,
    flying: BTreeMap<(Instant, u64), Flying>,
    sent: u64,
    /// Items that the output has, also across kills.
    pub items: Vec<Item>,
    /// Number of items whose numbers the state has.
    noted: usize,
    writing: VecDeque<(Instant, Taken)>,
    /// Probabilities in percent, delay and jitter.
    pub loss: u64,
    pub duplicates: u64,
    pub delay: Duration,
    pub jitter: Duration,
    pub down_until: Instant,
}

fn accepts(keys: Keys) -> Accepts {
    match keys {
        Keys::Clear => Accepts { insecure: true, ..Accepts::default() },
        Keys::Known => Accepts {
            own: Some(secret(1)),
            known: (2..10).map(|n| secret(n).public()).collect(),
            ..Accepts::default()
        },
        Keys::Shared | Keys::Forward => Accepts { shared: vec![shared()], ..Accepts::default() },
    }
}

fn machine(keys: Keys, name: &str, run: u64, at: usize) -> Sense<AnyProof> {
    let proof = match keys {
        Keys::Clear => AnyProof::Clear,
        Keys::Known => AnyProof::Known(Known { own: secret(at as u8 + 2), sink: secret(1).public() }),
        Keys::Shared => AnyProof::Shared(Shared(shared())),
        Keys::Forward => AnyProof::Forward(Forward(shared())),
    };
    Sense::new(sender_config(200, 16), proof, (&name.parse().unwrap(), run), None, entropy)
}

impl World {
    pub(super) fn new(prng: Prng, keys: Keys, output: Output, senders: usize, records: u32) -> Self {
        let ms = Duration::from_millis;
        let sink = collector(Instant::ZERO, keys, Ledger::new(100));
        let mut world = Self {
            prng,
            now: Instant::ZERO,
            hosts: Vec::new(),
            keys,
            output,
            sink,
            sink_ahead: Duration::ZERO,
            flying: BTreeMap::new(),
            sent: 0,
            items: Vec::new(),
            noted: 0,
            writing: VecDeque::new(),
            loss: 0,
            duplicates: 0,
            delay: ms(10),
            jitter: Duration::ZERO,
            down_until: Instant::ZERO,
        };
        for at in 0..senders {
            let name = format!("s{at}");
            let run = world.prng.bits();
            let period = ms(world.prng.range(1..=200));
            world.hosts.push(Host {
                machine: machine(keys, &name, run, at),
                name,
                run,
                ahead: ms(world.prng.below(1 << 40)),
                address: ([10, 0, 0, at as u8], 1000).into(),
                accepted: BTreeMap::new(),
                closed: None,
                period,
                next: Instant::ZERO,
                left: records,
            });
        }
        for at in 0..senders {
            world.open(at);
        }
        world
    }

    fn open(&mut self, at: usize) {
        let now = self.now + self.hosts[at].ahead;
        self.hosts[at].machine.open(now);
    }

    /// Kills a sender and starts it again; the records that it has accepted are gone with it.
    pub(super) fn kill_sender(&mut self, at: usize) {
        let run = self.prng.bits();
        let name = self.hosts[at].name.clone();
        self.hosts[at].machine = machine(self.keys, &name, run, at);
        (self.hosts[at].run, self.hosts[at].closed) = (run, None);
        self.open(at);
    }

    /// Kills the sink and starts it again. Part of what it was writing is in the output.
    pub(super) fn kill_sink(&mut self) {
        if let Some((_, taken)) = self.writing.pop_front() {
            let written = self.prng.below(taken.items.len() as u64 + 1) as usize;
            self.items.extend(taken.items.into_iter().take(written));
        }
        self.writing.clear();
        let mut ledger = Ledger::new(100);
        let known = if self.output == Output::Exact { self.items.len() } else { self.noted };
        for item in &self.items[..known] {
            let is_complete = matches!(item.what, What::Ended(why) if why != Why::Silent);
            ledger.advance(&item.source, item.run, item.next, is_complete);
        }
        self.sink = collector(self.now + self.sink_ahead, self.keys, ledger);
    }

    fn send(&mut self, at: usize, is_up: bool, datagram: Vec<u8>) {
        let copies = 1 + u64::from(self.prng.chance(self.duplicates));
        for _ in 0..copies {
            if self.now < self.down_until || self.prng.chance(self.loss) {
                continue;
            }
            let jitter = Duration::from_nanos(self.prng.below(self.jitter.as_nanos() + 1));
            self.sent += 1;
            let from = self.hosts[at].address;
            let arrival = self.now + self.delay + jitter;
            self.flying.insert((arrival, self.sent), (at, is_up, from, datagram.clone()));
        }
    }

    /// Runs until `end`, or until all senders are closed.
    pub(super) fn run(&mut self, end: Instant) {
        for turn in 0_u64.. {
            assert!(turn < 3_000_000, "the machines turn without time passing");
            self.turn_hosts();
            self.turn_sink();
            let mut next = end;
            for host in &self.hosts {
                if host.closed.is_none() && host.left > 0 {
                    next = next.min(host.next);
                }
                let timeout = host.machine.next_timeout();
                next = timeout.map_or(next, |at| next.min(here(at, host.ahead)));
            }
            let timeout = self.sink.next_timeout();
            next = timeout.map_or(next, |at| next.min(here(at, self.sink_ahead)));
            next = self.flying.keys().next().map_or(next, |(at, _)| next.min(*at));
            next = self.writing.front().map_or(next, |(at, _)| next.min(*at));
            if self.now >= end || self.hosts.iter().all(|host| host.closed.is_some()) {
                return;
            }
            self.now = next.max(self.now + Duration::from_nanos(1000));
            while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (at, is_up, from, datagram) = entry.remove();
                if is_up {
                    self.sink.handle_datagram(self.now + self.sink_ahead, from, &datagram);
                } else if from == self.hosts[at].address {
                    let now = self.now + self.hosts[at].ahead;
                    self.hosts[at].machine.handle_datagram(now, &datagram);
                }
            }
        }
    }

    fn turn_hosts(&mut self) {
        for at in 0..self.hosts.len() {
            let host = &mut self.hosts[at];
            let now = self.now + host.ahead;
            let mut out = Vec::new();
            let mut sent = Vec::new();
            {
                let sense = &mut host.machine;
                if sense.next_timeout().is_some_and(|at| at <= now) {
                    sense.handle_timeout(now);
                }
                while host.left > 0 && host.next <= self.now {
                    host.next = self.now + host.period;
                    let length = self.prng.pick(&[0, 1, 20, 100, 400]);
                    let payload = Bytes::from(self.prng.octets(length));
                    if sense.write(now, 0, &payload).is_ok() {
                        host.accepted.entry(host.run).or_default().push(payload);
                        host.left -= 1;
                        if host.left == 0 {
                            sense.close(now);
                        }
                    }
                }
                while sense.poll_transmit(now, &mut out) {
                    sent.push(out.clone());
                }
                while let Some(event) = sense.poll_event() {
                    if let SenseEvent::Closed { outcome, unconfirmed } = event {
                        assert!(outcome != Outcome::Complete || unconfirmed.is_empty());
                        host.closed = Some(outcome);
                    }
                }
            }
            // A new process has nothing left to send when its predecessor was killed at the end.
            if host.left == 0 && host.closed.is_none() && !host.accepted.contains_key(&host.run) {
                host.closed = Some(Outcome::Complete);
            }
            sent.into_iter().for_each(|datagram| self.send(at, true, datagram));
        }
    }

    fn turn_sink(&mut self) {
        let now = self.now + self.sink_ahead;
        if self.sink.next_timeout().is_some_and(|at| at <= now) {
            self.sink.handle_timeout(now);
        }
        while self.writing.front().is_some_and(|(at, _)| *at <= self.now) {
            let Some((_, taken)) = self.writing.pop_front() else { break };
            self.items.extend(taken.items);
            self.noted = self.items.len();
            taken.marks.into_iter().for_each(|mark| self.sink.stored(now, mark));
        }
        if let Some(taken) = self.sink.take(0) {
            let wait = Duration::from_millis(self.prng.below(40));
            let last = self.writing.back().map_or(self.now, |(at, _)| *at);
            self.writing.push_back((last.max(self.now + wait), taken));
        }
        let mut out = Vec::new();
        while let Some(to) = self.sink.poll_transmit(now, &mut out) {
            // To an address that its sender has left: lost.
            if let Some(at) = self.hosts.iter().position(|host| host.address == to) {
                self.send(at, false, out.clone());
            }
        }
    }

    /// Judges the output. Returns the number of records delivered and reported.
    pub(super) fn judge(&self) -> (u64, u64) {
        let (mut delivered, mut reported) = (0, 0);
        let mut next = BTreeMap::new();
        let mut ended = BTreeMap::new();
        for item in &self.items {
            let key = (item.source.name.to_string(), item.run);
            let expected = next.entry(key.clone()).or_insert(0);
            match &item.what {
                What::Record { payload, .. } => {
                    let number = item.next - 1;
                    let host = self.hosts.iter().find(|host| host.name == key.0).unwrap();
                    assert_eq!(payload, &host.accepted[&item.run][number as usize], "{key:?} {number}");
                    match self.output {
                        Output::Exact => assert_eq!(number, *expected, "{key:?}"),
                        Output::Repeats => assert!(number <= *expected, "{key:?} {number} {expected}"),
                    }
                    delivered += u64::from(number == *expected);
                    *expected = item.next.max(*expected);
                }
                What::Lost { from } => panic!("{key:?}: nothing is given up, but {from} to {} is", item.next),
                What::Ended(why) => {
                    assert!(item.next <= *expected);
                    ended.insert(key, *why);
                }
            }
        }
        for host in &self.hosts {
            for (run, accepted) in &host.accepted {
                let key = (host.name.clone(), *run);
                let delivered = next.get(&key).copied().unwrap_or(0);
                if *run == host.run {
                    assert_eq!(host.closed, Some(Outcome::Complete), "{key:?} at {:?}", self.now);
                    assert_eq!(delivered, accepted.len() as u64, "{key:?}");
                } else if delivered < accepted.len() as u64 {
                    // The sender was killed. If the sink has heard of the run, it reports its end.
                    let heard = next.contains_key(&key);
                    let is_over = host.accepted.contains_key(&host.run);
                    assert!(!heard || !is_over || ended.contains_key(&key), "{key:?} {delivered}");
                    reported += accepted.len() as u64 - delivered;
                }
            }
        }
        (delivered, reported)
    }
}

fn collector(now: Instant, keys: Keys, ledger: Ledger) -> Collector {
    Collector::new(now, SinkConfig::deployed(100, 2 << 20), accepts(keys), ledger, entropy).unwrap()
}

/// A time of a host's clock as the time of the world.
fn here(at: Instant, ahead: Duration) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_sub(ahead.as_nanos()))
}
