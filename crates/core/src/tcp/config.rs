//! Options of a TCP connection: every choice in which papers and stacks differ.

use super::congestion::{ByteCounting, CongestionAlgorithm};
use crate::time::Duration;

/// Options of one TCP connection. [`Config::modern`] is a present-day host, [`Config::default`] the
/// standard TCP up to SACK, and [`Config::paper`] the TCP that the SET paper simulates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Largest payload to send and to accept, in bytes, 1..=65495. The MSS option of the peer may
    /// lower the size of sent segments (RFC 9293 section 3.7.1).
    pub mss: u16,
    /// MSS assumed for a peer that sends no MSS option: 536 over IPv4, 1220 over IPv6 (RFC 9293
    /// section 3.7.1).
    pub default_mss: u16,
    /// Initial congestion window.
    pub initial_window: InitialWindow,
    /// Initial slow-start threshold in bytes; `None` is unbounded (RFC 5681 section 3.1).
    pub initial_ssthresh: Option<u32>,
    /// Lower bound of the slow-start threshold after a loss, in segments: 2 (RFC 5681 equation 4).
    /// If it equals the window limit, the window always grows by one segment for each
    /// acknowledgement.
    pub least_ssthresh: u16,
    /// Upper limit of the congestion window (`W_max` of the papers), in segments of the send MSS;
    /// `None` leaves the limit to the peer's window.
    pub window_limit: Option<u32>,
    /// Retransmission time-out.
    pub rto: RtoConfig,
    /// When the receiver sends an acknowledgement.
    pub delayed_ack: DelayedAck,
    /// Whether a segment with PSH is acknowledged at once, whatever `delayed_ack` says.
    pub ack_on_push: bool,
    /// Whether data beyond one full segment is acknowledged at once, although it is less than
    /// `delayed_ack` asks for: the end of a message, as Linux does.
    pub ack_remainder: bool,
    /// Whether a segment that is out of order or fills a hole is acknowledged at once (RFC 5681
    /// section 4.2). If not, such a segment is delayed like any other, and one acknowledgement
    /// reports by SACK which segments of a window have arrived.
    pub ack_gaps: bool,
    /// Which segments carry PSH.
    pub push: Push,
    /// Which side of the SACK option (RFC 2018) this host implements.
    pub sack: SackRole,
    /// Whether to offer the timestamps option (RFC 7323 section 3).
    pub timestamps: bool,
    /// Window scale shift count to offer, 0..=14 (RFC 7323 section 2); `None` does not offer window
    /// scaling.
    pub window_scale: Option<u8>,
    /// D-SACK (RFC 2883): the first SACK block reports a segment that has arrived twice, if the
    /// peer permits SACK. With `rack_tlp` the peer's reports about retransmitted segments widen the
    /// reordering window (RFC 8985 section 6.2 step 4). Whatever this option says, a D-SACK block
    /// of the peer never counts as new data delivered.
    pub dsack: bool,
    /// Whether data segments carry SACK blocks while out-of-order data is held (RFC 2018 section
    /// 4); the payload shrinks to make room. If not, only segments without data carry SACK blocks.
    pub sack_on_data: bool,
    /// Explicit congestion notification (RFC 3168): routers mark packets instead of dropping them.
    pub ecn: EcnMode,
    /// Alternative backoff with ECN (RFC 8511): a mark reduces the window less than a loss, by 0.2
    /// for NewReno and the coupled control and by 0.15 for CUBIC. The other controllers treat a
    /// mark as a loss.
    pub abe: bool,
    /// Nagle's algorithm (RFC 9293 section 3.7.4): hold back a short segment while data is in
    /// flight.
    pub nagle: Nagle,
    /// Limited transmit (RFC 3042): send new data on the first two duplicate acknowledgements.
    pub limited_transmit: bool,
    /// Which data is retransmitted after a loss.
    pub recovery: Recovery,
    /// RACK-TLP (RFC 8985): detects losses by the send times of segments, and replaces most
    /// time-outs by a tail loss probe. Without it, three duplicate acknowledgements indicate a
    /// loss. Effective only with SACK.
    pub rack_tlp: bool,
    /// Proportional Rate Reduction (RFC 9937) during a recovery with SACK. Without it the window
    /// shrinks at once.
    pub prr: bool,
    /// Undo the window reduction of spurious time-outs and recoveries (RFC 4015). They are detected
    /// by timestamps (Eifel, RFC 3522), without timestamps after a time-out by F-RTO (RFC 5682
    /// section 3.1, only with SACK), and by the peer's D-SACK (RFC 2883).
    pub undo: bool,
    /// HyStart++ (RFC 9406): ends the first slow start when the round-trip time grows, before the
    /// queue overflows.
    pub hystart: bool,
    /// Whether data is spread over the round trip instead of leaving in one burst for each
    /// acknowledgement. The rate is 2 windows per round trip in slow start and 1.2 afterwards, as
    /// on Linux. BBR always paces, at the rate of its model.
    pub pacing: bool,
    /// Congestion control algorithm.
    pub congestion: CongestionAlgorithm,
    /// How much one acknowledgement contributes to the growth of the window.
    pub byte_counting: ByteCounting,
    /// Size of the send buffer in bytes: `write` accepts this many bytes beyond the acknowledged
    /// data.
    pub send_buffer: u32,
    /// Size of the receive buffer in bytes: data held for the application. The offered window
    /// exceeds it by less than one unit of the window scale. Rounding up keeps a small buffer from
    /// becoming a zero window.
    pub receive_buffer: u32,
    /// Upper limits of buffers that grow with the throughput of the path; `send_buffer` and
    /// `receive_buffer` are then the initial sizes. `None` keeps the sizes fixed. Not for Multipath
    /// TCP.
    pub auto_tune: Option<AutoTune>,
    /// Length of TIME-WAIT (2 MSL, RFC 9293 section 3.6.1).
    pub time_wait: Duration,
    /// Whether a SYN that is newer than a connection in TIME-WAIT may replace it (RFC 6191, RFC
    /// 9293 MAY-2). See [`Connection::give_way`](crate::tcp::Connection::give_way), which the
    /// simulator calls for a SYN to a listener.
    pub time_wait_reuse: bool,
    /// Length of FIN-WAIT-2 after the application has released the connection, and the time that
    /// the remaining data then waits before a closed window without an acknowledgement. `None` is
    /// unlimited, as in RFC 9293; Linux uses 60 s for FIN-WAIT-2. See
    /// [`Connection::release`](crate::tcp::Connection::release).
    pub fin_wait: Option<Duration>,
    /// Keep-alive probes to a silent peer (RFC 9293 section 3.8.4); `None` sends none.
    pub keep_alive: Option<KeepAlive>,
    /// Consecutive time-outs of a SYN or SYN-ACK before the attempt is abandoned (R2 for SYN, RFC
    /// 9293 section 3.8.3).
    pub syn_retries: u8,
    /// Consecutive time-outs of data before the connection is abandoned (R2, RFC 9293 section
    /// 3.8.3).
    pub data_retries: u8,
    /// Explicit link failure notification (Holland and Vaidya, "Analysis of TCP Performance over
    /// Mobile Ad Hoc Networks", MobiCom 1999): the interval between probes while there is no route.
    /// The paper uses 2 s; the minimum here is 1 ms. With `None` a notice of a lost route is
    /// counted and otherwise ignored, as a soft error (RFC 1122 section 4.2.3.9). See
    /// [`Connection::handle_route_failure`](crate::tcp::Connection::handle_route_failure).
    pub elfn: Option<Duration>,
}

