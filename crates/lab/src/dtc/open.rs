//! What the paper leaves open, and what it may have been.

use crate::open::{Open, Range};

/// Errata D7, D17 and D21.
pub(super) const OPEN: &[Open] = &[
    open("last_ack_loss", "D7", Range::OneOf(&["off", "on"])),
    open("rto_initial", "D17", Range::OneOf(&["3s", "6s"])),
    open("rto_min", "D17", Range::Log(0.2, 2.0, "s")),
    open("rto_max", "D17", Range::Log(8.0, 64.0, "s")),
    open("hop_delay", "D21", Range::Even(10.0, 40.0, "ms")),
];

const fn open(parameter: &'static str, erratum: &'static str, range: Range) -> Open {
    Open { parameter, erratum, range }
}
