//! Parameters that the paper does not print, with plausible ranges.

use crate::open::{Open, Range};

/// Erratum B16.
pub(super) const OPEN: &[Open] = &[
    Open::new("loss", "B16", Range::Log(0.05, 2.0, "%")),
    Open::new("burst", "B16", Range::Even(1.0, 4.0, "")),
    Open::new("depth", "B16", Range::Even(0.2, 0.8, "")),
    Open::new("queue", "B16", Range::Whole(20, 200, "")),
    Open::new("background", "B16", Range::Even(1.0, 10.0, "Mbit/s")),
    Open::new("scheduler", "B16", Range::OneOf(&["fastest", "blest", "round-robin"])),
];
