//! What an acknowledgement means.

use super::timer::Timer;
use super::{Partial, Phase, Resend, Sender, Timing};
use crate::segment::{SackBlock, SeqNumber};
use crate::tcp::config::{Recovery, SackRole};
use crate::tcp::congestion::Controller;
use crate::tcp::sack::DUP_THRESH;
use crate::time::{Duration, Instant};

/// The acknowledging part of a segment that has passed all checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgement<'a> {
    pub(crate) seq: SeqNumber,
    /// SEG.ACK, at most SND.MAX.
    pub(crate) ack: SeqNumber,
    /// SEG.WND, scaled.
    pub(crate) window: u32,
    pub(crate) sack: &'a [SackBlock],
    /// SEG.LEN: a segment that carries something is no duplicate acknowledgement.
    pub(crate) len: u32,
    /// The round trip by the timestamp echoed (RFC 7323 section 4).
    pub(crate) echo: Option<Duration>,
}

/// Whether the owner has to hear of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    None,
    /// SND.UNA, the peer's window or the congestion window has moved.
    Moved,
}

impl Sender {
    /// RFC 9293 section 3.10.7.4, fifth, and RFC 5681 section 3.
    pub(crate) fn handle_ack(&mut self, now: Instant, a: &Acknowledgement<'_>) -> Progress {
        self.leave_standby(now);
        let right = self.una + self.window.wnd;
        let cwnd = self.cwnd();
        let dup = self.is_duplicate(a);
        self.update_window(a);
        self.answered();
        let reports = self.uses_sack() && !a.sack.is_empty();
        let news = reports && self.scoreboard.update(a.ack.max(self.una), self.max, a.sack);
        let moved = a.ack.gt(self.una);
        if moved || dup {
            let acked = a.ack.distance(self.una).max(0) as u32;
            self.congestion.on_delivery(now, self.mss, acked);
        }
        if moved {
            self.advance(now, a);
        } else if matches!(self.timer, Timer::Retransmit(_)) && (news || (dup && !reports)) {
            self.duplicate(now);
        }
        self.leave_persist();
        let changed = moved || right != self.una + self.window.wnd || cwnd != self.cwnd();
        if changed { Progress::Moved } else { Progress::None }
    }

    /// The handshake gives the first window, never scaled; and the SYN is acknowledged or not.
    pub(crate) fn handle_syn(&mut self, now: Instant, a: &Acknowledgement<'_>) {
        self.window.wnd = a.window;
        self.window.max = self.window.max.max(a.window);
        self.window.seq = a.seq;
        self.window.ack = a.ack;
        if a.ack.le(self.una) {
            return;
        }
        let resent = self.counts.timeouts > 0;
        self.una = a.ack;
        self.nxt = self.nxt.max(self.una);
        match self.timing {
            Timing::Running { at, .. } => self.measured(now, now.saturating_since(at)),
            Timing::Spoiled if resent => self.rtt.restart_after_lost_syn(),
            Timing::Spoiled | Timing::Idle => {}
        }
        self.timing = Timing::Idle;
        self.retries = 0;
        self.recover = self.una - 1;
        self.restart_timer(now);
    }

    #[inline]
    fn uses_sack(&self) -> bool {
        match (self.config.recovery, self.config.sack) {
            (Recovery::RenoGoBackN, _) | (_, SackRole::Off | SackRole::Receiver) => false,
            (Recovery::NewReno, SackRole::Sender | SackRole::Both) => true,
        }
    }

    /// RFC 5681 section 2, DUPLICATE ACKNOWLEDGMENT.
    #[inline]
    fn is_duplicate(&self, a: &Acknowledgement<'_>) -> bool {
        a.ack == self.una && a.len == 0 && a.window == self.window.wnd && self.max.gt(self.una)
    }

    /// SND.WL1 and SND.WL2 keep old segments from updating the window (RFC 9293 section 3.10.7.4).
    #[inline]
    fn update_window(&mut self, a: &Acknowledgement<'_>) {
        let newer = self.window.seq.lt(a.seq) || (self.window.seq == a.seq && self.window.ack.le(a.ack));
        if newer && a.ack.ge(self.una) {
            self.window.wnd = a.window;
            self.window.max = self.window.max.max(a.window);
            self.window.seq = a.seq;
            self.window.ack = a.ack;
        }
    }

    /// SND.UNA moves.
    #[inline]
    fn advance(&mut self, now: Instant, a: &Acknowledgement<'_>) {
        self.take_sample(now, a);
        let octets = (a.ack.distance(self.base).max(0) as u32).min(self.queue.len());
        self.queue.advance(octets);
        self.base += octets;
        self.counts.bytes_acked += u64::from(octets);
        let acked = a.ack.distance(self.una) as u32;
        self.una = a.ack;
        self.nxt = self.nxt.max(self.una);
        self.delivery.moved(now, self.una, self.max, self.counts.bytes_acked);
        self.scoreboard.advance(self.una);
        if let Some(map) = &mut self.map {
            map.advance(self.una);
        }
        self.retries = 0;
        self.keep_guards_near();
        match self.phase {
            Phase::Open => self.open_ack(now, acked),
            Phase::Fast(partial) => self.fast_ack(now, acked, partial),
            Phase::Sack => self.sack_ack(now),
        }
    }

