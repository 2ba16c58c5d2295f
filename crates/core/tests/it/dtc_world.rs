//! A chain of nodes between a reference sender and a reference receiver, for the tests of
//! `core::dtc`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{IpAddr, Ipv4Addr};

use anabranch_core::dtc::{Config, Counters, FlowKey, LinkEvent, Node, Verdict};
use anabranch_core::segment::{Flags, SackBlock, Segment, SeqNumber};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::prng::Prng;
use bytes::Bytes;

pub(crate) const MSS: u32 = 100;
const HOP: Duration = Duration::from_millis(22);
const LINK_TIMEOUT: Duration = Duration::from_millis(25);
/// Least time between two segments of the sender: 3.5 hops (erratum D8).
const SPACING: Duration = Duration::from_millis(77);
const WINDOW: u32 = 3;

/// Parameters of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    pub(crate) hops: usize,
    /// Loss of data frames per mille; the other loss rates follow from it.
    pub(crate) loss: u32,
    pub(crate) segments: u32,
    pub(crate) node: Option<Config>,
    pub(crate) seed: u64,
    pub(crate) isn: u32,
    /// Extra delay of a frame, up to this number of milliseconds: frames overtake each other.
    pub(crate) jitter: u64,
    /// Per mille of frames that are duplicated.
    pub(crate) duplicates: u64,
    /// Mean time between two reboots of a node in seconds; 0 means never.
    pub(crate) reboots: u64,
    /// Per mille of acknowledgements that bypass every node.
    pub(crate) detours: u64,
    /// Whether the links report losses.
    pub(crate) link_reports: bool,
    /// Largest time of a run.
    pub(crate) limit: Duration,
    /// Whether the sender offers SACK.
    pub(crate) sender_sack: bool,
}

impl Default for Chain {
    fn default() -> Self {
        Self {
            hops: 6,
            loss: 0,
            segments: 500,
            node: None,
            seed: 0,
            isn: 1000,
            jitter: 0,
            duplicates: 0,
            reboots: 0,
            detours: 0,
            link_reports: true,
            limit: Duration::from_secs(100_000),
            sender_sack: true,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) complete: bool,
    pub(crate) data: u64,
    pub(crate) acks: u64,
    /// Time-outs and fast retransmits of the sender (erratum D6).
    pub(crate) retransmissions: u64,
    pub(crate) seconds: f64,
    pub(crate) nodes: Vec<Counters>,
    /// The longest time without an acknowledgement of new data at the sender.
    pub(crate) longest_stall: Duration,
}

#[derive(Clone, Debug)]
enum Event {
    /// A segment arrives at that position of the chain.
    Arrive(usize, Segment),
    /// The link layer of that node reports on a segment.
    Report(usize, Segment, LinkEvent),
    SenderTimer,
    NodeTimer(usize),
    Reboot,
}

struct World {
    chain: Chain,
    now: Instant,
    queue: BinaryHeap<Reverse<(Instant, u64)>>,
    events: BTreeMap<u64, Event>,
    next_event: u64,
    prng: Prng,
    nodes: Vec<Node>,
    alarms: Vec<Option<Instant>>,
    sender: Sender,
    receiver: Receiver,
    outcome: Outcome,
}

pub(crate) fn address(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
}

/// From the sender.
pub(crate) fn forth() -> FlowKey {
    FlowKey { source: address(1), destination: address(2) }
}

/// From the receiver.
pub(crate) fn back() -> FlowKey {
    FlowKey { source: address(2), destination: address(1) }
}

fn flow_of(segment: &Segment) -> FlowKey {
    if segment.src_port == 1 { forth() } else { back() }
}

pub(crate) fn content(offset: u32) -> u8 {
    (offset.wrapping_mul(2_654_435_761) >> 24) as u8
}

impl Chain {
    pub(crate) fn run(self) -> Outcome {
        let config = self.node;
        let relays = if config.is_some() { self.hops - 1 } else { 0 };
        let world = World {
            chain: self,
            now: Instant::ZERO,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            next_event: 0,
            prng: Prng::new(self.seed.wrapping_mul(0x1_0001).wrapping_add(77)),
            nodes: (0..relays).map(|_| Node::new(config.unwrap_or_default())).collect(),
            alarms: vec![None; relays],
            sender: Sender::new(self),
            receiver: Receiver::default(),
            outcome: Outcome::default(),
        };
        world.run()
    }
}

impl World {
    fn at(&mut self, when: Instant, event: Event) {
        self.queue.push(Reverse((when, self.next_event)));
        self.events.insert(self.next_event, event);
        self.next_event += 1;
    }

