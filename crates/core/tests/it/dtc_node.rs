//! A single caching node, action by action (section IV of the paper).

use std::net::{IpAddr, Ipv4Addr};

use anabranch_core::dtc::{
    AckCustody, Backoff, Chance, Config, Displacement, DuplicateAcks, FlowKey, FlyingStart, LinkEvent, Node,
    SackForEnds, Samples, Signal, Timeouts, Transmit, Validation, Verdict,
};
use anabranch_core::segment::{
    Dss, Flags, Options, SackBlock, SackBlocks, Segment, SeqNumber, Timestamps, WireDsn,
};
use anabranch_core::time::{Duration, Instant};
use anabranch_testkit::prng::Prng;
use bytes::Bytes;

const MSS: u32 = 100;
const ISN: u32 = 1000;
/// Random words: with the first no event of a probability below 1 happens, with the second every
/// event.
const UNLUCKY: u32 = u32::MAX;
const LUCKY: u32 = 0;
/// The local round-trip time of the tests.
const RTT: u64 = 200;

fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

fn address(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
}

fn forth() -> FlowKey {
    FlowKey { source: address(1), destination: address(2) }
}

fn back() -> FlowKey {
    FlowKey { source: address(2), destination: address(1) }
}

/// The first byte of the n-th data segment, from 1.
fn at(n: u32) -> SeqNumber {
    SeqNumber(ISN + 1 + (n - 1) * MSS)
}

fn syn(sack_permitted: bool) -> Segment {
    let options = Options { sack_permitted, ..Options::default() };
    Segment {
        src_port: 1,
        dst_port: 2,
        seq: SeqNumber(ISN),
        flags: Flags::SYN,
        options,
        ..Segment::default()
    }
}

fn syn_ack(sack_permitted: bool) -> Segment {
    let options = Options { sack_permitted, ..Options::default() };
    let flags = Flags::SYN.with(Flags::ACK);
    Segment { src_port: 2, dst_port: 1, ack: SeqNumber(ISN + 1), flags, options, ..Segment::default() }
}

/// The n-th data segment.
fn data(n: u32) -> Segment {
    let payload = Bytes::from(vec![n as u8; MSS as usize]);
    Segment {
        src_port: 1,
        dst_port: 2,
        seq: at(n),
        ack: SeqNumber(1),
        flags: Flags::ACK,
        payload,
        ..Segment::default()
    }
}

/// An acknowledgement that requests the n-th segment and reports others.
fn ack(n: u32, reported: &[u32]) -> Segment {
    let block = |n: &u32| SackBlock { left: at(*n), right: at(*n + 1) };
    let options = Options { sack: reported.iter().map(block).collect(), ..Options::default() };
    Segment {
        src_port: 2,
        dst_port: 1,
        seq: SeqNumber(1),
        ack: at(n),
        flags: Flags::ACK,
        window: 300,
        options,
        ..Segment::default()
    }
}

/// A node, its clock, and the segments that it has sent.
struct Bench {
    node: Node,
    now: u64,
}

impl Bench {
    fn new(config: Config) -> Self {
        Self { node: Node::new(config), now: 0 }
    }

    /// After a handshake of one local round trip, and an acknowledgement of the first segment.
    fn established(config: Config) -> Self {
        let mut bench = Self::new(config);
        bench.pass(syn(true));
        bench.report(&syn(true), LinkEvent::Acknowledged);
        bench.wait(RTT);
        bench.pass(syn_ack(true));
        bench.report(&syn_ack(true), LinkEvent::Acknowledged);
        bench.pass(data(1));
        bench.report(&data(1), LinkEvent::Acknowledged);
        bench.wait(RTT);
        bench.pass(ack(2, &[]));
        assert_eq!(bench.node.local_rtt(forth(), &data(1)), Some(Duration::from_millis(RTT)));
        bench
    }

    fn hand(&mut self, segment: &Segment, random: u32) -> Verdict {
        let flow = if segment.src_port == 2 { back() } else { forth() };
        self.node.handle_segment(ms(self.now), flow, segment, random)
    }

    fn pass(&mut self, segment: Segment) {
        assert_eq!(self.hand(&segment, LUCKY), Verdict::Forward, "{segment:?}");
    }

    fn hold(&mut self, segment: Segment) {
        assert_eq!(self.hand(&segment, LUCKY), Verdict::Hold, "{segment:?}");
    }

    /// Options of a segment that the node must forward modified.
    fn rewritten(&mut self, segment: Segment) -> Options {
        match self.hand(&segment, LUCKY) {
            Verdict::Rewrite(options) => options,
            other => panic!("{other:?} for {segment:?}"),
        }
    }

    fn report(&mut self, segment: &Segment, event: LinkEvent) {
        let flow = if segment.src_port == 2 { back() } else { forth() };
        self.node.handle_link(ms(self.now), flow, segment, event);
    }

    fn wait(&mut self, millis: u64) {
        self.now += millis;
        if self.node.next_timeout().is_some_and(|at| at <= ms(self.now)) {
            self.node.handle_timeout(ms(self.now));
        }
    }

    fn sent(&mut self) -> Vec<Segment> {
        std::iter::from_fn(|| self.node.poll_transmit(ms(self.now)))
            .map(|Transmit { flow, segment }| {
                assert_eq!(flow, if segment.src_port == 2 { back() } else { forth() });
                segment
            })
            .collect()
    }

    /// Whether this segment is cached: a retransmission on its behalf contains it.
    fn caches(&mut self, segment: &Segment) -> bool {
        let mut probe = Bench { node: self.node.clone(), now: self.now };
        probe.report(segment, LinkEvent::TimedOut);
        probe.wait(5_000);
        probe.sent().first() == Some(segment)
    }
}

#[test]
fn a_connection_takes_at_most_200_octets() {
    println!("{} octets", Node::CONNECTION_MEMORY);
    const { assert!(Node::CONNECTION_MEMORY <= 200) };
}

#[test]
fn without_state_a_node_only_forwards() {
    let mut bench = Bench::new(Config::paper());
    bench.pass(ack(3, &[4]));
    bench.pass(Segment { flags: Flags::ACK.with(Flags::RST), ..data(1) });
    assert_eq!((bench.node.connections(), bench.node.counters().stateless), (0, 2));
    assert_eq!(bench.node.next_timeout(), None);
}

#[test]
fn a_node_joins_in_with_data() {
    let mut bench = Bench::new(Config::paper());
    bench.pass(data(7));
    assert_eq!(bench.node.connections(), 1);
    assert!(bench.caches(&data(7)));
}

#[test]
fn action_1_an_empty_place_takes_every_segment_and_a_full_one_by_chance() {
    let mut bench = Bench::established(Config::paper());
    assert_eq!(bench.hand(&data(2), UNLUCKY), Verdict::Forward);
    assert_eq!(bench.hand(&data(3), UNLUCKY), Verdict::Forward);
    assert_eq!(bench.node.counters().not_cached, 1);
    bench.pass(data(4));
    assert_eq!(bench.node.counters().displaced, 1);
    bench.report(&data(4), LinkEvent::TimedOut);
    bench.wait(300);
    assert_eq!(bench.sent(), [data(4)]);
}

