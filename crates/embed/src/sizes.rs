//! Memory of a node: its state, and a heap that cannot run out.
//!
//! Two quantities bound the heap. [`Sizes::lasting`] bounds allocations that outlive a call.
//! [`Sizes::needs`] bounds the sum of the other allocations of one call. A call begins only if that
//! many bytes are free in one piece, so no allocation in it can fail, regardless of its placement.
//!
//! Such a piece always exists because the allocator uses first fit. A lasting block goes to the
//! lowest free place. It therefore ends no further than the sum of: all lasting blocks, earlier
//! allocations of the same call, and holes that are too small for it. [`Sizes::needs`] bytes remain
//! after that. If this argument were wrong, the node would restart and count it; tests have never
//! observed that.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use anabranch_core::set::{Effect, Gateway, Grant, Holding, MAX_NODE_HEADER, Receiver, ReceiverConfig};
use anabranch_core::time::Duration;

use crate::api::MAX_CONNECTIONS;
use crate::device;
use crate::guards::octets;

/// Entries in one node of a B-tree.
const ENTRIES: usize = 11;
/// An incomplete header, rounded up as allocators do.
const HEADER: usize = MAX_NODE_HEADER.next_multiple_of(16);
/// Size of one range of bytes.
const RANGE: usize = 16;
/// Ranges in an acknowledgement: a vector that grows to 4, 8 and 16 entries.
const ACK_RANGES: usize = (4 + 8 + 16) * RANGE;
/// An acknowledgement with 15 ranges, and its copy without excess capacity.
const ACK: usize = 2 * 272;
/// An acknowledgement without ranges, after one growth step, and its copy.
const SHORT_ACK: usize = 16 + 32 + 32;
/// Lists of streams.
const LISTS: usize = 3 * (16 + 32);
/// Upper limit of bytes copied out of the ring for one effect.
const DELIVERED: usize = 256;
/// Number of senders that may wait for a busy node.
const QUEUE: usize = 2;
/// Reserve for rounding by the allocator.
const ROUNDING: usize = 256;

/// Allowed limits of the envelope length in bytes. Envelopes of `anabranch manifest create` have
/// 270 to 400 bytes.
const ENVELOPES: RangeInclusive<u16> = 256..=1024;

/// The memory bounds of one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Size of the reorder buffer in bytes, which is announced to senders.
    pub buffer: u32,
    /// Limit of separate ranges in the buffer.
    pub pieces: u16,
    /// Limit of bytes taken per call.
    pub read: u16,
    /// Limit of simultaneous connections.
    pub connections: u8,
    /// Number of gateways in the table.
    pub gateways: u8,
    /// With encryption, the number of accepted senders.
    pub senders: Option<u8>,
    /// With a device that requires manifests, the limit of the envelope length in bytes.
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
    /// True if a node with these bounds is possible.
    pub fn are_possible(&self) -> bool {
        (256..=1 << 20).contains(&self.buffer)
            && (1..=1024).contains(&self.pieces)
            && (16..=4096).contains(&self.read)
            && (1..=MAX_CONNECTIONS).contains(&self.connections)
            && self.gateways <= 15
            && (self.senders.is_none() || cfg!(feature = "noise"))
            && self.manifest.is_none_or(|longest| cfg!(feature = "manifest") && ENVELOPES.contains(&longest))
    }

    /// Heap bytes that one call and the following effect allocate together.
    pub fn needs(&self) -> usize {
        let connections = usize::from(self.connections);
        let gateways = usize::from(self.gateways);
        let table = self.table();
        let accept = gateways * size_of::<Gateway>() + 2 * table.next_power_of_two() + table;
        let acks = ACK_RANGES + ACK + connections * SHORT_ACK + LISTS + QUEUE * Receiver::WAITING_OCTETS;
        let begin = self.arrived() + LISTS + accept;
        // A growing header, and the copy of its manifest.
        let asks = self.manifest.map_or(0, |longest| {
            self.grown() + usize::from(longest) + LISTS + QUEUE * Receiver::WAITING_OCTETS
        });
        let (record, handshake) = self.senders.map_or((0, 0), |_| (octets::RECORD, octets::HANDSHAKE));
        (self.passed() + HEADER + acks.max(begin).max(asks) + record).max(handshake)
            + self.effect()
            + ROUNDING
    }

    /// Upper limit of heap bytes that polling one effect allocates.
    pub fn effect(&self) -> usize {
        // A table or an acknowledgement with 15 ranges is copied into a record.
        let sealed = self.senders.map_or(DELIVERED, |_| (self.table() + 32).max(DELIVERED + 64));
        // A manifest is checked, and may be refused.
        sealed.max(self.manifest.map_or(0, |longest| device::octets::statement(longest.into()) + 32))
    }

    /// Length of an ACCEPT in bytes.
    fn table(&self) -> usize {
        let key = if self.senders.is_some() { 32 } else { 0 };
        9 + (24 + key) * usize::from(self.gateways)
    }

    /// Length of a header with a manifest in bytes.
    fn grown(&self) -> usize {
        self.manifest.map_or(HEADER, |longest| (MAX_NODE_HEADER + usize::from(longest)).next_multiple_of(16))
    }

    /// Heap bytes by purpose, in the order of docs/reference/embedded.md. All entries except the
    /// last two outlive calls.
    pub fn parts(&self) -> [(&'static str, usize); 11] {
        let connections = usize::from(self.connections);
        // One header may contain a manifest, and one manifest may be offered.
        let manifests = self.manifest.map_or(0, |longest| {
            device::octets::ADMISSION + usize::from(longest).next_multiple_of(16) + self.grown() - HEADER
        });
        let keys = self.senders.map(|senders| octets::lasting(self.buffer, self.connections, senders));
        // A lasting block that is allocated late in a call lies after that call's input and one
        // header. Each lasting block can leave one hole that is too small for a header.
        let blocks = connections + 4 + if self.manifest.is_some() { 3 } else { 0 };
        [
            // Rounded up as allocators do.
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

    /// Heap bytes that outlive calls.
    pub fn lasting(&self) -> usize {
        self.parts()[..9].iter().map(|(_, octets)| octets).sum()
    }

    /// Heap bytes with which no call runs out of memory.
    pub fn heap(&self) -> usize {
        self.parts().iter().map(|(_, octets)| octets).sum()
    }

    /// Upper limit of effects per call: a window and an acknowledgement for each stream, and the
    /// end of a transfer.
    pub(crate) fn effects(&self) -> usize {
        2 * usize::from(self.connections) + 4
    }

    /// Input of a call, or the content of a record, with its reference count.
    fn passed(&self) -> usize {
        let octets = self.senders.map_or(self.read.into(), |_| octets::passed(self.buffer));
        octets + 4 * size_of::<usize>()
    }

    fn arrived(&self) -> usize {
        (usize::from(self.pieces) + 2) * RANGE
    }

    /// Options of the receiver with these bounds.
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
            // Four times per buffer, so that the sender never waits for the last part of it.
            ack_every: (self.buffer / 4).min(default.ack_every),
            idle,
            manifest: self.manifest.unwrap_or(0).into(),
            manifests: 1,
            // Waiting copies would take memory for each byte, so sessions carry the file.
            copy: 0,
            ..default
        }
    }
}
