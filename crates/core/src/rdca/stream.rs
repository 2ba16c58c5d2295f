//! The stream of one sender at the sink: the per-sender state of Algorithm 1.

use anabranch_wire::rdca::{
    Data, Header, Incarnation, Probe, Range, Report, Seq, Snack, StreamId, TimeStamp,
};

use super::arrivals::Arrivals;
use super::config::{
    AfterNotice, Confirmation, Guard, LossCredit, ReceiveRate, RttSource, SinkConfig, SnackRepeat,
};
use super::crowd::{Crowd, MOST_TOLERATED};
use super::pieces::Pieces;
use super::reorder::{Placed, Pool, Reorder};
use super::trend::{Trend, WINDOW};
use super::trip::{LONGEST_RTT, Trip, Trips, as_micros, micros, time_stamp};
use crate::time::{Duration, Instant};

/// The stream of one sender.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub id: StreamId,
    pub incarnation: Incarnation,
    pub packets: Reorder,
    pub pieces: Pieces,
    /// The owner has stored all packets before this one.
    stored: Seq,
    /// One past the last packet whose confirmation the sender awaits, if it awaits one.
    awaited: Seq,
    /// Number after the last packet, once the sender has announced it.
    end: Option<Seq>,
    pub ended: bool,
    trips: Trips,
    trend: Trend,
    arrivals: Arrivals,
    /// The round-trip time measured by the sender in microseconds; 0 if unknown.
    base_rtt: u32,
    /// The weighted average of twice the trip time (line 4), or of the queueing delay alone, which
    /// is added to the base.
    average: Option<Duration>,
    waiting: Duration,
    /// Number of consecutive packets with a long queueing delay.
    standing: u8,
    /// The share of packets that were lost while no packet waited, in units of 1/[`WHOLE`]: an
    /// average with a weight of 1/64.
    lost: u16,
    /// The last time stamp and its arrival time.
    pub last_stamp: (TimeStamp, Instant),
    last_notice: Option<Instant>,
    /// Packets since `last_notice`.
    since_notice: u16,
    /// The average interval between packets at the last notification in microseconds.
    said: u32,
    /// Packets since the last count of the senders' shares, and in the period before it.
    pub carried: u32,
    pub before: u32,
    /// Time of the last notification or SNACK.
    pub held_back: Option<Instant>,
    pub owes: Owes,
}

/// State common to all streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Common {
    /// See [`Report`].
    pub share: u32,
    /// The share comes from a queue that holds the packets of all senders. A sender then follows
    /// the share and not its receive rate.
    pub crowd: bool,
    /// That queue exists now.
    pub waits: bool,
}

/// The messages that the sink owes the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Owes {
    /// An explicit congestion notification.
    pub congestion: bool,
    /// A confirmation, in answer to a packet or a probe that requests one: at this time, or when
    /// the awaited packets are stored.
    pub confirm: Option<Instant>,
}

impl Stream {
    pub(super) fn new(id: StreamId, incarnation: Incarnation, first: Seq, config: &SinkConfig) -> Self {
        Self {
            id,
            incarnation,
            packets: Reorder::new(first, config.reorder_packets),
            pieces: Pieces::default(),
            stored: first,
            awaited: first,
            end: None,
            ended: false,
            trips: Trips::NONE,
            trend: Trend::new(),
            arrivals: Arrivals::new(),
            base_rtt: 0,
            average: None,
            waiting: Duration::ZERO,
            standing: 0,
            lost: 0,
            last_stamp: (TimeStamp(0), Instant::ZERO),
            last_notice: None,
            since_notice: 0,
            said: u32::MAX,
            carried: 0,
            before: 0,
            held_back: None,
            owes: Owes::default(),
        }
    }

