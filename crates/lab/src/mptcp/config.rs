//! Parameters of the experiment, their defaults, and how they change its scenario.
//!
//! Defaults come from section VIII-A where the paper gives a number (NP_thr, packets, payload,
//! rate); for the others see erratum M27.

use anabranch_core::time::Duration;
use anabranch_scenario::units::{Size, Span};
use anabranch_sim::apps::packets::LEAST_PACKET;

use crate::experiment::template::{Assignment, Template};
use crate::experiment::values::{self, Understood, count, metres, quantity, real};
use crate::experiment::{Parameter, ParameterError, Settings, parameter as p};

/// The scenario and how the parameters change it.
pub const TEMPLATE: Template = Template {
    file: "scenarios/papers/mptcp.toml",
    text: include_str!("../../../../scenarios/papers/mptcp.toml"),
    parameters: PARAMETERS,
    derived,
};

/// Transport of the packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    /// The paper's scheme as printed.
    Proposed,
    /// Our variant of the paper's scheme.
    Ours,
    /// Multipath TCP that prefers the fastest path, with NewReno on each.
    Conventional,
    /// TCP over the best path.
    Tcp,
}

impl Scheme {
    /// The value of the parameter `scheme`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Ours => "ours",
            Self::Conventional => "conventional",
            Self::Tcp => "tcp",
        }
    }

    fn of(settings: &Settings) -> Understood<Self> {
        let all = [Self::Proposed, Self::Ours, Self::Conventional, Self::Tcp];
        let all = all.map(|scheme| (scheme.word(), scheme));
        values::meant("scheme", settings.text("scheme"), &all)
    }
}