#[test]
fn action_2_what_the_link_did_not_acknowledge_is_locked() {
    let mut bench = Bench::established(Config::paper());
    bench.pass(data(2));
    bench.report(&data(2), LinkEvent::TimedOut);
    bench.pass(data(3));
    assert_eq!(
        (bench.node.counters().locked, bench.node.counters().not_cached),
        (3, 1),
        "SYN, SYN-ACK, data"
    );
    // 3.1: the acknowledgement unlocks the place and stops the timer.
    bench.pass(ack(3, &[]));
    bench.wait(10_000);
    assert_eq!(bench.sent(), []);
}

#[test]
fn action_2_takes_what_only_the_link_still_holds() {
    let mut bench = Bench::established(Config::paper());
    bench.pass(data(2));
    assert_eq!(bench.hand(&data(3), UNLUCKY), Verdict::Forward);
    bench.report(&data(3), LinkEvent::TimedOut);
    bench.wait(300);
    assert_eq!(bench.sent(), [data(3)]);
}

#[test]
fn d14_a_lower_number_may_displace_a_locked_segment() {
    for (displacement, first) in [(Displacement::Never, 3), (Displacement::ByLower, 2)] {
        let mut bench = Bench::established(Config { displacement, ..Config::paper() });
        bench.pass(data(3));
        bench.report(&data(3), LinkEvent::TimedOut);
        bench.pass(data(2));
        bench.report(&data(2), LinkEvent::TimedOut);
        bench.pass(data(4));
        bench.wait(300);
        assert_eq!(bench.sent(), [data(first)], "{displacement:?}");
    }
}

#[test]
fn d15_a_segment_that_the_node_repeated_is_held_for_one_local_round_trip() {
    let mut bench = Bench::established(Config::paper());
    bench.pass(data(2));
    bench.pass(data(2));
    bench.report(&data(2), LinkEvent::TimedOut);
    bench.wait(300);
    assert_eq!(bench.sent(), [data(2)]);
    bench.wait(RTT - 1);
    bench.hold(data(2));
    bench.wait(1);
    bench.pass(data(2));
}

/// A receiver rejects segments older than the newest accepted timestamp (PAWS), so an old copy must
/// not replace a new one.
#[test]
fn a_held_segment_leaves_its_timestamp_to_the_cached_one() {
    let stamped = |value| {
        let options = Options { timestamps: Some(Timestamps { value, echo: 1 }), ..Options::default() };
        Segment { options, ..data(2) }
    };
    let mut bench = Bench::established(Config::paper());
    bench.pass(stamped(5));
    bench.report(&stamped(5), LinkEvent::TimedOut);
    bench.wait(300);
    assert_eq!(bench.sent(), [stamped(5)]);
    bench.wait(100);
    bench.hold(stamped(9));
    // A late duplicate of the first segment changes nothing.
    bench.hold(stamped(5));
    bench.wait(200);
    assert_eq!(bench.sent(), [stamped(9)]);
}

#[test]
fn action_4_repeats_at_one_and_a_half_local_round_trips_until_it_gives_up() {
    let mut bench = Bench::established(Config { max_repeats: 3, ..Config::paper() });
    bench.pass(data(2));
    bench.report(&data(2), LinkEvent::TimedOut);
    for _ in 0..3 {
        assert_eq!(bench.node.next_timeout(), Some(ms(bench.now + 300)));
        bench.wait(299);
        assert_eq!(bench.sent(), []);
        bench.wait(1);
        assert_eq!(bench.sent(), [data(2)]);
    }
    bench.wait(100_000);
    assert_eq!((bench.sent(), bench.node.counters().given_up), (vec![], 1));
    // Its place is unlocked again.
    bench.pass(data(3));
    assert_eq!(bench.node.counters().displaced, 1);
}

#[test]
fn the_local_timeout_can_back_off() {
    let config = Config { backoff: Backoff::Double, immediate_repeats: 0, ..Config::paper() };
    let mut bench = Bench::established(config);
    bench.pass(data(2));
    bench.report(&data(2), LinkEvent::TimedOut);
    for wait in [300, 600, 1200] {
        bench.wait(wait - 1);
        assert_eq!(bench.sent(), []);
        bench.wait(1);
        assert_eq!(bench.sent(), [data(2)]);
    }
}

#[test]
fn action_3_2_repeats_after_a_duplicate_that_is_not_too_early() {
    let config = Config { duplicate_acks: DuplicateAcks::Repeat, ..Config::paper() };
    let mut bench = Bench::established(config);
    bench.pass(data(2));
    // Too early: figure 2.
    bench.wait(RTT);
    bench.pass(ack(2, &[]));
    assert_eq!(bench.sent(), []);
    bench.wait(1);
    bench.pass(ack(2, &[]));
    assert_eq!(bench.sent(), [data(2)]);
    bench.pass(ack(2, &[]));
    assert_eq!(bench.sent(), []);

    let mut bench = Bench::established(Config::paper());
    bench.pass(data(2));
    bench.wait(10 * RTT);
    bench.pass(ack(2, &[]));
    bench.pass(ack(2, &[]));
    assert_eq!(bench.sent(), [], "the paper leaves it out");
}

#[test]
fn action_3_2_waits_for_three_duplicates_where_segments_overtake_each_other() {
    let config = Config { duplicate_acks: DuplicateAcks::Repeat, ..Config::paper() };
    let mut bench = Bench::established(config);
    assert_eq!(bench.hand(&data(3), UNLUCKY), Verdict::Forward);
    bench.wait(5);
    bench.pass(data(2));
    bench.wait(2 * RTT);
    for _ in 0..2 {
        bench.pass(ack(2, &[]));
        assert_eq!(bench.sent(), []);
    }
    bench.pass(ack(2, &[]));
    assert_eq!(bench.sent(), [data(2)]);
}

/// Figure 3, node 7: the node retransmits segment 2 and reports this upstream.
#[test]
fn action_3_3_repeats_what_is_missing_below_a_reported_segment() {
    let mut bench = Bench::established(Config::paper());
    bench.pass(data(2));
    bench.pass(data(3));
    assert_eq!(bench.hand(&data(4), UNLUCKY), Verdict::Forward);
    bench.wait(RTT + 1);
    let options = bench.rewritten(ack(2, &[4]));
    assert_eq!(options.sack.as_slice(), [SackBlock { left: at(3), right: at(5) }]);
    assert_eq!(bench.sent(), [data(3)]);
}

/// Figure 3, node 5: all gaps are filled, so the acknowledgement is not forwarded (errata D10,
/// D12).
#[test]
fn action_3_3_holds_an_acknowledgement_whose_gaps_are_all_repaired() {
    let mut bench = Bench::established(Config::paper());
    bench.pass(data(2));
    bench.wait(RTT + 1);
    bench.hold(ack(2, &[3, 4]));
    assert_eq!(bench.sent(), [data(2)]);
    // Held back only while the node repairs the loss: locked, with a timer.
    assert_eq!(bench.node.next_timeout(), Some(ms(bench.now + 300)));
    bench.wait(100);
    bench.hold(ack(2, &[3, 4]));
    bench.wait(199);
    bench.hold(ack(2, &[3, 4]));
    // Held back for at most one local time-out.
    bench.wait(1);
    assert_eq!(bench.rewritten(ack(2, &[3, 4])).sack.as_slice(), [SackBlock { left: at(2), right: at(5) }]);
}

