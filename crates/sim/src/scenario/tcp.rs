//! TCP profiles: every choice of [`tcp::Config`], each of which may be left to a base.

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

/// Where a profile starts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    /// A present-day host: what "standard" has, with CUBIC, HyStart++, RACK-TLP, PRR, D-SACK, undo,
    /// ECN and buffers that grow.
    #[default]
    Modern,
    /// NewReno with SACK (RFC 5681, RFC 6675), initial window of RFC 6928, timestamps, scaling,
    /// fixed buffers.
    Standard,
    /// The TCP of the SET paper: initial window 1, window limit 64, 3 s time-outs, no options.
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
    /// That many octets.
    Size(Size),
    /// No limit.
    None(NoLimit),
}

/// No limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NoLimit {
    /// The word for it.
    None,
}

/// How often a sender asks for a lost route, or that it does not stop for one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged, expecting = "expected a time such as \"2 s\", or \"off\"")]
pub enum Elfn {
    /// A probe each time that this has passed.
    Every(Span),
    /// The notice is counted and nothing else.
    Off(NoElfn),
}

/// No notice is acted upon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NoElfn {
    /// The word for it.
    Off,
}

/// A TCP profile. What is not said is as in the base.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TcpProfile {
    /// Where the profile starts from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
    /// Value of the MSS option (RFC 6691), in bytes, 1 to 65495: the largest payload of a segment
    /// without TCP options. Options take their room from it: with timestamps a segment carries
    /// `mss` - 12 bytes.
    pub mss: Option<u16>,
    /// Congestion window at the start: segments, or "rfc6928".
    pub initial_window: Option<InitialWindow>,
    /// Slow-start threshold at the start: a size, or "none".
    pub initial_ssthresh: Option<SizeLimit>,
    /// Segments below which a loss does not take the slow-start threshold.
    pub least_ssthresh: Option<u16>,
    /// Upper limit of the congestion window in segments, or "none".
    pub window_limit: Option<Limit>,
    /// What one acknowledgement is worth when the window grows: most segments that it adds in slow
    /// start (1 or 2), or "off" for one segment whatever it covers.
    pub byte_counting: Option<Limit>,
    /// Retransmission time-out before the first measurement.
    pub rto_initial: Option<Span>,
    /// Lower bound of the retransmission time-out.
    pub rto_min: Option<Span>,
    /// Upper bound of the retransmission time-out, back-off included.
    pub rto_max: Option<Span>,
    /// How far the retransmission time-out stays above the round-trip time at least.
    pub rto_granularity: Option<Span>,
    /// What a time-out does to the next.
    pub rto_backoff: Option<Backoff>,
    /// Segments per acknowledgement, or "off" for one each at once.
    pub delayed_ack: Option<Limit>,
    /// How long an acknowledgement may wait, at most 500 ms unless there is `rfc_limits = false`.
    pub delayed_ack_timeout: Option<Span>,
    /// A segment with PSH is acknowledged at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_on_push: Option<bool>,
    /// A segment that is out of order or fills a hole is acknowledged at once (RFC 5681 section
    /// 4.2). Without it such a segment waits as others do, and one acknowledgement says by SACK
    /// what has arrived of a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_gaps: Option<bool>,
    /// Which segments have PSH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<Push>,
    /// Which side of SACK is played.
    pub sack: Option<SackRole>,
    /// D-SACK (RFC 2883): report what has arrived twice; with `rack_tlp`, reports widen the
    /// reordering window. Needs SACK.
    pub dsack: Option<bool>,
    /// Send SACK blocks in segments with data too. Needs the receiver's side of SACK.
    pub sack_on_data: Option<bool>,
    /// Whether explicit congestion notification (RFC 3168) is used. Queues mark where a link has an
    /// `ecn_threshold`, or a `discipline` that marks.
    pub ecn: Option<EcnMode>,
    /// A mark takes less of the window than a loss (RFC 8511).
    pub abe: Option<bool>,
    /// Offer timestamps.
    pub timestamps: Option<bool>,
    /// Window scale shift count, 0 to 14, or "off".
    pub window_scale: Option<Limit>,
    /// Nagle's algorithm.
    pub nagle: Option<bool>,
    /// Limited transmit (RFC 3042).
    pub limited_transmit: Option<bool>,
    /// What is sent again after a loss.
    pub recovery: Option<Recovery>,
    /// RACK-TLP (RFC 8985): find losses by time, and send a probe before most time-outs. Needs
    /// SACK.
    pub rack_tlp: Option<bool>,
    /// Proportional Rate Reduction (RFC 9937) during a recovery with SACK. Needs the sender's side
    /// of SACK.
    pub prr: Option<bool>,
    /// Undo spurious time-outs and recoveries (RFC 3522, RFC 4015, RFC 5682).
    pub undo: Option<bool>,
    /// HyStart++ (RFC 9406): the first slow start ends when the round trip grows.
    pub hystart: Option<bool>,
    /// Spread data over the round trip instead of sending it in bursts; `"bbr"` always does.
    pub pacing: Option<bool>,
    /// How the congestion window grows and shrinks.
    pub congestion: Option<Named<CongestionAlgorithm>>,
    /// Octets that can be written beyond what is acknowledged.
    pub send_buffer: Option<Size>,
    /// The send buffer grows to twice the congestion window, up to this size; "none" fixes it, and
    /// so does a `send_buffer` without this key.
    pub send_buffer_max: Option<SizeLimit>,
    /// Bytes held for the application. The window offered exceeds it by less than one unit of the
    /// window scale, and by nothing without scaling.
    pub receive_buffer: Option<Size>,
    /// The receive buffer grows with what is read in a round trip, up to this size; "none" fixes
    /// it, and so does a `receive_buffer` without this key.
    pub receive_buffer_max: Option<SizeLimit>,
    /// How long TIME-WAIT lasts.
    pub time_wait: Option<Span>,
    /// Time-outs in a row before a connection attempt is given up.
    pub syn_retries: Option<u8>,
    /// Time-outs in a row before a connection is given up.
    pub data_retries: Option<u8>,
    /// Stand by when the network says that there is no route (ELFN), and probe it in this interval;
    /// or "off".
    pub elfn: Option<Elfn>,
    /// Whether a value that a standard forbids is refused: a `delayed_ack_timeout` of more than 500
    /// ms (RFC 9293 section 3.8.6.3). A profile that breaks the standard on purpose says `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rfc_limits: Option<bool>,
}

