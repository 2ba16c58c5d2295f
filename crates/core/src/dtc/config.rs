//! Options of a caching node.

use crate::time::Duration;

/// Options of one node. [`Config::default`] is [`Config::improved`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Number of segments that the node can cache, for all its connections; 1 in the paper (section
    /// III). With 0 the node only forwards and measures.
    pub cache_segments: usize,
    /// Limit on the cached segments of one direction of a connection, so that no connection takes
    /// the whole cache.
    pub flow_segments: usize,
    /// Limit on the payload of all cached segments in bytes.
    pub cache_octets: usize,
    /// Number of connections with state, at least 1; [`super::Node`] describes the eviction rule.
    pub connections: usize,
    /// Largest assumed flight of a sender in bytes, at most 2^30. A segment farther away from the
    /// others belongs to another connection.
    pub flight: u32,
    /// Which numbers within one flight are acceptable.
    pub validation: Validation,
    /// Idle time after which a connection is dropped (erratum D26: the paper gives none).
    pub idle: Duration,
    /// When a cached segment is locked, and when it is unlocked.
    pub custody: Custody,
    /// Probability that a segment displaces an unlocked one (section IV-B: one half). An empty
    /// place is always used (erratum D14).
    pub cache_chance: Chance,
    /// Whether a segment may displace a locked one.
    pub displacement: Displacement,
    /// Which segments measure the local round-trip time.
    pub samples: Samples,
    /// The local retransmission time-out as a multiple of the smoothed local round-trip time
    /// (erratum D16).
    pub local_rto: Ratio,
    /// The local time-out before the first measurement: the 3 s of TCP. Flying start shortens it.
    pub initial_rto: Duration,
    /// Lower bound of the local time-out. With custody it must exceed the time that the link layer
    /// takes to report.
    pub min_rto: Duration,
    /// How the local time-out grows from one retransmission to the next.
    pub backoff: Backoff,
    /// Which segments a local time-out retransmits.
    pub timeouts: Timeouts,
    /// Number of retransmissions of one segment without a sign of success, after which the node
    /// leaves it to the endpoints. The paper has no limit (erratum D13). Without one, a node whose
    /// acknowledgements take another route would never stop.
    pub max_repeats: u8,
    /// The same limit while no segment of the destination has been seen. Spoofed segments cause at
    /// most this many copies of each.
    pub unanswered_repeats: u8,
    /// Limit on the segments that the SACK blocks of one acknowledgement let the node retransmit
    /// (action 3.3), against acknowledgements that make the node send much; 255: no limit.
    pub repeats_per_ack: u8,
    /// Number of retransmissions sent at once after a missing link acknowledgement; later ones wait
    /// for the local time-out. Only with [`Custody::UntilLinkAck`], and for SYN.
    pub immediate_repeats: u8,
    /// The guard of actions 3.2 and 3.3: a segment is retransmitted only if this many local
    /// round-trip times have passed since it was last sent (erratum D11).
    pub guard: Ratio,
    /// Which retransmissions from upstream are held back.
    pub suppression: Suppression,
    /// Reaction to duplicate acknowledgements (action 3.2).
    pub duplicate_acks: DuplicateAcks,
    /// Action 3.4: report a locked segment to the nodes upstream by a SACK block.
    pub signal: Signal,
    /// Whether acknowledgements are repaired hop by hop.
    pub acks: AckCustody,
    /// Whether to offer SACK on behalf of an endpoint that does not support it (section IV-B).
    pub sack: SackForEnds,
    /// Hop-by-hop reliable SYN with a first measurement of the round-trip time (section IV-C).
    pub flying_start: FlyingStart,
}

/// Which sequence numbers are acceptable, besides the limit of [`Config::flight`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Validation {
    /// All within one flight.
    WithinFlight,
    /// Of an acknowledgement without data, those at most 64 KiB from the highest number of its end.
    /// Of data, those that exceed the highest number by at most the last window of the receiver, or
    /// 1 MiB if the window is unknown. A host that does not see the connection hardly guesses them.
    WithinWindow,
}

/// When a cached segment is locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Custody {
    /// When the link layer reports a missing acknowledgement; until TCP acknowledges the segment,
    /// or its time-out (section IV-A).
    OnSuspicion,
    /// From its forwarding until the next hop has acknowledged it. A segment that is missing there
    /// is retransmitted after the time-out of the link layer, not of TCP.
    UntilLinkAck,
}

/// Which segments measure the local round-trip time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Samples {
    /// One segment at a time. Any retransmission in between spoils the measurement (erratum D16),
    /// and a SYN is measured from its first transmission (section IV-C).
    OneAtATime,
    /// Each cached segment that was sent once: when an acknowledgement or a SACK block covers it,
    /// unless the same acknowledgement also covers a retransmission (RFC 6298 section 3). On a path
    /// with many losses, measurements of one segment at a time hardly ever end.
    EachSegment,
}

/// A probability as a fraction of 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chance(u32);

impl Chance {
    /// Probability 0.
    pub const NEVER: Self = Self(0);
    /// Probability 1/2.
    pub const HALF: Self = Self(1 << 31);
    /// Probability 1.
    pub const ALWAYS: Self = Self(u32::MAX);

    /// `per_mille` of 1000; larger values mean always.
    pub const fn per_mille(per_mille: u32) -> Self {
        if per_mille >= 1000 { Self::ALWAYS } else { Self((((per_mille as u64) << 32) / 1000) as u32) }
    }

    /// Whether a random word is a hit.
    pub(super) const fn hit(self, word: u32) -> bool {
        word < self.0 || self.0 == u32::MAX
    }
}