    /// Handles a data packet (Algorithm 1).
    pub(super) fn handle_data(
        &mut self,
        now: Instant,
        config: &SinkConfig,
        pool: &mut Pool,
        crowd: &mut Crowd,
        data: &Data,
    ) -> Placed {
        let beyond = self.end.is_some_and(|end| !data.seq.lt(end));
        if self.ended || beyond {
            return Placed::Known;
        }
        if let Some(rtt) = data.rtt {
            self.base_rtt = rtt.min(as_micros(LONGEST_RTT));
        }
        // The request waits half a round trip, because the packet may only have been overtaken
        // (section 3.4).
        let due = now + self.patience(config);
        // The header as printed in the paper does not mark retransmissions.
        let again = config.header == Header::Printed && data.seq.lt(self.packets.end());
        let repeated = data.repeated || again;
        let missed = data.seq.distance(self.packets.end()).max(0).unsigned_abs();
        let placed = self.packets.insert(pool, data.seq, (data.piece, &data.payload), due);
        if data.last && self.packets.end().le(data.seq + 1) {
            self.end = Some(data.seq + 1);
        }
        match placed {
            // The network may have duplicated the packet, so its time stamp gives no valid sample.
            Placed::Known => {}
            Placed::Next | Placed::Held | Placed::NoRoom => {
                self.carried = self.carried.saturating_add(1);
                if !repeated {
                    self.arrivals.missed(missed);
                    crowd.missed(missed);
                }
                self.measure(now, config, crowd, (data, repeated));
                if config.credit == LossCredit::Calm && !repeated && self.waiting < config.least_waiting {
                    for _ in 0..missed.min(MOST_MISSED) {
                        self.lost += (WHOLE - self.lost) / 64;
                    }
                    self.lost -= self.lost / 64;
                }
            }
        }
        placed
    }

    fn measure(
        &mut self,
        now: Instant,
        config: &SinkConfig,
        crowd: &mut Crowd,
        (data, repeated): (&Data, bool),
    ) {
        self.last_stamp = (data.time, now);
        match config.receive_rate {
            ReceiveRate::Arrivals => self.arrivals.came(now),
            _ if repeated => self.arrivals.interrupted(),
            _ => self.arrivals.arrived(now, data.seq),
        }
        if self.trips.is_none() {
            // A new stream cannot detect a queue that was there before it, since its minimum trip
            // time contains that delay. The other streams know the delay.
            self.trips = Trips::new(now, data.time, crowd.waiting());
        }
        // The minimum must be remembered until the queue had time to drain, and a queue takes as
        // long to drain as it is deep.
        let trip = self.trips.observe(now, data.time, config.least_span.max(self.waiting * 2));
        self.waiting = trip.waiting;
        crowd.observe(now, trip.waiting, config.least_waiting);
        self.average(config, trip);
        let rises = self.trend.observe(trip.relative, config.trend);
        let waits = config.standing.is_some_and(|standing| trip.waiting >= standing.waiting);
        self.standing = if waits { self.standing.saturating_add(1) } else { 0 };
        let rises = rises && trip.waiting >= self.tolerated(config);
        // Far fewer packets arrive than at the last notification: the rate sent then is out of
        // date, and the guard time was measured through a full queue.
        let fell = self.stands() && u64::from(self.arrivals.average()) * 3 > u64::from(self.said) * 4;
        self.since_notice = self.since_notice.saturating_add(1);
        if self.is_spaced(config) && (fell || (rises || self.stands()) && self.may_notify(now, config, trip))
        {
            self.notify(now, config);
        }
    }

    /// Number of packets received recently.
    pub(super) fn brought(&self) -> u32 {
        self.before.saturating_add(self.carried)
    }

    /// Whether enough packets have arrived since the last notification. This spacing also applies
    /// to notifications of all senders.
    pub(super) fn is_spaced(&self, config: &SinkConfig) -> bool {
        self.last_notice.is_none() || self.since_notice >= config.notice_packets
    }

    /// Queues a notification.
    pub(super) fn notify(&mut self, now: Instant, config: &SinkConfig) {
        self.owes.congestion = true;
        (self.last_notice, self.since_notice) = (Some(now), 0);
        self.said = self.arrivals.average();
        if config.after_notice == AfterNotice::Forget {
            self.trend.clear();
        }
    }

    /// Whether half a window of consecutive packets had a long queueing delay.
    fn stands(&self) -> bool {
        usize::from(self.standing) >= WINDOW / 2
    }

