//! One sender's stream at the sink: what Algorithm 1 keeps for each.

use anabranch_wire::rdca::{Data, Incarnation, Probe, Range, Report, Seq, Snack, StreamId, TimeStamp};

use super::arrivals::Arrivals;
use super::config::{AfterNotice, Guard, ReceiveRate, RttSource, SinkConfig, SnackRepeat};
use super::reorder::{Placed, Pool, Reorder};
use super::trend::{Trend, WINDOW};
use super::trip::{Trip, Trips, as_micros, micros, time_stamp};
use crate::time::{Duration, Instant};

/// One stream.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub id: StreamId,
    pub incarnation: Incarnation,
    pub packets: Reorder,
    /// One past the last packet, once the sender has said.
    end: Option<Seq>,
    pub ended: bool,
    trips: Trips,
    trend: Trend,
    arrivals: Arrivals,
    /// The round trip as the sender has measured it.
    base_rtt: Option<Duration>,
    /// The weighted average of twice the trip time (line 4), or of the waiting alone: what is added to the base.
    average: Option<Duration>,
    waiting: Duration,
    /// Packets one after the other that have waited for long.
    standing: u8,
    /// The last time stamp, and when it came.
    last_stamp: (TimeStamp, Instant),
    last_notice: Option<Instant>,
    /// Packets since the senders' shares were last counted.
    pub carried: u32,
    /// The last notification or SNACK.
    pub held_back: Option<Instant>,
    pub owes: Owes,
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
            end: None,
            ended: false,
            trips: Trips::default(),
            trend: Trend::new(),
            arrivals: Arrivals::new(),
            base_rtt: None,
            average: None,
            waiting: Duration::ZERO,
            standing: 0,
            last_stamp: (TimeStamp(0), Instant::ZERO),
            last_notice: None,
            carried: 0,
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
        data: &Data,
    ) -> Placed {
        let beyond = self.end.is_some_and(|end| !data.seq.lt(end));
        if self.ended || beyond {
            self.owes.confirm |= data.confirm || data.last;
            return Placed::Known;
        }
        if let Some(rtt) = data.rtt {
            self.base_rtt = Some(micros(rtt));
        }
        // The request waits half a round trip, for a packet that was only overtaken (section 3.4).
        let due = now + self.rtt(config) / 2;
        let missed = data.seq.distance(self.packets.end()).max(0).unsigned_abs();
        let placed = self.packets.insert(pool, data.seq, &data.payload, due);
        if data.last && self.packets.end().le(data.seq + 1) {
            self.end = Some(data.seq + 1);
        }
        self.owes.confirm |= data.confirm || data.last;
        match placed {
            // A copy made on the way says nothing about when it was sent.
            Placed::Known => {}
            Placed::Next | Placed::Held | Placed::NoRoom => {
                self.carried = self.carried.saturating_add(1);
                if !data.repeated {
                    self.arrivals.missed(missed);
                }
                self.measure(now, config, data);
            }
        }
        placed
    }

    fn measure(&mut self, now: Instant, config: &SinkConfig, data: &Data) {
        self.last_stamp = (data.time, now);
        if data.repeated {
            self.arrivals.interrupted();
        } else {
            self.arrivals.arrived(now, data.seq);
        }
        let trip = self.trips.observe(now, data.time, config.drift_ppm);
        self.waiting = trip.waiting;
        self.average(config, trip);
        let rises = self.trend.observe(trip.relative, config.trend);
        let waits = config.standing.is_some_and(|standing| trip.waiting >= standing.waiting);
        self.standing = if waits { self.standing.saturating_add(1) } else { 0 };
        let rises = rises && trip.waiting >= self.tolerated(config);
        if (rises || self.stands()) && self.may_notify(now, config, trip) {
            self.owes.congestion = true;
            self.last_notice = Some(now);
            if config.after_notice == AfterNotice::Forget {
                self.trend.clear();
            }
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
        // Who probes has waited: nothing is merely overtaken. What is missing is the answer, or that nothing is.
        self.packets.hurry(pool, now);
        self.owes.confirm |= self.packets.is_whole();
    }

    /// The sender has given up packets; see [`Reorder::give_up`].
    pub(super) fn handle_gone(&mut self, pool: &mut Pool, ranges: &[Range]) -> impl Iterator<Item = Range> {
        let mut first = None;
        for range in ranges {
            first = first.or(self.packets.give_up(pool, *range));
        }
        first.into_iter()
    }

    /// The sender has said where the stream ends, and all before is delivered or gone.
    pub(super) fn is_complete(&self) -> bool {
        self.end == Some(self.packets.next())
    }

    /// What every word to the sender says.
    pub(super) fn report(&mut self, now: Instant, config: &SinkConfig, share: u32) -> Report {
        let (stamp, at) = self.last_stamp;
        let tolerated = self.tolerated(config).max(LEAST_DELAYED);
        let since = as_micros(now.saturating_since(at));
        let interval = self.interval(config);
        Report {
            stream: self.id,
            next: self.packets.next(),
            echo: TimeStamp(stamp.0.wrapping_add(since)),
            interval,
            rtt: as_micros(self.rtt(config)),
            share,
            delayed: self.waiting >= tolerated,
            complete: self.is_complete(),
        }
    }

    /// The interval whose reciprocal is said to be the receive rate, microseconds; 0: not known.
    fn interval(&mut self, config: &SinkConfig) -> u32 {
        let interval = match config.receive_rate {
            ReceiveRate::Intervals => self.arrivals.average(),
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
        share: u32,
        pool: &mut Pool,
    ) -> Option<Snack> {
        if self.packets.due(pool)? > now {
            return None;
        }
        let first = match config.repeat {
            SnackRepeat::RoundTrip => self.rtt(config),
            SnackRepeat::Patient => {
                let missing = u64::from(self.packets.missing(pool).min(64));
                self.rtt(config).mul_ratio(3, 2) + micros(self.arrivals.average()) * missing
            }
        };
        let first = first.max(LEAST_REPEAT);
        let missing = self.packets.ask(pool, now, |asked| now + first * (1 << asked.min(MOST_DOUBLINGS)));
        self.held_back = Some(now);
        Some(Snack { report: self.report(now, config, share), missing })
    }

    /// The notification that is owed, if one is.
    pub(super) fn congestion(&mut self, now: Instant, config: &SinkConfig, share: u32) -> Option<Report> {
        core::mem::take(&mut self.owes.congestion).then(|| {
            self.held_back = Some(now);
            self.report(now, config, share)
        })
    }

    fn rtt(&self, config: &SinkConfig) -> Duration {
        match (config.rtt, self.average) {
            (_, None) => self.base_rtt.unwrap_or(config.initial_rtt),
            (RttSource::TwiceTripTime, Some(average)) => average,
            (RttSource::BasePlusWaiting, Some(waiting)) => {
                self.base_rtt.unwrap_or(config.initial_rtt) + waiting
            }
        }
    }

    /// The sink's estimate for the reply, from the request's trip (section 3.1).
    pub(super) fn estimate(now: Instant, sent: TimeStamp) -> u32 {
        time_stamp(now).since(sent).max(0).unsigned_abs().saturating_mul(2)
    }
}

/// A sender of few packets has long intervals, and a queue of others before it all the same.
const MOST_TOLERATED: Duration = Duration::from_millis(100);
/// Less waiting than this is never called a delay.
const LEAST_DELAYED: Duration = Duration::from_millis(1);
/// A SNACK is never repeated sooner: time must move on, whatever the clocks say.
const LEAST_REPEAT: Duration = Duration::from_millis(1);
/// Eight times the first wait, at most.
const MOST_DOUBLINGS: u8 = 3;
