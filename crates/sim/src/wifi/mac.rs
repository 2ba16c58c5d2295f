//! MAC state of one station.

use anabranch_core::time::{Duration, Instant};

use super::metrics::StationMetrics;
use super::{FrameKind, Outgoing, Rate};
use crate::air::meter::Meter;
use crate::random::Stream;

/// Kind of an event at a station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Alarm {
    /// End of the backoff: the station may send.
    Access = 0,
    /// Time-out of a CTS or an acknowledgement.
    Timeout = 1,
    /// End of SIFS after a CTS: the data begins.
    DataStart = 2,
    /// End of SIFS before a CTS or an acknowledgement.
    ResponseStart = 3,
    /// End of a transmission.
    AirEnd = 4,
}

impl Alarm {
    pub(super) fn of(what: u32) -> Option<Self> {
        let all = [Self::Access, Self::Timeout, Self::DataStart, Self::ResponseStart, Self::AirEnd];
        all.get(what as usize).copied()
    }
}

/// State of a station's own frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// There is no frame.
    Idle,
    /// It waits for the end of DIFS, after which it is sent without a backoff.
    Defer,
    /// It waits for the end of its backoff.
    Backoff,
    /// The frame or its RTS is being sent.
    OnAir,
    CtsWait,
    AckWait,
    /// The time-out has passed, but a frame is being received that may be the CTS.
    CtsLate,
    /// As `CtsLate` for the acknowledgement.
    AckLate,
    /// Between CTS and data.
    Gap,
}

impl Stage {
    pub(super) fn contends(self) -> bool {
        matches!(self, Self::Defer | Self::Backoff)
    }

    pub(super) fn awaits(self, kind: FrameKind) -> bool {
        match kind {
            FrameKind::Cts => matches!(self, Self::CtsWait | Self::CtsLate),
            FrameKind::Ack => matches!(self, Self::AckWait | Self::AckLate),
            FrameKind::Data | FrameKind::Rts => false,
        }
    }

    pub(super) fn awaits_any(self) -> bool {
        self.awaits(FrameKind::Cts) || self.awaits(FrameKind::Ack)
    }

    pub(super) fn is_late(self) -> bool {
        matches!(self, Self::CtsLate | Self::AckLate)
    }
}

/// The transmission of a station at this time.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnAir {
    pub(super) start: Instant,
    pub(super) kind: FrameKind,
    pub(super) to: Option<u32>,
    pub(super) mpdu_len: u16,
    pub(super) rate: Rate,
    /// Duration field.
    pub(super) duration: Duration,
    /// The data that this frame is or to which it belongs.
    pub(super) data: Data,
}

/// Identity of data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Data {
    pub(super) tag: u64,
    pub(super) seq: u16,
    pub(super) retry: bool,
}

/// A CTS or an acknowledgement that is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Response {
    pub(super) kind: FrameKind,
    pub(super) to: u32,
    pub(super) duration: Duration,
    pub(super) data: Data,
}

/// The MAC of one station.
#[derive(Debug)]
pub(super) struct Mac {
    pub(super) up: bool,
    /// Whether its energy is used up.
    pub(super) exhausted: bool,
    pub(super) stage: Stage,
    pub(super) frame: Option<Outgoing>,
    /// Index of the link to the destination, if anything is received there.
    pub(super) link: Option<usize>,
    /// Sequence number of the frame.
    pub(super) seq: u16,
    /// Contention window.
    pub(super) cw: u16,
    /// Short and long retry count: failures since the last CTS, and failures of data after a CTS.
    pub(super) short_retries: u8,
    pub(super) long_retries: u8,
    /// Failures of the frame or of its RTS, whether a CTS has arrived since or not.
    pub(super) failures: u8,
    /// Whether the data itself has been sent.
    pub(super) was_on_air: bool,
    /// Remaining slots of a backoff. There is a backoff after each frame too, whether another frame
    /// waits or not.
    pub(super) slots: Option<u32>,
    /// Time from which slots are counted; `None` while the channel is busy or the station sends. It
    /// may be in the future, at the end of DIFS.
    pub(super) counts_from: Option<Instant>,
    /// NAV: end of the reservation of the channel by others.
    pub(super) nav: Instant,
    /// End of its last transmission.
    pub(super) sent_until: Instant,
    /// Whether a frame in error has ended and the channel has not been clear since: EIFS begins
    /// when it is.
    pub(super) in_error: bool,
    /// End of EIFS; a correct frame ends it earlier.
    pub(super) eifs_end: Instant,
    /// Generation of the frame's timer; an increment makes the pending event void.
    pub(super) generation: u32,
    /// Generation of all timers: the number of times that the station went down.
    pub(super) epoch: u32,
    pub(super) on_air: Option<OnAir>,
    pub(super) response: Option<Response>,
    random: Stream,
    pub(super) meter: Meter,
    pub(super) metrics: StationMetrics,
}

impl Mac {
    pub(super) fn new(random: Stream, cw_min: u16) -> Self {
        Self {
            up: true,
            exhausted: false,
            stage: Stage::Idle,
            frame: None,
            link: None,
            // The first frame gets number 0.
            seq: SEQ_MASK,
            cw: cw_min,
            short_retries: 0,
            long_retries: 0,
            failures: 0,
            was_on_air: false,
            slots: None,
            counts_from: None,
            nav: Instant::ZERO,
            sent_until: Instant::ZERO,
            in_error: false,
            eifs_end: Instant::ZERO,
            generation: 0,
            epoch: 0,
            on_air: None,
            response: None,
            random,
            meter: Meter::new(),
            metrics: StationMetrics::default(),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.up
    }

    /// Whether no frame is being sent.
    pub(super) fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
    }

    /// Draws the slots of a new backoff.
    pub(super) fn draw(&mut self, most: u16) -> u32 {
        self.random.range(0..=u64::from(most)) as u32
    }

    pub(super) fn data(&self) -> Data {
        let tag = self.frame.expect("what is sent is there").tag;
        Data { tag, seq: self.seq, retry: self.was_on_air }
    }
}

/// Sequence numbers have 12 bits (7.1.3.4.1).
pub(super) const SEQ_MASK: u16 = 0xfff;
