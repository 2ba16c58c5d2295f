//! Connection establishment: RFC 9293 sections 3.5 and 3.10.7.3, and the negotiated options.

use anabranch_core::segment::Flags;
use anabranch_core::tcp::{Config, SackRole, reset_for};
use anabranch_testkit::notation;
use anabranch_testkit::script::{Scene, check, plain};
use expect_test::expect;

#[test]
fn syn_sent_syn_ack_establishes() {
    check(
        Scene::syn_sent(plain()),
        "0.1 < S. 500:500 ack 1001 win 8000 <mss 700>\n0.1 show mss\n0.1 show srtt",
        expect![[r#"
            0.100 > . 1001:1001 ack 501 win 8000
            0.100 ! Established
            0.100 = mss 700
            0.100 = srtt Some(0.100000000s)
        "#]],
    );
}

#[test]
fn syn_sent_time_outs_give_up() {
    check(
        Scene::syn_sent(plain()),
        "100 show state",
        expect![[r#"
        1.000 > S 1000:1000 win 8000 <mss 1000>
        3.000 > S 1000:1000 win 8000 <mss 1000>
        7.000 ! Closed(TimedOut)
        100.000 = state Closed
    "#]],
    );
}

#[test]
fn syn_sent_lost_syn_starts_with_one_segment_and_three_seconds() {
    let config = Config { initial_window: anabranch_core::tcp::InitialWindow::Rfc6928, ..plain() };
    check(
        Scene::syn_sent(config),
        "1.5 < S. 500:500 ack 1001 win 8000 <mss 1000>
         1.5 show cwnd
         1.5 show rto
         1.5 show srtt",
        expect![[r#"
            1.000 > S 1000:1000 win 8000 <mss 1000>
            1.500 > . 1001:1001 ack 501 win 8000
            1.500 ! Established
            1.500 = cwnd 1
            1.500 = rto 3.000000000s
            1.500 = srtt None
        "#]],
    );
}

#[test]
fn syn_sent_bad_ack_is_reset() {
    check(
        Scene::syn_sent(plain()),
        "0 < . 500:500 ack 900 win 8000
         0 < S. 500:500 ack 1002 win 8000
         0 < R. 500:500 ack 1002
         0 show state",
        expect![[r#"
            0.000 > R 900:900 win 0
            0.000 > R 1002:1002 win 0
            0.000 = state SynSent
        "#]],
    );
}

#[test]
fn syn_sent_reset_with_ack_is_refused() {
    check(
        Scene::syn_sent(plain()),
        "0 < R. 0:0 ack 1001 win 0\n0 show state",
        expect![[r#"
        0.000 ! Closed(Refused)
        0.000 = state Closed
    "#]],
    );
}

#[test]
fn syn_sent_reset_without_ack_is_dropped() {
    check(
        Scene::syn_sent(plain()),
        "0 < R 0:0 win 0\n0 show state\n0 show dropped",
        expect![[r#"
        0.000 = state SynSent
        0.000 = dropped 1
    "#]],
    );
}

#[test]
fn syn_sent_ack_without_syn_is_dropped() {
    check(
        Scene::syn_sent(plain()),
        "0 < . 500:500 ack 1001 win 8000\n0 show state\n0 show dropped",
        expect![[r#"
        0.000 = state SynSent
        0.000 = dropped 1
    "#]],
    );
}

#[test]
fn syn_sent_write_waits_for_the_handshake() {
    check(
        Scene::syn_sent(plain()),
        "0 write 300\n0.1 < S. 500:500 ack 1001 win 8000 <mss 1000>",
        expect![[r#"
            0.100 > P. 1001:1301 ack 501 win 8000
            0.100 ! Established
        "#]],
    );
}

#[test]
fn syn_sent_data_on_the_syn_ack_is_taken() {
    check(
        Scene::syn_sent(plain()),
        "0 < S. 500:510 ack 1001 win 8000\n0 show state",
        expect![[r#"
        0.000 > . 1001:1001 ack 511 win 7990
        0.000 ! Established
        0.000 ! Readable
        0.000 = state Established
    "#]],
    );
}

#[test]
fn syn_sent_close_forgets_the_connection() {
    check(
        Scene::syn_sent(plain()),
        "0 close\n5 show state",
        expect![[r#"
        0.000 ! Closed(Aborted)
        5.000 = state Closed
    "#]],
    );
}

#[test]
fn syn_sent_close_after_write_sends_data_and_fin() {
    check(
        Scene::syn_sent(plain()),
        "0 write 10\n0 close\n0 write 1\n0.1 < S. 500:500 ack 1001 win 8000 <mss 1000>\n0.1 show state",
        expect![[r#"
            0.000 write: the sending direction is closed
            0.100 > F. 1001:1011 ack 501 win 8000
            0.100 ! Established
            0.100 = state FinWait1
        "#]],
    );
}

#[test]
fn syn_sent_abort_sends_nothing() {
    check(
        Scene::syn_sent(plain()),
        "0 abort\n0 show state",
        expect![[r#"
        0.000 ! Closed(Aborted)
        0.000 = state Closed
    "#]],
    );
}

#[test]
fn syn_sent_simultaneous_open_establishes() {
    check(
        Scene::syn_sent(plain()),
        "0.1 < S 500:500 win 8000 <mss 1000>
         0.1 show state
         0.2 < S. 500:500 ack 1001 win 8000 <mss 1000>
         0.2 show state",
        expect![[r#"
            0.100 > S. 1000:1000 ack 501 win 8000 <mss 1000>
            0.100 = state SynReceived
            0.200 > . 1001:1001 ack 501 win 8000
            0.200 ! Established
            0.200 = state Established
        "#]],
    );
}

#[test]
fn syn_received_ack_establishes() {
    check(
        Scene::syn_received(plain()),
        "0.1 < . 501:501 ack 1001 win 4000\n0.1 show window\n0.1 show srtt",
        expect![[r#"
            0.100 ! Established
            0.100 = window 4000
            0.100 = srtt Some(0.100000000s)
        "#]],
    );
}

#[test]
fn syn_received_data_with_the_ack_is_taken() {
    check(
        Scene::syn_received(plain()),
        "0.1 < P. 501:601 ack 1001 win 4000\n0.1 read",
        expect![[r#"
        0.100 > . 1001:1001 ack 601 win 7900
        0.100 ! Established
        0.100 ! Readable
        0.100 read 100
    "#]],
    );
}

#[test]
fn syn_received_fin_with_the_ack_half_closes() {
    check(
        Scene::syn_received(plain()),
        "0.1 < F. 501:601 ack 1001 win 4000\n0.1 show state",
        expect![[r#"
        0.100 > . 1001:1001 ack 602 win 7899
        0.100 ! Established
        0.100 ! Readable
        0.100 ! PeerClosed
        0.100 = state CloseWait
    "#]],
    );
}

#[test]
fn syn_received_syn_again_answers_again() {
    check(
        Scene::syn_received(plain()),
        "0.1 < S 500:500 win 8000 <mss 1000>",
        expect![[r#"
        0.100 > S. 1000:1000 ack 501 win 8000 <mss 1000>
    "#]],
    );
}

#[test]
fn syn_received_bad_ack_is_reset() {
    check(
        Scene::syn_received(plain()),
        "0.1 < . 501:501 ack 1500 win 8000\n0.1 show state",
        expect![[r#"
        0.100 > R 1500:1500 win 0
        0.100 = state SynReceived
    "#]],
    );
}

#[test]
fn syn_received_reset_returns_to_listen() {
    check(
        Scene::syn_received(plain()),
        "0.1 < R 501:501 win 0\n0.1 show state",
        expect![[r#"
        0.100 ! Closed(Reset)
        0.100 = state Closed
    "#]],
    );
}

#[test]
fn syn_received_other_syn_is_challenged() {
    check(
        Scene::syn_received(plain()),
        "0.1 < S 900:900 win 0\n0.1 show state",
        expect![[r#"
        0.100 > . 1001:1001 ack 501 win 8000
        0.100 = state SynReceived
    "#]],
    );
}

#[test]
fn syn_received_time_outs_give_up_with_a_reset() {
    check(
        Scene::syn_received(plain()),
        "100 show state",
        expect![[r#"
        1.000 > S. 1000:1000 ack 501 win 8000 <mss 1000>
        3.000 > S. 1000:1000 ack 501 win 8000 <mss 1000>
        7.000 > R 1001:1001 win 0
        7.000 ! Closed(TimedOut)
        100.000 = state Closed
    "#]],
    );
}

#[test]
fn syn_received_close_waits_for_the_handshake() {
    check(
        Scene::syn_received(plain()),
        "0 close\n0.1 < . 501:501 ack 1001 win 8000\n0.1 show state",
        expect![[r#"
            0.100 > F. 1001:1001 ack 501 win 8000
            0.100 ! Established
            0.100 = state FinWait1
        "#]],
    );
}

#[test]
fn syn_received_abort_resets() {
    check(
        Scene::syn_received(plain()),
        "0 abort",
        expect![[r#"
        0.000 > R 1001:1001 win 0
        0.000 ! Closed(Aborted)
    "#]],
    );
}

#[test]
fn every_option_is_offered() {
    let mut scene = Scene::syn_sent(Config::default());
    expect![[r#"
        1.000 > S 1000:1000 win 65535 <mss 1440,wscale 7,sackOK,ts 1000 ecr 0>
    "#]]
    .assert_eq(&scene.run("1.0 wait"));
}

#[test]
fn sack_roles_say_what_they_permit() {
    let mut out = String::new();
    for sack in [SackRole::Off, SackRole::Receiver, SackRole::Sender, SackRole::Both] {
        out += &Scene::syn_received(Config { sack, ..plain() }).run("1 wait");
    }
    expect![[r#"
        1.000 > S. 1000:1000 ack 501 win 8000 <mss 1000>
        1.000 > S. 1000:1000 ack 501 win 8000 <mss 1000>
        1.000 > S. 1000:1000 ack 501 win 8000 <mss 1000,sackOK>
        1.000 > S. 1000:1000 ack 501 win 8000 <mss 1000,sackOK>
    "#]]
    .assert_eq(&out);
}

#[test]
fn closed_answers_with_a_reset() {
    let mut out = String::new();
    for text in ["S 500:500", ". 500:510 ack 77", "F 500:510", "SF 500:510", "R 5:5"] {
        let reset = reset_for(&notation::parse(text).unwrap());
        assert_eq!(reset.is_none(), text.starts_with('R'));
        out += &reset.map_or("nothing".to_owned(), |r| notation::format(&r));
        out.push('\n');
    }
    expect![[r#"
        R. 0:0 ack 501 win 0
        R 77:77 win 0
        R. 0:0 ack 511 win 0
        R. 0:0 ack 512 win 0
        nothing
    "#]]
    .assert_eq(&out);
}

#[test]
fn listen_accepts_only_a_bare_syn() {
    use anabranch_core::segment::SeqNumber;
    use anabranch_core::tcp::Connection;
    use anabranch_core::time::Instant;
    for text in ["S. 500:500 ack 1", ". 500:500 ack 1", "SR 500:500", "F 500:500"] {
        let segment = notation::parse(text).unwrap();
        assert!(Connection::accept(Instant::ZERO, plain(), &segment, SeqNumber(1)).is_none(), "{text}");
    }
    let syn = notation::parse("S 500:500").unwrap();
    assert!(syn.flags.contains(Flags::SYN));
    assert!(Connection::accept(Instant::ZERO, plain(), &syn, SeqNumber(1)).is_some());
}
