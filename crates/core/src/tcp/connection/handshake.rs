//! The three ways to ESTABLISHED (RFC 9293 section 3.5) and the negotiated options.

use super::events::Pending;
use super::stamps::{self, Stamps};
use super::{CloseReason, Connection, Opening, State, reset_for};
use crate::segment::{Flags, Mptcp, Options, Segment, SeqNumber, Timestamps};
use crate::tcp::config::SackRole;
use crate::tcp::multipath::UNBOUNDED;
use crate::tcp::sender::Acknowledgement;
use crate::time::Instant;

impl Connection {
    /// Processes a segment in SYN-SENT (RFC 9293 section 3.10.7.3).
    pub(super) fn segment_in_syn_sent(&mut self, now: Instant, segment: Segment) {
        let has = |flag| segment.flags.contains(flag);
        let acks = has(Flags::ACK);
        // First check: an unacceptable ACK belongs to another incarnation of the connection, so it
        // is answered with a reset.
        if acks && (segment.ack.le(self.tx.una()) || segment.ack.gt(self.tx.max())) {
            self.dropped += 1;
            self.reset = reset_for(&segment);
            return;
        }
        if has(Flags::RST) {
            // Second check: an acceptable ACK proves that the sender of the reset has seen our SYN.
            // Without it the reset may be forged.
            self.dropped += u64::from(!acks);
            if acks {
                self.finish(CloseReason::Refused);
            }
            return;
        }
        if !has(Flags::SYN) {
            self.dropped += 1;
            return;
        }
        self.take_syn(now, &segment);
        self.tell_multipath(&segment, segment.seq + 1, 0);
        if acks {
            self.syn_due = false;
            self.rx.acknowledge_once();
            self.establish();
            let text = Segment { seq: segment.seq + 1, ..segment };
            self.process_text(now, text);
        } else {
            // Simultaneous open: both sides answer the other's SYN with a SYN-ACK.
            self.state = State::SynReceived;
            self.syn_due = true;
        }
    }

    /// Processes sequence number, window and options of the peer's SYN.
    pub(super) fn take_syn(&mut self, now: Instant, syn: &Segment) {
        let options = &syn.options;
        // Windows are scaled only if both SYNs have the option (RFC 7323 section 2.2).
        let (ours, theirs) = match (self.config.window_scale, options.window_scale) {
            (Some(ours), Some(theirs)) => (ours.min(MAX_SHIFT), theirs.min(MAX_SHIFT)),
            (Some(_) | None, _) => (0, 0),
        };
        self.send_shift = theirs;
        self.peer_scales = options.window_scale.is_some();
        self.rx.synchronise(syn.seq, ours);
        self.stamps = match options.timestamps {
            Some(theirs) if self.config.timestamps => Some(Stamps::new(now, theirs.value, syn.seq)),
            Some(_) | None => None,
        };
        self.sends_sack = options.sack_permitted && self.sack_roles().sends;
        self.rx.report_duplicates(self.sends_sack && self.config.dsack);
        if options.sack_permitted {
            self.tx.expect_sack();
        }
        // Without the option the default MSS applies (RFC 9293 section 3.7.1).
        let peer = options.mss.unwrap_or(self.config.default_mss).max(LEAST_MSS);
        let stamped = if self.stamps.is_some() { STAMPS_LEN } else { 0 };
        let options_len = stamped + self.multipath_overhead();
        let mss = u32::from(peer.min(self.config.mss).saturating_sub(options_len));
        self.tx.set_mss(mss);
        // What the peer accepts is the best guess of what it sends.
        self.rx.set_mss(mss);
        let ack = if syn.flags.contains(Flags::ACK) { syn.ack } else { self.tx.una() };
        // SEG.WND of a SYN is never scaled (RFC 7323 section 2.2).
        let window = if self.multipath.is_some() { UNBOUNDED } else { u32::from(syn.window) };
        self.ecn.take_syn(syn.flags);
        self.tx.set_ecn(self.ecn.is_agreed());
        let sack = options.sack.as_slice();
        let answers = syn.flags.contains(Flags::ACK) && self.stamps.is_some();
        let stamp = options.timestamps.filter(|_| answers).map(|theirs| theirs.echo);
        let echo = stamp.and_then(|stamp| stamps::round_trip(now, stamp));
        let a = Acknowledgement { seq: syn.seq, ack, window, sack, len: 1, echo, stamp, ece: false };
        self.tx.handle_syn(now, &a);
    }

