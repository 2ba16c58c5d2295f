//! Reasons why transfers are not delivered, and packets that nodes drop.

use super::ending::{Ending, NodeDrops};
use super::*;
use anabranch_sim::sim::Simulation;

/// `a` and `b` with a router between them, over links of 1 Mbit/s and 50 ms with the keys `link`,
/// followed by `rest`.
fn chain(link: &str, rest: &str) -> Source {
    let link = |from: &str, to: &str| {
        format!("{{ from = \"{from}\", to = \"{to}\", rate = \"1 Mbit/s\", delay = \"50 ms\"{link} }}")
    };
    let text = format!(
        "stop = \"10 min\"\nnode = [{{ name = \"a\" }}, {{ name = \"r\", kind = \"router\" }}, {{ name = \"b\" }}]\n\
         link = [{}, {}]\n{rest}",
        link("a", "r"),
        link("r", "b"),
    );
    Source::new("chain.toml", text)
}

const TRANSFER: &str = "[[transfer]]\nname = \"t\"\nkind = \"tcp\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"1 MB\"\nstart = \"2 s\"\n";

#[track_caller]
fn run(source: &Source) -> (Ending, NodeDrops, record::Metrics) {
    let scenario = source.scenario().unwrap_or_else(|error| panic!("{error}"));
    let Plan { builder, planned } = scenario.plan(1, 0, &BTreeMap::new()).expect("nothing is drawn");
    let mut sim: Simulation = builder.build();
    sim.run_until(scenario.stop);
    let ending = scenario.endings(&planned, &sim).swap_remove(0);
    (ending, scenario.node_drops(&sim), scenario.metrics(&planned, &sim))
}

fn event(at: &str, action: &str) -> String {
    format!("[[event]]\nat = \"{at}\"\n{action}\n")
}

