//! One subflow: a TCP connection and its state in the MPTCP connection.

use alloc::collections::VecDeque;

use super::info::{PathFacts, PathId, SubflowId};
use super::pace::Pace;
use crate::segment::{AddressId, DataSeqNumber};
use crate::tcp;
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

/// A mapping for bytes that arrive without an option of their own.
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
    /// The peer's address of the subflow.
    pub(crate) remote_address: AddressId,
    /// Whether one of both ends has declared it a backup.
    pub(crate) backup: bool,
    /// Number of time-outs already handled.
    pub(crate) timeouts: u64,
    /// When our HMAC is sent again.
    pub(crate) confirm_at: Option<Instant>,
    /// Number of repetitions.
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

    /// Whether new data may be assigned. The first subflow need not wait for the peer's
    /// confirmation: its key goes with the data.
    pub(crate) fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.stage != Stage::Gone
    }

    /// Measures the rate of the path after a segment.
    pub(crate) fn measure(&mut self, now: Instant) {
        let tcp = self.tcp.info();
        let least = tcp.min_rtt.unwrap_or(tcp.rto);
        self.pace.acknowledged(now, tcp.bytes_acked, tcp.in_flight, (least, tcp.mss.into()));
    }

    /// Stores a mapping that may apply to bytes without one.
    pub(crate) fn hear(&mut self, heard: Heard) {
        if self.heard.len() >= MAX_HEARD {
            self.heard.pop_front();
        }
        self.heard.push_back(heard);
    }

    /// Finds the data sequence number of `len` bytes from `seq` on within one mapping. Returns the
    /// number of bytes before the mapping, the data sequence number of the next byte, and the
    /// number of covered bytes.
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

/// Largest number of stored mappings: one per segment from our sender; more from a peer that maps
/// several segments at once.
const MAX_HEARD: usize = 4;
