//! Links and events with unambiguous names and only meaningful keys.

use super::*;

#[track_caller]
fn refused(more: &str) -> String {
    let source = Source::new("bad.toml", format!("{GOOD}\n{more}\n"));
    source.scenario().expect_err(more).to_string()
}

/// Metrics, events and routes name a link by its ends.
#[test]
fn two_links_between_two_nodes_are_refused_in_either_direction() {
    let parallel = |from: &str, to: &str| {
        refused(&format!(
            "[[link]]\nname = \"second\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\""
        ))
    };
    expect![[r#"
        bad.toml:78:1: there are two links between `cn` and `gw1`
          hint: for a second path put a router in between: a `[[node]]` with `kind = "router"`, and a link on each side of it"#]]
    .assert_eq(&parallel("cn", "gw1"));
    expect![[r#"
        bad.toml:78:1: there are two links between `gw1` and `cn`
          hint: for a second path put a router in between: a `[[node]]` with `kind = "router"`, and a link on each side of it"#]]
    .assert_eq(&parallel("gw1", "cn"));
    // An override moves a link between nodes that already have one.
    let error = good().set("link.2.from=gw2").scenario().unwrap_err().to_string();
    assert!(error.contains("two links between `gw2` and `sn`"), "{error}");
}

#[test]
fn two_links_of_one_name_are_refused() {
    check(
        "name = \"radio1\"",
        "name = \"wired1\"",
        expect![[r#"
            bad.toml:41:8: there are two links of the name `wired1`
              hint: names must differ, since `--set` and `[sweep]` use them"#]],
    );
    let error = good().set("link.*.name=all").scenario().unwrap_err().to_string();
    assert!(error.contains("two links of the name `all`"), "{error}");
}

/// The metrics of each direction of each link exist in every network.
#[test]
fn every_link_has_metrics_of_its_own() {
    let scenario = good().scenario().unwrap();
    let (_, metrics) =
        good().set("stop=61 s").scenario().unwrap().run(1, 0, &BTreeMap::new()).expect("nothing is drawn");
    let places = metrics.keys().filter(|name| name.starts_with("link.") && name.ends_with(".packets"));
    assert_eq!(places.count(), scenario.edges().count());
}

/// Two nodes in range of each other may have a cable, too.
#[test]
fn a_cable_beside_the_air_has_metrics_of_its_own() {
    let pair = "[radio]\nrange = 100\n[tcp.default]\nmss = 600\n\
        [[node]]\nname = \"a\"\nposition = [0, 0]\n[[node]]\nname = \"b\"\nposition = [40, 0]\n\
        [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\
        [[transfer]]\nkind = \"tcp\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"10 kB\"\n";
    let scenario = Source::new("pair.toml", pair).scenario().unwrap_or_else(|error| panic!("{error}"));
    let (_, metrics) = scenario.run(1, 0, &BTreeMap::new()).expect("nothing is drawn");
    let value = |name: &str| metrics[name].value.expect("a figure");
    let (cable, air) = (value("link.a>b.packets"), value("link.a>b.air.packets"));
    assert!(cable.max(air) > 10.0 && cable.min(air) == 0.0, "{cable} and {air}");
    assert_eq!(value("link.a>b.busy_s") > 0.0, cable > 0.0);
    assert!(!metrics.contains_key("link.a>b.air.busy_s"));
}

/// The reference page defines each metric by the last part of its name.
#[test]
fn every_metric_is_in_the_page_about_them() {
    let page = [
        include_str!("../../../../docs/reference/results.md"),
        include_str!("../../../../docs/reference/scenario-radio.md"),
        include_str!("../../../../docs/reference/mptcp.md"),
    ]
    .concat();
    let radio = include_str!("../../../../scenarios/three-hops-radio.toml");
    let diamond = include_str!("../../../../scenarios/diamond-mptcp.toml");
    for source in [
        good().set("link.*.ecn_threshold=10 kB").set("link.*.queue=64 kB"),
        Source::new("radio.toml", radio).set("radio.forwarding=fragments"),
        Source::new("diamond.toml", diamond),
    ] {
        let scenario = source.set("stop=200 s").scenario().unwrap_or_else(|error| panic!("{error}"));
        for name in scenario.run(1, 0, &BTreeMap::new()).expect("nothing is drawn").1.keys() {
            let last = name.rsplit('.').next().expect("a name has parts");
            assert!(page.contains(&format!("`{last}`")) || page.contains(&format!(".{last}`")), "{name}");
        }
    }
}

#[test]
fn an_event_has_only_the_keys_that_its_action_reads() {
    let ends = "from = \"cn\"\nto = \"gw1\"\n";
    let rate = "rate = \"1 Mbit/s\"\n";
    let (node, how) = ("node = \"gw1\"\n", "how = \"silent\"\n");
    for (action, needed, others) in [
        ("fail-node", format!("{node}{how}"), vec![("from", ends), ("rate", rate)]),
        ("recover-node", node.to_owned(), vec![("how", how), ("from", ends), ("rate", rate)]),
        ("link-down", ends.to_owned(), vec![("node", node), ("how", how), ("rate", rate)]),
        ("link-up", ends.to_owned(), vec![("node", node), ("how", how), ("rate", rate)]),
        ("set-rate", format!("{ends}{rate}"), vec![("node", node), ("how", how)]),
    ] {
        let event = format!("[[event]]\nat = \"1 s\"\naction = \"{action}\"\n{needed}");
        let legal = Source::new("good.toml", format!("{GOOD}\n{event}")).scenario();
        legal.unwrap_or_else(|error| panic!("{event}: {error}"));
        for (key, lines) in others {
            let error = refused(&format!("{event}{lines}"));
            let message = format!("`{key}` has no meaning for the action \"{action}\"");
            assert!(error.contains(&message) && error.contains("hint: "), "{error}");
        }
    }
    expect![[r#"
        bad.toml:82:8: `rate` has no meaning for the action "fail-node"
          hint: remove it: "fail-node" reads `node`, `how`"#]]
    .assert_eq(&refused(&format!("[[event]]\nat = \"1 s\"\naction = \"fail-node\"\n{node}{rate}")));
}
