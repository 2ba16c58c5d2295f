//! AODV (RFC 3561): on-demand routing for ad hoc networks in which every node forwards packets.
//!
//! One [`Router`] is the routing state of one node. It never sees a data packet. Its owner has
//! these tasks:
//!
//! * It asks for the next hop: [`Router::route`] for the node's own packets, [`Router::forward`]
//!   for packets of other nodes.
//! * It holds packets during route discovery.
//! * It reports which packets were sent ([`Router::note_use`]), and which neighbours the link layer
//!   has lost ([`Router::handle_link_break`]).
//! * It carries the messages as UDP payloads in both directions ([`crate::aodv::PORT`]).
//!
//! Call any number of `handle_*` methods, queries and notes, then [`Router::poll_transmit`] and
//! [`Router::poll_event`] until they return `None`, then [`Router::next_timeout`].
//!
//! # Choices and deviations from the RFC
//!
//! * A route that expires gets the next sequence number, like a route that breaks (section 6.1
//!   allows it). Otherwise two nodes could each accept the other's stale route as fresh.
//! * A data packet for an invalid route does not increment the sequence number again (section 6.11
//!   case ii). Otherwise the number would overtake the destination's own number, and every relay
//!   would treat that node's requests as stale.
//! * A route error ends the route even if its sequence number is not newer, and the route gets the
//!   next number. Section 6.11 copies the number from the error, which could decrease it.
//! * A request changes the reverse route only under the conditions that section 6.7 sets for a
//!   reply. Section 6.5 changes it always.
//! * A reply without new information is forwarded with the route that this node knows. Section 6.7
//!   drops it.
//! * The neighbour from which a data packet arrives becomes a precursor of the route that the
//!   packet takes. Otherwise the users of a reverse route would be in no precursor list.
//! * The lifetime of the route to a packet's source is extended only if that route leads through
//!   the neighbour from which the packet arrived.
//!
//! The module `table` explains why the routes are free of loops. Code map: `table` has the routes,
//! `search` the node's own requests (expanding ring search, local repair), `requests`, `replies`
//! and `errors` the handling of received messages, `config` the constants.

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

/// The next hop of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// Send the packet to this neighbour.
    Via(Ipv4Addr),
    /// Route discovery is running: hold the packet until [`Event::Found`] or [`Event::Failed`].
    Discovering,
    /// There is no route: drop the packet.
    Unreachable,
}

/// A packet that was forwarded or that arrived at its destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passage {
    /// The source address of the packet.
    pub source: Ipv4Addr,
    /// The destination address of the packet.
    pub destination: Ipv4Addr,
    /// The neighbour from which the packet arrived; `None` at its source.
    pub previous: Option<Ipv4Addr>,
    /// The neighbour to which the packet was sent; `None` at its destination.
    pub next: Option<Ipv4Addr>,
}

/// A packet that the link layer could not deliver to a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Undelivered {
    /// The source address of the packet.
    pub source: Ipv4Addr,
    /// The destination address of the packet.
    pub destination: Ipv4Addr,
}

/// The recipients of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To {
    /// All neighbours: 255.255.255.255.
    Broadcast,
    /// One neighbour.
    Neighbour(Ipv4Addr),
}

/// A message to send from port [`PORT`] to port [`PORT`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// The recipients.
    pub to: To,
    /// The TTL of its IP header.
    pub ttl: u8,
    /// Time to wait before sending, so that neighbours do not all transmit at once.
    pub delay: Duration,
    /// The UDP payload.
    pub payload: Bytes,
}

/// A notification for the owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A route to a destination with waiting packets was found.
    Found {
        /// The destination.
        destination: Ipv4Addr,
    },
    /// No route was found; drop the packets that wait for it (RFC 3561 section 6.3: "Destination
    /// Unreachable").
    Failed {
        /// The destination.
        destination: Ipv4Addr,
    },
    /// Routes have broken, at this node or further along. Packets to these destinations have no
    /// route for now. For a transport protocol this is the notification of a route failure.
    Broken {
        /// The destinations, in ascending order.
        destinations: Vec<Ipv4Addr>,
    },
}

/// Event counts of a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Searches started, without local repairs.
    pub searches: u64,
    /// Route requests originated.
    pub requests: u64,
    /// Route requests forwarded.
    pub requests_forwarded: u64,
    /// Route replies originated, including gratuitous replies.
    pub replies: u64,
    /// Route replies forwarded.
    pub replies_forwarded: u64,
    /// Replies dropped because the reverse route was missing.
    pub replies_stranded: u64,
    /// Route errors sent.
    pub errors: u64,
    /// Route errors suppressed by RERR_RATELIMIT.
    pub errors_suppressed: u64,
    /// Hello messages sent.
    pub hellos: u64,
    /// Local repairs started.
    pub repairs: u64,
    /// Local repairs that found a route.
    pub repaired: u64,
    /// Requests ignored because their sender is on the blacklist.
    pub ignored: u64,
    /// Messages rejected as invalid.
    pub refused: u64,
    /// Routes or requests not stored because the table was full.
    pub table_full: u64,
}

