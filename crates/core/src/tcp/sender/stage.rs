//! Statistics of the scoreboard and of loss recovery.

use super::{Phase, Sender};

/// Stage of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoveryStage {
    /// No segment is known to be missing.
    Open,
    /// Segments have arrived out of order, and none is known to be lost.
    Disorder,
    /// Losses are repaired without a time-out (RFC 6582, RFC 6675, RFC 8985).
    Recovery,
    /// After a retransmission time-out, until the data outstanding at that time is acknowledged.
    Loss,
}

impl Sender {
    /// Bytes above SND.UNA that the peer has reported.
    pub(crate) fn sacked_bytes(&self) -> u32 {
        self.flight.reported_bytes()
    }

    pub(crate) fn recovery_stage(&self) -> RecoveryStage {
        match self.phase {
            Phase::Open if self.dup_acks > 0 || self.flight.reported_bytes() > 0 => RecoveryStage::Disorder,
            Phase::Open => RecoveryStage::Open,
            Phase::Fast(_) | Phase::Sack => RecoveryStage::Recovery,
            Phase::Loss => RecoveryStage::Loss,
        }
    }
}
