//! What a node remembers of one connection. No segment is in here.

use super::config::FlyingStart;
use super::flow::{Key, Way};
use crate::segment::{Flags, Segment, SeqNumber, Timestamps};
use crate::time::{Duration, Instant};

/// Both directions of a connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) key: Key,
    pub(super) last_seen: Instant,
    pub(super) halves: [Half; 2],
    /// The responder agreed to SACK, or blocks were seen.
    pub(super) sack_spoken: bool,
    /// The node offered SACK in the name of this end.
    pub(super) without_sack: [bool; 2],
}

impl Connection {
    pub(super) fn new(key: Key, now: Instant) -> Self {
        Self {
            key,
            last_seen: now,
            halves: [Half::default(), Half::default()],
            sack_spoken: false,
            without_sack: [false; 2],
        }
    }

    #[inline]
    pub(super) fn half(&self, way: Way) -> &Half {
        &self.halves[way as usize]
    }

    #[inline]
    pub(super) fn half_mut(&mut self, way: Way) -> &mut Half {
        &mut self.halves[way as usize]
    }

    /// It was heard of within the least retransmission time-out of its ends.
    pub(super) fn is_live(&self, now: Instant) -> bool {
        now.saturating_since(self.last_seen) < LATEST_STRAGGLER
    }

    /// The numbers of a segment fit what was seen of the connection: those of a stale or forged one
    /// must not change its state (RFC 9293 section 3.10.7.4, RFC 5961 sections 3 to 5).
    #[inline]
    pub(super) fn accepts(&self, way: Way, segment: &Segment) -> bool {
        let (forth, back) = (self.half(way), self.half(way.back()));
        let acks = segment.flags.contains(Flags::ACK);
        if segment.flags.contains(Flags::RST) {
            // RFC 5961 section 3.2 wants RCV.NXT. Of that a node knows what was acknowledged, and
            // what was sent last. An end that has said nothing refuses the connection (RFC 9293
            // section 3.10.7.3).
            let of_data = forth.has(Half::HIGHEST_KNOWN) && segment.seq == forth.highest
                || forth.has(Half::ACKED_KNOWN) && segment.seq == forth.acked;
            let of_ack = back.knows_ack() && segment.seq == back.ack_seq;
            let refuses = acks && !forth.has(Half::HIGHEST_KNOWN) && back.has(Half::HIGHEST_KNOWN);
            return of_data || of_ack || refuses && segment.ack == back.highest;
        }
        if segment.flags.contains(Flags::SYN) && !acks {
            return forth.knows_syn(segment);
        }
        forth.fits(segment.seq) && (!acks || back.fits(segment.ack) && back.accounts_for(segment.ack))
    }

    /// Both ends have said their last word, and each has heard the other's.
    pub(super) fn is_over(&self) -> bool {
        self.halves.iter().all(|half| half.has(Half::FIN_ACKED))
    }
}

/// The data that flow in one direction, and the acknowledgements for them that come back.
#[derive(Clone, Debug, Default)]
pub(super) struct Half {
    /// When the running measurement began.
    sample_at: Instant,
    /// When the highest sequence number was last exceeded.
    advanced_at: Instant,
    /// When the newest acknowledgement last left this node.
    pub(super) ack_sent_at: Instant,
    /// Just past the highest byte seen.
    highest: SeqNumber,
    /// The highest acknowledgement number seen that the data seen can account for.
    pub(super) acked: SeqNumber,
    /// The segment that is measured: the acknowledgement that takes the receiver from its begin
    /// past its end counts.
    sample_end: SeqNumber,
    /// SND.NXT in the newest acknowledgement, and its time stamps.
    ack_seq: SeqNumber,
    ack_stamps: Timestamps,
    /// Smoothed local round trip in microseconds; 0 is none yet.
    srtt: u32,
    sample_len: u16,
    /// Window in the newest segment that acknowledges as much.
    ack_window: u16,
    flags: u16,
    /// Acknowledgements in a row that said the same.
    duplicates: u8,
    /// How far segments have been seen to overtake each other of late.
    reordering: u8,
    /// Repetitions of the newest acknowledgement.
    pub(super) ack_repeats: u8,
    /// Old segments answered since the receiver was last heard.
    pub(super) answers: u8,
}

