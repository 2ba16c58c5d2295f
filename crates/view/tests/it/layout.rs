//! Places of nodes on the map, as pages have them.

use anabranch_view::log::{Flow, Link, Medium, Node};
use anabranch_view::page;
use anabranch_view::replay::Replay;
use serde_json::Value;

/// A network of nodes with these names, links between them both ways, and a flow from one node to
/// another.
fn network(names: &str, links: &str, flow: Option<[&str; 2]>) -> Replay {
    let names: Vec<&str> = names.split(' ').collect();
    let number = |name: &str| names.iter().position(|other| *other == name).expect(name) as u32;
    let node = |name: &&str| Node { name: (*name).to_owned(), kind: String::new(), position: None };
    let both = links.split(' ').filter_map(|link| link.split_once('-')).flat_map(|(a, b)| [(a, b), (b, a)]);
    let (over, rate, delay) = (Medium::Cable, 1_000_000, 5_000_000);
    let link = |(from, to)| Link { from: number(from), to: number(to), over, rate, delay };
    let flow = flow.map(|[from, to]| {
        let (source, destination) = (number(from), Some(number(to)));
        Flow { source, destination, protocol: 6, ports: (80, 81) }
    });
    Replay {
        nodes: names.iter().map(node).collect(),
        links: both.map(link).collect(),
        subflows: flow.iter().map(|_| None).collect(),
        flows: flow.into_iter().collect(),
        ..Replay::default()
    }
}

/// What a page is told, as JSON.
pub(crate) fn facts(replay: &Replay) -> Value {
    let page = page::html(replay);
    let (_, rest) = page.split_once("id=\"facts\">").expect("the facts");
    let (facts, _) = rest.split_once("</script>").expect("their end");
    serde_json::from_str(facts).expect("JSON")
}

/// The places of all nodes: names, and their distance from the left and from the top of the map, in
/// hundredths of its width and height.
fn places(replay: &Replay) -> Vec<(String, i64, i64)> {
    let facts = facts(replay);
    let nodes = facts["nodes"].as_array().expect("nodes");
    let of = |axis: &str| nodes.iter().map(|n| n[axis].as_f64().expect(axis)).collect::<Vec<_>>();
    let share = |all: &[f64], i: usize| {
        let (low, high) = all.iter().fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
        ((all[i] - low) / (high - low).max(1e-9) * 100.0).round() as i64
    };
    let (x, y) = (of("x"), of("y").iter().map(|y| -y).collect::<Vec<_>>());
    let name = |i: usize| nodes[i]["name"].as_str().expect("a name").to_owned();
    (0..nodes.len()).map(|i| (name(i), share(&x, i), share(&y, i))).collect()
}

#[track_caller]
fn stand(replay: &Replay, expected: &[(&str, i64, i64)]) {
    let expected: Vec<_> = expected.iter().map(|(name, x, y)| ((*name).to_owned(), *x, *y)).collect();
    assert_eq!(places(replay), expected);
}

#[test]
fn a_chain_is_a_row_from_where_the_traffic_begins() {
    let chain = network("a b c d", "c-d b-c a-b", Some(["d", "b"]));
    stand(&chain, &[("a", 100, 0), ("b", 67, 0), ("c", 33, 0), ("d", 0, 0)]);
    let silent = network("a b c", "a-b b-c", None);
    stand(&silent, &[("a", 0, 0), ("b", 50, 0), ("c", 100, 0)]);
    let from_the_middle = network("a b c", "a-b b-c", Some(["b", "a"]));
    stand(&from_the_middle, &[("a", 0, 0), ("b", 50, 0), ("c", 100, 0)]);
}

#[test]
fn the_ends_of_a_dumbbell_stand_opposite_each_other() {
    let links = "s1-l s2-l s3-l l-r r-d1 r-d2 r-d3";
    let dumbbell = network("s1 s2 s3 l r d1 d2 d3", links, Some(["s2", "d2"]));
    let left = [("s1", 0, 0), ("s2", 0, 50), ("s3", 0, 100), ("l", 33, 50), ("r", 67, 50)];
    let right = [("d1", 100, 0), ("d2", 100, 50), ("d3", 100, 100)];
    stand(&dumbbell, &[&left[..], &right[..]].concat());
    // Traffic the other way turns it round.
    let turned = places(&network("s1 s2 s3 l r d1 d2 d3", links, Some(["d1", "s1"])));
    assert_eq!((turned[0].1, turned[5].1), (100, 0));
}

#[test]
fn hosts_along_a_chain_stand_above_and_below_it() {
    let links = "a-r1 r1-r2 r2-r3 r3-z r2-m r2-n";
    let parking_lot = network("a r1 r2 r3 z m n", links, Some(["a", "z"]));
    let row = [("a", 0, 50), ("r1", 25, 50), ("r2", 50, 50), ("r3", 75, 50), ("z", 100, 50)];
    stand(&parking_lot, &[&row[..], &[("m", 50, 0), ("n", 50, 100)]].concat());
}

