//! Tests of the schedule against the tree that it replaces, and the numbers of the errata.

use proptest::prelude::*;
use std::vec::Vec;

use super::*;

/// The example of M16. The errata do not give the window and the time per packet; these values
/// reproduce their numbers.
fn example() -> Path {
    Path {
        rtt: 0.5,
        t_first: 0.3,
        t_next: 0.04,
        rto: 20.0,
        loss: 0.0,
        cwnd: 4,
        ssthresh: 16,
        w_min: 1,
        w_max: 20,
    }
}

fn count(path: &Path, time: f64, reading: Reading) -> u32 {
    packets(path, time, reading).expect("a legal path").count
}

fn expect(path: &Path, time: f64) -> f64 {
    packets(path, time, Reading::default()).expect("a legal path").expected
}

/// Section VII as a tree, independent of the code above: corrected, or as printed with true
/// binomials.
fn tree(path: &Path, w: u32, ssthresh: u32, time: f64, printed: bool) -> f64 {
    let Path { rtt, t_first, t_next, rto, loss, .. } = *path;
    let slack = 1e-11;
    if time < t_first - slack {
        return 0.0;
    }
    let deliver = |m: u32| t_first + (f64::from(m) - 1.0) * t_next;
    let all = deliver(w);
    if time < all + rtt / 2.0 + t_first - slack {
        let in_time = 1 + ((time - t_first) / t_next + 1e-9).floor() as u32;
        return f64::from(if printed { w } else { w.min(in_time) });
    }
    let p = |m: u32| losses(m, w, loss, Binomial::Choose).expect("legal");
    let reparable = 1..=w.saturating_sub(3);
    let arrive = |m: u32| if printed { 1.0 } else { (1.0 - loss).powi(m as i32) };
    let repaired: f64 = reparable.clone().map(|m| p(m) * arrive(m)).sum();
    let repair: f64 = reparable.map(|m| p(m) * arrive(m) * deliver(m)).sum();
    let timeout: f64 = if printed { (w.saturating_sub(2)..=w).map(p).sum() } else { 1.0 - p(0) - repaired };
    let ack = if printed { 0.0 } else { rtt / 2.0 };
    let half = if printed { w / 2 } else { (w / 2).max(1) };
    let next = match (printed, w < ssthresh) {
        (true, true) => 2 * w,
        (true, false) => w + 1,
        (false, true) => (2 * w).min(ssthresh).min(path.w_max),
        (false, false) => (w + 1).min(path.w_max),
    };
    let mut sum = f64::from(w) + p(0) * tree(path, next, ssthresh, time - all - ack, printed);
    if repaired > 0.0 {
        let again = if printed { repair } else { repair / repaired + rtt / 2.0 };
        sum += repaired * tree(path, half, half, time - all - ack - again, printed);
    }
    let case_four = if printed { rto + rtt / 2.0 } else { all + rto + t_first };
    if time >= case_four - slack {
        sum += timeout * tree(path, path.w_min, half, time - all - rto, printed);
    }
    sum
}

#[test]
fn m3_the_binomial_as_printed_is_never_without_loss() {
    let p = |binomial| losses(0, 8, 0.1, binomial).expect("legal");
    assert!((p(Binomial::Choose) - 0.9_f64.powi(8)).abs() < 1e-15);
    assert_eq!(p(Binomial::Printed), 0.0);
    let half = losses(2, 4, 0.5, Binomial::Choose).expect("legal");
    assert!((half - 6.0 / 16.0).abs() < 1e-15);
}

#[test]
fn m16_rounds_cost_their_acknowledgement() {
    let printed = Reading { round_time: RoundTime::Printed, ..Reading::default() };
    assert_eq!(count(&example(), 4.0, Reading::default()), 45);
    assert_eq!(count(&example(), 4.0, printed), 63);
}

#[test]
fn m17_at_the_limit_of_case_two_one_packet_arrives() {
    let path = Path { cwnd: 8, ..example() };
    let printed = Reading { case_two: CaseTwo::Window, ..Reading::default() };
    for (time, corrected, as_printed) in [(0.29, 0, 0), (0.3, 1, 8), (0.34, 2, 8), (0.5, 6, 8), (0.9, 8, 8)] {
        assert_eq!(count(&path, time, Reading::default()), corrected, "{time} s");
        assert_eq!(count(&path, time, printed), as_printed, "{time} s");
    }
}

