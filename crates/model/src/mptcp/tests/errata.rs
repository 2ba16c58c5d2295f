//! Every number that the errata give for sections V and VI, and the effect of every reading.

use super::super::csma::{Csma, access, periods_at_constant};
use super::super::queue::{Queue, occupied};
use super::super::rtt::{Link, Travel, travel};
use super::super::*;
use super::{Busy, calming, multi_link, node, rounds_to, route};

const QUEUE: Queue = Queue { arrivals: 0.5, service: 1.0, capacity: Some(10) };

fn over(forward: Vec<rtt::Transmitter>, reading: Reading) -> Travel {
    travel(&route(forward), reading).expect("legal")
}

fn default_access(busy: &Busy, reading: Reading) -> csma::Access {
    access(&Csma::default(), busy, reading).expect("legal")
}

#[test]
fn m1_the_mean_is_not_negative() {
    let printed = Reading { occupancy: Occupancy::Printed, ..Reading::default() };
    rounds_to(occupied(&QUEUE, Reading::default()).expect("legal").packets, "0.995");
    rounds_to(occupied(&QUEUE, printed).expect("legal").packets, "-10.0");
    let even = Queue { arrivals: 1.0, ..QUEUE };
    rounds_to(occupied(&even, printed).expect("legal").packets, "5.000");
    rounds_to(occupied(&even, Reading::default()).expect("legal").packets, "5.000");
}

#[test]
fn m2_the_back_offs_are_weighted_by_joint_probabilities() {
    let printed = Reading { weights: StageWeights::Product, ..Reading::default() };
    let half = Busy::Constant(0.5);
    rounds_to(default_access(&half, Reading::default()).periods, "15.97");
    rounds_to(default_access(&half, printed).periods, "11.09");
    rounds_to(periods_at_constant(&Csma::default(), 0.5).expect("legal"), "15.97");
}

#[test]
fn m6_the_mean_start_is_not_the_chain() {
    let exact = default_access(&calming(), Reading::default());
    rounds_to(exact.lost, "0.0060");
    let mean = |rounding| {
        default_access(&calming(), Reading { start: StartPeriod::Mean(rounding), ..Reading::default() })
    };
    rounds_to(mean(Rounding::Down).lost, "0.0022");
    assert!(mean(Rounding::Up).lost < exact.lost);
    // For a constant channel both are equal.
    for busy in [0.0, 0.3, 1.0].map(Busy::Constant) {
        let exact = default_access(&busy, Reading::default());
        let start = StartPeriod::Mean(Rounding::Up);
        let mean = default_access(&busy, Reading { start, ..Reading::default() });
        assert!((exact.lost - mean.lost).abs() < 1e-12 && (exact.periods - mean.periods).abs() < 1e-12);
    }
}

#[test]
fn m7_attempts_that_succeed_are_shorter() {
    let busy = default_access(&Busy::Constant(0.7), Reading::default());
    rounds_to(busy.periods, "28.2");
    rounds_to(busy.periods_if_won.expect("it can"), "21.2");
    let won = busy.periods_if_won.expect("it can") * busy.won;
    let lost = busy.periods_if_lost.expect("it can") * busy.lost;
    rounds_to(won + lost - busy.periods, "0.000000000");
    let only_won = Reading { access: AccessTime::Won, ..Reading::default() };
    let any = over(vec![node(0.0, 0.7)], Reading::default());
    let won = over(vec![node(0.0, 0.7)], only_won);
    rounds_to((any.forward[0].back_off - won.forward[0].back_off) / 1.08e-3, "6.9");
}

#[test]
fn m9_a_packet_is_served_once() {
    let printed = Reading { queue_time: QueueTime::Sojourn, ..Reading::default() };
    let wait = over(vec![node(10.0, 0.5)], Reading::default());
    let twice = over(vec![node(10.0, 0.5)], printed);
    rounds_to((twice.syn - wait.syn) * wait.forward[0].service, "1.000");
    // No other traffic, so nothing to wait for.
    assert_eq!(over(vec![node(0.0, 0.5)], Reading::default()).forward[0].wait, 0.0);
}

#[test]
fn m10_a_node_serves_no_faster_than_its_channel_access() {
    let printed = Reading { service: Service::Transmission, ..Reading::default() };
    rounds_to(over(vec![node(10.0, 0.5)], printed).forward[0].service, "89.3");
    // 15.97 periods of 1.08 ms, 1 ms, 140 bytes, 13 bytes.
    rounds_to(over(vec![node(10.0, 0.5)], Reading::default()).forward[0].service, "32.8");
}

