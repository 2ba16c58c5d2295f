//! Random variation of the delay from packet to packet.

use anabranch_core::time::Duration;

use crate::math::{exp, ln};
use crate::random::Stream;

/// Random addition to the delay of a link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct JitterConfig {
    /// Distribution of the addition.
    pub distribution: Distribution,
    /// Whether packets may overtake others. Otherwise a packet arrives no earlier than the one
    /// before it.
    pub overtaking: bool,
}

/// A distribution of times of at least 0.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Distribution {
    /// Uniform from 0.
    Uniform {
        /// The longest time.
        most: Duration,
    },
    /// Normal, truncated to values of at least 0.
    Normal {
        /// Mean before truncation.
        mean: Duration,
        /// Standard deviation before truncation.
        deviation: Duration,
    },
    /// Exponential.
    Exponential {
        /// Its mean.
        mean: Duration,
    },
    /// Pareto, truncated at `most`. Before truncation, a time exceeds x with probability
    /// (`least`/x)^`shape`.
    Pareto {
        /// The shortest time, more than 0.
        least: Duration,
        /// Shape, more than 0.
        shape: f64,
        /// The longest time.
        most: Duration,
    },
}

impl Distribution {
    /// Draws a time.
    pub fn draw(&self, stream: &mut Stream) -> Duration {
        let seconds = match *self {
            Self::Uniform { most } => most.as_secs_f64() * stream.uniform(),
            Self::Exponential { mean } => mean.as_secs_f64() * stream.exponential(),
            Self::Normal { mean, deviation } => loop {
                let time = mean.as_secs_f64() + deviation.as_secs_f64() * stream.normal();
                if time >= 0.0 {
                    break time;
                }
            },
            Self::Pareto { least, shape, most } => {
                // Inverse of the distribution function at a fraction of the part that is shorter
                // than `most`.
                let (least, most) = (least.as_secs_f64(), most.as_secs_f64());
                let share = stream.uniform() * (1.0 - exp(-shape * ln(most / least)));
                least * exp(-ln(1.0 - share) / shape)
            }
        };
        Duration::from_secs_f64(seconds)
    }
}

/// A distribution with its random stream.
#[derive(Debug)]
pub struct Jitter {
    distribution: Distribution,
    stream: Stream,
}

impl Jitter {
    /// With its own random stream.
    pub fn new(distribution: Distribution, stream: Stream) -> Self {
        Self { distribution, stream }
    }

    /// Draws the addition of the next packet.
    pub fn draw(&mut self) -> Duration {
        self.distribution.draw(&mut self.stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean, and fractions of times up to each of `at`, in milliseconds.
    fn seen(distribution: Distribution, at: [f64; 3]) -> (f64, [f64; 3]) {
        let mut jitter = Jitter::new(distribution, Stream::new(3, 0, "test", "jitter"));
        let n = 200_000;
        let times: Vec<f64> = (0..n).map(|_| jitter.draw().as_secs_f64() * 1e3).collect();
        let share = |most: f64| times.iter().filter(|time| **time <= most).count() as f64 / f64::from(n);
        (times.iter().sum::<f64>() / f64::from(n), at.map(share))
    }

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Values of the standard normal distribution and density: Abramowitz and Stegun, table 26.1.
    #[test]
    fn means_and_shares_are_those_of_the_closed_forms() {
        let exponential = |x: f64| 1.0 - (-x / 4.0f64).exp();
        // Truncated at 100 ms.
        let pareto = |x: f64| (1.0 - (2.0 / x).powf(1.5)) / (1.0 - 0.02f64.powf(1.5));
        let mean_pareto = 1.5 / 0.5
            * (2.0f64.powf(1.5) / (1.0 - 0.02f64.powf(1.5)))
            * (2.0f64.powf(-0.5) - 100.0f64.powf(-0.5));
        // Mean 10 ms and deviation 10 ms: the standard normal distribution above -1. Phi(1) =
        // 0.841345, phi(1) = 0.241971.
        let normal = |phi: f64| (phi - 0.158655) / 0.841345;
        let cases = [
            (Distribution::Uniform { most: ms(8) }, [2.0, 4.0, 8.0], 4.0, [0.25, 0.5, 1.0]),
            (
                Distribution::Exponential { mean: ms(4) },
                [1.0, 4.0, 12.0],
                4.0,
                [1.0, 4.0, 12.0].map(exponential),
            ),
            (
                Distribution::Normal { mean: ms(10), deviation: ms(10) },
                [5.0, 10.0, 20.0],
                10.0 + 10.0 * 0.241971 / 0.841345,
                [0.308538, 0.5, 0.841345].map(normal),
            ),
            (
                Distribution::Pareto { least: ms(2), shape: 1.5, most: ms(100) },
                [2.5, 5.0, 50.0],
                mean_pareto,
                [2.5, 5.0, 50.0].map(pareto),
            ),
        ];
        for (distribution, at, mean, shares) in cases {
            let (seen_mean, seen_shares) = seen(distribution, at);
            assert!((seen_mean / mean - 1.0).abs() < 0.015, "{distribution:?}: {seen_mean}, {mean}");
            for (seen, share) in seen_shares.into_iter().zip(shares) {
                assert!((seen - share).abs() < 0.005, "{distribution:?}: {seen_shares:?}, {shares:?}");
            }
        }
    }
}
