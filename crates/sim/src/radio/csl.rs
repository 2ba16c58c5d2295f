//! Coordinated sampled listening: IEEE Std 802.15.4-2020, section 6.12.2.
//!
//! A sleeping station opens its receiver once in macCslPeriod for a channel sample. If the channel
//! is busy, it stays awake until it receives a wake-up frame, which contains the time of the
//! announced frame (rendezvous time). A sender sends a back-to-back sequence of wake-up frames
//! before its frame. The sequence lasts macCslMaxPeriod if the sender does not know when the
//! receiver samples, or broadcasts. Otherwise it covers the next sample; its position follows from
//! the phase in the last enhanced acknowledgement and the possible drift of the two clocks since
//! then. No wake-up frame is needed within macCslFramePendingWait for a receiver that was told that
//! another frame follows, nor for one that never sleeps.
//!
//! Choices that the standard leaves open:
//! - The backoff of a synchronised transmission is a lead: its CCA ends, and its wake-up sequence
//!   begins, a random number of backoff periods before the first time at which the receiver may
//!   sample. Of several senders that wait for the same sample, the first gets the channel. A busy
//!   channel counts as one of macMaxCsmaBackoffs, and the sender waits for the next sample.
//! - A station that has received a wake-up frame knows how long the channel is occupied, whether it
//!   is the destination or not. It begins no backoff before that time, and a CCA that detects this
//!   transmission does not count.
//! - A station sleeps during backoffs, and is awake from the CCA to the acknowledgement.
//! - A retransmitted frame has its wake-up sequence again. When a frame is given up, the sender
//!   forgets the phase.

use anabranch_core::time::{Duration, Instant};
use anabranch_wire::ieee802154::Csl;

use super::state::{Alarm, FrameEnd, State};
use super::{CslConfig, MEDIUM, Radio, Station};
use crate::air::meter::Activity;
use crate::event::{Agenda, Event};
use crate::random::Stream;

/// A station's knowledge of a sleeping receiver.
#[derive(Clone, Copy, Debug)]
struct Phase {
    station: u32,
    /// Start of one of its samples, with a resolution of one unit, by the clocks at that time.
    sample: Instant,
    learned: Instant,
}

/// CSL state of one station.
#[derive(Debug)]
pub(super) struct Listener {
    /// macCslPeriod; `None` if it never sleeps.
    period: Option<Duration>,
    /// Deviation of its clock: how much slower it is, in parts per billion.
    drift: i64,
    awake: bool,
    next_sample: Instant,
    /// The station stays awake until this time, and longer if the channel is busy, up to the limit.
    awake_until: Instant,
    limit: Instant,
    /// Time of the last look at the channel.
    looked: Instant,
    /// Latest start of the frame of a rendezvous.
    met_by: Instant,
    /// End of an announced transmission, until which the channel is occupied.
    taken_until: Instant,
    phases: Vec<Phase>,
    /// A receiver that stays awake for another frame, and until when.
    waiting: Option<(u32, Instant)>,
    /// Wake-up frames still to be sent before the frame.
    pub(super) wakeups: u32,
    /// Whether the frame being acknowledged announces another one.
    pub(super) more_follows: bool,
    /// Generations of the timers that end a time awake and that start a rendezvous; an increment
    /// makes the pending event void.
    dozes: u32,
    meetings: u32,
    random: Stream,
}

impl Listener {
    pub(super) fn new(config: &CslConfig, mut random: Stream) -> Self {
        let most = f64::from(config.clock_accuracy_ppm) * 1000.0;
        let drift = ((2.0 * random.uniform() - 1.0) * most).round() as i64;
        Self {
            period: (!config.period.is_zero()).then_some(config.period),
            drift,
            awake: true,
            next_sample: Instant::ZERO,
            awake_until: Instant::ZERO,
            limit: Instant::ZERO,
            looked: Instant::ZERO,
            met_by: Instant::ZERO,
            taken_until: Instant::ZERO,
            phases: Vec::new(),
            waiting: None,
            wakeups: 0,
            more_follows: false,
            dozes: 0,
            meetings: 0,
            random,
        }
    }

    pub(super) fn set_period(&mut self, period: Duration) {
        self.period = (!period.is_zero()).then_some(period);
    }

    pub(super) fn sleeps(&self) -> bool {
        self.period.is_some()
    }

    /// True time until `time` has passed by the station's clock.
    fn by_clock(&self, time: Duration) -> Duration {
        let nanos = i128::from(time.as_nanos());
        Duration::from_nanos((nanos + nanos * i128::from(self.drift) / 1_000_000_000) as u64)
    }

    /// End of the transmission that is known to occupy the channel.
    pub(super) fn taken_until(&self) -> Instant {
        self.taken_until
    }

