//! AODV (RFC 3561): routes on demand in an ad hoc network, where every node forwards for the
//! others.
//!
//! One [`Router`] is one node's part. It never sees a packet: its owner asks where one goes
//! ([`Router::route`] for its own, [`Router::forward`] for another's), keeps packets while a route
//! is looked for, says which were sent ([`Router::note_use`]), and which neighbour the link layer
//! has lost ([`Router::handle_link_break`]). Messages are UDP payload both ways
//! ([`crate::aodv::PORT`]).
//!
//! Call any number of `handle_*`, questions and notes, then [`Router::poll_transmit`] and
//! [`Router::poll_event`] until `None`, then [`Router::next_timeout`].
//!
//! # Where the RFC leaves a choice, or has to be corrected
//!
//! * A route that ends by its time gets the next sequence number, as one that breaks (section 6.1
//!   allows it): else two nodes may each take the other's old route for news.
//! * A data packet for a route that has ended does not make the number grow once more (section 6.11
//!   case ii): it would run ahead of the destination's own, and every relay would take that node's
//!   requests for old.
//! * A route error ends the route even if its number is not newer, with the next number (section
//!   6.11: it is copied, which could make it fall).
//! * Section 6.5 has a request always change the reverse route. Here it does so only when section
//!   6.7 would let a reply.
//! * A reply that tells a node nothing new is passed on all the same, with what that node knows
//!   (section 6.7: dropped).
//! * Who sends data through a node becomes a precursor of the route that it takes: those who use a
//!   reverse route are in no list otherwise.
//! * The lifetime of the route back to a packet's source grows only if that route leads where the
//!   packet came from.
//!
//! Why this has no loops stands in `table`. Code map: `table` the routes, `search` the requests of
//! one's own (expanding ring, local repair), `requests`, `replies` and `errors` what is heard,
//! `config` the constants.

mod config;
mod errors;
mod limit;
mod replies;
mod requests;
mod search;
mod table;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use anabranch_wire::aodv::{self as wire, Message};
use bytes::Bytes;

pub use anabranch_wire::aodv::{PORT, SequenceNumber};
pub use config::{Config, Hello, IntermediateReplies, LocalRepair, ReplyAcks};
pub use table::{Entry, RouteState};

use crate::time::{Duration, Instant};
use limit::RateLimit;
use requests::Seen;
use search::Search;
use table::{Learned, Table};

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// To this neighbour.
    Via(Ipv4Addr),
    /// A route is being looked for: keep the packet until [`Event::Found`] or [`Event::Failed`].
    Discovering,
    /// Nowhere: drop it.
    Unreachable,
}

/// A packet that was sent on, or has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passage {
    /// Its source.
    pub source: Ipv4Addr,
    /// Its destination.
    pub destination: Ipv4Addr,
    /// The neighbour that it came from; `None` at its source.
    pub previous: Option<Ipv4Addr>,
    /// The neighbour that it was sent to; `None` at its destination.
    pub next: Option<Ipv4Addr>,
}

/// A packet that the link layer could not deliver to a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Undelivered {
    /// Its source.
    pub source: Ipv4Addr,
    /// Its destination.
    pub destination: Ipv4Addr,
}

/// Who gets a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To {
    /// All neighbours: 255.255.255.255.
    Broadcast,
    /// One.
    Neighbour(Ipv4Addr),
}

/// A message to send from port [`PORT`] to port [`PORT`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Who gets it.
    pub to: To,
    /// The TTL of its IP header.
    pub ttl: u8,
    /// How long it is to wait, so that neighbours do not all speak at once.
    pub delay: Duration,
    /// The UDP payload.
    pub payload: Bytes,
}

/// What the owner has to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// There is a route to the destination that packets wait for.
    Found {
        /// The destination.
        destination: Ipv4Addr,
    },
    /// There is none, and packets that wait for it are to be dropped (RFC 3561 section 6.3:
    /// "Destination Unreachable").
    Failed {
        /// The destination.
        destination: Ipv4Addr,
    },
    /// Routes have broken, here or further on: packets to these destinations find none for now. For
    /// a transport, the notice of a route failure.
    Broken {
        /// The destinations, in order.
        destinations: Vec<Ipv4Addr>,
    },
}

/// What a router has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Searches begun, local repairs left out.
    pub searches: u64,
    /// Requests of its own.
    pub requests: u64,
    /// Requests passed on.
    pub requests_forwarded: u64,
    /// Replies of its own, gratuitous ones included.
    pub replies: u64,
    /// Replies passed on.
    pub replies_forwarded: u64,
    /// Replies that could go no further: the way back was gone.
    pub replies_stranded: u64,
    /// Route errors sent.
    pub errors: u64,
    /// Route errors not sent for RERR_RATELIMIT.
    pub errors_suppressed: u64,
    /// Hello messages.
    pub hellos: u64,
    /// Local repairs begun.
    pub repairs: u64,
    /// Local repairs that found a way.
    pub repaired: u64,
    /// Requests of nodes on the blacklist.
    pub ignored: u64,
    /// Messages that made no sense.
    pub refused: u64,
    /// Routes or requests not stored since there is no room.
    pub table_full: u64,
}

