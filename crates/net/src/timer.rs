//! A timer with the precision of the kernel's: tokio's counts milliseconds, and packets of one
//! sender may be closer together.

use anabranch_core::time::Instant;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use tokio::net::unix::pipe::Receiver;

use crate::clock::Clock;

/// The timer of one task: a descriptor that becomes readable at its time, as a pipe does.
#[derive(Debug)]
pub(crate) struct Timer(Receiver);

impl Timer {
    pub(crate) fn new() -> io::Result<Self> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self(Receiver::from_owned_fd_unchecked(fd)?))
    }

    /// Waits until `at` by `clock`; for ever without a time.
    pub(crate) async fn until(&self, at: Option<Instant>, clock: &Clock) {
        let Some(at) = at else { return std::future::pending().await };
        let wait = at.saturating_since(clock.now()).as_nanos();
        if wait == 0 {
            return tokio::task::yield_now().await;
        }
        let time = Timespec { tv_sec: (wait / 1_000_000_000) as i64, tv_nsec: (wait % 1_000_000_000) as _ };
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let set = Itimerspec { it_interval: zero, it_value: time };
        // Setting the timer also clears an expiry that was not awaited to its end.
        if timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &set).is_err() {
            return tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        loop {
            if self.0.readable().await.is_err() {
                return;
            }
            // The descriptor may still count as readable from an earlier expiry.
            match self.0.try_read(&mut [0; 8]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                _ => return,
            }
        }
    }
}
