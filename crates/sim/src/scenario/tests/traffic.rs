//! Packets of sources, drawn places, IEEE 802.11 and AODV.

use std::collections::BTreeSet;

use super::*;

const PAPER: &str = include_str!("../../../../../scenarios/papers/rdca.toml");

fn paper() -> Source {
    Source::new("rdca.toml", PAPER).set("stop=25 s").set("traffic.event.stop=20 s")
}

fn run(source: &Source, seed: u64, run: u64) -> record::Metrics {
    source.scenario().unwrap().run(seed, run, &BTreeMap::new()).expect("it is dense enough").1
}

#[test]
fn every_transport_carries_the_same_packets() {
    let figure =
        |metrics: &record::Metrics, name: &str| metrics[&format!("traffic.event.{name}")].value.unwrap();
    let mut delays = BTreeSet::new();
    for over in ["udp", "tcp", "rdca"] {
        let source = paper().set(format!("traffic.event.over={over}"));
        let source = if over == "tcp" { source.set("traffic.event.tcp=default") } else { source };
        let metrics = run(&source, 1, 0);
        let (made, delivered) = (figure(&metrics, "packets_made"), figure(&metrics, "packets_delivered"));
        assert_eq!(made, 200.0, "{over}: 15 s, one in 75 ms");
        assert!(delivered >= 190.0 && delivered <= made, "{over}: {delivered}");
        assert!((0.001..1.0).contains(&figure(&metrics, "delay_mean_s")), "{over}");
        assert!(figure(&metrics, "delay_p50_s") <= figure(&metrics, "delay_p95_s"), "{over}");
        assert_eq!(figure(&metrics, "fairness"), 1.0, "{over}: one source is fair to itself");
        assert!(metrics.keys().any(|name| name.starts_with("wifi.n1.")), "{over}");
        delays.insert(figure(&metrics, "delay_mean_s").to_bits());
    }
    assert_eq!(delays.len(), 3, "they are three transports");
}

#[test]
fn poisson_sources_end_in_time_and_differ_from_even_ones() {
    for over in ["udp", "tcp", "rdca"] {
        let source = paper().set(format!("traffic.event.over={over}")).set("traffic.event.kind=poisson");
        let metrics = run(&source, 1, 0);
        let made = metrics["traffic.event.packets_made"].value.unwrap();
        assert!((150.0..250.0).contains(&made) && made != 200.0, "{over}: {made}");
        let limited = run(&source.clone().set("traffic.event.packets=7"), 1, 0);
        assert_eq!(limited["traffic.event.packets_made"].value, Some(7.0), "{over}");
    }
}

#[test]
fn placements_come_in_turn_and_are_connected() {
    let scenario = paper().scenario().unwrap();
    let places = |run| scenario.draw(7, run).unwrap().places;
    assert_eq!(places(0), places(5));
    assert_ne!(places(0), places(1));
    let own = paper().set("deployment.placements=0").scenario().unwrap();
    assert_ne!(own.draw(7, 0).unwrap().places, own.draw(7, 5).unwrap().places);
    let drawn = scenario.draw(7, 3).unwrap();
    let positions: Vec<_> = drawn.places.iter().map(|(_, place)| *place).collect();
    let hops = deployment::hops(&positions, 100.0, &[0]);
    assert!(hops.iter().all(Option::is_some));
    assert!(positions.iter().all(|p| (0.0..=450.0).contains(&p.x) && (0.0..=200.0).contains(&p.y)));
    assert_eq!(drawn.groups.len(), 1);
    let event = drawn.groups[0][0];
    assert_eq!(hops[event.index()], Some(2));
}

#[test]
fn a_group_is_as_large_and_as_near_as_it_says() {
    let scenario =
        paper().set("group.event.nearest.count=4").set("group.event.nearest.hops=3").scenario().unwrap();
    for run in 0..5 {
        let drawn = scenario.draw(1, run).unwrap();
        let group = &drawn.groups[0];
        assert_eq!(group.iter().collect::<BTreeSet<_>>().len(), 4);
        assert!(group.iter().all(|node| node.index() != 0), "the sink is never chosen");
        let place = |node: &crate::packet::NodeId| drawn.places[node.index()].1;
        let event = place(&group[0]);
        let distances: Vec<f64> = group.iter().map(|node| place(node).distance(event)).collect();
        assert!(distances.is_sorted(), "{distances:?}");
    }
}

