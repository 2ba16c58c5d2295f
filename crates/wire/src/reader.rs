//! Bytes read from the front.

/// What of `octets` has been read, and what has not. No error of its own: the reader knows which
/// field it is that is cut off.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(octets: &'a [u8]) -> Self {
        Self { octets, at: 0 }
    }

    /// Bytes that have been read.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// Bytes that have not, without taking them.
    pub(crate) fn rest(&self) -> &'a [u8] {
        // `at` never passes the end.
        &self.octets[self.at..]
    }

    /// The next `len` bytes; if there are not as many, `None`, and nothing is taken.
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

    /// Big-endian.
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }
}
