//! Tests of the verdict for each kind of evidence.

use super::*;

fn found(mean: f64, ci95: Option<f64>) -> Figure {
    Figure { mean, ci95, runs: 5 }
}

fn target(id: &str, value: Option<f64>, suspect: bool) -> Target {
    let value = value.map(toml::Value::Float);
    Target { value, suspect, ..Target::own(id.to_owned(), "", "a claim") }
}

/// The verdict on a single claim.
fn alone(printed: Option<f64>, judged: Judged) -> Verdict {
    judge(vec![(target("x", printed, false), judged)]).swap_remove(0)
}

fn number_is(mean: f64, ci95: Option<f64>) -> Holds {
    alone(Some(100.0), Judged::number(Some(found(mean, ci95)), Tolerance::Mean)).holds
}

fn runs(values: &[f64]) -> Option<Summary> {
    Summary::of(values).ok()
}

/// Eight runs around a mean, `apart` from each other.
fn around(mean: f64, apart: f64) -> Option<Summary> {
    runs(&[-1.0, 1.0, -0.5, 0.5, -0.25, 0.25, -0.75, 0.75].map(|x| mean + apart * x))
}

#[test]
fn a_number_is_the_printed_one_on_either_side_or_is_not_or_the_runs_leave_it_open() {
    assert_eq!([91.0, 100.0, 109.0].map(|mean| number_is(mean, Some(2.0))), [Holds::Yes; 3]);
    assert_eq!([70.0, 85.0, 115.0, 130.0].map(|mean| number_is(mean, Some(2.0))), [Holds::No; 4]);
    // A number above the printed one is no better than one below.
    assert_eq!(number_is(150.0, Some(2.0)), number_is(50.0, Some(2.0)));
    // A wide interval proves nothing: neither that a number is near, nor that it is far.
    assert_eq!([100.0, 115.0, 140.0].map(|mean| number_is(mean, Some(60.0))), [Holds::Open; 3]);
    assert_eq!(number_is(f64::NAN, None), Holds::Open);
    // A printed 0.03 stands for every number that rounds to it.
    let small =
        |mean| alone(Some(0.03), Judged::number(Some(found(mean, Some(0.0001))), Tolerance::Mean)).holds;
    assert_eq!([0.0345, 0.0355].map(small), [Holds::Yes, Holds::No]);
    let one_run = Figure { runs: 1, ..Figure::computed(100.0) };
    assert_eq!(alone(Some(100.0), Judged::number(Some(one_run), Tolerance::Mean)).holds, Holds::Open);
    let computed = |mean| Judged::number(Some(Figure::computed(mean)), Tolerance::Own(1e-9));
    assert_eq!([100.0, 100.1].map(|mean| alone(Some(100.0), computed(mean)).holds), [Holds::Yes, Holds::No]);
}

#[test]
fn a_number_that_is_off_is_in_trend_where_the_difference_is_beyond_doubt() {
    let with = |gain| {
        let judged = Judged::number(Some(found(150.0, Some(2.0))), Tolerance::Mean);
        alone(Some(100.0), judged.or_at_least(Part::effect("better", gain, 0.0))).holds
    };
    assert_eq!(with(around(5.0, 1.0)), Holds::Trend);
    assert_eq!([around(0.1, 1.0), around(-5.0, 1.0), runs(&[5.0]), None].map(with), [Holds::No; 4]);
}

#[test]
fn a_bound_is_kept_by_the_whole_interval() {
    let most = |mean, half| alone(Some(10.0), Judged::at_most(Some(found(mean, Some(half))))).holds;
    assert_eq!(
        [most(9.0, 0.5), most(9.8, 0.5), most(10.2, 0.5), most(11.0, 0.5)],
        [Holds::Yes, Holds::Open, Holds::Open, Holds::No]
    );
    let least = |mean, half| alone(Some(10.0), Judged::at_least(Some(found(mean, Some(half))))).holds;
    assert_eq!(
        [least(11.0, 0.5), least(10.2, 0.5), least(9.8, 0.5), least(9.0, 0.5)],
        [Holds::Yes, Holds::Open, Holds::Open, Holds::No]
    );
    assert_eq!(alone(Some(10.0), Judged::at_most(None::<Figure>)).holds, Holds::Open);
}

