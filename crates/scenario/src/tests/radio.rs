//! Scenarios with nodes on the channel.

use super::*;
use anabranch_sim::network::{FragmentForwarding, VirtualReassembly, WirelessConfig};
use anabranch_sim::packet::LinkId;
use anabranch_sim::radio::RadioConfig;

const SHIPPED: &str = include_str!("../../../../scenarios/three-hops-radio.toml");

fn shipped() -> Source {
    Source::new("three-hops-radio.toml", SHIPPED)
}

/// A correspondent node behind two gateways, and a node between them; all but the correspondent
/// node are on the channel.
const GATEWAYS: &str = r#"
[radio]
range = 100

[tcp.default]
mss = 600

[tcp.wireless]
mss = 81

[[node]]
name = "cn"

[[node]]
name = "gw1"
kind = "gateway"
position = [-40, 0]

[[node]]
name = "gw2"
kind = "gateway"
position = [40, 0]

[[node]]
name = "sn"
kind = "node"
position = [0, 0]

[[link]]
from = "cn"
to = "gw1"
rate = "10 Mbit/s"
delay = "10 ms"

[[link]]
from = "cn"
to = "gw2"
rate = "10 Mbit/s"
delay = "10 ms"

[[transfer]]
name = "update"
kind = "set"
from = "cn"
to = "sn"
bytes = "5 kB"
tcp_wireless = "wireless"
"#;

fn run(source: Source, seed: u64) -> (anabranch_sim::sim::Simulation, record::Metrics) {
    source.scenario().unwrap().run(seed, 0, &BTreeMap::new()).expect("nothing is drawn")
}

/// The channel of a scenario with `[radio]`.
fn ieee802154(scenario: &Scenario) -> (RadioConfig, WirelessConfig) {
    match scenario.radio.as_ref().map(|radio| radio.channel) {
        Some(crate::radio::Channel::Ieee802154(config, wireless)) => (config, wireless),
        other => panic!("{other:?}"),
    }
}

/// A metric of the transfer with this name.
fn figure(metrics: &record::Metrics, transfer: &str, name: &str) -> Option<f64> {
    metrics[&format!("transfer.{transfer}.{name}")].value
}

#[test]
fn tcp_crosses_three_hops_of_radio() {
    let (_, metrics) = run(shipped(), 1);
    assert_eq!(figure(&metrics, "log", "delivered_bytes"), Some(20_000.0));
    let goodput = figure(&metrics, "log", "goodput_bit_per_s").unwrap();
    println!("{goodput:.0} bit/s");
    // A third of the capacity of one hop with frames of this length, minus the time of
    // acknowledgements.
    assert!((10_000.0..30_000.0).contains(&goodput), "{goodput}");
    assert!(metrics["radio.relay1.frames"].value.unwrap() > 300.0);
    assert!(metrics["radio.relay1.energy_j"].value.unwrap() > 0.0);
    assert_eq!(metrics["link.sensor>relay2.dropped_queue_full"].value, Some(0.0));
    let (_, again) = run(shipped(), 1);
    assert_eq!(metrics, again);
    assert_ne!(metrics, run(shipped(), 2).1);
}

#[test]
fn what_is_resolved_means_the_same() {
    for source in [
        shipped(),
        shipped().set("radio.phy=fsk-100k").set("radio.capture={ first = 2.0 }").set("radio.loss=5 %"),
        shipped().set("paths.root=border").set("paths.max_paths=2"),
        Source::new("set.toml", GATEWAYS),
    ] {
        let scenario = source.scenario().unwrap();
        let again = Source::new("resolved.toml", scenario.to_toml()).scenario().unwrap();
        assert_eq!(again, scenario);
        assert_eq!(again.hash(), scenario.hash());
    }
    let text = SHIPPED.replace("range = 100", "log_distance = { tx_power_dbm = 5.0, shadowing_db = 2.0 }");
    let scenario = Source::new("log.toml", text).scenario().unwrap();
    let again = Source::new("resolved.toml", scenario.to_toml()).scenario().unwrap();
    assert_eq!(again, scenario);
}

