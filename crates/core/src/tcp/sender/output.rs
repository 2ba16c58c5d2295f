//! Selection of the data to send next.

use bytes::Bytes;

use super::ecn::Marked;
use super::timer::{Probe, Timer};
use super::{Peak, Phase, Resend, Sender, StreamEnd, Timing};
use crate::segment::{SackBlock, SeqNumber};
use crate::tcp::config::{Nagle, Push};
use crate::tcp::congestion::Usage;
use crate::time::Instant;

/// A range of the stream to send in one segment.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) seq: SeqNumber,
    pub(crate) payload: Bytes,
    pub(crate) mark: Mark,
    pub(crate) marked: Marked,
}

/// What the end of a segment marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    /// More data follows.
    None,
    /// The last byte of a burst, which carries PSH (RFC 9293 section 3.9.1.2).
    Push,
    /// The end of the stream.
    Fin,
}

/// A number of data bytes, and the FIN after them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    data: u32,
    fin: u32,
}

impl Run {
    pub(super) fn len(self) -> u32 {
        self.data + self.fin
    }
}

impl Sender {
    /// Records that the SYN is sent, for the first time or again; returns its sequence number.
    pub(crate) fn send_syn(&mut self, now: Instant) -> SeqNumber {
        let first = self.max == self.una;
        self.max = self.max.max(self.una + 1);
        if first {
            self.first_syn = now;
            self.timing = Timing::Running { end: self.max, at: now };
        } else {
            self.timing = Timing::Spoiled;
            self.counts.retransmissions += 1;
        }
        self.ensure_timer(now);
        self.una
    }

    /// Returns the next range to send, until `None`.
    #[inline]
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Outgoing> {
        self.pacing.rest();
        if self.una == self.stream_end() {
            self.hold_owner(now);
            return None;
        }
        if let Timer::Persist { due: Probe::Due, .. } = self.timer {
            return self.send_probe(now);
        }
        if let Timer::Standby { due, .. } = &mut self.timer {
            let was_due = core::mem::replace(due, Probe::Waiting);
            if was_due == Probe::Waiting {
                return None;
            }
            // The probe replaces the earlier ones: at most one counts as in the network.
            self.flight.withdraw_first();
            // Even a peer that has reported everything must receive something to acknowledge.
            let all = SackBlock { left: self.una, right: self.max };
            return self.send_una(now).or_else(|| self.send_hole(now, all));
        }
        if self.rack.probe_due
            && let Some(out) = self.send_tail_probe(now)
        {
            return Some(out);
        }
        if self.resend == Resend::Una {
            self.resend = Resend::Idle;
            if let Some(out) = self.send_una(now) {
                return Some(out);
            }
        }
        match self.phase {
            Phase::Sack => self.poll_sack(now),
            Phase::Open | Phase::Fast(_) | Phase::Loss => self.poll_window(now),
        }
    }

    /// Sends what the windows allow: lost data, then new data.
    #[inline]
    fn poll_window(&mut self, now: Instant) -> Option<Outgoing> {
        if self.max == self.stream_end() && self.flight.lost() == 0 {
            self.hold_owner(now);
            return None;
        }
        self.restart_after_idle(now);
        match self.next_run() {
            Some(_) if self.is_held(now) => None,
            Some((seq, run)) => Some(self.emit(now, seq, run)),
            None => {
                if self.timer == Timer::Idle && self.flight.pipe() == 0 {
                    self.persist(now);
                }
                None
            }
        }
    }

    /// The next range that may be sent, limited by the peer's window, the congestion window and RFC
    /// 9293 section 3.8.6.2.1. Data declared lost by a time-out is sent in full segments; new data
    /// fills the last one if there is room.
    #[inline]
    pub(super) fn next_run(&mut self) -> Option<(SeqNumber, Run)> {
        if let Some(new) = self.frto_run() {
            return new;
        }
        let mut right = self.una + self.window.wnd;
        let mut seq = self.max;
        if let Some(lost) = self.flight.next_lost(self.mss) {
            seq = lost.left;
            if lost.right != self.max {
                right = right.min(lost.right);
            }
        }
        let run = self.carve(seq, right);
        if run.len() == 0 {
            return None;
        }
        let allowed = self.cwnd().saturating_add(self.inflation);
        if run.data > 0 && self.occupied().saturating_add(run.data) > allowed {
            return None;
        }
        self.worth_sending(seq, run).then_some((seq, run))
    }

    /// Silly window avoidance and Nagle (RFC 9293 sections 3.8.6.2.1 and 3.7.4).
    #[inline]
    pub(super) fn worth_sending(&self, seq: SeqNumber, run: Run) -> bool {
        if run.data >= self.room_in_segment() || seq.lt(self.max) || run.fin > 0 || self.map.is_some() {
            return true;
        }
        if seq + run.data == self.data_end() {
            match self.config.nagle {
                Nagle::Off => return true,
                Nagle::On => return self.max == self.una,
            }
        }
        run.data.saturating_mul(2) >= self.window.max
    }

    /// RFC 6675 section 5 step C: NextSeg() as long as cwnd - pipe has room for a segment.
    fn poll_sack(&mut self, now: Instant) -> Option<Outgoing> {
        if self.flight.pipe().saturating_add(self.mss) > self.cwnd() || self.is_held(now) {
            return None;
        }
        if let Some(lost) = self.flight.next_lost(self.mss) {
            return self.send_hole(now, lost);
        }
        let run = self.carve(self.max, self.una + self.window.wnd);
        if run.len() > 0 && self.worth_sending(self.max, run) {
            return Some(self.emit(now, self.max, run));
        }
        // RACK retransmits only segments that it has marked lost, so rules 3 and 4 do not apply.
        if self.uses_rack() {
            return None;
        }
        if let Some(hole) = self.flight.next_doubtful(self.una) {
            return self.send_hole(now, hole);
        }
        let hole = self.flight.rescue(self.una, self.max, self.room_in_segment())?;
        self.send_hole(now, hole)
    }

