//! Two connections end to end: data arrives intact in both directions, and the connection closes,
//! for any behaviour of the wire.

use anabranch_core::segment::{Segment, SeqNumber};
use anabranch_core::tcp::{
    Backoff, ByteCounting, CloseReason, Config, CongestionAlgorithm, DelayedAck, EcnMode, Event, Info,
    InitialWindow, Nagle, Push, Recovery, RtoConfig, SackRole, State,
};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::pair::{End, Pair, Rule, Verdict};
use anabranch_testkit::prng::Prng;
use bytes::Bytes;
use expect_test::expect;

/// Runs one transfer in both directions and returns a description of a failure.
fn transfer(seed: u64) -> Result<(), String> {
    let mut prng = Prng::new(seed);
    let (client, server) = (any_config(&mut prng), any_config(&mut prng));
    let mut later = Prng::new(!seed);
    let [client, server] = [client, server].map(|config| with_later_options(config, &mut later));
    let marks = later.pick(&[0, 0, 10]);
    let isn = [prng.bits() as u32, u32::MAX - prng.below(5_000) as u32];
    let (loss, reorder, duplicate) = (prng.below(20), prng.below(30), prng.below(10));
    let sizes = [prng.below(120_000) as usize, prng.pick(&[0, 1, 30_000])];
    let data = sizes.map(|n| Bytes::from(prng.octets(n)));
    let latency = Duration::from_micros(prng.below(50_000));
    let mut rule = Prng::new(prng.bits());
    let mut pair = Pair::new(client, server, latency)
        .with_sequence_numbers(client, SeqNumber(isn[0]), SeqNumber(isn[1]))
        .with_rule(move |_: Instant, _: End, _: &_| {
            if rule.chance(loss) {
                Verdict::Drop
            } else if rule.chance(reorder) {
                Verdict::Delay(Duration::from_micros(rule.below(60_000)))
            } else if rule.chance(duplicate) {
                Verdict::Duplicate(Duration::from_micros(rule.below(60_000)))
            } else if later.chance(marks) {
                Verdict::Mark(Duration::ZERO)
            } else {
                Verdict::Pass
            }
        });
    pair.client.outbox = data[0].clone();
    pair.server.outbox = data[1].clone();
    (pair.client.closes, pair.server.closes) = (true, true);
    (pair.client.chunk, pair.server.chunk) = (prng.pick(&[0, 7, 333, 5_000]), prng.pick(&[0, 100]));
    let dawdles = prng.pick(&[0, 0, 50, 90]);
    let (mut notices, rate) = (Prng::new(seed), prng.pick(&[0, 0, 1, 10]));
    let mut limits = Prng::new(seed ^ 0x5151);
    let over = pair.run_until(Instant::ZERO + Duration::from_secs(40_000), |pair| {
        // A connection in standby for a peer that is gone would stay there as long as it is told
        // that there is no route.
        let gone = [&pair.client, &pair.server].iter().any(|side| is_over(&side.events));
        for end in [End::Client, End::Server] {
            let now = pair.now;
            if notices.chance(rate)
                && !gone
                && let Some(connection) = &mut pair.side(end).connection
            {
                connection.handle_route_failure(now);
            }
        }
        if limits.chance(2)
            && let Some(connection) = &mut pair.client.connection
        {
            connection.limit_queue(limits.pick(&[
                None,
                Some(Duration::ZERO),
                Some(Duration::from_millis(10)),
            ]));
        }
        pair.client.reads = !prng.chance(dawdles);
        pair.server.reads = !prng.chance(dawdles);
        is_over(&pair.client.events) && is_over(&pair.server.events)
    });
    (pair.client.reads, pair.server.reads) = (true, true);
    pair.settle();
    let summary = format!(
        "seed {seed} loss {loss} reorder {reorder} dup {duplicate} sizes {sizes:?}\n{client:?}\n{server:?}\n{:?}\n{:?}",
        pair.client.connection.as_ref().map(|c| c.info()),
        pair.server.connection.as_ref().map(|c| c.info())
    );
    if !over {
        return Err(format!("not torn down at {}: {summary}", pair.now));
    }
    if pair.server.inbox != data[0] || pair.client.inbox != data[1] {
        return Err(format!("octets differ: {summary}"));
    }
    for side in [&pair.client, &pair.server] {
        // The last ACK may be lost after the other endpoint has left TIME-WAIT: then LAST-ACK times
        // out.
        let last = side.events.last();
        let fine = [CloseReason::Graceful, CloseReason::TimedOut].map(|r| Some(Event::Closed(r)));
        if !fine.contains(&last.copied()) || !side.events.contains(&Event::PeerClosed) {
            return Err(format!("events {:?}: {summary}", side.events));
        }
    }
    Ok(())
}

