//! Runs simulations with a log in this process.

use std::collections::BTreeMap;

use anabranch_core::time::Instant;
use anabranch_scenario::{Plan, Scenario, Source};
use anabranch_sim::events::EventLog;
use anabranch_sim::sim::Simulation;
use anabranch_view::replay::{Part, Replay};

pub(crate) const THREE_GATEWAYS: &str = include_str!("../../../../../scenarios/three-gateways.toml");
pub(crate) const THREE_HOPS: &str = include_str!("../../../../../scenarios/three-hops-radio.toml");
pub(crate) const DIAMOND: &str = include_str!("../../../../../scenarios/diamond-mptcp.toml");

/// A chain of caching nodes that loses every tenth packet.
pub(crate) fn caching_chain() -> String {
    let mut text = String::from(
        "name = \"a chain that caches\"\nstop = \"60 s\"\n[network]\nip = 4\n[dtc.caching]\nalgorithm = \"improved\"\n",
    );
    for (i, name) in CHAIN.iter().enumerate() {
        let end = i == 0 || i + 1 == CHAIN.len();
        let what = if end { "kind = \"host\"" } else { "kind = \"node\"\ndtc = \"caching\"" };
        text += &format!("[[node]]\nname = \"{name}\"\n{what}\n");
    }
    for ends in CHAIN.windows(2) {
        text += &format!(
            "[[link]]\nfrom = \"{}\"\nto = \"{}\"\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n",
            ends[0], ends[1]
        );
        text +=
            "loss = \"10 %\"\nloss_factors = { ack = 0.5, link_ack = 0.25 }\nlink_ack_timeout = \"3 ms\"\n";
    }
    text + "[[transfer]]\nname = \"file\"\nkind = \"tcp\"\nfrom = \"near\"\nto = \"far\"\nbytes = \"200 kB\"\n"
}

const CHAIN: [&str; 7] = ["near", "c1", "c2", "c3", "c4", "c5", "far"];

/// Three gateways, one of which fails in the middle of the transfer.
pub(crate) fn lost_gateway() -> String {
    THREE_GATEWAYS.to_owned() + "[[event]]\nat = \"1 s\"\naction = \"fail-node\"\nnode = \"gw2\"\n"
}

/// Two transfers through a queue with CoDel, with more keys for its link, a slower rate from 0.9 s
/// on, and an outage.
pub(crate) fn codel(ecn: &str, link: &str) -> String {
    format!(
        r#"
        name = "a queue with CoDel"
        stop = "60 s"
        tcp.default = {{ congestion = "cubic", ecn = "{ecn}" }}
        node = [{{ name = "a" }}, {{ name = "r", kind = "router" }}, {{ name = "b" }}]
        [[link]]
        from = "a"
        to = "r"
        rate = "100 Mbit/s"
        delay = "1 ms"
        queue = "1000 packets"
        [[link]]
        from = "r"
        to = "b"
        rate = "5 Mbit/s"
        delay = "19 ms"
        queue = "120 packets"
        discipline = "codel"
        {link}
        [[transfer]]
        name = "flow{{i}}"
        count = 2
        kind = "tcp"
        from = "a"
        to = "b"
        bytes = "1 MB"
        [[event]]
        at = "0.9 s"
        action = "set-rate"
        from = "r"
        to = "b"
        rate = "2 Mbit/s"
        [[event]]
        at = "1.5 s"
        action = "link-down"
        from = "r"
        to = "b"
        [[event]]
        at = "1.7 s"
        action = "link-up"
        from = "r"
        to = "b"
        "#
    )
}

pub(crate) fn scenario(text: &str) -> Scenario {
    Source::new("scenario", text).scenario().unwrap_or_else(|error| panic!("{error}"))
}

/// A simulation that is about to begin.
pub(crate) fn simulation(scenario: &Scenario) -> Simulation {
    let Plan { builder, .. } = scenario.plan(scenario.seed, 0, &BTreeMap::new()).expect("nothing is drawn");
    builder.build()
}

/// Runs a simulation to its end and returns its log.
pub(crate) fn logged(scenario: &Scenario) -> (Simulation, Vec<u8>) {
    let mut sim = simulation(scenario);
    sim.observe(EventLog::new(Vec::new(), scenario.log_head(scenario.seed, 0)));
    sim.run_until(scenario.stop);
    let log = sim.take_observer::<EventLog<Vec<u8>>>().expect("it was attached");
    // The log ends as the program ends it: the run continued after the last event.
    let end = sim.now();
    (sim, log.finish_at(end).expect("memory takes it"))
}

pub(crate) fn replay(log: &[u8]) -> Replay {
    Replay::read(log, Part::default()).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

pub(crate) fn instant(seconds: f64) -> Instant {
    Instant::from_nanos(nanos(seconds))
}
