//! Reception: the signals at each station, and the frames that are lost because of others.
//!
//! Each station has a list of the signals that disturb it, and the number of signals that it
//! senses. A frame changes both at the stations that hear it, at its start and at its end. The sum
//! of powers is computed anew when the list changes, so that rounding errors do not accumulate.

mod jam;
mod rules;

use anabranch_core::time::{Duration, Instant};

use super::geometry::{Hearer, Neighbours};
use super::propagation::{DECODABLE, INTERFERING, SENSED};
use super::{Station, StreamFactory};
use crate::math::{decibels, exp, ln};
use crate::random::Stream;

pub(crate) use rules::Rules;

/// The channel between the stations.
#[derive(Debug)]
pub(crate) struct Medium {
    rules: Rules,
    pub(crate) neighbours: Neighbours,
    /// By station. Separate from the receivers, since most stations that a frame reaches only sense
    /// it.
    carriers: Vec<Carrier>,
    receivers: Vec<Receiver>,
    /// Random streams of the receivers.
    streams: Vec<Stream>,
}

/// A correctly received frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reception {
    /// Receiving station.
    pub(crate) station: u32,
    /// Index of the link.
    pub(crate) link: usize,
    /// Link quality, for a frame to this station or to all.
    pub(crate) lqi: u8,
    /// Received power, for such a frame.
    pub(crate) rssi_dbm: Option<i16>,
}

/// Receiver of notifications about the effects of frames at their start and end.
pub(crate) trait Witness {
    /// Whether frames for other stations are received too.
    const OVERHEARS: bool;

    /// The channel has become busy or clear at a station.
    fn turned(&mut self, station: u32);

    /// A frame has been received correctly.
    fn received(&mut self, reception: Reception);

    /// A signal has ended at a station that has not received it. `followed` is the time for which
    /// the receiver followed the frame before interference destroyed it; the whole frame if only
    /// bits were wrong; `None` if the receiver never locked on it.
    fn failed(&mut self, station: u32, followed: Option<Duration>);
}

/// Only collects receptions.
impl Witness for Vec<Reception> {
    const OVERHEARS: bool = false;

    fn turned(&mut self, _: u32) {}

    fn received(&mut self, reception: Reception) {
        self.push(reception);
    }

    fn failed(&mut self, _: u32, _: Option<Duration>) {}
}

/// Counters of frames that were not received.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Spoils {
    pub(crate) collisions: u64,
    pub(crate) lost: u64,
    pub(crate) missed: u64,
}

/// A station's view of the channel.
#[derive(Clone, Copy, Default, Debug)]
struct Carrier {
    /// Number of signals that are [`SENSED`].
    sensed: u32,
    /// Number of jammers, each of which counts as sensed.
    jammers: u32,
    busy_since: Option<Instant>,
    /// End of the last busy period.
    busy_until: Instant,
    busy_time: Duration,
}

#[derive(Debug)]
struct Receiver {
    /// Signals that are [`INTERFERING`].
    signals: Vec<Signal>,
    /// Whether the station listens: it neither sends, nor turns around, nor is off.
    open: bool,
    lock: Option<Lock>,
    spoils: Spoils,
}

#[derive(Clone, Copy, Debug)]
struct Signal {
    from: u32,
    power: f64,
    end: Instant,
}

/// The frame on which a receiver is locked.
#[derive(Clone, Copy, Debug)]
struct Lock {
    from: u32,
    /// Whether the frame is for this station or for all.
    wanted: bool,
    /// Whether it counts as missed if it is not received. One of many frames with the same content
    /// does not.
    counts: bool,
    power: f64,
    begun: Instant,
    end: Instant,
    /// Whether another signal has overlapped it.
    disturbed: bool,
    /// Time from which the frame can no longer be received.
    spoiled: Option<Instant>,
    /// Time up to which both sums are complete.
    since: Instant,
    /// Logarithm of the probability that all bits are right.
    ln_success: f64,
    /// Interference in milliwatt seconds.
    interference: f64,
}

impl Lock {
    /// Whether the loss of the frame counts for this station.
    fn is_counted(&self) -> bool {
        self.wanted && self.counts
    }

    /// Time for which the receiver followed the frame, which ends at `now`, before interference
    /// destroyed it.
    fn followed(&self, now: Instant) -> Duration {
        self.spoiled.unwrap_or(now).saturating_since(self.begun)
    }
}