/// One node's part.
#[derive(Debug)]
pub struct Router {
    config: Config,
    address: Ipv4Addr,
    /// The node's own.
    sequence: SequenceNumber,
    request_id: u32,
    table: Table,
    searches: BTreeMap<Ipv4Addr, Search>,
    /// Destinations that were not found, and until when they are not looked for.
    held: BTreeMap<Ipv4Addr, Instant>,
    seen: Seen,
    request_limit: RateLimit,
    error_limit: RateLimit,
    /// Who owes us an RREP-ACK, and until when.
    acks: BTreeMap<Ipv4Addr, Instant>,
    blacklist: BTreeMap<Ipv4Addr, Instant>,
    /// Neighbours that send Hellos.
    watched: BTreeMap<Ipv4Addr, Watched>,
    next_hello: Option<Instant>,
    last_broadcast: Option<Instant>,
    /// After a reboot: until then nothing is forwarded (section 6.13).
    quiet_until: Option<Instant>,
    output: VecDeque<Queued>,
    events: VecDeque<Event>,
    counters: Counters,
}

/// A neighbour that is gone when it is not heard until `deadline`.
#[derive(Clone, Copy, Debug)]
struct Watched {
    deadline: Instant,
    patience: Duration,
}

#[derive(Debug)]
struct Queued {
    to: To,
    ttl: u8,
    payload: Bytes,
}

impl Router {
    /// A node that knows nobody, and that nobody knows: it has not been in this network before.
    pub fn new(config: Config, address: Ipv4Addr, now: Instant) -> Self {
        let config = Config { net_diameter: config.net_diameter.max(1), ..config };
        Self {
            address,
            sequence: SequenceNumber::default(),
            request_id: 0,
            table: Table::new(config.max_routes),
            searches: BTreeMap::new(),
            held: BTreeMap::new(),
            seen: Seen::new(config.max_routes),
            request_limit: RateLimit::new(config.request_rate_limit),
            error_limit: RateLimit::new(config.error_rate_limit),
            acks: BTreeMap::new(),
            blacklist: BTreeMap::new(),
            watched: BTreeMap::new(),
            next_hello: (config.hello == Hello::On).then_some(now + config.hello_interval),
            last_broadcast: None,
            quiet_until: None,
            output: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            config,
        }
    }

    /// The node has rebooted and lost all, its sequence number too (RFC 3561 section 6.13): for
    /// DELETE_PERIOD it learns and does not speak, and each packet that is sent through it in that
    /// time makes it wait anew.
    pub fn reset(&mut self, now: Instant) {
        *self = Self::new(self.config, self.address, now);
        self.quiet_until = Some(now + self.config.delete_period);
    }

    /// Where a packet of this node's own goes; begins to look for a route if there is none. The
    /// node itself is its own next hop.
    pub fn route(&mut self, now: Instant, destination: Ipv4Addr) -> Route {
        self.tick(now);
        if destination == self.address {
            return Route::Via(destination);
        }
        if let Some(route) = self.usable(destination) {
            return Route::Via(route.next_hop);
        }
        if self.held.get(&destination).is_some_and(|until| *until > now) {
            return Route::Unreachable;
        }
        self.search(now, destination);
        Route::Discovering
    }

    /// Where a packet of another node goes that has come from the neighbour `previous`. If there is
    /// no route, that neighbour is told (section 6.11 case ii).
    pub fn forward(&mut self, now: Instant, destination: Ipv4Addr, previous: Ipv4Addr) -> Route {
        self.tick(now);
        if destination == self.address {
            return Route::Via(destination);
        }
        if let Some(route) = self.usable(destination) {
            return Route::Via(route.next_hop);
        }
        if self.is_repairing(destination) {
            return Route::Discovering;
        }
        self.refuse_packet(now, destination, previous);
        Route::Unreachable
    }

    /// A packet has taken its route, or has arrived here: the routes to its source, its destination
    /// and the neighbours on its way live for ACTIVE_ROUTE_TIMEOUT from now at least (section 6.2).
    pub fn note_use(&mut self, now: Instant, passage: Passage) {
        let until = now + self.config.active_route_timeout;
        let remembered = now + self.config.delete_period;
        if let Some(next) = passage.next {
            self.table.extend(passage.destination, next, until);
            self.table.extend(next, next, until);
        }
        let Some(previous) = passage.previous else { return };
        self.table.extend(previous, previous, until);
        self.table.extend(passage.source, previous, until);
        // Whoever the packet passed before may have a route to its source that leads through here.
        self.table.remember(passage.source, remembered);
        if passage.next.is_some()
            && let Some(entry) = self.table.get_mut(passage.destination)
        {
            entry.add_precursor(previous);
        }
    }

