//! Tests of the objective functions over the ETX.

use super::super::etx::Estimate;
use super::*;

fn offer(rank: u16, etx: u16, path: &[u16]) -> Dio {
    Dio { etx: Some(etx), ..dio(rank, path) }
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// Node 9 with an ETX objective, and with offers at time 0.
fn node(config: Config, offers: &[(u16, u16, &[u16])]) -> Router {
    let mut node = Router::node(config, 9, NodeType::Ieee802154);
    for &(rank, etx, path) in offers {
        node.handle_dio(at(0), path[0], &offer(rank, etx, path), true, 0);
    }
    node
}

/// Measures the link to a neighbour: every frame is acknowledged at that transmission.
fn measure(node: &mut Router, now: Instant, neighbour: u16, attempts: u8) {
    for _ in 0..200 {
        if node.note_transmissions(now, neighbour, attempts, true) {
            node.handle_link_change(now, 0);
        }
    }
}

fn parents(node: &Router) -> Vec<u16> {
    node.paths().iter().map(|p| p.nodes[1]).collect()
}

/// Announces the first paths upstream.
fn tell(node: &mut Router) {
    while let Some(now) = node.next_timeout().filter(|&due| due <= at(1)) {
        node.handle_timeout(now, 0);
    }
    outputs(node);
}

/// A node that receives a detour first does not keep it because of the hysteresis.
#[test]
fn before_it_is_announced_a_path_gives_way_to_any_better_one() {
    let mut node = node(Config::default(), &[(512, 128, &[2, 1]), (256, 0, &[1])]);
    assert_eq!(parents(&node), [1]);
    tell(&mut node);
    node.handle_dio(at(2), 1, &offer(256, 191, &[1]), true, 0);
    assert_eq!(parents(&node)[0], 1);
}

#[test]
fn costs_and_ranks_are_those_of_the_rfcs() {
    let config = Config::default();
    let of0 = Config { objective: Objective::Of0, ..config };
    // RFC 6719: the cost is the sum. The rank is also the sum, but at least MinHopRankIncrease
    // above the parent's rank.
    assert_eq!(Objective::Mrhof.cost(&config, 512, 300, 128), 428);
    assert_eq!(Objective::Mrhof.rank(&config, 512, 300, 128), 768);
    assert_eq!(Objective::Mrhof.rank(&config, 512, 900, 256), 1156);
    assert_eq!(Objective::Mrhof.rank(&config, INFINITE_RANK - 1, 900, 256), INFINITE_RANK);
    // RFC 6552: steps of 1 to 9, for an ETX of 1 to 3.67.
    for (link, step) in [(128, 1), (170, 2), (256, 4), (469, 9), (2000, 9)] {
        assert_eq!(Objective::Of0.rank(&of0, 256, 0, link), 256 + 256 * step, "{link}");
        assert_eq!(Objective::Of0.cost(&of0, 256, 0, link), u32::from(256 + 256 * step));
    }
}

#[test]
fn the_estimate_is_transmissions_for_each_acknowledged_frame() {
    let mut random = 1u32;
    let mut next = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(random >> 8) / f64::from(1 << 24)
    };
    for success in [1.0, 0.9, 0.7, 0.5] {
        let mut estimate = Estimate::default();
        let mut sum = 0.0;
        for _ in 0..20_000 {
            let attempts = (1..=4).find(|_| next() < success);
            estimate.note(attempts.unwrap_or(4), attempts.is_some());
            sum += f64::from(estimate.etx()) / 128.0;
        }
        let mean = sum / 20_000.0;
        assert!((mean * success - 1.0).abs() < 0.1, "{success}: {mean}");
    }
    // Two consecutive lost frames on a good link exceed the hysteresis.
    let mut estimate = Estimate::default();
    (0..100).for_each(|_| estimate.note(1, true));
    assert_eq!(estimate.etx(), 128);
    estimate.note(4, false);
    assert!(!estimate.is_failing());
    estimate.note(4, false);
    assert!(estimate.is_failing() && estimate.etx() >= 128 + 192, "{}", estimate.etx());
    estimate.note(1, true);
    assert!(!estimate.is_failing());
}

