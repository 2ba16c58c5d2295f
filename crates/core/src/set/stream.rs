//! What SET knows of the streams beneath it, and what it asks of them.

use core::net::SocketAddr;

use bytes::Bytes;

use crate::time::Duration;

/// Names a stream between one machine and its driver. The machine names them all, in ascending
/// order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamId(pub u32);

/// Which part of the way a dialled stream covers: a driver may give each its own TCP options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leg {
    /// Sender to node, end to end, with the gateway as a router.
    Control,
    /// Sender to gateway.
    Wired,
    /// Gateway to node.
    Wireless,
}

/// How a stream ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamClose {
    /// Both directions were closed in order.
    Graceful,
    /// The other side reset it.
    Reset,
    /// The other side refused it.
    Refused,
    /// The other side did not answer for as long as TCP tries.
    TimedOut,
    /// The driver may not dial there; nothing was sent.
    Forbidden,
    /// The driver has no room for it now; nothing was sent.
    Congested,
}

/// What a stream did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StreamEvent {
    /// A dialled stream is open.
    Opened,
    /// Bytes have arrived, in order.
    Data(Bytes),
    /// The other side will send no more.
    Ended,
    /// The stream is gone. Nothing follows.
    Closed(StreamClose),
}

/// How a stream stands: what TCP_INFO tells, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamStatus {
    /// Congestion window.
    pub cwnd: u32,
    /// The peer's receive window.
    pub peer_window: u32,
    /// Sent and not acknowledged.
    pub in_flight: u32,
    /// Written and not sent, whoever holds it.
    pub unsent: u32,
    /// Largest payload of a segment.
    pub mss: u32,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
}

impl StreamStatus {
    /// Bytes that TCP would send at once: min(congestion window, receive window) less what is on
    /// its way (section 4.5).
    pub fn room(&self) -> u32 {
        self.cwnd.min(self.peer_window).saturating_sub(self.in_flight).saturating_sub(self.unsent)
    }
}

/// What a machine wants from its driver, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Open a stream and report [`StreamEvent::Opened`] or [`StreamEvent::Closed`].
    Dial {
        /// Its name from now on.
        stream: StreamId,
        /// Where to.
        to: SocketAddr,
        /// Which part of the way.
        leg: Leg,
    },
    /// Send these bytes; the driver holds what the stream does not take yet and counts it as
    /// unsent.
    Write {
        /// On this stream.
        stream: StreamId,
        /// In order, after what was written before.
        octets: Bytes,
    },
    /// Send these bytes of the file, which the driver has: only from a sender with
    /// [`super::File::Elsewhere`].
    WriteFile {
        /// On this stream.
        stream: StreamId,
        /// The first, after what was written before.
        start: u64,
        /// One past the last.
        end: u64,
    },
    /// Offer a receive window of at most that many bytes.
    LimitReceive {
        /// On this stream.
        stream: StreamId,
        /// At most; at least one segment is always offered.
        octets: u32,
    },
    /// No more will be written: close our direction after what was.
    Shutdown {
        /// This stream.
        stream: StreamId,
    },
    /// Reset the stream; nothing more is reported of it.
    Abort {
        /// This stream.
        stream: StreamId,
    },
    /// The next bytes of the file, in order, for the application.
    Deliver {
        /// At least one byte.
        octets: Bytes,
    },
}
