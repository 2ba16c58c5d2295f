//! The receive buffer of the node, divided among its sessions by measured link quality (section
//! 4.4, erratum S21).

use crate::time::{Duration, Instant};

/// How the node divides its buffer among sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Sharing {
    /// The shares sum to the buffer, as in the paper: `share_i = B_2 * rate_i / sum of rates`.
    Divided,
    /// The best session may fill the buffer. A session that delivers less than a quarter of the
    /// best one gets four times its ratio, but at least an equal share. No chunk may end past the
    /// buffer, so the node's memory is safe, and poor sessions do not hold back a good one.
    Overcommitted,
}

/// Options of the division.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShareConfig {
    /// The rule of the division.
    pub sharing: Sharing,
    /// Interval at which the shares are computed.
    pub period: Duration,
    /// Weight of the newest measurement in the average, in 1/256.
    pub gain: u32,
    /// Least share: one segment of this many bytes.
    pub segment: u32,
}

/// Measured quality of one session: received bytes per period, averaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quality {
    since: u64,
    average: Option<u64>,
}

impl Quality {
    /// Counts received bytes.
    pub fn received(&mut self, octets: u64) {
        self.since += octets;
    }

    /// Ends a period and adds its bytes to the average.
    pub fn end_period(&mut self, config: &ShareConfig) {
        let sample = self.since;
        self.since = 0;
        let gain = u64::from(config.gain.min(256));
        self.average = Some(match self.average {
            None => sample,
            Some(old) => (old * (256 - gain) + sample * gain) / 256,
        });
    }

    /// The average; `None` before the end of the first period.
    pub fn average(&self) -> Option<u64> {
        self.average
    }
}

/// The qualities of all sessions together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rivals {
    /// Number of sessions, expected ones included.
    pub count: usize,
    /// Sum of the averages.
    pub total: u64,
    /// The largest average.
    pub best: u64,
}

/// Computes the share of a session of quality `own` among `rivals`, in bytes of `buffer`. Before
/// the first measurement it is an equal share, or the whole buffer if overcommitted.
pub fn share(config: &ShareConfig, buffer: u32, own: Option<u64>, rivals: &Rivals) -> u32 {
    let equal = u64::from(buffer) / rivals.count.max(1) as u64;
    let part = |own: u64, of: u64| (u128::from(buffer) * u128::from(own) / u128::from(of)) as u64;
    let octets = match (config.sharing, own) {
        (Sharing::Divided, Some(own)) if rivals.total > 0 => part(own, rivals.total),
        (Sharing::Divided, _) => equal,
        (Sharing::Overcommitted, Some(own)) if rivals.best > 0 => part(own * 4, rivals.best).max(equal),
        (Sharing::Overcommitted, _) => u64::from(buffer),
    };
    octets.max(u64::from(config.segment)).min(u64::from(buffer.max(config.segment))) as u32
}

/// When the next period ends, once `now` has passed `due`.
pub fn next_period(config: &ShareConfig, due: Instant, now: Instant) -> Instant {
    if due + config.period > now { due + config.period } else { now + config.period }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: ShareConfig =
        ShareConfig { sharing: Sharing::Divided, period: Duration::from_millis(250), gain: 64, segment: 81 };

    fn rivals(qualities: &[u64]) -> Rivals {
        Rivals {
            count: qualities.len(),
            total: qualities.iter().sum(),
            best: qualities.iter().copied().max().unwrap_or(0),
        }
    }

    #[test]
    fn shares_are_equal_until_something_is_measured() {
        assert_eq!(share(&CONFIG, 9000, None, &rivals(&[0; 3])), 3000);
    }

    #[test]
    fn shares_follow_the_received_rate_down_to_one_segment() {
        let both = rivals(&[300, 100]);
        assert_eq!(share(&CONFIG, 9000, Some(300), &both), 6750);
        assert_eq!(share(&CONFIG, 9000, Some(0), &both), 81);
    }

    #[test]
    fn overcommitted_the_best_has_all_and_the_worst_an_equal_share() {
        let config = ShareConfig { sharing: Sharing::Overcommitted, ..CONFIG };
        let all = rivals(&[400, 90, 10]);
        assert_eq!(share(&config, 9000, Some(400), &all), 9000);
        assert_eq!(share(&config, 9000, Some(90), &all), 8100);
        assert_eq!(share(&config, 9000, Some(10), &all), 3000);
    }

    #[test]
    fn quality_is_an_average_that_favours_history() {
        let mut quality = Quality::default();
        quality.received(1000);
        quality.end_period(&CONFIG);
        assert_eq!(quality.average(), Some(1000));
        quality.end_period(&CONFIG);
        assert_eq!(quality.average(), Some(750));
    }
}
