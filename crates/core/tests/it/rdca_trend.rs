//! Erratum H6: how often the printed trend test and ours report "rises" for steady, rising and
//! falling delays. `docs/reference/rdca-protocol.md` has this table.

use anabranch_core::rdca::{Trend, TrendTest};
use anabranch_testkit::prng::Prng;
use expect_test::expect;

/// Approximately normal noise with a deviation of 5 ms, in microseconds: the sum of twelve uniform
/// random numbers.
fn noise(prng: &mut Prng) -> i32 {
    let sum: i64 = (0..12).map(|_| prng.below(10_001) as i64).sum();
    ((sum - 60_000) / 2) as i32
}

/// The number of decisions of a thousand that report "rises", for delays that change by `slope`
/// microseconds per packet over 16 packets: the windows are independent.
fn fires(test: TrendTest, slope: i32) -> u32 {
    let mut prng = Prng::new(6);
    let windows = 20_000;
    let mut fired = 0;
    for _ in 0..windows {
        let mut trend = Trend::new();
        let base = prng.below(1 << 31) as i32 - (1 << 30);
        let mut last = false;
        for i in 0..17 {
            last = trend.observe(base + i * slope + noise(&mut prng), test);
        }
        fired += u32::from(last);
    }
    (fired * 1000 + windows / 2) / windows
}

#[test]
fn h6_detection_and_false_alarms() {
    let tests = [
        ("variance rose (as printed)", TrendTest::VarianceRose),
        ("halves, k = 1", TrendTest::Halves { k_percent: 100 }),
        ("halves, k = 2 (errata)", TrendTest::Halves { k_percent: 200 }),
        ("halves, k = 3 (ours)", TrendTest::Halves { k_percent: 300 }),
    ];
    let mut table = String::from("| test | steady | +0.5 ms | +1 ms | +2 ms | -1 ms |\n");
    for (name, test) in tests {
        let share = |slope| f64::from(fires(test, slope)) / 1000.0;
        let shares = [0, 500, 1000, 2000, -1000].map(share);
        let cells: String = shares.iter().map(|share| format!(" {share:.3} |")).collect();
        table += &format!("| {name} |{cells}\n");
    }
    expect![[r#"
        | test | steady | +0.5 ms | +1 ms | +2 ms | -1 ms |
        | variance rose (as printed) | 0.499 | 0.495 | 0.496 | 0.496 | 0.505 |
        | halves, k = 1 | 0.168 | 0.721 | 0.982 | 1.000 | 0.000 |
        | halves, k = 2 (errata) | 0.033 | 0.349 | 0.829 | 1.000 | 0.000 |
        | halves, k = 3 (ours) | 0.005 | 0.106 | 0.477 | 0.969 | 0.000 |
    "#]]
    .assert_eq(&table);
}

#[test]
fn h18_no_decision_before_sixteen() {
    for test in [TrendTest::VarianceRose, TrendTest::Halves { k_percent: 100 }] {
        let mut trend = Trend::new();
        assert!((0..15).all(|i| !trend.observe(i * i * 1000, test)));
    }
    let mut trend = Trend::new();
    let fired: Vec<bool> =
        (0..40).map(|i| trend.observe(i * 100, TrendTest::Halves { k_percent: 300 })).collect();
    assert_eq!(fired.iter().position(|fired| *fired), Some(15));
    trend.clear();
    assert!(!trend.observe(1_000_000, TrendTest::Halves { k_percent: 300 }));
}

#[test]
fn h17_an_offset_of_the_clocks_cancels() {
    for test in [TrendTest::VarianceRose, TrendTest::Halves { k_percent: 200 }] {
        let (mut prng, mut near, mut far) = (Prng::new(4), Trend::new(), Trend::new());
        for i in 0..200 {
            let trip = 50_000 + i * 300 + noise(&mut prng);
            assert_eq!(near.observe(trip, test), far.observe(trip - 2_000_000_000, test));
        }
    }
}

#[test]
fn equal_delays_do_not_rise() {
    let mut trend = Trend::new();
    assert!((0..100).all(|_| !trend.observe(i32::MAX, TrendTest::Halves { k_percent: 0 })));
    let mut trend = Trend::new();
    assert!((0..100).all(|_| !trend.observe(i32::MIN, TrendTest::VarianceRose)));
}
