//! Event logs are deterministic and do not change the run. `crates/cli/tests/it/replay` tests their
//! content, where they are read.

use std::collections::BTreeMap;
use std::io;

use anabranch_scenario::{Plan, Source};
use anabranch_sim::events::EventLog;
use anabranch_sim::trace::TextTrace;
use anabranch_wire::eventlog;

const SCENARIOS: [&str; 3] = [
    include_str!("../../../../scenarios/three-gateways.toml"),
    include_str!("../../../../scenarios/three-hops-radio.toml"),
    include_str!("../../../../scenarios/diamond-mptcp.toml"),
];

/// The log and the trace of a run, as requested.
fn run(text: &str, seed: u64, (log, trace): (bool, bool)) -> (Vec<u8>, Vec<u8>) {
    let scenario = Source::new("scenario", text).scenario().expect("a scenario");
    let Plan { builder, .. } = scenario.plan(seed, 0, &BTreeMap::new()).expect("nothing is drawn");
    let mut sim = builder.build();
    if log {
        sim.observe(EventLog::new(Vec::new(), scenario.log_head(seed, 0)));
    }
    if trace {
        sim.observe(TextTrace::new(Vec::new()));
    }
    sim.run_until(scenario.stop);
    let log = sim.take_observer::<EventLog<Vec<u8>>>().map(|log| log.finish().expect("memory takes it"));
    let trace =
        sim.take_observer::<TextTrace<Vec<u8>>>().map(|trace| trace.finish().expect("memory takes it"));
    (log.unwrap_or_default(), trace.unwrap_or_default())
}

#[test]
fn the_same_seed_is_the_same_log_whoever_else_watches() {
    for text in SCENARIOS {
        let (alone, _) = run(text, 5, (true, false));
        let (beside, with_log) = run(text, 5, (true, true));
        let (_, without) = run(text, 5, (false, true));
        assert!(alone == beside, "two logs of one seed differ");
        assert!(with_log == without, "a log changes the run");
        assert!(alone.starts_with(&eventlog::MAGIC) && alone.len() > 10_000);
        assert!(alone != run(text, 6, (true, false)).0, "another seed gives the same log");
    }
}

/// Accepts this number of bytes and then fails.
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(octets.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_writer_that_fails_is_told_of_at_the_end() {
    let scenario = Source::new("scenario", SCENARIOS[0]).scenario().expect("a scenario");
    for room in [0, 100, 5000] {
        let Plan { builder, .. } = scenario.plan(1, 0, &BTreeMap::new()).expect("nothing is drawn");
        let mut sim = builder.build();
        sim.observe(EventLog::new(Full(room), scenario.log_head(1, 0)));
        sim.run_until(scenario.stop);
        let log = sim.take_observer::<EventLog<Full>>().expect("it was attached");
        let error = log.finish().err().map(|error| error.kind());
        assert_eq!(error, Some(io::ErrorKind::StorageFull), "{room} octets");
    }
}
