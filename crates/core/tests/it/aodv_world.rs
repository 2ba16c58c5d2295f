//! Routers, links that are up or down, and a clock that jumps to the next event. A message takes 1
//! ms over a link, a data packet no time; the link layer reports a neighbour that does not answer.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use anabranch_core::aodv::{Config, Event, Passage, Route, RouteState, Router, To, Undelivered};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::prng::Prng;
use anabranch_wire::aodv::{Message, RouteError, RouteReply, RouteRequest, emit, parse};

/// Time of a message over one link.
pub(crate) const HOP: Duration = Duration::from_millis(1);

/// The address of a node.
pub(crate) fn node(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, n)
}

/// A message in transit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) from: u8,
    pub(crate) to: To,
    pub(crate) ttl: u8,
    pub(crate) message: Message,
}

/// A message between two nodes.
struct Flying {
    from: u8,
    to: u8,
    ttl: u8,
    payload: Vec<u8>,
}

/// Fate of a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// Delivered over this number of links.
    Delivered(usize),
    /// Held at this node.
    Waits(u8),
    /// This node had no route.
    Dropped(u8),
    /// The link from this node was down.
    Broke(u8),
}

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) routers: BTreeMap<u8, Router>,
    links: BTreeSet<(u8, u8)>,
    air: BTreeMap<(Instant, u64), Flying>,
    count: u64,
    /// All messages sent.
    pub(crate) log: Vec<Sent>,
    pub(crate) events: Vec<(Instant, u8, Event)>,
    prng: Prng,
    /// Loss of broadcasts per neighbour in per cent.
    pub(crate) loss: u64,
    /// Messages are delayed by up to this number of milliseconds, so that they overtake each other.
    pub(crate) late: u64,
}

impl World {
    /// Nodes 1 to `nodes` without links.
    pub(crate) fn new(config: Config, nodes: u8, seed: u64) -> Self {
        let router = |n| (n, Router::new(config, node(n), Instant::ZERO));
        Self {
            now: Instant::ZERO,
            routers: (1..=nodes).map(router).collect(),
            links: BTreeSet::new(),
            air: BTreeMap::new(),
            count: 0,
            log: Vec::new(),
            events: Vec::new(),
            prng: Prng::new(seed),
            loss: 0,
            late: 0,
        }
    }

    /// Nodes in a row.
    pub(crate) fn row(config: Config, nodes: u8) -> Self {
        let mut world = Self::new(config, nodes, 1);
        (1..nodes).for_each(|n| world.up(n, n + 1));
        world
    }

    /// Adds a node without links.
    pub(crate) fn join(&mut self, n: u8, config: Config) {
        self.routers.insert(n, Router::new(config, node(n), self.now));
    }

    pub(crate) fn up(&mut self, a: u8, b: u8) {
        self.up_one_way(a, b);
        self.up_one_way(b, a);
    }

    /// Makes `b` hear `a`, but not the reverse.
    pub(crate) fn up_one_way(&mut self, a: u8, b: u8) {
        self.links.insert((a, b));
    }

    pub(crate) fn down(&mut self, a: u8, b: u8) {
        self.links.remove(&(a, b));
        self.links.remove(&(b, a));
    }

    pub(crate) fn is_up(&self, a: u8, b: u8) -> bool {
        self.links.contains(&(a, b))
    }

    pub(crate) fn router(&mut self, n: u8) -> &mut Router {
        self.routers.get_mut(&n).expect("a node of this world")
    }

    /// Transmits all messages that routers want to send now.
    pub(crate) fn settle(&mut self) {
        let nodes: Vec<u8> = self.routers.keys().copied().collect();
        for &n in nodes.iter().chain(&nodes) {
            loop {
                let random = self.prng.bits() as u32;
                let Some(transmit) = self.router(n).poll_transmit(random) else { break };
                let message = parse(&transmit.payload).expect("routers speak AODV").message;
                let at = self.now + transmit.delay;
                self.log.push(Sent { at, from: n, to: transmit.to, ttl: transmit.ttl, message });
                match transmit.to {
                    To::Broadcast => {
                        for other in
                            nodes.iter().copied().filter(|other| self.is_up(n, *other)).collect::<Vec<_>>()
                        {
                            if !self.prng.chance(self.loss) {
                                self.carry(at, n, other, transmit.ttl, transmit.payload.to_vec());
                            }
                        }
                    }
                    To::Neighbour(address) => {
                        let other = address.octets()[3];
                        if self.is_up(n, other) && self.is_up(other, n) {
                            self.carry(at, n, other, transmit.ttl, transmit.payload.to_vec());
                        } else {
                            let now = self.now;
                            match self.log.last().map(|sent| &sent.message) {
                                Some(Message::Reply(_)) => self.router(n).handle_reply_lost(now, address),
                                _ => self.router(n).handle_link_break(now, address, None),
                            }
                        }
                    }
                }
            }
            while let Some(event) = self.router(n).poll_event() {
                self.events.push((self.now, n, event));
            }
        }
    }

    fn carry(&mut self, at: Instant, from: u8, to: u8, ttl: u8, payload: Vec<u8>) {
        self.count += 1;
        let late = Duration::from_millis(self.prng.below(self.late + 1));
        self.air.insert((at + HOP + late, self.count), Flying { from, to, ttl, payload });
    }

