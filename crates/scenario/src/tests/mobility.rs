//! Nodes that move.

use super::*;
use anabranch_sim::radio::Position;

const MOBILE: &str = r#"stop = "200 s"
network = { ip = 4 }
wifi = { range = "250 m" }
aodv = {}
[[nodes]]
name = "n{i}"
count = 20
mobility = { random-waypoint = { width = 700, height = 300, speed = ["1 m/s", "20 m/s"], pause = "10 s" } }
[[traffic]]
name = "readings"
kind = "cbr"
from = ["n1", "n2", "n3"]
to = "n20"
payload = "64 B"
interval = "1 s"
start = "10 s"
stop = "190 s"
"#;

const MOVES: &str = "$node_(0) set X_ 0.0\n$node_(0) set Y_ 10.0\n$node_(1) set X_ 90.0\n$node_(1) set Y_ 20.0\n\
    $ns_ at 1.0 \"$node_(1) setdest 400.0 20.0 1.0\"\n$node_(2) set X_ 150.0\n$node_(2) set Y_ 0.0\n";

/// The scenario with another mobility.
fn with(mobility: &str) -> Source {
    let old = MOBILE.lines().find(|line| line.starts_with("mobility")).unwrap();
    reading(Source::new("mobile.toml", MOBILE.replace(old, mobility)))
}

fn reading(source: Source) -> Source {
    source.with_texts(|name| match name {
        "moves.tcl" => Ok(MOVES.to_owned()),
        "bad.tcl" => Ok(format!("{MOVES}$ns_ at 2.0 \"$node_(1) setdest 400.0 20.0\"\n")),
        "empty.tcl" => Ok("# nothing\n".to_owned()),
        _ => Err("No such file or directory (os error 2)".to_owned()),
    })
}

fn figure(source: &Source, run: u64, name: &str) -> f64 {
    let scenario = source.scenario().unwrap();
    scenario.run(1, run, &BTreeMap::new()).unwrap().1[name].value.unwrap()
}

#[test]
fn a_file_of_moving_nodes_runs() {
    let source = Source::new("mobile.toml", MOBILE);
    let scenario = source.scenario().unwrap();
    assert_eq!(scenario.mobility.len(), 20);
    let places = |seed, run| scenario.draw(seed, run).unwrap().places;
    assert_eq!(places(1, 3), places(1, 3));
    assert_ne!(places(1, 3), places(1, 4));
    assert_ne!(places(1, 3), places(2, 3));
    for run in 0..2 {
        let ratio = figure(&source, run, "traffic.readings.delivery_ratio");
        assert!(ratio > 0.9, "run {run}: {ratio}");
        assert_eq!(ratio, figure(&source, run, "traffic.readings.delivery_ratio"));
    }
    let metrics = scenario.run(1, 0, &BTreeMap::new()).unwrap().1;
    assert!(metrics.contains_key("wifi.n7.routing_packets"));
    assert!(
        !metrics.keys().any(|name| name.starts_with("link.")),
        "there are 380 links, and few carry anything"
    );
    // The resolved file contains what was given, and nothing that was drawn.
    let again = Source::new("again.toml", scenario.to_toml()).scenario().unwrap();
    assert_eq!((again.hash(), again.resolved()), (scenario.hash(), scenario.resolved()));
    assert!(scenario.to_toml().contains("random-waypoint") && !scenario.to_toml().contains("position"));
}

#[test]
fn the_mobile_scenario_delivers() {
    let source = Source::new("mobile.toml", include_str!("../../../../scenarios/mobile.toml"));
    let source = source.set("stop=45 s").set("traffic.readings.stop=40 s");
    assert_eq!(source.scenario().unwrap().mobility.len(), 50);
    let ratio = figure(&source, 0, "traffic.readings.delivery_ratio");
    assert!(ratio > 0.85, "{ratio}");
}

/// A single node without a position has one in each run that the file does not mention.
#[test]
fn a_node_that_moves_need_not_have_a_position() {
    let node = "[[node]]\nname = \"walker\"\nkind = \"node\"\nmobility = { gauss-markov = { width = 700, height = 300, \
        speed = \"2 m/s\", deviation = \"50 cm/s\", memory = 0.8 } }\n";
    let scenario = Source::new("walker.toml", format!("{MOBILE}{node}")).scenario().unwrap();
    let walker = scenario.find_node("walker").unwrap();
    let place = |run| {
        let places = scenario.draw(1, run).unwrap().places;
        places.iter().find(|(node, _)| *node == walker).unwrap().1
    };
    assert_ne!(place(0), place(1));
    assert_eq!(scenario.resolved().node[0].position, None);
    // With a position it starts there in each run.
    let set = "node.walker.position=[20, 30]";
    let placed = Source::new("walker.toml", format!("{MOBILE}{node}")).set(set).scenario().unwrap();
    let places = placed.draw(1, 7).unwrap().places;
    assert!(places.contains(&(walker, Position::new(20.0, 30.0))));
    assert_eq!(placed.resolved().node[0].position, Some([20.0, 30.0]));
    placed.run(1, 0, &BTreeMap::new()).unwrap();
}

