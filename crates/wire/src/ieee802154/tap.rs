//! Writes the TAP header of captures with link type 283, LINKTYPE_IEEE802_15_4_TAP.
//!
//! The format is that of the IEEE 802.15.4 TAP Link Type Specification: four bytes, then values
//! with type and length, padded to four bytes each. All numbers are little-endian.

use alloc::vec::Vec;

use super::Fcs;

/// Properties of a received frame that its bytes do not contain.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Tap {
    /// Type of the FCS, which is always present.
    pub fcs: Fcs,
    /// Received signal strength in dBm.
    pub rss: Option<f32>,
    /// Channel number and page (IEEE 802.15.4-2015 section 10.1.2): channels 11 to 26 of page 0 are
    /// at 2.4 GHz; page 9 is SUN.
    pub channel: Option<(u16, u8)>,
    /// Link quality, 0 the worst and 255 the best (IEEE 802.15.4-2015 section 10.2.6).
    pub lqi: Option<u8>,
}

impl Tap {
    /// Bytes that [`emit`] writes: 12 to 36, a multiple of 4.
    #[allow(clippy::len_without_is_empty, reason = "a header is never empty")]
    pub const fn len(&self) -> usize {
        let values =
            1 + self.rss.is_some() as usize + self.channel.is_some() as usize + self.lqi.is_some() as usize;
        HEADER_LEN + values * VALUE_LEN
    }
}

/// Appends the header. The caller appends the frame, FCS included.
pub fn emit(tap: &Tap, out: &mut Vec<u8>) {
    out.extend_from_slice(&[VERSION, 0]);
    // At most 36.
    out.extend_from_slice(&(tap.len() as u16).to_le_bytes());
    let fcs = match tap.fcs {
        Fcs::Crc16 => FCS_16_BITS,
        Fcs::Crc32 => FCS_32_BITS,
    };
    emit_value(FCS_TYPE, &[fcs], out);
    if let Some(rss) = tap.rss {
        emit_value(RSS, &rss.to_le_bytes(), out);
    }
    if let Some((number, page)) = tap.channel {
        let [low, high] = number.to_le_bytes();
        emit_value(CHANNEL_ASSIGNMENT, &[low, high, page], out);
    }
    if let Some(lqi) = tap.lqi {
        emit_value(LQI, &[lqi], out);
    }
}

/// Appends one value of at most four bytes.
fn emit_value(kind: u16, octets: &[u8], out: &mut Vec<u8>) {
    let end = out.len() + VALUE_LEN;
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&(octets.len() as u16).to_le_bytes());
    out.extend_from_slice(octets);
    out.resize(end, 0);
}

const VERSION: u8 = 0;
const HEADER_LEN: usize = 4;
/// Bytes of type, length and a padded value: every value here fits into four bytes.
const VALUE_LEN: usize = 8;
const FCS_TYPE: u16 = 0;
const FCS_16_BITS: u8 = 1;
const FCS_32_BITS: u8 = 2;
const RSS: u16 = 1;
const CHANNEL_ASSIGNMENT: u16 = 3;
const LQI: u16 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_these_octets() {
        let mut out = Vec::new();
        emit(&Tap::default(), &mut out);
        assert_eq!(out, [0, 0, 12, 0, 0, 0, 1, 0, 1, 0, 0, 0]);
        out.clear();
        let tap = Tap { fcs: Fcs::Crc32, rss: Some(-70.5), channel: Some((15, 0)), lqi: Some(200) };
        emit(&tap, &mut out);
        assert_eq!(out.len(), tap.len());
        assert_eq!(out[..9], [0, 0, 36, 0, 0, 0, 1, 0, 2]);
        assert_eq!(out[12..20], [1, 0, 4, 0, 0, 0, 0x8d, 0xc2]);
        assert_eq!(out[20..28], [3, 0, 3, 0, 15, 0, 0, 0]);
        assert_eq!(out[28..], [10, 0, 1, 0, 200, 0, 0, 0]);
    }
}
