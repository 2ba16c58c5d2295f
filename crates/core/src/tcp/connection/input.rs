//! Processing of a segment in any state but SYN-SENT: RFC 9293 section 3.10.7.4, in its order, with
//! the defences of RFC 5961.

use super::events::Pending;
use super::stamps::{self, Stamps};
use super::subflow::{SACK_BLOCK, SACK_HEAD};
use super::{CloseReason, Connection, State, reset_for};
use crate::segment::{Flags, SackBlocks, Segment, SeqNumber};
use crate::tcp::multipath::UNBOUNDED;
use crate::tcp::receiver::Arrival;
use crate::tcp::sender::{Acknowledgement, Progress};
use crate::time::{Duration, Instant};

/// Result of a check: `Ok` to continue.
type Check = Result<(), Dropped>;

/// The segment was counted as dropped, and answered if an answer is due.
struct Dropped;

impl Connection {
    /// Processes a segment; returns whether it has passed all checks.
    pub(super) fn segment_in_window(&mut self, now: Instant, mut segment: Segment) -> bool {
        // The window of a segment with SYN is not scaled (RFC 7323 section 2.2).
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { self.send_shift };
        match self.check(now, &mut segment) {
            Ok(()) => {
                // Only after the checks: a segment with an impossible ACK must not set TS.Recent,
                // because PAWS would then drop all valid segments.
                self.take_stamp(now, &segment);
                self.tell_multipath(&segment, segment.seq, shift);
                self.ecn.receive(&segment);
                self.process_ack(now, &segment, shift);
                self.tune(now, &segment);
                self.process_text(now, segment);
                true
            }
            Err(Dropped) => {
                self.dropped += 1;
                false
            }
        }
    }

    #[inline]
    fn check(&mut self, now: Instant, segment: &mut Segment) -> Check {
        self.check_syn_received(segment)?;
        // RFC 7323 section 5.3 (R1): PAWS comes before the sequence number.
        self.check_timestamps(now, segment)?;
        self.check_sequence(now, segment)?;
        self.check_flags(now, segment)?;
        self.check_ack(now, segment)
    }

    /// Handles the peer's repeated SYN, or its SYN-ACK in a simultaneous open (RFC 9293 section 3.5
    /// figure 7). The SYN itself then lies before the window, and only its ACK counts.
    #[inline]
    fn check_syn_received(&mut self, segment: &mut Segment) -> Check {
        let syn = segment.flags.contains(Flags::SYN) && segment.seq == self.rx.irs();
        if self.state != State::SynReceived || !syn || segment.flags.contains(Flags::RST) {
            return Ok(());
        }
        if !segment.flags.contains(Flags::ACK) {
            // Our SYN-ACK was lost.
            self.syn_due = true;
            self.ecn.take_syn_again(segment.flags);
            self.tx.set_ecn(self.ecn.is_agreed());
            return Err(Dropped);
        }
        segment.seq += 1;
        segment.flags = segment.flags.without(Flags::SYN.with(Flags::ECE));
        // The peer waits for an acknowledgement of its SYN-ACK.
        self.rx.acknowledge();
        Ok(())
    }

    /// PAWS (RFC 7323 section 5.3). Once timestamps are negotiated, a segment without them is
    /// dropped (section 3.2).
    #[inline]
    fn check_timestamps(&mut self, now: Instant, segment: &Segment) -> Check {
        let Some(stamps) = &self.stamps else { return Ok(()) };
        // RFC 7323 section 5.3 (R1): PAWS does not apply to resets.
        if segment.flags.contains(Flags::RST) {
            return Ok(());
        }
        let Some(theirs) = segment.options.timestamps else { return Err(Dropped) };
        if stamps.is_old(now, theirs.value) {
            self.answer_unacceptable(now, segment);
            return Err(Dropped);
        }
        Ok(())
    }

    /// First check: the sequence number (RFC 9293 section 3.10.7.4). A segment entirely outside of
    /// the window is answered and dropped, with two exceptions in which the ACK is still processed.
    /// One is a segment at RCV.NXT while our window is closed. The other is a segment that may come
    /// from a peer in the persist state: it cannot know whether we have taken its last byte. If
    /// both ends probe, each would otherwise treat the acknowledgements of the other as old, and
    /// neither would make progress.
    #[inline]
    fn check_sequence(&mut self, now: Instant, segment: &mut Segment) -> Check {
        let (nxt, window) = (self.rx.nxt(), self.rx.window());
        let right = nxt + window;
        let acceptable = if segment.seq_len() == 0 {
            // The right edge is acceptable too: SND.NXT stands there when the whole window is in
            // flight.
            segment.seq.ge(nxt) && segment.seq.le(right)
        } else {
            segment.seq.lt(right) && segment.seq_end().gt(nxt)
        };
        if acceptable {
            return Ok(());
        }
        if segment.flags.contains(Flags::RST) {
            // A reset at RCV.NXT is valid even with a closed window.
            return if segment.seq == nxt { Ok(()) } else { Err(Dropped) };
        }
        if self.is_repetition(now, segment) {
            self.take_stamp(now, segment);
        }
        if self.state == State::TimeWait && segment.flags.contains(Flags::FIN) {
            // Our last ACK was lost.
            self.wait(now);
        }
        self.answer_unacceptable(now, segment);
        if (window == 0 && segment.seq == nxt) || is_probe(segment, nxt) {
            segment.payload.clear();
            segment.flags = Flags(segment.flags.0 & !Flags::FIN.0);
            return Ok(());
        }
        Err(Dropped)
    }