/// What a data segment is to a node that has seen those before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// It ends above all before.
    New,
    /// It does not: repeated, or overtaken.
    Old,
}

/// What an acknowledgement tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AckNews {
    /// It acknowledges more than any before, or changes the window.
    pub(super) advances: bool,
    /// A measurement ended.
    pub(super) measured: bool,
    /// A measurement was abandoned.
    pub(super) cancelled: bool,
}

impl Half {
    const SAMPLING: u16 = 1;
    const SYN_SAMPLE: u16 = 1 << 1;
    const HIGHEST_KNOWN: u16 = 1 << 2;
    const ACKED_KNOWN: u16 = 1 << 3;
    const STAMPED: u16 = 1 << 4;
    const FIN_SEEN: u16 = 1 << 5;
    pub(super) const FIN_ACKED: u16 = 1 << 6;
    /// The newest acknowledgement is to be sent by the node.
    pub(super) const ACK_PENDING: u16 = 1 << 7;
    /// It is to be, unless a newer one passes in time.
    pub(super) const ACK_ARMED: u16 = 1 << 8;
    /// An acknowledgement without payload was forwarded: there is something to repeat.
    const ACK_KNOWN: u16 = 1 << 9;
    /// It carries ECE.
    const ECHOES: u16 = 1 << 10;

    #[inline]
    pub(super) const fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    #[inline]
    pub(super) const fn set(&mut self, flag: u16, on: bool) {
        if on {
            self.flags |= flag;
        } else {
            self.flags &= !flag;
        }
    }

    /// The smoothed local round trip, from here to the receiver and back.
    #[inline]
    pub(super) fn srtt(&self) -> Option<Duration> {
        (self.srtt != 0).then(|| Duration::from_micros(u64::from(self.srtt)))
    }

    /// A segment with data, SYN or FIN passes: a measurement begins or is abandoned. True with the
    /// latter. Without flying start a node knows nothing of the way before the first data (section
    /// IV-C).
    #[inline]
    pub(super) fn observe_data(
        &mut self,
        now: Instant,
        segment: &Segment,
        flying_start: FlyingStart,
    ) -> (Arrival, bool) {
        let end = segment.seq_end();
        let syn = segment.flags.contains(Flags::SYN);
        let fin = segment.flags.contains(Flags::FIN);
        if self.has(Self::HIGHEST_KNOWN) && end.le(self.highest) {
            if fin && end == self.highest {
                self.set(Self::FIN_SEEN, true);
            }
            // The end's own time-out is no part of the round trip; what a neighbour repeats is
            // (section IV-C).
            let of_the_end = now.saturating_since(self.sample_at) >= LEAST_SYN_TIMEOUT;
            if syn && self.has(Self::SYN_SAMPLE) && of_the_end {
                self.sample_at = now;
            }
            return (Arrival::Old, self.observe_old(now, segment.seq));
        }
        self.reordering = self.reordering.saturating_sub(1);
        self.highest = end;
        // Nothing lies beyond a FIN: one that something does is none.
        self.set(Self::FIN_SEEN, fin);
        self.advanced_at = now;
        self.set(Self::HIGHEST_KNOWN, true);
        let measures = !syn || flying_start == FlyingStart::On;
        if measures && !self.has(Self::SAMPLING) {
            self.set(Self::SAMPLING, true);
            self.set(Self::SYN_SAMPLE, syn);
            self.sample_len = segment.seq_len().min(u32::from(u16::MAX)) as u16;
            self.sample_end = end;
            self.sample_at = now;
        }
        (Arrival::New, false)
    }

