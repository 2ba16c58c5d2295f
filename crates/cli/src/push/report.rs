//! What a push has to say for itself.

use std::fmt;

use anabranch_core::set::tcp_manager::{Ending, State};
use anabranch_core::set::{SessionReport, SetAckStatus, StreamClose};
use anabranch_net::set as net;
use anabranch_sim::apps::set::LegTotals;
use anabranch_sim::scenario::Scenario;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::Push;
use crate::output::hex;

/// The result, as it is printed and as JSON.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Octets of the file.
    pub(super) bytes: u64,
    sha256: String,
    /// Octets that came out of the node's receive buffer, in order.
    pub(super) delivered_bytes: u64,
    /// Of these; `None` of a deployed node, which does not say.
    delivered_sha256: Option<String>,
    /// Octets of these that the node had already.
    resumed_from: u64,
    /// The node has the file, octet by octet; `None` if that is the node's word alone.
    pub(super) verified: Option<bool>,
    network: String,
    /// From the request until the last octet was delivered in order.
    latency_s: Option<f64>,
    /// From the request until the first session was open.
    establishment_s: Option<f64>,
    goodput_bit_per_s: Option<f64>,
    gateways: Vec<GatewayLine>,
    compare: Vec<Compared>,
}

/// What one gateway did.
#[derive(Debug, Serialize)]
struct GatewayLine {
    name: String,
    state: &'static str,
    /// Octets of the file that it was given, copies included.
    bytes: u64,
    /// From writing a chunk to the node's acknowledgement of it, smoothed.
    srtt_s: Option<f64>,
    /// Segments that TCP sent again, on both halves; to a deployed gateway on the first, since it does not say.
    retransmissions: u64,
}

/// One scheme on the same network.
#[derive(Debug, Serialize)]
pub(super) struct Compared {
    pub(super) scheme: &'static str,
    pub(super) gateways: u32,
    /// `None` if it did not deliver.
    pub(super) latency_s: Option<f64>,
}

impl Report {
    /// Of a transfer in a simulation, where what the node has is there to see.
    pub(super) fn of_simulated(
        push: &Push,
        scenario: &Scenario,
        file: &[u8],
        compare: Vec<Compared>,
    ) -> Self {
        let figures = push.figures();
        let delivered = push.delivered();
        let sessions = push.sender().sessions();
        Self {
            bytes: file.len() as u64,
            sha256: sha256(file),
            delivered_bytes: delivered.len() as u64,
            delivered_sha256: Some(sha256(delivered)),
            resumed_from: 0,
            verified: Some(delivered == file && figures.latency.is_some()),
            network: scenario.name.clone(),
            latency_s: figures.latency.map(|d| d.as_secs_f64()),
            establishment_s: figures.establishment.map(|d| d.as_secs_f64()),
            goodput_bit_per_s: figures.goodput(),
            gateways: sessions.iter().map(|s| GatewayLine::new(push, scenario, s)).collect(),
            compare,
        }
    }

    /// Of a transfer to a deployed node: `names` are those of gateways, by id.
    pub(super) fn of_deployed(
        push: &net::Push,
        network: String,
        file: (&str, u64),
        names: &[String],
    ) -> Self {
        let (sha256, bytes) = file;
        let latency_s = push.latency().map(|d| d.as_secs_f64());
        let carried = push.delivered().saturating_sub(push.resumed_from());
        let name = |id: u16| names.get(usize::from(id)).cloned();
        let gateways = push.sessions().map(|session| GatewayLine {
            name: name(session.gateway).unwrap_or_else(|| session.address.to_string()),
            state: state_name(session.state),
            bytes: session.written,
            srtt_s: session.latency.map(|d| d.as_secs_f64()),
            retransmissions: u64::from(push.retransmissions(session.stream)),
        });
        Self {
            bytes,
            sha256: sha256.to_owned(),
            delivered_bytes: push.delivered(),
            delivered_sha256: None,
            resumed_from: push.resumed_from(),
            verified: None,
            network,
            latency_s,
            establishment_s: push.establishment().map(|d| d.as_secs_f64()),
            goodput_bit_per_s: latency_s.filter(|s| *s > 0.0).map(|s| carried as f64 * 8.0 / s),
            gateways: gateways.collect(),
            compare: Vec::new(),
        }
    }
}

