//! What the paper leaves open, and what it may have been.

use crate::open::{Open, Range};

/// Erratum S20.
pub(super) const OPEN: &[Open] = &[
    open("wireless_loss", Range::Even(0.0, 3.0, "%")),
    open("wired_delay", Range::Even(5.0, 50.0, "ms")),
    open("tcp", Range::OneOf(&["paper", "modern"])),
];

const fn open(parameter: &'static str, range: Range) -> Open {
    Open { parameter, erratum: "S20", range }
}
