//! A sender, gateways and a node, connected by streams without TCP. Each direction has a rate, a
//! delay and a window, and delivers all data in order until an endpoint fails.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use anabranch_core::set::{
    Effect, File, Layout, Leg, Receiver, ReceiverConfig, Relay, RelayConfig, Sender, SenderConfig,
    StreamClose, StreamEvent, StreamId, StreamStatus, TransferId,
};
use anabranch_core::time::{Duration, Instant};
use anabranch_wire::set::{self as wire, Energy, Gateway};
use bytes::{Bytes, BytesMut};

/// How the sender reaches a gateway, and how the gateway reaches the node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) wired_delay: Duration,
    pub(crate) wireless_delay: Duration,
    /// Rate of the wireless half in bytes per second.
    pub(crate) rate: u64,
    /// What the node says of the gateway. Each path has a channel of its own all the same.
    pub(crate) shared_channel: bool,
}

pub(crate) fn path(rate: u64, wireless_ms: u64) -> Path {
    Path {
        wired_delay: Duration::from_millis(10),
        wireless_delay: Duration::from_millis(wireless_ms),
        rate,
        shared_channel: false,
    }
}

/// A path of which the node says that it shares a channel.
pub(crate) fn shared(path: Path) -> Path {
    Path { shared_channel: true, ..path }
}

/// How a gateway fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Death {
    Silent,
    Reset,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Who {
    Sender,
    Gateway(usize),
    Node,
}

/// One endpoint of a stream.
type End = (Who, StreamId);

#[derive(Debug)]
enum Event {
    Opened(End),
    Arrived(End, Bytes),
    Acked(End, u32),
    Ended(End),
    Closed(End, StreamClose),
    Die(usize, Death),
    Return(usize),
}

/// Data in transit from one endpoint to the other.
#[derive(Debug)]
struct Half {
    peer: End,
    delay: Duration,
    rate: u64,
    free_at: Instant,
    unsent: VecDeque<Bytes>,
    unsent_octets: u32,
    in_flight: u32,
    /// The window of the other endpoint.
    window: u32,
    ending: bool,
    ended: bool,
    /// Data after the first bytes arrives no earlier than this.
    stuck_until: Instant,
    begun: bool,
}

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) sender: Sender,
    pub(crate) relays: Vec<Relay>,
    pub(crate) node: Receiver,
    pub(crate) delivered: BytesMut,
    pub(crate) completed: Option<Instant>,
    /// Number of calls of gateways.
    pub(crate) dials: usize,
    /// Number of calls of the node by the sender.
    pub(crate) requests: usize,
    /// Time of the first call of a gateway.
    pub(crate) first_dial: Option<Instant>,
    /// Data after a request on its stream is lost and retransmitted, so that it arrives at this
    /// time.
    pub(crate) copies_arrive: Instant,
    /// Time that the node's application takes for each piece of data.
    pub(crate) reading_takes: Duration,
    /// The application is busy until this time.
    reads_until: Instant,
    paths: Vec<Path>,
    gateways: Vec<Gateway>,
    alive: Vec<Option<Death>>,
    halves: BTreeMap<End, Half>,
    events: BTreeMap<(Instant, u64), Event>,
    sequence: u64,
    file: Bytes,
}

const NODE: &str = "[fd00::100]:5683";
const MSS: u32 = 1440;
const CWND: u32 = 20 * MSS;

fn gateway_address(index: usize) -> SocketAddr {
    format!("[fd00::{}]:5684", index + 1).parse().expect("an address")
}

impl World {
    pub(crate) fn new(paths: &[Path], file: Bytes, config: SenderConfig, mut node: ReceiverConfig) -> Self {
        node.gateways = paths
            .iter()
            .enumerate()
            .map(|(i, path)| Gateway {
                id: i as u16 + 1,
                address: gateway_address(i),
                key: None,
                energy: Energy::High,
                hops: 1,
                shared_channel: path.shared_channel,
                neighbours: Vec::new(),
            })
            .collect();
        let sender = Sender::new(
            Instant::ZERO,
            config,
            NODE.parse().expect("an address"),
            TransferId(7),
            file.clone(),
        );
        Self {
            file,
            now: Instant::ZERO,
            sender,
            node: Receiver::new(node.clone()),
            relays: paths.iter().map(|_| Relay::new(RelayConfig::default())).collect(),
            delivered: BytesMut::new(),
            completed: None,
            dials: 0,
            requests: 0,
            first_dial: None,
            copies_arrive: Instant::ZERO,
            reading_takes: Duration::ZERO,
            reads_until: Instant::ZERO,
            paths: paths.to_vec(),
            gateways: node.gateways.clone(),
            alive: vec![None; paths.len()],
            halves: BTreeMap::new(),
            events: BTreeMap::new(),
            sequence: 0,
        }
    }

