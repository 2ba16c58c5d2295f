//! Every number that the errata give for the model, and the effect of every reading.

use super::super::background::{Queue, processing_time, queued_per_gateway, queueing_time, utilisation};
use super::super::establishment::Establishment;
use super::super::path::{Lane, wired_window};
use super::super::windows::Windows;
use super::super::*;
use super::{paper, paper_path, rounds_to};

fn total(transfer: &Transfer) -> f64 {
    latency(transfer, transfer.gateways.len()).expect("legal parameters").total
}

fn totals(transfer: &Transfer) -> Vec<f64> {
    best_gateways(transfer).expect("legal parameters").options.iter().map(|option| option.total).collect()
}

/// 62 segments over one path, which the errata do not specify. A difference of 0.5 s needs ten
/// stalls of 50 ms (K = 11), which s = 2, W_0 = 1 and W_sst = 8 yield; 0.566 s then requires 550
/// kbit/s at 81 bytes.
fn ten_stalls() -> Transfer {
    let path = Path::new(0.010, 0.025, 550e3);
    let window = Window { ssthresh: 8.0, ..Window::default() };
    Transfer { window, ..Transfer::new(62 * 81, vec![path]) }
}

#[test]
fn s1_one_round_trip_per_ack() {
    let corrected = latency(&ten_stalls(), 1).expect("legal").paths[0];
    assert_eq!((corrected.wireless_segments, corrected.wireless_windows), (62, 11));
    rounds_to(corrected.parts.total(), "0.566");

    let reading = Reading { ack_time: AckTime::TwoRoundTrips, ..Reading::default() };
    let printed = latency(&Transfer { reading, ..ten_stalls() }, 1).expect("legal").paths[0];
    rounds_to(printed.parts.total(), "1.066");
    rounds_to(printed.parts.total() - corrected.parts.total(), "0.500");
}

#[test]
fn s2_the_queue_builds_up_above_a_utilisation_of_one() {
    let arrivals = [10.0, 30.0];
    assert!(utilisation(&arrivals, 1.0 / 50.0).expect("legal") < 1.0);
    assert!(utilisation(&arrivals, 1.0 / 30.0).expect("legal") > 1.0);
}

#[test]
fn s3_the_open_wait_state_is_one_wireless_round_trip() {
    let path = paper_path();
    rounds_to(Establishment::of(&path, OpenWait::Counted, HandshakeEnd::LastAck).total(), "0.165");
    rounds_to(Establishment::of(&path, OpenWait::Omitted, HandshakeEnd::LastAck).total(), "0.115");
}

#[test]
fn losses_of_the_establishment_double_their_timeouts() {
    let mut path = paper_path();
    let lossless = Establishment::of(&path, OpenWait::Counted, HandshakeEnd::LastAck);
    path.handshake = Handshake {
        wired_timeout: 1.0,
        wireless_timeout: 10.0,
        set_timeout: 100.0,
        losses: HandshakeLosses {
            wired_syn: 1,
            wired_syn_ack: 2,
            wired_ack: 3,
            wireless_syn: 1,
            wireless_syn_ack: 0,
            wireless_ack: 4,
            set_ack: 2,
        },
    };
    let lossy = Establishment::of(&path, OpenWait::Counted, HandshakeEnd::LastAck);
    rounds_to(lossy.wired - lossless.wired, "11.000");
    rounds_to(lossy.wireless - lossless.wireless, "160.000");
    rounds_to(lossy.set_ack - lossless.set_ack, "300.000");
}

#[test]
fn s4_congestion_avoidance_counts_from_the_end_of_slow_start() {
    let window = Window { ssthresh: 8.0, max: 10.0, ..Window::default() };
    let corrected =
        Windows::new(window, f64::INFINITY, AvoidanceIndex::SlowStartWindows, Growth::RealNumbers);
    let printed = Windows::new(window, f64::INFINITY, AvoidanceIndex::SegmentsPerAck, Growth::RealNumbers);
    assert_eq!((corrected.slow_start(), corrected.growing()), (6, 10));
    for k in 1..=12 {
        assert_eq!(corrected.transmission(k, 1.0), corrected.segments(k));
    }
    // Four windows of slow start too many count as congestion avoidance: (7 - 2 - 1)/2 segments.
    assert_eq!((corrected.transmission(7, 1.0), printed.transmission(7, 1.0)), (8.0, 10.0));
}

#[test]
fn s5_the_gateway_transmits_wireless_segments() {
    let corrected = latency(&paper(5000, 1), 1).expect("legal").paths[0];
    let reading = Reading { transmission: TransmissionCount::Wired, ..Reading::default() };
    let printed = latency(&Transfer { reading, ..paper(5000, 1) }, 1).expect("legal").paths[0];
    assert_eq!((corrected.wireless_segments, corrected.wired_segments), (62, 4));
    rounds_to(corrected.parts.transmission / printed.parts.transmission, "15.5");
}

