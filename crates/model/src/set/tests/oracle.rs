//! Compares equation (10) with a sender simulated window by window, and the striping with
//! exhaustive search.

use super::super::path::{Lane, receive_window};
use super::super::striping::{Stripe, dynamic};
use super::super::windows::Windows;
use super::super::*;
use super::{paper, paper_path};

/// Pseudo-random numbers, equal in every run (xorshift64*).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// A gateway that sends a share window by window, simulated without the model's code. A window
/// begins when the previous one is sent and the ACK of its first `s` segments has arrived.
fn simulated(path: &Path, window: &Window, receive: f64, segments: u64) -> f64 {
    let s = f64::from(window.segments_per_ack);
    let segment = 8.0 * f64::from(path.wireless_mss + path.wireless_overhead) / path.wireless_rate;
    let mut clock = 8.0 * f64::from(path.wired_mss + path.wired_overhead) / path.wired_rate;
    clock += path.wired_rtt / 2.0 + path.processing;
    let threshold = window.ssthresh.min(window.max);
    let (mut slow_start, mut cwnd) = (window.initial < threshold, window.initial);
    let mut left = segments as f64;
    loop {
        let size = cwnd.min(receive);
        if left <= size + 1e-6 {
            return clock + left * segment + path.wireless_rtt / 2.0;
        }
        left -= size;
        clock += f64::max(size * segment, s * segment + path.wireless_rtt);
        cwnd = if slow_start { cwnd * (1.0 + 1.0 / s) } else { cwnd + 1.0 / s };
        if slow_start && cwnd >= threshold * (1.0 - 1e-9) {
            (slow_start, cwnd) = (false, threshold);
        }
        cwnd = cwnd.min(window.max);
    }
}

fn random_path(numbers: &mut Numbers) -> Path {
    Path {
        wired_mss: numbers.pick(&[536, 1220, 1296, 1460]),
        wireless_mss: numbers.pick(&[64, 81, 102]),
        wireless_overhead: numbers.pick(&[0, 21, 46]),
        processing: numbers.pick(&[0.0, 0.001, 0.02]),
        ..Path::new(
            0.001 * (1 + numbers.below(50)) as f64,
            0.001 * (1 + numbers.below(250)) as f64,
            1e3 * (20 + numbers.below(1000)) as f64,
        )
    }
}

fn random_window(numbers: &mut Numbers) -> Window {
    Window {
        initial: numbers.pick(&[1.0, 2.0, 3.0, 10.0]),
        ssthresh: numbers.pick(&[10.0, 16.0, 21.5, f64::INFINITY]),
        max: numbers.pick(&[10.0, 32.0, 64.0, 1000.0]),
        segments_per_ack: numbers.pick(&[1, 2, 3]),
    }
}

#[test]
fn equation_10_equals_a_window_by_window_simulation() {
    let mut numbers = Numbers(7);
    for case in 0..5_000 {
        let path = random_path(&mut numbers);
        let mut transfer = Transfer::new(1 + numbers.below(400_000), vec![path]);
        transfer.window = random_window(&mut numbers);
        transfer.node_buffer = numbers.pick(&[None, Some(100.0), Some(500.0), Some(2_000.0), Some(64_000.0)]);
        transfer.reading.wired_stage = WiredStage::Ignored;
        let receive = receive_window(&transfer, &path, 1);
        let answer = latency(&transfer, 1).expect("legal").paths[0];
        let expected = simulated(&path, &transfer.window, receive, answer.wireless_segments);
        let error = (answer.parts.total() - expected).abs() / expected;
        assert!(error < 1e-9, "case {case}: {} against {expected} s, {transfer:?}", answer.parts.total());
    }
}

/// The smallest finish time over all divisions of `segments` among the stripes, by exhaustive
/// search.
fn exhaustive(stripes: &[Stripe], segments: u64, so_far: f64) -> f64 {
    let Some((first, rest)) = stripes.split_first() else {
        return if segments == 0 { so_far } else { f64::INFINITY };
    };
    let ends = |count| if count == 0 { so_far } else { so_far.max(first.finish(count)) };
    (0..=segments).map(|count| exhaustive(rest, segments - count, ends(count))).fold(f64::INFINITY, f64::min)
}

