//! Options of RDCA: every choice that the paper leaves open or that this implementation makes
//! differently.

use anabranch_wire::rdca::Header;

use crate::time::Duration;

/// Options of both ends; each machine receives its half. [`Config::default`] is the recommended
/// configuration, [`Config::paper`] the paper as the errata read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Config {
    /// The sender's half.
    pub sender: SenderConfig,
    /// The sink's half.
    pub sink: SinkConfig,
}

impl Config {
    /// Section 3 as the errata read it. The mechanisms that prevent silent losses (explicit
    /// confirmation at the end, probes, refusals) are the same as in the default.
    pub fn paper() -> Self {
        Self { sender: SenderConfig::paper(), sink: SinkConfig::paper() }
    }

    /// [`SenderConfig::deployed`] and [`SinkConfig::deployed`]. The sink confirms what it has
    /// delivered: where nothing is stored, an owner would have to call [`super::Sink::stored`].
    pub fn deployed(datagram: u16, packets: u16, senders: usize, memory: usize) -> Self {
        let sink =
            SinkConfig { confirmation: Confirmation::Delivered, ..SinkConfig::deployed(senders, memory) };
        Self { sender: SenderConfig::deployed(datagram, packets), sink }
    }
}

/// Options of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderConfig {
    /// Encoding of datagrams; both ends must use the same one.
    pub header: Header,
    /// Largest datagram in bytes, header included: 300 (section 3.2.1), at least 18. Rates count
    /// datagrams of this length, whatever the length of a packet (erratum H7).
    pub datagram: u16,
    /// Capacity of the Sender Queue in packets, sent or unsent, at least 2. With 24 packets of 300
    /// bytes the machine stays below 10 kB. The part of the queue that holds no unsent packets
    /// retains sent ones, so a longer queue repairs longer outages.
    pub queue_packets: u16,
    /// Largest number of unsent packets; beyond it [`super::Sender::write`] refuses data. The
    /// default 8 is a trade-off: waiting here adds to the packets' delay and takes the space of
    /// sent packets that may have to be retransmitted.
    pub unsent_packets: u16,
    /// The same limit as a time at the current rate, but at least 4 packets: 300 ms. A sender
    /// limited by its rate then holds no more than it can send soon, and refuses data early. `None`
    /// in the paper.
    pub unsent_time: Option<Duration>,
    /// Initial time to wait for the answer to a request; doubles up to
    /// [`SenderConfig::longest_wait`].
    pub request_wait: Duration,
    /// Number of unanswered requests after which the sender gives up; 255: it never does.
    pub request_tries: u8,
    /// Round-trip time assumed before the first measurement: 0.4 s, the paper's "upper round trip
    /// times average" (section 3.3.1).
    pub initial_rtt: Duration,
    /// The clock that measures the first round trip.
    pub handshake: HandshakeRtt,
    /// Packet window of the start phase in packets: 2 (section 3.3.1). Also its lower bound later
    /// (erratum H8).
    pub start_window: u16,
    /// Interval in which the window of the start phase grows by one packet: 0.4 s (section 3.3.1).
    pub start_every: Duration,
    /// Least round-trip time that the start phase assumes. Over a wire of 0.2 ms, two packets per
    /// round trip are 10,000 packets a second before the first is answered. Zero by default and in
    /// the paper.
    pub start_rtt: Duration,
    /// What ends the start phase.
    pub start_ends: StartEnds,
    /// Lateness of a packet that the following ones make up for, at least one interval between
    /// packets: zero. A host that shares its processors sends several packets late, and would not
    /// reach the rate of a fast path. At most 16 packets are sent at once.
    pub late: Duration,
    /// Spacing of the packets of a window in the start phase.
    pub start_pacing: StartPacing,
    /// Whether rate and window grow while the application does not use them.
    pub growth: Growth,
    /// Increase of the rate per [`SenderConfig::raise_every`], in bytes per second: 1 (Algorithm 2
    /// line 7, erratum H9).
    pub raise_step: u32,
    /// Interval between increases of the rate: 10 ms (Algorithm 2 line 5).
    pub raise_every: Duration,
    /// Faster increase of the rate after a time without congestion signals.
    pub acceleration: Option<Acceleration>,
    /// How long a reported loss suspends the increase of the rate.
    pub withhold: Withhold,
    /// Which SNACKs set rate and window in the controlled phase.
    pub snack: SnackReaction,
    /// How a congestion notification sets the rate.
    pub notice: Notice,
    /// Rate after the network has reported a broken path ([`super::Sender::path_lost`]), in percent
    /// of the used rate, for a sender limited by its rate: 70. In a network without mobility a path
    /// breaks because frames collide until the link layer gives up. 100 in the paper.
    pub broken_percent: u8,
    /// Reaction of the sender to a broken path reported by the network.
    pub standby: Standby,
    /// Slower increase near the rate that last caused trouble. `None` in the paper.
    pub caution: Option<Caution>,
    /// Rate after a congestion notification, in percent of the receive rate, for a sender that was
    /// limited by its application and not by its rate: 125. Such a receive rate mirrors the offered
    /// load, not the capacity of the path, and a rate just below the offered load builds a queue in
    /// the sender. If 125 % is still too much, a second notification finds the sender limited by
    /// its rate. 100 in the paper.
    pub headroom_percent: u16,
    /// Treatment of the queue on the path that a notification has revealed.
    pub drain: Drain,
    /// Lower bound of the rate in bytes per second: one packet per second.
    pub least_rate: u32,
    /// Least time that a packet is kept after it was sent (erratum H11).
    pub retention: Retention,
    /// Whether a packet may be discarded without confirmation by the sink.
    pub release: Release,
    /// One packet in this many asks for a confirmation; `None`: only the last one. The default 512
    /// costs 0.2 % of control load. It bounds the uncertainty after a restart, measures the
    /// round-trip time again, and detects a sink that no longer exists.
    pub confirm_every: Option<u32>,
    /// Time without a message of the sink after which a packet asks for a confirmation, up to twice
    /// as long, depending on the incarnation. It bounds the time after which a slow sender detects
    /// a sink that no longer exists. `None` by default and in the paper.
    pub confirm_after: Option<Duration>,
    /// Idle time of the application after which the sender asks whether all packets have arrived:
    /// the sink cannot detect the loss of the last packet (erratum H12). 1 s is longer than a pause
    /// of a steady stream.
    pub tail_after: Duration,
    /// Least time to wait for the answer to a probe, in addition to two round trips.
    pub least_wait: Duration,
    /// Longest time to wait for an answer.
    pub longest_wait: Duration,
    /// Number of unanswered probes after which the sender sends no new packets until it gets an
    /// answer.
    pub standby_after: u8,
    /// Number of unanswered probes after which the sender gives up; 255: it never does. 12 probes
    /// with waits that double up to 8 s take about one minute.
    pub probe_tries: u8,
    /// What becomes of unconfirmed packets when the sink has lost the stream.
    pub restart: Restart,
}