/// The AODV state of one node.
#[derive(Debug)]
pub struct Router {
    config: Config,
    address: Ipv4Addr,
    /// The node's own sequence number.
    sequence: SequenceNumber,
    request_id: u32,
    table: Table,
    searches: BTreeMap<Ipv4Addr, Search>,
    /// Destinations that were not found, with the time until which no new search starts.
    held: BTreeMap<Ipv4Addr, Instant>,
    seen: Seen,
    request_limit: RateLimit,
    error_limit: RateLimit,
    /// Neighbours that owe an RREP-ACK, with their deadlines.
    acks: BTreeMap<Ipv4Addr, Instant>,
    blacklist: BTreeMap<Ipv4Addr, Instant>,
    /// Neighbours that send Hello messages.
    watched: BTreeMap<Ipv4Addr, Watched>,
    next_hello: Option<Instant>,
    last_broadcast: Option<Instant>,
    /// After a reboot, nothing is forwarded until this time (section 6.13).
    quiet_until: Option<Instant>,
    output: VecDeque<Queued>,
    events: VecDeque<Event>,
    counters: Counters,
}

/// A neighbour that counts as lost if nothing is heard from it until `deadline`.
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
    /// Creates a node that has never been in this network: it knows no neighbour, and none knows
    /// it.
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

    /// Restarts the node after a reboot in which it lost all state, including its sequence number
    /// (RFC 3561 section 6.13). For DELETE_PERIOD the node learns routes but sends nothing. Every
    /// packet that others send through it in that time restarts the wait.
    pub fn reset(&mut self, now: Instant) {
        *self = Self::new(self.config, self.address, now);
        self.quiet_until = Some(now + self.config.delete_period);
    }

    /// Returns the next hop of a packet that this node originates; starts a route discovery if
    /// there is no route. For the node's own address the next hop is the node itself.
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

    /// Returns the next hop of a packet of another node that arrived from the neighbour `previous`.
    /// If there is no route, that neighbour gets a route error (section 6.11 case ii).
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

    /// Records that a packet took its route or arrived here. The routes to its source, its
    /// destination and the neighbours on its path then stay valid for at least ACTIVE_ROUTE_TIMEOUT
    /// (section 6.2).
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
        // Nodes that forwarded the packet earlier may have a route to its source through this node.
        self.table.remember(passage.source, remembered);
        if passage.next.is_some()
            && let Some(entry) = self.table.get_mut(passage.destination)
        {
            entry.add_precursor(previous);
        }
    }

    /// Handles a message from a neighbour that arrived in a packet with this TTL.
    // Such a source address cannot be that of a neighbour.
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

    /// Returns when to call [`Router::handle_timeout`]. That call may find nothing to do.
    pub fn next_timeout(&self) -> Option<Instant> {
        let searches = self.searches.values().map(|search| search.at);
        let watched = self.watched.values().map(|watched| watched.deadline);
        let single = [self.table.due(), self.next_hello].into_iter().flatten();
        single.chain(searches).chain(watched).chain(self.acks.values().copied()).min()
    }

    /// Does the work due at [`Router::next_timeout`]; an early call is harmless.
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

    /// Returns the next message to send, or `None`. `random` is any random number; it sets the
    /// delay of a broadcast.
    pub fn poll_transmit(&mut self, random: u32) -> Option<Transmit> {
        // Only broadcasts are delayed: all neighbours forward the same request at the same time.
        let Queued { to, ttl, payload } = self.output.pop_front()?;
        let delay = match to {
            To::Broadcast => self.config.jitter.mul_ratio(u64::from(random), 1 << 32),
            To::Neighbour(_) => Duration::ZERO,
        };
        Some(Transmit { to, ttl, delay, payload })
    }

    /// Returns the next notification for the owner, or `None`.
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

    /// Returns the entry of a destination, valid or not, as of the last call of another method.
    pub fn entry(&self, destination: Ipv4Addr) -> Option<&Entry> {
        self.table.get(destination)
    }

    /// All entries, by destination.
    pub fn entries(&self) -> impl Iterator<Item = (Ipv4Addr, &Entry)> {
        self.table.iter()
    }

    /// Returns the time until which the node does not forward after a reboot.
    pub fn quiet_until(&self) -> Option<Instant> {
        self.quiet_until
    }

    /// Returns the event counts so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Ends everything that has expired by `now`.
    fn tick(&mut self, now: Instant) {
        self.quiet_until = self.quiet_until.filter(|until| *until > now);
        let waits = now + self.config.net_traversal_time() * 2;
        let searches = &self.searches;
        // Section 6.4: an entry is not deleted while a search waits for its destination.
        let kept = |destination| searches.contains_key(&destination).then_some(waits);
        self.table.expire(now, self.config.delete_period, kept);
    }

    fn usable(&self, destination: Ipv4Addr) -> Option<&Entry> {
        self.table.valid(destination).filter(|_| self.quiet_until.is_none())
    }

    /// Records that a message arrived from a neighbour.
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
