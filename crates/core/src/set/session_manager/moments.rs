//! Where the time of a transfer goes: the moments that its sender sees, and the phases between
//! them. A simulated and a deployed transfer have the same phases, since the same machine notes
//! their moments.

use super::{Outcome, Phase, Sender};
use crate::time::{Duration, Instant};

/// A phase of a transfer. Phases follow each other without gaps, in this order; one that ends
/// before its predecessor lasts no time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TransferPhase {
    /// From the start to the node's answer: to ACCEPT with the gateway table, or to the refusal of
    /// striping.
    Request,
    /// To the first open session, or the stream that carries the plain file.
    Handshakes,
    /// To the first acknowledgement of bytes that this sender has sent.
    FirstByte,
    /// Until each byte was given to a session once.
    Striping,
    /// To the last acknowledgement that leaves bytes open.
    Tail,
    /// To the acknowledgement of the whole file, which a node sends after it has checked and stored
    /// the file.
    Confirmation,
}

impl TransferPhase {
    /// All phases in their order.
    pub const ALL: [Self; 6] =
        [Self::Request, Self::Handshakes, Self::FirstByte, Self::Striping, Self::Tail, Self::Confirmation];

    /// Name of the phase in reports and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Handshakes => "handshakes",
            Self::FirstByte => "first_byte",
            Self::Striping => "striping",
            Self::Tail => "tail",
            Self::Confirmation => "confirmation",
        }
    }
}

/// A phase with its begin and end, counted from the start of the transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PhaseSpan {
    /// The phase.
    pub phase: TransferPhase,
    /// Time from the start of the transfer to the begin of the phase.
    pub start: Duration,
    /// Time from the start of the transfer to the end of the phase.
    pub end: Duration,
}

impl PhaseSpan {
    /// Duration of the phase.
    pub const fn length(&self) -> Duration {
        self.end.saturating_sub(self.start)
    }
}

/// The moments of a transfer at its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moments {
    /// When the transfer was created.
    pub started: Instant,
    /// When the node first answered.
    pub answered: Option<Instant>,
    /// When a connection was first open that can carry the file, or when the file was delivered
    /// without one.
    pub established: Option<Instant>,
    /// When the node first acknowledged bytes that it did not have before.
    pub first_byte: Option<Instant>,
    /// When all bytes had been given to sessions, or were acknowledged.
    pub handed_out: Option<Instant>,
    /// When the last acknowledgement arrived that brought news and was not that of the whole file.
    pub last_part: Option<Instant>,
    /// When the node had acknowledged the whole file.
    pub delivered: Option<Instant>,
}

impl Moments {
    pub(super) fn new(started: Instant) -> Self {
        Self {
            started,
            answered: None,
            established: None,
            first_byte: None,
            handed_out: None,
            last_part: None,
            delivered: None,
        }
    }

    /// The phases so far. Those of a delivered transfer are complete and end with its delivery;
    /// otherwise the first phase that has not ended, and those after it, are missing.
    pub fn phases(&self) -> impl Iterator<Item = PhaseSpan> + '_ {
        // A phase whose end was not seen has ended at the latest with the delivery. The last
        // acknowledgement so far ends the tail only if no other follows.
        let or_delivered = |moment: Option<Instant>| moment.or(self.delivered);
        let ends = [
            or_delivered(self.answered),
            or_delivered(self.established),
            or_delivered(self.first_byte),
            or_delivered(self.handed_out),
            self.delivered.map(|_| self.last_part.unwrap_or(self.started)),
            self.delivered,
        ];
        let mut start = Duration::ZERO;
        TransferPhase::ALL.into_iter().zip(ends).map_while(move |(phase, end)| {
            let span = PhaseSpan { phase, start, end: end?.saturating_since(self.started).max(start) };
            start = span.end;
            Some(span)
        })
    }
}

impl Sender {
    /// The moments of the transfer so far.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// Notes the moments that the state of the transfer shows.
    pub(super) fn note_moments(&mut self, now: Instant) {
        if self.moments.delivered.is_some() {
            return;
        }
        let (is_handed_out, is_delivered) = match self.phase {
            Phase::Requesting(_) | Phase::Ended(Outcome::Failed(_)) => return,
            Phase::Sessions => (self.unassigned.is_empty(), false),
            Phase::Plain(_) => (true, false),
            Phase::Ended(Outcome::Delivered) => (true, true),
        };
        let is_established = self.moments.established.is_some() || self.is_established();
        let Moments { answered, established, handed_out, delivered, .. } = &mut self.moments;
        answered.get_or_insert(now);
        for (moment, is_there) in
            [(established, is_established), (handed_out, is_handed_out), (delivered, is_delivered)]
        {
            if is_there {
                moment.get_or_insert(now);
            }
        }
    }

    /// Notes an acknowledgement of new bytes, perhaps of the last ones.
    pub(super) fn note_acknowledged(&mut self, now: Instant, is_whole: bool) {
        let Moments { answered: Some(_), first_byte, last_part, .. } = &mut self.moments else {
            // The bytes that the node reports before its answer are those of an earlier push.
            return;
        };
        first_byte.get_or_insert(now);
        if !is_whole {
            *last_part = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn ends(moments: &Moments) -> Vec<u64> {
        let phases: Vec<PhaseSpan> = moments.phases().collect();
        let mut before = Duration::ZERO;
        for (span, phase) in phases.iter().zip(TransferPhase::ALL) {
            assert_eq!((span.phase, span.start), (phase, before), "{phases:?}");
            before = span.end;
        }
        phases.iter().map(|span| span.end.as_millis()).collect()
    }

    fn delivered() -> Moments {
        Moments {
            answered: Some(at(1_010)),
            established: Some(at(1_020)),
            first_byte: Some(at(1_030)),
            handed_out: Some(at(1_040)),
            last_part: Some(at(1_050)),
            delivered: Some(at(1_060)),
            ..Moments::new(at(1_000))
        }
    }

    #[test]
    fn phases_follow_each_other() {
        assert_eq!(ends(&delivered()), [10, 20, 30, 40, 50, 60]);
    }

    /// A small file is handed out before the first acknowledgement, and perhaps before any session
    /// is open. A single acknowledgement is the first and the last.
    #[test]
    fn a_phase_that_ends_early_lasts_no_time() {
        let early = Moments { handed_out: Some(at(1_015)), ..delivered() };
        assert_eq!(ends(&early), [10, 20, 30, 30, 50, 60]);
        let only = Moments { first_byte: Some(at(1_060)), last_part: None, ..early };
        assert_eq!(ends(&only), [10, 20, 60, 60, 60, 60]);
        // An empty file has no bytes to acknowledge.
        let empty = Moments { first_byte: None, handed_out: None, ..only };
        assert_eq!(ends(&empty), [10, 20, 60, 60, 60, 60]);
    }

    #[test]
    fn an_undelivered_transfer_has_the_phases_that_have_ended() {
        let failed = Moments { delivered: None, ..delivered() };
        assert_eq!(ends(&failed), [10, 20, 30, 40]);
        assert_eq!(ends(&Moments { first_byte: None, ..failed }), [10, 20]);
        assert_eq!(ends(&Moments::new(at(5))), [0; 0]);
    }
}
