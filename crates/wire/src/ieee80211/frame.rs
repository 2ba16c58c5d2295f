//! Writes and parses frames.

use alloc::vec::Vec;
use core::fmt;

use super::{Address, FCS_LEN, Frame, Header, MAX_DURATION, fcs};
use crate::reader::Reader;

/// The field that made [`parse`] refuse a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Field {
    /// The frame is too short for frame control, duration, an address and the FCS.
    Frame,
    /// The protocol version is not 0.
    Version,
    /// The type and subtype are none of data, RTS, CTS and acknowledgement.
    Kind,
    /// A frame control flag that ad hoc networks here do not use: to or from an access point,
    /// fragments, power save, more data, protection, order.
    Flags,
    /// The highest bit of the duration is set, so it is not a time.
    Duration,
    /// The header runs past the end of the frame.
    Header,
    /// The frame is a fragment other than the first.
    Fragment,
    /// LLC and SNAP headers are not those of RFC 1042.
    Snap,
    /// A control frame is longer than its type allows.
    Length,
    /// The frame check sequence does not match the bytes before it.
    Fcs,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Frame => "MAC frame",
            Self::Version => "protocol version",
            Self::Kind => "type",
            Self::Flags => "flags",
            Self::Duration => "duration",
            Self::Header => "header",
            Self::Fragment => "fragment number",
            Self::Snap => "LLC and SNAP header",
            Self::Length => "length of a control frame",
            Self::Fcs => "frame check sequence",
        })
    }
}

/// The bytes are not a valid frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("bad {field} at octet {offset} of an 802.11 frame")]
pub struct ParseError {
    /// The invalid or truncated field.
    pub field: Field,
    /// Offset of that field in bytes.
    pub offset: usize,
}

/// Why a frame cannot be encoded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The duration does not fit into the 15 bits of its field.
    #[error("a duration of {micros} us exceeds 32767 us")]
    Duration {
        /// The duration in microseconds.
        micros: u16,
    },
    /// The sequence number does not fit into the 12 bits of its field.
    #[error("a sequence number of {seq} exceeds 4095")]
    Sequence {
        /// The sequence number.
        seq: u16,
    },
}

/// Appends the frame to `out`, FCS included. On error, `out` is unchanged.
pub fn emit(frame: &Frame<'_>, out: &mut Vec<u8>) -> Result<(), EmitError> {
    let start = out.len();
    let (control, duration) = match *frame {
        Frame::Data(Header { duration, retry, seq, .. }, _) => {
            if seq > MAX_SEQ {
                return Err(EmitError::Sequence { seq });
            }
            (DATA | if retry { RETRY } else { 0 }, duration)
        }
        Frame::Rts { duration, .. } => (RTS, duration),
        Frame::Cts { duration, .. } => (CTS, duration),
        Frame::Ack { duration, .. } => (ACK, duration),
    };
    if duration > MAX_DURATION {
        return Err(EmitError::Duration { micros: duration });
    }
    out.extend_from_slice(&control.to_le_bytes());
    out.extend_from_slice(&duration.to_le_bytes());
    match *frame {
        Frame::Data(Header { dst, src, bssid, seq, ether_type, .. }, payload) => {
            for address in [dst, src, bssid] {
                out.extend_from_slice(&address.0);
            }
            out.extend_from_slice(&(seq << SEQ_SHIFT).to_le_bytes());
            out.extend_from_slice(&SNAP);
            out.extend_from_slice(&ether_type.to_be_bytes());
            out.extend_from_slice(payload);
        }
        Frame::Rts { receiver, transmitter, .. } => {
            out.extend_from_slice(&receiver.0);
            out.extend_from_slice(&transmitter.0);
        }
        Frame::Cts { receiver, .. } | Frame::Ack { receiver, .. } => out.extend_from_slice(&receiver.0),
    }
    let fcs = fcs(&out[start..]);
    out.extend_from_slice(&fcs.to_le_bytes());
    Ok(())
}

