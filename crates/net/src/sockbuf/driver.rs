//! The periodic loop on tokio.

use std::sync::{Mutex, PoisonError};

use super::Tuner;
use crate::clock::Clock;

/// Steps a tuner periodically until the future is dropped. Sockets may be added and removed
/// meanwhile. A step takes some microseconds per socket and never blocks.
pub async fn run(tuner: &Mutex<Tuner>, clock: Clock) {
    loop {
        let pause = {
            // After a panic in another step, the next step checks everything again, so the state is
            // usable.
            let mut tuner = tuner.lock().unwrap_or_else(PoisonError::into_inner);
            tuner.step(clock.now());
            let now = clock.now();
            tuner
                .next_timeout(now)
                .map_or(IDLE, |due| std::time::Duration::from_nanos(due.saturating_since(now).as_nanos()))
        };
        tokio::time::sleep(pause.max(LEAST)).await;
    }
}

/// Interval at which an empty tuner looks for its first socket.
const IDLE: std::time::Duration = std::time::Duration::from_millis(50);
/// Shortest pause, so that an overdue decision does not starve other tasks.
const LEAST: std::time::Duration = std::time::Duration::from_millis(1);
