//! Counters of stations.

/// Counters of a station.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StationMetrics {
    /// Frames accepted for sending.
    pub offered: u64,
    /// Of these, frames acknowledged.
    pub acknowledged: u64,
    /// Of these, frames broadcast.
    pub broadcast: u64,
    /// Of these, frames given up at a retry limit.
    pub no_ack: u64,
    /// Of these, frames cut off or dropped because the station went down.
    pub down: u64,
    /// Transmissions of data.
    pub transmissions: u64,
    /// Of these, retransmissions.
    pub retries: u64,
    /// Transmissions of RTS.
    pub rts: u64,
    /// Transmissions of CTS.
    pub cts: u64,
    /// Transmissions of acknowledgements.
    pub acks: u64,
    /// RTS without a CTS.
    pub cts_missing: u64,
    /// Data without an acknowledgement.
    pub acks_missing: u64,
    /// RTS for this station that it did not answer because of its NAV.
    pub cts_withheld: u64,
    /// Data received for this station or for all, without duplicates.
    pub received: u64,
    /// Duplicates received.
    pub duplicates: u64,
    /// Frames for this station or for all, from within range, that were lost because of another
    /// signal.
    pub collisions: u64,
    /// Frames lost by the link.
    pub lost: u64,
    /// Frames missed while the station was sending or off, or cut off with their sender.
    pub missed: u64,
}
