//! Every choice that a caching node leaves open, as a typed option.

use crate::time::Duration;

/// How one node behaves. [`Config::default`] is [`Config::improved`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Segments that the node can cache, over all its connections; 1 in the paper (section III). 0
    /// turns the node into a forwarder that measures.
    pub cache_segments: usize,
    /// Connections whose state is kept, at least 1; see the eviction rule at [`super::Node`].
    pub connections: usize,
    /// A connection that was silent for so long is forgotten (erratum D26: unstated).
    pub idle: Duration,
    /// When a cached segment is locked, and what lifts the lock.
    pub custody: Custody,
    /// Chance that a segment displaces an unlocked one (section IV-B: one half). An empty place is
    /// always taken (erratum D14).
    pub cache_chance: Chance,
    /// Whether a segment may displace a locked one.
    pub displacement: Displacement,
    /// The local retransmission time-out, as a multiple of the smoothed local round-trip time
    /// (erratum D16).
    pub local_rto: Ratio,
    /// The local time-out before a round trip was measured. TCP's own 3 s: flying start is what
    /// shortens it.
    pub initial_rto: Duration,
    /// The shortest local time-out. With custody it must be longer than the link layer takes to
    /// report.
    pub min_rto: Duration,
    /// How the local time-out grows from one repetition to the next.
    pub backoff: Backoff,
    /// Repetitions of one segment without a sign of success, after which the node gives it up to
    /// the ends. The paper has no limit (erratum D13); without one a node whose acknowledgements
    /// have taken another route would never stop.
    pub max_repeats: u8,
    /// Repetitions that follow a missing link acknowledgement at once; later ones wait for the
    /// local time-out. Only with [`Custody::UntilLinkAck`], and for SYN.
    pub immediate_repeats: u8,
    /// The guard of actions 3.2 and 3.3: a segment is repeated only when so many local round trips
    /// have passed since it was last sent (erratum D11).
    pub guard: Ratio,
    /// Which repetitions from upstream are held back.
    pub suppression: Suppression,
    /// Action 3.2.
    pub duplicate_acks: DuplicateAcks,
    /// Action 3.4: tell the nodes upstream of a locked segment by a SACK block.
    pub signal: Signal,
    /// Whether acknowledgements are looked after hop by hop.
    pub acks: AckCustody,
    /// Whether the SACK option is offered in the name of an end that does not speak it (section
    /// IV-B).
    pub sack: SackForEnds,
    /// Hop-by-hop reliable SYN with a first measurement of the round trip (section IV-C).
    pub flying_start: FlyingStart,
}

/// When a cached segment is locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Custody {
    /// Once the link layer has reported no acknowledgement; until TCP acknowledges it, or it times
    /// out (section IV-A).
    OnSuspicion,
    /// From the moment that it is forwarded, until the next hop has acknowledged it: what is
    /// missing there is repeated after the link layer's time-out, not after TCP's.
    UntilLinkAck,
}

/// A probability as a fraction of 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chance(u32);

impl Chance {
    /// Never.
    pub const NEVER: Self = Self(0);
    /// In one of two.
    pub const HALF: Self = Self(1 << 31);
    /// Always.
    pub const ALWAYS: Self = Self(u32::MAX);

    /// `per_mille` of 1000; more is always.
    pub const fn per_mille(per_mille: u32) -> Self {
        if per_mille >= 1000 { Self::ALWAYS } else { Self((((per_mille as u64) << 32) / 1000) as u32) }
    }

    /// Whether a random word falls within.
    pub(super) const fn hit(self, word: u32) -> bool {
        word < self.0 || self.0 == u32::MAX
    }
}

/// A factor in whole numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ratio {
    /// Numerator.
    pub num: u16,
    /// Denominator; 0 counts as 1.
    pub den: u16,
}

impl Ratio {
    /// `span` times the factor.
    pub(super) const fn of(self, span: Duration) -> Duration {
        span.mul_ratio(self.num as u64, if self.den == 0 { 1 } else { self.den as u64 })
    }
}

/// Which segment may displace a locked one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Displacement {
    /// None. On the chain of the paper this is 1 to 5 % cheaper than the other.
    Never,
    /// One of the same connection with a lower sequence number: the paper only names higher ones as
    /// those that are kept out (erratum D14).
    ByLower,
}

/// How the local time-out grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backoff {
    /// Not at all.
    Constant,
    /// It doubles with every repetition.
    Double,
}

/// Which segments from upstream are held back, since the node has already sent them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Suppression {
    /// Those that the node itself has repeated within one local round trip (action 1, erratum D15).
    AfterRepetition,
    /// Those that the node has sent within one local round trip, or within `at_least` if that is
    /// longer, and still caches: upstream has only missed the link acknowledgement.
    AfterTransmission {
        /// Time in which a neighbour repeats at once; it stays below any end's retransmission
        /// time-out.
        at_least: Duration,
    },
}

/// Action 3.2: an acknowledgement without SACK that asks for the cached segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DuplicateAcks {
    /// No reaction: the authors would leave it out of an implementation.
    Ignore,
    /// Repeat the segment after one duplicate, or after three where segments have been seen to
    /// overtake each other.
    Repeat,
}

/// Action 3.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// Acknowledgements pass as they are.
    Silent,
    /// An acknowledgement below a locked segment gets a SACK block for it.
    LockedSegment,
}

/// What is done for acknowledgements without payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckCustody {
    /// Nothing: the next one says the same.
    Leave,
    /// The newest one is repeated when the link layer reports no acknowledgement for it and none
    /// newer follows; and data that the receiver has already acknowledged is answered here.
    Repair {
        /// How long to wait for a newer one, from when it was forwarded.
        after: Duration,
        /// Repetitions of one acknowledgement, and old segments answered in a row, before the next
        /// one goes through: so a receiver that has vanished is still found missing by a sender
        /// that probes.
        at_most: u8,
    },
}

/// Whether to offer SACK in the name of an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SackForEnds {
    /// SYN segments pass as they are.
    Leave,
    /// A SYN without SACK-permitted gets it, and that end never sees a SACK option.
    Add,
}

/// Section IV-C.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlyingStart {
    /// SYN segments are forwarded only.
    Off,
    /// They are cached, repeated hop by hop, and measured.
    On,
}

impl Config {
    /// Section IV of the paper, with the readings of errata D10, D11 and D13 to D16.
    pub const fn paper() -> Self {
        Self {
            cache_segments: 1,
            connections: 16,
            idle: Duration::from_secs(300),
            custody: Custody::OnSuspicion,
            cache_chance: Chance::HALF,
            displacement: Displacement::Never,
            local_rto: Ratio { num: 3, den: 2 },
            initial_rto: Duration::from_secs(3),
            min_rto: Duration::from_millis(1),
            backoff: Backoff::Constant,
            max_repeats: 16,
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

    /// The same cache and unchanged ends, but custody from hop to hop: a segment is locked until
    /// the next hop has acknowledged it, and repeated as soon as the link layer misses that.
    pub const fn improved() -> Self {
        Self {
            // 24 kB, allocated as it is used: docs/explanation/dtc.md has what it is worth.
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
