//! TCP profiles: all options of [`tcp::Config`], each of which may be left to the base.

use anabranch_core::tcp::{
    self, AdaptiveNewReno, AutoTune, Backoff, ByteCounting, CongestionAlgorithm, DelayedAck, EcnMode,
    InitialWindow, Nagle, Push, Recovery, RtoConfig, SackRole,
};
use anabranch_core::time::Duration;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policies::{Named, Policies};
use super::units::{Limit, Size, Span, word_of};

/// Base of a TCP profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    /// A present-day host: "standard" plus CUBIC, HyStart++, RACK-TLP, PRR, D-SACK, undo, ECN and
    /// growing buffers.
    #[default]
    Modern,
    /// NewReno with SACK (RFC 5681, RFC 6675), the initial window of RFC 6928, timestamps, window
    /// scaling and fixed buffers.
    Standard,
    /// The TCP of the SET paper: initial window 1, window limit 64, time-outs of 3 s, no TCP
    /// options.
    Paper,
}

impl Base {
    fn config(self) -> tcp::Config {
        match self {
            Self::Modern => tcp::Config::modern(),
            Self::Standard => tcp::Config::default(),
            Self::Paper => tcp::Config::paper(),
        }
    }
}

/// A size, or no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged, expecting = "expected a size such as \"64 kB\", or \"none\"")]
pub enum SizeLimit {
    /// A number of bytes.
    Size(Size),
    /// No limit.
    None(NoLimit),
}

/// No limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NoLimit {
    /// The word for no limit.
    None,
}

/// Probe interval for a lost route (ELFN), or "off".
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged, expecting = "expected a time such as \"2 s\", or \"off\"")]
pub enum Elfn {
    /// Probe the route in this interval.
    Every(Span),
    /// Notices of lost routes are only counted.
    Off(NoElfn),
}

/// No reaction to notices of lost routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NoElfn {
    /// The word for no reaction.
    Off,
}