const PARAMETERS: &[Parameter] = &[
    p(
        "scheme",
        "proposed",
        "proposed, ours, conventional or tcp",
        "the paper's multipath TCP, what we make of it, that of the RFCs, or one path",
    ),
    p("deployment", "square", "square, sunflower or corner", "where the nodes are, and the data centre"),
    p("nodes", "50", "2 to 200", "nodes, the data centre included"),
    p("multi_link", "0", "0 and more, fewer than the nodes", "nodes with a cellular interface, beside the data centre"),
    p(
        "multi_link_at",
        "planned",
        "planned or random",
        "which nodes those are: those that shorten the ways of all most, one after the other, or any",
    ),
    p("packets", "100", "1 and more", "packets that each node has to deliver").alias(),
    p("payload", "100B", "12B to 1000B", "bytes of a packet, which is a segment"),
    p("rate", "10", "a number of packets per second", "at which a node makes packets, on average"),
    p("paths", "3", "1 to 15", "paths that a node keeps at most (NP_thr)"),
    p(
        "subflows",
        "auto",
        "auto, or 1 to 8",
        "paths that a connection uses at a time, the others stand by; auto: all, 1 with ours",
    ),
    p(
        "scheduler",
        "auto",
        "auto, fastest-rtt, predictive, section-vii, round-robin, redundant, blest or daps",
        "which path takes what; auto: section-vii, which is as printed, for the proposed scheme, predictive for ours, else fastest-rtt",
    ),
    p(
        "congestion",
        "auto",
        "auto, newreno, coupled, adaptive or adaptive-explore-hold",
        "of each path; auto: adaptive-explore-hold (A-NewReno of section IV) for the proposed scheme, else newreno",
    ),
    p(
        "reinjection",
        "auto",
        "auto, failure, timeout or opportunistic",
        "when what was sent on one path is sent on another too; auto: at a time-out",
    ),
    p(
        "conventional_acks",
        "rfc",
        "rfc or window",
        "acknowledgements of scheme=conventional, where ack_every, ack_window and ack_delay are auto: those of the RFCs, or the proposed scheme's (erratum M28)",
    ),
    p(
        "ack_every",
        "auto",
        "1 to 255, or auto: 2 for tcp and, unless conventional_acks says otherwise, for conventional, else 20",
        "segments for which an acknowledgement waits (erratum M28)",
    )
    .alias(),
    p(
        "ack_window",
        "auto",
        "on, off, or auto: off for tcp and, unless conventional_acks says otherwise, for conventional, else on",
        "one acknowledgement for a window: the sender pushes its last segment, and that is acknowledged at once",
    )
    .alias(),
    p(
        "ack_delay",
        "auto",
        "a span such as 200ms, up to 10s, or auto: 200ms for tcp and, unless conventional_acks says otherwise, for conventional, 5s for proposed, 2s for ours",
        "how long it waits for them at most",
    ),
    p(
        "ack_gaps",
        "auto",
        "on, off, or auto: off for ours",
        "a segment out of order is acknowledged at once; off: it waits for the acknowledgement of the window",
    )
    .alias(),
    p(
        "rto_min",
        "auto",
        "a span such as 5s, or auto: 1s, 5s for ours",
        "least time-out; that of A-NewReno follows from the hops",
    )
    .alias(),
    p("rto_max", "auto", "a span such as 10s, or auto: 60s, 20s for ours", "largest time-out, of the same").alias(),
    p(
        "window_limit",
        "auto",
        "none, 1 and more, or auto: none, 10 for ours",
        "segments that a congestion window has at most",
    )
    .alias(),
    p("range", "120m", "a distance such as 120m", "how far frames are received"),
    p("interference", "1.5", "1 to 5", "how far frames disturb others, as a multiple of the range"),
    p(
        "capture",
        "1.5",
        "off, or 1 to 10",
        "a frame survives others whose senders are at least this many times as far from the receiver as its own",
    ),
    p("carrier_sense", "2.2", "1 to 5", "how far a CCA hears frames, as a multiple of the range"),
    p(
        "queue",
        "unlimited",
        "unlimited, or 1 to 10000",
        "packets that wait for the radio at a node (K, section VIII-A)",
    ),
    p("retries", "3", "0 to 15", "macMaxFrameRetries; the standard's default is 3").alias(),
    p(
        "retry_delay",
        "0s",
        "a span up to 10s",
        "before each of these retries a delay, evenly from nothing to this; the standard has none",
    )
    .alias(),
    p(
        "access_retries",
        "0",
        "0 to 255",
        "how often a frame that found no free channel is handed to the MAC again; never in the standard",
    )
    .alias(),
    p("phy", "fsk100", "fsk100 or oqpsk250", "SUN-FSK at 100 kbit/s, or O-QPSK at 250 kbit/s")
        .alias(),
    p("limit", "3600s", "a span such as 3600s", "when a run ends in which not all was delivered"),
];

/// Length of the DSS option with mapping and DATA_ACK of four bytes each (RFC 8684, section 3.3).
const DSS: u16 = 20;
/// Start of the traffic; paths are built before.
const BEGIN: Duration = Duration::from_secs(60);

/// The parameters with "auto" replaced by the scheme's value.
///
/// # Errors
///
/// The scheme does not exist.
pub(super) fn decided(settings: &Settings) -> Understood<Settings> {
    // Values of "auto" for the printed scheme, ours, and the RFCs' schemes.
    const AUTO: [(&str, [&str; 3]); 11] = [
        ("subflows", ["8", "1", "8"]),
        ("scheduler", ["section-vii", "predictive", "fastest-rtt"]),
        ("congestion", ["adaptive-explore-hold", "newreno", "newreno"]),
        ("reinjection", ["timeout"; 3]),
        ("ack_every", ["20", "20", "2"]),
        ("ack_window", ["on", "on", "off"]),
        ("ack_delay", ["5s", "2s", "200ms"]),
        ("ack_gaps", ["on", "off", "on"]),
        ("rto_min", ["1s", "5s", "1s"]),
        ("rto_max", ["60s", "20s", "60s"]),
        ("window_limit", ["none", "10", "none"]),
    ];
    let scheme = Scheme::of(settings)?;
    let column = match scheme {
        Scheme::Proposed => 0,
        Scheme::Ours => 1,
        Scheme::Conventional | Scheme::Tcp => 2,
    };
    let words = [("rfc", false), ("window", true)];
    let by_window = values::meant("conventional_acks", settings.text("conventional_acks"), &words)?;
    let column_of = |key: &str| match scheme {
        Scheme::Conventional if by_window && matches!(key, "ack_every" | "ack_window" | "ack_delay") => 0,
        _ => column,
    };
    let auto = AUTO.into_iter().filter(|(key, _)| settings.text(key) == "auto");
    Ok(auto.fold(settings.clone(), |all, (key, values)| all.with(key, values[column_of(key)])))
}

