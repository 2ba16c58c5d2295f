//! Which octets leave next, and whether they may.

use bytes::Bytes;

use super::timer::{Probe, Timer};
use super::{Peak, Phase, Resend, Sender, StreamEnd, Timing};
use crate::segment::{SackBlock, SeqNumber};
use crate::tcp::config::{Nagle, Push};
use crate::tcp::congestion::{Controller, Usage};
use crate::time::Instant;

/// A run of the stream to put into a segment.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) seq: SeqNumber,
    pub(crate) payload: Bytes,
    pub(crate) mark: Mark,
}

/// What the end of a segment is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    /// More follows.
    None,
    /// The last octet written (RFC 9293 section 3.9.1.2).
    Push,
    /// The end of the stream.
    Fin,
}

/// Octets chosen, and the FIN after them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    data: u32,
    fin: u32,
}

impl Run {
    fn len(self) -> u32 {
        self.data + self.fin
    }
}

impl Sender {
    /// The SYN, for the first time or again.
    pub(crate) fn send_syn(&mut self, now: Instant) -> SeqNumber {
        let first = self.max == self.una;
        self.nxt = self.una + 1;
        self.max = self.max.max(self.nxt);
        if first {
            self.timing = Timing::Running { end: self.nxt, at: now };
        } else {
            self.timing = Timing::Spoiled;
            self.counts.retransmissions += 1;
        }
        self.ensure_timer(now);
        self.una
    }

    /// The next run to send, until `None`.
    #[inline]
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Outgoing> {
        if self.una == self.stream_end() {
            return None;
        }
        if let Timer::Persist { due: Probe::Due, .. } = self.timer {
            return self.send_probe(now);
        }
        if let Timer::Standby { due, .. } = &mut self.timer {
            let was_due = core::mem::replace(due, Probe::Waiting);
            return if was_due == Probe::Due { self.send_first(now) } else { None };
        }
        if self.resend == Resend::Una {
            self.resend = Resend::Idle;
            if let Some(out) = self.send_una(now) {
                return Some(out);
            }
        }
        match self.phase {
            Phase::Sack => self.poll_sack(now),
            Phase::Open | Phase::Fast(_) => self.poll_window(now),
        }
    }

    /// What the window allows past SND.NXT.
    #[inline]
    fn poll_window(&mut self, now: Instant) -> Option<Outgoing> {
        if self.nxt == self.stream_end() {
            return None;
        }
        self.restart_after_idle(now);
        match self.next_run() {
            Some(run) => Some(self.emit(now, self.nxt, run)),
            None => {
                if self.timer == Timer::Idle && self.una == self.nxt {
                    self.persist(now);
                }
                None
            }
        }
    }

    /// What may leave at SND.NXT: the peer's window, then the congestion window, then RFC 9293 section
    /// 3.8.6.2.1.
    #[inline]
    pub(super) fn next_run(&mut self) -> Option<Run> {
        let mut right = self.una + self.window.wnd;
        let mut skipped = 0;
        if self.nxt.lt(self.max) && !self.scoreboard.is_empty() {
            // After a time-out the peer has told anew what it holds.
            let hole = self.scoreboard.hole(self.nxt, self.stream_end())?;
            self.nxt = hole.left;
            self.max = self.max.max(self.nxt);
            right = right.min(hole.right);
            skipped = self.scoreboard.reported(self.una, self.nxt);
        }
        let run = self.carve(self.nxt, right);
        if run.len() == 0 {
            return None;
        }
        let out = self.in_flight() - skipped;
        let allowed = self.cwnd().saturating_add(self.inflation);
        if run.data > 0 && out.saturating_add(run.data) > allowed {
            return None;
        }
        self.worth_sending(run).then_some(run)
    }

    /// Silly window avoidance and Nagle (RFC 9293 sections 3.8.6.2.1 and 3.7.4).
    #[inline]
    fn worth_sending(&self, run: Run) -> bool {
        if run.data >= self.mss || self.nxt.lt(self.max) || run.fin > 0 || self.map.is_some() {
            return true;
        }
        if self.nxt + run.data == self.data_end() {
            match self.config.nagle {
                Nagle::Off => return true,
                Nagle::On => return self.max == self.una,
            }
        }
        run.data.saturating_mul(2) >= self.window.max
    }

    /// RFC 6675 section 5 step C: while cwnd - pipe has room for a segment, NextSeg().
    fn poll_sack(&mut self, now: Instant) -> Option<Outgoing> {
        let pipe = self.scoreboard.pipe(self.una, self.max, self.mss);
        if pipe.saturating_add(self.mss) > self.cwnd() {
            return None;
        }
        if let Some(hole) = self.scoreboard.next_lost(self.una, self.mss) {
            return self.send_hole(now, hole);
        }
        let run = self.carve(self.nxt, self.una + self.window.wnd);
        if run.len() > 0 && self.worth_sending(run) {
            return Some(self.emit(now, self.nxt, run));
        }
        if let Some(hole) = self.scoreboard.next_doubtful(self.una) {
            return self.send_hole(now, hole);
        }
        let hole = self.scoreboard.rescue(self.una, self.max, self.mss)?;
        let run = self.carve(hole.left, hole.right);
        (run.len() > 0).then(|| self.emit(now, hole.left, run))
    }

