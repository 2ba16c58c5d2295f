//! The route table (RFC 3561 section 6.2), and why there are no loops.
//!
//! A node's *quality* for a destination is its sequence number, less one while the route is not
//! good. Along the next hops of good routes quality never falls, and where it stays the hop count
//! does: so no way leads back. All that changes an entry keeps to that:
//!
//! * News counts only if it is newer, or as new and shorter, or as new where the route is not good.
//! * A route that ends, by a break or by its time, gets the next sequence number: its quality
//!   stays.
//! * Hearing a neighbour makes a good route to it, and takes that step of the number back: the
//!   quality stays again, and a neighbour that comes and goes does not drive the number ahead of
//!   the destination's own.
//! * What is forgotten was not good for DELETE_PERIOD, in which everybody else has given up the way
//!   through here.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use super::SequenceNumber;
use crate::time::{Duration, Instant};

/// What is known of one destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The destination's sequence number, if one is known.
    pub sequence: Option<SequenceNumber>,
    /// Whether packets may follow it.
    pub state: RouteState,
    /// Hops to the destination, at least 1; the last that were known if the route is not good.
    pub hops: u8,
    /// The neighbour that packets go to.
    pub next_hop: Ipv4Addr,
    /// When a good route ends, or one that is not good is forgotten.
    pub expires: Instant,
    /// Neighbours that may send packets this way, in order: who has to hear of its end.
    pub precursors: Vec<Ipv4Addr>,
}

/// Whether a route can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteState {
    /// It can.
    Valid,
    /// It cannot; what is known is kept for a while.
    Invalid,
    /// It cannot, and this node looks for another way (section 6.12).
    Repairing,
}

impl Entry {
    /// Packets may follow it.
    pub fn is_valid(&self) -> bool {
        self.state == RouteState::Valid
    }

    /// One more neighbour may send packets this way.
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

/// What a message says of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct News {
    pub(super) sequence: SequenceNumber,
    /// From here.
    pub(super) hops: u8,
    /// Who said it.
    pub(super) next_hop: Ipv4Addr,
}

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Learned {
    /// The route was made or changed.
    Updated,
    /// It says what is known.
    Same,
    /// What is known is better.
    Older,
    /// There is no room.
    Full,
}

/// All entries, by destination.
#[derive(Clone, Debug)]
pub(super) struct Table {
    entries: BTreeMap<Ipv4Addr, Entry>,
    room: usize,
    /// No entry's time is over before.
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

    /// When [`Table::expire`] may have something to do; may be early, since routes in use live
    /// longer than was said.
    pub(super) fn due(&self) -> Option<Instant> {
        (!self.entries.is_empty()).then_some(self.due)
    }

    /// Ends routes whose time is over, and forgets those that have ended for long, except where
    /// `kept` says no.
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

    /// Section 6.7 says which news counts; section 6.5 is read the same way.
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

    /// Something came from a neighbour (section 6.2): there is a route to it, whose sequence number
    /// the message does not tell.
    pub(super) fn hear(&mut self, neighbour: Ipv4Addr, expires: Instant) -> Learned {
        self.due = self.due.min(expires);
        let Some(entry) = self.entries.get_mut(&neighbour) else {
            return self.insert(neighbour, None, 1, neighbour, expires);
        };
        if entry.is_valid() {
            entry.expires = entry.expires.max(expires);
        } else {
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

    /// A good route lives until then at least, if it is the one through `next_hop`.
    pub(super) fn extend(&mut self, destination: Ipv4Addr, next_hop: Ipv4Addr, until: Instant) {
        if let Some(entry) = self.entries.get_mut(&destination)
            && entry.is_valid()
            && entry.next_hop == next_hop
        {
            entry.expires = entry.expires.max(until);
        }
    }

    /// A route that is not good is remembered until then at least: others still try to use it.
    pub(super) fn remember(&mut self, destination: Ipv4Addr, until: Instant) {
        if let Some(entry) = self.entries.get_mut(&destination)
            && !entry.is_valid()
        {
            entry.expires = entry.expires.max(until);
        }
    }

    /// The route ends; `said` is the sequence number that somebody else has given it since, which
    /// counts if it is newer. Returns the number that it has now.
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

    /// The good routes through a neighbour, it included.
    pub(super) fn through(&self, neighbour: Ipv4Addr) -> Vec<Ipv4Addr> {
        let uses = |(destination, entry): (Ipv4Addr, &Entry)| {
            (entry.is_valid() && entry.next_hop == neighbour).then_some(destination)
        };
        self.iter().filter_map(uses).collect()
    }
}
