//! Parameters of the experiment. Defaults come from Table 1 of the paper where it gives a number;
//! for the others see erratum H20 and ns-2's defaults.

use anabranch_core::time::Duration;
use anabranch_scenario::units::{Size, Span};
use anabranch_wire::rdca::Header;

use crate::experiment::template::{Assignment, Template};
use crate::experiment::values::{self, Understood, count, length, metres, plain, quantity};
use crate::experiment::{Parameter, ParameterError, Settings, parameter as p};

/// The scenario and how the parameters change it.
pub const TEMPLATE: Template = Template {
    file: "scenarios/papers/rdca.toml",
    text: include_str!("../../../../scenarios/papers/rdca.toml"),
    parameters: PARAMETERS,
    derived,
};

/// Transport of the packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// Ours: `core::rdca` with its defaults.
    Rdca,
    /// The paper's algorithm as read with the errata.
    RdcaPaper,
    /// TCP NewReno.
    NewReno,
    /// TCP Westwood+.
    Westwood,
    /// TCP NewReno that pauses while there is no route.
    Elfn,
    /// TCP CUBIC.
    Cubic,
    /// UDP: packets are sent as they are offered.
    Datagrams,
}

impl Protocol {
    /// The value of the parameter `protocol`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Rdca => "rdca",
            Self::RdcaPaper => "rdca-paper",
            Self::NewReno => "newreno",
            Self::Westwood => "westwood",
            Self::Elfn => "elfn",
            Self::Cubic => "cubic",
            Self::Datagrams => "datagrams",
        }
    }
}

pub(super) const PARAMETERS: &[Parameter] = &[
    p(
        "protocol",
        "rdca",
        "rdca, rdca-paper, newreno, westwood, elfn, cubic or datagrams",
        "ours, the paper's as the errata read it, TCP, or UDP without control (for the capacity)",
    )
    .alias(),
    p("senders", "1", "1 and more, fewer than the nodes", "nodes that see the event").alias(),
    p(
        "rate",
        "4kB/s",
        "bytes per second such as 4kB/s",
        "that each sender's application offers, in whole packets",
    ),
    p("nodes", "100", "2 to 500", "nodes, the sink included"),
    p("area", "450mx200m", "width x height such as 450mx200m", "in which they lie evenly at random"),
    p("range", "100m", "a distance such as 100m", "how far frames are received").alias(),
    p(
        "carrier_sense",
        "220m",
        "a distance such as 220m",
        "how far they are heard, not below the range (erratum H20b)",
    )
    .alias(),
    p(
        "topology",
        "random",
        "random or row",
        "where the nodes are: anywhere, or in a row 80 % of the range apart",
    ),
    p(
        "topologies",
        "5",
        "0 and more",
        "different placements, by turns over the runs; 0: each run has its own",
    )
    .alias(),
    p("event_hops", "2", "1 and more", "hops from the node nearest to the event to the sink (erratum H20b)")
        .alias(),
    p("queue", "50", "1 and more", "packets that wait at a node's interface").alias(),
    p("packet", "300B", "40B to 1000B", "a packet, RDCA's longest header included; TCP has the same payload"),
    p(
        "header",
        "ours",
        "ours or printed",
        "how RDCA writes its datagrams: 17 bytes before the data at most, or the paper's 4 (erratum H15)",
    )
    .alias(),
    p(
        "profile",
        "default",
        "default or far",
        "RDCA's buffers and how often the sink speaks: as they are, or for senders beyond three hops",
    )
    .alias(),
    p("duration", "100s", "a span such as 100s", "of a run"),
    p("event_at", "5s", "a span such as 5s", "when the event begins; it lasts to the end of the run").alias(),
    p(
        "bit_rate",
        "2Mbit/s",
        "1Mbit/s, 2Mbit/s, 5.5Mbit/s or 11Mbit/s",
        "of data frames; others go at 1 Mbit/s",
    )
    .alias(),
    p("rts", "on", "on or off", "whether unicast frames are announced by RTS and CTS: ns-2's default is on")
        .alias(),
    p("loss", "0", "a probability such as 0.02 or 2%", "of each frame on each link, beside collisions")
        .alias(),
    p("tcp_window", "20", "1 to 1000", "segments that TCP has under way at most: ns-2's default"),
];

