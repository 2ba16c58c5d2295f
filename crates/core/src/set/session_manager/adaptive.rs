//! The choice between predictive striping and turns by the measured rate of delivery.
//!
//! Turns are faster where all paths share one radio channel and its MAC gives up early, predictive
//! striping is faster nearly everywhere else, and the sender cannot know where it is. So it tries.
//! A trial of the wrong policy costs time. It takes place only on networks as slow as such a mesh,
//! and only if the rest of the file is long enough to make up for it. It ends at once if single
//! chunks, one after another, arrive slower than predictive striping delivers: then the paths add
//! up, as they do not where they share a channel.

use super::Sender;
use super::turns::{self, Turns};
use crate::set::path::rate_of;
use crate::set::striping::StripingPolicy;
use crate::time::Instant;

/// Number of bytes delivered in one measurement.
const SPAN: u64 = 16 * turns::CHUNK;
/// Number of bytes that turns deliver before the first measurement, while they find their interval.
const WARM_UP: u64 = 24 * turns::CHUNK;
/// Number of measurements that the rest of the file must last, before the other policy is tried.
const REST: u64 = 4;
/// Largest rate of delivery in bytes per second at which turns are tried. Two hops of IEEE 802.15.4
/// at 250 kbit/s carry no more.
const FASTEST: u64 = 125_000 / 8;
/// Ratio of the rates of the fastest and the slowest session at which turns are tried at most: in
/// turns each session carries the same.
const SIMILAR: u64 = 4;
/// Ratio by which the other policy must have been faster, in percent.
const FASTER: u64 = 105;

/// State of the choice.
#[derive(Debug, Default)]
pub(super) struct Adaptive {
    /// Whether turns are active.
    turns: bool,
    /// The last rates of predictive striping and of turns, in bytes per second.
    rates: [Option<u64>; 2],
    /// When the current measurement began, and the number of bytes that the node held then.
    since: Option<(Instant, u64)>,
    /// Number of bytes that the node holds when the next measurement begins.
    from: Option<u64>,
}

impl Adaptive {
    /// Takes the number of bytes that the node holds; the number of those that are not assigned, if
    /// turns may be tried; and the rate of single chunks, once turns have measured it. Returns
    /// whether the policy changes.
    fn measure(&mut self, now: Instant, held: u64, rest: Option<u64>, alone: Option<u64>) -> bool {
        if let (true, [Some(before), None], Some(alone)) = (self.turns, self.rates, alone)
            && alone < before
        {
            return self.change(held, alone);
        }
        let from = *self.from.get_or_insert(held + WARM_UP);
        let Some((began, before)) = self.since else {
            self.since = (held >= from).then_some((now, held));
            return false;
        };
        if held < before + SPAN || now <= began {
            return false;
        }
        let rate = rate_of(held - before, now.saturating_since(began));
        let changes = match self.rates[usize::from(!self.turns)] {
            None => rate <= FASTEST && rest.is_some_and(|rest| rest >= REST * SPAN),
            Some(other) => other * 100 > rate * FASTER,
        };
        if changes {
            return self.change(held, rate);
        }
        self.rates[usize::from(self.turns)] = Some(rate);
        self.since = Some((now, held));
        false
    }

    /// Changes the policy, which had this rate.
    fn change(&mut self, held: u64, rate: u64) -> bool {
        self.rates[usize::from(self.turns)] = Some(rate);
        self.turns = !self.turns;
        self.since = None;
        self.from = Some(held + WARM_UP);
        true
    }
}

impl Sender {
    /// The policy by which chunks are assigned now.
    pub(super) fn policy(&self) -> StripingPolicy {
        match self.config.striping {
            StripingPolicy::Adaptive if self.adaptive.turns => StripingPolicy::Turns,
            StripingPolicy::Adaptive => StripingPolicy::Predictive,
            policy => policy,
        }
    }

