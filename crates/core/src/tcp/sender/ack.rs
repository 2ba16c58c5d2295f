//! Processing of acknowledgements.

use super::hystart::{CSS_GROWTH_DIVISOR, Pace};
use super::prr::{Delivery, Prr};
use super::timer::Timer;
use super::{Partial, Phase, Resend, Sender, Timing};
use crate::segment::{SackBlock, SeqNumber};
use crate::tcp::config::{Recovery, SackRole};
use crate::tcp::rtt::timestamp;
use crate::tcp::sack::{self, DUP_THRESH};
use crate::time::{Duration, Instant};

/// The acknowledgement fields of a segment that has passed all checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgement<'a> {
    pub(crate) seq: SeqNumber,
    /// SEG.ACK, at most SND.MAX.
    pub(crate) ack: SeqNumber,
    /// SEG.WND, scaled.
    pub(crate) window: u32,
    pub(crate) sack: &'a [SackBlock],
    /// SEG.LEN. A segment with data is no duplicate acknowledgement.
    pub(crate) len: u32,
    /// The round-trip time derived from the echoed timestamp (RFC 7323 section 4).
    pub(crate) echo: Option<Duration>,
    /// TSecr, if timestamps are in use.
    pub(crate) stamp: Option<u32>,
    /// ECE: the peer echoes a congestion mark.
    pub(crate) ece: bool,
}

/// Whether the owner has to be notified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    None,
    /// SND.UNA, the peer's window or the congestion window has moved.
    Moved,
}

impl Sender {
    /// Processes an acknowledgement (RFC 9293 section 3.10.7.4, fifth; RFC 5681 section 3).
    pub(crate) fn handle_ack(&mut self, now: Instant, a: &Acknowledgement<'_>) -> Progress {
        self.leave_standby(now);
        self.check_app_limited();
        let right = self.una + self.window.wnd;
        let cwnd = self.cwnd();
        let repeats = self.is_duplicate(a);
        self.update_window(a);
        self.answered();
        // RFC 2883 section 4: a D-SACK block reports no new data, whether or not we send D-SACK
        // ourselves.
        let duplicate = if self.sacked { sack::duplicate(a.ack, a.sack) } else { None };
        let blocks = &a.sack[usize::from(duplicate.is_some())..];
        let repeated = duplicate.is_some_and(|block| self.take_duplicate(block));
        let (losses, mut delivered) = (self.flight.losses(), 0);
        if self.sacked {
            // Data reported by SACK before does not count again when it is acknowledged.
            let reported = self.flight.reported(self.una, a.ack.max(self.una));
            delivered = (a.ack.distance(self.una).max(0) as u32) - reported;
        }
        if a.ack.gt(self.una) {
            // Must come before `report`: otherwise the segments acknowledged here would look
            // overtaken by the blocks of the same acknowledgement.
            self.flight.acknowledge(a.ack);
        }
        let news =
            if self.uses_sack() { self.flight.report(a.ack.max(self.una), self.max, blocks) } else { 0 };
        if news > 0 || duplicate.is_some() {
            self.see_block();
        }
        let mut arrivals = self.flight.take_arrivals();
        if a.ece {
            self.keep_reduction();
        }
        self.undo_spurious(now, a, (duplicate.is_some(), repeated), &mut arrivals);
        if repeats && !arrivals.any() {
            self.end_frto();
        }
        let moved = a.ack.gt(self.una);
        let flight = self.in_flight();
        // RFC 6675 section 2: if the peer sends SACK, only an acknowledgement that reports new data
        // is a duplicate, whether or not it moves SND.UNA. Otherwise a packet duplicated by the
        // network would look like a loss.
        let dup = if self.sacked { news > 0 } else { repeats };
        self.bare = if moved { 0 } else { self.bare.saturating_add(u32::from(repeats)) };
        if moved || dup {
            let acked = a.ack.distance(self.una).max(0) as u32;
            self.congestion.on_delivery(now, self.mss, acked);
        }
        if moved {
            self.advance(now, a);
        }
        if matches!(self.timer, Timer::Retransmit(_) | Timer::Idle) {
            if self.uses_rack() {
                let empty = !moved && a.len == 0 && a.sack.is_empty();
                self.answer_probe(now, a.ack, duplicate, empty, flight);
                self.rack_on_duplicate(repeated);
                // An acknowledgement that does not move SND.UNA echoes the last segment in order
                // (RFC 7323 section 4.3), not the reported one. Compared with that, each
                // retransmission that is reported beyond a hole would count as the original, and a
                // lost retransmission would wait for a time-out.
                self.rack_on_ack(now, &arrivals, a.echo.filter(|_| moved));
                // Data held back by a closed window was not lost to congestion.
                if self.timer != Timer::Idle {
                    self.repair_lost(now, flight);
                }
                // A report of part of a segment carries no timing information, so the probe is
                // still needed.
                if moved || arrivals.any() {
                    self.schedule_probe(now);
                }
            } else if dup && self.timer != Timer::Idle {
                self.duplicate(now, flight);
            }
        }
        if a.ece {
            self.take_echo(now, a.ack, flight.min(cwnd));
        }
        if self.config.prr && self.phase == Phase::Sack && (moved || news > 0) {
            let (bytes, pipe) = (delivered + news, self.flight.pipe());
            let safe = moved && self.flight.losses() == losses;
            self.prr.on_ack(&Delivery { bytes, safe, pipe }, self.controlled(), self.mss);
        }
        self.sample(now);
        self.leave_persist();
        let changed = moved || right != self.una + self.window.wnd || cwnd != self.cwnd();
        if changed { Progress::Moved } else { Progress::None }
    }