#[test]
fn m18_fast_retransmit_can_fail() {
    let printed = Reading { fast_retransmit: FastRetransmit::Printed, ..Reading::default() };
    let of = |reading| transitions(8, 0.2, reading).expect("legal");
    let (corrected, as_printed) = (of(Reading::default()), of(printed));
    assert!(corrected.fast_retransmit < as_printed.fast_retransmit);
    // The sum of section IV computed directly.
    let p = |m| losses(m, 8, 0.2, Binomial::Choose).expect("legal");
    let lost_again: f64 = (1..=5).map(|m| p(m) * (1.0 - 0.8_f64.powi(m as i32))).sum();
    let timeout = lost_again + p(6) + p(7) + p(8);
    assert!((corrected.timeout - timeout).abs() < 1e-14);
    assert!((as_printed.timeout - (p(6) + p(7) + p(8))).abs() < 1e-14);

    // Given success, the time is that of the retransmitted packets: more than 1, less than the
    // window.
    let lossy = Path { loss: 0.2, cwnd: 8, ..example() };
    let unconditional = Reading { recovery: Recovery::Unconditional, ..Reading::default() };
    let sum = |reading| -> f64 {
        (10..60).map(|t| packets(&lossy, 0.1 * f64::from(t), reading).expect("legal").expected).sum()
    };
    assert!((sum(unconditional) / sum(Reading::default()) - 1.0).abs() > 0.001);
}

#[test]
fn m19_small_windows_are_never_lost_without_loss() {
    let printed = Reading { timeout_sum: TimeoutSum::Printed, ..Reading::default() };
    for w in 1..=3 {
        let sum = |reading| {
            let t = transitions(w, 0.1, reading).expect("legal");
            assert_eq!(t.fast_retransmit, 0.0);
            t.no_loss + t.timeout
        };
        assert!((sum(Reading::default()) - 1.0).abs() < 1e-15);
        assert_eq!(sum(printed) > 1.5, w <= 2, "{w} packets: {}", sum(printed));
    }
}

#[test]
fn m20_a_timeout_is_waited_for_where_it_leaves_time_for_a_packet() {
    let path = Path { loss: 0.5, cwnd: 2, rto: 1.0, ..example() };
    let printed = Reading { timeout_case: TimeoutCase::Printed, ..Reading::default() };
    // T^2 + RTO + T^1 = 1.64; RTO + RTT/2 = 1.25.
    let (before, after) = (expect(&path, 1.63), expect(&path, 1.64));
    assert!(after > before + 0.5, "{before} {after}");
    // The branch that the printed limit admits has no time left: case 1.
    assert_eq!(packets(&path, 1.3, printed).expect("legal").expected, expect(&path, 1.3));
}

#[test]
fn m21_windows_stop_at_the_threshold_and_at_their_limit() {
    let path = Path { cwnd: 10, ssthresh: 16, w_max: 17, t_next: 0.0, ..example() };
    let printed = Reading { growth: Growth::Unlimited, ..Reading::default() };
    // Rounds of 0.55 s: 10, 16, 17, 17 and the last one, against 10, 20, 21, 22, 23.
    assert_eq!(count(&path, 2.6, Reading::default()), 10 + 16 + 17 + 17 + 17);
    assert_eq!(count(&path, 2.6, printed), 10 + 20 + 21 + 22 + 23);
}

#[test]
fn m29_half_of_one_packet() {
    let printed = Reading { halving: Halving::Floor, ..Reading::default() };
    let path = Path { loss: 0.3, cwnd: 1, rto: 0.5, ..example() };
    // A threshold of 0 or 1 has no effect on the window: both mean congestion avoidance from w_min
    // on.
    let of = |reading| packets(&path, 5.0, reading).expect("legal").expected;
    assert!((of(printed) - of(Reading::default())).abs() < 1e-9);
}

#[test]
fn the_page_to_the_letter_gives_a_number() {
    let path = Path { loss: 0.1, ..example() };
    let letter = packets(&path, 6.0, Reading::printed()).expect("legal");
    let meant = packets(&path, 6.0, Reading::computed()).expect("legal");
    assert!(letter.expected.is_finite() && meant.expected.is_finite());
    assert!(meant.expected > 1.2 * expect(&path, 6.0), "{meant:?}");
}

