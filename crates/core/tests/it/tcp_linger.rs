//! Idle connections: keep-alive, FIN-WAIT-2 without an application, TIME-WAIT and new SYNs.

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

/// The peer's probe is answered without an event (RFC 9293 section 3.8.4).
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

/// RFC 1122 section 4.2.2.13, RFC 2525 section 2.17: a reset, and no acknowledgement of unread
/// data.
#[test]
fn release_loses_unread_data_with_a_reset() {
    let scenes = [Scene::established, Scene::fin_wait_1, Scene::fin_wait_2];
    let runs = scenes.map(|scene| scene(plain()).quietly("0 < . 501:601 ack 1001 win 8000").run("1 release"));
    expect![[r#"
        1.000 > R 1001:1001 win 0
        1.000 ! Closed(Aborted)
        ---
        1.000 > F. 1001:1001 ack 601 win 7900
        1.000 > R 1002:1002 win 0
        1.000 ! Closed(Aborted)
        ---
        1.000 > R 1002:1002 win 0
        1.000 ! Closed(Aborted)
    "#]]
    .assert_eq(&runs.join("---\n"));
    let ended = "0 < F. 501:601 ack 1001 win 8000\n";
    let runs = ["1 release\n2 show state", "0 close\n1 release\n2 show state"]
        .map(|script| Scene::established(plain()).quietly(ended).run(script));
    expect![[r#"
        1.000 > R 1001:1001 win 0
        1.000 ! Closed(Aborted)
        2.000 = state Closed
        ---
        0.000 > F. 1001:1001 ack 602 win 7899
        1.000 > F. 1001:1001 ack 602 win 7899
        1.000 > R 1002:1002 win 0
        1.000 ! Closed(Aborted)
        2.000 = state Closed
    "#]]
    .assert_eq(&runs.join("---\n"));
    // The peer is gone, and TIME-WAIT lasts.
    let mut waits = Scene::fin_wait_2(plain()).quietly("0 < F. 501:601 ack 1002 win 8000");
    assert_eq!(waits.run("1 release\n2 show state\n2 read"), "2.000 = state TimeWait\n2.000 read 0\n");
}

#[test]
fn release_resets_data_that_arrives_afterwards() {
    let runs = [
        (Scene::established(plain()), "0.1 < . 501:601 ack 1001 win 8000"),
        (Scene::established(plain()), "0.1 < . 501:601 ack 1002 win 8000"),
        (Scene::fin_wait_2(plain()), "0.1 < F. 501:601 ack 1002 win 8000"),
        (Scene::fin_wait_2(plain()), "0.1 < . 601:701 ack 1002 win 8000"),
        // No data is lost here.
        (Scene::fin_wait_2(plain()), "0.1 < F. 501:501 ack 1002 win 8000"),
        (Scene::fin_wait_2(plain()), "0.1 < . 500:501 ack 1002 win 8000"),
    ]
    .map(|(mut scene, arrives)| scene.run(&format!("0 release\n{arrives}\n0.2 show state")));
    expect![[r#"
        0.000 > F. 1001:1001 ack 501 win 8000
        0.100 > R 1001:1001 win 0
        0.100 ! Closed(Aborted)
        0.200 = state Closed
        ---
        0.000 > F. 1001:1001 ack 501 win 8000
        0.100 > R 1002:1002 win 0
        0.100 ! Writable
        0.100 ! Closed(Aborted)
        0.200 = state Closed
        ---
        0.100 > R 1002:1002 win 0
        0.100 ! Closed(Aborted)
        0.200 = state Closed
        ---
        0.100 > R 1002:1002 win 0
        0.100 ! Closed(Aborted)
        0.200 = state Closed
        ---
        0.100 > . 1002:1002 ack 502 win 7999
        0.100 ! PeerClosed
        0.200 = state TimeWait
        ---
        0.100 > . 1002:1002 ack 501 win 8000
        0.200 = state FinWait2
    "#]]
    .assert_eq(&runs.join("---\n"));
}

/// A closed window ends the connection regardless of other closings; acknowledged data postpones
/// the end, and so does an open window.
#[test]
fn released_data_does_not_wait_for_ever() {
    let config = Config { fin_wait: Some(Duration::from_secs(10)), ..plain() };
    let probes = |from: u64, ack: u32, win: u32| -> String {
        (from..from + 40).map(|at| format!("{at} < . 501:501 ack {ack} win {win}\n")).collect()
    };
    let last = |scene: Scene, script: &str| {
        let mut scene = scene.quietly("0 write 3000");
        scene.run(script).lines().find(|line| line.contains("! Closed")).map(str::to_owned)
    };
    let ends = |at: u32| Some(format!("{at}.000 ! Closed(TimedOut)"));
    assert_eq!(last(Scene::established(config), &format!("1 release\n{}", probes(2, 1001, 0))), ends(11));
    assert_eq!(
        last(
            Scene::close_wait(config),
            &format!("1 release\n{}", probes(2, 1001, 0).replace("501:501", "502:502"))
        ),
        ends(11)
    );
    let later = format!("1 close\n5 release\n{}", probes(6, 1001, 0));
    assert_eq!(last(Scene::established(config), &later), ends(15));
    let slow = format!("1 release\n9 < . 501:501 ack 1002 win 0\n{}", probes(10, 1002, 0));
    assert_eq!(last(Scene::established(config), &slow), ends(19));
    let without = last(Scene::established(plain()), &format!("1 release\n{}", probes(2, 1001, 0)));
    assert_eq!(without, None);
}

/// A segment that fails the checks of RFC 9293 section 3.10.7.4 is no sign of life.
#[test]
fn established_blind_segments_do_not_stop_keep_alive() {
    let blind: String = (1..60).map(|at| format!("{} < R 90000:90000 win 0\n", 5 * at)).collect::<String>()
        + "300 show state";
    let out = Scene::established(watched()).run(&blind);
    assert!(out.ends_with("110.000 ! Closed(TimedOut)\n300.000 = state Closed\n"), "{out}");
}

/// RFC 6191 section 2, case by case: time stamp of the old connection, time stamp of the SYN, and
/// the sequence numbers.
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
