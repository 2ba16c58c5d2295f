//! State of one connection in a node, without its segments.

use super::config::{Config, FlyingStart, Samples, Validation};
use super::flow::{Key, Way};
use super::index::NONE;
use crate::segment::{Flags, Segment, SeqNumber, Timestamps};
use crate::time::{Duration, Instant};

/// Both directions of a connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) key: Key,
    pub(super) last_seen: Instant,
    /// Links of the table's list by `last_seen`.
    pub(super) older: u32,
    pub(super) newer: u32,
    pub(super) halves: [Half; 2],
    /// The numbers of the flows in the cache, which may have lost their segments since.
    pub(super) flows: [u32; 2],
}

impl Connection {
    pub(super) fn new(key: Key, now: Instant, flows: [u32; 2]) -> Self {
        Self {
            key,
            last_seen: now,
            older: NONE,
            newer: NONE,
            halves: [Half::default(), Half::default()],
            flows,
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

    /// Whether the responder agreed to SACK, or SACK blocks were seen.
    pub(super) fn speaks_sack(&self) -> bool {
        self.halves[0].has(Half::SACK_SPOKEN)
    }

    pub(super) fn set_speaks_sack(&mut self, on: bool) {
        self.halves[0].set(Half::SACK_SPOKEN, on);
    }

    /// Whether the last segment is more recent than the least retransmission time-out of an
    /// endpoint.
    pub(super) fn is_live(&self, now: Instant) -> bool {
        now.saturating_since(self.last_seen) < LATEST_STRAGGLER
    }

    /// Whether the numbers of a segment fit the connection: a stale or forged segment must not
    /// change the state (RFC 9293 section 3.10.7.4, RFC 5961 sections 3 to 5).
    #[inline]
    pub(super) fn accepts(&self, way: Way, segment: &Segment, config: &Config) -> bool {
        let (forth, back) = (self.half(way), self.half(way.back()));
        let acks = segment.flags.contains(Flags::ACK);
        if segment.flags.contains(Flags::RST) {
            // RFC 5961 section 3.2 requires RCV.NXT. The node knows the last acknowledgement and
            // the last data sent. An endpoint that has sent nothing yet refuses the connection (RFC
            // 9293 section 3.10.7.3).
            let of_data = forth.has(Half::HIGHEST_KNOWN) && segment.seq == forth.highest
                || forth.has(Half::ACKED_KNOWN) && segment.seq == forth.acked;
            let of_ack = back.knows_ack() && segment.seq == back.ack_seq;
            let refuses = acks && !forth.has(Half::HIGHEST_KNOWN) && back.has(Half::HIGHEST_KNOWN);
            return of_data || of_ack || refuses && segment.ack == back.highest;
        }
        if segment.flags.contains(Flags::SYN) && !acks {
            return forth.knows_syn(segment);
        }
        forth.fits_data(segment, config)
            && (!acks || back.fits(segment.ack, config.flight) && back.accounts_for(segment.ack))
    }

    /// Whether both FINs are acknowledged.
    pub(super) fn is_over(&self) -> bool {
        self.halves.iter().all(|half| half.has(Half::FIN_ACKED))
    }
}

/// The data of one direction, and the acknowledgements for it that come back.
#[derive(Clone, Debug, Default)]
pub(super) struct Half {
    /// Start of the running measurement.
    sample_at: Instant,
    /// When the highest sequence number was last exceeded.
    advanced_at: Instant,
    /// When the newest acknowledgement was last sent by this node.
    pub(super) ack_sent_at: Instant,
    /// Just past the highest byte seen.
    highest: SeqNumber,
    /// The highest acknowledgement number that the seen data can account for.
    pub(super) acked: SeqNumber,
    /// End of the measured segment. The acknowledgement counts that moves from its beginning past
    /// its end.
    sample_end: SeqNumber,
    /// SND.NXT of the newest acknowledgement, and its timestamps.
    ack_seq: SeqNumber,
    ack_stamps: Timestamps,
    /// Smoothed local round-trip time in microseconds; 0 before the first measurement.
    srtt: u32,
    sample_len: u16,
    /// Window of the newest segment with the same acknowledgement number.
    ack_window: u16,
    flags: u16,
    /// The window of acknowledgements is a multiple of 2 to the power of this less 1 (RFC 7323
    /// section 2); 0 if no SYN was seen.
    scale: u8,
    /// Number of consecutive equal acknowledgements.
    duplicates: u8,
    /// Recent amount of reordering.
    reordering: u8,
    /// Number of repetitions of the newest acknowledgement.
    pub(super) ack_repeats: u8,
    /// Number of old segments answered since the last sign of the receiver.
    pub(super) answers: u8,
}

/// Relation of a data segment to earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// The segment ends above all earlier ones.
    New,
    /// The segment ends below an earlier one: it was retransmitted or overtaken.
    Old,
}

/// Information of an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AckNews {
    /// Whether the acknowledgement covers more than any before, or changes the window.
    pub(super) advances: bool,
    /// A measurement was completed.
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
    /// The node is to send the newest acknowledgement.
    pub(super) const ACK_PENDING: u16 = 1 << 7;
    /// The node is to send it unless a newer one passes in time.
    pub(super) const ACK_ARMED: u16 = 1 << 8;
    /// An acknowledgement without payload was forwarded and can be repeated.
    const ACK_KNOWN: u16 = 1 << 9;
    /// The acknowledgement carries ECE.
    const ECHOES: u16 = 1 << 10;
    /// The node has offered SACK on behalf of the sender of this data.
    pub(super) const WITHOUT_SACK: u16 = 1 << 11;
    /// The responder agreed to SACK, or SACK blocks were seen: a flag of the first half for both.
    const SACK_SPOKEN: u16 = 1 << 12;

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

