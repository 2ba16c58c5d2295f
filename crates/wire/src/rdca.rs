//! The datagrams of RDCA (`docs/rdca-protocol.md` has the byte diagrams; paper: `rdca`, section 3.2).
//!
//! A datagram is one message. It begins with one octet: the type in the high nibble, flags in the low one. Integers are
//! big-endian. The paper puts a flag, a sequence number and a time stamp into 32 bits (erratum H15), which hold no clock
//! that lasts for more than moments; here each has 32 bits of its own, and a stream number, by which either side notices
//! that the other began anew. Data pays 13 octets, 17 with a measured round trip.
//!
//! There is no check sum: the datagram service has one.

mod decode;
mod encode;
mod message;

pub use decode::{DecodeError, decode};
pub use encode::{data_header, encode};
pub use message::{
    Data, Gone, Incarnation, MAX_DATA_HEADER, MAX_RANGES, Message, Probe, Range, Ranges, Refuse,
    RefuseReason, Reply, Report, Request, Seq, Snack, StreamId, TimeStamp, VERSION,
};
