//! Messages of the SET session layer (byte diagrams: `docs/reference/set-protocol.md`).
//!
//! Reliable byte streams carry the messages back to back, without padding. The first byte of a
//! message has the type in the high nibble and flags in the low nibble. Integers are big-endian;
//! those of variable length are encoded as in RFC 9000 section 16 (1, 2, 4 or 8 bytes).
//!
//! The header of a data chunk has 2 to 4 bytes if the chunk follows the previous chunk of its
//! session; otherwise the offset is added. [`Layout::Paper`] selects the header of the paper
//! (section 4.2.2: 20 bytes with both addresses and both ports) for data chunks, to measure the
//! difference. That header has no type and no length, so three bytes of type and length precede it
//! (errata S16).

mod decode;
mod encode;
mod message;
mod varint;

pub use decode::{DecodeError, Decoder, Item, MAX_NODE_HEADER, transfer_of_request};
pub use encode::{ask_at_once, data_header, encode};
pub use message::{
    Accept, Ack, Energy, FileIdentity, Gateway, Join, Layout, MAX_COPY, MAX_GATEWAYS, MAX_MANIFEST,
    MAX_NEIGHBOURS, MAX_RANGES, Message, Neighbour, PaperAddresses, Plan, Range, Refuse, RefuseReason,
    Request, SetAck, SetAckStatus, SetSyn, TransferId, VERSION,
};
