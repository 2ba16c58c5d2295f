//! The frame check sequence.

/// Computes the CRC-32 of a frame without its FCS (7.1.3.7), the CRC-32 of Ethernet. The low byte
/// is sent first.
pub fn fcs(octets: &[u8]) -> u32 {
    !octets.iter().fold(!0, |crc: u32, octet| TABLE[usize::from(crc as u8 ^ octet)] ^ crc >> 8)
}

/// The polynomial with its bits in the order of transmission.
const REFLECTED: u32 = 0xedb8_8320;

/// The CRC of each byte value: eight steps of the shift register.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut octet = 0;
    while octet < 256 {
        let mut crc = octet as u32;
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
        assert_eq!(fcs(b"123456789"), 0xcbf4_3926);
        assert_eq!(fcs(b""), 0);
    }
}