impl Config {
    /// Returns the congestion window after a time-out and the largest congestion window, in
    /// segments.
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

/// Initial congestion window.
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
    /// This many segments; the papers use 1.
    #[cfg_attr(feature = "serde", serde(untagged))]
    Segments(u16),
}

/// Upper limits of automatically growing buffers, in bytes. A buffer that is already larger keeps
/// its size, so 0 disables growth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AutoTune {
    /// Limit of the receive buffer. More than 65,535 bytes need [`Config::window_scale`].
    pub receive: u32,
    /// Limit of the send buffer.
    pub send: u32,
}

impl AutoTune {
    /// The defaults of Linux: the last values of `net.ipv4.tcp_rmem` and `net.ipv4.tcp_wmem`.
    pub const LINUX: Self = Self { receive: 6 << 20, send: 4 << 20 };
}

/// Keep-alive probes on an idle connection (RFC 9293 section 3.8.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// Idle time before the first probe; at least 2 h unless the application asks for less.
    pub idle: Duration,
    /// Interval between probes.
    pub interval: Duration,
    /// Number of unanswered probes after which the connection is abandoned.
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
    /// Time-out before the first measurement (RFC 6298 section 2.1: 1 s; the papers: 3 s).
    pub initial: Duration,
    /// Lower bound (RFC 6298 section 2.4: 1 s; Linux: 200 ms).
    pub min: Duration,
    /// Upper bound, which also limits the back-off (RFC 6298 section 2.5: at least 60 s).
    pub max: Duration,
    /// Clock granularity G of RFC 6298 section 2.3, RTO = SRTT + max(G, 4 RTTVAR): the least
    /// distance of the time-out from the smoothed round-trip time. Linux uses 200 ms. With zero and
    /// a steady round-trip time, the timer expires as soon as one acknowledgement is late.
    pub granularity: Duration,
    /// Effect of a time-out on the next one.
    pub backoff: Backoff,
}

