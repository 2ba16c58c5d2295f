//! Groups with their own links, paths over them, and sources over Multipath TCP.

use std::collections::BTreeSet;

use anabranch_core::mptcp::{Reinjection, SchedulerKind};
use anabranch_core::paths::NodeType;
use anabranch_core::tcp::{DelayedAck, Push};

use super::*;
use crate::radio::Channel;
use crate::traffic::Carrier;
use anabranch_sim::link::QueueLimit;

const PAPER: &str = include_str!("../../../../scenarios/papers/mptcp.toml");
const MESH: &str = include_str!("../../../../scenarios/mesh-rpl.toml");

/// Twelve nodes with little to send.
fn paper() -> Source {
    [
        "nodes.0.count=11",
        "nodes.0.place={ random = { width = 170, height = 170 } }",
        "node.dc.position=[85, 85]",
    ]
    .into_iter()
    .chain(["traffic.packets.packets=3", "stop=300 s"])
    .fold(Source::new("mptcp.toml", PAPER), Source::set)
}

/// The scenario with a base station and this number of nodes that have a link to it.
fn cellular(nodes: u32) -> Source {
    paper().set("nodes.bs.count=1").set(format!("group.multi-link nodes.shorten-paths.count={nodes}"))
}

fn run(source: &Source, run: u64) -> record::Metrics {
    source.scenario().unwrap().run(1, run, &BTreeMap::new()).expect("it is dense enough").1
}

#[test]
fn a_mesh_of_twenty_nodes_is_a_short_file() {
    assert!(MESH.lines().count() < 25, "{} lines", MESH.lines().count());
    let source = Source::new("mesh-rpl.toml", MESH);
    assert_eq!(source.scenario().unwrap().nodes.len(), 20);
    for number in 0..3 {
        let metrics = run(&source, number);
        let figure = |name: &str| metrics[&format!("traffic.readings.{name}")].value.unwrap();
        assert!(figure("packets_made") > 800.0, "19 nodes, 54 packets of each");
        assert!(figure("delivery_ratio") > 0.95, "run {number}: {}", figure("delivery_ratio"));
    }
}

/// A word may replace one channel and its routing by another.
#[test]
fn a_file_has_the_same_nodes_with_rpl_and_with_aodv() {
    let file = include_str!("../../../../scenarios/mesh-routing.toml");
    let source = Source::new("mesh-routing.toml", file);
    let places = |scenario: &Scenario| scenario.draw(1, 0).expect("it is dense enough").places;
    let rpl = source.clone().set("routing=rpl").scenario().unwrap();
    assert_eq!(rpl, source.scenario().unwrap());
    assert!(rpl.radio.as_ref().is_some_and(|radio| matches!(radio.channel, Channel::Ieee802154(..))));
    assert!(rpl.paths.is_some() && rpl.aodv.is_none());
    let source = source.set("routing=aodv");
    let aodv = source.scenario().unwrap();
    assert!(aodv.radio.as_ref().is_some_and(|radio| matches!(radio.channel, Channel::Ieee80211(..))));
    assert!(aodv.paths.is_none() && aodv.aodv.is_some());
    assert_eq!(places(&rpl), places(&aodv));
    let metrics = run(&source, 0);
    assert!(metrics["traffic.readings.delivery_ratio"].value > Some(0.95));
    assert!(metrics.contains_key("wifi.n1.routing_packets"));
}

#[test]
fn a_section_is_taken_out_by_the_word_off_alone() {
    let source = || Source::new("mesh-rpl.toml", MESH);
    let refused = |set: &str| source().set(set).scenario().unwrap_err().to_string();
    assert!(refused("radio=off").contains("add `[radio]`"), "{}", refused("radio=off"));
    assert!(refused("radio=none").contains("expected a table"), "{}", refused("radio=none"));
    assert!(source().set("paths=off").scenario().unwrap().paths.is_none());
    assert_eq!(source().set("wifi=off").scenario().unwrap(), source().scenario().unwrap());
}

#[test]
fn each_run_links_the_nodes_that_it_has_chosen() {
    let source = cellular(2).set("group.multi-link nodes={ random = { count = 2, except = \"dc\" } }");
    let scenario = source.scenario().unwrap();
    let bs = scenario.find_node("bs").unwrap();
    assert_eq!((bs, scenario.links.len(), scenario.group_links.len()), (NodeId(12), 2, 1));
    let mut chosen = BTreeSet::new();
    for run in 0..5 {
        let drawn = scenario.draw(1, run).unwrap();
        let members = &drawn.groups[0];
        let cables: Vec<_> = scenario.cables(&drawn).iter().map(|link| (link.from, link.to)).collect();
        let expected = [NodeId(0)].iter().chain(members).flat_map(|&node| [(node, bs), (bs, node)]);
        assert_eq!(cables, expected.collect::<Vec<_>>());
        let builder = scenario.builder(1, run).unwrap();
        let sim = builder.build();
        let wired = sim.world().network.links().iter().filter(|link| !link.is_wireless());
        assert_eq!(wired.map(|link| (link.from(), link.to())).collect::<Vec<_>>(), cables);
        for (node, kind) in scenario.routers(&drawn) {
            let expected = match node {
                NodeId(0) => None,
                _ if node == bs => Some(NodeType::BaseStation),
                _ if members.contains(&node) => Some(NodeType::MultiLink),
                _ => Some(NodeType::Ieee802154),
            };
            assert_eq!(kind, expected, "{node:?}");
        }
        chosen.insert(members.clone());
    }
    assert!(chosen.len() > 1, "not always the same nodes");
}

