//! Which form of an equation holds where the paper contradicts itself: one choice per erratum.

/// The readings of section 5, one field per erratum. [`Reading::default`] is the corrected model,
/// [`Reading::printed`] follows the paper to the letter; single fields can be set to see what one
/// costs.
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
    /// Equation (2): where the wireless handshake ends and the open-wait state begins.
    pub handshake: HandshakeEnd,
    /// Equations (6) to (8): how the window grows in slow start.
    pub growth: Growth,
}

impl Reading {
    /// Every equation as it stands on the page. The integer translation of section 4.6 is left out:
    /// it belongs to the protocol and can stop a transfer ([`WiredWindow::WholeSegments`]).
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
    /// where a gateway knows of its connection, a session is called as soon as the one before has
    /// reached its gateway, and windows are whole numbers.
    pub fn protocol() -> Self {
        Self {
            starts: SessionStarts::Staggered,
            handshake: HandshakeEnd::SynAck,
            growth: Growth::WholeAcks,
            ..Self::default()
        }
    }
}

/// S1: when the ACK for the first segments of a window is back at the gateway, equation (9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AckTime {
    /// `s T + RTT2`: what `s T + RTT2/2 + RTT2/2` adds up to.
    #[default]
    OneRoundTrip,
    /// `s T + 2 RTT2`, as printed.
    TwoRoundTrips,
}

/// S3: whether the establishment contains the open-wait state of one wireless round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenWait {
    /// Yes: equation (5) and the text after it, `2 RTT1 + 5/2 RTT2`.
    #[default]
    Counted,
    /// No: equation (4), `2 RTT1 + 3/2 RTT2`.
    Omitted,
}

/// S4: from which window congestion avoidance counts in equation (8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AvoidanceIndex {
    /// `(k - K_S - 1)/s`, as in equation (6).
    #[default]
    SlowStartWindows,
    /// `(k - S - 1)/s` with the S of the notation list (segments per ACK), as printed.
    SegmentsPerAck,
}

/// S5: which segments the gateway's transmission term counts in equation (10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransmissionCount {
    /// `m_2 T_g`: wireless segments, since `T_g` is the time of one of those.
    #[default]
    Wireless,
    /// `m_1 T_g`, as printed: wired segments, some 16 times too few.
    Wired,
}

/// S6: whose segments the second and further paths transmit in equation (11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OtherPaths {
    /// Their own.
    #[default]
    OwnCount,
    /// As many as the first path, `m_2a`, as printed.
    FirstPathsCount,
}

/// S7: whether the wired stage may be the slower one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WiredStage {
    /// Yes: the share arrives when the slower of the two stages is through. Equal to equation (10)
    /// wherever that one's silent assumption holds.
    #[default]
    MayLimit,
    /// No: equation (10) to the letter; `K_1` is derived and then not used.
    Ignored,
}

/// S8 and S14: the receive window as the wired side sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WiredWindow {
    /// The same bytes, hence fewer segments, and never less than one.
    #[default]
    SameOctets,
    /// The same number of (larger) segments, as equations (6) and (7) print it.
    SameCount,
    /// Section 4.6: `y = x S_2 / S_1` in whole segments, which is zero for a small window.
    WholeSegments,
}

/// S9: how `B_2/n(1+F)` is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BufferShare {
    /// `B_2 / (n (1 + F))`: disorder costs buffer. Never less than one segment.
    #[default]
    DisorderShrinks,
    /// `(B_2 / n) (1 + F)`, left to right: disorder would enlarge the window.
    LeftToRight,
}

/// S12: when the sessions begin to carry data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SessionStarts {
    /// One after another, as sections 4.2.3 and 5.2 set them up: path i after the establishments
    /// 1..=i.
    #[default]
    OneAfterAnother,
    /// All with the first, as equation (12) has it.
    Together,
    /// The next wired handshake begins when the last one is done: path i after the wired round
    /// trips of the paths before it and its own establishment. Wireless halves open side by side.
    Staggered,
    /// All are called at once: path i after its own establishment.
    AtOnce,
}

/// How the window grows in slow start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Growth {
    /// By the factor `r = 1 + 1/s`, as printed.
    #[default]
    RealNumbers,
    /// By one for every ACK, of which an odd window has one more: what is left over is acknowledged
    /// by the receiver's timer.
    WholeAcks,
}

/// Where the wireless handshake of equation (2) ends for the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HandshakeEnd {
    /// When the node has the last ACK, `3/2 RTT2`, as printed; the open-wait state follows.
    #[default]
    LastAck,
    /// When the gateway has the SYN/ACK, `RTT2`: it cannot know more. The open-wait state of `RTT2`
    /// begins there and covers the last ACK's way.
    SynAck,
}

/// S13: the law of the queueing time, equation (16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueLaw {
    /// A binomial number of packets ahead, each served in an exponential time: a mixture of Erlang
    /// laws with its mass at zero.
    #[default]
    ErlangMixture,
    /// As printed: tau is the limit of the sum, the exponent does not depend on it, no mass at
    /// zero.
    Printed,
}