    /// A segment that is not new. Nothing comes back from an end in less than half a round trip, so
    /// what follows a higher one so closely was overtaken.
    fn observe_old(&mut self, now: Instant, seq: SeqNumber) -> bool {
        let soon = self.srtt().is_some_and(|srtt| now.saturating_since(self.advanced_at) < srtt / 2);
        if soon && self.has(Self::ACKED_KNOWN) && seq.ge(self.acked) {
            self.reordering = self.reordering.saturating_add(REORDERING_STEP);
        }
        self.cancel_sample()
    }

    /// A repetition was seen (erratum D16). A SYN is measured from its first transmission all the
    /// same: the repetitions belong to the path (section IV-C).
    #[inline]
    pub(super) fn cancel_sample(&mut self) -> bool {
        let cancel = self.has(Self::SAMPLING) && !self.has(Self::SYN_SAMPLE);
        if cancel {
            self.set(Self::SAMPLING, false);
        }
        cancel
    }

    /// An acknowledgement for this half's data passes.
    #[inline]
    pub(super) fn observe_ack(&mut self, now: Instant, segment: &Segment) -> AckNews {
        let ack = segment.ack;
        let bare = segment.seq_len() == 0;
        let mut news = AckNews { advances: false, measured: false, cancelled: false };
        if !self.has(Self::HIGHEST_KNOWN) {
            return news;
        }
        let first = !self.has(Self::ACKED_KNOWN);
        let accountable = self.accounts_for(ack);
        let before = self.acked;
        if accountable && (first || ack.gt(self.acked)) {
            self.acked = ack;
            self.set(Self::ACKED_KNOWN, true);
            // Until it passes without payload there is nothing to repeat: data have a custody of
            // their own.
            self.set(Self::ACK_KNOWN | Self::ACK_PENDING | Self::ACK_ARMED, false);
            self.duplicates = 0;
            self.ack_repeats = 0;
            news.advances = true;
        } else if accountable && ack == self.acked {
            news.advances = segment.window != self.ack_window;
            self.duplicates = self.duplicates.saturating_add(u8::from(bare));
        }
        if ack.ge(self.acked) {
            self.answers = 0;
            self.ack_window = segment.window;
            if !bare && segment.seq_end().gt(self.ack_seq) {
                // The receiver of a repetition would find it older than what it has (RFC 9293
                // section 3.10.7.4, PAWS).
                self.set(Self::ACK_KNOWN | Self::ACK_PENDING | Self::ACK_ARMED, false);
            }
        } else if now.saturating_since(self.ack_sent_at) >= LATEST_STRAGGLER {
            // Not overtaken, but of another connection than the state: nothing of it counts as
            // acknowledged.
            self.acked = ack;
            self.set(Self::ACK_KNOWN | Self::ACK_PENDING | Self::ACK_ARMED, false);
        }
        // Nothing lies beyond a FIN.
        if self.has(Self::FIN_SEEN) && ack == self.highest {
            self.set(Self::FIN_ACKED, true);
        }
        let hole = !segment.options.sack.is_empty() || (bare && !news.advances);
        let ends = self.has(Self::SAMPLING) && accountable && ack.ge(self.sample_end);
        if self.has(Self::SAMPLING) && self.has(Self::SYN_SAMPLE) {
            news.measured = ends;
        } else {
            // A hole, or one that was filled: what is acknowledged then has waited for a
            // repetition, somewhere.
            let leaps = ends && (first || before.lt(self.sample_end - u32::from(self.sample_len)));
            news.cancelled = (hole || leaps) && self.cancel_sample();
            news.measured = ends && !news.cancelled;
        }
        if news.measured {
            self.set(Self::SAMPLING, false);
            self.smooth(now.saturating_since(self.sample_at));
        }
        news
    }

    /// RFC 6298's smoothing with 1/8.
    fn smooth(&mut self, rtt: Duration) {
        let micros = u32::try_from(rtt.as_nanos() / 1000).unwrap_or(u32::MAX).max(1);
        self.srtt = if self.srtt == 0 {
            micros
        } else {
            ((u64::from(self.srtt) * 7 + u64::from(micros)) / 8).max(1) as u32
        };
    }