    /// Advances to the next event before `until`; returns false if there is none.
    pub(crate) fn step(&mut self, until: Instant) -> bool {
        self.settle();
        let timers = self.routers.values().filter_map(Router::next_timeout);
        let arrival = self.air.keys().next().map(|(at, _)| *at);
        let Some(next) = timers.chain(arrival).min().filter(|at| *at <= until) else {
            self.now = self.now.max(until);
            return false;
        };
        self.now = self.now.max(next);
        let now = self.now;
        if arrival.is_some_and(|at| at <= now) {
            let (_, Flying { from, to, ttl, payload }) = self.air.pop_first().expect("something arrives");
            if self.is_up(from, to) {
                self.router(to).handle_message(now, node(from), ttl, &payload);
            }
        } else {
            for router in self.routers.values_mut() {
                if router.next_timeout().is_some_and(|at| at <= now) {
                    router.handle_timeout(now);
                    assert!(
                        router.next_timeout().is_none_or(|at| at > now),
                        "a timer that was answered moves on"
                    );
                }
            }
        }
        self.settle();
        true
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
    }

    /// Sends one packet as far as it gets.
    pub(crate) fn send(&mut self, source: u8, destination: u8) -> Fate {
        let now = self.now;
        let (mut at, mut previous, mut links) = (source, None, 0);
        loop {
            let passage =
                |next| Passage { source: node(source), destination: node(destination), previous, next };
            if at == destination {
                self.router(at).note_use(now, passage(None));
                return self.fate(Fate::Delivered(links));
            }
            let route = match previous {
                None => self.router(at).route(now, node(destination)),
                Some(previous) => self.router(at).forward(now, node(destination), previous),
            };
            let next = match route {
                Route::Via(next) => next,
                Route::Discovering => return self.fate(Fate::Waits(at)),
                Route::Unreachable => return self.fate(Fate::Dropped(at)),
            };
            self.router(at).note_use(now, passage(Some(next)));
            let other = next.octets()[3];
            if !(self.is_up(at, other) && self.is_up(other, at)) {
                let packet = Undelivered { source: node(source), destination: node(destination) };
                self.router(at).handle_link_break(now, next, Some(packet));
                return self.fate(Fate::Broke(at));
            }
            (previous, at, links) = (Some(node(at)), other, links + 1);
            assert!(links <= self.routers.len(), "a packet goes round");
        }
    }

    fn fate(&mut self, fate: Fate) -> Fate {
        self.settle();
        fate
    }

    /// Sends two packets: the first waits for a route, the second arrives.
    pub(crate) fn connect(&mut self, source: u8, destination: u8) -> Fate {
        assert_eq!(self.send(source, destination), Fate::Waits(source));
        self.run(Duration::from_millis(500));
        self.send(source, destination)
    }

    pub(crate) fn requests(&self) -> Vec<(u8, u8, RouteRequest)> {
        let of = |sent: &Sent| match &sent.message {
            Message::Request(request) => Some((sent.from, sent.ttl, *request)),
            _ => None,
        };
        self.log.iter().filter_map(of).collect()
    }

    pub(crate) fn replies(&self) -> Vec<(u8, To, RouteReply)> {
        let of = |sent: &Sent| match &sent.message {
            Message::Reply(reply) => Some((sent.from, sent.to, *reply)),
            _ => None,
        };
        self.log.iter().filter_map(of).collect()
    }

    pub(crate) fn errors(&self) -> Vec<(u8, To, RouteError)> {
        let of = |sent: &Sent| match &sent.message {
            Message::Error(error) => Some((sent.from, sent.to, error.clone())),
            _ => None,
        };
        self.log.iter().filter_map(of).collect()
    }

    /// Delivers a message from a neighbour outside of this network.
    pub(crate) fn tell(&mut self, to: u8, from: u8, ttl: u8, message: &Message) {
        let mut payload = Vec::new();
        emit(message, &mut payload).expect("a message");
        let now = self.now;
        self.router(to).handle_message(now, node(from), ttl, &payload);
        self.settle();
    }

    /// Next hop, hop count and state of a route.
    pub(crate) fn route(&self, at: u8, to: u8) -> Option<(u8, u8, RouteState)> {
        let entry = self.routers[&at].entry(node(to))?;
        Some((entry.next_hop.octets()[3], entry.hops, entry.state))
    }

    /// Finds a routing loop: a destination, and the nodes of the loop.
    pub(crate) fn find_loop(&self) -> Option<(u8, Vec<u8>)> {
        let next = |at: u8, to: u8| {
            let router = &self.routers[&at];
            let entry = router.entry(node(to)).filter(|_| router.quiet_until().is_none())?;
            let good = entry.is_valid() && entry.expires > self.now;
            good.then(|| entry.next_hop.octets()[3])
        };
        for &to in self.routers.keys() {
            // Each node is queried once: this check runs after every step of thousands of runs.
            let mut hops = [None; 256];
            for &at in self.routers.keys() {
                let on = next(at, to).filter(|on| *on != to);
                assert!(on.is_none_or(|on| self.routers.contains_key(&on)), "{at} sends to no node: {on:?}");
                hops[usize::from(at)] = on;
            }
            for &start in self.routers.keys() {
                let way = std::iter::successors(Some(start), |at| hops[usize::from(*at)]);
                // On a path with more links than nodes, a node occurs twice.
                let way: Vec<u8> = way.take(self.routers.len() + 1).collect();
                if way.len() > self.routers.len() {
                    return Some((to, way));
                }
            }
        }
        None
    }
}
