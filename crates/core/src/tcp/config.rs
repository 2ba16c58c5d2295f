//! Every choice that papers and stacks make differently, as a typed option.

use super::congestion::{ByteCounting, CongestionAlgorithm};
use crate::time::Duration;

/// How one TCP connection behaves. [`Config::modern`] is a present-day host, [`Config::default`]
/// the TCP of the standards up to SACK, and [`Config::paper`] the TCP that the SET paper simulates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Largest payload that we send and accept, in bytes; what the peer offers may lower what we
    /// send (RFC 9293 section 3.7.1). 1..=65495.
    pub mss: u16,
    /// What stands for the MSS option of a peer that sends none: 536 over IPv4, 1220 over IPv6 (RFC
    /// 9293 section 3.7.1).
    pub default_mss: u16,
    /// Congestion window at the start.
    pub initial_window: InitialWindow,
    /// Slow-start threshold at the start, in bytes; `None` is unbounded (RFC 5681 section 3.1).
    pub initial_ssthresh: Option<u32>,
    /// Segments below which a loss does not take the slow-start threshold: 2 (RFC 5681 equation 4).
    /// With the window limit here the window always grows by a segment for each acknowledgement.
    pub least_ssthresh: u16,
    /// Upper limit of the congestion window (`W_max` of the papers), in segments of our send MSS;
    /// `None` leaves it to the peer's window.
    pub window_limit: Option<u32>,
    /// Retransmission time-out.
    pub rto: RtoConfig,
    /// When the receiver acknowledges.
    pub delayed_ack: DelayedAck,
    /// Besides, an acknowledgement leaves at once for a segment with PSH.
    pub ack_on_push: bool,
    /// An acknowledgement leaves at once for a segment that is out of order or fills a hole (RFC
    /// 5681 section 4.2). Without it such a segment waits as others do, and one acknowledgement
    /// says by SACK what has arrived of a window.
    pub ack_gaps: bool,
    /// Which segments have PSH.
    pub push: Push,
    /// Which side of the SACK option (RFC 2018) we play.
    pub sack: SackRole,
    /// Offer the timestamps option (RFC 7323 section 3).
    pub timestamps: bool,
    /// Offer this window scale shift count, 0..=14 (RFC 7323 section 2); `None` does not offer
    /// scaling.
    pub window_scale: Option<u8>,
    /// D-SACK (RFC 2883): the first SACK block reports a segment that has arrived twice, if the
    /// peer permits SACK. With `rack_tlp` the peer's reports of segments that we have sent again
    /// widen the reordering window (RFC 8985 section 6.2 step 4). Whatever is chosen here, such a
    /// block of the peer is never news of what has arrived.
    pub dsack: bool,
    /// While bytes are held out of order, segments with data have SACK blocks too (RFC 2018
    /// section 4), and less data to make room for them. Without it only acknowledgements without
    /// data have them.
    pub sack_on_data: bool,
    /// Explicit congestion notification (RFC 3168): routers mark packets instead of dropping them.
    pub ecn: EcnMode,
    /// Alternative backoff with ECN (RFC 8511): a mark takes less of the window than a loss, 0.2
    /// for NewReno and the coupled control and 0.15 for CUBIC. The other controllers treat it as a
    /// loss.
    pub abe: bool,
    /// Nagle's algorithm (RFC 9293 section 3.7.4): hold back a short segment while data is in
    /// flight.
    pub nagle: Nagle,
    /// Limited transmit (RFC 3042): new data on the first two duplicate acknowledgements.
    pub limited_transmit: bool,
    /// What is sent again after a loss.
    pub recovery: Recovery,
    /// RACK-TLP (RFC 8985): losses are found by the time that segments were sent at, and a probe
    /// takes the place of most time-outs. Without it three duplicate acknowledgements show a loss.
    /// Only with SACK.
    pub rack_tlp: bool,
    /// Proportional Rate Reduction (RFC 9937) during a recovery with SACK. Without it the window
    /// falls at once.
    pub prr: bool,
    /// Undo spurious time-outs and recoveries (RFC 4015): found by timestamps (Eifel, RFC 3522),
    /// without them after a time-out by F-RTO (RFC 5682 section 3.1, only with SACK), and by the
    /// peer's D-SACK (RFC 2883).
    pub undo: bool,
    /// HyStart++ (RFC 9406): the first slow start ends when the round trip grows, before the queue
    /// overflows.
    pub hystart: bool,
    /// Data leaves spread over the round trip, and not in one burst for each acknowledgement: at 2
    /// windows in a round trip in slow start and 1.2 later, as on Linux. BBR paces in any case, at
    /// the rate of its model.
    pub pacing: bool,
    /// How the congestion window grows and shrinks.
    pub congestion: CongestionAlgorithm,
    /// What one acknowledgement is worth when the window grows.
    pub byte_counting: ByteCounting,
    /// Bytes that `write` accepts beyond what is acknowledged.
    pub send_buffer: u32,
    /// Bytes that the receiver holds for the application. The window offered exceeds it by less
    /// than one unit of the window scale: it is rounded up, so that a small buffer does not turn
    /// into no window at all.
    pub receive_buffer: u32,
    /// The buffers grow with what the path takes and brings; the two above are where they begin.
    /// `None` leaves them as they are. Not for Multipath TCP.
    pub auto_tune: Option<AutoTune>,
    /// How long TIME-WAIT lasts (2 MSL, RFC 9293 section 3.6.1).
    pub time_wait: Duration,
    /// A SYN that is newer than the connection in TIME-WAIT may take its place (RFC 6191, RFC 9293
    /// MAY-2). See [`Connection::give_way`](crate::tcp::Connection::give_way), which the simulator
    /// asks for SYNs to a listener.
    pub time_wait_reuse: bool,
    /// How long FIN-WAIT-2 lasts once the application is gone, and how long data then waits before
    /// a closed window without an acknowledgement; `None` is for ever, as RFC 9293 has it. Linux
    /// has 60 s for FIN-WAIT-2. See [`Connection::release`](crate::tcp::Connection::release).
    pub fin_wait: Option<Duration>,
    /// Whether a peer that is silent is asked for a sign of life (RFC 9293 section 3.8.4).
    pub keep_alive: Option<KeepAlive>,
    /// Time-outs in a row of a SYN or SYN-ACK before the attempt is given up (R2 for SYN, RFC 9293
    /// section 3.8.3).
    pub syn_retries: u8,
    /// Time-outs in a row of data before the connection is given up (R2, RFC 9293 section 3.8.3).
    pub data_retries: u8,
    /// Explicit link failure notification (Holland and Vaidya, "Analysis of TCP Performance over
    /// Mobile Ad Hoc Networks", MobiCom 1999): the time from one probe to the next while there is
    /// no route, 2 s there, at least 1 ms here. With `None` a notice of a lost route is counted and
    /// ignored, as a soft error (RFC 1122 section 4.2.3.9). See
    /// [`Connection::handle_route_failure`](crate::tcp::Connection::handle_route_failure).
    pub elfn: Option<Duration>,
}

