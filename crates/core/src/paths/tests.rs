//! Tests on small networks of routers with a given connectivity graph.

use alloc::collections::BTreeMap;
use alloc::vec;

use super::*;

mod etx;

/// Routers, and which of them hear each other.
struct Net {
    routers: BTreeMap<ShortAddress, Router>,
    links: Vec<(ShortAddress, ShortAddress)>,
    now: Instant,
    random: u32,
}

impl Net {
    fn new(config: Config, nodes: u16, links: &[(u16, u16)], multi_link: &[u16]) -> Self {
        let kind = |n| if multi_link.contains(&n) { NodeType::MultiLink } else { NodeType::Ieee802154 };
        let mut routers: BTreeMap<_, _> =
            (2..=nodes).map(|n| (n, Router::node(config, n, kind(n)))).collect();
        let mut root = Router::root(config, 1);
        root.start(Instant::ZERO, 7);
        routers.insert(1, root);
        Self { routers, links: links.to_vec(), now: Instant::ZERO, random: 1 }
    }

    fn neighbours(&self, of: u16) -> Vec<u16> {
        let other = |&(a, b): &(u16, u16)| (a == of).then_some(b).or((b == of).then_some(a));
        self.links.iter().filter_map(other).filter(|n| self.routers.contains_key(n)).collect()
    }

    fn word(&mut self) -> u32 {
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.random
    }

    /// Delivers all messages without delay.
    fn settle(&mut self) {
        loop {
            let from_all = self.routers.iter_mut().find_map(|(&n, r)| r.poll_output().map(|o| (n, o)));
            let Some((from, output)) = from_all else { return };
            let random = self.word();
            let heard = self.neighbours(from);
            let now = self.now;
            if let Output::DioTo { to, .. } | Output::Dao { to, .. } | Output::DaoAck { to, .. } = &output {
                let router = self.routers.get_mut(&from).unwrap();
                let good = heard.contains(to);
                if router.note_transmissions(now, *to, if good { 1 } else { 4 }, good) {
                    router.handle_link_change(now, random);
                }
            }
            match output {
                Output::Dio(dio) => {
                    for n in heard {
                        self.routers.get_mut(&n).unwrap().handle_dio(now, from, &dio, true, random);
                    }
                }
                Output::DioTo { to, dio } if heard.contains(&to) => {
                    self.routers.get_mut(&to).unwrap().handle_dio(now, from, &dio, false, random);
                }
                Output::Dis { to } => {
                    for n in heard.into_iter().filter(|n| to.is_none_or(|to| to == *n)) {
                        self.routers.get_mut(&n).unwrap().handle_dis(now, from, to.is_none(), random);
                    }
                }
                Output::Dao { to, dao } if heard.contains(&to) => {
                    self.routers.get_mut(&to).unwrap().handle_dao(now, from, &dao);
                }
                Output::DaoAck { to, ack } if heard.contains(&to) => {
                    self.routers.get_mut(&to).unwrap().handle_dao_ack(&ack);
                }
                Output::DioTo { to, .. } | Output::Dao { to, .. } | Output::DaoAck { to, .. } => {
                    self.routers.get_mut(&from).unwrap().handle_neighbour_lost(now, to, random);
                }
            }
        }
    }

    fn run(&mut self, seconds: u64) {
        let until = self.now + Duration::from_secs(seconds);
        loop {
            self.settle();
            let next = self.routers.values().filter_map(Router::next_timeout).min();
            let Some(next) = next.filter(|&at| at <= until) else { break };
            self.now = self.now.max(next);
            let random = self.word();
            let now = self.now;
            for router in self.routers.values_mut() {
                if router.next_timeout().is_some_and(|at| at <= now) {
                    router.handle_timeout(now, random);
                }
            }
        }
        self.now = until;
    }

    fn paths(&self, of: u16) -> Vec<Path> {
        self.routers[&of].paths().iter().map(|p| p.nodes.clone()).collect()
    }

