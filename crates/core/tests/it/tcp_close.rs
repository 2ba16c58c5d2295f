//! Closing and resets in every state: RFC 9293 sections 3.6 and 3.10.7.4, RFC 5961.

use anabranch_core::segment::SeqNumber;
use anabranch_core::tcp::{CloseReason, Connection, Event};
use anabranch_core::time::Instant;
use anabranch_testkit::script::{Scene, check, plain};
use expect_test::expect;

#[test]
fn established_close_sends_fin_and_walks_to_time_wait() {
    check(
        Scene::established(plain()),
        "0 close
         0 show state
         0.1 < . 501:501 ack 1002 win 8000
         0.1 show state
         0.2 < F. 501:501 ack 1002 win 8000
         0.2 show state
         100 show state",
        expect![[r#"
            0.000 > F. 1001:1001 ack 501 win 8000
            0.000 = state FinWait1
            0.100 ! Writable
            0.100 = state FinWait2
            0.200 > . 1002:1002 ack 502 win 7999
            0.200 ! PeerClosed
            0.200 = state TimeWait
            60.200 ! Closed(Graceful)
            100.000 = state Closed
        "#]],
    );
}

#[test]
fn established_close_sends_fin_with_the_last_data() {
    check(
        Scene::established(plain()),
        "0 write 1500\n0 close\n0 < . 501:501 ack 2001 win 8000",
        expect![[r#"
        0.000 > . 1001:2001 ack 501 win 8000
        0.000 > F. 2001:2501 ack 501 win 8000
        0.000 ! Writable
    "#]],
    );
}

#[test]
fn established_fin_half_closes_and_data_still_flows() {
    check(
        Scene::established(plain()),
        "0 < F. 501:601 ack 1001 win 8000
         0 show state
         0 read
         0 write 500
         0.1 < . 602:602 ack 1501 win 8000
         0.1 close
         0.1 show state
         0.2 < . 602:602 ack 1502 win 8000
         0.2 show state",
        expect![[r#"
            0.000 > . 1001:1001 ack 602 win 7899
            0.000 ! Readable
            0.000 ! PeerClosed
            0.000 = state CloseWait
            0.000 read 100
            0.000 > P. 1001:1501 ack 602 win 7899
            0.100 ! Writable
            0.100 > F. 1501:1501 ack 602 win 7899
            0.100 = state LastAck
            0.200 ! Writable
            0.200 ! Closed(Graceful)
            0.200 = state Closed
        "#]],
    );
}

#[test]
fn established_fin_out_of_order_waits_for_the_hole() {
    check(
        Scene::established(plain()),
        "0 < F. 511:521 ack 1001 win 8000
         0 show state
         0 < . 501:511 ack 1001 win 8000
         0 show state
         0 read",
        expect![[r#"
            0.000 > . 1001:1001 ack 501 win 8000
            0.000 = state Established
            0.000 > . 1001:1001 ack 522 win 7979
            0.000 ! Readable
            0.000 ! PeerClosed
            0.000 = state CloseWait
            0.000 read 20
        "#]],
    );
}

#[test]
fn fin_wait_1_fin_and_ack_together_reach_time_wait() {
    check(
        Scene::fin_wait_1(plain()),
        "0 < F. 501:501 ack 1002 win 8000\n0 show state",
        expect![[r#"
        0.000 > . 1002:1002 ack 502 win 7999
        0.000 ! Writable
        0.000 ! PeerClosed
        0.000 = state TimeWait
    "#]],
    );
}

#[test]
fn fin_wait_1_fin_alone_is_a_simultaneous_close() {
    check(
        Scene::fin_wait_1(plain()),
        "0 < F. 501:501 ack 1001 win 8000
         0 show state
         0.1 < . 502:502 ack 1002 win 8000
         0.1 show state",
        expect![[r#"
            0.000 > . 1002:1002 ack 502 win 7999
            0.000 ! PeerClosed
            0.000 = state Closing
            0.100 ! Writable
            0.100 = state TimeWait
        "#]],
    );
}

#[test]
fn fin_wait_1_lost_fin_is_sent_again() {
    check(
        Scene::fin_wait_1(plain()),
        "1.5 < . 501:501 ack 1002 win 8000\n1.5 show state",
        expect![[r#"
        1.000 > F. 1001:1001 ack 501 win 8000
        1.500 ! Writable
        1.500 = state FinWait2
    "#]],
    );
}

#[test]
fn fin_wait_2_data_is_still_taken() {
    check(
        Scene::fin_wait_2(plain()),
        "0 < P. 501:601 ack 1002 win 8000\n0 read\n0 write 5",
        expect![[r#"
        0.000 > . 1002:1002 ack 601 win 7900
        0.000 ! Readable
        0.000 read 100
        0.000 write: the sending direction is closed
    "#]],
    );
}

#[test]
fn fin_wait_2_waits_without_a_timer() {
    check(
        Scene::fin_wait_2(plain()),
        "10000 show state",
        expect![[r#"
        10000.000 = state FinWait2
    "#]],
    );
}

#[test]
fn close_wait_more_data_is_refused() {
    check(
        Scene::close_wait(plain()),
        "0 < P. 502:602 ack 1001 win 8000\n0 show state",
        expect![[r#"
        0.000 = state CloseWait
    "#]],
    );
}

#[test]
fn close_wait_fin_again_is_acknowledged_again() {
    check(
        Scene::close_wait(plain()),
        "0 < F. 501:501 ack 1001 win 8000\n0 show state",
        expect![[r#"
        0.000 > . 1001:1001 ack 502 win 7999
        0.000 = state CloseWait
    "#]],
    );
}

#[test]
fn closing_fin_again_is_acknowledged_again() {
    check(
        Scene::closing(plain()),
        "0 < F. 501:501 ack 1001 win 8000\n0 show state",
        expect![[r#"
        0.000 > . 1002:1002 ack 502 win 7999
        0.000 = state Closing
    "#]],
    );
}

#[test]
fn last_ack_ack_closes() {
    check(
        Scene::last_ack(plain()),
        "0 < . 502:502 ack 1002 win 8000\n0 show state",
        expect![[r#"
        0.000 ! Writable
        0.000 ! Closed(Graceful)
        0.000 = state Closed
    "#]],
    );
}

#[test]
fn last_ack_time_outs_give_up() {
    check(
        Scene::last_ack(plain()),
        "100 show state",
        expect![[r#"
        1.000 > F. 1001:1001 ack 502 win 7999
        3.000 > F. 1001:1001 ack 502 win 7999
        7.000 > F. 1001:1001 ack 502 win 7999
        15.000 > R 1002:1002 win 0
        15.000 ! Closed(TimedOut)
        100.000 = state Closed
    "#]],
    );
}

#[test]
fn time_wait_fin_again_restarts_the_wait() {
    check(
        Scene::time_wait(plain()),
        "50 < F. 501:501 ack 1002 win 8000
         109 show state
         111 show state",
        expect![[r#"
            50.000 > . 1002:1002 ack 502 win 7999
            109.000 = state TimeWait
            110.000 ! Closed(Graceful)
            111.000 = state Closed
        "#]],
    );
}

#[test]
fn time_wait_syn_is_challenged() {
    check(
        Scene::time_wait(plain()),
        "1 < S 9000:9000 win 8000\n1 < S 502:502 win 8000\n1 show state",
        expect![[r#"
            1.000 > . 1002:1002 ack 502 win 7999
            1.000 > . 1002:1002 ack 502 win 7999
            1.000 = state TimeWait
        "#]],
    );
}

#[test]
fn closed_takes_nothing() {
    check(
        Scene::established(plain()).quietly("0 abort"),
        "0 < . 501:601 ack 1001 win 8000\n0 write 5\n0 close\n0 abort\n0 show dropped",
        expect![[r#"
            0.000 write: the connection is closed
            0.000 = dropped 1
        "#]],
    );
}

/// The state machine as a table: the next state for each state and event.
#[test]
fn state_by_event_table() {
    let events = [
        ("SYN", "< S RCV:RCV win 8000"),
        ("SYN-ACK", "< S. 500:500 ack SND win 8000"),
        ("ACK", "< . RCV:RCV ack SND win 8000"),
        ("FIN", "< F. RCV:RCV ack 1001 win 8000"),
        ("FIN+ACK", "< F. RCV:RCV ack SND win 8000"),
        ("RST", "< R. RCV:RCV ack SND win 0"),
        ("close", "close"),
        ("abort", "abort"),
    ];
    let early: [(&str, MakeScene); 2] =
        [("syn_sent", Scene::syn_sent), ("syn_received", Scene::syn_received)];
    let mut out = String::new();
    for (name, scene) in early.into_iter().chain(synchronised()) {
        let closed = ["close_wait", "closing", "last_ack", "time_wait"].contains(&name);
        let finished = name.starts_with("fin_wait") || ["closing", "last_ack", "time_wait"].contains(&name);
        let (rcv, snd) = (if closed { "502" } else { "501" }, if finished { "1002" } else { "1001" });
        out += &format!("{name}:");
        for (event, action) in events {
            let mut scene = scene(plain());
            scene.run(&format!("0 {}", action.replace("RCV", rcv).replace("SND", snd)));
            out += &format!(" {event} {:?};", scene.connection.state());
        }
        out.push('\n');
    }
    expect![[r#"
        syn_sent: SYN SynReceived; SYN-ACK Established; ACK SynSent; FIN SynSent; FIN+ACK SynSent; RST Closed; close Closed; abort Closed;
        syn_received: SYN SynReceived; SYN-ACK Established; ACK Established; FIN CloseWait; FIN+ACK CloseWait; RST Closed; close SynReceived; abort Closed;
        established: SYN Established; SYN-ACK Established; ACK Established; FIN CloseWait; FIN+ACK CloseWait; RST Closed; close FinWait1; abort Closed;
        fin_wait_1: SYN FinWait1; SYN-ACK FinWait1; ACK FinWait2; FIN Closing; FIN+ACK TimeWait; RST Closed; close FinWait1; abort Closed;
        fin_wait_2: SYN FinWait2; SYN-ACK FinWait2; ACK FinWait2; FIN TimeWait; FIN+ACK TimeWait; RST Closed; close FinWait2; abort Closed;
        close_wait: SYN CloseWait; SYN-ACK CloseWait; ACK CloseWait; FIN CloseWait; FIN+ACK CloseWait; RST Closed; close LastAck; abort Closed;
        closing: SYN Closing; SYN-ACK Closing; ACK TimeWait; FIN Closing; FIN+ACK TimeWait; RST Closed; close Closing; abort Closed;
        last_ack: SYN LastAck; SYN-ACK LastAck; ACK Closed; FIN LastAck; FIN+ACK Closed; RST Closed; close LastAck; abort Closed;
        time_wait: SYN TimeWait; SYN-ACK TimeWait; ACK TimeWait; FIN TimeWait; FIN+ACK TimeWait; RST Closed; close TimeWait; abort Closed;
    "#]].assert_eq(&out);
}

/// Every synchronised state with four kinds of reset: at RCV.NXT, in the window, before and after
/// it.
#[test]
fn resets_count_only_at_rcv_nxt() {
    let mut out = String::new();
    for (name, scene) in synchronised() {
        let nxt = if ["established", "fin_wait_1", "fin_wait_2"].contains(&name) { 501 } else { 502 };
        for (place, seq) in [("in window", nxt + 9), ("before", nxt - 1), ("beyond", nxt + 9000), ("at", nxt)]
        {
            let mut scene = scene(plain());
            let transcript = scene.run(&format!("0 < R {seq}:{seq} win 0\n0 show state"));
            out += &format!("{name}, {place}: {}\n", transcript.trim_end().replace('\n', "; "));
        }
    }
    expect![[r#"
        established, in window: 0.000 > . 1001:1001 ack 501 win 8000; 0.000 = state Established
        established, before: 0.000 = state Established
        established, beyond: 0.000 = state Established
        established, at: 0.000 ! Closed(Reset); 0.000 = state Closed
        fin_wait_1, in window: 0.000 > . 1002:1002 ack 501 win 8000; 0.000 = state FinWait1
        fin_wait_1, before: 0.000 = state FinWait1
        fin_wait_1, beyond: 0.000 = state FinWait1
        fin_wait_1, at: 0.000 ! Closed(Reset); 0.000 = state Closed
        fin_wait_2, in window: 0.000 > . 1002:1002 ack 501 win 8000; 0.000 = state FinWait2
        fin_wait_2, before: 0.000 = state FinWait2
        fin_wait_2, beyond: 0.000 = state FinWait2
        fin_wait_2, at: 0.000 ! Closed(Reset); 0.000 = state Closed
        close_wait, in window: 0.000 > . 1001:1001 ack 502 win 7999; 0.000 = state CloseWait
        close_wait, before: 0.000 = state CloseWait
        close_wait, beyond: 0.000 = state CloseWait
        close_wait, at: 0.000 ! Closed(Reset); 0.000 = state Closed
        closing, in window: 0.000 > . 1002:1002 ack 502 win 7999; 0.000 = state Closing
        closing, before: 0.000 = state Closing
        closing, beyond: 0.000 = state Closing
        closing, at: 0.000 ! Closed(Reset); 0.000 = state Closed
        last_ack, in window: 0.000 > . 1002:1002 ack 502 win 7999; 0.000 = state LastAck
        last_ack, before: 0.000 = state LastAck
        last_ack, beyond: 0.000 = state LastAck
        last_ack, at: 0.000 ! Closed(Reset); 0.000 = state Closed
        time_wait, in window: 0.000 > . 1002:1002 ack 502 win 7999; 0.000 = state TimeWait
        time_wait, before: 0.000 = state TimeWait
        time_wait, beyond: 0.000 = state TimeWait
        time_wait, at: 0.000 ! Closed(Graceful); 0.000 = state Closed
    "#]]
    .assert_eq(&out);
}

/// SYN, no ACK, an ACK of unsent data, a very old ACK.
#[test]
fn impossible_segments_are_challenged_or_dropped() {
    let mut out = String::new();
    for (name, scene) in synchronised() {
        let nxt = if ["established", "fin_wait_1", "fin_wait_2"].contains(&name) { 501 } else { 502 };
        for segment in
            ["S NXT:NXT win 9", "- NXT:NXT win 9", ". NXT:NXT ack 9999", ". NXT:NXT ack 4000000000"]
        {
            let mut scene = scene(plain());
            let segment = segment.replace("NXT", &nxt.to_string());
            let transcript = scene.run(&format!("0 < {segment}\n0 show state"));
            out += &format!("{name}, {segment}: {}\n", transcript.trim_end().replace('\n', "; "));
        }
    }
    expect![[r#"
        established, S 501:501 win 9: 0.000 > . 1001:1001 ack 501 win 8000; 0.000 = state Established
        established, - 501:501 win 9: 0.000 = state Established
        established, . 501:501 ack 9999: 0.000 > . 1001:1001 ack 501 win 8000; 0.000 = state Established
        established, . 501:501 ack 4000000000: 0.000 > . 1001:1001 ack 501 win 8000; 0.000 = state Established
        fin_wait_1, S 501:501 win 9: 0.000 > . 1002:1002 ack 501 win 8000; 0.000 = state FinWait1
        fin_wait_1, - 501:501 win 9: 0.000 = state FinWait1
        fin_wait_1, . 501:501 ack 9999: 0.000 > . 1002:1002 ack 501 win 8000; 0.000 = state FinWait1
        fin_wait_1, . 501:501 ack 4000000000: 0.000 > . 1002:1002 ack 501 win 8000; 0.000 = state FinWait1
        fin_wait_2, S 501:501 win 9: 0.000 > . 1002:1002 ack 501 win 8000; 0.000 = state FinWait2
        fin_wait_2, - 501:501 win 9: 0.000 = state FinWait2
        fin_wait_2, . 501:501 ack 9999: 0.000 > . 1002:1002 ack 501 win 8000; 0.000 = state FinWait2
        fin_wait_2, . 501:501 ack 4000000000: 0.000 > . 1002:1002 ack 501 win 8000; 0.000 = state FinWait2
        close_wait, S 502:502 win 9: 0.000 > . 1001:1001 ack 502 win 7999; 0.000 = state CloseWait
        close_wait, - 502:502 win 9: 0.000 = state CloseWait
        close_wait, . 502:502 ack 9999: 0.000 > . 1001:1001 ack 502 win 7999; 0.000 = state CloseWait
        close_wait, . 502:502 ack 4000000000: 0.000 > . 1001:1001 ack 502 win 7999; 0.000 = state CloseWait
        closing, S 502:502 win 9: 0.000 > . 1002:1002 ack 502 win 7999; 0.000 = state Closing
        closing, - 502:502 win 9: 0.000 = state Closing
        closing, . 502:502 ack 9999: 0.000 > . 1002:1002 ack 502 win 7999; 0.000 = state Closing
        closing, . 502:502 ack 4000000000: 0.000 > . 1002:1002 ack 502 win 7999; 0.000 = state Closing
        last_ack, S 502:502 win 9: 0.000 > . 1002:1002 ack 502 win 7999; 0.000 = state LastAck
        last_ack, - 502:502 win 9: 0.000 = state LastAck
        last_ack, . 502:502 ack 9999: 0.000 > . 1002:1002 ack 502 win 7999; 0.000 = state LastAck
        last_ack, . 502:502 ack 4000000000: 0.000 > . 1002:1002 ack 502 win 7999; 0.000 = state LastAck
        time_wait, S 502:502 win 9: 0.000 > . 1002:1002 ack 502 win 7999; 0.000 = state TimeWait
        time_wait, - 502:502 win 9: 0.000 = state TimeWait
        time_wait, . 502:502 ack 9999: 0.000 > . 1002:1002 ack 502 win 7999; 0.000 = state TimeWait
        time_wait, . 502:502 ack 4000000000: 0.000 > . 1002:1002 ack 502 win 7999; 0.000 = state TimeWait
    "#]]
    .assert_eq(&out);
}

#[test]
fn aborts_reset_the_peer_where_it_may_still_send_or_listen() {
    let mut out = String::new();
    for (name, scene) in synchronised() {
        let transcript = scene(plain()).run("0 abort");
        out += &format!("{name}: {}\n", transcript.trim_end().replace('\n', "; "));
    }
    expect![[r#"
        established: 0.000 > R 1001:1001 win 0; 0.000 ! Closed(Aborted)
        fin_wait_1: 0.000 > R 1002:1002 win 0; 0.000 ! Closed(Aborted)
        fin_wait_2: 0.000 > R 1002:1002 win 0; 0.000 ! Closed(Aborted)
        close_wait: 0.000 > R 1001:1001 win 0; 0.000 ! Closed(Aborted)
        closing: 0.000 ! Closed(Aborted)
        last_ack: 0.000 ! Closed(Aborted)
        time_wait: 0.000 ! Closed(Aborted)
    "#]]
    .assert_eq(&out);
}

#[test]
fn established_challenges_are_limited() {
    let script = "0 < . 501:501 ack 9999\n".repeat(30);
    let transcript = Scene::established(plain()).run(&script);
    assert_eq!(transcript.lines().count(), 10);
    // And again later.
    let later = script.replace("0 <", "6 <");
    assert_eq!(Scene::established(plain()).quietly(&script).run(&later).lines().count(), 10);
}

#[test]
fn established_reset_keeps_what_can_be_read() {
    check(
        Scene::established(plain()),
        "0 < P. 501:601 ack 1001 win 8000\n0 < R 601:601 win 0\n0 read\n0 write 5",
        expect![[r#"
            0.000 > . 1001:1001 ack 601 win 7900
            0.000 ! Readable
            0.000 ! Closed(Reset)
            0.000 read 100
            0.000 write: the connection is closed
        "#]],
    );
}

type MakeScene = fn(anabranch_core::tcp::Config) -> Scene;

fn synchronised() -> [(&'static str, MakeScene); 7] {
    [
        ("established", Scene::established),
        ("fin_wait_1", Scene::fin_wait_1),
        ("fin_wait_2", Scene::fin_wait_2),
        ("close_wait", Scene::close_wait),
        ("closing", Scene::closing),
        ("last_ack", Scene::last_ack),
        ("time_wait", Scene::time_wait),
    ]
}

#[test]
fn a_larger_send_buffer_after_the_end_raises_no_event() {
    let mut connection = Connection::connect(Instant::ZERO, plain(), 40_000, 7, SeqNumber(1000));
    connection.set_send_buffer(0);
    connection.abort(Instant::ZERO);
    assert_eq!(connection.poll_event(), Some(Event::Closed(CloseReason::Aborted)));
    connection.set_send_buffer(1000);
    assert_eq!(connection.poll_event(), None);
}
