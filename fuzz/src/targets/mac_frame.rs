//! Frames of IEEE 802.15.4: octets to meaning, and what was understood written and read again.

use anabranch_wire::ieee802154::{self, Address, EmitError, Frame};

use crate::probe::Probe;

/// The first octet says whether the FCS of the frame behind it is made right first, or nothing past it would ever
/// be reached.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Some((flags, frame)) = input.split_first() else { return };
    let mut frame = frame.to_vec();
    if flags & 1 != 0 {
        frame.extend(fcs(&frame).to_le_bytes());
    }
    let read = match ieee802154::parse(&frame) {
        Ok(read) => read,
        Err(error) => {
            probe.say(|| error);
            assert!(error.offset <= frame.len(), "{error} in {} octets", frame.len());
            return probe.feature((error.field, error.offset.min(32)));
        }
    };
    probe.say(|| format!("{read:?}"));
    let mut written = Vec::new();
    match &read {
        Frame::Ack { seq } => {
            probe.feature("ack");
            ieee802154::emit_ack(*seq, &mut written);
            assert_eq!(written.len(), ieee802154::ACK_LEN);
            assert_eq!(ieee802154::parse(&written), Ok(read));
        }
        Frame::Addressed(header, range) => {
            let is_short = |address| matches!(address, Address::Short(_));
            probe.feature((header.kind, header.ack_request, is_short(header.dst), is_short(header.src)));
            probe.feature(("payload", range.len().min(110)));
            let payload = &frame[range.clone()];
            match ieee802154::emit(header, payload, &mut written) {
                Ok(()) => {
                    assert_eq!(written.len(), header.frame_len(payload.len()));
                    let start = header.len();
                    let again = Frame::Addressed(*header, start..start + payload.len());
                    assert_eq!(ieee802154::parse(&written), Ok(again));
                    assert_eq!(&written[start..start + payload.len()], payload);
                }
                Err(EmitError::AckOfBroadcast) => {
                    assert!(header.ack_request && header.dst.is_broadcast());
                }
                Err(error) => panic!("{header:?}: {error}"),
            }
        }
    }
}

/// The CRC bit by bit, written a second time so that it checks the first.
fn fcs(octets: &[u8]) -> u16 {
    let mut crc = 0_u16;
    for octet in octets {
        crc ^= u16::from(*octet);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x8408 } else { crc >> 1 };
        }
    }
    crc
}
