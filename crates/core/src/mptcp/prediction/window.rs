//! Section IV: how a round of w packets ends.

use super::reading::{Binomial, FastRetransmit, Reading, TimeoutSum};
use super::{MAX_WINDOW, ScheduleError, check_loss, window};

/// Probabilities of section IV for the end of a round of w packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transitions {
    /// p_SS = p_CA: no loss.
    pub no_loss: f64,
    /// p_FR: three duplicate acknowledgements, and the retransmissions arrive.
    pub fast_retransmit: f64,
    /// p_RTO: a time-out.
    pub timeout: f64,
    /// Expected number of retransmitted packets, given that fast retransmit repairs the round.
    pub(super) repeated: f64,
    /// `sum P(m)` over the m that fast retransmit can repair.
    pub(super) reparable: f64,
    /// `sum m P(m)` over the same m.
    pub(super) reparable_packets: f64,
}

/// p_SS, p_FR and p_RTO of section IV for a window of w packets with independent losses. Fast
/// retransmit needs three delivered packets: it is impossible for `w < 4`, and repairs up to
/// `w - 3` losses otherwise.
///
/// # Errors
/// The loss is outside 0 up to 1, or the window outside 1..=[`MAX_WINDOW`].
pub fn transitions(w: u32, loss: f64, reading: Reading) -> Result<Transitions, ScheduleError> {
    check_loss(loss)?;
    window("w", w, 1, MAX_WINDOW)?;
    Ok(Transitions::of(w, loss, reading))
}

/// p(x|w) of section IV: the probability that `x` of `w` packets are lost.
///
/// # Errors
/// The loss is outside 0 up to 1, the window outside 1..=[`MAX_WINDOW`], or there are more losses
/// than packets.
pub fn losses(x: u32, w: u32, loss: f64, binomial: Binomial) -> Result<f64, ScheduleError> {
    check_loss(loss)?;
    window("w", w, 1, MAX_WINDOW)?;
    window("x", x, 0, w)?;
    Ok(probability(x, w, loss, binomial))
}

impl Transitions {
    /// For valid arguments. All sums have closed forms, so the work does not grow with the window.
    pub(super) fn of(w: u32, loss: f64, reading: Reading) -> Self {
        let chance = |x: u32| probability(x, w, loss, reading.binomial);
        let no_loss = chance(0);
        let sums = if w < 4 { Sums::default() } else { Sums::of(w, loss, reading.binomial) };
        // Section IV and the sub-cases agree for a window that fast retransmit cannot repair.
        let (fast_retransmit, mut timeout) = match reading.fast_retransmit {
            FastRetransmit::SectionFour if w < 4 => (0.0, 1.0 - no_loss),
            FastRetransmit::SectionFour => match reading.binomial {
                Binomial::Choose => (sums.repaired, unit(1.0 - no_loss - sums.repaired)),
                Binomial::Printed => {
                    let timeout = chance(w);
                    (unit(1.0 - timeout - no_loss), timeout)
                }
            },
            FastRetransmit::Printed => {
                let least = if w < 4 { 1 } else { w - 2 };
                (sums.reparable, (least..=w).map(chance).sum())
            }
        };
        if reading.timeout_sum == TimeoutSum::Printed && w <= 2 {
            timeout += no_loss;
        }
        let repeated = if sums.repaired > 0.0 { sums.repaired_packets / sums.repaired } else { 1.0 };
        Self {
            no_loss,
            fast_retransmit,
            timeout,
            // For very rare losses the division only yields rounding errors; the value is one
            // packet.
            repeated: repeated.clamp(1.0, f64::from(w)),
            reparable: sums.reparable,
            reparable_packets: sums.reparable_packets,
        }
    }
}

/// Sums over m = 1..=w-3 losses of w packets.
#[derive(Default)]
struct Sums {
    /// `sum P(m)`
    reparable: f64,
    /// `sum m P(m)`
    reparable_packets: f64,
    /// `sum P(m) (1-l)^m`
    repaired: f64,
    /// `sum m P(m) (1-l)^m`
    repaired_packets: f64,
}

impl Sums {
    /// The complete sums by the binomial theorem, minus the first and the last three terms. Below a
    /// few dozen packets direct addition is as fast, and exact for very rare losses too.
    fn of(w: u32, loss: f64, binomial: Binomial) -> Self {
        if binomial == Binomial::Printed {
            // All P(m) except the last are 0.
            return Self::default();
        }
        if w <= FEW {
            return Self::added(w, loss);
        }
        let arrives = 1.0 - loss;
        let packets = f64::from(w);
        let twice = arrives * (1.0 + loss);
        let mut sums = Self {
            reparable: 1.0 - power(arrives, w),
            reparable_packets: packets * loss,
            repaired: power(twice, w) - power(arrives, w),
            repaired_packets: packets * loss * arrives * power(twice, w - 1),
        };
        for m in w - 2..=w {
            let p = probability(m, w, loss, binomial);
            let q = p * power(arrives, m);
            sums.reparable -= p;
            sums.reparable_packets -= f64::from(m) * p;
            sums.repaired -= q;
            sums.repaired_packets -= f64::from(m) * q;
        }
        Self {
            reparable: unit(sums.reparable),
            reparable_packets: sums.reparable_packets.max(0.0),
            repaired: unit(sums.repaired),
            repaired_packets: sums.repaired_packets.max(0.0),
        }
    }

    fn added(w: u32, loss: f64) -> Self {
        let arrives = 1.0 - loss;
        let odds = loss / arrives;
        let mut sums = Self::default();
        let (mut p, mut again) = (power(arrives, w), 1.0);
        for m in 1..=w - 3 {
            p *= odds * f64::from(w - m + 1) / f64::from(m);
            again *= arrives;
            sums.reparable += p;
            sums.reparable_packets += f64::from(m) * p;
            sums.repaired += p * again;
            sums.repaired_packets += f64::from(m) * p * again;
        }
        sums
    }
}

/// Windows up to this size are summed term by term; none of their terms underflows.
const FEW: u32 = 16;

fn probability(x: u32, w: u32, loss: f64, binomial: Binomial) -> f64 {
    let ways = match binomial {
        Binomial::Printed if x < w => return 0.0,
        Binomial::Printed => return power(loss, w),
        Binomial::Choose => x.min(w - x),
    };
    // The coefficient and the powers are multiplied alternately, so that neither leaves the
    // floating-point range.
    let (mut lost, mut arrived) = (x, w - x);
    let mut p = 1.0;
    for i in 0..ways {
        p *= f64::from(w - i) / f64::from(i + 1);
        while p > 1.0 && lost > 0 {
            p *= loss;
            lost -= 1;
        }
        while p > 1.0 && arrived > 0 {
            p *= 1.0 - loss;
            arrived -= 1;
        }
    }
    p * power(loss, lost) * power(1.0 - loss, arrived)
}

/// `base` to the power `n`; `core` lacks the standard library's function.
pub(crate) fn power(base: f64, n: u32) -> f64 {
    let (mut result, mut square, mut left) = (1.0, base, n);
    while left > 0 {
        if left & 1 == 1 {
            result *= square;
        }
        square *= square;
        left >>= 1;
    }
    result
}

/// Removes rounding errors outside 0 to 1.
fn unit(p: f64) -> f64 {
    p.clamp(0.0, 1.0)
}