/// A rational factor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ratio {
    /// Numerator.
    pub num: u16,
    /// Denominator; 0 counts as 1.
    pub den: u16,
}

impl Ratio {
    /// `span` multiplied by the factor.
    pub(super) const fn of(self, span: Duration) -> Duration {
        span.mul_ratio(self.num as u64, if self.den == 0 { 1 } else { self.den as u64 })
    }
}

/// Which segment is displaced if all are locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Displacement {
    /// None. On the chain of the paper this is 1 to 5 % cheaper than the other.
    Never,
    /// A segment of the same connection with a lower sequence number: the paper only says that
    /// higher ones are kept out (erratum D14).
    ByLower,
    /// The highest segment of a longer flow, so that connections share the cache. Unlocked
    /// segments come first. Of many segments only a sample is compared. This also applies to
    /// [`Config::cache_octets`].
    OfLongest,
}

/// Growth of the local time-out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backoff {
    /// The time-out is constant.
    Constant,
    /// The time-out doubles with every retransmission.
    Double,
}

/// Which segments a local time-out retransmits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timeouts {
    /// Each segment has its own time-out (section IV, where a node has one segment).
    EachSegment,
    /// Only the lowest segment of a flow, and its time-out begins again with each advancing
    /// acknowledgement (RFC 6298 section 5). A window that waits in a queue is then not
    /// retransmitted as a whole. If an acknowledgement covers a retransmitted segment but not one
    /// that was sent earlier, that one is lost too (RFC 8985 section 6.2), and is retransmitted.
    LowestOfFlow,
}

/// Which retransmissions from upstream are held back, because the node has already sent the
/// segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Suppression {
    /// Segments that the node itself has retransmitted within one local round trip (action 1,
    /// erratum D15).
    AfterRepetition,
    /// Segments that the node has sent within one local round trip, or within `at_least` if that is
    /// longer, and still caches: upstream has only missed the link acknowledgement.
    AfterTransmission {
        /// Time in which a neighbour may retransmit at once; below the retransmission time-out of
        /// any endpoint.
        at_least: Duration,
    },
}

/// Action 3.2: an acknowledgement without SACK that requests the cached segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DuplicateAcks {
    /// No reaction: the authors recommend leaving it out of an implementation.
    Ignore,
    /// Retransmit the segment after one duplicate, or after three if reordering was observed.
    Repeat,
}

/// Signal to upstream nodes (action 3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// Acknowledgements pass unchanged.
    Silent,
    /// An acknowledgement below a locked segment gets a SACK block for that segment.
    LockedSegment,
    /// No acknowledgement is changed, not even one that shows a gap which the node repairs.
    Never,
}

/// Repair of acknowledgements without payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckCustody {
    /// None: the next acknowledgement replaces a lost one.
    Leave,
    /// The newest acknowledgement is repeated if the link layer reports its loss and no newer one
    /// follows. Data that the receiver has already acknowledged is answered by the node.
    Repair {
        /// Time to wait for a newer acknowledgement, from its forwarding.
        after: Duration,
        /// Number of repetitions of one acknowledgement, and of consecutive old segments answered;
        /// the next one passes. A sender's probe can thus still detect that the receiver has
        /// vanished.
        at_most: u8,
    },
}

/// Whether to offer SACK on behalf of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SackForEnds {
    /// SYN segments pass unchanged.
    Leave,
    /// A SYN without SACK-permitted gets the option, and that endpoint never sees a SACK option.
    Add,
}

/// Flying start (section IV-C).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlyingStart {
    /// SYN segments are only forwarded.
    Off,
    /// SYN segments are cached, retransmitted hop by hop, and measured.
    On,
}

impl Config {
    /// Section IV of the paper, with the readings of errata D10, D11 and D13 to D16.
    pub const fn paper() -> Self {
        Self {
            cache_segments: 1,
            flow_segments: usize::MAX,
            cache_octets: usize::MAX,
            connections: 16,
            flight: 1 << 20,
            validation: Validation::WithinFlight,
            idle: Duration::from_secs(300),
            custody: Custody::OnSuspicion,
            cache_chance: Chance::HALF,
            displacement: Displacement::Never,
            samples: Samples::OneAtATime,
            local_rto: Ratio { num: 3, den: 2 },
            initial_rto: Duration::from_secs(3),
            min_rto: Duration::from_millis(1),
            backoff: Backoff::Constant,
            timeouts: Timeouts::EachSegment,
            max_repeats: 16,
            unanswered_repeats: u8::MAX,
            repeats_per_ack: u8::MAX,
            immediate_repeats: 4,
            guard: Ratio { num: 1, den: 1 },
            suppression: Suppression::AfterRepetition,
            duplicate_acks: DuplicateAcks::Ignore,
            signal: Signal::LockedSegment,
            acks: AckCustody::Leave,
            sack: SackForEnds::Add,
            flying_start: FlyingStart::On,
        }
    }

    /// The same cache and unchanged endpoints, but custody from hop to hop: a segment is locked
    /// until the next hop has acknowledged it, and retransmitted as soon as the link layer misses
    /// that acknowledgement.
    pub const fn improved() -> Self {
        Self {
            // 24 kB, allocated on use. docs/explanation/dtc.md shows the benefit.
            connections: 128,
            custody: Custody::UntilLinkAck,
            cache_chance: Chance::ALWAYS,
            min_rto: Duration::from_millis(100),
            backoff: Backoff::Double,
            max_repeats: 8,
            suppression: Suppression::AfterTransmission { at_least: Duration::from_millis(100) },
            signal: Signal::Silent,
            acks: AckCustody::Repair { after: Duration::from_millis(200), at_most: 3 },
            ..Self::paper()
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::improved()
    }
}
