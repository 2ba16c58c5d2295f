//! The loop on tokio.

use std::sync::{Mutex, PoisonError};

use super::Tuner;
use crate::clock::Clock;

/// Steps a tuner when it is time, forever: whoever has had enough drops this future. Sockets may
/// be added and removed meanwhile; a step takes some microseconds for each, and never waits.
pub async fn run(tuner: &Mutex<Tuner>, clock: Clock) {
    loop {
        let pause = {
            // A step that has panicked elsewhere leaves nothing half done that the next would not
            // look at again.
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

/// How soon the first socket is noticed.
const IDLE: std::time::Duration = std::time::Duration::from_millis(50);
/// A decision that is overdue is no reason not to let others run.
const LEAST: std::time::Duration = std::time::Duration::from_millis(1);
