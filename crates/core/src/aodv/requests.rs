//! Handling of received route requests (RFC 3561 sections 6.5 and 6.6).

use alloc::collections::{BTreeSet, VecDeque};
use core::net::Ipv4Addr;

use anabranch_wire::aodv::{Message, RouteReply, RouteRequest};

use super::table::{Learned, News};
use super::{Router, To};
use crate::time::Instant;

/// Requests remembered for PATH_DISCOVERY_TIME to detect duplicates.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    known: BTreeSet<(Ipv4Addr, u32)>,
    /// The entries of `known` with their expiry times, in order of expiry.
    ends: VecDeque<(Instant, (Ipv4Addr, u32))>,
    room: usize,
}

/// Whether a request was received before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum First {
    Time,
    Again,
    /// There is no space to remember the request.
    Full,
}

impl Seen {
    pub(super) fn new(room: usize) -> Self {
        Self { known: BTreeSet::new(), ends: VecDeque::new(), room }
    }

    fn note(&mut self, now: Instant, until: Instant, request: (Ipv4Addr, u32)) -> First {
        while let Some(&(end, old)) = self.ends.front()
            && end <= now
        {
            self.ends.pop_front();
            self.known.remove(&old);
        }
        if self.known.contains(&request) {
            return First::Again;
        }
        if self.known.len() >= self.room {
            return First::Full;
        }
        self.known.insert(request);
        self.ends.push_back((until, request));
        First::Time
    }
}

impl Router {
    pub(super) fn handle_request(&mut self, now: Instant, from: Ipv4Addr, ttl: u8, request: &RouteRequest) {
        // Section 6.8: the blacklist comes first, so that a request over a unidirectional link
        // changes nothing.
        if self.blacklist.get(&from).is_some_and(|until| *until > now) {
            self.counters.ignored += 1;
            return;
        }
        self.hear(now, from);
        if request.originator == self.address {
            return;
        }
        let until = now + self.config.path_discovery_time;
        match self.seen.note(now, until, (request.originator, request.id)) {
            First::Time => {}
            First::Again => return,
            // Without space to remember the request, the node must not forward it: duplicates would
            // circulate.
            First::Full => {
                self.counters.table_full += 1;
                return;
            }
        }
        let Some(hops) = hops_from(request.originator, request.hop_count) else {
            self.counters.refused += 1;
            return;
        };
        if !self.learn_reverse_route(now, from, hops, request) || self.quiet_until.is_some() {
            return;
        }
        if request.destination == self.address {
            self.answer_for_itself(now, request);
        } else if self.knows_the_way(from, request) {
            self.answer_for_another(now, from, request);
        } else if ttl > 1 {
            self.pass_on(now, ttl, hops, request);
        }
    }

    /// Learns the reverse route (section 6.5); returns false if the table is full.
    fn learn_reverse_route(
        &mut self,
        now: Instant,
        from: Ipv4Addr,
        hops: u8,
        request: &RouteRequest,
    ) -> bool {
        // MinimalLifetime = now + 2 NET_TRAVERSAL_TIME - 2 HopCount NODE_TRAVERSAL_TIME.
        let around = self.config.net_traversal_time() * 2;
        let back = self.config.node_traversal_time * 2 * u64::from(hops);
        let minimal = now + around.saturating_sub(back);
        let existing = self.table.valid(request.originator).map_or(now, |entry| entry.expires);
        let news = News { sequence: request.originator_sequence, hops, next_hop: from };
        match self.table.learn(request.originator, news, minimal.max(existing)) {
            Learned::Updated => self.fulfil(now, request.originator),
            Learned::Same => self.table.extend(request.originator, from, minimal),
            Learned::Older => {}
            Learned::Full => {
                self.counters.table_full += 1;
                return false;
            }
        }
        true
    }

    /// Whether this node may answer for another destination (section 6.6 case ii). A route through
    /// the requesting neighbour is no answer: it would form a loop.
    fn knows_the_way(&self, from: Ipv4Addr, request: &RouteRequest) -> bool {
        let route = self.table.valid(request.destination).filter(|route| route.next_hop != from);
        let known = route.and_then(|route| route.sequence);
        let new_enough =
            known.is_some_and(|known| !request.destination_sequence.is_some_and(|n| n.is_newer_than(known)));
        new_enough && !request.destination_only
    }

