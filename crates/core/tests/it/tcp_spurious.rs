//! Spurious losses and time-outs: RFC 2883, RFC 3522, RFC 4015, RFC 5682.

use anabranch_core::segment::{Flags, Options, Segment, Timestamps};
use anabranch_core::tcp::{Config, CongestionAlgorithm, DelayedAck, Info, InitialWindow, SackRole};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::pair::{End, Pair, Verdict};
use anabranch_testkit::prng::Prng;
use anabranch_testkit::script::{Scene, check, plain};
use bytes::Bytes;
use expect_test::expect;

fn undo() -> Config {
    Config { undo: true, sack: SackRole::Both, ..plain() }
}

/// Eight segments in flight since time 0, and 20 more written.
fn flight(config: Config) -> Scene {
    let config = Config { initial_window: InitialWindow::Segments(8), ..config };
    let options = Options {
        mss: Some(if config.timestamps { 1012 } else { 1000 }),
        sack_permitted: true,
        timestamps: config.timestamps.then_some(Timestamps { value: 1, echo: 0 }),
        ..Options::default()
    };
    let stamp = if config.timestamps { " <ts 1 ecr 0>" } else { "" };
    let config = Config { mss: 1100, ..config };
    Scene::established_with(config, options)
        .quietly(&format!("0 < . 501:501 ack 1001 win 60000{stamp}\n0 write 28000"))
}

