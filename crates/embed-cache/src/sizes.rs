//! Memory of a cache: its state, and a heap that cannot run out.
//!
//! All memory but that of payloads is allocated at the start ([`Sizes::lasting`]). A payload takes
//! one block of the longest payload's size and one block for its reference count. Every cached
//! segment has such a pair, and the segment that a call handles has one more. The blocks of a kind
//! are equal, so they cannot fragment.

use anabranch_core::dtc::Node;
use anabranch_embed_heap::{Blocks, lasting};

/// The memory bounds of one cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Limit of the payload of a cached segment in bytes.
    pub segment: u16,
    /// Number of segments that can be cached.
    pub segments: u8,
    /// Number of connections with state.
    pub connections: u8,
}

impl Default for Sizes {
    /// One segment of 128 bytes as in the paper (section III), and one connection with state.
    fn default() -> Self {
        Self { segment: 128, segments: 1, connections: 1 }
    }
}

impl Sizes {
    /// True if a cache with these bounds is possible.
    pub fn are_possible(&self) -> bool {
        (16..=1500).contains(&self.segment)
            && (1..=Node::ALLOCATED_SEGMENTS).contains(&usize::from(self.segments))
            && (1..=Node::ALLOCATED_CONNECTIONS).contains(&usize::from(self.connections))
    }

    /// The blocks for payloads and their reference counts.
    pub fn blocks(&self) -> [Blocks; 3] {
        let count = usize::from(self.segments) + 1;
        [Blocks::references(count), Blocks::octets(self.segment.into(), count), Blocks::NONE]
    }

    /// Heap bytes by purpose, in the order of docs/reference/embedded-cache.md.
    pub fn parts(&self) -> [(&'static str, usize); 3] {
        let (connections, segments) = (usize::from(self.connections), usize::from(self.segments));
        [
            ("connections", lasting(connections * Node::CONNECTION_MEMORY)),
            ("segments", Node::SEGMENT_MEMORY.map(|octets| lasting(segments * octets)).into_iter().sum()),
            ("payloads, and one more", self.blocks().into_iter().map(Blocks::heap).sum()),
        ]
    }

    /// Heap bytes that are allocated at the start.
    pub fn lasting(&self) -> usize {
        self.parts()[..2].iter().map(|(_, octets)| octets).sum()
    }

    /// Heap bytes with which no call runs out of memory.
    pub fn heap(&self) -> usize {
        self.parts().iter().map(|(_, octets)| octets).sum()
    }
}