    fn open_ack(&mut self, now: Instant, acked: u32) {
        self.dup_acks = 0;
        self.inflation = 0;
        self.restart_timer(now);
        let view = self.view(self.in_flight(), self.repair());
        self.congestion.on_ack(now, &view, acked);
    }

    /// RFC 6582 section 3.2 step 3; BSD Reno leaves with the first new acknowledgement.
    fn fast_ack(&mut self, now: Instant, acked: u32, partial: Partial) {
        let full = self.una.ge(self.recover) || self.config.recovery == Recovery::RenoGoBackN;
        if full {
            self.restart_timer(now);
            return self.leave_recovery(now);
        }
        self.resend = Resend::Una;
        self.inflation = self.inflation.saturating_sub(acked);
        if acked >= self.mss {
            self.inflation = self.inflation.saturating_add(self.mss);
        }
        if partial == Partial::None {
            self.restart_timer(now);
            self.phase = Phase::Fast(Partial::Seen);
        }
    }

    /// RFC 6675 section 5, steps A to C.
    fn sack_ack(&mut self, now: Instant) {
        self.restart_timer(now);
        if self.una.ge(self.recover) {
            self.leave_recovery(now);
        }
    }

    fn leave_recovery(&mut self, now: Instant) {
        let view = self.view(self.in_flight(), self.repair());
        self.congestion.on_recovered(now, &view);
        self.peak.flight = 0;
        self.phase = Phase::Open;
        self.resend = Resend::Idle;
        self.dup_acks = 0;
        self.inflation = 0;
    }

    /// An acknowledgement says that something arrived out of order.
    fn duplicate(&mut self, now: Instant) {
        match self.phase {
            Phase::Open => {
                if self.dup_acks == 0 {
                    self.flight_before = self.in_flight();
                }
                self.dup_acks = self.dup_acks.saturating_add(1);
                let lost = self.scoreboard.lost_edge(self.mss).is_some_and(|edge| edge.gt(self.una));
                if (self.dup_acks >= DUP_THRESH || lost) && self.beyond_recover() {
                    self.enter_recovery(now);
                } else if self.config.limited_transmit && self.nxt == self.max {
                    // RFC 3042: two segments beyond the window at most, and only new data.
                    self.inflation = self.dup_acks.min(DUP_THRESH - 1).saturating_mul(self.mss);
                }
            }
            Phase::Fast(_) => self.inflation = self.inflation.saturating_add(self.mss).min(self.in_flight()),
            Phase::Sack => {}
        }
    }

    /// No second reduction for the losses of one window (RFC 6582 section 3.2 step 2, RFC 6675 section 5.1).
    /// Without SACK, duplicates of what a time-out made us send again look the same, so one octet more must
    /// have been acknowledged.
    fn beyond_recover(&self) -> bool {
        if self.scoreboard.is_empty() { self.una.gt(self.recover) } else { self.una.ge(self.recover) }
    }

    /// RFC 5681 section 3.2 steps 2 and 3, RFC 6675 section 5 step 4.
    fn enter_recovery(&mut self, now: Instant) {
        self.counts.fast_retransmits += 1;
        self.nxt = self.max;
        self.recover = self.max;
        self.timing = Timing::Spoiled;
        self.resend = Resend::Una;
        // RFC 5681 section 3.2 step 2: without what limited transmit has added.
        let flight = self.in_flight().min(self.flight_before);
        if self.scoreboard.is_empty() {
            self.phase = Phase::Fast(Partial::None);
            self.inflation = DUP_THRESH * self.mss;
        } else {
            self.phase = Phase::Sack;
            self.inflation = 0;
            self.scoreboard.begin_recovery(self.una);
        }
        let view = self.view(flight, self.repair());
        self.congestion.on_loss(now, &view);
    }

    /// Karn's rule: only an octet sent once is timed; else the timestamp tells the copies apart.
    #[inline]
    fn take_sample(&mut self, now: Instant, a: &Acknowledgement<'_>) {
        match (self.timing, a.echo) {
            (Timing::Running { end, at }, _) => {
                if a.ack.ge(end) {
                    self.timing = Timing::Idle;
                    self.measured(now, now.saturating_since(at));
                }
            }
            (Timing::Spoiled, Some(rtt)) => {
                self.timing = Timing::Idle;
                self.measured(now, rtt);
            }
            (Timing::Spoiled, None) | (Timing::Idle, _) => {}
        }
    }

    /// `recover` is compared for as long as the connection lives: it must not fall half the sequence space
    /// behind.
    #[inline]
    fn keep_guards_near(&mut self) {
        if self.una.distance(self.recover) > super::MAX_BUFFER as i32 {
            self.recover = self.una - 1;
        }
    }

    /// The window has opened far enough to send: what a probe carried goes out again with all the rest.
    #[inline]
    fn leave_persist(&mut self) {
        if let Timer::Persist { .. } = self.timer
            && self.window.wnd > 0
            && self.next_run().is_some()
        {
            self.timer = Timer::Idle;
        }
    }
}