    /// The node's owner already has the first bytes.
    pub(crate) fn has(&mut self, octets: &[u8]) {
        self.delivered = octets.into();
    }

    /// Kills the sender and starts another one for the same transfer, without the file in memory.
    /// Its peers notice at once.
    pub(crate) fn restart_sender(&mut self, file: Bytes, config: SenderConfig) {
        self.cut(Who::Sender);
        let node = NODE.parse().expect("an address");
        let elsewhere = File::Elsewhere(file.len() as u64);
        self.file = file;
        self.sender = Sender::new(self.now, config, node, TransferId(7), elsewhere);
    }

    /// Kills and restarts the node: its owner has the delivered bytes.
    pub(crate) fn restart_node(&mut self, mut config: ReceiverConfig) {
        config.gateways = self.gateways.clone();
        self.cut(Who::Node);
        self.node = Receiver::new(config);
    }

    /// Resets all streams of `who`.
    fn cut(&mut self, who: Who) {
        let its = |end: &End| end.0 == who;
        self.events.retain(|_, event| match event {
            Event::Opened(end)
            | Event::Arrived(end, _)
            | Event::Acked(end, _)
            | Event::Ended(end)
            | Event::Closed(end, _) => !its(end),
            Event::Die(..) | Event::Return(_) => true,
        });
        let mine: Vec<End> = self.halves.keys().copied().filter(its).collect();
        for end in mine {
            let half = self.halves.remove(&end).expect("it was just there");
            if self.halves.remove(&half.peer).is_some() {
                self.tell(half.peer, StreamEvent::Closed(StreamClose::Reset));
            }
        }
    }

    pub(crate) fn kill(&mut self, gateway: usize, at: Instant, death: Death) {
        self.push(at, Event::Die(gateway, death));
    }

    /// Restarts a gateway, without any state.
    pub(crate) fn revive(&mut self, gateway: usize, at: Instant) {
        self.push(at, Event::Return(gateway));
    }

