//! A queue that the packets of many senders stand in.
//!
//! One of 200 senders over a path of 100 packets a second has two packets there in a second: its own 16 trip times see a queue only
//! when that has long been full. The sink sees the packets of all: where each of the last [`RUN`] has waited, whoever sent
//! it, the path is busy, what comes is what it carries, and all of them have to share that.

use super::arrivals::Arrivals;
use super::trip::micros;
use crate::time::{Duration, Instant};

/// A sender of few packets has long intervals, and a queue of others before it all the same.
pub(super) const MOST_TOLERATED: Duration = Duration::from_millis(100);
/// So many packets one after the other.
const RUN: u32 = 16;
/// The least that is waited is that of so many at most.
const LONGEST: u32 = 64;
/// What all may send together, percent of what the path carries: the rest empties the queue.
const LEFT: u64 = 95;
/// A share is as good for so long: the path may carry more by then.
const GOOD: Duration = Duration::from_secs(10);
/// Packets of one gap that count as lost at most.
const MOST_OF_GAP: u32 = 3;
/// A share of one.
const WHOLE: u16 = 1 << 15;
/// No channel loses such a share, and a queue that is never empty looks like a longer way.
const LOSSY: u16 = WHOLE / 8;

/// The packets of all senders.
#[derive(Clone, Debug, Default)]
pub(super) struct Crowd {
    arrivals: Arrivals,
    /// So many packets one after the other have waited, and what the last of them have waited at least.
    run: u32,
    least: Duration,
    /// The share of packets that did not come at first: an average with a weight of 1/64.
    lost: u16,
    /// No word before, unless far less comes than at this interval.
    quiet: Instant,
    then: u32,
    /// The interval that was told last, microseconds, and when.
    share: u32,
    told: Instant,
}

impl Crowd {
    /// A packet has come that has waited, or not.
    pub(super) fn observe(&mut self, now: Instant, waiting: Duration, tolerated: Duration) {
        self.arrivals.came(now);
        // A single packet takes longer than that on a slow path.
        if waiting < tolerated || waiting < (micros(self.arrivals.average()) * 3).min(MOST_TOLERATED) {
            self.run = 0;
        } else {
            self.run = if self.run < LONGEST { self.run + 1 } else { RUN };
            self.least = if self.run == 1 || self.run == RUN { waiting } else { self.least.min(waiting) };
        }
    }

    /// A packet arrived that was sent for the first time, and `packets` of the same sender before it are missing. A long gap is
    /// the outage of that sender's own hop: a full queue drops packets of all senders in turn.
    pub(super) fn missed(&mut self, packets: u32) {
        for _ in 0..packets.min(MOST_OF_GAP) {
            self.lost += (WHOLE - self.lost) / 64;
        }
        self.lost -= self.lost / 64;
    }

    /// Whether all wait, or are lost.
    pub(super) fn waits(&self) -> bool {
        self.run >= RUN || self.lost > LOSSY
    }

    /// What a packet waits at least, as far as is known.
    pub(super) fn waiting(&self) -> Duration {
        if self.run >= RUN { self.least } else { Duration::ZERO }
    }

    /// Whether the senders are to be told now.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        // Far less comes than when they were told: that was the rate of before, and the guard time is that of a queue.
        let fell = self.run >= RUN && u64::from(self.arrivals.average()) * 3 > u64::from(self.then) * 4;
        self.waits() && (now >= self.quiet || fell)
    }

    /// The senders that bring more than a level are told the rate of that level: `carried` are the packets of each of late.
    /// The answer is the level. Where there is but one sender the trend of its own delay says it all.
    pub(super) fn share(
        &mut self,
        now: Instant,
        guard: Duration,
        carried: impl Iterator<Item = u32> + Clone,
    ) -> Option<u64> {
        let carried = || carried.clone().map(u64::from).filter(|packets| *packets > 0);
        let (senders, all) = carried().fold((0, 0), |(n, sum), packets| (n + 1, sum + packets));
        (self.quiet, self.then) = (now + guard, self.arrivals.average());
        if senders < 2 {
            return None;
        }
        // In parts of 1024 of a packet. Whoever is below the level leaves the others more.
        let whole = all * LEFT * 1024 / 100;
        let mut level = whole / senders;
        for _ in 0..8 {
            let (n, below) = carried()
                .filter(|packets| packets * 1024 <= level)
                .fold((0, 0), |(n, sum), packets| (n + 1, sum + packets * 1024));
            let next = whole.saturating_sub(below).checked_div(senders - n).unwrap_or(level);
            if next <= level {
                break;
            }
            level = next;
        }
        let level = level.max(1);
        // The interval on the path, for as many packets as stand to one of the level.
        let share = u128::from(self.then) * u128::from(all) * 1024 / u128::from(level);
        self.share = share.clamp(1, u128::from(u32::MAX)) as u32;
        (self.told, self.lost) = (now, 0);
        Some(level)
    }

    /// The average interval between the packets of one of them, microseconds; 0: none was told of late.
    pub(super) fn interval(&self, now: Instant) -> u32 {
        let good = self.share > 0 && now.saturating_since(self.told) < GOOD;
        if good { self.share } else { 0 }
    }
}