    /// Updates the average round-trip time (line 4).
    fn average(&mut self, config: &SinkConfig, trip: Trip) {
        let sample = match config.rtt {
            RttSource::TwiceTripTime => trip.time * 2,
            RttSource::BasePlusWaiting => trip.waiting,
        };
        let average =
            self.average.map_or(sample, |average| average.mul_ratio(7, 10) + sample.mul_ratio(3, 10));
        self.average = Some(average);
    }

    /// The largest queueing delay that does not count as congestion.
    fn tolerated(&mut self, config: &SinkConfig) -> Duration {
        let intervals = micros(self.arrivals.average()) * u64::from(config.least_waiting_intervals);
        intervals.min(MOST_TOLERATED).max(config.least_waiting)
    }

    /// Whether the guard time since the last notification has passed (line 8).
    fn may_notify(&self, now: Instant, config: &SinkConfig, trip: Trip) -> bool {
        let guard = match config.guard {
            Guard::TwiceAverageRtt => self.rtt(config) * 2,
            Guard::FourTripTimes => trip.time * 4,
        };
        self.last_notice.is_none_or(|last| now.saturating_since(last) > guard)
    }

    pub(super) fn handle_probe(&mut self, now: Instant, pool: &mut Pool, probe: &Probe) {
        self.last_stamp = (probe.time, now);
        if self.end.is_none() {
            self.packets.extend(probe.end, now, pool);
            if probe.last && probe.end == self.packets.end() {
                self.end = Some(probe.end);
            }
        }
        // A sender that probes has waited long enough that no packet is merely overtaken. Either
        // the answer was lost, or packets are missing and are requested at once.
        self.packets.hurry(pool, now);
        if self.packets.is_whole() {
            self.owe(now);
        }
    }

    /// Answers a request for a confirmation of what is delivered now, once it is stored: one
    /// message suffices if that is soon.
    pub(super) fn confirm(&mut self, now: Instant) {
        self.owe(now + STORED);
    }

    fn owe(&mut self, at: Instant) {
        self.owes.confirm = Some(self.owes.confirm.map_or(at, |before| before.min(at)));
        self.awaited = self.delivered();
    }

    /// When the owed confirmation is due.
    pub(super) fn confirms(&self, config: &SinkConfig) -> Option<Instant> {
        let at = self.owes.confirm?;
        let is_stored = config.confirmation == Confirmation::Delivered || self.awaited.le(self.stored);
        Some(if is_stored { Instant::ZERO } else { at })
    }

    /// Handles packets that the sender no longer has; see [`Reorder::give_up`].
    pub(super) fn handle_gone(&mut self, pool: &mut Pool, ranges: &[Range]) -> Option<Range> {
        let mut first = None;
        for range in ranges {
            first = first.or(self.packets.give_up(pool, *range));
        }
        first
    }

    /// Whether the sender has announced the end of the stream, and all packets before it are
    /// delivered or lost.
    pub(super) fn is_complete(&self) -> bool {
        self.end == Some(self.packets.next())
    }

    /// The first packet of which the application has received nothing. Received parts of incomplete
    /// data do not count, since they can still be lost.
    pub(super) fn delivered(&self) -> Seq {
        self.pieces.begun().unwrap_or(self.packets.next())
    }

    /// Notes that the owner has stored all packets before `next`.
    pub(super) fn store(&mut self, next: Seq) {
        self.stored = self.stored.max(next.min(self.delivered()));
    }

    /// How long a SNACK waits for overtaken packets (section 3.4) and for further gaps.
    fn patience(&mut self, config: &SinkConfig) -> Duration {
        let intervals = micros(self.arrivals.average()) * COLLECTED;
        (self.rtt(config) / 2).max(intervals.min(config.collect))
    }

    /// The report that every message to the sender contains.
    pub(super) fn report(&mut self, now: Instant, config: &SinkConfig, common: Common) -> Report {
        let (stamp, at) = self.last_stamp;
        let tolerated = self.tolerated(config).max(LEAST_DELAYED);
        let since = as_micros(now.saturating_since(at));
        let interval = if common.crowd { 0 } else { self.interval(config) };
        let delivered = self.delivered();
        let next = match config.confirmation {
            Confirmation::Delivered => delivered,
            Confirmation::Stored => self.stored,
        };
        // What arrives is that part of what was sent which the channel has not lost.
        let credited = |interval: u32| {
            let part = WHOLE - self.lost.min(WHOLE / 3);
            (u64::from(interval) * u64::from(part) / u64::from(WHOLE)) as u32
        };
        if self.owes.confirm.is_some() {
            // What is not stored yet is confirmed when it is.
            self.owes.confirm = next.lt(self.awaited).then_some(Instant::FAR_FUTURE);
        }
        Report {
            stream: self.id,
            next,
            echo: TimeStamp(stamp.0.wrapping_add(since)),
            interval: credited(interval),
            rtt: as_micros(self.rtt(config)),
            share: credited(common.share),
            delayed: common.waits || self.waiting >= tolerated,
            complete: self.is_complete() && next == delivered,
        }
    }

