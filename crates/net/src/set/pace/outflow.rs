//! Limits what a sender hands to its gateways.
//!
//! No stream is stalled. Instead, a session reports less room than its TCP has, and smaller
//! segments, so that striping gives the remaining data to other sessions.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anabranch_core::set::StreamStatus;
use anabranch_core::time::{Duration, Instant};

use super::{Bucket, quantum};

/// The buckets of one sender.
#[derive(Debug)]
pub(crate) struct Outflow {
    total: Option<Bucket>,
    /// Rate limit per gateway in bits per second.
    each: Option<u64>,
    gateways: BTreeMap<SocketAddr, Bucket>,
    /// Largest chunk in bytes.
    unit: u64,
    /// Session whose turn it is if there is less than one chunk for each.
    turn: usize,
    /// When waiting sessions must be checked again; `None` if none waits.
    due: Option<Instant>,
}

impl Outflow {
    /// Creates the buckets from the limits in bits per second, in total and per gateway. Returns
    /// `None` if there is no limit.
    pub(crate) fn new(now: Instant, total: Option<u64>, each: Option<u64>) -> Option<Self> {
        let unit = total.into_iter().chain(each).map(quantum).min()?;
        let total = total.map(|rate| Bucket::new(now, rate));
        Some(Self { total, each, gateways: BTreeMap::new(), unit, turn: 0, due: None })
    }

    fn gateway(&mut self, now: Instant, gateway: SocketAddr) -> Option<&mut Bucket> {
        let each = self.each?;
        Some(self.gateways.entry(gateway).or_insert_with(|| Bucket::new(now, each)))
    }

    /// Accounts for bytes handed to a gateway.
    pub(crate) fn charge(&mut self, now: Instant, gateway: SocketAddr, octets: u64) {
        if let Some(bucket) = self.gateway(now, gateway) {
            bucket.charge(now, octets);
        }
        if let Some(total) = &mut self.total {
            total.charge(now, octets);
        }
    }

    /// Reduces the room in the status of session `index` of `sessions` to what it may use.
    pub(crate) fn restrain(
        &mut self,
        now: Instant,
        gateway: SocketAddr,
        (index, sessions): (usize, usize),
        status: StreamStatus,
    ) -> StreamStatus {
        let unit = self.unit.min(u64::from(status.mss)).max(1);
        let (mut units, mut due) = (u64::MAX, now);
        if let Some(own) = self.gateway(now, gateway) {
            units = own.available(now) / unit;
            due = own.when(now, unit);
        }
        // `turn` rotates which session comes first, so that a remainder of the total does not
        // always go to the same one.
        let rank = (index + sessions - self.turn % sessions.max(1)) % sessions.max(1);
        if let Some(total) = &mut self.total {
            let all = total.available(now) / unit;
            let share = all / sessions.max(1) as u64;
            let part = share + u64::from(all % (sessions.max(1) as u64) > rank as u64);
            if part == 0 {
                // With the next unit, some session has a turn. Without further units, check again
                // soon.
                due = due.max(total.when(now, (all + 1) * unit).min(now + TURN).max(now + SOON));
            }
            units = units.min(part);
        }
        if units == 0 {
            self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
        }
        let waits = status.in_flight.saturating_add(status.unsent);
        let more = u32::try_from(units.saturating_mul(unit)).unwrap_or(u32::MAX);
        StreamStatus {
            mss: status.mss.min(unit as u32),
            // Bytes already handed over stay allowed; the limit applies to further bytes.
            peer_window: status.peer_window.min(waits.saturating_add(more)),
            ..status
        }
    }

    /// When waiting sessions must be checked again.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// True if waiting sessions must be checked now.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let due = self.due.is_some_and(|at| at <= now);
        if due {
            self.due = None;
            self.turn = self.turn.wrapping_add(1);
        }
        due
    }
}

/// Granularity of the timers.
const SOON: Duration = Duration::from_millis(1);
/// A turn that is not used expires after this time.
const TURN: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    const FREE: StreamStatus = StreamStatus {
        cwnd: 1 << 20,
        peer_window: 1 << 20,
        in_flight: 1_000,
        unsent: 500,
        mss: 60_000,
        srtt: None,
    };

    fn to(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn without_a_cap_there_is_none() {
        assert!(Outflow::new(at(0), None, None).is_none());
    }

    #[test]
    fn each_gateway_has_its_cap_and_chunks_that_fit() {
        let mut out = Outflow::new(at(0), None, Some(80_000)).expect("a cap");
        let status = out.restrain(at(0), to(1), (0, 2), FREE);
        assert_eq!((status.mss, status.room()), (1460, 2 * 1460));
        out.charge(at(0), to(1), 2 * 1460);
        assert_eq!(out.restrain(at(0), to(1), (0, 2), FREE).room(), 0);
        assert_eq!(out.due(), Some(at(146)));
        assert_eq!(out.restrain(at(0), to(2), (1, 2), FREE).room(), 2 * 1460, "the other has its own");
        assert!(!out.is_due(at(145)) && out.is_due(at(146)));
        assert_eq!(out.restrain(at(146), to(1), (0, 2), FREE).room(), 1460);
        let closed = StreamStatus { peer_window: 1_500, ..FREE };
        assert_eq!(out.restrain(at(400), to(2), (1, 2), closed).room(), 0, "no more than TCP has");
    }

    #[test]
    fn what_is_for_all_is_shared_and_goes_round() {
        let mut out = Outflow::new(at(0), Some(80_000), None).expect("a cap");
        let rooms = |out: &mut Outflow, ms| {
            [0, 1, 2].map(|i| out.restrain(at(ms), to(i), (usize::from(i), 3), FREE).room())
        };
        assert_eq!(rooms(&mut out, 0), [1460, 1460, 0]);
        assert!(out.is_due(at(20)));
        assert_eq!(rooms(&mut out, 20), [0, 1460, 1460]);
        out.charge(at(20), to(1), 10 * 1460);
        assert_eq!(rooms(&mut out, 500), [0, 0, 0], "whoever gave too much waits");
    }
}
