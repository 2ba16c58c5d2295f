//! The clock of an emulation: simulated time is the monotonic time since its start.

#![expect(clippy::disallowed_types, reason = "this is the place where real time comes in")]

use anabranch_core::time::Instant;
use rustix::event::Timespec;

/// A monotonic clock that starts at time zero of the simulation.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: std::time::Instant,
}

impl Clock {
    /// Starts the clock at time zero.
    pub fn start() -> Self {
        Self { zero: std::time::Instant::now() }
    }

    /// The current time. It never decreases.
    pub fn now(&self) -> Instant {
        let nanos = self.zero.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Time until `deadline`, as the kernel takes it; zero if it has passed.
    pub(crate) fn until(&self, deadline: Instant) -> Timespec {
        let left = deadline.saturating_since(self.now());
        let (seconds, nanos) = (left.as_nanos() / 1_000_000_000, left.as_nanos() % 1_000_000_000);
        Timespec { tv_sec: seconds as i64, tv_nsec: nanos as _ }
    }
}
