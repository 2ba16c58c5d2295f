//! Simulations of the rules of CSMA-CA and of a queue with random numbers, independent of the
//! models' code.

use super::super::csma::{Csma, access};
use super::super::queue::{Queue, occupied};
use super::super::*;
use super::{Busy, calming};

/// Pseudo-random numbers, equal in every run (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to, not including, 1.
    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self, rate: f64) -> f64 {
        -(1.0 - self.unit()).ln() / rate
    }
}

/// Running sums of a sample.
#[derive(Default)]
struct Sample {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Sample {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    fn mean(&self) -> f64 {
        self.sum / self.count
    }

    /// Passes if `expected` lies in the 99.9 % confidence interval of the mean.
    #[track_caller]
    fn holds(&self, expected: f64, what: &str) {
        let variance = (self.squares / self.count - self.mean() * self.mean()).max(0.0);
        let half = 3.2905 * (variance / self.count).sqrt();
        let off = (self.mean() - expected).abs();
        assert!(off <= half + 1e-12, "{what}: {expected} expected, {} +- {half} drawn", self.mean());
    }
}

fn samples() -> [Sample; 4] {
    std::array::from_fn(|_| Sample::default())
}

/// IEEE 802.15.4, 5.1.1.4: NB and BE increase until an assessment finds the channel clear, or NB
/// exceeds its limit.
fn attempt(draw: &mut Numbers, csma: &Csma, busy: &dyn Fn(u32) -> f64) -> (u32, bool) {
    let (mut nb, mut be, mut period) = (0, csma.min_be, 0);
    loop {
        period += (draw.bits() % (1 << be)) as u32 + 1;
        if draw.unit() >= busy(period) {
            return (period, true);
        }
        (nb, be) = (nb + 1, (be + 1).min(csma.max_be));
        if nb > csma.max_backoffs {
            return (period, false);
        }
    }
}

fn play(seed: u64, csma: &Csma, busy: &dyn Fn(u32) -> f64, chain: &csma::Access) {
    let mut draw = Numbers(seed);
    let [mut periods, mut won, mut if_won, mut if_lost] = samples();
    let mut counts = vec![0.0; chain.won_at.len()];
    for _ in 0..400_000 {
        let (taken, gained) = attempt(&mut draw, csma, busy);
        periods.add(f64::from(taken));
        won.add(f64::from(u8::from(gained)));
        if gained {
            if_won.add(f64::from(taken));
            counts[taken as usize - 1] += 1.0;
        } else {
            if_lost.add(f64::from(taken));
        }
    }
    periods.holds(chain.periods, "N_bp");
    won.holds(chain.won, "p(T)");
    assert!((chain.won + chain.lost - 1.0).abs() < 1e-12, "p(F)");
    if_won.holds(chain.periods_if_won.expect("it can be won"), "N_bp of those won");
    if if_lost.count > 100.0 {
        if_lost.holds(chain.periods_if_lost.expect("it can be lost"), "N_bp of those lost");
    }
    // The whole distribution: no period differs by more than one in a thousand of all attempts.
    for (drawn, p) in counts.iter().zip(&chain.won_at) {
        assert!((drawn / periods.count - p).abs() < 1e-3);
    }
}

#[test]
fn the_chain_agrees_with_the_rules_where_the_channel_is_always_as_busy() {
    for (seed, busy) in [(11, 0.2), (12, 0.3), (13, 0.5), (14, 0.7), (15, 0.95)] {
        let csma = Csma::default();
        let chain = access(&csma, &Busy::Constant(busy), Reading::default()).expect("legal");
        play(seed, &csma, &|_| busy, &chain);
    }
}

#[test]
fn the_chain_agrees_with_the_rules_where_the_channel_calms_down() {
    let csma = Csma::default();
    let chain = access(&csma, &calming(), Reading::default()).expect("legal");
    play(21, &csma, &|period| if period <= 20 { 0.9 } else { 0.1 }, &chain);
}

#[test]
fn the_chain_agrees_with_the_rules_where_business_comes_and_goes() {
    let wave = |period: u32| 0.95 - 0.9 * f64::from(period % 14) / 13.0;
    for (seed, csma) in [
        (31, Csma::default()),
        (32, Csma { min_be: 0, max_be: 3, max_backoffs: 0 }),
        (33, Csma { min_be: 5, max_be: 8, max_backoffs: 5 }),
        (34, Csma { min_be: 2, max_be: 3, max_backoffs: 2 }),
    ] {
        let chain = access(&csma, &Busy::from_fn(&csma, wave), Reading::default()).expect("legal");
        play(seed, &csma, &wave, &chain);
    }
}

/// The chain that the paper prints disagrees: M6 is not a matter of the sample.
#[test]
fn the_printed_chain_does_not_agree_where_the_channel_calms_down() {
    let (csma, mut draw, mut won) = (Csma::default(), Numbers(21), Sample::default());
    for _ in 0..400_000 {
        let (_, gained) = attempt(&mut draw, &csma, &|period| if period <= 20 { 0.9 } else { 0.1 });
        won.add(f64::from(u8::from(gained)));
    }
    let printed = access(&csma, &calming(), Reading::printed()).expect("legal");
    assert!((won.mean() - printed.won).abs() > 0.003, "{} against {}", won.mean(), printed.won);
}

/// An event-driven queue. Consecutive waiting times are correlated, so means are taken over
/// batches.
#[test]
fn the_queue_agrees_with_one_that_is_simulated() {
    for (seed, arrivals, capacity) in
        [(41, 0.8, Some(10)), (42, 1.0, Some(4)), (43, 2.5, Some(6)), (44, 0.6, None), (45, 0.5, Some(1))]
    {
        let queue = Queue { arrivals, service: 1.0, capacity };
        let expected = occupied(&queue, Reading::default()).expect("legal");
        let mut draw = Numbers(seed);
        let (mut now, mut ends) = (0.0, std::collections::VecDeque::new());
        let [mut waits, mut sojourns, mut found, mut refused] = samples();
        for _ in 0..200 {
            let [mut wait, mut sojourn, mut present, mut full] = samples();
            for _ in 0..5000 {
                now += draw.exponential(arrivals);
                while ends.front().is_some_and(|end| *end <= now) {
                    ends.pop_front();
                }
                // A Poisson process samples the state at a typical time (PASTA).
                present.add(ends.len() as f64);
                let has_room = capacity.is_none_or(|k| ends.len() < k as usize);
                full.add(f64::from(u8::from(!has_room)));
                if has_room {
                    let begins = ends.back().copied().map_or(now, |end: f64| end.max(now));
                    let end = begins + draw.exponential(1.0);
                    wait.add(begins - now);
                    sojourn.add(end - now);
                    ends.push_back(end);
                }
            }
            waits.add(wait.mean());
            sojourns.add(sojourn.mean());
            found.add(present.mean());
            refused.add(full.mean());
        }
        waits.holds(expected.time, "the wait");
        sojourns.holds(expected.sojourn, "the sojourn");
        found.holds(expected.packets, "packets in the system");
        refused.holds(expected.refused, "refused");
    }
}
