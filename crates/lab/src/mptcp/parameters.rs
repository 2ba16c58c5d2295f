//! The parameters of the experiment, their defaults, and where those come from.

use crate::experiment::{Parameter, parameter as p};

/// Section VIII-A where the paper gives a number (NP_thr, packets, payload, rate); the rest is erratum M27.
pub(super) const PARAMETERS: &[Parameter] = &[
    p(
        "scheme",
        "proposed",
        "proposed, conventional or tcp",
        "the paper's multipath TCP, that of the RFCs, or one path",
    ),
    p("deployment", "square", "square, sunflower or corner", "where the nodes are, and the data centre"),
    p("nodes", "50", "2 to 200", "nodes, the data centre included"),
    p("multi_link", "0", "0 to 50", "nodes with a cellular interface, beside the data centre"),
    p(
        "multi_link_at",
        "planned",
        "planned or random",
        "which nodes those are: those that shorten the ways of all most, one after the other, or any",
    ),
    p("packets", "100", "1 to 100000", "packets that each node has to deliver"),
    p("payload", "100B", "12B to 1000B", "octets of a packet, which is a segment"),
    p("rate", "10", "a number of packets per second", "at which a node makes packets, on average"),
    p("paths", "3", "1 to 8", "paths that a node keeps at most (NP_thr)"),
    p(
        "subflows",
        "auto",
        "auto, or 1 to 8",
        "paths that a connection uses at a time, the others stand by; auto: all with the conventional scheme, 1 with ours",
    ),
    p(
        "scheduler",
        "auto",
        "auto, fastest-rtt, predictive, round-robin, redundant, blest or daps",
        "which path takes what; auto: predictive for the proposed scheme, fastest-rtt for the conventional",
    ),
    p(
        "congestion",
        "auto",
        "auto, newreno, coupled or adaptive",
        "of each path; auto: adaptive (A-NewReno, section IV) for the proposed scheme, newreno for the others",
    ),
    p(
        "reinjection",
        "auto",
        "auto, failure, timeout or opportunistic",
        "when what was sent on one path is sent on another too; auto: at a time-out",
    ),
    p(
        "ack_every",
        "auto",
        "1 to 100, or auto: 2 for the RFCs' schemes, 20 for the proposed",
        "segments for which an acknowledgement waits (erratum M28)",
    ),
    p(
        "ack_window",
        "auto",
        "on, off, or auto: on for the proposed",
        "one acknowledgement for a window: the sender pushes its last segment, and that is acknowledged at once",
    ),
    p(
        "ack_delay",
        "auto",
        "a span such as 200ms, up to 10s, or auto: 200ms for the RFCs' schemes, 5s for the proposed",
        "how long it waits for them at most",
    ),
    p("range", "120m", "a distance in metres such as 120m", "how far frames are received"),
    p("interference", "1.5", "1 to 5", "how far frames disturb others, as a multiple of the range"),
    p(
        "capture",
        "1.5",
        "off, or 1 to 10",
        "a frame survives others whose senders are so many times as far from the receiver as its own",
    ),
    p("carrier_sense", "2.2", "1 to 5", "how far a CCA hears frames, as a multiple of the range"),
    p(
        "queue",
        "unlimited",
        "unlimited, or 1 to 10000",
        "packets that wait for the radio at a node (K, section VIII-A)",
    ),
    p("retries", "7", "0 to 15", "macMaxFrameRetries"),
    p(
        "retry_delay",
        "500ms",
        "a span up to 10s",
        "before each of these retries a delay, evenly from nothing to this, so that hidden nodes do not collide again",
    ),
    p(
        "access_retries",
        "8",
        "0 to 100",
        "how often a frame that found no free channel is handed to the MAC again",
    ),
    p("phy", "fsk100", "fsk100 or oqpsk250", "SUN-FSK at 100 kbit/s, or O-QPSK at 250 kbit/s"),
    p("limit", "3600s", "a span such as 3600s", "when a run ends in which not all was delivered"),
];
