//! Spans in which nothing happens, as pages have them.

use anabranch_view::replay::{Change, Flight, Happening, Part, Replay};
use serde_json::json;

use crate::layout::facts;
use crate::log::{data, head};

const SECOND: u64 = 1_000_000_000;

/// One packet each at these times in milliseconds; each takes 100 ns.
fn packets(times: &[u64]) -> Replay {
    let mut log = head();
    log.extend(data(0));
    log.extend([16, 0, 0, 2, 17, 100, 0, 2]);
    let mut replay = Replay::read(log.as_slice(), Part::default()).expect("a log");
    let first = replay.flights[0];
    let at = |time: &u64| {
        let sent = time * 1_000_000;
        Flight { sent, leaves: sent, end: sent + 100, ..first }
    };
    replay.flights = times.iter().map(at).collect();
    replay.end = replay.flights[times.len() - 1].end;
    replay
}

#[test]
fn spans_longer_than_a_second_and_a_tenth_of_the_run_are_idle() {
    // A run of 20 s: 2 s are a tenth of it.
    let replay = packets(&[0, 1_900, 4_000, 4_500, 20_000]);
    let idle = json!([[1_900_000_100_u64, 4_000_000_000_u64], [4_500_000_100_u64, 20_000_000_000_u64]]);
    assert_eq!(facts(&replay)["idle"], idle);
    // A run of 4 s: a tenth of it is less than a second.
    let replay = packets(&[0, 900, 2_100, 4_000]);
    let idle = json!([[900_000_100_u64, 2_100_000_000_u64], [2_100_000_100_u64, 4_000_000_000_u64]]);
    assert_eq!(facts(&replay)["idle"], idle);
    assert_eq!(facts(&packets(&[0, 999, 1_998]))["idle"], json!([]));
}

#[test]
fn a_run_that_begins_late_begins_with_idle_time_and_its_end_has_none() {
    let mut replay = packets(&[5_000, 5_500, 6_000]);
    // Timers keep the run going for a minute; a note says so.
    replay.end = 66 * SECOND;
    replay.happenings.push(Happening { at: 66 * SECOND, node: None, text: "over".to_owned() });
    assert_eq!(facts(&replay)["idle"], json!([[0, 5 * SECOND]]));
}

#[test]
fn nothing_but_a_fault_or_a_note_is_something_too() {
    let mut replay = packets(&[0, 4_000]);
    replay.changes.push(Change { at: 2 * SECOND, what: 2, index: 0, value: 0 });
    let idle = json!([[100, 2 * SECOND], [2 * SECOND, 4 * SECOND]]);
    assert_eq!(facts(&replay)["idle"], idle);
}
