//! How much memory a node takes: its state, and a heap that does not run out.
//!
//! What lives on the heap from one call to the next is bounded by the configuration:
//! [`Sizes::lasting`]. What one call allocates beside that, all of it together, is bounded too:
//! [`Sizes::needs`]; and a call begins only where so much is free in one piece, so that no
//! allocation within it can fail, wherever the allocator puts it.
//!
//! That such a piece is always there follows from first fit: what lasts is put at the lowest place
//! that is free, so it ends up no further than what lasts, what the same call had allocated before,
//! and holes too small for it; and behind that [`Sizes::needs`] are left. If this were wrong, the
//! node would begin anew, and count it: tests have never seen it.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use anabranch_core::set::{Effect, Gateway, Grant, Holding, MAX_NODE_HEADER, Receiver, ReceiverConfig};
use anabranch_core::time::Duration;

use crate::api::MAX_CONNECTIONS;
use crate::device;
use crate::guards::octets;

/// Entries of a B-tree's node.
const ENTRIES: usize = 11;
/// A header that is not all there, as allocators round it.
const HEADER: usize = MAX_NODE_HEADER.next_multiple_of(16);
/// One range of bytes.
const RANGE: usize = 16;
/// Ranges in an acknowledgement: a vector that grows to 4, to 8, to 16.
const ACK_RANGES: usize = (4 + 8 + 16) * RANGE;
/// An acknowledgement with 15 ranges, and its copy without what was too much.
const ACK: usize = 2 * 272;
/// An acknowledgement without ranges, that has grown once, and its copy.
const SHORT_ACK: usize = 16 + 32 + 32;
/// Lists of streams.
const LISTS: usize = 3 * (16 + 32);
/// What is copied out of the ring for one effect.
const DELIVERED: usize = 256;
/// Senders that may wait for a busy node.
const QUEUE: usize = 2;
/// Whatever an allocator rounds up.
const ROUNDING: usize = 256;

/// Limits that a node may have for envelopes, in bytes. Those of `anabranch manifest create` have
/// 270 to 400.
const ENVELOPES: RangeInclusive<u16> = 256..=1024;

/// The bounds of one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Bytes that wait out of order, at most; senders are told.
    pub buffer: u32,
    /// Separate pieces of them, at most.
    pub pieces: u16,
    /// Bytes that are taken at once, at most.
    pub read: u16,
    /// Connections at once, at most.
    pub connections: u8,
    /// Gateways in the table.
    pub gateways: u8,
    /// With encryption, the number of senders that are known by their keys.
    pub senders: Option<u8>,
    /// With a device that takes files by manifests, the longest envelope, in bytes.
    pub manifest: Option<u16>,
}

impl Default for Sizes {
    /// Three sessions, and a fourth connection for requests.
    fn default() -> Self {
        Self {
            buffer: 4096,
            pieces: 32,
            read: 512,
            connections: 4,
            gateways: 3,
            senders: None,
            manifest: None,
        }
    }
}

impl Sizes {
    /// Whether a node can have these.
    pub fn are_possible(&self) -> bool {
        (256..=1 << 20).contains(&self.buffer)
            && (1..=1024).contains(&self.pieces)
            && (16..=4096).contains(&self.read)
            && (1..=MAX_CONNECTIONS).contains(&self.connections)
            && self.gateways <= 15
            && (self.senders.is_none() || cfg!(feature = "noise"))
            && self.manifest.is_none_or(|longest| cfg!(feature = "manifest") && ENVELOPES.contains(&longest))
    }

    /// Bytes of the heap that one call takes, and then one effect: all that they allocate
    /// together.
    pub fn needs(&self) -> usize {
        let connections = usize::from(self.connections);
        let gateways = usize::from(self.gateways);
        let table = self.table();
        let accept = gateways * size_of::<Gateway>() + 2 * table.next_power_of_two() + table;
        let acks = ACK_RANGES + ACK + connections * SHORT_ACK + LISTS + QUEUE * Receiver::WAITING_OCTETS;
        let begin = self.arrived() + LISTS + accept;
        // A header that grows, and the copy of the manifest in it.
        let asks = self.manifest.map_or(0, |longest| {
            self.grown() + usize::from(longest) + LISTS + QUEUE * Receiver::WAITING_OCTETS
        });
        let (record, handshake) = self.senders.map_or((0, 0), |_| (octets::RECORD, octets::HANDSHAKE));
        (self.passed() + HEADER + acks.max(begin).max(asks) + record).max(handshake)
            + self.effect()
            + ROUNDING
    }

