//! The two ways to divide a pool: by what is asked for, and in proportion.

use alloc::vec;
use alloc::vec::Vec;

/// What each one asks for, but at least `least` and together no more than the pool: the largest are
/// cut to one level, the highest that fits (max-min fairness). The `least` are together no more
/// than the pool.
pub(super) fn fit(asks: &[u64], least: &[u64], pool: u64) -> Vec<u64> {
    let cut = |level: u64| asks.iter().zip(least).map(move |(ask, least)| (*ask).min(level).max(*least));
    let fits = |level: u64| cut(level).map(u128::from).sum::<u128>() <= u128::from(pool);
    if fits(pool) {
        return cut(pool).collect();
    }
    // Level 0 fits and that of the pool does not: halve what is between.
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

/// The whole pool in proportion to weights, which are finite and not negative, but at least `least`
/// for each; all alike if no weight is above 0. The `least` are as many as the weights, at least 1
/// each, and together no more than the pool.
pub fn divide(pool: u64, weights: &[f64], least: &[u64]) -> Vec<u64> {
    // Relative to the greatest, so that no sum overflows.
    let most = weights.iter().copied().fold(0.0, f64::max);
    let weights: Vec<f64> = weights.iter().map(|w| if most > 0.0 { w / most } else { 1.0 }).collect();
    let mut sizes = least.to_vec();
    let mut open = vec![true; sizes.len()];
    // Whoever gets less than the least in proportion is given that, and the others divide what is
    // left.
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

/// Shares that were rounded to whole bytes, and computed with reals, become exactly `rest`
/// together: the last one has what the others leave.
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
