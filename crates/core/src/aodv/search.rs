//! Route discovery (RFC 3561 sections 6.3 and 6.4) and local repair (section 6.12).

use anabranch_wire::aodv::{Message, RouteError, RouteRequest, Unreachable};
use core::net::Ipv4Addr;

use alloc::vec;
use alloc::vec::Vec;

use super::{Event, IntermediateReplies, RouteState, Router, To};
use crate::time::Instant;

/// A route discovery in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    /// When the next step is due.
    pub(super) at: Instant,
    next: Step,
    /// Whether packets of this node wait for the route.
    own: bool,
    /// For a local repair, packets of other nodes wait: the hop count of the broken route.
    repairs: Option<u8>,
}

/// The next step if no reply arrives.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A request with this TTL.
    Ring(u8),
    /// A request through the whole network, after this number of earlier ones.
    Whole(u8),
    GiveUp,
}

impl Router {
    /// Starts a route discovery for packets of this node.
    pub(super) fn search(&mut self, now: Instant, destination: Ipv4Addr) {
        if let Some(search) = self.searches.get_mut(&destination) {
            search.own = true;
            return;
        }
        self.counters.searches += 1;
        let first = match self.table.get(destination) {
            // Section 6.4: start from the last known hop count plus TTL_INCREMENT.
            Some(entry) => entry.hops.saturating_add(self.config.ttl_increment),
            None => self.config.ttl_start,
        };
        let at = self.quiet_until.unwrap_or(now);
        let search = Search { at, next: Step::Ring(first.max(1)), own: true, repairs: None };
        self.searches.insert(destination, search);
        if at <= now {
            self.continue_search(now, destination);
        }
    }

    /// Starts a local repair for packets of other nodes; the route is already invalid. It sends a
    /// single request, since the destination was near.
    pub(super) fn repair(&mut self, now: Instant, destination: Ipv4Addr, source: Ipv4Addr) {
        let Some(entry) = self.table.get_mut(destination) else { return };
        entry.state = RouteState::Repairing;
        let hops = entry.hops;
        let back = self.table.get(source).map_or(0, |entry| entry.hops);
        // max(MIN_REPAIR_TTL, 0.5 #hops) + LOCAL_ADD_TTL
        let ttl = hops.max(back / 2).saturating_add(self.config.local_add_ttl);
        self.counters.repairs += 1;
        let search = Search { at: now, next: Step::Ring(ttl), own: false, repairs: Some(hops) };
        self.searches.insert(destination, search);
        self.continue_search(now, destination);
    }

    pub(super) fn is_repairing(&self, destination: Ipv4Addr) -> bool {
        self.searches.get(&destination).is_some_and(|search| search.repairs.is_some())
    }

    pub(super) fn continue_searches(&mut self, now: Instant) {
        let due: Vec<Ipv4Addr> =
            self.searches.iter().filter(|(_, search)| search.at <= now).map(|(node, _)| *node).collect();
        for destination in due {
            self.continue_search(now, destination);
        }
    }

    fn continue_search(&mut self, now: Instant, destination: Ipv4Addr) {
        // Routes learned during the silence after a reboot count from now on.
        self.fulfil(now, destination);
        let Some(search) = self.searches.get(&destination).copied() else { return };
        let config = self.config;
        if let Some(until) = self.quiet_until {
            return self.wait(destination, Search { at: until, ..search });
        }
        let step = match search.next {
            Step::Ring(ttl) if ttl >= config.net_diameter => Step::Whole(0),
            other @ (Step::Ring(_) | Step::Whole(_) | Step::GiveUp) => other,
        };
        let (ttl, patience, next) = match step {
            Step::GiveUp => return self.give_up(now, destination, search),
            Step::Ring(ttl) => {
                let wider = ttl.saturating_add(config.ttl_increment.max(1));
                let next = if search.repairs.is_some() {
                    Step::GiveUp
                } else if wider <= config.ttl_threshold {
                    Step::Ring(wider)
                } else {
                    Step::Whole(0)
                };
                (ttl, config.ring_traversal_time(ttl), next)
            }
            Step::Whole(tries) => {
                let more = tries < config.request_retries && search.repairs.is_none();
                // Section 6.3: the wait doubles each time.
                let patience = config.net_traversal_time() * (1 << u32::from(tries).min(MAX_SHIFT));
                (config.net_diameter, patience, if more { Step::Whole(tries + 1) } else { Step::GiveUp })
            }
        };
        match self.request_limit.take(now) {
            Err(at) => self.wait(destination, Search { at, next: step, ..search }),
            Ok(()) => {
                self.send_request(now, destination, ttl);
                self.wait(destination, Search { at: now + patience, next, ..search });
            }
        }
    }

    fn wait(&mut self, destination: Ipv4Addr, search: Search) {
        self.searches.insert(destination, search);
    }

    /// Sends a route request (section 6.3).
    fn send_request(&mut self, now: Instant, destination: Ipv4Addr, ttl: u8) {
        // Section 6.1: the originator increments its own number immediately before each discovery.
        // The reverse routes of earlier requests are then older.
        self.sequence = self.sequence.next();
        self.request_id = self.request_id.wrapping_add(1);
        let replies = self.config.intermediate_replies;
        let request = RouteRequest {
            join: false,
            repair: false,
            gratuitous: replies == IntermediateReplies::Gratuitous,
            destination_only: replies == IntermediateReplies::Refused,
            hop_count: 0,
            id: self.request_id,
            destination,
            destination_sequence: self.table.get(destination).and_then(|entry| entry.sequence),
            originator: self.address,
            originator_sequence: self.sequence,
        };
        self.counters.requests += 1;
        self.send(now, To::Broadcast, ttl, &Message::Request(request));
    }

    fn give_up(&mut self, now: Instant, destination: Ipv4Addr, search: Search) {
        self.searches.remove(&destination);
        if search.repairs.is_some() {
            // Section 6.12: the repair failed, so the originators have to search.
            if let Some(entry) = self.table.get_mut(destination) {
                entry.state = RouteState::Invalid;
            }
            let sequence = self.table.get(destination).and_then(|entry| entry.sequence);
            let sequence = sequence.unwrap_or_default();
            self.report(now, vec![Unreachable { destination, sequence }], None);
            if search.own {
                return self.search(now, destination);
            }
        } else if !self.config.hold_after_failure.is_zero() {
            self.held.retain(|_, until| *until > now);
            self.held.insert(destination, now + self.config.hold_after_failure);
        }
        self.events.push_back(Event::Failed { destination });
    }

    /// Completes the discovery of a destination if there is a usable route now.
    pub(super) fn fulfil(&mut self, now: Instant, destination: Ipv4Addr) {
        if !self.searches.contains_key(&destination) {
            return;
        }
        let Some(route) = self.usable(destination) else { return };
        let (hops, sequence) = (route.hops, route.sequence);
        let Some(search) = self.searches.remove(&destination) else { return };
        if let Some(before) = search.repairs {
            self.counters.repaired += 1;
            if hops > before {
                self.tell_of_detour(now, Unreachable { destination, sequence: sequence.unwrap_or_default() });
            }
        }
        self.held.remove(&destination);
        self.events.push_back(Event::Found { destination });
    }

    /// Section 6.12: the repaired route is longer, so the originator may want a new discovery.
    fn tell_of_detour(&mut self, now: Instant, longer: Unreachable) {
        let error = RouteError { no_delete: true, unreachable: vec![longer] };
        self.send_error(now, error, None);
    }
}

/// Upper limit of the exponent of the wait; larger values have no practical use.
const MAX_SHIFT: u32 = 16;
