//! Variable-length integers (RFC 9000 section 16): the two high bits of the first byte encode the
//! length.

use alloc::vec::Vec;

/// The largest value that can be encoded.
pub(super) const MAX: u64 = (1 << 62) - 1;

/// Encoded length of `value` in bytes.
pub(super) const fn len(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Appends `value`, which must be at most [`MAX`].
pub(super) fn put(out: &mut Vec<u8>, value: u64) {
    debug_assert!(value <= MAX, "a variable-length integer has 62 bits");
    match len(value) {
        1 => out.push(value as u8),
        2 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        4 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Encoded length in bytes of the integer that begins with `first`.
pub(super) const fn len_from_first(first: u8) -> usize {
    1 << (first >> 6)
}

/// Reads the integer at the front of `octets`. The caller ensures that all of it is present.
pub(super) fn read(octets: &[u8]) -> u64 {
    let n = len_from_first(octets[0]);
    octets[1..n].iter().fold(u64::from(octets[0] & 0x3f), |value, o| value << 8 | u64::from(*o))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 9000 appendix A.1.
    #[test]
    fn the_rfc_examples_hold() {
        let examples: [(&[u8], u64); 4] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ];
        for (octets, value) in examples {
            assert_eq!(read(octets), value);
            let mut out = Vec::new();
            put(&mut out, value);
            assert_eq!(out, octets);
        }
    }
}
