//! Datagrams of RDCA (byte diagrams: `docs/reference/rdca-protocol.md`; paper: `rdca`, section
//! 3.2).
//!
//! A datagram carries one message. Its first byte has the type in the high nibble and flags in the
//! low nibble. Integers are big-endian.
//!
//! The paper puts a flag, a sequence number and a time stamp into 32 bits (erratum H15), so the
//! number and the time stamp wrap within moments. Here each has 32 bits of its own. A stream number
//! lets either side detect a restart of the other. The data header has 13 bytes, or 17 bytes with a
//! measured round-trip time. [`Header`] selects between the two formats.
//!
//! Messages have no checksum, since the datagram service has one.

use alloc::vec::Vec;

use bytes::Bytes;

mod decode;
mod encode;
mod message;
mod printed;

pub use decode::{DecodeError, decode};
pub use encode::{data_header, encode};
pub use message::{
    Data, Gone, Header, Incarnation, MAX_DATA_HEADER, MAX_RANGES, Message, Piece, Probe, Range, Ranges,
    Refuse, RefuseReason, Reply, Report, Request, Seq, Snack, StreamId, TimeStamp, VERSION,
};
pub use printed::Expected;

impl Header {
    /// Length of the longest header of a data packet in bytes.
    pub const fn data_octets(self) -> usize {
        match self {
            Self::Ours => MAX_DATA_HEADER,
            Self::Printed => printed::HEADER,
        }
    }

    /// Appends `message` to `out` as one datagram.
    pub fn encode(self, message: &Message, out: &mut Vec<u8>) {
        match self {
            Self::Ours => encode(message, out),
            Self::Printed => printed::encode(message, out),
        }
    }

    /// Parses one datagram. `expected` completes the fields that the printed header of a data
    /// packet shortens or omits.
    ///
    /// # Errors
    ///
    /// Those of [`decode()`].
    pub fn decode(self, datagram: &Bytes, expected: Expected) -> Result<Message, DecodeError> {
        match self {
            Self::Ours => decode(datagram),
            Self::Printed => printed::decode(datagram, expected),
        }
    }
}