#[test]
fn s6_every_path_transmits_its_own_share() {
    let mut transfer = paper(129_000, 2);
    transfer.gateways[1].wireless_rate = 56e3;
    let corrected = latency(&transfer, 2).expect("legal");
    transfer.reading.other_paths = OtherPaths::FirstPathsCount;
    let printed = latency(&transfer, 2).expect("legal");
    let first = corrected.paths[0].wireless_segments as f64;
    assert_eq!(printed.paths[1].parts.transmission, first * transfer.gateways[1].wireless_segment_time());
    assert!(printed.total > 2.0 * corrected.total);
}

#[test]
fn s7_a_slow_wire_limits() {
    let mut transfer = paper(129_000, 1);
    transfer.gateways[0].wired_rate = 64e3;
    let corrected = total(&transfer);
    transfer.reading.wired_stage = WiredStage::Ignored;
    let printed = total(&transfer);
    assert!(corrected > 129_000.0 * 8.0 / 64e3, "{corrected} s is faster than the wire");
    assert!(printed < 129_000.0 * 8.0 / 64e3);
}

#[test]
fn s7_changes_nothing_on_the_papers_grid() {
    for octets in [5_000, 42_000, 129_000] {
        for rate in [56e3, 128e3, 256e3, 1.2e6] {
            let mut transfer = Transfer::new(octets, vec![Path::new(0.010, 0.025, rate); 3]);
            let corrected = totals(&transfer);
            transfer.reading.wired_stage = WiredStage::Ignored;
            assert_eq!(corrected, totals(&transfer), "{octets} octets at {rate} bit/s");
        }
    }
}

#[test]
fn s8_the_wired_window_is_the_same_in_octets() {
    let path = paper_path();
    assert_eq!(wired_window(32.0, &path, WiredWindow::SameOctets), 2.0);
    assert_eq!(wired_window(8.0, &path, WiredWindow::SameOctets), 1.0);
    assert_eq!(wired_window(32.0, &path, WiredWindow::SameCount), 32.0);
}

#[test]
fn s14_whole_segments_of_a_small_window_are_none() {
    let path = Path { wireless_mss: 127, ..paper_path() };
    assert_eq!(wired_window(10.0, &path, WiredWindow::WholeSegments), 0.0);
    assert_eq!(wired_window(11.0, &path, WiredWindow::WholeSegments), 1.0);
    assert_eq!(wired_window(102.0, &path, WiredWindow::WholeSegments), 9.0);

    let mut transfer = Transfer { node_buffer: Some(1270.0), ..Transfer::new(5000, vec![path]) };
    transfer.reading.wired_window = WiredWindow::WholeSegments;
    assert_eq!(latency(&transfer, 1), Err(ModelError::ZeroWindow { gateway: 1 }));
    transfer.reading.wired_window = WiredWindow::SameOctets;
    assert!(latency(&transfer, 1).is_ok());
}

#[test]
fn s9_disorder_costs_buffer() {
    let window = |transfer: &Transfer| latency(transfer, 2).expect("legal").paths[0].receive_window;
    let mut transfer = Transfer { node_buffer: Some(81.0 * 12.0), disorder: 0.5, ..paper(5000, 2) };
    rounds_to(window(&transfer), "4.000");
    transfer.reading.buffer_share = BufferShare::LeftToRight;
    rounds_to(window(&transfer), "9.000");
    let tiny = Transfer { node_buffer: Some(1.0), reading: Reading::default(), ..transfer };
    rounds_to(window(&tiny), "1.000");
}

#[test]
fn s10_s11_windows_are_walked_until_their_sum_suffices() {
    let doubling = Window { ssthresh: 64.0, segments_per_ack: 1, ..Window::default() };
    let windows =
        Windows::new(doubling, f64::INFINITY, AvoidanceIndex::SlowStartWindows, Growth::RealNumbers);
    assert_eq!((windows.slow_start(), windows.growing()), (6, 6));
    for (segments, expected) in [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (63, 6), (64, 7), (127, 7), (128, 8)]
    {
        assert_eq!(windows.flight(segments, 1.0, 1.0).windows, expected, "{segments} segments");
    }
}

#[test]
fn s12_equal_shares_make_a_small_file_slower() {
    let equal = totals(&Transfer { striping: Striping::Equal, ..paper(5000, 3) });
    rounds_to(equal[0], "0.67");
    rounds_to(equal[2], "0.86");
}

#[test]
fn s12_dynamic_shares_make_every_file_faster() {
    let small = totals(&paper(5000, 3));
    rounds_to(small[0], "0.67");
    rounds_to(small[1], "0.63");
    rounds_to(small[2], "0.62");
    let large = totals(&paper(129_000, 3));
    rounds_to(large[0], "4.55");
    rounds_to(large[1], "2.61");
    rounds_to(large[2], "2.03");
    assert_eq!(best_gateways(&paper(5000, 3)).expect("legal").gateways, 3);
}