fn is_over(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event, Event::Closed(_)))
}

fn any_config(prng: &mut Prng) -> Config {
    let mss = prng.pick(&[81, 536, 1440]);
    Config {
        mss,
        initial_window: prng.pick(&[InitialWindow::Segments(1), InitialWindow::Rfc6928]),
        initial_ssthresh: prng.pick(&[None, Some(5_000)]),
        least_ssthresh: 2,
        window_limit: prng.pick(&[None, Some(3), Some(64)]),
        rto: RtoConfig {
            initial: Duration::from_secs(1),
            min: Duration::from_millis(prng.pick(&[50, 200, 1_000])),
            max: Duration::from_secs(prng.pick(&[4, 60])),
            granularity: Duration::from_millis(prng.pick(&[0, 200])),
            backoff: prng.pick(&[Backoff::Double, Backoff::Constant]),
        },
        delayed_ack: prng.pick(&[
            DelayedAck::Off,
            DelayedAck::Every { segments: 2, timeout: Duration::from_millis(40) },
            DelayedAck::Every { segments: 4, timeout: Duration::from_millis(200) },
        ]),
        ack_on_push: prng.chance(30),
        push: prng.pick(&[Push::Buffer, Push::Window]),
        sack: prng.pick(&[SackRole::Off, SackRole::Receiver, SackRole::Sender, SackRole::Both]),
        timestamps: prng.chance(50),
        window_scale: prng.pick(&[None, Some(0), Some(7), Some(14)]),
        nagle: prng.pick(&[Nagle::On, Nagle::Off]),
        limited_transmit: prng.chance(50),
        recovery: prng.pick(&[Recovery::NewReno, Recovery::RenoGoBackN]),
        rack_tlp: prng.chance(50),
        prr: prng.chance(50),
        congestion: prng.pick(&[
            CongestionAlgorithm::NewReno,
            CongestionAlgorithm::Cubic,
            CongestionAlgorithm::Westwood,
        ]),
        byte_counting: prng.pick(&[ByteCounting::Off, ByteCounting::On { limit: 2 }]),
        send_buffer: prng.pick(&[2_000, 65_536, 262_144]),
        receive_buffer: prng.pick(&[1_000, 8_192, 65_535, 262_144]),
        time_wait: Duration::from_secs(60),
        syn_retries: 30,
        data_retries: 40,
        elfn: prng.pick(&[None, Some(Duration::from_secs(2))]),
        ..Config::default()
    }
}

/// Options that were added later use random numbers of their own, so that seeds that once failed
/// keep their wire.
fn with_later_options(config: Config, prng: &mut Prng) -> Config {
    let config =
        Config { dsack: prng.chance(50), undo: prng.chance(50), sack_on_data: prng.chance(50), ..config };
    let ecn = prng.pick(&[EcnMode::Off, EcnMode::Accept, EcnMode::Request]);
    let config = Config { ecn, abe: prng.chance(50), ..config };
    let congestion = if prng.chance(20) { CongestionAlgorithm::Bbr } else { config.congestion };
    Config { congestion, pacing: prng.chance(30), ..config }
}

#[test]
fn any_wire_delivers_bit_exact_and_tears_down() {
    let failures: Vec<String> = (0..SEEDS).chain(FORMER).filter_map(|seed| transfer(seed).err()).collect();
    assert!(failures.is_empty(), "{} of {SEEDS}; first: {}", failures.len(), failures[0]);
}

