//! IEEE 802.11 frames: parses them, encodes the result, and parses it again.

use anabranch_wire::ieee80211::{self, Frame};

use crate::probe::Probe;

/// The first byte says whether the FCS of the following frame is corrected first, since otherwise
/// nothing after it would be reached.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let Some((flags, frame)) = input.split_first() else { return };
    let mut frame = frame.to_vec();
    if flags & 1 != 0 {
        frame.extend(fcs(&frame).to_le_bytes());
    }
    let read = match ieee80211::parse(&frame) {
        Ok(read) => read,
        Err(error) => {
            probe.say(|| error);
            assert!(error.offset <= frame.len(), "{error} in {} octets", frame.len());
            return probe.feature((error.field, error.offset.min(40)));
        }
    };
    probe.say(|| format!("{read:?}"));
    match read {
        Frame::Data(header, payload) => {
            probe.feature(("data", header.retry, header.dst.is_group(), payload.len().min(64)));
            assert_eq!(frame.len(), ieee80211::data_len(payload.len()));
        }
        Frame::Rts { .. } => probe.feature("rts"),
        Frame::Cts { .. } => probe.feature("cts"),
        Frame::Ack { .. } => probe.feature("ack"),
    }
    // Parsing loses nothing, so encoding restores the frame.
    let mut written = Vec::new();
    ieee80211::emit(&read, &mut written).expect("what was read has room");
    assert_eq!(written, frame);
}

/// The CRC bit by bit, implemented a second time to check the first.
fn fcs(octets: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for octet in octets {
        crc ^= u32::from(*octet);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}
