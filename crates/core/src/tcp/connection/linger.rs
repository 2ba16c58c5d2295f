//! Idle connections: keep-alive (RFC 9293 section 3.8.4), FIN-WAIT-2 without an application, and
//! TIME-WAIT that gives way to a new connection.

use super::{CloseReason, Connection, Segment, State, reset_for};
use crate::segment::{Flags, SeqNumber};
use crate::tcp::config::KeepAlive;
use crate::time::Instant;

/// State of keep-alive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    keep: KeepAlive,
    /// When the last segment of the peer arrived.
    heard: Instant,
    /// Probes sent since then.
    probes: u8,
    /// When the last probe was sent.
    probed: Instant,
    /// Whether a probe is to be sent.
    due: bool,
}

impl Watch {
    pub(super) fn new(now: Instant, keep: KeepAlive) -> Self {
        Self { keep, heard: now, probes: 0, probed: now, due: false }
    }

    /// Notes a segment of the peer.
    #[inline]
    pub(super) fn heard(&mut self, now: Instant) {
        *self = Self::new(now, self.keep);
    }

    fn deadline(&self) -> Instant {
        if self.probes == 0 { self.heard + self.keep.idle } else { self.probed + self.keep.interval }
    }
}

impl Connection {
    /// Sets keep-alive probing; `None` disables it.
    pub fn set_keep_alive(&mut self, now: Instant, keep: Option<KeepAlive>) {
        let heard = self.watch.map_or(now, |watch| watch.heard);
        self.watch = keep.map(|keep| Watch::new(heard, keep));
    }

    /// Closes the connection like [`Connection::close`], for an application that will not read
    /// either.
    ///
    /// Unread data, and data that arrives later, is lost, and a reset tells the peer (RFC 1122
    /// section 4.2.2.13, RFC 2525 section 2.17). FIN-WAIT-2 ends without a reset, after
    /// [`Config::fin_wait`](crate::tcp::Config::fin_wait) counted from its beginning or from this
    /// call. Written data is still sent. But while the peer's window is closed, the connection ends
    /// with a reset after that time without an acknowledgement, even if the peer answers probes
    /// (RFC 6429).
    pub fn release(&mut self, now: Instant) {
        if self.released {
            return;
        }
        self.released = true;
        if self.rx.readable() > 0 {
            return self.lose_text(now);
        }
        self.close(now);
        match self.state {
            State::FinWait2 => self.enter_fin_wait_2(now),
            State::FinWait1 | State::Closing | State::LastAck => self.linger(now),
            State::SynSent
            | State::SynReceived
            | State::Established
            | State::CloseWait
            | State::TimeWait
            | State::Closed => {}
        }
    }

    /// Drops received data that no application will read.
    fn lose_text(&mut self, now: Instant) {
        match self.state {
            // `abort` sends no reset in these states. The peer waits for an acknowledgement of its
            // data, so it is told.
            State::Closing | State::LastAck => self.reset = Some(self.reset_segment(now)),
            // The peer has closed and may no longer exist; it cannot send its data again.
            State::TimeWait => return self.rx.discard(),
            State::SynSent
            | State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closed => {}
        }
        self.abort(now);
    }

    /// Whether a segment carries data that no application will read. If so, the connection is reset
    /// and the data is not acknowledged.
    #[inline]
    pub(super) fn refuses_text(&mut self, now: Instant, segment: &Segment) -> bool {
        let end = segment.seq + segment.payload.len() as u32;
        let refuses = self.released && !segment.payload.is_empty() && end.gt(self.rx.nxt());
        if refuses {
            self.lose_text(now);
            // Answer as if there were no connection (RFC 9293 section 3.10.7.1): the reset carries
            // the number that the peer expects, whatever data of ours it has received.
            self.reset = self.reset.take().and(reset_for(segment));
        }
        refuses
    }

    /// Ends this connection in TIME-WAIT in favour of a new one, if `syn` cannot be an old
    /// duplicate (RFC 6191 section 2, RFC 9293 MAY-2). Requires
    /// [`Config::time_wait_reuse`](crate::tcp::Config::time_wait_reuse).
    ///
    /// On success the connection is closed. The result is the least initial sequence number of the
    /// new connection, for [`Connection::accept`]: no old segment of ours in the network can then
    /// be taken for its data. A driver with an unpredictable number `iss` (RFC 9293 section 3.4.1)
    /// uses `iss` if `iss.ge(least)`, otherwise `iss + (1 << 31)`, which is above `least` and
    /// hardly easier to guess.
    pub fn give_way(&mut self, now: Instant, syn: &Segment) -> Option<SeqNumber> {
        let has = |flag| syn.flags.contains(flag);
        let opens = has(Flags::SYN) && !has(Flags::ACK) && !has(Flags::RST);
        if self.state != State::TimeWait || !self.config.time_wait_reuse || !opens || !self.is_later(now, syn)
        {
            return None;
        }
        // As on Linux: above all numbers of the old connection, with the margin of an unscaled
        // window.
        let iss = self.tx.control_seq() + u32::from(u16::MAX) + 2;
        self.finish(CloseReason::Graceful);
        Some(iss)
    }

