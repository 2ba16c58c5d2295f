//! What the parameters mean.

use anabranch_core::mptcp::{Reinjection, SchedulerKind};
use anabranch_core::time::Duration;
use anabranch_sim::apps::packets::LEAST_PACKET;
use anabranch_sim::scenario::radio::Phy;
use anabranch_sim::scenario::units::{Size, Span};
use serde::{Deserialize, Serialize};

use super::deployment::Shape;
use super::parameters::PARAMETERS;
use crate::experiment::values::{self, Aliases, Understood, aliased, count, named, on_off, plain, quantity};
use crate::experiment::{ParameterError, Settings};

/// How packets are carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// The paper's.
    Proposed,
    /// Multipath TCP with the fastest path first and NewReno on each.
    Conventional,
    /// TCP over the best path.
    Tcp,
}

/// Which congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// RFC 5681 and RFC 6582 on each path.
    #[serde(rename = "newreno")]
    NewReno,
    /// RFC 6356: the paths together are no more aggressive than one TCP.
    Coupled,
    /// Section IV.
    Adaptive,
}

/// Which nodes have a cellular interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Siting {
    /// Those that shorten the ways of all most.
    Planned,
    /// Any.
    Random,
}

/// A point of the experiment. The names are those of the parameters.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the parameters' own descriptions are the one home of these facts")]
pub struct Config {
    pub scheme: Scheme,
    pub shape: Shape,
    pub nodes: usize,
    pub multi_link: usize,
    pub multi_link_at: Siting,
    pub packets: u32,
    pub payload: u16,
    pub rate: f64,
    pub paths: u8,
    pub subflows: usize,
    pub scheduler: SchedulerKind,
    pub congestion: Congestion,
    pub reinjection: Reinjection,
    pub ack_every: Option<u8>,
    pub ack_window: bool,
    pub ack_delay: Duration,
    pub range: f64,
    pub interference: f64,
    pub capture: Option<f64>,
    pub carrier_sense: f64,
    pub queue: Option<u32>,
    pub retries: u8,
    pub retry_delay: Duration,
    pub access_retries: u8,
    pub phy: Phy,
    pub limit: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self::understand(&Settings::defaults(&super::Mptcp)).expect("the defaults can be")
    }
}

impl Config {
    /// Understands a text for each parameter.
    ///
    /// # Errors
    ///
    /// The first that cannot be.
    pub fn understand(settings: &Settings) -> Understood<Self> {
        let number = |key, least, most| count(key, settings.text(key), least, most);
        let scheme = values::word("scheme", settings.text("scheme"))?;
        let proposed = scheme == Scheme::Proposed;
        let this = Self {
            scheme,
            paths: number("paths", 1, 8)? as u8,
            subflows: match settings.text("subflows") {
                "auto" if proposed => 1,
                "auto" => 8,
                text => count("subflows", text, 1, 8)?,
            },
            scheduler: match settings.text("scheduler") {
                "auto" if proposed => SchedulerKind::Predictive,
                "auto" => SchedulerKind::FastestRtt,
                text => values::word("scheduler", text)?,
            },
            congestion: match settings.text("congestion") {
                "auto" if proposed => Congestion::Adaptive,
                "auto" => Congestion::NewReno,
                text => values::word("congestion", text)?,
            },
            reinjection: match settings.text("reinjection") {
                "auto" => Reinjection::OnTimeout,
                text => values::alias("reinjection", text, REINJECTIONS)?,
            },
            shape: values::word("deployment", settings.text("deployment"))?,
            nodes: number("nodes", 2, 200)?,
            multi_link: number("multi_link", 0, 50)?,
            multi_link_at: values::word("multi_link_at", settings.text("multi_link_at"))?,
            packets: number("packets", 1, 100_000)? as u32,
            payload: payload(settings.text("payload"))?,
            rate: positive("rate", settings.text("rate"), 0.001, 10_000.0)?,
            ack_every: match settings.text("ack_every") {
                "auto" => None,
                text => Some(count("ack_every", text, 1, 100)? as u8),
            },
            ack_window: match settings.text("ack_window") {
                "auto" => proposed,
                text => values::switch("ack_window", text)?,
            },
            ack_delay: match settings.text("ack_delay") {
                "auto" if proposed => Duration::from_secs(5),
                "auto" => Duration::from_millis(200),
                text => short("ack_delay", text)?,
            },
            range: metres(settings.text("range"))?,
            interference: positive("interference", settings.text("interference"), 1.0, 5.0)?,
            capture: match settings.text("capture") {
                "off" => None,
                text => Some(positive("capture", text, 1.0, 10.0)?),
            },
            carrier_sense: positive("carrier_sense", settings.text("carrier_sense"), 1.0, 5.0)?,
            queue: match settings.text("queue") {
                "unlimited" => None,
                text => Some(count("queue", text, 1, 10_000)? as u32),
            },
            retries: number("retries", 0, 15)? as u8,
            retry_delay: short("retry_delay", settings.text("retry_delay"))?,
            access_retries: number("access_retries", 0, 100)? as u8,
            phy: values::alias("phy", settings.text("phy"), PHYS)?,
            limit: quantity::<Span>("limit", settings.text("limit"))?.0,
        };
        if this.multi_link >= this.nodes {
            let message = format!("expected fewer than the {} nodes", this.nodes);
            return Err(ParameterError::bad("multi_link", settings.text("multi_link"), message, None));
        }
        Ok(this)
    }

