//! The one clock: monotonic time since it was started.

#![expect(clippy::disallowed_types, reason = "this is the place where real time comes in")]

use anabranch_core::time::Instant;

/// A number for a sender's greetings that is more than any before, on any host whose clock is
/// right: microseconds since 1970.
pub fn greeting_number() -> u64 {
    u64::try_from(unix_time().as_micros()).unwrap_or(u64::MAX)
}

/// Time since 1970-01-01 00:00 UTC by the host's clock; zero if that clock is before 1970.
pub fn unix_time() -> std::time::Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

/// A clock that began at time zero.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: std::time::Instant,
}

impl Clock {
    /// Starts it: it is time zero now.
    pub fn start() -> Self {
        Self { zero: std::time::Instant::now() }
    }

    /// The time. It never falls.
    pub fn now(&self) -> Instant {
        let nanos = self.zero.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
