//! What the paper leaves open, and what it may have been.

use crate::open::{Open, Range};

/// Errata H20 and H20b.
pub(super) const OPEN: &[Open] = &[
    open("event_hops", "H20b", Range::Whole(1, 4, "")),
    open("carrier_sense", "H20b", Range::Even(100.0, 250.0, "m")),
    open("bit_rate", "H20", Range::OneOf(&["1Mbit/s", "2Mbit/s", "5.5Mbit/s", "11Mbit/s"])),
    open("rts", "H20", Range::OneOf(&["on", "off"])),
    open("tcp_window", "H20", Range::Whole(8, 64, "")),
    open("event_at", "H20", Range::Even(2.0, 10.0, "s")),
];

const fn open(parameter: &'static str, erratum: &'static str, range: Range) -> Open {
    Open { parameter, erratum, range }
}

/// Means of the TCPs, and what is printed of all of them together. Least and most are no extremes (erratum H2).
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
