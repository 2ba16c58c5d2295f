//! RPL over the radio: nodes that reboot or fail, links of different quality.

use anabranch_core::paths::{self, NodeType};
use anabranch_core::tcp;
use anabranch_core::time::{Duration, Instant};
use anabranch_sim::apps::{BulkSender, BulkSenderConfig, Content, Sink};
use anabranch_sim::event::AppId;
use anabranch_sim::network::{Forwarding, NetworkConfig, WirelessConfig};
use anabranch_sim::packet::NodeId;
use anabranch_sim::radio::{LogDistance, Position, Radio, RadioConfig, Station};
use anabranch_sim::random::Stream;
use anabranch_sim::sim::{Builder, Fault, Simulation};
use anabranch_sim::world::Failure;

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

/// Nodes with routers, the root first.
fn network(
    seed: u64,
    radio: RadioConfig,
    config: paths::Config,
    places: &[Position],
) -> (Builder, Vec<NodeId>) {
    let mut builder = Builder::new(NetworkConfig::default(), seed, 0);
    let nodes: Vec<NodeId> =
        (0..places.len()).map(|i| builder.node(&format!("n{i}"), Forwarding::On)).collect();
    let sites: Vec<_> = nodes.iter().copied().zip(places.iter().copied()).collect();
    builder.radio(radio, WirelessConfig::default(), &sites).expect("a radio");
    for (i, &node) in nodes.iter().enumerate() {
        builder.router(node, config, (i > 0).then_some(NodeType::Ieee802154));
    }
    (builder, nodes)
}

/// A transfer from a node to the root, from `start` on.
fn transfer(
    builder: &mut Builder,
    (from, root): (NodeId, NodeId),
    octets: u64,
    start: Instant,
    tcp: tcp::Config,
) -> AppId {
    let sink = builder.app(root, Instant::ZERO, Sink::new(80, tcp));
    let config = BulkSenderConfig::new(root, 80, Content::Pattern(octets), tcp);
    builder.app(from, start, BulkSender::new(config));
    sink
}

/// Time at which all bytes had arrived; infinite if not within `limit` seconds of `start`.
fn arrival(builder: Builder, sink: AppId, octets: u64, start: Instant, limit: f64) -> f64 {
    let mut sim = builder.build();
    let end = start + Duration::from_secs_f64(limit);
    sim.run_until(start);
    while sim.now() < end {
        let next = sim.now() + Duration::from_millis(20);
        sim.run_until(next);
        if sim.app::<Sink>(sink).bytes() == octets {
            return sim.now().saturating_since(start).as_secs_f64();
        }
    }
    f64::INFINITY
}

/// A segment takes four frames, as in the scenarios shipped with the program.
fn small() -> tcp::Config {
    tcp::Config { mss: 300, timestamps: false, ..tcp::Config::modern() }
}

/// A reboot of the relay or of the last node in a row of three, long after the trickle timers have
/// slowed down to Imax: both have a path again within the DIS delay, Imin, two DAO delays and a
/// round trip, and 1 kB arrives soon after.
#[test]
fn a_row_recovers_from_a_reboot_within_seconds() {
    let places = [0.0, 80.0, 160.0].map(|x| Position::new(x, 0.0));
    for (reboot, node) in [(600.0, 1), (600.0, 2), (1500.0, 1), (1500.0, 2)] {
        for seed in 1..=5 {
            let (mut builder, ids) =
                network(seed, RadioConfig::o_qpsk(100.0), paths::Config::default(), &places);
            builder.fault(at(reboot), Fault::NodeFails(ids[node], Failure::Silent));
            builder.fault(at(reboot + 0.01), Fault::NodeRecovers(ids[node]));
            let sink = transfer(&mut builder, (ids[2], ids[0]), 1000, at(reboot + 0.5), small());
            let took = arrival(builder, sink, 1000, at(reboot + 0.5), 400.0);
            // The first SYN may find no path, and is retransmitted after a second.
            assert!(took < 5.0, "reboot of {node} at {reboot} s, seed {seed}: {took} s");
        }
    }
}