/// Every kind of part can hold, fail, and be left open.
#[test]
fn a_part_is_so_or_not_or_open() {
    let of = |part: Part| alone(None, Judged::parts(vec![part])).holds;
    assert_eq!(of(Part::effect("", around(5.0, 1.0), 1.0)), Holds::Yes);
    // A part fails if the relevant size is excluded: for equal runs, and for a small, insignificant
    // difference.
    assert_eq!([0.0, 1.0].map(|matters| of(Part::effect("", runs(&[0.0; 8]), matters))), [Holds::No; 2]);
    assert_eq!(of(Part::effect("", around(0.1, 1.0), 1.0)), Holds::No);
    assert_eq!(of(Part::effect("", around(-5.0, 1.0), 0.0)), Holds::No);
    assert_eq!(of(Part::effect("", around(0.5, 3.0), 1.0)), Holds::Open);
    assert_eq!([runs(&[5.0]), None].map(|found| of(Part::effect("", found, 1.0))), [Holds::Open; 2]);
    assert_eq!(of(Part::within("", around(0.0, 0.1), 1.0)), Holds::Yes);
    assert_eq!(of(Part::within("", around(-2.0, 0.1), 1.0)), Holds::No);
    assert_eq!([around(0.9, 1.0), None].map(|found| of(Part::within("", found, 1.0))), [Holds::Open; 2]);
    assert_eq!([true, false].map(|so| of(Part::fact("", so))), [Holds::Yes, Holds::No]);
}

#[test]
fn a_claim_in_words_says_how_much_of_it_is_so() {
    let of = |parts: &[bool]| {
        let parts = parts.iter().map(|so| Part::fact("it", *so)).collect();
        let verdict = alone(None, Judged::parts(parts));
        (verdict.holds, verdict.text())
    };
    assert_eq!(of(&[true, true]), (Holds::Yes, "reproduced".to_owned()));
    assert_eq!(of(&[true, true, false]), (Holds::Trend, "in trend only: 2 of 3".to_owned()));
    assert_eq!(of(&[true, false, false]), (Holds::No, "not reproduced: 1 of 3".to_owned()));
    assert_eq!(of(&[false, false]), (Holds::No, "not reproduced".to_owned()));
    assert_eq!(of(&[]), (Holds::Open, "cannot be judged".to_owned()));
    let mixed = Judged::parts(vec![Part::fact("a", false), Part::effect("b", None, 0.0)]).noting("c");
    let mixed = alone(None, mixed);
    assert_eq!((mixed.holds, mixed.judged.measured.as_str()), (Holds::Open, "✗ a | ? b | c"));
    let hopeless = [Part::fact("", false), Part::fact("", false), Part::effect("", None, 0.0)];
    assert_eq!(alone(None, Judged::parts(hopeless.to_vec())).holds, Holds::No);
}

