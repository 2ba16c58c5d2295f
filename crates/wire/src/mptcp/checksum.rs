//! The checksum of a mapping and its data.

use super::DataSeqNumber;

/// Computes the checksum of a mapping (RFC 8684 section 3.3.1): that of RFC 1071 over a
/// pseudo-header and the data. It shows that a middlebox has changed the data.
#[derive(Clone, Copy, Debug)]
pub struct DssChecksum {
    sum: u64,
    /// Whether an odd number of bytes has been added.
    odd: bool,
}

impl DssChecksum {
    /// Begins with the pseudo-header: the data sequence number, the relative subflow sequence
    /// number and the length of the mapping, DATA_FIN included.
    pub fn new(dsn: DataSeqNumber, subflow_seq: u32, len: u16) -> Self {
        let mut this = Self { sum: 0, odd: false };
        this.add(&dsn.0.to_be_bytes());
        this.add(&subflow_seq.to_be_bytes());
        this.add(&len.to_be_bytes());
        this
    }

    /// Adds the next bytes of the data.
    pub fn add(&mut self, data: &[u8]) {
        let (words, rest) = data.as_chunks::<4>();
        let mut sum: u64 = words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum();
        let (pairs, last) = rest.as_chunks::<2>();
        sum += pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum::<u64>();
        sum += last.iter().map(|octet| u64::from(*octet) << 8).sum::<u64>();
        // Data that begins at an odd offset has its bytes exchanged (RFC 1071 section 2).
        let sum = fold(sum);
        self.sum += u64::from(if self.odd { sum.swap_bytes() } else { sum });
        self.odd ^= data.len() % 2 == 1;
    }

    /// The checksum.
    pub fn value(self) -> u16 {
        !fold(self.sum)
    }

    /// Whether a received checksum is right. 0 and 0xffff are the same number.
    pub fn confirms(self, received: u16) -> bool {
        self.value() % u16::MAX == received % u16::MAX
    }
}

fn fold(mut sum: u64) -> u16 {
    while sum > u64::from(u16::MAX) {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// The definition of RFC 1071, on the whole text at once.
    fn simple(octets: &[u8]) -> u16 {
        let words =
            octets.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |o| (*o).into()));
        let sum = words.fold(0, |sum: u32, word| {
            let sum = sum + word;
            (sum & 0xffff) + (sum >> 16)
        });
        !(sum as u16)
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(1), ..ProptestConfig::default() })]
        #[test]
        fn pieces_of_any_length_give_the_sum_of_the_whole(
            dsn: u64, seq: u32, len: u16, pieces: Vec<Vec<u8>>, bit: prop::sample::Index,
        ) {
            let mut sum = DssChecksum::new(DataSeqNumber(dsn), seq, len);
            pieces.iter().for_each(|piece| sum.add(piece));
            let mut all = [&dsn.to_be_bytes()[..], &seq.to_be_bytes(), &len.to_be_bytes()].concat();
            all.extend(pieces.concat());
            prop_assert_eq!(sum.value(), simple(&all));
            prop_assert!(sum.confirms(sum.value()));
            prop_assert!(!sum.confirms(sum.value() ^ 1 << bit.index(16)));
        }
    }

    #[test]
    fn zero_has_two_forms() {
        let mut sum = DssChecksum::new(DataSeqNumber(0), 0, 0xfffe);
        sum.add(&[0, 1]);
        assert_eq!(sum.value(), 0);
        assert!(sum.confirms(0) && sum.confirms(0xffff) && !sum.confirms(1));
    }
}
