//! Parameters that the paper does not print, with plausible ranges.

use crate::open::{Open, Range};

/// Erratum S20.
pub(super) const OPEN: &[Open] = &[
    Open::new("wireless_loss", "S20", Range::Even(0.0, 3.0, "%")),
    Open::new("wired_delay", "S20", Range::Even(5.0, 50.0, "ms")),
    Open::new("tcp", "S20", Range::OneOf(&["paper", "modern"])),
];
