//! Positions on an axis: ranges, round ticks, labels.

use super::Scale;

/// Limit on the steps between ticks of an axis.
const STEPS: f64 = 7.0;

/// An axis with its final range.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Placed {
    scale: Scale,
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl Placed {
    /// Creates an axis for `values` (at least one, all valid), with the given `ticks` or automatic
    /// ones.
    pub(super) fn new(scale: Scale, values: &[f64], ticks: &[f64]) -> Self {
        let all = || values.iter().chain(ticks).copied();
        let low = all().fold(f64::INFINITY, f64::min);
        let high = all().fold(f64::NEG_INFINITY, f64::max);
        match scale {
            _ if !ticks.is_empty() => given(scale, low, high, ticks),
            Scale::Log => logarithmic(low, high),
            Scale::FromZero => linear(scale, low.min(0.0), high.max(0.0)),
            Scale::Linear => linear(scale, low, high),
        }
    }

    pub(super) fn ticks(&self) -> &[f64] {
        &self.ticks
    }

    /// Difference between the high and the low end.
    pub(super) fn span(&self) -> f64 {
        self.high - self.low
    }

    /// Position of `value`: 0 at the low end, 1 at the high end; values outside are clamped.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Log if value <= 0.0 => 0.0,
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
            Scale::Linear | Scale::FromZero => (value - self.low) / (self.high - self.low),
        };
        share.clamp(0.0, 1.0)
    }
}

/// An axis with given ticks: it ends slightly beyond data and ticks, or at zero for a scale from
/// zero.
fn given(scale: Scale, low: f64, high: f64, ticks: &[f64]) -> Placed {
    const MARGIN: f64 = 0.05;
    let (low, high) = match scale {
        Scale::Log => {
            let factor = if high > low { (high / low).powf(MARGIN) } else { 2.0 };
            (low / factor, high * factor)
        }
        Scale::Linear => {
            let margin = if high > low { (high - low) * MARGIN } else { high.abs().max(1.0) };
            (low - margin, high + margin)
        }
        Scale::FromZero => {
            let span = high.max(0.0) - low.min(0.0);
            let margin = if span > 0.0 { span * MARGIN } else { 1.0 };
            (
                if low < 0.0 { low - margin } else { 0.0 },
                if high > 0.0 || span == 0.0 { high + margin } else { 0.0 },
            )
        }
    };
    Placed { scale, low, high, ticks: ticks.to_vec() }
}

/// An axis that ends on multiples of a round step, with a tick at each.
fn linear(scale: Scale, low: f64, high: f64) -> Placed {
    let span = if high > low { high - low } else { high.abs().max(1.0) };
    let step = round_step(span / STEPS);
    let (first, last) = ((low / step).floor(), (high / step).ceil());
    let (first, last) = match scale {
        _ if first < last => (first, last),
        // All values are zero.
        Scale::FromZero => (0.0, (span / step).ceil()),
        // A single value needs space on both sides.
        _ => (first - 1.0, last + 1.0),
    };
    let count = (last - first) as usize;
    let ticks = (0..=count).map(|i| multiple(first + i as f64, step)).collect();
    Placed { scale, low: multiple(first, step), high: multiple(last, step), ticks }
}

/// `n * step`, rounded to remove floating-point noise: 3 times 0.2 is 0.6, not 0.6000000000000001.
fn multiple(n: f64, step: f64) -> f64 {
    if step >= 1.0 { n * step } else { n / (1.0 / step).round() }
}

/// The smallest of 1, 2, 2.5 and 5 times a power of ten that is at least `wanted`. Below 1 its
/// inverse is a whole number.
fn round_step(wanted: f64) -> f64 {
    let power = 10f64.powf(wanted.log10().floor());
    let factors: &[f64] = if power == 1.0 { &[1.0, 2.0, 5.0] } else { &[1.0, 2.0, 2.5, 5.0] };
    let fits = |factor: &&f64| **factor * power >= wanted * (1.0 - 1e-9);
    factors.iter().find(fits).map_or(10.0 * power, |factor| factor * power)
}

/// An axis that ends on 1, 2 or 5 times a power of ten. It has ticks at all of these over at most
/// two decades, otherwise at powers of ten.
fn logarithmic(low: f64, high: f64) -> Placed {
    let (bottom, top) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let fine = |n: i32| (n..=top.max(n + 1)).flat_map(|power| [1.0, 2.0, 5.0].map(|f| f * 10f64.powi(power)));
    let start = fine(bottom).filter(|&end| end <= low * (1.0 + 1e-9)).fold(10f64.powi(bottom), f64::max);
    let mut end = fine(bottom).filter(|&end| end >= high * (1.0 - 1e-9)).fold(f64::INFINITY, f64::min);
    if end <= start {
        end = start * 10.0;
    }
    let inside = |tick: &f64| *tick >= start * (1.0 - 1e-9) && *tick <= end * (1.0 + 1e-9);
    let ticks = if end / start <= 100.0 {
        fine(bottom).filter(inside).collect()
    } else {
        (bottom..=top).map(|power| 10f64.powi(power)).filter(inside).collect()
    };
    Placed { scale: Scale::Log, low: start, high: end, ticks }
}

/// Label of a tick: without noise and trailing zeros, with powers of ten beyond six digits.
pub(super) fn label(value: f64) -> String {
    if value != 0.0 && !(1e-4..1e6).contains(&value.abs()) {
        return format!("{value:e}");
    }
    let fixed = format!("{value:.6}");
    let short = fixed.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}