/// With few runs a test leaves open what the means show; without doubt both agree.
#[test]
fn by_the_means_alone_a_claim_is_what_it_would_be_without_doubt() {
    let number = |mean| {
        let judged = Judged::number(Some(found(mean, Some(60.0))), Tolerance::Mean);
        alone(Some(100.0), judged.or_at_least(Part::effect("better", around(0.1, 1.0), 0.0)))
    };
    let verdicts = [95.0, 150.0].map(number);
    assert_eq!(verdicts.each_ref().map(|v| v.holds), [Holds::Open, Holds::Open]);
    assert_eq!(verdicts.each_ref().map(Verdict::by_means), [Holds::Yes, Holds::Trend]);
    assert_eq!(verdicts.each_ref().map(Verdict::measure), [Some(95.0), Some(150.0)]);
    let bounds = |judged: fn(Option<Figure>) -> Judged| {
        [90.0, 110.0].map(|mean| alone(Some(100.0), judged(Some(found(mean, Some(60.0))))).by_means())
    };
    assert_eq!(bounds(Judged::at_most), [Holds::Yes, Holds::No]);
    assert_eq!(bounds(Judged::at_least), [Holds::No, Holds::Yes]);
    let parts = |means: &[f64]| {
        let parts = means.iter().map(|mean| Part::effect("", around(*mean, 9.0), 0.05));
        alone(None, Judged::parts(parts.collect()))
    };
    let verdicts = [&[1.0, 0.1][..], &[1.0, -1.0], &[-1.0, -1.0, 1.0], &[0.0]].map(parts);
    assert_eq!(verdicts.each_ref().map(Verdict::by_means), [Holds::Yes, Holds::Trend, Holds::No, Holds::No]);
    assert_eq!(verdicts.each_ref().map(Verdict::measure), [1.0, 0.5, 1.0 / 3.0, 0.0].map(Some));
    // An irrelevant difference does not count.
    assert_eq!(parts(&[0.04]).by_means(), Holds::No);
    let near = |mean| alone(None, Judged::parts(vec![Part::within("", around(mean, 9.0), 0.5)])).by_means();
    assert_eq!([-0.4, 0.6].map(near), [Holds::Yes, Holds::No]);
    let nothing = alone(Some(1.0), Judged::unmeasured("no"));
    assert_eq!((nothing.by_means(), nothing.measure()), (Holds::Open, None));
    // If the runs leave no doubt, the two rules agree.
    for mean in [50.0, 91.0, 109.0, 200.0] {
        let judged = Judged::number(Some(found(mean, Some(1e-9))), Tolerance::Mean);
        let verdict =
            alone(Some(100.0), judged.or_at_least(Part::effect("", around(mean - 150.0, 1e-9), 0.0)));
        assert_eq!(verdict.by_means(), verdict.holds, "{mean}");
    }
}

/// One of twenty tests with a probability of 3 % proves nothing: one in twenty would succeed by
/// chance.
#[test]
fn tests_of_a_paper_count_together() {
    let doubtful = around(1.0, 1.9);
    let p = doubtful.and_then(|s| s.p_above(0.0)).expect("eight runs");
    assert!((0.005..0.05).contains(&p), "{p}");
    let claim = |found| (target("x", None, false), Judged::parts(vec![Part::effect("", found, 0.0)]));
    assert_eq!(judge(vec![claim(doubtful)])[0].holds, Holds::Yes);
    let others = std::iter::repeat_with(|| claim(around(0.2, 2.0))).take(19);
    let among = judge([claim(doubtful)].into_iter().chain(others).collect());
    assert_eq!(among[0].holds, Holds::Open);
}

#[test]
fn a_gain_exceeds_only_over_a_scheme_that_is_reproduced() {
    let of = |baseline: f64, gain: Option<Summary>| {
        let base = Judged::number(Some(found(baseline, Some(1.0))), Tolerance::Mean);
        let claims = vec![
            (target("base", Some(100.0), false), base),
            (target("gain", Some(20.0), false), Judged::gain(gain, "base")),
        ];
        let verdict = judge(claims).swap_remove(1);
        (verdict.holds, verdict.exceeded)
    };
    assert_eq!(of(100.0, around(40.0, 1.0)), (Holds::Yes, true));
    assert_eq!(of(150.0, around(40.0, 1.0)), (Holds::Trend, false));
    // The baseline's number is near the printed one, but too uncertain.
    assert_eq!(of(130.0, around(40.0, 1.0)), (Holds::Trend, false));
    assert_eq!(of(150.0, around(21.0, 1.0)), (Holds::Yes, false));
    // More than printed, but within the tolerance.
    assert_eq!(of(100.0, around(24.0, 0.5)), (Holds::Yes, false));
    assert_eq!(of(100.0, around(10.0, 1.0)), (Holds::Trend, false));
    assert_eq!(of(100.0, around(-10.0, 1.0)), (Holds::No, false));
    assert_eq!(of(100.0, runs(&[40.0])), (Holds::Open, false));
}