impl Config {
    /// The congestion window after a time-out, and the largest one, in segments.
    pub fn window_bounds(&self) -> (u32, u32) {
        let limit = self.window_limit.map_or(u32::MAX, |limit| limit.max(1));
        match self.congestion {
            CongestionAlgorithm::AdaptiveNewReno(bounds) => {
                let least = u32::from(bounds.w_min).max(1).min(limit);
                (least, u32::from(bounds.w_max).max(least).min(limit))
            }
            CongestionAlgorithm::NewReno
            | CongestionAlgorithm::Cubic
            | CongestionAlgorithm::Coupled
            | CongestionAlgorithm::Westwood
            | CongestionAlgorithm::Bbr
            | CongestionAlgorithm::Custom(_) => (1, limit),
        }
    }
}

/// The congestion window before the first acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize, serde::Serialize),
    serde(rename_all = "kebab-case", expecting = "expected a number of segments or \"rfc6928\"")
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum InitialWindow {
    /// min(10 MSS, max(2 MSS, 14600)) bytes (RFC 6928 section 2).
    Rfc6928,
    /// That many segments; the papers use 1.
    #[cfg_attr(feature = "serde", serde(untagged))]
    Segments(u16),
}

/// How far buffers grow by themselves, in bytes. A buffer that is larger already stays as it is: 0
/// fixes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AutoTune {
    /// The receive buffer. More than 65,535 needs [`Config::window_scale`].
    pub receive: u32,
    /// The send buffer.
    pub send: u32,
}