    /// Chooses the policy anew after an acknowledgement.
    pub(super) fn adapt(&mut self, now: Instant) {
        if self.config.striping != StripingPolicy::Adaptive {
            return;
        }
        let alive = self.sessions.iter().enumerate().filter(|(_, session)| session.is_alive());
        let rates = alive.clone().map(|(_, session)| session.estimate.rate().unwrap_or(0));
        let (slowest, fastest) = (rates.clone().min().unwrap_or(0), rates.max().unwrap_or(0));
        let similar = alive.clone().count() > 1 && fastest <= SIMILAR * slowest;
        let rest = similar.then(|| self.unassigned.octets());
        let indices = alive.map(|(index, _)| index);
        let alone = self.turns.alone(indices).map(|latency| rate_of(turns::CHUNK, latency));
        if self.adaptive.measure(now, self.acknowledged.octets(), rest, alone) {
            self.turns = Turns::new(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    /// Delivers chunks of [`turns::CHUNK`] at this rate in bytes per second until the policy
    /// changes. Returns their number, or `None` if none of a hundred spans changed it.
    fn deliver(
        adaptive: &mut Adaptive,
        at: &mut (Instant, u64),
        rate: u64,
        rest: Option<u64>,
    ) -> Option<u64> {
        (1..=100 * SPAN / turns::CHUNK).find(|_| {
            at.0 += Duration::from_micros(turns::CHUNK * 1_000_000 / rate);
            at.1 += turns::CHUNK;
            adaptive.measure(at.0, at.1, rest, None)
        })
    }

    const REST_LONG_ENOUGH: Option<u64> = Some(REST * SPAN);
    const START: (Instant, u64) = (Instant::ZERO, 0);
    /// Chunks until a policy is first measured.
    const MEASURED: Option<u64> = Some((WARM_UP + SPAN) / turns::CHUNK + 1);

    #[test]
    fn turns_are_not_tried_on_fast_networks_on_unlike_paths_and_near_the_end() {
        for (rate, rest) in
            [(FASTEST * 11 / 10, REST_LONG_ENOUGH), (3000, None), (3000, Some(REST * SPAN - 1))]
        {
            let (mut adaptive, mut at) = (Adaptive::default(), START);
            assert_eq!(deliver(&mut adaptive, &mut at, rate, rest), None, "{rate} {rest:?}");
        }
    }

    #[test]
    fn the_faster_policy_is_kept_until_it_delivers_slower_than_the_other() {
        let (mut adaptive, mut at) = (Adaptive::default(), START);
        assert_eq!(deliver(&mut adaptive, &mut at, 3000, REST_LONG_ENOUGH), MEASURED);
        assert!(adaptive.turns);
        assert_eq!(deliver(&mut adaptive, &mut at, 5000, None), None);
        // The other one was faster than this.
        assert!(deliver(&mut adaptive, &mut at, 2000, None).is_some());
        assert!(!adaptive.turns);
        assert_eq!(deliver(&mut adaptive, &mut at, 3000, None), None);
    }

    #[test]
    fn turns_that_are_slower_are_given_up_after_the_first_measurement() {
        let (mut adaptive, mut at) = (Adaptive::default(), START);
        deliver(&mut adaptive, &mut at, 3000, REST_LONG_ENOUGH);
        let chunks = deliver(&mut adaptive, &mut at, 2500, None);
        assert!(chunks.is_some_and(|chunks| chunks * turns::CHUNK <= WARM_UP + SPAN + turns::CHUNK));
        assert!(!adaptive.turns);
    }

    #[test]
    fn turns_are_given_up_at_once_if_single_chunks_are_slower() {
        for (alone, is_kept) in [(2999, false), (3000, true)] {
            let (mut adaptive, mut at) = (Adaptive::default(), START);
            deliver(&mut adaptive, &mut at, 3000, REST_LONG_ENOUGH);
            adaptive.measure(at.0, at.1, None, Some(alone));
            assert_eq!(adaptive.turns, is_kept, "{alone}");
        }
    }
}
