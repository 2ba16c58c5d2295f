//! A quantity that changes in steps.

use anabranch_core::time::Instant;

/// A value that holds until the next one. The last one holds for ever, or all begins anew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steps {
    /// When each value begins to hold, in nanoseconds: the first at 0, in order, no two alike.
    at: Vec<u64>,
    value: Vec<u64>,
    /// The sum of value times nanoseconds until each begins to hold.
    before: Vec<u128>,
    /// A round in nanoseconds and the sum over it, if all begins anew.
    round: Option<(u64, u128)>,
}

impl Steps {
    /// Of moments in nanoseconds, in order from 0 on, and their values. If it begins anew, it does
    /// at the last moment, whose value has no effect; there are two moments or more then.
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

    /// Whole rounds until then, what they sum up to, and the time within the next.
    fn rounds(&self, now: u64) -> (u64, u128, u64) {
        match self.round {
            None => (0, 0, now),
            Some((round, sum)) => (now / round, u128::from(now / round) * sum, now % round),
        }
    }

    /// The step in which a moment of a round is.
    fn step(&self, within: u64) -> usize {
        self.at.partition_point(|at| *at <= within) - 1
    }

    /// The value at a moment.
    pub fn value(&self, now: Instant) -> u64 {
        self.value[self.step(self.rounds(now.as_nanos()).2)]
    }

    /// The sum of value times nanoseconds until a moment.
    pub fn sum(&self, until: Instant) -> u128 {
        let (_, sum, within) = self.rounds(until.as_nanos());
        let step = self.step(within);
        sum + self.before[step] + u128::from(within - self.at[step]) * u128::from(self.value[step])
    }

    /// When the sum has grown by `more` since `start`, rounded up to the nanosecond.
    pub fn after(&self, start: Instant, more: u128) -> Instant {
        let mut wanted = self.sum(start) + more;
        let mut from = 0;
        if let Some((round, sum)) = self.round
            && wanted > 0
        {
            // In (0, sum], so that a sum that is reached at the end of a round is not waited for in
            // the next.
            let rounds = (wanted - 1) / sum;
            wanted -= rounds * sum;
            from = u128::from(round).saturating_mul(rounds);
        }
        // The first step at whose end the sum is reached.
        let step = self.before[1..].partition_point(|before| *before < wanted);
        // A value of 0 comes last only if all begins anew, and then the sum is reached before.
        let rest = (wanted - self.before[step]).div_ceil(u128::from(self.value[step]).max(1));
        let end = from.saturating_add(u128::from(self.at[step])).saturating_add(rest);
        // Arrival adds a delay to it.
        Instant::from_nanos(u64::try_from(end).unwrap_or(u64::MAX).min(u64::MAX / 2)).max(start)
    }

    /// The mean over a round, or until the last value holds; the value if there is one only.
    pub fn mean(&self) -> u64 {
        let (span, sum) = match self.round {
            Some((round, sum)) => (round, sum),
            None => (self.at[self.at.len() - 1], self.before[self.before.len() - 1]),
        };
        if span == 0 { self.value[0] } else { (sum / u128::from(span)) as u64 }
    }

    /// The values, one for each step.
    pub(super) fn values(&self) -> &[u64] {
        &self.value
    }
}