#[test]
fn an_empty_group_has_no_links_and_no_base_station_is_left_out() {
    let without = paper().scenario().unwrap();
    assert_eq!((without.nodes.len(), without.links.len()), (12, 0));
    assert!(without.find_node("bs").is_none());
    let drawn = without.draw(1, 0).unwrap();
    assert!(drawn.groups[0].is_empty() && without.cables(&drawn).is_empty());
    let again = Source::new("again.toml", without.to_toml()).scenario().unwrap();
    assert_eq!(again, without);
    let with = cellular(3).scenario().unwrap();
    assert_eq!(Source::new("again.toml", with.to_toml()).scenario().unwrap(), with);
}

#[test]
fn a_second_interface_shortens_paths() {
    // If all paths are used, each has its own handshake.
    let far =
        |source: Source| source.set("node.dc.position=[-70, 85]").set("traffic.packets.mptcp.subflows=1");
    let frames = |source: &Source| -> f64 {
        let metrics = run(source, 0);
        assert_eq!(metrics["traffic.packets.packets_delivered"].value, Some(33.0));
        metrics.iter().filter(|(name, _)| name.ends_with(".frames")).filter_map(|(_, m)| m.value).sum()
    };
    let (without, with) = (frames(&far(paper())), frames(&far(cellular(1))));
    assert!(with < 0.8 * without, "{with} against {without} frames");
}

#[test]
fn several_nodes_at_one_end_have_a_link_each() {
    let text = |from: &str, count: u32| {
        format!(
            "[[node]]\nname = \"hub\"\nkind = \"router\"\n[[nodes]]\nname = \"h{{i}}\"\nkind = \"host\"\ncount = {count}\n\
             [[link]]\nfrom = \"{from}\"\nto = \"hub\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n"
        )
    };
    for from in ["h{i}", "h*", "*"] {
        let scenario = Source::new("star.toml", text(from, 3)).scenario().unwrap_or_else(|e| panic!("{e}"));
        let ends: Vec<_> = scenario.links.iter().map(|link| (link.from.0, link.to.0)).collect();
        assert_eq!(ends, [(1, 0), (0, 1), (2, 0), (0, 2), (3, 0), (0, 3)], "{from}");
    }
    let alone = Source::new("star.toml", text("h{i}", 0)).scenario().unwrap();
    assert_eq!((alone.nodes.len(), alone.links.len()), (1, 0));
    let error = Source::new("star.toml", text("x*", 3)).scenario().unwrap_err();
    assert!(error.message.contains("no node's name is like `x*`"), "{error}");
    let error = Source::new("star.toml", text("g{i}", 3)).scenario().unwrap_err();
    assert!(error.message.contains("no node `g{i}`"), "{error}");
    let twice =
        text("h*", 3) + "[[link]]\nfrom = \"h2\"\nto = \"hub\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
    let error = Source::new("star.toml", twice).scenario().unwrap_err();
    assert!(error.message.contains("two links between `h2` and `hub`"), "{error}");
}

#[test]
fn every_choice_reaches_the_sources() {
    let scenario = paper().scenario().unwrap();
    let Some(Channel::Ieee802154(_, wireless)) = scenario.radio.as_ref().map(|radio| radio.channel) else {
        panic!("it has a radio")
    };
    assert_eq!((wireless.queue, wireless.access_retries), (u32::MAX, 0));
    let Carrier::Mptcp(spec) = &scenario.traffic[0].carrier else { panic!("it is over mptcp") };
    let tcp = spec.config.tcp;
    let delayed_ack = DelayedAck::Every { segments: 20, timeout: Duration::from_secs(5) };
    assert_eq!((tcp.delayed_ack, tcp.ack_on_push, tcp.push), (delayed_ack, true, Push::Window));
    assert_eq!((tcp.mss, tcp.initial_ssthresh), (120, Some(1600)));
    assert_eq!(
        (spec.config.scheduler, spec.config.reinjection),
        (SchedulerKind::SectionVii, Reinjection::OnTimeout)
    );
    assert_eq!((spec.subflows, spec.adaptation.is_some()), (8, true));
    let link =
        scenario.group_links[..].iter().chain(&cellular(1).scenario().unwrap().group_links).next().cloned();
    assert_eq!(link.map(|link| link.there.0.queue), Some(QueueLimit::Packets(1000)));
}

