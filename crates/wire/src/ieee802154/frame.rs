//! Writes and parses frames.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use super::{Address, Fcs, Header, Kind, MAX_SAFE_PAYLOAD};
use crate::reader::Reader;

/// A parsed frame.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Frame {
    /// An immediate acknowledgement (IEEE 802.15.4-2015 section 7.3.3).
    Ack {
        /// Sequence number of the acknowledged frame.
        seq: u8,
    },
    /// A frame with addresses, and the range of its payload.
    Addressed(Header, Range<usize>),
}

/// The field that made [`parse`] refuse a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Field {
    /// The frame is too short for frame control, sequence number and the FCS.
    Frame,
    /// The frame type is none of data, acknowledgement and MAC command.
    Kind,
    /// The frame is secured, which this module does not support.
    Security,
    /// The frame version is neither 0 nor 1.
    Version,
    /// An addressing mode is reserved, or an address is absent.
    AddressingMode,
    /// The two addresses are in different PANs.
    Pan,
    /// The addressing fields run past the end of the frame.
    Addresses,
    /// An acknowledgement has bytes after its sequence number.
    AckLength,
    /// The frame check sequence does not match the bytes before it.
    Fcs,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Frame => "MAC frame",
            Self::Kind => "frame type",
            Self::Security => "security bit",
            Self::Version => "frame version",
            Self::AddressingMode => "addressing mode",
            Self::Pan => "PAN identifier",
            Self::Addresses => "addressing fields",
            Self::AckLength => "length of an acknowledgement",
            Self::Fcs => "frame check sequence",
        })
    }
}

/// The bytes are not a valid frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("bad {field} at octet {offset} of a MAC frame")]
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
    /// A broadcast requests an acknowledgement: all receivers would answer at once (IEEE
    /// 802.15.4-2015 section 6.7.4.2).
    #[error("a broadcast cannot be acknowledged")]
    AckOfBroadcast,
}

/// Appends the frame to `out`, FCS included. On error, `out` is unchanged.
///
/// The frame has version 0, or 1 if the payload is longer than [`MAX_SAFE_PAYLOAD`]. The caller
/// checks with [`Header::frame_len`] that the PHY can carry it.
pub fn emit(header: &Header, payload: &[u8], fcs: Fcs, out: &mut Vec<u8>) -> Result<(), EmitError> {
    if header.ack_request && header.dst.is_broadcast() {
        return Err(EmitError::AckOfBroadcast);
    }
    let start = out.len();
    let kind = match header.kind {
        Kind::Data => TYPE_DATA,
        Kind::Command => TYPE_COMMAND,
    };
    let ack_request = if header.ack_request { ACK_REQUEST } else { 0 };
    let version = u16::from(payload.len() > MAX_SAFE_PAYLOAD) << VERSION_SHIFT;
    let modes = mode(header.dst) << DST_MODE_SHIFT | mode(header.src) << SRC_MODE_SHIFT;
    let control = kind | ack_request | PAN_COMPRESSION | version | modes;
    out.extend_from_slice(&control.to_le_bytes());
    out.push(header.seq);
    out.extend_from_slice(&header.pan.to_le_bytes());
    emit_address(header.dst, out);
    emit_address(header.src, out);
    out.extend_from_slice(payload);
    fcs.append(start, out);
    Ok(())
}

/// Appends the immediate acknowledgement of the frame with sequence number `seq`.
pub fn emit_ack(seq: u8, fcs: Fcs, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&TYPE_ACK.to_le_bytes());
    out.push(seq);
    fcs.append(start, out);
}

fn emit_address(address: Address, out: &mut Vec<u8>) {
    match address {
        Address::Short(short) => out.extend_from_slice(&short.to_le_bytes()),
        // Least significant byte first, the reverse of the printed order.
        Address::Extended(octets) => out.extend(octets.iter().rev()),
    }
}