/// The root is down for minutes in a cell in which all nodes hear each other, soon after the start,
/// when links have hardly been measured. After its return the nodes join again, whatever packets
/// they have lost.
#[test]
fn nodes_join_again_when_the_root_returns() {
    for leaves in [1, 3, 5] {
        let places: Vec<Position> =
            (0..=leaves).map(|i| Position::new(10.0 * f64::from(i), f64::from(i % 2) * 5.0)).collect();
        for (seed, (from, to)) in
            (1..=10).zip([(15.0, 35.0), (15.0, 115.0), (35.0, 635.0)].into_iter().cycle())
        {
            let (mut builder, ids) =
                network(seed, RadioConfig::o_qpsk(100.0), paths::Config::default(), &places);
            builder.fault(at(from), Fault::NodeFails(ids[0], Failure::Silent));
            builder.fault(at(to), Fault::NodeRecovers(ids[0]));
            let last = ids[ids.len() - 1];
            let sink = transfer(&mut builder, (last, ids[0]), 1000, at(to + 30.0), small());
            let took = arrival(builder, sink, 1000, at(to + 30.0), 100.0);
            assert!(took < 5.0, "{leaves} leaves, away from {from} to {to} s, seed {seed}: {took} s");
        }
    }
}

/// A large network settles: in the last third of half an hour hardly any node has reason to
/// announce another path.
#[test]
fn a_large_mesh_settles() {
    let mut random = Stream::new(1, 0, "rpl", "large");
    let mut place = || Position::new(random.uniform() * 500.0, random.uniform() * 500.0);
    let places: Vec<Position> = (0..150).map(|_| place()).collect();
    let (builder, ids) = network(1, RadioConfig::o_qpsk(100.0), paths::Config::default(), &places);
    let mut sim = builder.build();
    let daos = |sim: &Simulation| -> u64 {
        let network = &sim.world().network;
        ids.iter().map(|&id| network.router(id).map_or(0, |router| router.counters().daos)).sum()
    };
    sim.run_until(at(1200.0));
    let before = daos(&sim);
    sim.run_until(at(1800.0));
    let said = daos(&sim) - before;
    println!("{before} DAOs in 20 minutes, {said} in the next ten");
    assert!(said < 150, "{said} DAOs in ten minutes");
}

/// A relay midway along a direct link of 76 m, over which hardly any frame arrives.
#[test]
fn a_good_relay_is_chosen_before_a_marginal_link() {
    let places = [0.0, 38.0, 76.0].map(|x| Position::new(x, 0.0));
    let radio = RadioConfig::o_qpsk(100.0)
        .with_log_distance(LogDistance { shadowing_db: 0.0, ..LogDistance::default() });
    for seed in 1..=3 {
        let (mut builder, ids) = network(seed, radio, paths::Config::default(), &places);
        let octets = 20_000;
        let sink = transfer(&mut builder, (ids[2], ids[0]), octets, at(600.0), small());
        let took = arrival(builder, sink, octets, at(600.0), 600.0);
        let rate = octets as f64 * 8.0 / took / 1000.0;
        println!("marginal link, seed {seed}: {rate:.1} kbit/s");
        assert!(rate > 25.0, "seed {seed}: {rate:.1} kbit/s");
    }
}

/// Number of runs of each case; `cargo xtask campaign rpl` takes more.
fn runs(few: u64) -> u64 {
    anabranch_testkit::given("ANABRANCH_RPL_RUNS").unwrap_or(few)
}

/// A field of nodes with a range of 100 m and about eight neighbours each, with the root in the
/// middle; connected even without any one of the other nodes.
fn mesh(seed: u64, count: usize) -> Vec<Position> {
    let mut random = Stream::new(seed, 0, "rpl mesh", "places");
    let side = 56.0 * (count as f64).sqrt();
    loop {
        let mut places = vec![Position::new(side / 2.0, side / 2.0)];
        places.extend((1..count).map(|_| Position::new(random.uniform() * side, random.uniform() * side)));
        if (0..count).all(|without| hops(&places, without).iter().flatten().count() + 1 >= count) {
            return places;
        }
    }
}

/// Hops to the root without one of the nodes (0 removes none).
fn hops(places: &[Position], without: usize) -> Vec<Option<usize>> {
    let mut hops = vec![None; places.len()];
    hops[0] = Some(0);
    let mut next = vec![0];
    while let Some(from) = next.pop() {
        let reached = hops[from].map_or(0, |n| n + 1);
        for to in 1..places.len() {
            let shorter = hops[to].is_none_or(|n| n > reached);
            if to != without && shorter && places[from].distance(places[to]) <= 100.0 {
                hops[to] = Some(reached);
                next.insert(0, to);
            }
        }
    }
    if without > 0 {
        hops[without] = None;
    }
    hops
}