#[test]
fn clean_wire_closes_gracefully_at_both_ends() {
    let mut pair = Pair::new(Config::default(), Config::default(), Duration::from_millis(10));
    pair.client.outbox = Bytes::from(vec![7; 1_000_000]);
    (pair.client.closes, pair.server.closes) = (true, true);
    assert!(pair.run_to_end(Instant::ZERO + Duration::from_secs(600)));
    assert_eq!(pair.server.inbox.len(), 1_000_000);
    assert_eq!(pair.client.events.last(), Some(&Event::Closed(CloseReason::Graceful)));
    assert_eq!(pair.server.events.last(), Some(&Event::Closed(CloseReason::Graceful)));
    assert_eq!(pair.client.tcp().state(), State::Closed);
    assert_eq!(pair.client.tcp().info().retransmissions, 0);
}

/// Every controller, with and without RACK-TLP and PRR.
fn senders() -> impl Iterator<Item = Config> {
    let controllers = [
        CongestionAlgorithm::NewReno,
        CongestionAlgorithm::Cubic,
        CongestionAlgorithm::Westwood,
        CongestionAlgorithm::Bbr,
    ];
    controllers.into_iter().flat_map(|congestion| {
        [false, true].map(|on| Config {
            congestion,
            rack_tlp: on,
            prr: on,
            window_limit: Some(100),
            ..Config::default()
        })
    })
}

/// Transfers `octets` over a wire that treats segments by `rule`; returns the sender's statistics
/// while it still has more to send.
fn under_way(config: Config, delay: u64, octets: usize, rule: impl Rule + 'static) -> Info {
    let mut pair = Pair::new(config, config, Duration::from_millis(delay)).with_rule(rule);
    pair.client.outbox = Bytes::from(vec![0; octets + 1_000_000]);
    let limit = Instant::ZERO + Duration::from_secs(4000);
    assert!(pair.run_until(limit, |pair| pair.server.inbox.len() >= octets), "{config:?}");
    pair.client.tcp().info()
}

/// No packet is lost, and 5 to 60 % of them are duplicated.
#[test]
fn doubled_packets_are_no_loss() {
    for config in senders() {
        for chance in [5, 30, 60] {
            let mut prng = Prng::new(chance);
            let twice = move |_: Instant, from: End, _: &Segment| match from {
                End::Client if prng.chance(chance) => {
                    Verdict::Duplicate(Duration::from_micros(prng.below(5_000)))
                }
                End::Client | End::Server => Verdict::Pass,
            };
            let info = under_way(config, 20, 2_000_000, twice);
            assert_eq!((info.fast_retransmits, info.retransmissions), (0, 0), "{chance} %: {config:?}");
        }
    }
}

/// Every second acknowledgement is lost, and no data.
#[test]
fn lost_acknowledgements_are_no_loss_of_data() {
    for config in senders() {
        let (mut prng, mut free) = (Prng::new(3), Instant::ZERO);
        let half = move |now: Instant, from: End, _: &Segment| {
            if from == End::Client {
                // 0.2 ms each: segments that arrive at one instant would get one acknowledgement
                // together.
                free = free.max(now) + Duration::from_micros(200);
                return Verdict::Delay(free.saturating_since(now));
            }
            // The window is open by then: with two segments in flight, the loss of one
            // acknowledgement would stop the transfer.
            let open = now > Instant::ZERO + Duration::from_millis(500);
            if open && prng.chance(50) { Verdict::Drop } else { Verdict::Pass }
        };
        let info = under_way(config, 20, 2_000_000, half);
        assert_eq!((info.fast_retransmits, info.timeouts), (0, 0), "{info:?} {config:?}");
    }
}

/// A steady round trip above 200 ms leaves only the granularity as the margin of the time-out: it
/// must not expire before a fast retransmission can be acknowledged (RFC 6298 section 2.3).
#[test]
fn long_round_trips_with_few_losses_see_no_time_out() {
    // BBR sends more, so that a retransmission is lost too, which RFC 6675 alone cannot detect.
    let blind = |config: &Config| config.congestion == CongestionAlgorithm::Bbr && !config.rack_tlp;
    for config in senders().filter(|config| !blind(config)) {
        for delay in [110, 200, 300] {
            let mut prng = Prng::new(delay);
            let lossy = move |_: Instant, from: End, segment: &Segment| {
                let lost = from == End::Client && !segment.payload.is_empty() && prng.below(1000) == 0;
                if lost { Verdict::Drop } else { Verdict::Pass }
            };
            let info = under_way(config, delay, 10_000_000, lossy);
            assert!(info.fast_retransmits > 3 && info.timeouts == 0, "{delay} ms: {info:?} {config:?}");
        }
    }
}