impl GatewayLine {
    fn new(push: &Push, scenario: &Scenario, (session, wired): &(SessionReport, LegTotals)) -> Self {
        let node = usize::from(session.gateway);
        Self {
            name: scenario.nodes.get(node).map_or_else(|| format!("#{node}"), |n| n.name.clone()),
            state: state_name(session.state),
            bytes: session.written,
            srtt_s: session.latency.map(|d| d.as_secs_f64()),
            retransmissions: wired.retransmissions + push.wireless_retransmissions(session.gateway),
        }
    }
}

fn state_name(state: State) -> &'static str {
    match state {
        State::Calling | State::OpenWait { .. } => "opening",
        State::Opened => "open",
        State::Released | State::Closed(Ending::Delivered) => "done",
        State::Closed(Ending::Stream(StreamClose::Graceful)) => "ended",
        State::Closed(Ending::Stream(StreamClose::Reset)) => "reset",
        State::Closed(Ending::Stream(StreamClose::Refused)) => "refused",
        State::Closed(Ending::Stream(StreamClose::TimedOut)) => "timed out",
        State::Closed(Ending::Stream(StreamClose::Forbidden) | Ending::Refused(SetAckStatus::Forbidden)) => {
            "forbidden"
        }
        State::Closed(Ending::Stream(StreamClose::Congested) | Ending::Refused(SetAckStatus::Congested)) => {
            "congested"
        }
        State::Closed(Ending::Refused(_)) => "node unreachable",
        State::Closed(Ending::Silent) => "silent",
        State::Closed(Ending::Cancelled) => "cancelled",
        State::Closed(Ending::Protocol) => "broke the protocol",
    }
}

fn sha256(octets: &[u8]) -> String {
    hex(&Sha256::digest(octets))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.latency_s {
            Some(latency) => {
                let goodput = self.goodput_bit_per_s.unwrap_or(0.0) / 1000.0;
                let verdict = match self.verified {
                    Some(true) => "SHA-256 equal",
                    Some(false) => "SHA-256 DIFFERS",
                    None => "acknowledged by the node",
                };
                writeln!(
                    f,
                    "{} octets delivered in {latency:.3} s ({goodput:.1} kbit/s), {verdict}",
                    self.bytes
                )?;
            }
            None => writeln!(f, "{} of {} octets delivered", self.delivered_bytes, self.bytes)?,
        }
        if self.resumed_from > 0 {
            writeln!(f, "{} of them were there already", self.resumed_from)?;
        }
        writeln!(f, "network: {}", self.network)?;
        let width = self.gateways.iter().map(|g| g.name.len()).max().unwrap_or(0).max(12);
        if !self.gateways.is_empty() {
            writeln!(
                f,
                "\n{:<width$} {:>10} {:>7} {:>10} {:>7}  state",
                "gateway", "octets", "share", "ack after", "resent"
            )?;
        }
        let carried: u64 = self.gateways.iter().map(|g| g.bytes).sum();
        for gateway in &self.gateways {
            let share = (gateway.bytes * 100).checked_div(carried).unwrap_or(0);
            let srtt = gateway.srtt_s.map_or_else(|| "-".into(), |s| format!("{:.0} ms", s * 1000.0));
            let GatewayLine { name, bytes, retransmissions, state, .. } = gateway;
            writeln!(f, "{name:<width$} {bytes:>10} {share:>5} % {srtt:>10} {retransmissions:>7}  {state}")?;
        }
        self.write_compare(f)
    }
}

impl Report {
    fn write_compare(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one =
            self.compare.iter().find(|c| c.scheme == "set" && c.gateways == 1).and_then(|c| c.latency_s);
        if !self.compare.is_empty() {
            writeln!(
                f,
                "\n{:<12} {:>8} {:>12} {:>22}",
                "scheme", "gateways", "latency", "against one gateway"
            )?;
        }
        for c in &self.compare {
            let latency = c.latency_s.map_or_else(|| "not delivered".into(), |s| format!("{s:.3} s"));
            let ratio = match (one, c.latency_s) {
                (Some(one), Some(own)) if own > 0.0 => format!("{:.2} times as fast", one / own),
                _ => String::new(),
            };
            writeln!(f, "{:<12} {:>8} {latency:>12} {ratio:>22}", c.scheme, c.gateways)?;
        }
        Ok(())
    }
}
