//! What a controller is told that works from the rate at which the path delivers
//! (draft-ietf-ccwg-bbr).

use crate::time::Duration;

/// What an acknowledgement shows of the path. The figures are of the segment that left last of
/// those that it says have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RateSample {
    /// RS.delivery_rate: bytes per second, 0 if the interval is too short to tell.
    pub delivery_rate: u64,
    /// RS.interval: the time in which `delivered` bytes were sent or have arrived, whichever is
    /// longer.
    pub interval: Duration,
    /// RS.delivered: bytes that have arrived since the segment left.
    pub delivered: u64,
    /// RS.prior_delivered: bytes that had arrived when the segment left.
    pub prior_delivered: u64,
    /// C.delivered: bytes that have arrived by now.
    pub total_delivered: u64,
    /// RS.newly_acked: bytes that this acknowledgement says have arrived.
    pub newly_acked: u32,
    /// RS.newly_lost: bytes found lost since the sample before.
    pub newly_lost: u32,
    /// RS.tx_in_flight: bytes in the network when the segment left, itself included.
    pub tx_in_flight: u32,
    /// RS.lost: bytes found lost since the segment left.
    pub lost: u64,
    /// RS.rtt: the round trip of the segment, unless it was sent more than once.
    pub rtt: Option<Duration>,
    /// RS.is_app_limited: the application had nothing more to send when the segment left.
    pub app_limited: bool,
    /// C.is_cwnd_limited: the window was full at some time in the last round trip.
    pub cwnd_limited: bool,
    /// C.inflight: bytes in the network now.
    pub in_flight: u32,
    /// A recovery is under way, or the repair of a time-out.
    pub recovering: bool,
    /// C.has_selective_acks: the peer reports what it has.
    pub selective: bool,
}

/// A segment found lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LostSegment {
    /// Its bytes.
    pub size: u32,
    /// Bytes in the network when it left, itself included.
    pub tx_in_flight: u32,
    /// Bytes found lost since it left, itself included.
    pub lost: u64,
    /// The application had nothing more to send when it left.
    pub app_limited: bool,
    /// It does not follow the segment that was found lost before it.
    pub apart: bool,
    /// C.delivered: bytes that have arrived by now.
    pub delivered: u64,
    /// C.inflight: bytes in the network now.
    pub in_flight: u32,
}