    /// The nodes that a packet passes, up or down, according to the tables.
    fn walk(&self, end: u16, mut id: u8, upward: bool) -> Vec<u16> {
        let mut way = vec![if upward { end } else { 1 }];
        let goal = if upward { 1 } else { end };
        while let Some(&at) = way.last() {
            if at == goal || way.len() > 30 {
                break;
            }
            match self.routers[&at].next_hop(end, id, upward) {
                Some(next) => {
                    id = next.path_id;
                    way.push(next.to);
                }
                None => break,
            }
        }
        way
    }

    /// Checks that every confirmed path can be followed in both directions.
    fn check(&self) {
        for (&n, router) in &self.routers {
            for path in router.paths().iter().filter(|p| p.confirmed) {
                assert_eq!(self.walk(n, path.id, true), path.nodes);
                let mut down = path.nodes.clone();
                down.reverse();
                assert_eq!(self.walk(n, path.id, false), down);
            }
        }
    }
}

/// Node 1 is the root; 2, 3 and 4 hear it; 5 hears these three; 6 hears 5.
const DIAMOND: &[(u16, u16)] = &[(1, 2), (1, 3), (1, 4), (2, 5), (3, 5), (4, 5), (5, 6)];

#[test]
fn a_node_keeps_several_paths_and_all_on_them_store_them() {
    let mut net = Net::new(Config::paper(), 6, DIAMOND, &[]);
    net.run(60);
    for relay in [2, 3, 4] {
        assert_eq!(net.paths(relay)[0], [relay, 1]);
    }
    let mut five = net.paths(5);
    five.sort();
    assert_eq!(five, [vec![5, 2, 1], vec![5, 3, 1], vec![5, 4, 1]]);
    assert_eq!(net.paths(6).len(), 3);
    assert!(net.routers[&6].paths().iter().all(|p| p.confirmed && p.hops() == 3 && p.rank == 832));
    net.check();
    // Path number 0 means the best path at each node.
    assert_eq!(net.walk(6, 0, true).len(), 4);
    assert_eq!(net.walk(6, 0, false).len(), 4);
    assert_eq!(net.routers[&5].routes().len(), 3);
}

#[test]
fn no_more_than_the_limit_and_the_better_ones() {
    let config = Config { max_paths: 2, ..Config::paper() };
    // Node 7 is two hops away over 2 and 3, and three over 6.
    let links = [(1, 2), (1, 3), (1, 4), (4, 6), (2, 7), (3, 7), (6, 7)];
    let mut net = Net::new(config, 7, &links, &[]);
    net.run(100);
    let mut paths = net.paths(7);
    paths.sort();
    assert_eq!(paths, [vec![7, 2, 1], vec![7, 3, 1]]);
    net.check();
}

#[test]
fn a_multi_link_node_makes_a_path_better() {
    // A row 2-3-4-5 from the root; 6 is a multi-link node that hears 5 and reaches the root over
    // the base station 7.
    let links = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 1)];
    let config = Config { max_paths: 1, ..Config::paper() };
    let mut net = Net::new(config, 7, &links, &[6]);
    net.run(100);
    assert_eq!(net.paths(5), [vec![5, 6, 7, 1]]);
    assert_eq!(net.paths(6), [vec![6, 7, 1]]);
    assert_eq!(net.paths(2), [vec![2, 1]]);
    net.check();
}

