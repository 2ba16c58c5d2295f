//! Reassembly of datagrams (RFC 791 section 3.2, RFC 8200 section 4.5, RFC 5722).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;

use bytes::Bytes;

use super::parse::skip_extensions;
use super::{Fragment, Header, ParseError, Protocol};
use crate::ecn::Ecn;

/// Memory limits of a [`Reassembler`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReassemblyLimits {
    /// Bytes of fragments held. A fragment counts [`ReassemblyLimits::PIECE_COST`] more than its
    /// length, so that the limit also bounds a flood of short fragments.
    pub octets: usize,
    /// Number of incomplete datagrams, including refused datagrams that have not expired.
    pub datagrams: usize,
}

impl ReassemblyLimits {
    /// Bytes that the bookkeeping of one fragment counts.
    pub const PIECE_COST: usize = 64;
}

impl Default for ReassemblyLimits {
    /// 256 datagrams in 4 MiB, as Linux has for one network namespace (`ipfrag_high_thresh`).
    fn default() -> Self {
        Self { octets: 4 << 20, datagrams: 256 }
    }
}

/// Why a fragment, and usually its whole datagram, was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReassemblyError {
    /// The fragment overlaps another one without duplicating it, or the ends of two fragments
    /// contradict each other. The datagram is refused until it expires (RFC 5722 section 4).
    #[error("pieces of a datagram overlap")]
    Overlap,
    /// The fragment belongs to a datagram that was refused for an overlap.
    #[error("the datagram of this piece was refused before")]
    Refused,
    /// The fragment is empty, or is not the last and has a length that is not a multiple of 8
    /// bytes.
    #[error("a piece of {octets} octets cannot be followed by another")]
    Length {
        /// Length of the fragment in bytes.
        octets: usize,
    },
    /// The fragment ends past [`Header::max_datagram`], or its offset is not a multiple of 8.
    #[error("no piece can lie at octet {offset}")]
    Offset {
        /// Offset of the fragment.
        offset: u16,
    },
    /// The fragment exceeds the limits even after all other datagrams were evicted.
    #[error("the reassembly buffer is too small for this piece")]
    Full,
    /// All fragments have arrived, but the extension headers at the start of the joined payload are
    /// invalid.
    #[error("the joined datagram is not legal: {0}")]
    Datagram(ParseError),
}

/// Joins fragments into datagrams.
///
/// The reassembler has no clock. The caller passes a tag that never decreases, such as an instant,
/// with each packet. [`Reassembler::expire`] drops the datagrams that began before a given tag (RFC
/// 8200 section 4.5: 60 seconds). If a packet would exceed a limit, the oldest datagram is evicted.
#[derive(Debug)]
pub struct Reassembler {
    limits: ReassemblyLimits,
    datagrams: BTreeMap<Key, Partial>,
    /// Sum of the costs of all fragments held, in bytes.
    octets: usize,
    /// Serial number of the next datagram; orders datagrams with equal tags.
    serial: u64,
    evicted: u64,
}

/// Identifies the datagram of a fragment. The protocol is part of the key in IPv4 (RFC 791 section
/// 3.2). It is not in IPv6, where only the first fragment has the right one (RFC 8200 section 4.5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    src: IpAddr,
    dst: IpAddr,
    ident: u32,
    protocol: Option<Protocol>,
}

/// A datagram that is incomplete or was refused.
#[derive(Debug)]
struct Partial {
    /// Tag of the first fragment to arrive, then the serial number of the datagram.
    began: (u64, u64),
    /// Fragments by ascending offset, not empty, not overlapping; `None` once refused.
    pieces: Option<Vec<Piece>>,
    /// The header of the fragment at offset 0.
    first: Option<Header>,
    /// True if a fragment was CE-marked; then the whole datagram is (RFC 3168 section 5.3).
    marked: bool,
    /// Where the last fragment ends.
    end: Option<usize>,
    /// Bytes in `pieces`.
    held: usize,
}

#[derive(Debug)]
struct Piece {
    offset: usize,
    octets: Bytes,
}

