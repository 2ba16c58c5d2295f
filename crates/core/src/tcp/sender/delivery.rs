//! Rate of acknowledged bytes per round trip.

use crate::segment::SeqNumber;
use crate::time::Instant;

/// Rate of acknowledged bytes over the last full round trip in which data was always in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivery {
    /// Start of the current round trip, and the bytes acknowledged by then.
    began: Option<(Instant, u64)>,
    /// The round trip ends when this is acknowledged: the end of the data sent at its start.
    end: SeqNumber,
    rate: Option<u64>,
}

impl Delivery {
    /// Handles a move of SND.UNA to `una`. `max` is the end of the sent data, `acked` the total of
    /// acknowledged bytes.
    #[inline]
    pub(super) fn moved(&mut self, now: Instant, una: SeqNumber, max: SeqNumber, acked: u64) {
        if let Some((at, before)) = self.began {
            if una.lt(self.end) {
                return;
            }
            let nanos = u128::from(now.saturating_since(at).as_nanos());
            let octets = u128::from(acked - before) * 1_000_000_000;
            self.rate = octets.checked_div(nanos).and_then(|rate| u64::try_from(rate).ok()).or(self.rate);
        }
        // Idle time does not measure the path.
        self.began = (una != max).then_some((now, acked));
        self.end = max;
    }

    /// The rate in bytes per second.
    pub(super) fn rate(&self) -> Option<u64> {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    #[test]
    fn a_round_trip_is_measured_and_silence_is_not() {
        let mut delivery = Delivery::default();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let seq = SeqNumber;
        delivery.moved(at(100), seq(1_000), seq(5_000), 1_000);
        delivery.moved(at(150), seq(3_000), seq(7_000), 3_000);
        assert_eq!(delivery.rate(), None);
        delivery.moved(at(200), seq(5_000), seq(9_000), 5_000);
        assert_eq!(delivery.rate(), Some(40_000));
        // All data is acknowledged; after ten seconds the measurement starts again.
        delivery.moved(at(300), seq(9_000), seq(9_000), 9_000);
        assert_eq!(delivery.rate(), Some(40_000));
        delivery.moved(at(10_000), seq(10_000), seq(12_000), 10_000);
        assert_eq!(delivery.rate(), Some(40_000));
        delivery.moved(at(10_100), seq(12_000), seq(14_000), 12_000);
        assert_eq!(delivery.rate(), Some(20_000));
    }
}