    /// Runs until the sender has an outcome and all messages are delivered, or until the limit.
    pub(crate) fn run(&mut self, limit: Duration) {
        let end = Instant::ZERO + limit;
        self.settle();
        while let Some(at) = self.next_time().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            while let Some(entry) = self.events.first_entry().filter(|e| e.key().0 <= at) {
                let event = entry.remove();
                self.handle(event);
                self.settle();
            }
            self.time_out();
            self.settle();
        }
    }

    /// The state of all machines, for the message of a failure.
    pub(crate) fn describe(&self) -> String {
        let halves: Vec<_> =
            self.halves.iter().map(|(end, h)| (end, h.window, h.in_flight, h.unsent_octets)).collect();
        let sessions: Vec<_> = self.sender.sessions().collect();
        format!("at {}: dead {:?}, {sessions:#?}, streams {halves:?}", self.now, self.alive)
    }

    fn next_time(&self) -> Option<Instant> {
        let event = self.events.keys().next().map(|(at, _)| *at);
        let relays = self.relays.iter().zip(&self.alive).filter(|(_, dead)| dead.is_none());
        let reads = Some(self.reads_until).filter(|until| *until > self.now);
        let timers = [self.sender.next_timeout(), self.node.next_timeout(), event, reads];
        relays.filter_map(|(r, _)| r.next_timeout()).chain(timers.into_iter().flatten()).min()
    }

    fn time_out(&mut self) {
        if self.sender.next_timeout().is_some_and(|at| at <= self.now) {
            self.sender.handle_timeout(self.now);
        }
        if self.node.next_timeout().is_some_and(|at| at <= self.now) {
            self.node.handle_timeout(self.now);
        }
        for relay in &mut self.relays {
            relay.handle_timeout(self.now);
        }
    }

    fn push(&mut self, at: Instant, event: Event) {
        self.sequence += 1;
        self.events.insert((at, self.sequence), event);
    }

    fn is_dead(&self, who: Who) -> bool {
        matches!(who, Who::Gateway(i) if self.alive[i].is_some())
    }

    fn tell(&mut self, end: End, event: StreamEvent) {
        let (who, stream) = end;
        match who {
            Who::Sender => self.sender.handle_stream(self.now, stream, event),
            Who::Gateway(i) => self.relays[i].handle_stream(self.now, stream, event),
            Who::Node => self.node.handle_stream(self.now, stream, event),
        }
        self.report(end);
    }

    /// Reports the state of its stream to an endpoint.
    fn report(&mut self, end: End) {
        let Some(half) = self.halves.get(&end) else { return };
        let status = StreamStatus {
            cwnd: CWND,
            peer_window: half.window,
            in_flight: half.in_flight,
            unsent: half.unsent_octets,
            mss: MSS,
            srtt: Some(half.delay * 2),
        };
        match end.0 {
            Who::Sender => self.sender.handle_status(self.now, end.1, status),
            Who::Gateway(i) => self.relays[i].handle_status(self.now, end.1, status),
            Who::Node => {}
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Die(gateway, death) => self.die(gateway, death),
            Event::Return(gateway) => {
                self.cut(Who::Gateway(gateway));
                self.relays[gateway] = Relay::new(RelayConfig::default());
                self.alive[gateway] = None;
            }
            Event::Opened(end) | Event::Arrived(end, _) | Event::Acked(end, _) | Event::Ended(end)
                if self.is_dead(end.0) || !self.halves.contains_key(&end) => {}
            Event::Closed(end, _) if self.is_dead(end.0) => {}
            Event::Opened(end) => self.tell(end, StreamEvent::Opened),
            Event::Arrived(end, octets) => {
                let peer = self.halves[&end].peer;
                let (delay, n) = (self.halves[&end].delay, octets.len() as u32);
                self.push(self.now + delay, Event::Acked(peer, n));
                self.tell(end, StreamEvent::Data(octets));
            }
            Event::Acked(end, n) => {
                let half = self.halves.get_mut(&end).expect("checked above");
                half.in_flight -= n;
                self.send(end);
                self.report(end);
            }
            Event::Ended(end) => self.tell(end, StreamEvent::Ended),
            Event::Closed(end, why) => {
                if self.halves.remove(&end).is_some() {
                    self.tell(end, StreamEvent::Closed(why));
                }
            }
        }
    }

    fn die(&mut self, gateway: usize, death: Death) {
        self.alive[gateway] = Some(death);
        if death == Death::Reset {
            let mine: Vec<End> =
                self.halves.keys().copied().filter(|e| e.0 == Who::Gateway(gateway)).collect();
            for end in mine {
                let (peer, delay) = (self.halves[&end].peer, self.halves[&end].delay);
                self.push(self.now + delay, Event::Closed(peer, StreamClose::Reset));
            }
        }
    }

    /// Carries out the machines' requests until there are none.
    fn settle(&mut self) {
        loop {
            let mut any = false;
            while let Some(effect) = self.sender.poll_effect(self.now) {
                any = true;
                self.act(Who::Sender, effect);
            }
            for i in 0..self.relays.len() {
                while let Some(effect) = self.relays[i].poll_effect() {
                    any = true;
                    if self.alive[i].is_none() {
                        self.act(Who::Gateway(i), effect);
                    }
                }
            }
            while self.reads_until <= self.now
                && let Some(effect) = self.node.poll_effect()
            {
                any = true;
                if matches!(effect, Effect::Deliver { .. }) {
                    self.reads_until = self.now + self.reading_takes;
                }
                self.act(Who::Node, effect);
            }
            if let Some(transfer) = self.node.asked().map(|request| request.transfer) {
                any = true;
                self.node.grant(self.now, transfer, self.delivered.len() as u64);
            }
            if self.completed.is_none() && self.node.is_complete() {
                self.completed = Some(self.now);
            }
            if !any {
                return;
            }
        }
    }

    fn act(&mut self, who: Who, effect: Effect) {
        match effect {
            Effect::Dial { stream, to, leg } => self.dial((who, stream), to, leg),
            Effect::WriteFile { stream, start, end } => {
                let octets = self.file.slice(start as usize..end as usize);
                self.act(who, Effect::Write { stream, octets });
            }
            Effect::Write { stream, octets } => {
                if let Some(half) = self.halves.get_mut(&(who, stream)) {
                    assert!(!half.ending, "nothing is written after a shutdown");
                    half.unsent_octets += octets.len() as u32;
                    half.unsent.push_back(octets);
                    self.send((who, stream));
                }
            }
            Effect::LimitReceive { stream, octets } => {
                let Some(peer) = self.halves.get(&(who, stream)).map(|h| h.peer) else { return };
                if let Some(half) = self.halves.get_mut(&peer) {
                    half.window = octets;
                    let at = self.now + half.delay;
                    self.push(at, Event::Acked(peer, 0));
                    self.send(peer);
                }
            }
            Effect::Shutdown { stream } => {
                if let Some(half) = self.halves.get_mut(&(who, stream)) {
                    half.ending = true;
                    self.send((who, stream));
                }
            }
            Effect::Abort { stream } => {
                if let Some(half) = self.halves.remove(&(who, stream)) {
                    self.push(self.now + half.delay, Event::Closed(half.peer, StreamClose::Reset));
                }
            }
            Effect::Deliver { octets } => self.delivered.extend_from_slice(&octets),
        }
    }

    fn dial(&mut self, end: End, to: SocketAddr, leg: Leg) {
        let target = (0..self.paths.len()).find(|i| gateway_address(*i) == to);
        let (who, delay, rate) = match (leg, target, end.0) {
            (Leg::Wired, Some(i), _) => (Who::Gateway(i), self.paths[i].wired_delay, 10_000_000),
            (Leg::Wireless, None, Who::Gateway(i)) => {
                (Who::Node, self.paths[i].wireless_delay, self.paths[i].rate)
            }
            (Leg::Control, None, _) => {
                let p = self.paths[0];
                (Who::Node, p.wired_delay + p.wireless_delay, p.rate)
            }
            other => panic!("nobody dials like that: {other:?}"),
        };
        self.dials += usize::from(leg == Leg::Wired);
        self.requests += usize::from(leg == Leg::Control);
        if leg == Leg::Wired {
            self.first_dial.get_or_insert(self.now);
        }
        if self.is_dead(who) {
            let refused = matches!(who, Who::Gateway(i) if self.alive[i] == Some(Death::Reset));
            let (after, why) = match refused {
                true => (delay * 2, StreamClose::Refused),
                false => (Duration::from_secs(60), StreamClose::TimedOut),
            };
            self.push(self.now + after, Event::Closed(end, why));
            // Until then the dialled stream exists but carries nothing.
            self.insert(end, end, delay, rate);
            return;
        }
        let stream = match who {
            Who::Gateway(i) => self.relays[i].handle_accepted(self.now),
            Who::Node => self.node.handle_accepted(self.now),
            Who::Sender => unreachable!("nobody dials the sender"),
        };
        let peer = (who, stream);
        self.insert(end, peer, delay, rate);
        self.insert(peer, end, delay, rate);
        if leg == Leg::Control {
            self.halves.get_mut(&end).expect("it was just inserted").stuck_until = self.copies_arrive;
        }
        self.push(self.now + delay * 2, Event::Opened(end));
    }

    fn insert(&mut self, end: End, peer: End, delay: Duration, rate: u64) {
        let half = Half {
            peer,
            delay,
            rate,
            free_at: self.now,
            unsent: VecDeque::new(),
            unsent_octets: 0,
            in_flight: 0,
            window: 4 * MSS,
            ending: false,
            ended: false,
            stuck_until: Instant::ZERO,
            begun: false,
        };
        self.halves.insert(end, half);
    }

    /// Sends the data that the window permits, and then the end of the stream.
    fn send(&mut self, end: End) {
        loop {
            let now = self.now;
            let Some(half) = self.halves.get_mut(&end) else { return };
            let room = half.window.min(CWND).saturating_sub(half.in_flight);
            let Some(front) = half.unsent.front_mut() else {
                if half.ending && !half.ended {
                    half.ended = true;
                    let at = (half.free_at.max(now) + half.delay).max(half.stuck_until);
                    let peer = half.peer;
                    self.push(at, Event::Ended(peer));
                }
                return;
            };
            let n = (front.len() as u32).min(room).min(MSS);
            if n == 0 {
                return;
            }
            let octets = front.split_to(n as usize);
            if front.is_empty() {
                half.unsent.pop_front();
            }
            half.unsent_octets -= n;
            half.in_flight += n;
            half.free_at =
                half.free_at.max(now) + Duration::from_nanos(u64::from(n) * 1_000_000_000 / half.rate);
            let stuck = if core::mem::replace(&mut half.begun, true) { half.stuck_until } else { now };
            let (at, peer) = ((half.free_at + half.delay).max(stuck), half.peer);
            self.push(at, Event::Arrived(peer, octets));
        }
    }
}

pub(crate) fn file(length: usize) -> Bytes {
    (0..length).map(|i| (i * 31 + i / 251) as u8).collect()
}

/// A chunk of a session in the compact layout.
pub(crate) fn chunk(offset: u64, octets: &[u8]) -> Vec<u8> {
    let nowhere = "[::]:0".parse().expect("an address");
    let addresses = wire::PaperAddresses { intermediate: nowhere, last: nowhere };
    let mut chunk = Vec::new();
    wire::data_header(Layout::Compact, &addresses, offset, u64::MAX, octets.len() as u64, &mut chunk);
    chunk.extend_from_slice(octets);
    chunk
}
