//! What the parameters mean.

use anabranch_core::time::Duration;
use anabranch_sim::scenario::units::{Rate, Size, Span};
use anabranch_sim::wifi;
use anabranch_wire::rdca::MAX_DATA_HEADER;
use serde::{Deserialize, Serialize};

use super::deployment::{Topology, Wanted};
use super::parameters::PARAMETERS;
use crate::experiment::values::{self, Understood, count, named, on_off, plain, probability, quantity};
use crate::experiment::{ParameterError, Settings};

/// What carries the packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Ours: `core::rdca` with its defaults.
    Rdca,
    /// The paper's algorithm as the errata read it.
    RdcaPaper,
    /// TCP NewReno.
    #[serde(rename = "newreno")]
    NewReno,
    /// TCP Westwood+.
    Westwood,
    /// TCP NewReno that stands by while there is no route.
    Elfn,
    /// TCP CUBIC.
    Cubic,
    /// UDP: what is offered leaves.
    Datagrams,
}

/// A point of the experiment. The names are those of the parameters.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the parameters' own descriptions are the one home of these facts")]
pub struct Config {
    pub protocol: Protocol,
    pub senders: usize,
    /// Octets per second.
    pub rate: u64,
    pub nodes: usize,
    /// Metres.
    pub area: (f64, f64),
    /// Metres.
    pub range: f64,
    /// Metres.
    pub carrier_sense: f64,
    pub topology: Topology,
    pub topologies: u64,
    pub event_hops: u32,
    pub queue: usize,
    pub packet: u16,
    pub duration: Duration,
    pub event_at: Duration,
    pub bit_rate: wifi::Rate,
    pub rts: bool,
    pub loss: f64,
    pub tcp_window: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self::understand(&Settings::defaults(&super::Rdca)).expect("the defaults can be")
    }
}

impl Config {
    /// Understands a text for each parameter.
    ///
    /// # Errors
    ///
    /// The first that cannot be.
    pub fn understand(settings: &Settings) -> Understood<Self> {
        let text = |key| settings.text(key);
        let number = |key, least, most| count(key, settings.text(key), least, most);
        let this = Self {
            protocol: values::word("protocol", text("protocol"))?,
            senders: number("senders", 1, 50)?,
            rate: rate(text("rate"))?,
            nodes: number("nodes", 2, 500)?,
            area: area(text("area"))?,
            range: metres("range", text("range"))?,
            carrier_sense: metres("carrier_sense", text("carrier_sense"))?,
            topology: values::word("topology", text("topology"))?,
            topologies: number("topologies", 0, 1000)? as u64,
            event_hops: number("event_hops", 1, 20)? as u32,
            queue: number("queue", 1, 1000)?,
            packet: packet(text("packet"))?,
            duration: quantity::<Span>("duration", text("duration"))?.0,
            event_at: quantity::<Span>("event_at", text("event_at"))?.0,
            bit_rate: bit_rate(text("bit_rate"))?,
            rts: values::switch("rts", text("rts"))?,
            loss: probability("loss", text("loss"))?,
            tcp_window: number("tcp_window", 1, 1000)? as u32,
        };
        let against = |key, message: String| Err(ParameterError::bad(key, text(key), message, None));
        if this.senders >= this.nodes {
            return against("senders", format!("expected fewer than the {} nodes", this.nodes));
        }
        if this.carrier_sense < this.range {
            return against("carrier_sense", format!("expected at least the range, {}m", this.range));
        }
        if this.event_at >= this.duration {
            return against("event_at", format!("expected before the end, {}", plain(&Span(this.duration))));
        }
        Ok(this)
    }

    /// Octets of payload in a packet: what RDCA's header leaves.
    pub fn payload(&self) -> u16 {
        self.packet - HEADER
    }

    /// Packets per second that a sender is offered.
    pub fn packets_per_second(&self) -> f64 {
        self.rate as f64 / f64::from(self.packet)
    }

    pub(super) fn wanted(&self) -> Wanted {
        let Self { nodes, area, range, topology, senders, event_hops, .. } = *self;
        Wanted { nodes, area, range, topology, senders, event_hops }
    }

    /// Every parameter as it can be given again.
    pub fn texts(&self) -> Vec<(&'static str, String)> {
        let text = |name: &str| match name {
            "protocol" => named(self.protocol),
            "senders" => self.senders.to_string(),
            "rate" => format!("{}/s", plain(&Size(self.rate))),
            "nodes" => self.nodes.to_string(),
            "area" => format!("{}mx{}m", self.area.0, self.area.1),
            "range" => format!("{}m", self.range),
            "carrier_sense" => format!("{}m", self.carrier_sense),
            "topology" => named(self.topology),
            "topologies" => self.topologies.to_string(),
            "event_hops" => self.event_hops.to_string(),
            "queue" => self.queue.to_string(),
            "packet" => plain(&Size(self.packet.into())),
            "duration" => plain(&Span(self.duration)),
            "event_at" => plain(&Span(self.event_at)),
            "bit_rate" => plain(&Rate(self.bit_rate.bit_per_s())),
            "rts" => on_off(self.rts),
            "loss" => self.loss.to_string(),
            "tcp_window" => self.tcp_window.to_string(),
            other => unreachable!("`{other}` is a parameter without a text"),
        };
        PARAMETERS.iter().map(|p| (p.name, text(p.name))).collect()
    }
}

/// Octets of the longest header of RDCA's data packets.
const HEADER: u16 = MAX_DATA_HEADER as u16;

fn rate(text: &str) -> Understood<u64> {
    let hint = || Some("such as 4kB/s".to_owned());
    let size: Option<Size> = text.strip_suffix("/s").and_then(|size| size.parse().ok());
    match size {
        Some(Size(octets)) if (1..=100_000_000).contains(&octets) => Ok(octets),
        _ => Err(ParameterError::bad("rate", text, "expected octets per second, up to 100 MB/s", hint())),
    }
}

fn packet(text: &str) -> Understood<u16> {
    let Size(octets) = quantity("packet", text)?;
    match u16::try_from(octets).ok().filter(|n| (40..=1000).contains(n)) {
        Some(n) => Ok(n),
        None => Err(ParameterError::bad("packet", text, "expected 40 B to 1000 B", None)),
    }
}

fn metres(key: &'static str, text: &str) -> Understood<f64> {
    length(text).ok_or_else(|| {
        ParameterError::bad(
            key,
            text,
            "expected a distance from 1 m to 100 km",
            Some("such as 100m".to_owned()),
        )
    })
}

fn length(text: &str) -> Option<f64> {
    let number = text.strip_suffix('m').map_or(text, str::trim_end);
    number.parse().ok().filter(|metres| (1.0..=100_000.0).contains(metres))
}

fn area(text: &str) -> Understood<(f64, f64)> {
    let sides = text.split_once('x').and_then(|(width, height)| Some((length(width)?, length(height)?)));
    sides.ok_or_else(|| {
        let hint = Some("such as 450mx200m".to_owned());
        ParameterError::bad("area", text, "expected a width and a height from 1 m to 100 km", hint)
    })
}

fn bit_rate(text: &str) -> Understood<wifi::Rate> {
    let Rate(bits) = quantity("bit_rate", text)?;
    wifi::Rate::from_bit_per_s(bits)
        .map_err(|_| ParameterError::bad("bit_rate", text, "expected 1, 2, 5.5 or 11 Mbit/s", None))
}
