//! How long a radio has been in each of its states, for its energy.

use anabranch_core::time::{Duration, Instant};

/// Number of states.
pub(crate) const STATES: usize = 5;

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
    /// It sleeps between samples of the channel.
    Sleep,
}

impl RadioState {
    /// All, in the order of [`EnergyUse`].
    pub const ALL: [Self; STATES] = [Self::Transmit, Self::Receive, Self::Listen, Self::Off, Self::Sleep];

    /// As in the names of metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transmit => "transmit",
            Self::Receive => "receive",
            Self::Listen => "listen",
            Self::Off => "off",
            Self::Sleep => "sleep",
        }
    }
}

/// Seconds that a radio has been in each state, and the joules that it has drawn there.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct EnergyUse {
    /// In the order of [`RadioState::ALL`].
    pub seconds: [f64; STATES],
    /// In the order of [`RadioState::ALL`].
    pub joules: [f64; STATES],
}

impl EnergyUse {
    /// Of a time in each state, and the watts that each takes.
    pub(crate) fn of(time: &StateTime, watts: [f64; STATES]) -> Self {
        let StateTime { transmit, receive, listen, off, sleep } = *time;
        let seconds = [transmit, receive, listen, off, sleep].map(Duration::as_secs_f64);
        Self { seconds, joules: std::array::from_fn(|i| watts[i] * seconds[i]) }
    }

    /// What has been used since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let less = |now: [f64; STATES], then: [f64; STATES]| std::array::from_fn(|i| now[i] - then[i]);
        Self { seconds: less(self.seconds, before.seconds), joules: less(self.joules, before.joules) }
    }

    /// The joules of all states.
    pub fn energy_j(&self) -> f64 {
        self.joules.iter().sum()
    }
}

impl std::ops::AddAssign for EnergyUse {
    fn add_assign(&mut self, other: Self) {
        for i in 0..STATES {
            self.seconds[i] += other.seconds[i];
            self.joules[i] += other.joules[i];
        }
    }
}

/// Time that a radio has been in each state; together the time of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StateTime {
    /// On air.
    pub transmit: Duration,
    /// Neither on air nor asleep nor off, and the channel busy.
    pub receive: Duration,
    /// Neither on air nor asleep nor off, and the channel clear.
    pub listen: Duration,
    /// Off.
    pub off: Duration,
    /// Asleep between samples of the channel.
    pub sleep: Duration,
}

/// What a station has its radio do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Activity {
    Transmit,
    /// It is on and not on air: it receives or listens, as the channel has it.
    Hear,
    Off,
    Sleep,
}

/// The account of one radio.
///
/// The channel keeps its own account of when it is busy at a station. That is asked for when the
/// station does something else, and nothing is written at each signal of each station, which would
/// be most of what a network does.
#[derive(Debug)]
pub(crate) struct Meter {
    activity: Activity,
    since: Instant,
    /// How long the channel had been busy by then.
    busy_before: Duration,
    spent: StateTime,
}

impl Meter {
    /// Of a radio that hears a clear channel from the epoch on.
    pub(crate) fn new() -> Self {
        let (since, busy_before) = (Instant::ZERO, Duration::ZERO);
        Self { activity: Activity::Hear, since, busy_before, spent: StateTime::default() }
    }

    /// The station does something else, when the channel has been busy there for so long in all.
    pub(crate) fn enter(&mut self, now: Instant, activity: Activity, busy: Duration) {
        *self = Self { activity, since: now, busy_before: busy, spent: self.until(now, busy) };
    }

    /// The account up to `now`, when the channel has been busy there for so long in all.
    pub(crate) fn until(&self, now: Instant, busy: Duration) -> StateTime {
        let mut spent = self.spent;
        let time = now.saturating_since(self.since);
        match self.activity {
            Activity::Transmit => spent.transmit += time,
            Activity::Hear => {
                let receive = busy - self.busy_before;
                spent.receive += receive;
                spent.listen += time - receive;
            }
            Activity::Off => spent.off += time,
            Activity::Sleep => spent.sleep += time,
        }
        spent
    }
}
