//! Sending: segmentation, windows, Nagle, probes, time-outs.

use anabranch_core::tcp::{Backoff, Config, InitialWindow, Nagle, Push, RtoConfig, SackRole};
use anabranch_core::time::Duration;
use anabranch_testkit::script::{Scene, check, plain};
use expect_test::expect;

fn ten() -> Config {
    Config { initial_window: InitialWindow::Segments(10), ..plain() }
}

#[test]
fn established_write_is_cut_into_segments_and_pushed_at_the_end() {
    check(
        Scene::established(ten()),
        "0 write 2500\n0 show flight\n0 show unsent",
        expect![[r#"
        0.000 > . 1001:2001 ack 501 win 8000
        0.000 > . 2001:3001 ack 501 win 8000
        0.000 > P. 3001:3501 ack 501 win 8000
        0.000 = flight 2500
        0.000 = unsent 0
    "#]],
    );
}

#[test]
fn established_chunks_are_joined_in_a_segment() {
    check(
        Scene::established(plain()).quietly("0 write 1000"),
        "0 write 300\n0 write 300\n0 write 900\n0.1 < . 501:501 ack 2001 win 8000",
        expect![[r#"
            0.100 > . 2001:3001 ack 501 win 8000
            0.100 > P. 3001:3501 ack 501 win 8000
            0.100 ! Writable
        "#]],
    );
}

#[test]
fn established_send_buffer_limits_writes() {
    check(
        Scene::established(Config { send_buffer: 1500, ..plain() }),
        "0 write 2000\n0 write 1\n0.1 < . 501:501 ack 2001 win 8000\n0.1 write 2000",
        expect![[r#"
            0.000 write 1500 of 2000
            0.000 > . 1001:2001 ack 501 win 8000
            0.000 write 0 of 1
            0.100 > P. 2001:2501 ack 501 win 8000
            0.100 ! Writable
            0.100 write 1000 of 2000
            0.100 > P. 2501:3501 ack 501 win 8000
        "#]],
    );
}

#[test]
fn a_send_buffer_that_grows_has_room_at_once() {
    check(
        Scene::established(Config { send_buffer: 1500, ..ten() }).quietly("0 write 1500"),
        "0 send-buffer 4000\n0 write 5000\n0 send-buffer 4500\n0 show buffered",
        expect![[r#"
            0.000 ! Writable
            0.000 write 2500 of 5000
            0.000 > . 2501:3501 ack 501 win 8000
            0.000 > . 3501:4501 ack 501 win 8000
            0.000 > P. 4501:5001 ack 501 win 8000
            0.000 ! Writable
            0.000 = buffered 4000
        "#]],
    );
}

#[test]
fn a_send_buffer_that_shrinks_keeps_what_is_in_it() {
    check(
        Scene::established(plain()).quietly("0 write 3000"),
        "0 send-buffer 1500\n0 write 1\n0.1 < . 501:501 ack 2001 win 8000\n0.1 write 1\n\
         0.2 < . 501:501 ack 3001 win 8000\n0.2 write 1000\n0.2 show buffered\n0.2 send-buffer 0\n\
         0.3 < . 501:501 ack 4501 win 8000\n0.3 write 1\n0.3 show buffered",
        expect![[r#"
            0.000 write 0 of 1
            0.100 > . 2001:3001 ack 501 win 8000
            0.100 > P. 3001:4001 ack 501 win 8000
            0.100 ! Writable
            0.100 write 0 of 1
            0.200 ! Writable
            0.200 write 500 of 1000
            0.200 > P. 4001:4501 ack 501 win 8000
            0.200 = buffered 1500
            0.300 ! Writable
            0.300 write 0 of 1
            0.300 = buffered 0
        "#]],
    );
}

#[test]
fn established_peer_window_limits() {
    check(
        Scene::established(ten()),
        "0 < . 501:501 ack 1001 win 2500\n0 write 5000\n0.1 < . 501:501 ack 2001 win 2500",
        expect![[r#"
            0.000 ! Writable
            0.000 > . 1001:2001 ack 501 win 8000
            0.000 > . 2001:3001 ack 501 win 8000
            0.100 > . 3001:4001 ack 501 win 8000
            0.100 ! Writable
        "#]],
    );
}

#[test]
fn established_window_limit_caps_the_congestion_window() {
    check(
        Scene::established(Config { window_limit: Some(3), ..ten() }),
        "0 show cwnd\n0 write 9000\n0.1 < . 501:501 ack 4001 win 8000\n0.1 show cwnd",
        expect![[r#"
            0.000 = cwnd 3
            0.000 > . 1001:2001 ack 501 win 8000
            0.000 > . 2001:3001 ack 501 win 8000
            0.000 > . 3001:4001 ack 501 win 8000
            0.100 > . 4001:5001 ack 501 win 8000
            0.100 > . 5001:6001 ack 501 win 8000
            0.100 > . 6001:7001 ack 501 win 8000
            0.100 ! Writable
            0.100 = cwnd 3
        "#]],
    );
}

#[test]
fn nagle_short_segments_wait_for_the_acknowledgement() {
    check(
        Scene::established(Config { nagle: Nagle::On, ..ten() }),
        "0 write 10
         0 write 20
         0 write 30
         0.1 < . 501:501 ack 1011 win 8000
         0.1 write 1000
         0.2 < . 501:501 ack 1061 win 8000",
        expect![[r#"
            0.000 > P. 1001:1011 ack 501 win 8000
            0.100 > P. 1011:1061 ack 501 win 8000
            0.100 ! Writable
            0.100 > P. 1061:2061 ack 501 win 8000
            0.200 ! Writable
        "#]],
    );
}

#[test]
fn nagle_fin_does_not_wait() {
    check(
        Scene::established(Config { nagle: Nagle::On, ..ten() }),
        "0 write 10\n0 write 20\n0 close",
        expect![[r#"
            0.000 > P. 1001:1011 ack 501 win 8000
            0.000 > F. 1011:1031 ack 501 win 8000
        "#]],
    );
}

#[test]
fn nagle_off_sends_at_once() {
    check(
        Scene::established(ten()),
        "0 write 10\n0 write 20",
        expect![[r#"
        0.000 > P. 1001:1011 ack 501 win 8000
        0.000 > P. 1011:1031 ack 501 win 8000
    "#]],
    );
}

#[test]
fn silly_window_is_not_filled() {
    check(
        Scene::established(ten()),
        "0 write 9000
         0.1 < . 501:501 ack 9001 win 100
         0.1 show window
         0.2 < . 501:501 ack 9001 win 200
         0.3 < . 501:501 ack 9001 win 4000",
        expect![[r#"
            0.000 > . 1001:2001 ack 501 win 8000
            0.000 > . 2001:3001 ack 501 win 8000
            0.000 > . 3001:4001 ack 501 win 8000
            0.000 > . 4001:5001 ack 501 win 8000
            0.000 > . 5001:6001 ack 501 win 8000
            0.000 > . 6001:7001 ack 501 win 8000
            0.000 > . 7001:8001 ack 501 win 8000
            0.000 > . 8001:9001 ack 501 win 8000
            0.100 ! Writable
            0.100 = window 100
            0.200 ! Writable
            0.300 > P. 9001:10001 ack 501 win 8000
            0.300 ! Writable
        "#]],
    );
}

#[test]
fn silly_window_is_used_after_the_persist_time_out() {
    check(
        Scene::established(ten()),
        "0 write 9000\n0.1 < . 501:501 ack 9001 win 100\n1.5 < . 501:501 ack 9101 win 8000",
        expect![[r#"
            0.000 > . 1001:2001 ack 501 win 8000
            0.000 > . 2001:3001 ack 501 win 8000
            0.000 > . 3001:4001 ack 501 win 8000
            0.000 > . 4001:5001 ack 501 win 8000
            0.000 > . 5001:6001 ack 501 win 8000
            0.000 > . 6001:7001 ack 501 win 8000
            0.000 > . 7001:8001 ack 501 win 8000
            0.000 > . 8001:9001 ack 501 win 8000
            0.100 ! Writable
            1.100 > . 9001:9101 ack 501 win 8000
            1.500 > P. 9101:10001 ack 501 win 8000
            1.500 ! Writable
        "#]],
    );
}

#[test]
fn zero_window_is_probed_with_back_off() {
    check(
        Scene::established(plain()),
        "0 < . 501:501 ack 1001 win 0
         0 write 1500
         1.1 < . 501:501 ack 1001 win 0
         3.1 < . 501:501 ack 1001 win 0
         7.1 < . 501:501 ack 1001 win 0
         15.1 < . 501:501 ack 1001 win 0
         31.1 < . 501:501 ack 1001 win 0
         63.1 < . 501:501 ack 1001 win 0
         124 < . 501:501 ack 1001 win 0
         125 < . 501:501 ack 1001 win 3000",
        expect![[r#"
            0.000 ! Writable
            1.000 > . 1001:1002 ack 501 win 8000
            3.000 > . 1001:1002 ack 501 win 8000
            7.000 > . 1001:1002 ack 501 win 8000
            15.000 > . 1001:1002 ack 501 win 8000
            31.000 > . 1001:1002 ack 501 win 8000
            63.000 > . 1001:1002 ack 501 win 8000
            123.000 > . 1001:1002 ack 501 win 8000
            125.000 > . 1001:2001 ack 501 win 8000
            125.000 ! Writable
        "#]],
    );
}

#[test]
fn zero_window_probe_may_be_accepted() {
    check(
        Scene::established(plain()),
        "0 < . 501:501 ack 1001 win 0
         0 write 1500
         1.1 < . 501:501 ack 1002 win 0
         2.2 < . 501:501 ack 1003 win 4000",
        expect![[r#"
            0.000 ! Writable
            1.000 > . 1001:1002 ack 501 win 8000
            1.100 ! Writable
            2.100 > . 1002:1003 ack 501 win 8000
            2.200 > . 1003:2003 ack 501 win 8000
            2.200 ! Writable
        "#]],
    );
}

#[test]
fn zero_window_silence_gives_up() {
    check(
        Scene::established(plain()),
        "0 < . 501:501 ack 1001 win 0\n0 write 1500\n100 show state",
        expect![[r#"
            0.000 ! Writable
            1.000 > . 1001:1002 ack 501 win 8000
            3.000 > . 1001:1002 ack 501 win 8000
            7.000 > . 1001:1002 ack 501 win 8000
            15.000 > R 1001:1001 win 0
            15.000 ! Closed(TimedOut)
            100.000 = state Closed
        "#]],
    );
}

#[test]
fn zero_window_acknowledgements_keep_to_what_the_peer_expects() {
    check(
        Scene::established(plain()),
        "0 < . 501:501 ack 1001 win 0\n0 write 1500\n1.1 < P. 501:601 ack 1001 win 0",
        expect![[r#"
            0.000 ! Writable
            1.000 > . 1001:1002 ack 501 win 8000
            1.100 > . 1001:1001 ack 601 win 7900
            1.100 ! Readable
        "#]],
    );
}

#[test]
fn zero_window_probes_of_both_ends_do_not_blind_them() {
    // The peer probes with byte 501, which we accept; its ACK of our probe then seems one byte old.
    check(
        Scene::established(plain()).quietly("0 < . 501:501 ack 1001 win 0\n0 write 1500"),
        "1.1 < . 501:502 ack 1001 win 0
         1.2 < . 501:501 ack 1002 win 4000",
        expect![[r#"
            1.000 > . 1001:1002 ack 501 win 8000
            1.100 > . 1001:1001 ack 502 win 7999
            1.100 ! Readable
            1.200 > . 1002:2002 ack 502 win 7999
            1.200 ! Writable
        "#]],
    );
}

#[test]
fn zero_window_with_data_in_flight_becomes_probing() {
    check(
        Scene::established(ten()),
        "0 write 3000
         0.1 < . 501:501 ack 2001 win 0
         1.5 < . 501:501 ack 2001 win 0
         3.5 < . 501:501 ack 2001 win 0
         7.2 < . 501:501 ack 2001 win 9000",
        expect![[r#"
            0.000 > . 1001:2001 ack 501 win 8000
            0.000 > . 2001:3001 ack 501 win 8000
            0.000 > P. 3001:4001 ack 501 win 8000
            0.100 ! Writable
            1.100 > . 2001:2002 ack 501 win 8000
            3.100 > . 2001:2002 ack 501 win 8000
            7.100 > . 2001:2002 ack 501 win 8000
            7.200 > . 2001:3001 ack 501 win 8000
            7.200 > P. 3001:4001 ack 501 win 8000
            7.200 ! Writable
        "#]],
    );
}

#[test]
fn zero_window_fin_is_probed() {
    check(
        Scene::established(plain()),
        "0 < . 501:501 ack 1001 win 0\n0 close\n1.5 < . 501:501 ack 1002 win 0\n1.5 show state",
        expect![[r#"
            0.000 ! Writable
            1.000 > F. 1001:1001 ack 501 win 8000
            1.500 ! Writable
            1.500 = state FinWait2
        "#]],
    );
}

#[test]
fn old_segment_does_not_update_the_window() {
    check(
        Scene::established(plain()),
        "0 < . 501:601 ack 1001 win 5000\n0 < . 501:601 ack 1001 win 9\n0 < . 511:611 ack 1001 win 9\n0 show window",
        expect![[r#"
            0.000 > . 1001:1001 ack 601 win 7900
            0.000 ! Readable
            0.000 ! Writable
            0.000 > . 1001:1001 ack 601 win 7900
            0.000 > . 1001:1001 ack 611 win 7890
            0.000 ! Readable
            0.000 ! Writable
            0.000 = window 9
        "#]],
    );
}

/// RFC 9293 section 3.10.7.4: SND.WL1 < SEG.SEQ, or SND.WL1 = SEG.SEQ and SND.WL2 =< SEG.ACK.
#[test]
fn a_segment_that_was_overtaken_does_not_update_the_window() {
    check(
        Scene::established(plain()),
        "0 < . 601:701 ack 1001 win 5000\n0 < . 501:601 ack 1001 win 9\n0 show window\n\
         0 < . 701:801 ack 1001 win 9\n0 show window",
        expect![[r#"
            0.000 > . 1001:1001 ack 501 win 8000
            0.000 ! Writable
            0.000 > . 1001:1001 ack 701 win 7800
            0.000 ! Readable
            0.000 = window 5000
            0.000 > . 1001:1001 ack 801 win 7700
            0.000 ! Readable
            0.000 ! Writable
            0.000 = window 9
        "#]],
    );
}

#[test]
fn time_outs_in_a_row_back_off_and_give_up_with_a_reset() {
    check(
        Scene::established(ten()),
        "0 write 2000\n100 show state",
        expect![[r#"
        0.000 > . 1001:2001 ack 501 win 8000
        0.000 > P. 2001:3001 ack 501 win 8000
        1.000 > . 1001:2001 ack 501 win 8000
        3.000 > . 1001:2001 ack 501 win 8000
        7.000 > . 1001:2001 ack 501 win 8000
        15.000 > R 3001:3001 win 0
        15.000 ! Closed(TimedOut)
        100.000 = state Closed
    "#]],
    );
}

#[test]
fn time_outs_back_off_up_to_the_cap() {
    let rto = RtoConfig {
        initial: Duration::from_secs(6),
        min: Duration::from_secs(6),
        max: Duration::from_secs(16),
        granularity: Duration::ZERO,
        backoff: Backoff::Double,
    };
    check(
        Scene::established(Config { rto, ..plain() }),
        "0 write 10\n100 wait",
        expect![[r#"
        0.000 > P. 1001:1011 ack 501 win 8000
        6.000 > P. 1001:1011 ack 501 win 8000
        18.000 > P. 1001:1011 ack 501 win 8000
        34.000 > P. 1001:1011 ack 501 win 8000
        50.000 > R 1011:1011 win 0
        50.000 ! Closed(TimedOut)
    "#]],
    );
}

#[test]
fn time_outs_constant_back_off_stays() {
    let rto = RtoConfig { backoff: Backoff::Constant, ..plain().rto };
    check(
        Scene::established(Config { rto, ..plain() }),
        "0 write 10\n100 wait",
        expect![[r#"
        0.000 > P. 1001:1011 ack 501 win 8000
        1.000 > P. 1001:1011 ack 501 win 8000
        2.000 > P. 1001:1011 ack 501 win 8000
        3.000 > P. 1001:1011 ack 501 win 8000
        4.000 > R 1011:1011 win 0
        4.000 ! Closed(TimedOut)
    "#]],
    );
}

#[test]
fn time_out_goes_back_with_one_segment() {
    check(
        Scene::established(ten()),
        "0 write 4000
         0 show cwnd
         1 show cwnd
         1 show ssthresh
         1 show flight
         1.1 < . 501:501 ack 2001 win 8000
         1.2 < . 501:501 ack 5001 win 8000
         1.2 show cwnd",
        expect![[r#"
            0.000 > . 1001:2001 ack 501 win 8000
            0.000 > . 2001:3001 ack 501 win 8000
            0.000 > . 3001:4001 ack 501 win 8000
            0.000 > P. 4001:5001 ack 501 win 8000
            0.000 = cwnd 10
            1.000 > . 1001:2001 ack 501 win 8000
            1.000 = cwnd 1
            1.000 = ssthresh 2
            1.000 = flight 1000
            1.100 > . 2001:3001 ack 501 win 8000
            1.100 > . 3001:4001 ack 501 win 8000
            1.100 ! Writable
            1.200 ! Writable
            1.200 = cwnd 3
        "#]],
    );
}

#[test]
fn karn_ambiguous_acknowledgement_is_no_sample() {
    check(
        Scene::established(plain()),
        "0 write 1000
         1.1 < . 501:501 ack 2001 win 8000
         1.1 show srtt
         1.1 show rto
         2 write 1000
         2.3 < . 501:501 ack 3001 win 8000
         2.3 show srtt
         2.3 show rto",
        expect![[r#"
            0.000 > P. 1001:2001 ack 501 win 8000
            1.000 > P. 1001:2001 ack 501 win 8000
            1.100 ! Writable
            1.100 = srtt Some(0.000000000s)
            1.100 = rto 2.000000000s
            2.000 > P. 2001:3001 ack 501 win 8000
            2.300 ! Writable
            2.300 = srtt Some(0.037500000s)
            2.300 = rto 1.000000000s
        "#]],
    );
}

#[test]
fn karn_timestamps_resolve_the_ambiguity() {
    check(
        Scene::established(Config { timestamps: true, ..plain() }),
        "0 write 500
         1.1 < . 501:501 ack 1501 win 8000 <ts 2 ecr 1000>
         1.1 show srtt",
        expect![[r#"
            0.000 > P. 1001:1501 ack 501 win 8000 <ts 0 ecr 1>
            1.000 > P. 1001:1501 ack 501 win 8000 <ts 1000 ecr 1>
            1.100 ! Writable
            1.100 = srtt Some(0.012500000s)
        "#]],
    );
}

#[test]
fn idle_restarts_with_the_initial_window() {
    check(
        Scene::established(plain()),
        "0 write 1000
         0.1 < . 501:501 ack 2001 win 8000
         0.1 write 2000
         0.2 < . 501:501 ack 4001 win 8000
         0.2 show cwnd
         9 write 4000
         9 show cwnd",
        expect![[r#"
            0.000 > P. 1001:2001 ack 501 win 8000
            0.100 ! Writable
            0.100 > . 2001:3001 ack 501 win 8000
            0.100 > P. 3001:4001 ack 501 win 8000
            0.200 ! Writable
            0.200 = cwnd 4
            9.000 > . 4001:5001 ack 501 win 8000
            9.000 = cwnd 1
        "#]],
    );
}

#[test]
fn sequence_numbers_wrap_on_sending() {
    let scene = Scene::syn_sent_at(ten(), u32::MAX - 1500);
    check(
        scene,
        "0 < S. 500:500 ack 4294965796 win 8000 <mss 1000>
         0 write 3000
         0.1 < . 501:501 ack 4294966796 win 8000
         0.1 < . 501:501 ack 1500 win 8000
         0.1 show flight",
        expect![[r#"
            0.000 > . 4294965796:4294965796 ack 501 win 8000
            0.000 ! Established
            0.000 > . 4294965796:4294966796 ack 501 win 8000
            0.000 > . 4294966796:500 ack 501 win 8000
            0.000 > P. 500:1500 ack 501 win 8000
            0.100 ! Writable
            0.100 ! Writable
            0.100 = flight 0
        "#]],
    );
}

/// Section VII of the MPTCP paper: one acknowledgement per window.
#[test]
fn the_last_segment_of_a_window_is_pushed() {
    let config = Config { push: Push::Window, initial_window: InitialWindow::Segments(3), ..plain() };
    check(
        Scene::established(config),
        "0 write 5000\n0.1 < . 501:501 ack 4001 win 8000",
        expect![[r#"
            0.000 > . 1001:2001 ack 501 win 8000
            0.000 > . 2001:3001 ack 501 win 8000
            0.000 > P. 3001:4001 ack 501 win 8000
            0.100 > . 4001:5001 ack 501 win 8000
            0.100 > P. 5001:6001 ack 501 win 8000
            0.100 ! Writable
        "#]],
    );
}

/// The probe of a closed window is retransmitted when the window opens. No data was lost, even if
/// two segments arrive before we may send: no recovery starts, with any loss detection.
#[test]
fn an_opening_window_begins_no_recovery() {
    for (sack, rack_tlp) in [(SackRole::Off, false), (SackRole::Both, false), (SackRole::Both, true)] {
        let config = Config { sack, rack_tlp, ..ten() };
        let mut scene =
            Scene::established(config).quietly("0 write 20000\n0.1 < . 501:501 ack 9001 win 0\n2 show cwnd");
        let before = scene.connection.info();
        assert!(before.unsent > 0 && before.in_flight == 0, "{before:?}");
        scene.run("2 << . 501:501 ack 9001 win 9000\n2 < . 501:511 ack 9001 win 9000");
        let info = scene.connection.info();
        assert_eq!((info.fast_retransmits, info.ssthresh), (0, before.ssthresh), "{sack:?} {rack_tlp}");
        assert!(info.in_flight > 0, "{info:?}");
    }
}
