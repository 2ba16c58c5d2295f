//! What the paper leaves open, and what it may have been.

use crate::open::{Open, Range};

/// Erratum M27.
pub(super) const OPEN: &[Open] = &[
    open("retries", Range::Whole(0, 7, "")),
    open("retry_delay", Range::OneOf(&["0s", "20ms", "100ms", "500ms"])),
    open("access_retries", Range::OneOf(&["0", "1", "3", "8"])),
    open("range", Range::Even(110.0, 140.0, "m")),
    open("interference", Range::Even(1.0, 2.2, "")),
    open("carrier_sense", Range::Even(1.0, 2.5, "")),
    open("capture", Range::Even(1.0, 3.0, "")),
];

/// Of 200 settings and the defaults that which reproduces most numbers of the conventional scheme (`lab robustness mptcp`, seed 1).
pub(super) const REFERENCE: &[(&str, &str)] = &[
    ("retries", "7"),
    ("retry_delay", "100ms"),
    ("access_retries", "1"),
    ("range", "137m"),
    ("interference", "2.036"),
    ("carrier_sense", "1.776"),
    ("capture", "1.024"),
];

const fn open(parameter: &'static str, range: Range) -> Open {
    Open { parameter, erratum: "M27", range }
}
