//! Selects the form of an equation where the paper contradicts itself: one choice per erratum.

/// The readings of section 5, one field per erratum. [`Reading::default`] is the corrected model,
/// and [`Reading::printed`] is the paper as printed. Set single fields to see the effect of one
/// erratum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// S1, equation (9).
    pub ack_time: AckTime,
    /// S3, equation (4) against (5).
    pub open_wait: OpenWait,
    /// S4, equation (8).
    pub avoidance: AvoidanceIndex,
    /// S5, equation (10).
    pub transmission: TransmissionCount,
    /// S6, equation (11).
    pub other_paths: OtherPaths,
    /// S7, equation (10).
    pub wired_stage: WiredStage,
    /// S8 and S14, equation (6) and section 4.6.
    pub wired_window: WiredWindow,
    /// S9, section 5.3.
    pub buffer_share: BufferShare,
    /// S12, equation (12).
    pub starts: SessionStarts,
    /// Equation (2): when the wireless handshake ends and the open-wait state begins.
    pub handshake: HandshakeEnd,
    /// Equations (6) to (8): window growth in slow start.
    pub growth: Growth,
}

impl Reading {
    /// Every equation as printed. The integer translation of section 4.6 is not included: it
    /// belongs to the protocol and can stop a transfer ([`WiredWindow::WholeSegments`]).
    pub const fn printed() -> Self {
        Self {
            ack_time: AckTime::TwoRoundTrips,
            open_wait: OpenWait::Omitted,
            avoidance: AvoidanceIndex::SegmentsPerAck,
            transmission: TransmissionCount::Wired,
            other_paths: OtherPaths::FirstPathsCount,
            wired_stage: WiredStage::Ignored,
            wired_window: WiredWindow::SameCount,
            buffer_share: BufferShare::LeftToRight,
            starts: SessionStarts::Together,
            handshake: HandshakeEnd::LastAck,
            growth: Growth::RealNumbers,
        }
    }

    /// The corrected equations for the protocol as this project runs it: the open-wait state begins
    /// when the gateway knows of its connection, a session is opened as soon as the previous one
    /// has reached its gateway, and windows are whole numbers.
    pub fn protocol() -> Self {
        Self {
            starts: SessionStarts::Staggered,
            handshake: HandshakeEnd::SynAck,
            growth: Growth::WholeAcks,
            ..Self::default()
        }
    }
}

/// S1: when the ACK of the first segments of a window is back at the gateway, equation (9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AckTime {
    /// `s T + RTT2`: the sum of `s T + RTT2/2 + RTT2/2`.
    #[default]
    OneRoundTrip,
    /// `s T + 2 RTT2`, as printed.
    TwoRoundTrips,
}

/// S3: whether the establishment includes the open-wait state of one wireless round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenWait {
    /// Included: equation (5) and the text after it, `2 RTT1 + 5/2 RTT2`.
    #[default]
    Counted,
    /// Not included: equation (4), `2 RTT1 + 3/2 RTT2`.
    Omitted,
}

/// S4: the window at which congestion avoidance starts to count in equation (8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AvoidanceIndex {
    /// `(k - K_S - 1)/s`, as in equation (6).
    #[default]
    SlowStartWindows,
    /// `(k - S - 1)/s` with the S of the notation list (segments per ACK), as printed.
    SegmentsPerAck,
}

/// S5: the segments that the transmission term of equation (10) counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransmissionCount {
    /// `m_2 T_g`: wireless segments, since `T_g` is the time of a wireless segment.
    #[default]
    Wireless,
    /// `m_1 T_g`, as printed: wired segments, about 16 times too few.
    Wired,
}

/// S6: the number of segments on the second and further paths in equation (11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OtherPaths {
    /// The path's own number.
    #[default]
    OwnCount,
    /// The number of the first path, `m_2a`, as printed.
    FirstPathsCount,
}

/// S7: whether the wired stage may be the slower one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WiredStage {
    /// It may: the share is delivered when the slower stage has finished. Equal to equation (10)
    /// wherever the implicit assumption of that equation holds.
    #[default]
    MayLimit,
    /// It may not: equation (10) as printed; `K_1` is derived and then not used.
    Ignored,
}

/// S8 and S14: the receive window as the wired side sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WiredWindow {
    /// The same number of bytes, hence fewer segments, and never less than one.
    #[default]
    SameOctets,
    /// The same number of (larger) segments, as printed in equations (6) and (7).
    SameCount,
    /// Section 4.6: `y = x S_2 / S_1` in whole segments, which is zero for a small window.
    WholeSegments,
}

/// S9: the meaning of `B_2/n(1+F)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BufferShare {
    /// `B_2 / (n (1 + F))`: disorder reduces the usable buffer. Never less than one segment.
    #[default]
    DisorderShrinks,
    /// `(B_2 / n) (1 + F)`, evaluated left to right: disorder would enlarge the window.
    LeftToRight,
}

/// S12: when the sessions begin to carry data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SessionStarts {
    /// One after another, as in sections 4.2.3 and 5.2: path i starts after the establishments
    /// 1..=i.
    #[default]
    OneAfterAnother,
    /// All together with the first, as in equation (12).
    Together,
    /// The next wired handshake begins when the previous one is done: path i starts after the wired
    /// round trips of the paths before it and its own establishment. Wireless connections open in
    /// parallel.
    Staggered,
    /// All are opened at once: path i starts after its own establishment.
    AtOnce,
}

/// Window growth in slow start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Growth {
    /// By the factor `r = 1 + 1/s`, as printed.
    #[default]
    RealNumbers,
    /// By one for every ACK. An odd window causes one more ACK: the receiver's timer acknowledges
    /// the remaining segment.
    WholeAcks,
}

/// When the wireless handshake of equation (2) ends for the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HandshakeEnd {
    /// When the node has the last ACK, `3/2 RTT2`, as printed; the open-wait state follows.
    #[default]
    LastAck,
    /// When the gateway has the SYN/ACK, `RTT2`, since it cannot know more. The open-wait state of
    /// `RTT2` begins then and includes the way of the last ACK.
    SynAck,
}

/// S13: the distribution of the queueing time, equation (16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueLaw {
    /// A binomial number of packets ahead, each with an exponential service time: a mixture of
    /// Erlang distributions with a point mass at zero.
    #[default]
    ErlangMixture,
    /// As printed: tau is the limit of the sum, the exponent does not depend on it, and there is no
    /// point mass at zero.
    Printed,
}
