//! Noise messages in a stream: two bytes of length before each.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::layout::LENGTH;

/// Cuts a stream into frames. Holds at most one that is not whole.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    buffer: BytesMut,
}

/// A frame is longer than it may be, or has nothing in it.
#[derive(Debug)]
pub(crate) struct BadLength;

impl Frames {
    /// Takes the next bytes.
    pub(crate) fn push(&mut self, octets: &[u8]) {
        self.buffer.extend_from_slice(octets);
    }

    /// The next frame of at most `most` bytes, if it is whole.
    pub(crate) fn next(&mut self, most: usize) -> Result<Option<BytesMut>, BadLength> {
        let Some(length) = self.buffer.first_chunk() else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes(*length));
        if length == 0 || length > most {
            return Err(BadLength);
        }
        if self.buffer.len() < LENGTH + length {
            return Ok(None);
        }
        self.buffer.advance(LENGTH);
        Ok(Some(self.buffer.split_to(length)))
    }

    /// The bytes so far.
    pub(crate) fn peek(&self) -> &[u8] {
        &self.buffer
    }

    /// Leaves out the first `n` bytes, which are there.
    pub(crate) fn skip(&mut self, n: usize) -> BytesMut {
        self.buffer.split_to(n)
    }

    /// What has come and was not taken.
    pub(crate) fn rest(&mut self) -> Bytes {
        self.buffer.split().freeze()
    }

    /// Gives back what memory an empty buffer has: a stream on which nothing moves holds nothing.
    pub(crate) fn release(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
    }
}

/// A frame with `message` in it.
pub(crate) fn frame(message: &[u8]) -> Bytes {
    let mut octets = BytesMut::with_capacity(LENGTH + message.len());
    octets.put_u16(message.len() as u16);
    octets.extend_from_slice(message);
    octets.freeze()
}
