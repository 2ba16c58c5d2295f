//! The animated picture: one element for each packet on a link, at its time.

use anabranch_view::picture::{MOST, svg};
use anabranch_view::replay::{Part, Replay};
use roxmltree::{Document, Node};

use crate::log::{data, head};

/// Two packets, of which the first is lost and sent again; node `b` dies at the end.
fn replay() -> Replay {
    let mut log = head();
    log.extend(data(0));
    log.extend([16, 5, 0, 2]);
    log.extend(data(10));
    log.extend([16, 0, 0, 2, 20, 0, 0, 0, 100]);
    log.extend([18, 50, 0, 2, 1]);
    log.extend([17, 60, 0, 2]);
    log.extend([6, 2, 0, 1, 50, 0, 19, 10, 9]);
    log.extend([16, 1, 0, 2]);
    log.extend([17, 40, 0, 2]);
    Replay::read(log.as_slice(), Part::default()).expect("a log")
}

/// The numbers of an attribute such as `keyTimes`.
fn numbers(node: Node, name: &str) -> Vec<f64> {
    let text = node.attribute(name).expect(name);
    text.split(';').map(|number| number.parse().expect("a number")).collect()
}

#[test]
fn every_packet_moves_once_and_what_is_lost_gets_a_cross() {
    let replay = replay();
    let text = svg(&replay, 10.0).expect("it is small");
    let document = Document::parse(&text).expect("it is XML");
    let moves: Vec<Node> = document.descendants().filter(|node| node.has_tag_name("animateMotion")).collect();
    assert_eq!(moves.len(), replay.flights.len());
    // Sent 5 to 55 (lost half-way), 105 to 115 and 116 to 156, of 156 ns; 8 % are the rest at the
    // end.
    let share = |at: f64| (at / 156.0 * 0.92 * 1e4).round() / 1e4;
    for (node, (leaves, end, reach)) in
        moves.iter().zip([(5.0, 55.0, 0.5), (105.0, 115.0, 1.0), (116.0, 156.0, 1.0)])
    {
        assert_eq!(numbers(*node, "keyTimes"), [0.0, share(leaves), share(end), 1.0]);
        assert_eq!(numbers(*node, "keyPoints"), [0.0, 0.0, reach, reach]);
        assert_eq!((node.attribute("dur"), node.attribute("repeatCount")), (Some("10s"), Some("indefinite")));
    }
    let crosses = document.descendants().filter(|node| node.attribute("stroke") == Some("var(--lost)"));
    assert_eq!(crosses.count(), 1);
    let colours: Vec<&str> = moves.iter().filter_map(|node| node.parent()?.attribute("fill")).collect();
    assert_eq!(colours, ["var(--data)", "var(--data)", "var(--again)"]);
    for animated in document.descendants().filter(|node| node.has_attribute("keyTimes")) {
        let times = numbers(animated, "keyTimes");
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]) && times[0] == 0.0, "{times:?}");
    }
}

#[test]
fn names_are_text_and_nothing_is_loaded() {
    let mut replay = replay();
    replay.nodes[0].name = "<script>\"&\u{1}".to_owned();
    replay.run.name = "a\" onload=\"x".to_owned();
    let text = svg(&replay, 10.0).expect("it is small");
    let document = Document::parse(&text).expect("it is XML");
    assert!(document.descendants().any(|node| node.text() == Some("<script>\"&")));
    assert_eq!(document.root_element().attribute("onload"), None);
    assert_eq!(text.matches("http").count(), 1, "the name of the format is the only address");
}

#[test]
fn a_run_that_is_too_large_is_refused() {
    let mut replay = replay();
    replay.flights = vec![replay.flights[0]; MOST + 1];
    assert!(svg(&replay, 10.0).expect_err("it is large").contains("4001"));
}
