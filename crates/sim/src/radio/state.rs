//! Where a station's frame stands, and what its events mean: what the MAC and its sleep share.

/// What an event of a station means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Alarm {
    /// A CCA ends.
    CcaEnd = 0,
    /// The turnaround ends, and the frame begins.
    FrameStart = 1,
    /// No acknowledgement has come.
    AckTimeout = 2,
    /// The turnaround before an acknowledgement ends.
    AckStart = 3,
    /// What is on air ends.
    AirEnd = 4,
    /// A CCA begins. Where no station can sleep, backoff and CCA are one event.
    CcaStart = 5,
    /// A channel sample begins.
    Sample = 6,
    /// A time awake ends.
    Doze = 7,
    /// A frame begins that was announced.
    Rendezvous = 8,
}

impl Alarm {
    pub(super) fn of(what: u32) -> Option<Self> {
        let all = [
            Self::CcaEnd,
            Self::FrameStart,
            Self::AckTimeout,
            Self::AckStart,
            Self::AirEnd,
            Self::CcaStart,
            Self::Sample,
            Self::Doze,
            Self::Rendezvous,
        ];
        all.get(what as usize).copied()
    }
}

/// Where a frame stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Idle,
    Backoff,
    /// In a CCA that is an event of its own.
    Assess,
    Turnaround,
    OnAir,
    AckWait,
}

/// How a frame for one station has ended, as far as its sleep is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FrameEnd {
    Acknowledged { pending: bool },
    NoAck,
    Other,
}