/// Parses one frame. `octets` holds the whole frame; its FCS is checked first.
pub fn parse(octets: &[u8]) -> Result<Frame<'_>, ParseError> {
    let at = |field, offset| ParseError { field, offset };
    let (frame, sum) = octets.split_last_chunk::<FCS_LEN>().ok_or(at(Field::Frame, 0))?;
    // First, since every other field of a damaged frame is meaningless.
    if fcs(frame) != u32::from_le_bytes(*sum) {
        return Err(at(Field::Fcs, frame.len()));
    }
    let mut reader = Reader::new(frame);
    let control = reader.take().map(u16::from_le_bytes).ok_or(at(Field::Frame, 0))?;
    let duration = reader.take().map(u16::from_le_bytes).ok_or(at(Field::Frame, 0))?;
    if control & VERSION_MASK != 0 {
        return Err(at(Field::Version, 0));
    }
    let kind = control & KIND_MASK;
    if ![DATA, RTS, CTS, ACK].contains(&kind) {
        return Err(at(Field::Kind, 0));
    }
    // A control frame is never sent as a retry (7.1.3.1.5).
    let allowed = if kind == DATA { RETRY } else { 0 };
    if control & !KIND_MASK & !allowed != 0 {
        return Err(at(Field::Flags, 1));
    }
    if duration > MAX_DURATION {
        return Err(at(Field::Duration, 2));
    }
    let read = match kind {
        DATA => return data(duration, control & RETRY != 0, reader),
        RTS => Frame::Rts { duration, receiver: address(&mut reader)?, transmitter: address(&mut reader)? },
        CTS => Frame::Cts { duration, receiver: address(&mut reader)? },
        _ => Frame::Ack { duration, receiver: address(&mut reader)? },
    };
    match reader.rest() {
        [] => Ok(read),
        [..] => Err(at(Field::Length, reader.at())),
    }
}

fn data<'a>(duration: u16, retry: bool, mut reader: Reader<'a>) -> Result<Frame<'a>, ParseError> {
    let (dst, src, bssid) = (address(&mut reader)?, address(&mut reader)?, address(&mut reader)?);
    let offset = reader.at();
    let sequence = reader.take().map(u16::from_le_bytes);
    let sequence = sequence.ok_or(ParseError { field: Field::Header, offset })?;
    if sequence & FRAGMENT_MASK != 0 {
        return Err(ParseError { field: Field::Fragment, offset });
    }
    let snap = ParseError { field: Field::Snap, offset: reader.at() };
    if reader.take::<6>().ok_or(snap)? != SNAP {
        return Err(snap);
    }
    let ether_type = reader.u16().ok_or(snap)?;
    let header = Header { duration, dst, src, bssid, seq: sequence >> SEQ_SHIFT, retry, ether_type };
    Ok(Frame::Data(header, reader.rest()))
}

fn address(reader: &mut Reader<'_>) -> Result<Address, ParseError> {
    let error = ParseError { field: Field::Header, offset: reader.at() };
    reader.take().map(Address).ok_or(error)
}

/// LLC and SNAP headers for an EtherType (RFC 1042): DSAP, SSAP, unnumbered information,
/// organisation code zero.
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];

