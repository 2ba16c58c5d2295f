//! The equal share of each sender that is held back.
//!
//! Only the sink sees all senders. It divides the number of packets that the network delivered from
//! held-back senders by the number of these senders. At that rate no sender takes capacity from
//! another.

use super::trip::as_micros;
use crate::time::{Duration, Instant};

/// Length of one counting period.
const PERIOD: Duration = Duration::from_secs(4);
/// The best of this many periods is used, because a disturbed network delivers less than its
/// capacity.
const PERIODS: usize = 8;
/// Time after a notification or a SNACK for which a sender counts as held back.
pub(super) const HELD_BACK: Duration = Duration::from_secs(60);
/// A sender that was silent for this long no longer counts.
pub(super) const SILENT: Duration = Duration::from_secs(8);

/// Packets delivered in the recent periods.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares {
    began: Instant,
    packets: [u32; PERIODS],
    at: u8,
    members: u32,
}

impl Shares {
    /// Whether the current period has ended.
    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now.saturating_since(self.began) >= PERIOD
    }

    /// Ends a period with the number of held-back senders and the number of their packets since the
    /// last call.
    pub(super) fn close(&mut self, now: Instant, members: u32, packets: u32) {
        // A late call covers more than one period: scale the count.
        let span = as_micros(now.saturating_since(self.began)).max(1);
        let packets = u64::from(packets) * u64::from(as_micros(PERIOD)) / u64::from(span);
        self.packets[usize::from(self.at)] = packets as u32;
        self.at = (self.at + 1) % PERIODS as u8;
        (self.began, self.members) = (now, members);
    }

    /// Returns the average interval between the packets of one sender in microseconds; 0 if there
    /// are fewer than two senders or no packets.
    pub(super) fn interval(&self) -> u32 {
        let most = self.packets.iter().copied().max().unwrap_or(0);
        if self.members < 2 || most == 0 {
            return 0;
        }
        let interval = u64::from(as_micros(PERIOD)) * u64::from(self.members) / u64::from(most);
        interval.min(u64::from(u32::MAX)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_the_last_periods_is_divided_by_those_who_are_there() {
        let mut shares = Shares::default();
        let mut now = Instant::ZERO;
        let mut close = |shares: &mut Shares, members, packets| {
            assert!(!shares.is_due(now));
            now += PERIOD;
            assert!(shares.is_due(now));
            shares.close(now, members, packets);
        };
        assert_eq!(shares.interval(), 0);
        close(&mut shares, 4, 400);
        assert_eq!(shares.interval(), 40_000, "100 a second, 25 for each");
        close(&mut shares, 4, 40);
        assert_eq!(shares.interval(), 40_000, "trouble");
        close(&mut shares, 2, 40);
        assert_eq!(shares.interval(), 20_000);
        close(&mut shares, 1, 300);
        assert_eq!(shares.interval(), 0, "nobody to share with");
        for _ in 0..PERIODS {
            close(&mut shares, 2, 80);
        }
        assert_eq!(shares.interval(), 100_000, "what was is forgotten");
        now += PERIOD * 10;
        shares.close(now, 2, 800);
        assert_eq!(shares.interval(), 100_000, "a long pause");
    }
}