/// An unlimited queue: slow start ends when the round-trip time grows (RFC 9406), before any loss,
/// with each controller.
#[test]
fn slow_start_ends_when_the_round_trip_grows() {
    // BBR has no threshold.
    let has_threshold = |config: &Config| config.congestion != CongestionAlgorithm::Bbr;
    let plain = Config { sack: SackRole::Off, window_limit: None, ..Config::default() };
    let bases = senders().filter(has_threshold).chain([plain]);
    for base in bases {
        for hystart in [false, true] {
            let buffer = 4 << 20;
            let config =
                Config { hystart, window_limit: None, send_buffer: buffer, receive_buffer: buffer, ..base };
            let mut free = Instant::ZERO;
            let queue = move |now: Instant, from: End, _: &Segment| match from {
                End::Client => {
                    free = free.max(now) + Duration::from_micros(200);
                    Verdict::Delay(free.saturating_since(now))
                }
                End::Server => Verdict::Pass,
            };
            let info = under_way(config, 20, 8_000_000, queue);
            assert_eq!(info.retransmissions, 0, "{config:?}");
            assert_eq!(info.ssthresh < u32::MAX, hystart, "{info:?} {config:?}");
        }
    }
}

/// Cost of each recovery algorithm for the same losses: 1 % of data segments, 2 MB, 40 ms round
/// trip.
#[test]
fn recoveries_compared_on_one_wire() {
    let base = Config { window_limit: Some(64), ..Config::default() };
    let plain = Config { sack: SackRole::Off, timestamps: false, ..base };
    let ways = [
        ("sack", base),
        ("sack cubic", Config { congestion: CongestionAlgorithm::Cubic, ..base }),
        ("newreno", plain),
        ("reno", Config { recovery: Recovery::RenoGoBackN, ..plain }),
        ("paper", Config { mss: 1440, ..Config::paper() }),
    ];
    let mut out = String::new();
    for (name, config) in ways {
        let mut prng = Prng::new(7);
        let lost = std::rc::Rc::new(std::cell::Cell::new(0));
        let count = lost.clone();
        let rule = move |_: Instant, _: End, segment: &Segment| {
            let drop = !segment.payload.is_empty() && prng.chance(1);
            count.set(count.get() + u32::from(drop));
            if drop { Verdict::Drop } else { Verdict::Pass }
        };
        let mut pair = Pair::new(config, base, Duration::from_millis(20)).with_rule(rule);
        pair.client.outbox = Bytes::from(vec![0; 2_000_000]);
        (pair.client.closes, pair.server.closes) = (true, true);
        assert!(pair.run_until(Instant::ZERO + Duration::from_secs(4000), |pair| pair.server.inbox.len()
            == 2_000_000));
        let (info, at) = (pair.client.tcp().info(), pair.now.as_nanos() / 1_000_000);
        out += &format!(
            "{name}: {at} ms, {} lost, {} sent again, {} time-outs, {} fast retransmits\n",
            lost.get(),
            info.retransmissions,
            info.timeouts,
            info.fast_retransmits
        );
    }
    expect![[r#"
        sack: 4860 ms, 15 lost, 15 sent again, 0 time-outs, 12 fast retransmits
        sack cubic: 4420 ms, 15 lost, 15 sent again, 0 time-outs, 12 fast retransmits
        newreno: 5780 ms, 15 lost, 15 sent again, 0 time-outs, 12 fast retransmits
        reno: 6860 ms, 15 lost, 15 sent again, 4 time-outs, 11 fast retransmits
        paper: 12700 ms, 15 lost, 15 sent again, 2 time-outs, 11 fast retransmits
    "#]]
    .assert_eq(&out);
}

const SEEDS: u64 = 2_000;
/// Seeds that once failed: both endpoints probed, and neither received the other's probes.
const FORMER: [u64; 1] = [16_331];