    /// An acknowledgement without payload is forwarded: remember the newest.
    #[inline]
    pub(super) fn remember_ack(&mut self, now: Instant, segment: &Segment) {
        if !self.has(Self::ACKED_KNOWN) || segment.ack != self.acked {
            return;
        }
        // A copy without its options would be another message to Multipath TCP (RFC 8684 section
        // 3.7).
        self.set(Self::ACK_KNOWN, segment.mptcp.is_empty());
        self.ack_seq = segment.seq;
        self.set(Self::ECHOES, segment.flags.contains(Flags::ECE));
        self.set(Self::STAMPED, segment.options.timestamps.is_some());
        self.ack_stamps = segment.options.timestamps.unwrap_or_default();
        self.ack_sent_at = now;
    }

    /// There is an acknowledgement to repeat.
    pub(super) fn knows_ack(&self) -> bool {
        self.has(Self::ACK_KNOWN)
    }

    /// The newest acknowledgement once more, without SACK: that is advice only (RFC 2018 section
    /// 8).
    pub(super) fn ack_segment(&self, (src_port, dst_port): (u16, u16)) -> Segment {
        let mut segment = Segment {
            src_port,
            dst_port,
            seq: self.ack_seq,
            ack: self.acked,
            flags: if self.has(Self::ECHOES) { Flags::ACK.with(Flags::ECE) } else { Flags::ACK },
            window: self.ack_window,
            ..Segment::default()
        };
        segment.options.timestamps = self.has(Self::STAMPED).then_some(self.ack_stamps);
        segment
    }

    /// The receiver has acknowledged everything below `end`.
    #[inline]
    pub(super) fn is_acked(&self, end: SeqNumber) -> bool {
        self.has(Self::ACKED_KNOWN) && end.le(self.acked)
    }

    /// The number is no farther from what was seen than a flight of segments.
    #[inline]
    pub(super) fn fits(&self, seq: SeqNumber) -> bool {
        !self.has(Self::HIGHEST_KNOWN) || self.highest.distance(seq).unsigned_abs() <= LARGEST_FLIGHT as u32
    }

    /// What was seen of the data is as much as that acknowledges.
    #[inline]
    fn accounts_for(&self, ack: SeqNumber) -> bool {
        !self.has(Self::HIGHEST_KNOWN) || ack.le(self.highest)
    }

    /// The other end has acknowledged some of it.
    pub(super) fn is_answered(&self) -> bool {
        self.has(Self::ACKED_KNOWN)
    }

    /// Enough duplicates to call a segment lost: one, or three where segments overtake each other.
    pub(super) fn duplicates_suffice(&self) -> bool {
        self.duplicates >= if self.reordering == 0 { 1 } else { DUP_THRESH }
    }

    /// This SYN belongs to what was seen: it is a repetition, not a new connection between the same
    /// ends.
    pub(super) fn knows_syn(&self, segment: &Segment) -> bool {
        let above = self.highest.distance(segment.seq_end());
        !self.has(Self::HIGHEST_KNOWN) || (0..OLD_SYN).contains(&above)
    }
}

/// No end repeats its SYN earlier (RFC 6298 section 2.1).
const LEAST_SYN_TIMEOUT: Duration = Duration::from_secs(1);
/// RFC 5681 section 3.2.
const DUP_THRESH: u8 = 3;
/// Bytes that a sender has under way at most, as far as a node believes. A segment farther off is
/// of another connection.
pub(super) const LARGEST_FLIGHT: i32 = 1 << 20;
/// An acknowledgement is overtaken by a newer one by less than this.
const LATEST_STRAGGLER: Duration = Duration::from_secs(1);
/// A SYN that so few bytes have followed is still the same one.
const OLD_SYN: i32 = 1 << 16;
/// One overtaking raises the threshold for that many segments in order.
const REORDERING_STEP: u8 = 32;
