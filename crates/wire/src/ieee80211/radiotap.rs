//! Writes the radiotap header of captures with link type 127, LINKTYPE_IEEE802_11_RADIOTAP.
//!
//! The format is that of radiotap.org: version, length, a bitmap of the fields present, and the
//! fields in the order of their bits, each aligned to its size. All numbers are little-endian.

use alloc::vec::Vec;

/// Properties of a frame that its bytes do not contain. The header always announces an FCS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Radiotap {
    /// Data rate in units of 500 kbit/s.
    pub rate: u8,
    /// True if the frame had a short preamble.
    pub short_preamble: bool,
    /// Centre frequency of the channel in MHz.
    pub frequency: u16,
    /// Signal power at the antenna in dBm; `None` if the frame has no single receiver.
    pub signal_dbm: Option<i8>,
}

/// Bytes that [`emit`] writes if `signal_dbm` is `None`.
pub const LEN: usize = 14;

/// Appends the header. The caller appends the frame, FCS included.
pub fn emit(radiotap: &Radiotap, out: &mut Vec<u8>) {
    let signal = radiotap.signal_dbm;
    let present = FLAGS | RATE | CHANNEL | if signal.is_some() { SIGNAL } else { 0 };
    let len = (LEN + usize::from(signal.is_some())) as u16;
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&present.to_le_bytes());
    out.push(FCS_INCLUDED | if radiotap.short_preamble { SHORT_PREAMBLE } else { 0 });
    out.push(radiotap.rate);
    out.extend_from_slice(&radiotap.frequency.to_le_bytes());
    let band = if radiotap.frequency < 5000 { CHANNEL_2_GHZ } else { 0 };
    out.extend_from_slice(&(CHANNEL_CCK | band).to_le_bytes());
    out.extend(signal.map(|dbm| dbm.to_le_bytes()[0]));
}

// Bits of the bitmap of fields.
const FLAGS: u32 = 1 << 1;
const RATE: u32 = 1 << 2;
const CHANNEL: u32 = 1 << 3;
const SIGNAL: u32 = 1 << 5;
// Bits of the flags.
const SHORT_PREAMBLE: u8 = 0x02;
const FCS_INCLUDED: u8 = 0x10;
// Bits of the channel.
const CHANNEL_CCK: u16 = 0x0020;
const CHANNEL_2_GHZ: u16 = 0x0080;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_these_octets() {
        let radiotap = Radiotap { rate: 22, short_preamble: true, frequency: 2412, signal_dbm: None };
        let mut out = Vec::new();
        emit(&radiotap, &mut out);
        assert_eq!(out, [0, 0, 14, 0, 0x0e, 0, 0, 0, 0x12, 22, 0x6c, 0x09, 0xa0, 0]);
        assert_eq!(out.len(), LEN);
        out.clear();
        emit(&Radiotap { signal_dbm: Some(-48), ..radiotap }, &mut out);
        assert_eq!((out[2], out[4], out[14]), (15, 0x2e, 0xd0));
    }
}
