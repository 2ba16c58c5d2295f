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

/// The file is long enough for a trial to pay.
#[test]
fn adaptive_striping_finds_turns() {
    let size = "transfer.image.bytes=1 MB";
    let (predictive, adaptive) = (measure("predictive", size), measure("adaptive", size));
    assert!(adaptive.0 < 0.85 * predictive.0, "{adaptive:?} in place of {predictive:?}");
}

/// Lines of the trace about striping, of a run with this setting.
fn decisions(scenario: Source, setting: &str) -> Vec<String> {
    let scenario = scenario.set("transfer.*.set.striping=adaptive").set(setting);
    let scenario = scenario.scenario().expect("a scenario");
    let Plan { builder, .. } = scenario.plan(1, 0, &BTreeMap::new()).expect("nothing is drawn");
    let mut sim = builder.build();
    sim.observe(TextTrace::new(Vec::new()));
    sim.run_until(scenario.stop);
    let trace = sim.take_observer::<TextTrace<Vec<u8>>>().expect("it was given");
    let trace = String::from_utf8(trace.finish().expect("memory takes it")).expect("text");
    let said = trace.lines().filter_map(|line| line.split_once("striping: "));
    said.map(|(_, text)| text.to_owned()).collect()
}

#[test]
fn observers_see_what_adaptive_striping_decides() {
    let mesh = decisions(Source::new("mesh.toml", MESH), "transfer.image.bytes=1 MB");
    let begins = mesh.iter().position(|said| said.starts_with("a trial of turns begins: rate of the file "));
    let after = begins.and_then(|index| mesh.get(index + 1));
    let goes_on = after.is_some_and(|said| said.starts_with("turns go on: rate of a chunk alone "));
    assert!(goes_on, "{mesh:?}");
    let fast = decisions(
        Source::new("three.toml", include_str!("../../../../scenarios/three-gateways.toml")),
        "transfer.*.bytes=400 kB",
    );
    assert!(fast.iter().all(|said| said.starts_with("turns are not tried: ")), "{fast:?}");
    assert!(fast[0].starts_with("turns are not tried: rate of the file "), "{fast:?}");
}

/// The session of the gateway that has failed is called again and again.
#[test]
fn a_gateway_that_fails_holds_up_no_turns() {
    let event = r#"event=[{ at = "8 s", node = "br2", action = "fail-node", how = "silent" }]"#;
    let (whole, failing) = (measure("turns", "radio.loss=0 %"), measure("turns", event));
    // Silence is noticed after 3 s.
    assert!(failing.0 < whole.0 + 8.0, "{failing:?} in place of {whole:?}");
}

/// Before the trial, during it, and after it. The trial may cost more than the rest of the file
/// gains.
#[test]
fn a_gateway_that_fails_does_not_condemn_turns() {
    let size = "transfer.image.bytes=300 kB";
    let mean = |striping: &str| {
        let took = ["10 s", "22 s", "40 s"].map(|at| {
            let event =
                format!(r#"event=[{{ at = "{at}", node = "br2", action = "fail-node", how = "silent" }}]"#);
            let scenario = Source::new("mesh.toml", MESH)
                .set(size)
                .set(format!("transfer.image.set.striping={striping}"))
                .set(event)
                .scenario()
                .expect("a scenario");
            [0, 1, 2].map(|run| {
                let metrics = scenario.run(1, run, &BTreeMap::new()).expect("nothing is drawn").1;
                let latency = metrics["transfer.image.latency_s"].value.expect("delivered");
                (latency, metrics.get("transfer.image.trials").and_then(|metric| metric.value))
            })
        });
        let runs = took.as_flattened();
        let trials: Vec<Option<f64>> = runs.iter().map(|(_, trials)| *trials).collect();
        (runs.iter().map(|(latency, _)| latency).sum::<f64>() / runs.len() as f64, trials)
    };
    let ((predictive, none), (adaptive, trials)) = (mean("predictive"), mean("adaptive"));
    assert_eq!(none, [None; 9]);
    // Without a trial nothing was tested.
    assert!(trials.iter().flatten().filter(|n| **n > 0.0).count() > 5, "{trials:?}");
    assert!(adaptive < 1.1 * predictive, "{adaptive} s in place of {predictive} s");
}
