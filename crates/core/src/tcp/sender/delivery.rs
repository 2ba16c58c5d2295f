//! How fast bytes are acknowledged, from round trip to round trip.

use crate::segment::SeqNumber;
use crate::time::Instant;

/// Bytes acknowledged per time over the last whole round trip in which there was always something
/// under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivery {
    /// When the present round trip began, and how many bytes were acknowledged then.
    began: Option<(Instant, u64)>,
    /// It ends when this is acknowledged: what had been sent by then.
    end: SeqNumber,
    rate: Option<u64>,
}

impl Delivery {
    /// SND.UNA has moved to `una`; `max` is just past all that was sent, `acked` how many bytes
    /// were acknowledged.
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
        // With nothing under way time passes that says nothing of the path.
        self.began = (una != max).then_some((now, acked));
        self.end = max;
    }

    /// Bytes per second.
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
        // All is acknowledged; what comes after ten seconds begins anew.
        delivery.moved(at(300), seq(9_000), seq(9_000), 9_000);
        assert_eq!(delivery.rate(), Some(40_000));
        delivery.moved(at(10_000), seq(10_000), seq(12_000), 10_000);
        assert_eq!(delivery.rate(), Some(40_000));
        delivery.moved(at(10_100), seq(12_000), seq(14_000), 12_000);
        assert_eq!(delivery.rate(), Some(20_000));
    }
}
