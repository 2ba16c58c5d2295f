//! Which rule gives which verdict.

use super::*;

fn found(mean: f64, ci95: Option<f64>) -> Figure {
    Figure { mean, ci95, runs: 2 }
}

#[test]
fn a_number_of_somebody_else_is_near_on_either_side_or_not() {
    let of = |mean, ci95| Rule::Near(10.0).judge(100.0, &found(mean, ci95));
    assert_eq!([91.0, 110.0].map(|mean| of(mean, None)), [Holds::Yes; 2]);
    assert_eq!([81.0, 119.0].map(|mean| of(mean, None)), [Holds::Partly; 2]);
    assert_eq!([79.0, 121.0].map(|mean| of(mean, None)), [Holds::No; 2]);
    // An interval that holds the printed number lifts in part, and nothing else: a wide one proves nothing.
    assert_eq!((of(115.0, Some(16.0)), of(115.0, Some(14.0))), (Holds::Yes, Holds::Partly));
    assert_eq!(of(130.0, Some(500.0)), Holds::No);
}

#[test]
fn what_is_better_than_printed_exceeds_it() {
    let less = |mean, ci95| Rule::Less(10.0).judge(100.0, &found(mean, ci95));
    assert_eq!([95.0, 105.0, 115.0, 125.0].map(|mean| less(mean, None)), {
        [Holds::Yes, Holds::Yes, Holds::Partly, Holds::No]
    });
    assert_eq!((less(85.0, Some(14.0)), less(85.0, Some(16.0))), (Holds::Better, Holds::Yes));
    let more = |mean| Rule::More(10.0).judge(100.0, &found(mean, None));
    assert_eq!([115.0, 95.0, 85.0, 75.0].map(more), [Holds::Better, Holds::Yes, Holds::Partly, Holds::No]);
}

#[test]
fn a_gain_reaches_exceeds_or_is_one_at_all() {
    let of = |mean, ci95| Rule::Gain.judge(20.0, &found(mean, ci95));
    assert_eq!((of(23.0, Some(2.5)), of(23.0, None)), (Holds::Better, Holds::Better));
    assert_eq!((of(22.0, Some(2.5)), of(18.0, Some(2.5))), (Holds::Yes, Holds::Yes));
    assert_eq!((of(17.0, Some(2.5)), of(2.0, Some(2.5))), (Holds::Partly, Holds::No));
    assert_eq!(of(-2.0, None), Holds::No);
}

#[test]
fn a_bound_is_kept_or_not() {
    let most = |mean| Rule::AtMost(2.0).judge(10.0, &found(mean, None));
    assert_eq!([1.0, 10.0, 11.0, 13.0].map(most), [Holds::Yes, Holds::Yes, Holds::Partly, Holds::No]);
    let least = |mean| Rule::AtLeast(2.0).judge(10.0, &found(mean, None));
    assert_eq!([19.0, 10.0, 9.0, 7.0].map(least), [Holds::Yes, Holds::Yes, Holds::Partly, Holds::No]);
}

#[test]
fn no_number_is_no_success() {
    for rule in [Rule::Near(1.0), Rule::Less(1.0), Rule::More(1.0), Rule::Gain, Rule::AtMost(1.0)] {
        assert_eq!(rule.judge(1.0, &found(f64::NAN, None)), Holds::No, "{rule:?}");
    }
}

#[test]
fn what_contradicts_itself_says_by_which_reading_it_would_hold() {
    let target = |suspect| Target { suspect, ..crate::dtc::reproduction::PAPER.targets().swap_remove(0) };
    let judged = || Judged::number(3010.0, Figure::computed(3010.0), Rule::Near(1.0));
    assert_eq!(Verdict::of(target(false), judged()).holds, Holds::Yes);
    for verdict in [Verdict::of(target(true), judged()), Verdict::of(target(false), judged().against("D9"))] {
        assert_eq!((verdict.holds, verdict.reading), (Holds::Contradicted, Holds::Yes));
    }
}

#[test]
fn numbers_have_the_digits_that_say_something() {
    assert_eq!(
        [3010.0, 0.0, 0.4841, 12.3456, 1e6, -0.00001].map(number),
        ["3010", "0", "0.4841", "12.35", "1000000", "-0.00001"]
    );
    assert_eq!(found(5202.4, Some(47.3)).text(), "5202 ± 47");
    assert_eq!(found(0.0066, Some(0.000_41)).text(), "0.00660 ± 0.00041");
    assert_eq!(found(-0.0001, Some(0.02)).text(), "0.000 ± 0.020");
    assert_eq!(found(12.5, Some(0.0)).text(), "12.5");
    let verdict = |printed: f64, unit: &str, ours: f64| Verdict {
        printed: Some(printed),
        unit: unit.to_owned(),
        ..Verdict::asked(String::new(), "", "", Judged::number(printed, Figure::computed(ours), Rule::Gain))
    };
    assert_eq!(verdict(200.0, "s", 190.0).off().as_deref(), Some("-5.0 %"));
    assert_eq!(verdict(20.0, "%", 23.0).off().as_deref(), Some("+3.0 points"));
    assert_eq!((verdict(0.0, "packets", 2.0).off().as_deref(), verdict(0.0, "", 2.0).ratio()), {
        (Some("+2.0 packets"), None)
    });
}
