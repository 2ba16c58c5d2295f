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
    /// Data without a mapping, by relative sequence number.
    unmapped: Reassembly,
    /// Number of bytes that wait for a mapping, or for the rest of one with a checksum.
    waiting: u64,
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
            unmapped: unmapped(),
            waiting: 0,
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
    }

    /// Whether a mapping covers the byte at `seq`.
    pub(crate) fn covers(&self, seq: u32) -> bool {
        self.locate(seq, 1).is_some()
    }

    /// Passes received data with its data sequence numbers to `deliver`, as far as it is mapped
    /// and, if `verify` is set, its checksums are right. At most `most` bytes wait.
    pub(crate) fn place(
        &mut self,
        (seq, payload): (u32, Bytes),
        (verify, most): (bool, u64),
        mut deliver: impl FnMut(DataSeqNumber, Bytes),
    ) -> Result<(), Misplaced> {
        let mut earlier = core::mem::replace(&mut self.unmapped, unmapped());
        let mut next = Some((seq, payload));
        while let Some((mut seq, mut payload)) = next {
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
                    while let Some((seq, data)) = earlier.pop_first() {
                        self.unmapped.insert(seq, data);
                    }
                    return Err(damaged);
                }
            }
            next = earlier.pop_first().map(|(seq, data)| (seq.0, data));
        }
        let held = self.heard.iter().filter_map(|heard| Some(heard.check.as_ref()?.held.octets()));
        self.waiting =
            if self.unmapped.is_empty() && !verify { 0 } else { held.sum::<u64>() + self.unmapped.octets() };
        if self.waiting > most { Err(Misplaced::TooMuch) } else { Ok(()) }
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

    /// Finds the mapping of `len` bytes from `seq` on. Returns the number of bytes before it, its
    /// index, and the number of covered bytes.
    fn locate(&self, seq: u32, len: u32) -> Option<(u32, usize, u32)> {
        self.heard.iter().enumerate().rev().find_map(|(i, heard)| {
            let from = seq.wrapping_sub(heard.seq) as i32;
            if from >= 0 && (from as u32) < heard.len {
                return Some((0, i, len.min(heard.len - from as u32)));
            }
            // The mapping begins within the segment.
            let before = heard.seq.wrapping_sub(seq);
            (from < 0 && before < len).then(|| (before, i, (len - before).min(heard.len)))
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

#[cfg(test)]
mod tests {
    use alloc::vec;

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
}