#[test]
fn nodes_that_stand_still_are_connected_whatever_others_do() {
    let still =
        "[[nodes]]\nname = \"fixed{i}\"\ncount = 8\nplace = { random = { width = 700, height = 300 } }\n";
    let scenario = Source::new("both.toml", format!("{MOBILE}{still}")).scenario().unwrap();
    for run in 0..20 {
        let drawn = scenario.draw(1, run).unwrap();
        let fixed: Vec<Position> = drawn.places[20..].iter().map(|(_, place)| *place).collect();
        assert_eq!(fixed.len(), 8);
        assert!(deployment::hops(&fixed, 250.0, &[0]).iter().all(Option::is_some), "run {run}");
    }
    // Movers with a placement start there.
    let placed =
        MOBILE.replace("count = 20\n", "count = 20\nplace = { grid = { columns = 5, spacing = 60 } }\n");
    let scenario = Source::new("grid.toml", placed).scenario().unwrap();
    assert_eq!(scenario.draw(1, 5).unwrap().places[6].1, Position::new(60.0, 60.0));
    scenario.run(1, 0, &BTreeMap::new()).unwrap();
}

#[test]
fn a_movement_file_says_where_nodes_are() {
    let source =
        with("mobility = { setdest = \"moves.tcl\" }").set("nodes.0.count=3").set("traffic.0.from=[\"n1\"]");
    let scenario = source.set("traffic.0.to=n3").scenario().unwrap();
    assert_eq!(scenario.files().collect::<Vec<_>>(), ["moves.tcl"]);
    let places: Vec<Position> = scenario.draw(1, 0).unwrap().places.iter().map(|(_, place)| *place).collect();
    assert_eq!(places, [Position::new(0.0, 10.0), Position::new(90.0, 20.0), Position::new(150.0, 0.0)]);
    // The content is part of a run's identity, like that of a transferred file.
    let root =
        |content: &'static str| scenario.root(&BTreeMap::from([("moves.tcl".to_owned(), content.into())]));
    assert_ne!(root("a").run(1, 0), root("b").run(1, 0));
    // Starting from another node of the file.
    let shifted = with("mobility = { setdest = { file = \"moves.tcl\", node = 1 } }").set("nodes.0.count=2");
    let scenario = shifted.set("traffic.0.from=n1").set("traffic.0.to=n2").scenario().unwrap();
    assert_eq!(scenario.draw(1, 0).unwrap().places[0].1, Position::new(90.0, 20.0));
}

/// A node walks away from the border router along a row of routers, and its readings still arrive.
#[test]
fn rpl_follows_a_node_over_802_15_4() {
    let file = "stop = \"700 s\"\nradio = { range = \"60 m\" }\npaths = { root = \"border\" }\n\
        [[node]]\nname = \"border\"\nkind = \"node\"\nposition = [0, 0]\n\
        [[nodes]]\nname = \"r{i}\"\ncount = 4\nplace = { line = { start = [50, 0], step = [50, 0] } }\n\
        [[node]]\nname = \"walker\"\nkind = \"node\"\nmobility = { setdest = \"walk.tcl\" }\n\
        [[traffic]]\nname = \"readings\"\nkind = \"cbr\"\nfrom = \"walker\"\nto = \"border\"\npayload = \"20 B\"\n\
        interval = \"2 s\"\nstart = \"100 s\"\nstop = \"690 s\"\n";
    let walk = "$node_(0) set X_ 10\n$node_(0) set Y_ 20\n$ns_ at 100.0 \"$node_(0) setdest 200 20 0.35\"\n";
    let source = Source::new("walk.toml", file).with_texts(move |_| Ok(walk.to_owned()));
    let ratio = figure(&source, 0, "traffic.readings.delivery_ratio");
    assert!(ratio > 0.75, "{ratio}");
}

