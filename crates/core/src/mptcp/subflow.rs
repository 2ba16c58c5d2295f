//! One subflow: a TCP connection and what the multipath connection knows of it.

use alloc::collections::VecDeque;

use super::info::{PathFacts, PathId, SubflowId};
use super::pace::Pace;
use crate::segment::{AddressId, DataSeqNumber};
use crate::tcp;
use crate::time::Instant;

/// How far a subflow is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// The first one: MP_CAPABLE was offered, the peer's key is not known.
    Offering,
    /// A further one that we open, with our nonce.
    Joining { nonce: u32 },
    /// We have answered the third segment's HMAC: whether the peer has heard our proof is not known
    /// (PRE_ESTABLISHED of RFC 8684 section 3.2).
    Unconfirmed,
    /// A further one that the peer opens: what its HMAC must be.
    Joined { expects: [u8; 20] },
    /// It carries data.
    Ready,
    /// It carries what it has, and then its FIN.
    Retiring,
    /// It is over.
    Gone,
}

/// Where bytes without an option of their own belong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    /// Relative sequence number of the first byte.
    pub(crate) seq: u32,
    pub(crate) dsn: DataSeqNumber,
    pub(crate) len: u32,
}

/// One subflow.
#[derive(Debug)]
pub(crate) struct Subflow {
    pub(crate) id: SubflowId,
    pub(crate) path: PathId,
    pub(crate) facts: PathFacts,
    pub(crate) tcp: tcp::Connection,
    pub(crate) stage: Stage,
    /// The peer's address that it leads to.
    pub(crate) remote_address: AddressId,
    /// One of both wants it as a backup.
    pub(crate) backup: bool,
    /// Time-outs that were seen to.
    pub(crate) timeouts: u64,
    /// When our proof is repeated.
    pub(crate) confirm_at: Option<Instant>,
    /// How often it was repeated.
    pub(crate) confirm_tries: u8,
    pub(crate) heard: VecDeque<Heard>,
    pub(crate) pace: Pace,
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
            backup: false,
            timeouts: 0,
            confirm_at: None,
            confirm_tries: 0,
            heard: VecDeque::new(),
            pace: Pace::default(),
            bytes_assigned: 0,
            bytes_received: 0,
        }
    }

    /// New data may be put on it. The first one need not wait for the peer to confirm: its key goes
    /// with the data.
    pub(crate) fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.stage != Stage::Gone
    }

    /// After a segment: how fast the path is.
    pub(crate) fn measure(&mut self, now: Instant) {
        let tcp = self.tcp.info();
        let least = tcp.min_rtt.unwrap_or(tcp.rto);
        self.pace.acknowledged(now, tcp.bytes_acked, tcp.in_flight, (least, tcp.mss.into()));
    }

    /// A mapping that may hold for bytes that come without one.
    pub(crate) fn hear(&mut self, heard: Heard) {
        if self.heard.len() >= MAX_HEARD {
            self.heard.pop_front();
        }
        self.heard.push_back(heard);
    }

    /// Where `len` bytes from `seq` on belong, as far as one mapping tells: how many bytes lie
    /// before it, the data sequence number of the next, and how many it covers.
    pub(crate) fn locate(&self, seq: u32, len: u32) -> Option<(u32, DataSeqNumber, u32)> {
        self.heard.iter().rev().find_map(|heard| {
            let from = seq.wrapping_sub(heard.seq) as i32;
            if from >= 0 && (from as u32) < heard.len {
                let covered = len.min(heard.len - from as u32);
                return Some((0, heard.dsn + from as u64, covered));
            }
            // The mapping begins within the segment.
            let before = heard.seq.wrapping_sub(seq);
            (from < 0 && before < len).then(|| (before, heard.dsn, (len - before).min(heard.len)))
        })
    }
}

/// Mappings that are remembered: one segment's each from us, more from a peer that maps several at
/// once.
const MAX_HEARD: usize = 4;