/// A node of a mesh reboots. Returns the seconds until it has a path that the root has confirmed,
/// and the bound: DIS delay, Imin, two DAO delays, and a round trip of 50 ms for each hop.
fn rejoin(seed: u64, count: usize) -> (f64, f64) {
    let places = mesh(seed, count);
    let config = paths::Config::default();
    let (mut builder, ids) = network(seed, RadioConfig::o_qpsk(100.0), config, &places);
    let mut random = Stream::new(seed, 0, "rpl mesh", "reboot");
    let node = random.range(1..=count as u64 - 1) as usize;
    let reboot = at(1500.0 + 100.0 * random.uniform());
    builder.fault(reboot, Fault::NodeFails(ids[node], Failure::Silent));
    let up = reboot + Duration::from_millis(10);
    builder.fault(up, Fault::NodeRecovers(ids[node]));
    let mut sim = builder.build();
    sim.run_until(up);
    let mut took = f64::INFINITY;
    while took.is_infinite() && sim.now() < up + Duration::from_secs(300) {
        let next = sim.now() + Duration::from_millis(10);
        sim.run_until(next);
        if sim.world().network.own_paths(ids[node]).iter().any(|p| p.confirmed) {
            took = sim.now().saturating_since(up).as_secs_f64();
        }
    }
    let fixed = config.dis_delay + config.interval_min + config.dao_delay * 2;
    let away = hops(&places, 0)[node].unwrap_or(0);
    (took, fixed.as_secs_f64() + 0.05 * away as f64)
}

/// A transfer of 20 kB from a node of a mesh to the root. Returns the seconds until it is complete,
/// with or without the failure of the node's first relay.
fn transfer_time(seed: u64, count: usize, death: bool) -> f64 {
    let places = mesh(seed, count);
    let away = hops(&places, 0);
    let (mut builder, ids) = network(seed, RadioConfig::o_qpsk(100.0), paths::Config::default(), &places);
    let mut random = Stream::new(seed, 0, "rpl mesh", "source");
    let far: Vec<usize> = (1..count).filter(|&n| away[n].is_some_and(|n| n >= 2)).collect();
    let source = far[random.range(0..=far.len() as u64 - 1) as usize];
    // A run without the fault shows which relay it is.
    let start = at(600.0);
    let mut sim = network(seed, RadioConfig::o_qpsk(100.0), paths::Config::default(), &places).0.build();
    sim.run_until(start);
    let relay = sim.world().network.own_paths(ids[source]).first().map_or(0, |p| p.nodes[1] as usize - 1);
    if relay == 0 {
        return f64::INFINITY;
    }
    if death {
        builder.fault(start, Fault::NodeFails(ids[relay], Failure::Silent));
    }
    let sink = transfer(&mut builder, (ids[source], ids[0]), 20_000, start, small());
    arrival(builder, sink, 20_000, start, 600.0)
}

/// In 95 of 100 runs a rebooted node has a path within the bound.
#[test]
fn nodes_of_meshes_rejoin_in_time() {
    for (count, few) in [(20, 6), (50, 3)] {
        let runs = runs(few);
        let times: Vec<(f64, f64)> = (1..=runs).map(|seed| rejoin(seed, count)).collect();
        let met = times.iter().filter(|(took, bound)| took <= bound).count() as u64;
        let worst = times.iter().map(|t| t.0).fold(0.0, f64::max);
        println!("{count} nodes: {met} of {runs} rejoin in time, the last after {worst:.2} s");
        assert!(met >= runs.saturating_sub(1).min(runs * 95 / 100), "{count} nodes: {times:?}");
    }
}

