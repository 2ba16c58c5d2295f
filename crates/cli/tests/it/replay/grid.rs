//! Test with the log of a long run.

use crate::replay::million::{MILLION, grid};
use crate::replay::world::*;

#[test]
fn a_million_events_are_read_and_few_octets_each() {
    let (sim, log) = logged(&scenario(&grid(MILLION.0, MILLION.1, MILLION.2)));
    let replay = replay(&log);
    assert!((900_000..1_300_000).contains(&replay.events), "{}", replay.events);
    assert_eq!(replay.nodes.len(), 100);
    assert!((log.len() as u64) < 12 * replay.events, "{} octets", log.len());
    let delivered: u64 = sim.world().network.links().iter().map(|link| link.metrics().delivered).sum();
    assert_eq!(replay.at(replay.end).arrived, delivered);
}