/// Parses one frame. `octets` holds the whole frame; its FCS is checked first.
pub fn parse(octets: &[u8], fcs: Fcs) -> Result<Frame, ParseError> {
    let at = |field, offset| ParseError { field, offset };
    let Some((frame, is_right)) = fcs.split(octets) else {
        return Err(at(Field::Frame, 0));
    };
    if !is_right {
        return Err(at(Field::Fcs, frame.len()));
    }
    let [low, high, seq, rest @ ..] = frame else { return Err(at(Field::Frame, 0)) };
    let control = u16::from_le_bytes([*low, *high]);
    if control >> VERSION_SHIFT & 3 > 1 {
        return Err(at(Field::Version, 1));
    }
    if control & SECURITY != 0 {
        return Err(at(Field::Security, 0));
    }
    let kind = match control & TYPE_MASK {
        TYPE_ACK if rest.is_empty() => return Ok(Frame::Ack { seq: *seq }),
        TYPE_ACK => return Err(at(Field::AckLength, FIXED_LEN)),
        TYPE_DATA => Kind::Data,
        TYPE_COMMAND => Kind::Command,
        _ => return Err(at(Field::Kind, 0)),
    };
    let mut fields = Fields(Reader::new(rest));
    let pan = fields.u16()?;
    let dst = fields.address(control >> DST_MODE_SHIFT)?;
    // Without PAN ID compression, the PAN of the source is present too.
    if control & PAN_COMPRESSION == 0 {
        let offset = FIXED_LEN + fields.0.at();
        if fields.u16()? != pan {
            return Err(at(Field::Pan, offset));
        }
    }
    let src = fields.address(control >> SRC_MODE_SHIFT)?;
    let header = Header { kind, ack_request: control & ACK_REQUEST != 0, seq: *seq, pan, dst, src };
    Ok(Frame::Addressed(header, FIXED_LEN + fields.0.at()..frame.len()))
}

/// Reads the addressing fields from the front.
struct Fields<'a>(Reader<'a>);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        let error = ParseError { field: Field::Addresses, offset: FIXED_LEN + self.0.at() };
        self.0.take().ok_or(error)
    }

    fn u16(&mut self) -> Result<u16, ParseError> {
        self.take().map(u16::from_le_bytes)
    }

    /// Reads the address whose mode is in the two low bits of `mode`.
    fn address(&mut self, mode: u16) -> Result<Address, ParseError> {
        match mode & 3 {
            MODE_SHORT => self.u16().map(Address::Short),
            MODE_EXTENDED => {
                let mut octets = self.take::<8>()?;
                octets.reverse();
                Ok(Address::Extended(octets))
            }
            _ => Err(ParseError { field: Field::AddressingMode, offset: 1 }),
        }
    }
}

const fn mode(address: Address) -> u16 {
    match address {
        Address::Short(_) => MODE_SHORT,
        Address::Extended(_) => MODE_EXTENDED,
    }
}

/// Bytes of frame control and sequence number.
const FIXED_LEN: usize = 3;

