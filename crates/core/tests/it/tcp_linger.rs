//! Connections on which nothing happens: keep-alive, FIN-WAIT-2 without an application, TIME-WAIT and new SYNs.

use anabranch_core::segment::{Flags, Options, Segment, SeqNumber, Timestamps};
use anabranch_core::tcp::{Config, KeepAlive, State};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::script::{Scene, check, plain};
use expect_test::expect;

fn watched() -> Config {
    let span = Duration::from_secs;
    Config { keep_alive: Some(KeepAlive { idle: span(100), interval: span(5), probes: 2 }), ..plain() }
}

#[test]
fn established_silence_is_probed_and_given_up() {
    check(
        Scene::established(watched()),
        "50 < . 501:501 ack 1001 win 8000
         151 < . 501:501 ack 1001 win 8000
         300 show state",
        expect![[r#"
            150.000 > . 1000:1000 ack 501 win 8000
            251.000 > . 1000:1000 ack 501 win 8000
            256.000 > . 1000:1000 ack 501 win 8000
            261.000 > R 1001:1001 win 0
            261.000 ! Closed(TimedOut)
            300.000 = state Closed
        "#]],
    );
}

#[test]
fn established_data_has_its_own_timer() {
    check(
        Scene::established(watched()),
        "99 write 10
         101 < . 501:501 ack 1011 win 8000
         202 show state",
        expect![[r#"
            99.000 > P. 1001:1011 ack 501 win 8000
            100.000 > P. 1001:1011 ack 501 win 8000
            101.000 ! Writable
            201.000 > . 1010:1010 ack 501 win 8000
            202.000 = state Established
        "#]],
    );
}

/// The peer's probe is answered without being told (RFC 9293 section 3.8.4).
#[test]
fn established_probe_is_answered() {
    check(
        Scene::established(plain()),
        "1 < . 500:500 ack 1001 win 8000",
        expect![[r#"
        1.000 > . 1001:1001 ack 501 win 8000
    "#]],
    );
}

#[test]
fn fin_wait_2_ends_when_the_application_is_gone() {
    let config = Config { fin_wait: Some(Duration::from_secs(60)), ..plain() };
    check(
        Scene::established(config),
        "0 release
         1 < . 501:501 ack 1002 win 8000
         60 show state
         62 show state",
        expect![[r#"
            0.000 > F. 1001:1001 ack 501 win 8000
            1.000 > F. 1001:1001 ack 501 win 8000
            1.000 ! Writable
            60.000 = state FinWait2
            61.000 ! Closed(TimedOut)
            62.000 = state Closed
        "#]],
    );
    let half_closed = Scene::fin_wait_2(config).run("1000 show state\n1000 release\n1061 show state");
    expect![[r#"
        1000.000 = state FinWait2
        1060.000 ! Closed(TimedOut)
        1061.000 = state Closed
    "#]]
    .assert_eq(&half_closed);
    assert_eq!(Scene::fin_wait_2(plain()).run("0 release\n1000 show state"), "1000.000 = state FinWait2\n");
}

/// RFC 6191 section 2, case by case: time stamp of the old connection, of the SYN, and the sequence numbers.
#[test]
fn time_wait_gives_way_to_a_later_syn() {
    let stamp = |value| Some(Timestamps { value, echo: 0 });
    let mut out = String::new();
    for stamped in [None, stamp(100)] {
        for timestamps in [None, stamp(99), stamp(100), stamp(101)] {
            for seq in [400, 501, 502, 9000] {
                let config = Config { timestamps: stamped.is_some(), time_wait_reuse: true, ..plain() };
                let options = Options { mss: Some(1000), timestamps: stamped, ..Options::default() };
                let ts = if stamped.is_some() { " <ts 100 ecr 0>" } else { "" };
                let mut scene = Scene::established_with(config, options).quietly(&format!(
                    "0 close\n0 < . 501:501 ack 1002 win 8000{ts}\n0 < F. 501:501 ack 1002 win 8000{ts}"
                ));
                assert_eq!(scene.connection.state(), State::TimeWait);
                let options = Options { timestamps, ..Options::default() };
                let syn = Segment { flags: Flags::SYN, seq: SeqNumber(seq), options, ..Segment::default() };
                let iss = scene.connection.give_way(Instant::ZERO, &syn);
                let closed = scene.connection.state() == State::Closed;
                assert_eq!((iss.is_some(), iss.is_none_or(|iss| iss.gt(SeqNumber(1002)))), (closed, true));
                out += if closed { "yes," } else { "no," };
            }
            out += "|";
        }
        out += "\n";
    }
    expect![[r#"
        no,no,yes,yes,|no,no,yes,yes,|no,no,yes,yes,|no,no,yes,yes,|
        no,no,yes,yes,|no,no,no,no,|no,no,yes,yes,|yes,yes,yes,yes,|
    "#]]
    .assert_eq(&out);
}

#[test]
fn time_wait_gives_way_only_if_told_and_in_time_wait() {
    let syn = Segment { flags: Flags::SYN, seq: SeqNumber(9000), ..Segment::default() };
    let reuse = Config { time_wait_reuse: true, ..plain() };
    assert_eq!(Scene::time_wait(plain()).connection.give_way(Instant::ZERO, &syn), None);
    for scene in [Scene::established, Scene::fin_wait_2, Scene::last_ack] {
        assert_eq!(scene(reuse).connection.give_way(Instant::ZERO, &syn), None);
    }
    let answer = Segment { flags: Flags::SYN.with(Flags::ACK), ..syn };
    assert_eq!(Scene::time_wait(reuse).connection.give_way(Instant::ZERO, &answer), None);
}
