//! Undo of what was done for a loss that was none: the acknowledgements were late, or segments
//! overtook each other.
//!
//! A spurious time-out or recovery is found by timestamps (Eifel, RFC 3522), without them after a
//! time-out by what the next two acknowledgements cover (F-RTO, RFC 5682 section 3.1), and by the
//! peer's reports that it has had all retransmissions twice (RFC 2883, RFC 3708). Then the window,
//! the threshold and, after a time-out, the round-trip time are as RFC 4015 wants them, and what is
//! not lost is not sent again.

use super::ack::Acknowledgement;
use super::output::Run;
use super::timer::Timer;
use super::{Phase, Resend, Sender};
use crate::segment::{SackBlock, SeqNumber};
use crate::tcp::congestion::Windows;
use crate::tcp::flight::Arrivals;
use crate::tcp::rtt::timestamp;
use crate::time::{Duration, Instant};

/// What is kept of the last loss episode.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// How things stood before it; `None` if there is nothing to go back to.
    prior: Option<Prior>,
    /// SND.NXT when it ended. What is reported after something later has arrived is of no use.
    ended: Option<SeqNumber>,
    eifel: Eifel,
    frto: Frto,
    /// Duplicates that the peer has reported (RFC 3522 section 3.2 step 5).
    duplicates: u64,
    /// SRTT_prev and RTTVAR_prev (RFC 4015 section 3), until a segment that left after the undo is
    /// timed.
    resume: Option<(Duration, Duration)>,
}

#[derive(Clone, Copy, Debug)]
struct Prior {
    windows: Windows,
    rtt: Option<(Duration, Duration)>,
}

/// Eifel detection (RFC 3522 section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Eifel {
    #[default]
    Off,
    /// The first retransmission of the episode has not left.
    Armed,
    /// It has left with this TSval (RetransmitTS).
    Sent(u32),
}

/// F-RTO with SACK (RFC 5682 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Frto {
    #[default]
    Off,
    /// Step 2: the first segment has left again.
    Resent,
    /// Step 3: this number of new segments may still leave, and nothing else.
    New(u8),
}

impl Sender {
    /// An episode begins. The controller has not heard of it.
    pub(super) fn begin_episode(&mut self) {
        self.repeats.clear();
        self.forget_prior();
        if self.config.undo {
            let windows = Windows { cwnd: self.congestion.cwnd(), ssthresh: self.congestion.ssthresh() };
            let rtt = self.rtt.srtt().map(|srtt| (srtt, self.rtt.rttvar()));
            self.undo.prior = Some(Prior { windows, rtt });
            self.undo.eifel = Eifel::Armed;
        }
    }

    /// A time-out. RFC 5682 section 3.1 step 1 refuses one during the repair of an earlier one.
    /// Here a repeated time-out for the same byte goes on, as nothing but the first segment has
    /// left again by then.
    pub(super) fn begin_timeout(&mut self, again: bool) {
        if !again {
            self.begin_episode();
            if self.undo.prior.is_some() && self.sacked {
                self.undo.frto = Frto::Resent;
            }
        } else if self.retries <= 1 || self.phase != Phase::Loss {
            self.forget_prior();
        }
    }

    /// The episode is over.
    pub(super) fn end_episode(&mut self) {
        self.undo.ended = Some(self.max);
    }

    /// SND.UNA has moved.
    #[inline]
    pub(super) fn forget_old_episode(&mut self) {
        if self.undo.ended.take_if(|end| self.una.gt(*end)).is_some() {
            self.repeats.clear();
            self.forget_prior();
        }
    }

    /// There is nothing to go back to.
    pub(super) fn forget_prior(&mut self) {
        self.undo.prior = None;
        self.undo.ended = None;
        self.undo.eifel = Eifel::Off;
        self.undo.frto = Frto::Off;
    }

    /// A segment leaves, `again` or for the first time.
    #[inline]
    pub(super) fn note_episode(&mut self, now: Instant, seq: SeqNumber, again: bool) {
        if !again {
            if let Frto::New(left) = &mut self.undo.frto {
                *left = left.saturating_sub(1);
            }
        } else if self.undo.eifel == Eifel::Armed && self.phase != Phase::Open {
            // Only a retransmission of the first segment is told from its original by the next
            // acknowledgement.
            let stamp = timestamp(now);
            self.undo.eifel = if seq == self.una { Eifel::Sent(stamp) } else { Eifel::Off };
        }
    }