/// What becomes of packets that were sent and not confirmed when the sink has lost the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restart {
    /// They are reported as unknown and not sent again, since they may have been delivered.
    Report,
    /// They are sent again in the new stream. The sink's owner drops what it has delivered before,
    /// by a number in the data.
    Resend,
}

/// The clock that measures the first round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum HandshakeRtt {
    /// The sender's clock, from request to reply (erratum H17). The first packet asks for a
    /// confirmation and measures the round trip again, because the request may have waited for a
    /// route.
    Own,
    /// The sink's clock: twice the trip time of the request (section 3.1). The clocks must be
    /// synchronised.
    Sink,
}

/// What ends the start phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartEnds {
    /// The first SNACK or notification (section 3.3.1).
    FirstSnack,
    /// The first notification, or the first SNACK that reports waiting packets. A channel that
    /// loses packets otherwise ends the phase before the rate has reached the path's.
    Delay,
}

/// Spacing of packets in the start phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum StartPacing {
    /// As fast as the window allows (section 3.3.1): one burst per window.
    Burst,
    /// One packet per RTT/W: the same rate without a burst, which would look like a rising delay.
    Even,
}

/// Whether rate and window grow while the application does not use them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Growth {
    /// They always grow (the paper does not say). After one minute of low load nothing limits a
    /// burst.
    Always,
    /// They grow only while they limit the sender.
    WhenUsed,
}

/// Acceleration of the rate's increase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acceleration {
    /// The increase doubles after each period of this length without a notification, loss or cut.
    pub after: Duration,
    /// Largest number of doublings.
    pub doublings: u8,
    /// The increase per second is at first the rate after the last cut divided by this number,
    /// instead of [`SenderConfig::raise_step`], and at most half of the current rate. A fixed step
    /// that suits one sender overloads a path shared by 200 senders, and takes a minute to use a
    /// path that carries ten times as much as before.
    pub part: Option<u16>,
}