#[test]
fn each_cause_is_told_from_the_others() {
    let few = "[tcp.default]\nsyn_retries = 2\ndata_retries = 2\n";
    let down = "action = \"link-down\"\nfrom = \"r\"\nto = \"b\"";
    let fails = |node: &str, how: &str| format!("action = \"fail-node\"\nnode = \"{node}\"\nhow = \"{how}\"");
    let said = |link: &str, rest: &str| {
        let (ending, ..) = run(&chain(link, &format!("{few}{TRANSFER}{rest}")));
        format!("{ending} ({})", ending.hint())
    };
    let all = [
        said("", ""),
        said(", loss = 1", ""),
        said("", &event("4 s", down)),
        said("", &event("4 s", &fails("b", "silent"))),
        said("", &event("4 s", &fails("b", "reset"))),
        said("", &event("4 s", &fails("a", "silent"))),
    ];
    expect![[r#"
        it was delivered (nothing is to be done)
        no SYN was answered, and the sender gave up at 9.000 s (see what the links drop, or raise `syn_retries` of the TCP profile)
        nothing was acknowledged for too long, and the connection timed out at 10.636 s (see what the links drop, or raise `data_retries` of the TCP profile)
        nothing was acknowledged for too long, and the connection timed out at 10.636 s (see what the links drop, or raise `data_retries` of the TCP profile)
        the receiver reset the connection at 4.101 s (see which node fails or starts again: `--trace PATH` has the segment with RST)
        `a` was down at the end of the run (let the `[[event]]` come later, or let another bring the node back)"#]].assert_eq(&all.join("\n"));
    for (stop, expected) in [("2.1 s", Ending::Opening), ("3 s", Ending::UnderWay)] {
        let (ending, ..) = run(&chain("", TRANSFER).set(format!("stop={stop}")));
        assert_eq!(ending, expected, "{stop}");
    }
    let split = TRANSFER.replace("\"tcp\"", "\"end-to-end\"");
    let (ending, ..) = run(&chain(", loss = 1", &split));
    assert!(matches!(ending, Ending::Failed(anabranch_core::set::Failure::NodeUnreachable, _)), "{ending}");
}

#[test]
fn what_nodes_drop_is_a_metric_if_they_drop_anything() {
    let down = event("1 s", "action = \"link-down\"\nfrom = \"r\"\nto = \"b\"");
    let (_, drops, metrics) = run(&chain("", &format!("{TRANSFER}{down}")));
    let value = |metrics: &record::Metrics, name: &str| metrics.get(name).and_then(|metric| metric.value);
    assert!(drops.no_route > 1 && drops.hop_limit == 0, "{drops:?}");
    let total: f64 = ["a", "r", "b"]
        .iter()
        .filter_map(|node| value(&metrics, &format!("node.{node}.dropped_no_route")))
        .sum();
    assert_eq!(total, drops.no_route as f64);
    let (_, drops, metrics) = run(&chain("", TRANSFER).set("network.hop_limit=1"));
    assert!(drops.hop_limit > 1 && drops.no_route == 0, "{drops:?}");
    assert_eq!(value(&metrics, "node.r.dropped_hop_limit"), Some(drops.hop_limit as f64));
    let dies = event("4 s", "action = \"fail-node\"\nnode = \"b\"");
    let (_, _, metrics) = run(&chain("", &format!("{TRANSFER}{dies}")));
    assert!(value(&metrics, "node.b.dropped_down") > Some(0.0), "{metrics:?}");
    let (_, _, metrics) = run(&chain("", TRANSFER));
    assert!(!metrics.keys().any(|name| name.starts_with("node.")), "{metrics:?}");
}

/// A link is busy at most for the duration of the run, however many packets still wait then, and
/// with every queueing discipline.
#[test]
fn a_link_is_busy_until_the_end_of_the_run_and_no_longer() {
    let offered = "[[traffic]]\nname = \"t\"\nkind = \"cbr\"\nover = \"udp\"\nfrom = \"a\"\nto = \"b\"\npayload = \"1000 B\"\nrate = \"4 Mbit/s\"\n";
    for discipline in ["drop-tail", "codel"] {
        let link = format!(", queue = \"unlimited\", discipline = \"{discipline}\"");
        let (_, _, metrics) = run(&chain(&link, &format!("{offered}{TRANSFER}")).set("stop=10 s"));
        let (busy, end) = (metrics["link.a>r.busy_s"].value.expect("a figure"), 10.0);
        assert!((0.99 * end..=end).contains(&busy), "{discipline}: {busy} s");
    }
}

/// Every packet that a link transmits arrives, is lost by the channel, or is cut when the link goes
/// down.
#[test]
fn a_link_transmits_what_arrives_and_what_the_channel_loses() {
    for loss in ["0", "0.2"] {
        let (_, _, metrics) = run(&chain(&format!(", loss = {loss}"), TRANSFER));
        let value = |name: &str| metrics[name].value.expect("a figure");
        for (link, next) in [("link.a>r", "link.r>b"), ("link.b>r", "link.r>a")] {
            let offered = value(&format!("{next}.packets"))
                + ["dropped_loss", "dropped_queue_full"]
                    .map(|name| value(&format!("{next}.{name}")))
                    .iter()
                    .sum::<f64>();
            assert_eq!(value(&format!("{link}.packets")), offered, "{loss}: {link}");
        }
        let lost = value("link.a>r.dropped_loss");
        assert_eq!(lost > 0.0, loss != "0");
        // The transmitter was busy with lost packets, too.
        let (bits, busy) = (value("link.a>r.bytes") * 8.0, value("link.a>r.busy_s") * 1e6);
        assert_eq!(busy > bits * 1.01, lost > 0.0, "{bits} bits in {busy} us");
    }
}

/// A transfer that was not delivered took longer than the run, whatever happened to it.
#[test]
fn an_undelivered_transfer_says_how_long_it_has_gone_on() {
    let few = "[tcp.default]\nsyn_retries = 2\ndata_retries = 2\n";
    let gateways = |kind: &str| {
        format!(
            "stop = \"10 min\"\nnode = [{{ name = \"a\" }}, {{ name = \"g\", kind = \"gateway\" }}, {{ name = \"b\", kind = \"node\" }}]\n\
             link = [{{ from = \"a\", to = \"g\", rate = \"1 Mbit/s\", delay = \"5 ms\" }}, \
             {{ from = \"g\", to = \"b\", rate = \"1 Mbit/s\", delay = \"5 ms\" }}]\n{}",
            TRANSFER.replace("\"tcp\"", &format!("\"{kind}\""))
        )
    };
    let set = |kind: &str| Source::new("set.toml", gateways(kind));
    for (source, censored) in [
        (chain("", TRANSFER), None),
        // In progress at the end, timed out, and never connected.
        (chain("", TRANSFER).set("stop=5 s"), Some(3.0)),
        (chain(", loss = 1", &format!("{few}{TRANSFER}")), Some(598.0)),
        // It is unlimited.
        (chain("", &TRANSFER.replace("bytes = \"1 MB\"\n", "")), None),
        (set("set"), None),
        (set("set").set("stop=5 s"), Some(3.0)),
        (set("split").set("stop=5 s"), Some(3.0)),
    ] {
        let (ending, _, metrics) = run(&source);
        let found = metrics.get("transfer.t.latency_censored_s").map(|metric| metric.value.unwrap());
        assert_eq!(found, censored, "{ending}");
        let has_end = metrics["transfer.t.latency_s"].value.is_some();
        assert!(!(has_end && found.is_some()), "{ending}");
    }
    assert_eq!(
        record::censored_by("transfer.a.b.latency_s").as_deref(),
        Some("transfer.a.b.latency_censored_s")
    );
    for other in ["transfer.a.establishment_s", "traffic.a.latency_s", "latency_s"] {
        assert_eq!(record::censored_by(other), None);
    }
}
