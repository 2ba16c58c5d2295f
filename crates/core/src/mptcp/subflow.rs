//! One subflow: a TCP connection and its state in the MPTCP connection.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;

use super::info::{PathFacts, PathId, SubflowId};
use super::pace::Pace;
use super::silence::Silence;
use crate::segment::{AddressId, DataSeqNumber, DssChecksum, MpTcpRst, SeqNumber};
use crate::tcp::{self, Reassembly};
use crate::time::Instant;

/// Stage of a subflow's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// The first subflow: MP_CAPABLE was offered, and the peer's key is unknown.
    Offering,
    /// A further subflow that we open, with our nonce.
    Joining { nonce: u32 },
    /// We have sent the third segment with our HMAC, and do not know whether the peer has received
    /// it (PRE_ESTABLISHED of RFC 8684 section 3.2).
    Unconfirmed,
    /// A further subflow that the peer opens, with the expected HMAC.
    Joined { expects: [u8; 20] },
    /// The subflow carries data.
    Ready,
    /// The subflow sends its remaining data and then its FIN.
    Retiring,
    /// The subflow is closed.
    Gone,
}

/// A mapping, also for bytes that arrive without an option of their own.
#[derive(Debug)]
pub(crate) struct Heard {
    /// Relative sequence number of the first byte.
    pub(crate) seq: u32,
    pub(crate) dsn: DataSeqNumber,
    pub(crate) len: u32,
    /// What remains to be verified.
    pub(crate) check: Option<Box<Check>>,
}

/// The checksum of a mapping, and its bytes until all have arrived.
#[derive(Debug)]
pub(crate) struct Check {
    checksum: Option<u16>,
    /// Length in the option: DATA_FIN included.
    len: u16,
    /// Keyed by the offset within the mapping.
    held: Reassembly,
}

impl Check {
    pub(crate) fn new(checksum: Option<u16>, len: u16) -> Box<Self> {
        let mut held = Reassembly::default();
        // A piece may be small: all bytes of the mapping must find room.
        held.set_mss(u32::from(len));
        Box::new(Self { checksum, len, held })
    }

    /// Whether the checksum is that of `data`.
    pub(crate) fn holds(&self, dsn: DataSeqNumber, seq: u32, data: &[Bytes]) -> bool {
        let mut sum = DssChecksum::new(dsn, seq, self.len);
        data.iter().for_each(|piece| sum.add(piece));
        self.checksum.is_some_and(|checksum| sum.confirms(checksum))
    }
}

/// Why a subflow cannot place its data.
#[derive(Debug)]
pub(crate) enum Misplaced {
    /// The data of a mapping does not have its checksum.
    Damaged { dsn: DataSeqNumber, data: Vec<Bytes> },
    /// More data than fits waits for a mapping or for the rest of one (RFC 8684 section 3.3.1).
    TooMuch,
}

/// One subflow.
#[derive(Debug)]
pub(crate) struct Subflow {
    pub(crate) id: SubflowId,
    pub(crate) path: PathId,
    pub(crate) facts: PathFacts,
    pub(crate) tcp: tcp::Connection,
    pub(crate) stage: Stage,
    /// The peer's address of the subflow.
    pub(crate) remote_address: AddressId,
    /// Whether this end and the peer have declared it a backup: neither takes back what the other
    /// has said.
    pub(crate) backup_here: bool,
    pub(crate) backup_there: bool,
    /// Number of time-outs already handled.
    pub(crate) timeouts: u64,
    /// When our HMAC is sent again.
    pub(crate) confirm_at: Option<Instant>,
    /// Number of repetitions.
    pub(crate) confirm_tries: u8,
    heard: VecDeque<Heard>,
    /// Number of mappings, the last ones, that data without a mapping was not compared with.
    fresh: usize,
    /// Data without a mapping, by relative sequence number.
    unmapped: Reassembly,
    /// The reason that the peer has given for its reset.
    pub(crate) reset: Option<MpTcpRst>,
    pub(crate) pace: Pace,
    pub(crate) silence: Silence,
    pub(crate) bytes_assigned: u64,
    pub(crate) bytes_received: u64,
}

