//! One sender's stream at the sink: what Algorithm 1 keeps for each.

use anabranch_wire::rdca::{
    Data, Header, Incarnation, Probe, Range, Report, Seq, Snack, StreamId, TimeStamp,
};

use super::arrivals::Arrivals;
use super::config::{AfterNotice, Guard, ReceiveRate, RttSource, SinkConfig, SnackRepeat};
use super::crowd::{Crowd, MOST_TOLERATED};
use super::pieces::Pieces;
use super::reorder::{Placed, Pool, Reorder};
use super::trend::{Trend, WINDOW};
use super::trip::{LONGEST_RTT, Trip, Trips, as_micros, micros, time_stamp};
use crate::time::{Duration, Instant};

/// One stream.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub id: StreamId,
    pub incarnation: Incarnation,
    pub packets: Reorder,
    pub pieces: Pieces,
    /// One past the last packet, once the sender has said.
    end: Option<Seq>,
    pub ended: bool,
    trips: Trips,
    trend: Trend,
    arrivals: Arrivals,
    /// The round trip as the sender has measured it, microseconds; 0: not known.
    base_rtt: u32,
    /// The weighted average of twice the trip time (line 4), or of the waiting alone: what is added
    /// to the base.
    average: Option<Duration>,
    waiting: Duration,
    /// Packets one after the other that have waited for long.
    standing: u8,
    /// The last time stamp, and when it came.
    pub last_stamp: (TimeStamp, Instant),
    last_notice: Option<Instant>,
    /// Packets since.
    since_notice: u16,
    /// The interval then, microseconds.
    said: u32,
    /// Packets since the senders' shares were last counted, and in the period before.
    pub carried: u32,
    pub before: u32,
    /// The last notification or SNACK.
    pub held_back: Option<Instant>,
    pub owes: Owes,
}

/// What is the same for all streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Common {
    /// See [`Report`].
    pub share: u32,
    /// The share is that of a queue in which the packets of all stand: it, and no receive rate, is
    /// what a sender may have.
    pub crowd: bool,
    /// They stand there now.
    pub waits: bool,
}

/// What the sink has to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Owes {
    /// An explicit congestion notification.
    pub congestion: bool,
    /// An answer to a packet or a probe that asks for it.
    pub confirm: bool,
}

impl Stream {
    pub(super) fn new(id: StreamId, incarnation: Incarnation, first: Seq, config: &SinkConfig) -> Self {
        Self {
            id,
            incarnation,
            packets: Reorder::new(first, config.reorder_packets),
            pieces: Pieces::default(),
            end: None,
            ended: false,
            trips: Trips::NONE,
            trend: Trend::new(),
            arrivals: Arrivals::new(),
            base_rtt: 0,
            average: None,
            waiting: Duration::ZERO,
            standing: 0,
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

    /// Algorithm 1, upon reception of a data packet.
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
            self.owes.confirm |= data.confirm || data.last;
            return Placed::Known;
        }
        if let Some(rtt) = data.rtt {
            self.base_rtt = rtt.min(as_micros(LONGEST_RTT));
        }
        // The request waits half a round trip, for a packet that was only overtaken (section 3.4).
        let due = now + self.patience(config);
        // The printed header does not say so.
        let again = config.header == Header::Printed && data.seq.lt(self.packets.end());
        let repeated = data.repeated || again;
        let missed = data.seq.distance(self.packets.end()).max(0).unsigned_abs();
        let placed = self.packets.insert(pool, data.seq, (data.piece, &data.payload), due);
        if data.last && self.packets.end().le(data.seq + 1) {
            self.end = Some(data.seq + 1);
        }
        self.owes.confirm |= data.confirm || data.last;
        match placed {
            // A copy made on the way says nothing about when it was sent.
            Placed::Known => {}
            Placed::Next | Placed::Held | Placed::NoRoom => {
                self.carried = self.carried.saturating_add(1);
                if !repeated {
                    self.arrivals.missed(missed);
                    crowd.missed(missed);
                }
                self.measure(now, config, crowd, (data, repeated));
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
            // What stands in a queue from the beginning knows no better: others do.
            self.trips = Trips::new(now, data.time, crowd.waiting());
        }
        // A queue takes as long to become empty as it is deep.
        let trip = self.trips.observe(now, data.time, config.least_span.max(self.waiting * 2));
        self.waiting = trip.waiting;
        crowd.observe(now, trip.waiting, config.least_waiting);
        self.average(config, trip);
        let rises = self.trend.observe(trip.relative, config.trend);
        let waits = config.standing.is_some_and(|standing| trip.waiting >= standing.waiting);
        self.standing = if waits { self.standing.saturating_add(1) } else { 0 };
        let rises = rises && trip.waiting >= self.tolerated(config);
        // Far less comes than was said: that was the rate of before, and the guard time is that of
        // a queue.
        let fell = self.stands() && u64::from(self.arrivals.average()) * 3 > u64::from(self.said) * 4;
        self.since_notice = self.since_notice.saturating_add(1);
        if self.is_spaced(config) && (fell || (rises || self.stands()) && self.may_notify(now, config, trip))
        {
            self.notify(now, config);
        }
    }

    /// Packets of late.
    pub(super) fn brought(&self) -> u32 {
        self.before.saturating_add(self.carried)
    }

    /// A word to all senders is for this one, too.
    pub(super) fn is_spaced(&self, config: &SinkConfig) -> bool {
        self.last_notice.is_none() || self.since_notice >= config.notice_packets
    }

    /// There will be a notification.
    pub(super) fn notify(&mut self, now: Instant, config: &SinkConfig) {
        self.owes.congestion = true;
        (self.last_notice, self.since_notice) = (Some(now), 0);
        self.said = self.arrivals.average();
        if config.after_notice == AfterNotice::Forget {
            self.trend.clear();
        }
    }

    /// Half a window of packets one after the other have waited for long.
    fn stands(&self) -> bool {
        usize::from(self.standing) >= WINDOW / 2
    }

    /// Line 4.
    fn average(&mut self, config: &SinkConfig, trip: Trip) {
        let sample = match config.rtt {
            RttSource::TwiceTripTime => trip.time * 2,
            RttSource::BasePlusWaiting => trip.waiting,
        };
        let average =
            self.average.map_or(sample, |average| average.mul_ratio(7, 10) + sample.mul_ratio(3, 10));
        self.average = Some(average);
    }

    /// Waiting that is no congestion.
    fn tolerated(&mut self, config: &SinkConfig) -> Duration {
        let intervals = micros(self.arrivals.average()) * u64::from(config.least_waiting_intervals);
        intervals.min(MOST_TOLERATED).max(config.least_waiting)
    }

    /// Line 8.
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
        // Who probes has waited: nothing is merely overtaken. What is missing is the answer, or
        // that nothing is.
        self.packets.hurry(pool, now);
        self.owes.confirm |= self.packets.is_whole();
    }