/// Effect of a time-out on the next one (RFC 6298 section 5.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Backoff {
    /// The time-out doubles, up to its upper bound.
    Double,
    /// The time-out stays constant.
    Constant,
}

/// When the receiver sends an acknowledgement (RFC 9293 section 3.8.6.3, RFC 5681 section 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelayedAck {
    /// At once for every segment.
    Off,
    /// After `segments` full segments or after `timeout`, whichever comes first; at once for a
    /// segment that is out of order or fills a hole.
    Every {
        /// Full segments per acknowledgement, at least 1 (`s` of the SET paper).
        segments: u8,
        /// Longest delay of an acknowledgement; at most 500 ms.
        timeout: Duration,
    },
}

/// Whether the connection uses explicit congestion notification (RFC 3168 section 6.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Ecn"))]
pub enum EcnMode {
    /// ECN is not used.
    Off,
    /// ECN is used if the peer requests it, as Linux does by default.
    Accept,
    /// The SYN requests ECN; a request of the peer is accepted too.
    Request,
}

/// Which segments carry PSH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Push {
    /// The segment that empties the send buffer (RFC 9293 section 3.9.1.2).
    Buffer,
    /// The last segment that may be sent for now, because the buffer is empty or the window is used
    /// up. If the peer acknowledges on PSH, it sends one acknowledgement per window, as "Multipath
    /// TCP Over Multi-Hop Heterogeneous Wireless IoT Networks" assumes (section VII, erratum M28).
    Window,
}

/// Which side of the SACK option (RFC 2018) a host implements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Sack"))]
pub enum SackRole {
    /// None: SACK-permitted is not sent, and received blocks are ignored.
    Off,
    /// Receiver only: blocks are sent if the peer permits them, and ignored on arrival.
    Receiver,
    /// Sender only: SACK-permitted is sent and the peer's blocks are used, but no blocks are sent.
    Sender,
    /// Sender and receiver.
    Both,
}

/// Nagle's algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nagle {
    /// Short segments are held back while data is in flight.
    On,
    /// Segments leave at once (TCP_NODELAY).
    Off,
}

/// Which data is retransmitted after a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TcpRecovery"))]
pub enum Recovery {
    /// SACK-based recovery (RFC 6675) where the peer sends blocks, else NewReno (RFC 6582).
    #[cfg_attr(feature = "serde", serde(rename = "newreno"))]
    NewReno,
    /// BSD Reno: fast retransmit of one segment; the first new acknowledgement ends the recovery.
    /// After a time-out everything from the hole on is retransmitted (go-back-N).
    RenoGoBackN,
}

impl Default for Config {
    /// NewReno with SACK-based recovery on a path with an MTU of 1500 bytes: RFC 6928 window, RFC
    /// 6298 with the 200 ms lower bound of Linux, SACK, timestamps, window scaling, delayed
    /// acknowledgements (every second segment or after 40 ms), no Nagle.
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
            ack_remainder: false,
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
    /// A present-day host: [`Config::default`] with D-SACK, SACK blocks on data segments, ECN with
    /// ABE, RACK-TLP, PRR, undo, HyStart++, CUBIC, automatic buffer growth, TIME-WAIT reuse and a
    /// limited FIN-WAIT-2.
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

    /// The TCP of the SET paper (section 5 and erratum S20): initial window 1, window limit 64
    /// segments, one acknowledgement per 2 segments, 3 s initial time-out, no SACK, no timestamps,
    /// no window scaling.
    ///
    /// The paper's model lets an acknowledgement wait for 2 segments and has no timer. The 25 ms
    /// used here are longer than the transmission time of a segment at 56 kbit/s and short in
    /// comparison with the other delays.
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