/// Keys of another transport in the file are ignored if the transport is chosen from outside, and
/// refused if the file chooses it.
#[test]
fn a_transport_that_is_chosen_leaves_the_others_aside() {
    let tcp = paper().set("traffic.packets.over=tcp");
    let scenario = tcp.scenario().unwrap_or_else(|error| panic!("{error}"));
    assert!(matches!(scenario.traffic[0].carrier, Carrier::Tcp(_)));
    assert_eq!(scenario.resolved().traffic[0].mptcp, None);
    assert_eq!(Source::new("again.toml", scenario.to_toml()).scenario().unwrap(), scenario);

    let axis = format!(
        "{PAPER}\n[sweep]\n\"traffic.*.over\" = [\"tcp\", \"mptcp\"]\n\"traffic.*.mptcp.subflows\" = [1, 3]\n"
    );
    let points = Source::new("sweep.toml", axis).points().unwrap_or_else(|error| panic!("{error}"));
    let multipath = |point: &Point| matches!(point.scenario.traffic[0].carrier, Carrier::Mptcp(_));
    assert_eq!(points.iter().filter(|point| multipath(point)).count(), 2);

    let said = tcp.set("traffic.packets.mptcp.subflows=2").scenario().unwrap_err();
    assert!(said.message.contains("`mptcp` has no meaning with `over = \"tcp\"`"), "{said}");
    let file = PAPER.replace("over = \"mptcp\"", "over = \"tcp\"");
    let said = Source::new("file.toml", file).scenario().unwrap_err();
    assert!(said.message.contains("`mptcp` has no meaning"), "{said}");
}

#[test]
fn sources_go_on_until_the_simulation_ends() {
    let slow = paper().set("traffic.packets.interval=60 s").set("traffic.packets.over=tcp");
    let failed = |source: &Source| {
        let scenario = source.scenario().unwrap();
        let Plan { builder, planned } = scenario.plan(1, 0, &BTreeMap::new()).unwrap();
        let mut sim = builder.build();
        sim.run_until(scenario.stop);
        let sources = planned.traffic[0].sources.iter();
        sources
            .filter(|(_, app)| sim.app::<anabranch_sim::apps::packets::PacketSource>(*app).finished.is_some())
            .count()
    };
    let on = slow.clone().set("traffic.packets.packets=100");
    assert_eq!(failed(&on), 0, "each has more to send");
    assert_eq!(failed(&on.set("traffic.packets.stop=120 s")), 11, "each has sent what it made by then");
}

#[test]
fn what_cannot_be_is_refused_at_its_place() {
    let faults = [
        ("radio.queue=0 packets", "or \"unlimited\""),
        ("radio.queue=endless", "or \"unlimited\""),
        ("radio.access_retries=256", "0..=255"),
        ("radio.access_retries=-1", "0..=255"),
        ("tcp.default.push=often", "unknown word `often`"),
        ("tcp.default.ack_on_push=1", "invalid type"),
        ("tcp.default.rfc_limits=true", "RFC 9293 section 3.8.6.3"),
        ("tcp.default.rfc_limits=no", "invalid type"),
        ("nodes.bs.count=2", "2 nodes of one name: `bs`"),
        (
            "group.multi-link nodes.shorten-paths.count=12",
            "expected 0 to 11, the nodes that can be chosen, found 12",
        ),
        ("group.multi-link nodes.shorten-paths.to=bs", "`bs` is not on the air"),
        ("group.multi-link nodes.shorten-paths.to=cd", "there is no node `cd`"),
        ("group.n1.random.count=1", "`n1` cannot be the name of a group"),
        ("link.cellular.from=multilink nodes", "there is no node `multilink nodes`"),
        ("link.cellular.to=n{i}", "both mean several nodes"),
        ("link.cellular.to=multi-link nodes", "both mean several nodes"),
        ("link.core.to=dc", "a link joins two different nodes"),
        ("traffic.packets.from=multi-link nodes", "the traffic no sender"),
        ("traffic.packets.to=n1", "paths lead to `dc`, and subflows on them"),
        ("traffic.packets.mptcp.subflows=9", "expected 1 to 8"),
        ("traffic.packets.mptcp.scheduler=lifo", "no scheduler `lifo`"),
        ("traffic.packets.mptcp.reinjection=never", "unknown word `never`"),
        ("paths.root=bs", "`bs` is not on the air"),
    ];
    for (set, message) in faults {
        let base =
            if set.contains("group.multi-link") || set.contains("paths") { cellular(1) } else { paper() };
        let base = if set.starts_with("nodes.bs") { base } else { base.set("nodes.bs.count=1") };
        let error = base.set(set).scenario().expect_err(set).to_string();
        assert!(error.contains(message), "{set}: {error}");
    }
    let host = cellular(2).set("nodes.bs.kind=host").scenario().unwrap_err();
    assert!(host.message.contains("`bs` passes nothing on"), "{host}");
}