/// How long a reported loss suspends the increase of the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Withhold {
    /// Until the end of the 10 ms interval (section 3.3.2).
    Interval,
    /// If packets wait on the path: for one round trip, because the sink cannot have seen later
    /// packets before; the acceleration starts over. Otherwise as `interval`.
    RoundTrip,
    /// As `round-trip` if packets wait on the path, otherwise not at all. Over a channel that loses
    /// packets in each interval of 10 ms, the rate would otherwise never rise.
    Delayed,
}

/// How a congestion notification sets the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Notice {
    /// To the receive rate (Algorithm 2 line 3).
    Exact,
    /// To the receive rate, but at most to five quarters of the sending rate: packets that were
    /// held up and then arrive together feign a high receive rate.
    Plausible,
}

/// Slower increase of the rate near a rate at which many waiting packets were lost or a path broke.
/// A shared radio channel gives no early warning: slightly below the rate of its collapse no packet
/// waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caution {
    /// Number of missing packets in a SNACK that count as many. Errors of the channel come one by
    /// one.
    pub many: u8,
    /// Lower end of the cautious range in percent of the rate at that time: of the sender's share
    /// if the sink has reported one, otherwise of the used rate.
    pub from_percent: u8,
    /// Upper end of the cautious range in percent.
    pub to_percent: u8,
    /// Factor by which the increase is slower in that range.
    pub slower: u8,
    /// Time without a notification, loss or cut after which caution ends.
    pub lasts: Duration,
    /// The same time after the network has reported a broken path. It is longer because no draining
    /// queue shows when the channel can carry more, and each failed trial breaks routes again.
    pub after_break: Duration,
}

/// Reaction of the sender to a broken path reported by the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Standby {
    /// The sender sends probes until the sink answers.
    Probe,
    /// The sender pauses for one round trip and then tries the path with one data packet. The
    /// network either finds another path for the packet or reports that there is none. This costs
    /// no control packet.
    Trial,
}

/// Which SNACKs set rate and window in the controlled phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SnackReaction {
    /// All SNACKs (section 3.3.2).
    Always,
    /// Only SNACKs that report waiting packets. Other losses come from the channel, and a lower
    /// rate does not prevent them.
    WhenDelayed,
}

/// Treatment of the queue on the path that a notification has revealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Drain {
    /// The queue stays (Algorithm 2): a sender that continues at the arrival rate of its packets
    /// never drains it.
    Keep,
    /// The sender pauses for as long as its packets wait, at most four seconds. Its own part of the
    /// queue is then drained.
    OwnPart,
}

/// Whether a packet that was kept for [`SenderConfig::retention`] may be discarded when its space
/// is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Release {
    /// Yes: the packet is presumed to have arrived (section 3.4).
    Presumed,
    /// Yes, unless a loss was reported within the last 512 packets.
    WhenCalm,
    /// No: the sink must have confirmed the packet. The sender asks for a confirmation early
    /// enough, once per half to three quarters of a queue, and refuses new data while the queue is
    /// full. Only a restart of the sink can then lose packets; the cost is one control packet per
    /// request.
    Confirmed,
}

/// Least time that a packet is kept after it was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Retention {
    /// Number of half round trips.
    pub half_rtts: u8,
    /// Number of send intervals in addition.
    pub intervals: u8,
}

impl Retention {
    /// Two round trips and two send intervals (erratum H11).
    pub const CORRECTED: Self = Self { half_rtts: 4, intervals: 2 };
    /// 1.5 round trips (section 3.4). No SNACK can arrive in that time.
    pub const PRINTED: Self = Self { half_rtts: 3, intervals: 0 };
}

impl Default for SenderConfig {
    fn default() -> Self {
        Self {
            unsent_time: Some(Duration::from_millis(300)),
            start_pacing: StartPacing::Even,
            growth: Growth::WhenUsed,
            acceleration: Some(Acceleration { after: Duration::from_secs(1), doublings: 9, part: Some(32) }),
            withhold: Withhold::RoundTrip,
            snack: SnackReaction::WhenDelayed,
            notice: Notice::Plausible,
            broken_percent: 70,
            standby: Standby::Trial,
            caution: Some(Caution {
                many: 3,
                from_percent: 85,
                to_percent: 105,
                slower: 32,
                lasts: Duration::from_secs(5),
                after_break: Duration::from_secs(60),
            }),
            headroom_percent: 125,
            drain: Drain::OwnPart,
            release: Release::WhenCalm,
            handshake: HandshakeRtt::Own,
            ..Self::paper()
        }
    }
}

