//! How long a radio has been in each of its states, for its energy.

use anabranch_core::time::{Duration, Instant};

/// What a radio of either kind does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RadioState {
    /// It is on air.
    Transmit,
    /// It senses the signals of others, be they for it or not.
    Receive,
    /// It is on, and the channel is clear.
    Listen,
    /// It is off.
    Off,
}

impl RadioState {
    /// All, in the order of [`EnergyUse`].
    pub const ALL: [Self; 4] = [Self::Transmit, Self::Receive, Self::Listen, Self::Off];

    /// As in the names of metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transmit => "transmit",
            Self::Receive => "receive",
            Self::Listen => "listen",
            Self::Off => "off",
        }
    }
}

/// Seconds that a radio has been in each state, and the joules that it has drawn there.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct EnergyUse {
    /// In the order of [`RadioState::ALL`].
    pub seconds: [f64; 4],
    /// In the order of [`RadioState::ALL`].
    pub joules: [f64; 4],
}

impl EnergyUse {
    /// Of a time in each state, and the watts that it takes.
    pub(crate) fn of(states: [(Duration, f64); 4]) -> Self {
        let seconds = states.map(|(time, _)| time.as_secs_f64());
        Self { seconds, joules: states.map(|(time, watts)| watts * time.as_secs_f64()) }
    }

    /// What has been used since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let less = |now: [f64; 4], then: [f64; 4]| std::array::from_fn(|i| now[i] - then[i]);
        Self { seconds: less(self.seconds, before.seconds), joules: less(self.joules, before.joules) }
    }

    /// The joules of all states.
    pub fn energy_j(&self) -> f64 {
        self.joules.iter().sum()
    }
}

impl std::ops::AddAssign for EnergyUse {
    fn add_assign(&mut self, other: Self) {
        for i in 0..4 {
            self.seconds[i] += other.seconds[i];
            self.joules[i] += other.joules[i];
        }
    }
}

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
