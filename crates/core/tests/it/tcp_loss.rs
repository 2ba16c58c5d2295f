//! Loss recovery: RFC 5681, 6582, 6675, 3042 and BSD Reno.

use anabranch_core::segment::Options;
use anabranch_core::tcp::{Config, InitialWindow, Recovery, RtoConfig, SackRole};
use anabranch_core::time::Duration;
use anabranch_testkit::script::{Scene, check, plain};
use expect_test::expect;

/// `n` segments in flight and 20 more written; the windows are wide.
fn flight(config: Config, n: u16) -> Scene {
    let config = Config { initial_window: InitialWindow::Segments(n), ..config };
    Scene::established(config)
        .quietly(&format!("0 < . 501:501 ack 1001 win 60000\n0 write {}", 1000 * (n + 20)))
}

fn sack() -> Config {
    Config { sack: SackRole::Both, ..plain() }
}

const DUP: &str = "< . 501:501 ack 1001 win 60000";

#[test]
fn newreno_third_duplicate_retransmits() {
    check(
        flight(plain(), 8),
        &format!(
            "0.1 {DUP}\n0.1 {DUP}\n0.1 show cwnd\n0.1 {DUP}\n0.1 show cwnd\n0.1 show ssthresh\n0.1 {DUP}\n0.1 {DUP}\n0.1 {DUP}"
        ),
        expect![[r#"
            0.100 = cwnd 8
            0.100 > . 1001:2001 ack 501 win 8000
            0.100 ! Writable
            0.100 = cwnd 4
            0.100 = ssthresh 4
            0.100 > . 9001:10001 ack 501 win 8000
            0.100 > . 10001:11001 ack 501 win 8000
        "#]],
    );
}

#[test]
fn newreno_partial_acknowledgement_retransmits_the_next_hole() {
    check(
        flight(plain(), 8),
        &format!(
            "0.1 {DUP}\n0.1 {DUP}\n0.1 {DUP}
             0.2 < . 501:501 ack 3001 win 60000
             0.2 show cwnd
             0.3 < . 501:501 ack 9001 win 60000
             0.3 show cwnd"
        ),
        expect![[r#"
            0.100 > . 1001:2001 ack 501 win 8000
            0.100 ! Writable
            0.200 > . 3001:4001 ack 501 win 8000
            0.200 ! Writable
            0.200 = cwnd 4
            0.300 > . 9001:10001 ack 501 win 8000
            0.300 > . 10001:11001 ack 501 win 8000
            0.300 ! Writable
            0.300 = cwnd 2
        "#]],
    );
}

#[test]
fn newreno_window_update_is_no_duplicate() {
    let script = (1..5).map(|i| format!("0.1 < . 501:501 ack 1001 win {}", 60000 - i * 10));
    check(
        flight(plain(), 8),
        &script.collect::<Vec<_>>().join("\n"),
        expect![[r#"
        0.100 ! Writable
        0.100 ! Writable
        0.100 ! Writable
        0.100 ! Writable
    "#]],
    );
}

#[test]
fn newreno_data_is_no_duplicate() {
    let script = (0..4).map(|i| format!("0.1 < . {}:{} ack 1001 win 60000", 501 + 10 * i, 511 + 10 * i));
    check(
        flight(plain(), 8),
        &script.collect::<Vec<_>>().join("\n"),
        expect![[r#"
        0.100 > . 9001:9001 ack 511 win 7990
        0.100 ! Readable
        0.100 > . 9001:9001 ack 521 win 7980
        0.100 ! Readable
        0.100 > . 9001:9001 ack 531 win 7970
        0.100 ! Readable
        0.100 > . 9001:9001 ack 541 win 7960
        0.100 ! Readable
    "#]],
    );
}

#[test]
fn newreno_duplicates_after_a_time_out_do_not_retransmit_again() {
    check(
        flight(plain(), 8),
        &format!(
            "1 show cwnd\n1.1 {DUP}\n1.1 {DUP}\n1.1 {DUP}\n1.1 {DUP}\n1.2 < . 501:501 ack 2001 win 60000\n1.2 show cwnd"
        ),
        expect![[r#"
            1.000 > . 1001:2001 ack 501 win 8000
            1.000 = cwnd 1
            1.200 > . 2001:3001 ack 501 win 8000
            1.200 > . 3001:4001 ack 501 win 8000
            1.200 ! Writable
            1.200 = cwnd 2
        "#]],
    );
}

#[test]
fn newreno_time_out_during_recovery_goes_back() {
    check(
        flight(plain(), 8),
        &format!("0.1 {DUP}\n0.1 {DUP}\n0.1 {DUP}\n2 show cwnd\n2 show ssthresh\n2 show flight"),
        expect![[r#"
            0.100 > . 1001:2001 ack 501 win 8000
            0.100 ! Writable
            1.100 > . 1001:2001 ack 501 win 8000
            2.000 = cwnd 1
            2.000 = ssthresh 4
            2.000 = flight 1000
        "#]],
    );
}

/// RFC 5681 section 3.1: all data outstanding at a time-out counts as one loss, regardless of the
/// number of time-outs during its repair.
#[test]
fn a_time_out_while_another_is_repaired_leaves_the_threshold() {
    check(
        flight(plain(), 8),
        "1 show ssthresh\n1.1 < . 501:501 ack 2001 win 60000\n4 show timeouts\n4 show ssthresh",
        expect![[r#"
            1.000 > . 1001:2001 ack 501 win 8000
            1.000 = ssthresh 4
            1.100 > . 2001:3001 ack 501 win 8000
            1.100 > . 3001:4001 ack 501 win 8000
            1.100 ! Writable
            3.100 > . 2001:3001 ack 501 win 8000
            4.000 = timeouts 2
            4.000 = ssthresh 4
        "#]],
    );
}

/// RFC 6675 section 2: an acknowledgement that moves SND.UNA and reports more than two segments
/// starts a recovery.
#[test]
fn sack_with_a_cumulative_acknowledgement_begins_recovery() {
    check(
        flight(sack(), 8),
        "0.1 < . 501:501 ack 2001 win 60000 <sack 3001:9001>\n0.1 show ssthresh",
        expect![[r#"
            0.100 > . 2001:3001 ack 501 win 8000
            0.100 > . 9001:10001 ack 501 win 8000
            0.100 > . 10001:11001 ack 501 win 8000
            0.100 > . 11001:12001 ack 501 win 8000
            0.100 ! Writable
            0.100 = ssthresh 4
        "#]],
    );
}

/// RFC 6675 section 2: an acknowledgement without a new report shows no loss. The network has
/// duplicated a packet.
#[test]
fn sack_duplicates_without_a_report_show_no_loss() {
    let scene = Scene::established_with(sack(), Options { sack_permitted: true, ..Options::default() });
    check(
        scene.quietly("0 < . 501:501 ack 1001 win 60000\n0 write 3000"),
        &format!("0.1 {DUP}\n0.1 {DUP}\n0.1 {DUP}\n0.1 {DUP}\n0.2 show cwnd"),
        expect![[r#"
            0.200 = cwnd 1
        "#]],
    );
}

#[test]
fn limited_transmit_sends_new_data_on_the_first_two_duplicates() {
    check(
        flight(Config { limited_transmit: true, ..plain() }, 4),
        &format!("0.1 {DUP}\n0.1 {DUP}\n0.1 {DUP}\n0.1 show ssthresh"),
        expect![[r#"
            0.100 > . 5001:6001 ack 501 win 8000
            0.100 > . 6001:7001 ack 501 win 8000
            0.100 > . 1001:2001 ack 501 win 8000
            0.100 ! Writable
            0.100 = ssthresh 2
        "#]],
    );
}

#[test]
fn limited_transmit_ends_with_new_acknowledgement() {
    check(
        flight(Config { limited_transmit: true, ..plain() }, 4),
        &format!("0.1 {DUP}\n0.1 {DUP}\n0.2 < . 501:501 ack 5001 win 60000\n0.2 show cwnd"),
        expect![[r#"
            0.100 > . 5001:6001 ack 501 win 8000
            0.100 > . 6001:7001 ack 501 win 8000
            0.200 > . 7001:8001 ack 501 win 8000
            0.200 > . 8001:9001 ack 501 win 8000
            0.200 > . 9001:10001 ack 501 win 8000
            0.200 > . 10001:11001 ack 501 win 8000
            0.200 ! Writable
            0.200 = cwnd 6
        "#]],
    );
}

#[test]
fn sack_several_holes_are_sent_again_in_order() {
    // Segments 1, 3 and 6 of ten are lost.
    check(
        flight(sack(), 10),
        "0.1 < . 501:501 ack 1001 win 60000 <sack 2001:3001>
         0.1 < . 501:501 ack 1001 win 60000 <sack 4001:5001 2001:3001>
         0.1 < . 501:501 ack 1001 win 60000 <sack 4001:6001 2001:3001>
         0.1 show cwnd
         0.1 < . 501:501 ack 1001 win 60000 <sack 7001:8001 4001:6001 2001:3001>
         0.1 < . 501:501 ack 1001 win 60000 <sack 7001:9001 4001:6001 2001:3001>
         0.1 < . 501:501 ack 1001 win 60000 <sack 7001:10001 4001:6001 2001:3001>
         0.1 < . 501:501 ack 1001 win 60000 <sack 7001:11001 4001:6001 2001:3001>
         0.2 < . 501:501 ack 3001 win 60000 <sack 7001:11001 4001:6001>
         0.2 < . 501:501 ack 6001 win 60000 <sack 7001:11001>
         0.3 < . 501:501 ack 11001 win 60000
         0.3 show cwnd",
        expect![[r#"
            0.100 > . 1001:2001 ack 501 win 8000
            0.100 ! Writable
            0.100 = cwnd 5
            0.100 > . 3001:4001 ack 501 win 8000
            0.100 > . 6001:7001 ack 501 win 8000
            0.100 > . 11001:12001 ack 501 win 8000
            0.100 > . 12001:13001 ack 501 win 8000
            0.200 > . 13001:14001 ack 501 win 8000
            0.200 ! Writable
            0.200 > . 14001:15001 ack 501 win 8000
            0.200 ! Writable
            0.300 > . 15001:16001 ack 501 win 8000
            0.300 ! Writable
            0.300 = cwnd 5
        "#]],
    );
}

#[test]
fn sack_lost_before_three_duplicates() {
    // One acknowledgement that reports more than two segments suffices (IsLost of RFC 6675).
    check(
        flight(sack(), 10),
        "0.1 < . 501:501 ack 1001 win 60000 <sack 2001:4002>\n0.1 show ssthresh",
        expect![[r#"
            0.100 > . 1001:2001 ack 501 win 8000
            0.100 ! Writable
            0.100 = ssthresh 5
        "#]],
    );
}

#[test]
fn sack_rescue_retransmission_covers_a_lost_tail() {
    let scene = Scene::established(Config { initial_window: InitialWindow::Segments(6), ..sack() });
    check(
        scene.quietly("0 < . 501:501 ack 1001 win 60000\n0 write 6000"),
        "0.1 < . 501:501 ack 1001 win 60000 <sack 2001:3001>
         0.1 < . 501:501 ack 1001 win 60000 <sack 2001:4001>
         0.1 < . 501:501 ack 1001 win 60000 <sack 2001:5001>
         0.2 < . 501:501 ack 5001 win 60000",
        expect![[r#"
            0.100 > . 1001:2001 ack 501 win 8000
            0.100 ! Writable
            0.200 > P. 6001:7001 ack 501 win 8000
            0.200 ! Writable
        "#]],
    );
}

/// RFC 2018 section 8: reported data is not retransmitted after a time-out.
#[test]
fn sack_is_kept_over_a_time_out() {
    check(
        flight(sack(), 4),
        "0.1 < . 501:501 ack 1001 win 60000 <sack 2001:3001>
         1.2 < . 501:501 ack 3001 win 60000",
        expect![[r#"
            1.000 > . 1001:2001 ack 501 win 8000
            1.200 > . 3001:4001 ack 501 win 8000
            1.200 > . 4001:5001 ack 501 win 8000
            1.200 ! Writable
        "#]],
    );
}

/// The peer acknowledges less than it has reported: it has dropped that data.
#[test]
fn sack_that_the_peer_takes_back_is_forgotten() {
    check(
        flight(sack(), 4),
        "0.1 < . 501:501 ack 1001 win 60000 <sack 2001:3001>
         1.2 < . 501:501 ack 2001 win 60000",
        expect![[r#"
            1.000 > . 1001:2001 ack 501 win 8000
            1.200 > . 2001:3001 ack 501 win 8000
            1.200 > . 3001:4001 ack 501 win 8000
            1.200 ! Writable
        "#]],
    );
}

#[test]
fn sack_after_a_time_out_skips_what_is_reported_anew() {
    check(
        flight(sack(), 4),
        "1 wait
         1.2 < . 501:501 ack 2001 win 60000 <sack 3001:5001>",
        expect![[r#"
            1.000 > . 1001:2001 ack 501 win 8000
            1.200 > . 2001:3001 ack 501 win 8000
            1.200 > . 5001:6001 ack 501 win 8000
            1.200 ! Writable
        "#]],
    );
}

#[test]
fn sack_nonsense_is_ignored() {
    check(
        flight(sack(), 4),
        "0.1 < . 501:501 ack 1001 win 60000 <sack 3001:2001 1:500 9001:99001>
         0.1 < . 501:501 ack 1001 win 60000 <sack 5001:5002 900:1001 1001:1001>
         0.1 < . 501:501 ack 1001 win 60000 <sack 4000000000:5 2001:5002>
         0.1 show flight",
        expect![[r#"
            0.100 = flight 4000
        "#]],
    );
}

/// RFC 2883 section 4: blocks below the acknowledgement or within the second block are duplicates,
/// here of packets that the network has duplicated. None of them shows a loss, with or without the
/// option: only one segment is reported.
#[test]
fn dsack_is_no_news() {
    for dsack in [false, true] {
        check(
            flight(Config { dsack, undo: dsack, ..sack() }, 8),
            "0.1 < . 501:501 ack 3001 win 60000
             0.1 < . 501:501 ack 3001 win 60000 <sack 1001:2001>
             0.1 < . 501:501 ack 3001 win 60000 <sack 2001:3001>
             0.1 < . 501:501 ack 3001 win 60000 <sack 1001:2001>
             0.1 < . 501:501 ack 3001 win 60000 <sack 4001:5001>
             0.1 < . 501:501 ack 3001 win 60000 <sack 4001:5001 4001:5001>
             0.1 < . 501:501 ack 3001 win 60000 <sack 4001:4501 4001:5001>
             0.1 < . 501:501 ack 3001 win 60000 <sack 4001:5001 4001:5001>
             0.1 show flight",
            expect![[r#"
                0.100 > . 9001:10001 ack 501 win 8000
                0.100 > . 10001:11001 ack 501 win 8000
                0.100 > . 11001:12001 ack 501 win 8000
                0.100 > . 12001:13001 ack 501 win 8000
                0.100 ! Writable
                0.100 = flight 10000
            "#]],
        );
    }
}

#[test]
fn sack_receiver_role_ignores_blocks() {
    check(
        flight(Config { sack: SackRole::Receiver, ..plain() }, 8),
        &"0.1 < . 501:501 ack 1001 win 60000 <sack 2001:7001>\n".repeat(3),
        expect![[r#"
            0.100 > . 1001:2001 ack 501 win 8000
            0.100 ! Writable
        "#]],
    );
}

fn reno() -> Config {
    Config { recovery: Recovery::RenoGoBackN, ..plain() }
}

#[test]
fn reno_leaves_recovery_with_the_first_new_acknowledgement() {
    check(
        flight(reno(), 8),
        &format!(
            "0.1 {DUP}\n0.1 {DUP}\n0.1 {DUP}\n0.1 {DUP}
             0.2 < . 501:501 ack 3001 win 60000
             0.2 show cwnd
             3 show cwnd"
        ),
        expect![[r#"
            0.100 > . 1001:2001 ack 501 win 8000
            0.100 ! Writable
            0.200 ! Writable
            0.200 = cwnd 4
            1.200 > . 3001:4001 ack 501 win 8000
            3.000 = cwnd 1
        "#]],
    );
}

#[test]
fn reno_time_out_sends_everything_past_the_hole_again() {
    check(
        flight(Config { window_limit: Some(3), ..reno() }, 3),
        "1 show cwnd
         1 show flight
         1.1 < . 501:501 ack 2001 win 60000
         1.2 < . 501:501 ack 4001 win 60000",
        expect![[r#"
            1.000 > . 1001:2001 ack 501 win 8000
            1.000 = cwnd 1
            1.000 = flight 1000
            1.100 > . 2001:3001 ack 501 win 8000
            1.100 > . 3001:4001 ack 501 win 8000
            1.100 ! Writable
            1.200 > . 4001:5001 ack 501 win 8000
            1.200 > . 5001:6001 ack 501 win 8000
            1.200 > . 6001:7001 ack 501 win 8000
            1.200 ! Writable
        "#]],
    );
}

#[test]
fn reno_does_not_use_sack_but_permits_it() {
    check(
        flight(Config { sack: SackRole::Both, ..reno() }, 4),
        &"0.1 < . 501:501 ack 1001 win 60000 <sack 2001:5001>\n".repeat(3),
        expect![[r#"
            0.100 > . 1001:2001 ack 501 win 8000
            0.100 > . 5001:6001 ack 501 win 8000
            0.100 ! Writable
        "#]],
    );
}

/// A tail loss probe leaves the last segment in the network twice. A time-out within the next round
/// trip marks only the first segment lost (RFC 8985 sections 6.3 and 7.3). It is retransmitted:
/// three segments in the network, two outstanding.
#[test]
fn flight_size_is_never_above_what_is_outstanding() {
    let short = RtoConfig { max: Duration::from_secs(1), ..plain().rto };
    let config = Config { rack_tlp: true, rto: short, timestamps: true, ..sack() };
    check(
        Scene::established(config).quietly("0 write 1000\n2.5 < . 501:501 ack 2001 win 60000 <ts 2 ecr 0>"),
        "3 write 1976\n3.5 show flight\n4 show flight\n5 show flight\n6 show flight",
        expect![[r#"
            3.000 > . 2001:2989 ack 501 win 8000 <ts 3000 ecr 2>
            3.000 > P. 2989:3977 ack 501 win 8000 <ts 3000 ecr 2>
            3.500 = flight 1976
            3.625 > P. 2989:3977 ack 501 win 8000 <ts 3625 ecr 2>
            4.000 = flight 1976
            4.625 > . 2001:2989 ack 501 win 8000 <ts 4625 ecr 2>
            5.000 = flight 1976
            5.625 > . 2001:2989 ack 501 win 8000 <ts 5625 ecr 2>
            6.000 = flight 1976
        "#]],
    );
}
