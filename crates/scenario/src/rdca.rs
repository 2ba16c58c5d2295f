//! The `[rdca.NAME]` section: options of RDCA ([`anabranch_core::rdca`]).

use anabranch_core::rdca::{
    Acceleration, AfterNotice, Caution, Config, Drain, Growth, Guard, HandshakeRtt, Header, Notice,
    ReceiveRate, Release, Retention, RttSource, ShareReport, SnackReaction, SnackRepeat, Standby, Standing,
    StartPacing, TrendTest, Withhold,
};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::options::{Means, OrOff, options};
use super::units::Span;
use anabranch_sim::apps::rdca::RouteNotices;

/// Base values of the options in `[rdca.NAME]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RdcaAlgorithm {
    /// The algorithms of section 3 of the paper, corrected by the errata. Notices of broken routes
    /// are ignored.
    Paper,
    /// Anabranch's variant.
    #[default]
    Ours,
    /// Anabranch's variant as `anabranch sense` and `anabranch sink` use it: packets are kept until
    /// they are confirmed. Notices of broken routes are ignored, since the kernel gives none.
    Deployed,
}

/// Options of both ends of RDCA, and of the sender's application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RdcaOptions {
    /// Configuration of sender and sink.
    pub config: Config,
    /// Whether the sender is told about broken routes.
    pub notices: RouteNotices,
}

