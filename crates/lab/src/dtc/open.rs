//! Parameters that the paper does not print, with plausible ranges.

use crate::open::{Open, Range};

/// Errata D7, D11, D14, D16, D17 and D21.
pub(super) const OPEN: &[Open] = &[
    Open::new("last_ack_loss", "D7", Range::OneOf(&["off", "on"])),
    Open::new("rto_initial", "D17", Range::OneOf(&["3s", "6s"])),
    Open::new("rto_min", "D17", Range::Log(0.2, 2.0, "s")),
    Open::new("rto_max", "D17", Range::Log(8.0, 64.0, "s")),
    Open::new("displacement", "D14", Range::OneOf(&["never", "by-lower"])),
    Open::new("local_rto", "D16", Range::Even(1.0, 2.0, "")),
    Open::new("guard", "D11", Range::Even(0.5, 2.0, "")),
    Open::new("hop_delay", "D21", Range::Even(10.0, 40.0, "ms")),
];