// The frame control field, IEEE 802.15.4-2015 figure 7-2.
const TYPE_MASK: u16 = 7;
const TYPE_DATA: u16 = 1;
pub(super) const TYPE_ACK: u16 = 2;
const TYPE_COMMAND: u16 = 3;
const SECURITY: u16 = 1 << 3;
const ACK_REQUEST: u16 = 1 << 5;
const PAN_COMPRESSION: u16 = 1 << 6;
pub(super) const DST_MODE_SHIFT: u16 = 10;
pub(super) const VERSION_SHIFT: u16 = 12;
const SRC_MODE_SHIFT: u16 = 14;
pub(super) const MODE_SHORT: u16 = 2;
const MODE_EXTENDED: u16 = 3;

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    fn header() -> Header {
        let (dst, src) = (Address::Short(2), Address::Short(1));
        Header { kind: Kind::Data, ack_request: true, seq: 7, pan: 0xabcd, dst, src }
    }

    #[test]
    fn a_data_frame_is_these_octets() {
        let mut frame = Vec::new();
        emit(&header(), b"hi", Fcs::Crc16, &mut frame).unwrap();
        assert_eq!(frame[..11], [0x61, 0x88, 7, 0xcd, 0xab, 2, 0, 1, 0, b'h', b'i']);
        assert_eq!(frame.len(), header().frame_len(2, Fcs::Crc16));
        assert_eq!(parse(&frame, Fcs::Crc16), Ok(Frame::Addressed(header(), 9..11)));
    }

    #[test]
    fn an_extended_address_is_sent_backwards() {
        let src = Address::Extended([1, 2, 3, 4, 5, 6, 7, 8]);
        let header = Header { ack_request: false, dst: Address::BROADCAST, src, ..header() };
        let mut frame = Vec::new();
        emit(&header, b"", Fcs::Crc16, &mut frame).unwrap();
        assert_eq!(frame[..2], [0x41, 0xc8]);
        assert_eq!(frame[5..15], [0xff, 0xff, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(header.len(), 15);
        assert_eq!(parse(&frame, Fcs::Crc16), Ok(Frame::Addressed(header, 15..15)));
    }

    #[test]
    fn a_long_payload_makes_version_1() {
        for (len, version) in [(MAX_SAFE_PAYLOAD, 0), (MAX_SAFE_PAYLOAD + 1, 1)] {
            let mut frame = Vec::new();
            emit(&header(), &[0; 200][..len], Fcs::Crc16, &mut frame).unwrap();
            assert_eq!(frame[1] >> 4 & 3, version);
            assert!(parse(&frame, Fcs::Crc16).is_ok());
        }
    }

    #[test]
    fn an_acknowledgement_is_five_octets() {
        let mut frame = Vec::new();
        emit_ack(0x6a, Fcs::Crc16, &mut frame);
        assert_eq!(frame, [2, 0, 0x6a, 0xe4, 0x79]);
        assert_eq!(frame.len(), Fcs::Crc16.ack_len());
        assert_eq!(parse(&frame, Fcs::Crc16), Ok(Frame::Ack { seq: 0x6a }));
    }

    #[test]
    fn four_octets_of_fcs_are_read_as_such() {
        let mut frame = Vec::new();
        emit(&header(), b"hi", Fcs::Crc32, &mut frame).unwrap();
        assert_eq!(frame.len(), header().frame_len(2, Fcs::Crc32));
        assert_eq!(parse(&frame, Fcs::Crc32), Ok(Frame::Addressed(header(), 9..11)));
        assert_eq!(parse(&frame, Fcs::Crc16).unwrap_err().field, Field::Fcs);
        frame.clear();
        emit_ack(0x6a, Fcs::Crc32, &mut frame);
        assert_eq!(parse(&frame, Fcs::Crc32), Ok(Frame::Ack { seq: 0x6a }));
    }

    #[test]
    fn a_broadcast_is_not_acknowledged() {
        let header = Header { dst: Address::BROADCAST, ..header() };
        let mut frame = Vec::new();
        assert_eq!(emit(&header, b"", Fcs::Crc16, &mut frame), Err(EmitError::AckOfBroadcast));
        assert!(frame.is_empty());
    }

    /// Parses `octets` with a right FCS appended.
    fn read(octets: &[u8]) -> Result<Frame, ParseError> {
        let mut frame = octets.to_vec();
        Fcs::Crc16.append(0, &mut frame);
        parse(&frame, Fcs::Crc16)
    }

    #[test]
    fn one_pan_said_twice_is_one_pan() {
        let frame = [0x21, 0x88, 7, 0xcd, 0xab, 2, 0, 0xcd, 0xab, 1, 0];
        assert_eq!(read(&frame), Ok(Frame::Addressed(header(), 11..11)));
        let other = [0x21, 0x88, 7, 0xcd, 0xab, 2, 0, 0xce, 0xab, 1, 0];
        assert_eq!(read(&other), Err(ParseError { field: Field::Pan, offset: 7 }));
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        let refusal = |octets: &[u8]| read(octets).unwrap_err().field;
        assert_eq!(refusal(&[0x61, 0x88]), Field::Frame);
        assert_eq!(refusal(&[0x61, 0x88, 7, 0xcd, 0xab, 2, 0, 1]), Field::Addresses);
        assert_eq!(refusal(&[0x60, 0x88, 7, 0xcd, 0xab, 2, 0, 1, 0]), Field::Kind);
        assert_eq!(refusal(&[0x69, 0x88, 7, 0xcd, 0xab, 2, 0, 1, 0]), Field::Security);
        assert_eq!(refusal(&[0x61, 0xa8, 7, 0xcd, 0xab, 2, 0, 1, 0]), Field::Version);
        assert_eq!(refusal(&[0x61, 0x08, 7, 0xcd, 0xab, 2, 0, 1, 0]), Field::AddressingMode);
        assert_eq!(refusal(&[0x02, 0x00, 7, 8]), Field::AckLength);
        assert_eq!(parse(&[0x61], Fcs::Crc16).unwrap_err().field, Field::Frame);
        let damaged = parse(&[2, 0, 0x6b, 0xe4, 0x79], Fcs::Crc16).unwrap_err();
        assert_eq!(damaged, ParseError { field: Field::Fcs, offset: 3 });
        assert_eq!(damaged.to_string(), "bad frame check sequence at octet 3 of a MAC frame");
    }
}