#[test]
fn paths_of_a_dead_relay_go_and_others_come() {
    let links = [(1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (3, 6), (6, 5)];
    let config = Config { max_paths: 2, ..Config::paper() };
    let mut net = Net::new(config, 6, &links, &[]);
    net.run(60);
    net.check();
    assert!(net.paths(5).iter().flatten().any(|&n| n == 4));
    net.routers.remove(&4);
    // The link layer of its neighbours detects the loss.
    let (now, random) = (net.now, net.word());
    for n in net.neighbours(4) {
        net.routers.get_mut(&n).unwrap().handle_neighbour_lost(now, 4, random);
    }
    net.run(400);
    let paths = net.paths(5);
    assert!(!paths.is_empty() && paths.iter().flatten().all(|&n| n != 4), "{paths:?}");
    net.check();
    assert!(net.routers.values().all(|r| r.routes().iter().all(|x| x.up != Some(4))));
}

#[test]
fn who_uses_a_link_that_breaks_far_away_learns_of_it() {
    // A row; node 5 has no other path at first, and then one appears.
    let links = [(1, 2), (2, 3), (3, 4), (4, 5)];
    let mut net = Net::new(Config::paper(), 6, &links, &[]);
    net.run(60);
    assert_eq!(net.paths(5), [vec![5, 4, 3, 2, 1]]);
    net.links.retain(|l| *l != (1, 2));
    let (now, random) = (net.now, net.word());
    net.routers.get_mut(&2).unwrap().handle_neighbour_lost(now, 1, random);
    net.run(1);
    for n in 2..=5 {
        assert_eq!(net.paths(n), Vec::<Path>::new(), "{n}");
    }
    net.links.extend([(1, 6), (6, 4)]);
    net.run(600);
    assert_eq!(net.paths(5)[0], [5, 4, 6, 1]);
    assert_eq!(net.paths(2)[0], [2, 3, 4, 6, 1]);
    net.check();
}

#[test]
fn a_node_that_reboots_is_found_out_by_the_first_packet() {
    let mut net = Net::new(Config::paper(), 4, &[(1, 2), (2, 3), (3, 4)], &[]);
    net.run(60);
    let (now, random) = (net.now, net.word());
    net.routers.get_mut(&2).unwrap().reset(now, random);
    assert_eq!(net.routers[&2].next_hop(4, net.routers[&4].paths()[0].id, true), None);
    net.routers.get_mut(&2).unwrap().handle_missing_route(now);
    net.run(900);
    assert_eq!(net.paths(4), [vec![4, 3, 2, 1]]);
    net.check();
}

#[test]
fn a_withdrawal_that_was_lost_is_made_up_for_by_the_first_packet() {
    let mut net = Net::new(Config::paper(), 4, &[(1, 2), (2, 3), (3, 4)], &[]);
    net.run(60);
    let id = net.routers[&4].paths()[0].id;
    // Node 3 has processed the withdrawal; 2 and 1 have not.
    let dao = Dao { path_id: id, sequence: 9, withdrawn: true, path: vec![4, 3, 2, 1] };
    let now = net.now;
    let three = net.routers.get_mut(&3).unwrap();
    three.handle_dao(now, 4, &dao);
    while three.poll_output().is_some() {}
    assert_eq!(net.walk(4, id, false), [1, 2, 3]);
    net.routers.get_mut(&3).unwrap().handle_stale_route(2, 4, id);
    net.settle();
    assert_eq!(net.walk(4, id, false), [1]);
    // A node that is not on a path cannot withdraw it.
    let id = net.routers[&3].paths()[0].id;
    net.routers.get_mut(&1).unwrap().handle_dao(now, 7, &Dao { path_id: id, path: vec![3, 7, 1], ..dao });
    assert_eq!(net.walk(3, id, false), [1, 2, 3]);
}

#[test]
fn a_path_is_where_its_packets_go() {
    let mut net = Net::new(Config::paper(), 6, DIAMOND, &[]);
    net.run(60);
    let path = net.routers[&5].paths()[0].clone();
    let (id, old) = (path.id, path.nodes[1]);
    let other = if old == 2 { 3 } else { 2 };
    // A packet of node 5 takes another path, and the answer returns over that path.
    net.routers.get_mut(&other).unwrap().handle_passage(5, id, 5, Some(1));
    net.routers.get_mut(&1).unwrap().handle_passage(5, id, other, None);
    assert_eq!(net.walk(5, id, false), [1, other, 5]);
    assert_eq!(net.walk(5, 0, false), [1, other, 5]);
}

/// Latencies add up and throughput is the minimum; a node without metrics of its link announces
/// none for its path.
#[test]
fn metrics_of_a_path_come_from_all_its_links() {
    let mut net = Net::new(Config::paper(), 4, &[(1, 2), (2, 3), (3, 4)], &[]);
    let link = |millis, throughput| Metrics { latency: Duration::from_millis(millis), throughput };
    net.routers.get_mut(&2).unwrap().set_link(1, link(10, 5000));
    net.routers.get_mut(&3).unwrap().set_link(2, link(20, 9000));
    net.run(60);
    let metrics = |net: &Net, n: u16| net.routers[&n].metrics(&net.routers[&n].paths()[0]);
    assert_eq!(metrics(&net, 2), Some(link(10, 5000)));
    assert_eq!(metrics(&net, 3), Some(link(30, 5000)));
    assert_eq!(metrics(&net, 4), None);
    // A change upstream is known with the next DIO, a local change immediately.
    net.routers.get_mut(&4).unwrap().set_link(3, link(1, 4000));
    assert_eq!(metrics(&net, 4), Some(link(31, 4000)));
    net.routers.get_mut(&2).unwrap().set_link(1, link(15, 6000));
    assert_eq!(metrics(&net, 4), Some(link(31, 4000)));
    net.run(600);
    assert_eq!(metrics(&net, 4), Some(link(36, 4000)));
}

#[test]
fn nonsense_is_refused() {
    let mut net = Net::new(Config::paper(), 3, &[(1, 2), (2, 3)], &[]);
    net.run(60);
    let now = net.now;
    let two = net.routers.get_mut(&2).unwrap();
    let before = (two.paths().to_vec(), two.routes().to_vec());
    // Loops are always refused: node 3 offers the path that it has over node 2.
    let refused = two.counters().refused;
    let dio = |path: &[u16]| Dio {
        rank: 256,
        node_type: NodeType::Ieee802154,
        multi_link: 0,
        path: path.into(),
        metrics: None,
        etx: None,
    };
    two.handle_dio(now, 3, &dio(&[3, 2, 1]), true, 0);
    two.handle_dio(now, 3, &dio(&[4, 1]), true, 0);
    two.handle_dio(now, 3, &dio(&[3, 9, 9, 1]), true, 0);
    two.handle_dio(now, 3, &dio(&(3..40).collect::<Vec<_>>()), true, 0);
    two.handle_dio(now, 3, &dio(&[]), true, 0);
    let dao = |path: &[u16], path_id| Dao { path_id, sequence: 0, withdrawn: false, path: path.into() };
    for bad in [
        dao(&[], 1),
        dao(&[3, 1], 1),
        dao(&[3, 2], 1),
        dao(&[2, 1], 1),
        dao(&[3, 2, 1], 0),
        dao(&[3, 2, 3, 1], 1),
    ] {
        two.handle_dao(now, 3, &bad);
    }
    assert_eq!((two.paths().to_vec(), two.routes().to_vec()), before);
    assert_eq!(two.counters().refused - refused, 11);
}

#[test]
fn a_quiet_network_speaks_ever_more_rarely() {
    let mut net = Net::new(Config::paper(), 6, DIAMOND, &[]);
    net.run(3600);
    let said: u64 = net.routers.values().map(|r| r.counters().dios).sum();
    net.run(3600);
    let later: u64 = net.routers.values().map(|r| r.counters().dios).sum();
    // Imax is 262 s: 14 intervals an hour, for 13 paths and a root.
    assert!(later - said <= 14 * 15, "{}", later - said);
}

/// A DIO of a node with an 802.15.4 interface only.
fn dio(rank: u16, path: &[u16]) -> Dio {
    Dio { rank, node_type: NodeType::Ieee802154, multi_link: 0, path: path.into(), metrics: None, etx: None }
}

/// All messages that a router wants to send.
fn outputs(router: &mut Router) -> Vec<Output> {
    core::iter::from_fn(|| router.poll_output()).collect()
}

/// Runs a single router until `until` and returns the times of its DISs.
fn solicitations(router: &mut Router, until: Instant) -> Vec<Instant> {
    let mut times = Vec::new();
    while let Some(now) = router.next_timeout().filter(|&at| at <= until) {
        router.handle_timeout(now, 1 << 31);
        let asked = outputs(router).iter().filter(|o| matches!(o, Output::Dis { to: None })).count();
        times.extend(core::iter::repeat_n(now, asked));
    }
    times
}

/// RFC 6550 section 8.3: a multicast DIS resets the trickle timer; a unicast DIS is answered to its
/// sender only.
#[test]
fn who_has_a_path_answers_a_dis() {
    let mut net = Net::new(Config::paper(), 3, &[(1, 2), (2, 3)], &[]);
    net.run(3600);
    let now = net.now;
    let two = net.routers.get_mut(&2).unwrap();
    two.handle_dis(now, 3, false, 0);
    let answers = outputs(two);
    assert!(matches!(&answers[..], [Output::DioTo { to: 3, dio }] if dio.path == [2, 1]), "{answers:?}");
    assert!(two.next_timeout().is_some_and(|at| at > now + Duration::from_millis(1024)), "no reset");
    two.handle_dis(now, 3, true, 0);
    assert_eq!(outputs(two), []);
    assert!(two.next_timeout().is_some_and(|at| at <= now + Duration::from_millis(1024)));
    // A node without a path does not answer.
    let mut lost = Router::node(Config::paper(), 9, NodeType::Ieee802154);
    lost.handle_dis(now, 3, false, 0);
    lost.handle_dis(now, 3, true, 0);
    assert!(outputs(&mut lost).is_empty() && lost.next_timeout().is_none());
}

#[test]
fn a_node_without_a_path_asks_ever_more_rarely() {
    let config = Config::paper();
    let mut node = Router::node(config, 3, NodeType::Ieee802154);
    node.start(Instant::ZERO, 1 << 31);
    let times = solicitations(&mut node, Instant::ZERO + Duration::from_secs(2000));
    assert_eq!(times[0], Instant::ZERO + config.dis_delay / 2);
    let waits: Vec<_> = times.windows(2).map(|w| w[1].saturating_since(w[0]).as_secs_f64()).collect();
    assert_eq!(waits, [4.5, 9.0, 18.0, 36.0, 72.0, 144.0, 288.0, 288.0, 288.0, 288.0, 288.0]);
    // No DIS with a path, and again without one.
    let mut now = Instant::ZERO + Duration::from_secs(2000);
    node.handle_dio(now, 2, &dio(320, &[2, 1]), true, 0);
    assert_eq!(solicitations(&mut node, now + Duration::from_secs(10)), []);
    now += Duration::from_secs(10);
    node.handle_neighbour_lost(now, 2, 0);
    assert_eq!(solicitations(&mut node, now + Duration::from_secs(1)), [now]);
    // No DIS if the configuration disables it.
    let silent = Config { dis_interval: Duration::ZERO, ..config };
    let mut node = Router::node(silent, 3, NodeType::Ieee802154);
    node.start(Instant::ZERO, 0);
    assert_eq!(node.next_timeout(), None);
}

/// Each node of a row reboots, long after the trickle timers have slowed down to Imax.
#[test]
fn a_node_that_reboots_joins_within_seconds() {
    for node in [2, 3, 4] {
        let mut net = Net::new(Config::paper(), 4, &[(1, 2), (2, 3), (3, 4)], &[]);
        net.run(1500);
        let (now, random) = (net.now, net.word());
        net.routers.get_mut(&node).unwrap().reset(now, random);
        // The DIS delay, Imin and two DAO delays.
        net.run(5);
        assert!(net.routers[&node].paths().iter().any(|p| p.confirmed), "{node}");
    }
}

/// RFC 6550 section 8.2.1.
#[test]
fn a_parents_new_rank_is_taken_over() {
    let mut node = Router::node(Config::paper(), 3, NodeType::Ieee802154);
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    node.handle_dio(at(0), 2, &dio(320, &[2, 1]), true, 0);
    assert_eq!(node.paths()[0].rank, 576);
    node.handle_timeout(at(1), 0);
    outputs(&mut node);
    node.handle_dio(at(600), 2, &dio(1088, &[2, 1]), true, 0);
    assert_eq!(node.paths()[0].rank, 1344);
    // The trickle timer has restarted, so that the nodes below receive the new rank.
    assert!(node.next_timeout().is_some_and(|due| due <= at(601) + Duration::from_millis(24)));
    // With a parent of lower rank, a parent that no longer ranks below the node is dropped.
    node.handle_dio(at(700), 4, &dio(832, &[4, 5, 6, 1]), true, 0);
    assert_eq!(node.paths().len(), 1, "2 ranks as high as the node by way of 4");
    assert_eq!((node.paths()[0].nodes[1], node.paths()[0].rank), (4, 1088));
}

#[test]
fn a_rank_that_rises_too_far_ends_all_paths() {
    let config = Config { max_rank_increase: 512, ..Config::paper() };
    let mut node = Router::node(config, 3, NodeType::Ieee802154);
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    node.handle_dio(at(0), 2, &dio(320, &[2, 1]), true, 0);
    // L is the announced rank.
    node.handle_timeout(at(1), 0);
    assert!(outputs(&mut node).iter().any(|o| matches!(o, Output::Dio(dio) if dio.rank == 576)));
    node.handle_dio(at(10), 2, &dio(832, &[2, 1]), true, 0);
    assert_eq!(node.paths()[0].rank, 1088);
    node.handle_dio(at(20), 2, &dio(833, &[2, 1]), true, 0);
    assert_eq!(node.paths(), []);
    let said = outputs(&mut node);
    assert!(said.iter().any(|o| matches!(o, Output::Dio(d) if d.rank == INFINITE_RANK && d.path == [3])));
    assert_eq!(solicitations(&mut node, at(21)), [at(20)], "it asks for another");
}

/// RFC 6550 section 8.3: every DIO of a lower DAGRank without a change counts as consistent, not
/// only those of parents.
#[test]
fn messages_of_lower_ranks_keep_a_node_silent() {
    // Number and rank of the neighbours heard in one interval, and whether node 50 still sends; k
    // is 10.
    for (count, rank, speaks) in [(9, 320, true), (10, 320, false), (30, 576, true)] {
        let mut node = Router::node(Config::paper(), 50, NodeType::Ieee802154);
        node.handle_dio(Instant::ZERO, 2, &dio(320, &[2, 1]), true, 0);
        // Paths are built in the first interval; nothing is new in the second.
        for heard_at in [100, 1100] {
            let now = Instant::ZERO + Duration::from_millis(heard_at);
            while let Some(due) = node.next_timeout().filter(|&due| due <= now) {
                node.handle_timeout(due, 0);
            }
            for from in 10..10 + count {
                // Each announces its two paths, which count as one transmission.
                node.handle_dio(now, from, &dio(rank, &[from, 1]), true, 0);
                node.handle_dio(now, from, &dio(rank, &[from, 99, 1]), true, 0);
            }
            outputs(&mut node);
        }
        let mut dios = 0;
        while let Some(due) = node.next_timeout().filter(|&due| due < Instant::ZERO + Duration::from_secs(3))
        {
            node.handle_timeout(due, 0);
            dios += outputs(&mut node).iter().filter(|o| matches!(o, Output::Dio(_))).count();
        }
        assert_eq!(dios > 0, speaks, "{count} DIOs of rank {rank}");
    }
}
