//! IEEE 802.15.4 frames: parses them, encodes the result, and parses it again.

use anabranch_wire::ieee802154::{self, Address, EmitError, Fcs, Frame};

use crate::probe::Probe;

/// The first byte says whether the FCS of the following frame is corrected first, since otherwise
/// nothing after it would be reached, and which FCS it is.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Some((flags, frame)) = input.split_first() else { return };
    let mut frame = frame.to_vec();
    let check = if flags & 2 == 0 { Fcs::Crc16 } else { Fcs::Crc32 };
    if flags & 1 != 0 {
        match check {
            Fcs::Crc16 => frame.extend(fcs(&frame).to_le_bytes()),
            Fcs::Crc32 => frame.extend(crc32(&frame).to_le_bytes()),
        }
    }
    let read = match ieee802154::parse(&frame, check) {
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
            ieee802154::emit_ack(*seq, check, &mut written);
            assert_eq!(written.len(), check.ack_len());
            assert_eq!(ieee802154::parse(&written, check), Ok(read));
        }
        Frame::Addressed(header, range) => {
            let is_short = |address| matches!(address, Address::Short(_));
            probe.feature((header.kind, header.ack_request, is_short(header.dst), is_short(header.src)));
            probe.feature(("payload", range.len().min(110)));
            let payload = &frame[range.clone()];
            match ieee802154::emit(header, payload, check, &mut written) {
                Ok(()) => {
                    assert_eq!(written.len(), header.frame_len(payload.len(), check));
                    let start = header.len();
                    let again = Frame::Addressed(*header, start..start + payload.len());
                    assert_eq!(ieee802154::parse(&written, check), Ok(again));
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

/// The CRC with 32 bits, bit by bit; shorter inputs are padded with zeros to four bytes.
fn crc32(octets: &[u8]) -> u32 {
    let padding = 4_usize.saturating_sub(octets.len());
    let mut crc = !0_u32;
    for octet in octets.iter().chain(&[0; 4][..padding]) {
        crc ^= u32::from(*octet);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

/// The CRC bit by bit, implemented a second time to check the first.
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
