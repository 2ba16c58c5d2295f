//! The route table (RFC 3561 section 6.2), and why the routes are free of loops.
//!
//! The *quality* of a node for a destination is its sequence number, minus one while its route is
//! invalid. Along the next hops of valid routes the quality never decreases, and where it stays
//! equal, the hop count decreases. Therefore no path leads back to a node. Every change of an entry
//! preserves this invariant:
//!
//! * New information is accepted only if it is newer, or equally new and shorter, or equally new
//!   while the route is invalid.
//! * A route that breaks or expires gets the next sequence number, so its quality stays equal.
//! * A message from a neighbour makes the route to it valid and undoes that increment. The quality
//!   stays equal again, and a neighbour that appears and disappears does not push the number ahead
//!   of the destination's own.
//! * An entry is deleted only after it was invalid for DELETE_PERIOD. By then all other nodes have
//!   dropped their routes through this node.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use super::SequenceNumber;
use crate::time::{Duration, Instant};

/// The route to one destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The destination's sequence number, if one is known.
    pub sequence: Option<SequenceNumber>,
    /// Whether packets may use the route.
    pub state: RouteState,
    /// Hop count to the destination, at least 1; the last known value if the route is invalid.
    pub hops: u8,
    /// The neighbour to which packets are sent.
    pub next_hop: Ipv4Addr,
    /// When a valid route expires, or when an invalid route is deleted.
    pub expires: Instant,
    /// Neighbours that may send packets over this route, in ascending order. They receive a route
    /// error when it ends.
    pub precursors: Vec<Ipv4Addr>,
}

/// Whether a route can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteState {
    /// The route can be used.
    Valid,
    /// The route cannot be used; the entry is kept until it expires.
    Invalid,
    /// The route cannot be used; this node searches for another path (section 6.12).
    Repairing,
}

impl Entry {
    /// Whether packets may use the route.
    pub fn is_valid(&self) -> bool {
        self.state == RouteState::Valid
    }

    /// Adds a neighbour that may send packets over this route.
    pub(super) fn add_precursor(&mut self, neighbour: Ipv4Addr) {
        if let Err(at) = self.precursors.binary_search(&neighbour) {
            self.precursors.insert(at, neighbour);
        }
    }

    fn invalidate(&mut self, sequence: Option<SequenceNumber>, forget_at: Instant) {
        self.sequence = sequence;
        self.state = RouteState::Invalid;
        self.expires = forget_at;
    }
}

/// The route information in a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct News {
    pub(super) sequence: SequenceNumber,
    /// Hop count from this node.
    pub(super) hops: u8,
    /// The neighbour that sent the message.
    pub(super) next_hop: Ipv4Addr,
}

/// Result of learning a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Learned {
    /// The route was created or changed.
    Updated,
    /// The entry already had the same information.
    Same,
    /// The entry has better information.
    Older,
    /// The table is full.
    Full,
}

/// All entries, by destination.
#[derive(Clone, Debug)]
pub(super) struct Table {
    entries: BTreeMap<Ipv4Addr, Entry>,
    room: usize,
    /// No entry expires before this time.
    due: Instant,
}

impl Table {
    pub(super) fn new(room: usize) -> Self {
        Self { entries: BTreeMap::new(), room, due: Instant::FAR_FUTURE }
    }

    pub(super) fn get(&self, destination: Ipv4Addr) -> Option<&Entry> {
        self.entries.get(&destination)
    }

    pub(super) fn get_mut(&mut self, destination: Ipv4Addr) -> Option<&mut Entry> {
        self.entries.get_mut(&destination)
    }

    pub(super) fn valid(&self, destination: Ipv4Addr) -> Option<&Entry> {
        self.get(destination).filter(|entry| entry.is_valid())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Ipv4Addr, &Entry)> {
        self.entries.iter().map(|(destination, entry)| (*destination, entry))
    }

    /// Returns when [`Table::expire`] may have work to do. The time may be early, since the
    /// lifetime of routes in use is extended.
    pub(super) fn due(&self) -> Option<Instant> {
        (!self.entries.is_empty()).then_some(self.due)
    }

    /// Ends expired valid routes and deletes expired invalid ones, except entries for which `kept`
    /// returns a later time.
    pub(super) fn expire(
        &mut self,
        now: Instant,
        delete_period: Duration,
        kept: impl Fn(Ipv4Addr) -> Option<Instant>,
    ) {
        if now < self.due {
            return;
        }
        let mut due = Instant::FAR_FUTURE;
        self.entries.retain(|destination, entry| {
            if entry.expires <= now {
                match (entry.state, kept(*destination)) {
                    (RouteState::Valid, _) => {
                        let ended = entry.sequence.map(SequenceNumber::next);
                        entry.invalidate(ended, entry.expires + delete_period);
                        // After a long gap between two calls the period would already be over; the
                        // entry gets a full DELETE_PERIOD from now.
                        if entry.expires <= now {
                            entry.expires = now + delete_period;
                        }
                    }
                    (RouteState::Invalid | RouteState::Repairing, Some(until)) => {
                        entry.expires = until.max(now + Duration::from_nanos(1));
                    }
                    (RouteState::Invalid | RouteState::Repairing, None) => return false,
                }
            }
            due = due.min(entry.expires);
            true
        });
        self.due = due;
    }