    /// Whether the segment, entirely before RCV.NXT, is a retransmission because our
    /// acknowledgement was lost. The answer then echoes the timestamp of the retransmission;
    /// otherwise the peer would measure from the first copy (RFC 7323 section 4.3).
    ///
    /// A blind attacker must not be able to set TS.Recent, because PAWS drops older segments. The
    /// segment therefore has to meet the conditions of a segment in the window: a number that can
    /// be in flight and an acceptable acknowledgement (RFC 5961 section 5.2). In addition, its
    /// timestamp must not advance faster than RFC 7323 section 5.4 allows a clock to tick.
    fn is_repetition(&self, now: Instant, segment: &Segment) -> bool {
        let (nxt, flags) = (self.rx.nxt(), segment.flags);
        let back = nxt.distance(segment.seq);
        let in_flight = back > 0 && segment.seq_end().le(nxt) && back as u32 <= self.rx.reach();
        let plain = flags.contains(Flags::ACK) && !flags.contains(Flags::SYN) && segment.seq_len() > 0;
        let ticks = |stamps: &Stamps| {
            segment.options.timestamps.is_some_and(|theirs| stamps.is_plausible(now, theirs.value))
        };
        in_flight && plain && self.acks_plausibly(segment) && self.stamps.as_ref().is_some_and(ticks)
    }

    /// SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.MAX (RFC 5961 section 5.2).
    #[inline]
    fn acks_plausibly(&self, segment: &Segment) -> bool {
        let reach = self.tx.max_window().min(i32::MAX as u32) as i32;
        segment.ack.le(self.tx.max()) && self.tx.una().distance(segment.ack) <= reach
    }

    /// R3 of RFC 7323 section 5.3: updates TS.Recent.
    #[inline]
    fn take_stamp(&mut self, now: Instant, segment: &Segment) {
        if let (Some(stamps), Some(theirs)) = (&mut self.stamps, segment.options.timestamps) {
            stamps.take(now, theirs.value, segment.seq);
        }
    }

    /// Second the RST, fourth the SYN, fifth the presence of an ACK (RFC 5961 sections 3.2 and
    /// 4.2). A RST in the window that is not exact gets a challenge ACK, and so does every SYN, so
    /// that a blind attacker cannot reset the connection.
    #[inline]
    fn check_flags(&mut self, now: Instant, segment: &Segment) -> Check {
        if segment.flags.contains(Flags::RST) {
            if segment.seq == self.rx.nxt() {
                self.be_reset();
            } else {
                self.challenge(now);
            }
            return Err(Dropped);
        }
        if segment.flags.contains(Flags::SYN) {
            self.challenge(now);
            return Err(Dropped);
        }
        if segment.flags.contains(Flags::ACK) { Ok(()) } else { Err(Dropped) }
    }

    fn be_reset(&mut self) {
        let reason = match self.state {
            State::SynSent | State::SynReceived => self.refusal(),
            State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck => CloseReason::Reset,
            State::TimeWait | State::Closed => CloseReason::Graceful,
        };
        self.finish(reason);
    }

    /// Fifth check: the acknowledgement number (RFC 9293 section 3.10.7.4, RFC 5961 section 5.2).
    #[inline]
    fn check_ack(&mut self, now: Instant, segment: &Segment) -> Check {
        if self.state == State::SynReceived {
            if segment.ack.le(self.tx.una()) || segment.ack.gt(self.tx.max()) {
                self.reset = reset_for(segment);
                return Err(Dropped);
            }
            return Ok(());
        }
        if self.acks_plausibly(segment) {
            return Ok(());
        }
        self.challenge(now);
        Err(Dropped)
    }

    /// Rest of the fifth step: SND.UNA, the window, and an acknowledged FIN.
    #[inline]
    fn process_ack(&mut self, now: Instant, segment: &Segment, shift: u8) {
        let echo = segment.options.timestamps.filter(|_| self.stamps.is_some());
        let (window, len) = match &mut self.multipath {
            Some(multipath) if multipath.left.is_none() => {
                let news = multipath.is_news(&segment.mptcp, segment.window);
                (UNBOUNDED, segment.seq_len() + u32::from(news))
            }
            Some(_) | None => (u32::from(segment.window) << shift, segment.seq_len()),
        };
        let a = Acknowledgement {
            seq: segment.seq,
            ack: segment.ack,
            window,
            sack: segment.options.sack.as_slice(),
            len,
            echo: echo.and_then(|theirs| stamps::round_trip(now, theirs.echo)),
            stamp: echo.map(|theirs| theirs.echo),
            ece: segment.flags.contains(Flags::ECE),
        };
        if self.state == State::SynReceived {
            self.tx.set_mss(self.tx.mss());
            self.tx.handle_syn(now, &a);
            self.establish();
        }
        if self.tx.handle_ack(now, &a) == Progress::Moved {
            self.events.raise(Pending::Writable);
        }
        if self.tx.fin_acked() {
            self.our_fin_acked(now);
        }
    }

