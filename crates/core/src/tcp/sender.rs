//! The sending half of a connection: SND.UNA, SND.NXT and the window (RFC 9293 section 3.3.1), the
//! queue of data to send, and the repair of losses.
//!
//! * [`ack`]: processing of acknowledgements (RFC 5681, 6582, 6675).
//! * [`ecn`]: congestion marks (RFC 3168).
//! * [`output`]: which bytes leave next, and whether they may (RFC 9293 section 3.8.6.2.1, Nagle).
//! * [`pacing`]: when data may leave; [`sampling`]: the delivery rate of the path
//!   (draft-ietf-ccwg-bbr).
//! * [`short_queue`]: a limit on the queue at the bottleneck.
//! * [`undo`]: undo of spurious losses (RFC 3522, 4015, 5682).
//! * [`timer`]: retransmission and persist timers (RFC 6298, RFC 9293 section 3.8.6.1).
//!
//! In sequence space the stream consists of the SYN, the bytes written and, once closed, the FIN.

mod ack;
mod delivery;
mod ecn;
mod hystart;
mod output;
mod pacing;
mod prr;
mod queue;
mod rack;
mod repeats;
mod sampling;
mod short_queue;
mod stage;
mod timer;
mod undo;

pub(crate) use ack::{Acknowledgement, Progress};
pub(crate) use ecn::Marked;
pub(crate) use output::{Mark, Outgoing};
pub(crate) use queue::SendQueue;
pub use stage::RecoveryStage;
pub(crate) use timer::Expired;

use alloc::boxed::Box;

use bytes::Bytes;

use self::delivery::Delivery;
use self::ecn::Marking;
use self::hystart::HyStart;
use self::pacing::Pacing;
use self::prr::Prr;
use self::rack::Rack;
use self::repeats::Repeats;
use self::short_queue::ShortQueue;
use self::timer::Timer;
use self::undo::Undo;
use super::config::{Config, InitialWindow, Push, Recovery};
use super::congestion::{AnyController, ByteCounting, Coupling, Repair, Start, Usage, View};
use super::flight::Flight;
use super::multipath::SendMap;
use super::rtt::RttEstimator;
use crate::segment::{DataSeqNumber, SeqNumber};
use crate::time::{Duration, Instant};

/// The sending half of a connection.
#[derive(Debug)]
pub(crate) struct Sender {
    config: Config,
    /// SND.UNA.
    una: SeqNumber,
    /// SND.NXT: just past the highest byte ever sent.
    max: SeqNumber,
    /// Sequence number of the first byte in `queue`.
    base: SeqNumber,
    queue: SendQueue,
    end: StreamEnd,
    window: Window,
    /// Effective send MSS (RFC 9293 section 3.7.1).
    mss: u32,
    /// Option space that SACK blocks take in the next segment.
    reserved: u32,
    congestion: AnyController,
    rtt: RttEstimator,
    timing: Timing,
    phase: Phase,
    /// The end of the last loss episode (`recover` of RFC 6582 section 3.2).
    recover: SeqNumber,
    dup_acks: u32,
    /// Bytes in flight at the first duplicate acknowledgement.
    flight_before: u32,
    /// Bytes that duplicate acknowledgements add to the window.
    inflation: u32,
    /// Whether SND.UNA is to be retransmitted before other data.
    resend: Resend,
    flight: Flight,
    /// Whether the peer reports received data by SACK, or is expected to.
    sacked: bool,
    /// Whether the peer has sent a SACK block.
    saw_block: bool,
    /// Acknowledgements since the last advance of SND.UNA that repeat SND.UNA and report nothing.
    bare: u32,
    /// State of ECN, if negotiated.
    marking: Option<Marking>,
    rack: Rack,
    repeats: Repeats,
    undo: Undo,
    /// Present during the first slow start.
    hystart: Option<HyStart>,
    prr: Prr,
    pacing: Pacing,
    peak: Peak,
    timer: Timer,
    /// Consecutive time-outs or unanswered probes.
    retries: u32,
    /// When data was last sent.
    last_sent: Instant,
    /// When the SYN was first sent.
    first_syn: Instant,
    counts: Counts,
    delivery: Delivery,
    /// Present while the owner wants a short queue.
    short: Option<Box<ShortQueue>>,
    /// Mapping to the data stream, if this is a subflow.
    map: Option<Box<SendMap>>,
    /// Whether the owner has more data for this subflow than the queue holds.
    more: bool,
    /// Whether this subflow may have to send copies of data that another subflow has sent.
    copies: bool,
}