    fn phase(&self, station: u32) -> Option<Phase> {
        let at = self.phases.binary_search_by_key(&station, |phase| phase.station).ok()?;
        Some(self.phases[at])
    }

    fn learn(&mut self, phase: Phase) {
        match self.phases.binary_search_by_key(&phase.station, |known| known.station) {
            Ok(at) => self.phases[at] = phase,
            Err(at) => self.phases.insert(at, phase),
        }
    }

    fn forget(&mut self, station: u32) {
        self.phases.retain(|phase| phase.station != station);
    }

    /// Forgets everything when the station goes down.
    pub(super) fn reset(&mut self) {
        self.phases.clear();
        self.waiting = None;
        self.wakeups = 0;
        self.more_follows = false;
        self.taken_until = Instant::ZERO;
        self.awake_until = Instant::ZERO;
        self.dozes = self.dozes.wrapping_add(1);
        self.meetings = self.meetings.wrapping_add(1);
        self.awake = true;
    }

    /// Whether an event is still valid.
    pub(super) fn is_due(&self, alarm: Alarm, generation: u32) -> bool {
        match alarm {
            Alarm::Doze => generation == self.dozes,
            _ => generation == self.meetings,
        }
    }
}

/// Largest drift between two clocks within a time.
fn drift_apart(time: Duration, csl: &CslConfig) -> Duration {
    Duration::from_nanos(2 * time.as_nanos() * u64::from(csl.clock_accuracy_ppm) / 1_000_000 + 1)
}

impl Radio {
    /// Starts the sleep of all stations.
    pub(super) fn start_sampling(&mut self, now: Instant, agenda: &mut Agenda) {
        let stations = self.macs.len() as u32;
        self.sleepers = (0..stations).filter(|station| self.sleeps(Station(*station))).count() as u32;
        (0..stations).for_each(|station| self.sample_from(now, station, agenda));
    }

    /// Puts a station to sleep, with its first sample at a random time within its period.
    pub(super) fn sample_from(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let Some(listener) = &mut self.macs[station as usize].csl else { return };
        let Some(period) = listener.period else { return };
        let offset = (listener.random.uniform() * period.as_nanos() as f64) as u64;
        listener.next_sample = now + Duration::from_nanos(offset);
        self.push_sample(station, agenda);
        self.sleep(now, station);
    }

    fn push_sample(&self, station: u32, agenda: &mut Agenda) {
        let mac = &self.macs[station as usize];
        let Some(listener) = &mac.csl else { return };
        let (what, generation) = (Alarm::Sample as u32, mac.epoch());
        agenda.push(listener.next_sample, Event::Medium { medium: MEDIUM, station, what, generation });
    }

    /// Begins a channel sample.
    pub(super) fn sample(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let Some(csl) = self.csl else { return };
        let engaged = self.macs[station as usize].is_engaged();
        let Some(listener) = &mut self.macs[station as usize].csl else { return };
        let Some(period) = listener.period else { return };
        listener.next_sample = now + listener.by_clock(period);
        let asleep = !listener.awake && !engaged && now >= listener.taken_until;
        self.push_sample(station, agenda);
        if asleep {
            self.stay(now, station, now + csl.sample, self.patience(now), agenda);
        }
    }

    /// Latest time until which a receiver stays on a busy channel that brings no frame: the longest
    /// frame of another transmission, and a complete wake-up frame after it.
    fn patience(&self, now: Instant) -> Instant {
        now + self.phy.airtime(self.phy.max_psdu) + self.phy.airtime(self.phy.wakeup_psdu()) * 2
    }

    /// Keeps a station awake until a time, and longer while the channel is busy, up to the limit.
    fn stay(&mut self, now: Instant, station: u32, until: Instant, limit: Instant, agenda: &mut Agenda) {
        self.wake(now, station);
        let Some(listener) = &mut self.macs[station as usize].csl else { return };
        listener.awake_until = listener.awake_until.max(until);
        listener.limit = limit;
        listener.looked = now;
        self.push_doze(station, agenda);
    }

    fn push_doze(&mut self, station: u32, agenda: &mut Agenda) {
        let Some(listener) = &mut self.macs[station as usize].csl else { return };
        listener.dozes = listener.dozes.wrapping_add(1);
        let (what, generation) = (Alarm::Doze as u32, listener.dozes);
        agenda.push(listener.awake_until, Event::Medium { medium: MEDIUM, station, what, generation });
    }

    /// Switches the receiver on if the station is asleep.
    pub(super) fn wake(&mut self, now: Instant, station: u32) {
        let busy = self.medium.busy_time(station, now);
        let mac = &mut self.macs[station as usize];
        let Some(listener) = mac.csl.as_mut().filter(|listener| !listener.awake) else { return };
        listener.awake = true;
        mac.meter.enter(now, Activity::Hear, busy);
        self.medium.open(station);
    }

