//! What the paper leaves open, and what it may have been.

use crate::open::{Open, Range};

/// Erratum B16.
pub(super) const OPEN: &[Open] = &[
    open("loss", Range::Log(0.05, 2.0, "%")),
    open("burst", Range::Even(1.0, 4.0, "")),
    open("depth", Range::Even(0.2, 0.8, "")),
    open("queue", Range::Whole(20, 200, "")),
    open("background", Range::Even(1.0, 10.0, "Mbit/s")),
    open("scheduler", Range::OneOf(&["fastest", "blest", "round-robin"])),
];

const fn open(parameter: &'static str, range: Range) -> Open {
    Open { parameter, erratum: "B16", range }
}