impl Medium {
    /// Initially all stations listen.
    pub(crate) fn new(rules: Rules, neighbours: Neighbours, stream: &StreamFactory<'_>) -> Self {
        let count = neighbours.station_count();
        let carriers = vec![Carrier::default(); count as usize];
        let receivers = (0..count).map(|_| Receiver::new()).collect();
        let streams = (0..count).map(|i| stream(Station(i), "reception")).collect();
        Self { rules, neighbours, carriers, receivers, streams }
    }

    /// A station begins to send a frame to `to` or to all, until `end`. If the frame does not
    /// count, receivers do not record its loss.
    pub(crate) fn begin<W: Witness>(
        &mut self,
        now: Instant,
        from: u32,
        end: Instant,
        (to, counts): (Option<u32>, bool),
        witness: &mut W,
    ) {
        self.neighbours.locate(now, from);
        for &Hearer { station, marks, power } in &self.neighbours.hearers[self.neighbours.of(from)] {
            if marks == 0 {
                continue;
            }
            let carrier = &mut self.carriers[station as usize];
            carrier.sensed += u32::from(marks & SENSED != 0);
            if marks & INTERFERING == 0 {
                // The signal is only sensed.
                if carrier.turn(now, true) {
                    witness.turned(station);
                }
                continue;
            }
            let receiver = &mut self.receivers[station as usize];
            receiver.settle(now, &self.rules);
            let signal = Signal { from, power, end };
            receiver.disturb(now, &signal, &self.rules);
            receiver.signals.push(signal);
            if carrier.turn(now, carrier.sensed > 0 || receiver.has_energy(&self.rules)) {
                witness.turned(station);
            }
            if marks & DECODABLE != 0 {
                let wanted = to.is_none_or(|to| to == station);
                receiver.meet(now, &signal, (wanted, counts), &self.rules);
            }
        }
    }

    /// The frame of a station ends.
    pub(crate) fn end<W: Witness>(&mut self, now: Instant, from: u32, witness: &mut W) {
        for link in self.neighbours.of(from) {
            let Hearer { station, marks, .. } = self.neighbours.hearers[link];
            if marks == 0 {
                continue;
            }
            let Some(lock) = self.fade(now, from, link, witness) else {
                witness.failed(station, None);
                continue;
            };
            if !lock.wanted && !W::OVERHEARS {
                continue;
            }
            let loss = self.neighbours.links[link].loss;
            let draw = self.streams[station as usize].uniform();
            if self.receivers[station as usize].judge(&lock, loss, draw) {
                // The quality of a frame for another station is not needed.
                let (lqi, rssi_dbm) = if lock.wanted { self.rules.quality(now, &lock) } else { (0, None) };
                witness.received(Reception { station, link, lqi, rssi_dbm });
            } else {
                witness.failed(station, Some(lock.followed(now)));
            }
        }
    }

    /// The frame of a station is cut off and not received.
    pub(crate) fn cut<W: Witness>(&mut self, now: Instant, from: u32, witness: &mut W) {
        for link in self.neighbours.of(from) {
            let Hearer { station, marks, .. } = self.neighbours.hearers[link];
            if marks == 0 {
                continue;
            }
            let lock = self.fade(now, from, link, witness);
            if lock.as_ref().is_some_and(Lock::is_counted) {
                self.receivers[station as usize].spoils.missed += 1;
            }
            witness.failed(station, lock.map(|lock| lock.followed(now)));
        }
    }

    /// The signal of a station ends at the far end of a link. Returns the lock of the receiver
    /// there, if it was on this signal.
    #[inline(always)]
    fn fade<W: Witness>(&mut self, now: Instant, from: u32, link: usize, witness: &mut W) -> Option<Lock> {
        let Hearer { station, marks, .. } = self.neighbours.hearers[link];
        let carrier = &mut self.carriers[station as usize];
        carrier.sensed -= u32::from(marks & SENSED != 0);
        if marks & INTERFERING == 0 {
            if carrier.turn(now, carrier.sensed > 0) {
                witness.turned(station);
            }
            return None;
        }
        let receiver = &mut self.receivers[station as usize];
        receiver.settle(now, &self.rules);
        if let Some(at) = receiver.signals.iter().position(|s| s.from == from) {
            receiver.signals.swap_remove(at);
        }
        if carrier.turn(now, carrier.sensed > 0 || receiver.has_energy(&self.rules)) {
            witness.turned(station);
        }
        receiver.lock.take_if(|lock| lock.from == from)
    }

    /// Probability that a frame of this duration is received on a link without interference.
    pub(crate) fn clear_success(&self, link: usize, airtime: Duration) -> f64 {
        self.bits_are_right(link, airtime) * (1.0 - self.neighbours.links[link].loss)
    }