    fn send_hole(&mut self, now: Instant, hole: SackBlock) -> Option<Outgoing> {
        let run = self.carve(hole.left, hole.right);
        (run.len() > 0).then(|| self.emit(now, hole.left, run))
    }

    /// Sends the first unacknowledged segment, regardless of the windows.
    fn send_una(&mut self, now: Instant) -> Option<Outgoing> {
        let hole = match self.phase {
            Phase::Sack => self.flight.next_lost(self.mss)?,
            Phase::Open | Phase::Fast(_) | Phase::Loss => self.flight.hole(self.una, self.max)?,
        };
        self.send_hole(now, hole)
    }

    /// Sends a window probe: the bytes that the window admits, at least one (RFC 9293 section
    /// 3.8.6.1).
    fn send_probe(&mut self, now: Instant) -> Option<Outgoing> {
        if let Timer::Persist { due, .. } = &mut self.timer {
            *due = Probe::Waiting;
        }
        let run = self.carve(self.una, self.una + self.window.wnd.max(1));
        if run.len() == 0 {
            return None;
        }
        let (timer, last_sent) = (self.timer, self.last_sent);
        let out = self.emit(now, self.una, run);
        self.timing = Timing::Spoiled;
        if self.window.wnd == 0 {
            // The peer may discard the byte of the probe. It is sent again with other data once the
            // window opens, and counts as not in flight until then.
            self.flight.withdraw_all();
            (self.timer, self.last_sent) = (timer, last_sent);
        } else {
            self.timer = Timer::Idle;
            self.ensure_timer(now);
        }
        Some(out)
    }

    /// The range of at most one segment from `seq` up to `right`, with the FIN if it follows.
    #[inline]
    pub(super) fn carve(&self, seq: SeqNumber, right: SeqNumber) -> Run {
        let room = right.distance(seq).max(0) as u32;
        let left = self.data_end().distance(seq).max(0) as u32;
        let most = self.room_in_segment();
        let data = left.min(most).min(room);
        let data = match &self.map {
            Some(map) => map.limit(seq, data, most),
            None => data,
        };
        let fin = self.end == StreamEnd::Fin && data == left && room > data && seq.lt(self.stream_end());
        Run { data, fin: u32::from(fin) }
    }

    /// Whether the segment that ends at `end` is the last one for now; `is_new` if it is sent for
    /// the first time.
    #[inline]
    fn ends_burst(&self, end: SeqNumber, is_new: bool) -> bool {
        let all = end == self.data_end();
        // Data of the owner beyond the data taken ahead is not sent here for now.
        let follows = self.more && !(is_new && self.takes_ahead());
        match self.config.push {
            Push::Buffer => all,
            Push::Window => (all && !follows) || self.window_left() < self.mss,
        }
    }

    #[inline]
    pub(super) fn emit(&mut self, now: Instant, seq: SeqNumber, run: Run) -> Outgoing {
        let end = seq + run.len();
        let marked = self.mark(seq, run.data);
        self.note_episode(now, seq, seq.lt(self.max));
        if seq.lt(self.max) {
            self.counts.retransmissions += 1;
            self.timing = Timing::Spoiled;
            if self.sacked && (self.config.undo || self.config.dsack) && self.phase != Phase::Open {
                self.repeats.sent(seq, end);
            }
        } else if !matches!(self.timing, Timing::Running { .. }) {
            self.timing = Timing::Running { end, at: now };
        }
        self.note_restart(now);
        self.flight.sent(now, seq, end);
        self.pace(now, run.data);
        self.prr.sent(run.data);
        let new = end.gt(self.max);
        self.max = self.max.max(end);
        self.note_full();
        self.note_peak();
        self.last_sent = now;
        self.counts.bytes_sent += u64::from(run.data);
        if seq == self.una && self.phase == Phase::Sack {
            // RFC 6675 section 6: a retransmission of SND.UNA gets a full time-out to be
            // acknowledged.
            self.restart_timer(now);
        }
        self.ensure_timer(now);
        if self.uses_rack() {
            self.flight.note_order(now, end);
            if new {
                self.schedule_probe(now);
            }
        }
        let mark = if run.fin > 0 {
            Mark::Fin
        } else if self.ends_burst(end, new) {
            Mark::Push
        } else {
            Mark::None
        };
        let payload = self.queue.slice(seq.distance(self.base).max(0) as u32, run.data);
        Outgoing { seq, payload, mark, marked }
    }

    /// Records the largest use of the congestion window.
    #[inline]
    fn note_peak(&mut self) {
        let flight = self.in_flight();
        if flight >= self.peak.flight || self.una.ge(self.peak.end) {
            // A window that the limit on the queue keeps unused must not grow.
            let full =
                flight.saturating_add(self.mss) > self.cwnd() && self.congestion.cwnd() <= self.short_limit();
            let usage = if full { Usage::Full } else { Usage::Partial { peak: flight } };
            self.peak = Peak { flight, usage, end: self.max };
        }
    }

    /// RFC 5681 section 4.1: after an idle time longer than the time-out the window is reduced.
    /// Probes of a closed window do not end the idle time.
    #[inline]
    fn restart_after_idle(&mut self, now: Instant) {
        let silent = self.una == self.max || (self.phase == Phase::Open && self.flight.pipe() == 0);
        if silent && now.saturating_since(self.last_sent) > self.rtt.rto() {
            self.forget_prior();
            let view = self.view(0, self.repair());
            self.congestion.on_idle(now, &view);
        }
    }
}
