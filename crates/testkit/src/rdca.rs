//! RDCA over an in-memory datagram channel that loses, delays, reorders and duplicates, with a
//! clock that jumps. Also one random run in it, for tests and for the campaigns `rdca-faults` and
//! `rdca-steps`.

mod faults;
mod steps;

use std::collections::BTreeMap;

use anabranch_core::rdca::{Config, Incarnation, PeerId, Sender, SenderEvent, Seq, Sink, SinkEvent};
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::rdca::{Header, Message, TimeStamp, decode};
use bytes::Bytes;

use crate::prng::Prng;
pub use faults::{Faults, fault_run};
pub use steps::{Case, Change, Judged, Steps, step_run};

/// One direction of the channel. Probabilities are per mille.
#[derive(Clone, Debug)]
pub struct Link {
    /// Minimum delay.
    pub delay: Duration,
    /// Maximum additional delay, drawn for each datagram. If it exceeds the time between two
    /// datagrams, they can be reordered.
    pub jitter: Duration,
    /// Loss probability.
    pub loss: u64,
    /// Probability of duplication.
    pub duplicate: u64,
    /// Time that each datagram occupies the bottleneck, in order; 0 by default.
    pub service: Duration,
    /// Limit on the datagrams that wait for the bottleneck.
    pub queue: u64,
    /// Time when the bottleneck is free.
    pub free: Instant,
    /// Number of datagrams dropped because the queue was full.
    pub overflows: u64,
}

impl Link {
    /// A link with a delay of `delay_ms` ms and no loss.
    pub fn new(delay_ms: u64) -> Self {
        let delay = Duration::from_millis(delay_ms);
        let (jitter, service, free) = (Duration::ZERO, Duration::ZERO, Instant::ZERO);
        Self { delay, jitter, loss: 0, duplicate: 0, service, queue: 50, free, overflows: 0 }
    }
}

/// Direction of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From this sender to the sink.
    Up(usize),
    /// From the sink to this sender.
    Down(usize),
}

/// An application that offers packets at a constant rate.
#[derive(Clone, Debug)]
pub struct Source {
    /// Time between two packets.
    pub period: Duration,
    /// Time of the next packet.
    pub next: Instant,
    /// Number of packets left; afterwards the application closes.
    pub left: u32,
    /// Packet size in bytes, at least 8: a packet begins with the time at which it was offered.
    pub octets: usize,
    /// Number of packets that the sender refused.
    pub refused: u32,
    /// Packets that the sender accepted, with their content.
    pub accepted: Vec<(Seq, Bytes)>,
}

impl Source {
    /// A source that starts at time 0 and offers packets of 283 bytes.
    pub fn new(period: Duration, packets: u32) -> Self {
        let (next, accepted) = (Instant::ZERO, Vec::new());
        Self { period, next, left: packets, octets: 283, refused: 0, accepted }
    }
}

/// Difference between a sender's time stamps and the sink's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Skew {
    /// Offset at the start, in microseconds.
    pub offset: i64,
    /// Drift in microseconds per second.
    pub ppm: i64,
}

impl Skew {
    fn at(self, now: Instant) -> u32 {
        let micros = now.as_nanos() as i64 / 1000;
        (self.offset + micros * self.ppm / 1_000_000) as u32
    }
}

/// Sees each datagram before it is sent; returns `false` to drop it.
pub type Rule = Box<dyn FnMut(Instant, Way, &Message) -> bool>;

/// Senders, a sink, and the channel between them.
pub struct World {
    /// Current time.
    pub now: Instant,
    /// The senders, by the index that the sink knows.
    pub senders: Vec<Sender>,
    /// Their applications.
    pub sources: Vec<Source>,
    /// Events of each sender.
    pub told: Vec<Vec<SenderEvent>>,
    /// The sink.
    pub sink: Sink,
    /// Events of the sink with their times.
    pub events: Vec<(Instant, SinkEvent)>,
    /// Channel to the sink.
    pub up: Link,
    /// Channel from the sink.
    pub down: Link,
    /// Differences of the senders' clocks, as time stamps show them.
    pub skews: Vec<Skew>,
    /// A scripted fault.
    pub rule: Option<Rule>,
    /// All datagrams sent, if `records` is set.
    pub sent: Vec<(Instant, Way, Message)>,
    /// Whether to keep `sent`.
    pub records: bool,
    header: Header,
    wire: BTreeMap<(Instant, u64), (Way, Bytes)>,
    count: u64,
    prng: Prng,
    /// When each sender is to be called.
    due: Vec<Option<Instant>>,
}