    /// As [`Medium::clear_success`], without the configured loss probability of the link.
    pub(crate) fn bits_are_right(&self, link: usize, airtime: Duration) -> f64 {
        let Hearer { marks, power, .. } = self.neighbours.hearers[link];
        if marks & DECODABLE == 0 {
            return 0.0;
        }
        match self.rules {
            Rules::Disk { .. } => 1.0,
            Rules::Sinr { noise, locks, .. } if power < locks * noise => 0.0,
            Rules::Sinr { noise, coding, .. } => {
                let right = 1.0 - coding.modulation.bit_error_rate(power / noise);
                exp(coding.bits(airtime) * ln(right))
            }
        }
    }

    /// A station listens.
    pub(crate) fn open(&mut self, station: u32) {
        self.receivers[station as usize].open = true;
    }

    /// A station stops listening, and loses the frame that it was receiving.
    pub(crate) fn close(&mut self, station: u32) {
        let receiver = &mut self.receivers[station as usize];
        receiver.open = false;
        if receiver.lock.take().is_some_and(|lock| lock.is_counted()) {
            receiver.spoils.missed += 1;
        }
    }

    /// Whether the channel was busy at a station at any time between `from` and `now`.
    pub(crate) fn was_busy(&self, station: u32, from: Instant, now: Instant) -> bool {
        let carrier = &self.carriers[station as usize];
        carrier.busy_since.is_some_and(|since| since < now) || carrier.busy_until > from
    }

    /// Whether the channel is busy at a station.
    pub(crate) fn is_busy(&self, station: u32) -> bool {
        self.carriers[station as usize].busy_since.is_some()
    }

    /// Time since which the channel is clear at a station that does not notice signals younger than
    /// `unaware`; `None` while it is busy.
    pub(crate) fn clear_since(&self, station: u32, now: Instant, unaware: Duration) -> Option<Instant> {
        let carrier = &self.carriers[station as usize];
        let busy = carrier.busy_since.is_some_and(|since| unaware.is_zero() || since + unaware <= now);
        (!busy).then_some(carrier.busy_until)
    }

    /// Start of the frame that a station is receiving.
    pub(crate) fn lock_begun(&self, station: u32) -> Option<Instant> {
        self.receivers[station as usize].lock.as_ref().map(|lock| lock.begun)
    }

    /// End of the frame that a station is receiving.
    pub(crate) fn lock_end(&self, station: u32) -> Option<Instant> {
        self.receivers[station as usize].lock.as_ref().map(|lock| lock.end)
    }

    /// Total time for which the channel was busy at a station.
    pub(crate) fn busy_time(&self, station: u32, now: Instant) -> Duration {
        let carrier = &self.carriers[station as usize];
        let open = carrier.busy_since.map_or(Duration::ZERO, |since| now.saturating_since(since));
        carrier.busy_time + open
    }

    pub(crate) fn spoils(&self, station: u32) -> Spoils {
        self.receivers[station as usize].spoils
    }
}

impl Rules {
    /// LQI, 0 to 255, and RSSI of a correctly received frame. LQI grows with the margin: the
    /// distance left to the range, or the mean SINR in dB, of which 25 gives the highest LQI.
    fn quality(&self, now: Instant, lock: &Lock) -> (u8, Option<i16>) {
        match *self {
            Self::Disk { range: Some(range), .. } => {
                ((255.0 * (1.0 - 1.0 / (lock.power * range))).round() as u8, None)
            }
            Self::Disk { range: None, .. } => (u8::MAX, Some(decibels(lock.power).round() as i16)),
            Self::Sinr { noise, .. } => {
                let seconds = now.saturating_since(lock.begun).as_secs_f64();
                let sinr = decibels(lock.power / (noise + lock.interference / seconds));
                ((sinr * (255.0 / 25.0)).round() as u8, Some(decibels(lock.power).round() as i16))
            }
        }
    }
}

impl Carrier {
    /// Sets the channel busy or clear. Returns true if this is a change.
    #[inline]
    fn turn(&mut self, now: Instant, busy: bool) -> bool {
        match (busy, self.busy_since) {
            (true, None) => self.busy_since = Some(now),
            (false, Some(since)) => {
                self.busy_time += now.saturating_since(since);
                self.busy_since = None;
                self.busy_until = now;
            }
            (true, Some(_)) | (false, None) => return false,
        }
        true
    }
}