/// RFC 6719 section 3.2.2: another parent must be better by the threshold.
#[test]
fn a_parent_is_kept_unless_another_is_better_by_the_threshold() {
    let mut node = node(Config::default(), &[(512, 128, &[2, 1])]);
    tell(&mut node);
    measure(&mut node, at(1), 2, 1);
    assert_eq!(node.etx(&node.paths()[0]), 256);
    assert_eq!(node.paths()[0].rank, 768);
    measure(&mut node, at(1), 3, 1);
    node.handle_dio(at(2), 3, &offer(512, 128, &[3, 1]), true, 0);
    assert_eq!(parents(&node), [2, 3]);
    node.handle_dio(at(3), 2, &offer(512, 128 + 191, &[2, 1]), true, 0);
    assert_eq!(parents(&node), [2, 3]);
    node.handle_dio(at(4), 2, &offer(512, 128 + 192, &[2, 1]), true, 0);
    assert_eq!(parents(&node), [3, 2]);
}

/// A direct link that needs three transmissions per frame, and a relay: the ranks of both are
/// equal.
#[test]
fn two_good_links_are_better_than_a_bad_one() {
    let mut node = node(Config::default(), &[(256, 0, &[1]), (512, 128, &[2, 1])]);
    assert_eq!(parents(&node)[0], 1, "nothing is measured");
    tell(&mut node);
    measure(&mut node, at(1), 1, 3);
    measure(&mut node, at(1), 2, 1);
    // 3 transmissions against 2 are within the hysteresis, 3.6 are not.
    assert_eq!(parents(&node), [1]);
    for _ in 0..40 {
        node.note_transmissions(at(1), 1, 4, true);
    }
    node.handle_link_change(at(1), 0);
    assert_eq!(parents(&node), [2, 1]);
    assert_eq!(node.paths()[0].rank, 768);
    // MAX_LINK_METRIC: a worse link is not used while there is another path.
    measure(&mut node, at(2), 1, 5);
    assert_eq!(parents(&node), [2]);
}

#[test]
fn a_rank_beyond_the_limit_is_no_choice() {
    let config = Config { max_rank_increase: 256, ..Config::default() };
    let mut node = node(config, &[(256, 0, &[1])]);
    // L is 512.
    while let Some(now) = node.next_timeout().filter(|&due| due < at(2)) {
        node.handle_timeout(now, 0);
    }
    outputs(&mut node);
    node.handle_dio(at(3), 1, &offer(513, 0, &[1]), true, 0);
    assert_eq!(node.paths(), []);
    let said = outputs(&mut node);
    assert!(said.iter().any(|o| matches!(o, Output::Dio(d) if d.rank == INFINITE_RANK && d.path == [9])));
    assert_eq!(solicitations(&mut node, at(4)).len(), 1);
}

/// Local repair: a stored offer replaces the lost parent immediately, and the children are
/// notified.
#[test]
fn other_parents_take_the_place_of_a_lost_one_at_once() {
    let config = Config { max_paths: 1, ..Config::default() };
    // Node 3 has the same rank as this node.
    let mut node = node(config, &[(512, 128, &[2, 1]), (768, 256, &[3, 4, 1])]);
    assert_eq!(parents(&node), [2]);
    outputs(&mut node);
    node.handle_neighbour_lost(at(5), 2, 0);
    assert_eq!(parents(&node), [3]);
    let said = outputs(&mut node);
    assert!(said.iter().any(|o| matches!(o, Output::Dio(d) if d.rank == INFINITE_RANK && d.path == [9, 2])));
    assert_eq!(solicitations(&mut node, at(6)), [], "it has a path");
    // Without any offer left, the node sends a DIS.
    node.handle_neighbour_lost(at(7), 3, 0);
    assert_eq!(node.paths(), []);
    assert_eq!(solicitations(&mut node, at(8)).len(), 1);
}

