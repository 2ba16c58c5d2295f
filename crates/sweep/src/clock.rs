//! Real time, for progress reports and for batching writes. No result depends on it.

#![expect(clippy::disallowed_types, reason = "what a run says does not depend on it")]

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A start time.
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

/// Processor time of the current thread.
pub(crate) fn thread() -> Duration {
    processor(ClockId::ThreadCPUTime)
}

/// Time that the current thread waited for a core that other threads used; zero if the kernel does
/// not report it.
pub(crate) fn thread_waited() -> Duration {
    // The fields are: time on a core in ns, time waiting for a core in ns, number of time slices.
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0))
}

/// Processor time of the process.
pub(crate) fn process() -> Duration {
    processor(ClockId::ProcessCPUTime)
}

fn processor(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}
