//! A record in progress. Numbers have variable length: seven bits in each byte, the lowest first,
//! and bit 7 if more follow (LEB128). Differences are zigzag-coded, so that small ones of either
//! sign are short.

use alloc::vec::Vec;

use super::MAGIC;

/// The bytes of one record.
#[derive(Debug, Default)]
pub struct Record(Vec<u8>);

impl Record {
    /// Returns the bytes.
    pub fn octets(&self) -> &[u8] {
        &self.0
    }

    /// Begins a log of this version, in place of a record.
    pub fn preamble(&mut self, version: u8) {
        self.0.clear();
        self.0.extend_from_slice(&MAGIC);
        self.0.push(version);
    }

    /// Begins a record of this type.
    #[inline]
    pub fn begin(&mut self, tag: u8) -> &mut Self {
        self.0.clear();
        self.octet(tag)
    }

    /// Appends a byte.
    #[inline]
    pub fn octet(&mut self, octet: u8) -> &mut Self {
        self.0.push(octet);
        self
    }

    /// Appends an unsigned number.
    #[inline]
    pub fn number(&mut self, mut number: u64) -> &mut Self {
        while number > 0x7f {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.octet(number as u8)
    }

    /// Appends the difference of `number` to `before`.
    #[inline]
    pub fn difference(&mut self, number: i64, before: i64) -> &mut Self {
        let difference = number.wrapping_sub(before);
        self.number((difference << 1 ^ difference >> 63) as u64)
    }

    /// Appends a binary64.
    pub fn real(&mut self, real: f64) -> &mut Self {
        self.0.extend_from_slice(&real.to_le_bytes());
        self
    }

    /// Appends a text with its length.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
        self
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn small_numbers_of_either_sign_are_short() {
        let mut record = Record::default();
        record.begin(9).number(0).number(127).number(128).number(u64::MAX);
        record.difference(5, 6).difference(-3, -5).difference(i64::MIN, 0);
        let mut expected = vec![9, 0, 127, 0x80, 1];
        expected.extend([0xff; 9]);
        expected.extend([1, 1, 4]);
        expected.extend([0xff; 9]);
        expected.push(1);
        assert_eq!(record.octets(), expected);
    }
}
