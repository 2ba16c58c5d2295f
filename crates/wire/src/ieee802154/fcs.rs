//! Frame check sequences.

use alloc::vec::Vec;

use crate::ieee80211;

/// The frame check sequence at the end of a frame (IEEE Std 802.15.4-2020, section 7.2.11).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Fcs {
    /// 2 bytes, an ITU-T CRC-16: all PHYs except SUN, LECIM and TVWS; optional per frame for SUN
    /// FSK.
    #[default]
    Crc16,
    /// 4 bytes, the CRC-32 of Ethernet: the default of the SUN PHYs.
    Crc32,
}

impl Fcs {
    /// Length in bytes.
    #[allow(clippy::len_without_is_empty, reason = "no frame is without one")]
    pub const fn len(self) -> usize {
        match self {
            Self::Crc16 => 2,
            Self::Crc32 => 4,
        }
    }

    /// Length of an immediate acknowledgement in bytes: frame control, sequence number, FCS
    /// (section 7.3.3).
    pub const fn ack_len(self) -> usize {
        3 + self.len()
    }

    /// Appends the FCS of the frame that begins at `start`.
    pub(super) fn append(self, start: usize, out: &mut Vec<u8>) {
        match self {
            Self::Crc16 => out.extend_from_slice(&fcs(&out[start..]).to_le_bytes()),
            Self::Crc32 => out.extend_from_slice(&crc32(&out[start..]).to_le_bytes()),
        }
    }

    /// Returns the frame without its FCS and whether the FCS is right; `None` if the frame is
    /// shorter than an FCS.
    pub(super) fn split(self, octets: &[u8]) -> Option<(&[u8], bool)> {
        match self {
            Self::Crc16 => {
                let (frame, end) = octets.split_last_chunk()?;
                Some((frame, fcs(frame) == u16::from_le_bytes(*end)))
            }
            Self::Crc32 => {
                let (frame, end) = octets.split_last_chunk()?;
                Some((frame, crc32(frame) == u32::from_le_bytes(*end)))
            }
        }
    }
}

/// The CRC-32 of a frame. A frame of fewer than four bytes, such as an acknowledgement, is padded
/// with zeros that are not sent.
fn crc32(octets: &[u8]) -> u32 {
    let mut padded = [0; 4];
    if octets.len() >= padded.len() {
        return ieee80211::fcs(octets);
    }
    padded[..octets.len()].copy_from_slice(octets);
    ieee80211::fcs(&padded)
}

/// The ITU-T CRC-16 of a frame without its FCS (IEEE 802.15.4-2015 section 7.2.10). Polynomial
/// x^16 + x^12 + x^5 + 1, least significant bit first, initial value zero, not inverted at the end.
/// Catalogues of CRCs call it KERMIT. The low byte is sent first.
pub fn fcs(octets: &[u8]) -> u16 {
    octets.iter().fold(0, |crc, octet| TABLE[usize::from(crc as u8 ^ octet)] ^ crc >> 8)
}

/// The polynomial with its bits in the order of transmission.
const REFLECTED: u16 = 0x8408;

/// The CRC of each byte value: eight steps of the shift register.
const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut octet = 0;
    while octet < 256 {
        let mut crc = octet as u16;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ REFLECTED };
            bit += 1;
        }
        table[octet] = crc;
        octet += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_catalogue_holds() {
        assert_eq!(fcs(b"123456789"), 0x2189);
        assert_eq!(fcs(b""), 0);
    }

    /// The worked example of IEEE 802.15.4-2015 section 7.2.10, an acknowledgement. The standard
    /// prints the bits in the order of transmission.
    #[test]
    fn the_example_of_the_standard_holds() {
        let octets = [0b0100_0000, 0b0000_0000, 0b0101_0110].map(u8::reverse_bits);
        assert_eq!(fcs(&octets).to_le_bytes(), [0b0010_0111, 0b1001_1110].map(u8::reverse_bits));
    }

    #[test]
    fn a_frame_with_its_fcs_has_a_remainder_of_zero() {
        let mut frame = b"any octets".to_vec();
        frame.extend(fcs(&frame).to_le_bytes());
        assert_eq!(fcs(&frame), 0);
    }

    #[test]
    fn four_octets_are_the_crc_32_of_at_least_four() {
        let mut frame = b"123456789".to_vec();
        Fcs::Crc32.append(0, &mut frame);
        assert_eq!(frame[9..], 0xcbf4_3926_u32.to_le_bytes());
        assert_eq!(Fcs::Crc32.split(&frame), Some((&b"123456789"[..], true)));
        frame[0] ^= 1;
        assert_eq!(Fcs::Crc32.split(&frame).map(|(_, right)| right), Some(false));
        let mut ack = std::vec![2, 0, 0x6a];
        Fcs::Crc32.append(0, &mut ack);
        assert_eq!(ack[3..], ieee80211::fcs(&[2, 0, 0x6a, 0]).to_le_bytes());
        assert_eq!(ack.len(), Fcs::Crc32.ack_len());
        assert_eq!(Fcs::Crc32.split(&[1, 2, 3]), None);
    }
}