    fn send_hole(&mut self, now: Instant, hole: SackBlock) -> Option<Outgoing> {
        let run = self.carve(hole.left, hole.right);
        if run.len() == 0 {
            return None;
        }
        self.scoreboard.retransmitted(hole.left + run.len());
        Some(self.emit(now, hole.left, run))
    }

    /// The first segment that is not acknowledged.
    fn send_una(&mut self, now: Instant) -> Option<Outgoing> {
        if self.phase == Phase::Sack {
            let hole = self.scoreboard.hole(self.una, self.max)?;
            return self.send_hole(now, hole);
        }
        self.send_first(now)
    }

    /// The same, and no word of it to the scoreboard.
    fn send_first(&mut self, now: Instant) -> Option<Outgoing> {
        let hole = self.scoreboard.hole(self.una, self.max)?;
        let run = self.carve(hole.left, hole.right);
        (run.len() > 0).then(|| self.emit(now, hole.left, run))
    }

    /// A probe: what little the window admits, one octet at least (RFC 9293 section 3.8.6.1).
    fn send_probe(&mut self, now: Instant) -> Option<Outgoing> {
        if let Timer::Persist { due, .. } = &mut self.timer {
            *due = Probe::Waiting;
        }
        let run = self.carve(self.una, self.una + self.window.wnd.max(1));
        if run.len() == 0 {
            return None;
        }
        let timer = self.timer;
        let out = self.emit(now, self.una, run);
        self.timing = Timing::Spoiled;
        if self.window.wnd == 0 {
            self.nxt = self.una;
            self.timer = timer;
        } else {
            self.timer = Timer::Idle;
            self.ensure_timer(now);
        }
        Some(out)
    }

    /// At most one segment from `seq` up to `right`; with it the FIN, if that is what follows.
    #[inline]
    fn carve(&self, seq: SeqNumber, right: SeqNumber) -> Run {
        let room = right.distance(seq).max(0) as u32;
        let left = self.data_end().distance(seq).max(0) as u32;
        let data = left.min(self.mss).min(room);
        let data = match &self.map {
            Some(map) => map.limit(seq, data, self.mss),
            None => data,
        };
        let fin = self.end == StreamEnd::Fin && data == left && room > data && seq.lt(self.stream_end());
        Run { data, fin: u32::from(fin) }
    }

    /// The segment that ends there is the last for now.
    #[inline]
    fn ends_burst(&self, end: SeqNumber) -> bool {
        let all = end == self.data_end();
        match self.config.push {
            Push::Buffer => all,
            Push::Window => (all && !self.more) || self.window_left() < self.mss,
        }
    }

    #[inline]
    fn emit(&mut self, now: Instant, seq: SeqNumber, run: Run) -> Outgoing {
        let end = seq + run.len();
        if seq.lt(self.max) {
            self.counts.retransmissions += 1;
            self.timing = Timing::Spoiled;
        } else if !matches!(self.timing, Timing::Running { .. }) {
            self.timing = Timing::Running { end, at: now };
        }
        if seq == self.nxt {
            self.nxt = end;
        }
        self.max = self.max.max(end);
        self.note_peak();
        self.last_sent = now;
        self.counts.bytes_sent += u64::from(run.data);
        self.ensure_timer(now);
        let mark = if run.fin > 0 {
            Mark::Fin
        } else if self.ends_burst(end) {
            Mark::Push
        } else {
            Mark::None
        };
        let payload = self.queue.slice(seq.distance(self.base).max(0) as u32, run.data);
        Outgoing { seq, payload, mark }
    }

    /// Remembers how full the congestion window was.
    #[inline]
    fn note_peak(&mut self) {
        let flight = self.in_flight();
        if flight >= self.peak.flight || self.una.ge(self.peak.end) {
            let full = flight.saturating_add(self.mss) > self.cwnd();
            let usage = if full { Usage::Full } else { Usage::Partial { peak: flight } };
            self.peak = Peak { flight, usage, end: self.max };
        }
    }

    /// RFC 5681 section 4.1: after a silence longer than the time-out the window restarts.
    #[inline]
    fn restart_after_idle(&mut self, now: Instant) {
        if self.una == self.max && now.saturating_since(self.last_sent) > self.rtt.rto() {
            let view = self.view(0, self.repair());
            self.congestion.on_idle(now, &view);
        }
    }
}
