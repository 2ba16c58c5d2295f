//! The frame check sequence.

/// The ITU-T CRC-16 of a frame without its FCS (IEEE 802.15.4-2015 section 7.2.10): polynomial
/// x^16 + x^12 + x^5 + 1, least significant bit first, begun with zero, not inverted at the end. Catalogues
/// of CRCs call it KERMIT. The low octet is sent first.
pub fn fcs(octets: &[u8]) -> u16 {
    octets.iter().fold(0, |crc, octet| TABLE[usize::from(crc as u8 ^ octet)] ^ crc >> 8)
}

/// The polynomial with its bits in the order of transmission.
const REFLECTED: u16 = 0x8408;

/// What eight steps of the shift register make of each octet.
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

    /// The worked example of IEEE 802.15.4-2015 section 7.2.10, an acknowledgement, in the standard's order of
    /// bits: that of transmission.
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
}
