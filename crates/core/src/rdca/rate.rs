//! The sender's rate and window: the two phases of section 3.3, Algorithm 2. Rates are whole octets per second, as the
//! paper counts them.

use anabranch_wire::rdca::MAX_DATA_HEADER;

use super::config::{Acceleration, Growth, SenderConfig, SnackReaction, StartPacing, Withhold};
use super::trip::micros;
use crate::time::{Duration, Instant};

/// Which phase a sender is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// The window alone drives it, and grows (section 3.3.1).
    Start,
    /// The rate drives it, the window follows (section 3.3.2).
    Controlled,
}

/// What limits the sender's packets.
#[derive(Clone, Debug)]
pub(super) struct RateControl {
    state: State,
    /// The average round trip: the sink's, or what was measured before it said any.
    pub rtt: Duration,
}

#[derive(Clone, Debug)]
enum State {
    Start { window: u32, grows: Instant, used: bool },
    Controlled { rate: u32, raised: Instant, calm: Instant },
}

impl RateControl {
    pub(super) fn new(now: Instant, config: &SenderConfig, rtt: Duration) -> Self {
        let window = u32::from(config.start_window.max(1));
        Self { state: State::Start { window, grows: now + config.start_every, used: false }, rtt }
    }

    pub(super) fn phase(&self) -> Phase {
        match self.state {
            State::Start { .. } => Phase::Start,
            State::Controlled { .. } => Phase::Controlled,
        }
    }

    /// Packets that may be on their way. In the controlled phase it follows the present rate (erratum H8): whole packets
    /// less than a real number W are those up to the next whole number.
    pub(super) fn window(&self, config: &SenderConfig) -> u32 {
        match self.state {
            State::Start { window, .. } => window,
            State::Controlled { rate, .. } => {
                let octets = u128::from(rate) * u128::from(self.rtt.as_nanos());
                let packet = u128::from(packet(config)) * 1_000_000_000;
                (octets.div_ceil(packet).min(u128::from(u16::MAX)) as u32)
                    .max(u32::from(config.start_window.max(1)))
            }
        }
    }

    /// Octets per second: the rate, or W/RTT in the start phase (erratum H13).
    pub(super) fn rate(&self, config: &SenderConfig) -> u32 {
        match self.state {
            State::Start { window, .. } => {
                let octets = u128::from(window) * u128::from(packet(config)) * 1_000_000_000;
                let rate = octets / u128::from(self.rtt.as_nanos().max(1));
                (rate.min(u128::from(MOST_RATE)) as u32).max(config.least_rate.max(1))
            }
            State::Controlled { rate, .. } => rate,
        }
    }

    /// The time between two packets at the present rate (Algorithm 2 line 8, erratum H7).
    pub(super) fn interval(&self, config: &SenderConfig) -> Duration {
        Duration::from_secs(1).mul_ratio(u64::from(packet(config)), u64::from(self.rate(config)))
    }

    /// The same, as far as it spaces packets.
    pub(super) fn spacing(&self, config: &SenderConfig) -> Duration {
        match (&self.state, config.start_pacing) {
            (State::Start { .. }, StartPacing::Burst) => Duration::ZERO,
            _ => self.interval(config),
        }
    }

    /// When the window grows next of itself.
    pub(super) fn grows(&self) -> Option<Instant> {
        match self.state {
            State::Start { grows, .. } => Some(grows),
            State::Controlled { .. } => None,
        }
    }

    /// Carries out the growth up to `now`. Nothing is done in between: 100 timers a second would do the same.
    pub(super) fn grow(&mut self, now: Instant, config: &SenderConfig, limits: bool) {
        let growth = config.growth;
        match &mut self.state {
            State::Start { window, grows, used } => {
                *used |= limits;
                if now < *grows {
                    return;
                }
                let steps = intervals(now, *grows, config.start_every) + 1;
                let by = if growth == Growth::Always { steps } else { u64::from(*used) };
                *window = (u64::from(*window) + by).min(MOST_WINDOW) as u32;
                *grows += config.start_every.max(TICK) * steps;
                *used = limits;
            }
            State::Controlled { rate, raised, calm } => raise(now, config, rate, raised, *calm),
        }
    }