options! {
    /// An RDCA profile. The algorithm provides the keys that are not given.
    pub struct RdcaProfile of RdcaOptions,
    /// Algorithm that provides the default of every other key.
    algorithm: RdcaAlgorithm;
    /// Header format of datagrams, at both ends. "printed" needs `rtt = "twice-trip-time"`.
    header: Header = config.sender.header;
    /// Length of the longest datagram in bytes, header included, 18 to 65507. Rates are counted in
    /// datagrams of this length.
    datagram: u16 = config.sender.datagram;
    /// Capacity of the sender's queue in packets, both sent and unsent: at least 2, and with
    /// `header = "printed"` at most 2048.
    queue_packets: u16 = config.sender.queue_packets;
    /// Largest number of packets that wait for their first transmission, at least 1.
    unsent_packets: u16 = config.sender.unsent_packets;
    /// The limit of `unsent_packets` as a time at the present rate, but at least 4 packets; or
    /// "off".
    unsent_time: OrOff<Span> = config.sender.unsent_time;
    /// First wait for the answer to a request, more than 0; it doubles up to `longest_wait`.
    request_wait: Span = config.sender.request_wait;
    /// Number of unanswered requests after which the sender gives up, at least 1.
    request_tries: u8 = config.sender.request_tries;
    /// Round-trip time that both ends assume before the first measurement.
    initial_rtt: Span = config.sender.initial_rtt;
    /// Clock on which the first round trip is measured.
    handshake: HandshakeRtt = config.sender.handshake;
    /// Packet window at the beginning of the start phase, and its lower bound later.
    start_window: u16 = config.sender.start_window;
    /// Interval in the start phase after which the window grows by one packet, more than 0.
    start_every: Span = config.sender.start_every;
    /// Spacing of the packets of a window in the start phase.
    start_pacing: StartPacing = config.sender.start_pacing;
    /// Whether rate and window grow while the application does not use them.
    growth: Growth = config.sender.growth;
    /// Increase of the rate after each `raise_every`, in bytes per second.
    raise_step: u32 = config.sender.raise_step;
    /// Interval between two increases of the rate, more than 0.
    raise_every: Span = config.sender.raise_every;
    /// Faster increase of the rate after a time without congestion, or "off".
    acceleration: OrOff<AccelerationTable> = config.sender.acceleration;
    /// Time for which a reported loss stops the increase of the rate.
    withhold: Withhold = config.sender.withhold;
    /// SNACKs that change rate and window in the controlled phase.
    snack: SnackReaction = config.sender.snack;
    /// How a notification sets the rate.
    notice: Notice = config.sender.notice;
    /// Rate after a broken path, in percent of the rate that was used before, 1 to 100.
    broken_percent: u8 = config.sender.broken_percent;
    /// Reaction of the sender when the network reports a broken path.
    standby: Standby = config.sender.standby;
    /// Slower increase of the rate close to the rate at which the network last had problems, or
    /// "off".
    caution: OrOff<CautionTable> = config.sender.caution;
    /// Rate after a notification in percent of the receive rate, if the application was the limit.
    headroom_percent: u16 = config.sender.headroom_percent;
    /// What the sender does about the queue that caused a notification.
    drain: Drain = config.sender.drain;
    /// Lowest rate in bytes per second, at least 1.
    least_rate: u32 = config.sender.least_rate;
    /// Time for which a sent packet is kept: a number of half round trips plus a number of send
    /// intervals.
    retention: Retention = config.sender.retention;
    /// Whether a packet may be released without the sink's confirmation.
    release: Release = config.sender.release;
    /// Interval in packets at which a packet asks for confirmation, at least 1; "off" for the last
    /// packet only.
    confirm_every: OrOff<u32> = config.sender.confirm_every;
    /// Time without a message of the sink after which a packet asks for a confirmation, up to twice
    /// as long by chance; or "off".
    confirm_after: OrOff<Span> = config.sender.confirm_after;
    /// Silence of the application after which the sender asks whether everything has arrived.
    tail_after: Span = config.sender.tail_after;
    /// Least wait for the answer to a probe, more than 0; two round trips are added to it.
    least_wait: Span = config.sender.least_wait;
    /// Longest wait for an answer, at least `least_wait`.
    longest_wait: Span = config.sender.longest_wait;
    /// Number of unanswered probes after which the sender sends no new packets until an answer
    /// arrives.
    standby_after: u8 = config.sender.standby_after;
    /// Number of unanswered probes after which the sender gives up, at least 1.
    probe_tries: u8 = config.sender.probe_tries;
    /// Whether the sender is told about broken routes.
    route_notices: RouteNotices = notices;
    /// Number of senders that the sink serves at the same time, at least 1; more are refused.
    senders: u32 = config.sink.senders;
    /// Number of out-of-order packets that the sink holds, over all senders.
    held_packets: u32 = config.sink.held_packets;
    /// Number of out-of-order packets that the sink holds for one sender.
    reorder_packets: u16 = config.sink.reorder_packets;
    /// Test by which the sink recognises a rising delay.
    trend: TrendTest = config.sink.trend;
    /// Queueing delay on the path below which the sink sends no notification.
    least_waiting: Span = config.sink.least_waiting;
    /// The limit of `least_waiting` in intervals between packets, up to 100 ms; the larger limit
    /// applies.
    least_waiting_intervals: u8 = config.sink.least_waiting_intervals;
    /// Least number of packets of a sender between two notifications.
    notice_packets: u16 = config.sink.notice_packets;
    /// Report of a standing queue by the sink, or "off".
    standing: OrOff<StandingTable> = config.sink.standing;
    /// Measurement from which the receive rate is computed.
    receive_rate: ReceiveRate = config.sink.receive_rate;
    /// Whether the sink tells each sender its share.
    share: ShareReport = config.sink.share;
    /// Least time between two notifications.
    guard: Guard = config.sink.guard;
    /// Whether a notification discards the trip times measured before it.
    after_notice: AfterNotice = config.sink.after_notice;
    /// Measurement from which the sink's average round trip is computed.
    rtt: RttSource = config.sink.rtt;
    /// When a SNACK is repeated.
    repeat: SnackRepeat = config.sink.repeat;
    /// Longest time for which a SNACK is held back to collect further gaps. The time is eight
    /// receive intervals, limited by this value, but at least half a round trip.
    collect: Span = config.sink.collect;
    /// Period over which the minimum of the trip time is taken, more than 0.
    least_span: Span = config.sink.least_span;
    /// Silence after which the sink forgets a sender.
    idle: Span = config.sink.idle;
    /// Time for which the sink remembers a finished stream.
    linger: Span = config.sink.linger;
}