    /// Bytes of the heap that an effect takes when it is polled, at most.
    pub fn effect(&self) -> usize {
        // A table or an acknowledgement with 15 ranges is copied into a record.
        let sealed = self.senders.map_or(DELIVERED, |_| (self.table() + 32).max(DELIVERED + 64));
        // A manifest is checked, and may be refused.
        sealed.max(self.manifest.map_or(0, |longest| device::octets::statement(longest.into()) + 32))
    }

    /// Bytes of an ACCEPT.
    fn table(&self) -> usize {
        let key = if self.senders.is_some() { 32 } else { 0 };
        9 + (24 + key) * usize::from(self.gateways)
    }

    /// Bytes of a header with a manifest.
    fn grown(&self) -> usize {
        self.manifest.map_or(HEADER, |longest| (MAX_NODE_HEADER + usize::from(longest)).next_multiple_of(16))
    }

    /// Bytes of the heap, by what they are for, in the order of docs/reference/embedded.md. Those
    /// before the last two last from call to call.
    pub fn parts(&self) -> [(&'static str, usize); 11] {
        let connections = usize::from(self.connections);
        // One header may have a manifest in it, and one manifest is offered.
        let manifests = self.manifest.map_or(0, |longest| {
            device::octets::ADMISSION + usize::from(longest).next_multiple_of(16) + self.grown() - HEADER
        });
        let keys = self.senders.map(|senders| octets::lasting(self.buffer, self.connections, senders));
        // Something that lasts and is allocated late in a call lies behind what was passed to it
        // and a header; and holes that are too small for a header are as many as what lasts.
        let blocks = connections + 4 + if self.manifest.is_some() { 3 } else { 0 };
        [
            // As allocators round it.
            ("buffer", (self.buffer as usize).next_multiple_of(16)),
            ("pieces", self.arrived()),
            ("connections, up to 8", ENTRIES * Receiver::STREAM_OCTETS + 2 * size_of::<usize>()),
            ("effects", self.effects().next_power_of_two() * size_of::<Effect>()),
            ("headers", connections * HEADER),
            ("table of gateways", usize::from(self.gateways) * size_of::<Gateway>()),
            ("senders that wait", QUEUE * Receiver::WAITING_OCTETS),
            ("manifests", manifests),
            ("keys", keys.unwrap_or(0)),
            ("one call", self.needs()),
            ("one piece", self.passed() + HEADER + blocks * 16),
        ]
    }

    /// Bytes of the heap that last from call to call.
    pub fn lasting(&self) -> usize {
        self.parts()[..9].iter().map(|(_, octets)| octets).sum()
    }

    /// Bytes of heap with which no call runs out.
    pub fn heap(&self) -> usize {
        self.parts().iter().map(|(_, octets)| octets).sum()
    }

    /// Effects of one call, at most: a window and an acknowledgement for each stream, and what ends
    /// a transfer.
    pub(crate) fn effects(&self) -> usize {
        2 * usize::from(self.connections) + 4
    }

    /// What came, or what was in a record, and what shares it.
    fn passed(&self) -> usize {
        let octets = self.senders.map_or(self.read.into(), |_| octets::passed(self.buffer));
        octets + 4 * size_of::<usize>()
    }

    fn arrived(&self) -> usize {
        (usize::from(self.pieces) + 2) * RANGE
    }

    /// The receiver with these bounds.
    pub(crate) fn receiver(&self, idle: Duration, gateways: Vec<Gateway>) -> ReceiverConfig {
        let default = ReceiverConfig::default();
        ReceiverConfig {
            buffer: self.buffer,
            first_window: default.first_window.min(self.buffer),
            holding: Holding::Ring,
            grant: Grant::Ask,
            pieces: usize::from(self.pieces),
            gateways,
            queue: QUEUE,
            // Four times in a buffer, so that its sender never waits for the last of it.
            ack_every: (self.buffer / 4).min(default.ack_every),
            idle,
            manifest: self.manifest.unwrap_or(0).into(),
            manifests: 1,
            // A copy that waits for the owner would take memory for each byte: sessions bring the
            // file.
            copy: 0,
            ..default
        }
    }
}