#[test]
fn ours_never_changes_a_verdict() {
    let judged = || Judged::number(Some(found(150.0, Some(2.0))), Tolerance::Mean);
    let ours = judged().beside(Some(found(100.0, Some(1.0))), Some(found(-33.0, Some(1.0))));
    let (without, with) = (alone(Some(100.0), judged()), alone(Some(100.0), ours));
    assert_eq!((without.holds, with.holds), (Holds::No, Holds::No));
    assert_eq!((without.off(), without.ratio()), (with.off(), with.ratio()));
    assert_eq!((with.record().ours, with.record().ours_above), (Some(100.0), Some(-33.0)));
}

#[test]
fn what_contradicts_itself_is_judged_by_our_reading() {
    let judged = || Judged::number(Some(Figure::computed(9.1)), Tolerance::Own(1e-9));
    let suspect = judge(vec![(target("x", Some(9.1), true), judged())]).swap_remove(0);
    assert_eq!((suspect.holds, suspect.contradicted), (Holds::Yes, true));
    let instead = alone(Some(24.0), judged().instead(9.1, "D5"));
    assert_eq!((instead.holds, instead.contradicted), (Holds::Yes, true));
    assert!(!alone(Some(9.1), judged()).contradicted);
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
    let verdict = |printed: f64, unit: &str, found: f64| Verdict {
        unit: unit.to_owned(),
        ..alone(Some(printed), Judged::number(Some(Figure::computed(found)), Tolerance::Mean))
    };
    assert_eq!(verdict(200.0, "s", 190.0).off().as_deref(), Some("-5.0 %"));
    assert_eq!(verdict(20.0, "%", 23.0).off().as_deref(), Some("+3.0 points"));
    assert_eq!((verdict(0.0, "packets", 2.0).off().as_deref(), verdict(0.0, "", 2.0).ratio()), {
        (Some("+2.0 packets"), None)
    });
}

/// Properties that hold for claims of every kind with random evidence.
mod properties {
    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    use super::*;

    /// A claim with its runs, in a unit of its own.
    #[derive(Clone, Debug)]
    struct Case {
        kind: usize,
        printed: f64,
        /// Means of several quantities by run: the first is the number, the others are parts.
        runs: Vec<Vec<f64>>,
    }

    const KINDS: [&str; 6] = ["number", "number with a trend", "gain", "at most", "at least", "in words"];

    fn cases() -> impl Strategy<Value = Case> {
        let near = prop_oneof![Just(1.0), 0.85..1.15f64, -1.0..3.0f64];
        let apart = prop_oneof![Just(0.0), 0.001..0.05f64, 0.05..1.0f64];
        let quantity = (near, apart, proptest::collection::vec(-1.0..1.0f64, 1..9));
        (0..KINDS.len(), 3.0..1000.0f64, proptest::collection::vec(quantity, 1..5)).prop_map(
            |(kind, printed, quantities)| {
                let runs = quantities.into_iter().map(|(mean, apart, noise)| {
                    noise.into_iter().map(|by| printed * (mean + apart * by)).collect()
                });
                Case { kind, printed, runs: runs.collect() }
            },
        )
    }

    impl Case {
        /// The claim in another unit, in which numbers are `unit` times as large.
        fn judged(&self, unit: f64) -> (Target, Judged) {
            let scaled: Vec<_> = self
                .runs
                .iter()
                .map(|values| runs(&values.iter().map(|value| value * unit).collect::<Vec<_>>()))
                .collect();
            let (number, printed) = (scaled[0], self.printed * unit);
            // How far each exceeds half of the printed number.
            let parts: Vec<Part> = self
                .runs
                .iter()
                .map(|values| {
                    let above: Vec<f64> =
                        values.iter().map(|value| (value - 0.5 * self.printed) * unit).collect();
                    Part::effect("a part", runs(&above), MATTERS * printed)
                })
                .collect();
            let judged = match self.kind {
                0 => Judged::number(number, Tolerance::Own(0.1 * printed)),
                1 => Judged::number(number, Tolerance::Own(0.1 * printed)).or_at_least(parts[0].clone()),
                2 => Judged::gain(number, "base"),
                3 => Judged::at_most(number),
                4 => Judged::at_least(number),
                _ => Judged::parts(parts),
            };
            (target("x", (self.kind < 5).then_some(printed), false), judged)
        }
    }