impl SenderConfig {
    /// Largest payload of a datagram in bytes.
    pub fn max_payload(&self) -> usize {
        usize::from(self.datagram).saturating_sub(self.header.data_octets())
    }

    /// Number of packets into which `bytes` bytes of the application are split (section 3.2.1).
    pub fn pieces(&self, bytes: usize) -> usize {
        bytes.div_ceil(self.max_payload().max(1)).max(1)
    }

    /// Largest number of bytes that the application can write at once: the capacity of half of the
    /// queue, at least one packet. All pieces can then be retained until the sink has them.
    pub fn longest(&self) -> usize {
        (self.max_payload() * (self.most_packets() / 2)).min(LONGEST)
    }

    /// Capacity of the queue: at least one sent and one unsent packet.
    pub(super) fn most_packets(&self) -> usize {
        usize::from(self.queue_packets.max(2))
    }

    /// Options of `anabranch sense` and of nodes with the C library: datagrams of RDCA of at most
    /// `datagram` bytes, and a queue of `packets` packets. The sender never gives up.
    pub fn deployed(datagram: u16, packets: u16) -> Self {
        Self {
            datagram,
            queue_packets: packets,
            unsent_packets: (packets / 4).max(1),
            release: Release::Confirmed,
            restart: Restart::Resend,
            request_tries: u8::MAX,
            probe_tries: u8::MAX,
            // Half a minute is a small part of the time for which a queue of 1024 packets lasts.
            confirm_after: Some(Duration::from_secs(30)),
            // A link that returns is noticed within this time.
            longest_wait: Duration::from_secs(2),
            // The session has just proved that the sink answers.
            request_wait: Duration::from_millis(300),
            // From 100 packets a second on, 1,000 more with each second.
            start_rtt: Duration::from_millis(20),
            start_every: Duration::from_millis(50),
            start_ends: StartEnds::Delay,
            late: Duration::from_millis(10),
            withhold: Withhold::Delayed,
            acceleration: Some(Acceleration {
                after: Duration::from_millis(250),
                doublings: 9,
                part: Some(16),
            }),
            ..Self::default()
        }
    }

    /// See [`Config::paper`].
    pub fn paper() -> Self {
        Self {
            header: Header::Ours,
            datagram: 300,
            queue_packets: 24,
            unsent_packets: 8,
            unsent_time: None,
            request_wait: Duration::from_secs(1),
            request_tries: 8,
            initial_rtt: Duration::from_millis(400),
            handshake: HandshakeRtt::Sink,
            start_window: 2,
            start_every: Duration::from_millis(400),
            start_rtt: Duration::ZERO,
            start_ends: StartEnds::FirstSnack,
            late: Duration::ZERO,
            start_pacing: StartPacing::Burst,
            growth: Growth::Always,
            raise_step: 1,
            raise_every: Duration::from_millis(10),
            acceleration: None,
            withhold: Withhold::Interval,
            snack: SnackReaction::Always,
            notice: Notice::Exact,
            broken_percent: 100,
            standby: Standby::Probe,
            caution: None,
            headroom_percent: 100,
            drain: Drain::Keep,
            least_rate: 300,
            retention: Retention::CORRECTED,
            release: Release::Presumed,
            confirm_every: Some(512),
            confirm_after: None,
            tail_after: Duration::from_secs(1),
            least_wait: Duration::from_millis(200),
            longest_wait: Duration::from_secs(8),
            standby_after: 3,
            probe_tries: 12,
            restart: Restart::Report,
        }
    }
}

