//! Parameters of the experiment, their defaults, and how they change its scenario.

use anabranch_core::segment::Segment;
use anabranch_scenario::units::{Size, Span};
use anabranch_sim::frames;
use anabranch_sim::packet::{IpVersion, NodeId, Packet, Payload};
use anabranch_sim::radio::PhyConfig;

use crate::experiment::template::{Assignment, Template};
use crate::experiment::values::{self, Takes, Understood, count, is_radio, probability, quantity};
use crate::experiment::{Parameter, ParameterError, Settings, parameter as p};

/// The scenario and how the parameters change it.
pub const TEMPLATE: Template = Template {
    file: "scenarios/papers/dtc.toml",
    text: include_str!("../../../../scenarios/papers/dtc.toml"),
    parameters: PARAMETERS,
    derived,
};

/// Behaviour of the nodes between the ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// They only forward.
    Tcp,
    /// They follow section IV of the paper.
    Paper,
    /// They follow our own algorithm.
    Improved,
}

impl Mode {
    /// The value of the parameter `mode`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Paper => "dtc-paper",
            Self::Improved => "dtc",
        }
    }
}

const FACTOR: &str = "0 to 1";
const SWITCH: &str = "on or off";

/// Defaults from section V where the paper gives a number: 500 segments of 100 bytes, factors of
/// one half and one quarter, one cached segment with a probability of one half. A window of three
/// segments follows from the paper's tables (erratum D8).
const PARAMETERS: &[Parameter] = &[
    p("hops", "6", "2 to 32", "links in a row between sender and receiver"),
    p("loss", "0.1", "a probability such as 0.1 or 10%", "loss of each data segment on each link").alias(),
    p("mode", "dtc", "tcp, dtc-paper or dtc", "nodes that only forward, the paper's algorithm, or ours").alias(),
    p("segments", "500", "1 to 1000000", "segments to carry; the run ends when the last is acknowledged"),
    p("payload", "100B", "a size such as 100B, up to 1400B", "payload of each segment"),
    p("window", "3", "1 to 100", "segments in flight at most"),
    p(
        "ack_loss_factor",
        "0.5",
        FACTOR,
        "medium=links: loss of TCP acknowledgements as a fraction of that of data",
    )
    .alias(),
    p(
        "link_ack_loss_factor",
        "0.25",
        FACTOR,
        "medium=links: loss of link acknowledgements as a fraction of that of data",
    )
    .alias(),
    p("cache_segments", "1", "0 to 64", "segments that a node can cache").alias(),
    p(
        "cache_probability",
        "auto",
        "0 to 1, or auto: the paper's 0.5 with dtc-paper, 1 with dtc",
        "chance that a segment displaces one that is not locked",
    )
    .alias(),
    p(
        "duplicate_acks",
        "off",
        SWITCH,
        "action 3.2, which the authors would leave out: an acknowledgement without SACK that asks for the cached segment",
    )
    .alias(),
    p("displacement", "never", "never or by-lower", "mode=dtc-paper: which segment displaces a locked one (erratum D14)").alias(),
    p("local_rto", "1.5", "0.1 to 60", "mode=dtc-paper, mostly: the nodes' time-out in local round trips (erratum D16)").alias(),
    p(
        "guard",
        "1",
        "0 to 60",
        "local round trips that must have passed before a segment that was just sent is repeated for an acknowledgement (erratum D11)",
    )
    .alias(),
    p("flying_start", "on", SWITCH, "SYN is looked after hop by hop, and measures the round trip").alias(),
    p(
        "medium",
        "links",
        "links or radio",
        "links of their own between the nodes, or one 802.15.4 channel (O-QPSK) for all of them",
    ),
    p("retries", "0", "0 to 15", "medium=radio: how often the MAC repeats a frame that is not acknowledged"),
    p(
        "last_ack_loss",
        "off",
        SWITCH,
        "medium=links: whether the last hop to the sender loses acknowledgements as the others do (erratum D7)",
    ),
    p("rto_initial", "6s", "a span such as 6s", "the sender's time-out before a measurement (erratum D17)").alias(),
    p("rto_min", "1s", "a span such as 1s", "the sender's least time-out (erratum D17)").alias(),
    p("rto_max", "16s", "a span such as 16s", "the sender's longest time-out (erratum D17)").alias(),
    p("hop_delay", "22ms", "a span such as 22ms", "medium=links: time of a hop (erratum D21)").alias(),
    p("sender_sack", "on", SWITCH, "whether the sender offers SACK; if not, the nodes do in its name").alias(),
];

const TAKES: &[(&str, Takes)] = &[
    ("hops", Takes::Count(2, 32)),
    ("loss", Takes::Probability),
    ("segments", Takes::Count(1, 1_000_000)),
    ("payload", Takes::Size),
    ("window", Takes::Count(1, 100)),
    ("ack_loss_factor", Takes::Real(0.0, 1.0)),
    ("link_ack_loss_factor", Takes::Real(0.0, 1.0)),
    ("cache_segments", Takes::Count(0, 64)),
    ("cache_probability", Takes::Real(0.0, 1.0)),
    ("local_rto", Takes::Real(0.1, 60.0)),
    ("guard", Takes::Real(0.0, 60.0)),
    ("retries", Takes::Count(0, 15)),
    ("rto_initial", Takes::Span),
    ("rto_min", Takes::Span),
    ("rto_max", Takes::Span),
    ("hop_delay", Takes::Span),
];