impl RdcaProfile {
    /// Checks the profile and fills in every default. An error is the key at fault and the reason.
    pub(super) fn resolve(&mut self) -> Result<RdcaOptions, (&'static str, String)> {
        let mut options = match self.algorithm {
            RdcaAlgorithm::Paper => RdcaOptions { config: Config::paper(), notices: RouteNotices::Ignored },
            RdcaAlgorithm::Ours => RdcaOptions { config: Config::default(), notices: RouteNotices::Heeded },
            RdcaAlgorithm::Deployed => RdcaOptions {
                // The defaults of both commands. Nothing stores records in a simulation.
                config: Config::deployed(1207, 1024, 10_000, 16 << 20),
                notices: RouteNotices::Ignored,
            },
        };
        self.lay_over(&mut options);
        options.config.sink.initial_rtt = options.config.sender.initial_rtt;
        options.config.sink.header = options.config.sender.header;
        let sender = &options.config.sender;
        let is_printed = sender.header == Header::Printed;
        let faults = [
            ("datagram", !(18..=65_507).contains(&sender.datagram), "expected 18 to 65507 bytes"),
            ("queue_packets", sender.queue_packets < 2, "expected at least 2"),
            (
                "queue_packets",
                is_printed && sender.queue_packets > 2048,
                "expected at most 2048: the printed header has 13 bits for a packet's number",
            ),
            (
                "header",
                is_printed && options.config.sink.rtt == RttSource::BasePlusWaiting,
                "the printed header has no room for the round trip that the sender measures: say \
                 `rtt = \"twice-trip-time\"`, as `algorithm = \"paper\"` does",
            ),
            ("unsent_packets", sender.unsent_packets == 0, "expected at least 1"),
            ("request_tries", sender.request_tries == 0, "expected at least 1"),
            ("probe_tries", sender.probe_tries == 0, "expected at least 1"),
            ("raise_every", sender.raise_every.is_zero(), "expected more than no time"),
            ("start_every", sender.start_every.is_zero(), "expected more than no time"),
            ("request_wait", sender.request_wait.is_zero(), "expected more than no time"),
            ("least_wait", sender.least_wait.is_zero(), "expected more than no time"),
            ("least_rate", sender.least_rate == 0, "expected at least 1 byte per second"),
            ("confirm_every", sender.confirm_every == Some(0), "expected at least 1, or \"off\""),
            ("longest_wait", sender.longest_wait < sender.least_wait, "expected at least `least_wait`"),
            ("senders", options.config.sink.senders == 0, "expected at least 1"),
            ("broken_percent", !(1..=100).contains(&sender.broken_percent), "expected 1 to 100"),
            (
                "caution",
                sender.caution.is_some_and(|c| c.slower == 0 || c.from_percent > c.to_percent),
                "expected `slower` from 1 on, and `from_percent` up to `to_percent`",
            ),
            (
                "acceleration",
                sender.acceleration.is_some_and(|a| a.part == Some(0)),
                "expected a `part` from 1 on, or \"off\"",
            ),
            (
                "standing",
                options.config.sink.standing.is_some_and(|s| !(1..=100).contains(&s.percent)),
                "expected a `percent` from 1 to 100",
            ),
            ("least_span", options.config.sink.least_span.is_zero(), "expected more than no time"),
        ];
        if let Some((key, _, message)) = faults.into_iter().find(|(_, wrong, _)| *wrong) {
            return Err((key, message.to_owned()));
        }
        self.complete(&options);
        Ok(options)
    }
}

/// Declares a table whose keys are all mandatory.
macro_rules! table {
    ($(#[$attribute:meta])* pub struct $name:ident of $core:ident;
        $($(#[$key_attribute:meta])* $key:ident: $type:ty;)*
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
        #[cfg_attr(feature = "schema", derive(JsonSchema))]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$key_attribute])* pub $key: $type,)* }

        impl Means<$core> for $name {
            fn meant(&self) -> $core {
                $core { $($key: Means::meant(&self.$key),)* }
            }

            fn of(meant: &$core) -> Self {
                Self { $($key: Means::of(&meant.$key),)* }
            }
        }
    };
}

table! {
    /// A faster increase of the rate.
    pub struct AccelerationTable of Acceleration;
    /// The increase doubles each time this long passes without a notification, a loss or a cut.
    after: Span;
    /// Largest number of doublings.
    doublings: u8;
    /// Initial increase in each second, as the divisor of the rate after the last cut, at least 1:
    /// 32 for a thirty-second of it. "off" begins with `raise_step`.
    part: OrOff<u16>;
}

table! {
    /// A slower increase of the rate after many losses or a broken path.
    pub struct CautionTable of Caution;
    /// Number of packets that one SNACK must report missing.
    many: u8;
    /// Lower end of the cautious range, in percent of the rate when the losses were reported, at
    /// most `to_percent`.
    from_percent: u8;
    /// Upper end of the cautious range, in percent of that rate.
    to_percent: u8;
    /// Factor by which the increase is slower, at least 1.
    slower: u8;
    /// Time without a notification, a loss or a cut after which caution ends.
    lasts: Span;
    /// The time of `lasts` after a broken path.
    after_break: Span;
}

table! {
    /// A standing queue: each of the last 8 packets has waited this long.
    pub struct StandingTable of Standing;
    /// Queueing delay above the minimum that was measured.
    waiting: Span;
    /// Receive rate that the sink then reports, in percent of the measured one, 1 to 100.
    percent: u8;
}