fn derived(settings: &Settings) -> Understood<Vec<Assignment>> {
    let range = metres("range", settings.text("range"))?;
    let times = |key| Ok(range * real(key, settings.text(key), 1.0, 5.0)?);
    let rate = real("rate", settings.text("rate"), 0.001, 10_000.0)?;
    let limit: Span = quantity("limit", settings.text("limit"))?;
    let delay = settings.text("ack_delay");
    let capture = match settings.text("capture") {
        "off" => "off".to_owned(),
        text => format!("{{ first = {:?} }}", real("capture", text, 1.0, 10.0)?),
    };
    let queue = match settings.text("queue") {
        "unlimited" => "unlimited".to_owned(),
        text => format!("{} packets", count("queue", text, 1, 10_000)?),
    };
    let mut all = vec![
        ("range", format!("radio.range={range:?}")),
        ("interference", format!("radio.interference_range={:?}", times("interference")?)),
        ("carrier_sense", format!("radio.carrier_sense_range={:?}", times("carrier_sense")?)),
        ("capture", format!("radio.capture={capture}")),
        ("queue", format!("radio.queue={queue}")),
        ("rate", format!("traffic.packets.interval={}", Span(Duration::from_secs_f64(1.0 / rate)))),
        ("ack_delay", format!("tcp.default.delayed_ack_timeout={}", ack_delay(delay)?)),
        ("paths", format!("paths.max_paths={}", settings.text("paths"))),
        ("limit", format!("stop={}", Span(BEGIN + limit.0))),
    ];
    all.extend(carrier(settings)?);
    all.extend(places(settings)?);
    all.extend(multi_link(settings)?);
    Ok(all)
}

/// Transport of the packets, and their size.
fn carrier(settings: &Settings) -> Understood<Vec<Assignment>> {
    let scheme = Scheme::of(settings)?;
    let payload = payload(settings.text("payload"))?;
    let subflows = count("subflows", settings.text("subflows"), 1, 8)?;
    let word = |key, words: &[(&'static str, &'static str)]| values::meant(key, settings.text(key), words);
    let scheduler = word(
        "scheduler",
        &["fastest-rtt", "predictive", "section-vii", "round-robin", "redundant", "blest", "daps"]
            .map(|word| (word, word)),
    )?;
    let congestion = word(
        "congestion",
        &["newreno", "coupled", "adaptive", "adaptive-explore-hold"].map(|word| (word, word)),
    )?;
    let reinjection = word(
        "reinjection",
        &[("failure", "on-failure"), ("timeout", "on-timeout"), ("opportunistic", "opportunistic")],
    )?;
    let (mss, ssthresh) = match (scheme, congestion) {
        (Scheme::Tcp, _) => (payload, "none".to_owned()),
        // Section VIII-A's first slow-start threshold; other parameters of A-NewReno follow from
        // each node's paths.
        (_, "adaptive" | "adaptive-explore-hold") => {
            (payload + DSS, format!("{} B", 16 * u32::from(payload)))
        }
        _ => (payload + DSS, "none".to_owned()),
    };
    let mut all = vec![
        ("payload", format!("traffic.packets.payload={payload} B")),
        // RFC 6691: options reduce the payload of a segment, and a packet must fit into one
        // segment.
        ("payload", format!("tcp.default.mss={mss}")),
        ("payload", format!("tcp.default.initial_ssthresh={ssthresh}")),
    ];
    if scheme == Scheme::Tcp {
        all.push(("scheme", "traffic.packets.over=tcp".to_owned()));
        return Ok(all);
    }
    all.extend([
        ("subflows", format!("traffic.packets.mptcp.subflows={subflows}")),
        ("scheduler", format!("traffic.packets.mptcp.scheduler={scheduler}")),
        ("congestion", format!("traffic.packets.mptcp.congestion={congestion}")),
        ("reinjection", format!("traffic.packets.mptcp.reinjection={reinjection}")),
    ]);
    Ok(all)
}