/// Before the link layer reports a neighbour as lost, packets avoid it: those of this node and of
/// others.
#[test]
fn packets_avoid_a_link_that_fails() {
    let mut node = node(Config::default(), &[(512, 128, &[2, 1]), (512, 128, &[3, 1])]);
    measure(&mut node, at(1), 2, 1);
    measure(&mut node, at(1), 3, 1);
    let first = parents(&node)[0];
    let other = if first == 2 { 3 } else { 2 };
    node.handle_dao(
        at(1),
        20,
        &Dao { path_id: 1, sequence: 1, withdrawn: false, path: vec![20, 9, first, 1] },
    );
    let up = |node: &Router, end, id| node.next_hop(end, id, true).map(|hop| (hop.to, hop.path_id));
    assert_eq!(up(&node, 20, 1), Some((first, 1)));
    for _ in 0..2 {
        if node.note_transmissions(at(2), first, 4, false) {
            node.handle_link_change(at(2), 0);
        }
    }
    assert_eq!(up(&node, 20, 1), Some((other, 1)));
    assert_eq!(up(&node, 20, 0).map(|hop| hop.0), Some(other));
    assert_eq!(up(&node, 9, 0).map(|hop| hop.0), Some(other));
    // The link works again. After a silence, one lost frame suffices.
    node.note_transmissions(at(3), first, 1, true);
    assert_eq!(up(&node, 20, 1), Some((first, 1)));
    node.note_transmissions(at(4), first, 4, false);
    assert_eq!(up(&node, 20, 1), Some((first, 1)));
    node.note_transmissions(at(5), first, 1, true);
    node.note_transmissions(at(15), first, 4, false);
    assert_eq!(up(&node, 20, 1), Some((other, 1)));
}

/// Only links that a path uses or that could make a better path are probed: often until they are
/// measured, then rarely. A probe is a unicast DIO, which announces one path and withdraws no
/// other.
#[test]
fn a_probe_takes_no_other_path_back() {
    let mut node = node(Config::default(), &[(512, 128, &[2, 1]), (512, 256, &[2, 3, 1])]);
    let both = parents(&node);
    for second in [8, 16, 24, 32, 40] {
        node.handle_dio(at(second), 2, &offer(512, 128, &[2, 1]), false, 0);
    }
    assert_eq!(parents(&node), both);
}

/// A node that has withdrawn itself, offered paths again and withdrawn itself once more is no
/// parent.
#[test]
fn a_second_withdrawal_counts_too() {
    let mut node = node(Config::default(), &[(512, 128, &[2, 1])]);
    let gone = Dio { rank: INFINITE_RANK, ..offer(0, 0, &[2]) };
    for second in [1, 4, 7] {
        node.handle_dio(at(second), 2, &gone, true, 0);
        assert_eq!(node.paths(), [], "after {second} s");
        node.handle_dio(at(second + 1), 2, &offer(512, 128, &[2, 1]), true, 0);
        assert_eq!(parents(&node), [2]);
    }
}

/// A change of the parent's path beyond the parent causes no announcement, and a varying ETX does
/// not change the path.
#[test]
fn another_tail_of_the_same_parent_is_no_news() {
    let mut node = node(Config::default(), &[(512, 256, &[2, 3, 1])]);
    tell(&mut node);
    for second in 2..100u64 {
        let tails: [&[u16]; 2] = [&[2, 3, 1], &[2, 4, 1]];
        let tail = tails[(second % 2) as usize];
        node.handle_dio(at(second), 2, &offer(512, 256 - 16 * (second % 5) as u16, tail), false, 0);
        assert_eq!(node.paths()[0].nodes, [9, 2, 3, 1]);
    }
}

/// An only parent that was absent becomes a parent again when it is heard, regardless of the number
/// of lost frames.
#[test]
fn a_parent_that_returns_is_a_parent_again() {
    for objective in [Objective::Mrhof, Objective::Of0] {
        for attempts in [1, 4, 8, 16] {
            let mut node = node(Config { objective, ..Config::default() }, &[(256, 0, &[1])]);
            for _ in 0..1000 {
                node.note_transmissions(at(1), 1, attempts, false);
                node.handle_link_change(at(1), 0);
            }
            node.handle_neighbour_lost(at(2), 1, 0);
            assert_eq!(node.paths(), []);
            node.handle_dio(at(100), 1, &offer(256, 0, &[1]), true, 0);
            assert_eq!(parents(&node), [1], "{objective:?}, {attempts}");
            measure(&mut node, at(101), 1, 1);
            assert!(node.link_etx(1) < 130, "{}", node.link_etx(1));
        }
    }
}

