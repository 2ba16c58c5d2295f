//! The parameters of the experiment, their defaults, and where those come from.

use crate::experiment::{Parameter, parameter as p};

const FACTOR: &str = "0 to 1";
const SWITCH: &str = "on or off";

/// Section V where the paper gives a number (500 segments of 100 octets, factors one half and one quarter, one
/// cached segment, one half of them); a window of three segments follows from its tables (erratum D8).
pub(super) const PARAMETERS: &[Parameter] = &[
    p("hops", "6", "2 to 32", "links in a row between sender and receiver"),
    p("loss", "0.1", "a probability such as 0.1 or 10%", "loss of each data segment on each link"),
    p("mode", "dtc", "tcp, dtc-paper or dtc", "nodes that only forward, the paper's algorithm, or ours"),
    p("segments", "500", "1 to 1000000", "segments to carry; the run ends when the last is acknowledged"),
    p("payload", "100B", "a size such as 100B, up to 1400B", "payload of each segment"),
    p("window", "3", "1 to 100", "segments in flight at most"),
    p(
        "ack_loss_factor",
        "0.5",
        FACTOR,
        "medium=links: loss of TCP acknowledgements as a fraction of that of data",
    ),
    p(
        "link_ack_loss_factor",
        "0.25",
        FACTOR,
        "medium=links: loss of link acknowledgements as a fraction of that of data",
    ),
    p("cache_segments", "1", "0 to 64", "segments that a node can cache"),
    p(
        "cache_probability",
        "auto",
        "0 to 1, or auto: the paper's 0.5 with dtc-paper, 1 with dtc",
        "chance that a segment displaces one that is not locked",
    ),
    p(
        "duplicate_acks",
        "off",
        SWITCH,
        "action 3.2, which the authors would leave out: an acknowledgement without SACK that asks for the cached segment",
    ),
    p("flying_start", "on", SWITCH, "SYN is looked after hop by hop, and measures the round trip"),
    p(
        "medium",
        "links",
        "links or radio",
        "links of their own between the nodes, or one 802.15.4 channel (O-QPSK) for all of them",
    ),
    p("retries", "0", "0 to 15", "medium=radio: how often the MAC repeats a frame that is not acknowledged"),
    p("sender_sack", "on", SWITCH, "whether the sender offers SACK; if not, the nodes do in its name"),
];
