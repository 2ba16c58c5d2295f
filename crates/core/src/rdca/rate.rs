//! The sender's rate and window: the two phases of section 3.3, Algorithm 2. Rates are whole bytes
//! per second, as in the paper.

mod rise;

use anabranch_wire::rdca::{MAX_DATA_HEADER, Report, Snack};

use super::config::{Growth, Notice, SenderConfig, SnackReaction, StartEnds, StartPacing};
use super::trip::{as_micros, micros};
use crate::time::{Duration, Instant};
use rise::Rise;

/// The phase of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// The window alone limits the sender, and it grows (section 3.3.1).
    Start,
    /// The rate limits the sender, and the window follows the rate (section 3.3.2).
    Controlled,
}

/// The limits of a sender's transmissions.
#[derive(Clone, Debug)]
pub(super) struct RateControl {
    state: State,
    /// The average round-trip time: the sink's value, or the sender's own measurement until the
    /// sink reports one.
    pub rtt: Duration,
    sent: Sent,
}

#[derive(Clone, Debug)]
enum State {
    Start { window: u32, grows: Instant, used: bool },
    Controlled(Rise),
}

/// The achieved sending rate.
#[derive(Clone, Copy, Debug)]
struct Sent {
    last: Option<Instant>,
    /// The average interval between packets in microseconds, with a weight of 1/16; 0 if unknown.
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

    /// Returns the largest number of packets in flight. In the controlled phase it follows the
    /// current rate. Erratum H8: the paper permits a packet while fewer than W are in flight, with
    /// a real number W, so W is rounded up.
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

    /// Returns the rate in bytes per second: in the start phase W/RTT (erratum H13).
    pub(super) fn rate(&self, config: &SenderConfig) -> u32 {
        match self.state {
            State::Start { window, .. } => {
                let octets = u128::from(window) * u128::from(packet(config)) * 1_000_000_000;
                let rate = octets / u128::from(self.rtt.max(config.start_rtt).as_nanos().max(1));
                (rate.min(u128::from(MOST_RATE)) as u32).max(config.least_rate.max(1))
            }
            State::Controlled(Rise { rate, .. }) => rate,
        }
    }

    /// Returns the time between two packets at the current rate (Algorithm 2 line 8, erratum H7).
    pub(super) fn interval(&self, config: &SenderConfig) -> Duration {
        Duration::from_secs(1).mul_ratio(u64::from(packet(config)), u64::from(self.rate(config)))
    }

    /// Returns the pacing interval, which is zero if packets are sent in bursts.
    pub(super) fn spacing(&self, config: &SenderConfig) -> Duration {
        match (&self.state, config.start_pacing) {
            (State::Start { .. }, StartPacing::Burst) => Duration::ZERO,
            _ => self.interval(config),
        }
    }

    /// Returns when the window next grows by itself.
    pub(super) fn grows(&self) -> Option<Instant> {
        match self.state {
            State::Start { grows, .. } => Some(grows),
            State::Controlled(_) => None,
        }
    }

