//! What each sender of a crowd would have if all had the same.
//!
//! Only the sink sees all senders. What the network has carried of those that are held back,
//! divided by their number, is a rate at which none need be held back for another's sake.

use super::trip::as_micros;
use crate::time::{Duration, Instant};

/// How long packets are counted for one figure.
const PERIOD: Duration = Duration::from_secs(4);
/// The best of so many figures is taken: while the network is in trouble it carries less than it
/// can.
const PERIODS: usize = 8;
/// A sender is held back for so long after a notification or a SNACK.
pub(super) const HELD_BACK: Duration = Duration::from_secs(60);
/// A sender that was silent for so long is not there.
pub(super) const SILENT: Duration = Duration::from_secs(8);

/// What was carried of late.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares {
    began: Instant,
    packets: [u32; PERIODS],
    at: u8,
    members: u32,
}

impl Shares {
    /// A period is over.
    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now.saturating_since(self.began) >= PERIOD
    }

    /// So many senders are held back, and so many of their packets have come since the last call.
    pub(super) fn close(&mut self, now: Instant, members: u32, packets: u32) {
        // What came in a longer time is no figure of a period.
        let span = as_micros(now.saturating_since(self.began)).max(1);
        let packets = u64::from(packets) * u64::from(as_micros(PERIOD)) / u64::from(span);
        self.packets[usize::from(self.at)] = packets as u32;
        self.at = (self.at + 1) % PERIODS as u8;
        (self.began, self.members) = (now, members);
    }

    /// The average interval between the packets of one of them, microseconds. 0: there are no two,
    /// or nothing came.
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