/// Time for the last packets to arrive.
const DRAIN: Duration = Duration::from_secs(5);

fn derived(settings: &Settings) -> Understood<Vec<Assignment>> {
    let packet = packet(settings.text("packet"))?;
    let payload = packet - header(settings)? as u16;
    let interval = Duration::from_secs_f64(f64::from(packet) / rate(settings.text("rate"))? as f64);
    let window = count("tcp_window", settings.text("tcp_window"), 1, 1000)? * usize::from(payload);
    let nodes = count("nodes", settings.text("nodes"), 2, 500)?;
    let duration: Span = quantity("duration", settings.text("duration"))?;
    let place =
        match values::meant("topology", settings.text("topology"), &[("random", false), ("row", true)])? {
            false => {
                let (width, height) = area(settings.text("area"))?;
                vec![
                    ("area", format!("nodes.0.place.random.width={width}")),
                    ("area", format!("nodes.0.place.random.height={height}")),
                    ("area", format!("node.sink.position=[0.0, {:?}]", height / 2.0)),
                ]
            }
            true => {
                let step = 0.8 * metres("range", settings.text("range"))?;
                vec![
                    (
                        "topology",
                        format!(
                            "nodes.0.place={{ line = {{ start = [{step:?}, 0.0], step = [{step:?}, 0.0] }} }}"
                        ),
                    ),
                    ("topology", "node.sink.position=[0.0, 0.0]".to_owned()),
                ]
            }
        };
    let all = [
        ("rate", format!("traffic.event.interval={}", Span(interval))),
        ("packet", format!("traffic.event.payload={payload} B")),
        ("packet", format!("rdca.default.datagram={packet}")),
        ("packet", format!("tcp.default.mss={payload}")),
        ("tcp_window", format!("tcp.default.receive_buffer={window} B")),
        ("nodes", format!("nodes.0.count={}", nodes - 1)),
        ("duration", format!("traffic.event.stop={duration}")),
        ("duration", format!("stop={}", Span(duration.0 + DRAIN))),
    ];
    Ok(all.into_iter().chain(place).collect())
}

/// Length of the longest header of RDCA's data packets, in bytes.
pub(super) fn header(settings: &Settings) -> Understood<usize> {
    let words = [("ours", Header::Ours), ("printed", Header::Printed)];
    values::meant("header", settings.text("header"), &words).map(Header::data_octets)
}

pub(super) fn rate(text: &str) -> Understood<u64> {
    let hint = || Some("such as 4kB/s".to_owned());
    let size: Option<Size> = text.strip_suffix("/s").and_then(|size| size.parse().ok());
    match size {
        Some(Size(bytes)) if (1..=100_000_000).contains(&bytes) => Ok(bytes),
        _ => Err(ParameterError::bad("rate", text, "expected bytes per second, up to 100 MB/s", hint())),
    }
}

fn packet(text: &str) -> Understood<u16> {
    let Size(bytes) = quantity("packet", text)?;
    match u16::try_from(bytes).ok().filter(|n| (40..=1000).contains(n)) {
        Some(n) => Ok(n),
        None => Err(ParameterError::bad("packet", text, "expected 40 B to 1000 B", None)),
    }
}

fn area(text: &str) -> Understood<(f64, f64)> {
    let sides = text.split_once('x').and_then(|(width, height)| Some((length(width)?, length(height)?)));
    sides.ok_or_else(|| {
        let hint = Some("such as 450mx200m".to_owned());
        ParameterError::bad("area", text, "expected a width and a height from 1 m to 100 km", hint)
    })
}

/// Formats the rate of each sender as a value of the parameter `rate`.
pub fn rate_text(bytes: u64) -> String {
    format!("{}/s", plain(&Size(bytes)))
}