#[test]
fn what_is_wrong_is_said_where_it_stands() {
    let model =
        |keys: &str| format!("mobility = {{ random-waypoint = {{ width = 700, height = 300, {keys} }} }}");
    let walk = |keys: &str| {
        format!("mobility = {{ gauss-markov = {{ width = 700, height = 300, speed = \"2 m/s\", {keys} }} }}")
    };
    let all = [
        with(&model("")),
        with(&model("speed = [\"5 m/s\"]")),
        with(&model("speed = [1, 20]")),
        with(&model("speed = [\"20 m/s\", \"1 m/s\"]")),
        with(&model("speed = [\"0 m/s\", \"20 m/s\"]")),
        with(&model("speed = [\"0 m/s\", \"0 m/s\"]")),
        with(&model("speed = [\"1 m/s\", \"40000 km/h\"]")),
        with(&model("speed = [\"1 m/s\", \"2 m/s\"], corner = [1e7, 0]")),
        with("mobility = { random-waypoint = { width = 0, height = 3, speed = [\"1 m/s\", \"2 m/s\"] } }"),
        with("mobility = { random-walk = {} }"),
        with(&walk("deviation = \"1 m/s\"")),
        with(&walk("deviation = \"1 m/s\", memory = 1.5")),
        with(&walk("deviation = \"1 m/s\", memory = 0.5, turn_deg = 200")),
        with(&walk("deviation = \"1 m/s\", memory = 0.5, interval = \"1 us\"")),
        with("mobility = { setdest = \"moves.tcl\" }"),
        with("mobility = { setdest = \"absent.tcl\" }"),
        with("mobility = { setdest = \"bad.tcl\" }"),
        with("mobility = { setdest = \"empty.tcl\" }"),
        with("mobility = { setdest = { file = \"moves.tcl\", nod = 3 } }"),
        with("mobility = { setdest = \"moves.tcl\" }\nplace = { line = { step = [1, 0] } }"),
        Source::new("mobile.toml", MOBILE).set("aodv=off"),
        Source::new("mobile.toml", MOBILE).set("aodv=off").set("wifi=off"),
        Source::new("mobile.toml", MOBILE)
            .set("aodv=off")
            .set("wifi=off")
            .set("radio.range=100 m")
            .set("network.ip=6"),
        Source::new("mobile.toml", MOBILE).set("nodes.0.count=1001"),
    ];
    let said: Vec<String> = all.iter().map(|source| source.scenario().unwrap_err().to_string()).collect();
    expect_test::expect![[r#"
        mobile.toml:8:32: missing key `speed`
        mobile.toml:8:69: expected two speeds, the least and the greatest, found 1
        mobile.toml:8:70: `1` has no unit; expected a speed such as "5 m/s" or "30 km/h"
          hint: add the unit, in one string with the number
        mobile.toml:8:69: the least speed, 20 m/s, is above the greatest, 1 m/s
          hint: give the lower speed first
        mobile.toml:8:69: with a least speed of 0 there is no stationary distribution to start from: the mean speed falls to 0 as time goes on
          hint: give a least speed such as "1 m/s", or where the nodes start by `place` or `position`
        mobile.toml:8:69: a node that moves has a speed above 0
          hint: remove `mobility` for a node that does not move
        mobile.toml:8:69: expected at most 10,000 m/s
        mobile.toml:8:98: the rectangle is not within 10,000 km of the origin
        mobile.toml:8:42: expected 1 m to 10,000 km
        mobile.toml:8:14: unknown word `random-walk`, expected one of `random-waypoint`, `gauss-markov`, `setdest`
        mobile.toml:8:29: missing key `memory`
        mobile.toml:8:105: expected 0 to 1
        mobile.toml:8:121: expected 0 to 180
        mobile.toml:8:121: expected 1 ms or more
        mobile.toml:8:24: `moves.tcl` has no movements of a node 3
          hint: it has nodes from 0 to 2
        mobile.toml:8:24: cannot read `absent.tcl`: No such file or directory (os error 2)
          hint: a file's name is relative to the scenario
        bad.tcl:8:1: `$ns_ at 2.0 "$node_(1) setdest 400.0 20.0"` is no movement
          hint: expected `$node_(3) set X_ 12.0` or `$ns_ at 2.0 "$node_(3) setdest 90.0 44.9 1.37"`
        mobile.toml:8:24: `empty.tcl` has no movements of a node 0
          hint: it has no nodes
        mobile.toml:8:24: expected the name of a movement file, or a table with `file` and `node`
        mobile.toml:8:24: `moves.tcl` says where the node starts, and so does the scenario
          hint: remove `position` and `place`
        mobile.toml:8:12: static routes do not follow a node that moves
          hint: add `[aodv]`, and `ip = 4` in `[network]`
        mobile.toml:8:12: a node that moves is on the air, and there is no radio
          hint: add `[radio]` or `[wifi]`
        mobile.toml:8:12: static routes do not follow a node that moves
          hint: add `[paths]` with its `root`, for RPL
        mobile.toml:8:12: a network in which nodes move has at most 1000 nodes on the air, and this one 1001"#]].assert_eq(&said.join("\n"));
}
