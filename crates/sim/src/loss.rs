//! Channels that lose packets: Bernoulli and Gilbert-Elliott, in closed form testable.
//!
//! A channel draws the same number of random words for every packet, whatever becomes of it, so the n-th
//! packet of a link meets the same channel under every protocol.
//!
//! Limits: the Gilbert-Elliott chain steps per packet, not with time, as in Gilbert (1960) and Elliott
//! (1963) for symbols. A silent link does not change state.

use anabranch_core::time::Duration;

use crate::packet::PacketKind;
use crate::random::Stream;

/// How a link loses packets.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum LossModel {
    /// It does not.
    #[default]
    None,
    /// Each packet with probability `p`, independently.
    Bernoulli {
        /// In 0..=1.
        p: f64,
    },
    /// A chain of two states that steps before every packet.
    GilbertElliott {
        /// Probability to turn bad, per packet.
        good_to_bad: f64,
        /// Probability to turn good, per packet.
        bad_to_good: f64,
        /// Loss probability in the good state.
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
}

/// Factors on the loss probability by kind of packet; 1 leaves it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LossFactors {
    /// For [`PacketKind::Data`].
    pub data: f64,
    /// For [`PacketKind::Ack`].
    pub ack: f64,
    /// For the link layer's own acknowledgements, where there are any.
    pub link_ack: f64,
}

impl Default for LossFactors {
    fn default() -> Self {
        Self { data: 1.0, ack: 1.0, link_ack: 1.0 }
    }
}

impl LossModel {
    /// The long-run share of packets lost, with factors of 1.
    pub fn stationary_loss(&self) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::Bernoulli { p } => p,
            Self::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                let sum = good_to_bad + bad_to_good;
                // Without transitions the chain stays where it starts: good.
                let bad = if sum > 0.0 { good_to_bad / sum } else { 0.0 };
                loss_good * (1.0 - bad) + loss_bad * bad
            }
        }
    }
}

/// What a link does to packets that it does not lose.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Disturbance {
    /// Probability that a packet arrives late, and so perhaps behind others.
    pub reordering: f64,
    /// How late, at most: evenly distributed from 0.
    pub lateness: Duration,
    /// Probability that a packet arrives twice.
    pub duplication: f64,
}

impl Disturbance {
    /// It does nothing.
    pub fn is_none(&self) -> bool {
        self.reordering == 0.0 && self.duplication == 0.0
    }
}

/// What becomes of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It arrives.
    Plain,
    /// It arrives so much later.
    Late(Duration),
    /// It arrives twice.
    Twice,
}

/// A [`Disturbance`] in operation.
#[derive(Debug)]
pub struct Disturber {
    disturbance: Disturbance,
    stream: Stream,
}

impl Disturber {
    /// With its own random stream.
    pub fn new(disturbance: Disturbance, stream: Stream) -> Self {
        Self { disturbance, stream }
    }

    /// Decides over the next packet; always with the same number of random words.
    pub fn next_fate(&mut self) -> Fate {
        let Disturbance { reordering, lateness, duplication } = self.disturbance;
        let late = self.stream.bernoulli(reordering);
        let share = (self.stream.uniform() * 1e9) as u64;
        let twice = self.stream.bernoulli(duplication);
        match (late, twice) {
            (true, _) => Fate::Late(lateness.mul_ratio(share, 1_000_000_000)),
            (false, true) => Fate::Twice,
            (false, false) => Fate::Plain,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Quality {
    Good,
    Bad,
}

/// A loss model in operation: its state and its random stream.
#[derive(Debug)]
pub struct Channel {
    model: LossModel,
    factors: LossFactors,
    quality: Quality,
    stream: Stream,
}

impl Channel {
    /// A channel that starts good.
    pub fn new(model: LossModel, factors: LossFactors, stream: Stream) -> Self {
        Self { model, factors, quality: Quality::Good, stream }
    }

    /// Decides the fate of the next packet.
    #[inline]
    pub fn loses(&mut self, kind: PacketKind) -> bool {
        self.draws(match kind {
            PacketKind::Data => self.factors.data,
            PacketKind::Ack => self.factors.ack,
        })
    }

    /// Decides the fate of the next acknowledgement of the link layer.
    pub fn loses_link_ack(&mut self) -> bool {
        self.draws(self.factors.link_ack)
    }

    #[inline]
    fn draws(&mut self, factor: f64) -> bool {
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
        };
        self.stream.bernoulli(p * factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(model: LossModel, factors: LossFactors, kind: PacketKind) -> f64 {
        let n = 400_000;
        let mut channel = Channel::new(model, factors, Stream::new(11, 0, "test", "loss"));
        (0..n).filter(|_| channel.loses(kind)).count() as f64 / f64::from(n)
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
        let mut channel = Channel::new(model, LossFactors::default(), Stream::new(5, 0, "test", "burst"));
        let fate: Vec<bool> = (0..400_000).map(|_| channel.loses(PacketKind::Data)).collect();
        let lost = fate.iter().filter(|l| **l).count() as f64;
        let bursts = fate.windows(2).filter(|w| w[0] && !w[1]).count() as f64;
        assert!((lost / bursts - 4.0).abs() < 0.15, "mean burst {}", lost / bursts);
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