    /// Whether the SYN was sent after the last segment of this connection (RFC 6191 section 2).
    fn is_later(&self, now: Instant, syn: &Segment) -> bool {
        let above = syn.seq.ge(self.rx.nxt());
        match (&self.stamps, syn.options.timestamps) {
            (Some(stamps), Some(theirs)) => {
                stamps.is_news(now, theirs.value) || above && !stamps.is_old(now, theirs.value)
            }
            (Some(_), None) => above,
            (None, Some(_)) => above || self.config.timestamps,
            (None, None) => above,
        }
    }

    /// Enters FIN-WAIT-2, with a time limit if no application waits for the peer.
    pub(super) fn enter_fin_wait_2(&mut self, now: Instant) {
        self.state = State::FinWait2;
        self.linger(now);
    }

    fn linger(&mut self, now: Instant) {
        self.lingers_until = self.config.fin_wait.filter(|_| self.released).map(|span| now + span);
    }

    /// Restarts the limit when the peer acknowledges data: a slow transfer may continue as long as
    /// it makes progress.
    #[inline]
    pub(super) fn note_progress(&mut self, now: Instant) {
        match self.state {
            State::FinWait1 | State::Closing | State::LastAck if self.released => self.linger(now),
            State::SynSent
            | State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait
            | State::Closed => {}
        }
    }

    /// When TIME-WAIT ends, or the wait without an application. Data in an open window is limited
    /// by the retransmission time-out instead.
    pub(super) fn linger_deadline(&self) -> Option<Instant> {
        match self.state {
            State::TimeWait | State::FinWait2 => self.lingers_until,
            State::FinWait1 | State::Closing | State::LastAck => {
                self.lingers_until.filter(|_| self.tx.peer_window() == 0)
            }
            State::SynSent | State::SynReceived | State::Established | State::CloseWait | State::Closed => {
                None
            }
        }
    }

    /// Ends a connection whose wait is over; returns whether it did.
    pub(super) fn linger_ends(&mut self, now: Instant) -> bool {
        let ends = self.linger_deadline().is_some_and(|at| at <= now);
        if ends {
            match self.state {
                State::TimeWait => self.finish(CloseReason::Graceful),
                State::FinWait2 => self.finish(CloseReason::TimedOut),
                State::FinWait1
                | State::Closing
                | State::LastAck
                | State::SynSent
                | State::SynReceived
                | State::Established
                | State::CloseWait
                | State::Closed => self.give_up(now),
            }
        }
        ends
    }

    /// Whether keep-alive applies: the connection only waits for the peer. Unacknowledged data has
    /// its own timer.
    fn is_silent(&self) -> bool {
        let waits = match self.state {
            State::Established | State::FinWait2 | State::CloseWait => true,
            State::SynSent
            | State::SynReceived
            | State::FinWait1
            | State::Closing
            | State::LastAck
            | State::TimeWait
            | State::Closed => false,
        };
        waits && self.tx.buffered() == 0
    }

    pub(super) fn watch_deadline(&self) -> Option<Instant> {
        self.watch.as_ref().filter(|watch| !watch.due && self.is_silent()).map(Watch::deadline)
    }

    /// Schedules a due probe. Returns true if the connection is abandoned because the peer has not
    /// answered.
    pub(super) fn watch_fails(&mut self, now: Instant) -> bool {
        let due = self.watch_deadline().is_some_and(|at| at <= now);
        let Some(watch) = self.watch.as_mut().filter(|_| due) else { return false };
        if watch.probes >= watch.keep.probes {
            self.give_up(now);
            return true;
        }
        watch.probes += 1;
        watch.probed = now;
        watch.due = true;
        false
    }

    /// Whether a probe is to be sent now: no data, at SND.NXT - 1, which every receiver answers.
    #[inline]
    pub(super) fn probes_silence(&mut self) -> bool {
        self.watch.as_mut().is_some_and(|watch| core::mem::take(&mut watch.due))
    }
}
