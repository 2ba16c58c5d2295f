//! Packets of sources, drawn positions, IEEE 802.11 and AODV.

use std::collections::BTreeSet;

use super::*;

const PAPER: &str = include_str!("../../../../scenarios/papers/rdca.toml");

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
        let place = |node: &anabranch_sim::packet::NodeId| drawn.places[node.index()].1;
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
    // Two children of the root on a circle of 10 m, four grandchildren on a circle of 20 m.
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
        ("wifi.range=0", "more than 0"),
        ("wifi.cw_min=0", "1 to cw_max"),
        ("wifi.data_rate=3 Mbit/s", "1, 2, 5.5 and 11 Mbit/s"),
        ("wifi.queue=0", "no packet"),
        ("aodv.ttl_start=0", "at least 1"),
        ("aodv.hello=maybe", "unknown word"),
        ("network.ip=6", "IPv4"),
        ("nodes.0.count=0", "no node is left"),
        ("nodes.0.name=n", "one name"),
        ("nodes.0.place.random.width=0", "more than 0"),
        ("nodes.0.place={ grid = { columns = 0, spacing = 10 } }", "at least 1"),
        ("nodes.0.place={ line = { step = [0, 0] } }", "one place"),
        ("nodes.0.place={ ring = { radius = 10 } }", "unknown word `ring`"),
        ("nodes.0.place.random.width=45 km", "connected"),
        ("nodes.0.dtc=none", "no profile"),
        ("deployment.tries=0", "expected 1"),
        ("group.event.nearest.count=100", "expected 1 to 99"),
        ("group.event.nearest.hops=0", "at least one hop"),
        ("group.event.nearest.hops=40", "none of 1000"),
        ("group.event.nearest.of=sinc", "no node `sinc`"),
        ("traffic.event.from=evnt", "no node and no group `evnt`"),
        ("traffic.event.from=x*", "no node's name"),
        ("traffic.event.to=nobody", "no node `nobody`"),
        ("traffic.event.from=sink", "another node"),
        ("traffic.event.payload=3397 B", "room for 3396 bytes"),
        ("traffic.event.payload=11 B", "expected 12 B"),
        ("traffic.event.interval=0 s", "some time"),
        ("traffic.event.rate=1 kbit/s", "both"),
        ("traffic.event.start=20 s", "it begins"),
        ("traffic.event.stop=26 s", "the simulation at 25 s"),
        ("traffic.event.packets=0", "at least one"),
        ("traffic.event.mptcp.subflows=2", "no meaning"),
        ("traffic.event.rdca=fast", "no profile"),
        ("traffic.event.kind=cbrr", "unknown word"),
        ("rdca.default.datagram=5", "expected 18"),
        ("rdca.default.header=printed", "no room for the round trip"),
        ("rdca.default.unsent_time=soon", "does not begin with a number"),
        ("rdca.default.acceleration.doublings=3", "missing key"),
    ];
    // These errors are reported at another part of the file.
    let elsewhere = [
        "network.ip=6",
        "nodes.0.count=0",
        "nodes.0.place.random.width=45 km",
        "group.event.nearest.hops=40",
    ];
    for (set, message) in faults {
        let error = paper().set(set).scenario().expect_err(set).to_string();
        let place = if elsewhere.contains(&set) { "rdca.toml:".to_owned() } else { format!("--set {set}: ") };
        assert!(error.starts_with(&place) && error.contains(message), "{set}: {error}");
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

/// Saturation throughput from scenario files alone: within 3 % for 1 to 20 stations, with and
/// without RTS.
#[test]
fn a_cell_has_the_throughput_of_bianchi() {
    use anabranch_model::dcf::{self, Backoff, Exchange, Times};
    let text = include_str!("../../../../scenarios/wifi-cell.toml");
    for rts_threshold in [2347, 0] {
        for n in [1, 5, 20] {
            let source = Source::new("wifi-cell.toml", text).set(format!("nodes.0.count={n}"));
            let source = source.set(format!("wifi.rts_threshold={rts_threshold}"));
            let metrics = run(&source, 1, 0);
            let found = metrics["traffic.uplink.throughput_bit_per_s"].value.unwrap();
            let phy = anabranch_sim::wifi::PhyConfig::dsss(anabranch_sim::wifi::Rate::Mbps2);
            let seconds = |time: anabranch_core::time::Duration| time.as_secs_f64();
            let times = Times {
                data: seconds(phy.airtime(1028, phy.data_rate)),
                ack: seconds(phy.ack_time()),
                rts: seconds(phy.airtime(20, phy.basic_rate)),
                cts: seconds(phy.ack_time()),
                sifs: seconds(phy.sifs),
                difs: seconds(phy.difs()),
                delay: 0.0,
            };
            let exchange =
                if rts_threshold == 0 { Exchange::rts_cts(&times) } else { Exchange::basic(&times) };
            let bits = 964.0 * 8.0;
            let model = dcf::throughput(&Backoff::default(), n, &exchange, seconds(phy.slot), bits).unwrap();
            let off = (found / model - 1.0) * 100.0;
            assert!(off.abs() < 3.0, "n = {n}, RTS above {rts_threshold}: {found:.0} bit/s, {off:+.1} %");
        }
    }
}

/// One key selects the transport, and the file is short.
#[test]
fn rdca_tcp_and_udp_are_compared_in_one_short_file() {
    let text = include_str!("../../../../scenarios/rdca-against-tcp.toml");
    assert!(text.lines().count() < 60, "{} lines", text.lines().count());
    let points = Source::new("rdca-against-tcp.toml", text).points().unwrap();
    assert_eq!(points.len(), 3);
    for point in points {
        let metrics = point.scenario.run(1, 0, &BTreeMap::new()).expect("dense enough").1;
        let ratio = metrics["traffic.readings.delivery_ratio"].value.unwrap();
        let least = if point.axes["traffic.readings.over"] == "udp" { 0.5 } else { 0.9 };
        assert!((least..=1.0).contains(&ratio), "{:?}: {ratio}", point.axes);
    }
}

/// A packet of 1000 bytes takes four datagrams of at most 300 bytes, with either header.
#[test]
fn rdca_cuts_packets_into_datagrams_with_either_header() {
    let rdca = "kind = \"cbr\"\ninterval = \"100 ms\"\nover = \"rdca\"\npackets = 200\n";
    let more = "[rdca.default]\nalgorithm = \"paper\"\n[probe.all]\nkind = \"packets\"\n";
    let source = wired(&format!("{}{more}", traffic("x", rdca))).set("traffic.x.payload=1000 B");
    for (header, octets) in [("ours", 13.0), ("printed", 4.0)] {
        let source = source.clone().set(format!("rdca.default.header={header}"));
        let metrics = run(&source, 1, 0);
        assert_eq!(value(&metrics, "traffic.x.packets_delivered"), 200.0, "{header}");
        assert_eq!(value(&metrics, "probe.all.data_sent"), 800.0, "{header}");
        // 48 bytes of IPv6 and UDP, and a few control packets.
        let each = value(&metrics, "link.a>b.bytes") / 800.0;
        assert!((0.0..1.0).contains(&(each - 250.0 - octets - 48.0)), "{header}: {each}");
        let lossy = run(&source.set("link.0.loss=2 %"), 1, 0);
        assert_eq!(value(&lossy, "traffic.x.packets_delivered"), 200.0, "{header}");
        let sent = value(&lossy, "probe.all.data_sent");
        assert!((801.0..900.0).contains(&sent), "{header}: {sent}");
        assert!((0.005..0.2).contains(&value(&lossy, "probe.all.control_load")), "{header}");
    }
}

/// Two wired hosts and the traffic between them.
fn wired(more: &str) -> Source {
    let text = format!(
        "stop = \"60 s\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n\
         [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n{more}"
    );
    Source::new("wired.toml", text)
}

fn traffic(name: &str, more: &str) -> String {
    format!("[[traffic]]\nname = \"{name}\"\nfrom = \"a\"\nto = \"b\"\npayload = \"100 B\"\n{more}\n")
}

fn value(metrics: &record::Metrics, name: &str) -> f64 {
    metrics[name].value.unwrap_or_else(|| panic!("{name}"))
}

#[test]
fn sources_of_one_node_are_independent() {
    let poisson = |over: &str| format!("kind = \"poisson\"\ninterval = \"1 s\"\nover = \"{over}\"");
    for (one, other) in [("udp", "udp"), ("udp", "rdca"), ("tcp", "udp"), ("rdca", "tcp")] {
        let source = wired(&(traffic("x", &poisson(one)) + &traffic("y", &poisson(other))));
        let made = |seed| {
            let metrics = run(&source, seed, 0);
            (value(&metrics, "traffic.x.packets_made"), value(&metrics, "traffic.y.packets_made"))
        };
        // About 60 each: all three are equal by chance with a probability of about 0.0001.
        assert!((1..4).map(made).any(|(x, y)| x != y), "{one} and {other}");
    }
}

#[test]
fn a_source_makes_the_packets_up_to_its_end_and_no_more() {
    for (stop, packets) in
        [("200 ms", 3.0), ("300 ms", 4.0), ("600 ms", 7.0), ("700 ms", 8.0), ("750 ms", 8.0)]
    {
        for over in ["udp", "tcp", "rdca"] {
            let more = format!("kind = \"cbr\"\ninterval = \"100 ms\"\nstop = \"{stop}\"\nover = \"{over}\"");
            let metrics = run(&wired(&traffic("x", &more)), 1, 0);
            assert_eq!(value(&metrics, "traffic.x.packets_made"), packets, "{over} until {stop}");
            assert_eq!(value(&metrics, "traffic.x.packets_delivered"), packets, "{over} until {stop}");
        }
    }
    // A source whose drawn start is after its end sends nothing.
    let more = "kind = \"cbr\"\ninterval = \"5 s\"\nphase = \"random\"\nstop = \"100 ms\"";
    let made = |seed| value(&run(&wired(&traffic("x", more)), seed, 0), "traffic.x.packets_made");
    assert!((1..6).any(|seed| made(seed) == 0.0));
}

#[test]
fn a_node_that_starts_again_counts_all_that_it_makes() {
    let restart = "[[event]]\nat = \"10 s\"\naction = \"fail-node\"\nnode = \"a\"\n\
                   [[event]]\nat = \"20 s\"\naction = \"recover-node\"\nnode = \"a\"\n";
    for over in ["udp", "tcp", "rdca"] {
        for (stop, most) in [("5 s", 51.0), ("30 s", 301.0)] {
            let more = format!("kind = \"cbr\"\ninterval = \"100 ms\"\nstop = \"{stop}\"\nover = \"{over}\"");
            let metrics = run(&wired(&(traffic("x", &more) + restart)), 1, 0);
            let made = value(&metrics, "traffic.x.packets_made");
            let delivered = value(&metrics, "traffic.x.packets_delivered");
            assert!(delivered <= made && made <= most, "{over} until {stop}: {delivered} of {made}");
        }
    }
}

#[test]
fn a_named_profile_is_left_aside_where_the_transport_is_chosen() {
    let profiles = "[rdca.fast]\nraise_step = 9\n[tcp.slow]\nmss = 500\n";
    let x = traffic("x", "kind = \"cbr\"\ninterval = \"1 s\"\nover = \"rdca\"\nrdca = \"fast\"");
    let y = traffic("y", "kind = \"cbr\"\ninterval = \"1 s\"\nover = \"tcp\"\ntcp = \"slow\"");
    let source = wired(&format!("{x}{y}{profiles}"));
    assert!(source.scenario().is_ok());
    for over in ["udp", "tcp", "rdca"] {
        let chosen = source.clone().set(format!("traffic.*.over={over}"));
        chosen.scenario().unwrap_or_else(|error| panic!("{over}: {error}"));
    }
    let swept = wired(&format!("{x}{profiles}[sweep]\n\"traffic.x.over\" = [\"udp\", \"rdca\"]\n"));
    assert_eq!(swept.points().expect("each is legal").len(), 2);
    let unused =
        wired(&format!("{y}[tcp.slow]\nmss = 500\n[tcp.slwo]\nmss = 400\n")).scenario().expect_err("unused");
    assert!(unused.message.contains("no transfer or traffic uses the profile `tcp.slwo`"), "{unused}");
}

#[test]
fn a_deployment_need_not_be_connected() {
    let text = "[wifi]\nrange = \"50 m\"\n[[node]]\nname = \"sink\"\nkind = \"node\"\nposition = [0, 0]\n\
                [[nodes]]\nname = \"n{i}\"\ncount = 5\nplace = { random = { width = 400, height = 400 } }\n\
                [deployment]\nconnected = false\n";
    for seed in 1..7 {
        let source = Source::new("loose", text).set(format!("seed={seed}"));
        source.scenario().unwrap_or_else(|error| panic!("{seed}: {error}"));
    }
    let far = Source::new("far", text)
        .set("nodes.0.place.random.corner=[9999990, 0]")
        .scenario()
        .expect_err("too far");
    assert!(far.message.contains("within 10,000 km"), "{far}");
}

#[test]
fn ports_and_receivers_are_kept_apart() {
    let rdca = |name: &str, to: &str, port: u16| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nkind = \"cbr\"\nover = \"rdca\"\nfrom = \"a\"\nto = \"{to}\"\npayload = \"20 B\"\ninterval = \"1 s\"\nport = {port}\n"
        )
    };
    let third =
        "[[node]]\nname = \"c\"\n[[link]]\nfrom = \"a\"\nto = \"c\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
    let both = |port| wired(&format!("{third}{}{}", rdca("x", "b", 7000), rdca("y", "c", port))).scenario();
    assert!(both(7000).expect_err("one port for two senders").message.contains("uses the port"));
    assert!(both(7002).is_ok());
    // A group that contains the receiver: the other nodes send.
    let all = paper().set("group.event={ random = { count = 100 } }").set("traffic.event.stop=6 s");
    assert_eq!(value(&run(&all, 1, 0), "traffic.event.sources"), 99.0);
    let segments =
        paper().set("traffic.event.over=tcp").set("tcp.default.mss=1480").scenario().expect_err("too long");
    assert!(segments.message.contains("segments of 1480 bytes do not fit"), "{segments}");
    let places =
        paper().set("group.places={ random = { count = 1 } }").scenario().expect_err("a stream's name");
    assert!(places.message.contains("cannot be the name of a group"), "{places}");
    let many =
        wired("[[transfer]]\nkind = \"tcp\"\nname = \"x {i}\"\nfrom = \"a\"\nto = \"b\"\ncount = 100000\n");
    assert!(many.scenario().expect_err("too many").message.contains("100000 transfers"));
}