    fn run(mut self) -> Outcome {
        self.at(Instant::ZERO, Event::SenderTimer);
        if self.chain.reboots > 0 {
            self.at(Instant::ZERO, Event::Reboot);
        }
        let goal = SeqNumber(self.chain.isn) + 1 + self.chain.segments * MSS;
        while let Some(Reverse((when, id))) = self.queue.pop() {
            assert!(when >= self.now);
            self.now = when;
            if when.saturating_since(Instant::ZERO) > self.chain.limit {
                break;
            }
            let event = self.events.remove(&id).expect("queued");
            self.handle(event);
            if self.sender.una.ge(goal) && self.sender.established {
                self.outcome.complete = true;
                break;
            }
        }
        self.outcome.retransmissions = self.sender.retransmissions;
        self.outcome.seconds = self.now.as_secs_f64();
        self.outcome.longest_stall = self.sender.longest_stall;
        self.outcome.nodes = self.nodes.iter().map(|n| *n.counters()).collect();
        assert!(self.receiver.next >= self.chain.segments * MSS || !self.outcome.complete);
        self.outcome
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive(0, segment) => {
                self.sender.on_ack(self.now, &segment);
                self.run_sender();
            }
            Event::Arrive(at, segment) if at == self.chain.hops => {
                if let Some(answer) = self.receiver.on_segment(&segment, self.chain.isn) {
                    self.send(at, answer);
                }
            }
            Event::Arrive(at, segment) => self.relay(at, segment),
            Event::Report(at, segment, event) => {
                if let Some(node) = self.nodes.get_mut(at - 1) {
                    node.handle_link(self.now, flow_of(&segment), &segment, event);
                    self.drain(at);
                }
            }
            Event::SenderTimer => self.run_sender(),
            Event::NodeTimer(at) => {
                if self.alarms[at - 1] == Some(self.now) {
                    self.alarms[at - 1] = None;
                    self.nodes[at - 1].handle_timeout(self.now);
                    self.drain(at);
                }
            }
            Event::Reboot => {
                if !self.nodes.is_empty() {
                    let victim = self.prng.below(self.nodes.len() as u64) as usize;
                    self.nodes[victim] = Node::new(self.chain.node.unwrap_or_default());
                    self.alarms[victim] = None;
                }
                let wait = Duration::from_millis(self.prng.below(2000 * self.chain.reboots) + 1);
                self.at(self.now + wait, Event::Reboot);
            }
        }
    }

    fn relay(&mut self, at: usize, mut segment: Segment) {
        let detour = segment.src_port == 2 && self.prng.below(1000) < self.chain.detours;
        if self.nodes.is_empty() || detour {
            self.send(at, segment);
            return;
        }
        let random = self.prng.bits() as u32;
        match self.nodes[at - 1].handle_segment(self.now, flow_of(&segment), &segment, random) {
            Verdict::Forward => self.send(at, segment),
            Verdict::Rewrite(options) => {
                segment.options = options;
                self.send(at, segment);
            }
            Verdict::Hold => {}
        }
        self.drain(at);
    }

    fn drain(&mut self, at: usize) {
        while let Some(transmit) = self.nodes[at - 1].poll_transmit(self.now) {
            assert_eq!(transmit.flow, flow_of(&transmit.segment));
            self.send(at, transmit.segment);
        }
        let next = self.nodes[at - 1].next_timeout();
        if let Some(when) = next.filter(|_| next != self.alarms[at - 1]) {
            let when = when.max(self.now);
            self.alarms[at - 1] = Some(when);
            self.at(when, Event::NodeTimer(at));
        }
    }

    /// Transmits a frame once from the node at that position.
    fn send(&mut self, from: usize, segment: Segment) {
        let handshake = segment.flags.contains(Flags::SYN) || !self.sender.data_begun;
        let is_data = segment.src_port == 1;
        if !handshake {
            *(if is_data { &mut self.outcome.data } else { &mut self.outcome.acks }) += 1;
        }
        let to = if is_data { from + 1 } else { from - 1 };
        let loss = u64::from(self.chain.loss);
        let lost = |prng: &mut Prng, per_100_000: u64| prng.below(100_000) < per_100_000;
        let into_sender = to == 0;
        let gone = match (is_data, into_sender) {
            (true, _) => lost(&mut self.prng, loss * 100),
            (false, false) => lost(&mut self.prng, loss * 50),
            (false, true) => false,
        };
        let report_lost = !into_sender && lost(&mut self.prng, loss * 25);
        let is_node = from != 0 && from != self.chain.hops;
        if is_node && !self.nodes.is_empty() && self.chain.link_reports {
            let (when, event) = if gone || report_lost {
                (self.now + LINK_TIMEOUT, LinkEvent::TimedOut)
            } else {
                (self.now + HOP, LinkEvent::Acknowledged)
            };
            self.at(when, Event::Report(from, segment.clone(), event));
        }
        if gone {
            return;
        }
        let copies = 1 + u64::from(self.prng.below(1000) < self.chain.duplicates);
        for _ in 0..copies {
            let late = Duration::from_micros(self.prng.below(1000 * self.chain.jitter + 1));
            self.at(self.now + HOP + late, Event::Arrive(to, segment.clone()));
        }
    }

