//! The interface between SET and its streams: state, events and effects.

use core::net::SocketAddr;

use bytes::Bytes;

use crate::time::Duration;

/// Identifies a stream between one machine and its driver. The machine assigns the ids in ascending
/// order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamId(pub u32);

/// Part of the path that a dialled stream covers. A driver may use different TCP options for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leg {
    /// Sender to node, end to end, with the gateway as a router.
    Control,
    /// Sender to gateway.
    Wired,
    /// Gateway to node.
    Wireless,
}

/// Reason for the end of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamClose {
    /// Both directions were closed in order.
    Graceful,
    /// The peer has reset the stream.
    Reset,
    /// The peer has refused the stream.
    Refused,
    /// The peer did not answer before TCP gave up.
    TimedOut,
    /// The driver must not dial this address; nothing was sent.
    Forbidden,
    /// The driver has no room for the stream now; nothing was sent.
    Congested,
}

/// An event of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StreamEvent {
    /// A dialled stream is open.
    Opened,
    /// Bytes have arrived, in order.
    Data(Bytes),
    /// The peer has closed its direction.
    Ended,
    /// The stream is closed. No event follows.
    Closed(StreamClose),
}

/// Figures of a stream in bytes, as in TCP_INFO.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamStatus {
    /// Congestion window.
    pub cwnd: u32,
    /// The peer's receive window.
    pub peer_window: u32,
    /// Sent and not acknowledged.
    pub in_flight: u32,
    /// Written and not sent, whether TCP or the driver holds it.
    pub unsent: u32,
    /// Largest payload of a segment.
    pub mss: u32,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
}

impl StreamStatus {
    /// Bytes that TCP would send at once: min(congestion window, receive window) less the bytes in
    /// flight (section 4.5).
    pub fn room(&self) -> u32 {
        self.cwnd.min(self.peer_window).saturating_sub(self.in_flight).saturating_sub(self.unsent)
    }
}

/// An effect that a machine requests from its driver, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Open a stream and report [`StreamEvent::Opened`] or [`StreamEvent::Closed`].
    Dial {
        /// Id of the new stream.
        stream: StreamId,
        /// Destination address.
        to: SocketAddr,
        /// Part of the path.
        leg: Leg,
    },
    /// Send these bytes. The driver buffers bytes that the stream does not accept yet and reports
    /// them as unsent.
    Write {
        /// The stream.
        stream: StreamId,
        /// The bytes, which follow all bytes written before.
        octets: Bytes,
    },
    /// Send these bytes of the file, which the driver holds. Only a sender with
    /// [`super::File::Elsewhere`] requests this.
    WriteFile {
        /// The stream.
        stream: StreamId,
        /// Offset of the first byte; it follows all bytes written before.
        start: u64,
        /// One past the last byte.
        end: u64,
    },
    /// Offer a receive window of at most this many bytes.
    LimitReceive {
        /// The stream.
        stream: StreamId,
        /// Upper limit in bytes; at least one segment is always offered.
        octets: u32,
    },
    /// Close our direction after all bytes written before.
    Shutdown {
        /// The stream.
        stream: StreamId,
    },
    /// Reset the stream; no event of it follows.
    Abort {
        /// The stream.
        stream: StreamId,
    },
    /// Pass the next bytes of the file to the application, in order.
    Deliver {
        /// At least one byte.
        octets: Bytes,
    },
}
