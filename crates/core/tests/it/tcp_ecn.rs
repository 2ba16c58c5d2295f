//! Explicit congestion notification: RFC 3168, RFC 8511.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_core::segment::{Ecn, Flags, Segment, SeqNumber};
use anabranch_core::tcp::{Config, CongestionAlgorithm, EcnMode, InitialWindow, SackRole};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::pair::{End, Pair, Verdict};
use anabranch_testkit::prng::Prng;
use anabranch_testkit::script::{Scene, check, plain};
use bytes::Bytes;
use expect_test::expect;

const MODES: [EcnMode; 3] = [EcnMode::Off, EcnMode::Accept, EcnMode::Request];

fn asking() -> Config {
    Config { ecn: EcnMode::Request, ..plain() }
}

/// ECN negotiated, eight segments in flight and twelve more written.
fn flight(config: Config) -> Scene {
    let config = Config { initial_window: InitialWindow::Segments(8), sack: SackRole::Both, ..config };
    Scene::syn_sent(config).quietly("0 < SE. 500:500 ack 1001 win 60000 <mss 1000,sackOK>\n0 write 20000")
}

/// RFC 3168 section 6.1.1: both endpoints use ECN, or neither does.
#[test]
fn both_ends_agree() {
    for client in MODES {
        for server in MODES {
            let [theirs, ours] = [client, server].map(|ecn| Config { ecn, ..Config::default() });
            let mut pair = Pair::new(theirs, ours, Duration::from_millis(10));
            pair.client.outbox = Bytes::from_static(&[7; 50_000]);
            pair.run_until(Instant::ZERO + Duration::from_secs(9), |pair| pair.server.inbox.len() == 50_000);
            let agreed = client == EcnMode::Request && server != EcnMode::Off;
            for side in [&mut pair.client, &mut pair.server] {
                assert_eq!(side.tcp().info().ecn, agreed, "{client:?} {server:?}");
            }
        }
    }
}

