//! Parameters that the paper does not print, with plausible ranges.

use crate::open::{Open, Range};

/// Errata M27 and M28.
pub(super) const OPEN: &[Open] = &[
    Open::new("retries", "M27", Range::Whole(0, 7, "")),
    Open::new("retry_delay", "M27", Range::OneOf(&["0s", "20ms", "100ms", "500ms"])),
    Open::new("access_retries", "M27", Range::OneOf(&["0", "1", "3", "8"])),
    Open::new("range", "M27", Range::Even(110.0, 140.0, "m")),
    Open::new("interference", "M27", Range::Even(1.0, 2.2, "")),
    Open::new("carrier_sense", "M27", Range::Even(1.0, 2.5, "")),
    Open::new("capture", "M27", Range::Even(1.0, 3.0, "")),
    Open::new("conventional_acks", "M28", Range::OneOf(&["rfc", "window"])),
];

/// The setting, of 200 and the defaults, that reproduces the most numbers of the conventional
/// scheme (`lab robustness mptcp`, seed 1).
pub(super) const REFERENCE: &[(&str, &str)] = &[
    ("retries", "7"),
    ("retry_delay", "100ms"),
    ("access_retries", "1"),
    ("range", "137m"),
    ("interference", "2.036"),
    ("carrier_sense", "1.776"),
    ("capture", "1.024"),
];
