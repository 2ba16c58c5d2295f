//! The sender's rate and window: the two phases of section 3.3, Algorithm 2. Rates are whole bytes
//! per second, as the paper counts them.

mod rise;

use anabranch_wire::rdca::{MAX_DATA_HEADER, Report, Snack};

use super::config::{Growth, Notice, SenderConfig, SnackReaction, StartPacing};
use super::trip::{as_micros, micros};
use crate::time::{Duration, Instant};
use rise::Rise;

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
    sent: Sent,
}

#[derive(Clone, Debug)]
enum State {
    Start { window: u32, grows: Instant, used: bool },
    Controlled(Rise),
}

/// How fast packets are in fact sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    last: Option<Instant>,
    /// The average interval, microseconds, with a weight of 1/16; 0: not known.
    interval: u32,
}

impl RateControl {
    pub(super) fn new(now: Instant, config: &SenderConfig, rtt: Duration) -> Self {
        let window = u32::from(config.start_window.max(1));
        let state = State::Start { window, grows: now + config.start_every, used: false };
        Self { state, rtt, sent: Sent { last: None, interval: 0 } }
    }

    pub(super) fn phase(&self) -> Phase {
        match self.state {
            State::Start { .. } => Phase::Start,
            State::Controlled(_) => Phase::Controlled,
        }
    }

    /// Packets that may be on their way. In the controlled phase it follows the present rate
    /// (erratum H8): whole packets less than a real number W are those up to the next whole number.
    pub(super) fn window(&self, config: &SenderConfig) -> u32 {
        match self.state {
            State::Start { window, .. } => window,
            State::Controlled(Rise { rate, .. }) => {
                let octets = u128::from(rate) * u128::from(self.rtt.as_nanos());
                let packet = u128::from(packet(config)) * 1_000_000_000;
                (octets.div_ceil(packet).min(u128::from(u16::MAX)) as u32)
                    .max(u32::from(config.start_window.max(1)))
            }
        }
    }

    /// Bytes per second: the rate, or W/RTT in the start phase (erratum H13).
    pub(super) fn rate(&self, config: &SenderConfig) -> u32 {
        match self.state {
            State::Start { window, .. } => {
                let octets = u128::from(window) * u128::from(packet(config)) * 1_000_000_000;
                let rate = octets / u128::from(self.rtt.as_nanos().max(1));
                (rate.min(u128::from(MOST_RATE)) as u32).max(config.least_rate.max(1))
            }
            State::Controlled(Rise { rate, .. }) => rate,
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
            State::Controlled(_) => None,
        }
    }

