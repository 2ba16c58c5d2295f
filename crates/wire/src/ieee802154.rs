//! MAC frames of IEEE 802.15.4, as nodes of a network without beacons exchange them.
//!
//! A frame is a [`Header`], which is meaning, and a payload; [`emit`] and [`parse`] go between the
//! two and bytes, FCS ([`Fcs`]) included. An immediate acknowledgement has a sequence number and
//! nothing else: [`emit_ack`]. [`tap`] is what a capture has before each frame.
//!
//! Frames have version 0 or 1 (IEEE 802.15.4-2006 section 7.2.1, 802.15.4-2015 section 7.2.2) and
//! both addresses in one PAN. Beacons, security, frames between PANs, frames without one of the
//! addresses and version 2, with its information elements, are refused, and so are wake-up frames:
//! those are written ([`emit_wakeup`], [`emit_enh_ack`], [`emit_version_2`]) and not read. The
//! frame pending bit is not kept. How long a frame may be is the PHY's affair.

mod csl;
mod fcs;
mod frame;
pub mod tap;

pub use csl::{Csl, ENH_ACK_LEN, WAKEUP_LEN, emit_enh_ack, emit_version_2, emit_wakeup};
pub use fcs::{Fcs, fcs};
pub use frame::{EmitError, Field, Frame, ParseError, emit, emit_ack, parse};

/// The most bytes of payload that a frame of version 0 has: aMaxMACSafePayloadSize (IEEE
/// 802.15.4-2006 table 85). A longer payload makes it version 1.
pub const MAX_SAFE_PAYLOAD: usize = 102;

/// Who sends or receives on the link. Ordered as numbers, short addresses first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Address {
    /// 16 bits, which are unique in the PAN.
    Short(u16),
    /// An EUI-64, in the order in which it is printed; the frame has it the other way round.
    Extended([u8; 8]),
}

impl Address {
    /// Everybody in the PAN.
    pub const BROADCAST: Self = Self::Short(0xffff);

    /// Bytes of the address field.
    #[allow(clippy::len_without_is_empty, reason = "an address is never empty")]
    pub const fn len(self) -> usize {
        match self {
            Self::Short(_) => 2,
            Self::Extended(_) => 8,
        }
    }

    /// Everybody is meant.
    pub const fn is_broadcast(self) -> bool {
        matches!(self, Self::Short(0xffff))
    }
}

/// What a frame with addresses is (IEEE 802.15.4-2015 table 7-1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Its payload is of the layer above.
    Data,
    /// Its payload is a MAC command: one byte of identifier, and what belongs to it.
    Command,
}

/// What stands before the payload (IEEE 802.15.4-2015 section 7.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// What the frame is.
    pub kind: Kind,
    /// The receiver is to answer with an acknowledgement; never to a broadcast (section 6.7.4.2).
    pub ack_request: bool,
    /// Which frame this is: an acknowledgement repeats the number, and a retransmission has that of
    /// the first.
    pub seq: u8,
    /// The PAN of both addresses; `0xffff` is every PAN.
    pub pan: u16,
    /// Destination address.
    pub dst: Address,
    /// Source address.
    pub src: Address,
}

impl Header {
    /// Bytes before the payload: frame control, sequence number, one PAN and the addresses; 9 to 21.
    #[allow(clippy::len_without_is_empty, reason = "a header is never empty")]
    pub const fn len(&self) -> usize {
        2 + 1 + 2 + self.dst.len() + self.src.len()
    }

    /// Bytes of the whole frame around a payload, FCS included.
    pub const fn frame_len(&self, payload_len: usize, fcs: Fcs) -> usize {
        self.len() + payload_len + fcs.len()
    }
}