/// In 95 of 100 runs 20 kB arrive within 20 s after the failure of a relay.
#[test]
fn data_flow_on_after_a_relays_death() {
    for (count, few) in [(20, 6), (50, 3)] {
        let runs = runs(few);
        let times: Vec<f64> = (1..=runs).map(|seed| transfer_time(seed, count, true)).collect();
        let met = times.iter().filter(|&&took| took <= 20.0).count() as u64;
        let worst = times.iter().copied().fold(0.0, f64::max);
        let median = |times: &[f64]| {
            let mut sorted = times.to_vec();
            sorted.sort_by(f64::total_cmp);
            sorted[sorted.len() / 2]
        };
        let alive: Vec<f64> = (1..=runs.min(20)).map(|seed| transfer_time(seed, count, false)).collect();
        println!(
            "{count} nodes: 20 kB in time in {met} of {runs}, median {:.1} s, last {worst:.1} s; without a fault {:.1} s",
            median(&times),
            median(&alive)
        );
        assert!(met >= runs.saturating_sub(1).min(runs * 95 / 100), "{count} nodes: {times:?}");
    }
}

/// Approximate PSDU of a probe.
const PROBE: u16 = 90;

/// ETX of every usable link for a frame with the length of a probe, including the acknowledgement.
fn true_etx(radio: &Radio, count: usize) -> Vec<Vec<f64>> {
    let one = |from: usize, to: usize| {
        let (from, to) = (Station(from as u32), Station(to as u32));
        let success = radio.clear_success(from, to, PROBE) * radio.clear_success(to, from, 5);
        if success < 0.25 { f64::INFINITY } else { 1.0 / success }
    };
    (0..count).map(|from| (0..count).map(|to| one(from, to)).collect()).collect()
}

/// The least sum of ETX from each node to the root.
fn least(etx: &[Vec<f64>]) -> Vec<f64> {
    let mut least = vec![f64::INFINITY; etx.len()];
    least[0] = 0.0;
    // Bellman-Ford: as many rounds as there are nodes.
    for _ in 0..etx.len() {
        for from in 1..etx.len() {
            for to in 0..etx.len() {
                least[from] = least[from].min(etx[from][to] + least[to]);
            }
        }
    }
    least
}

/// Number of nodes whose path has the least sum of ETX, is within 10 % of it, is within 1.5
/// transmissions of it, and of all nodes with a path.
fn chosen_paths(seed: u64, parent_switch_threshold: u16) -> [u64; 4] {
    let mut random = Stream::new(seed, 0, "rpl etx", "places");
    let count = random.range(20..=50) as usize;
    let side = 40.0 * (count as f64).sqrt();
    let places: Vec<Position> =
        (0..count).map(|_| Position::new(random.uniform() * side, random.uniform() * side)).collect();
    let radio = RadioConfig::o_qpsk(100.0).with_log_distance(LogDistance::default());
    let config = paths::Config { parent_switch_threshold, ..paths::Config::default() };
    let (builder, ids) = network(seed, radio, config, &places);
    let mut sim = builder.build();
    sim.run_until(at(3600.0));
    let etx = true_etx(sim.world().network.radio().expect("there is one"), count);
    let least = least(&etx);
    let mut found = [0; 4];
    for node in (1..count).filter(|&n| least[n].is_finite()) {
        let path = sim.world().network.own_paths(ids[node]).first();
        let sum = path.map_or(f64::INFINITY, |path| {
            path.nodes.windows(2).map(|w| etx[usize::from(w[0]) - 1][usize::from(w[1]) - 1]).sum()
        });
        found[0] += u64::from(sum <= least[node] + 0.01);
        found[1] += u64::from(sum <= least[node] * 1.1);
        found[2] += u64::from(sum <= least[node] + 1.5);
        found[3] += 1;
    }
    found
}

/// Random networks of 20 to 50 nodes with shadowing, after the links have been measured; with the
/// hysteresis of RFC 6719, and with less.
#[test]
fn paths_have_the_least_etx_within_the_hysteresis() {
    let runs = runs(3);
    for threshold in [192, 64, 0] {
        let mut sums = [0; 4];
        for found in (1..=runs).map(|seed| chosen_paths(seed, threshold)) {
            sums.iter_mut().zip(found).for_each(|(sum, found)| *sum += found);
        }
        let [least, tenth, close] = [0, 1, 2].map(|i| 100.0 * sums[i] as f64 / sums[3] as f64);
        println!(
            "{runs} networks, {} nodes, threshold {threshold}: least ETX {least:.1} %, within 10 % {tenth:.1} %, within 1.5 \
             transmissions {close:.1} %",
            sums[3]
        );
        assert!(close >= 95.0 && least >= 60.0, "{threshold}: {sums:?}");
    }
}