impl World {
    /// Creates a world with one sender per source.
    pub fn new(config: Config, sources: Vec<Source>, up: Link, down: Link, seed: u64) -> Self {
        let sender = |i| Sender::new(config.sender, Incarnation(100 * i as u32 + 1), Seq(0));
        Self {
            now: Instant::ZERO,
            senders: (0..sources.len()).map(sender).collect(),
            told: vec![Vec::new(); sources.len()],
            skews: vec![Skew::default(); sources.len()],
            due: vec![None; sources.len()],
            sources,
            sink: Sink::new(config.sink, 0x1000),
            events: Vec::new(),
            up,
            down,
            rule: None,
            sent: Vec::new(),
            records: true,
            header: config.sender.header,
            wire: BTreeMap::new(),
            count: 0,
            prng: Prng::new(seed),
        }
    }

    /// Runs until `end`, until `over` returns true, or until no event is pending.
    pub fn run(&mut self, end: Instant, mut over: impl FnMut(&Self) -> bool) {
        let mut turns = 0;
        (0..self.senders.len()).for_each(|i| self.attend(i));
        loop {
            self.settle();
            if over(self) {
                return;
            }
            let sources = self.sources.iter().zip(&self.senders).filter_map(|(source, _)| source.due());
            let timers = self.due.iter().copied().flatten().chain(self.sink.next_timeout());
            let arrival = self.wire.first_key_value().map(|((at, _), _)| *at);
            let Some(next) = sources.chain(timers).chain(arrival).min() else { return };
            if next > end {
                self.now = end;
                return;
            }
            turns = if next > self.now { 0 } else { turns + 1 };
            assert!(
                turns < 10_000,
                "a timer that was answered is still due: {:?} {:?}",
                self.now,
                self.senders
            );
            self.now = self.now.max(next);
            self.step();
        }
    }

    /// Runs for `seconds` seconds.
    pub fn run_for(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
        self.run(end, |_| false);
    }

    /// Whether every sender has reported its end.
    pub fn all_closed(&self) -> bool {
        let closed = |told: &Vec<SenderEvent>| matches!(told.last(), Some(SenderEvent::Closed { .. }));
        self.told.iter().all(closed)
    }

    /// Packets of a sender that the sink delivered: number, content, and time since they were
    /// offered.
    pub fn delivered(&self, sender: usize) -> Vec<(Seq, Bytes, Duration)> {
        let of = |(at, event): &(Instant, SinkEvent)| match event {
            SinkEvent::Packet { peer, seq, payload } if peer.0 == sender as u64 => {
                let offered = payload.first_chunk::<8>().map_or(0, |o| u64::from_be_bytes(*o));
                Some((*seq, payload.clone(), at.saturating_since(Instant::from_nanos(offered))))
            }
            _ => None,
        };
        self.events.iter().filter_map(of).collect()
    }

    /// Number of sent datagrams for which `which` holds.
    pub fn count(&self, which: impl Fn(&Message) -> bool) -> usize {
        self.sent.iter().filter(|(_, _, message)| which(message)).count()
    }

    /// Number of control packets of both sides per delivered data packet.
    pub fn control_load(&self) -> f64 {
        let control = self.count(|message| !matches!(message, Message::Data(_)));
        let packets =
            self.events.iter().filter(|(_, event)| matches!(event, SinkEvent::Packet { .. })).count();
        control as f64 / packets.max(1) as f64
    }

