//! The clock of this crate: monotonic time since its start.

#![expect(clippy::disallowed_types, reason = "this is the place where real time comes in")]

use anabranch_core::time::Instant;

/// A greeting number that exceeds all earlier ones on any host whose clock is right: microseconds
/// since 1970.
pub fn greeting_number() -> u64 {
    u64::try_from(unix_time().as_micros()).unwrap_or(u64::MAX)
}

/// Time since 1970-01-01 00:00 UTC by the host's clock; zero if that clock is before 1970.
pub fn unix_time() -> std::time::Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

/// A monotonic clock that starts at time zero.
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
}