impl Piece {
    fn end(&self) -> usize {
        self.offset + self.octets.len()
    }
}

/// Result of adding one fragment to its datagram.
enum Joined {
    Whole,
    Waiting,
    Duplicate,
}

impl Reassembler {
    /// Creates an empty reassembler.
    pub const fn new(limits: ReassemblyLimits) -> Self {
        Self { limits, datagrams: BTreeMap::new(), octets: 0, serial: 0, evicted: 0 }
    }

    /// Takes an arrived packet. Returns the datagram if the packet is whole or completes one: the
    /// header of its first fragment with `fragment` cleared, and its payload.
    ///
    /// Exact duplicates change nothing (RFC 8200 section 4.5). An atomic IPv6 fragment, which is
    /// the whole datagram, is not joined with other fragments (RFC 6946 section 4).
    pub fn insert(
        &mut self,
        header: &Header,
        payload: Bytes,
        tag: u64,
    ) -> Result<Option<(Header, Bytes)>, ReassemblyError> {
        let Some(fragment) = header.fragment else { return Ok(Some((*header, payload))) };
        check(header, fragment, payload.len())?;
        // An atomic fragment bypasses the table, so it cannot collide with fragments that have the
        // same identification (RFC 6946 section 4).
        if fragment.offset == 0 && !fragment.more {
            return finish(header, payload).map(Some);
        }
        let key = Key {
            src: header.src,
            dst: header.dst,
            ident: header.ident,
            protocol: header.src.is_ipv4().then_some(header.protocol),
        };
        let cost = payload.len() + ReassemblyLimits::PIECE_COST;
        self.make_room(&key, cost)?;
        let serial = &mut self.serial;
        let partial = self.datagrams.entry(key).or_insert_with(|| {
            *serial += 1;
            Partial::new((tag, *serial))
        });
        // `join` may also empty the datagram, so the cost is taken before and after.
        let counted = partial.cost();
        let joined = partial.join(header, fragment, payload);
        self.octets = self.octets - counted + partial.cost();
        match joined? {
            Joined::Waiting | Joined::Duplicate => Ok(None),
            Joined::Whole => self.take(&key),
        }
    }

    /// Drops every datagram whose first fragment arrived with a tag below `before`. Returns the
    /// number of datagrams dropped.
    pub fn expire(&mut self, before: u64) -> usize {
        let count = self.datagrams.len();
        self.datagrams.retain(|_, partial| partial.began.0 >= before);
        self.octets = self.datagrams.values().map(Partial::cost).sum();
        count - self.datagrams.len()
    }

    /// Tag of the oldest datagram.
    pub fn oldest(&self) -> Option<u64> {
        self.datagrams.values().map(|partial| partial.began.0).min()
    }

    /// Number of incomplete datagrams.
    pub fn len(&self) -> usize {
        self.datagrams.len()
    }

    /// True if no datagram is incomplete.
    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    /// Bytes counted against [`ReassemblyLimits::octets`].
    pub const fn octets(&self) -> usize {
        self.octets
    }

    /// Number of datagrams evicted so far.
    pub const fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Evicts the oldest datagrams until a fragment of `key` with this cost fits.
    fn make_room(&mut self, key: &Key, cost: usize) -> Result<(), ReassemblyError> {
        loop {
            let one_more = usize::from(!self.datagrams.contains_key(key));
            let fits = self.octets + cost <= self.limits.octets
                && self.datagrams.len() + one_more <= self.limits.datagrams;
            if fits {
                return Ok(());
            }
            // Evicting the datagram of this fragment would not help: it would remain incomplete.
            let others = self.datagrams.iter().filter(|(other, _)| *other != key);
            let Some(oldest) = others.min_by_key(|(_, partial)| partial.began).map(|(key, _)| *key) else {
                return Err(ReassemblyError::Full);
            };
            self.remove(&oldest);
            self.evicted += 1;
        }
    }

    fn remove(&mut self, key: &Key) -> Option<Partial> {
        let partial = self.datagrams.remove(key)?;
        self.octets -= partial.cost();
        Some(partial)
    }