    fn sleep(&mut self, now: Instant, station: u32) {
        let busy = self.medium.busy_time(station, now);
        let mac = &mut self.macs[station as usize];
        let Some(listener) = mac.csl.as_mut().filter(|listener| listener.awake && listener.sleeps()) else {
            return;
        };
        listener.awake = false;
        listener.awake_until = now;
        mac.meter.enter(now, Activity::Sleep, busy);
        self.medium.close(station);
    }

    /// Ends a time awake, unless the channel is busy.
    pub(super) fn doze(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let Some(csl) = self.csl else { return };
        if self.macs[station as usize].is_engaged() {
            // The station looks again when the transmission has ended.
            return;
        }
        let Some(listener) = &mut self.macs[station as usize].csl else { return };
        if !listener.awake {
            return;
        }
        let busy = self.medium.was_busy(station, listener.looked, now);
        // A frame that begins after the limit is not the one that the station waits for.
        let begun = self.medium.lock_begun(station).filter(|begun| *begun <= listener.limit);
        let next = match begun.and_then(|_| self.medium.lock_end(station)) {
            Some(end) => Some(end.max(now)),
            None if busy && now < listener.limit => Some(now + csl.sample),
            None => None,
        };
        listener.looked = now;
        match next {
            Some(until) => {
                listener.awake_until = until;
                self.push_doze(station, agenda);
            }
            None => self.sleep(now, station),
        }
    }

    /// Returns to sleep after an activity, unless the station has to stay awake.
    pub(super) fn relax(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let mac = &self.macs[station as usize];
        let Some(listener) = mac.csl.as_ref().filter(|listener| listener.awake && listener.sleeps()) else {
            return;
        };
        if mac.is_engaged() {
            return;
        }
        match listener.awake_until > now {
            true => self.push_doze(station, agenda),
            false => self.sleep(now, station),
        }
    }

    /// After a CCA that found the channel busy, stays awake for a wake-up frame that says for how
    /// long.
    pub(super) fn look_around(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let Some(csl) = self.csl else { return };
        if self.sleeps(Station(station)) {
            self.stay(now, station, now + csl.sample, self.patience(now), agenda);
        }
    }

    /// Handles a received wake-up frame.
    pub(super) fn receive_wakeup(
        &mut self,
        now: Instant,
        station: u32,
        (to, rendezvous): (Option<Station>, u16),
        agenda: &mut Agenda,
    ) {
        let Some(csl) = self.csl else { return };
        let unit = self.phy.csl_unit();
        let taken = unit + self.phy.airtime(self.phy.max_psdu);
        let engaged = self.macs[station as usize].is_engaged();
        let Some(listener) = &mut self.macs[station as usize].csl else { return };
        let until_frame = unit * u64::from(rendezvous);
        listener.taken_until = listener.taken_until.max(now + until_frame + taken);
        if !listener.sleeps() {
            return;
        }
        let mut meets_now = false;
        if to.is_none_or(|to| to.0 == station) {
            let margin = drift_apart(until_frame, &csl);
            // The rendezvous time is rounded down, so the frame may begin one unit later.
            listener.met_by = now + until_frame + unit + margin;
            let wait = listener.by_clock(until_frame.saturating_sub(margin));
            listener.meetings = listener.meetings.wrapping_add(1);
            meets_now = wait.is_zero();
            let (what, generation) = (Alarm::Rendezvous as u32, listener.meetings);
            agenda.push(now + wait, Event::Medium { medium: MEDIUM, station, what, generation });
        }
        if !engaged && !meets_now {
            self.sleep(now, station);
        }
    }

    /// Wakes a station for an announced frame.
    pub(super) fn meet(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let Some(listener) = &self.macs[station as usize].csl else { return };
        let by = listener.met_by.max(now);
        self.stay(now, station, by, by, agenda);
    }

    /// Handles the end of a received frame, and of its acknowledgement if one was requested.
    pub(super) fn served(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let Some(csl) = self.csl else { return };
        let mac = &mut self.macs[station as usize];
        let Some(listener) = mac.csl.as_mut().filter(|listener| listener.sleeps()) else { return };
        listener.awake_until = now;
        if std::mem::take(&mut listener.more_follows) {
            let until = now + csl.frame_pending_wait;
            self.stay(now, station, until, until, agenda);
        } else {
            self.relax(now, station, agenda);
        }
    }

    /// Time of the next sample in an enhanced acknowledgement that begins now; `None` if the
    /// station never sleeps.
    pub(super) fn say_phase(&self, now: Instant, station: u32) -> Option<Csl> {
        let listener = self.macs[station as usize].csl.as_ref()?;
        let units =
            |time: Duration| (time.as_nanos() / self.phy.csl_unit().as_nanos()).min(u64::from(u16::MAX));
        let phase = listener.next_sample.saturating_since(now);
        Some(Csl { phase: units(phase) as u16, period: units(listener.period?) as u16 })
    }