#[test]
fn dynamic_striping_is_optimal() {
    let mut numbers = Numbers(11);
    for case in 0..300 {
        let mut transfer = Transfer::new(81 * (1 + numbers.below(30)), vec![]);
        transfer.gateways = (0..3).map(|_| Path { wireless_mss: 81, ..random_path(&mut numbers) }).collect();
        transfer.window = random_window(&mut numbers);
        let stripe = |(i, path)| Stripe {
            start: 0.3 * i as f64,
            mss: 81,
            least: 0,
            lane: Lane::new(&transfer, path, 3).expect("no zero window"),
        };
        let stripes: Vec<Stripe> = transfer.gateways.iter().enumerate().map(stripe).collect();
        let counts = dynamic(transfer.octets, &stripes);
        assert_eq!(
            counts.iter().sum::<u64>() * 81,
            transfer.octets,
            "case {case}: a wrong number of segments"
        );
        let carrying = stripes.iter().zip(&counts).filter(|(_, count)| **count > 0);
        let finish = carrying.map(|(stripe, &count)| stripe.finish(count)).fold(0.0, f64::max);
        let best = exhaustive(&stripes, transfer.octets / 81, 0.0);
        assert!(finish <= best * (1.0 + 1e-12), "case {case}: {finish} against {best} s for {counts:?}");
    }
}

#[test]
fn a_further_gateway_never_hurts_while_the_buffer_is_large() {
    let mut numbers = Numbers(13);
    for _ in 0..200 {
        let gateways = (0..4).map(|_| random_path(&mut numbers)).collect();
        let transfer = Transfer::new(numbers.below(200_000), gateways);
        let best = best_gateways(&transfer).expect("legal");
        let falls = best.options.windows(2).all(|pair| pair[1].total <= pair[0].total * (1.0 + 1e-9));
        assert!(falls, "{:?}", best.options.iter().map(|option| option.total).collect::<Vec<_>>());
    }
}

#[test]
fn every_octet_is_carried() {
    let mut numbers = Numbers(17);
    for _ in 0..500 {
        let gateways: Vec<Path> = (0..=numbers.below(4)).map(|_| random_path(&mut numbers)).collect();
        let transfer = Transfer::new(numbers.below(300_000), gateways);
        for striping in [Striping::Dynamic, Striping::Equal] {
            let transfer = Transfer { striping, ..transfer.clone() };
            let answer = latency(&transfer, transfer.gateways.len()).expect("legal");
            let octets = |(path, result): (&Path, &total::PathLatency)| {
                u64::from(path.wireless_mss) * result.wireless_segments
            };
            let carried: u64 = transfer.gateways.iter().zip(&answer.paths).map(octets).sum();
            assert!(carried >= transfer.octets, "{carried} of {}", transfer.octets);
            assert!(carried < transfer.octets + 102 * transfer.gateways.len() as u64);
        }
    }
}

#[test]
fn a_useless_gateway_is_not_counted_as_best() {
    let mut transfer = paper(5000, 2);
    transfer.gateways[1].wired_rtt = 10.0;
    let best = best_gateways(&transfer).expect("legal");
    assert_eq!(best.gateways, 1);
    assert_eq!(best.options[1].paths[1].wireless_segments, 0);
    assert_eq!(best.latency().total, best.options[1].total);
}

#[test]
fn a_large_file_costs_no_more_than_a_small_one() {
    // The tail of equal windows is computed in closed form: 10 GB through a window of one segment
    // is fast.
    let transfer = Transfer { node_buffer: Some(81.0), ..paper(10_000_000_000, 3) };
    let answer = latency(&transfer, 3).expect("legal");
    assert!(answer.total > 1e10 * 8.0 / (3.0 * paper_path().wireless_rate));
}

/// When a relay that serves each segment in `next` seconds, in order of arrival, has finished. The
/// sender hands it whole windows (1, 2, 4, ... up to `max`) at `time` seconds per segment.
fn tandem(segments: u64, max: u64, time: f64, rtt: f64, next: f64) -> f64 {
    let (mut clock, mut free, mut window, mut sent) = (0.0, 0.0_f64, 1, 0);
    while sent < segments {
        let begin = clock;
        for _ in 0..window.min(segments - sent) {
            clock += time;
            free = free.max(clock) + next;
        }
        sent += window;
        window = (2 * window).min(max);
        clock = clock.max(begin + time + rtt);
    }
    free
}

#[test]
fn the_wired_stage_equals_two_queues_in_a_row() {
    let mut numbers = Numbers(19);
    for case in 0..5_000 {
        let max = numbers.pick(&[1, 4, 16, 64]);
        let (time, next) = (0.001 * (1 + numbers.below(20)) as f64, 0.001 * (1 + numbers.below(20)) as f64);
        let (segments, rtt) = (1 + numbers.below(500), 0.001 * numbers.below(300) as f64);
        let window = Window { max: max as f64, segments_per_ack: 1, ..Window::default() };
        let windows =
            Windows::new(window, f64::INFINITY, AvoidanceIndex::SlowStartWindows, Growth::RealNumbers);
        let answer = windows.relayed(segments, time, time + rtt, next);
        let expected = tandem(segments, max, time, rtt, next);
        assert!((answer - expected).abs() < 1e-9 * expected, "case {case}: {answer} against {expected} s");
    }
}