/// Options of a sink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SinkConfig {
    /// Encoding of datagrams; both ends must use the same one.
    pub header: Header,
    /// Largest number of senders; more are refused. `docs/reference/rdca-protocol.md` has the
    /// memory for each.
    pub senders: usize,
    /// Largest number of packets held out of order for all senders: 4096 packets of 300 bytes take
    /// 1.5 MB.
    pub held_packets: usize,
    /// Largest number of bytes of these packets and of incomplete data: packets may take half of
    /// it. Packets without room are requested again.
    pub held_bytes: usize,
    /// Largest number of packets held out of order for one sender; later packets are dropped and
    /// requested again.
    pub reorder_packets: u16,
    /// Test for a rising delay (erratum H6).
    pub trend: TrendTest,
    /// Waiting time above the observed minimum below which there is no notification: 30 ms. A queue
    /// of two or three packets is no congestion, and a notification costs control load and rate.
    /// The paper has no such limit.
    pub least_waiting: Duration,
    /// The same limit in packet intervals: 3. The larger of both limits applies, up to 100 ms. On a
    /// slow path a single packet takes longer than [`SinkConfig::least_waiting`]. The paper has no
    /// such limit.
    pub least_waiting_intervals: u8,
    /// Least number of packets of a sender between two notifications. It bounds the control load of
    /// a sender that the network cannot satisfy. 0 by default and in the paper.
    pub notice_packets: u16,
    /// Notification of a standing queue. `None` in the paper: the delay of a full queue no longer
    /// rises, so the sink sends no notification.
    pub standing: Option<Standing>,
    /// How the receive rate is computed.
    pub receive_rate: ReceiveRate,
    /// Losses above this share, in 1/1000, count as those of a full queue, although no packet
    /// waits: a queue that is never empty looks like a longer path. 125; a channel that loses more
    /// needs a higher limit.
    pub lossy: u16,
    /// Whether the reported rates contain the packets that the channel loses.
    pub credit: LossCredit,
    /// Whether each message of the sink to a sender reports the fair share: the rate that the
    /// sender would have if all congested senders had the same rate.
    pub share: ShareReport,
    /// Least time between two notifications (erratum H10).
    pub guard: Guard,
    /// What happens to older trip times on a notification.
    pub after_notice: AfterNotice,
    /// How the average round-trip time is computed (erratum H17).
    pub rtt: RttSource,
    /// Round-trip time assumed before the first measurement.
    pub initial_rtt: Duration,
    /// When a SNACK is repeated (erratum H12).
    pub repeat: SnackRepeat,
    /// Upper bound of the delay of a SNACK. The SNACK waits for eight receive intervals after a gap
    /// was noticed, and at least half a round trip, and then lists all gaps. The losses of a broken
    /// path then cost one SNACK. The sender needs queue space for the packets that it sends
    /// meanwhile. Zero by default and in the paper.
    pub collect: Duration,
    /// Period of the minimum trip time: 3 s. A packet has waited for as long as its trip time
    /// exceeds the minimum of the current and the previous period. Notifications empty a queue more
    /// often than that. Route changes, clock jumps and clock drift are mistaken for a queue no
    /// longer than that.
    pub least_span: Duration,
    /// Which packets the sink confirms.
    pub confirmation: Confirmation,
    /// Silence after which a sender is forgotten.
    pub idle: Duration,
    /// Time that an ended stream is remembered, so that its end can be confirmed again.
    pub linger: Duration,
}

/// Which packets a sink confirms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Confirmation {
    /// Those that it has delivered to its owner.
    Delivered,
    /// Those that its owner has stored ([`super::Sink::stored`]). With [`Release::Confirmed`] and
    /// [`Restart::Resend`] at the sender, no restart of the sink loses a packet.
    Stored,
}

/// Test for a rising delay over 16 trip times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TrendTest {
    /// As printed (Algorithm 1 lines 5 and 6): the variance is higher than after the previous
    /// packet. The test ignores the direction and is true for every other packet (erratum H6).
    VarianceRose,
    /// The mean of the newest 8 exceeds the mean of the oldest 8 by more than `k_percent`/100
    /// standard errors of the difference (erratum H6).
    Halves {
        /// The factor k in hundredths. The errata use 2, the default is 3. Each packet repeats the
        /// test, so with 2 noise alone triggers at 3 packets in 100, which exceeds the total
        /// control load allowed.
        k_percent: u16,
    },
}

/// Notification of a standing queue: each of the last 8 packets has waited for long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Waiting time above the observed minimum.
    pub waiting: Duration,
    /// Percentage of the receive rate to report, 1 to 100. The unused remainder drains the queue.
    /// If all senders decrease by a factor and increase by a step, their shares converge (Chiu and
    /// Jain, 1989).
    pub percent: u8,
}

/// How the receive rate is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReceiveRate {
    /// From the intervals between consecutive packets (section 3.5.1). Under heavy loss that is the
    /// sending rate, so a sender that adopts it does not slow down.
    Intervals,
    /// As `intervals`, reduced by the share of packets that were missing at first.
    LessLosses,
    /// From the intervals between all arriving packets, retransmitted or not. Behind a full queue
    /// the intervals between consecutive packets already are those of the path, so the share of
    /// losses must not reduce them again.
    Arrivals,
}

