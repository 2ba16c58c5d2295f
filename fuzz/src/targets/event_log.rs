//! Event logs: every input becomes a page, or an error with a place.

use anabranch_view::log::LogError;
use anabranch_view::page;
use anabranch_view::replay::{Part, Replay};
use anabranch_wire::eventlog::{MAGIC, VERSION};

use crate::probe::Probe;

/// The input follows the first bytes of a log.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    let mut log = MAGIC.to_vec();
    log.push(VERSION);
    log.extend_from_slice(input);
    match Replay::read(log.as_slice(), Part::default()) {
        Ok(replay) => {
            let sizes = [replay.nodes.len(), replay.links.len(), replay.packets.len(), replay.flights.len()];
            probe.feature((sizes.map(|n| n.min(4)), replay.frames.len().min(4), replay.losses.len().min(4)));
            assert!(replay.flights.is_sorted_by_key(|flight| flight.sent), "flights are in order");
            assert!(
                replay.flights.iter().all(|f| f.end >= f.sent && f.leaves >= f.sent),
                "time runs forward"
            );
            let moment = replay.at(replay.end / 2);
            assert_eq!(moment.queued.len(), replay.links.len());
            assert!(page::html(&replay).contains("</html>"));
        }
        Err(LogError::Damaged { offset, what }) => {
            assert!(offset <= log.len() as u64);
            probe.feature(what);
        }
        Err(error) => probe.say(|| error),
    }
}
