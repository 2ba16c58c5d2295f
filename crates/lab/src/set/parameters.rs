//! The parameters of the experiment, their defaults, and where those come from.

use crate::experiment::{Parameter, parameter as p};

const RATE: &str = "a rate such as 256kbit/s; one for all, or one each joined by +";
const DELAY: &str = "a span such as 25ms; one for all, or one each joined by +";

/// Section 6.1's network where the paper gives a number (100 Mbit/s and 10 ms wired, 256 kbit/s and 25 ms
/// wireless, 100 packets at a gateway); 64 kB at the node from section 6.2; the largest file of Table 2.
pub(super) const PARAMETERS: &[Parameter] = &[
    p("scheme", "set", "set, split or end-to-end", "how the file is carried; the baselines use gateway 1"),
    p("gateways", "3", "1 to 15", "gateways of the network, and SET's sessions"),
    p("file", "129kB", "a size such as 129kB", "the file"),
    p("wired_rate", "100Mbit/s", RATE, "rate of the wired links"),
    p("wired_delay", "10ms", DELAY, "one-way delay of the wired links"),
    p("wireless_rate", "256kbit/s", RATE, "medium=links: rate of the wireless links"),
    p("wireless_delay", "25ms", DELAY, "medium=links: one-way delay of each wireless link"),
    p(
        "wireless_loss",
        "0",
        "a probability such as 0.02 or 2%; one for all, or one each joined by +",
        "loss of each packet on each wireless link, both ways; on a radio, of each frame and its acknowledgement",
    ),
    p(
        "hops",
        "1",
        "1 to 32; one for all, or one each joined by +",
        "wireless links in a row behind a gateway",
    ),
    p(
        "gateway_buffer",
        "100packets",
        "packets or a size such as 640kB; one for all, or one each joined by +",
        "drop-tail queue of a gateway's wireless link; on a radio, packets of each node",
    ),
    p("node_buffer", "64kB", "a size such as 64kB", "receive buffer of the node"),
    p(
        "background",
        "0",
        "0 to 200",
        "other transfers of the same kind and size to other nodes through the same gateways, begun together",
    ),
    p(
        "fail",
        "none",
        "none, or gw2@1.5s (silent) or gw2@1.5s:reset; several joined by +",
        "gateways that die, and when",
    ),
    p("tcp", "paper", "paper or modern", "TCP everywhere: that of the paper, or a present-day host's"),
    p("start", "after-setack", "after-setack or early", "when data may follow a SETSYN"),
    p("open", "staggered", "staggered, one-by-one or at-once", "when the next session is opened"),
    p("striping", "predictive", "predictive or window", "how sessions share the file"),
    p("open_wait", "round-trip", "round-trip or none", "how long a gateway waits before its SETACK"),
    p("layout", "compact", "compact or paper", "layout of the header of a data chunk"),
    p("ip", "6", "6 or 4", "IP version"),
    p(
        "medium",
        "links",
        "links or radio",
        "wireless links of their own, or one 802.15.4 channel (O-QPSK) for gateways, relays and node",
    ),
    p("retries", "3", "0 to 15", "medium=radio: how often the MAC repeats a frame that is not acknowledged"),
];
