//! What the owner of a connection sees of it.

#[cfg(doc)]
use crate::tcp::Connection;
use crate::tcp::sender::RecoveryStage;
use crate::time::Duration;

/// The states of RFC 9293 section 3.3.2. LISTEN belongs to whoever holds the port: see
/// [`Connection::accept`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// We have sent a SYN.
    SynSent,
    /// We have received and sent a SYN.
    SynReceived,
    /// Data flows.
    Established,
    /// We have closed; our FIN is not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer has closed; we may still send.
    CloseWait,
    /// Both have closed at once; our FIN is not acknowledged.
    Closing,
    /// The peer has closed, then we; our FIN is not acknowledged.
    LastAck,
    /// All is acknowledged; old duplicates die out.
    TimeWait,
    /// Nothing is left.
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
    /// R2 time-outs in a row went unanswered, or all keep-alive probes; or nothing was acknowledged
    /// for the user timeout ([`Connection::set_user_timeout`]). After [`Connection::release`] also:
    /// the peer did not close its side, or did not open its window, within
    /// [`Config::fin_wait`](crate::tcp::Config::fin_wait).
    TimedOut,
    /// We called [`Connection::abort`], or [`Connection::release`] lost data that was not read.
    Aborted,
}

/// What the owner of a connection learns, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The handshake is done.
    Established,
    /// There is something for [`Connection::read`].
    Readable,
    /// Bytes were acknowledged, or the send buffer has grown: there is room for
    /// [`Connection::write`] again, and windows have moved.
    Writable,
    /// The peer has sent FIN, and everything before it can be read.
    PeerClosed,
    /// The connection is over; nothing follows.
    Closed(CloseReason),
}

/// Why bytes are not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// [`Connection::close`] was called: no more can be sent.
    #[error("the sending direction is closed")]
    Closing,
    /// The connection is over.
    #[error("the connection is closed")]
    Closed,
}

/// A connection's figures, as TCP_INFO of Linux has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// State.
    pub state: State,
    /// Largest payload that we send, in bytes.
    pub mss: u16,
    /// Congestion window in bytes, the window limit applied.
    pub cwnd: u32,
    /// Slow-start threshold in bytes; `u32::MAX` is unbounded.
    pub ssthresh: u32,
    /// The window that the peer last offered, in bytes, counted from SND.UNA.
    pub peer_window: u32,
    /// FlightSize (RFC 5681 section 2), in bytes: sent and not acknowledged, without what a
    /// time-out has taken for lost and that was not sent again.
    pub in_flight: u32,
    /// Bytes written and not yet sent.
    pub unsent: u32,
    /// Bytes in the send buffer: written and not acknowledged.
    pub buffered: u32,
    /// Bytes that the send buffer takes at most.
    pub send_buffer: u32,
    /// Bytes that can be read.
    pub readable: u32,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// Mean deviation of the round-trip time.
    pub rttvar: Duration,
    /// Smallest round-trip time measured.
    pub min_rtt: Option<Duration>,
    /// Smallest round-trip time of the last 5 to 10 s in which any was measured.
    pub recent_rtt: Option<Duration>,
    /// Bytes per second that the peer has acknowledged over the last whole round trip, once there
    /// was one.
    pub delivery_rate: Option<u64>,
    /// Present retransmission time-out, back-off included.
    pub rto: Duration,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Fast retransmits (entries into recovery).
    pub fast_retransmits: u64,
    /// Time-outs and recoveries that turned out spurious and were undone.
    pub undone: u64,
    /// Both ends have agreed on ECN (RFC 3168).
    pub ecn: bool,
    /// Data segments that came with a mark of the network.
    pub marks_received: u64,
    /// Reductions of the window because the peer has echoed a mark.
    pub mark_reductions: u64,
    /// Bytes sent, those sent again included.
    pub bytes_sent: u64,
    /// Bytes of ours that the peer has acknowledged.
    pub bytes_acked: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Bytes above SND.UNA that the peer has reported by SACK.
    pub sacked: u32,
    /// Which stage of loss recovery the sender is in.
    pub recovery: RecoveryStage,
    /// Segments received that were dropped: out of window, bad acknowledgement, after the end.
    pub segments_dropped: u64,
    /// Notices of a lost route.
    pub route_failures: u64,
}