    fn run_sender(&mut self) {
        self.sender.on_timer(self.now);
        while let Some(segment) = self.sender.poll(self.now) {
            self.send(0, segment);
        }
        let when = self.sender.next_timeout(self.now);
        if self.sender.alarm != Some(when) {
            self.sender.alarm = Some(when);
            self.at(when, Event::SenderTimer);
        }
    }
}

/// BSD Reno with a window of three segments and go-back-N (errata D8, D17, D22, D23).
struct Sender {
    isn: SeqNumber,
    una: SeqNumber,
    nxt: SeqNumber,
    max: SeqNumber,
    established: bool,
    data_begun: bool,
    cwnd: u32,
    dupacks: u32,
    srtt: Option<Duration>,
    rttvar: Duration,
    backoff: u32,
    sample: Option<(SeqNumber, Instant)>,
    deadline: Option<Instant>,
    last_sent: Option<Instant>,
    retransmissions: u64,
    alarm: Option<Instant>,
    fast: bool,
    last_news: Instant,
    longest_stall: Duration,
    sack: bool,
}

const RTO_MIN: Duration = Duration::from_secs(1);
const RTO_INITIAL: Duration = Duration::from_secs(6);
const RTO_CAP: Duration = Duration::from_secs(16);

impl Sender {
    fn new(chain: Chain) -> Self {
        let isn = SeqNumber(chain.isn);
        Self {
            isn,
            una: isn,
            nxt: isn,
            max: isn,
            established: false,
            data_begun: false,
            cwnd: 1,
            dupacks: 0,
            srtt: None,
            rttvar: Duration::ZERO,
            backoff: 0,
            sample: None,
            deadline: None,
            last_sent: None,
            retransmissions: 0,
            alarm: None,
            fast: false,
            last_news: Instant::ZERO,
            longest_stall: Duration::ZERO,
            sack: chain.sender_sack,
        }
    }

    fn rto(&self) -> Duration {
        let base = self.srtt.map_or(RTO_INITIAL, |srtt| (srtt + self.rttvar * 4).max(RTO_MIN));
        (base * (1 << self.backoff.min(10))).min(RTO_CAP)
    }

    fn on_ack(&mut self, now: Instant, segment: &Segment) {
        if !self.sack {
            assert!(segment.options.sack.is_empty() && !segment.options.sack_permitted, "never negotiated");
        }
        if segment.flags.contains(Flags::SYN) {
            self.established = true;
        }
        if !self.established || segment.ack.gt(self.max) {
            return;
        }
        if segment.ack.gt(self.una) {
            if let Some((end, at)) = self.sample.filter(|(end, _)| segment.ack.ge(*end)) {
                let _ = end;
                self.measure(now.saturating_since(at));
                self.sample = None;
            }
            if self.data_begun {
                self.cwnd = (self.cwnd + 1).min(WINDOW);
                self.longest_stall = self.longest_stall.max(now.saturating_since(self.last_news));
            }
            self.last_news = now;
            self.una = segment.ack;
            self.nxt = self.nxt.max(self.una);
            self.dupacks = 0;
            self.backoff = 0;
            self.deadline = self.una.lt(self.nxt).then(|| now + self.rto());
        } else if segment.ack == self.una && self.una.lt(self.max) && self.data_begun {
            self.dupacks += 1;
            if self.dupacks == 3 {
                self.retransmissions += 1;
                self.fast = true;
                self.sample = None;
            }
        }
    }

    fn measure(&mut self, rtt: Duration) {
        self.backoff = 0;
        self.srtt = Some(match self.srtt {
            None => {
                self.rttvar = rtt / 2;
                rtt
            }
            Some(srtt) => {
                let error = if srtt > rtt { srtt - rtt } else { rtt - srtt };
                self.rttvar = self.rttvar.mul_ratio(3, 4) + error / 4;
                srtt.mul_ratio(7, 8) + rtt / 8
            }
        });
    }

