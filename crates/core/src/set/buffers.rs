//! The node's one receive buffer, shared among its sessions by measured link quality (section 4.4, errata
//! S21): `share_i = B_2 * rate_i / sum of rates`, with a floor.

use crate::time::{Duration, Instant};

/// How the buffer is shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShareConfig {
    /// How often the shares are reckoned anew.
    pub period: Duration,
    /// Weight of the newest measurement in the average, in 1/256.
    pub gain: u32,
    /// No session falls below one segment of that many octets.
    pub segment: u32,
    /// Nor below this part of an equal share, in 1/256: a session that has little window cannot show that
    /// it could carry more. The paper has none (0).
    pub equal_floor: u32,
}

/// One session's measured quality: octets received, averaged over periods.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quality {
    since: u64,
    average: Option<u64>,
}

impl Quality {
    /// Octets have arrived.
    pub fn received(&mut self, octets: u64) {
        self.since += octets;
    }

    /// A period is over: fold what arrived into the average.
    pub fn end_period(&mut self, config: &ShareConfig) {
        let sample = self.since;
        self.since = 0;
        let gain = u64::from(config.gain.min(256));
        self.average = Some(match self.average {
            None => sample,
            Some(old) => (old * (256 - gain) + sample * gain) / 256,
        });
    }

    /// The average, once a period has ended with it.
    pub fn average(&self) -> Option<u64> {
        self.average
    }
}

/// The share of a session of quality `own` among `count` sessions whose qualities add up to `total`, of
/// `free` octets of buffer. Equal shares until there is a measurement.
pub fn share(config: &ShareConfig, free: u64, own: Option<u64>, total: u64, count: usize) -> u32 {
    let equal = free / count.max(1) as u64;
    let measured = match own {
        Some(own) if total > 0 => (u128::from(free) * u128::from(own) / u128::from(total)) as u64,
        _ => equal,
    };
    let floor = (equal * u64::from(config.equal_floor) / 256).max(u64::from(config.segment));
    measured.max(floor).min(u64::from(u32::MAX)) as u32
}

/// When the next period ends, if `now` has passed `due`.
pub fn next_period(config: &ShareConfig, due: Instant, now: Instant) -> Instant {
    if due + config.period > now { due + config.period } else { now + config.period }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: ShareConfig =
        ShareConfig { period: Duration::from_millis(250), gain: 64, segment: 81, equal_floor: 0 };

    #[test]
    fn shares_are_equal_until_something_is_measured() {
        assert_eq!(share(&CONFIG, 9000, None, 0, 3), 3000);
    }

    #[test]
    fn shares_follow_the_received_rate_down_to_one_segment() {
        assert_eq!(share(&CONFIG, 9000, Some(300), 400, 2), 6750);
        assert_eq!(share(&CONFIG, 9000, Some(0), 400, 2), 81);
        let floored = ShareConfig { equal_floor: 128, ..CONFIG };
        assert_eq!(share(&floored, 9000, Some(0), 400, 2), 2250);
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