#[test]
fn links_that_could_be_better_are_probed() {
    // A path over node 4 could not be better even over a perfect link.
    let mut node =
        node(Config::default(), &[(256, 0, &[1]), (512, 128, &[2, 1]), (1024, 600, &[4, 6, 7, 1])]);
    measure(&mut node, at(0), 1, 3);
    node.set_reliable(5);
    node.handle_dio(at(0), 5, &offer(512, 140, &[5, 1]), true, 0);
    outputs(&mut node);
    let mut probes = Vec::new();
    while let Some(now) = node.next_timeout().filter(|&due| due <= at(3600)) {
        node.handle_timeout(now, 1 << 31);
        for output in outputs(&mut node) {
            match output {
                Output::DioTo { to, dio } => {
                    assert_eq!(dio.path[0], 9);
                    node.note_transmissions(now, to, 1, true);
                    probes.push((now, to));
                }
                Output::Dao { dao, .. } => {
                    node.handle_dao_ack(&DaoAck { source: 9, path_id: dao.path_id, sequence: dao.sequence });
                }
                Output::Dio(_) | Output::Dis { .. } | Output::DaoAck { .. } => {}
            }
        }
    }
    assert!(probes.iter().all(|(_, to)| [1, 2].contains(to)), "{probes:?}");
    let early = probes.iter().filter(|(when, to)| *to == 2 && *when < at(90)).count();
    assert!(early >= 5, "{early} probes of 2 in the first 90 s");
    assert!(probes.len() < 140, "{}", probes.len());
    assert_eq!(node.counters().probes, probes.len() as u64);
}

#[test]
fn networks_build_paths_over_the_etx() {
    for objective in [Objective::Mrhof, Objective::Of0] {
        let config = Config { objective, ..Config::default() };
        let mut net = Net::new(config, 6, DIAMOND, &[]);
        net.run(100);
        let mut five = net.paths(5);
        five.sort();
        assert_eq!(five, [vec![5, 2, 1], vec![5, 3, 1], vec![5, 4, 1]]);
        assert!(net.routers[&6].paths().iter().all(|p| p.confirmed && p.hops() == 3));
        net.check();
        net.run(3600);
        net.check();
        // A relay fails; frames of its neighbours to it are not acknowledged.
        net.routers.remove(&2);
        net.run(600);
        assert!(net.paths(5).iter().flatten().all(|&n| n != 2), "{:?}", net.paths(5));
        net.check();
    }
}

/// Random numbers from 0 to 1.
fn uniform(state: &mut u32) -> f64 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    f64::from(*state >> 8) / f64::from(1 << 24)
}

/// Number of leaves, number of intervals after the first four, and Imax in units of Imin.
const LEAVES: u16 = 8;
const INTERVALS: u64 = 40;
const DOUBLINGS: u8 = 4;
const IMAX: f64 = 16.0;

/// A model of RFC 6206 that shares only the topology with the implementation: a root, relays that
/// hear it, and leaves that hear all relays. `begins` has the start times of their timers, in this
/// order. Times are in units of Imin. Returns the number of messages of all nodes, and of the
/// leaves.
fn model(relays: u16, k: u8, begins: &[f64], random: &mut u32) -> (f64, f64) {
    let end = IMAX * (INTERVALS as f64 + 2.0);
    let mut times = |begin: f64, suppressors: &[f64]| {
        let (mut start, mut length, mut sent) = (begin, 1.0, Vec::new());
        while start < end {
            let t = start + length * (0.5 + 0.5 * uniform(random));
            let heard = suppressors.iter().filter(|&&s| s >= start && s < t).count();
            if heard < usize::from(k) && t < end {
                sent.push(t);
            }
            start += length;
            length = f64::min(length * 2.0, IMAX);
        }
        sent
    };
    let root = times(begins[0], &[]);
    let (near, far) = begins[1..].split_at(relays.into());
    let heard: Vec<f64> = near.iter().flat_map(|&begin| times(begin, &root)).collect();
    let late = |sent: &[f64]| sent.iter().filter(|&&t| t >= 2.0 * IMAX).count() as f64;
    let leaves: f64 = far.iter().map(|&begin| late(&times(begin, &heard))).sum();
    (late(&root) + late(&heard) + leaves, leaves)
}

