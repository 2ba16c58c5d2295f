//! A cursor over bytes.

/// Reads `octets` from the front. It has no error type of its own: the caller knows which field is
/// truncated.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(octets: &'a [u8]) -> Self {
        Self { octets, at: 0 }
    }

    /// Number of bytes read.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// The bytes not yet read; does not advance.
    pub(crate) fn rest(&self) -> &'a [u8] {
        // `at` never exceeds the length.
        &self.octets[self.at..]
    }

    /// The next `len` bytes. If fewer are left, returns `None` and does not advance.
    pub(crate) fn slice(&mut self, len: usize) -> Option<&'a [u8]> {
        let octets = self.rest().get(..len)?;
        self.at += len;
        Some(octets)
    }

    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let octets = *self.rest().first_chunk::<N>()?;
        self.at += N;
        Some(octets)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take().map(|[octet]| octet)
    }

    /// Reads a big-endian integer.
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }
}
