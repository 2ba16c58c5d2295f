//! Time of a radio in each of its states, from which its energy follows.

use anabranch_core::time::{Duration, Instant};

/// Number of states.
pub const STATES: usize = 5;

/// State of a radio of either kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RadioState {
    /// Transmitting.
    Transmit,
    /// Sensing the signals of other stations, for any destination.
    Receive,
    /// Listening on a clear channel.
    Listen,
    /// Off.
    Off,
    /// Sleeping between samples of the channel.
    Sleep,
}

impl RadioState {
    /// All states, in the order of [`EnergyUse`].
    pub const ALL: [Self; STATES] = [Self::Transmit, Self::Receive, Self::Listen, Self::Off, Self::Sleep];

    /// Name of the state in metrics.
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

/// Seconds that a radio has spent in each state, and the joules that it has used there.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct EnergyUse {
    /// In the order of [`RadioState::ALL`].
    pub seconds: [f64; STATES],
    /// In the order of [`RadioState::ALL`].
    pub joules: [f64; STATES],
}

impl EnergyUse {
    /// From the time in each state and the power in watts.
    pub(crate) fn of(time: &StateTime, watts: [f64; STATES]) -> Self {
        let StateTime { transmit, receive, listen, off, sleep } = *time;
        let seconds = [transmit, receive, listen, off, sleep].map(Duration::as_secs_f64);
        Self { seconds, joules: std::array::from_fn(|i| watts[i] * seconds[i]) }
    }

    /// The difference to `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let less = |now: [f64; STATES], then: [f64; STATES]| std::array::from_fn(|i| now[i] - then[i]);
        Self { seconds: less(self.seconds, before.seconds), joules: less(self.joules, before.joules) }
    }

    /// Total energy of all states in joules.
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

/// Time that a radio has spent in each state; the sum is the duration of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StateTime {
    /// Transmitting.
    pub transmit: Duration,
    /// On, not transmitting, and the channel busy.
    pub receive: Duration,
    /// On, not transmitting, and the channel clear.
    pub listen: Duration,
    /// Off.
    pub off: Duration,
    /// Asleep between samples of the channel.
    pub sleep: Duration,
}

/// Activity of a station's radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Activity {
    Transmit,
    /// On and not transmitting: it receives or listens, depending on the channel.
    Hear,
    Off,
    Sleep,
}

/// The times of one radio.
///
/// The channel records when it is busy at a station. That record is read when the station changes
/// its activity, so nothing is written for each signal at each station, which would be most of the
/// work of a network.
#[derive(Debug)]
pub(crate) struct Meter {
    activity: Activity,
    since: Instant,
    /// Busy time of the channel when the activity began.
    busy_before: Duration,
    spent: StateTime,
}

impl Meter {
    /// For a radio on a clear channel, from time zero.
    pub(crate) fn new() -> Self {
        let (since, busy_before) = (Instant::ZERO, Duration::ZERO);
        Self { activity: Activity::Hear, since, busy_before, spent: StateTime::default() }
    }

    /// Changes the activity; `busy` is the total busy time of the channel at the station.
    pub(crate) fn enter(&mut self, now: Instant, activity: Activity, busy: Duration) {
        *self = Self { activity, since: now, busy_before: busy, spent: self.until(now, busy) };
    }

    /// The times up to `now`; `busy` is the total busy time of the channel at the station.
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
