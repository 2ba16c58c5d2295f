//! MAC frames of IEEE 802.11, as stations of an ad hoc network (IBSS) exchange them.
//!
//! [`emit`] and [`parse`] convert between a [`Frame`] and its bytes, FCS included: data with its
//! LLC and SNAP headers, RTS, CTS and acknowledgements. [`radiotap`] writes the header that a
//! capture has before each frame.
//!
//! Sources: IEEE Std 802.11-2007, clause 7, and RFC 1042 for LLC and SNAP. [`parse`] refuses
//! management frames, frames to or from an access point, QoS, fragments, encryption and power save.
//! The PHY limits the frame length; this module does not check it.

mod fcs;
mod frame;
pub mod radiotap;

pub use fcs::fcs;
pub use frame::{EmitError, Field, ParseError, emit, parse};

/// Length of the frame check sequence in bytes: a CRC-32 (7.1.3.7).
pub const FCS_LEN: usize = 4;
/// Length of an RTS in bytes (7.2.1.1).
pub const RTS_LEN: usize = 16 + FCS_LEN;
/// Length of a CTS in bytes (7.2.1.2).
pub const CTS_LEN: usize = 10 + FCS_LEN;
/// Length of an acknowledgement in bytes (7.2.1.3).
pub const ACK_LEN: usize = 10 + FCS_LEN;
/// Bytes before the payload of a data frame: MAC header (7.2.2), LLC and SNAP.
pub const DATA_HEADER_LEN: usize = 24 + 8;
/// The largest value of a Duration field, in microseconds (7.1.3.2).
pub const MAX_DURATION: u16 = 32_767;

/// Length of a data frame in bytes, FCS included.
pub const fn data_len(payload_len: usize) -> usize {
    DATA_HEADER_LEN + payload_len + FCS_LEN
}

/// A 48-bit station or group address, in printing and transmission order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address(pub [u8; 6]);

impl Address {
    /// The broadcast address.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// A locally administered unicast address derived from `number`, for simulated stations that
    /// have no address of their own.
    pub const fn numbered(number: u32) -> Self {
        let [a, b, c, d] = number.to_be_bytes();
        Self([2, 0, a, b, c, d])
    }

    /// True for a group address, the broadcast address included (7.1.3.3.1).
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
}

/// The header of a data frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// Remaining time of the exchange after this frame, in microseconds; at most [`MAX_DURATION`].
    pub duration: u16,
    /// Destination station or group.
    pub dst: Address,
    /// Source station.
    pub src: Address,
    /// Identifier of the ad hoc network.
    pub bssid: Address,
    /// Sequence number, 0 to 4095 (7.1.3.4.1).
    pub seq: u16,
    /// True for a retransmission.
    pub retry: bool,
    /// EtherType of the payload: 0x0800 for IPv4, 0x86dd for IPv6.
    pub ether_type: u16,
}

/// A frame of an ad hoc network.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Frame<'a> {
    /// Data, with its payload.
    Data(Header, &'a [u8]),
    /// Request to send.
    Rts {
        /// Remaining time of the exchange in microseconds; at most [`MAX_DURATION`].
        duration: u16,
        /// Receiver of the RTS.
        receiver: Address,
        /// Sender of the RTS.
        transmitter: Address,
    },
    /// Clear to send.
    Cts {
        /// Remaining time of the exchange in microseconds; at most [`MAX_DURATION`].
        duration: u16,
        /// Receiver of the CTS: the sender of the RTS.
        receiver: Address,
    },
    /// Acknowledgement.
    Ack {
        /// 0, since no fragment follows; at most [`MAX_DURATION`].
        duration: u16,
        /// Receiver of the acknowledgement: the sender of the data.
        receiver: Address,
    },
}