/// Longest time that an acknowledgement may wait (RFC 9293 section 3.8.6.3).
const LONGEST_ACK_DELAY: Duration = Duration::from_millis(500);
/// Largest window of a segment without scaling (RFC 9293 section 3.1).
const LARGEST_UNSCALED: u64 = 65_535;
/// Largest shift count (RFC 7323 section 2.3).
const LARGEST_SCALE: u32 = 14;

/// What is wrong with bounds between which no window fits, and what to do.
pub(super) fn empty_range(bounds: &AdaptiveNewReno) -> Option<(String, String)> {
    let AdaptiveNewReno { w_min, w_max, .. } = *bounds;
    let message =
        format!("the smallest window, w_min = {w_min}, is larger than the largest, w_max = {w_max}");
    let hint = format!("set `w_max = {w_min}` or more, or a smaller `w_min`");
    (w_min > w_max).then_some((message, hint))
}

/// What is wrong with a profile: the key, and why.
pub(super) type ProfileFault = (&'static str, String);

fn octets(size: Size, key: &'static str) -> Result<u32, ProfileFault> {
    u32::try_from(size.0).map_err(|_| (key, format!("{size} is more than 4 GiB")))
}

/// A buffer's size and how far it grows, 0 for not at all. One that the file gives stays as it is,
/// as one that is set with SO_SNDBUF or SO_RCVBUF.
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
    /// What the profile means.
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
            ack_gaps: self.ack_gaps.unwrap_or(base.ack_gaps),
            push: self.push.unwrap_or(base.push),
        })
    }

    /// Keys that cannot hold together: the one at fault, why, and what to do. A key that was not
    /// given gives way to one that was, so what the base has is never at fault.
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
            // A profile that was written out in full repeats what its base has.
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

    /// What needs a side of SACK that is not played.
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

    /// The profile that says all of `config`, except the fields without a key, which are those of
    /// `base`.
    pub(super) fn complete(base: Base, config: &tcp::Config) -> Self {
        let (delayed_ack, delayed_ack_timeout) = match config.delayed_ack {
            DelayedAck::Off => (Limit(None), None),
            DelayedAck::Every { segments, timeout } => (Limit(Some(segments.into())), Some(Span(timeout))),
        };
        let size = |octets: u32| SizeLimit::Size(Size(octets.into()));
        // What has no effect without SACK is written as off, and the file is legal.
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
            // No base has them: what other profiles come to stays as it is written, and its hash.
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

    /// The profile that has only these lines.
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