    /// The peer has had `block` twice: whether because we have sent it again. A network that
    /// doubles packets doubles retransmissions too, and there are more reports than these (RFC 3708
    /// section 3; the rule is that of Linux).
    pub(super) fn take_duplicate(&mut self, block: SackBlock) -> bool {
        self.undo.duplicates += 1;
        self.repeats.reported(block) && self.undo.duplicates <= self.counts.retransmissions
    }

    /// Whether an acknowledgement shows that the episode was spurious; if so it is undone.
    /// `duplicate` and `repeated` say that it reports a duplicate and that this was a
    /// retransmission of ours.
    pub(super) fn undo_spurious(
        &mut self,
        now: Instant,
        a: &Acknowledgement<'_>,
        (duplicate, repeated): (bool, bool),
        arrivals: &mut Arrivals,
    ) {
        let eifel = self.is_eifel(a, duplicate);
        let late = repeated && self.repeats.all_reported();
        let frto = a.stamp.is_none() && self.is_frto(arrivals);
        if self.undo.prior.is_some() && (eifel || late || frto) {
            // It was the first copy that has arrived, so that it says nothing of those that left
            // before the second.
            arrivals.again = None;
            self.undo_episode(now);
        }
    }

    /// Steps 4 and 5 of RFC 3522 section 3.2, for the first acceptable acknowledgement.
    fn is_eifel(&mut self, a: &Acknowledgement<'_>, duplicate: bool) -> bool {
        let (Eifel::Sent(sent), Some(echo), true) = (self.undo.eifel, a.stamp, a.ack.gt(self.una)) else {
            return false;
        };
        self.undo.eifel = Eifel::Off;
        let sure = !duplicate && (self.undo.duplicates > 0 || a.ack.lt(self.max));
        sure && (echo.wrapping_sub(sent) as i32) < 0
    }

    /// Step 3 of RFC 5682 section 3.1.
    fn is_frto(&mut self, arrivals: &Arrivals) -> bool {
        let (Frto::New(_), Some(first)) = (self.undo.frto, arrivals.first) else { return false };
        self.undo.frto = Frto::Off;
        first.end.le(self.recover)
    }

    /// Step 3a: a duplicate that reports nothing, so that the repair goes on as without F-RTO.
    pub(super) fn end_frto(&mut self) {
        if let Frto::New(_) = self.undo.frto {
            self.undo.frto = Frto::Off;
            // The window is full of what has left in its place.
            self.resend = Resend::Una;
        }
    }

    /// Step 2 of RFC 5682 section 3.1, when SND.UNA has moved while a time-out is repaired.
    pub(super) fn frto_moved(&mut self, stamped: bool) {
        if self.undo.frto == Frto::Resent {
            let new = self.carve(self.max, self.una + self.window.wnd);
            let can = self.una.lt(self.recover) && new.len() > 0 && self.worth_sending(self.max, new);
            self.undo.frto = if can && !stamped { Frto::New(2) } else { Frto::Off };
        }
    }

    /// The new segment that F-RTO wants sent in place of all else; the outer `None` is no such
    /// case.
    #[inline]
    pub(super) fn frto_run(&self) -> Option<Option<(SeqNumber, Run)>> {
        let (Frto::New(left), Phase::Loss) = (self.undo.frto, self.phase) else { return None };
        let run = self.carve(self.max, self.una + self.window.wnd);
        let may = left > 0 && run.len() > 0 && self.worth_sending(self.max, run);
        Some(may.then_some((self.max, run)))
    }

    /// RFC 4015 section 3, steps 5 to 8. The window is that of before the episode, as Linux has it:
    /// what is acknowledged bounds what leaves at once, since all that was in flight counts again.
    fn undo_episode(&mut self, now: Instant) {
        let Some(prior) = self.undo.prior.take() else { return };
        self.forget_prior();
        self.counts.undone += 1;
        if self.phase == Phase::Loss {
            self.undo.resume = prior.rtt;
        } else {
            // Segments were overtaken by more than was allowed for.
            self.rack_was_wrong();
        }
        if self.phase != Phase::Open {
            self.flight.lose_none(self.uses_rack());
            self.rack_forget();
            self.phase = Phase::Open;
            self.recover = self.una - 1;
            self.resend = Resend::Idle;
            self.dup_acks = 0;
            self.inflation = 0;
            self.peak.flight = 0;
            if self.timer == Timer::Idle {
                self.restart_timer(now);
            }
        }
        let view = self.view(self.in_flight(), self.repair());
        self.congestion.on_spurious(now, &view, prior.windows);
    }

    /// SRTT_prev and RTTVAR_prev, once.
    pub(super) fn take_resume(&mut self) -> Option<(Duration, Duration)> {
        self.undo.resume.take()
    }
}