    /// Enters ESTABLISHED, or FIN-WAIT-1 if the owner has closed in the meantime.
    pub(super) fn establish(&mut self) {
        self.state = if self.closing { State::FinWait1 } else { State::Established };
        self.syn_due = false;
        self.events.raise(Pending::Established);
    }

    /// Returns the SYN or SYN-ACK to send.
    pub(super) fn poll_handshake(&mut self, now: Instant) -> Option<Segment> {
        if !self.syn_due {
            return self.poll_ack(now);
        }
        self.syn_due = false;
        let seq = self.tx.send_syn(now);
        let answers = self.state == State::SynReceived;
        if answers {
            self.rx.acknowledged();
        }
        Some(Segment {
            src_port: self.local_port,
            dst_port: self.remote_port,
            seq,
            ack: if answers { self.rx.nxt() } else { Default::default() },
            flags: Flags::SYN.with(if answers { Flags::ACK.with(self.ecn.answer()) } else { self.ecn.ask() }),
            // A repetition must not shrink the window that was offered before (RFC 9293 section
            // 3.8.6).
            window: if answers { self.rx.window().min(0xffff) as u16 } else { self.rx.syn_window() },
            options: if answers { self.answer(now) } else { self.offer(now) },
            mptcp: match &self.multipath {
                Some(multipath) => Mptcp::only(multipath.syn.clone()),
                None => Mptcp::NONE,
            },
            ..Segment::default()
        })
    }

    fn offer(&self, now: Instant) -> Options {
        Options {
            mss: Some(self.config.mss),
            window_scale: self.config.window_scale.map(|shift| shift.min(MAX_SHIFT)),
            sack_permitted: self.sack_roles().permits,
            timestamps: self.config.timestamps.then(|| Timestamps { value: stamps::clock(now), echo: 0 }),
            ..Options::default()
        }
    }

    /// Options of a SYN-ACK: those of our offer that the peer has offered too. SACK-permitted is
    /// independent per direction, so ours is sent whether or not the peer permits SACK.
    fn answer(&mut self, now: Instant) -> Options {
        let ack = self.rx.nxt();
        Options {
            window_scale: self.scaling(),
            timestamps: self.stamps.as_mut().map(|stamps| stamps.stamp(now, ack)),
            ..self.offer(now)
        }
    }

    fn scaling(&self) -> Option<u8> {
        self.config.window_scale.filter(|_| self.peer_scales).map(|shift| shift.min(MAX_SHIFT))
    }

    fn sack_roles(&self) -> SackRoles {
        match self.config.sack {
            SackRole::Off => SackRoles { permits: false, sends: false },
            SackRole::Receiver => SackRoles { permits: false, sends: true },
            SackRole::Sender => SackRoles { permits: true, sends: false },
            SackRole::Both => SackRoles { permits: true, sends: true },
        }
    }

    /// The close reason of a reset handshake.
    pub(super) fn refusal(&self) -> CloseReason {
        match self.opening {
            Opening::Active => CloseReason::Refused,
            Opening::Passive => CloseReason::Reset,
        }
    }

    /// Handles a notice that the path drops packets which are too long (RFC 1191, RFC 8201):
    /// segments must not be longer than `mss` bytes without the headers of IP and TCP. `seq` is the
    /// number of the segment that was dropped. Returns whether the notice is about data in flight
    /// (RFC 5927 section 4.1) and reduces the MSS.
    pub fn handle_path_mtu(&mut self, now: Instant, mss: u16, seq: SeqNumber) -> bool {
        if matches!(self.state, State::Closed | State::SynSent | State::SynReceived | State::TimeWait) {
            return false;
        }
        let stamped = if self.stamps.is_some() { STAMPS_LEN } else { 0 };
        let mss = u32::from(mss.max(LEAST_MSS).saturating_sub(stamped + self.multipath_overhead()));
        if seq.lt(self.tx.una()) || self.tx.max().le(seq) || mss >= self.tx.mss() {
            return false;
        }
        self.tx.shorten(now, mss);
        true
    }
}

/// Meaning of a [`SackRole`] on the wire.
struct SackRoles {
    permits: bool,
    sends: bool,
}

/// Largest shift count (RFC 7323 section 2.3).
const MAX_SHIFT: u8 = 14;
/// Lower bound of the MSS, as on Linux: a peer must not make us send tiny segments, which consist
/// mostly of headers.
const LEAST_MSS: u16 = 48;
/// Length of the timestamps option with padding (RFC 7323 appendix A).
const STAMPS_LEN: u16 = 12;