/// Whether the rates that a sink reports contain the packets that the channel loses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossCredit {
    /// No: a sender that adopts the receive rate leaves the lost part of the capacity unused.
    None,
    /// Yes, as far as they were lost while no packet waited, and at most a third: the sender may
    /// send as much as arrives at the lossy part of the path.
    Calm,
}

/// Whether the sink reports the fair share to senders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ShareReport {
    /// The share is not reported: a sender knows only its own receive rate.
    Untold,
    /// The share is reported. Only the sink sees all senders.
    Told,
}

/// Least time between two notifications.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Guard {
    /// Twice the average round-trip time (section 3.5.2).
    TwiceAverageRtt,
    /// Four times the trip time of the current packet (Algorithm 1 line 8). The clocks must be
    /// synchronised.
    FourTripTimes,
}

/// What happens to older trip times on a notification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AfterNotice {
    /// They stay (Algorithm 1): the same rise triggers again after the guard time.
    Keep,
    /// They are discarded: the next test needs 16 newer ones.
    Forget,
}

/// How the average round-trip time is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RttSource {
    /// Twice the trip time (Algorithm 1 line 4). The clocks must be synchronised.
    TwiceTripTime,
    /// The round-trip time that the sender measured on its own clock without a queue, plus the
    /// waiting time of the packet (erratum H17).
    BasePlusWaiting,
}

/// When a SNACK is repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SnackRepeat {
    /// After each average round trip (erratum H12).
    RoundTrip,
    /// After 1.5 round trips and one receive interval per missing packet, the time that a paced
    /// sender needs to retransmit all of them. Then after twice, four times and at most eight times
    /// as long.
    Patient,
}

impl Default for SinkConfig {
    fn default() -> Self {
        Self {
            trend: TrendTest::Halves { k_percent: 300 },
            least_waiting: Duration::from_millis(30),
            least_waiting_intervals: 3,
            standing: Some(Standing { waiting: Duration::from_millis(100), percent: 70 }),
            receive_rate: ReceiveRate::Arrivals,
            share: ShareReport::Told,
            after_notice: AfterNotice::Forget,
            rtt: RttSource::BasePlusWaiting,
            repeat: SnackRepeat::Patient,
            ..Self::paper()
        }
    }
}

impl SinkConfig {
    /// Options of `anabranch sink` for this number of senders. Packets out of order and incomplete
    /// records take about `memory` bytes at most.
    pub fn deployed(senders: usize, memory: usize) -> Self {
        Self {
            senders,
            held_packets: (memory / HELD).max(64),
            held_bytes: memory,
            reorder_packets: 1024,
            // Hosts that share their processors delay packets by this much without a queue.
            least_waiting: Duration::from_millis(50),
            // Channels may lose a fifth of all packets. The share is an average over 64 packets,
            // whose standard deviation is then 35/1000.
            lossy: 400,
            // Routes of wired networks change rarely. Where a queue is never empty for this long,
            // it counts as part of the path, and its losses as those of a channel.
            least_span: Duration::from_secs(10),
            credit: LossCredit::Calm,
            confirmation: Confirmation::Stored,
            ..Self::default()
        }
    }

    /// See [`Config::paper`].
    pub fn paper() -> Self {
        Self {
            header: Header::Ours,
            senders: 4096,
            held_packets: 4096,
            held_bytes: usize::MAX,
            reorder_packets: 64,
            trend: TrendTest::Halves { k_percent: 200 },
            least_waiting: Duration::ZERO,
            least_waiting_intervals: 0,
            notice_packets: 0,
            collect: Duration::ZERO,
            standing: None,
            receive_rate: ReceiveRate::Intervals,
            lossy: 125,
            credit: LossCredit::None,
            share: ShareReport::Untold,
            guard: Guard::TwiceAverageRtt,
            after_notice: AfterNotice::Keep,
            rtt: RttSource::TwiceTripTime,
            initial_rtt: Duration::from_millis(400),
            repeat: SnackRepeat::RoundTrip,
            least_span: Duration::from_secs(3),
            confirmation: Confirmation::Delivered,
            idle: Duration::from_secs(300),
            linger: Duration::from_secs(60),
        }
    }
}

/// Memory for each packet out of order of a deployed sink in bytes.
const HELD: usize = 1500;
/// Largest number of bytes that an application writes at once; a sink joins no more pieces.
pub(super) const LONGEST: usize = 65_535;