// The frame control field, figure 7-2, with type and subtype of table 7-1.
const VERSION_MASK: u16 = 3;
const KIND_MASK: u16 = 0xfc;
const DATA: u16 = 0x08;
const RTS: u16 = 0xb4;
const CTS: u16 = 0xc4;
const ACK: u16 = 0xd4;
const RETRY: u16 = 1 << 11;
// The sequence control field, figure 7-5.
const FRAGMENT_MASK: u16 = 0xf;
const SEQ_SHIFT: u16 = 4;
const MAX_SEQ: u16 = 4095;

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use proptest::prelude::*;
    use proptest::test_runner::{Config, RngSeed};

    use super::super::{ACK_LEN, CTS_LEN, RTS_LEN, data_len};
    use super::*;

    fn header() -> Header {
        let (dst, src) = (Address::numbered(2), Address::numbered(1));
        let bssid = Address([2, 1, 2, 3, 4, 5]);
        Header { duration: 314, dst, src, bssid, seq: 0xabc, retry: true, ether_type: 0x86dd }
    }

    fn octets(frame: &Frame<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        emit(frame, &mut out).unwrap();
        out
    }

    #[test]
    fn a_data_frame_is_these_octets() {
        let frame = octets(&Frame::Data(header(), b"hi"));
        assert_eq!(frame[..4], [0x08, 0x08, 0x3a, 0x01]);
        assert_eq!(frame[4..22], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 2, 1, 2, 3, 4, 5]);
        assert_eq!(frame[22..34], [0xc0, 0xab, 0xaa, 0xaa, 3, 0, 0, 0, 0x86, 0xdd, b'h', b'i']);
        assert_eq!(frame.len(), data_len(2));
        assert_eq!(parse(&frame), Ok(Frame::Data(header(), b"hi")));
    }

    #[test]
    fn control_frames_are_short() {
        let (receiver, transmitter) = (Address::numbered(1), Address::numbered(2));
        let rts = Frame::Rts { duration: 5000, receiver, transmitter };
        let (cts, ack) = (Frame::Cts { duration: 4000, receiver }, Frame::Ack { duration: 0, receiver });
        for (frame, first, len) in [(rts, 0xb4, RTS_LEN), (cts, 0xc4, CTS_LEN), (ack, 0xd4, ACK_LEN)] {
            let octets = octets(&frame);
            assert_eq!((octets[0], octets[1], octets.len()), (first, 0, len));
            assert_eq!(parse(&octets), Ok(frame));
        }
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let mut out = Vec::new();
        let long = Header { duration: 32_768, ..header() };
        assert_eq!(emit(&Frame::Data(long, b""), &mut out), Err(EmitError::Duration { micros: 32_768 }));
        let far = Header { seq: 4096, ..header() };
        assert_eq!(emit(&Frame::Data(far, b""), &mut out), Err(EmitError::Sequence { seq: 4096 }));
        assert!(out.is_empty());
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        let refusal = |change: fn(&mut Vec<u8>)| {
            let mut frame = octets(&Frame::Data(header(), b"hi"));
            frame.truncate(frame.len() - FCS_LEN);
            change(&mut frame);
            let sum = fcs(&frame);
            frame.extend(sum.to_le_bytes());
            parse(&frame).map(|_| ()).unwrap_err()
        };
        for (field, change) in [
            (Field::Frame, (|f| f.truncate(3)) as fn(&mut Vec<u8>)),
            (Field::Version, |f| f[0] |= 1),
            (Field::Kind, |f| f[0] = 0x80),
            (Field::Flags, |f| f[1] |= 1),
            (Field::Duration, |f| f[3] |= 0x80),
            (Field::Header, |f| f.truncate(21)),
            (Field::Header, |f| f.truncate(23)),
            (Field::Fragment, |f| f[22] |= 1),
            (Field::Snap, |f| f[24] = 0),
            (Field::Snap, |f| f.truncate(31)),
            (Field::Flags, |f| f[0] = 0xd4),
            (Field::Length, |f| (f[0], f[1]) = (0xd4, 0)),
        ] {
            assert_eq!(refusal(change).field, field);
        }
        let mut damaged = octets(&Frame::Ack { duration: 0, receiver: Address::BROADCAST });
        damaged[5] ^= 1;
        let error = parse(&damaged).unwrap_err();
        assert_eq!(error.to_string(), "bad frame check sequence at octet 10 of an 802.11 frame");
        assert_eq!(parse(b"abc").unwrap_err().field, Field::Frame);
    }

    fn config() -> Config {
        Config { rng_seed: RngSeed::Fixed(80_211), failure_persistence: None, ..Config::default() }
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn what_is_written_is_read(
            duration in 0..=MAX_DURATION, dst: [u8; 6], src: [u8; 6], bssid: [u8; 6], seq in 0..=MAX_SEQ,
            retry: bool, ether_type: u16, payload: Vec<u8>,
        ) {
            let [dst, src, bssid] = [dst, src, bssid].map(Address);
            let header = Header { duration, dst, src, bssid, seq, retry, ether_type };
            for frame in [
                Frame::Data(header, &payload),
                Frame::Rts { duration, receiver: dst, transmitter: src },
                Frame::Cts { duration, receiver: dst },
                Frame::Ack { duration, receiver: dst },
            ] {
                let octets = octets(&frame);
                prop_assert_eq!(parse(&octets), Ok(frame));
            }
        }

        #[test]
        fn whatever_is_read_is_written_as_it_was(mut frame: Vec<u8>, kind in 0_usize..5) {
            if let Some(first) = frame.first_mut() {
                *first = [DATA as u8, RTS as u8, CTS as u8, ACK as u8, *first][kind];
            }
            let sum = fcs(&frame);
            frame.extend(sum.to_le_bytes());
            if let Ok(read) = parse(&frame) {
                prop_assert_eq!(octets(&read), frame);
            }
        }

        #[test]
        fn one_flipped_bit_is_noticed(payload: Vec<u8>, bit: prop::sample::Index) {
            let mut frame = octets(&Frame::Data(header(), &payload));
            let bit = bit.index(frame.len() * 8);
            frame[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(parse(&frame).unwrap_err().field, Field::Fcs);
        }
    }
}
