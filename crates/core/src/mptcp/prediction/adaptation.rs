//! A-NewReno, section IV: windows and time-out by the length of a path. The paper gives the ranges
//! (section VIII-A) but no mapping (M27).

use crate::tcp::AdaptivePhases;
use crate::time::Duration;

/// Mapping from hops to windows, time-out and update period; linear between one hop and `far` hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adaptation {
    /// Number of hops from which on the values are constant; at least 1.
    pub far: u32,
    /// w_min at one hop and at `far` hops, in packets.
    pub w_min: (u32, u32),
    /// w_max at one hop and at `far` hops, in packets.
    pub w_max: (u32, u32),
    /// Time-out per hop.
    pub rto_per_hop: Duration,
    /// Least and largest time-out.
    pub rto: (Duration, Duration),
    /// Rounds between two updates of the window, at one hop and at `far` hops.
    pub update_every: (u32, u32),
    /// Behaviour between losses, from two hops on; at one hop the window grows.
    pub phases: AdaptivePhases,
}

/// The parameters of A-NewReno for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Window at the start and after a time-out in packets; at least 1.
    pub w_min: u32,
    /// Largest window in packets; at least `w_min`.
    pub w_max: u32,
    /// The retransmission time-out.
    pub rto: Duration,
    /// The window grows once in this many rounds; at least 1. The reaction to a loss is always
    /// immediate.
    pub update_every: u32,
    /// Behaviour of the window between losses.
    pub phases: AdaptivePhases,
}

impl Default for Adaptation {
    /// 1 to 5 hops: w_min 1 to 5, w_max 20 to 10, 20 s per hop within 20 to 80 s (section VIII-A),
    /// an update in every round at one hop and in every fifth at five hops.
    fn default() -> Self {
        Self {
            far: 5,
            w_min: (1, 5),
            w_max: (20, 10),
            rto_per_hop: Duration::from_secs(20),
            rto: (Duration::from_secs(20), Duration::from_secs(80)),
            update_every: (1, 5),
            phases: AdaptivePhases::Grow,
        }
    }
}

impl Adaptation {
    /// The limits of a path of `hops` hops; 0 counts as 1.
    pub fn limits(&self, hops: u32) -> Limits {
        let hops = hops.max(1);
        let far = self.far.max(1);
        let at = |(near, distant): (u32, u32)| {
            let steps = u64::from(far - 1);
            let Some(rest) = steps.checked_sub(u64::from(hops.min(far) - 1)) else { return distant };
            if steps == 0 {
                return distant;
            }
            // Halves round up: w_max is 20, 18, 15, 13, 10 for one to five hops.
            let sum = u64::from(near) * rest + u64::from(distant) * (steps - rest);
            // The mean of two `u32` values fits into a `u32`.
            ((2 * sum + steps) / (2 * steps)) as u32
        };
        let w_min = at(self.w_min).max(1);
        let nanos = self.rto_per_hop.as_nanos().saturating_mul(u64::from(hops));
        let rto = Duration::from_nanos(nanos).min(self.rto.1).max(self.rto.0);
        Limits {
            w_min,
            w_max: at(self.w_max).max(w_min),
            rto,
            update_every: at(self.update_every).max(1),
            phases: if hops > 1 { self.phases } else { AdaptivePhases::Grow },
        }
    }
}