    /// Applies the growth up to `now` in one step. A timer for each growth step, 100 a second,
    /// would give the same result at a higher cost.
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
            // A rate that the sender does not use says nothing about the path, so it must not grow.
            State::Controlled(rise) if growth == Growth::WhenUsed && rise.rate / 2 > used => rise.pause(now),
            State::Controlled(rise) => rise.advance(now, config, self.rtt),
        }
    }

    /// Notes that the application had nothing to send until `now`; an unused rate does not grow.
    pub(super) fn idle_until(&mut self, now: Instant, config: &SenderConfig) {
        if let (State::Controlled(rise), Growth::WhenUsed) = (&mut self.state, config.growth) {
            rise.pause(now);
        }
    }

    /// Notes that there was no path until `now`; an unused rate does not grow.
    pub(super) fn resume(&mut self, now: Instant, config: &SenderConfig) {
        self.sent.last = None;
        if config.growth == Growth::WhenUsed {
            match &mut self.state {
                State::Start { grows, .. } => *grows = (*grows).max(now),
                State::Controlled(rise) => rise.anew(now),
            }
        }
    }

    /// Records a transmission.
    pub(super) fn sends(&mut self, now: Instant) {
        let Sent { last, interval } = &mut self.sent;
        if let Some(last) = last.replace(now) {
            // A pause of the application counts as at most four intervals, so that it does not
            // distort the average.
            let most = if *interval == 0 { MOST_INTERVAL } else { interval.saturating_mul(4) };
            let sample = as_micros(now.saturating_since(last)).min(most).max(1);
            let average = (u64::from(*interval) * 15 + u64::from(sample)).div_ceil(16);
            *interval = if *interval == 0 { sample } else { average.min(u64::from(MOST_INTERVAL)) as u32 };
        }
    }

    /// Returns the part of the rate that is in use.
    fn used(&self, config: &SenderConfig) -> u32 {
        let rate = self.rate(config);
        rate_of(config, self.sent.interval).map_or(rate, |sent| rate.min(sent))
    }

    /// Handles a congestion notification: the rate becomes the receive rate (Algorithm 2 line 3) if
    /// the sink knows it. Otherwise the rate stays unchanged (erratum H16).
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
                // A sink cannot receive faster than this sender sends: a reported rate far above
                // the used rate is a measurement error.
                let used = self.used(config);
                with_headroom(received.min(used.saturating_add(used / 4)))
            }
        };
        if let Some(share) = rate_of(config, report.share) {
            rate = rate.min(share);
        }
        self.set(now, config, rate);
    }

    /// Handles a SNACK. The first one ends the start phase at the rate W/RTT (erratum H13). Later
    /// ones act like notifications, depending on the configuration.
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
            Phase::Start if config.start_ends == StartEnds::Delay && !report.delayed => {}
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

    /// Handles a broken path.
    pub(super) fn broken(&mut self, now: Instant, config: &SenderConfig) {
        // One outage can be reported several times; only the first report reduces the rate.
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

    /// Applies the share of each sender that the sink has reported: the start phase does not exceed
    /// it.
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

    /// Returns the time of the last transmission, unless the path was lost since.
    pub(super) fn last_sent(&self) -> Option<Instant> {
        self.sent.last
    }

    /// Returns the average time between two packets, zero if unknown.
    pub(super) fn pause(&self) -> Duration {
        micros(self.sent.interval)
    }

    /// Sets the average round-trip time of the sink in microseconds; 0 means unknown and is
    /// ignored.
    pub(super) fn set_rtt(&mut self, rtt: u32) {
        if rtt > 0 {
            self.rtt = micros(rtt);
        }
    }
}

/// Size in bytes of the packets in which rates are counted.
fn packet(config: &SenderConfig) -> u16 {
    config.datagram.max(MAX_DATA_HEADER as u16 + 1)
}

/// Converts an interval between packets in microseconds to bytes per second; `None` for an unknown
/// interval (0).
fn rate_of(config: &SenderConfig, interval: u32) -> Option<u32> {
    let second = 1_000_000 * u64::from(packet(config));
    let rate = second.checked_div(u64::from(interval))?;
    Some(rate.min(u64::from(MOST_RATE)) as u32)
}

/// Number of whole intervals between two instants.
fn intervals(now: Instant, since: Instant, every: Duration) -> u64 {
    now.saturating_since(since).as_nanos() / every.max(TICK).as_nanos()
}

/// Upper limit of all rates in bytes per second: 1 GB/s.
const MOST_RATE: u32 = 1_000_000_000;
/// Upper limit of all windows in packets.
const MOST_WINDOW: u64 = 65_535;
/// Upper limit of the average interval between packets in microseconds.
const MOST_INTERVAL: u32 = 60_000_000;
/// Events within this time after a reduction of the rate belong to the same disturbance.
const ONE_TROUBLE: Duration = Duration::from_secs(1);
/// Lower limit of all intervals: zero in a configuration would stop time and divide by zero.
const TICK: Duration = Duration::from_micros(1);

#[cfg(test)]
mod tests;
