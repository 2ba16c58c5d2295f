//! Several gateways with rows of relays, several receivers, and kinds of transfers that are chosen
//! from outside.

use anabranch_core::set::Plan as How;

use super::*;
use anabranch_sim::link::QueueLimit;

const PAPER: &str = include_str!("../../../../scenarios/papers/set.toml");

fn paper() -> Source {
    Source::new("set.toml", PAPER)
}

#[track_caller]
fn read(source: &Source) -> Scenario {
    source.scenario().unwrap_or_else(|error| panic!("{error}"))
}

/// The ends of all links in the forward direction.
fn ends(scenario: &Scenario) -> Vec<String> {
    let name = |node: NodeId| scenario.nodes[node.index()].name.as_str();
    scenario.links.iter().step_by(2).map(|link| format!("{}-{}", name(link.from), name(link.to))).collect()
}

fn set(scenario: &Scenario) -> Vec<&SetSpec> {
    let specs = scenario.transfers.iter().map(|transfer| match &transfer.scheme {
        Scheme::Set(spec) => spec,
        Scheme::Tcp | Scheme::Mptcp(_) | Scheme::Coap(_) => panic!("`{}` has no request", transfer.name),
    });
    specs.collect()
}

#[test]
fn receivers_share_the_wireless_links_behind_the_last_relays() {
    let several = ["nodes.gw*.count=2", "nodes.sn{i}.count=2", "nodes.r*.count=[2, 1]"];
    let several = several.into_iter().fold(paper(), Source::set);
    let shared = several.set("link.radio*.to=r{i}-{n}").set("link.here*.enabled=true");
    let scenario = read(&shared);
    let expected =
        "cn-gw1 cn-gw2 gw1-r1-1 r1-1-r1-2 gw2-r2-1 r1-2-sn r1-2-sn2 r1-2-sn3 r2-1-sn r2-1-sn2 r2-1-sn3";
    assert_eq!(ends(&scenario).join(" "), expected);
    assert_eq!(scenario.links[21].config.queue, QueueLimit::Packets(u32::MAX));
    let names: Vec<_> = scenario.transfers.iter().map(|t| (t.name.as_str(), t.to)).collect();
    assert_eq!(names, [("update", NodeId(3)), ("other2", NodeId(4)), ("other3", NodeId(5))]);
    for spec in set(&scenario) {
        assert_eq!(spec.gateways, Gateways::These(vec![NodeId(1), NodeId(2)]));
    }
    assert_eq!(read(&Source::new("again.toml", scenario.to_toml())), scenario);
    let empty = shared.set("nodes.r*.count=[2, 0]").scenario().unwrap_err().to_string();
    assert!(empty.contains("row 2 of `r{i}-{j}` has no node"), "{empty}");
}

#[test]
fn a_transfer_for_each_node_of_a_group_of_nodes() {
    let text = |more: &str| {
        format!(
            "[[node]]\nname = \"hub\"\nkind = \"router\"\n[[nodes]]\nname = \"h{{i}}\"\nkind = \"host\"\ncount = 3\nfirst = 7\n\
             [[link]]\nfrom = \"h{{i}}\"\nto = \"hub\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\
             [[transfer]]\nkind = \"tcp\"\nfrom = \"h{{i}}\"\nto = \"hub\"\nbytes = \"1 kB\"\n{more}\n"
        )
    };
    let source = |more: &str| Source::new("each.toml", text(more));
    let scenario = read(&source("name = \"from {i}\""));
    let all: Vec<_> = scenario.transfers.iter().map(|t| (t.name.as_str(), t.from, t.port)).collect();
    let expected = [("from 7", NodeId(1), 25000), ("from 8", NodeId(2), 25001), ("from 9", NodeId(3), 25002)];
    assert_eq!(all, expected);
    assert_eq!(read(&Source::new("again.toml", scenario.to_toml())), scenario);
    for (more, message) in [
        ("", "3 transfers of one name: `transfer 1`"),
        ("name = \"x\"", "set `name = \"x {i}\"`"),
        ("name = \"x {i}\"\ncount = 2", "and so no `count`"),
    ] {
        let error = source(more).scenario().expect_err(more).to_string();
        assert!(error.contains(message), "{message}: {error}");
    }
    assert_eq!(read(&source("name = \"x\"").set("nodes.h*.count=1")).transfers.len(), 1);
    assert_eq!(read(&source("name = \"x\"").set("nodes.h*.count=0")).transfers.len(), 0);
}