#[test]
fn an_acknowledgement_that_tells_something_new_is_never_held() {
    let mut bench = Bench::established(Config::paper());
    assert_eq!(bench.hand(&data(2), LUCKY), Verdict::Forward);
    assert_eq!(bench.hand(&data(3), LUCKY), Verdict::Forward);
    bench.wait(RTT + 1);
    bench.rewritten(ack(3, &[4]));
    // Nor an acknowledgement that opens the window, nor one with data.
    bench.rewritten(Segment { window: 400, ..ack(3, &[4]) });
    bench.rewritten(Segment { payload: Bytes::from_static(b"x"), window: 400, ..ack(3, &[4]) });
    bench.hold(Segment { window: 400, ..ack(3, &[4]) });
}

#[test]
fn d11_a_segment_just_sent_or_above_the_reported_ones_is_not_repeated() {
    let mut bench = Bench::established(Config::paper());
    bench.pass(data(4));
    bench.wait(RTT);
    bench.pass(ack(2, &[5]));
    assert_eq!(bench.sent(), [], "too early: figure 1");
    bench.wait(RTT);
    bench.pass(ack(2, &[3]));
    assert_eq!(bench.sent(), [], "not below a reported one");
}

#[test]
fn a_reported_segment_leaves_the_cache() {
    let mut bench = Bench::established(Config::paper());
    bench.pass(data(3));
    bench.report(&data(3), LinkEvent::TimedOut);
    bench.pass(ack(2, &[3]));
    bench.wait(10_000);
    assert_eq!(bench.sent(), []);
}

#[test]
fn action_3_4_reports_a_locked_segment_to_upstream() {
    let mut bench = Bench::established(Config::paper());
    bench.pass(data(3));
    bench.pass(ack(2, &[]));
    bench.report(&data(3), LinkEvent::TimedOut);
    let options = bench.rewritten(ack(2, &[]));
    assert_eq!(options.sack.as_slice(), [SackBlock { left: at(3), right: at(4) }]);
    assert_eq!(bench.node.counters().sack_added, 1);
}

#[test]
fn action_3_4_needs_ends_that_speak_sack() {
    let mut bench = Bench::new(Config::paper());
    bench.pass(data(2));
    bench.pass(data(3));
    bench.report(&data(3), LinkEvent::TimedOut);
    bench.pass(ack(2, &[]));
}