#[test]
fn the_states_stand_for_the_tree() {
    for (printed, reading) in [(false, Reading::default()), (true, Reading::computed())] {
        for loss in [0.0, 0.01, 0.1, 0.3, 0.6] {
            for time in [0.2, 0.3, 0.95, 1.5, 2.3, 3.1, 4.0, 5.2] {
                for (cwnd, rto) in [(1, 0.7), (4, 1.3), (8, 20.0), (19, 2.0)] {
                    let path = Path { loss, cwnd, rto, w_min: 2, ..example() };
                    let whole = tree(&path, cwnd, path.ssthresh, time, printed);
                    let states = packets(&path, time, reading).expect("legal").expected;
                    let close = 0.01 * whole + 1e-9;
                    assert!((states - whole).abs() <= close, "{path:?} {time} {printed}: {states} {whole}");
                }
            }
        }
    }
}

#[test]
fn probabilities_add_up_to_one_for_every_window() {
    for w in 1..=MAX_WINDOW {
        for loss in [0.0, 1e-12, 1e-3, 0.1, 0.5, 0.9, 0.999] {
            let t = transitions(w, loss, Reading::default()).expect("legal");
            let all = [t.no_loss, t.fast_retransmit, t.timeout];
            assert!(all.iter().all(|p| (0.0..=1.0).contains(p)), "{w} {loss}: {all:?}");
            assert!((all.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{w} {loss}: {all:?}");
            assert!((1.0..=f64::from(w)).contains(&t.repeated), "{w} {loss}: {t:?}");
        }
    }
    for (w, loss) in [(17, 0.3), (100, 0.02), (500, 0.4)] {
        let sum: f64 = (0..=w).map(|x| losses(x, w, loss, Binomial::Choose).expect("legal")).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{w} {loss}: {sum}");
    }
}

/// The closed forms for long windows continue the sums for short ones.
#[test]
fn both_ways_to_add_up_agree() {
    for w in [17, 20, 40] {
        for loss in [1e-4, 0.01, 0.1, 0.5, 0.8] {
            let t = transitions(w, loss, Reading::default()).expect("legal");
            let terms: Vec<(f64, f64)> = (1..=w - 3)
                .map(|m| {
                    let p = losses(m, w, loss, Binomial::Choose).expect("legal");
                    (p * (1.0 - loss).powi(m as i32), f64::from(m))
                })
                .collect();
            let repaired: f64 = terms.iter().map(|(q, _)| q).sum();
            let packets: f64 = terms.iter().map(|(q, m)| q * m).sum();
            assert!((t.fast_retransmit - repaired).abs() < 1e-12);
            assert!((t.repeated - packets / repaired).abs() < 1e-6, "{w} {loss}");
        }
    }
}

#[test]
fn each_path_gets_what_it_delivers_in_half_the_next_ones_round_trip() {
    let slow = Path { rtt: 8.0, t_first: 4.2, cwnd: 7, ..example() };
    let planned = schedule(&[example(), slow], Reading::default()).expect("legal");
    assert_eq!(planned.iter().map(|p| p.count).collect::<Vec<_>>(), [45, 7]);
    assert_eq!(schedule(&[], Reading::default()), Ok(Vec::new()));
    assert_eq!(schedule(&[slow, example()], Reading::default()), Err(ScheduleError::Order { path: 2 }));
}

#[test]
fn what_is_no_path_is_refused() {
    type Change = fn(&mut Path);
    let changes: [(Change, &str); 9] = [
        (|p| p.rtt = 0.0, "rtt"),
        (|p| p.t_first = f64::NAN, "t_first"),
        (|p| p.t_next = -1.0, "t_next"),
        (|p| p.rto = f64::INFINITY, "rto"),
        (|p| p.loss = 1.0, "loss"),
        (|p| p.cwnd = 0, "cwnd"),
        (|p| p.w_min = 21, "w_min"),
        (|p| p.w_min = 0, "w_min"),
        (|p| p.w_max = MAX_WINDOW + 1, "w_max"),
    ];
    for (change, field) in changes {
        let mut path = example();
        change(&mut path);
        let error = packets(&path, 1.0, Reading::default()).expect_err(field);
        assert!(std::format!("{error}").starts_with(field), "{error}");
    }
    assert!(packets(&example(), f64::NAN, Reading::default()).is_err());
    assert!(packets(&example(), -1.0, Reading::default()).is_err());
    assert!(transitions(0, 0.1, Reading::default()).is_err());
    assert!(losses(3, 2, 0.1, Binomial::Choose).is_err());
}

#[test]
fn a_long_time_stays_bounded_and_near_the_rate() {
    // More than a thousand rounds of 20 packets of 1 s each, with occasional losses.
    let path = Path { t_next: 0.45 / 19.0, loss: 0.0, ..example() };
    let rate = expect(&path, 2000.0) / 2000.0;
    assert!((rate / 20.0 - 1.0).abs() < 0.02, "{rate} packets per second");
    let lossy = Path { loss: 0.02, ..path };
    let slower = expect(&lossy, 2000.0) / 2000.0;
    assert!(slower > 1.0 && slower < rate, "{slower} packets per second");
    // Forty rounds with a loss in every third; 331.69 with 64 times the slices and every state.
    let forty = expect(&Path { loss: 0.02, cwnd: 2, ..example() }, 40.0);
    assert!((forty / 331.69 - 1.0).abs() < 0.01, "{forty} packets");
    // Four hundred rounds, for which the number of states does not suffice.
    let many = expect(&Path { loss: 0.05, cwnd: 2, ..example() }, 400.0);
    assert!((many / 1213.48 - 1.0).abs() < 0.02, "{many} packets");
    assert!(expect(&path, MAX_TIME).is_finite());
    assert!(expect(&Path { rtt: 1e-9, t_first: 1e-9, t_next: 0.0, ..path }, MAX_TIME).is_finite());
}

#[test]
fn windows_and_timeouts_follow_the_hops() {
    let adaptation = Adaptation::default();
    let of = |hops| {
        let limits = adaptation.limits(hops);
        (limits.w_min, limits.w_max, limits.rto.as_nanos() / 1_000_000_000, limits.update_every)
    };
    assert_eq!([0, 1, 2].map(of), [(1, 20, 20, 1), (1, 20, 20, 1), (2, 18, 40, 2)]);
    assert_eq!([3, 4, 5].map(of), [(3, 15, 60, 3), (4, 13, 80, 4), (5, 10, 80, 5)]);
    assert_eq!(of(u32::MAX), (5, 10, 80, 5));
    let odd = Adaptation { far: 0, w_min: (0, 0), w_max: (0, 0), update_every: (0, 0), ..adaptation };
    let limits = odd.limits(3);
    assert_eq!((limits.w_min, limits.w_max, limits.update_every), (1, 1, 1));
}

proptest! {
    #[test]
    fn more_time_never_means_fewer_packets_without_loss(
        (t, more) in (0.0..20.0_f64, 0.0..5.0_f64),
        cwnd in 1..30_u32,
        t_next in 0.0..0.3_f64,
    ) {
        let path = Path { cwnd, t_next, ..example() };
        prop_assert!(expect(&path, t) <= expect(&path, t + more) + 1e-9);
    }

    #[test]
    fn losses_cost_packets(loss in 0.0..0.4_f64, more in 0.05..0.5_f64, time in 0.3..10.0_f64) {
        let few = Path { loss, ..example() };
        let many = Path { loss: loss + more, ..example() };
        prop_assert!(expect(&many, time) <= expect(&few, time) * 1.01 + 1e-9);
    }

    #[test]
    fn any_legal_path_has_a_finite_answer(
        (rtt, t_first, t_next, rto) in (1e-9..1e3_f64, 1e-9..1e3_f64, 0.0..1e3_f64, 1e-9..1e3_f64),
        loss in 0.0..1.0_f64,
        (cwnd, ssthresh) in (1..=MAX_WINDOW, any::<u32>()),
        (w_min, wider) in (1..40_u32, 0..40_u32),
        time in 0.0..1e4_f64,
    ) {
        let path = Path { rtt, t_first, t_next, rto, loss, cwnd, ssthresh, w_min, w_max: w_min + wider };
        for reading in [Reading::default(), Reading::computed(), Reading::printed()] {
            let planned = packets(&path, time, reading).expect("a legal path");
            prop_assert!(planned.expected.is_finite() && planned.expected >= 0.0);
            prop_assert_eq!(planned.count >= 1, time >= t_first);
        }
    }
}
