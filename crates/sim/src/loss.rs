//! Lossy channels: Bernoulli and Gilbert-Elliott, both testable against closed forms.
//!
//! A channel draws the same number of random words for every packet, whatever happens to it. The
//! n-th packet of a link therefore meets the same channel under every protocol.
//!
//! There are two kinds of Gilbert-Elliott channels. One is a chain that steps per packet, as in
//! Gilbert (1960) and Elliott (1963) for symbols, so the state does not change on a silent link.
//! The other changes over time, with or without packets, at the same times under every protocol.

use std::collections::VecDeque;

use anabranch_core::time::{Duration, Instant};

use crate::jitter::Jitter;
use crate::packet::PacketKind;
use crate::random::Stream;

/// Loss model of a link.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum LossModel {
    /// No losses.
    #[default]
    None,
    /// Independent losses with probability `p`.
    Bernoulli {
        /// Loss probability, 0 to 1.
        p: f64,
    },
    /// A chain with two states that steps before every packet.
    GilbertElliott {
        /// Probability per packet of a change from good to bad.
        good_to_bad: f64,
        /// Probability per packet of a change from bad to good.
        bad_to_good: f64,
        /// Loss probability in the good state.
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
    /// Alternating good and bad states, each with an exponentially distributed duration. The
    /// channel starts in its stationary distribution.
    GilbertElliottInTime {
        /// Mean duration of the good state, more than 0.
        mean_good: Duration,
        /// Mean duration of the bad state, more than 0.
        mean_bad: Duration,
        /// Loss probability in the good state.
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
}

/// Factors on the loss probability by kind of packet; 1 has no effect.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LossFactors {
    /// For [`PacketKind::Data`].
    pub data: f64,
    /// For [`PacketKind::Ack`].
    pub ack: f64,
    /// For the link layer's own acknowledgements, if it sends any.
    pub link_ack: f64,
}

impl Default for LossFactors {
    fn default() -> Self {
        Self { data: 1.0, ack: 1.0, link_ack: 1.0 }
    }
}

impl LossModel {
    /// The long-run fraction of lost packets, with factors of 1.
    pub fn stationary_loss(&self) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::Bernoulli { p } => p,
            Self::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                let sum = good_to_bad + bad_to_good;
                // Without transitions the chain stays in its first state: good.
                let bad = if sum > 0.0 { good_to_bad / sum } else { 0.0 };
                loss_good * (1.0 - bad) + loss_bad * bad
            }
            Self::GilbertElliottInTime { mean_good, mean_bad, loss_good, loss_bad } => {
                let bad = share_of_bad(mean_good, mean_bad);
                loss_good * (1.0 - bad) + loss_bad * bad
            }
        }
    }
}

fn share_of_bad(mean_good: Duration, mean_bad: Duration) -> f64 {
    mean_bad.as_secs_f64() / (mean_good.as_secs_f64() + mean_bad.as_secs_f64())
}

/// Reordering and duplication of packets that a link does not lose.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Disturbance {
    /// Probability that a packet is late, so that later packets may overtake it.
    pub reordering: f64,
    /// Largest additional delay of a late packet, evenly distributed from 0.
    pub lateness: Duration,
    /// Probability that a packet arrives twice.
    pub duplication: f64,
}

impl Disturbance {
    /// Whether the disturbance has no effect.
    pub fn is_none(&self) -> bool {
        self.reordering == 0.0 && self.duplication == 0.0
    }
}

/// Effect on one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It arrives as planned.
    Plain,
    /// It arrives later by this time.
    Late(Duration),
    /// It arrives twice, both copies later by this time.
    Twice(Duration),
}

/// State of a [`Disturbance`], and of jitter with overtaking.
#[derive(Debug)]
pub struct Disturber {
    disturbance: Disturbance,
    jitter: Option<Jitter>,
    stream: Stream,
}

impl Disturber {
    /// With its own random stream.
    pub fn new(disturbance: Disturbance, jitter: Option<Jitter>, stream: Stream) -> Self {
        Self { disturbance, jitter, stream }
    }