    /// The application had nothing to send until now: what was not used does not grow.
    pub(super) fn idle_until(&mut self, now: Instant, config: &SenderConfig) {
        if let (State::Controlled { raised, .. }, Growth::WhenUsed) = (&mut self.state, config.growth) {
            *raised = (*raised).max(now);
        }
    }

    /// A congestion notification: the rate becomes the receive rate (Algorithm 2 line 3). `interval` is the sink's average
    /// interval between packets, microseconds; 0 if it knows none, then the rate stays what it is (erratum H16).
    pub(super) fn notified(
        &mut self,
        now: Instant,
        config: &SenderConfig,
        interval: u32,
        application_limited: bool,
    ) {
        self.grow(now, config, !application_limited);
        let percent = if application_limited { u64::from(config.headroom_percent) } else { 100 };
        let rate = match interval {
            0 => self.rate(config),
            interval => {
                let second = 1_000_000 * u64::from(packet(config)) * percent / 100;
                (second / u64::from(interval)).min(u64::from(MOST_RATE)) as u32
            }
        };
        self.state = State::Controlled { rate: rate.max(config.least_rate.max(1)), raised: now, calm: now };
    }

    /// A SNACK. The first ends the start phase, at W/RTT (erratum H13); later ones act as notifications do, or not.
    pub(super) fn lost(
        &mut self,
        now: Instant,
        config: &SenderConfig,
        interval: u32,
        delayed: bool,
        application_limited: bool,
    ) {
        self.grow(now, config, !application_limited);
        match self.phase() {
            Phase::Start => {
                self.state = State::Controlled { rate: self.rate(config), raised: now, calm: now };
            }
            Phase::Controlled if config.snack == SnackReaction::Always || delayed => {
                self.notified(now, config, interval, application_limited);
            }
            Phase::Controlled => {}
        }
        if let State::Controlled { raised, calm, .. } = &mut self.state {
            match config.withhold {
                Withhold::Interval => *raised += config.raise_every,
                Withhold::RoundTrip => {
                    *raised = (*raised).max(now + self.rtt);
                    *calm = now;
                }
            }
        }
    }

    /// The sink's average round trip, microseconds; 0 if it knows none.
    pub(super) fn set_rtt(&mut self, rtt: u32) {
        if rtt > 0 {
            self.rtt = micros(rtt);
        }
    }
}

/// The rise up to `now`, in stages of one speed each.
fn raise(now: Instant, config: &SenderConfig, rate: &mut u32, raised: &mut Instant, calm: Instant) {
    let every = config.raise_every.max(TICK);
    let Acceleration { after, doublings } =
        config.acceleration.unwrap_or(Acceleration { after: Duration::MAX, doublings: 0 });
    let after = after.max(TICK);
    // One turn for each stage, and one for a rest of the last.
    for _ in 0..=u64::from(doublings) + 1 {
        let stage = intervals(*raised, calm, after).min(u64::from(doublings.min(16)));
        let over =
            if stage < u64::from(doublings) { calm + after * (stage + 1) } else { Instant::FAR_FUTURE };
        if now < *raised + every {
            return;
        }
        let steps = intervals(now.min(over), *raised, every).max(1);
        let step = u64::from(config.raise_step) << stage;
        *rate =
            (u64::from(*rate)).saturating_add(step.saturating_mul(steps)).min(u64::from(MOST_RATE)) as u32;
        *raised += every * steps;
    }
}

/// Octets of the packet that rates are counted in.
fn packet(config: &SenderConfig) -> u16 {
    config.datagram.max(MAX_DATA_HEADER as u16 + 1)
}

/// How many whole intervals lie between two instants.
fn intervals(now: Instant, since: Instant, every: Duration) -> u64 {
    now.saturating_since(since).as_nanos() / every.max(TICK).as_nanos()
}

/// Octets per second that no rate exceeds: 1 GB/s.
const MOST_RATE: u32 = 1_000_000_000;
/// Packets that no window exceeds.
const MOST_WINDOW: u64 = 65_535;
/// No interval is shorter, whatever the configuration says: time must move on.
const TICK: Duration = Duration::from_micros(1);