#[test]
fn frames_of_sun_fsk_end_with_four_octets_unless_two_are_asked_for() {
    let octets = |source: Source| {
        let scenario = source.scenario().unwrap();
        let (config, _) = ieee802154(&scenario);
        let phy = config.phy;
        assert_eq!(phy.ack_psdu, 3 + phy.fcs.len() as u16);
        assert!(scenario.to_toml().contains(&format!("fcs = {}\n", phy.fcs.len())));
        let (_, metrics) = scenario.run(1, 0, &BTreeMap::new()).expect("nothing is drawn");
        assert_eq!(figure(&metrics, "log", "delivered_bytes"), Some(20_000.0));
        phy.fcs.len()
    };
    assert_eq!(octets(shipped()), 2);
    assert_eq!(octets(shipped().set("radio.phy=fsk-100k")), 4);
    assert_eq!(octets(shipped().set("radio.phy=fsk-100k").set("radio.fcs=2")), 2);
}

#[test]
fn a_neighbour_within_reach_is_a_link() {
    let scenario = shipped().scenario().unwrap();
    let links: Vec<_> = scenario.edges().map(|(_, from, to)| (from.0, to.0)).collect();
    assert_eq!(links, [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]);
    let mut sim = scenario.builder(1, 0).expect("nothing is drawn").build();
    let built: Vec<_> = sim.world().network.links().iter().map(|l| (l.from().0, l.to().0)).collect();
    assert_eq!(built, links);
    sim.run_until_idle();
}

#[test]
fn set_runs_over_gateways_on_one_channel() {
    let scenario = Source::new("set.toml", GATEWAYS).scenario().unwrap();
    assert_eq!(scenario.nodes[1].neighbours, [NodeId(3)]);
    let (_, metrics) = scenario.run(1, 0, &BTreeMap::new()).expect("nothing is drawn");
    assert_eq!(figure(&metrics, "update", "delivered_bytes"), Some(5_000.0));
    assert_eq!(figure(&metrics, "update", "sessions"), Some(2.0));
    // The transfer over paths of which a gateway is the root; the correspondent node is a wired
    // router.
    let source = Source::new("set.toml", GATEWAYS)
        .set("node.cn.kind=router")
        .set("paths.root=gw1")
        .set("transfer.0.start=60 s");
    let scenario = source.scenario().unwrap();
    let drawn = scenario.draw(1, 0).expect("nothing is drawn");
    let kinds: Vec<_> = scenario.routers(&drawn).into_iter().map(|(_, kind)| kind).collect();
    use anabranch_core::paths::NodeType::{BaseStation, Ieee802154, MultiLink};
    assert_eq!(kinds, [Some(BaseStation), None, Some(MultiLink), Some(Ieee802154)]);
    let (_, metrics) = scenario.run(1, 0, &BTreeMap::new()).expect("nothing is drawn");
    assert_eq!(figure(&metrics, "update", "delivered_bytes"), Some(5_000.0));
}

#[test]
fn paths_carry_tcp_between_any_two() {
    let source = shipped().set("paths.root=border").set("transfer.0.start=60 s");
    for ends in [("sensor", "border"), ("border", "sensor"), ("relay1", "sensor")] {
        let source = source.clone().set(format!("transfer.0.from={}", ends.0));
        let source = source.set(format!("transfer.0.to={}", ends.1)).set("transfer.0.bytes=5 kB");
        let (sim, metrics) = run(source, 1);
        assert_eq!(figure(&metrics, "log", "delivered_bytes"), Some(5_000.0), "{ends:?}");
        assert!(!sim.world().network.own_paths(NodeId(3)).is_empty());
    }
}

