//! What is counted.

use anabranch_core::time::Duration;

/// What a station has done, and what has happened to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StationMetrics {
    /// Frames that it was given to send.
    pub offered: u64,
    /// Those acknowledged.
    pub acknowledged: u64,
    /// Those broadcast.
    pub broadcast: u64,
    /// Those given up without an acknowledgement.
    pub no_ack: u64,
    /// Those given up because the channel was busy.
    pub channel_access_failures: u64,
    /// Those cut or dropped because it went down.
    pub down: u64,
    /// Frames on air, acknowledgements and wake-up frames not counted.
    pub transmissions: u64,
    /// Those among them that were sent again.
    pub retries: u64,
    /// Acknowledgements on air.
    pub acks: u64,
    /// Wake-up frames on air.
    pub wakeups: u64,
    /// Frames for it, or for all, that it received; acknowledgements and copies not counted.
    pub received: u64,
    /// Copies of frames received before.
    pub duplicates: u64,
    /// Frames for it, or for all, and acknowledgements, from within reach, that another signal
    /// destroyed or kept it from.
    pub collisions: u64,
    /// Those that the link lost: by the probability of the link, or by bit errors without
    /// interference.
    pub lost: u64,
    /// Those that came while it was sending, turning around, asleep or off, or that ended with
    /// their sender.
    pub missed: u64,
    /// Clear channel assessments.
    pub ccas: u64,
    /// Those that found the channel busy.
    pub busy_ccas: u64,
    /// Runs of the CSMA-CA algorithm, to success or failure.
    pub accesses: u64,
    /// Time in these runs: backoffs and CCAs.
    pub access_time: Duration,
}

impl StationMetrics {
    /// Share of assessments that found the channel busy; 0 without any.
    pub fn busy_probability(&self) -> f64 {
        if self.ccas == 0 { 0.0 } else { self.busy_ccas as f64 / self.ccas as f64 }
    }
}