/// Keys of another kind in the file are ignored if the kind is chosen from outside, and refused if
/// the file chooses it.
#[test]
fn a_kind_that_is_chosen_leaves_aside_what_it_does_not_read() {
    let plan = |scheme: &str| {
        let scenario = read(&paper().set(format!("scheme={scheme}")));
        assert_eq!(read(&Source::new("again.toml", scenario.to_toml())), scenario);
        (set(&scenario)[0].plan, set(&scenario)[0].gateways.clone(), scenario.routes.len())
    };
    assert_eq!(plan("set"), (How::Stripe, Gateways::These(vec![NodeId(1), NodeId(2), NodeId(3)]), 0));
    assert_eq!(plan("split"), (How::Split, Gateways::These(vec![NodeId(1)]), 0));
    assert_eq!(plan("end-to-end"), (How::EndToEnd, Gateways::All, 1));
    let said = paper().set("transfer.*.kind=end-to-end").set("transfer.update.gateways=1");
    let error = said.scenario().unwrap_err();
    assert!(error.message.contains("`gateways` has no meaning for this kind of transfer"), "{error}");
    let file = PAPER.replacen("kind = \"set\"\nfrom", "kind = \"end-to-end\"\nfrom", 1);
    let error = Source::new("file.toml", file).scenario().unwrap_err();
    assert!(error.message.contains("has no meaning for this kind of transfer"), "{error}");
    let axis = format!("{PAPER}\n[sweep]\n\"transfer.update.kind\" = [\"set\", \"split\", \"end-to-end\"]\n");
    let points = Source::new("axis.toml", axis).points().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(points.len(), 3);
}

#[test]
fn gateways_go_by_patterns_and_names_of_nodes() {
    let these = |names: &str| {
        let source = paper().set(format!("transfer.update.gateways={names}"));
        source.scenario().map(|scenario| set(&scenario)[0].gateways.clone())
    };
    let all = |numbers: &[u32]| Gateways::These(numbers.iter().map(|number| NodeId(*number)).collect());
    assert_eq!(these("[\"gw*\"]"), Ok(all(&[1, 2, 3])));
    assert_eq!(these("[\"gw3\", \"gw1\"]"), Ok(all(&[3, 1])));
    for (names, message) in [
        ("[\"gw{i}\", \"gw1\"]", "`gw1` is named twice"),
        ("[\"*\"]", "`cn` is not a gateway"),
        ("[\"g{i}\"]", "there is no node `g{i}`"),
        ("[\"x*\"]", "no node's name is like `x*`"),
        ("[\"sn{i}\"]", "SET needs at least one gateway"),
    ] {
        let error = these(names).expect_err(names);
        assert!(error.message.contains(message), "{names}: {error}");
    }
}

#[test]
fn the_papers_network_can_be_changed_from_outside() {
    let far =
        paper().set("nodes.r*.count=[1, 0, 2]").set("link.radio3-*.rate=56 kbit/s").set("wireless_loss=0.1");
    let scenario = read(&far);
    let rates: Vec<u64> = scenario.links.iter().step_by(2).map(|link| link.config.rate / 1000).collect();
    assert_eq!(rates, [100_000, 100_000, 100_000, 256, 256, 256, 56, 56, 56]);
    let channel = [
        "link.radio*.enabled=false",
        "link.here*.enabled=false",
        "tcp.default.mss=1215",
        "radio={ range = \"100 m\" }",
        "nodes.sn.place={ at = [[0, 0]] }",
        "nodes.gw*.place={ at = [[40, 0], [-20, 34.641], [-20, -34.641]] }",
    ];
    let radio = read(&channel.into_iter().fold(paper(), Source::set));
    // A word undoes the settings of another word.
    assert!(read(&paper().set("scheme=split").set("scheme=set")) == read(&paper()));
    assert_eq!((radio.links.len(), radio.radio.as_ref().map(|radio| radio.places.len())), (6, Some(4)));
    assert_eq!(read(&paper().set("ip=4")).links[6].config.mtu, 121);
    for scenario in [scenario, radio] {
        assert_eq!(read(&Source::new("again.toml", scenario.to_toml())), scenario);
    }
}

/// Split TCP has one connection, through the nearest of the named gateways: a number above 1 has no
/// meaning.
#[test]
fn split_takes_one_gateway() {
    let network = include_str!("../../../../scenarios/three-gateways.toml");
    let file = |gateways: &str| {
        Source::new(
            "net.toml",
            network.replacen("kind = \"set\"", &format!("kind = \"set\"\ngateways = {gateways}"), 1),
        )
    };
    let split = |source: Source| source.set("transfer.update.kind=split").scenario();
    assert_eq!(set(&split(file("1")).expect("one"))[0].gateways, Gateways::AtMost(1));
    // The file's keys for SET are ignored, and the file remains valid for comparisons.
    let chosen = split(file("3")).expect("the kind is chosen from outside");
    assert_eq!(set(&chosen)[0].gateways, Gateways::All);
    assert_eq!(set(&split(file("[\"gw3\"]")).expect("a name"))[0].gateways, Gateways::These(vec![NodeId(3)]));
    let error = split(file("3").set("transfer.update.gateways=2")).expect_err("two of one");
    assert!(error.message.contains("2 gateways have no meaning for kind \"split\""), "{error}");
    assert!(error.hint.is_some_and(|hint| hint.contains("nearest")));
}