#[test]
fn generators_place_nodes_where_they_say() {
    let places = |place: &str, count: u32| {
        let text = format!(
            "[wifi]\nrange = 1000\n[[node]]\nname = \"a\"\nposition = [0, 0]\n\
             [[nodes]]\nname = \"n{{i}}\"\ncount = {count}\nplace = {place}\n"
        );
        let scenario = Source::new("places", text).scenario().unwrap_or_else(|e| panic!("{place}: {e}"));
        let round = |x: f64| (x * 1000.0).round() / 1000.0 + 0.0;
        let places = scenario.draw(1, 0).unwrap().places;
        places[1..].iter().map(|(_, p)| (round(p.x), round(p.y))).collect::<Vec<_>>()
    };
    assert_eq!(
        places("{ line = { start = [80, 0], step = [80, 5] } }", 3),
        [(80.0, 0.0), (160.0, 5.0), (240.0, 10.0)]
    );
    assert_eq!(
        places("{ grid = { columns = 2, spacing = 10 } }", 4),
        [(0.0, 0.0), (10.0, 0.0), (0.0, 10.0), (10.0, 10.0)]
    );
    assert_eq!(
        places("{ star = { radius = 10 } }", 4),
        [(10.0, 0.0), (0.0, 10.0), (-10.0, 0.0), (0.0, -10.0)]
    );
    // Two children of the root on a circle of 10 m, four grandchildren on one of 20 m.
    let tree = places("{ tree = { children = 2, spacing = 10 } }", 6);
    assert_eq!(tree[..4], [(10.0, 0.0), (-10.0, 0.0), (20.0, 0.0), (0.0, 20.0)]);
    let sunflower = places("{ sunflower = { radius = 100 } }", 25);
    let radius = |(x, y): (f64, f64)| x.hypot(y);
    assert!((radius(sunflower[24]) - 100.0).abs() < 0.01 && (radius(sunflower[5]) - 48.99).abs() < 0.01);
    let random = places("{ random = { width = 50, height = 20, corner = [100, 200] } }", 30);
    assert!(random.iter().all(|&(x, y)| (100.0..=150.0).contains(&x) && (200.0..=220.0).contains(&y)));
}

#[test]
fn a_resolved_scenario_says_the_same_again() {
    let scenario = paper().scenario().unwrap();
    assert_eq!(scenario.nodes.len(), 100);
    let again = Source::new("again", scenario.to_toml()).scenario().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(again.canonical_json(), scenario.canonical_json());
    assert_eq!(again, scenario);
}

#[test]
fn what_cannot_be_is_refused_at_its_place() {
    let faults = [
        ("wifi.range=0", "wifi.range", "more than 0"),
        ("wifi.cw_min=0", "wifi.cw_min", "1 to cw_max"),
        ("wifi.data_rate=3 Mbit/s", "wifi.data_rate", "unknown variant"),
        ("wifi.queue=0", "wifi.queue", "no packet"),
        ("aodv.ttl_start=0", "aodv.ttl_start", "at least 1"),
        ("aodv.hello=maybe", "aodv.hello", "unknown variant"),
        ("network.ip=6", "network.ip", "IPv4"),
        ("nodes.0.count=0", "group.event.nearest.count", "no node is left"),
        ("nodes.0.name=n", "nodes.0.name", "one name"),
        ("nodes.0.place.random.width=0", "nodes.0.place", "more than 0"),
        ("nodes.0.place.random.width=45 km", "nodes.0.place", "connected"),
        ("nodes.0.dtc=none", "nodes.0.dtc", "no profile"),
        ("deployment.tries=0", "deployment.tries", "expected 1"),
        ("group.event.nearest.count=100", "group.event.nearest.count", "expected 1 to 99"),
        ("group.event.nearest.hops=0", "group.event.nearest.hops", "at least one hop"),
        ("group.event.nearest.hops=40", "group.event.nearest.hops", "none of 1000"),
        ("group.event.nearest.of=sinc", "group.event.nearest.of", "no node `sinc`"),
        ("traffic.event.from=evnt", "traffic.event.from", "no node and no group `evnt`"),
        ("traffic.event.from=x*", "traffic.event.from", "no node's name"),
        ("traffic.event.to=nobody", "traffic.event.to", "no node `nobody`"),
        ("traffic.event.from=sink", "traffic.event.from", "another node"),
        ("traffic.event.payload=284 B", "traffic.event.payload", "room for 283"),
        ("traffic.event.payload=11 B", "traffic.event.payload", "expected 12 B"),
        ("traffic.event.interval=0 s", "traffic.event.interval", "some time"),
        ("traffic.event.rate=1 kbit/s", "traffic.event.rate", "both"),
        ("traffic.event.start=20 s", "traffic.event.stop", "it begins"),
        ("traffic.event.packets=0", "traffic.event.packets", "at least one"),
        ("traffic.event.mptcp.subflows=2", "traffic.event.mptcp", "no meaning"),
        ("traffic.event.rdca=fast", "traffic.event.rdca", "no profile"),
        ("traffic.event.kind=cbrr", "traffic.event.kind", "unknown variant"),
        ("rdca.default.datagram=5", "rdca.default.datagram", "expected 18"),
        ("rdca.default.unsent_time=soon", "rdca.default.unsent_time", "does not begin with a number"),
        ("rdca.default.acceleration.doublings=3", "rdca.default.acceleration", "missing key"),
    ];
    for (set, _, message) in faults {
        let error = paper().set(set).scenario().expect_err(set);
        assert!(error.to_string().contains(message), "{set}: {error}");
        assert!(
            error.to_string().contains(set) || !error.to_string().contains("rdca.toml\n"),
            "{set}: {error}"
        );
    }
    let two = paper().set("radio.range=100").scenario().expect_err("one channel");
    assert!(two.message.contains("one radio channel"), "{two}");
}

#[test]
fn a_node_of_a_group_is_named_where_the_group_stands() {
    let text = "[wifi]\nrange = 100\n[[node]]\nname = \"n2\"\nposition = [0, 0]\n\
                [[nodes]]\nname = \"m{i}\"\ncount = 2\n\n[[nodes]]\nname = \"n{i}\"\ncount = 3\n";
    let error = Source::new("two", text).scenario().expect_err("two nodes n2");
    assert!(error.message.contains("two nodes of the name `n2`"), "{error}");
    assert!(matches!(error.place, Place::File { line: 10 | 11, .. }), "{error:?}");
}