impl AutoTune {
    /// The defaults of Linux: the last values of `net.ipv4.tcp_rmem` and `net.ipv4.tcp_wmem`.
    pub const LINUX: Self = Self { receive: 6 << 20, send: 4 << 20 };
}

/// Keep-alive probes while nothing is sent or received (RFC 9293 section 3.8.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// Silence before the first probe; 2 h at least, unless the application asks for less.
    pub idle: Duration,
    /// From one probe to the next.
    pub interval: Duration,
    /// Probes without an answer after which the connection is given up.
    pub probes: u8,
}

impl KeepAlive {
    /// The defaults of Linux: 2 h, 75 s, 9 probes.
    pub const LINUX: Self =
        Self { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 };
}

/// Retransmission time-out (RFC 6298).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtoConfig {
    /// Before the first measurement (RFC 6298 section 2.1: 1 s; the papers: 3 s).
    pub initial: Duration,
    /// Lower bound (RFC 6298 section 2.4: 1 s; Linux: 200 ms).
    pub min: Duration,
    /// Upper bound, also of the back-off (RFC 6298 section 2.5: at least 60 s).
    pub max: Duration,
    /// G of RFC 6298 section 2.3, RTO = SRTT + max(G, 4 RTTVAR): how far the time-out stays above a
    /// round trip that hardly varies. Linux has 200 ms. With nothing here it fires as soon as one
    /// acknowledgement is late.
    pub granularity: Duration,
    /// What a time-out does to the next one.
    pub backoff: Backoff,
}

/// How a time-out changes the next one (RFC 6298 section 5.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Backoff {
    /// Doubles it, up to the upper bound.
    Double,
    /// Leaves it as it is.
    Constant,
}

/// When an acknowledgement is sent (RFC 9293 section 3.8.6.3, RFC 5681 section 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelayedAck {
    /// For every segment at once.
    Off,
    /// For every `segments`-th full segment, or after `timeout`, whichever is first; at once when a
    /// segment is out of order or fills a hole.
    Every {
        /// Segments per acknowledgement, at least 1 (`s` of the SET paper).
        segments: u8,
        /// How long an acknowledgement may wait; at most 500 ms.
        timeout: Duration,
    },
}

/// Whether explicit congestion notification is used (RFC 3168 section 6.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Ecn"))]
pub enum EcnMode {
    /// Never.
    Off,
    /// If the peer asks for it, as Linux does by default.
    Accept,
    /// The SYN asks for it, too.
    Request,
}

/// Which segments have PSH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Push {
    /// The last one that the sender has (RFC 9293 section 3.9.1.2).
    Buffer,
    /// The last one that it may send for now, because nothing is left or the window is used up.
    /// With [`Config::ack_on_push`] at the peer there is one acknowledgement for a window, which
    /// "Multipath TCP Over Multi-Hop Heterogeneous Wireless IoT Networks" assumes (section VII,
    /// erratum M28).
    Window,
}

/// Which side of the SACK option (RFC 2018) is played.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Sack"))]
pub enum SackRole {
    /// Neither: SACK-permitted is not sent, and blocks are ignored.
    Off,
    /// Blocks are sent if the peer permits, and ignored on arrival.
    Receiver,
    /// The blocks of the peer are permitted and used, and none are sent.
    Sender,
    /// Both.
    Both,
}

/// Nagle's algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nagle {
    /// Short segments wait while data is in flight.
    On,
    /// Everything leaves at once (TCP_NODELAY).
    Off,
}