#[test]
fn m11_who_is_let_in_finds_fewer() {
    let queue = Queue { arrivals: 0.8, ..QUEUE };
    let times = |seen| {
        let reading = Reading { seen, queue_time: QueueTime::Sojourn, ..Reading::default() };
        occupied(&queue, reading).expect("legal").time
    };
    rounds_to(times(Seen::Accepted), "3.80");
    rounds_to(times(Seen::AnyTime), "3.97");
    // By Little's law.
    let all = occupied(&queue, Reading::default()).expect("legal");
    let little = all.packets / (queue.arrivals * (1.0 - all.refused));
    rounds_to(all.sojourn - little, "0.000000000");
}

#[test]
fn m12_octets_have_eight_bits() {
    let printed = Reading { octets: OctetTime::Printed, ..Reading::default() };
    rounds_to(over(vec![node(0.0, 0.0)], Reading::default()).forward[0].transmission, "0.00320");
    rounds_to(over(vec![node(0.0, 0.0)], printed).forward[0].transmission, "0.00040");
}

#[test]
fn m13_the_header_is_sent_once() {
    let printed = Reading { further: FurtherPacket::Printed, ..Reading::default() };
    let corrected = over(vec![node(0.0, 0.0)], Reading::default());
    // 4.5 periods, the turnaround, 140 bytes, the acknowledgement.
    rounds_to(corrected.t_next, "0.0181");
    rounds_to(over(vec![node(0.0, 0.0)], printed).t_next - corrected.t_next, "0.0032");
    let once = Reading { burst: BurstWait::Once, ..Reading::default() };
    let busy = over(vec![node(10.0, 0.0)], Reading::default());
    rounds_to(busy.t_next - over(vec![node(10.0, 0.0)], once).t_next - busy.forward[0].wait, "0.0000000");
}

#[test]
fn m14_each_hop_has_its_own_bandwidth() {
    let hops = || vec![node(0.0, 0.0), multi_link(0.0)];
    let printed = Reading { first: FirstPacket::OwnBandwidth, ..Reading::default() };
    let corrected = over(hops(), Reading::default());
    rounds_to(corrected.t_first - corrected.syn, "0.00808");
    rounds_to(over(hops(), printed).t_first - corrected.syn, "0.01600");
}

#[test]
fn m15_the_way_back_has_its_own_transmitters() {
    let mut both = route(vec![node(1.0, 0.0), node(5.0, 0.0)]);
    both.reverse = vec![node(5.0, 0.6), node(5.0, 0.0)];
    let own = travel(&both, Reading::default()).expect("legal");
    let printed = Reading { return_path: ReturnPath::AsForward, ..Reading::default() };
    let same = travel(&both, printed).expect("legal");
    assert!(own.ack > own.syn);
    assert_eq!((same.ack, same.rtt()), (same.syn, 2.0 * same.syn));
    both.reverse.clear();
    assert_eq!(travel(&both, Reading::default()).expect("legal").rtt(), 2.0 * own.syn);
}

#[test]
fn equations_8_and_9_add_up() {
    let travelled = over(vec![node(0.0, 0.5), multi_link(0.0)], Reading::default());
    // 15.97 periods, 1 ms, 40 bytes, 13 bytes; then 40 bytes at 10 Mbit/s.
    rounds_to(travelled.forward[0].total(), "0.02249");
    rounds_to(travelled.forward[1].total(), "0.000032");
    rounds_to(travelled.rtt(), "0.04504");
    rounds_to(travelled.gained(), "0.96875");
}

#[test]
fn the_page_to_the_letter_still_gives_a_number() {
    let printed = over(vec![node(10.0, 0.5), multi_link(10.0)], Reading::printed());
    assert!(printed.rtt() > 0.0 && printed.rtt().is_finite());
    let [first, second] = [&printed.forward[0], &printed.forward[1]];
    // rho = 10 / 89.3: (N + 1) / mu.
    rounds_to(first.wait, "0.01261");
    rounds_to(first.back_off / 1.08e-3, "11.09");
    rounds_to(second.total(), "0.000116");
}

#[test]
fn the_multi_link_node_has_no_channel_access() {
    let hop = &over(vec![multi_link(10.0)], Reading::default()).forward[0];
    assert!(hop.access.is_none());
    assert_eq!((hop.back_off, hop.turnaround, hop.mac_ack), (0.0, 0.0, 0.0));
    let Link::Cellular(mut link) = multi_link(0.0).link else { panic!("a cellular link") };
    link.delay = 0.03;
    let late = rtt::Transmitter { link: Link::Cellular(link), arrivals: 10.0, capacity: None };
    let travelled = over(vec![late], Reading::default());
    rounds_to(travelled.syn - hop.total(), "0.0300");
    assert!(travelled.t_next < 0.001, "the delay keeps nobody from sending");
}
