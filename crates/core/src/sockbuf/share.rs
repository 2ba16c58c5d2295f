//! The two ways to divide a pool: by requests, and in proportion.

use alloc::vec;
use alloc::vec::Vec;

/// Grants each request, but at least `least` and together at most the pool: the largest requests
/// are cut to a common level, the highest that fits (max-min fairness). The sum of `least` must not
/// exceed the pool.
pub(super) fn fit(asks: &[u64], least: &[u64], pool: u64) -> Vec<u64> {
    let cut = |level: u64| asks.iter().zip(least).map(move |(ask, least)| (*ask).min(level).max(*least));
    let fits = |level: u64| cut(level).map(u128::from).sum::<u128>() <= u128::from(pool);
    if fits(pool) {
        return cut(pool).collect();
    }
    // Level 0 fits and the level of the pool does not: bisect between them.
    let (mut low, mut high) = (0, pool);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    cut(low).collect()
}

/// Divides the whole pool in proportion to weights, but gives each at least `least`. Without a
/// positive weight all shares are equal.
///
/// Weights must be finite and not negative. `least` must have as many elements, each at least 1,
/// with a sum of at most the pool.
pub fn divide(pool: u64, weights: &[f64], least: &[u64]) -> Vec<u64> {
    // Relative to the largest weight, so that no sum overflows.
    let most = weights.iter().copied().fold(0.0, f64::max);
    let weights: Vec<f64> = weights.iter().map(|w| if most > 0.0 { w / most } else { 1.0 }).collect();
    let mut sizes = least.to_vec();
    let mut open = vec![true; sizes.len()];
    // A share below the least is raised to it, and the others divide the remainder.
    let rest = loop {
        let held: u64 = (0..sizes.len()).filter(|i| !open[*i]).map(|i| least[i]).sum();
        let total: f64 = (0..sizes.len()).filter(|i| open[*i]).map(|i| weights[i]).sum();
        let rest = pool - held;
        let mut done = true;
        for i in 0..sizes.len() {
            if open[i] {
                let share = rest as f64 * weights[i] / total;
                (sizes[i], open[i]) = if share < least[i] as f64 {
                    done = false;
                    (least[i], false)
                } else {
                    ((share + 0.5) as u64, true)
                };
            }
        }
        if done {
            break rest;
        }
    };
    round(rest, &mut sizes, &open, least);
    sizes
}

/// Adjusts shares that were rounded to whole bytes to a sum of exactly `rest`: the last one gets
/// the remainder.
fn round(rest: u64, sizes: &mut [u64], open: &[bool], least: &[u64]) {
    let Some(last) = open.iter().rposition(|open| *open) else { return };
    let mut left = rest;
    let mut owed: u64 = (0..sizes.len()).filter(|i| open[*i]).map(|i| least[i]).sum();
    for i in 0..last {
        if open[i] {
            owed -= least[i];
            sizes[i] = sizes[i].clamp(least[i], left - owed);
            left -= sizes[i];
        }
    }
    sizes[last] = left;
}
