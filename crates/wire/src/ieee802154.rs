//! MAC frames of IEEE 802.15.4, as nodes of a network without beacons exchange them.
//!
//! A frame consists of a [`Header`] and a payload; [`emit`] and [`parse`] convert between these and
//! bytes, FCS ([`Fcs`]) included. An immediate acknowledgement has only a sequence number:
//! [`emit_ack`]. [`tap`] writes the header that a capture has before each frame.
//!
//! Frames have version 0 or 1 (IEEE 802.15.4-2006 section 7.2.1, 802.15.4-2015 section 7.2.2) and
//! both addresses in one PAN. [`parse`] refuses beacons, security, frames between PANs, frames
//! without one of the addresses, and version 2 with its information elements. Wake-up frames and
//! frames of version 2 are only written ([`emit_wakeup`], [`emit_enh_ack`], [`emit_version_2`]).
//! [`parse`] drops the frame pending bit. The PHY limits the frame length; this module does not
//! check it.

mod csl;
mod fcs;
mod frame;
pub mod tap;

pub use csl::{Csl, ENH_ACK_LEN, WAKEUP_LEN, emit_enh_ack, emit_version_2, emit_wakeup};
pub use fcs::{Fcs, fcs};
pub use frame::{EmitError, Field, Frame, ParseError, emit, emit_ack, parse};

/// Largest payload of a version 0 frame in bytes: aMaxMACSafePayloadSize (IEEE 802.15.4-2006 table
/// 85). A longer payload makes the frame version 1.
pub const MAX_SAFE_PAYLOAD: usize = 102;

/// A link-layer address. Ordered as numbers, short addresses first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Address {
    /// A 16-bit address, unique within the PAN.
    Short(u16),
    /// An EUI-64 in printing order; the frame has its bytes reversed.
    Extended([u8; 8]),
}

impl Address {
    /// The broadcast address of the PAN.
    pub const BROADCAST: Self = Self::Short(0xffff);

    /// Length of the address field in bytes.
    #[allow(clippy::len_without_is_empty, reason = "an address is never empty")]
    pub const fn len(self) -> usize {
        match self {
            Self::Short(_) => 2,
            Self::Extended(_) => 8,
        }
    }

    /// True for the broadcast address.
    pub const fn is_broadcast(self) -> bool {
        matches!(self, Self::Short(0xffff))
    }
}

/// Type of a frame with addresses (IEEE 802.15.4-2015 table 7-1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// The payload belongs to the layer above.
    Data,
    /// The payload is a MAC command: a one-byte identifier and its content.
    Command,
}

/// The MAC header (IEEE 802.15.4-2015 section 7.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// Frame type.
    pub kind: Kind,
    /// Asks the receiver for an acknowledgement; never set in a broadcast (section 6.7.4.2).
    pub ack_request: bool,
    /// Sequence number. An acknowledgement repeats it, and a retransmission keeps it.
    pub seq: u8,
    /// The PAN of both addresses; `0xffff` means every PAN.
    pub pan: u16,
    /// Destination address.
    pub dst: Address,
    /// Source address.
    pub src: Address,
}

impl Header {
    /// Length before the payload in bytes, 9 to 21: frame control, sequence number, one PAN and the
    /// addresses.
    #[allow(clippy::len_without_is_empty, reason = "a header is never empty")]
    pub const fn len(&self) -> usize {
        2 + 1 + 2 + self.dst.len() + self.src.len()
    }

    /// Length of the whole frame in bytes, FCS included.
    pub const fn frame_len(&self, payload_len: usize, fcs: Fcs) -> usize {
        self.len() + payload_len + fcs.len()
    }
}
