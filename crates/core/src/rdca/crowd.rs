//! A queue that many senders share.
//!
//! With 200 senders on a path of 100 packets a second, each sender has one packet there every two
//! seconds: its own 16 trip times show a queue only when it has long been full. The sink sees the
//! packets of all senders. When each of the last [`RUN`] packets has waited in a queue, the path is
//! busy: the rate at which packets arrive is its capacity, which all senders share.

use super::arrivals::Arrivals;
use super::trip::micros;
use crate::time::{Duration, Instant};

/// Upper limit of the tolerated queueing delay. A sender with few packets has long intervals, but
/// its packets still wait behind those of others.
pub(super) const MOST_TOLERATED: Duration = Duration::from_millis(100);
/// This many consecutive packets that have waited show a queue.
const RUN: u32 = 16;
/// The shortest wait is taken over at most this many packets.
const LONGEST: u32 = 64;
/// What all may send together, in percent of the capacity: the rest empties the queue.
const LEFT: u64 = 95;
/// How long a share is valid: after that the capacity may have grown.
const GOOD: Duration = Duration::from_secs(10);
/// Packets of one gap that count as lost at most.
const MOST_OF_GAP: u32 = 3;
/// A share of one.
const WHOLE: u16 = 1 << 15;

/// The packets of all senders.
#[derive(Clone, Debug, Default)]
pub(super) struct Crowd {
    arrivals: Arrivals,
    /// The number of consecutive packets that have waited, and the shortest wait of the last of
    /// them.
    run: u32,
    least: Duration,
    /// The share of packets that their first transmission did not deliver: an average with a weight
    /// of 1/64.
    lost: u16,
    /// No notification before this, unless packets arrive at far longer intervals than `then`,
    /// microseconds.
    quiet: Instant,
    then: u32,
    /// The interval of the last notification, microseconds, and its time.
    share: u32,
    told: Instant,
}

impl Crowd {
    /// Records a packet and its queueing delay.
    pub(super) fn observe(&mut self, now: Instant, waiting: Duration, tolerated: Duration) {
        self.arrivals.came(now);
        // On a slow path the transmission of a single packet takes longer than the tolerated wait.
        if waiting < tolerated || waiting < (micros(self.arrivals.average()) * 3).min(MOST_TOLERATED) {
            self.run = 0;
        } else {
            self.run = if self.run < LONGEST { self.run + 1 } else { RUN };
            self.least = if self.run == 1 || self.run == RUN { waiting } else { self.least.min(waiting) };
        }
    }

    /// A packet arrived that was sent for the first time, and `packets` of the same sender before
    /// it are missing. A long gap is the outage of that sender's own hop: a full queue drops
    /// packets of all senders in turn.
    pub(super) fn missed(&mut self, packets: u32) {
        for _ in 0..packets.min(MOST_OF_GAP) {
            self.lost += (WHOLE - self.lost) / 64;
        }
        self.lost -= self.lost / 64;
    }

    /// Whether the packets of all senders wait, or more than `lossy`/1000 of them are lost.
    pub(super) fn waits(&self, lossy: u16) -> bool {
        self.run >= RUN || u32::from(self.lost) * 1000 > u32::from(WHOLE) * u32::from(lossy)
    }

    /// The shortest recent queueing delay; zero if unknown.
    pub(super) fn waiting(&self) -> Duration {
        if self.run >= RUN { self.least } else { Duration::ZERO }
    }

    /// Whether the senders must be notified now.
    pub(super) fn is_due(&mut self, now: Instant, lossy: u16) -> bool {
        // Far fewer packets arrive than at the last notification: that share was too high, and the
        // guard time, measured through a full queue, is too long.
        let fell = self.run >= RUN && u64::from(self.arrivals.average()) * 3 > u64::from(self.then) * 4;
        self.waits(lossy) && (now >= self.quiet || fell)
    }

    /// The level that senders share, in 1/1024 packets: senders above it are notified of the rate
    /// of that level. `carried` is the number of recent packets of each sender. `None` for a single
    /// sender: the trend of its own delay suffices.
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
        // A sender below the level leaves the others more.
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
        // The interval between arrivals, scaled by all packets over those of the level.
        let share = u128::from(self.then) * u128::from(all) * 1024 / u128::from(level);
        self.share = share.clamp(1, u128::from(u32::MAX)) as u32;
        (self.told, self.lost) = (now, 0);
        Some(level)
    }

    /// The interval between packets of a sender at the level in microseconds; 0 without a recent
    /// notification.
    pub(super) fn interval(&self, now: Instant) -> u32 {
        let good = self.share > 0 && now.saturating_since(self.told) < GOOD;
        if good { self.share } else { 0 }
    }
}