/// What is retransmitted after a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TcpRecovery"))]
pub enum Recovery {
    /// SACK-based recovery (RFC 6675) where the peer sends blocks, else NewReno (RFC 6582).
    #[cfg_attr(feature = "serde", serde(rename = "newreno"))]
    NewReno,
    /// BSD Reno: fast retransmit of one segment, and the first new acknowledgement ends the
    /// recovery. After a time-out everything past the hole is retransmitted (go-back-N).
    RenoGoBackN,
}

impl Default for Config {
    /// NewReno with SACK-based recovery on a 1500-byte path: RFC 6928 window, RFC 6298 with
    /// Linux's 200 ms floor, SACK, timestamps, scaling, delayed acknowledgements every second
    /// segment or 40 ms, no Nagle.
    fn default() -> Self {
        Self {
            mss: 1440,
            default_mss: 536,
            initial_window: InitialWindow::Rfc6928,
            initial_ssthresh: None,
            least_ssthresh: 2,
            window_limit: None,
            rto: RtoConfig {
                initial: Duration::from_secs(1),
                min: Duration::from_millis(200),
                max: Duration::from_secs(60),
                granularity: Duration::from_millis(200),
                backoff: Backoff::Double,
            },
            delayed_ack: DelayedAck::Every { segments: 2, timeout: Duration::from_millis(40) },
            ack_on_push: false,
            ack_gaps: true,
            push: Push::Buffer,
            sack: SackRole::Both,
            timestamps: true,
            dsack: false,
            sack_on_data: false,
            ecn: EcnMode::Off,
            abe: false,
            window_scale: Some(7),
            nagle: Nagle::Off,
            limited_transmit: true,
            recovery: Recovery::NewReno,
            rack_tlp: false,
            prr: false,
            undo: false,
            hystart: false,
            pacing: false,
            congestion: CongestionAlgorithm::NewReno,
            byte_counting: ByteCounting::On { limit: 2 },
            send_buffer: 256 * 1024,
            receive_buffer: 256 * 1024,
            auto_tune: None,
            time_wait: Duration::from_secs(60),
            time_wait_reuse: false,
            fin_wait: None,
            keep_alive: None,
            syn_retries: 6,
            data_retries: 15,
            elfn: None,
        }
    }
}

impl Config {
    /// A present-day host: what [`Config::default`] has, with D-SACK, SACK beside data, ECN with
    /// ABE, RACK-TLP, PRR, undo, HyStart++, CUBIC, buffers that follow the path, TIME-WAIT reuse
    /// and an end of FIN-WAIT-2.
    pub fn modern() -> Self {
        Self {
            dsack: true,
            sack_on_data: true,
            ecn: EcnMode::Request,
            abe: true,
            rack_tlp: true,
            prr: true,
            undo: true,
            hystart: true,
            auto_tune: Some(AutoTune::LINUX),
            time_wait_reuse: true,
            fin_wait: Some(Duration::from_secs(60)),
            congestion: CongestionAlgorithm::Cubic,
            ..Self::default()
        }
    }

    /// The TCP of the SET paper (section 5 and errata S20): initial window 1, window limit 64
    /// segments, one acknowledgement for 2 segments, 3 s time-outs, no SACK, no timestamps, no
    /// scaling. Its model lets an acknowledgement wait for 2 segments and knows no timer; 25 ms is
    /// longer than a segment takes at 56 kbit/s, and short beside the rest.
    pub fn paper() -> Self {
        Self {
            initial_window: InitialWindow::Segments(1),
            window_limit: Some(64),
            rto: RtoConfig {
                initial: Duration::from_secs(3),
                min: Duration::from_secs(1),
                max: Duration::from_secs(64),
                granularity: Duration::ZERO,
                backoff: Backoff::Double,
            },
            delayed_ack: DelayedAck::Every { segments: 2, timeout: Duration::from_millis(25) },
            sack: SackRole::Off,
            timestamps: false,
            window_scale: None,
            limited_transmit: false,
            byte_counting: ByteCounting::Off,
            receive_buffer: 65_535,
            ..Self::default()
        }
    }
}
