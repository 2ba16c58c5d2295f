//! Which form of equations 1 to 11 holds where the paper contradicts itself: one choice per
//! erratum. Those of section VII are [`schedule::Reading`](super::schedule::Reading).
//!
//! Three errata change no number. M3 and its kin are of section VII. M4: equations (2) define
//! conditional probabilities and (3) computes joint ones, under the same names. M5: the indices of
//! d, c, t and f are shifted against each other; since `d = b/W` whatever its index, what they are
//! meant to say is what they give.

/// The readings of sections V and VI, and of the times that section VII begins with.
/// [`Reading::default`] corrects all, [`Reading::printed`] follows the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// M6, equation (1).
    pub start: StartPeriod,
    /// M2, equation (4).
    pub weights: StageWeights,
    /// M7, equation (4) in (8).
    pub access: AccessTime,
    /// M1, equation (6).
    pub occupancy: Occupancy,
    /// M11, equations (6) and (7).
    pub seen: Seen,
    /// M9, equation (7) in (8) and (9).
    pub queue_time: QueueTime,
    /// M10, section VI-A.
    pub service: Service,
    /// M12, equations (8), (9) and section VII.
    pub octets: OctetTime,
    /// M15, equations (10) and (11).
    pub return_path: ReturnPath,
    /// M14, `T_i^1`.
    pub first: FirstPacket,
    /// M13, `T_i^m`: the transmission.
    pub further: FurtherPacket,
    /// M13, `T_i^m`: the wait.
    pub burst: BurstWait,
}

impl Reading {
    /// Sections V to VII as they stand on the page; the mean start periods are rounded down.
    pub const fn printed() -> Self {
        Self {
            start: StartPeriod::Mean(Rounding::Down),
            weights: StageWeights::Product,
            access: AccessTime::Any,
            occupancy: Occupancy::Printed,
            seen: Seen::AnyTime,
            queue_time: QueueTime::Sojourn,
            service: Service::Transmission,
            octets: OctetTime::Printed,
            return_path: ReturnPath::AsForward,
            first: FirstPacket::OwnBandwidth,
            further: FurtherPacket::Printed,
            burst: BurstWait::Charged,
        }
    }
}

/// M6: where the i-th back-off begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartPeriod {
    /// Wherever the draws before it ended: the exact chain.
    #[default]
    Distribution,
    /// At the mean k_i of equation (1), which is an index of a period only after rounding.
    Mean(Rounding),
}

/// M6: how a mean such as 4.5 or 29.5 becomes the number of a period; the paper does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rounding {
    /// Down: 4.5 is 4.
    #[default]
    Down,
    /// Up: 4.5 is 5.
    Up,
}

/// M2: with what weight the i-th back-off counts in equation (4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StageWeights {
    /// `b_{i-1}`, the probability of coming so far.
    #[default]
    Joint,
    /// The product of all b_n before it, as printed, as though they were conditional.
    Product,
}

/// M7: which attempts the channel access delay is the mean of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AccessTime {
    /// All, those that fail too: equation (4).
    #[default]
    Any,
    /// Those that gain the channel.
    Won,
}

/// M1: the second term of equation (6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Occupancy {
    /// `(K+1) rho^(K+1) / (1 - rho^(K+1))`.
    #[default]
    Corrected,
    /// `(K+1) / (1 - rho^(K+1))`, as printed: the mean is negative. Not for a queue without limit.
    Printed,
}

/// M11: whose view of the queue equation (7) takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Seen {
    /// A packet's that is let in: N given that there is room.
    #[default]
    Accepted,
    /// Anybody's at any time, as printed.
    AnyTime,
}

/// M9: what T_q holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueTime {
    /// `N / mu`: the wait. The packet's own service is the rest of equation (8).
    #[default]
    Wait,
    /// `(N + 1) / mu`, as printed: the own service too, which (8) and (9) add again.
    Sojourn,
}

/// M10: the service that mu is the rate of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Service {
    /// All that equation (8) says a packet needs: back-off, turnaround, transmission,
    /// acknowledgement.
    #[default]
    Whole,
    /// The transmission, `mu = B / (8 L)`, as printed.
    Transmission,
}

/// M12: the time of bytes on the air.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OctetTime {
    /// `8 L / B`
    #[default]
    Bits,
    /// `L / B`, as printed everywhere but in mu.
    Printed,
}

/// M15: the acknowledgement's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReturnPath {
    /// Over the reverse transmitters (data centre, R_N, ..., R_1) if they are given.
    #[default]
    Own,
    /// As long as the way there, as equation (11) has it.
    AsForward,
}

/// M14: the payload's time in `T_i^1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FirstPacket {
    /// Over each hop at that hop's bandwidth.
    #[default]
    EachBandwidth,
    /// Over each hop at the sender's, as printed.
    OwnBandwidth,
}

/// M13: what each further packet of a round adds to `T_e(D)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FurtherPacket {
    /// The payload: the header is in `T_e` already.
    #[default]
    Payload,
    /// Header and payload, as printed.
    Printed,
}

/// M13: whether each further packet of a round waits in the sender's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BurstWait {
    /// Yes, as printed: it is handed over when the one before it is sent, and finds what others
    /// have queued.
    #[default]
    Charged,
    /// No: the round is in the queue as a whole.
    Once,
}