    /// Smoothed local round-trip time, from this node to the receiver and back.
    #[inline]
    pub(super) fn srtt(&self) -> Option<Duration> {
        (self.srtt != 0).then(|| Duration::from_micros(u64::from(self.srtt)))
    }

    /// Handles a segment with data, SYN or FIN: starts or abandons a measurement; returns true with
    /// the latter. Without flying start a node has no measurement before the first data (section
    /// IV-C).
    #[inline]
    pub(super) fn observe_data(
        &mut self,
        now: Instant,
        segment: &Segment,
        (flying_start, samples): (FlyingStart, Samples),
    ) -> (Arrival, bool) {
        let end = segment.seq_end();
        let syn = segment.flags.contains(Flags::SYN);
        let fin = segment.flags.contains(Flags::FIN);
        if self.has(Self::HIGHEST_KNOWN) && end.le(self.highest) {
            if fin && end == self.highest {
                self.set(Self::FIN_SEEN, true);
            }
            // The time-out of the endpoint is not part of the round trip; retransmissions of
            // neighbours are (section IV-C).
            let of_the_end = now.saturating_since(self.sample_at) >= LEAST_SYN_TIMEOUT;
            if syn && self.has(Self::SYN_SAMPLE) && of_the_end {
                self.sample_at = now;
            }
            return (Arrival::Old, self.observe_old(now, segment.seq));
        }
        self.reordering = self.reordering.saturating_sub(1);
        self.highest = end;
        // No data follows a FIN: if data does, the FIN was not valid.
        self.set(Self::FIN_SEEN, fin);
        self.advanced_at = now;
        self.set(Self::HIGHEST_KNOWN, true);
        let measures = samples == Samples::OneAtATime && (!syn || flying_start == FlyingStart::On);
        if measures && !self.has(Self::SAMPLING) {
            self.set(Self::SAMPLING, true);
            self.set(Self::SYN_SAMPLE, syn);
            self.sample_len = segment.seq_len().min(u32::from(u16::MAX)) as u16;
            self.sample_end = end;
            self.sample_at = now;
        }
        (Arrival::New, false)
    }

