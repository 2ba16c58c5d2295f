//! The datagrams of RDCA (`docs/reference/rdca-protocol.md` has the byte diagrams; paper: `rdca`,
//! section 3.2).
//!
//! A datagram is one message. It begins with one byte: the type in the high nibble, flags in the
//! low one. Integers are big-endian. The paper puts a flag, a sequence number and a time stamp into
//! 32 bits (erratum H15), which hold no clock that lasts for more than moments; here each has 32
//! bits of its own, and a stream number, by which either side notices that the other began anew.
//! Data pays 13 bytes, 17 with a measured round trip.
//!
//! [`Header`] chooses between the two.
//!
//! There is no check sum: the datagram service has one.

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
    /// Bytes of the longest header of a data packet.
    pub const fn data_octets(self) -> usize {
        match self {
            Self::Ours => MAX_DATA_HEADER,
            Self::Printed => printed::HEADER,
        }
    }

    /// Appends `message` to `out`: one datagram.
    pub fn encode(self, message: &Message, out: &mut Vec<u8>) {
        match self {
            Self::Ours => encode(message, out),
            Self::Printed => printed::encode(message, out),
        }
    }

    /// Reads one datagram. Of data with the printed header, `expected` completes what it leaves
    /// out.
    ///
    /// # Errors
    ///
    /// As [`decode()`].
    pub fn decode(self, datagram: &Bytes, expected: Expected) -> Result<Message, DecodeError> {
        match self {
            Self::Ours => decode(datagram),
            Self::Printed => printed::decode(datagram, expected),
        }
    }
}