/// SND.WND and the numbers of its last update (RFC 9293 section 3.3.1).
#[derive(Clone, Copy, Debug)]
struct Window {
    wnd: u32,
    /// SND.WL1.
    seq: SeqNumber,
    /// SND.WL2.
    ack: SeqNumber,
    /// MAX.SND.WND.
    max: u32,
}

/// The largest use of the congestion window until SND.UNA reaches `end`.
#[derive(Clone, Copy, Debug)]
struct Peak {
    flight: u32,
    usage: Usage,
    end: SeqNumber,
}

/// Whether the stream has an end yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StreamEnd {
    Open,
    Fin,
}

/// The segment whose round trip is measured, one at a time (RFC 6298 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Timing {
    Idle,
    /// A segment that ends at `end` was sent once, at `at`.
    Running {
        end: SeqNumber,
        at: Instant,
    },
    /// Data was retransmitted: Karn's rule forbids the sample, unless a timestamp identifies the
    /// transmission.
    Spoiled,
}

/// Phase of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// No segment is known to be lost.
    Open,
    /// Fast recovery of RFC 5681 and 6582.
    Fast(Partial),
    /// SACK recovery of RFC 6675.
    Sack,
    /// After a time-out, until the data outstanding at that time is acknowledged: slow start over
    /// the lost data.
    Loss,
}

/// Whether a partial acknowledgement was seen: only the first one restarts the timer (RFC 6582
/// section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Partial {
    None,
    Seen,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Resend {
    Idle,
    /// Retransmit the segment at SND.UNA, regardless of the windows.
    Una,
}

/// Counters for [`super::Info`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    pub(crate) fast_retransmits: u64,
    pub(crate) undone: u64,
    pub(crate) marked: u64,
    pub(crate) bytes_acked: u64,
    pub(crate) bytes_sent: u64,
}

impl Sender {
    pub(crate) fn new(config: &Config, iss: SeqNumber) -> Self {
        let mss = u32::from(config.mss.max(1));
        Self {
            una: iss,
            max: iss,
            base: iss + 1,
            queue: SendQueue::default(),
            end: StreamEnd::Open,
            window: Window { wnd: 0, seq: SeqNumber(0), ack: SeqNumber(0), max: 0 },
            mss,
            reserved: 0,
            congestion: controller(config, mss, mss, iss + 1),
            rtt: RttEstimator::new(config.rto),
            timing: Timing::Idle,
            phase: Phase::Open,
            recover: iss,
            dup_acks: 0,
            flight_before: 0,
            inflation: 0,
            resend: Resend::Idle,
            flight: Flight::default(),
            sacked: false,
            saw_block: false,
            bare: 0,
            marking: None,
            rack: Rack::default(),
            repeats: Repeats::default(),
            undo: Undo::default(),
            hystart: config.hystart.then(HyStart::new),
            prr: Prr::default(),
            pacing: Pacing::default(),
            peak: Peak { flight: 0, usage: Usage::Partial { peak: 0 }, end: iss },
            timer: Timer::Idle,
            retries: 0,
            last_sent: Instant::ZERO,
            first_syn: Instant::ZERO,
            counts: Counts::default(),
            delivery: Delivery::default(),
            short: None,
            map: None,
            more: false,
            copies: false,
            config: *config,
        }
    }

    /// Sets the MSS negotiated in the handshake and restarts the congestion control with it.
    pub(crate) fn set_mss(&mut self, mss: u32) {
        self.mss = mss.max(1);
        // RFC 5681 section 3.1: the initial window is one segment if the SYN was lost.
        self.begin_with(if self.counts.timeouts > 0 { self.mss } else { self.initial_window() });
    }

    /// Starts a fresh congestion controller.
    fn begin_with(&mut self, cwnd: u32) {
        let cwnd = cwnd.min(self.limit()).max(self.mss);
        self.congestion = controller(&self.config, cwnd, self.mss, self.base);
        // Samples need a record of each segment, so they are taken only for controllers that use
        // them.
        self.flight.rate = self.congestion.wants_samples().then(Box::default);
    }

