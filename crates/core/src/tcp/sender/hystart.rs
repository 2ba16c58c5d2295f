//! HyStart++ (RFC 9406): ends the first slow start when the round-trip time grows, before the queue
//! overflows.

use crate::segment::SeqNumber;
use crate::time::Duration;

/// State of the rounds of a slow start; dropped when slow start ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart {
    /// windowEnd: the round ends when this is acknowledged.
    end: Option<SeqNumber>,
    /// lastRoundMinRTT, then currentRoundMinRTT.
    last: Option<Duration>,
    current: Option<Duration>,
    /// rttSampleCount.
    samples: u32,
    /// State of Conservative Slow Start, while it lasts.
    conservative: Option<Conservative>,
}

/// Conservative Slow Start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// cssBaselineMinRtt.
    baseline: Duration,
    /// Number of rounds, including the one in which it began.
    rounds: u32,
}

/// Growth of the window in slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pace {
    /// Full speed.
    Full,
    /// A fraction: the queue may be filling.
    Conservative,
    /// Slow start ends.
    End,
}

impl HyStart {
    pub(super) fn new() -> Self {
        Self { end: None, last: None, current: None, samples: 0, conservative: None }
    }

    /// Records a round-trip time.
    pub(super) fn sample(&mut self, rtt: Duration) {
        self.current = Some(self.current.map_or(rtt, |least| least.min(rtt)));
        self.samples += 1;
    }

    /// Handles an acknowledgement: `una` is the new SND.UNA and `nxt` is SND.NXT.
    pub(super) fn on_ack(&mut self, una: SeqNumber, nxt: SeqNumber) -> Pace {
        self.judge();
        let end = *self.end.get_or_insert(nxt);
        if una.ge(end) {
            (self.last, self.current, self.samples) = (self.current.or(self.last), None, 0);
            self.end = Some(nxt);
            if let Some(css) = &mut self.conservative {
                css.rounds += 1;
                if css.rounds > CSS_ROUNDS {
                    return Pace::End;
                }
            }
        }
        if self.conservative.is_some() { Pace::Conservative } else { Pace::Full }
    }

    /// Compares the current round with the previous one.
    fn judge(&mut self) {
        let Some(current) = self.current.filter(|_| self.samples >= N_RTT_SAMPLE) else { return };
        match (self.conservative, self.last) {
            // The increase of the round-trip time was not caused by a queue.
            (Some(css), _) if current < css.baseline => self.conservative = None,
            (None, Some(last)) if current >= last + (last / 8).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH) => {
                self.conservative = Some(Conservative { baseline: current, rounds: 1 });
            }
            (Some(_) | None, _) => {}
        }
    }
}

/// RFC 9406 section 4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const N_RTT_SAMPLE: u32 = 8;
const CSS_ROUNDS: u32 = 5;
/// CSS_GROWTH_DIVISOR: divisor of the growth in Conservative Slow Start.
pub(super) const CSS_GROWTH_DIVISOR: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Runs rounds of ten segments with these round-trip times in ms; returns the pace after the
    /// last acknowledgement of each.
    fn rounds(hystart: &mut HyStart, rtts: &[u64]) -> Vec<Pace> {
        let mut una = 0;
        let round = |rtt: &u64| {
            let mut pace = Pace::Full;
            let nxt = SeqNumber(una + 20);
            for _ in 0..10 {
                hystart.sample(Duration::from_millis(*rtt));
                una += 1;
                pace = hystart.on_ack(SeqNumber(una), nxt);
            }
            pace
        };
        rtts.iter().map(round).collect()
    }

    #[test]
    fn a_longer_round_trip_is_watched_for_five_rounds_and_ends_slow_start() {
        use Pace::{Conservative, End, Full};
        let found = rounds(&mut HyStart::new(), &[100, 100, 113, 113, 113, 113, 113]);
        // The round in which it began counts as one of the five.
        assert_eq!(found, [Full, Full, Conservative, Conservative, Conservative, Conservative, End]);
        // 100 ms / 8 is 12.5 ms, from one round to the next.
        assert_eq!(rounds(&mut HyStart::new(), &[100, 100, 111, 113, 114, 115, 116]), [Full; 7]);
    }

    /// The threshold is bounded to 4 to 16 ms.
    #[test]
    fn the_threshold_is_bounded() {
        for (first, then, entered) in [(8, 11, false), (8, 12, true), (400, 415, false), (400, 416, true)] {
            let found = rounds(&mut HyStart::new(), &[first, first, then]);
            assert_eq!(found[2] == Pace::Conservative, entered, "{first} ms to {then} ms: {found:?}");
        }
    }

    #[test]
    fn slow_start_goes_on_when_the_round_trip_shrinks_again() {
        let found = rounds(&mut HyStart::new(), &[100, 100, 120, 110, 110, 110, 110, 110, 110]);
        assert_eq!(found[2], Pace::Conservative);
        assert_eq!(found[4..], [Pace::Full; 5], "{found:?}");
    }

    /// Fewer than eight samples are not evaluated.
    #[test]
    fn few_samples_say_nothing() {
        let mut hystart = HyStart::new();
        for round in 1..20 {
            for _ in 0..7 {
                hystart.sample(Duration::from_millis(100 * round));
            }
            assert_eq!(hystart.on_ack(SeqNumber(round as u32), SeqNumber(round as u32 + 1)), Pace::Full);
        }
    }
}
