//! The state of one station.

use anabranch_core::time::{Duration, Instant};

use super::metrics::StationMetrics;
use super::{FrameKind, Outgoing, Rate};
use crate::air::meter::Meter;
use crate::random::Stream;

/// What an event of a station means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Alarm {
    /// The backoff ends, and the channel is the station's.
    Access = 0,
    /// No CTS or acknowledgement has come.
    Timeout = 1,
    /// SIFS after a CTS ends, and the data begins.
    DataStart = 2,
    /// SIFS before a CTS or an acknowledgement ends.
    ResponseStart = 3,
    /// What is on air ends.
    AirEnd = 4,
}

impl Alarm {
    pub(super) fn of(what: u32) -> Option<Self> {
        let all = [Self::Access, Self::Timeout, Self::DataStart, Self::ResponseStart, Self::AirEnd];
        all.get(what as usize).copied()
    }
}

/// Where a station's own frame stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// There is none.
    Idle,
    /// It waits for the end of DIFS, after which it is sent without a backoff.
    Defer,
    /// It waits for the end of its backoff.
    Backoff,
    /// It, or its RTS, is on air.
    OnAir,
    CtsWait,
    AckWait,
    /// The time is over, but something is being received that may be the CTS.
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

/// What a station sends at this moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnAir {
    pub(super) start: Instant,
    pub(super) kind: FrameKind,
    pub(super) to: Option<u32>,
    pub(super) mpdu_len: u16,
    pub(super) rate: Rate,
    /// The Duration field.
    pub(super) duration: Duration,
    /// Of the data that it is, or is about.
    pub(super) data: Data,
}

/// What others know data by.
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
    /// Its energy is used up.
    pub(super) exhausted: bool,
    pub(super) stage: Stage,
    pub(super) frame: Option<Outgoing>,
    /// Of the link that the frame goes over, if anything is heard at its other end.
    pub(super) link: Option<usize>,
    /// Sequence number of the frame.
    pub(super) seq: u16,
    /// The contention window.
    pub(super) cw: u16,
    /// Short and long retry count: failures since the last CTS, and failures of data after a CTS.
    pub(super) short_retries: u8,
    pub(super) long_retries: u8,
    /// Failures of the frame, or of its RTS, whether a CTS has come since or not.
    pub(super) failures: u8,
    /// The data itself has been on air.
    pub(super) was_on_air: bool,
    /// Slots that are left of a backoff; there is one after each frame, too, whether the next is
    /// there or not.
    pub(super) slots: Option<u32>,
    /// They count from here on; `None` while the channel is busy, or sent on. May lie ahead, at the
    /// end of DIFS.
    pub(super) counts_from: Option<Instant>,
    /// NAV: until when others have reserved the channel.
    pub(super) nav: Instant,
    /// The end of its transmission last.
    pub(super) sent_until: Instant,
    /// A frame in error has ended, and the channel has not been clear since: EIFS begins when it
    /// is.
    pub(super) in_error: bool,
    /// The end of EIFS; a correct frame ends it before.
    pub(super) eifs_end: Instant,
    /// Of the frame's timer; one more makes the one pending void.
    pub(super) generation: u32,
    /// Of all its timers: how often it went down.
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
            // The first frame has 0.
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

    /// No frame is being sent.
    pub(super) fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
    }

    /// Slots of a new backoff.
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