/// Section 6.1.1.1: a retransmitted SYN does not request ECN. Then no segment is ECT, even if the
/// first SYN is answered.
#[test]
fn a_repeated_syn_does_not_ask() {
    let answer = "1.5 < SE. 500:500 ack 1001 win 60000 <mss 1000>\n1.5 write 1000";
    check(
        Scene::syn_sent(asking()),
        answer,
        expect![[r#"
        1.000 > S 1000:1000 win 8000 <mss 1000>
        1.500 > . 1001:1001 ack 501 win 8000
        1.500 ! Established
        1.500 > P. 1001:2001 ack 501 win 8000
    "#]],
    );
}

/// A passive open whose peer no longer requests ECN in its retransmitted SYN.
#[test]
fn a_peer_that_asks_no_more_is_not_answered() {
    let mut pair = Pair::new(asking(), asking(), Duration::from_millis(10)).with_rule(
        |_: Instant, from: End, segment: &Segment| {
            let blocked = from == End::Server && segment.flags.contains(Flags::SYN.with(Flags::ECE));
            if blocked { Verdict::Drop } else { Verdict::Pass }
        },
    );
    pair.client.outbox = Bytes::from_static(&[7; 50_000]);
    assert!(pair.run_until(Instant::ZERO + Duration::from_secs(9), |pair| pair.server.inbox.len() == 50_000));
    assert!(!pair.client.tcp().info().ecn && !pair.server.tcp().info().ecn);
}

/// Sections 6.1.1, 6.1.4, 6.1.5: only data sent for the first time is ECT.
#[test]
fn only_new_data_is_ect() {
    let config = Config { ecn: EcnMode::Request, ..Config::modern() };
    let seen = Rc::new(RefCell::new((0, Vec::new())));
    let (count, mut prng, mut sent) = (seen.clone(), Prng::new(5), [SeqNumber(0); 2]);
    let watch = move |_: Instant, from: End, segment: &Segment| {
        let sent = &mut sent[from as usize];
        if segment.flags.contains(Flags::SYN) {
            *sent = segment.seq_end();
        }
        let new = !segment.payload.is_empty() && segment.seq.ge(*sent);
        *sent = sent.max(segment.seq_end());
        let mut seen = count.borrow_mut();
        match segment.ecn {
            Ecn::Ect0 => seen.0 += 1,
            Ecn::NotEct if new => seen.1.push(format!("{segment:?} is not ECT")),
            Ecn::NotEct => {}
            Ecn::Ect1 | Ecn::Ce => seen.1.push(format!("{segment:?}")),
        }
        if segment.ecn.is_capable() && !new {
            seen.1.push(format!("{segment:?} is ECT"));
        }
        if prng.chance(3) { Verdict::Drop } else { Verdict::Pass }
    };
    let mut pair = Pair::new(config, config, Duration::from_millis(10)).with_rule(watch);
    pair.client.outbox = Bytes::from(vec![7; 500_000]);
    pair.server.outbox = Bytes::from(vec![7; 100_000]);
    assert!(pair.run_until(Instant::ZERO + Duration::from_secs(600), |pair| {
        pair.server.inbox.len() == 500_000 && pair.client.inbox.len() == 100_000
    }));
    assert!(pair.client.tcp().info().retransmissions > 3);
    let seen = seen.borrow();
    assert!(seen.0 > 400 && seen.1.is_empty(), "{seen:?}");
}

/// Section 6.1.3: after a mark every acknowledgement has ECE set, until the peer sends CWR. One
/// segment may have both a mark and CWR. A mark on data received before has no effect.
#[test]
fn a_mark_is_echoed_until_the_peer_has_reduced() {
    check(
        flight(asking()),
        "0.1 < . 501:601 ack 1001 win 60000 ecn ect0
         0.2 < . 601:701 ack 1001 win 60000 ecn ce
         0.3 < . 701:801 ack 1001 win 60000 ecn ect0
         0.4 < W. 801:901 ack 1001 win 60000 ecn ect0
         0.5 < W. 901:1001 ack 1001 win 60000 ecn ce
         0.6 < W. 1001:1101 ack 1001 win 60000
         0.7 < . 601:701 ack 1001 win 60000 ecn ce",
        expect![[r#"
            0.100 > . 9001:9001 ack 601 win 7900
            0.100 ! Readable
            0.200 > E. 9001:9001 ack 701 win 7800
            0.200 ! Readable
            0.300 > E. 9001:9001 ack 801 win 7700
            0.300 ! Readable
            0.400 > . 9001:9001 ack 901 win 7600
            0.400 ! Readable
            0.500 > E. 9001:9001 ack 1001 win 7500
            0.500 ! Readable
            0.600 > . 9001:9001 ack 1101 win 7400
            0.600 ! Readable
            0.700 > . 9001:9001 ack 1101 win 7400
        "#]],
    );
}

/// Section 6.1.2: one reduction per window, CWR with the next new data, and no growth by an
/// acknowledgement with ECE.
#[test]
fn an_echo_reduces_the_window_once() {
    check(
        flight(asking()),
        "0.1 < E. 501:501 ack 2001 win 60000
         0.1 show cwnd
         0.1 < E. 501:501 ack 5001 win 60000
         0.1 show cwnd
         0.1 < E. 501:501 ack 9001 win 60000
         0.1 show cwnd
         0.2 < E. 501:501 ack 10001 win 60000
         0.2 show cwnd",
        expect![[r#"
            0.100 ! Writable
            0.100 = cwnd 4
            0.100 ! Writable
            0.100 = cwnd 4
            0.100 > W. 9001:10001 ack 501 win 8000 ecn ect0
            0.100 > . 10001:11001 ack 501 win 8000 ecn ect0
            0.100 > . 11001:12001 ack 501 win 8000 ecn ect0
            0.100 > . 12001:13001 ack 501 win 8000 ecn ect0
            0.100 ! Writable
            0.100 = cwnd 4
            0.200 ! Writable
            0.200 = cwnd 2
        "#]],
    );
}

/// RFC 8511 section 3.
#[test]
fn abe_takes_less_than_a_loss() {
    let window = |congestion, abe| {
        let config = Config { congestion, abe, initial_window: InitialWindow::Segments(100), ..asking() };
        let mut scene = Scene::syn_sent(config).quietly(
            "0 < SE. 500:500 ack 1001 win 65535 <mss 500>
             0 write 60000
             0.1 < E. 501:501 ack 1501 win 65535",
        );
        scene.run("0.1 show ssthresh").trim().rsplit(' ').next().map(str::to_owned)
    };
    use CongestionAlgorithm::{Cubic, NewReno};
    let found = [(NewReno, false), (NewReno, true), (Cubic, false), (Cubic, true)];
    let found = found.map(|(controller, abe)| window(controller, abe).expect("a figure"));
    assert_eq!(found, ["50", "80", "70", "85"]);
}

/// A loss in a window that was already reduced causes no further reduction, nor does a mark during
/// a recovery.
#[test]
fn a_mark_and_a_loss_of_one_window_count_once() {
    let loss = "< E. 501:501 ack 2001 win 60000 <sack 3001:6001>";
    check(
        flight(asking()),
        &format!("0.1 < E. 501:501 ack 2001 win 60000\n0.1 show ssthresh\n0.1 {loss}\n0.1 show ssthresh"),
        expect![[r#"
            0.100 ! Writable
            0.100 = ssthresh 4
            0.100 > . 2001:3001 ack 501 win 8000
            0.100 = ssthresh 4
        "#]],
    );
    check(
        flight(asking()),
        &format!(
            "0.1 < . 501:501 ack 2001 win 60000\n0.1 {loss}\n0.1 show ssthresh\n0.2 < E. 501:501 ack 9001 win 60000\n0.2 show ssthresh"
        ),
        expect![[r#"
            0.100 > . 9001:10001 ack 501 win 8000 ecn ect0
            0.100 > . 10001:11001 ack 501 win 8000 ecn ect0
            0.100 ! Writable
            0.100 > . 2001:3001 ack 501 win 8000
            0.100 ! Writable
            0.100 = ssthresh 4.5
            0.200 > W. 11001:12001 ack 501 win 8000 ecn ect0
            0.200 > . 12001:13001 ack 501 win 8000 ecn ect0
            0.200 ! Writable
            0.200 = ssthresh 4.5
        "#]],
    );
}

/// A queue of 100 packets that marks from 20 packets on: every controller that reacts to marks
/// keeps the link busy without losses.
#[test]
fn marks_take_the_place_of_losses() {
    use CongestionAlgorithm::{Cubic, NewReno, Westwood};
    for congestion in [NewReno, Cubic, Westwood] {
        let config = Config { congestion, hystart: false, ..Config::modern() };
        let mut free = Instant::ZERO;
        let queue = move |now: Instant, from: End, _: &Segment| {
            if from == End::Server {
                return Verdict::Pass;
            }
            let wait = free.max(now).saturating_since(now) + Duration::from_micros(500);
            let waiting = wait.as_nanos() / 500_000;
            if waiting > 100 {
                return Verdict::Drop;
            }
            free = now + wait;
            if waiting > 20 { Verdict::Mark(wait) } else { Verdict::Delay(wait) }
        };
        let mut pair = Pair::new(config, config, Duration::from_millis(10)).with_rule(queue);
        pair.client.outbox = Bytes::from(vec![7; 6_000_000]);
        let limit = Instant::ZERO + Duration::from_secs(600);
        assert!(pair.run_until(limit, |pair| pair.server.inbox.len() >= 5_000_000), "{congestion:?}");
        let info = pair.client.tcp().info();
        assert!(info.mark_reductions > 1 && info.timeouts == 0, "{info:?}");
        let sent_again = info.retransmissions;
        assert!(sent_again == 0 || congestion == Westwood, "{info:?}");
        // One packet of 1428 bytes each 500 us, plus half a second for slow start.
        let ideal = Duration::from_micros(5_000_000 / 1428 * 500);
        let latest = Instant::ZERO + ideal * 5 / 4 + Duration::from_millis(500);
        assert!(pair.now < latest, "{congestion:?}: {} of {ideal}", pair.now);
    }
}

/// A path that marks every packet and loses none: no controller keeps a window near the one that
/// slow start reaches on a path without marks.
#[test]
fn marks_from_the_start_end_slow_start() {
    use CongestionAlgorithm::{Cubic, NewReno, Westwood};
    for congestion in [NewReno, Cubic, Westwood] {
        let flight = |marks: bool| {
            let config = Config { congestion, hystart: false, ..Config::modern() };
            let rule = move |_: Instant, from: End, _: &Segment| {
                if marks && from == End::Client { Verdict::Mark(Duration::ZERO) } else { Verdict::Pass }
            };
            let mut pair = Pair::new(config, config, Duration::from_millis(50)).with_rule(rule);
            pair.client.outbox = Bytes::from(vec![7; 6_000_000]);
            pair.run_until(Instant::ZERO + Duration::from_millis(1500), |_| false);
            pair.client.tcp().info().bytes_acked
        };
        let (marked, free) = (flight(true), flight(false));
        assert!(marked * 4 < free, "{congestion:?}: {marked} of {free}");
    }
}

/// RFC 3168 section 5: a controller that reacts less to marks than to losses must not send ECT. The
/// peer may still do so.
#[test]
fn bbr_is_never_marked() {
    for (client, server) in [(true, false), (false, true)] {
        let config = |bbr: bool| match bbr {
            true => Config { congestion: CongestionAlgorithm::Bbr, ..Config::modern() },
            false => Config::modern(),
        };
        let capable = Rc::new(RefCell::new((0, 0)));
        let seen = Rc::clone(&capable);
        let rule = move |_: Instant, from: End, segment: &Segment| {
            if segment.ecn != Ecn::NotEct {
                let mut seen = seen.borrow_mut();
                if from == End::Client { seen.0 += 1 } else { seen.1 += 1 }
            }
            Verdict::Pass
        };
        let mut pair = Pair::new(config(client), config(server), Duration::from_millis(10)).with_rule(rule);
        pair.client.outbox = Bytes::from(vec![7; 100_000]);
        pair.server.outbox = Bytes::from(vec![7; 100_000]);
        let limit = Instant::ZERO + Duration::from_secs(10);
        assert!(pair.run_until(limit, |pair| pair.server.inbox.len() + pair.client.inbox.len() == 200_000));
        let (by_client, by_server) = *capable.borrow();
        assert!((by_client == 0) == client && (by_server == 0) == server, "{by_client} {by_server}");
        assert!(pair.client.tcp().info().ecn && pair.server.tcp().info().ecn);
    }
}