#[test]
fn a_diamond_and_three_gateways_are_symmetric_and_in_order_of_declaration() {
    let diamond = network("s a b t", "s-b s-a b-t a-t", Some(["s", "t"]));
    stand(&diamond, &[("s", 0, 50), ("a", 50, 0), ("b", 50, 100), ("t", 100, 50)]);
    let links = "cn-gw3 cn-gw1 cn-gw2 gw1-sn gw2-sn gw3-sn";
    let gateways = network("cn gw1 gw2 gw3 sn", links, Some(["cn", "gw2"]));
    let middle = [("gw1", 50, 0), ("gw2", 50, 50), ("gw3", 50, 100)];
    stand(&gateways, &[&[("cn", 0, 50)][..], &middle[..], &[("sn", 100, 50)]].concat());
}

#[test]
fn hosts_beside_the_first_sender_stand_beside_it() {
    let links = "s1-l s2-l l-a l-b a-r b-r r-d1 r-d2";
    let two_paths = network("s1 s2 l a b r d1 d2", links, Some(["s1", "d1"]));
    let left = [("s1", 0, 0), ("s2", 0, 100), ("l", 25, 50), ("a", 50, 0), ("b", 50, 100)];
    stand(&two_paths, &[&left[..], &[("r", 75, 50), ("d1", 100, 0), ("d2", 100, 100)]].concat());
}

#[test]
fn a_star_is_a_circle_that_begins_with_the_first_sender() {
    let star = network("hub a b c d", "hub-a hub-b hub-c hub-d", Some(["b", "hub"]));
    stand(&star, &[("hub", 50, 50), ("a", 50, 100), ("b", 0, 50), ("c", 50, 0), ("d", 100, 50)]);
}

#[test]
fn parents_of_a_tree_stand_in_the_middle_of_their_children() {
    let links = "root-a root-b a-a1 a-a2 b-b1 b-b2 a1-x a1-y";
    let expected = [
        ("root", 0, 59),
        ("a", 33, 31),
        ("b", 33, 88),
        ("a1", 67, 13),
        ("a2", 67, 50),
        ("b1", 67, 75),
        ("b2", 67, 100),
        ("x", 100, 0),
        ("y", 100, 25),
    ];
    for flow in [Some(["root", "x"]), Some(["y", "root"])] {
        stand(&network("root a b a1 a2 b1 b2 x y", links, flow), &expected);
    }
}

#[test]
fn links_that_cross_are_untangled_and_no_link_runs_through_a_node() {
    let crossed = network("s a b c d t", "s-a s-b a-d b-c c-t d-t", Some(["s", "t"]));
    let places_of = places(&crossed);
    assert_eq!((places_of[1].2, places_of[2].2), (places_of[4].2, places_of[3].2));
    // In a full mesh the nodes beside the first have links to each other.
    let mesh = places(&network("a b c d", "a-b a-c a-d b-c b-d c-d", Some(["a", "d"])));
    let (b, c, d) = (mesh[1].1, mesh[2].1, mesh[3].1);
    assert!(b == d && c > b, "{mesh:?}");
}

#[test]
fn parts_without_a_link_between_them_stand_one_below_the_other() {
    let apart = network("a b c d alone", "a-b c-d", Some(["c", "d"]));
    let places = places(&apart);
    let down: Vec<i64> = places.iter().map(|(_, _, y)| *y).collect();
    assert_eq!(down, [50, 50, 0, 0, 100]);
}

#[test]
fn nodes_with_positions_keep_them_and_the_others_stand_beside_them() {
    let mut said = network("s a b t", "s-a s-b a-t b-t", Some(["s", "t"]));
    let positions = [(0.0, 0.0), (30.0, 7.0), (40.0, -9.0), (90.0, 20.0)];
    for (node, position) in said.nodes.iter_mut().zip(positions) {
        node.position = Some(position);
    }
    let of = |replay: &Replay| {
        let facts = facts(replay);
        let nodes = facts["nodes"].as_array().expect("nodes").iter();
        let axis = |node: &Value, axis: &str| node[axis].as_f64().expect("a number");
        nodes.map(|node| (axis(node, "x"), axis(node, "y"))).collect::<Vec<_>>()
    };
    assert_eq!(of(&said), positions);
    said.nodes[1].position = None;
    said.nodes[3].position = None;
    let some = of(&said);
    assert_eq!((some[0], some[2]), (positions[0], positions[2]));
    // One above the other, left of the others.
    assert!(some[1].0 == some[3].0 && some[1].0 < 0.0 && some[1].1 > some[3].1, "{some:?}");
    assert_eq!(facts(&said)["metres"], true);
}