impl Subflow {
    pub(crate) fn new(id: SubflowId, path: PathId, tcp: tcp::Connection, stage: Stage) -> Self {
        Self {
            id,
            path,
            facts: PathFacts::default(),
            tcp,
            stage,
            remote_address: AddressId(0),
            backup_here: false,
            backup_there: false,
            timeouts: 0,
            confirm_at: None,
            confirm_tries: 0,
            heard: VecDeque::new(),
            fresh: 0,
            unmapped: unmapped(),
            reset: None,
            pace: Pace::default(),
            silence: Silence::default(),
            bytes_assigned: 0,
            bytes_received: 0,
        }
    }

    pub(crate) fn is_backup(&self) -> bool {
        self.backup_here || self.backup_there
    }

    /// Whether new data may be assigned. The first subflow need not wait for the peer's
    /// confirmation: its key goes with the data.
    pub(crate) fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.stage != Stage::Gone
    }

    /// Measures the rate of the path after a segment. Returns whether the segment ends a silence.
    pub(crate) fn measure(&mut self, now: Instant) -> bool {
        let tcp = self.tcp.info();
        let least = tcp.min_rtt.unwrap_or(tcp.rto);
        self.pace.acknowledged(now, tcp.bytes_acked, tcp.in_flight, (least, tcp.mss.into()));
        self.silence.received(now, &tcp)
    }

    /// Whether the subflow is open and answers.
    pub(crate) fn works(&self) -> bool {
        self.is_alive() && !self.silence.is_broken()
    }

    /// Whether a time-out has passed without an answer.
    pub(crate) fn is_condemned(&self) -> bool {
        self.silence.timeouts(&self.tcp.info()) > 0
    }

    /// Whether what is missing on the subflow is not to be waited for. The first time-out repairs
    /// it in most cases.
    pub(crate) fn is_black(&self) -> bool {
        self.silence.is_broken() || self.silence.timeouts(&self.tcp.info()) > 1
    }

    /// Whether the subflow carries new data and answers.
    pub(crate) fn answers(&self) -> bool {
        self.is_ready() && self.works()
    }

    /// Stores a mapping that may apply to bytes without one.
    pub(crate) fn hear(&mut self, heard: Heard) {
        let same = |of: &Heard| (of.seq, of.dsn, of.len) == (heard.seq, heard.dsn, heard.len);
        if self.heard.iter().rev().any(same) {
            return;
        }
        if self.heard.len() >= MAX_HEARD {
            self.heard.pop_front();
        }
        self.heard.push_back(heard);
        self.fresh = (self.fresh + 1).min(self.heard.len());
    }

    /// Whether [`Subflow::place`] may deliver something without new data.
    pub(crate) fn may_deliver(&self) -> bool {
        self.fresh > 0 && !self.unmapped.is_empty()
    }

    /// Whether a mapping covers the byte at `seq`.
    pub(crate) fn covers(&self, seq: u32) -> bool {
        self.locate(seq, 1).is_some()
    }

    /// Passes received data, and earlier data with a new mapping, with its data sequence numbers to
    /// `deliver`, as far as it is mapped and, if `verify` is set, its checksums are right. At most
    /// `most` bytes wait, and few small pieces.
    pub(crate) fn place(
        &mut self,
        (mut seq, mut payload): (u32, Bytes),
        (verify, most): (bool, u64),
        mut deliver: impl FnMut(DataSeqNumber, Bytes),
    ) -> Result<(), Misplaced> {
        let behind = |first| SeqNumber(seq).distance(first) > MAX_BEHIND;
        if !payload.is_empty() && self.unmapped.first().is_some_and(behind) {
            return Err(Misplaced::TooMuch);
        }
        while !payload.is_empty() {
            let Some((before, i, n)) = self.locate(seq, payload.len() as u32) else {
                self.unmapped.insert(SeqNumber(seq), payload);
                break;
            };
            if before > 0 {
                self.unmapped.insert(SeqNumber(seq), payload.split_to(before as usize));
                seq = seq.wrapping_add(before);
            }
            let piece = payload.split_to(n as usize);
            let damaged = self.take(i, seq, piece, verify, &mut deliver);
            seq = seq.wrapping_add(n);
            if let Some(damaged) = damaged {
                self.unmapped.insert(SeqNumber(seq), payload);
                self.fresh = self.heard.len();
                return Err(damaged);
            }
        }
        self.place_earlier(verify, deliver)?;
        if self.is_full(verify, most) { Err(Misplaced::TooMuch) } else { Ok(()) }
    }

    /// Passes on the data that waits for one of the new mappings. Other data stays where it is:
    /// with many pieces, each segment of a peer would otherwise cost as much as all of them.
    fn place_earlier(
        &mut self,
        verify: bool,
        mut deliver: impl FnMut(DataSeqNumber, Bytes),
    ) -> Result<(), Misplaced> {
        for i in (self.heard.len() - self.fresh..self.heard.len()).rev() {
            let Some(&Heard { seq, len, .. }) = self.heard.get(i) else { break };
            while let Some((SeqNumber(at), piece)) = self.unmapped.cut(SeqNumber(seq), SeqNumber(seq) + len) {
                if let Some(damaged) = self.take(i, at, piece, verify, &mut deliver) {
                    self.fresh = self.heard.len();
                    return Err(damaged);
                }
            }
        }
        self.fresh = 0;
        Ok(())
    }

    /// Whether more than `most` bytes wait for a mapping or, if `verify` is set, for the rest of
    /// one, or too many small pieces.
    fn is_full(&self, verify: bool, most: u64) -> bool {
        if self.unmapped.is_empty() && !verify {
            return false;
        }
        let held = self.heard.iter().filter_map(|heard| Some(&heard.check.as_ref()?.held));
        let (octets, pieces) = held
            .chain([&self.unmapped])
            .fold((0, 0), |(octets, pieces), data| (octets + data.octets(), pieces + data.chunks()));
        octets > most || pieces > MAX_PIECES && octets < pieces as u64 * SMALL_PIECE
    }

    /// Takes data that lies within mapping `i`.
    fn take(
        &mut self,
        i: usize,
        seq: u32,
        piece: Bytes,
        verify: bool,
        mut deliver: impl FnMut(DataSeqNumber, Bytes),
    ) -> Option<Misplaced> {
        self.bytes_received += piece.len() as u64;
        let heard = self.heard.get_mut(i)?;
        let offset = seq.wrapping_sub(heard.seq);
        let Some(check) = &mut heard.check else {
            deliver(heard.dsn + u64::from(offset), piece);
            return None;
        };
        check.held.insert(SeqNumber(offset), piece);
        if verify && check.held.octets() < u64::from(heard.len) {
            return None;
        }
        if !verify {
            heard.release(&mut deliver);
            return None;
        }
        let mut data = Vec::new();
        let mut at = SeqNumber(0);
        while let Some(piece) = check.held.pop(at) {
            at += piece.len() as u32;
            data.push(piece);
        }
        let holds = check.holds(heard.dsn, heard.seq, &data);
        heard.check = None;
        if !holds {
            return Some(Misplaced::Damaged { dsn: heard.dsn, data });
        }
        let mut dsn = heard.dsn;
        for piece in data {
            let len = piece.len() as u64;
            deliver(dsn, piece);
            dsn = dsn + len;
        }
        None
    }

    /// Passes all waiting data on, for the fallback to plain TCP: the bytes of the subflow are
    /// those of the data, which begins at `first`.
    pub(crate) fn flush(&mut self, first: DataSeqNumber, mut deliver: impl FnMut(DataSeqNumber, Bytes)) {
        self.heard.iter_mut().for_each(|heard| heard.release(&mut deliver));
        while let Some((seq, data)) = self.unmapped.pop_first() {
            deliver(first + u64::from(seq.0) - 1, data);
        }
    }

    /// Finds the first mapping in `len` bytes from `seq` on. Returns the number of bytes before it,
    /// its index, and the number of covered bytes.
    fn locate(&self, seq: u32, len: u32) -> Option<(u32, usize, u32)> {
        let newest = || self.heard.iter().enumerate().rev();
        let covering = newest().find_map(|(i, heard)| {
            let from = seq.wrapping_sub(heard.seq);
            (from < heard.len).then(|| (0, i, len.min(heard.len - from)))
        });
        covering.or_else(|| {
            let within = newest().filter_map(|(i, heard)| {
                let before = heard.seq.wrapping_sub(seq);
                (before < len).then(|| (before, i, (len - before).min(heard.len)))
            });
            within.min_by_key(|(before, ..)| *before)
        })
    }
}