    /// The sender has given up packets; see [`Reorder::give_up`].
    pub(super) fn handle_gone(&mut self, pool: &mut Pool, ranges: &[Range]) -> Option<Range> {
        let mut first = None;
        for range in ranges {
            first = first.or(self.packets.give_up(pool, *range));
        }
        first
    }

    /// The sender has said where the stream ends, and all before is delivered or gone.
    pub(super) fn is_complete(&self) -> bool {
        self.end == Some(self.packets.next())
    }

    /// The first packet of which the application has had nothing: what has come of data that is not
    /// whole can still be lost.
    pub(super) fn delivered(&self) -> Seq {
        self.pieces.begun().unwrap_or(self.packets.next())
    }

    /// How long a SNACK waits for what was only overtaken (section 3.4), and for further gaps.
    fn patience(&mut self, config: &SinkConfig) -> Duration {
        let intervals = micros(self.arrivals.average()) * COLLECTED;
        (self.rtt(config) / 2).max(intervals.min(config.collect))
    }

    /// What every word to the sender says.
    pub(super) fn report(&mut self, now: Instant, config: &SinkConfig, common: Common) -> Report {
        let (stamp, at) = self.last_stamp;
        let tolerated = self.tolerated(config).max(LEAST_DELAYED);
        let since = as_micros(now.saturating_since(at));
        let interval = if common.crowd { 0 } else { self.interval(config) };
        Report {
            stream: self.id,
            next: self.delivered(),
            echo: TimeStamp(stamp.0.wrapping_add(since)),
            interval,
            rtt: as_micros(self.rtt(config)),
            share: common.share,
            delayed: common.waits || self.waiting >= tolerated,
            complete: self.is_complete(),
        }
    }

    /// The interval whose reciprocal is said to be the receive rate, microseconds; 0: not known.
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

    /// The SNACK that is due, if one is.
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

    /// The notification that is owed, if one is.
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

    /// The sink's estimate for the reply, from the request's trip (section 3.1).
    pub(super) fn estimate(now: Instant, sent: TimeStamp) -> u32 {
        time_stamp(now).since(sent).max(0).unsigned_abs().saturating_mul(2)
    }
}

/// Receive intervals in which gaps are collected: a third of the default queue.
const COLLECTED: u64 = 8;
/// Less waiting than this is never called a delay.
const LEAST_DELAYED: Duration = Duration::from_millis(1);
/// A SNACK is never repeated sooner: time must move on, whatever the clocks say.
const LEAST_REPEAT: Duration = Duration::from_millis(1);
/// Eight times the first wait, at most.
const MOST_DOUBLINGS: u8 = 3;