    /// Answers a request for this node (section 6.6.1). The number in the request may be larger
    /// than the node's own, because other nodes increment it when a route breaks.
    fn answer_for_itself(&mut self, now: Instant, request: &RouteRequest) {
        self.sequence = request.destination_sequence.map_or(self.sequence, |n| self.sequence.newer(n));
        let reply = RouteReply {
            hop_count: 0,
            destination: self.address,
            destination_sequence: self.sequence,
            originator: request.originator,
            lifetime: millis(self.config.my_route_timeout.as_millis()),
            ..NO_ROUTE
        };
        self.reply(now, reply);
    }

    /// Answers for another destination (sections 6.6.2 and 6.6.3).
    fn answer_for_another(&mut self, now: Instant, from: Ipv4Addr, request: &RouteRequest) {
        let Some(reverse) = self.table.valid(request.originator) else {
            self.counters.replies_stranded += 1;
            return;
        };
        let back = RouteReply {
            hop_count: reverse.hops,
            destination: request.originator,
            destination_sequence: request.originator_sequence,
            originator: request.destination,
            lifetime: millis(reverse.expires.saturating_since(now).as_millis()),
            ..NO_ROUTE
        };
        let Some(forward) = self.table.get_mut(request.destination) else { return };
        forward.add_precursor(from);
        let onward = forward.next_hop;
        let reply = RouteReply {
            hop_count: forward.hops,
            destination: request.destination,
            destination_sequence: forward.sequence.unwrap_or_default(),
            originator: request.originator,
            lifetime: millis(forward.expires.saturating_since(now).as_millis()),
            ..NO_ROUTE
        };
        if let Some(reverse) = self.table.get_mut(request.originator) {
            reverse.add_precursor(onward);
        }
        self.reply(now, reply);
        if request.gratuitous {
            self.reply(now, back);
        }
    }

    /// Forwards a request (end of section 6.5).
    fn pass_on(&mut self, now: Instant, ttl: u8, hop_count: u8, request: &RouteRequest) {
        let known = self.table.get(request.destination).and_then(|entry| entry.sequence);
        let destination_sequence = match (request.destination_sequence, known) {
            (Some(said), Some(known)) => Some(said.newer(known)),
            (only, None) | (None, only) => only,
        };
        let request = RouteRequest { hop_count, destination_sequence, ..*request };
        self.counters.requests_forwarded += 1;
        self.send(now, To::Broadcast, ttl - 1, &Message::Request(request));
    }

    /// Sends a reply of this node towards the originator of the request.
    fn reply(&mut self, now: Instant, reply: RouteReply) {
        let Some(back) = self.table.valid(reply.originator).map(|entry| entry.next_hop) else {
            self.counters.replies_stranded += 1;
            return;
        };
        self.counters.replies += 1;
        self.send_reply(now, back, reply);
    }
}

/// Number of hops from this node to the node `end` that a message names, given the sender's number;
/// `None` if the address is not a unicast address or the number overflows.
pub(super) fn hops_from(end: Ipv4Addr, sender: u8) -> Option<u8> {
    let somebody = !end.is_unspecified() && !end.is_multicast() && !end.is_broadcast();
    sender.checked_add(1).filter(|_| somebody)
}

/// Converts a time to the 32-bit field of a message; values above 49 days are clamped.
pub(super) fn millis(n: u64) -> u32 {
    n.min(u32::MAX.into()) as u32
}

/// A reply with default fields.
const NO_ROUTE: RouteReply = RouteReply {
    repair: false,
    acknowledge: false,
    prefix_size: 0,
    hop_count: 0,
    destination: Ipv4Addr::UNSPECIFIED,
    destination_sequence: super::SequenceNumber(0),
    originator: Ipv4Addr::UNSPECIFIED,
    lifetime: 0,
    hello_interval: None,
};
