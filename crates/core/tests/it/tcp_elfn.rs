//! ELFN (Holland and Vaidya, MobiCom 1999): a connection stands by while there is no route.

use anabranch_core::tcp::{Config, InitialWindow, SackRole};
use anabranch_core::time::Duration;
use anabranch_testkit::script::{Scene, check, plain};
use expect_test::expect;

/// Four segments in flight, and two more written; time-outs of 1 s.
fn flight(elfn: Option<Duration>) -> Scene {
    let config = Config { initial_window: InitialWindow::Segments(4), elfn, ..plain() };
    Scene::established(config).quietly("0 < . 501:501 ack 1001 win 60000\n0 write 6000")
}

const EVERY: Option<Duration> = Some(Duration::from_secs(2));

#[test]
fn standby_probes_in_its_interval_and_resumes_as_it_was() {
    check(
        flight(EVERY),
        "0.5 no-route
         0.6 no-route                       # the probe's own notice
         0.6 write 1000                     # nothing leaves
         7 show cwnd
         7 show rto
         7 < . 501:501 ack 2001 win 60000   # the third probe has arrived
         7 show cwnd
         7 show rto
         7.9 wait
         8.1 show cwnd
         8.1 show failures",
        expect![[r#"
            2.500 > . 1001:2001 ack 501 win 8000
            4.500 > . 1001:2001 ack 501 win 8000
            6.500 > . 1001:2001 ack 501 win 8000
            7.000 = cwnd 4
            7.000 = rto 1.000000000s
            7.000 > . 5001:6001 ack 501 win 8000
            7.000 > . 6001:7001 ack 501 win 8000
            7.000 ! Writable
            7.000 = cwnd 5
            7.000 = rto 1.000000000s
            8.000 > . 2001:3001 ack 501 win 8000
            8.100 = cwnd 1
            8.100 = failures 2
        "#]],
    );
}

/// A peer that has reported all data and then dropped it (RFC 2018 section 8) is also probed.
#[test]
fn standby_probes_what_was_reported() {
    let config = Config { sack: SackRole::Both, rack_tlp: true, elfn: EVERY, ..plain() };
    let scene = Scene::established(config).quietly("0 < . 501:501 ack 1001 win 60000\n0 write 2000");
    check(
        scene,
        "0.5 < . 501:501 ack 1001 win 60000 <sack 1001:3001>
         0.6 no-route
         2.7 wait",
        expect![[r#"
            0.200 > P. 2001:3001 ack 501 win 8000
            2.600 > . 1001:2001 ack 501 win 8000
        "#]],
    );
}

#[test]
fn without_the_option_the_notice_is_a_soft_error() {
    check(
        flight(None),
        "0.5 no-route
         1.1 show cwnd
         1.1 show failures
         1.1 show state",
        expect![[r#"
            1.000 > . 1001:2001 ack 501 win 8000
            1.100 = cwnd 1
            1.100 = failures 1
            1.100 = state Established
        "#]],
    );
}

#[test]
fn standby_outlasts_every_number_of_retries() {
    check(
        flight(Some(Duration::from_secs(100))),
        "0.5 no-route\n2000 show state\n2000 show rto",
        expect![[r#"
            100.500 > . 1001:2001 ack 501 win 8000
            200.500 > . 1001:2001 ack 501 win 8000
            300.500 > . 1001:2001 ack 501 win 8000
            400.500 > . 1001:2001 ack 501 win 8000
            500.500 > . 1001:2001 ack 501 win 8000
            600.500 > . 1001:2001 ack 501 win 8000
            700.500 > . 1001:2001 ack 501 win 8000
            800.500 > . 1001:2001 ack 501 win 8000
            900.500 > . 1001:2001 ack 501 win 8000
            1000.500 > . 1001:2001 ack 501 win 8000
            1100.500 > . 1001:2001 ack 501 win 8000
            1200.500 > . 1001:2001 ack 501 win 8000
            1300.500 > . 1001:2001 ack 501 win 8000
            1400.500 > . 1001:2001 ack 501 win 8000
            1500.500 > . 1001:2001 ack 501 win 8000
            1600.500 > . 1001:2001 ack 501 win 8000
            1700.500 > . 1001:2001 ack 501 win 8000
            1800.500 > . 1001:2001 ack 501 win 8000
            1900.500 > . 1001:2001 ack 501 win 8000
            2000.000 = state Established
            2000.000 = rto 1.000000000s
        "#]],
    );
}

/// A duplicate acknowledgement also proves that there is a route.
#[test]
fn any_acknowledgement_ends_standby() {
    check(
        flight(EVERY),
        "0.5 no-route
         1.5 < . 501:501 ack 1001 win 60000
         2.4 wait
         2.6 show cwnd",
        expect![[r#"
            2.500 > . 1001:2001 ack 501 win 8000
            2.600 = cwnd 1
        "#]],
    );
}

#[test]
fn nothing_outstanding_nothing_stopped() {
    check(
        Scene::established(Config { elfn: EVERY, ..plain() }),
        "0.5 no-route\n1 write 1000\n1.5 < . 501:501 ack 2001 win 60000\n1.5 show failures",
        expect![[r#"
            1.000 > P. 1001:2001 ack 501 win 8000
            1.500 ! Writable
            1.500 = failures 1
        "#]],
    );
}

/// A FIN is also probed for.
#[test]
fn a_fin_is_probed_for() {
    check(
        Scene::established(Config { elfn: EVERY, ..plain() }),
        "0 close\n0.5 no-route\n2.6 wait\n2.6 < . 501:501 ack 1002 win 8000\n2.6 show state",
        expect![[r#"
            0.000 > F. 1001:1001 ack 501 win 8000
            2.500 > F. 1001:1001 ack 501 win 8000
            2.600 ! Writable
            2.600 = state FinWait2
        "#]],
    );
}