#[test]
fn s12_more_gateways_do_not_help_a_small_buffer() {
    let transfer = Transfer { node_buffer: Some(500.0), ..paper(5000, 3) };
    let latencies = totals(&transfer);
    rounds_to(latencies[0], "0.88");
    rounds_to(latencies[1], "0.92");
    rounds_to(latencies[2], "0.92");
    assert_eq!(best_gateways(&transfer).expect("legal").gateways, 1);
}

#[test]
fn s12_as_printed_all_sessions_start_together() {
    let mut transfer = Transfer { striping: Striping::Equal, ..paper(5000, 3) };
    transfer.reading.starts = SessionStarts::Together;
    let printed = latency(&transfer, 3).expect("legal");
    assert!(printed.paths.iter().all(|path| path.start == printed.paths[0].start));
    rounds_to(printed.total, "0.53");
}

#[test]
fn s13_the_printed_law_never_reaches_one() {
    let queue = Queue { packets: 10, readily: 0.3, time: 7.0 };
    rounds_to(queue.waits_at_most(f64::INFINITY, QueueLaw::Printed).expect("legal"), "0.335");
    rounds_to(queue.waits_at_most(f64::INFINITY, QueueLaw::ErlangMixture).expect("legal"), "1.000000000");
}

#[test]
fn s13_the_corrected_law_is_a_mixture_of_erlang_laws() {
    let law = |packets, readily, tau| {
        let queue = Queue { packets, readily, time: 2.0 };
        queue.waits_at_most(tau, QueueLaw::ErlangMixture).expect("legal")
    };
    // One packet, ahead with probability 0.7: P = 0.3 + 0.7 (1 - e^(-tau/T)).
    rounds_to(law(1, 0.3, 2.0) - (0.3 + 0.7 * (1.0 - (-1.0_f64).exp())), "0.000000000");
    // All ahead: the Erlang distribution of two stages at one mean time, 1 - 2/e.
    rounds_to(law(2, 0.0, 2.0), "0.264241");
    // None ahead: served immediately. At tau = 0 only this point mass exists.
    rounds_to(law(5, 1.0, 0.0), "1.000000");
    rounds_to(law(3, 0.5, 0.0), "0.125000");
    // Large queues stay finite: 1000 packets of which 700 are ahead take 1400 s on average.
    assert!((law(1000, 0.3, 1400.0) - 0.5).abs() < 0.02);
    let rising: Vec<f64> = (0..200).map(|t| law(20, 0.3, f64::from(t))).collect();
    assert!(rising.is_sorted());
}

#[test]
fn equations_13_to_15_and_their_division_by_gateways() {
    rounds_to(processing_time(0.2, 0.05).expect("legal"), "0.25");
    rounds_to(queueing_time(6.0, &[10.0, 20.0]).expect("legal"), "0.200");
    rounds_to(queued_per_gateway(&[10.0, 20.0], 0.2, 3).expect("legal"), "2.000");
}

#[test]
fn the_printed_equations_as_a_whole_still_give_a_number() {
    let transfer = Transfer {
        reading: Reading::printed(),
        striping: Striping::Equal,
        node_buffer: Some(64e3),
        ..paper(129_000, 3)
    };
    let printed = latency(&transfer, 3).expect("legal");
    // A third of 1593 segments each. Gateway 1 is charged 34 T_g (S5), the others 531 (S6).
    let times = printed.paths.iter().map(|path| path.parts.transmission / (81.0 * 8.0 / 256e3));
    assert_eq!(times.map(f64::round).collect::<Vec<_>>(), [34.0, 531.0, 531.0]);
    let rest = printed.total - printed.parts.stall - printed.parts.transmission;
    rounds_to(rest - (0.115 + 1296.0 * 8.0 / 100e6 + 0.035), "0.0000");
}

#[test]
fn the_request_and_the_headers_count_when_asked_for() {
    let plain = latency(&paper(5000, 1), 1).expect("legal");
    let path = Path { wireless_overhead: 81, ..paper_path() };
    let asked = Transfer { request: path.request_time(), ..Transfer::new(5000, vec![path]) };
    let counted = latency(&asked, 1).expect("legal");
    rounds_to(counted.request, "0.140");
    rounds_to(counted.establishment - plain.establishment, "0.000");
    rounds_to(counted.parts.transmission / plain.parts.transmission, "2.000");
    let sum = counted.request + counted.establishment + counted.parts.total();
    rounds_to(counted.total - sum, "0.000000000");
}

#[test]
fn an_empty_file_needs_the_first_session_only() {
    let empty = latency(&paper(0, 3), 3).expect("legal");
    rounds_to(empty.total, "0.165");
    assert!(empty.paths.iter().all(|path| path.wireless_segments == 0 && path.wireless_windows == 0));
}

#[test]
fn a_lane_counts_wired_segments_by_octets() {
    let transfer = paper(1, 1);
    let lane = Lane::new(&transfer, &transfer.gateways[0], 1).expect("no zero window");
    assert_eq!([0, 1, 16, 17].map(|segments| lane.wired_segments(segments)), [0, 1, 1, 2]);
}