/// Room for data without a mapping. Small pieces are merged, whatever their mappings will be.
fn unmapped() -> Reassembly {
    let mut data = Reassembly::default();
    data.set_mss(u32::MAX);
    data
}

impl Heard {
    /// Passes on what waits for the checksum, which does not count any more.
    fn release(&mut self, mut deliver: impl FnMut(DataSeqNumber, Bytes)) {
        let Some(mut check) = self.check.take() else { return };
        while let Some((at, piece)) = check.held.pop_first() {
            deliver(self.dsn + u64::from(at.0), piece);
        }
    }
}

/// Largest number of stored mappings: one per segment from our sender; more from a peer that maps
/// several segments at once, whose segments may be out of order.
const MAX_HEARD: usize = 64;

/// Largest number of pieces that wait while they are small on average: each costs memory and time
/// of its own. RFC 8684 section 3.3.1 lets a receiver reset a subflow whose mapping does not arrive
/// within a window of data, and discard the data. A sender repeats a mapping with the segment that
/// brought it, so pieces of data without one lie between losses of one flight of segments.
const MAX_PIECES: usize = 64;
/// Number of bytes of a piece that is not small.
const SMALL_PIECE: u64 = 256;

/// How far data may be ahead of earlier data without a mapping, in bytes: the largest window.
/// Beyond 2^31, sequence numbers have no order.
const MAX_BEHIND: i32 = 1 << 30;

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;
    use crate::tcp::Config;

    fn subflow() -> Subflow {
        let tcp = tcp::Connection::connect(Instant::ZERO, Config::default(), 1, 2, SeqNumber(0));
        Subflow::new(SubflowId(0), PathId(0), tcp, Stage::Ready)
    }

    const FIRST: DataSeqNumber = DataSeqNumber(1_000);

    fn heard(seq: u32, len: u32, checksum: Option<u16>) -> Heard {
        let check = checksum.map(|sum| Check::new(Some(sum), len as u16));
        Heard { seq, dsn: FIRST + u64::from(seq), len, check }
    }

    /// Places data from `seq` on; returns what was delivered.
    fn place(of: &mut Subflow, seq: u32, data: &'static [u8], most: u64) -> (Vec<(u64, Bytes)>, bool) {
        let mut out = Vec::new();
        let deliver = |dsn: DataSeqNumber, data| out.push((dsn.0, data));
        let placed = of.place((seq, Bytes::from_static(data)), (true, most), deliver);
        (out, placed.is_ok())
    }

    /// RFC 8684 section 3.3.1: the mapping may come later, up to a window of data.
    #[test]
    fn data_waits_for_its_mapping() {
        let mut subflow = subflow();
        assert_eq!(place(&mut subflow, 1, b"abcdef", 100), (vec![], true));
        subflow.hear(heard(3, 2, None));
        let piece = |at: u64, data: &'static [u8]| (1_000 + at, Bytes::from_static(data));
        assert_eq!(place(&mut subflow, 7, b"g", 100), (vec![piece(3, b"cd")], true));
        subflow.hear(heard(1, 2, None));
        subflow.hear(heard(5, 9, None));
        let (mut out, placed) = place(&mut subflow, 8, b"", 100);
        out.sort_by_key(|(dsn, _)| *dsn);
        assert_eq!((out, placed), (vec![piece(1, b"ab"), piece(5, b"efg")], true));
        assert!(!place(&mut subflow, 50, b"0123456789", 9).1);
    }

    #[test]
    fn data_waits_for_the_rest_of_a_mapping_with_a_checksum() {
        for (data, holds) in [(&b"cd"[..], true), (b"cx", false)] {
            let mut sum = DssChecksum::new(FIRST + 1, 1, 4);
            sum.add(b"abcd");
            let mut subflow = subflow();
            subflow.hear(heard(1, 4, Some(sum.value())));
            assert_eq!(place(&mut subflow, 3, data, 100), (vec![], true));
            let (out, placed) = place(&mut subflow, 1, b"ab", 100);
            assert_eq!(placed, holds);
            assert_eq!(out.iter().flat_map(|(_, piece)| piece.to_vec()).count(), if holds { 4 } else { 0 });
        }
    }

    #[test]
    fn a_segment_may_lie_in_several_mappings_and_between_them() {
        for order in [[1, 5], [5, 1]] {
            let mut subflow = subflow();
            order.into_iter().for_each(|seq| subflow.hear(heard(seq, 2, None)));
            let piece = |at: u64, data: &'static [u8]| (1_000 + at, Bytes::from_static(data));
            let delivered = vec![piece(1, b"ab"), piece(5, b"ef")];
            assert_eq!(place(&mut subflow, 1, b"abcdefg", 100), (delivered, true), "{order:?}");
            assert_eq!(subflow.unmapped.octets(), 3);
        }
        for order in [[1, 3], [3, 1]] {
            let mut subflow = subflow();
            order.into_iter().for_each(|seq| subflow.hear(heard(seq, 2, None)));
            let (out, _) = place(&mut subflow, 1, b"abcd", 100);
            let octets: u64 = out.iter().map(|(_, piece)| piece.len() as u64).sum();
            assert_eq!((octets, subflow.unmapped.octets()), (4, 0), "{order:?}: {out:?}");
        }
    }

    /// On the only subflow, data continues to be delivered after damage.
    #[test]
    fn damage_in_one_mapping_leaves_the_data_of_others() {
        for waits in [false, true] {
            let mut subflow = subflow();
            let mappings = [heard(5, 2, None), heard(1, 4, Some(0))];
            let result = if waits {
                assert_eq!(place(&mut subflow, 1, b"abcdef", 100), (vec![], true));
                mappings.into_iter().for_each(|mapping| subflow.hear(mapping));
                place(&mut subflow, 0, b"", 100)
            } else {
                mappings.into_iter().for_each(|mapping| subflow.hear(mapping));
                assert_eq!(place(&mut subflow, 0, b"", 100), (vec![], true));
                place(&mut subflow, 1, b"abcdef", 100)
            };
            assert_eq!(result, (vec![], false));
            let rest = vec![(1_005, Bytes::from_static(b"ef"))];
            assert_eq!(place(&mut subflow, 0, b"", 100), (rest, true), "{waits}");
        }
    }

    /// Each piece costs memory and time of its own, however small it is.
    #[test]
    fn only_some_small_pieces_wait() {
        // Without a mapping, and in a mapping whose checksum covers all of its bytes.
        for checksum in [None, Some(0)] {
            let mut subflow = subflow();
            if checksum.is_some() {
                subflow.hear(heard(1, 60_000, checksum));
            }
            let taken = (0..4_000).take_while(|i| place(&mut subflow, 1 + 2 * i, b"x", 1 << 20).1).count();
            assert_eq!(taken, MAX_PIECES, "{checksum:?}");
        }
    }

    /// Large pieces are as many as fit, and each mapping finds its own.
    #[test]
    fn thousands_of_pieces_wait_for_their_mappings() {
        const N: u32 = 3_000;
        const LEN: u32 = 600;
        let data: &'static [u8] = &[7; LEN as usize];
        let at = |i: u32| 1 + (LEN + 1) * i;
        let mut subflow = subflow();
        // Not in order: a piece finds its place among the others.
        for i in (0..N).step_by(2).chain((1..N).step_by(2)) {
            assert_eq!(place(&mut subflow, at(i), data, 4 << 20), (vec![], true));
        }
        for i in (0..N).rev().map(|i| (i * 7) % N) {
            subflow.hear(heard(at(i), LEN, None));
            let (out, placed) = place(&mut subflow, 0, b"", 4 << 20);
            assert!(placed);
            let octets: usize = out.iter().map(|(_, piece)| piece.len()).sum();
            assert_eq!((out[0].0, octets), (1_000 + u64::from(at(i)), LEN as usize));
        }
        assert!(subflow.unmapped.is_empty());
    }

    /// Numbers further apart than half of all numbers have no order.
    #[test]
    fn data_whose_mapping_never_comes_does_not_wait_until_numbers_repeat() {
        let mut subflow = subflow();
        assert!(place(&mut subflow, 1, b"a", 1 << 20).1);
        for step in 1_u32..9 {
            let seq = 1 + step * (1 << 28);
            subflow.hear(heard(seq, 1, None));
            let (out, placed) = place(&mut subflow, seq, b"b", 1 << 20);
            if !placed {
                assert!(step > 4, "{step}");
                return;
            }
            assert_eq!(out.len(), 1);
        }
        panic!("a byte waits for its mapping after 2 GiB");
    }

    const SPACE: u32 = 100;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Data is delivered as soon as it and its mapping are there, in whatever order they came
        /// and however they are cut; with checksums once all data of its mapping is there.
        #[test]
        fn data_and_mappings_come_in_any_order(
            verify: bool,
            lengths in prop::collection::vec(1..30_u32, 20),
            ops in prop::collection::vec((0..SPACE, 1..30_u32, prop::bool::weighted(0.3)), 1..80),
        ) {
            let octets: Vec<u8> = (0..SPACE as u8).collect();
            // Position and length of each mapping, until all bytes have one.
            let mut mappings = Vec::new();
            let mut end = 0;
            for len in lengths {
                let len = len.min(SPACE - end);
                mappings.extend((len > 0).then_some((end, len)));
                end += len;
            }
            let dsn = |at: u32| 1_000 + u64::from(at);
            let mut subflow = subflow();
            let (mut has, mut heard) = ([false; SPACE as usize], vec![false; mappings.len()]);
            let mut delivered = [false; SPACE as usize];
            for (at, n, maps) in ops {
                let (mut seq, mut payload) = (0, Bytes::new());
                if maps {
                    let i = at as usize % mappings.len();
                    let (from, len) = mappings[i];
                    let mut sum = DssChecksum::new(DataSeqNumber(dsn(from)), from, len as u16);
                    sum.add(&octets[from as usize..(from + len) as usize]);
                    let check = verify.then(|| Check::new(Some(sum.value()), len as u16));
                    if !core::mem::replace(&mut heard[i], true) {
                        subflow.hear(Heard { seq: from, dsn: DataSeqNumber(dsn(from)), len, check });
                    }
                } else {
                    let range = at as usize..(at + n).min(SPACE) as usize;
                    has[range.clone()].fill(true);
                    (seq, payload) = (at, Bytes::copy_from_slice(&octets[range]));
                }
                let deliver = |number: DataSeqNumber, data: Bytes| {
                    for (i, octet) in data.iter().enumerate() {
                        let place = (number.0 - 1_000) as usize + i;
                        assert_eq!(usize::from(*octet), place);
                        delivered[place] = true;
                    }
                };
                prop_assert!(subflow.place((seq, payload), (verify, 1 << 20), deliver).is_ok());
                let mut expected = [false; SPACE as usize];
                for ((from, len), _) in mappings.iter().zip(&heard).filter(|(_, heard)| **heard) {
                    let range = *from as usize..(from + len) as usize;
                    if !verify || !has[range.clone()].contains(&false) {
                        expected[range.clone()].copy_from_slice(&has[range]);
                    }
                }
                prop_assert_eq!(delivered, expected);
            }
        }
    }
}