    /// Accepts bytes from the front of `data` up to the size of the send buffer; returns their
    /// number.
    pub(crate) fn write(&mut self, data: &mut Bytes) -> usize {
        // Before the new data is queued: afterwards it is no longer visible that the application
        // was the limit.
        self.check_app_limited();
        let room = self.buffer().saturating_sub(self.queue.len()) as usize;
        let n = data.len().min(room);
        if n > 0 {
            self.queue.push(data.split_to(n));
        }
        n
    }

    /// Sets the size of the send buffer; buffered data stays. Returns whether the buffer was full
    /// and has room now.
    pub(crate) fn set_buffer(&mut self, octets: u32) -> bool {
        let had = self.queue.len() < self.buffer();
        self.config.send_buffer = octets;
        !had && self.queue.len() < self.buffer()
    }

    /// Size of the send buffer in bytes.
    pub(crate) fn buffer(&self) -> u32 {
        self.config.send_buffer.min(MAX_BUFFER)
    }

    /// Bytes written and not yet acknowledged.
    pub(crate) fn buffered(&self) -> u32 {
        self.queue.len()
    }

    /// Sets the mapping of bytes to the data stream; `None` is plain TCP.
    pub(crate) fn set_map(&mut self, map: Option<SendMap>) {
        self.map = map.map(Box::new);
    }

    /// See [`SendMap::widen`].
    pub(crate) fn widen_map(&mut self) {
        self.map.iter_mut().for_each(|map| map.widen());
    }

    /// Reduces the MSS, because the path drops longer segments. Data in flight is sent again in
    /// shorter ones, but nothing was lost to congestion.
    pub(crate) fn shorten(&mut self, now: Instant, mss: u32) {
        self.mss = self.mss.min(mss).max(1);
        if self.una != self.max {
            self.send_again(now);
            self.restart_timer(now);
        }
    }

    /// Enlarges the MSS: options take less space than assumed.
    pub(crate) fn widen_mss(&mut self, octets: u32) {
        self.mss += octets;
    }

    /// Sets the peer's window, which applies to a subflow once it falls back to plain TCP.
    pub(crate) fn bound_window(&mut self, octets: u32) {
        self.window.wnd = octets;
        self.window.max = octets;
    }

    /// As [`Sender::write`], for bytes that belong at `dsn`, regardless of the buffer size; returns
    /// the sequence number after them.
    pub(crate) fn write_mapped(&mut self, dsn: DataSeqNumber, data: Bytes) -> SeqNumber {
        self.check_app_limited();
        let (seq, len) = (self.data_end(), data.len() as u32);
        if let Some(map) = &mut self.map {
            map.push(seq, dsn, len);
        }
        self.queue.push(data);
        seq + len
    }

    /// The data sequence number of the byte at `seq`.
    #[inline]
    pub(crate) fn dsn(&self, seq: SeqNumber) -> Option<DataSeqNumber> {
        self.map.as_ref()?.dsn(seq)
    }

    /// Number of bytes that would leave at once if they were written now. Zero during
    /// retransmissions, or if other data waits, except when the sender takes data ahead
    /// (`takes_ahead`).
    pub(crate) fn room(&self, now: Instant) -> u32 {
        let waiting = self.unsent();
        let waits = waiting > 0 && !self.takes_ahead();
        if self.repairs_timeout() || waits || self.resend != Resend::Idle || self.stands_by() {
            return 0;
        }
        self.paced_room(now, self.window_left().saturating_sub(waiting))
    }

    /// Whether the owner writes all data that may leave now before any of it leaves. The sender
    /// then knows which segment is the last of the window and needs PSH.
    pub(super) fn takes_ahead(&self) -> bool {
        self.config.push == Push::Window && self.phase == Phase::Open && !self.is_paced()
    }

    /// Free space in the congestion window.
    pub(super) fn window_left(&self) -> u32 {
        match self.phase {
            Phase::Sack => {
                // A whole segment must have room (RFC 6675 section 5 step C).
                let room = self.cwnd().saturating_sub(self.flight.pipe());
                if room < self.mss { 0 } else { room }
            }
            Phase::Open | Phase::Fast(_) | Phase::Loss => {
                self.cwnd().saturating_add(self.inflation).saturating_sub(self.occupied())
            }
        }
    }