#[test]
fn links_over_the_air_break_and_nodes_die() {
    let event =
        |text: &str| Source::new("faults.toml", format!("{SHIPPED}\n[[event]]\nat = \"1 s\"\n{text}"));
    let down = event("action = \"link-down\"\nfrom = \"relay1\"\nto = \"relay2\"");
    let faults: Vec<_> = down.scenario().unwrap().faults.iter().map(|f| f.1).collect();
    assert_eq!(faults, [Fault::LinkDown(LinkId(2)), Fault::LinkDown(LinkId(3))]);
    let dies = event("action = \"fail-node\"\nnode = \"relay1\"");
    for source in [down, dies] {
        let broken = source.clone().set("stop=30 s");
        let got = figure(&run(broken, 1).1, "log", "delivered_bytes").unwrap();
        assert!(got > 0.0 && got < 20_000.0, "{got}");
        let back = match source.text().contains("link-down") {
            true => "action = \"link-up\"\nfrom = \"relay1\"\nto = \"relay2\"",
            false => "action = \"recover-node\"\nnode = \"relay1\"",
        };
        let healed = format!("{}\n[[event]]\nat = \"9 s\"\n{back}", source.text());
        let got = figure(&run(Source::new("healed.toml", healed), 1).1, "log", "delivered_bytes");
        assert_eq!(got, Some(20_000.0));
    }
}

/// With shadowing, a link of the file may be missing in a run.
#[test]
fn shadowing_moves_links_from_run_to_run() {
    let text = SHIPPED.replace("range = 100", "log_distance = { tx_power_dbm = 5.0, shadowing_db = 8.0 }");
    let event = "[[event]]\nat = \"1 s\"\naction = \"link-down\"\nfrom = \"border\"\nto = \"relay1\"\n";
    let scenario = Source::new("log.toml", format!("{text}\n{event}")).set("stop=2 s").scenario().unwrap();
    let count = |seed| {
        scenario.run(seed, 0, &BTreeMap::new()).expect("nothing is drawn").0.world().network.links().len()
    };
    let counts: Vec<usize> = (1..9).map(count).collect();
    assert!(counts.iter().any(|n| *n != counts[0]), "{counts:?}");
}

fn check_radio(source: Source, expected: Expect) {
    expected.assert_eq(&source.scenario().unwrap_err().to_string());
}