    /// Handles a segment that is not new. No answer of an endpoint arrives within half a round
    /// trip, so a segment that follows a higher one so closely was overtaken.
    fn observe_old(&mut self, now: Instant, seq: SeqNumber) -> bool {
        let soon = self.srtt().is_some_and(|srtt| now.saturating_since(self.advanced_at) < srtt / 2);
        if soon && self.has(Self::ACKED_KNOWN) && seq.ge(self.acked) {
            self.reordering = self.reordering.saturating_add(REORDERING_STEP);
        }
        self.cancel_sample()
    }

    /// Abandons the measurement after a retransmission (erratum D16). A SYN is measured from its
    /// first transmission, because its retransmissions are part of the path (section IV-C).
    #[inline]
    pub(super) fn cancel_sample(&mut self) -> bool {
        let cancel = self.has(Self::SAMPLING) && !self.has(Self::SYN_SAMPLE);
        if cancel {
            self.set(Self::SAMPLING, false);
        }
        cancel
    }

    /// Handles an acknowledgement for the data of this half.
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
            // Until one without payload passes, there is nothing to repeat: data has its own
            // custody.
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
                // The receiver of a repetition would find it older than this data (RFC 9293 section
                // 3.10.7.4, PAWS).
                self.set(Self::ACK_KNOWN | Self::ACK_PENDING | Self::ACK_ARMED, false);
            }
        } else if now.saturating_since(self.ack_sent_at) >= LATEST_STRAGGLER {
            // Not overtaken, but of another connection than the state, so the old acknowledgement
            // number is discarded.
            self.acked = ack;
            self.set(Self::ACK_KNOWN | Self::ACK_PENDING | Self::ACK_ARMED, false);
        }
        // No data follows a FIN.
        if self.has(Self::FIN_SEEN) && ack == self.highest {
            self.set(Self::FIN_ACKED, true);
        }
        let hole = !segment.options.sack.is_empty() || (bare && !news.advances);
        let ends = self.has(Self::SAMPLING) && accountable && ack.ge(self.sample_end);
        if self.has(Self::SAMPLING) && self.has(Self::SYN_SAMPLE) {
            news.measured = ends;
        } else {
            // There is a hole, or one was filled: the acknowledgement has waited for a
            // retransmission somewhere.
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

    /// Smoothing of RFC 6298 with 1/8.
    pub(super) fn smooth(&mut self, rtt: Duration) {
        let micros = u32::try_from(rtt.as_nanos() / 1000).unwrap_or(u32::MAX).max(1);
        self.srtt = if self.srtt == 0 {
            micros
        } else {
            ((u64::from(self.srtt) * 7 + u64::from(micros)) / 8).max(1) as u32
        };
    }

    /// Stores the newest acknowledgement without payload.
    #[inline]
    pub(super) fn remember_ack(&mut self, now: Instant, segment: &Segment) {
        if !self.has(Self::ACKED_KNOWN) || segment.ack != self.acked {
            return;
        }
        // To Multipath TCP, a copy without its options would be another message (RFC 8684 section
        // 3.7).
        self.set(Self::ACK_KNOWN, segment.mptcp.is_empty());
        self.ack_seq = segment.seq;
        self.set(Self::ECHOES, segment.flags.contains(Flags::ECE));
        self.set(Self::STAMPED, segment.options.timestamps.is_some());
        self.ack_stamps = segment.options.timestamps.unwrap_or_default();
        self.ack_sent_at = now;
    }

    /// Whether there is an acknowledgement to repeat.
    pub(super) fn knows_ack(&self) -> bool {
        self.has(Self::ACK_KNOWN)
    }

    /// The newest acknowledgement for repetition, without SACK, which is advisory only (RFC 2018
    /// section 8).
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

    /// Whether the receiver has acknowledged everything below `end`.
    #[inline]
    pub(super) fn is_acked(&self, end: SeqNumber) -> bool {
        self.has(Self::ACKED_KNOWN) && end.le(self.acked)
    }

    /// Whether the number is within one flight of the seen data.
    #[inline]
    pub(super) fn fits(&self, seq: SeqNumber, flight: u32) -> bool {
        !self.has(Self::HIGHEST_KNOWN) || self.highest.distance(seq).unsigned_abs() <= flight
    }

    /// Whether the sequence number of a segment of this direction is acceptable.
    #[inline]
    pub(super) fn fits_data(&self, segment: &Segment, config: &Config) -> bool {
        if !self.fits(segment.seq, config.flight) {
            return false;
        }
        if config.validation == Validation::WithinFlight || !self.has(Self::HIGHEST_KNOWN) {
            return true;
        }
        if segment.seq_len() == 0 {
            return self.highest.distance(segment.seq).unsigned_abs() <= NEAR;
        }
        let window = match (self.scale, self.has(Self::ACKED_KNOWN)) {
            (1.., true) => u32::from(self.ack_window) << (self.scale - 1),
            _ => UNKNOWN_WINDOW,
        };
        let above = i64::from(segment.seq_end().distance(self.highest));
        // A retransmission may belong to an earlier window.
        (-i64::from(window.max(UNKNOWN_WINDOW))..=i64::from(window.max(NEAR))).contains(&above)
    }

    /// Notes the window scale option of the receiver's SYN.
    pub(super) fn set_scale(&mut self, shift: Option<u8>) {
        self.scale = 1 + shift.unwrap_or(0).min(LARGEST_SHIFT);
    }

    /// Whether the seen data covers the acknowledgement number.
    #[inline]
    fn accounts_for(&self, ack: SeqNumber) -> bool {
        !self.has(Self::HIGHEST_KNOWN) || ack.le(self.highest)
    }

    /// Whether a segment with data, SYN or FIN was seen.
    pub(super) fn is_seen(&self) -> bool {
        self.has(Self::HIGHEST_KNOWN)
    }

    /// Whether the other end has acknowledged any data.
    pub(super) fn is_answered(&self) -> bool {
        self.has(Self::ACKED_KNOWN)
    }

    /// Whether the duplicates indicate a loss: one suffices, or three if reordering was observed.
    pub(super) fn duplicates_suffice(&self) -> bool {
        self.duplicates >= if self.reordering == 0 { 1 } else { DUP_THRESH }
    }

    /// Whether a SYN belongs to the seen data: a retransmission, not a new connection between the
    /// same ends.
    pub(super) fn knows_syn(&self, segment: &Segment) -> bool {
        let above = self.highest.distance(segment.seq_end());
        !self.has(Self::HIGHEST_KNOWN) || (0..OLD_SYN).contains(&above)
    }
}

/// Earliest retransmission of a SYN by an endpoint (RFC 6298 section 2.1).
const LEAST_SYN_TIMEOUT: Duration = Duration::from_secs(1);
/// RFC 5681 section 3.2.
const DUP_THRESH: u8 = 3;
/// Upper bound of the time by which a newer acknowledgement overtakes an older one.
const LATEST_STRAGGLER: Duration = Duration::from_secs(1);
/// A SYN followed by fewer bytes than this still belongs to the same connection.
const OLD_SYN: i32 = 1 << 16;
/// How far the sequence number of an acknowledgement without data may be from the data seen, in
/// bytes: data may have been lost before it.
const NEAR: u32 = 1 << 16;
/// Window of a receiver before its first acknowledgement, or whose SYN was not seen, in bytes.
const UNKNOWN_WINDOW: u32 = 1 << 20;
/// RFC 7323 section 2.3.
const LARGEST_SHIFT: u8 = 14;
/// Number of in-order segments for which one reordering raises the threshold.
const REORDERING_STEP: u8 = 32;
