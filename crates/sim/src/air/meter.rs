//! How long a radio has been in each of its states, for its energy.

use anabranch_core::time::{Duration, Instant};

/// Times by state.
pub(crate) trait ByState: Copy + Default {
    /// What a radio may be doing.
    type State: Copy;

    /// The time in that state.
    fn time(&mut self, state: Self::State) -> &mut Duration;
}

/// The account of one radio.
#[derive(Debug)]
pub(crate) struct Meter<T: ByState> {
    state: T::State,
    since: Instant,
    spent: T,
}

impl<T: ByState> Meter<T> {
    /// In this state from the epoch on.
    pub(crate) fn new(state: T::State) -> Self {
        Self { state, since: Instant::ZERO, spent: T::default() }
    }

    /// Enters a state.
    #[inline]
    pub(crate) fn enter(&mut self, now: Instant, state: T::State) {
        self.spent = self.until(now);
        self.state = state;
        self.since = now;
    }

    /// The account up to the last change of state.
    pub(crate) fn spent(&self) -> &T {
        &self.spent
    }

    /// The account up to `now`.
    #[inline]
    pub(crate) fn until(&self, now: Instant) -> T {
        let mut spent = self.spent;
        *spent.time(self.state) += now.saturating_since(self.since);
        spent
    }
}
