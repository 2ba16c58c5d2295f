//! A quantity that changes in steps.

use anabranch_core::time::Instant;

/// A step function of time. Each value holds until the next; the last one holds for ever, or the
/// function repeats.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steps {
    /// Start of each step in nanoseconds: the first is 0, strictly increasing.
    at: Vec<u64>,
    value: Vec<u64>,
    /// Integral of the value (times nanoseconds) until each step begins.
    before: Vec<u128>,
    /// Period in nanoseconds and the integral over it, if the function repeats.
    round: Option<(u64, u128)>,
}

impl Steps {
    /// From the starts of the steps in nanoseconds, increasing from 0, and their values. A
    /// repeating function repeats at the last start, whose value has no effect; it is given at
    /// least two starts.
    pub(super) fn new(mut steps: Vec<(u64, u64)>, repeats: bool) -> Self {
        let end = if repeats { steps.pop().map(|(end, _)| end) } else { None };
        let (at, value): (Vec<u64>, Vec<u64>) = steps.into_iter().unzip();
        let mut before = vec![0];
        for (times, value) in at.windows(2).zip(&value) {
            before.push(before[before.len() - 1] + u128::from(times[1] - times[0]) * u128::from(*value));
        }
        let mut this = Self { at, value, before, round: None };
        this.round = end.map(|end| (end, this.sum(Instant::from_nanos(end))));
        this
    }

    /// Whole periods until `now`: their integral in total, and the time within the next period.
    fn rounds(&self, now: u64) -> (u64, u128, u64) {
        match self.round {
            None => (0, 0, now),
            Some((round, sum)) => (now / round, u128::from(now / round) * sum, now % round),
        }
    }

    /// Index of the step at a time within a period.
    fn step(&self, within: u64) -> usize {
        self.at.partition_point(|at| *at <= within) - 1
    }

    /// The value at a time.
    pub fn value(&self, now: Instant) -> u64 {
        self.value[self.step(self.rounds(now.as_nanos()).2)]
    }

    /// The integral of the value (times nanoseconds) until a time.
    pub fn sum(&self, until: Instant) -> u128 {
        let (_, sum, within) = self.rounds(until.as_nanos());
        let step = self.step(within);
        sum + self.before[step] + u128::from(within - self.at[step]) * u128::from(self.value[step])
    }

    /// Time at which the integral has grown by `more` since `start`, rounded up to the nanosecond.
    pub fn after(&self, start: Instant, more: u128) -> Instant {
        let mut wanted = self.sum(start) + more;
        let mut from = 0;
        if let Some((round, sum)) = self.round
            && wanted > 0
        {
            // In (0, sum], so that an integral that is reached at the end of a period is not
            // awaited in the next.
            let rounds = (wanted - 1) / sum;
            wanted -= rounds * sum;
            from = u128::from(round).saturating_mul(rounds);
        }
        // The first step at whose end the integral is reached.
        let step = self.before[1..].partition_point(|before| *before < wanted);
        // A last value of 0 occurs only in a repeating function, where the integral is reached
        // before it.
        let rest = (wanted - self.before[step]).div_ceil(u128::from(self.value[step]).max(1));
        let end = from.saturating_add(u128::from(self.at[step])).saturating_add(rest);
        // Bounded such that adding a delay does not overflow.
        Instant::from_nanos(u64::try_from(end).unwrap_or(u64::MAX).min(u64::MAX / 2)).max(start)
    }

    /// The mean over a period, or over the time until the last value holds; the value itself if
    /// there is only one.
    pub fn mean(&self) -> u64 {
        let (span, sum) = match self.round {
            Some((round, sum)) => (round, sum),
            None => (self.at[self.at.len() - 1], self.before[self.before.len() - 1]),
        };
        if span == 0 { self.value[0] } else { (sum / u128::from(span)) as u64 }
    }

    /// The values of the steps.
    pub(super) fn values(&self) -> &[u64] {
        &self.value
    }
}