/// The settings in canonical form: each value as results write it, and numbers instead of "auto".
///
/// # Errors
///
/// The first invalid value.
pub(super) fn canonical(settings: &Settings) -> Understood<Settings> {
    let mut settings = settings.clone();
    if settings.text("cache_probability") == "auto" {
        let chance = if settings.text("mode") == Mode::Improved.word() { "1" } else { "0.5" };
        settings = settings.with("cache_probability", chance);
    }
    values::canonical(&settings, TAKES)
}

/// Numbers of the chain for the meter and the closed forms.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Chain {
    /// Number of links between sender and receiver.
    pub hops: usize,
    /// Number of segments to carry.
    pub segments: usize,
    /// Payload of a segment in bytes.
    pub payload: u16,
    /// Loss probability of a segment on a link.
    pub loss: f64,
}

impl Chain {
    pub(super) fn of(settings: &Settings) -> Understood<Self> {
        Ok(Self {
            hops: count("hops", settings.text("hops"), 2, 32)?,
            segments: count("segments", settings.text("segments"), 1, 1_000_000)?,
            payload: payload(settings.text("payload"))?,
            loss: probability("loss", settings.text("loss"))?,
        })
    }

    /// Number of bytes that the last acknowledgement covers.
    pub fn octets(&self) -> u64 {
        self.segments as u64 * u64::from(self.payload)
    }

    /// Loss probability of a frame or its acknowledgement for which `loss` is that of a data
    /// segment over a hop. All frames of the segment must arrive, and all but the last must be
    /// acknowledged, or the MAC gives up the segment.
    pub(super) fn frame_loss(&self) -> f64 {
        let must_arrive = f64::from(2 * self.frames() - 1);
        1.0 - (1.0 - self.loss).powf(1.0 / must_arrive)
    }

    /// Number of frames of a data segment over a hop between two inner nodes.
    pub(super) fn frames(&self) -> u32 {
        let packet = Packet {
            id: 0,
            src: NodeId(0),
            dst: NodeId(3),
            wire_len: IPV6_AND_TCP + u32::from(self.payload),
            identification: 0,
            hop_limit: 0,
            traffic_class: 0,
            path: 0,
            outer: None,
            payload: Payload::Tcp(Segment::default()),
        };
        let hop = (NodeId(1), Some(NodeId(2)));
        let cut = frames::cut(IpVersion::V6, &packet, hop, (&PhyConfig::o_qpsk()).into());
        cut.map_or(1, |cut| cut.pieces())
    }
}

/// Distance between neighbours on the radio, in metres: each node hears its two neighbours only.
const SPACE: usize = 80;
/// Length of the headers without options, in bytes.
const IPV6_AND_TCP: u32 = 60;

fn derived(settings: &Settings) -> Understood<Vec<Assignment>> {
    let chain = Chain::of(settings)?;
    let Chain { hops, payload, .. } = chain;
    let window = count("window", settings.text("window"), 1, 100)?;
    let mut all = vec![
        ("hops", format!("nodes.r*.count={}", hops - 1)),
        // The run ends with the last acknowledgement, not by time.
        ("segments", "stop=8760 h".to_owned()),
        ("payload", format!("tcp.default.mss={payload}")),
        ("window", format!("tcp.default.window_limit={window}")),
        ("window", format!("tcp.default.least_ssthresh={window}")),
        ("window", format!("tcp.default.receive_buffer={} B", window * usize::from(payload))),
    ];
    let hop: Span = quantity("hop_delay", settings.text("hop_delay"))?;
    // Segments are at least 3.5 hops apart (erratum D8).
    all.push(("hop_delay", format!("link.hop*.only.hop1.spacing={}", Span(hop.0 * 7 / 2))));
    if values::meant("last_ack_loss", settings.text("last_ack_loss"), &[("off", false), ("on", true)])? {
        all.push(("last_ack_loss", format!("link.hop*.only.hop1.back.loss={:?}", chain.loss)));
    }
    if is_radio(settings)? {
        let radio = "radio={ phy = \"oqpsk-250k\", range = \"100 m\", queue = \"1000 packets\" }";
        all.extend([
            ("medium", "link.hop*.enabled=false".to_owned()),
            ("medium", radio.to_owned()),
            ("medium", "nodes.s.place={ at = [[0, 0]] }".to_owned()),
            (
                "medium",
                format!("nodes.r*.place={{ line = {{ start = [{SPACE}, 0], step = [{SPACE}, 0] }} }}"),
            ),
            ("hops", format!("nodes.d.place={{ at = [[{}, 0]] }}", SPACE * hops)),
            ("loss", format!("radio.loss={:?}", chain.frame_loss())),
            ("retries", format!("radio.max_frame_retries={}", settings.text("retries"))),
        ]);
    }
    Ok(all)
}

fn payload(text: &str) -> Understood<u16> {
    let size: Size = quantity("payload", text)?;
    u16::try_from(size.0)
        .ok()
        .filter(|n| (1..=1400).contains(n))
        .ok_or_else(|| ParameterError::bad("payload", text, "expected 1 B to 1400 B", None))
}
