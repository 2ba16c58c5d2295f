//! Memory of a cache: its state, and a heap that cannot run out.
//!
//! All memory but that of payloads is allocated at the start ([`Sizes::lasting`]). A payload takes
//! one block of the longest payload's size and one block for its reference count. Every cached
//! segment has such a pair, and the segment that a call handles has one more. The blocks of a kind
//! are equal, so they cannot fragment.

use anabranch_core::dtc::Node;

/// Size of the reference count of a payload in bytes: `bytes` stores pointer, capacity and count.
pub const REFERENCE: usize = 3 * size_of::<usize>();

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
            && (1..=64).contains(&self.segments)
            && (1..=Node::ALLOCATED_CONNECTIONS).contains(&usize::from(self.connections))
    }

    /// Size of the block of one payload in bytes.
    pub fn block(&self) -> usize {
        usize::from(self.segment).next_multiple_of(align_of::<u64>())
    }

    /// Number of payloads at a time.
    pub fn blocks(&self) -> usize {
        usize::from(self.segments) + 1
    }

    /// Heap bytes by purpose, in the order of docs/reference/embedded-cache.md.
    pub fn parts(&self) -> [(&'static str, usize); 3] {
        let (connections, segments) = (usize::from(self.connections), usize::from(self.segments));
        let tags = size_of::<u32>() * connections;
        let connection = Node::CONNECTION_MEMORY - size_of::<u32>();
        [
            ("connections", tags.next_multiple_of(align_of::<u64>()) + connections * connection),
            ("segments", segments * Node::SEGMENT_MEMORY),
            ("payloads, and one more", self.blocks() * (self.block() + REFERENCE)),
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
