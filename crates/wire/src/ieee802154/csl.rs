//! Frames of coordinated sampled listening (IEEE Std 802.15.4-2020, section 6.12.2): wake-up
//! frames, enhanced acknowledgements with the CSL IE, and the data frames that request them.
//!
//! All times are in units of 10 symbols. The header IEs end without a termination IE, since no
//! payload follows them.

use alloc::vec::Vec;

use super::frame::{DST_MODE_SHIFT, MODE_SHORT, TYPE_ACK, VERSION_SHIFT};
use super::{EmitError, Fcs, Header, emit};

/// Bytes of a wake-up frame before its FCS: frame control, PAN, short address, Rendezvous Time IE.
pub const WAKEUP_LEN: usize = 2 + 2 + 2 + 4;
/// Bytes of an enhanced acknowledgement with the CSL IE before its FCS: frame control, sequence
/// number, PAN, short address, IE.
pub const ENH_ACK_LEN: usize = 2 + 1 + 2 + 2 + 6;

/// Sampling schedule that a receiver announces in the CSL IE.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Csl {
    /// Time from the first symbol of the frame to the next sample.
    pub phase: u16,
    /// Time between samples, macCslPeriod.
    pub period: u16,
}

/// Appends a wake-up frame: a multipurpose frame without a sequence number. The announced frame
/// begins `rendezvous` after the end of the wake-up frame.
pub fn emit_wakeup(pan: u16, dst: u16, rendezvous: u16, fcs: Fcs, out: &mut Vec<u8>) {
    let start = out.len();
    let control = TYPE_MULTIPURPOSE
        | MPF_LONG
        | MODE_SHORT << MPF_DST_MODE_SHIFT
        | MPF_PAN_PRESENT
        | MPF_SEQ_SUPPRESSED
        | MPF_IE_PRESENT;
    for word in [control, pan, dst, header_ie(RENDEZVOUS_TIME_IE, 2), rendezvous] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    fcs.append(start, out);
}

/// Appends the enhanced acknowledgement of the frame with sequence number `seq`.
pub fn emit_enh_ack(seq: u8, pan: u16, dst: u16, csl: Csl, fcs: Fcs, out: &mut Vec<u8>) {
    let start = out.len();
    let control = TYPE_ACK | MODE_SHORT << DST_MODE_SHIFT | VERSION_2 | IE_PRESENT;
    out.extend_from_slice(&control.to_le_bytes());
    out.push(seq);
    for word in [pan, dst, header_ie(CSL_IE, 4), csl.phase, csl.period] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    fcs.append(start, out);
}

/// Appends a frame of version 2, which requests an enhanced acknowledgement. Set `pending` if
/// another frame for the receiver follows.
///
/// # Errors
///
/// Those of [`emit`].
pub fn emit_version_2(
    header: &Header,
    pending: bool,
    payload: &[u8],
    fcs: Fcs,
    out: &mut Vec<u8>,
) -> Result<(), EmitError> {
    let start = out.len();
    emit(header, payload, fcs, out)?;
    // The FCS covers the frame control field, which changes below.
    out.truncate(out.len() - fcs.len());
    let control = u16::from_le_bytes([out[start], out[start + 1]]);
    let control = control & !VERSION_MASK | VERSION_2 | if pending { FRAME_PENDING } else { 0 };
    out[start..start + 2].copy_from_slice(&control.to_le_bytes());
    fcs.append(start, out);
    Ok(())
}

/// The descriptor of a header IE (section 7.4.2.1).
const fn header_ie(id: u16, len: u16) -> u16 {
    id << 7 | len
}

// Element identifiers of header IEs, table 7-7.
const CSL_IE: u16 = 0x1a;
const RENDEZVOUS_TIME_IE: u16 = 0x1d;

const FRAME_PENDING: u16 = 1 << 4;
const IE_PRESENT: u16 = 1 << 9;
const VERSION_MASK: u16 = 3 << VERSION_SHIFT;
const VERSION_2: u16 = 2 << VERSION_SHIFT;

// The frame control field of a multipurpose frame, section 7.3.5.
const TYPE_MULTIPURPOSE: u16 = 5;
const MPF_LONG: u16 = 1 << 3;
const MPF_DST_MODE_SHIFT: u16 = 4;
const MPF_PAN_PRESENT: u16 = 1 << 8;
const MPF_SEQ_SUPPRESSED: u16 = 1 << 10;
const MPF_IE_PRESENT: u16 = 1 << 15;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ieee802154::{Address, Kind};

    #[test]
    fn a_wake_up_frame_is_these_octets() {
        let mut frame = Vec::new();
        emit_wakeup(0xabcd, 2, 0x1234, Fcs::Crc16, &mut frame);
        assert_eq!(frame[..10], [0x2d, 0x85, 0xcd, 0xab, 2, 0, 0x82, 0x0e, 0x34, 0x12]);
        assert_eq!(frame.len(), WAKEUP_LEN + 2);
    }

    #[test]
    fn an_enhanced_acknowledgement_is_these_octets() {
        let mut frame = Vec::new();
        emit_enh_ack(7, 0xabcd, 2, Csl { phase: 100, period: 781 }, Fcs::Crc32, &mut frame);
        assert_eq!(frame[..13], [0x02, 0x2a, 7, 0xcd, 0xab, 2, 0, 0x04, 0x0d, 100, 0, 0x0d, 0x03]);
        assert_eq!(frame.len(), ENH_ACK_LEN + 4);
    }

    #[test]
    fn version_2_differs_in_two_fields_alone() {
        let (dst, src) = (Address::Short(2), Address::Short(1));
        let header = Header { kind: Kind::Data, ack_request: true, seq: 7, pan: 0xabcd, dst, src };
        for len in [2, 110] {
            let (mut old, mut new) = (Vec::new(), Vec::new());
            emit(&header, &[9; 110][..len], Fcs::Crc16, &mut old).unwrap();
            emit_version_2(&header, true, &[9; 110][..len], Fcs::Crc16, &mut new).unwrap();
            assert_eq!(new[..2], [0x71, 0xa8]);
            assert_eq!(new[2..len + 9], old[2..len + 9]);
            assert_eq!(Fcs::Crc16.split(&new).map(|(_, right)| right), Some(true));
        }
    }
}
