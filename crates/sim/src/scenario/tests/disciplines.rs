//! Queue disciplines: what flows see of them.

use anabranch_core::time::Duration;

use super::*;
use crate::link::discipline::DisciplineConfig;
use crate::scenario::record::Metrics;

/// `flows` transfers without end over 10 Mbit/s and 40 ms there and back, for 20 s, behind a queue of 1,000 packets.
fn bottleneck(flows: u32, discipline: &str, ecn: &str) -> Metrics {
    let text = format!(
        r#"
        stop = "20 s"
        [tcp.default]
        congestion = "cubic"
        ecn = "{ecn}"
        [[node]]
        name = "a"
        [[node]]
        name = "r"
        kind = "router"
        [[node]]
        name = "b"
        [[link]]
        name = "access"
        from = "a"
        to = "r"
        rate = "1 Gbit/s"
        delay = "1 ms"
        queue = "10000 packets"
        [[link]]
        name = "bottleneck"
        from = "r"
        to = "b"
        rate = "10 Mbit/s"
        delay = "19 ms"
        queue = "1000 packets"
        discipline = {discipline}
        [[transfer]]
        name = "flow{{i}}"
        count = {flows}
        kind = "tcp"
        from = "a"
        to = "b"
        "#
    );
    let scenario = Source::new("bottleneck.toml", text).scenario().unwrap_or_else(|error| panic!("{error}"));
    scenario.run(1, 0, &BTreeMap::new()).unwrap().1
}

/// Mean of the flows' last smoothed round trips, in seconds; bit/s of all.
fn seen(metrics: &Metrics, flows: u32) -> (f64, f64) {
    let of = |name: &str| -> f64 {
        let flow = |i| metrics[&format!("transfer.flow{i}.{name}")].value.expect("it has one");
        (1..=flows).map(flow).sum()
    };
    (of("srtt_s") / f64::from(flows), of("goodput_bit_per_s"))
}

#[test]
fn codel_keeps_the_queue_short_and_the_link_busy() {
    for flows in [1, 4, 16] {
        let (long, full) = seen(&bottleneck(flows, "\"drop-tail\"", "off"), flows);
        let metrics = bottleneck(flows, "\"codel\"", "off");
        let (short, goodput) = seen(&metrics, flows);
        assert!(long > 0.3, "{flows} flows fill a queue that drops from its tail: {long} s");
        assert!(short < 0.04 + 0.03, "{flows} flows: {short} s");
        assert!(goodput > 0.9 * full && goodput > 8.5e6, "{flows} flows: {goodput} bit/s of {full}");
        assert!(metrics["link.r>b.dropped_early"].value > Some(0.0));
        assert_eq!(metrics["link.r>b.ecn_marked"].value, Some(0.0));
        assert_eq!(metrics["link.b>r.dropped_early"].value, Some(0.0), "the way back is idle");
    }
}

#[test]
fn codel_drops_nothing_of_flows_that_understand_marks() {
    let metrics = bottleneck(4, "\"codel\"", "request");
    let (srtt, goodput) = seen(&metrics, 4);
    assert!(srtt < 0.07 && goodput > 8.5e6, "{srtt} s, {goodput} bit/s");
    assert_eq!(metrics["link.r>b.dropped_early"].value, Some(0.0));
    assert!(metrics["link.r>b.ecn_marked"].value > Some(10.0));
    let again: f64 =
        (1..=4).map(|i| metrics[&format!("transfer.flow{i}.retransmissions")].value.unwrap()).sum();
    assert_eq!(again, 0.0);
}

#[test]
fn options_of_a_discipline_count() {
    let word = bottleneck(2, "\"codel\"", "off");
    let table = bottleneck(2, "{ codel = { target = \"5 ms\", interval = \"100 ms\" } }", "off");
    assert_eq!(word, table, "a word alone has the defaults");
    let (lazy, _) = seen(&bottleneck(2, "{ codel = { target = \"50 ms\" } }", "off"), 2);
    assert!(lazy > seen(&word, 2).0 + 0.02, "{lazy} s");
}

#[test]
fn a_discipline_can_be_chosen_from_outside_and_for_one_direction() {
    let text = "[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
    let read = |set: &str| Source::new("a.toml", text).set(set).scenario();
    let codel = read("link.l.discipline=codel").unwrap();
    assert!(
        codel.links.iter().all(|link| link.config.discipline == DisciplineConfig::Codel(Default::default()))
    );
    let back = read("link.l.back.discipline.codel.target=7 ms").unwrap();
    assert_eq!(back.links[0].config.discipline, DisciplineConfig::DropTail);
    let again = Source::new("again.toml", back.to_toml()).scenario().unwrap();
    assert_eq!(again.links, back.links, "what was understood can be read again");
    for (set, message) in [
        ("link.l.discipline=coddle", "unknown word `coddle`, expected `drop-tail` or `codel`"),
        ("link.l.discipline.codel.taget=7 ms", "unknown key `taget`"),
        ("link.l.discipline.codel.target=0 s", "must not wait at all"),
        ("link.l.discipline.codel.target=1 s", "expected more than `target`"),
        ("link.l.discipline=5", "expected a word, or a table"),
        ("link.l.discipline={ codel = { }, interval = 5 }", "options stand in the word's own table"),
    ] {
        let error = read(set).expect_err(set).to_string();
        assert!(error.contains(message), "{set}: {error}");
    }
    let both =
        Source::new("a.toml", text).set("link.l.discipline=codel").set("link.l.ecn_threshold=20 packets");
    let error = both.scenario().expect_err("two ways of marking").to_string();
    assert!(error.contains("`ecn_threshold` beside a `discipline`"), "{error}");
}

#[test]
fn a_word_and_its_table_are_set_alike() {
    let text = "[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
    let read = |more: &str, set: &str| Source::new("a.toml", format!("{text}{more}")).set(set).scenario();
    let target = |scenario: &Scenario, link: usize| match scenario.links[link].config.discipline {
        DisciplineConfig::Codel(config) => Some(config.target.0),
        DisciplineConfig::DropTail => None,
    };
    let word = read("discipline = \"codel\"\n", "link.*.discipline.codel.target=7 ms").unwrap();
    assert_eq!(target(&word, 0), Some(Duration::from_millis(7)));
    let error =
        read("discipline = \"drop-tail\"\n", "link.l.discipline.codel.target=7 ms").unwrap_err().to_string();
    assert!(error.contains("it is `drop-tail` now"), "{error}");
    // A threshold of the file is left aside for another discipline, and stays where none is chosen.
    let marks = "ecn_threshold = \"20 packets\"\n";
    let chosen = read(marks, "link.l.discipline=codel").unwrap();
    assert_eq!((target(&chosen, 0).is_some(), chosen.links[0].config.ecn_threshold), (true, None));
    assert_eq!(Source::new("b.toml", chosen.to_toml()).scenario().unwrap().links, chosen.links);
    let kept = read(marks, "link.l.discipline=drop-tail").unwrap();
    assert!(kept.links[0].config.ecn_threshold.is_some());
    let back = read(&format!("{marks}back = {{ discipline = \"codel\" }}\n"), "seed=2").unwrap();
    assert_eq!((target(&back, 0), target(&back, 1).is_some()), (None, true));
    assert!(back.links[0].config.ecn_threshold.is_some() && back.links[1].config.ecn_threshold.is_none());
}