    /// Processes the acknowledgement in the handshake: it sets the first window, which is never
    /// scaled, and may acknowledge the SYN.
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
        match self.timing {
            Timing::Running { at, .. } => self.measured(now, now.saturating_since(at), 1),
            Timing::Spoiled if resent => {
                let later = |stamp: u32| stamp.wrapping_sub(timestamp(self.first_syn));
                let answered = a.stamp.filter(|_| self.config.undo).map(later);
                // The first SYN has arrived after all; only the round trip is longer than the
                // time-out (RFC 3522).
                if answered == Some(0) {
                    self.counts.undone += 1;
                    self.begin_with(self.initial_window());
                }
                self.rtt.restart_after_lost_syn();
                // The echoed timestamp identifies the answered SYN, so the round trip can be
                // measured although the SYN was retransmitted (RFC 6298 section 3).
                if let Some(rtt) = a.echo.filter(|_| answered.is_some_and(|later| later < 1 << 31)) {
                    self.measured(now, rtt, 1);
                }
            }
            Timing::Spoiled | Timing::Idle => {}
        }
        self.timing = Timing::Idle;
        self.forget_prior();
        self.retries = 0;
        self.phase = Phase::Open;
        self.resend = Resend::Idle;
        self.recover = self.una - 1;
        self.restart_timer(now);
    }

    /// The peer has sent SACK-permitted, so it is expected to report received data (RFC 2018
    /// section 2).
    pub(crate) fn expect_sack(&mut self) {
        self.sacked = self.uses_sack();
    }

    /// Notes a valid SACK block of the peer.
    fn see_block(&mut self) {
        self.saw_block = true;
        if !self.sacked {
            self.sacked = true;
            // The peer was thought not to send SACK, and the transmission order was not recorded
            // meanwhile.
            self.flight.keep_order(self.uses_rack());
        }
    }

    /// Called on a time-out. SACK-permitted does not prove that the peer sends blocks itself. A
    /// peer that has repeated its acknowledgement without ever sending a block counts as one
    /// without SACK from now on.
    pub(super) fn doubt_sack(&mut self) {
        if self.bare >= DUP_THRESH && !self.saw_block {
            self.sacked = false;
        }
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

    /// Moves SND.UNA.
    #[inline]
    fn advance(&mut self, now: Instant, a: &Acknowledgement<'_>) {
        self.take_sample(now, a);
        let octets = (a.ack.distance(self.base).max(0) as u32).min(self.queue.len());
        self.queue.advance(octets);
        self.base += octets;
        self.counts.bytes_acked += u64::from(octets);
        let acked = a.ack.distance(self.una) as u32;
        self.una = a.ack;
        self.delivery.moved(now, self.una, self.max, self.counts.bytes_acked);
        self.flight.acknowledge(self.una);
        if self.short.is_some() {
            self.follow_queue(now, acked);
        }
        if let Some(map) = &mut self.map {
            map.advance(self.una);
        }
        self.retries = 0;
        self.keep_guards_near();
        self.keep_mark_near();
        self.forget_old_episode();
        match self.phase {
            Phase::Open => self.open_ack(now, acked, a.ece),
            Phase::Fast(partial) => self.fast_ack(now, acked, partial),
            Phase::Sack => self.sack_ack(now),
            Phase::Loss => {
                if self.una.ge(self.recover) {
                    self.phase = Phase::Open;
                    self.end_episode();
                    self.rack_on_recovered();
                } else if self.flight.is_reneged() {
                    self.flight.lose_all();
                }
                self.frto_moved(a.stamp.is_some());
                self.open_ack(now, acked, a.ece);
            }
        }
    }

    fn open_ack(&mut self, now: Instant, acked: u32, echoes: bool) {
        self.dup_acks = 0;
        self.inflation = 0;
        self.restart_timer(now);
        let mut view = self.view(self.in_flight(), self.repair());
        match self.watch_slow_start() {
            Pace::Full => {}
            Pace::Conservative => view.slow_start_divisor = CSS_GROWTH_DIVISOR,
            Pace::End => {
                self.hystart = None;
                self.congestion.on_slow_start_end(now, &view);
            }
        }
        // RFC 3168 section 6.1.2: the window does not grow for an acknowledgement with ECE. The
        // exception is a recovery after a time-out: it has no new data to carry CWR, so every
        // acknowledgement may have ECE.
        if !echoes || self.marking.is_none() || self.phase == Phase::Loss {
            self.congestion.on_ack(now, &view, acked);
        }
    }

    /// HyStart++ applies only to the first slow start, which has no threshold (RFC 9406 section
    /// 4.3).
    fn watch_slow_start(&mut self) -> Pace {
        // An undo may restore the unbounded threshold.
        let hystart = self.hystart.as_mut().filter(|_| self.congestion.ssthresh() == u32::MAX);
        hystart.map_or(Pace::Full, |hystart| hystart.on_ack(self.una, self.max))
    }

    /// RFC 6582 section 3.2 step 3. BSD Reno leaves recovery with the first new acknowledgement.
    fn fast_ack(&mut self, now: Instant, acked: u32, partial: Partial) {
        let full = self.una.ge(self.recover) || self.config.recovery == Recovery::RenoGoBackN;
        if full {
            self.restart_timer(now);
            return self.leave_recovery(now);
        }
        // A partial acknowledgement: retransmit the next hole, deflate by the acknowledged data,
        // and add back one segment, so that about ssthresh bytes are in flight when the recovery
        // ends.
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
            // Data sent during the recovery may be lost too.
            self.repair_lost(now, self.cwnd());
        }
    }

    /// Enters recovery if segments were found lost outside of one. `flight` is the number of bytes
    /// in flight before.
    pub(super) fn repair_lost(&mut self, now: Instant, flight: u32) {
        if self.phase == Phase::Open && self.flight.lost() > 0 && self.sacked {
            self.flight_before = flight;
            self.enter_recovery(now);
        }
    }

    fn leave_recovery(&mut self, now: Instant) {
        self.end_episode();
        self.rack_on_recovered();
        let view = self.view(self.in_flight(), self.repair());
        self.congestion.on_recovered(now, &view);
        self.peak.flight = 0;
        self.phase = Phase::Open;
        self.resend = Resend::Idle;
        self.dup_acks = 0;
        self.inflation = 0;
    }

    /// Processes a duplicate acknowledgement. `flight` is the number of bytes in flight before it.
    fn duplicate(&mut self, now: Instant, flight: u32) {
        match self.phase {
            Phase::Open | Phase::Loss => {
                if self.dup_acks == 0 {
                    self.flight_before = flight;
                }
                self.dup_acks = self.dup_acks.saturating_add(1);
                let beyond = self.beyond_recover();
                let lost = beyond && self.flight.judge(self.mss);
                if (self.dup_acks >= DUP_THRESH && beyond) || lost {
                    self.enter_recovery(now);
                } else if self.config.limited_transmit && self.flight.lost() == 0 {
                    // RFC 3042: at most two segments beyond the window, and only new data.
                    self.inflation = self.dup_acks.min(DUP_THRESH - 1).saturating_mul(self.mss);
                }
            }
            Phase::Fast(_) => self.inflation = self.inflation.saturating_add(self.mss).min(self.in_flight()),
            Phase::Sack => {
                self.flight.judge(self.mss);
            }
        }
    }

    /// Whether a new recovery may begin: no second reduction for the losses of one window (RFC 6582
    /// section 3.2 step 2, RFC 6675 section 5.1). Without SACK, duplicates caused by
    /// retransmissions after a time-out look the same, so at least one byte more must have been
    /// acknowledged.
    fn beyond_recover(&self) -> bool {
        if self.sacked { self.una.ge(self.recover) } else { self.una.gt(self.recover) }
    }

    /// Enters recovery (RFC 5681 section 3.2 steps 2 and 3, RFC 6675 section 5 step 4).
    fn enter_recovery(&mut self, now: Instant) {
        self.counts.fast_retransmits += 1;
        self.recover = self.max;
        self.timing = Timing::Spoiled;
        self.resend = Resend::Una;
        self.begin_episode();
        // RFC 5681 section 3.2 step 2: the data added by limited transmit does not count.
        let flight = self.flight_before.min(self.cwnd());
        if self.sacked {
            self.phase = Phase::Sack;
            self.inflation = 0;
            self.flight.begin_recovery(self.una);
            if !self.uses_rack() {
                self.flight.lose_first();
            }
            self.rack_on_recovery();
            self.prr = Prr::begin(self.flight.pipe() + self.flight.lost());
        } else {
            self.phase = Phase::Fast(Partial::None);
            self.inflation = DUP_THRESH * self.mss;
        }
        // RFC 6675 section 6: the retransmissions get a full time-out to be acknowledged.
        self.restart_timer(now);
        if self.is_marked() {
            // The window was already reduced for this window's mark. That reduction came from a
            // mark, not from a loss, so an undo must not revert it.
            self.forget_prior();
        } else {
            let view = self.view(flight, self.repair());
            self.congestion.on_loss(now, &view);
        }
        // The lost segment may have been the one that carried CWR.
        self.say_reduced();
    }

    /// Takes a round-trip sample. Karn's rule: only a byte sent once is timed, unless the timestamp
    /// identifies the transmission.
    #[inline]
    fn take_sample(&mut self, now: Instant, a: &Acknowledgement<'_>) {
        if !self.uses_rack()
            && let (Some(hystart), Some(rtt)) = (&mut self.hystart, a.echo)
        {
            // HyStart++ needs several samples per round trip (RFC 9406 section 4.2); the timed
            // segment alone gives one.
            hystart.sample(rtt);
        }
        match (self.timing, a.echo) {
            (Timing::Running { end, at }, _) => {
                if a.ack.ge(end) {
                    self.timing = Timing::Idle;
                    let rtt = now.saturating_since(at);
                    match self.take_resume() {
                        // RACK already measures every segment.
                        None if self.uses_rack() => {}
                        None => self.measured(now, rtt, 1),
                        Some(before) => self.resumed(now, before, rtt),
                    }
                }
            }
            (Timing::Spoiled, Some(rtt)) => {
                // The delay that caused the spurious time-out is measured itself here.
                self.take_resume();
                self.timing = Timing::Idle;
                self.measured(now, rtt, 1);
            }
            (Timing::Spoiled, None) | (Timing::Idle, _) => {}
        }
    }

    /// Keeps `recover` near SND.UNA. It is compared during the whole connection, so it must not
    /// fall half the sequence space behind.
    #[inline]
    fn keep_guards_near(&mut self) {
        if self.una.distance(self.recover) > super::MAX_BUFFER as i32 {
            self.recover = self.una - 1;
        }
    }

    /// Leaves the persist state when the window has opened far enough to send. The byte of the
    /// probe is then sent again with the rest.
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
