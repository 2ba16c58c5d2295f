//! MAC frames of IEEE 802.11, as stations of an ad hoc network (IBSS) exchange them.
//!
//! A [`Frame`] is meaning, and [`emit`] and [`parse`] go between it and bytes, FCS included: data
//! with its LLC and SNAP headers, RTS, CTS and acknowledgements. [`radiotap`] is what a capture has
//! before each frame.
//!
//! Sources: IEEE Std 802.11-2007, clause 7, and RFC 1042 for LLC and SNAP. Management frames,
//! frames to or from an access point, QoS, fragments, encryption and power save are refused. How
//! long a frame may be is the PHY's affair.

mod fcs;
mod frame;
pub mod radiotap;

pub use fcs::fcs;
pub use frame::{EmitError, Field, ParseError, emit, parse};

/// Bytes of the frame check sequence, a CRC-32 (7.1.3.7).
pub const FCS_LEN: usize = 4;
/// Bytes of an RTS (7.2.1.1).
pub const RTS_LEN: usize = 16 + FCS_LEN;
/// Bytes of a CTS (7.2.1.2).
pub const CTS_LEN: usize = 10 + FCS_LEN;
/// Bytes of an acknowledgement (7.2.1.3).
pub const ACK_LEN: usize = 10 + FCS_LEN;
/// Bytes before the payload of data: MAC header (7.2.2), LLC and SNAP.
pub const DATA_HEADER_LEN: usize = 24 + 8;
/// The longest time that a Duration field says, in microseconds (7.1.3.2).
pub const MAX_DURATION: u16 = 32_767;

/// Bytes of a data frame around a payload, FCS included.
pub const fn data_len(payload_len: usize) -> usize {
    DATA_HEADER_LEN + payload_len + FCS_LEN
}

/// A station, or all: 48 bits, in the order in which they are printed and sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address(pub [u8; 6]);

impl Address {
    /// Everybody.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// The address of a station that has nothing but a number: locally administered, of one
    /// station.
    pub const fn numbered(number: u32) -> Self {
        let [a, b, c, d] = number.to_be_bytes();
        Self([2, 0, a, b, c, d])
    }

    /// It is a group's, as that of everybody is (7.1.3.3.1).
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
}

/// What stands before the payload of data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// Microseconds that the exchange still takes after this frame; at most [`MAX_DURATION`].
    pub duration: u16,
    /// Destination address.
    pub dst: Address,
    /// Source address.
    pub src: Address,
    /// The ad hoc network.
    pub bssid: Address,
    /// Sequence number, 0 to 4095 (7.1.3.4.1).
    pub seq: u16,
    /// It is sent again.
    pub retry: bool,
    /// What the payload is, as in Ethernet: 0x0800 for IPv4, 0x86dd for IPv6.
    pub ether_type: u16,
}

/// A frame of an ad hoc network.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Frame<'a> {
    /// Data, with its payload.
    Data(Header, &'a [u8]),
    /// Request to send.
    Rts {
        /// Microseconds that the exchange still takes; at most [`MAX_DURATION`].
        duration: u16,
        /// Destination address.
        receiver: Address,
        /// Source address.
        transmitter: Address,
    },
    /// Clear to send.
    Cts {
        /// Microseconds that the exchange still takes; at most [`MAX_DURATION`].
        duration: u16,
        /// Whom it is for: who sent the RTS.
        receiver: Address,
    },
    /// Acknowledgement.
    Ack {
        /// 0, for there are no fragments; at most [`MAX_DURATION`].
        duration: u16,
        /// Whom it is for: who sent the data.
        receiver: Address,
    },
}