    fn step(&mut self) {
        let now = self.now;
        while let Some(entry) = self.wire.first_entry()
            && entry.key().0 <= now
        {
            let (way, datagram) = entry.remove();
            match way {
                Way::Up(i) => self.sink.handle_datagram(now, PeerId(i as u64), &datagram),
                Way::Down(i) if self.header == Header::Printed => {
                    self.senders[i].handle_datagram(now, &datagram);
                    self.attend(i);
                }
                Way::Down(i) => {
                    let mut message = decode(&datagram).expect("what is sent can be read");
                    let skew = self.skews[i].at(now);
                    if let Some(time) = stamp(&mut message) {
                        time.0 = time.0.wrapping_sub(skew);
                    }
                    self.senders[i].handle_message(now, &message);
                    self.attend(i);
                }
            }
            self.settle();
        }
        for i in 0..self.sources.len() {
            let timeout = self.due[i].is_some_and(|at| at <= now);
            if timeout {
                self.senders[i].handle_timeout(now);
            }
            if timeout || self.sources[i].due().is_some_and(|at| at <= now) {
                self.offer(i);
                self.attend(i);
            }
        }
        if self.sink.next_timeout().is_some_and(|at| at <= now) {
            self.sink.handle_timeout(now);
        }
    }

    fn offer(&mut self, i: usize) {
        let (now, source, sender) = (self.now, &mut self.sources[i], &mut self.senders[i]);
        while source.due().is_some_and(|at| at <= now) {
            let mut octets = now.as_nanos().to_be_bytes().to_vec();
            octets.extend((8..source.octets).map(|o| (o as u32 ^ source.left) as u8));
            let payload = Bytes::from(octets);
            match sender.write(now, payload.clone()) {
                Ok(seq) => source.accepted.push((seq, payload)),
                Err(_) => source.refused += 1,
            }
            source.left -= 1;
            source.next += source.period;
            if source.left == 0 {
                sender.close(now);
            }
        }
    }

    /// Performs the pending actions of a sender.
    fn attend(&mut self, i: usize) {
        while let Some(message) = self.senders[i].poll_transmit(self.now) {
            self.send(Way::Up(i), message);
        }
        while let Some(event) = self.senders[i].poll_event() {
            self.told[i].push(event);
        }
        self.due[i] = self.senders[i].next_timeout();
    }

    /// Performs the pending actions of the sink.
    fn settle(&mut self) {
        let now = self.now;
        while let Some((peer, message)) = self.sink.poll_transmit(now) {
            self.send(Way::Down(peer.0 as usize), message);
        }
        while let Some(event) = self.sink.poll_event() {
            self.events.push((now, event));
        }
    }

    fn send(&mut self, way: Way, message: Message) {
        let now = self.now;
        let mut message = message;
        if let (Way::Up(i), Some(time)) = (way, stamp(&mut message)) {
            time.0 = time.0.wrapping_add(self.skews[i].at(now));
        }
        let passes = self.rule.as_mut().is_none_or(|rule| rule(now, way, &message));
        let mut octets = Vec::new();
        self.header.encode(&message, &mut octets);
        let datagram = Bytes::from(octets);
        if self.header == Header::Ours {
            assert_eq!(decode(&datagram).as_ref(), Ok(&message), "what is sent can be read");
        }
        if self.records {
            self.sent.push((now, way, message));
        }
        let link = match way {
            Way::Up(_) => &mut self.up,
            Way::Down(_) => &mut self.down,
        };
        let waiting =
            link.free.saturating_since(now).as_nanos().checked_div(link.service.as_nanos()).unwrap_or(0);
        if waiting >= link.queue {
            link.overflows += 1;
            return;
        }
        link.free = link.free.max(now) + link.service;
        let prng = &mut self.prng;
        if !passes || prng.below(1000) < link.loss {
            return;
        }
        for _ in 0..if prng.below(1000) < link.duplicate { 2 } else { 1 } {
            let jitter = Duration::from_nanos(prng.below(link.jitter.as_nanos() + 1));
            self.count += 1;
            self.wire.insert((link.free + link.delay + jitter, self.count), (way, datagram.clone()));
        }
    }
}

/// The sender's time stamp in a message.
fn stamp(message: &mut Message) -> Option<&mut TimeStamp> {
    match message {
        Message::Request(request) => Some(&mut request.time),
        Message::Data(data) => Some(&mut data.time),
        Message::Probe(probe) => Some(&mut probe.time),
        Message::Reply(reply) => Some(&mut reply.echo),
        Message::Snack(snack) => Some(&mut snack.report.echo),
        Message::Congestion(report) | Message::Confirm(report) => Some(&mut report.echo),
        Message::Gone(_) | Message::Refuse(_) | Message::Reset(_) => None,
    }
}

impl Source {
    fn due(&self) -> Option<Instant> {
        (self.left > 0).then_some(self.next)
    }
}