/// Sources that are off half of the time send half of the packets over every transport, and the
/// same packets over each.
#[test]
fn sources_that_are_off_at_times_make_their_share_over_every_transport() {
    for kind in ["on-off", "pareto-on-off"] {
        let mut counts = BTreeSet::new();
        for over in ["udp", "tcp", "rdca"] {
            let source = paper()
                .set("stop=120 s")
                .set("traffic.event.stop=110 s")
                .set("traffic.event.interval=20 ms")
                .set(format!("traffic.event.over={over}"))
                .set(format!("traffic.event.kind={kind}"));
            let metrics = run(&source, 1, 0);
            let made = metrics["traffic.event.packets_made"].value.unwrap();
            // 105 s, one in 20 ms, half of the time; the number for Pareto varies more.
            let range = if kind == "on-off" { 2200.0..3050.0 } else { 1700.0..3500.0 };
            assert!(range.contains(&made), "{kind} over {over}: {made}");
            counts.insert(made.to_bits());
            let longer = run(&source.clone().set(format!("traffic.event.kind.{kind}.on=4.5 s")), 1, 0);
            let longer = longer["traffic.event.packets_made"].value.unwrap();
            assert!(longer > 1.3 * made, "{kind} over {over}: {longer} after {made}");
        }
        assert_eq!(counts.len(), 1, "{kind}: the transport changes no packet");
    }
}

