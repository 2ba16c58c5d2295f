//! Turns, in the mesh of scenarios/rivals with the standard's MAC.

use std::collections::BTreeMap;

use anabranch_scenario::Source;

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
            let latency = |run| {
                let metrics = scenario.run(1, run, &BTreeMap::new()).expect("nothing is drawn").1;
                metrics["transfer.image.latency_s"].value.expect("delivered")
            };
            latency(0) + latency(1) + latency(2)
        });
        took.iter().sum::<f64>() / 9.0
    };
    let (predictive, adaptive) = (mean("predictive"), mean("adaptive"));
    assert!(adaptive < 1.1 * predictive, "{adaptive} s in place of {predictive} s");
}
