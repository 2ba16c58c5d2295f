//! The report of a push.

use std::fmt;

use anabranch_core::set::tcp_manager::{Ending, State};
use anabranch_core::set::{Moments, PhaseSpan, SetAckStatus, StreamClose, StripingDecision};
use anabranch_core::time::Instant;
use anabranch_net::set as net;
use serde::Serialize;

/// Result of a push, printed as text or JSON.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Length of the file in bytes.
    pub bytes: u64,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// Number of bytes delivered in order.
    pub delivered_bytes: u64,
    /// SHA-256 of the delivered bytes; `None` for a deployed node, which does not report it.
    pub delivered_sha256: Option<String>,
    /// Number of delivered bytes that the node had from an earlier push.
    pub resumed_from: u64,
    /// Whether the node's bytes equal the file's; `None` for a deployed node, where only the node
    /// can tell.
    pub verified: Option<bool>,
    /// Name of the network or of the node.
    pub network: String,
    /// Time from the request until the last byte was delivered in order, in seconds.
    pub latency_s: Option<f64>,
    /// Time from the request until the first session was open, or until the file was delivered
    /// without a session, in seconds.
    pub establishment_s: Option<f64>,
    /// The phases that have ended, without gaps. `latency_s` of a simulated push ends at the node,
    /// and the last phase at the sender, an acknowledgement later.
    pub phases: Vec<PhaseLine>,
    /// What adaptive striping has decided, first to last; empty with other policies.
    pub decisions: Vec<DecisionLine>,
    /// Delivered bytes of this push divided by the latency, in bit/s.
    pub goodput_bit_per_s: Option<f64>,
    /// One entry per gateway.
    pub gateways: Vec<GatewayLine>,
    /// Results of other schemes on the same network; empty without `--compare`.
    pub compare: Vec<Compared>,
}

/// A phase of the transfer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PhaseLine {
    /// Name of the phase: see [`TransferPhase::name`](anabranch_core::set::TransferPhase::name).
    pub name: &'static str,
    /// Time from the start of the transfer to the begin of the phase, in seconds.
    pub start_s: f64,
    /// Time from the start of the transfer to the end of the phase, in seconds.
    pub end_s: f64,
}

impl PhaseLine {
    /// The phases between these moments.
    pub fn of(moments: &Moments) -> Vec<Self> {
        let line = |span: PhaseSpan| {
            let (start_s, end_s) = (span.start.as_secs_f64(), span.end.as_secs_f64());
            Self { name: span.phase.name(), start_s, end_s }
        };
        moments.phases().map(line).collect()
    }
}

/// A decision of adaptive striping.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DecisionLine {
    /// Time from the start of the transfer to the decision, in seconds.
    pub at_s: f64,
    /// Name of the decision: see
    /// [`StripingChoice::name`](anabranch_core::set::StripingChoice::name).
    pub decision: &'static str,
    /// Name of the measurement: see
    /// [`StripingReason::name`](anabranch_core::set::StripingReason::name).
    pub reason: &'static str,
    /// The measured value.
    pub measured: f64,
    /// The limit to which the value was compared.
    pub limit: f64,
    /// Unit of both.
    pub unit: &'static str,
}

impl DecisionLine {
    /// The decisions of a transfer that started at this time.
    pub fn of(started: Instant, decisions: &[StripingDecision]) -> Vec<Self> {
        let line = |d: &StripingDecision| Self {
            at_s: d.at.saturating_since(started).as_secs_f64(),
            decision: d.choice.name(),
            reason: d.reason.name(),
            measured: d.measured,
            limit: d.limit,
            unit: d.reason.unit(),
        };
        decisions.iter().map(line).collect()
    }
}

/// Result of one gateway.
#[derive(Debug, Serialize)]
pub struct GatewayLine {
    /// Name or address.
    pub name: String,
    /// State of its last session.
    pub state: &'static str,
    /// Number of file bytes handed to it, copies included.
    pub bytes: u64,
    /// Smoothed time from writing a chunk to the node's acknowledgement, in seconds.
    pub srtt_s: Option<f64>,
    /// Number of segments that TCP retransmitted on both halves; for a deployed gateway only on the
    /// first half, since the gateway does not report the second.
    pub retransmissions: u64,
}

/// Result of one scheme on the same network.
#[derive(Debug, Serialize)]
pub struct Compared {
    /// Name of the scheme.
    pub scheme: &'static str,
    /// Number of gateways.
    pub gateways: u32,
    /// Latency in seconds; `None` if the file was not delivered.
    pub latency_s: Option<f64>,
}

impl Report {
    /// Creates the report of a transfer to a deployed node. `names` are the gateways' names by
    /// identifier.
    pub fn of_deployed(push: &net::Push, network: String, file: (&str, u64), names: &[String]) -> Self {
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
            phases: PhaseLine::of(push.moments()),
            decisions: DecisionLine::of(push.moments().started, push.decisions()),
            goodput_bit_per_s: latency_s.filter(|s| *s > 0.0).map(|s| carried as f64 * 8.0 / s),
            gateways: gateways.collect(),
            compare: Vec::new(),
        }
    }
}

/// Name of a session's state.
pub fn state_name(state: State) -> &'static str {
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
                    "{} bytes delivered in {latency:.3} s ({goodput:.1} kbit/s), {verdict}",
                    self.bytes
                )?;
            }
            None => writeln!(f, "{} of {} bytes delivered", self.delivered_bytes, self.bytes)?,
        }
        if self.resumed_from > 0 {
            writeln!(f, "{} of them were already at the node", self.resumed_from)?;
        }
        writeln!(f, "network: {}", self.network)?;
        for (i, PhaseLine { name, start_s, end_s }) in self.phases.iter().enumerate() {
            let lead = if i == 0 { "phases (s):" } else { "," };
            write!(f, "{lead} {} {:.3}", name.replace('_', " "), end_s - start_s)?;
        }
        if !self.phases.is_empty() {
            writeln!(f)?;
        }
        let width = self.gateways.iter().map(|g| g.name.len()).max().unwrap_or(0).max(12);
        if !self.gateways.is_empty() {
            writeln!(
                f,
                "\n{:<width$} {:>10} {:>7} {:>10} {:>7}  state",
                "gateway", "bytes", "share", "ack after", "resent"
            )?;
        }
        if self.gateways.is_empty() && self.latency_s.is_some() && self.resumed_from < self.bytes {
            writeln!(f, "no session was opened: the file went directly to the node")?;
        }
        let carried: u64 = self.gateways.iter().map(|g| g.bytes).sum();
        for gateway in &self.gateways {
            let share = (gateway.bytes * 100).checked_div(carried).unwrap_or(0);
            let srtt = gateway.srtt_s.map_or_else(|| "-".into(), |s| format!("{:.0} ms", s * 1000.0));
            let GatewayLine { name, bytes, retransmissions, state, .. } = gateway;
            writeln!(f, "{name:<width$} {bytes:>10} {share:>5} % {srtt:>10} {retransmissions:>7}  {state}")?;
        }
        // After a failure, some bytes may not even have left this host.
        let needed = self.bytes.saturating_sub(self.resumed_from);
        let copies = self.latency_s.map_or(0, |_| carried.saturating_sub(needed));
        if copies > 0 {
            writeln!(
                f,
                "{copies} of these bytes were sent twice: chunks that were late or whose gateway failed went through \
                 another"
            )?;
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
