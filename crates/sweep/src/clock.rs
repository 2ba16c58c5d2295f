//! Real time: how long work takes, and when rows are to be written. No result depends on it.

#![expect(clippy::disallowed_types, reason = "what a run says does not depend on it")]

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// When something began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began(std::time::Instant);

impl Began {
    pub(crate) fn now() -> Self {
        Self(std::time::Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Processor time of this thread.
pub(crate) fn thread() -> Duration {
    processor(ClockId::ThreadCPUTime)
}

/// How long this thread has waited for a core that others had, if the kernel says.
pub(crate) fn thread_waited() -> Duration {
    // Nanoseconds on a core, nanoseconds of waiting for one, turns.
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0))
}

/// Processor time of this process.
pub(crate) fn process() -> Duration {
    processor(ClockId::ProcessCPUTime)
}

fn processor(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}
