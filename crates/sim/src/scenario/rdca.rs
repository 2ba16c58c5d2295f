//! What a scenario file says of RDCA ([`anabranch_core::rdca`]).

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
use crate::apps::rdca::RouteNotices;

/// Where the options of `[rdca.NAME]` start from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RdcaAlgorithm {
    /// Section 3 of the paper as the errata read it. Notices of broken routes are ignored.
    Paper,
    /// Ours.
    #[default]
    Ours,
}

/// Both ends of RDCA, and what the sender's application tells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RdcaOptions {
    /// Sender and sink.
    pub config: Config,
    /// Whether the sender hears of broken routes.
    pub notices: RouteNotices,
}

options! {
    /// How RDCA behaves. A key that is not given is as the algorithm has it.
    pub struct RdcaProfile of RdcaOptions,
    /// Where the options start from.
    algorithm: RdcaAlgorithm;
    /// How datagrams are written, at both ends.
    header: Header = config.sender.header;
    /// Bytes of the longest datagram, header included, 18 to 65507. Rates are counted in datagrams
    /// of this length.
    datagram: u16 = config.sender.datagram;
    /// Packets in the sender's queue, sent or not, at least 2.
    queue_packets: u16 = config.sender.queue_packets;
    /// Packets that may wait to be sent for the first time, at least 1.
    unsent_packets: u16 = config.sender.unsent_packets;
    /// The same limit as a time at the present rate, but never fewer than 4 packets; or "off".
    unsent_time: OrOff<Span> = config.sender.unsent_time;
    /// First wait for an answer to a request; it doubles up to `longest_wait`.
    request_wait: Span = config.sender.request_wait;
    /// Requests without an answer before the sender gives up, at least 1.
    request_tries: u8 = config.sender.request_tries;
    /// Round trip before the first measurement, at both ends.
    initial_rtt: Span = config.sender.initial_rtt;
    /// Clock on which the first round trip is measured.
    handshake: HandshakeRtt = config.sender.handshake;
    /// Packet window of the start phase, and its least value later.
    start_window: u16 = config.sender.start_window;
    /// The window grows by one packet in each such interval of the start phase.
    start_every: Span = config.sender.start_every;
    /// How the packets of a window are spread in the start phase.
    start_pacing: StartPacing = config.sender.start_pacing;
    /// Whether rate and window grow while the application does not use them.
    growth: Growth = config.sender.growth;
    /// Bytes per second by which the rate rises after each `raise_every`.
    raise_step: u32 = config.sender.raise_step;
    /// Interval between two rises of the rate.
    raise_every: Span = config.sender.raise_every;
    /// Whether the rate rises faster after a quiet time.
    acceleration: OrOff<AccelerationTable> = config.sender.acceleration;
    /// For how long a reported loss withholds the rise.
    withhold: Withhold = config.sender.withhold;
    /// Which SNACKs set rate and window in the controlled phase.
    snack: SnackReaction = config.sender.snack;
    /// How a notification sets the rate.
    notice: Notice = config.sender.notice;
    /// Rate after a broken path, in percent of the rate that was used.
    broken_percent: u8 = config.sender.broken_percent;
    /// What a sender does when the network says that a path has broken.
    standby: Standby = config.sender.standby;
    /// Whether the rate rises more slowly where the network was last in trouble.
    caution: OrOff<CautionTable> = config.sender.caution;
    /// Rate after a notification, in percent of the receive rate, where the application was the
    /// limit.
    headroom_percent: u16 = config.sender.headroom_percent;
    /// What becomes of the queue that a notification found.
    drain: Drain = config.sender.drain;
    /// Lowest rate in bytes per second.
    least_rate: u32 = config.sender.least_rate;
    /// How long a packet is kept after it was sent: halves of a round trip, and send intervals on
    /// top.
    retention: Retention = config.sender.retention;
    /// Whether a packet may be released without a confirmation of the sink.
    release: Release = config.sender.release;
    /// One packet in this many asks to be confirmed; "off" for the last one only.
    confirm_every: OrOff<u32> = config.sender.confirm_every;
    /// Silence of the application after which the sender asks whether everything has arrived.
    tail_after: Span = config.sender.tail_after;
    /// Least wait for an answer to a probe, beside two round trips.
    least_wait: Span = config.sender.least_wait;
    /// Longest wait for an answer.
    longest_wait: Span = config.sender.longest_wait;
    /// Probes without an answer after which no new packet is sent until one comes.
    standby_after: u8 = config.sender.standby_after;
    /// Probes without an answer before the sender gives up, at least 1.
    probe_tries: u8 = config.sender.probe_tries;
    /// Whether the sender hears of broken routes.
    route_notices: RouteNotices = notices;
    /// Senders that the sink serves at a time; more are refused.
    senders: u32 = config.sink.senders;
    /// Packets that the sink holds out of order, over all senders.
    held_packets: u32 = config.sink.held_packets;
    /// Packets that the sink holds out of order for one sender.
    reorder_packets: u16 = config.sink.reorder_packets;
    /// How the sink recognises a rising delay.
    trend: TrendTest = config.sink.trend;
    /// Waiting time on the way below which the sink sends no notification.
    least_waiting: Span = config.sink.least_waiting;
    /// The same limit in intervals between packets, up to 100 ms; the larger of the two holds.
    least_waiting_intervals: u8 = config.sink.least_waiting_intervals;
    /// Packets of a sender between two notifications at least.
    notice_packets: u16 = config.sink.notice_packets;
    /// Whether the sink reports a queue that stays.
    standing: OrOff<StandingTable> = config.sink.standing;
    /// What the receive rate is made of.
    receive_rate: ReceiveRate = config.sink.receive_rate;
    /// Whether the sink tells each sender its share.
    share: ShareReport = config.sink.share;
    /// Least time between two notifications.
    guard: Guard = config.sink.guard;
    /// What a notification does to the trip times before it.
    after_notice: AfterNotice = config.sink.after_notice;
    /// What the sink's average round trip is made of.
    rtt: RttSource = config.sink.rtt;
    /// When a SNACK is repeated.
    repeat: SnackRepeat = config.sink.repeat;
    /// A SNACK waits for eight receive intervals, at most this long, and lists all gaps by then; at
    /// least half a round trip.
    collect: Span = config.sink.collect;
    /// Period over which the least trip time is taken.
    least_span: Span = config.sink.least_span;
    /// Silence after which the sink forgets a sender.
    idle: Span = config.sink.idle;
    /// How long the sink remembers a stream that has ended.
    linger: Span = config.sink.linger;
}

