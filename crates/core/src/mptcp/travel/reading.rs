//! Interpretations of equations 1 to 11 where the paper contradicts itself: one option per erratum.
//! Those of section VII are in [`prediction::Reading`](crate::mptcp::prediction::Reading).
//!
//! Three errata change no number. M3 and related ones belong to section VII. M4: equations (2)
//! define conditional probabilities and (3) computes joint ones under the same names. M5: the
//! indices of d, c, t and f are shifted against each other; since `d = b/W` for every index, the
//! printed formulas give the intended values.

/// The interpretations of sections V and VI, and of the times that section VII starts from.
/// [`Reading::default`] corrects all errata, [`Reading::printed`] follows the printed text.
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
    /// Sections V to VII as printed; the mean start periods are rounded down.
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

/// M6: start of the i-th back-off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartPeriod {
    /// The distribution of the ends of the previous draws: the exact chain.
    #[default]
    Distribution,
    /// The mean k_i of equation (1), which is a period index only after rounding.
    Mean(Rounding),
}

/// M6: rounding of a mean such as 4.5 or 29.5 to a period number; the paper does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rounding {
    /// Down: 4.5 is 4.
    #[default]
    Down,
    /// Up: 4.5 is 5.
    Up,
}

/// M2: weight of the i-th back-off in equation (4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StageWeights {
    /// `b_{i-1}`, the probability that the attempt reaches it.
    #[default]
    Joint,
    /// The product of all earlier b_n, as printed, as if they were conditional.
    Product,
}

/// M7: attempts over which the channel access delay is averaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AccessTime {
    /// All attempts, including failed ones: equation (4).
    #[default]
    Any,
    /// Successful attempts.
    Won,
}

/// M1: the second term of equation (6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Occupancy {
    /// `(K+1) rho^(K+1) / (1 - rho^(K+1))`.
    #[default]
    Corrected,
    /// `(K+1) / (1 - rho^(K+1))`, as printed: the mean is negative. Not for an unlimited queue.
    Printed,
}

/// M11: view of the queue in equation (7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Seen {
    /// The queue as seen by an accepted packet: N given that there is room.
    #[default]
    Accepted,
    /// The queue at an arbitrary time, as printed.
    AnyTime,
}

/// M9: contents of T_q.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueTime {
    /// `N / mu`: the waiting time. The packet's own service is the rest of equation (8).
    #[default]
    Wait,
    /// `(N + 1) / mu`, as printed: including the packet's own service, which (8) and (9) add again.
    Sojourn,
}

/// M10: service with the rate mu.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Service {
    /// All parts of equation (8): back-off, turnaround, transmission, acknowledgement.
    #[default]
    Whole,
    /// The transmission, `mu = B / (8 L)`, as printed.
    Transmission,
}

/// M12: transmission time of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OctetTime {
    /// `8 L / B`
    #[default]
    Bits,
    /// `L / B`, as printed everywhere except in mu.
    Printed,
}

/// M15: path of the acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReturnPath {
    /// Over the reverse transmitters (data centre, R_N, ..., R_1) if they are given.
    #[default]
    Own,
    /// As long as the forward path, as in equation (11).
    AsForward,
}

/// M14: transmission time of the payload in `T_i^1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FirstPacket {
    /// Over each hop at the bandwidth of that hop.
    #[default]
    EachBandwidth,
    /// Over each hop at the sender's bandwidth, as printed.
    OwnBandwidth,
}

/// M13: time that each further packet of a round adds to `T_e(D)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FurtherPacket {
    /// The payload: `T_e` already contains the header.
    #[default]
    Payload,
    /// Header and payload, as printed.
    Printed,
}

/// M13: whether each further packet of a round waits in the sender's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BurstWait {
    /// Yes, as printed: it enters the queue when the previous one has been sent, behind packets of
    /// others.
    #[default]
    Charged,
    /// No: the whole round enters the queue at once.
    Once,
}