    /// Learns the phase from an acknowledgement that began at `begun`.
    pub(super) fn hear_phase(&mut self, now: Instant, station: u32, from: u32, (begun, csl): (Instant, Csl)) {
        let unit = self.phy.csl_unit();
        let Some(listener) = &mut self.macs[station as usize].csl else { return };
        listener.learn(Phase { station: from, sample: begun + unit * u64::from(csl.phase), learned: now });
    }

    /// Handles the end of a unicast frame.
    pub(super) fn note_end(&mut self, now: Instant, station: u32, to: u32, end: FrameEnd) {
        let Some(csl) = self.csl else { return };
        let sleeps = self.sleeps(Station(to));
        let Some(listener) = &mut self.macs[station as usize].csl else { return };
        listener.wakeups = 0;
        // A receiver that was not told of another frame sleeps, whatever it was told before.
        listener.waiting = match end {
            FrameEnd::Acknowledged { pending: true } if sleeps => Some((to, now + csl.frame_pending_wait)),
            _ => listener.waiting.filter(|(who, _)| *who != to),
        };
        if end == FrameEnd::NoAck {
            listener.forget(to);
        }
    }

    /// Start of the CCA of a frame, not before `from`, after this number of backoff periods, and
    /// the number of wake-up frames before the frame.
    pub(super) fn plan_access(&self, from: Instant, station: u32, periods: u64) -> (Instant, u32) {
        let mac = &self.macs[station as usize];
        let cca = from + self.phy.backoff_period * periods;
        let (Some(csl), Some(listener), Some(frame)) = (&self.csl, &mac.csl, mac.frame()) else {
            return (cca, 0);
        };
        let whole = self.wakeups_for(csl.max_period + drift_apart(csl.max_period, csl));
        let Some(to) = frame.to else {
            let others = self.sleepers > u32::from(listener.sleeps());
            return (cca, if others { whole } else { 0 });
        };
        let Some(period) = self.macs[to.0 as usize].csl.as_ref().and_then(|other| other.period) else {
            return (cca, 0);
        };
        let begins = cca + self.phy.cca + self.phy.turnaround;
        let waits = listener.waiting.is_some_and(|(who, until)| who == to.0 && begins < until);
        if waits && mac.is_first_attempt() {
            return (cca, 0);
        }
        let phase = listener.phase(to.0).filter(|_| csl.synchronized);
        phase
            .and_then(|phase| self.plan_synchronized(from, (listener, phase, period), periods))
            .unwrap_or((cca, whole))
    }

    /// The plan around a sample of the receiver; `None` if the time of the sample is too uncertain.
    fn plan_synchronized(
        &self,
        from: Instant,
        (listener, phase, period): (&Listener, Phase, Duration),
        periods: u64,
    ) -> Option<(Instant, u32)> {
        let csl = self.csl.as_ref()?;
        let before = self.phy.backoff_period * periods + self.phy.turnaround + self.phy.cca;
        let passed = from.saturating_since(phase.sample);
        // The error of the clocks is so small that the sample is this one or one of the next two.
        let mut k = passed.as_nanos() / period.as_nanos();
        loop {
            let sample = phase.sample + listener.by_clock(period * k);
            let apart = drift_apart(sample.saturating_since(phase.learned), csl);
            let unsure = apart * 2 + self.phy.csl_unit();
            if unsure >= csl.max_period {
                return None;
            }
            let earliest = from + before + apart;
            if sample >= earliest {
                let lead = self.phy.backoff_period * periods;
                let cca = Instant::from_nanos(sample.as_nanos() - (before + apart).as_nanos());
                return Some((cca, self.wakeups_for(lead + unsure)));
            }
            k += 1;
        }
    }

    /// Number of wake-up frames that last for this time, at least one.
    fn wakeups_for(&self, time: Duration) -> u32 {
        time.as_nanos().div_ceil(self.phy.airtime(self.phy.wakeup_psdu()).as_nanos()).max(1) as u32
    }

    /// Rendezvous time of a wake-up frame that is followed by this number of others.
    pub(super) fn rendezvous(&self, others: u32) -> u16 {
        let time = self.phy.airtime(self.phy.wakeup_psdu()) * u64::from(others);
        (time.as_nanos() / self.phy.csl_unit().as_nanos()).min(u64::from(u16::MAX)) as u16
    }

    /// Ends a backoff. Returns false if the channel is known to be occupied, in which case the
    /// station begins again.
    pub(super) fn begin_assessment(&mut self, now: Instant, station: u32) -> bool {
        let taken = self.macs[station as usize].csl.as_ref().is_some_and(|csl| csl.taken_until > now);
        if !taken {
            self.wake(now, station);
            self.macs[station as usize].set_state(State::Assess);
        }
        !taken
    }
}
