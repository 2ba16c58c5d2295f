//! Receiving: order, overlap, acknowledgements, the window, SACK blocks.

use anabranch_core::segment::{Options, Timestamps};
use anabranch_core::tcp::{Config, DelayedAck, SackRole};
use anabranch_core::time::Duration;
use anabranch_testkit::script::{Scene, check, plain};
use expect_test::expect;

fn delayed(segments: u8) -> Config {
    Config { delayed_ack: DelayedAck::Every { segments, timeout: Duration::from_millis(200) }, ..plain() }
}

fn sack() -> Config {
    Config { sack: SackRole::Both, ..plain() }
}

#[test]
fn established_data_is_acknowledged_and_read() {
    check(
        Scene::established(plain()),
        "0 < P. 501:601 ack 1001 win 8000\n0 read 40\n0 read\n0 read",
        expect![[r#"
            0.000 > . 1001:1001 ack 601 win 7900
            0.000 ! Readable
            0.000 read 40
            0.000 read 60
            0.000 read 0
        "#]],
    );
}

#[test]
fn established_duplicate_is_acknowledged_and_dropped() {
    check(
        Scene::established(plain()),
        "0 < . 501:601 ack 1001 win 8000\n0 < . 501:601 ack 1001 win 8000\n0 read\n0 show dropped",
        expect![[r#"
            0.000 > . 1001:1001 ack 601 win 7900
            0.000 ! Readable
            0.000 > . 1001:1001 ack 601 win 7900
            0.000 read 100
            0.000 = dropped 1
        "#]],
    );
}

#[test]
fn established_overlap_is_cut() {
    check(
        Scene::established(plain()),
        "0 < . 501:601 ack 1001 win 8000
         0 < . 551:651 ack 1001 win 8000
         0 < . 701:801 ack 1001 win 8000
         0 < . 681:721 ack 1001 win 8000
         0 < . 601:901 ack 1001 win 8000
         0 read",
        expect![[r#"
            0.000 > . 1001:1001 ack 601 win 7900
            0.000 ! Readable
            0.000 > . 1001:1001 ack 651 win 7850
            0.000 ! Readable
            0.000 > . 1001:1001 ack 651 win 7850
            0.000 > . 1001:1001 ack 651 win 7850
            0.000 > . 1001:1001 ack 901 win 7600
            0.000 ! Readable
            0.000 read 400
        "#]],
    );
}

#[test]
fn established_octets_count_once_and_when_they_are_in_order() {
    let mut scene = Scene::established(plain()).quietly(
        "0 < . 501:601 ack 1001 win 8000
         0 < . 551:651 ack 1001 win 8000
         0 < . 701:801 ack 1001 win 8000",
    );
    assert_eq!(scene.connection.info().bytes_received, 150);
    scene.run("0 < . 601:701 ack 1001 win 8000\n0 < . 501:801 ack 1001 win 8000\n0 read");
    assert_eq!(scene.connection.info().bytes_received, 300);
}

#[test]
fn established_beyond_the_window_is_cut_and_dropped() {
    check(
        Scene::established(Config { receive_buffer: 100, ..plain() }),
        "0 < . 501:701 ack 1001 win 8000\n0 < . 601:701 ack 1001 win 8000\n0 read",
        expect![[r#"
            0.000 > . 1001:1001 ack 601 win 0
            0.000 ! Readable
            0.000 > . 1001:1001 ack 601 win 0
            0.000 read 100
            0.000 > . 1001:1001 ack 601 win 100
        "#]],
    );
}

#[test]
fn delayed_ack_every_second_segment() {
    check(
        Scene::established(delayed(2)),
        "0 < . 501:601 ack 1001 win 8000
         0.1 < . 601:701 ack 1001 win 8000
         0.2 < . 701:801 ack 1001 win 8000
         1 wait",
        expect![[r#"
            0.000 ! Readable
            0.100 > . 1001:1001 ack 701 win 7800
            0.100 ! Readable
            0.200 ! Readable
            0.400 > . 1001:1001 ack 801 win 7700
        "#]],
    );
}

#[test]
fn delayed_ack_counts_full_segments() {
    check(
        Scene::established(delayed(2)),
        "0 < . 501:601 ack 1001 win 8000
         0.05 < P. 601:605 ack 1001 win 8000
         0.06 < P. 605:609 ack 1001 win 8000
         1 wait",
        expect![[r#"
            0.000 ! Readable
            0.050 ! Readable
            0.060 ! Readable
            0.200 > . 1001:1001 ack 609 win 7892
        "#]],
    );
}

/// RFC 9293 SHLD-19: smaller segments with the bytes of two full segments also trigger an
/// acknowledgement.
#[test]
fn delayed_ack_counts_the_bytes_of_segments_that_are_not_full() {
    let script = (0..5).map(|i| format!("0 < . {}:{} ack 1001 win 8000", 1501 + i * 700, 2201 + i * 700));
    let script = script.collect::<Vec<_>>().join("\n");
    check(
        Scene::established(delayed(2)),
        &format!("0 < . 501:1501 ack 1001 win 8000\n{script}\n1 wait"),
        expect![[r#"
            0.000 ! Readable
            0.000 ! Readable
            0.000 > . 1001:1001 ack 2901 win 5600
            0.000 ! Readable
            0.000 ! Readable
            0.000 ! Readable
            0.000 > . 1001:1001 ack 5001 win 3500
            0.000 ! Readable
        "#]],
    );
}

/// A segment that is shortened by SACK blocks counts as full.
#[test]
fn delayed_ack_counts_segments_with_sack_blocks_as_full() {
    let options = Options { timestamps: Some(Timestamps { value: 100, echo: 0 }), ..Options::default() };
    let config = Config { timestamps: true, sack: SackRole::Both, ..delayed(2) };
    let options = Options { mss: Some(1000), sack_permitted: true, ..options };
    check(
        Scene::established_with(config, options),
        "0 < . 501:1489 ack 1001 win 8000 <ts 100 ecr 0>
         0 < . 1489:2477 ack 1001 win 8000 <ts 100 ecr 0>
         0 < . 2477:3453 ack 1001 win 8000 <sack 2001:2101,ts 100 ecr 0>
         0 < . 3453:4429 ack 1001 win 8000 <sack 2001:2101,ts 100 ecr 0>
         0 < . 4429:5389 ack 1001 win 8000 <sack 2001:2101 2301:2401 2501:2601,ts 100 ecr 0>
         0 < . 5389:6377 ack 1001 win 8000 <ts 100 ecr 0>",
        expect![[r#"
            0.000 ! Readable
            0.000 > . 1001:1001 ack 2477 win 6024 <ts 0 ecr 100>
            0.000 ! Readable
            0.000 ! Readable
            0.000 > . 1001:1001 ack 4429 win 4072 <ts 0 ecr 100>
            0.000 ! Readable
            0.000 ! Readable
            0.000 > . 1001:1001 ack 6377 win 2124 <ts 0 ecr 100>
            0.000 ! Readable
        "#]],
    );
}

#[test]
fn delayed_ack_every_fourth_segment() {
    let script = (0..9).map(|i| format!("0 < . {}:{} ack 1001 win 8000", 501 + i * 100, 601 + i * 100));
    check(
        Scene::established(delayed(4)),
        &script.collect::<Vec<_>>().join("\n"),
        expect![[r#"
        0.000 ! Readable
        0.000 ! Readable
        0.000 ! Readable
        0.000 > . 1001:1001 ack 901 win 7600
        0.000 ! Readable
        0.000 ! Readable
        0.000 ! Readable
        0.000 ! Readable
        0.000 > . 1001:1001 ack 1301 win 7200
        0.000 ! Readable
        0.000 ! Readable
    "#]],
    );
}

#[test]
fn delayed_ack_out_of_order_and_filling_are_at_once() {
    check(
        Scene::established(delayed(4)),
        "0 < . 601:701 ack 1001 win 8000
         0 < . 701:801 ack 1001 win 8000
         0.01 < . 501:601 ack 1001 win 8000",
        expect![[r#"
            0.000 > . 1001:1001 ack 501 win 8000
            0.000 > . 1001:1001 ack 501 win 8000
            0.010 > . 1001:1001 ack 801 win 7700
            0.010 ! Readable
        "#]],
    );
}

#[test]
fn delayed_ack_rides_on_data() {
    check(
        Scene::established(delayed(2)),
        "0 < . 501:601 ack 1001 win 8000\n0.1 write 10\n1 < . 601:601 ack 1011 win 8000",
        expect![[r#"
            0.000 ! Readable
            0.100 > P. 1001:1011 ack 601 win 7900
            1.000 ! Writable
        "#]],
    );
}

#[test]
fn delayed_ack_fin_is_acknowledged_at_once() {
    check(
        Scene::established(delayed(2)),
        "0 < F. 501:601 ack 1001 win 8000",
        expect![[r#"
        0.000 > . 1001:1001 ack 602 win 7899
        0.000 ! Readable
        0.000 ! PeerClosed
    "#]],
    );
}

#[test]
fn sack_blocks_the_latest_comes_first() {
    check(
        Scene::established(sack()),
        "0 < . 601:701 ack 1001 win 8000
         0 < . 801:901 ack 1001 win 8000
         0 < . 1001:1101 ack 1001 win 8000
         0 < . 1201:1301 ack 1001 win 8000
         0 < . 701:751 ack 1001 win 8000
         0 < . 501:601 ack 1001 win 8000
         0 read",
        expect![[r#"
            0.000 > . 1001:1001 ack 501 win 8000 <sack 601:701>
            0.000 > . 1001:1001 ack 501 win 8000 <sack 801:901 601:701>
            0.000 > . 1001:1001 ack 501 win 8000 <sack 1001:1101 801:901 601:701>
            0.000 > . 1001:1001 ack 501 win 8000 <sack 1201:1301 1001:1101 801:901>
            0.000 > . 1001:1001 ack 501 win 8000 <sack 601:751 1201:1301 1001:1101>
            0.000 > . 1001:1001 ack 751 win 7750 <sack 1201:1301 1001:1101 801:901>
            0.000 ! Readable
            0.000 read 250
        "#]],
    );
}

#[test]
fn sack_blocks_are_sent_by_role_and_permission() {
    let mut out = String::new();
    for sack in [SackRole::Off, SackRole::Receiver, SackRole::Sender, SackRole::Both] {
        for sack_permitted in [false, true] {
            let options = Options { mss: Some(1000), sack_permitted, ..Options::default() };
            let mut scene = Scene::established_with(Config { sack, ..plain() }, options);
            let transcript = scene.run("0 < . 601:701 ack 1001 win 8000");
            out += &format!("{sack:?} {sack_permitted}: {transcript}");
        }
    }
    expect![[r#"
        Off false: 0.000 > . 1001:1001 ack 501 win 8000
        Off true: 0.000 > . 1001:1001 ack 501 win 8000
        Receiver false: 0.000 > . 1001:1001 ack 501 win 8000
        Receiver true: 0.000 > . 1001:1001 ack 501 win 8000 <sack 601:701>
        Sender false: 0.000 > . 1001:1001 ack 501 win 8000
        Sender true: 0.000 > . 1001:1001 ack 501 win 8000
        Both false: 0.000 > . 1001:1001 ack 501 win 8000
        Both true: 0.000 > . 1001:1001 ack 501 win 8000 <sack 601:701>
    "#]]
    .assert_eq(&out);
}

#[test]
fn sack_bare_duplicates_precede_data() {
    check(
        Scene::established(sack()).quietly("0 write 1500"),
        "0 < . 601:701 ack 2001 win 8000",
        expect![[r#"
        0.000 > . 2001:2001 ack 501 win 8000 <sack 601:701>
        0.000 > P. 2001:2501 ack 501 win 8000
        0.000 ! Writable
    "#]],
    );
}

#[test]
fn window_closes_as_data_waits_and_opens_when_read() {
    check(
        Scene::established(Config { receive_buffer: 3000, ..plain() }),
        "0 < . 501:1501 ack 1001 win 8000
         0 < . 1501:2501 ack 1001 win 8000
         0 < . 2501:3501 ack 1001 win 8000
         0 read 500
         0 read 400
         0 read 100
         0 read",
        expect![[r#"
            0.000 > . 1001:1001 ack 1501 win 2000
            0.000 ! Readable
            0.000 > . 1001:1001 ack 2501 win 1000
            0.000 ! Readable
            0.000 > . 1001:1001 ack 3501 win 0
            0.000 ! Readable
            0.000 read 500
            0.000 read 400
            0.000 read 100
            0.000 > . 1001:1001 ack 3501 win 1000
            0.000 read 2000
            0.000 > . 1001:1001 ack 3501 win 3000
        "#]],
    );
}

#[test]
fn window_probe_is_answered_while_closed() {
    check(
        Scene::established(Config { receive_buffer: 100, ..plain() })
            .quietly("0 < . 501:601 ack 1001 win 8000"),
        "1 < . 601:602 ack 1001 win 8000\n1 read\n1.1 < . 601:602 ack 1001 win 8000",
        expect![[r#"
            1.000 > . 1001:1001 ack 601 win 0
            1.000 read 100
            1.000 > . 1001:1001 ack 601 win 100
            1.100 > . 1001:1001 ack 602 win 99
            1.100 ! Readable
        "#]],
    );
}

#[test]
fn window_closed_ack_is_still_processed() {
    check(
        Scene::established(Config { receive_buffer: 100, ..plain() })
            .quietly("0 < . 501:601 ack 1001 win 8000\n0 write 50"),
        "1 < . 601:651 ack 1051 win 8000\n1 show flight",
        expect![[r#"
            1.000 > P. 1001:1051 ack 601 win 0
            1.000 > . 1051:1051 ack 601 win 0
            1.000 ! Writable
            1.000 = flight 0
        "#]],
    );
}

#[test]
fn window_never_retracts_when_the_buffer_shrinks() {
    check(
        Scene::established(plain()),
        "0 buffer 1000
         0 < . 501:1501 ack 1001 win 8000
         0 read
         0 < . 1501:7501 ack 1001 win 8000
         0 < . 7501:8501 ack 1001 win 8000
         0 read
         0 buffer 20000
         0 < . 8501:8502 ack 1001 win 8000",
        expect![[r#"
            0.000 > . 1001:1001 ack 1501 win 7000
            0.000 ! Readable
            0.000 read 1000
            0.000 > . 1001:1001 ack 7501 win 1000
            0.000 ! Readable
            0.000 > . 1001:1001 ack 8501 win 0
            0.000 ! Readable
            0.000 read 7000
            0.000 > . 1001:1001 ack 8501 win 1000
            0.000 > . 1001:1001 ack 8501 win 20000
            0.000 > . 1001:1001 ack 8502 win 19999
            0.000 ! Readable
        "#]],
    );
}

#[test]
fn window_field_is_scaled_except_on_the_syn() {
    let config = Config { window_scale: Some(7), receive_buffer: 1_000_000, ..plain() };
    let mut out = Scene::syn_received(config).run("1 wait");
    out += &Scene::established(config)
        .run("0 < . 501:1501 ack 1001 win 8000\n0 read\n0 < . 1501:2501 ack 1001 win 8000\n0 read");
    expect![[r#"
        1.000 > S. 1000:1000 ack 501 win 65535 <mss 1000,wscale 7>
        0.000 > . 1001:1001 ack 1501 win 7805
        0.000 ! Readable
        0.000 read 1000
        0.000 > . 1001:1001 ack 2501 win 7798
        0.000 ! Readable
        0.000 read 1000
    "#]]
    .assert_eq(&out);
}

#[test]
fn window_peer_scale_is_applied() {
    let options = Options { mss: Some(1000), window_scale: Some(4), ..Options::default() };
    let config = Config { window_scale: Some(0), ..plain() };
    check(
        Scene::established_with(config, options),
        "0 show window\n0 < . 501:501 ack 1001 win 8000\n0 show window",
        expect![[r#"
            0.000 = window 8000
            0.000 ! Writable
            0.000 = window 128000
        "#]],
    );
}

#[test]
fn window_without_agreement_is_not_scaled() {
    let options = Options { mss: Some(1000), ..Options::default() };
    let config = Config { window_scale: Some(7), receive_buffer: 1_000_000, ..plain() };
    check(
        Scene::established_with(config, options),
        "0 < . 501:601 ack 1001 win 8000\n0 show window",
        expect![[r#"
            0.000 > . 1001:1001 ack 601 win 65435
            0.000 ! Readable
            0.000 = window 8000
        "#]],
    );
}

#[test]
fn sequence_numbers_wrap_on_receiving() {
    let scene = Scene::syn_sent(plain()).quietly("0 < S. 4294967200:4294967200 ack 1001 win 8000");
    check(
        scene,
        "0 < . 5:105 ack 1001 win 8000
         0 < . 4294967201:5 ack 1001 win 8000
         0 read",
        expect![[r#"
            0.000 > . 1001:1001 ack 4294967201 win 8000
            0.000 > . 1001:1001 ack 105 win 7800
            0.000 ! Readable
            0.000 read 200
        "#]],
    );
}

fn stamped() -> Scene {
    let options = Options {
        mss: Some(1000),
        timestamps: Some(Timestamps { value: 100, echo: 0 }),
        ..Options::default()
    };
    Scene::established_with(Config { timestamps: true, ..plain() }, options)
}

#[test]
fn timestamps_take_twelve_octets_and_are_echoed() {
    check(
        stamped(),
        "0 show mss
         0.5 < . 501:601 ack 1001 win 8000 <ts 150 ecr 0>
         0.6 < . 601:701 ack 1001 win 8000 <ts 160 ecr 0>
         0.7 write 2000",
        expect![[r#"
            0.000 = mss 988
            0.500 > . 1001:1001 ack 601 win 7900 <ts 500 ecr 150>
            0.500 ! Readable
            0.600 > . 1001:1001 ack 701 win 7800 <ts 600 ecr 160>
            0.600 ! Readable
            0.700 > . 1001:1989 ack 701 win 7800 <ts 700 ecr 160>
        "#]],
    );
}

/// RFC 7323 section 4.3: the acknowledgement of a retransmission echoes the retransmission. For a
/// segment that lies too far back, or whose clock has jumped, it echoes the previous one.
#[test]
fn timestamps_echo_a_repetition_of_what_has_arrived() {
    check(
        stamped(),
        "0.5 < . 501:601 ack 1001 win 8000 <ts 150 ecr 0>
         0.6 < . 501:601 ack 1001 win 8000 <ts 900 ecr 0>
         0.7 < . 1000000501:1000000601 ack 1001 win 8000 <ts 990 ecr 0>
         0.8 < . 501:601 ack 1001 win 8000 <ts 9000 ecr 0>",
        expect![[r#"
            0.500 > . 1001:1001 ack 601 win 7900 <ts 500 ecr 150>
            0.500 ! Readable
            0.600 > . 1001:1001 ack 601 win 7900 <ts 600 ecr 900>
            0.700 > . 1001:1001 ack 601 win 7900 <ts 700 ecr 900>
            0.800 > . 1001:1001 ack 601 win 7900 <ts 800 ecr 900>
        "#]],
    );
}

/// RFC 5961 section 5.2: an acknowledgement of unsent data must not set TS.Recent, or PAWS would
/// drop the following segments.
#[test]
fn timestamps_of_an_impossible_acknowledgement_are_not_taken() {
    check(
        stamped(),
        "0.5 < . 501:601 ack 9001 win 8000 <ts 90000 ecr 0>
         0.6 < . 501:601 ack 1001 win 8000 <ts 160 ecr 0>",
        expect![[r#"
            0.500 > . 1001:1001 ack 501 win 8000 <ts 500 ecr 100>
            0.600 > . 1001:1001 ack 601 win 7900 <ts 600 ecr 160>
            0.600 ! Readable
        "#]],
    );
}

#[test]
fn timestamps_echo_the_segment_at_the_left_edge() {
    check(
        stamped(),
        "0.5 < . 601:701 ack 1001 win 8000 <ts 150 ecr 0>
         0.6 < . 501:601 ack 1001 win 8000 <ts 160 ecr 0>",
        expect![[r#"
            0.500 > . 1001:1001 ack 501 win 8000 <ts 500 ecr 100>
            0.600 > . 1001:1001 ack 701 win 7800 <ts 600 ecr 160>
            0.600 ! Readable
        "#]],
    );
}

#[test]
fn timestamps_missing_is_dropped_silently() {
    check(
        stamped(),
        "0.5 < . 501:601 ack 1001 win 8000\n0.5 show dropped",
        expect![[r#"
        0.500 = dropped 1
    "#]],
    );
}

#[test]
fn paws_old_timestamp_is_acknowledged_and_dropped() {
    check(
        stamped(),
        "0.5 < . 501:601 ack 1001 win 8000 <ts 150 ecr 0>
         0.6 < . 601:701 ack 1001 win 8000 <ts 149 ecr 0>
         0.6 show dropped
         2073601 < . 601:701 ack 1001 win 8000 <ts 149 ecr 0>",
        expect![[r#"
            0.500 > . 1001:1001 ack 601 win 7900 <ts 500 ecr 150>
            0.500 ! Readable
            0.600 > . 1001:1001 ack 601 win 7900 <ts 600 ecr 150>
            0.600 = dropped 1
            2073601.000 > . 1001:1001 ack 701 win 7800 <ts 2073601000 ecr 149>
            2073601.000 ! Readable
        "#]],
    );
}

#[test]
fn paws_reset_needs_no_timestamp() {
    check(
        stamped(),
        "0.5 < R 501:501 win 0",
        expect![[r#"
        0.500 ! Closed(Reset)
    "#]],
    );
}

#[test]
fn a_pushed_segment_is_acknowledged_at_once_if_wanted() {
    let delayed_ack = DelayedAck::Every { segments: 20, timeout: Duration::from_secs(5) };
    check(
        Scene::established(Config { delayed_ack, ack_on_push: true, ..plain() }),
        "0 < . 501:1501 ack 1001 win 8000\n0.1 < . 1501:2501 ack 1001 win 8000\n0.2 < P. 2501:3501 ack 1001 win 8000",
        expect![[r#"
            0.000 ! Readable
            0.100 ! Readable
            0.200 > . 1001:1001 ack 3501 win 5000
            0.200 ! Readable
        "#]],
    );
}

/// A message of one segment waits for the answer that it may cause.
#[test]
fn the_end_of_a_longer_message_is_acknowledged_at_once_if_wanted() {
    let delayed_ack = DelayedAck::Every { segments: 2, timeout: Duration::from_secs(5) };
    check(
        Scene::established(Config { delayed_ack, ack_remainder: true, ..plain() }),
        "0 < P. 501:1501 ack 1001 win 8000\n0.1 < P. 1501:1601 ack 1001 win 8000\n0.2 < P. 1601:2601 ack 1001 win 8000",
        expect![[r#"
            0.000 ! Readable
            0.100 > . 1001:1001 ack 1601 win 6900
            0.100 ! Readable
            0.200 ! Readable
        "#]],
    );
}

/// Neither a gap nor the segment that fills it gets an acknowledgement of its own: the last segment
/// of the window requests one.
#[test]
fn gaps_wait_for_the_acknowledgement_of_the_window_if_wanted() {
    let delayed_ack = DelayedAck::Every { segments: 20, timeout: Duration::from_secs(5) };
    check(
        Scene::established(Config { delayed_ack, ack_on_push: true, ack_gaps: false, ..sack() }),
        "0 < . 1501:2501 ack 1001 win 8000
         0.1 < P. 3501:4501 ack 1001 win 8000
         0.2 < . 501:1501 ack 1001 win 8000
         0.3 < P. 2501:3501 ack 1001 win 8000",
        expect![[r#"
            0.100 > . 1001:1001 ack 501 win 8000 <sack 3501:4501 1501:2501>
            0.200 ! Readable
            0.300 > . 1001:1001 ack 4501 win 4000
            0.300 ! Readable
        "#]],
    );
}

fn dsack() -> Config {
    Config { dsack: true, ..sack() }
}

/// RFC 2883 section 4.1: example 1, an acknowledgement is lost; example 2, there is a hole above;
/// and the second copy of data above the hole (section 4.1.3), whose block lies within the second
/// block.
#[test]
fn dsack_whole_duplicates() {
    check(
        Scene::established(dsack()),
        "0 < . 501:1001 ack 1001 win 8000
         0 < . 501:1001 ack 1001 win 8000
         0 < . 1501:2001 ack 1001 win 8000
         0 < . 501:1001 ack 1001 win 8000
         0 < . 2001:2501 ack 1001 win 8000
         0 < . 1501:2001 ack 1001 win 8000
         0 < . 1001:1501 ack 1001 win 8000",
        expect![[r#"
            0.000 > . 1001:1001 ack 1001 win 7500
            0.000 ! Readable
            0.000 > . 1001:1001 ack 1001 win 7500 <sack 501:1001>
            0.000 > . 1001:1001 ack 1001 win 7500 <sack 1501:2001>
            0.000 > . 1001:1001 ack 1001 win 7500 <sack 501:1001 1501:2001>
            0.000 > . 1001:1001 ack 1001 win 7500 <sack 1501:2501>
            0.000 > . 1001:1001 ack 1001 win 7500 <sack 1501:2001 1501:2501>
            0.000 > . 1001:1001 ack 2501 win 6000
            0.000 ! Readable
        "#]],
    );
}

/// RFC 2883 section 4.2: only data received before is reported, and of two parts the first.
#[test]
fn dsack_parts_of_segments() {
    check(
        Scene::established(dsack()),
        "0 < . 501:701 ack 1001 win 8000
         0 < . 501:901 ack 1001 win 8000      # the first half, in order
         0 < . 1101:1301 ack 1001 win 8000
         0 < . 1501:1701 ack 1001 win 8000
         0 < . 1201:1601 ack 1001 win 8000    # both ends above the hole
         0 < . 701:1201 ack 1001 win 8000     # below and above the hole",
        expect![[r#"
            0.000 > . 1001:1001 ack 701 win 7800
            0.000 ! Readable
            0.000 > . 1001:1001 ack 901 win 7600 <sack 501:701>
            0.000 ! Readable
            0.000 > . 1001:1001 ack 901 win 7600 <sack 1101:1301>
            0.000 > . 1001:1001 ack 901 win 7600 <sack 1501:1701 1101:1301>
            0.000 > . 1001:1001 ack 901 win 7600 <sack 1201:1301 1101:1701>
            0.000 > . 1001:1001 ack 1701 win 6800 <sack 701:901>
            0.000 ! Readable
        "#]],
    );
}

/// A duplicate that PAWS drops (RFC 7323 section 5.3) is still reported.
#[test]
fn dsack_of_an_old_copy() {
    let config = Config { timestamps: true, ..dsack() };
    check(
        Scene::established(config),
        "0 < . 501:1001 ack 1001 win 8000 <ts 10 ecr 0>
         0 < . 501:1001 ack 1001 win 8000 <ts 5 ecr 0>
         0 < . 1001:1501 ack 1001 win 8000 <ts 5 ecr 0>",
        expect![[r#"
            0.000 > . 1001:1001 ack 1001 win 7500 <ts 0 ecr 10>
            0.000 ! Readable
            0.000 > . 1001:1001 ack 1001 win 7500 <ts 0 ecr 10,sack 501:1001>
            0.000 > . 1001:1001 ack 1001 win 7500 <ts 0 ecr 10>
        "#]],
    );
}

/// Without the option, and if the peer does not permit SACK.
#[test]
fn dsack_needs_permission() {
    for (config, sack_permitted) in [(sack(), true), (dsack(), false)] {
        let options = Options { mss: Some(1000), sack_permitted, ..Options::default() };
        let mut scene = Scene::established_with(config, options);
        let transcript = scene.run("0 < . 501:1001 ack 1001 win 8000\n0 < . 501:1001 ack 1001 win 8000");
        assert!(!transcript.contains("sack"), "{transcript}");
    }
}

/// The report is sent before data, so that a peer that counts duplicate acknowledgements may count
/// it.
#[test]
fn dsack_leaves_before_data() {
    check(
        Scene::established(dsack()).quietly("0 write 1500\n0 < . 501:601 ack 1001 win 8000"),
        "0 < . 501:701 ack 2001 win 8000",
        expect![[r#"
            0.000 > . 2001:2001 ack 701 win 7800 <sack 501:601>
            0.000 > P. 2001:2501 ack 701 win 7800
            0.000 ! Readable
            0.000 ! Writable
        "#]],
    );
}