impl RdcaProfile {
    /// What the profile means, with every value written out, or the key at fault and what is wrong
    /// with it.
    pub(super) fn resolve(&mut self) -> Result<RdcaOptions, (&'static str, String)> {
        let mut options = match self.algorithm {
            RdcaAlgorithm::Paper => RdcaOptions { config: Config::paper(), notices: RouteNotices::Ignored },
            RdcaAlgorithm::Ours => RdcaOptions { config: Config::default(), notices: RouteNotices::Heeded },
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

/// Declares a table whose keys are all needed.
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
    /// A faster rise of the rate.
    pub struct AccelerationTable of Acceleration;
    /// The rise doubles after each such time without a notification, a loss or a cut.
    after: Span;
    /// Doublings at most.
    doublings: u8;
    /// In each second the rise is at first this part of the rate after the last cut (32 for a
    /// thirty-second), or "off" for `raise_step`.
    part: OrOff<u16>;
}

table! {
    /// A slower rise of the rate after many losses or a broken path.
    pub struct CautionTable of Caution;
    /// Packets that one SNACK must report missing.
    many: u8;
    /// Caution begins at this percentage of the rate of that moment.
    from_percent: u8;
    /// It ends at this percentage.
    to_percent: u8;
    /// The rise is this many times slower.
    slower: u8;
    /// It ends after this time without a notification, a loss or a cut.
    lasts: Span;
    /// The same time after a broken path.
    after_break: Span;
}

table! {
    /// A queue that stays: each of the last 8 packets has waited this long.
    pub struct StandingTable of Standing;
    /// Waiting time above the least that was seen.
    waiting: Span;
    /// The receive rate that the sink then reports, in percent, 1 to 100.
    percent: u8;
}