    fn our_fin_acked(&mut self, now: Instant) {
        match self.state {
            State::FinWait1 => self.enter_fin_wait_2(now),
            State::Closing => self.wait(now),
            State::LastAck => self.finish(CloseReason::Graceful),
            State::SynSent
            | State::SynReceived
            | State::Established
            | State::FinWait2
            | State::CloseWait
            | State::TimeWait
            | State::Closed => {}
        }
    }

    /// Seventh step the data, eighth the FIN.
    #[inline]
    pub(super) fn process_text(&mut self, now: Instant, segment: Segment) {
        let fin = segment.flags.contains(Flags::FIN);
        if segment.payload.is_empty() && !fin {
            return;
        }
        match self.state {
            State::Established | State::FinWait1 | State::FinWait2 => {}
            // The peer sends nothing after its FIN.
            State::CloseWait | State::Closing | State::LastAck | State::TimeWait => return,
            State::SynSent | State::SynReceived | State::Closed => return,
        }
        if self.refuses_text(now, &segment) {
            return;
        }
        let push =
            self.config.ack_on_push && segment.flags.contains(Flags::PSH) && !segment.payload.is_empty();
        let sack = sack_len(&segment.options.sack);
        let arrival = self.rx.receive(now, segment.seq, segment.payload, fin, sack);
        if push {
            self.rx.acknowledge_once();
        }
        match arrival {
            Arrival::Nothing => {}
            Arrival::Data => self.events.raise(Pending::Readable),
            Arrival::End => {
                if self.rx.readable() > 0 {
                    self.events.raise(Pending::Readable);
                }
                self.events.raise(Pending::PeerClosed);
                self.peer_closed(now);
            }
        }
    }

    fn peer_closed(&mut self, now: Instant) {
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.wait(now),
            State::SynSent
            | State::SynReceived
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait
            | State::Closed => {}
        }
    }

    /// Answers an unacceptable segment. The number of bare acknowledgements is limited, because two
    /// ends out of step would otherwise answer each other forever. Window probes have a limit of
    /// their own: a peer gives up without an answer, and an attacker who cannot guess its numbers
    /// must not exhaust that limit.
    fn answer_unacceptable(&mut self, now: Instant, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        if segment.seq_len() > 0 && !segment.flags.contains(Flags::SYN) {
            self.rx.note_old(segment.seq, segment.seq_end());
            self.rx.acknowledge();
        } else if is_probe(segment, self.rx.nxt()) && self.acks_plausibly(segment) {
            if self.probe_answers.permits(now) {
                self.rx.acknowledge_once();
            }
        } else {
            self.challenge(now);
        }
    }

    /// Schedules a challenge ACK (RFC 5961 section 7).
    fn challenge(&mut self, now: Instant) {
        if self.challenges.permits(now) {
            self.rx.acknowledge_once();
        }
    }
}

/// Option bytes of a segment's SACK blocks, with the padding that most senders use.
#[inline]
fn sack_len(sack: &SackBlocks) -> u32 {
    let blocks = sack.as_slice().len();
    if blocks == 0 { 0 } else { (SACK_HEAD + SACK_BLOCK * blocks) as u32 }
}

/// Whether the segment is a window probe whose byte we have, or an acknowledgement of a peer that
/// has sent one.
#[inline]
fn is_probe(segment: &Segment, nxt: SeqNumber) -> bool {
    segment.seq + 1 == nxt && segment.seq_len() <= 1 && !segment.flags.contains(Flags::SYN)
}

/// Limit of the number of answers of one kind per period.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerLimit {
    most: u8,
    span: Duration,
    since: Instant,
    sent: u8,
}

impl AnswerLimit {
    /// Challenge ACKs (RFC 5961 section 7).
    pub(super) const CHALLENGES: Self = Self::new(10, Duration::from_secs(5));
    /// Answers to probes. Probes back off, so a low rate is enough. Without a limit, two ends that
    /// probe each other would take answers for probes.
    pub(super) const PROBES: Self = Self::new(2, Duration::from_secs(1));

    const fn new(most: u8, span: Duration) -> Self {
        Self { most, span, since: Instant::ZERO, sent: 0 }
    }

    fn permits(&mut self, now: Instant) -> bool {
        if now.saturating_since(self.since) >= self.span {
            (self.since, self.sent) = (now, 0);
        }
        self.sent += u8::from(self.sent <= self.most);
        self.sent <= self.most
    }
}
