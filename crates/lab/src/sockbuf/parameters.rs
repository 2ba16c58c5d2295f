//! The parameters of the experiment, their defaults, and where those come from.

use crate::experiment::{Parameter, parameter as p};

/// Section 4.1 and Table 1 where they give a number; the rest is errata B13 to B16, with reasons in
/// `docs/sockbuf-experiments.md`.
pub(super) const PARAMETERS: &[Parameter] = &[
    p(
        "tuner",
        "pid",
        "pid, atbt, atbt-original, drs, product or fixed",
        "who divides the memory: the paper's controller, ATBT as the paper prints it or as its authors do, dynamic \
         right-sizing, the reported bandwidth-delay products, or a fixed size for each",
    ),
    p(
        "connections",
        "4",
        "3 to 64",
        "flows of the mobile host; the striped connection's three count as three (erratum B14)",
    ),
    p("memory", "2MB", "a size such as 2MB", "of all send buffers together: Table 1 has 2 MB and 100 MB"),
    p("duration", "400s", "a span such as 400s", "of a run; there is always something to send (erratum B13)"),
    p(
        "loss",
        "0.5%",
        "a probability such as 0.005 or 0.5%",
        "of each packet on each wireless link, either way",
    ),
    p("burst", "2", "1 to 100", "packets that are lost in a row on average"),
    p(
        "bandwidth_step",
        "50s",
        "a span such as 50s, or 0s",
        "from one change of the wireless rates to the next; 0: none",
    ),
    p(
        "depth",
        "0.5",
        "0.05 to 1",
        "least share of its rate that a wireless link has after a change; it is drawn evenly between that and 1",
    ),
    p(
        "single_at",
        "10s",
        "a span such as 10s",
        "when the single flows begin, and throughput is counted from",
    ),
    p("gains", "damped", "damped or paper", "the controller's constants: ours, or section 3.2's"),
    p("gain_factor", "1", "0.01 to 100", "by which they are multiplied"),
    p(
        "set_point",
        "per-flow",
        "per-flow or slowest",
        "what the controller steers to: each flow's bandwidth times its RTT, or all bandwidth times the longest RTT",
    ),
    p("products", "2", "0.1 to 100", "so many times (Figure 6 line 2)"),
    p(
        "excess",
        "product",
        "product or bandwidth",
        "in proportion to what the single connections share the rest",
    ),
    p(
        "guarantee",
        "0",
        "0 to 1",
        "with tuner=pid, the part of an equal share of the memory that each connection can count on: the paper has none, \
         the library 0.6",
    ),
    p("period", "0.5s", "a span such as 0.5s", "between two decisions"),
    p(
        "reports",
        "on",
        "on, sampled or off",
        "what link layers report of their rates: at each moment, samples as the next four say, or nothing",
    ),
    p("report_period", "100ms", "a span such as 100ms", "between two samples of a link's rate"),
    p("report_delay", "100ms", "a span such as 100ms", "from a sample to its use"),
    p("report_noise", "0.1", "0 to 1", "a sample is wrong by up to this share, evenly distributed"),
    p("report_loss", "0.05", "0 to 1", "probability that a sample is lost"),
    p(
        "fixed",
        "128kB",
        "a size such as 128kB",
        "of each buffer with tuner=fixed, and of each before the first decision",
    ),
    p(
        "scheduler",
        "fastest",
        "fastest, blest, round-robin or predictive",
        "which flow of the striped connection is next",
    ),
    p("queue", "50", "1 to 10000", "packets that wait for a wireless link: ns-2's default"),
    p(
        "background",
        "5Mbit/s",
        "a rate such as 5Mbit/s, or 0bit/s",
        "of each of the two UDP flows f11 and f12; 0: no background, no TCP either",
    ),
    p(
        "churn",
        "0s",
        "a span such as 5s",
        "single connections come and go: one is there for this long, and away for as long; 0: they stay",
    ),
    p(
        "stalled",
        "0",
        "0 to the number of single connections",
        "single connections whose peers stop reading after the first 10 s; they have receive buffers of 64 kB",
    ),
    p("handoff", "none", "none, wlan, geo or hsupa", "the interface that is gone for a while"),
    p("handoff_at", "200s", "a span such as 200s", "when it goes"),
    p("handoff_for", "10s", "a span such as 10s", "for how long"),
];