    /// Decides about the next packet, always with the same number of random words.
    pub fn next_fate(&mut self) -> Fate {
        let Disturbance { reordering, lateness, duplication } = self.disturbance;
        let late = self.stream.bernoulli(reordering);
        let share = (self.stream.uniform() * 1e9) as u64;
        let twice = self.stream.bernoulli(duplication);
        let jitter = self.jitter.as_mut().map_or(Duration::ZERO, Jitter::draw);
        match (late, twice) {
            (true, _) => Fate::Late(jitter + lateness.mul_ratio(share, 1_000_000_000)),
            (false, true) => Fate::Twice(jitter),
            (false, false) if !jitter.is_zero() => Fate::Late(jitter),
            (false, false) => Fate::Plain,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Quality {
    Good,
    Bad,
}

impl Quality {
    fn other(self) -> Self {
        match self {
            Self::Good => Self::Bad,
            Self::Bad => Self::Good,
        }
    }
}

/// The good and bad periods of a channel, as far as they are known.
#[derive(Debug)]
struct Times {
    mean_good: Duration,
    mean_bad: Duration,
    /// State in the first known period.
    first: Quality,
    /// End of each period; at least one.
    ends: VecDeque<Instant>,
    stream: Stream,
}

impl Times {
    fn new(mean_good: Duration, mean_bad: Duration, mut stream: Stream) -> Self {
        let is_bad = stream.bernoulli(share_of_bad(mean_good, mean_bad));
        let first = if is_bad { Quality::Bad } else { Quality::Good };
        let mut this = Self { mean_good, mean_bad, first, ends: VecDeque::new(), stream };
        this.extend(Instant::ZERO);
        this
    }

    /// Draws the next period, which starts at `begin`.
    fn extend(&mut self, begin: Instant) {
        let mean = match self.quality(self.ends.len()) {
            Quality::Good => self.mean_good,
            Quality::Bad => self.mean_bad,
        };
        let time = Duration::from_secs_f64(mean.as_secs_f64() * self.stream.exponential());
        self.ends.push_back(begin + time);
    }

    /// State in the `n`-th known period.
    fn quality(&self, n: usize) -> Quality {
        if n.is_multiple_of(2) { self.first } else { self.first.other() }
    }

    /// State at a time. The caller never asks again for a time before `since`.
    fn at(&mut self, moment: Instant, since: Instant) -> Quality {
        loop {
            // Past periods are dropped at once: a link may be silent for long, and would otherwise
            // accumulate them.
            while self.ends.len() > 1 && self.ends[0] <= since {
                self.ends.pop_front();
                self.first = self.first.other();
            }
            let Some(last) = self.ends.back().copied().filter(|last| *last <= moment) else { break };
            self.extend(last);
        }
        self.quality(self.ends.partition_point(|end| *end <= moment))
    }
}

/// State of a loss model, with its random stream.
#[derive(Debug)]
pub struct Channel {
    model: LossModel,
    factors: LossFactors,
    quality: Quality,
    /// For a channel that changes over time.
    times: Option<Box<Times>>,
    stream: Stream,
}

impl Channel {
    /// A channel, in the good state if it steps per packet. `times` is the stream for a channel
    /// that changes over time: two channels with the same stream change at the same times.
    pub fn new(
        model: LossModel,
        factors: LossFactors,
        stream: Stream,
        times: impl FnOnce() -> Stream,
    ) -> Self {
        let times = match model {
            LossModel::GilbertElliottInTime { mean_good, mean_bad, .. } => {
                Some(Box::new(Times::new(mean_good, mean_bad, times())))
            }
            LossModel::None | LossModel::Bernoulli { .. } | LossModel::GilbertElliott { .. } => None,
        };
        Self { model, factors, quality: Quality::Good, times, stream }
    }

    /// Decides whether the next packet is lost, whose transmission begins at `moment`. The caller
    /// never asks again for a time before `since`.
    #[inline]
    pub fn loses(&mut self, kind: PacketKind, moment: Instant, since: impl FnOnce() -> Instant) -> bool {
        let factor = match kind {
            PacketKind::Data => self.factors.data,
            PacketKind::Ack => self.factors.ack,
        };
        self.draws(factor, moment, since)
    }

    /// Decides whether the next link-layer acknowledgement is lost; calls are in order of time.
    pub fn loses_link_ack(&mut self, now: Instant) -> bool {
        self.draws(self.factors.link_ack, now, || now)
    }

    #[inline]
    fn draws(&mut self, factor: f64, moment: Instant, since: impl FnOnce() -> Instant) -> bool {
        let p = match self.model {
            LossModel::None => return false,
            LossModel::Bernoulli { p } => p,
            LossModel::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                self.quality = match self.quality {
                    Quality::Good if self.stream.bernoulli(good_to_bad) => Quality::Bad,
                    Quality::Bad if self.stream.bernoulli(bad_to_good) => Quality::Good,
                    same => same,
                };
                match self.quality {
                    Quality::Good => loss_good,
                    Quality::Bad => loss_bad,
                }
            }
            LossModel::GilbertElliottInTime { loss_good, loss_bad, .. } => {
                let times = self.times.as_mut().expect("a channel in time has its times");
                match times.at(moment, since()) {
                    Quality::Good => loss_good,
                    Quality::Bad => loss_bad,
                }
            }
        };
        self.stream.bernoulli(p * factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(model: LossModel, factors: LossFactors, seed: u64) -> Channel {
        let stream = |purpose: &str| Stream::new(seed, 0, "test", purpose);
        Channel::new(model, factors, stream("loss"), || stream("times"))
    }

    fn share(model: LossModel, factors: LossFactors, kind: PacketKind) -> f64 {
        let n = 400_000;
        let mut channel = channel(model, factors, 11);
        let moment = |i: u32| Instant::ZERO + Duration::from_millis(10) * u64::from(i);
        let loses = |i: &u32| channel.loses(kind, moment(*i), || moment(*i));
        (0..n).filter(loses).count() as f64 / f64::from(n)
    }

    #[test]
    fn gilbert_elliott_loses_its_stationary_share() {
        let model = LossModel::GilbertElliott {
            good_to_bad: 0.01,
            bad_to_good: 0.2,
            loss_good: 0.002,
            loss_bad: 0.5,
        };
        let expected = model.stationary_loss();
        assert!((expected - (0.002 * 20.0 / 21.0 + 0.5 / 21.0)).abs() < 1e-12);
        let got = share(model, LossFactors::default(), PacketKind::Data);
        assert!((got / expected - 1.0).abs() < 0.03, "{got} instead of {expected}");
    }

    #[test]
    fn losses_of_gilbert_elliott_come_in_bursts() {
        let model =
            LossModel::GilbertElliott { good_to_bad: 0.01, bad_to_good: 0.25, loss_good: 0.0, loss_bad: 1.0 };
        let mut channel = channel(model, LossFactors::default(), 5);
        let mut loses = |_| channel.loses(PacketKind::Data, Instant::ZERO, || Instant::ZERO);
        let fate: Vec<bool> = (0..400_000).map(&mut loses).collect();
        let lost = fate.iter().filter(|l| **l).count() as f64;
        let bursts = fate.windows(2).filter(|w| w[0] && !w[1]).count() as f64;
        assert!((lost / bursts - 4.0).abs() < 0.15, "mean burst {}", lost / bursts);
    }

    fn in_time(good: u64, bad: u64, loss_good: f64, loss_bad: f64) -> LossModel {
        let [mean_good, mean_bad] = [good, bad].map(Duration::from_millis);
        LossModel::GilbertElliottInTime { mean_good, mean_bad, loss_good, loss_bad }
    }

    #[test]
    fn a_channel_in_time_loses_its_stationary_share() {
        for (model, expected) in [
            (in_time(900, 100, 0.01, 0.6), 0.069),
            (in_time(20, 60, 0.0, 1.0), 0.75),
            (in_time(1, 1, 0.2, 0.4), 0.3),
        ] {
            assert!((model.stationary_loss() - expected).abs() < 1e-12);
            let got = share(model, LossFactors::default(), PacketKind::Data);
            assert!((got / expected - 1.0).abs() < 0.04, "{got} instead of {expected}");
        }
    }

    /// Packets at intervals of t see a chain whose probability to stay bad is that of the process
    /// after t.
    #[test]
    fn bursts_of_a_channel_in_time_are_as_long_as_its_bad_times() {
        for (good, bad, gap) in [(400, 100, 5), (400, 100, 50), (30, 30, 100)] {
            let model = in_time(good, bad, 0.0, 1.0);
            let mut channel = channel(model, LossFactors::default(), 6);
            let moment = |i: u64| Instant::ZERO + Duration::from_millis(gap * i);
            let fate: Vec<bool> =
                (0..600_000).map(|i| channel.loses(PacketKind::Data, moment(i), || moment(i))).collect();
            let lost = fate.iter().filter(|lost| **lost).count() as f64;
            let bursts = fate.windows(2).filter(|pair| pair[0] && !pair[1]).count() as f64;
            let (good, bad, gap) = (good as f64, bad as f64, gap as f64);
            let share = bad / (good + bad);
            let stays = share + (1.0 - share) * (-(1.0 / good + 1.0 / bad) * gap).exp();
            let expected = 1.0 / (1.0 - stays);
            assert!((lost / bursts / expected - 1.0).abs() < 0.04, "{} instead of {expected}", lost / bursts);
        }
    }

    /// Two packets with an hour between them: past periods are dropped, otherwise there would be 24
    /// million times in memory.
    #[test]
    fn a_silent_channel_in_time_keeps_nothing() {
        let mut times = Times::new(
            Duration::from_micros(200),
            Duration::from_micros(100),
            Stream::new(8, 0, "test", "silence"),
        );
        let hour = Instant::ZERO + Duration::from_secs(3600);
        times.at(hour, hour);
        assert!(times.ends.len() <= 2 && times.ends.capacity() < 100, "{}", times.ends.len());
        assert!(times.ends[0] > hour);
    }

    /// The channel is bad at the same times, whether packets are frequent or rare, and in whatever
    /// order the waiting packets are planned.
    #[test]
    fn a_channel_in_time_is_the_same_for_every_protocol() {
        let model = in_time(50, 50, 0.0, 1.0);
        let bad = |moments: &[u64]| -> Vec<u64> {
            let mut channel = channel(model, LossFactors::default(), 7);
            let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
            let mut loses = |ms: &u64| channel.loses(PacketKind::Data, at(*ms), || at((*ms).min(2000)));
            moments.iter().copied().filter(|ms| loses(ms)).collect()
        };
        let all: Vec<u64> = (0..20_000).collect();
        let of_all = bad(&all);
        let seldom: Vec<u64> = all.iter().copied().step_by(7).collect();
        assert_eq!(bad(&seldom), of_all.iter().copied().filter(|ms| ms % 7 == 0).collect::<Vec<_>>());
        // With a faster rate, packets may begin earlier than they were planned.
        let mut late_first: Vec<u64> = vec![15_000];
        late_first.extend(2000..3000);
        let expected = late_first.iter().copied().filter(|ms| of_all.contains(ms)).collect::<Vec<_>>();
        assert_eq!(bad(&late_first), expected);
    }

    #[test]
    fn kinds_have_their_factors() {
        let factors = LossFactors { ack: 0.5, ..LossFactors::default() };
        let model = LossModel::Bernoulli { p: 0.1 };
        assert!((share(model, factors, PacketKind::Data) - 0.1).abs() < 0.002);
        assert!((share(model, factors, PacketKind::Ack) - 0.05).abs() < 0.002);
        assert_eq!(share(LossModel::None, factors, PacketKind::Ack), 0.0);
    }
}