    /// Applies the route information of a message by the rules of section 6.7, also for section
    /// 6.5.
    pub(super) fn learn(&mut self, destination: Ipv4Addr, news: News, expires: Instant) -> Learned {
        self.due = self.due.min(expires);
        let Some(entry) = self.entries.get_mut(&destination) else {
            return self.insert(destination, Some(news.sequence), news.hops, news.next_hop, expires);
        };
        let counts = match entry.sequence {
            None => true,
            Some(known) if known == news.sequence => !entry.is_valid() || news.hops < entry.hops,
            Some(known) => news.sequence.is_newer_than(known),
        };
        if counts {
            entry.sequence = Some(news.sequence);
            entry.state = RouteState::Valid;
            entry.hops = news.hops;
            entry.next_hop = news.next_hop;
            entry.expires = expires;
            return Learned::Updated;
        }
        let same = entry.is_valid()
            && entry.sequence == Some(news.sequence)
            && (entry.hops, entry.next_hop) == (news.hops, news.next_hop);
        if same { Learned::Same } else { Learned::Older }
    }

    /// Records a message from a neighbour (section 6.2): there is a route to it, with unknown
    /// sequence number.
    pub(super) fn hear(&mut self, neighbour: Ipv4Addr, expires: Instant) -> Learned {
        self.due = self.due.min(expires);
        let Some(entry) = self.entries.get_mut(&neighbour) else {
            return self.insert(neighbour, None, 1, neighbour, expires);
        };
        if entry.is_valid() {
            entry.expires = entry.expires.max(expires);
        } else {
            // The last invalidation incremented the number; undo it, see the module's description.
            entry.sequence = entry.sequence.map(SequenceNumber::previous);
            entry.expires = expires;
        }
        entry.state = RouteState::Valid;
        entry.hops = 1;
        entry.next_hop = neighbour;
        Learned::Updated
    }

    fn insert(
        &mut self,
        destination: Ipv4Addr,
        sequence: Option<SequenceNumber>,
        hops: u8,
        next_hop: Ipv4Addr,
        expires: Instant,
    ) -> Learned {
        if self.entries.len() >= self.room {
            return Learned::Full;
        }
        let state = RouteState::Valid;
        let precursors = Vec::new();
        self.entries.insert(destination, Entry { sequence, state, hops, next_hop, expires, precursors });
        Learned::Updated
    }

    /// Extends a valid route to at least `until`, if it leads through `next_hop`.
    pub(super) fn extend(&mut self, destination: Ipv4Addr, next_hop: Ipv4Addr, until: Instant) {
        if let Some(entry) = self.entries.get_mut(&destination)
            && entry.is_valid()
            && entry.next_hop == next_hop
        {
            entry.expires = entry.expires.max(until);
        }
    }

    /// Keeps an invalid entry until at least `until`, because other nodes still try to use it.
    pub(super) fn remember(&mut self, destination: Ipv4Addr, until: Instant) {
        if let Some(entry) = self.entries.get_mut(&destination)
            && !entry.is_valid()
        {
            entry.expires = entry.expires.max(until);
        }
    }

    /// Ends a route and returns its new sequence number. `said` is the number in a route error,
    /// which is used if it is newer.
    pub(super) fn end(
        &mut self,
        destination: Ipv4Addr,
        said: Option<SequenceNumber>,
        forget_at: Instant,
    ) -> Option<SequenceNumber> {
        self.due = self.due.min(forget_at);
        let entry = self.entries.get_mut(&destination)?;
        let ended = entry.sequence.map(SequenceNumber::next);
        let sequence = match (ended, said) {
            (Some(ended), Some(said)) => Some(ended.newer(said)),
            (only, None) | (None, only) => only,
        };
        entry.invalidate(sequence, forget_at);
        sequence
    }

    /// The valid routes through a neighbour, including the route to it.
    pub(super) fn through(&self, neighbour: Ipv4Addr) -> Vec<Ipv4Addr> {
        let uses = |(destination, entry): (Ipv4Addr, &Entry)| {
            (entry.is_valid() && entry.next_hop == neighbour).then_some(destination)
        };
        self.iter().filter_map(uses).collect()
    }
}