impl Receiver {
    fn new() -> Self {
        Self { signals: Vec::new(), open: true, lock: None, spoils: Spoils::default() }
    }

    /// Brings the sums of a lock up to date before the signals change.
    #[inline]
    fn settle(&mut self, now: Instant, rules: &Rules) {
        let Rules::Sinr { noise, coding, .. } = *rules else { return };
        let Some(lock) = self.lock.as_mut().filter(|lock| lock.wanted && lock.since < now) else { return };
        let others = self.signals.iter().filter(|s| s.from != lock.from);
        let interference = others.map(|s| s.power).sum::<f64>();
        let time = now.saturating_since(lock.since);
        let wrong = coding.modulation.bit_error_rate(lock.power / (noise + interference));
        if wrong > 0.0 {
            lock.ln_success += coding.bits(time) * ln(1.0 - wrong);
        }
        lock.interference += interference * time.as_secs_f64();
        lock.since = now;
    }

    /// Another signal overlaps the frame that is being received.
    #[inline]
    fn disturb(&mut self, now: Instant, signal: &Signal, rules: &Rules) {
        // A frame that ends at this time is not affected.
        let Some(lock) = self.lock.as_mut().filter(|lock| lock.end > now) else { return };
        match *rules {
            Rules::Disk { survives, .. } => {
                if lock.power < survives * signal.power {
                    lock.disturbed = true;
                    lock.spoiled.get_or_insert(now);
                }
            }
            Rules::Sinr { rejects, .. } => {
                lock.disturbed = true;
                if rejects > 0.0 {
                    let others = self.signals.iter().filter(|s| s.from != lock.from && s.end > now);
                    let interference = signal.power + others.map(|s| s.power).sum::<f64>();
                    if lock.power < rejects * interference {
                        lock.spoiled.get_or_insert(now);
                    }
                }
            }
        }
    }

    /// Whether the sum of all signals reaches the energy threshold of a CCA.
    #[inline]
    fn has_energy(&self, rules: &Rules) -> bool {
        match *rules {
            Rules::Disk { .. } => false,
            Rules::Sinr { busy, .. } => self.signals.iter().map(|s| s.power).sum::<f64>() >= busy,
        }
    }

    /// A frame begins on which this receiver could lock.
    fn meet(&mut self, now: Instant, signal: &Signal, (wanted, counts): (bool, bool), rules: &Rules) {
        let counted = wanted && counts;
        if !self.open {
            self.spoils.missed += u64::from(counted);
            return;
        }
        let others = self.signals.iter().filter(|s| s.from != signal.from && s.end > now);
        let (locks, disturbed, spoiled) = match *rules {
            Rules::Disk { joins, takes, .. } => {
                let strongest = others.map(|s| s.power).fold(0.0, f64::max);
                let ratio = if self.lock.is_none() { joins } else { takes };
                // Without capture the ratio is infinite, and infinity times zero is not a number.
                (strongest == 0.0 && self.lock.is_none() || signal.power >= ratio * strongest, true, false)
            }
            Rules::Sinr { noise, locks, takes, rejects, .. } => {
                let interference = others.map(|s| s.power).sum::<f64>();
                let ratio = if self.lock.is_none() { locks } else { takes };
                let locks = signal.power >= ratio * (noise + interference);
                (locks, interference > 0.0, signal.power < rejects * interference)
            }
        };
        if !locks {
            self.spoils.collisions += u64::from(counted && disturbed);
            self.spoils.lost += u64::from(counted && !disturbed);
            return;
        }
        let lock = Lock {
            from: signal.from,
            wanted,
            counts,
            power: signal.power,
            begun: now,
            end: signal.end,
            disturbed: disturbed && matches!(rules, Rules::Sinr { .. }),
            spoiled: spoiled.then_some(now),
            since: now,
            ln_success: 0.0,
            interference: 0.0,
        };
        if self.lock.replace(lock).is_some_and(|left| left.is_counted()) {
            self.spoils.collisions += 1;
        }
    }

    /// Whether a frame that has ended was received, given a random number from 0 to 1.
    fn judge(&mut self, lock: &Lock, loss: f64, draw: f64) -> bool {
        // Without bit errors the probability is 1; this saves the exponential.
        let right = if lock.ln_success == 0.0 { 1.0 } else { exp(lock.ln_success) };
        let through = lock.spoiled.is_none() && draw < (1.0 - loss) * right;
        if !through && lock.is_counted() {
            match lock.disturbed {
                true => self.spoils.collisions += 1,
                false => self.spoils.lost += 1,
            }
        }
        through
    }
}
