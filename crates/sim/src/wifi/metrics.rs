//! What is counted.

/// What a station has done, and what has happened to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StationMetrics {
    /// Frames that it was given to send.
    pub offered: u64,
    /// Those acknowledged.
    pub acknowledged: u64,
    /// Those broadcast.
    pub broadcast: u64,
    /// Those given up at a retry limit.
    pub no_ack: u64,
    /// Those cut or dropped because it went down.
    pub down: u64,
    /// Data on air.
    pub transmissions: u64,
    /// Data among it that was on air before.
    pub retries: u64,
    /// RTS on air.
    pub rts: u64,
    /// CTS on air.
    pub cts: u64,
    /// Acknowledgements on air.
    pub acks: u64,
    /// RTS without a CTS.
    pub cts_missing: u64,
    /// Data without an acknowledgement.
    pub acks_missing: u64,
    /// RTS for it that its NAV kept it from answering.
    pub cts_withheld: u64,
    /// Data for it, or for all, that it received; copies not counted.
    pub received: u64,
    /// Copies of data received before.
    pub duplicates: u64,
    /// Frames for it, or for all, from within reach, that another signal destroyed or kept it from.
    pub collisions: u64,
    /// Those that the link lost.
    pub lost: u64,
    /// Those that came while it was sending or off, or that ended with their sender.
    pub missed: u64,
}