    fn on_timer(&mut self, now: Instant) {
        if self.alarm.is_some_and(|at| at <= now) {
            self.alarm = None;
        }
        if self.deadline.is_some_and(|at| at <= now) {
            self.retransmissions += u64::from(self.data_begun);
            self.backoff += 1;
            self.cwnd = 1;
            self.dupacks = 0;
            self.nxt = self.una;
            self.sample = None;
            self.deadline = None;
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Segment> {
        if !self.established {
            if self.nxt != self.isn {
                return None;
            }
            self.nxt = self.isn + 1;
            self.max = self.nxt;
            self.deadline = Some(now + self.rto());
            if self.backoff == 0 {
                self.sample = Some((self.nxt, now));
            }
            let mut syn =
                Segment { src_port: 1, dst_port: 2, seq: self.isn, flags: Flags::SYN, ..Segment::default() };
            syn.options.sack_permitted = self.sack;
            return Some(syn);
        }
        if self.last_sent.is_some_and(|at| now < at + SPACING) {
            return None;
        }
        let seq = if std::mem::take(&mut self.fast) {
            self.una
        } else if self.nxt.lt(self.una + self.cwnd * MSS) {
            let seq = self.nxt;
            self.nxt = seq + MSS;
            seq
        } else {
            return None;
        };
        let end = seq + MSS;
        self.data_begun = true;
        self.last_sent = Some(now);
        if end.gt(self.max) {
            self.max = end;
            if self.sample.is_none() {
                self.sample = Some((end, now));
            }
        }
        if self.deadline.is_none() {
            self.deadline = Some(now + self.rto());
        }
        let offset = seq.distance(self.isn + 1) as u32;
        let payload: Bytes = (0..MSS).map(|i| content(offset + i)).collect();
        Some(Segment {
            src_port: 1,
            dst_port: 2,
            seq,
            ack: SeqNumber(1),
            flags: Flags::ACK,
            payload,
            ..Segment::default()
        })
    }

    fn next_timeout(&self, now: Instant) -> Instant {
        let rto = self.deadline.unwrap_or(Instant::FAR_FUTURE);
        let wants = self.established && (self.fast || self.nxt.lt(self.una + self.cwnd * MSS));
        match self.last_sent.filter(|at| wants && now < *at + SPACING) {
            Some(at) => rto.min(at + SPACING),
            None => rto,
        }
    }
}

/// Buffers out-of-order data, reports it by SACK, and acknowledges immediately (erratum D22).
#[derive(Default)]
struct Receiver {
    /// Bytes delivered in order.
    next: u32,
    held: BTreeMap<u32, Bytes>,
    sack: bool,
}

impl Receiver {
    fn on_segment(&mut self, segment: &Segment, isn: u32) -> Option<Segment> {
        let mut answer =
            Segment { src_port: 2, dst_port: 1, window: 300, flags: Flags::ACK, ..Segment::default() };
        if segment.flags.contains(Flags::SYN) {
            self.sack = segment.options.sack_permitted;
            answer.flags = Flags::ACK.with(Flags::SYN);
            answer.ack = segment.seq + 1;
            answer.options.sack_permitted = self.sack;
            return Some(answer);
        }
        let first = SeqNumber(isn) + 1;
        let offset = segment.seq.distance(first) as u32;
        for (i, octet) in segment.payload.iter().enumerate() {
            assert_eq!(*octet, content(offset + i as u32), "octet {}", offset + i as u32);
        }
        if offset >= self.next {
            self.held.insert(offset, segment.payload.clone());
        }
        while let Some(payload) = self.held.remove(&self.next) {
            self.next += payload.len() as u32;
        }
        answer.seq = SeqNumber(1);
        answer.ack = first + self.next;
        if self.sack {
            let mut blocks: Vec<(u32, u32)> = Vec::new();
            for (left, payload) in &self.held {
                match blocks.last_mut() {
                    Some(last) if last.1 == *left => last.1 += payload.len() as u32,
                    _ => blocks.push((*left, left + payload.len() as u32)),
                }
            }
            blocks.sort_by_key(|b| !(b.0..b.1).contains(&offset));
            answer.options.sack = blocks
                .into_iter()
                .map(|(left, right)| SackBlock { left: first + left, right: first + right })
                .collect();
        }
        Some(answer)
    }
}
