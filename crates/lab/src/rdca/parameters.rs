//! The parameters of the experiment, their defaults, and where those come from.

use crate::experiment::{Parameter, parameter as p};

/// Table 1 of the paper where it gives a number; the rest is erratum H20 and ns-2's default.
pub(super) const PARAMETERS: &[Parameter] = &[
    p(
        "protocol",
        "rdca",
        "rdca, rdca-paper, newreno, westwood, elfn, cubic or datagrams",
        "ours, the paper's as the errata read it, TCP, or UDP that nobody controls (for the capacity)",
    ),
    p("senders", "1", "1 to 50", "nodes that see the event"),
    p(
        "rate",
        "4kB/s",
        "octets per second such as 4kB/s",
        "that each sender's application offers, in whole packets",
    ),
    p("nodes", "100", "2 to 500", "nodes, the sink included"),
    p("area", "450mx200m", "width x height such as 450mx200m", "in which they lie evenly at random"),
    p("range", "100m", "a distance such as 100m", "how far frames are received"),
    p(
        "carrier_sense",
        "220m",
        "a distance such as 220m",
        "how far they are heard, not below the range (erratum H20b)",
    ),
    p(
        "topology",
        "random",
        "random or row",
        "where the nodes are: anywhere, or in a row 80 % of the range apart",
    ),
    p(
        "topologies",
        "5",
        "0 to 1000",
        "different placements, by turns over the runs; 0: each run has its own",
    ),
    p("event_hops", "2", "1 to 20", "hops from the node nearest to the event to the sink (erratum H20b)"),
    p("queue", "50", "1 to 1000", "packets that wait at a node's interface"),
    p(
        "packet",
        "300B",
        "40B to 1000B",
        "a packet, RDCA's header of 17 octets included; TCP has the same payload",
    ),
    p("duration", "100s", "a span such as 100s", "of a run"),
    p("event_at", "5s", "a span such as 5s", "when the event begins; it lasts to the end of the run"),
    p(
        "bit_rate",
        "2Mbit/s",
        "1Mbit/s, 2Mbit/s, 5.5Mbit/s or 11Mbit/s",
        "of data frames; others go at 1 Mbit/s",
    ),
    p("rts", "on", "on or off", "whether unicast frames are announced by RTS and CTS: ns-2's default is on"),
    p("loss", "0", "a probability such as 0.02 or 2%", "of each frame on each link, beside collisions"),
    p("tcp_window", "20", "1 to 1000", "segments that TCP has under way at most: ns-2's default"),
];
