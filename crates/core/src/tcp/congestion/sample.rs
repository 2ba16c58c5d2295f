//! Information for controllers that work on the delivery rate of the path (draft-ietf-ccwg-bbr).

use crate::time::Duration;

/// Rate sample of an acknowledgement. It describes the last-sent one of the segments that the
/// acknowledgement delivers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RateSample {
    /// RS.delivery_rate in bytes per second; 0 if the interval is too short.
    pub delivery_rate: u64,
    /// RS.interval: the time in which `delivered` bytes were sent or were acknowledged, whichever
    /// is longer.
    pub interval: Duration,
    /// RS.delivered: bytes delivered since the segment was sent.
    pub delivered: u64,
    /// RS.prior_delivered: bytes delivered when the segment was sent.
    pub prior_delivered: u64,
    /// C.delivered: bytes delivered so far.
    pub total_delivered: u64,
    /// RS.newly_acked: bytes that this acknowledgement delivers.
    pub newly_acked: u32,
    /// RS.newly_lost: bytes found lost since the previous sample.
    pub newly_lost: u32,
    /// RS.tx_in_flight: bytes in the network when the segment was sent, itself included.
    pub tx_in_flight: u32,
    /// RS.lost: bytes found lost since the segment was sent.
    pub lost: u64,
    /// RS.rtt: round-trip time of the segment; `None` if it was sent more than once.
    pub rtt: Option<Duration>,
    /// RS.is_app_limited: the application had no more data when the segment was sent.
    pub app_limited: bool,
    /// C.is_cwnd_limited: the window was full at some time in the last round trip.
    pub cwnd_limited: bool,
    /// C.inflight: bytes in the network now.
    pub in_flight: u32,
    /// A recovery, or the recovery from a time-out, is in progress.
    pub recovering: bool,
    /// C.has_selective_acks: the peer sends SACK.
    pub selective: bool,
}

/// A segment found lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LostSegment {
    /// Size in bytes.
    pub size: u32,
    /// Bytes in the network when the segment was sent, itself included.
    pub tx_in_flight: u32,
    /// Bytes found lost since the segment was sent, itself included.
    pub lost: u64,
    /// The application had no more data when the segment was sent.
    pub app_limited: bool,
    /// Whether the segment is not adjacent to the segment found lost before it.
    pub apart: bool,
    /// C.delivered: bytes delivered so far.
    pub delivered: u64,
    /// C.inflight: bytes in the network now.
    pub in_flight: u32,
}
