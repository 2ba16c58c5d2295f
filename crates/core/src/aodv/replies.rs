//! Replies (RFC 3561 section 6.7), their acknowledgements (6.8) and Hellos (6.9).

use core::net::Ipv4Addr;

use anabranch_wire::aodv::{Message, RouteReply};

use super::requests::{hops_from, millis};
use super::table::{Learned, News};
use super::{Hello, ReplyAcks, Router, To, Watched};
use crate::time::{Duration, Instant};

impl Router {
    pub(super) fn handle_reply(&mut self, now: Instant, from: Ipv4Addr, reply: &RouteReply) {
        if reply.acknowledge {
            self.send(now, To::Neighbour(from), 1, &Message::ReplyAck);
        }
        if is_hello(from, reply) {
            return self.handle_hello(now, from, reply);
        }
        self.hear(now, from);
        let Some(hops) = hops_from(reply.destination, reply.hop_count) else {
            self.counters.refused += 1;
            return;
        };
        if reply.destination == self.address {
            return;
        }
        let news = News { sequence: reply.destination_sequence, hops, next_hop: from };
        let expires = now + Duration::from_millis(reply.lifetime.into());
        match self.table.learn(reply.destination, news, expires) {
            Learned::Updated => self.fulfil(now, reply.destination),
            Learned::Same => self.table.extend(reply.destination, from, expires),
            Learned::Older => {}
            Learned::Full => {
                self.counters.table_full += 1;
                return;
            }
        }
        if reply.originator != self.address && self.quiet_until.is_none() {
            self.pass_reply_on(now, reply);
        }
    }

    /// Forwards a reply (end of section 6.7). If the node already knows the route or a better one,
    /// it forwards its own information. Otherwise a reply would end at every neighbour of the
    /// destination that has received a Hello.
    fn pass_reply_on(&mut self, now: Instant, reply: &RouteReply) {
        let known = self.table.valid(reply.destination);
        let known =
            known.and_then(|entry| Some((entry.sequence?, entry.hops, entry.next_hop, entry.expires)));
        let back = self.table.valid(reply.originator).map(|entry| entry.next_hop);
        let (Some((destination_sequence, hop_count, onward, expires)), Some(back)) = (known, back) else {
            self.counters.replies_stranded += 1;
            return;
        };
        self.table.extend(reply.originator, back, now + self.config.active_route_timeout);
        for route in [reply.destination, onward] {
            if let Some(entry) = self.table.get_mut(route) {
                entry.add_precursor(back);
            }
        }
        let lifetime = millis(expires.saturating_since(now).as_millis());
        self.counters.replies_forwarded += 1;
        self.send_reply(now, back, RouteReply { destination_sequence, hop_count, lifetime, ..*reply });
    }

    /// Sends a reply, with a request for an acknowledgement if configured.
    pub(super) fn send_reply(&mut self, now: Instant, to: Ipv4Addr, reply: RouteReply) {
        let acknowledge = self.config.reply_acks == ReplyAcks::On;
        if acknowledge {
            self.acks.entry(to).or_insert(now + self.config.next_hop_wait);
        }
        let reply = RouteReply { acknowledge, hello_interval: None, ..reply };
        self.send(now, To::Neighbour(to), self.config.net_diameter, &Message::Reply(reply));
    }

    /// Handles the loss of a reply that the link layer could not deliver. The link is
    /// unidirectional: the neighbour's messages arrive here, but not the reverse (section 6.8). Its
    /// requests are ignored for BLACKLIST_TIMEOUT, and the link counts as broken.
    pub fn handle_reply_lost(&mut self, now: Instant, neighbour: Ipv4Addr) {
        self.shun(now, neighbour);
        self.handle_link_break(now, neighbour, None);
    }

    /// Puts a neighbour that a reply did not reach on the blacklist.
    pub(super) fn shun(&mut self, now: Instant, neighbour: Ipv4Addr) {
        self.acks.remove(&neighbour);
        self.blacklist.retain(|_, until| *until > now);
        self.blacklist.insert(neighbour, now + self.config.blacklist_timeout);
    }

    /// Handles a Hello (section 6.9): learns the route to the neighbour and monitors the neighbour
    /// from now on.
    fn handle_hello(&mut self, now: Instant, from: Ipv4Addr, hello: &RouteReply) {
        let said = hello.hello_interval.map(|millis| Duration::from_millis(millis.into()));
        let patience = self.config.hello_patience(said.unwrap_or(self.config.hello_interval));
        let expires = now + patience.max(Duration::from_millis(hello.lifetime.into()));
        let news = News { sequence: hello.destination_sequence, hops: 1, next_hop: from };
        let existing = self.table.valid(from).map_or(now, |entry| entry.expires);
        match self.table.learn(from, news, expires.max(existing)) {
            Learned::Full => {
                self.counters.table_full += 1;
                return;
            }
            Learned::Updated | Learned::Same => self.table.extend(from, from, expires),
            Learned::Older => {
                // The number stored here is ahead of the neighbour's own number, because it was
                // incremented at a break. The Hello still proves that the neighbour is reachable.
                self.table.hear(from, expires);
            }
        }
        self.fulfil(now, from);
        if self.config.hello == Hello::On {
            self.watched.insert(from, Watched { deadline: now + patience, patience });
        }
    }

    /// Sends a Hello if the node has an active route and has broadcast nothing for an interval
    /// (section 6.9).
    pub(super) fn say_hello(&mut self, now: Instant) {
        let Some(at) = self.next_hello.filter(|at| *at <= now) else { return };
        let interval = self.config.hello_interval.max(Duration::from_nanos(1));
        self.next_hello = Some((at + interval).max(now + Duration::from_nanos(1)));
        let spoke = self.last_broadcast.is_some_and(|at| now.saturating_since(at) < interval);
        let on_a_route = self.table.iter().any(|(_, entry)| entry.is_valid());
        if spoke || !on_a_route || self.quiet_until.is_some() {
            return;
        }
        let lifetime = self.config.hello_patience(interval).as_millis();
        let hello = RouteReply {
            repair: false,
            acknowledge: false,
            prefix_size: 0,
            hop_count: 0,
            destination: self.address,
            destination_sequence: self.sequence,
            originator: self.address,
            lifetime: millis(lifetime),
            hello_interval: None,
        };
        self.counters.hellos += 1;
        self.send(now, To::Broadcast, 1, &Message::Reply(hello));
    }
}

/// Whether a reply is a Hello. The RFC does not specify the originator of a Hello: implementations
/// leave it unspecified or use the node's own address.
fn is_hello(from: Ipv4Addr, reply: &RouteReply) -> bool {
    let of_itself = reply.destination == from && reply.hop_count == 0;
    of_itself && (reply.originator == from || reply.originator.is_unspecified())
}