    /// Segments for which an acknowledgement waits.
    pub fn ack_every(&self) -> u8 {
        self.ack_every.unwrap_or(match self.scheme {
            Scheme::Proposed => 20,
            Scheme::Conventional | Scheme::Tcp => 2,
        })
    }

    /// Every parameter as it can be given again.
    pub fn texts(&self) -> Vec<(&'static str, String)> {
        let text = |name: &str| match name {
            "scheme" => named(self.scheme),
            "deployment" => named(self.shape),
            "nodes" => self.nodes.to_string(),
            "multi_link" => self.multi_link.to_string(),
            "multi_link_at" => named(self.multi_link_at),
            "packets" => self.packets.to_string(),
            "payload" => plain(&Size(self.payload.into())),
            "rate" => self.rate.to_string(),
            "paths" => self.paths.to_string(),
            "subflows" => self.subflows.to_string(),
            "scheduler" => named(self.scheduler),
            "congestion" => named(self.congestion),
            "reinjection" => aliased(self.reinjection, REINJECTIONS),
            "ack_every" => self.ack_every().to_string(),
            "range" => format!("{}m", self.range),
            "interference" => self.interference.to_string(),
            "ack_window" => on_off(self.ack_window),
            "ack_delay" => plain(&Span(self.ack_delay)),
            "capture" => self.capture.map_or("off".to_owned(), |ratio| ratio.to_string()),
            "carrier_sense" => self.carrier_sense.to_string(),
            "queue" => self.queue.map_or("unlimited".to_owned(), |packets| packets.to_string()),
            "retry_delay" => plain(&Span(self.retry_delay)),
            "access_retries" => self.access_retries.to_string(),
            "retries" => self.retries.to_string(),
            "phy" => aliased(self.phy, PHYS),
            "limit" => plain(&Span(self.limit)),
            other => unreachable!("`{other}` is a parameter without a text"),
        };
        PARAMETERS.iter().map(|p| (p.name, text(p.name))).collect()
    }
}

fn payload(text: &str) -> Understood<u16> {
    let size: Size = quantity("payload", text)?;
    let range = u64::from(LEAST_PACKET)..=1000;
    match u16::try_from(size.0).ok().filter(|n| range.contains(&u64::from(*n))) {
        Some(n) => Ok(n),
        None => Err(ParameterError::bad("payload", text, "expected 12 B to 1000 B", None)),
    }
}

fn short(key: &'static str, text: &str) -> Understood<Duration> {
    let span: Span = quantity(key, text)?;
    if span.0 > Duration::from_secs(10) {
        return Err(ParameterError::bad(key, text, "expected at most 10s", None));
    }
    Ok(span.0)
}

fn metres(text: &str) -> Understood<f64> {
    let number = text.strip_suffix('m').map_or(text, str::trim_end);
    positive("range", number, 1.0, 100_000.0)
        .map_err(|_| ParameterError::bad("range", text, "expected a distance such as 120m", None))
}

fn positive(key: &'static str, text: &str, least: f64, most: f64) -> Understood<f64> {
    text.parse().ok().filter(|f| (least..=most).contains(f)).ok_or_else(|| {
        ParameterError::bad(key, text, format!("expected a number from {least} to {most}"), None)
    })
}

const REINJECTIONS: Aliases = &[("failure", "on-failure"), ("timeout", "on-timeout")];
const PHYS: Aliases = &[("fsk100", "fsk-100k"), ("oqpsk250", "oqpsk-250k")];
