//! Undo of the reaction to a spurious loss: the acknowledgements were late, or segments were
//! reordered.
//!
//! Three methods detect spurious time-outs and recoveries:
//!
//! * timestamps (Eifel, RFC 3522)
//! * without timestamps, the next two acknowledgements after a time-out (F-RTO, RFC 5682 section
//!   3.1)
//! * the peer's reports that all retransmissions were duplicates (RFC 2883, RFC 3708)
//!
//! The undo restores window, threshold and, after a time-out, the round-trip time (RFC 4015). It
//! cancels pending retransmissions.

use super::ack::Acknowledgement;
use super::output::Run;
use super::timer::Timer;
use super::{Phase, Resend, Sender};
use crate::segment::{SackBlock, SeqNumber};
use crate::tcp::congestion::Windows;
use crate::tcp::flight::Arrivals;
use crate::tcp::rtt::timestamp;
use crate::time::{Duration, Instant};

/// State kept of the last loss episode.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// State before the episode; `None` if there is nothing to restore.
    prior: Option<Prior>,
    /// SND.NXT at the end of the episode. Once later data is acknowledged, reports come too late.
    ended: Option<SeqNumber>,
    eifel: Eifel,
    frto: Frto,
    /// Number of duplicates reported by the peer (RFC 3522 section 3.2 step 5).
    duplicates: u64,
    /// SRTT_prev and RTTVAR_prev (RFC 4015 section 3), until the round trip of a segment sent after
    /// the undo is measured.
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
    /// The first retransmission of the episode was not sent yet.
    Armed,
    /// The first retransmission was sent with this TSval (RetransmitTS).
    Sent(u32),
}

/// F-RTO with SACK (RFC 5682 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Frto {
    #[default]
    Off,
    /// Step 2: the first segment was retransmitted.
    Resent,
    /// Step 3: this many new segments may still be sent, and no other data.
    New(u8),
}

impl Sender {
    /// Begins an episode. Must be called before the controller reacts, because it saves the
    /// windows.
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

    /// Begins a time-out. RFC 5682 section 3.1 step 1 excludes a time-out during the recovery from
    /// an earlier one. A repeated time-out for the same byte keeps the state here, because only the
    /// first segment was retransmitted until then.
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

    /// Marks the end of the episode.
    pub(super) fn end_episode(&mut self) {
        self.undo.ended = Some(self.max);
    }

    /// Discards the episode once SND.UNA has passed its end.
    #[inline]
    pub(super) fn forget_old_episode(&mut self) {
        if self.undo.ended.take_if(|end| self.una.gt(*end)).is_some() {
            self.repeats.clear();
            self.forget_prior();
        }
    }

    /// Discards the saved state.
    pub(super) fn forget_prior(&mut self) {
        self.undo.prior = None;
        self.undo.ended = None;
        self.undo.eifel = Eifel::Off;
        self.undo.frto = Frto::Off;
    }

    /// Notes a segment that is sent, `again` or for the first time.
    #[inline]
    pub(super) fn note_episode(&mut self, now: Instant, seq: SeqNumber, again: bool) {
        if !again {
            if let Frto::New(left) = &mut self.undo.frto {
                *left = left.saturating_sub(1);
            }
        } else if self.undo.eifel == Eifel::Armed && self.phase != Phase::Open {
            // The next acknowledgement distinguishes original and retransmission only for the first
            // segment.
            let stamp = timestamp(now);
            self.undo.eifel = if seq == self.una { Eifel::Sent(stamp) } else { Eifel::Off };
        }
    }

    /// Processes the peer's report that `block` has arrived twice; returns whether a retransmission
    /// of ours explains it. A network that duplicates packets also duplicates retransmissions, so
    /// there must not be more reports than retransmissions (RFC 3708 section 3; the rule of Linux).
    pub(super) fn take_duplicate(&mut self, block: SackBlock) -> bool {
        self.undo.duplicates += 1;
        self.repeats.reported(block) && self.undo.duplicates <= self.counts.retransmissions
    }