#[test]
fn errors_of_the_radio_have_a_place_and_a_hint() {
    let replaced = |from: &str, to: &str| {
        assert!(SHIPPED.contains(from), "`{from}`");
        Source::new("bad.toml", SHIPPED.replace(from, to))
    };
    let nowhere = SHIPPED.lines().filter(|l| !l.starts_with("position")).collect::<Vec<_>>().join("\n");
    check_radio(
        Source::new("bad.toml", nowhere),
        expect![[r#"
        bad.toml:8:1: no node is on the air
          hint: give nodes a `position = [x, y]` in metres"#]],
    );
    let silent = SHIPPED.split("[radio]").next().unwrap_or_default().to_owned()
        + &SHIPPED[SHIPPED.find("[tcp.default]").unwrap()..];
    check_radio(
        Source::new("bad.toml", silent),
        expect![[r#"
            bad.toml:16:12: a node with a position is on the air, and there is no radio
              hint: add `[radio]` or `[wifi]` with a `range`"#]],
    );
    check_radio(
        shipped().set("network.ip=4"),
        expect![[r#"
        --set network.ip=4: the radio carries IPv6 only
          hint: remove `ip`, or set 6"#]],
    );
    check_radio(
        replaced("position = [160, 0]", "position = [1600, 0]"),
        expect![[r#"
        bad.toml:30:8: the network is not connected: no link leads from `border` to `relay2`
          hint: move `relay2` nearer to another node that is on the air"#]],
    );
    check_radio(
        replaced("position = [160, 0]", "position = [1e9, 0]"),
        expect!["bad.toml:32:12: a position is within 10,000 km of the origin"],
    );
    check_radio(
        replaced("range = 100\n", ""),
        expect![[r#"bad.toml:8:1: expected `range`, a length such as "50 m", or a table `log_distance`"#]],
    );
    check_radio(
        replaced("range = 100", "range = 0"),
        expect!["bad.toml:10:9: range: expected more than 0 to 10,000 km"],
    );
    check_radio(
        replaced("range = 100", "range = 100\ninterference_range = 50"),
        expect!["bad.toml:11:22: interference_range: expected range and more"],
    );
    check_radio(
        replaced("range = 100", "range = 100\nlog_distance = {}"),
        expect!["bad.toml:10:9: `range` is of the unit disk, and there is `log_distance`"],
    );
    check_radio(
        replaced("range = 100", "log_distance = { exponent = 11 }"),
        expect!["bad.toml:10:29: exponent: expected 1 to 10"],
    );
    check_radio(
        replaced("range = 100", "log_distance = { co_channel_rejection_db = 41 }"),
        expect!["bad.toml:10:44: co_channel_rejection_db: expected -20 to 40 dB"],
    );
    check_radio(
        replaced("max_frame_retries = 7", "fcs = 4"),
        expect!["bad.toml:11:7: frames of O-QPSK end with 2 bytes of FCS"],
    );
    check_radio(
        replaced("oqpsk-250k\"", "fsk-100k\"\nfcs = 3"),
        expect!["bad.toml:10:7: expected 2 or 4, found 3"],
    );
    check_radio(
        replaced("range = 100", "range = 100\ncapture = \"first\""),
        expect!["bad.toml:11:11: this word needs a number, as in `{ first = 2.0 }`"],
    );
    check_radio(
        replaced("range = 100", "range = 100\ncapture = { first = 0.5 }"),
        expect!["bad.toml:11:11: capture: expected 1 to 1,000,000"],
    );
    check_radio(
        replaced("max_frame_retries = 7", "max_frame_retries = 16"),
        expect!["bad.toml:11:21: max_frame_retries: expected 0 to 15"],
    );
    check_radio(
        replaced("max_frame_retries = 7", "min_be = 6"),
        expect!["bad.toml:8:1: max_be, min_be: expected 3 to 8, and 0 to max_be"],
    );
    check_radio(
        replaced("max_frame_retries = 7", "frame = 63"),
        expect![
            "bad.toml:11:9: a frame of 63 bytes: expected 64, for 6LoWPAN, to 127, which the physical layer allows"
        ],
    );
    check_radio(
        replaced("max_frame_retries = 7", "frame = 128"),
        expect![
            "bad.toml:11:9: a frame of 128 bytes: expected 64, for 6LoWPAN, to 127, which the physical layer allows"
        ],
    );
    check_radio(
        replaced("max_frame_retries = 7", "queue = \"2 kB\""),
        expect![[
            r#"bad.toml:11:9: expected a number of packets, at least one, such as "32 packets", or "unlimited""#
        ]],
    );
    check_radio(
        replaced("max_frame_retries = 7", "reassemblies = 0"),
        expect!["bad.toml:11:16: expected 1 to 64, found 0"],
    );
    check_radio(
        replaced("oqpsk-250k", "oqpsk"),
        expect!["bad.toml:9:7: unknown word `oqpsk`, expected `oqpsk-250k` or `fsk-100k`"],
    );
    check_radio(
        replaced("mss = 80", "mss = 1221"),
        expect![[r#"
        bad.toml:39:1: segments of 1221 bytes do not fit into a packet of the radio, which has 1280 bytes with its headers
          hint: set `mss = 1220` or less in `[tcp.default]`"#]],
    );
    check_radio(
        replaced("position = [160, 0]", "position = [160]"),
        expect!["bad.toml:32:12: expected two numbers, metres east and north, found 1"],
    );
    let best = Source::new("bad.toml", GATEWAYS).set("transfer.0.gateways=best");
    check_radio(
        best,
        expect![[r#"
        --set transfer.0.gateways=best: the latency model knows no radio channel that gateways share
          hint: give their number, or remove `gateways` to use all"#]],
    );
    let event = "\n[[event]]\nat = \"1 s\"\naction = \"set-rate\"\nfrom = \"border\"\nto = \"relay1\"\nrate = \"1 kbit/s\"\n";
    check_radio(
        Source::new("bad.toml", format!("{SHIPPED}{event}")),
        expect![[r#"
        bad.toml:48:10: the rate of a radio is that of its physical layer
          hint: choose another `phy` in `[radio]`, or take the link down"#]],
    );
    check_radio(
        Source::new("bad.toml", format!("{SHIPPED}{}", event.replace("relay1", "relay2"))),
        expect!["bad.toml:50:6: there is no link from `border` to `relay2`"],
    );
}

#[test]
fn errors_of_paths_have_a_place_and_a_hint() {
    let with = |paths: &str| {
        Source::new("bad.toml", SHIPPED.replace("[tcp.default]", &format!("{paths}\n[tcp.default]")))
    };
    check_radio(
        with("[paths]\nroot = \"bordr\""),
        expect![[r#"
        bad.toml:15:8: there is no node `bordr`
          hint: did you mean `border`?"#]],
    );
    check_radio(with("[paths]"), expect!["bad.toml:14:1: missing key `root`"]);
    check_radio(
        with("[paths]\nroot = \"border\"\nmax_paths = 0"),
        expect!["bad.toml:16:13: expected 1 to 15, found 0"],
    );
    check_radio(
        with("[paths]\nroot = \"border\"\ninterval_min = \"0 s\""),
        expect!["bad.toml:16:16: expected 1 ms or more"],
    );
    check_radio(
        with("[paths]\nroot = \"border\"\n[[route]]\nat = \"border\"\nto = \"sensor\"\nvia = \"relay1\""),
        expect![[r#"
            bad.toml:16:1: a route has no meaning where packets follow the nodes' own paths
              hint: remove `[paths]` or the route"#]],
    );
    let host = SHIPPED.replacen("kind = \"node\"\n", "", 1);
    check_radio(
        Source::new("bad.toml", format!("{host}\n[paths]\nroot = \"border\"\n")),
        expect![[r#"
        bad.toml:25:8: `relay1` passes nothing on, and others would build paths over it
          hint: set kind = "node" or "router""#]],
    );
    let wired = Source::new("bad.toml", GATEWAYS).set("paths.root=cn");
    check_radio(
        wired,
        expect![[r#"
        --set paths.root=cn: `cn` is not on the air, and so no root of paths
          hint: give it a `position = [x, y]` in metres"#]],
    );
    let pinned = Source::new("bad.toml", GATEWAYS)
        .set("node.cn.kind=router")
        .set("paths.root=gw1")
        .set("transfer.0.default_gateway=gw1");
    check_radio(
        pinned,
        expect![
            "--set transfer.0.default_gateway=gw1: `default_gateway` has no meaning where packets follow the nodes' own paths"
        ],
    );
    check_radio(
        good().set("paths.root=cn"),
        expect![[r#"
            --set paths.root=cn: paths are built over IEEE 802.15.4, and there is no `[radio]`
              hint: add `[radio]`, or remove `[paths]` for static routes"#]],
    );
}

#[test]
fn fragments_can_go_on_one_by_one() {
    let with = |key: &str, value: &str| shipped().set(format!("radio.{key}={value}"));
    let fragments = with("forwarding", "fragments");
    let scenario = fragments.clone().set("radio.fragment_gap=5 ms").scenario().expect("it is legal");
    let gap = anabranch_core::time::Duration::from_millis(5);
    let expected = FragmentForwarding::Fragments(VirtualReassembly { gap, ..VirtualReassembly::default() });
    assert_eq!(ieee802154(&scenario).1.forwarding, expected);
    assert!(scenario.to_toml().contains("virtual_reassemblies = 16"));
    let (_, metrics) = fragments
        .clone()
        .set("tcp.default.mss=400")
        .scenario()
        .expect("it is legal")
        .run(1, 0, &BTreeMap::new())
        .expect("nothing is drawn");
    assert_eq!(metrics["transfer.log.delivered"].value, Some(1.0));
    assert!(metrics["radio.relay1.fragments_forwarded"].value > Some(200.0));
    // The hash of a scenario without these keys is unchanged.
    let silent = shipped().scenario().expect("it is legal").canonical_json();
    assert!(!["forwarding", "virtual_reassemblies", "fragment_gap"].iter().any(|key| silent.contains(key)));
    check_radio(
        with("fragment_gap", "5 ms"),
        expect![[
            r#"--set radio.fragment_gap=5 ms: `fragment_gap` has no meaning without `forwarding = "fragments"`"#
        ]],
    );
    check_radio(
        fragments.set("radio.virtual_reassemblies=0"),
        expect!["--set radio.virtual_reassemblies=0: expected 1 to 1024, found 0"],
    );
}
