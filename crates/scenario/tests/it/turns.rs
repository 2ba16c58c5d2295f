//! Turns, in the mesh of scenarios/rivals with the standard's MAC.

use std::collections::BTreeMap;

use anabranch_scenario::{Plan, Source};
use anabranch_sim::trace::TextTrace;

const MESH: &str = include_str!("../../../../scenarios/rivals/mesh.toml");

/// Mean latency of four runs in seconds, and mean number of retransmissions.
fn measure(striping: &str, setting: &str) -> (f64, f64) {
    let scenario = Source::new("mesh.toml", MESH)
        .set("transfer.image.bytes=100 kB")
        .set(format!("transfer.image.set.striping={striping}"))
        .set(setting)
        .scenario()
        .expect("a scenario");
    let runs = [0, 1, 2, 3].map(|run| scenario.run(1, run, &BTreeMap::new()).expect("nothing is drawn").1);
    let mean = |name: &str| {
        runs.iter()
            .map(|metrics| metrics[&format!("transfer.image.{name}")].value.expect("delivered"))
            .sum::<f64>()
            / 4.0
    };
    (mean("latency_s"), mean("retransmissions"))
}

#[test]
fn packets_that_take_turns_do_not_destroy_each_other() {
    for (loss, share) in [("0 %", 0.85), ("2 %", 0.9), ("10 %", 0.95)] {
        let setting = format!("radio.loss={loss}");
        let (predictive, turns) = (measure("predictive", &setting), measure("turns", &setting));
        let what = format!("{loss}: predictive {predictive:?}, turns {turns:?}");
        assert!(turns.0 < share * predictive.0, "{what}");
        assert!(turns.1 < predictive.1 / 3.0, "{what}");
    }
}

/// What observers see of a run with these settings, without the policy's name.
fn trace(scenario: Source, settings: &[&str]) -> String {
    let scenario = settings.iter().fold(scenario, |scenario, setting| scenario.set(*setting));
    let scenario = scenario.scenario().expect("a scenario");
    let Plan { builder, .. } = scenario.plan(1, 0, &BTreeMap::new()).expect("nothing is drawn");
    let mut sim = builder.build();
    sim.observe(TextTrace::new(Vec::new()));
    sim.run_until(scenario.stop);
    let trace = sim.take_observer::<TextTrace<Vec<u8>>>().expect("it was given");
    String::from_utf8(trace.finish().expect("memory takes it")).expect("text")
}

/// Lines of the trace about striping.
fn decisions(trace: &str) -> Vec<&str> {
    trace.lines().filter_map(|line| line.split_once("striping: ")).map(|(_, text)| text).collect()
}

const THREE: &str = include_str!("../../../../scenarios/three-gateways.toml");
const PREDICTIVE: &str = "transfer.*.set.striping=predictive";
const TURNS: &str = "transfer.*.set.striping=turns";
const SHARED: &str = "transfer.*.set.shared_channel=true";
const SMALL: &str = "transfer.*.bytes=30 kB";

#[test]
fn without_a_statement_of_the_node_the_default_is_predictive_event_for_event() {
    let fails = r#"event=[{ at = "3 s", node = "br2", action = "fail-node", how = "silent" }]"#;
    for (file, settings) in [
        (MESH, vec![SMALL]),
        (MESH, vec![SMALL, "mac=persistent", "radio.loss=10 %"]),
        (MESH, vec![SMALL, fails]),
        (THREE, vec![]),
        (THREE, vec!["transfer.*.bytes=500 B"]),
        (THREE, vec!["link.radio2.rate=56 kbit/s", "link.radio3.rate=128 kbit/s"]),
    ] {
        let default = trace(Source::new("one.toml", file), &settings);
        let predictive = trace(Source::new("one.toml", file), &[&settings[..], &[PREDICTIVE]].concat());
        assert!(default.lines().count() > 20 && default == predictive, "{settings:?}");
    }
}

#[test]
fn with_a_statement_of_the_node_the_default_is_turns_event_for_event() {
    for settings in [vec![SMALL], vec![SMALL, "radio.loss=10 %"], vec![SMALL, "transfer.*.gateways=1"]] {
        let shared = trace(Source::new("mesh.toml", MESH), &[&settings[..], &[SHARED]].concat());
        let turns = trace(Source::new("mesh.toml", MESH), &[&settings[..], &[TURNS]].concat());
        let (said, rest): (Vec<&str>, Vec<&str>) =
            shared.lines().partition(|line| line.contains("striping: "));
        assert!(rest.into_iter().eq(turns.lines()), "{settings:?}");
        let sessions = if settings.len() > 1 && settings[1] == "transfer.*.gateways=1" { 1 } else { 3 };
        let begins = format!("turns: sessions over the shared channel {sessions}, at least 1");
        assert_eq!(decisions(&said.join("\n")), [begins.as_str()]);
    }
}

#[test]
fn observers_see_that_a_fast_network_refutes_the_node() {
    let fast = trace(Source::new("three.toml", THREE), &["transfer.*.bytes=400 kB", SHARED]);
    let [begins, ends] = decisions(&fast)[..] else { panic!("{:?}", decisions(&fast)) };
    assert_eq!(begins, "turns: sessions over the shared channel 3, at least 1");
    assert!(
        ends.starts_with("predictive: rate of turns ") && ends.ends_with(", at most 80.0 kbit/s"),
        "{ends}"
    );
}

/// The session of the gateway that has failed is called again and again.
#[test]
fn a_gateway_that_fails_holds_up_no_turns() {
    let event = r#"event=[{ at = "8 s", node = "br2", action = "fail-node", how = "silent" }]"#;
    let (whole, failing) = (measure("turns", "radio.loss=0 %"), measure("turns", event));
    // Silence is noticed after 3 s.
    assert!(failing.0 < whole.0 + 8.0, "{failing:?} in place of {whole:?}");
}