    /// Undoes the episode if an acknowledgement shows that it was spurious. `duplicate`: it reports
    /// a duplicate; `repeated`: the duplicate was a retransmission of ours.
    pub(super) fn undo_spurious(
        &mut self,
        now: Instant,
        a: &Acknowledgement<'_>,
        (duplicate, repeated): (bool, bool),
        arrivals: &mut Arrivals,
    ) {
        let eifel = self.is_eifel(a, duplicate);
        let late = repeated && self.repeats.all_reported();
        // With timestamps the Eifel detection decides.
        let frto = a.stamp.is_none() && self.is_frto(arrivals);
        if self.undo.prior.is_some() && (eifel || late || frto) {
            // The original has arrived and not the retransmission, so the arrival says nothing
            // about segments sent before the retransmission.
            arrivals.again = None;
            self.undo_episode(now);
        }
    }

    /// Eifel detection, steps 4 and 5 of RFC 3522 section 3.2, for the first acceptable
    /// acknowledgement.
    fn is_eifel(&mut self, a: &Acknowledgement<'_>, duplicate: bool) -> bool {
        let (Eifel::Sent(sent), Some(echo), true) = (self.undo.eifel, a.stamp, a.ack.gt(self.una)) else {
            return false;
        };
        self.undo.eifel = Eifel::Off;
        // RFC 3522 section 3.2 step 5: an acknowledgement of all outstanding data may come from a
        // receiver that echoes old times.
        let sure = !duplicate && (self.undo.duplicates > 0 || a.ack.lt(self.max));
        sure && (echo.wrapping_sub(sent) as i32) < 0
    }

    /// F-RTO detection, step 3 of RFC 5682 section 3.1.
    fn is_frto(&mut self, arrivals: &Arrivals) -> bool {
        let (Frto::New(_), Some(first)) = (self.undo.frto, arrivals.first) else { return false };
        self.undo.frto = Frto::Off;
        // Data sent before the time-out has arrived, so the time-out was spurious.
        first.end.le(self.recover)
    }

    /// Step 3a: a duplicate without new data. The recovery continues without F-RTO.
    pub(super) fn end_frto(&mut self) {
        if let Frto::New(_) = self.undo.frto {
            self.undo.frto = Frto::Off;
            // The new segments of F-RTO have filled the window, so SND.UNA is sent regardless of
            // it.
            self.resend = Resend::Una;
        }
    }

    /// Step 2 of RFC 5682 section 3.1, when SND.UNA has moved during the recovery from a time-out.
    pub(super) fn frto_moved(&mut self, stamped: bool) {
        if self.undo.frto == Frto::Resent {
            let new = self.carve(self.max, self.una + self.window.wnd);
            let can = self.una.lt(self.recover) && new.len() > 0 && self.worth_sending(self.max, new);
            self.undo.frto = if can && !stamped { Frto::New(2) } else { Frto::Off };
        }
    }

    /// The new segment that F-RTO sends in place of retransmissions. The outer `None`: F-RTO is not
    /// active.
    #[inline]
    pub(super) fn frto_run(&self) -> Option<Option<(SeqNumber, Run)>> {
        let (Frto::New(left), Phase::Loss) = (self.undo.frto, self.phase) else { return None };
        let run = self.carve(self.max, self.una + self.window.wnd);
        let may = left > 0 && run.len() > 0 && self.worth_sending(self.max, run);
        Some(may.then_some((self.max, run)))
    }

    /// RFC 4015 section 3, steps 5 to 8. The window returns to its previous value, as on Linux.
    /// Since all data in flight counts again, only acknowledged data makes room for new segments
    /// and there is no burst.
    fn undo_episode(&mut self, now: Instant) {
        let Some(prior) = self.undo.prior.take() else { return };
        self.forget_prior();
        self.counts.undone += 1;
        if self.phase == Phase::Loss {
            self.undo.resume = prior.rtt;
        } else {
            // The path reorders more than the reordering window allowed.
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

    /// Takes SRTT_prev and RTTVAR_prev.
    pub(super) fn take_resume(&mut self) -> Option<(Duration, Duration)> {
        self.undo.resume.take()
    }
}
