//! Interpretations of sections IV and VII where the paper contradicts itself: one option per
//! erratum.
//!
//! M13 and M14 concern the computation of [`Path::t_next`](super::Path::t_next) and
//! [`Path::t_first`](super::Path::t_first), not the recursion; the caller that fills in a path
//! chooses.

/// The interpretations of sections IV and VII. [`Reading::default`] corrects all errata.
/// [`Reading::computed`] is the printed text with its binomials as intended, [`Reading::printed`]
/// the printed text to the letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// M3.
    pub binomial: Binomial,
    /// M16.
    pub round_time: RoundTime,
    /// M17.
    pub case_two: CaseTwo,
    /// M18, the probability.
    pub fast_retransmit: FastRetransmit,
    /// M18, the time.
    pub recovery: Recovery,
    /// M19.
    pub timeout_sum: TimeoutSum,
    /// M20.
    pub timeout_case: TimeoutCase,
    /// M21.
    pub growth: Growth,
    /// M29.
    pub halving: Halving,
}

impl Reading {
    /// Every form as printed except the binomial coefficient, with which no window would ever be
    /// without a loss.
    pub const fn computed() -> Self {
        Self {
            binomial: Binomial::Choose,
            round_time: RoundTime::Printed,
            case_two: CaseTwo::Window,
            fast_retransmit: FastRetransmit::Printed,
            recovery: Recovery::Unconditional,
            timeout_sum: TimeoutSum::Printed,
            timeout_case: TimeoutCase::Printed,
            growth: Growth::Unlimited,
            halving: Halving::Floor,
        }
    }

    /// Sections IV and VII to the letter.
    pub const fn printed() -> Self {
        Self { binomial: Binomial::Printed, ..Self::computed() }
    }
}

/// M3: the coefficient of p(x|w).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Binomial {
    /// w choose x.
    #[default]
    Choose,
    /// x choose w, as printed: 0 for every x below w.
    Printed,
}

/// M16: duration of a round without time-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RoundTime {
    /// `T^w + RTT/2`: until the acknowledgement has returned, as in the limits of the cases. The
    /// retransmission, `T^m`, has its own acknowledgement.
    #[default]
    Acknowledged,
    /// `T^w`, as printed.
    Printed,
}

/// M17: packets that arrive if there is no time for another round (case 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CaseTwo {
    /// `1 + floor((T - T^1) / t_next)`, at most the window.
    #[default]
    InTime,
    /// The window, as printed.
    Window,
}

/// M18: probability that fast retransmit repairs a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FastRetransmit {
    /// p_FR of section IV: the retransmissions must not be lost.
    #[default]
    SectionFour,
    /// `sum P(m)` for m up to w - 3, as cases 3-2 and 4-2 have it.
    Printed,
}

/// M18: duration of a fast retransmit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recovery {
    /// The mean of `T^m`, given that the round ends this way.
    #[default]
    Conditional,
    /// `sum P(m) T^m`, as printed: not divided by the probability of the branch.
    Unconditional,
}

/// M19: numbers of losses that lead to a time-out (cases 3-3 and 4-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeoutSum {
    /// From `max(1, w - 2)`.
    #[default]
    Losses,
    /// From `w - 2`, as printed: this includes "no loss" for windows up to 2.
    Printed,
}

/// M20: least time in which a time-out can be awaited (case 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeoutCase {
    /// `T^w + RTO + T^1`: the duration of the branch, and one packet after it.
    #[default]
    Spent,
    /// `RTO + RTT/2`, as printed: less than the duration of the branch.
    Printed,
}

/// M21: window after a round without loss, equation (12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Growth {
    /// Twice the window up to the threshold, then one more per round, up to w_max.
    #[default]
    Limited,
    /// Twice the window or one more, as printed.
    Unlimited,
}

/// M29: half of a window. Section IV does not mention rounding; windows are whole packets here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Halving {
    /// `max(1, floor(w/2))`.
    #[default]
    AtLeastOne,
    /// `floor(w/2)`, as section VII prints it: 0 for a window of 1.
    Floor,
}