    /// Carries out the growth up to `now`. Nothing is done in between: 100 timers a second would do
    /// the same.
    pub(super) fn grow(&mut self, now: Instant, config: &SenderConfig, limits: bool) {
        let (growth, used) = (config.growth, self.used(config));
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
            // What cannot be used is no rate.
            State::Controlled(rise) if growth == Growth::WhenUsed && rise.rate / 2 > used => rise.pause(now),
            State::Controlled(rise) => rise.advance(now, config, self.rtt),
        }
    }

    /// The application had nothing to send until now: what was not used does not grow.
    pub(super) fn idle_until(&mut self, now: Instant, config: &SenderConfig) {
        if let (State::Controlled(rise), Growth::WhenUsed) = (&mut self.state, config.growth) {
            rise.pause(now);
        }
    }

    /// Nothing could be sent until now: there was no path. What was not used does not grow.
    pub(super) fn resume(&mut self, now: Instant, config: &SenderConfig) {
        self.sent.last = None;
        if config.growth == Growth::WhenUsed {
            match &mut self.state {
                State::Start { grows, .. } => *grows = (*grows).max(now),
                State::Controlled(rise) => rise.anew(now),
            }
        }
    }

    /// A packet goes out.
    pub(super) fn sends(&mut self, now: Instant) {
        let Sent { last, interval } = &mut self.sent;
        if let Some(last) = last.replace(now) {
            // A pause of the application counts like a few intervals.
            let most = if *interval == 0 { MOST_INTERVAL } else { interval.saturating_mul(4) };
            let sample = as_micros(now.saturating_since(last)).min(most).max(1);
            let average = (u64::from(*interval) * 15 + u64::from(sample)).div_ceil(16);
            *interval = if *interval == 0 { sample } else { average.min(u64::from(MOST_INTERVAL)) as u32 };
        }
    }

    /// What is used of the rate.
    fn used(&self, config: &SenderConfig) -> u32 {
        let rate = self.rate(config);
        rate_of(config, self.sent.interval).map_or(rate, |sent| rate.min(sent))
    }

    /// A congestion notification: the rate becomes the receive rate (Algorithm 2 line 3), if the
    /// sink knows it; else it stays what it is (erratum H16).
    pub(super) fn notified(
        &mut self,
        now: Instant,
        config: &SenderConfig,
        report: &Report,
        application_limited: bool,
    ) {
        self.grow(now, config, !application_limited);
        let headroom = if application_limited { u64::from(config.headroom_percent) } else { 100 };
        let with_headroom = |rate: u32| (u64::from(rate) * headroom / 100).min(u64::from(MOST_RATE)) as u32;
        let mut rate = match (rate_of(config, report.interval), config.notice) {
            (None, _) => self.rate(config),
            (Some(received), Notice::Exact) => with_headroom(received),
            (Some(received), Notice::Plausible) => {
                let used = self.used(config);
                with_headroom(received.min(used.saturating_add(used / 4)))
            }
        };
        if let Some(share) = rate_of(config, report.share) {
            rate = rate.min(share);
        }
        self.set(now, config, rate);
    }

    /// A SNACK. The first ends the start phase, at W/RTT (erratum H13); later ones act as
    /// notifications do, or not.
    pub(super) fn lost(
        &mut self,
        now: Instant,
        config: &SenderConfig,
        snack: &Snack,
        application_limited: bool,
    ) {
        let report = &snack.report;
        self.grow(now, config, !application_limited);
        match self.phase() {
            Phase::Start => self.set(now, config, self.rate(config)),
            Phase::Controlled if config.snack == SnackReaction::Always || report.delayed => {
                let used = self.used(config);
                self.notified(now, config, report, application_limited);
                let missing: u32 = snack.missing.as_slice().iter().map(|range| range.len()).sum();
                if config.caution.is_some_and(|caution| missing >= u32::from(caution.many)) {
                    self.set(now, config, self.rate(config).min(used));
                    self.beware(rate_of(config, report.share).unwrap_or(used));
                }
            }
            Phase::Controlled => {}
        }
        if let State::Controlled(rise) = &mut self.state {
            rise.withhold(now, config, self.rtt, report.delayed);
        }
    }

    /// The path has broken.
    pub(super) fn broken(&mut self, now: Instant, config: &SenderConfig) {
        let again = matches!(&self.state, State::Controlled(rise) if rise.calm_for(now) < ONE_TROUBLE);
        if config.broken_percent >= 100 || again {
            return;
        }
        let used = self.used(config);
        let rate = u64::from(used) * u64::from(config.broken_percent) / 100;
        self.set(now, config, rate as u32);
        if let State::Controlled(rise) = &mut self.state {
            rise.broken(now, used);
        }
    }

    /// The sink has said what each sender has: the start phase goes no higher.
    pub(super) fn told(&mut self, now: Instant, config: &SenderConfig, report: &Report) {
        if let (Phase::Start, Some(share)) = (self.phase(), rate_of(config, report.share))
            && share < self.rate(config)
        {
            self.set(now, config, share);
        }
    }

    fn set(&mut self, now: Instant, config: &SenderConfig, rate: u32) {
        let rate = rate.max(config.least_rate.max(1));
        match &mut self.state {
            State::Start { .. } => self.state = State::Controlled(Rise::new(now, rate)),
            State::Controlled(rise) => rise.set(now, rate),
        }
    }

    fn beware(&mut self, ceiling: u32) {
        if let State::Controlled(rise) = &mut self.state {
            rise.beware(ceiling);
        }
    }

    /// When the last packet was sent, unless there was no path since.
    pub(super) fn last_sent(&self) -> Option<Instant> {
        self.sent.last
    }

    /// The average time between two packets, as far as it is known.
    pub(super) fn pause(&self) -> Duration {
        micros(self.sent.interval)
    }

    /// The sink's average round trip, microseconds; 0 if it knows none.
    pub(super) fn set_rtt(&mut self, rtt: u32) {
        if rtt > 0 {
            self.rtt = micros(rtt);
        }
    }
}

/// Bytes of the packet that rates are counted in.
fn packet(config: &SenderConfig) -> u16 {
    config.datagram.max(MAX_DATA_HEADER as u16 + 1)
}

/// Bytes per second of packets that come at an interval in microseconds; `None`: it is not known.
fn rate_of(config: &SenderConfig, interval: u32) -> Option<u32> {
    let second = 1_000_000 * u64::from(packet(config));
    let rate = second.checked_div(u64::from(interval))?;
    Some(rate.min(u64::from(MOST_RATE)) as u32)
}

/// How many whole intervals lie between two instants.
fn intervals(now: Instant, since: Instant, every: Duration) -> u64 {
    now.saturating_since(since).as_nanos() / every.max(TICK).as_nanos()
}

/// Bytes per second that no rate exceeds: 1 GB/s.
const MOST_RATE: u32 = 1_000_000_000;
/// Packets that no window exceeds.
const MOST_WINDOW: u64 = 65_535;
/// Microseconds between two packets that no average exceeds.
const MOST_INTERVAL: u32 = 60_000_000;
/// Whatever happens within this time after a cut of the rate is the same trouble.
const ONE_TROUBLE: Duration = Duration::from_secs(1);
/// No interval is shorter, whatever the configuration says: time must move on.
const TICK: Duration = Duration::from_micros(1);

#[cfg(test)]
mod tests;
