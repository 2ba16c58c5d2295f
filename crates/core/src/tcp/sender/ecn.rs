//! Reaction of the sender to congestion marks (RFC 3168 section 6.1.2, RFC 8511).

use super::timer::Timer;
use super::{MAX_BUFFER, Phase, Sender};
use crate::segment::{Ecn, SeqNumber};
use crate::time::Instant;

/// State of ECN, once negotiated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marking {
    /// SND.NXT at the last reduction for a mark. Acknowledgements up to this number echo older
    /// marks and cause no second reduction for the same window.
    reduced: SeqNumber,
    /// Whether the next new data carries CWR.
    cwr_due: bool,
}

/// ECN fields of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Marked {
    pub(crate) ecn: Ecn,
    pub(crate) cwr: bool,
}

impl Sender {
    /// Sets whether both ends have negotiated ECN.
    pub(crate) fn set_ecn(&mut self, agreed: bool) {
        let capable = agreed && self.congestion.answers_marks();
        self.marking = capable.then_some(Marking { reduced: self.una, cwr_due: false });
    }

    /// Notes that the window was reduced for any reason: CWR is due.
    pub(super) fn say_reduced(&mut self) {
        if let Some(marking) = &mut self.marking {
            marking.cwr_due = true;
        }
    }

    /// Whether the window was already reduced for a mark that announced the losses of this window.
    pub(super) fn is_marked(&self) -> bool {
        self.marking.is_some_and(|marking| self.una.lt(marking.reduced))
    }

    /// Handles an acknowledgement of `ack` that echoes a mark; `flight` bytes were in flight
    /// before. An overtaken acknowledgement has no effect, nor one of data sent before the last
    /// reduction, for a mark or a loss.
    pub(super) fn take_echo(&mut self, now: Instant, ack: SeqNumber, flight: u32) {
        self.keep_reduction();
        let Some(marking) = &mut self.marking else { return };
        let late = ack.lt(self.una) || ack.le(marking.reduced) || ack.le(self.recover);
        if self.phase != Phase::Open || late {
            return;
        }
        *marking = Marking { reduced: self.max, cwr_due: true };
        self.counts.marked += 1;
        // The reduction for a mark must not be undone as spurious.
        self.forget_prior();
        let view = self.view(flight, self.repair());
        self.congestion.on_mark(now, &view);
        self.peak.flight = 0;
    }

    /// Handles a mark during a loss episode. It proves congestion even if nothing was lost, so the
    /// episode must not be undone. CWR has been scheduled for it.
    #[inline]
    pub(super) fn keep_reduction(&mut self) {
        if self.marking.is_some() && self.phase != Phase::Open {
            self.forget_prior();
        }
    }

    /// The ECN fields of the segment from `seq` on: only new data is ECT (RFC 3168 sections 6.1.4
    /// to 6.1.6).
    #[inline]
    pub(super) fn mark(&mut self, seq: SeqNumber, data: u32) -> Marked {
        let Some(marking) = &mut self.marking else { return Marked::default() };
        if data == 0 || seq.lt(self.max) || matches!(self.timer, Timer::Persist { .. }) {
            return Marked::default();
        }
        Marked { ecn: Ecn::Ect0, cwr: core::mem::take(&mut marking.cwr_due) }
    }

    /// Keeps `reduced` near SND.UNA. It is compared during the whole connection, so it must not
    /// fall half the sequence space behind.
    #[inline]
    pub(super) fn keep_mark_near(&mut self) {
        if let Some(marking) = &mut self.marking
            && self.una.distance(marking.reduced) > MAX_BUFFER as i32
        {
            marking.reduced = self.una - 1;
        }
    }
}
