//! The messages of the SET session layer (`docs/reference/set-protocol.md` has the byte diagrams).
//!
//! Messages travel inside reliable byte streams, one after another, without padding. Every message
//! begins with one byte: the type in the high nibble, flags in the low one. Integers are
//! big-endian; where a length varies, they are the variable-length integers of RFC 9000 section 16
//! (1, 2, 4 or 8 bytes).
//!
//! A data chunk pays 2 to 4 bytes where it follows the previous chunk of its session, and its
//! offset on top where it does not. The paper's header (section 4.2.2: 20 bytes with both
//! addresses and both ports) stays selectable as [`Layout::Paper`], for data chunks, to measure the
//! difference; it has no type and no length, so those three bytes stand before it (errata S16).

mod decode;
mod encode;
mod message;
mod varint;

pub use decode::{DecodeError, Decoder, Item, MAX_NODE_HEADER, transfer_of_request};
pub use encode::{data_header, encode};
pub use message::{
    Accept, Ack, Energy, FileIdentity, Gateway, Join, Layout, MAX_COPY, MAX_GATEWAYS, MAX_MANIFEST,
    MAX_NEIGHBOURS, MAX_RANGES, Message, Neighbour, PaperAddresses, Plan, Range, Refuse, RefuseReason,
    Request, SetAck, SetAckStatus, SetSyn, TransferId, VERSION,
};
