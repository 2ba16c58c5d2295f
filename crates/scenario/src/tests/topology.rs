//! Networks from GraphML files.

use super::*;

/// Four towns in the style of the Internet Topology Zoo: two edges between the first two, one edge
/// without a rate, one node without coordinates.
const TOWNS: &str = include_str!("towns.graphml");

const SCENARIO: &str = r#"stop = "20 s"
[topology]
graphml = "towns.graphml"
link = { rate = "100 Mbit/s", delay = "3 ms", queue = "50 packets" }
[[node]]
name = "client"
[[node]]
name = "server"
[[link]]
from = "client"
to = "Berlin"
rate = "10 Mbit/s"
delay = "1 ms"
[[link]]
from = "server"
to = "Rome & Ostia"
rate = "10 Mbit/s"
delay = "1 ms"
[[transfer]]
kind = "tcp"
from = "server"
to = "client"
bytes = "100 kB"
"#;

fn with(text: &str, graph: impl Into<String>) -> Source {
    let graph = graph.into();
    Source::new("towns.toml", text).with_texts(move |name| match name {
        "towns.graphml" => Ok(graph.clone()),
        _ => Err("No such file or directory (os error 2)".to_owned()),
    })
}

#[test]
fn a_graph_becomes_nodes_and_links() {
    let scenario = with(SCENARIO, TOWNS).scenario().unwrap();
    let names: Vec<&str> = scenario.nodes.iter().map(|node| &*node.name).collect();
    assert_eq!(names, ["client", "server", "Berlin", "Vienna", "Rome & Ostia", "None 3", "None 4"]);
    assert!(scenario.nodes[2..].iter().all(|node| node.kind == NodeKind::Router));
    let link = |from: &str, to: &str| {
        let [from, to] = [from, to].map(|name| scenario.find_node(name).unwrap());
        let mut found = scenario.links.iter().filter(|link| (link.from, link.to) == (from, to));
        let link = found.next().unwrap().config;
        assert!(found.next().is_none());
        link
    };
    // 523.6 km along the great circle at 199,862 km/s give 2.62 ms; two edges of 10 Gbit/s and 2.5
    // Gbit/s.
    let first = link("Vienna", "Berlin");
    assert_eq!(first.rate, 12_500_000_000);
    assert!((first.delay.as_secs_f64() - 0.002_62).abs() < 1e-5, "{:?}", first.delay);
    assert_eq!(first.queue, anabranch_sim::link::QueueLimit::Packets(50));
    // An edge without a rate, and one to a node without coordinates.
    assert_eq!(link("Vienna", "Rome & Ostia").rate, 100_000_000);
    let unplaced = link("Rome & Ostia", "None 3");
    assert_eq!((unplaced.rate, unplaced.delay.as_nanos()), (155_000_000, 3_000_000));
    assert_eq!(scenario.links.len(), 2 * (2 + 4));
    let metrics = scenario.run(1, 0, &BTreeMap::new()).unwrap().1;
    assert_eq!(metrics["transfer.transfer 1.delivered"].value, Some(1.0));
}

/// The content of the graph matters, not the file: the resolved scenario contains it without the
/// file. Whatever labels and ids a file has, no two nodes get the same name.
#[test]
fn nodes_of_one_label_have_names_of_their_own() {
    let labels = ["A", "A", "A 1", "A*", "A_", "3"];
    let nodes: String = labels
        .iter()
        .enumerate()
        .map(|(id, label)| format!("<node id=\"{id}\"><data key=\"l\">{label}</data></node>"))
        .collect();
    let edges: String = (1..labels.len()).map(|id| format!("<edge source=\"0\" target=\"{id}\"/>")).collect();
    let graph = format!(
        "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\"><key attr.name=\"label\" attr.type=\"string\" for=\"node\" id=\"l\"/>\
         <graph edgedefault=\"undirected\">{nodes}{edges}</graph></graphml>"
    );
    let text = "[topology]\ngraphml = \"towns.graphml\"\nlink = { rate = \"1 Mbit/s\", delay = \"1 ms\" }\n";
    let scenario = with(text, graph).scenario().unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<&str> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names.len(), labels.len());
    assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), labels.len(), "{names:?}");
    assert!(names.contains(&"A 0") && names.contains(&"A 1") && names.contains(&"3"), "{names:?}");
}

#[test]
fn a_resolved_scenario_has_the_graph_in_it() {
    let scenario = with(SCENARIO, TOWNS).scenario().unwrap();
    let again = Source::new("again.toml", scenario.to_toml()).scenario().unwrap();
    assert_eq!(
        (again.hash(), &again.nodes, &again.links),
        (scenario.hash(), &scenario.nodes, &scenario.links)
    );
    assert_eq!(scenario.files().count(), 0);
    let faster = with(SCENARIO, TOWNS.replace("155000000", "622000000")).scenario().unwrap();
    assert_ne!(faster.hash(), scenario.hash());
}