#[test]
fn kinds_of_traffic_and_their_options_are_checked() {
    for (kind, set, message) in [
        ("cbr", "traffic.event.kind=on-of", "did you mean `on-off`"),
        ("cbr", "traffic.event.kind.on-off.on=2 s", "it is `cbr` now"),
        ("on-off", "traffic.event.kind.on-off.on=2", "unit"),
        ("on-off", "traffic.event.kind.on-off.of=2 s", "unknown key `of`"),
        ("on-off", "traffic.event.kind.on-off.on=1 us", "`on`: expected at least a thousandth"),
        ("on-off", "traffic.event.kind.on-off.off=1000000 h", "`off`: expected no more than a century"),
        ("on-off", "traffic.event.kind.on-off.shape=1.5", "unknown key `shape`"),
        ("pareto-on-off", "traffic.event.kind.pareto-on-off.shape=1", "`shape`: expected 1.01 to 100"),
        ("pareto-on-off", "traffic.event.kind.pareto-on-off.shape=nan", "`shape`: expected 1.01 to 100"),
    ] {
        let source = paper().set(format!("traffic.event.kind={kind}")).set(set);
        let error = source.scenario().unwrap_err().to_string();
        assert!(error.contains(message), "{set}: {error}");
    }
    let word = paper().set("traffic.event.kind=pareto-on-off").scenario().unwrap();
    let again = Source::new("again.toml", word.to_toml()).scenario().unwrap();
    assert_eq!(again.traffic, word.traffic, "what was understood can be read again");
}