/// A TCP profile. The base provides the keys that are not given.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TcpProfile {
    /// Base that provides the default of every other key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
    /// Value of the MSS option (RFC 6691) in bytes, 1 to 65495: the largest payload of a segment
    /// without TCP options. Options reduce the payload: with timestamps a segment carries `mss` -
    /// 12 bytes.
    pub mss: Option<u16>,
    /// Initial congestion window in segments, at least 1, or "rfc6928".
    pub initial_window: Option<InitialWindow>,
    /// Initial slow-start threshold: a size, or "none".
    pub initial_ssthresh: Option<SizeLimit>,
    /// Lower bound of the slow-start threshold after a loss, in segments.
    pub least_ssthresh: Option<u16>,
    /// Upper bound of the congestion window in segments, at least 1, or "none".
    pub window_limit: Option<Limit>,
    /// Appropriate byte counting: largest number of segments that one acknowledgement adds to the
    /// window in slow start (1 or 2), or "off" to add one segment for each acknowledgement.
    pub byte_counting: Option<Limit>,
    /// Retransmission time-out before the first measurement.
    pub rto_initial: Option<Span>,
    /// Lower bound of the retransmission time-out, more than 0.
    pub rto_min: Option<Span>,
    /// Upper bound of the retransmission time-out, including back-off; at least `rto_min`.
    pub rto_max: Option<Span>,
    /// Least difference between the retransmission time-out and the round-trip time (the G of RFC
    /// 6298).
    pub rto_granularity: Option<Span>,
    /// Effect of a time-out on the next retransmission time-out.
    pub rto_backoff: Option<Backoff>,
    /// Number of full segments for each acknowledgement, 1 to 255, or "off" to acknowledge every
    /// segment immediately.
    pub delayed_ack: Option<Limit>,
    /// Longest delay of an acknowledgement, at most 500 ms unless `rfc_limits = false`.
    pub delayed_ack_timeout: Option<Span>,
    /// Whether a segment with PSH is acknowledged immediately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_on_push: Option<bool>,
    /// Whether a segment that is out of order or fills a gap is acknowledged immediately (RFC 5681
    /// section 4.2), which is the default. With `false` its acknowledgement is delayed like any
    /// other, and one acknowledgement reports by SACK which part of a window has arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_gaps: Option<bool>,
    /// Segments that carry PSH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<Push>,
    /// Roles of the connection in SACK.
    pub sack: Option<SackRole>,
    /// D-SACK (RFC 2883): report duplicates. With `rack_tlp`, such reports widen the reordering
    /// window. Needs SACK.
    pub dsack: Option<bool>,
    /// Whether segments with data carry SACK blocks too. Needs the receiver's role of SACK.
    pub sack_on_data: Option<bool>,
    /// Explicit congestion notification (RFC 3168). Queues mark packets if their link has an
    /// `ecn_threshold` or a `discipline` that marks.
    pub ecn: Option<EcnMode>,
    /// Alternative back-off (ABE, RFC 8511): a mark reduces the window less than a loss.
    pub abe: Option<bool>,
    /// Whether timestamps are offered.
    pub timestamps: Option<bool>,
    /// Shift count of the window scale option, 0 to 14, or "off".
    pub window_scale: Option<Limit>,
    /// Nagle's algorithm.
    pub nagle: Option<bool>,
    /// Limited transmit (RFC 3042).
    pub limited_transmit: Option<bool>,
    /// Loss recovery: the segments that are retransmitted.
    pub recovery: Option<Recovery>,
    /// RACK-TLP (RFC 8985): time-based loss detection, and a probe before most time-outs. Needs
    /// SACK.
    pub rack_tlp: Option<bool>,
    /// Proportional Rate Reduction (RFC 9937) during a recovery with SACK. Needs the sender's role
    /// of SACK.
    pub prr: Option<bool>,
    /// Undo of spurious time-outs and recoveries (RFC 3522, RFC 4015, RFC 5682).
    pub undo: Option<bool>,
    /// HyStart++ (RFC 9406): the initial slow start ends when the round trip grows.
    pub hystart: Option<bool>,
    /// Pacing: data is spread over the round trip instead of being sent in bursts; `"bbr"` always
    /// paces.
    pub pacing: Option<bool>,
    /// Congestion control.
    pub congestion: Option<Named<CongestionAlgorithm>>,
    /// Size of the send buffer: bytes that the application can write beyond the acknowledged data,
    /// at least 1 byte.
    pub send_buffer: Option<Size>,
    /// Limit up to which the send buffer grows, to twice the congestion window. "none" fixes its
    /// size, and so does a `send_buffer` without this key.
    pub send_buffer_max: Option<SizeLimit>,
    /// Size of the receive buffer, at least 1 byte. With window scaling, rounding makes the offered
    /// window exceed it by less than one unit of the scale.
    pub receive_buffer: Option<Size>,
    /// Limit up to which the receive buffer grows with the amount that is read in a round trip.
    /// "none" fixes its size, and so does a `receive_buffer` without this key.
    pub receive_buffer_max: Option<SizeLimit>,
    /// Duration of TIME-WAIT.
    pub time_wait: Option<Span>,
    /// Number of successive time-outs after which a connection attempt fails.
    pub syn_retries: Option<u8>,
    /// Number of successive time-outs after which a connection is closed.
    pub data_retries: Option<u8>,
    /// Reaction to a notice that the route is lost (ELFN): stop sending and probe the route in this
    /// interval, at least 1 ms; or "off".
    pub elfn: Option<Elfn>,
    /// Whether values that a standard forbids are refused: a `delayed_ack_timeout` of more than 500
    /// ms (RFC 9293 section 3.8.6.3). `false` allows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rfc_limits: Option<bool>,
}

/// Longest delay of an acknowledgement (RFC 9293 section 3.8.6.3).
const LONGEST_ACK_DELAY: Duration = Duration::from_millis(500);
/// Largest window without scaling, in bytes (RFC 9293 section 3.1).
const LARGEST_UNSCALED: u64 = 65_535;
/// Largest shift count (RFC 7323 section 2.3).
const LARGEST_SCALE: u32 = 14;

/// If no window fits between the bounds: the problem and a hint.
pub(super) fn empty_range(bounds: &AdaptiveNewReno) -> Option<(String, String)> {
    let AdaptiveNewReno { w_min, w_max, .. } = *bounds;
    let message =
        format!("the smallest window, w_min = {w_min}, is larger than the largest, w_max = {w_max}");
    let hint = format!("set `w_max = {w_min}` or more, or a smaller `w_min`");
    (w_min > w_max).then_some((message, hint))
}

