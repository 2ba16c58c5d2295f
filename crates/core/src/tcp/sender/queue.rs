//! Written and unacknowledged data, as the chunks of the application.

use alloc::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// A range of bytes, addressed by the distance from its first byte. Chunks are shared and not
/// copied, except for a slice that spans several chunks.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    chunks: VecDeque<Chunk>,
    /// Stream offset of the first byte held.
    head: u64,
    /// Stream offset just past the last.
    tail: u64,
}

#[derive(Debug)]
struct Chunk {
    /// Stream offset of the first byte; the front chunk may begin before `head`.
    start: u64,
    data: Bytes,
}

impl SendQueue {
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        (self.tail - self.head) as u32
    }

    pub(crate) fn push(&mut self, data: Bytes) {
        let start = self.tail;
        self.tail += data.len() as u64;
        self.chunks.push_back(Chunk { start, data });
    }

    /// Frees the first `n` bytes.
    #[inline]
    pub(crate) fn advance(&mut self, n: u32) {
        self.head = (self.head + u64::from(n)).min(self.tail);
        while self.chunks.front().is_some_and(|c| c.end() <= self.head) {
            self.chunks.pop_front();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.chunks.clear();
        self.head = self.tail;
    }

    /// Returns `n` bytes from distance `from`; fewer if fewer are held.
    #[inline]
    pub(crate) fn slice(&self, from: u32, n: u32) -> Bytes {
        let start = (self.head + u64::from(from)).min(self.tail);
        let end = (start + u64::from(n)).min(self.tail);
        if start == end {
            return Bytes::new();
        }
        // The first chunk begins at or before `head`, so at least one lies at or before `start`.
        let index = self.chunks.partition_point(|c| c.start <= start).saturating_sub(1);
        let chunk = &self.chunks[index];
        let offset = (start - chunk.start) as usize;
        if end <= chunk.end() {
            return chunk.data.slice(offset..offset + (end - start) as usize);
        }
        self.gather(index, start, end)
    }

    fn gather(&self, index: usize, start: u64, end: u64) -> Bytes {
        let mut out = BytesMut::with_capacity((end - start) as usize);
        for chunk in self.chunks.range(index..) {
            if chunk.start >= end {
                break;
            }
            let from = start.saturating_sub(chunk.start) as usize;
            let to = (end.min(chunk.end()) - chunk.start) as usize;
            out.extend_from_slice(&chunk.data[from..to]);
        }
        out.freeze()
    }
}

impl Chunk {
    #[inline]
    fn end(&self) -> u64 {
        self.start + self.data.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> SendQueue {
        let mut queue = SendQueue::default();
        for chunk in ["abcd", "ef", "ghijk"] {
            queue.push(Bytes::from_static(chunk.as_bytes()));
        }
        queue
    }

    #[test]
    fn slices_share_one_chunk_and_gather_several() {
        let queue = queue();
        assert_eq!(&queue.slice(1, 3)[..], b"bcd");
        assert_eq!(queue.slice(1, 3).as_ptr(), queue.chunks[0].data[1..].as_ptr());
        assert_eq!(&queue.slice(3, 5)[..], b"defgh");
        assert_eq!(&queue.slice(9, 9)[..], b"jk");
        assert!(queue.slice(11, 1).is_empty());
    }

    #[test]
    fn advancing_moves_the_origin() {
        let mut queue = queue();
        queue.advance(5);
        assert_eq!(queue.len(), 6);
        assert_eq!(&queue.slice(0, 2)[..], b"fg");
        queue.advance(99);
        assert_eq!((queue.len(), queue.chunks.len()), (0, 0));
    }
}
