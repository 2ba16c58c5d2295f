//! What a sender does about marks (RFC 3168 section 6.1.2, RFC 8511).

use super::timer::Timer;
use super::{MAX_BUFFER, Phase, Sender};
use crate::segment::{Ecn, SeqNumber};
use crate::time::Instant;

/// ECN, once it is agreed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marking {
    /// SND.NXT when the window was last reduced for a mark. No second time for the same window:
    /// what acknowledges no more than this echoes marks of before.
    reduced: SeqNumber,
    /// CWR is to be said with the next new data.
    cwr_due: bool,
}

/// What a segment says of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Marked {
    pub(crate) ecn: Ecn,
    pub(crate) cwr: bool,
}

impl Sender {
    /// The handshake has shown whether both ends speak ECN.
    pub(crate) fn set_ecn(&mut self, agreed: bool) {
        let capable = agreed && self.congestion.answers_marks();
        self.marking = capable.then_some(Marking { reduced: self.una, cwr_due: false });
    }

    /// The window was reduced for any reason.
    pub(super) fn say_reduced(&mut self) {
        if let Some(marking) = &mut self.marking {
            marking.cwr_due = true;
        }
    }

    /// The losses of this window were announced by marks, for which the window is reduced already.
    pub(super) fn is_marked(&self) -> bool {
        self.marking.is_some_and(|marking| self.una.lt(marking.reduced))
    }

    /// The acknowledgement of `ack` echoes a mark. `flight` bytes were in flight before. One that
    /// was overtaken says nothing, and neither does one of what left before the window was last
    /// reduced, for a mark or a loss.
    pub(super) fn take_echo(&mut self, now: Instant, ack: SeqNumber, flight: u32) {
        self.keep_reduction();
        let Some(marking) = &mut self.marking else { return };
        let late = ack.lt(self.una) || ack.le(marking.reduced) || ack.le(self.recover);
        if self.phase != Phase::Open || late {
            return;
        }
        *marking = Marking { reduced: self.max, cwr_due: true };
        self.counts.marked += 1;
        // A mark is no loss that could turn out to be spurious.
        self.forget_prior();
        let view = self.view(flight, self.repair());
        self.congestion.on_mark(now, &view);
        self.peak.flight = 0;
    }

    /// A mark in an episode: there is congestion, even if nothing was lost, and CWR was said for
    /// it.
    #[inline]
    pub(super) fn keep_reduction(&mut self) {
        if self.marking.is_some() && self.phase != Phase::Open {
            self.forget_prior();
        }
    }

    /// What the segment from `seq` on says: only new data is ECT (RFC 3168 sections 6.1.4 to
    /// 6.1.6).
    #[inline]
    pub(super) fn mark(&mut self, seq: SeqNumber, data: u32) -> Marked {
        let Some(marking) = &mut self.marking else { return Marked::default() };
        if data == 0 || seq.lt(self.max) || matches!(self.timer, Timer::Persist { .. }) {
            return Marked::default();
        }
        Marked { ecn: Ecn::Ect0, cwr: core::mem::take(&mut marking.cwr_due) }
    }

    /// `reduced` is compared for as long as the connection lives.
    #[inline]
    pub(super) fn keep_mark_near(&mut self) {
        if let Some(marking) = &mut self.marking
            && self.una.distance(marking.reduced) > MAX_BUFFER as i32
        {
            marking.reduced = self.una - 1;
        }
    }
}