#[test]
fn d16_every_sign_of_a_repetition_cancels_the_measurement() {
    type Sign = (&'static str, fn(&mut Bench));
    let signs: [Sign; 5] = [
        ("none", |_| ()),
        ("upstream", |bench| bench.pass(data(2))),
        ("own", |bench| {
            bench.report(&data(2), LinkEvent::TimedOut);
            bench.wait(300);
            assert_eq!(bench.sent(), [data(2)]);
        }),
        ("the link's", |bench| bench.report(&data(2), LinkEvent::TimedOut)),
        ("a gap", |bench| bench.pass(ack(2, &[4]))),
    ];
    for (name, sign) in signs {
        let mut bench = Bench::established(Config::paper());
        let before = *bench.node.counters();
        bench.pass(data(2));
        sign(&mut bench);
        bench.wait(4 * RTT);
        bench.hand(&ack(3, &[]), LUCKY);
        let taken = bench.node.counters().rtt_samples - before.rtt_samples;
        let cancelled = bench.node.counters().rtt_cancelled - before.rtt_cancelled;
        assert_eq!((taken, cancelled), if name == "none" { (1, 0) } else { (0, 1) }, "{name}");
    }
}

#[test]
fn d16_a_segment_behind_a_hole_is_not_measured() {
    let mut bench = Bench::established(Config::paper());
    bench.pass(data(2));
    bench.pass(data(2));
    bench.pass(data(3));
    bench.wait(10 * RTT);
    bench.pass(ack(4, &[]));
    assert_eq!(bench.node.local_rtt(forth(), &data(1)), Some(Duration::from_millis(RTT)));
}

#[test]
fn flying_start_repeats_syn_at_once_and_measures_from_the_first() {
    for config in [Config::paper(), Config::improved()] {
        let mut bench = Bench::new(config);
        bench.pass(syn(true));
        bench.wait(30);
        bench.report(&syn(true), LinkEvent::TimedOut);
        assert_eq!(bench.sent(), [syn(true)]);
        bench.wait(22);
        bench.report(&syn(true), LinkEvent::Acknowledged);
        bench.wait(100);
        bench.pass(syn_ack(true));
        assert_eq!(bench.node.local_rtt(forth(), &data(1)), Some(Duration::from_millis(152)));
        // The other direction: from the SYN-ACK to its answer.
        bench.wait(60);
        bench.pass(data(1));
        assert_eq!(bench.node.local_rtt(back(), &ack(1, &[])), Some(Duration::from_millis(60)));
    }
}

/// Section IV-C: connections start with TCP's initial time-out, in both directions, also when SYN
/// and SYN-ACK are retransmitted.
#[test]
fn without_flying_start_the_handshake_is_not_measured() {
    for flying_start in [FlyingStart::Off, FlyingStart::On] {
        let mut bench = Bench::new(Config { flying_start, ..Config::paper() });
        bench.pass(syn(true));
        bench.wait(200);
        bench.pass(syn_ack(true));
        if flying_start == FlyingStart::Off {
            bench.wait(1000);
            bench.pass(syn(true));
            bench.wait(200);
            bench.pass(syn_ack(true));
        }
        let known = |bench: &Bench| {
            [bench.node.local_rtt(forth(), &data(1)), bench.node.local_rtt(back(), &ack(1, &[]))]
        };
        let handshake = (flying_start == FlyingStart::On).then_some(Duration::from_millis(200));
        assert_eq!(known(&bench), [handshake, None], "{flying_start:?}");
        bench.wait(60);
        bench.pass(data(1));
        let answer = (flying_start == FlyingStart::On).then_some(Duration::from_millis(60));
        assert_eq!(known(&bench)[1], answer, "{flying_start:?}");
        // The first data is measured in both cases.
        bench.wait(RTT);
        bench.pass(ack(2, &[]));
        let first = Duration::from_millis(RTT);
        assert!(known(&bench)[0].is_some_and(|rtt| flying_start == FlyingStart::On || rtt == first));
    }
}

#[test]
fn flying_start_does_not_measure_the_time_out_of_the_end() {
    let mut bench = Bench::new(Config::paper());
    bench.pass(syn(true));
    bench.report(&syn(true), LinkEvent::Acknowledged);
    bench.wait(6000);
    bench.hand(&syn(true), LUCKY);
    bench.wait(150);
    bench.pass(syn_ack(true));
    assert_eq!(bench.node.local_rtt(forth(), &data(1)), Some(Duration::from_millis(150)));
}

/// A neighbour that has missed the link acknowledgement retransmits the SYN, which is already on
/// its way.
#[test]
fn flying_start_measures_from_the_first_of_a_neighbours_repetitions() {
    let mut bench = Bench::new(Config::paper());
    bench.pass(syn(true));
    bench.report(&syn(true), LinkEvent::Acknowledged);
    bench.wait(25);
    bench.hand(&syn(true), LUCKY);
    bench.wait(19);
    bench.pass(syn_ack(true));
    assert_eq!(bench.node.local_rtt(forth(), &data(1)), Some(Duration::from_millis(44)));
}

#[test]
fn sack_is_offered_for_an_end_that_does_not_speak_it_and_kept_from_it() {
    let mut bench = Bench::new(Config::paper());
    assert!(bench.rewritten(syn(false)).sack_permitted);
    assert!(!bench.rewritten(syn_ack(true)).sack_permitted);
    bench.pass(data(1));
    bench.wait(2 * RTT);
    assert_eq!(bench.rewritten(ack(1, &[3])).sack, SackBlocks::EMPTY);
    // The node's retransmission of the SYN also offers SACK.
    let mut bench = Bench::new(Config::paper());
    bench.rewritten(syn(false));
    bench.report(&syn(true), LinkEvent::TimedOut);
    assert_eq!(bench.sent(), [syn(true)]);
    // The next node sees an endpoint that supports SACK.
    let mut bench = Bench::new(Config::paper());
    bench.pass(syn(true));
    bench.pass(syn_ack(true));
    bench.pass(data(1));
    bench.pass(ack(1, &[3]));

    let mut bench = Bench::new(Config { sack: SackForEnds::Leave, ..Config::paper() });
    bench.pass(syn(false));
}

#[test]
fn a_syn_that_is_full_of_options_passes_as_it_is() {
    let mut full = syn(false);
    full.options.sack = SackBlocks::from_iter([SackBlock::default(); 3]);
    full.options.mss = Some(536);
    full.options.timestamps = None;
    full.options.window_scale = Some(1);
    full.options.mss = None;
    full.options.timestamps = Some(Default::default());
    let mut bench = Bench::new(Config::paper());
    assert!(full.options.wire_len() >= 40);
    bench.pass(full);
}

#[test]
fn custody_locks_until_the_next_hop_has_it() {
    let mut bench = Bench::established(Config::improved());
    bench.pass(data(2));
    bench.pass(data(3));
    assert_eq!(bench.node.counters().not_cached, 1, "locked");
    bench.wait(25);
    bench.report(&data(2), LinkEvent::TimedOut);
    assert_eq!(bench.sent(), [data(2)]);
    // The upstream node has also missed a link acknowledgement.
    bench.hold(data(2));
    bench.report(&data(2), LinkEvent::Acknowledged);
    bench.hold(data(2));
    bench.pass(data(4));
    assert_eq!(bench.node.counters().displaced, 1);
    bench.report(&data(4), LinkEvent::Acknowledged);
    bench.wait(5000);
    assert_eq!(bench.sent(), []);
    // The sender's own retransmission, much later, passes.
    bench.pass(data(4));
}

#[test]
fn custody_ends_after_so_many_repetitions() {
    let mut bench = Bench::established(Config { max_repeats: 6, ..Config::improved() });
    bench.pass(data(2));
    let mut repeats = 0;
    for _ in 0..10_000 {
        bench.wait(25);
        bench.report(&data(2), LinkEvent::TimedOut);
        repeats += bench.sent().len();
    }
    assert_eq!((repeats, bench.node.counters().given_up), (6, 1));
    bench.pass(data(2));
}

#[test]
fn custody_without_reports_of_the_link_uses_the_local_time_out() {
    let mut bench = Bench::established(Config::improved());
    bench.pass(data(2));
    bench.wait(300);
    assert_eq!(bench.sent(), [data(2)]);
    bench.pass(ack(3, &[]));
    bench.wait(10_000);
    assert_eq!(bench.sent(), []);
}

#[test]
fn an_acknowledgement_that_none_follows_is_repeated() {
    let mut bench = Bench::established(Config::improved());
    for n in 2..5 {
        bench.pass(data(n));
        bench.report(&data(n), LinkEvent::Acknowledged);
    }
    bench.pass(ack(3, &[]));
    bench.report(&ack(3, &[]), LinkEvent::TimedOut);
    bench.wait(50);
    bench.pass(ack(4, &[]));
    bench.report(&ack(4, &[]), LinkEvent::Acknowledged);
    bench.wait(1000);
    assert_eq!(bench.sent(), [], "a newer one says more");
    bench.pass(ack(5, &[]));
    for _ in 0..3 {
        bench.report(&ack(5, &[]), LinkEvent::TimedOut);
        bench.wait(199);
        assert_eq!(bench.sent(), []);
        bench.wait(1);
        assert_eq!(bench.sent(), [ack(5, &[])]);
    }
    bench.report(&ack(5, &[]), LinkEvent::TimedOut);
    bench.wait(1000);
    assert_eq!(bench.sent(), [], "three times at most");
}

#[test]
fn data_that_the_receiver_has_is_answered_a_few_times() {
    let mut bench = Bench::established(Config::improved());
    bench.wait(5000);
    for _ in 0..3 {
        bench.hold(data(1));
        assert_eq!(bench.sent(), [ack(2, &[])]);
        bench.wait(1000);
    }
    bench.pass(data(1));
    assert_eq!(bench.sent(), []);
    // A keep-alive is for the receiver only.
    bench.pass(ack(2, &[]));
    bench.pass(Segment { seq: at(2) - 1, payload: Bytes::from_static(b"?"), ..data(1) });
}

/// The node has missed the end of one connection and the SYN of the next.
#[test]
fn state_of_another_connection_does_not_answer_for_long() {
    let mut bench = Bench::established(Config::improved());
    bench.pass(data(50));
    bench.pass(ack(51, &[]));
    bench.wait(5000);
    bench.hold(data(10));
    // Any segment of the receiver corrects the state.
    bench.pass(ack(10, &[]));
    for n in 10..20 {
        bench.wait(1000);
        bench.pass(data(n));
        bench.report(&data(n), LinkEvent::Acknowledged);
        bench.pass(ack(n + 1, &[]));
    }
    // If the receiver is silent, the data pass after three answers.
    let mut bench = Bench::established(Config::improved());
    bench.pass(data(50));
    bench.pass(ack(51, &[]));
    let held = (0..20).filter(|_| {
        bench.wait(1000);
        bench.hand(&data(10), LUCKY) == Verdict::Hold
    });
    assert_eq!(held.count(), 3);
}

#[test]
fn the_paper_lets_old_data_pass() {
    let mut bench = Bench::established(Config::paper());
    assert_eq!(Config::paper().acks, AckCustody::Leave);
    bench.pass(data(1));
}

#[test]
fn more_places_hold_more_segments() {
    let mut bench =
        Bench::established(Config { cache_segments: 3, cache_chance: Chance::NEVER, ..Config::paper() });
    for n in 2..6 {
        bench.pass(data(n));
    }
    for n in 2..6 {
        bench.report(&data(n), LinkEvent::TimedOut);
    }
    bench.wait(300);
    assert_eq!(bench.sent(), [data(2), data(3), data(4)]);
    bench.pass(ack(4, &[]));
    bench.wait(300);
    assert_eq!(bench.sent(), [data(4)]);
    let mut bench = Bench::established(Config { cache_segments: 0, ..Config::improved() });
    bench.pass(data(2));
    bench.report(&data(2), LinkEvent::TimedOut);
    bench.wait(1000);
    assert_eq!(bench.sent(), []);
}

/// A data segment of another sender.
fn other(port: u16) -> Segment {
    Segment { src_port: port, ..data(1) }
}

impl Bench {
    fn evicted_and_stateless(&self) -> (u64, u64) {
        (self.node.counters().evicted, self.node.counters().stateless)
    }
}

#[test]
fn the_connection_silent_for_longest_makes_room_once_it_is_silent_for_a_second() {
    let mut bench = Bench::new(Config { connections: 2, cache_segments: 1, ..Config::paper() });
    bench.pass(other(11));
    bench.report(&other(11), LinkEvent::TimedOut);
    bench.pass(other(12));
    for port in 13..100 {
        bench.wait(10);
        bench.pass(other(port));
    }
    assert_eq!(bench.evicted_and_stateless(), (0, 87), "a live connection is not evicted");
    bench.pass(other(12));
    bench.wait(130);
    bench.pass(other(13));
    assert_eq!((bench.node.connections(), bench.evicted_and_stateless()), (2, (1, 87)));
    bench.pass(other(12));
    bench.pass(other(13));
    assert_eq!(bench.evicted_and_stateless(), (1, 87), "11 is evicted, not 12");
    // The segment that was locked for 11 is still retransmitted.
    bench.wait(3000);
    assert_eq!(bench.sent(), [other(11)]);
}

/// Segments of a connection that has lost its state, or never had one, stay in the cache. The same
/// endpoints start again with the same numbers, as after a boot, and segment the stream
/// differently. Either the new SYN passes the node soon after, or it takes another route and an
/// idle time has passed.
#[test]
fn a_new_connection_is_sent_nothing_of_a_former_one_between_the_same_ends() {
    for (evicted, syn_passes) in [(false, true), (true, true), (false, false), (true, false)] {
        let mut bench = Bench::new(Config { connections: 1, cache_segments: 8, ..Config::improved() });
        let cut = |first: u32, octets: usize, what: u8| {
            let payload = Bytes::from(vec![what; octets]);
            Segment { seq: SeqNumber(ISN + first), payload, ..data(1) }
        };
        let old = cut(51, 100, 0xAA);
        if !evicted {
            bench.pass(other(11));
        }
        bench.pass(old.clone());
        bench.report(&old, LinkEvent::Acknowledged);
        if evicted {
            bench.wait(2000);
            bench.pass(other(11));
        }
        assert_eq!(bench.evicted_and_stateless().0, u64::from(evicted));
        bench.wait(2000);
        bench.pass(Segment { flags: Flags::RST, payload: Bytes::new(), ..cut(151, 0, 0) });
        for _ in 0..if syn_passes { 2 } else { 1000 } {
            bench.wait(1000);
            bench.sent();
        }
        if syn_passes {
            bench.pass(syn(true));
            bench.report(&syn(true), LinkEvent::Acknowledged);
            bench.pass(syn_ack(true));
            bench.report(&syn_ack(true), LinkEvent::Acknowledged);
        }
        for new in [cut(1, 50, 0xBB), cut(51, 120, 0xBB), cut(171, 80, 0xBB), cut(251, 80, 0xBB)] {
            bench.pass(new.clone());
            bench.report(&new, LinkEvent::Acknowledged);
        }
        let asks = |sack: SackBlocks| Segment {
            ack: SeqNumber(ISN + 51),
            options: Options { sack, ..Options::default() },
            ..ack(1, &[])
        };
        bench.wait(100);
        bench.hand(&asks(SackBlocks::EMPTY), LUCKY);
        bench.wait(100);
        let block = SackBlock { left: SeqNumber(ISN + 171), right: SeqNumber(ISN + 331) };
        bench.hand(&asks([block].into_iter().collect()), LUCKY);
        let sent = bench.sent();
        assert!(
            !syn_passes || sent.contains(&cut(51, 120, 0xBB)),
            "evicted {evicted}, SYN {syn_passes}: {sent:?}"
        );
        assert!(
            !sent.iter().any(|s| s.payload.contains(&0xAA)),
            "evicted {evicted}, SYN {syn_passes}: {sent:?}"
        );
    }
}

/// Segment 2 took another route. The receiver also has segment 1, and no copy of it is sent. The
/// state of the connection does not change, because the number may be forged.
#[test]
fn an_acknowledgement_of_more_than_was_seen_frees_the_cache() {
    for config in [Config::paper(), Config::improved()] {
        for acknowledged in [2, 3, 5000] {
            let mut bench = Bench::new(config);
            bench.pass(data(1));
            bench.wait(100);
            bench.pass(ack(acknowledged, &[]));
            assert_eq!(bench.node.counters().unacceptable, u64::from(acknowledged > 2));
            for _ in 0..3000 {
                bench.wait(100);
                assert_eq!(bench.sent(), [], "{acknowledged}");
            }
        }
    }
}

#[test]
fn a_connection_without_room_for_its_state_has_its_segments_cached() {
    let mut bench = Bench::new(Config { connections: 1, cache_segments: 1, ..Config::improved() });
    bench.pass(other(11));
    bench.report(&other(11), LinkEvent::Acknowledged);
    bench.pass(other(12));
    assert_eq!(bench.evicted_and_stateless(), (0, 1));
    bench.report(&other(12), LinkEvent::TimedOut);
    assert_eq!(bench.sent(), [other(12)]);
    // No segment of the connection is held back, because its state is unknown.
    bench.pass(other(12));
    // A segment that the receiver has is not retransmitted.
    let acks = Segment { dst_port: 12, ..ack(2, &[]) };
    assert_eq!(bench.node.handle_segment(ms(bench.now), back(), &acks, LUCKY), Verdict::Forward);
    bench.wait(60_000);
    assert_eq!(bench.sent(), []);
}

/// One place and many connections: segments that wait for their link reports do not keep out a
/// segment that is known to be lost.
#[test]
fn a_lost_segment_takes_the_place_of_one_that_the_link_still_has() {
    let mut bench = Bench::new(Config { cache_segments: 1, ..Config::improved() });
    let syn = Segment { src_port: 13, ..syn(true) };
    for segment in [&other(11), &other(12), &syn] {
        bench.pass(segment.clone());
    }
    for segment in [&other(12), &syn, &other(11)] {
        bench.report(segment, LinkEvent::TimedOut);
        assert_eq!(bench.sent(), std::slice::from_ref(segment));
        bench.report(segment, LinkEvent::Acknowledged);
    }
    // Two segments that displace each other would continue forever: a retransmitted one stays until
    // the link has delivered it.
    bench.pass(other(21));
    bench.pass(other(22));
    bench.report(&other(21), LinkEvent::TimedOut);
    bench.report(&other(22), LinkEvent::TimedOut);
    assert_eq!(bench.sent(), [other(21)]);
    let taken: Vec<Segment> = (0..20)
        .flat_map(|_| {
            bench.report(&other(22), LinkEvent::TimedOut);
            bench.report(&other(21), LinkEvent::TimedOut);
            bench.sent()
        })
        .collect();
    assert_eq!(taken, vec![other(21); 3]);
}

#[test]
fn a_repeated_acknowledgement_keeps_what_it_said() {
    let repeated = |of: &Segment, then: &[Segment]| {
        let mut bench = Bench::established(Config::improved());
        bench.pass(data(2));
        bench.pass(of.clone());
        for segment in then {
            bench.pass(segment.clone());
        }
        bench.report(of, LinkEvent::TimedOut);
        bench.wait(1000);
        bench.sent().into_iter().filter(|s| s.payload.is_empty()).collect::<Vec<_>>()
    };
    let stamps = Some(Timestamps { value: 5, echo: 6 });
    let echo = Segment {
        flags: Flags::ACK.with(Flags::ECE),
        options: Options { timestamps: stamps, ..Options::default() },
        ..ack(3, &[])
    };
    assert_eq!(repeated(&echo, &[]), std::slice::from_ref(&echo));
    // Data carries the same number later: a retransmission would be older than the receiver's data.
    let data = Segment { payload: Bytes::from_static(b"data"), ..ack(3, &[]) };
    assert_eq!(repeated(&ack(3, &[]), &[data]), []);
    // The option that a node would drop has a meaning.
    let mut multipath = ack(3, &[]);
    multipath.mptcp.set_dss(Dss::default().with_data_ack(WireDsn::Short(7)));
    assert_eq!(repeated(&multipath, &[]), []);
}

/// Before the node holds back an acknowledgement or data, it checks their other contents.
#[test]
fn a_segment_that_says_something_new_passes() {
    let config = Config { cache_segments: 4, ..Config::paper() };
    let mut bench = Bench::established(config);
    bench.pass(data(2));
    bench.report(&data(2), LinkEvent::TimedOut);
    bench.pass(data(3));
    bench.wait(250);
    bench.hold(ack(2, &[3]));
    let echo = Segment { flags: Flags::ACK.with(Flags::ECE), ..ack(2, &[3]) };
    assert_ne!(bench.hand(&echo, LUCKY), Verdict::Hold);

    let mut bench = Bench::established(Config { cache_segments: 4, ..Config::improved() });
    bench.pass(data(2));
    bench.hold(data(2));
    // The endpoint sends other data in its place.
    let changed = Segment { payload: Bytes::from(vec![9; MSS as usize]), ..data(2) };
    bench.pass(changed.clone());
    bench.report(&changed, LinkEvent::TimedOut);
    assert_eq!(bench.sent(), [changed]);
    // A window of the other direction.
    let answer = Segment { payload: Bytes::from_static(&[7; 50]), ..ack(2, &[]) };
    bench.pass(answer.clone());
    bench.report(&answer, LinkEvent::Acknowledged);
    bench.hold(answer.clone());
    bench.pass(Segment { window: 299, ..answer });
}

/// Segments that claim to belong to a connection and do not fit it change neither its state nor its
/// cache, and the segments of its endpoints pass (RFC 9293 section 3.10.7.4, RFC 5961).
#[test]
fn a_forged_or_stale_segment_changes_nothing() {
    let far = [1 << 21, 1 << 30, 1 << 31, 3 << 30];
    for config in [Config::paper(), Config::improved()] {
        let mut forged = vec![
            Segment { flags: Flags::RST, seq: at(2) + 1, ..ack(9, &[]) },
            Segment {
                flags: Flags::RST.with(Flags::ACK),
                src_port: 1,
                dst_port: 2,
                seq: at(1),
                ..ack(2, &[])
            },
        ];
        let fin = Flags::FIN.with(Flags::ACK);
        for by in far {
            let beyond = |segment: Segment| Segment { seq: segment.seq + by, ..segment };
            let acks = |segment: Segment| Segment { ack: segment.ack + by, ..segment };
            forged.extend([
                beyond(Segment { flags: Flags::RST, payload: Bytes::new(), ..data(3) }),
                beyond(Segment { flags: Flags::RST, ..ack(3, &[]) }),
                beyond(syn(false)),
                beyond(syn_ack(false)),
                acks(syn_ack(false)),
                beyond(data(3)),
                beyond(Segment { flags: fin, ..data(3) }),
                beyond(Segment { flags: fin, ..ack(2, &[]) }),
                acks(ack(2, &[])),
                acks(ack(2, &[3])),
            ]);
        }
        let mut bench = Bench::established(config);
        bench.pass(data(2));
        bench.report(&data(2), LinkEvent::TimedOut);
        bench.sent();
        for segment in &forged {
            bench.pass(segment.clone());
            bench.report(segment, LinkEvent::TimedOut);
        }
        let counters = *bench.node.counters();
        assert_eq!(counters.unacceptable, forged.len() as u64, "{counters:?}");
        assert_eq!((counters.closed, bench.node.connections()), (0, 1));
        assert_eq!(bench.node.local_rtt(forth(), &data(1)), Some(Duration::from_millis(RTT)));
        bench.wait(400);
        assert_eq!(bench.sent(), [data(2)], "it is still locked");
        bench.pass(ack(3, &[]));
        bench.pass(data(3));
        bench.wait(RTT);
        bench.pass(ack(4, &[]));
        assert_eq!(bench.node.counters().rtt_samples, counters.rtt_samples + 1);
    }
}

#[test]
fn state_leaves_with_rst_with_both_fins_and_with_silence() {
    let mut bench = Bench::established(Config::paper());
    bench.pass(data(2));
    bench.report(&data(2), LinkEvent::TimedOut);
    bench.pass(Segment { flags: Flags::RST, payload: Bytes::new(), ..data(3) });
    assert_eq!((bench.node.connections(), bench.node.next_timeout()), (0, None));
    // From an endpoint that only acknowledges, and to an endpoint whose SYN is refused (RFC 9293
    // section 3.10.7.3).
    let mut bench = Bench::established(Config::paper());
    bench.pass(Segment { flags: Flags::RST, ..ack(2, &[]) });
    assert_eq!(bench.node.connections(), 0);
    let mut bench = Bench::new(Config::paper());
    bench.pass(syn(true));
    let refuses = Segment { flags: Flags::RST.with(Flags::ACK), seq: SeqNumber(0), ..syn_ack(false) };
    bench.pass(Segment { ack: refuses.ack + 1, ..refuses.clone() });
    assert_eq!(bench.node.connections(), 1);
    bench.pass(refuses);
    assert_eq!((bench.node.connections(), bench.node.next_timeout()), (0, None));

    let fin = Flags::FIN.with(Flags::ACK);
    let mut bench = Bench::established(Config::improved());
    bench.pass(Segment { flags: fin, ..data(2) });
    bench.pass(Segment { flags: fin, ack: at(3) + 1, ..ack(3, &[]) });
    assert_eq!(bench.node.connections(), 1);
    bench.pass(Segment { seq: at(3) + 1, ack: SeqNumber(2), payload: Bytes::new(), ..data(3) });
    assert_eq!((bench.node.connections(), bench.node.next_timeout()), (0, None));

    let mut bench = Bench::established(Config::paper());
    bench.pass(data(2));
    let idle = Config::paper().idle.as_millis();
    bench.wait(idle - 1);
    assert_eq!(bench.node.connections(), 1);
    bench.wait(idle);
    assert_eq!((bench.node.connections(), bench.node.counters().expired), (0, 1));
    assert_eq!(bench.node.next_timeout(), None);
}

#[test]
fn a_new_connection_between_the_same_ends_begins_anew() {
    let mut bench = Bench::established(Config::paper());
    bench.pass(data(2));
    bench.wait(999);
    bench.pass(Segment { seq: SeqNumber(ISN + (1 << 24)), ..syn(true) });
    assert_eq!((bench.node.connections(), bench.node.counters().closed), (1, 0), "it may be forged");
    assert_eq!(bench.node.local_rtt(forth(), &data(1)), Some(Duration::from_millis(RTT)));
    bench.wait(1);
    bench.pass(Segment { seq: SeqNumber(ISN + (1 << 24)), ..syn(true) });
    assert_eq!((bench.node.connections(), bench.node.counters().closed), (1, 1));
    assert_eq!(bench.node.local_rtt(forth(), &data(1)), None);
}

#[test]
fn data_flow_both_ways_at_once() {
    let mut bench = Bench::established(Config { cache_segments: 2, ..Config::improved() });
    let answer = Segment { payload: Bytes::from_static(&[7; 50]), ..ack(2, &[]) };
    bench.pass(data(2));
    bench.pass(answer.clone());
    bench.report(&data(2), LinkEvent::TimedOut);
    bench.report(&answer, LinkEvent::TimedOut);
    assert_eq!(bench.sent(), [data(2), answer.clone()]);
    bench.pass(Segment { ack: answer.seq_end(), ..data(3) });
    bench.report(&answer, LinkEvent::TimedOut);
    assert_eq!(bench.sent(), []);
}

#[test]
fn data_with_an_acknowledgement_of_something_new_always_pass() {
    let mut bench = Bench::established(Config::improved());
    let answer = Segment { payload: Bytes::from_static(&[7; 50]), ..ack(2, &[]) };
    bench.pass(answer.clone());
    bench.report(&answer, LinkEvent::Acknowledged);
    bench.pass(data(2));
    bench.report(&data(2), LinkEvent::Acknowledged);
    bench.hold(data(2));
    bench.pass(Segment { ack: answer.seq_end(), ..data(2) });
    bench.hold(Segment { ack: answer.seq_end(), ..data(2) });
}

/// For any input the node does not panic, does not grow, and sends nothing that was not sent
/// before.
#[test]
fn nonsense_is_survived() {
    for seed in 0..2000 {
        let mut prng = Prng::new(seed);
        let base = prng.pick(&[Config::paper(), Config::improved(), router()]);
        let config = Config {
            cache_segments: prng.below(4) as usize,
            connections: prng.below(4) as usize,
            duplicate_acks: DuplicateAcks::Repeat,
            displacement: prng.pick(&[Displacement::Never, Displacement::ByLower, Displacement::OfLongest]),
            ..base
        };
        let mut node = Node::new(config);
        let mut now = Instant::ZERO;
        let mut seen: Vec<Segment> = Vec::new();
        for _ in 0..400 {
            now += Duration::from_millis(prng.below(400));
            let flow = if prng.chance(50) { forth() } else { back() };
            let segment = nonsense(&mut prng);
            match prng.below(4) {
                0 | 1 => {
                    node.handle_segment(now, flow, &segment, prng.bits() as u32);
                    seen.push(segment);
                }
                2 => {
                    // The link layer reports on a segment that it was given.
                    let Some(known) = seen.last().map(|_| &seen[prng.below(seen.len() as u64) as usize])
                    else {
                        continue;
                    };
                    let event = prng.pick(&[LinkEvent::Acknowledged, LinkEvent::TimedOut]);
                    node.handle_link(now, flow, known, event);
                }
                _ => {
                    if let Some(at) = node.next_timeout() {
                        now = now.max(at.min(now + Duration::from_secs(5)));
                    }
                    node.handle_timeout(now);
                }
            }
            assert!(node.connections() <= config.connections.max(1));
            for n in 0.. {
                let Some(Transmit { segment, .. }) = node.poll_transmit(now) else { break };
                assert!(n < 16, "seed {seed}: it goes on sending");
                let told = |s: &Segment| {
                    (s.seq, &s.payload, s.flags) == (segment.seq, &segment.payload, segment.flags)
                };
                assert!(seen.iter().any(|s| told(s) && s.ack == segment.ack), "seed {seed}: {segment:?}");
            }
        }
    }
}

/// A node of a router: many segments, no reports of a link layer.
fn router() -> Config {
    Config {
        cache_segments: 64,
        samples: Samples::EachSegment,
        timeouts: Timeouts::LowestOfFlow,
        signal: Signal::Never,
        unanswered_repeats: 2,
        min_rto: Duration::from_millis(1),
        initial_rto: Duration::from_millis(300),
        max_repeats: 8,
        ..Config::improved()
    }
}

/// After a handshake and one acknowledged segment, each of one local round trip.
fn routed() -> Bench {
    let mut bench = Bench::new(router());
    bench.pass(syn(true));
    bench.wait(RTT);
    bench.pass(syn_ack(true));
    bench.pass(Segment { seq: SeqNumber(ISN + 1), ..Segment { payload: Bytes::new(), ..data(1) } });
    bench.pass(data(1));
    bench.wait(RTT);
    bench.pass(ack(2, &[]));
    assert_eq!(bench.node.local_rtt(forth(), &data(1)), Some(Duration::from_millis(RTT)));
    assert_eq!((bench.sent(), bench.node.cached()), (vec![], (0, 0)));
    bench
}

#[test]
fn each_segment_that_was_sent_once_is_a_measurement() {
    let mut bench = routed();
    bench.pass(data(2));
    bench.pass(data(3));
    bench.wait(2 * RTT);
    assert_eq!(bench.sent(), [data(2)], "the time-out of the lowest");
    // A block for a segment that was sent once measures; what follows a retransmission does not.
    let before = bench.node.counters().rtt_samples;
    bench.hold(ack(2, &[3]));
    assert_eq!(bench.node.counters().rtt_samples, before + 1);
    let smoothed = Duration::from_millis((7 * RTT + 2 * RTT) / 8);
    assert_eq!(bench.node.local_rtt(forth(), &data(1)), Some(smoothed));
    bench.pass(data(4));
    bench.wait(10 * RTT);
    bench.sent();
    bench.pass(ack(5, &[]));
    assert_eq!(bench.node.counters().rtt_samples, before + 1);
}

#[test]
fn one_time_out_of_a_flow_repeats_its_lowest_segment() {
    let mut bench = routed();
    (2..7).for_each(|n| bench.pass(data(n)));
    bench.wait(RTT * 3 / 2 - 1);
    assert_eq!(bench.sent(), []);
    bench.wait(1);
    assert_eq!(bench.sent(), [data(2)]);
    // It arrives, so those that were sent before it are lost: two for each acknowledgement.
    bench.wait(RTT + 1);
    bench.pass(ack(3, &[]));
    assert_eq!(bench.sent(), [data(3), data(4)]);
    bench.wait(RTT + 1);
    bench.pass(ack(5, &[]));
    assert_eq!(bench.sent(), [data(5), data(6)]);
    bench.pass(ack(7, &[]));
    assert_eq!((bench.node.cached(), bench.node.counters().repaired), ((0, 0), 5));
    bench.wait(10 * RTT);
    assert_eq!(bench.sent(), []);
}

/// A window in a queue: acknowledgements come late but steadily.
#[test]
fn an_advancing_acknowledgement_begins_the_time_out_again() {
    let mut bench = routed();
    (2..12).for_each(|n| bench.pass(data(n)));
    for n in 3..12 {
        bench.wait(RTT);
        bench.pass(ack(n, &[]));
        assert_eq!(bench.sent(), [], "{n}");
    }
}

#[test]
fn a_destination_that_has_not_answered_gets_few_copies() {
    let mut bench = Bench::new(router());
    bench.pass(syn(true));
    bench.pass(Segment { src_port: 3, ..data(7) });
    let copies = (0..100).map(|_| {
        bench.wait(1_000);
        bench.sent().len()
    });
    assert_eq!(copies.sum::<usize>(), 4, "two of each");
}

#[test]
fn a_flow_and_the_payload_are_limited() {
    let limits = Config { flow_segments: 3, cache_octets: 4 * MSS as usize, ..router() };
    let mut bench = Bench::new(limits);
    (1..6).for_each(|n| bench.pass(data(n)));
    assert_eq!(bench.node.cached(), (3, 300));
    let other = |n| Segment { src_port: 3, ..data(n) };
    (1..4).for_each(|n| bench.pass(other(n)));
    assert_eq!((bench.node.cached(), bench.node.counters().not_cached), ((4, 400), 4));
    bench.pass(Segment { dst_port: 1, src_port: 2, ..ack(4, &[]) });
    assert_eq!(bench.node.cached(), (1, 100));
}

#[test]
fn a_router_changes_no_acknowledgement() {
    let mut bench = routed();
    (2..7).for_each(|n| bench.pass(data(n)));
    bench.wait(RTT + 1);
    // The node repairs both gaps, and holds. It knows nothing of a third one.
    bench.hold(ack(2, &[3, 5]));
    assert_eq!(bench.sent(), [data(2), data(4)]);
    bench.pass(ack(2, &[3, 5, 8]));
    assert_eq!(bench.node.counters().sack_added, 0);
}

#[test]
fn a_flow_has_one_timer_and_is_given_up_as_a_whole() {
    let mut bench = routed();
    for n in 2..42 {
        bench.pass(data(n));
        bench.now += 1;
    }
    let (mut wakes, mut copies) = (0, 0);
    while let Some(at) = bench.node.next_timeout().filter(|at| *at < ms(200_000)) {
        bench.node.handle_timeout(at);
        copies += std::iter::from_fn(|| bench.node.poll_transmit(at)).count();
        wakes += 1;
    }
    let counters = bench.node.counters();
    assert_eq!((copies, counters.local_timeouts, counters.given_up), (8, 8, 40));
    assert!(wakes <= 12, "{wakes} times for 40 segments");
}

#[test]
fn a_long_flow_makes_room_for_others() {
    for (cache_segments, cache_octets) in [(64, usize::MAX), (1000, 64 * MSS as usize)] {
        let displacement = Displacement::OfLongest;
        let mut bench = Bench::new(Config { cache_segments, cache_octets, displacement, ..router() });
        (1..101).for_each(|n| bench.pass(data(n)));
        assert_eq!((bench.node.cached().0, bench.node.counters().not_cached), (64, 36));
        (1..101).for_each(|n| bench.pass(Segment { src_port: 3, ..data(n) }));
        assert_eq!(bench.node.cached().0, 64);
        bench.pass(ack(101, &[]));
        let left = bench.node.cached().0;
        assert!((24..=33).contains(&left), "{left} of 64 are the other's");
    }
}

#[test]
fn places_of_a_flow_that_was_given_up_are_free() {
    let mut bench = Bench::new(Config { displacement: Displacement::OfLongest, ..router() });
    (1..65).for_each(|n| bench.pass(data(n)));
    for _ in 0..10 {
        bench.wait(1000);
        bench.sent();
    }
    assert_eq!(bench.node.counters().given_up, 64);
    (1..101).for_each(|n| bench.pass(Segment { src_port: 3, ..data(n) }));
    bench.pass(ack(101, &[]));
    let left = bench.node.cached().0;
    assert!(left >= 56, "{left} of 64 are the other's");
}

#[test]
fn one_acknowledgement_repeats_a_limited_number_of_segments() {
    let mut bench = Bench::new(Config { repeats_per_ack: 4, ..router() });
    (2..32).for_each(|n| bench.pass(data(n)));
    bench.pass(Segment { payload: Bytes::from_static(b"x"), ..ack(2, &[]) });
    bench.now += 301;
    bench.pass(ack(2, &[31]));
    assert_eq!(bench.sent(), [2, 3, 4, 5].map(data));
    // The block has measured the round trip.
    bench.now += 1;
    bench.pass(ack(2, &[31]));
    assert_eq!(bench.sent(), [6, 7, 8, 9].map(data));
}

/// A host that does not see the connection does not guess its numbers.
#[test]
fn numbers_far_from_those_of_a_connection_are_forged() {
    for (shift, far_fits) in [(None, false), (Some(14), true)] {
        let mut bench = Bench::new(Config { validation: Validation::WithinWindow, ..router() });
        let mut answer = syn_ack(true);
        answer.options.window_scale = shift;
        [syn(true), answer, data(1), ack(2, &[]), data(2)].into_iter().for_each(|s| bench.pass(s));
        assert_eq!(bench.node.cached().0, 1);
        // Acknowledges all, also what is still to come.
        for n in [3, 4] {
            bench.pass(Segment { seq: SeqNumber(70_000), ..ack(n, &[]) });
        }
        assert_eq!((bench.node.cached().0, bench.node.counters().unacceptable), (1, 2));
        bench.pass(Segment { seq: at(3) + 70_000, ..data(3) });
        assert_eq!(bench.node.counters().unacceptable, if far_fits { 2 } else { 3 });
        bench.pass(data(3));
        bench.pass(ack(4, &[]));
        assert_eq!(bench.node.cached().0, usize::from(far_fits));
    }
}

fn nonsense(prng: &mut Prng) -> Segment {
    let number = |prng: &mut Prng| {
        let far = prng.bits() as u32;
        SeqNumber(prng.pick(&[0, 50, 100, 150, 200, 1 << 31, u32::MAX - 40, far]))
    };
    let blocks: Vec<SackBlock> = (0..prng.below(4))
        .map(|_| {
            let left = number(prng);
            SackBlock { left, right: prng.pick(&[left + 50, left, left - 9, left + (1 << 31)]) }
        })
        .collect();
    let flags = prng.pick(&[0x10, 0x10, 0x10, 0x10, 0x10, 0x11, 0x02, 0x12, 0x14, 0x00, 0xff, 0x01]);
    let len = prng.pick(&[0, 0, 1, 50, 50, 100]);
    Segment {
        src_port: prng.below(2) as u16,
        dst_port: prng.below(2) as u16,
        seq: number(prng),
        ack: number(prng),
        flags: Flags(flags),
        window: prng.below(3) as u16,
        options: Options {
            sack: blocks.into_iter().collect(),
            sack_permitted: prng.chance(50),
            ..Options::default()
        },
        payload: Bytes::from(vec![prng.bits() as u8; len]),
        ..Segment::default()
    }
}
