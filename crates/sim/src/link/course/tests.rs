use proptest::prelude::*;

use super::*;
use crate::csv::FileError;

fn seconds(s: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(s)
}

fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

fn opportunities(text: &str) -> Opportunities {
    Opportunities::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn opportunities_begin_anew_after_the_last() {
    let course = opportunities("# cellular\n0\r\n3\n3\n\n10\n");
    let times: Vec<u64> = (0..9).map(|number| course.time(number).as_nanos() / 1_000_000).collect();
    assert_eq!(times, [0, 3, 3, 10, 10, 13, 13, 20, 20]);
    for now in 0..40 {
        let passed = (0..40).filter(|number| course.time(*number) <= ms(now)).count() as u64;
        assert_eq!(course.until(ms(now)), passed, "{now} ms");
    }
    // 4 packets of 12,000 bits every 10 ms.
    assert_eq!(course.mean_rate(), 4_800_000);
    let rate = RateCourse::Opportunities(Arc::new(course));
    assert_eq!(rate.capacity(seconds(100.0)), 1500 * (4 * 10_000 + 1));
}

#[test]
fn steps_hold_or_begin_anew() {
    let text = "time,rate\n0, 1 Mbit/s\n1.5,\"2000000\"\n2500 ms,0\n3,8\n";
    let held = Steps::rates(text, false).unwrap();
    let values = |steps: &Steps| [0.0, 1.4, 1.5, 2.5, 3.0, 3.1, 4.5, 60.0].map(|s| steps.value(seconds(s)));
    assert_eq!(values(&held), [1_000_000, 1_000_000, 2_000_000, 0, 8, 8, 8, 8]);
    let again = Steps::rates(text, true).unwrap();
    assert_eq!(
        values(&again),
        [1_000_000, 1_000_000, 2_000_000, 0, 1_000_000, 1_000_000, 2_000_000, 1_000_000]
    );
    assert_eq!(again.mean(), 3_500_000 / 3);
    assert_eq!(RateCourse::Steps(Arc::new(again)).capacity(seconds(4.5)), (3_500_000 + 1_500_000) / 8);
    let delays = Steps::delays("0,20 ms\n10,0.05\n", false).unwrap();
    assert_eq!([9.9, 10.0].map(|s| delays.value(seconds(s))), [20_000_000, 50_000_000]);
}

#[test]
fn numbers_may_have_exponents() {
    let plain = Steps::rates("0,1000000\n0.0001,250000\n1000,1\n", false).unwrap();
    assert_eq!(Steps::rates("0e0,1e6\n1e-04,2.5E+5\n1e3,1\n", false).unwrap(), plain);
    let delays = Steps::delays("0,0.00002\n5,0.02\n", false).unwrap();
    assert_eq!(Steps::delays("0,2e-05\n5,2e-2\n", false).unwrap(), delays);
    for wrong in ["0,1e\n", "0,e6\n", "0,-1e6\n", "0,1e400\n", "1e-0x,1\n"] {
        assert!(Steps::rates(wrong, false).is_err(), "{wrong}");
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_line() {
    let mahimahi = |text: &str| Opportunities::parse(text).map(drop);
    let rates = |text: &str| Steps::rates(text, false).map(drop);
    let cases: [(Result<(), FileError>, Option<usize>, &str); 20] = [
        (mahimahi(""), None, "the file has no opportunity later than 0 ms"),
        (mahimahi("0\n0\n"), None, "the file has no opportunity later than 0 ms"),
        (mahimahi("1\n# two\n2.5\n"), Some(3), "expected a whole number of milliseconds, found `2.5`"),
        (mahimahi("1\n-2\n"), Some(2), "expected a whole number of milliseconds, found `-2`"),
        (mahimahi("5\n\n4"), Some(3), "4 ms is before 5 ms, the opportunity on the line before"),
        (
            mahimahi("1\n99999999999\n"),
            Some(2),
            "expected a whole number of milliseconds, found `99999999999`",
        ),
        (rates(""), None, "the file has no row with a time and a rate"),
        (rates("time,rate\n"), None, "the file has no row with a time and a rate"),
        (rates("0\n"), Some(1), "expected `time,rate`, found `0`"),
        (rates("0,1,2\n"), Some(1), "expected `time,rate`, found `0,1,2`"),
        (
            rates("time,delay\n0,1\n"),
            Some(1),
            "`time` does not begin with a number; expected a span of time such as \"25 ms\"",
        ),
        (rates("1,5\n"), Some(1), "the first row is at 1, and a run begins at 0"),
        (rates("0,5\n2,6\n2,7\n"), Some(3), "2 is not later than the time of the row before"),
        (
            rates("0,5 furlongs\n"),
            Some(1),
            "unknown unit `furlongs`, expected one of `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s`",
        ),
        (rates("0,-1\n"), Some(1), "`-1` is negative"),
        (rates("0,0\n5,0\n"), None, "no packet can ever leave: all rates are 0"),
        (
            rates("0,9\n5,0 bit/s\n"),
            None,
            "no packet can leave after the last row: the last rate stays, and it is 0",
        ),
        (Steps::rates("0,5\n", true).map(drop), None, "one row cannot repeat"),
        (Steps::rates("0,0\n1,0\n2,7\n", true).map(drop), None, "no packet can ever leave: all rates are 0"),
        (Steps::delays("0,9999999999\n", false).map(drop), Some(1), "the delay `9999999999` is too long"),
    ];
    for (found, line, message) in cases {
        let error = found.expect_err(message);
        assert_eq!((error.line, &*error.message), (line, message));
        assert!(!error.hint.is_empty());
    }
    let long = format!("{}\n", "1,".repeat(1000));
    assert!(rates(&long).unwrap_err().message.len() < 120);
}

fn steps() -> impl Strategy<Value = (Steps, Vec<(u64, u64)>, bool)> {
    let step = (1..3_000_000u64, prop_oneof![1 => Just(0), 4 => 1..100_000_000u64]);
    (proptest::collection::vec(step, 2..12), any::<bool>()).prop_filter_map("a rate", |(gaps, repeats)| {
        let mut at = 0;
        let mut rows: Vec<(u64, u64)> = Vec::new();
        for (gap, value) in gaps {
            rows.push((at, value));
            at += gap;
        }
        let used = if repeats { &rows[..rows.len() - 1] } else { &rows[rows.len() - 1..] };
        used.iter().any(|(_, value)| *value > 0).then(|| (Steps::new(rows.clone(), repeats), rows, repeats))
    })
}

proptest! {
    /// Bytes leave at the rate of their time: the integral of the rate over a transmission equals
    /// the bits of the packet.
    #[test]
    fn a_packet_takes_as_long_as_its_bits(
        (steps, rows, repeats) in steps(),
        start in 0..40_000_000u64,
        octets in 1..9000u32,
    ) {
        let start = Instant::from_nanos(start);
        let bits = u128::from(octets) * 8_000_000_000;
        let end = steps.after(start, bits);
        prop_assert!(end > start);
        prop_assert!(steps.sum(end) - steps.sum(start) >= bits);
        prop_assert!(steps.sum(Instant::from_nanos(end.as_nanos() - 1)) - steps.sum(start) < bits);
        // The integral equals the sum over single steps.
        let round = rows[rows.len() - 1].0;
        let (mut sum, mut now) = (0u128, 0);
        while now < start.as_nanos() {
            let within = if repeats { now % round } else { now };
            let i = rows.iter().rposition(|(at, _)| *at <= within).unwrap();
            let until = rows.get(i + 1).map_or(u64::MAX, |(at, _)| now - within + at).min(start.as_nanos());
            sum += u128::from(until - now) * u128::from(rows[i].1);
            now = until;
        }
        prop_assert_eq!(steps.sum(start), sum);
    }
}