    /// The interval in microseconds whose reciprocal is reported as the receive rate; 0 if unknown.
    fn interval(&mut self, config: &SinkConfig) -> u32 {
        let interval = match config.receive_rate {
            ReceiveRate::Intervals | ReceiveRate::Arrivals => self.arrivals.average(),
            ReceiveRate::LessLosses => self.arrivals.average_less_losses(),
        };
        match config.standing {
            Some(standing) if self.stands() => {
                let percent = u64::from(standing.percent.clamp(1, 100));
                (u64::from(interval) * 100 / percent).min(u64::from(u32::MAX)) as u32
            }
            _ => interval,
        }
    }

    /// Returns the SNACK that is due, if any.
    pub(super) fn snack(
        &mut self,
        now: Instant,
        config: &SinkConfig,
        common: Common,
        pool: &mut Pool,
    ) -> Option<Snack> {
        if self.packets.due(pool)? > now {
            return None;
        }
        let (first, doublings) = match config.repeat {
            SnackRepeat::RoundTrip => (self.rtt(config), 0),
            SnackRepeat::Patient => {
                let missing = u64::from(self.packets.missing(pool).min(64));
                let all_sent = micros(self.arrivals.average()) * missing;
                (self.rtt(config).mul_ratio(3, 2) + all_sent, MOST_DOUBLINGS)
            }
        };
        let first = first.max(LEAST_REPEAT);
        let collected = now + (self.patience(config) - self.rtt(config) / 2);
        let missing =
            self.packets.ask(pool, now, collected, |asked| now + first * (1 << asked.min(doublings)));
        self.held_back = Some(now);
        Some(Snack { report: self.report(now, config, common), missing })
    }

    /// Returns the owed notification, if any.
    pub(super) fn congestion(&mut self, now: Instant, config: &SinkConfig, common: Common) -> Option<Report> {
        core::mem::take(&mut self.owes.congestion).then(|| {
            self.held_back = Some(now);
            self.report(now, config, common)
        })
    }

    pub(super) fn rtt(&self, config: &SinkConfig) -> Duration {
        let base = if self.base_rtt == 0 { config.initial_rtt } else { micros(self.base_rtt) };
        match (config.rtt, self.average) {
            (_, None) => base,
            (RttSource::TwiceTripTime, Some(average)) => average,
            (RttSource::BasePlusWaiting, Some(waiting)) => base + waiting,
        }
    }

    /// The sink's estimate of the round-trip time for the reply, from the trip time of the request
    /// (section 3.1).
    pub(super) fn estimate(now: Instant, sent: TimeStamp) -> u32 {
        time_stamp(now).since(sent).max(0).unsigned_abs().saturating_mul(2)
    }
}

/// A share of 1.
const WHOLE: u16 = 1 << 15;
/// Packets of one gap that count as lost at most: a long gap is an outage.
const MOST_MISSED: u32 = 4;
/// Receive intervals over which gaps are collected into one SNACK: a third of the default queue.
const COLLECTED: u64 = 8;
/// How long a packet's request for a confirmation waits for the owner to store the packet: half of
/// the least time after which a sender repeats the request.
const STORED: Duration = Duration::from_millis(100);
/// A shorter queueing delay is never reported as a delay.
const LEAST_DELAYED: Duration = Duration::from_millis(1);
/// Lower limit of the time between two SNACKs, so that wrong clocks cannot cause a loop.
const LEAST_REPEAT: Duration = Duration::from_millis(1);
/// At most eight times the first wait.
const MOST_DOUBLINGS: u8 = 3;