    /// Sets whether the owner has more data for this subflow than it has written, and whether it
    /// may want copies of data that another subflow has sent.
    pub(crate) fn set_more(&mut self, more: bool, copies: bool) {
        (self.more, self.copies) = (more, copies);
    }

    /// Whether data that a time-out has declared lost is being retransmitted.
    pub(crate) fn repairs_timeout(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Loss) && self.flight.lost() > 0
    }

    /// Whether all bytes from `seq` to `end` are acknowledged or reported by SACK.
    pub(crate) fn has_delivered(&self, seq: SeqNumber, end: SeqNumber) -> bool {
        let seq = seq.max(self.una);
        seq.ge(end) || self.flight.reported(seq, end) == end.distance(seq) as u32
    }

    /// Sets the state of the other subflows for the coupled controller.
    pub(crate) fn set_coupling(&mut self, coupling: Coupling) {
        self.congestion.set_coupling(coupling);
    }

    /// Closes the stream: FIN follows the last byte.
    pub(crate) fn finish(&mut self) {
        self.end = StreamEnd::Fin;
    }

    /// Whether the FIN was sent and acknowledged.
    #[inline]
    pub(crate) fn fin_acked(&self) -> bool {
        self.end == StreamEnd::Fin && self.una == self.stream_end()
    }

    /// Drops all data and stops all timers; the sender sends nothing more.
    pub(crate) fn shut(&mut self) {
        self.queue.clear();
        self.timer = Timer::Idle;
        self.resend = Resend::Idle;
        self.pacing.rest();
    }

    pub(crate) fn una(&self) -> SeqNumber {
        self.una
    }

    /// Just past the highest byte ever sent.
    #[inline]
    pub(crate) fn max(&self) -> SeqNumber {
        self.max
    }

    /// The sequence number of a segment without data: SND.NXT of RFC 9293. During a zero-window
    /// probe it is SND.UNA: anything higher lies outside the peer's closed window.
    #[inline]
    pub(crate) fn control_seq(&self) -> SeqNumber {
        match self.timer {
            Timer::Persist { .. } => self.una,
            Timer::Idle | Timer::Retransmit(_) | Timer::Standby { .. } => self.max,
        }
    }

    /// MAX.SND.WND (RFC 5961 section 5.2).
    #[inline]
    pub(crate) fn max_window(&self) -> u32 {
        self.window.max
    }

    #[inline]
    pub(crate) fn mss(&self) -> u32 {
        self.mss
    }

    /// Sets the option space that the next segment needs in addition, in bytes; less than the MSS.
    #[inline]
    pub(crate) fn reserve(&mut self, octets: u32) {
        self.reserved = octets;
    }

    /// Largest payload of the next segment (RFC 9293 section 3.7.1: options count).
    #[inline]
    fn room_in_segment(&self) -> u32 {
        self.mss.saturating_sub(self.reserved).max(1)
    }

    pub(crate) fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// Bytes per second acknowledged over the last round trip.
    pub(crate) fn delivery_rate(&self) -> Option<u64> {
        self.delivery.rate()
    }

    /// The congestion window with the limit applied, without inflation.
    #[inline]
    pub(crate) fn cwnd(&self) -> u32 {
        // PRR sets the window during a SACK recovery. A controller that works on rate samples keeps
        // its own window there.
        if self.config.prr && self.phase == Phase::Sack && self.flight.rate.is_none() {
            self.prr.window().max(self.mss)
        } else {
            self.controlled()
        }
    }

    /// The window of the congestion control, with the limit on the queue.
    #[inline]
    fn controlled(&self) -> u32 {
        self.congestion.cwnd().min(self.limit()).min(self.short_limit()).max(self.mss)
    }

    /// Bytes that count against the congestion window.
    #[inline]
    // RACK marks single segments lost, so the pipe estimate applies in every phase. Without it,
    // everything between SND.UNA and SND.NXT counts (RFC 5681).
    fn occupied(&self) -> u32 {
        if self.uses_rack() { self.flight.pipe() } else { self.in_flight() }
    }

    pub(crate) fn ssthresh(&self) -> u32 {
        self.congestion.ssthresh()
    }

    #[inline]
    pub(crate) fn peer_window(&self) -> u32 {
        self.window.wnd
    }

    /// FlightSize (RFC 5681 section 2). Data that a time-out has declared lost does not count until
    /// it is retransmitted, and data that is in the network twice counts once.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        let outstanding = self.max.distance(self.una).max(0) as u32;
        match self.phase {
            Phase::Loss => self.flight.pipe().min(outstanding),
            Phase::Open if self.flight.lost() > 0 => self.flight.pipe().min(outstanding),
            Phase::Open | Phase::Fast(_) | Phase::Sack => outstanding,
        }
    }

    /// Bytes written and not yet sent.
    pub(crate) fn unsent(&self) -> u32 {
        self.data_end().distance(self.max.max(self.base)).max(0) as u32
    }

    #[inline]
    fn data_end(&self) -> SeqNumber {
        self.base + self.queue.len()
    }

    #[inline]
    fn stream_end(&self) -> SeqNumber {
        match self.end {
            StreamEnd::Open => self.data_end(),
            StreamEnd::Fin => self.data_end() + 1,
        }
    }

    /// `W_max` of the papers, in bytes.
    #[inline]
    fn limit(&self) -> u32 {
        self.config.window_limit.map_or(u32::MAX, |n| n.max(1).saturating_mul(self.mss))
    }

    fn initial_window(&self) -> u32 {
        match self.config.initial_window {
            InitialWindow::Segments(n) => u32::from(n.max(1)).saturating_mul(self.mss),
            InitialWindow::Rfc6928 => self.mss.saturating_mul(10).min(self.mss.saturating_mul(2).max(14_600)),
        }
    }

    /// The view for the controller, with `in_flight` bytes in flight.
    #[inline]
    fn view(&self, in_flight: u32, repair: Repair) -> View {
        View {
            mss: self.mss,
            in_flight,
            usage: self.peak.usage,
            limit: self.limit(),
            initial_window: self.initial_window(),
            least_ssthresh: u32::from(self.config.least_ssthresh).saturating_mul(self.mss),
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            byte_counting: match self.config.byte_counting {
                // RFC 3465 section 2.3: L = 1 while a time-out is repaired.
                ByteCounting::On { .. } if self.una.lt(self.recover) => ByteCounting::On { limit: 1 },
                asked @ (ByteCounting::On { .. } | ByteCounting::Off) => asked,
            },
            slow_start_divisor: 1,
            repair,
            abe: self.config.abe,
        }
    }

    /// The repair method for a loss shown by duplicate acknowledgements.
    #[inline]
    fn repair(&self) -> Repair {
        match (self.config.recovery, self.phase) {
            (Recovery::RenoGoBackN, _) => Repair::Reno,
            (Recovery::NewReno, Phase::Sack) => Repair::Sack,
            (Recovery::NewReno, Phase::Open | Phase::Fast(_) | Phase::Loss) => Repair::NewReno,
        }
    }

    /// Handles the first round-trip time measured after a spurious time-out.
    fn resumed(&mut self, now: Instant, before: (Duration, Duration), rtt: Duration) {
        self.measured(now, rtt, 1);
        self.rtt.resume(before, rtt);
    }

    /// Handles a measured round-trip time; `expected` is the number of measurements per round trip.
    fn measured(&mut self, now: Instant, rtt: Duration, expected: u32) {
        self.rtt.sample(now, rtt, expected);
        self.sample_queue(rtt);
        if let Some(hystart) = &mut self.hystart {
            hystart.sample(rtt);
        }
        let view = self.view(self.in_flight(), self.repair());
        self.congestion.on_rtt(now, &view, rtt);
    }
}

/// Constructs a controller with a window of `cwnd` bytes. `seq` seeds its random choices.
fn controller(config: &Config, cwnd: u32, mss: u32, seq: SeqNumber) -> AnyController {
    let ssthresh = config.initial_ssthresh.unwrap_or(u32::MAX);
    AnyController::new(config.congestion, Start { cwnd, ssthresh, mss, seed: seq.0 })
}

/// Upper limit of buffers: sequence comparisons need buffers well below half of the sequence space.
pub(crate) const MAX_BUFFER: u32 = 1 << 30;
