//! States of a station's frame and kinds of its events, shared by the MAC and CSL.

/// Kind of an event at a station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Alarm {
    /// End of a CCA.
    CcaEnd = 0,
    /// End of the turnaround: the frame begins.
    FrameStart = 1,
    /// Time-out of an acknowledgement.
    AckTimeout = 2,
    /// End of the turnaround before an acknowledgement.
    AckStart = 3,
    /// End of a transmission.
    AirEnd = 4,
    /// Start of a CCA. If no station can sleep, backoff and CCA are one event.
    CcaStart = 5,
    /// Start of a channel sample.
    Sample = 6,
    /// End of a time awake.
    Doze = 7,
    /// Start of an announced frame.
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

/// State of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Idle,
    Backoff,
    /// In a CCA that has its own event.
    Assess,
    Turnaround,
    OnAir,
    AckWait,
}

/// End of a unicast frame, as far as sleep is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FrameEnd {
    Acknowledged { pending: bool },
    NoAck,
    Other,
}