/// Positions of the nodes and the data centre (section VIII-B to D). The paper has 10 to 50 nodes
/// around the data centre, or 25 beside it; other numbers get the density of the next larger one.
fn places(settings: &Settings) -> Understood<Vec<Assignment>> {
    let nodes = count("nodes", settings.text("nodes"), 2, 200)?;
    let shapes = ["square", "sunflower", "corner"].map(|word| (word, word));
    let shape = values::meant("deployment", settings.text("deployment"), &shapes)?;
    let scaled = |side: f64, of: usize| side * (nodes as f64 / of as f64).sqrt();
    let (width, height) = match (shape, nodes) {
        ("square", 10) => (150.0, 150.0),
        ("square", 20) => (200.0, 250.0),
        ("square", 30) => (250.0, 300.0),
        ("square", 40) => (300.0, 350.0),
        ("square", _) => (scaled(350.0, 50), scaled(350.0, 50)),
        ("corner", _) => (scaled(250.0, 25), scaled(250.0, 25)),
        _ => (scaled(500.0, 50), scaled(500.0, 50)),
    };
    let (east, north) = if shape == "corner" { (0.0, 0.0) } else { (width / 2.0, height / 2.0) };
    let mut all = vec![
        ("nodes", format!("nodes.0.count={}", nodes - 1)),
        ("deployment", format!("node.dc.position=[{east:?}, {north:?}]")),
    ];
    if shape == "sunflower" {
        let place = format!("{{ sunflower = {{ centre = [{east:?}, {north:?}], radius = {east:?} }} }}");
        all.push(("deployment", format!("nodes.0.place={place}")));
    } else {
        let side = |key, side| ("deployment", format!("nodes.0.place.random.{key}={side:?}"));
        all.extend([side("width", width), side("height", height)]);
    }
    Ok(all)
}

/// Nodes with a cellular interface, and whether there is a base station.
fn multi_link(settings: &Settings) -> Understood<Vec<Assignment>> {
    let nodes = count("multi_link", settings.text("multi_link"), 0, 200)?;
    let sitings = [("planned", ("shorten-paths", "to")), ("random", ("random", "except"))];
    let (kind, key) = values::meant("multi_link_at", settings.text("multi_link_at"), &sitings)?;
    let group = "group.multi-link nodes";
    Ok(vec![
        ("multi_link_at", format!("{group}={{ {kind} = {{ count = 0, {key} = \"dc\" }} }}")),
        ("multi_link", format!("{group}.{kind}.count={nodes}")),
        ("multi_link", format!("nodes.bs.count={}", nodes.min(1))),
    ])
}

fn payload(text: &str) -> Understood<u16> {
    let size: Size = quantity("payload", text)?;
    let range = u64::from(LEAST_PACKET)..=1000;
    match u16::try_from(size.0).ok().filter(|n| range.contains(&u64::from(*n))) {
        Some(n) => Ok(n),
        None => Err(ParameterError::bad("payload", text, "expected 12 B to 1000 B", None)),
    }
}

fn ack_delay(text: &str) -> Understood<Span> {
    let span: Span = quantity("ack_delay", text)?;
    if span.0 > Duration::from_secs(10) {
        return Err(ParameterError::bad("ack_delay", text, "expected at most 10s", None));
    }
    Ok(span)
}
