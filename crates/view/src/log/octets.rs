//! Bytes, numbers and strings of a log.

use std::io::{self, BufRead, Read};

/// Why the next value cannot be read.
#[derive(Debug)]
pub(super) enum Fault {
    /// The log ends before it.
    End,
    /// It is invalid.
    Bad(&'static str),
    /// The file or pipe cannot be read.
    Io(io::Error),
}

/// A stream of bytes that counts the bytes read.
#[derive(Debug)]
pub(super) struct Octets<R> {
    input: R,
    offset: u64,
}

/// Largest number that scripts represent exactly; as a time in nanoseconds, about 104 days.
pub(super) const EXACT: u64 = anabranch_wire::eventlog::LONGEST;
/// Limit on the length of a string, in bytes.
const LONGEST_TEXT: u64 = 1 << 16;

impl<R: BufRead> Octets<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, offset: 0 }
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    #[inline]
    pub(super) fn octet(&mut self) -> Result<u8, Fault> {
        loop {
            match self.input.fill_buf() {
                Ok([]) => return Err(Fault::End),
                Ok([first, ..]) => {
                    let first = *first;
                    self.input.consume(1);
                    self.offset += 1;
                    return Ok(first);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Fault::Io(error)),
            }
        }
    }

    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, Fault> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let octet = self.octet()?;
            if shift == 63 && octet > 1 {
                break;
            }
            number |= u64::from(octet & 0x7f) << shift;
            if octet < 0x80 {
                return Ok(number);
            }
        }
        Err(Fault::Bad("a number of more than 64 bits"))
    }

    /// Reads a number of at most 32 bits.
    pub(super) fn small(&mut self) -> Result<u32, Fault> {
        u32::try_from(self.number()?).map_err(|_| Fault::Bad("a number of more than 32 bits"))
    }

    /// Reads a number less than `limit`.
    #[inline]
    pub(super) fn below(&mut self, limit: u32, what: &'static str) -> Result<u32, Fault> {
        let number = self.number()?;
        if number < u64::from(limit) { Ok(number as u32) } else { Err(Fault::Bad(what)) }
    }

    /// Reads a number as its difference from `before`, and stores it there.
    #[inline]
    pub(super) fn next(&mut self, before: &mut i64) -> Result<i64, Fault> {
        let folded = self.number()?;
        let difference = (folded >> 1) as i64 ^ -((folded & 1) as i64);
        *before = before.wrapping_add(difference);
        Ok(*before)
    }

    /// Reads a number of at most [`EXACT`].
    pub(super) fn within(&mut self) -> Result<u64, Fault> {
        Some(self.number()?)
            .filter(|number| *number <= EXACT)
            .ok_or(Fault::Bad("a number of more than 53 bits"))
    }

    /// Like [`Octets::next`], for numbers between -[`EXACT`] and [`EXACT`].
    pub(super) fn next_within(&mut self, before: &mut i64) -> Result<i64, Fault> {
        let number = self.next(before)?;
        let exact = number.unsigned_abs() <= EXACT;
        if exact { Ok(number) } else { Err(Fault::Bad("a number of more than 53 bits")) }
    }

    pub(super) fn real(&mut self) -> Result<f64, Fault> {
        let mut octets = [0; 8];
        for octet in &mut octets {
            *octet = self.octet()?;
        }
        let real = f64::from_le_bytes(octets);
        if real.is_finite() { Ok(real) } else { Err(Fault::Bad("a place that is not a number")) }
    }

    pub(super) fn text(&mut self) -> Result<String, Fault> {
        let len = self.number()?;
        if len > LONGEST_TEXT {
            return Err(Fault::Bad("a text of more than 65536 bytes"));
        }
        let mut octets = Vec::new();
        let read = (&mut self.input).take(len).read_to_end(&mut octets).map_err(Fault::Io)?;
        self.offset += read as u64;
        if (read as u64) < len {
            return Err(Fault::End);
        }
        String::from_utf8(octets).map_err(|_| Fault::Bad("a text that is not UTF-8"))
    }
}