#[test]
fn rates_and_delays_may_be_said_for_all() {
    let source = with(SCENARIO, TOWNS).set("topology.rates=link").set("topology.delays=link");
    let scenario = source.set("topology.kind=gateway").scenario().unwrap();
    let of_graph = scenario.links.iter().filter(|link| link.config.rate != 10_000_000);
    assert!(of_graph.clone().count() == 8);
    for link in of_graph {
        assert_eq!((link.config.rate, link.config.delay.as_nanos()), (100_000_000, 3_000_000));
    }
    assert_eq!(scenario.nodes[3].kind, NodeKind::Gateway);
}

#[test]
fn what_is_wrong_in_a_topology_is_said() {
    let replaced = |what: &str, by: &str| {
        assert!(TOWNS.contains(what), "{what}");
        with(SCENARIO, TOWNS.replacen(what, by, 1))
    };
    let all = [
        with(SCENARIO, TOWNS).set("topology.graphml=absent.graphml"),
        with(SCENARIO, TOWNS).set("topology.graph=absent.graphml"),
        with(SCENARIO, TOWNS).set("topology.link.rat=1 Mbit/s"),
        with(&SCENARIO.replace("rate = \"100 Mbit/s\", ", ""), TOWNS),
        with(&SCENARIO.replace("delay = \"3 ms\", ", ""), TOWNS),
        with(&SCENARIO.replace("\"client\"", "\"Vienna\""), TOWNS),
        with(SCENARIO, "graph [ node [ id 0 ] ]"),
        with(SCENARIO, "<svg/>"),
        replaced("edgedefault=\"undirected\"", "edgedefault=\"directed\""),
        replaced("target=\"1\"", "target=\"17\""),
        replaced("<node id=\"1\">", "<node id=\"0\">"),
        replaced("<node id=\"1\">", "<node>"),
        replaced("13.41", "413.41"),
        replaced("13.41", "east"),
        replaced("155000000", "-1"),
        replaced("</graph>", ""),
    ];
    let said: Vec<String> = all.iter().map(|source| source.scenario().unwrap_err().to_string()).collect();
    expect_test::expect![[r#"
        --set topology.graphml=absent.graphml: cannot read `absent.graphml`: No such file or directory (os error 2)
          hint: a file's name is relative to the scenario
        --set topology.graph=absent.graphml: unknown key `graph`, expected one of `graphml`, `kind`, `rates`, `delays`, `link`
          hint: did you mean `graphml`?
        --set topology.link.rat=1 Mbit/s: unknown key `rat`, expected one of `name`, `from`, `via`, `to`, `only`, `enabled`, `rate`, `delay`, `trace`, `queue`, `discipline`, `ecn_threshold`, `mtu`, `loss`, `loss_factors`, `link_ack_timeout`, `arq`, `jitter`, `reordering`, `lateness`, `duplication`, `spacing`, `back`
          hint: did you mean `rate`?
        towns.toml:3:11: `towns.graphml` has no rate of the link between `Vienna` and `Rome & Ostia`
          hint: add `LinkSpeedRaw` to the file, or set `rate = "1 Gbit/s"` in `[topology.link]`
        towns.toml:3:11: `towns.graphml` has no places of the link between `Rome & Ostia` and `None 3`
          hint: add `Longitude` and `Latitude` to the file, or set `delay = "1 ms"` in `[topology.link]`
        towns.toml:3:11: there are two nodes of the name `Vienna`
          hint: names must differ, since links and transfers use them
        towns.graphml:1:1: this is not XML: unknown token
        towns.graphml:1:1: expected `<graphml>`, found `<svg>`
          hint: the Internet Topology Zoo has its networks as GraphML and as GML
        towns.graphml:12:3: the graph is directed
          hint: say edgedefault="undirected": a link has both directions
        towns.graphml:38:5: there is no node with the id `17`
        towns.graphml:21:5: there are two nodes with the id `0`
        towns.graphml:21:5: `<node>` has no `id`
        towns.graphml:18:7: 413.41 degrees: expected -180 to 180
        towns.graphml:18:7: `east` is not a number
        towns.graphml:49:7: a `LinkSpeedRaw` of -1: expected 1 bit/s and more
        towns.graphml:56:1: this is not XML: expected 'graph' tag, not 'graphml'"#]].assert_eq(&said.join("\n"));
}
