//! Counters of stations.

use anabranch_core::time::Duration;

/// Counters of a station.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StationMetrics {
    /// Frames accepted for sending.
    pub offered: u64,
    /// Of these, frames acknowledged.
    pub acknowledged: u64,
    /// Of these, frames broadcast.
    pub broadcast: u64,
    /// Of these, frames given up without an acknowledgement.
    pub no_ack: u64,
    /// Of these, frames given up because the channel was busy.
    pub channel_access_failures: u64,
    /// Of these, frames cut off or dropped because the station went down.
    pub down: u64,
    /// Transmissions of frames, without acknowledgements and wake-up frames.
    pub transmissions: u64,
    /// Of these, retransmissions.
    pub retries: u64,
    /// Transmissions of acknowledgements.
    pub acks: u64,
    /// Transmissions of wake-up frames.
    pub wakeups: u64,
    /// Frames received for this station or for all, without acknowledgements and duplicates.
    pub received: u64,
    /// Duplicates received.
    pub duplicates: u64,
    /// Frames for this station or for all, and acknowledgements, from within range, that were lost
    /// because of another signal.
    pub collisions: u64,
    /// Frames lost by the link: by its loss probability, or by bit errors without interference.
    pub lost: u64,
    /// Frames missed while the station was sending, turning around, asleep or off, or cut off with
    /// their sender.
    pub missed: u64,
    /// Clear channel assessments.
    pub ccas: u64,
    /// Assessments that found the channel busy.
    pub busy_ccas: u64,
    /// Runs of the CSMA-CA algorithm, successful or not.
    pub accesses: u64,
    /// Total time of these runs: backoffs and CCAs.
    pub access_time: Duration,
}

impl StationMetrics {
    /// Fraction of assessments that found the channel busy; 0 if there were none.
    pub fn busy_probability(&self) -> f64 {
        if self.ccas == 0 { 0.0 } else { self.busy_ccas as f64 / self.ccas as f64 }
    }
}