    fn take(&mut self, key: &Key) -> Result<Option<(Header, Bytes)>, ReassemblyError> {
        let Some(partial) = self.remove(key) else { return Ok(None) };
        let Some(mut first) = partial.first else { return Ok(None) };
        if partial.marked {
            first.traffic_class = Ecn::Ce.within(first.traffic_class);
        }
        let mut octets = Vec::with_capacity(partial.held);
        for piece in partial.pieces.iter().flatten() {
            octets.extend_from_slice(&piece.octets);
        }
        finish(&first, octets.into()).map(Some)
    }
}

impl Default for Reassembler {
    fn default() -> Self {
        Self::new(ReassemblyLimits::default())
    }
}

impl Partial {
    const fn new(began: (u64, u64)) -> Self {
        Self { began, pieces: Some(Vec::new()), first: None, marked: false, end: None, held: 0 }
    }

    fn cost(&self) -> usize {
        self.held + self.pieces.as_ref().map_or(0, Vec::len) * ReassemblyLimits::PIECE_COST
    }

    /// Adds a valid fragment. An overlap empties the datagram and marks it as refused.
    fn join(
        &mut self,
        header: &Header,
        fragment: Fragment,
        octets: Bytes,
    ) -> Result<Joined, ReassemblyError> {
        let Some(pieces) = &mut self.pieces else { return Err(ReassemblyError::Refused) };
        let piece = Piece { offset: usize::from(fragment.offset), octets };
        let at = pieces.partition_point(|other| other.offset < piece.offset);
        let duplicate =
            pieces.get(at).is_some_and(|other| other.offset == piece.offset && other.octets == piece.octets);
        let last = (!fragment.more).then_some(piece.end());
        let contradiction = match self.end {
            Some(end) => piece.end() > end || last.is_some_and(|last| last != end),
            None => last.is_some_and(|last| pieces.last().is_some_and(|other| other.end() > last)),
        };
        let overlap = at > 0 && pieces[at - 1].end() > piece.offset
            || pieces.get(at).is_some_and(|other| other.offset < piece.end());
        if contradiction || overlap && !duplicate {
            // RFC 5722 section 4: discard the datagram and the fragments that arrive later. The
            // emptied entry stays until it expires, so that later fragments are recognised.
            *self = Self { pieces: None, ..Self::new(self.began) };
            return Err(ReassemblyError::Overlap);
        }
        self.end = self.end.or(last);
        if !duplicate {
            if piece.offset == 0 {
                self.first = Some(*header);
            }
            self.marked |= Ecn::of(header.traffic_class) == Ecn::Ce;
            self.held += piece.octets.len();
            pieces.insert(at, piece);
        }
        // Nothing overlaps or lies past the end, so an equal byte count means that no byte is
        // missing.
        match (duplicate, self.end == Some(self.held)) {
            (_, true) => Ok(Joined::Whole),
            (true, false) => Ok(Joined::Duplicate),
            (false, false) => Ok(Joined::Waiting),
        }
    }
}

/// Checks that a fragment can be part of some datagram.
fn check(header: &Header, fragment: Fragment, len: usize) -> Result<(), ReassemblyError> {
    let alone = fragment.offset == 0 && !fragment.more;
    if fragment.more && !len.is_multiple_of(8) || len == 0 && !alone {
        return Err(ReassemblyError::Length { octets: len });
    }
    let past_end = usize::from(fragment.offset) + len > header.max_datagram();
    if past_end || !fragment.offset.is_multiple_of(8) {
        return Err(ReassemblyError::Offset { offset: fragment.offset });
    }
    Ok(())
}

/// Returns the whole datagram with its extension headers skipped.
fn finish(first: &Header, mut payload: Bytes) -> Result<(Header, Bytes), ReassemblyError> {
    let mut whole = Header { fragment: None, ..*first };
    if first.src.is_ipv6() {
        let start = skip_extensions(&mut whole.protocol, &payload, 0).map_err(ReassemblyError::Datagram)?;
        payload = payload.slice(start..);
    }
    Ok((whole, payload))
}