/// RFC 3522 section 3.2: the acknowledgement echoes a time before that of the retransmission.
/// Segments considered lost are not retransmitted, and the window is restored (RFC 4015 section 3).
#[test]
fn eifel_undoes_a_time_out() {
    check(
        flight(Config { timestamps: true, ..undo() }),
        "1.1 show cwnd
         1.2 < . 501:501 ack 2001 win 60000 <ts 2 ecr 0>
         1.2 show cwnd
         1.2 show ssthresh
         1.2 < . 501:501 ack 9001 win 60000 <ts 2 ecr 0>
         1.2 show cwnd",
        expect![[r#"
            1.000 > . 1001:2001 ack 501 win 8000 <ts 1000 ecr 1>
            1.100 = cwnd 1
            1.200 > . 9001:10001 ack 501 win 8000 <ts 1200 ecr 2>
            1.200 > . 10001:11001 ack 501 win 8000 <ts 1200 ecr 2>
            1.200 ! Writable
            1.200 = cwnd 9
            1.200 = ssthresh none
            1.200 > . 11001:12001 ack 501 win 8000 <ts 1200 ecr 2>
            1.200 > . 12001:13001 ack 501 win 8000 <ts 1200 ecr 2>
            1.200 > . 13001:14001 ack 501 win 8000 <ts 1200 ecr 2>
            1.200 > . 14001:15001 ack 501 win 8000 <ts 1200 ecr 2>
            1.200 > . 15001:16001 ack 501 win 8000 <ts 1200 ecr 2>
            1.200 > . 16001:17001 ack 501 win 8000 <ts 1200 ecr 2>
            1.200 > . 17001:18001 ack 501 win 8000 <ts 1200 ecr 2>
            1.200 > . 18001:19001 ack 501 win 8000 <ts 1200 ecr 2>
            1.200 > . 19001:20001 ack 501 win 8000 <ts 1200 ecr 2>
            1.200 ! Writable
            1.200 = cwnd 11
        "#]],
    );
}

/// The acknowledgement echoes the retransmission: the time-out was genuine.
#[test]
fn eifel_leaves_a_real_time_out() {
    check(
        flight(Config { timestamps: true, ..undo() }),
        "1.2 < . 501:501 ack 2001 win 60000 <ts 2 ecr 1000>
         1.2 show cwnd",
        expect![[r#"
            1.000 > . 1001:2001 ack 501 win 8000 <ts 1000 ecr 1>
            1.200 > . 2001:3001 ack 501 win 8000 <ts 1200 ecr 2>
            1.200 > . 3001:4001 ack 501 win 8000 <ts 1200 ecr 2>
            1.200 ! Writable
            1.200 = cwnd 2
        "#]],
    );
}

/// RFC 3522 section 3.2 step 5: without any report of a duplicate, an acknowledgement of all
/// outstanding data may come from a receiver that echoes old times.
#[test]
fn eifel_doubts_what_acknowledges_everything() {
    check(
        flight(Config { timestamps: true, ..undo() }),
        "1.2 < . 501:501 ack 9001 win 60000 <ts 2 ecr 0>
         1.2 show cwnd",
        expect![[r#"
            1.000 > . 1001:2001 ack 501 win 8000 <ts 1000 ecr 1>
            1.200 > . 9001:10001 ack 501 win 8000 <ts 1200 ecr 2>
            1.200 > . 10001:11001 ack 501 win 8000 <ts 1200 ecr 2>
            1.200 > . 11001:12001 ack 501 win 8000 <ts 1200 ecr 2>
            1.200 ! Writable
            1.200 = cwnd 3
        "#]],
    );
}

/// A segment overtaken by three others is retransmitted, and its original arrives.
#[test]
fn eifel_undoes_a_recovery() {
    check(
        flight(Config { timestamps: true, ..undo() }),
        "0.1 < . 501:501 ack 1001 win 60000 <ts 2 ecr 0,sack 2001:3001>
         0.1 < . 501:501 ack 1001 win 60000 <ts 2 ecr 0,sack 2001:4001>
         0.1 < . 501:501 ack 1001 win 60000 <ts 2 ecr 0,sack 2001:5001>
         0.1 show cwnd
         0.11 < . 501:501 ack 5001 win 60000 <ts 2 ecr 0>
         0.11 show cwnd
         0.11 show ssthresh",
        expect![[r#"
            0.100 > . 1001:2001 ack 501 win 8000 <ts 100 ecr 2>
            0.100 ! Writable
            0.100 = cwnd 4
            0.110 > . 9001:10001 ack 501 win 8000 <ts 110 ecr 2>
            0.110 > . 10001:11001 ack 501 win 8000 <ts 110 ecr 2>
            0.110 > . 11001:12001 ack 501 win 8000 <ts 110 ecr 2>
            0.110 > . 12001:13001 ack 501 win 8000 <ts 110 ecr 2>
            0.110 > . 13001:14001 ack 501 win 8000 <ts 110 ecr 2>
            0.110 > . 14001:15001 ack 501 win 8000 <ts 110 ecr 2>
            0.110 ! Writable
            0.110 = cwnd 10
            0.110 = ssthresh none
        "#]],
    );
}

/// RFC 5682 section 3.1: after the first acknowledgement two new segments are sent; the next
/// acknowledgement covers data that was sent once.
#[test]
fn frto_undoes_a_time_out() {
    check(
        flight(undo()),
        "1.2 < . 501:501 ack 2001 win 60000
         1.3 < . 501:501 ack 3001 win 60000
         1.3 show cwnd
         1.3 show ssthresh",
        expect![[r#"
            1.000 > . 1001:2001 ack 501 win 8000
            1.200 > . 9001:10001 ack 501 win 8000
            1.200 > . 10001:11001 ack 501 win 8000
            1.200 ! Writable
            1.300 > . 11001:12001 ack 501 win 8000
            1.300 ! Writable
            1.300 = cwnd 9
            1.300 = ssthresh none
        "#]],
    );
}

/// Step 3a: data sent before the time-out is missing, data sent after it has arrived.
#[test]
fn frto_leaves_a_real_time_out() {
    check(
        flight(undo()),
        "1.2 < . 501:501 ack 2001 win 60000
         1.3 < . 501:501 ack 2001 win 60000 <sack 9001:10001>
         1.3 < . 501:501 ack 2001 win 60000 <sack 9001:11001>
         1.4 < . 501:501 ack 4001 win 60000 <sack 9001:11001>
         1.4 show ssthresh",
        expect![[r#"
            1.000 > . 1001:2001 ack 501 win 8000
            1.200 > . 9001:10001 ack 501 win 8000
            1.200 > . 10001:11001 ack 501 win 8000
            1.200 ! Writable
            1.300 > . 2001:3001 ack 501 win 8000
            1.300 > . 3001:4001 ack 501 win 8000
            1.400 > . 4001:5001 ack 501 win 8000
            1.400 > . 5001:6001 ack 501 win 8000
            1.400 > . 6001:7001 ack 501 win 8000
            1.400 ! Writable
            1.400 = ssthresh 4
        "#]],
    );
}

/// Step 2b: without new data to send, the next acknowledgement would give no information.
#[test]
fn frto_needs_new_data() {
    let config = Config { initial_window: InitialWindow::Segments(28), ..undo() };
    let scene = Scene::established(config).quietly("0 < . 501:501 ack 1001 win 60000\n0 write 8000");
    check(
        scene,
        "1.2 < . 501:501 ack 2001 win 60000
         1.3 < . 501:501 ack 3001 win 60000",
        expect![[r#"
            1.000 > . 1001:2001 ack 501 win 8000
            1.200 > . 2001:3001 ack 501 win 8000
            1.200 > . 3001:4001 ack 501 win 8000
            1.200 ! Writable
            1.300 > . 4001:5001 ack 501 win 8000
            1.300 > . 5001:6001 ack 501 win 8000
            1.300 ! Writable
        "#]],
    );
}

/// RFC 2883 section 5.1: all retransmissions of a recovery have arrived twice, the last one after
/// its end.
#[test]
fn dsack_undoes_a_recovery() {
    check(
        flight(undo()),
        "0.1 < . 501:501 ack 1001 win 60000 <sack 2001:5001>
         0.1 show cwnd
         0.12 < . 501:501 ack 5001 win 60000
         0.21 < . 501:501 ack 5001 win 60000 <sack 1001:2001>
         0.21 show cwnd
         0.21 show ssthresh",
        expect![[r#"
            0.100 > . 1001:2001 ack 501 win 8000
            0.100 ! Writable
            0.100 = cwnd 4
            0.120 ! Writable
            0.210 > . 9001:10001 ack 501 win 8000
            0.210 > . 10001:11001 ack 501 win 8000
            0.210 > . 11001:12001 ack 501 win 8000
            0.210 > . 12001:13001 ack 501 win 8000
            0.210 ! Writable
            0.210 = cwnd 8
            0.210 = ssthresh none
        "#]],
    );
}

/// The network duplicates a packet that was not retransmitted, so it may also have duplicated the
/// retransmission.
#[test]
fn dsack_of_more_than_was_sent_again_undoes_nothing() {
    check(
        flight(undo()),
        "0.1 < . 501:501 ack 1001 win 60000 <sack 2001:5001>
         0.12 < . 501:501 ack 5001 win 60000
         0.2 < . 501:501 ack 5001 win 60000 <sack 2001:3001>
         0.21 < . 501:501 ack 5001 win 60000 <sack 1001:2001>
         0.21 show cwnd",
        expect![[r#"
            0.100 > . 1001:2001 ack 501 win 8000
            0.100 ! Writable
            0.120 ! Writable
            0.210 = cwnd 4
        "#]],
    );
}

/// One of two retransmissions was necessary.
#[test]
fn dsack_of_one_of_two_undoes_nothing() {
    check(
        flight(undo()),
        "0.1 < . 501:501 ack 1001 win 60000 <sack 3001:9001>
         0.15 < . 501:501 ack 1001 win 60000 <sack 3001:10001>
         0.2 < . 501:501 ack 9001 win 60000
         0.3 < . 501:501 ack 9001 win 60000 <sack 1001:2001>
         0.3 show ssthresh
         0.3 < . 501:501 ack 9001 win 60000 <sack 2001:3001>
         0.3 show ssthresh",
        expect![[r#"
            0.100 > . 1001:2001 ack 501 win 8000
            0.100 > . 2001:3001 ack 501 win 8000
            0.100 > . 9001:10001 ack 501 win 8000
            0.100 > . 10001:11001 ack 501 win 8000
            0.100 ! Writable
            0.150 > . 11001:12001 ack 501 win 8000
            0.200 > . 12001:13001 ack 501 win 8000
            0.200 ! Writable
            0.300 = ssthresh 4
            0.300 > . 13001:14001 ack 501 win 8000
            0.300 > . 14001:15001 ack 501 win 8000
            0.300 > . 15001:16001 ack 501 win 8000
            0.300 > . 16001:17001 ack 501 win 8000
            0.300 ! Writable
            0.300 = ssthresh none
        "#]],
    );
}

const CONTROLLERS: [CongestionAlgorithm; 3] =
    [CongestionAlgorithm::NewReno, CongestionAlgorithm::Cubic, CongestionAlgorithm::Westwood];

/// On a path of 40 ms and 12 Mbit/s all packets of one direction are once a second late; none is
/// lost. Returns the statistics before and after.
fn spike(config: Config, from: End) -> (Info, Info, Info) {
    let late = Instant::ZERO + Duration::from_secs(3);
    let mut free = [Instant::ZERO; 2];
    let rule = move |now: Instant, end: End, segment: &Segment| {
        let free = &mut free[usize::from(end == End::Server)];
        let due = if end == from && now >= late { now.max(late + Duration::from_secs(1)) } else { now };
        let nanos = 80_000 + 670 * segment.payload.len() as u64;
        *free = (*free).max(due) + Duration::from_nanos(nanos);
        Verdict::Delay(free.saturating_since(now))
    };
    let config = Config { window_limit: Some(40), ..config };
    let mut pair = Pair::new(config, config, Duration::from_millis(20)).with_rule(rule);
    pair.client.outbox = Bytes::from(vec![0; 30_000_000]);
    let info = |pair: &mut Pair, millis: u64| {
        let at = Instant::ZERO + Duration::from_millis(millis);
        assert!(pair.run_until(at + Duration::from_secs(1), |pair| pair.now >= at));
        pair.client.tcp().info()
    };
    (info(&mut pair, 2_990), info(&mut pair, 3_500), info(&mut pair, 4_500))
}

#[test]
fn a_late_second_costs_no_window() {
    let mut table = String::new();
    for congestion in CONTROLLERS {
        for timestamps in [true, false] {
            for rack_tlp in [true, false] {
                for from in [End::Client, End::Server] {
                    let base = Config {
                        congestion,
                        timestamps,
                        rack_tlp,
                        prr: rack_tlp,
                        dsack: true,
                        initial_ssthresh: Some(30 * 1400),
                        ..Config::default()
                    };
                    for undo in [false, true] {
                        let (before, during, after) = spike(Config { undo, ..base }, from);
                        let again = after.retransmissions - before.retransmissions;
                        let mss = u32::from(before.mss);
                        table += &format!(
                            "{congestion:?} ts {timestamps} rack {rack_tlp} {from:?} late, undo {undo}: {} segments, then {} and {}, {again} sent again, {} time-outs, {} undone\n",
                            before.cwnd / mss,
                            during.cwnd / mss,
                            after.cwnd / mss,
                            after.timeouts,
                            after.undone,
                        );
                        if undo {
                            assert!(during.cwnd <= mss * 2, "the time-out has come: {table}");
                            assert!(after.cwnd >= before.cwnd, "{table}");
                            assert!(after.ssthresh >= before.ssthresh && again <= 5, "{table}");
                        }
                    }
                }
            }
        }
    }
}

/// 5 to 60 % of the packets are duplicated, and none is lost.
#[test]
fn doubled_packets_start_no_recovery() {
    for congestion in CONTROLLERS {
        for timestamps in [true, false] {
            for chance in [5, 20, 40, 60] {
                let config = Config {
                    congestion,
                    timestamps,
                    window_limit: Some(64),
                    delayed_ack: DelayedAck::Every { segments: 2, timeout: Duration::from_millis(40) },
                    ..Config::modern()
                };
                let mut prng = Prng::new(chance);
                let twice = move |_: Instant, _: End, segment: &Segment| {
                    // A duplicated SYN is answered twice, which counts as a retransmission.
                    if prng.chance(chance) && !segment.flags.contains(Flags::SYN) {
                        Verdict::Duplicate(Duration::from_micros(prng.below(30_000)))
                    } else {
                        Verdict::Pass
                    }
                };
                let mut pair = Pair::new(config, config, Duration::from_millis(20)).with_rule(twice);
                // In both directions, so that data meets holes and duplicates.
                pair.client.outbox = Bytes::from(vec![0; 3_000_000]);
                pair.server.outbox = Bytes::from(vec![0; 1_000_000]);
                let limit = Instant::ZERO + Duration::from_secs(600);
                assert!(pair.run_until(limit, |pair| {
                    pair.server.inbox.len() >= 2_000_000 && pair.client.inbox.len() >= 500_000
                }));
                for side in [End::Client, End::Server] {
                    let info = pair.side(side).tcp().info();
                    let none = (info.fast_retransmits, info.timeouts, info.retransmissions, info.undone);
                    assert_eq!(none, (0, 0, 0, 0), "{chance} %: {config:?}");
                }
            }
        }
    }
}

/// RFC 2018 section 4 and RFC 9293 section 3.7.1: with losses in both directions, data segments
/// carry blocks, and options and data together do not exceed the MSS.
#[test]
fn blocks_beside_data_shorten_it() {
    for (mss, timestamps) in [(1440, true), (1440, false), (536, true), (81, true), (30, false), (9, false)] {
        let config = Config { mss, timestamps, sack_on_data: true, ..Config::modern() };
        let mut prng = Prng::new(5);
        let seen = std::rc::Rc::new(std::cell::Cell::new([0_u32; 4]));
        let count = seen.clone();
        let rule = move |_: Instant, _: End, segment: &Segment| {
            let (data, options) = (segment.payload.len(), segment.options_len());
            let room = usize::from(mss).max(13 * usize::from(timestamps));
            assert!(data == 0 || data + options <= room, "{data} + {options}");
            assert!(options <= 40);
            if data > 0 {
                let mut all = count.get();
                all[segment.options.sack.as_slice().len()] += 1;
                count.set(all);
            }
            if prng.chance(5) { Verdict::Drop } else { Verdict::Pass }
        };
        let mut pair = Pair::new(config, config, Duration::from_millis(20)).with_rule(rule);
        let data = Bytes::from(Prng::new(1).octets(300 * usize::from(mss)));
        pair.client.outbox = data.clone();
        pair.server.outbox = data.clone();
        let limit = Instant::ZERO + Duration::from_secs(4000);
        assert!(pair.run_until(limit, |pair| {
            pair.server.inbox.len() == data.len() && pair.client.inbox.len() == data.len()
        }));
        assert!(pair.server.inbox == data && pair.client.inbox == data);
        let [_, one, two, three] = seen.get();
        assert_eq!(one + two + three > 0, mss >= 30, "{mss} {:?}", seen.get());
    }
}