/// The key at fault in a profile, and the reason.
pub(super) type ProfileFault = (&'static str, String);

fn octets(size: Size, key: &'static str) -> Result<u32, ProfileFault> {
    u32::try_from(size.0).map_err(|_| (key, format!("{size} is more than 4 GiB")))
}

/// Initial size of a buffer and its limit, 0 for a fixed size. A size from the file fixes the
/// buffer, as SO_SNDBUF and SO_RCVBUF do.
fn buffer(
    keys: [&'static str; 2],
    given: Option<Size>,
    most: Option<SizeLimit>,
    base: (u32, Option<u32>),
) -> Result<(u32, u32), ProfileFault> {
    let size = given.map_or(Ok(base.0), |size| octets(size, keys[0]))?;
    match most {
        Some(SizeLimit::Size(most)) if most.0 < size.into() => {
            Err((keys[1], format!("{most} is less than {} = {}", keys[0], Size(size.into()))))
        }
        Some(SizeLimit::Size(most)) => Ok((size, octets(most, keys[1])?)),
        Some(SizeLimit::None(_)) => Ok((size, 0)),
        None => Ok((size, base.1.filter(|_| given.is_none()).unwrap_or(0))),
    }
}

impl TcpProfile {
    /// The configuration of the core.
    pub(super) fn config(&self, policies: &Policies) -> Result<tcp::Config, ProfileFault> {
        self.check()?;
        let base = self.base.unwrap_or_default().config();
        let initial_ssthresh = match self.initial_ssthresh {
            Some(SizeLimit::Size(size)) => Some(octets(size, "initial_ssthresh")?),
            Some(SizeLimit::None(_)) => None,
            None => base.initial_ssthresh,
        };
        let (send_buffer, send) = buffer(
            ["send_buffer", "send_buffer_max"],
            self.send_buffer,
            self.send_buffer_max,
            (base.send_buffer, base.auto_tune.map(|most| most.send)),
        )?;
        let (receive_buffer, receive) = buffer(
            ["receive_buffer", "receive_buffer_max"],
            self.receive_buffer,
            self.receive_buffer_max,
            (base.receive_buffer, base.auto_tune.map(|most| most.receive)),
        )?;
        let byte_counting = match self.byte_counting {
            Some(Limit(Some(limit))) => ByteCounting::On { limit: limit as u8 },
            Some(Limit(None)) => ByteCounting::Off,
            None => base.byte_counting,
        };
        Ok(tcp::Config {
            mss: self.mss.unwrap_or(base.mss),
            default_mss: base.default_mss,
            time_wait_reuse: base.time_wait_reuse,
            fin_wait: base.fin_wait,
            keep_alive: base.keep_alive,
            initial_window: self.initial_window.unwrap_or(base.initial_window),
            initial_ssthresh,
            least_ssthresh: self.least_ssthresh.unwrap_or(base.least_ssthresh),
            window_limit: self.window_limit.map_or(base.window_limit, |limit| limit.0),
            byte_counting,
            rto: self.rto(base.rto)?,
            delayed_ack: self.delayed_ack(base.delayed_ack),
            sack: self.sack.unwrap_or(base.sack),
            dsack: self.dsack.unwrap_or(base.dsack),
            sack_on_data: self.sack_on_data.unwrap_or(base.sack_on_data),
            ecn: self.ecn.unwrap_or(base.ecn),
            abe: self.abe.unwrap_or(base.abe),
            timestamps: self.timestamps.unwrap_or(base.timestamps),
            window_scale: self.window_scale.map_or(base.window_scale, |s| s.0.map(|n| n as u8)),
            nagle: self.nagle.map_or(base.nagle, |on| if on { Nagle::On } else { Nagle::Off }),
            limited_transmit: self.limited_transmit.unwrap_or(base.limited_transmit),
            recovery: self.recovery.unwrap_or(base.recovery),
            rack_tlp: self.rack_tlp.unwrap_or(base.rack_tlp),
            hystart: self.hystart.unwrap_or(base.hystart),
            pacing: self.pacing.unwrap_or(base.pacing),
            prr: self.prr.unwrap_or(base.prr),
            undo: self.undo.unwrap_or(base.undo),
            congestion: match self.congestion {
                Some(named) => named.find(policies).map_err(|message| ("congestion", message))?,
                None => base.congestion,
            },
            send_buffer,
            receive_buffer,
            auto_tune: (send > 0 || receive > 0).then_some(AutoTune { send, receive }),
            time_wait: self.time_wait.map_or(base.time_wait, |span| span.0),
            syn_retries: self.syn_retries.unwrap_or(base.syn_retries),
            data_retries: self.data_retries.unwrap_or(base.data_retries),
            elfn: match self.elfn {
                Some(Elfn::Every(span)) => Some(span.0),
                Some(Elfn::Off(_)) => None,
                None => base.elfn,
            },
            ack_on_push: self.ack_on_push.unwrap_or(base.ack_on_push),
            ack_remainder: base.ack_remainder,
            ack_gaps: self.ack_gaps.unwrap_or(base.ack_gaps),
            push: self.push.unwrap_or(base.push),
        })
    }

    /// Keys that contradict each other: the key at fault, the reason, and a hint. A key that is
    /// given takes precedence over the base, so the base is never at fault.
    pub(super) fn contradiction(&self) -> Option<(&'static str, String, String)> {
        if let Some(fault) = self.sack.and_then(|sack| self.needs_more_sack(sack)) {
            return Some(fault);
        }
        let too_long = |timeout: &Span| timeout.0 > LONGEST_ACK_DELAY && self.rfc_limits != Some(false);
        if let Some(timeout) = self.delayed_ack_timeout.filter(too_long) {
            let longest = Span(LONGEST_ACK_DELAY);
            let message =
                format!("{timeout} is longer than an acknowledgement may wait (RFC 9293 section 3.8.6.3)");
            let hint =
                format!("set {longest} or less, or `rfc_limits = false` to break the standard on purpose");
            return Some(("delayed_ack_timeout", message, hint));
        }
        if let Some(Named::Ours(CongestionAlgorithm::AdaptiveNewReno(bounds))) = self.congestion
            && let Some((message, hint)) = empty_range(&bounds)
        {
            return Some(("congestion", message, hint));
        }
        let base = self.base.unwrap_or_default().config();
        let scale = self.window_scale.map_or(base.window_scale.map(u32::from), |scale| scale.0);
        let largest = |scale: Option<u32>| LARGEST_UNSCALED << scale.unwrap_or(0).min(LARGEST_SCALE);
        match self.receive_buffer_max {
            // A fully written profile repeats the values of its base, which is no contradiction.
            Some(SizeLimit::Size(most))
                if most.0 > largest(scale)
                    && base.auto_tune.is_none_or(|base| most.0 != u64::from(base.receive)) =>
            {
                let scale = match scale {
                    Some(scale) => format!("a window scale of {scale}"),
                    None => "a window without scaling".to_owned(),
                };
                let message = format!("{most} is more than {scale} can offer");
                let hint = match (0..=LARGEST_SCALE).find(|scale| largest(Some(*scale)) >= most.0) {
                    Some(enough) => format!("set `window_scale = {enough}` or more, or a smaller size"),
                    None => format!("set {} or less", Size(largest(Some(LARGEST_SCALE)))),
                };
                Some(("receive_buffer_max", message, hint))
            }
            _ => None,
        }
    }

    /// A key that needs a role of SACK that is not enabled.
    fn needs_more_sack(&self, sack: SackRole) -> Option<(&'static str, String, String)> {
        let uses = matches!(sack, SackRole::Sender | SackRole::Both);
        let sends = matches!(sack, SackRole::Receiver | SackRole::Both);
        let sack = word_of(&sack);
        let of_peer = format!("needs the SACK blocks of the peer, which `sack = \"{sack}\"` does not use");
        let own = format!("needs SACK blocks for the peer, which `sack = \"{sack}\"` does not send");
        let either = format!("needs SACK blocks, which `sack = \"{sack}\"` neither sends nor uses");
        let (sender, receiver, any) = ("\"sender\"", "\"receiver\"", "\"sender\" or \"receiver\"");
        let needs = [
            ("rack_tlp", self.rack_tlp, uses, "RACK-TLP", &of_peer, sender),
            ("prr", self.prr, uses, "PRR", &of_peer, sender),
            ("dsack", self.dsack, uses || sends, "D-SACK", &either, any),
            ("sack_on_data", self.sack_on_data, sends, "a segment with data", &own, receiver),
        ];
        let (key, _, _, what, why, enough) =
            needs.into_iter().find(|(_, on, possible, ..)| *on == Some(true) && !possible)?;
        let hint = format!("set `sack = \"both\"` or {enough}, or remove `{key}`");
        Some((key, format!("{what} {why}"), hint))
    }

    fn check(&self) -> Result<(), ProfileFault> {
        let fault = |key, text: &str| Err((key, text.to_owned()));
        match self {
            Self { mss: Some(0 | 65_496..), .. } => fault("mss", "an MSS is in 1..=65495"),
            Self { window_limit: Some(Limit(Some(0))), .. } => {
                fault("window_limit", "a window of no segment sends nothing")
            }
            Self { initial_window: Some(InitialWindow::Segments(0)), .. } => {
                fault("initial_window", "a window of no segment sends nothing")
            }
            Self { byte_counting: Some(Limit(Some(0 | 3..))), .. } => {
                fault("byte_counting", "expected 1, 2 or \"off\"")
            }
            Self { delayed_ack: Some(Limit(Some(0 | 256..))), .. } => {
                fault("delayed_ack", "expected 1 to 255 segments, or \"off\"")
            }
            Self { window_scale: Some(Limit(Some(15..))), .. } => {
                fault("window_scale", "a shift count is in 0..=14")
            }
            Self { elfn: Some(Elfn::Every(Span(interval))), .. } if interval.as_millis() == 0 => {
                fault("elfn", "a probe leaves once in 1 ms at most")
            }
            Self { send_buffer: Some(Size(0)), .. } => fault("send_buffer", "an empty buffer sends nothing"),
            Self { receive_buffer: Some(Size(0)), .. } => {
                fault("receive_buffer", "an empty buffer receives nothing")
            }
            _ => Ok(()),
        }
    }

    fn rto(&self, base: RtoConfig) -> Result<RtoConfig, ProfileFault> {
        let rto = RtoConfig {
            initial: self.rto_initial.map_or(base.initial, |span| span.0),
            min: self.rto_min.map_or(base.min, |span| span.0),
            max: self.rto_max.map_or(base.max, |span| span.0),
            granularity: self.rto_granularity.map_or(base.granularity, |span| span.0),
            backoff: self.rto_backoff.unwrap_or(base.backoff),
        };
        if rto.min.is_zero() {
            return Err(("rto_min", "a time-out of zero repeats for ever".to_owned()));
        }
        if rto.max < rto.min {
            let text = format!("{} is less than rto_min = {}", Span(rto.max), Span(rto.min));
            return Err(("rto_max", text));
        }
        Ok(rto)
    }

    fn delayed_ack(&self, base: DelayedAck) -> DelayedAck {
        let (segments, timeout) = match base {
            DelayedAck::Off => (1, Duration::from_millis(200)),
            DelayedAck::Every { segments, timeout } => (segments, timeout),
        };
        let timeout = self.delayed_ack_timeout.map_or(timeout, |span| span.0);
        match self.delayed_ack {
            Some(Limit(None)) => DelayedAck::Off,
            Some(Limit(Some(n))) => DelayedAck::Every { segments: n as u8, timeout },
            None if base == DelayedAck::Off => base,
            None => DelayedAck::Every { segments, timeout },
        }
    }

    /// The profile with every key of `config`. Fields without a key keep the value of `base`.
    pub(super) fn complete(base: Base, config: &tcp::Config) -> Self {
        let (delayed_ack, delayed_ack_timeout) = match config.delayed_ack {
            DelayedAck::Off => (Limit(None), None),
            DelayedAck::Every { segments, timeout } => (Limit(Some(segments.into())), Some(Span(timeout))),
        };
        let size = |octets: u32| SizeLimit::Size(Size(octets.into()));
        // Options that need SACK are written as off without it, so that the file is valid.
        let uses_sack = matches!(config.sack, SackRole::Sender | SackRole::Both);
        let sends_sack = matches!(config.sack, SackRole::Receiver | SackRole::Both);
        let limit = |octets| if octets > 0 { size(octets) } else { SizeLimit::None(NoLimit::None) };
        Self {
            base: Some(base),
            mss: Some(config.mss),
            initial_window: Some(config.initial_window),
            initial_ssthresh: Some(config.initial_ssthresh.map_or(SizeLimit::None(NoLimit::None), size)),
            least_ssthresh: Some(config.least_ssthresh),
            window_limit: Some(Limit(config.window_limit)),
            byte_counting: Some(match config.byte_counting {
                ByteCounting::Off => Limit(None),
                ByteCounting::On { limit } => Limit(Some(limit.into())),
            }),
            rto_initial: Some(Span(config.rto.initial)),
            rto_min: Some(Span(config.rto.min)),
            rto_max: Some(Span(config.rto.max)),
            rto_granularity: Some(Span(config.rto.granularity)),
            rto_backoff: Some(config.rto.backoff),
            delayed_ack: Some(delayed_ack),
            delayed_ack_timeout,
            // These differ from no base by default, so they are written only if they are set: other
            // resolved profiles, and their hashes, stay as they were.
            ack_on_push: config.ack_on_push.then_some(true),
            ack_gaps: (!config.ack_gaps).then_some(false),
            push: (config.push == Push::Window).then_some(Push::Window),
            sack: Some(config.sack),
            dsack: Some(config.dsack && (uses_sack || sends_sack)),
            sack_on_data: Some(config.sack_on_data && sends_sack),
            ecn: Some(config.ecn),
            abe: Some(config.abe),
            timestamps: Some(config.timestamps),
            window_scale: Some(Limit(config.window_scale.map(u32::from))),
            nagle: Some(config.nagle == Nagle::On),
            limited_transmit: Some(config.limited_transmit),
            recovery: Some(config.recovery),
            rack_tlp: Some(config.rack_tlp && uses_sack),
            prr: Some(config.prr && uses_sack),
            undo: Some(config.undo),
            hystart: Some(config.hystart),
            pacing: Some(config.pacing),
            congestion: Some(Named::of(config.congestion)),
            send_buffer: Some(Size(config.send_buffer.into())),
            receive_buffer: Some(Size(config.receive_buffer.into())),
            send_buffer_max: Some(limit(config.auto_tune.map_or(0, |most| most.send))),
            receive_buffer_max: Some(limit(config.auto_tune.map_or(0, |most| most.receive))),
            time_wait: Some(Span(config.time_wait)),
            syn_retries: Some(config.syn_retries),
            data_retries: Some(config.data_retries),
            rfc_limits: delayed_ack_timeout.filter(|timeout| timeout.0 > LONGEST_ACK_DELAY).map(|_| false),
            elfn: Some(config.elfn.map_or(Elfn::Off(NoElfn::Off), |every| Elfn::Every(Span(every)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::text::{Text, read_tree};

    use super::*;

    /// The profile with only these lines.
    fn profile(lines: &str) -> TcpProfile {
        read_tree(&Text::new("profile", lines).tree().expect("TOML")).expect("a profile")
    }

    #[test]
    fn a_complete_profile_means_the_same() {
        for lines in [
            "",
            "base = \"modern\"",
            "base = \"standard\"",
            "base = \"paper\"",
            "send_buffer = \"1 MiB\"",
            "receive_buffer = \"1 MiB\"\nreceive_buffer_max = \"2 MiB\"",
            "send_buffer_max = \"none\"\nreceive_buffer_max = \"none\"",
            "congestion = { adaptive-newreno = { w_min = 2, w_max = 12, update_every = 3 } }",
            "congestion = \"westwood\"\nelfn = \"2 s\"",
            "congestion = \"bbr\"\npacing = true",
            "delayed_ack = \"off\"",
            "ack_on_push = true\npush = \"window\"\nack_gaps = false\ndelayed_ack_timeout = \"5 s\"\nrfc_limits = false",
        ] {
            let profile = profile(lines);
            let config = profile.config(&Policies::default()).expect(lines);
            let complete = TcpProfile::complete(profile.base.unwrap_or_default(), &config);
            assert_eq!(complete.config(&Policies::default()), Ok(config), "{lines}");
        }
    }

    #[test]
    fn a_base_is_a_profile_of_the_core() {
        let of = |base| profile(base).config(&Policies::default()).expect(base);
        assert_eq!(of(""), tcp::Config::modern());
        assert_eq!(of("base = \"modern\""), tcp::Config::modern());
        assert_eq!(of("base = \"standard\""), tcp::Config::default());
        assert_eq!(of("base = \"paper\""), tcp::Config::paper());
    }

    #[test]
    fn a_buffer_that_is_given_does_not_grow() {
        let most = |lines| profile(lines).config(&Policies::default()).expect(lines).auto_tune;
        let (send, receive) = (AutoTune::LINUX.send, AutoTune::LINUX.receive);
        assert_eq!(most("send_buffer = \"16 KiB\""), Some(AutoTune { send: 0, receive }));
        assert_eq!(most("receive_buffer = \"16 KiB\""), Some(AutoTune { send, receive: 0 }));
        assert_eq!(most("send_buffer = \"16 KiB\"\nreceive_buffer = \"16 KiB\""), None);
        let grows = "send_buffer = \"16 KiB\"\nsend_buffer_max = \"1 MiB\"";
        assert_eq!(most(grows), Some(AutoTune { send: 1 << 20, receive }));
        assert_eq!(most("base = \"standard\"\nsend_buffer = \"1 MiB\""), None);
        for most in ["5 GiB", "16 KiB"] {
            let fault = profile(&format!("send_buffer_max = \"{most}\"")).config(&Policies::default());
            assert_eq!(fault.map_err(|fault| fault.0), Err("send_buffer_max"), "{most}");
        }
    }
}