/// The same experiment with routers: numbers from 2 are relays, numbers from 100 are leaves.
fn routers(relays: u16, k: u8, begins: &[f64], random: &mut u32) -> (f64, f64) {
    let config = Config {
        redundancy: k,
        doublings: DOUBLINGS,
        max_paths: 1,
        probe_interval: Duration::ZERO,
        ..Config::default()
    };
    let imin = config.interval_min.as_secs_f64();
    let when = |units: f64| Instant::ZERO + Duration::from_secs_f64(units * imin);
    let numbers: Vec<u16> = [1].into_iter().chain(2..2 + relays).chain(100..100 + LEAVES).collect();
    let mut nodes = BTreeMap::new();
    for (n, &begin) in numbers.into_iter().zip(begins) {
        let (begin, word) = (when(begin), (uniform(random) * 4_294_967_295.0) as u32);
        let node = if n == 1 {
            let mut root = Router::root(config, 1);
            root.start(begin, word);
            root
        } else {
            let mut node = Router::node(config, n, NodeType::Ieee802154);
            let from_relay = offer(512, 128, &[2, 1]);
            let (from, said) = if n < 100 { (1, offer(256, 0, &[1])) } else { (2, from_relay) };
            node.handle_dio(begin, from, &said, true, word);
            node
        };
        nodes.insert(n, node);
    }
    let (begin, end) = (when(IMAX * 2.0), when(IMAX * (INTERVALS as f64 + 2.0)));
    let mut sent = (0.0, 0.0);
    let next =
        |nodes: &BTreeMap<u16, Router>| nodes.iter().filter_map(|(&n, r)| Some((r.next_timeout()?, n))).min();
    while let Some((now, n)) = next(&nodes) {
        if now >= end {
            break;
        }
        let node = nodes.get_mut(&n).unwrap();
        node.handle_timeout(now, (uniform(random) * 4_294_967_295.0) as u32);
        for output in outputs(node) {
            match output {
                Output::Dio(dio) => {
                    sent.0 += f64::from(u8::from(now >= begin));
                    sent.1 += f64::from(u8::from(n >= 100 && now >= begin));
                    let hears = |m: u16| if n == 1 { m > 1 && m < 100 } else { n < 100 && m >= 100 };
                    for (_, node) in nodes.iter_mut().filter(|(m, _)| hears(**m)) {
                        node.handle_dio(now, n, &dio, true, 0);
                    }
                }
                Output::Dao { dao, .. } => {
                    let ack = DaoAck { source: n, path_id: dao.path_id, sequence: dao.sequence };
                    nodes.get_mut(&n).unwrap().handle_dao_ack(&ack);
                }
                Output::DioTo { .. } | Output::Dis { .. } | Output::DaoAck { .. } => {}
            }
        }
    }
    sent
}

/// The number of DIOs follows RFC 6206 for each k and density.
#[test]
fn dios_follow_the_trickle_algorithm() {
    const RUNS: usize = 12;
    let mut random = 5;
    for relays in [5, 10, 20, 40] {
        for k in 1..=10 {
            let (mut sent, mut expected, mut squares) = ((0.0, 0.0), (0.0, 0.0), 0.0);
            for _ in 0..RUNS {
                let begins: Vec<f64> = (0..=relays + LEAVES).map(|_| IMAX * uniform(&mut random)).collect();
                let (ours, theirs) =
                    (routers(relays, k, &begins, &mut random), model(relays, k, &begins, &mut random));
                sent = (sent.0 + ours.0, sent.1 + ours.1);
                expected = (expected.0 + theirs.0, expected.1 + theirs.1);
                squares += (ours.1 - theirs.1).powi(2);
            }
            let case = std::format!("k {k}, {relays} neighbours: {sent:?} sent, {expected:?} expected");
            std::println!("{case}");
            assert!((sent.0 / expected.0 - 1.0).abs() < 0.05, "{case}");
            // The leaves are the nodes that suppression silences. They hear the same relays, so the
            // statistical tolerance applies to whole runs.
            let chance = 3.0 * f64::sqrt(squares);
            assert!((sent.1 - expected.1).abs() <= chance.max(0.05 * expected.1), "{case}, ±{chance:.0}");
        }
    }
}
