//! Parameters that the paper does not print, with plausible ranges.

use crate::open::{Open, Range};

/// Errata H20 and H20b.
pub(super) const OPEN: &[Open] = &[
    Open::new("event_hops", "H20b", Range::Whole(1, 4, "")),
    Open::new("carrier_sense", "H20b", Range::Even(100.0, 250.0, "m")),
    Open::new("bit_rate", "H20", Range::OneOf(&["1Mbit/s", "2Mbit/s", "5.5Mbit/s", "11Mbit/s"])),
    Open::new("rts", "H20", Range::OneOf(&["on", "off"])),
    Open::new("tcp_window", "H20", Range::Whole(8, 64, "")),
    Open::new("event_at", "H20", Range::Even(2.0, 10.0, "s")),
];

/// The setting, of 200 and the defaults, that reproduces the most rows of the TCPs
/// (`lab robustness rdca`, seed 1).
pub(super) const REFERENCE: &[(&str, &str)] = &[
    ("event_hops", "4"),
    ("carrier_sense", "236.8m"),
    ("bit_rate", "2Mbit/s"),
    ("rts", "on"),
    ("tcp_window", "51"),
    ("event_at", "2.349s"),
];

/// Whether a target is a mean of a TCP, or a number printed for all TCPs together. Printed minima
/// and maxima are no extremes (erratum H2).
pub(super) fn is_baseline(id: &str) -> bool {
    let of_all = [
        "rdca.pdr.others",
        "rdca.ncl.others",
        "rdca.delay.others.min_4_1",
        "rdca.delay.others.max_4_1",
        "rdca.rate.dropped.tcp_max",
        "rdca.rate.delay.tcp",
        "rdca.rate.energy.tcp_min",
    ];
    let is_tcp = ["newreno", "westwood", "elfn"].iter().any(|tcp| id.contains(tcp));
    is_tcp && id.contains(".mean.") || of_all.contains(&id)
}
