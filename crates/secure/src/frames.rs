//! Frames of a stream: Noise messages, each preceded by a two-byte length.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::layout::LENGTH;

/// Splits a stream into frames. Buffers at most one incomplete frame.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    buffer: BytesMut,
}

/// The length of a frame is zero or exceeds the limit.
#[derive(Debug)]
pub(crate) struct BadLength;

impl Frames {
    /// Appends bytes from the stream.
    pub(crate) fn push(&mut self, octets: &[u8]) {
        self.buffer.extend_from_slice(octets);
    }

    /// Returns the next frame, of at most `most` bytes, if it is complete.
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

    /// The buffered bytes.
    pub(crate) fn peek(&self) -> &[u8] {
        &self.buffer
    }

    /// Removes the first `n` bytes and returns them. The caller has checked that they are present.
    pub(crate) fn skip(&mut self, n: usize) -> BytesMut {
        self.buffer.split_to(n)
    }

    /// Removes and returns all buffered bytes.
    pub(crate) fn rest(&mut self) -> Bytes {
        self.buffer.split().freeze()
    }

    /// Frees the memory of an empty buffer, so that an idle stream holds none.
    pub(crate) fn release(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
    }
}

/// Frames `message`.
pub(crate) fn frame(message: &[u8]) -> Bytes {
    let mut octets = BytesMut::with_capacity(LENGTH + message.len());
    octets.put_u16(message.len() as u16);
    octets.extend_from_slice(message);
    octets.freeze()
}