    fn verdicts(claims: Vec<(Target, Judged)>) -> Vec<Holds> {
        judge(claims).iter().map(|verdict| verdict.holds).collect()
    }

    /// The random data produce every verdict that a rule can give.
    #[test]
    fn every_rule_can_come_to_each_of_its_verdicts() {
        let mut runner = TestRunner::deterministic();
        let mut seen = [[0; 4]; KINDS.len()];
        for _ in 0..4000 {
            let case = cases().new_tree(&mut runner).expect("a case").current();
            let holds = verdicts(vec![case.judged(1.0)])[0];
            let place = Holds::ALL.iter().position(|one| *one == holds).expect("one of all");
            seen[case.kind][place] += 1;
        }
        for (kind, seen) in KINDS.iter().zip(seen) {
            // Without a second scheme there is no trend.
            let has_trend = ["number with a trend", "gain", "in words"].contains(kind);
            for (verdict, number) in Holds::ALL.iter().zip(seen) {
                let can = has_trend || *verdict != Holds::Trend;
                assert_eq!(number > 0, can, "{kind}: {} {number} times", verdict.word());
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Units, the order of claims, and our protocol beside the paper's do not change a verdict.
        #[test]
        fn units_order_and_our_protocol_change_no_verdict(cases in proptest::collection::vec(cases(), 1..6), turn in 0usize..6, baseline in 80.0..120.0f64) {
            let claims = |unit: f64| {
                // The baseline of every gain.
                let base = target("base", Some(100.0 * unit), false);
                let judged = Judged::number(Some(found(baseline * unit, Some(unit))), Tolerance::Own(10.0 * unit));
                let cases = cases.iter().map(|case| case.judged(unit));
                cases.chain([(base, judged)]).collect::<Vec<_>>()
            };
            let wanted = verdicts(claims(1.0));
            prop_assert_eq!(&verdicts(claims(1024.0)), &wanted);
            let mut turned = claims(1.0);
            let by = turn % turned.len();
            turned.rotate_left(by);
            let mut found = verdicts(turned);
            found.rotate_right(by);
            prop_assert_eq!(&found, &wanted);
            let beside = claims(1.0).into_iter().map(|(target, judged)| {
                (target, judged.beside(Some(Figure::computed(1e9)), Some(Figure::computed(-50.0))))
            });
            prop_assert_eq!(verdicts(beside.collect()), wanted);
        }

        /// More tests never cause more successes; a claim without tests is judged by itself.
        #[test]
        fn company_proves_nothing(one in cases(), others in proptest::collection::vec(cases(), 1..6)) {
            let alone = verdicts(vec![one.judged(1.0)])[0];
            let all = std::iter::once(&one).chain(&others).map(|case| case.judged(1.0)).collect();
            let among = verdicts(all)[0];
            prop_assert!(among != Holds::Yes || alone == Holds::Yes, "{alone:?} alone");
            // A claim with several parts may be open alone, and in trend once one part is found to
            // fail.
            let is_number = one.kind < 5;
            prop_assert!(
                !is_number || among != Holds::Trend || [Holds::Yes, Holds::Trend].contains(&alone),
                "{alone:?} alone"
            );
            if [0, 3, 4].contains(&one.kind) {
                prop_assert_eq!(among, alone);
            }
        }

        /// A number is judged equally in both directions, and a larger deviation is never better.
        #[test]
        fn a_number_is_judged_by_how_far_it_is_off(off in 0.0..0.3f64, more in 0.0..0.3f64, half in 0.0..0.2f64) {
            let holds = |off: f64| {
                let judged = Judged::number(Some(found(1.0 + off, Some(half))), Tolerance::Own(0.1));
                alone(Some(1.0), judged).holds
            };
            prop_assert_eq!(holds(off), holds(-off));
            let rank = |holds| [Holds::No, Holds::Open, Holds::Yes].iter().position(|one| *one == holds);
            prop_assert!(rank(holds(off + more)) <= rank(holds(off)));
        }
    }
}