    /// A message has come from a neighbour, in a packet with this TTL.
    pub fn handle_message(&mut self, now: Instant, from: Ipv4Addr, ttl: u8, payload: &[u8]) {
        self.tick(now);
        let unusable = from == self.address || from.is_unspecified() || from.is_multicast();
        let Some(parsed) = wire::parse(payload).ok().filter(|_| !unusable) else {
            self.counters.refused += 1;
            return;
        };
        if let Some(watched) = self.watched.get_mut(&from) {
            watched.deadline = watched.deadline.max(now + watched.patience);
        }
        match parsed.message {
            Message::Request(request) => self.handle_request(now, from, ttl, &request),
            Message::Reply(reply) => self.handle_reply(now, from, &reply),
            Message::Error(error) => self.handle_error(now, from, &error),
            Message::ReplyAck => {
                self.acks.remove(&from);
            }
        }
    }

    /// When [`Router::handle_timeout`] wants to be called; may find that there is nothing to do.
    pub fn next_timeout(&self) -> Option<Instant> {
        let searches = self.searches.values().map(|search| search.at);
        let watched = self.watched.values().map(|watched| watched.deadline);
        let single = [self.table.due(), self.next_hello].into_iter().flatten();
        single.chain(searches).chain(watched).chain(self.acks.values().copied()).min()
    }

    /// Answers [`Router::next_timeout`]; harmless when early.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.tick(now);
        self.continue_searches(now);
        let late = |(node, at): (&Ipv4Addr, &Instant)| (*at <= now).then_some(*node);
        while let Some(node) = self.acks.iter().find_map(late) {
            self.shun(now, node);
        }
        while let Some(node) =
            self.watched.iter().find_map(|(node, watched)| (watched.deadline <= now).then_some(*node))
        {
            self.handle_link_break(now, node, None);
        }
        self.say_hello(now);
    }

    /// The next message to send, until `None`. `random` is any number, of which the delay of a
    /// broadcast is made.
    pub fn poll_transmit(&mut self, random: u32) -> Option<Transmit> {
        let Queued { to, ttl, payload } = self.output.pop_front()?;
        let delay = match to {
            To::Broadcast => self.config.jitter.mul_ratio(u64::from(random), 1 << 32),
            To::Neighbour(_) => Duration::ZERO,
        };
        Some(Transmit { to, ttl, delay, payload })
    }

    /// The next thing that the owner should know, until `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The node's address.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The node's own sequence number.
    pub fn sequence(&self) -> SequenceNumber {
        self.sequence
    }

    /// What is known of a destination, whether or not it can be used. Whatever was due at the last
    /// call of another method has happened to it.
    pub fn entry(&self, destination: Ipv4Addr) -> Option<&Entry> {
        self.table.get(destination)
    }

    /// All entries, by destination.
    pub fn entries(&self) -> impl Iterator<Item = (Ipv4Addr, &Entry)> {
        self.table.iter()
    }

    /// Until when the node does not forward after a reboot.
    pub fn quiet_until(&self) -> Option<Instant> {
        self.quiet_until
    }

    /// What was done so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What is over by now is over.
    fn tick(&mut self, now: Instant) {
        self.quiet_until = self.quiet_until.filter(|until| *until > now);
        let waits = now + self.config.net_traversal_time() * 2;
        let searches = &self.searches;
        // Section 6.4: what is waited for is not expunged.
        let kept = |destination| searches.contains_key(&destination).then_some(waits);
        self.table.expire(now, self.config.delete_period, kept);
    }

    fn usable(&self, destination: Ipv4Addr) -> Option<&Entry> {
        self.table.valid(destination).filter(|_| self.quiet_until.is_none())
    }

    /// Something has come from a neighbour.
    fn hear(&mut self, now: Instant, from: Ipv4Addr) {
        match self.table.hear(from, now + self.config.active_route_timeout) {
            Learned::Full => self.counters.table_full += 1,
            Learned::Updated | Learned::Same | Learned::Older => self.fulfil(now, from),
        }
    }

    fn send(&mut self, now: Instant, to: To, ttl: u8, message: &Message) {
        if to == To::Broadcast {
            self.last_broadcast = Some(now);
        }
        let mut payload = Vec::new();
        wire::emit(message, &mut payload).expect("what is passed on was read, and errors name 1 to 255");
        self.output.push_back(Queued { to, ttl, payload: payload.into() });
    }
}
