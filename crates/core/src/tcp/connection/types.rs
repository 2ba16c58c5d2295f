//! Public types of a connection: states, events, errors, statistics.

#[cfg(doc)]
use crate::tcp::Connection;
use crate::tcp::sender::RecoveryStage;
use crate::time::Duration;

/// The states of RFC 9293 section 3.3.2. LISTEN belongs to the owner of the port: see
/// [`Connection::accept`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// A SYN was sent.
    SynSent,
    /// A SYN was received and sent.
    SynReceived,
    /// Data flows in both directions.
    Established,
    /// We have closed; our FIN is not yet acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer has closed; we may still send.
    CloseWait,
    /// Both sides have closed simultaneously; our FIN is not yet acknowledged.
    Closing,
    /// The peer has closed first, then we; our FIN is not yet acknowledged.
    LastAck,
    /// Everything is acknowledged; old duplicates may still arrive.
    TimeWait,
    /// The connection has ended.
    Closed,
}

/// Why a connection is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// Both directions were closed and acknowledged.
    Graceful,
    /// The peer reset an open connection.
    Reset,
    /// The peer refused our SYN.
    Refused,
    /// There was no answer to R2 consecutive time-outs or to all keep-alive probes, or no
    /// acknowledgement within the user timeout ([`Connection::set_user_timeout`]). After
    /// [`Connection::release`] also: the peer did not close its side, or did not open its window,
    /// within [`Config::fin_wait`](crate::tcp::Config::fin_wait).
    TimedOut,
    /// [`Connection::abort`] was called, or [`Connection::release`] discarded unread data.
    Aborted,
}

/// An event for the owner of a connection, in the order of reporting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The handshake is complete.
    Established,
    /// [`Connection::read`] has data.
    Readable,
    /// [`Connection::write`] has room: data was acknowledged, or the send buffer has grown. The
    /// windows may have moved.
    Writable,
    /// The peer has sent FIN, and all data before it can be read.
    PeerClosed,
    /// The connection is closed; no event follows.
    Closed(CloseReason),
}

/// Why [`Connection::write`] accepts no data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// [`Connection::close`] was called.
    #[error("the sending direction is closed")]
    Closing,
    /// The connection is closed.
    #[error("the connection is closed")]
    Closed,
}

/// Statistics of a connection, similar to TCP_INFO of Linux.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// State.
    pub state: State,
    /// Largest payload to send, in bytes.
    pub mss: u16,
    /// Congestion window in bytes, with the limits on window and queue applied.
    pub cwnd: u32,
    /// Slow-start threshold in bytes; `u32::MAX` is unbounded.
    pub ssthresh: u32,
    /// Window last offered by the peer in bytes, counted from SND.UNA.
    pub peer_window: u32,
    /// FlightSize (RFC 5681 section 2) in bytes: sent and not acknowledged, without data that a
    /// time-out has declared lost and that was not retransmitted yet.
    pub in_flight: u32,
    /// Bytes written and not yet sent.
    pub unsent: u32,
    /// Bytes in the send buffer: written and not yet acknowledged.
    pub buffered: u32,
    /// Size of the send buffer in bytes.
    pub send_buffer: u32,
    /// Bytes that can be read.
    pub readable: u32,
    /// Smoothed round-trip time; `None` before the first measurement.
    pub srtt: Option<Duration>,
    /// Mean deviation of the round-trip time.
    pub rttvar: Duration,
    /// Smallest round-trip time measured.
    pub min_rtt: Option<Duration>,
    /// Smallest round-trip time of the last 5 to 10 s that had a measurement.
    pub recent_rtt: Option<Duration>,
    /// Bytes per second that the peer has acknowledged over the last full round trip; `None` before
    /// the first.
    pub delivery_rate: Option<u64>,
    /// Current retransmission time-out, back-off included.
    pub rto: Duration,
    /// Number of retransmitted segments.
    pub retransmissions: u64,
    /// Number of retransmission time-outs.
    pub timeouts: u64,
    /// Number of fast retransmits (entries into recovery).
    pub fast_retransmits: u64,
    /// Number of time-outs and recoveries that proved spurious and were undone.
    pub undone: u64,
    /// Whether both ends have agreed on ECN (RFC 3168).
    pub ecn: bool,
    /// Number of received data segments with a mark of the network.
    pub marks_received: u64,
    /// Number of window reductions because the peer echoed a mark.
    pub mark_reductions: u64,
    /// Bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Bytes acknowledged by the peer.
    pub bytes_acked: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Bytes above SND.UNA that the peer has reported by SACK.
    pub sacked: u32,
    /// Stage of loss recovery of the sender.
    pub recovery: RecoveryStage,
    /// Number of received segments that were dropped: out of window, bad acknowledgement, after the
    /// end.
    pub segments_dropped: u64,
    /// Number of notices of a lost route.
    pub route_failures: u64,
}
