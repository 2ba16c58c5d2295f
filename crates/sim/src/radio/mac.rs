//! Non-slotted CSMA-CA, acknowledgements and retries: IEEE Std 802.15.4-2020, sections 6.2.5.1 and
//! 6.7.
//!
//! A frame takes these steps: backoff, CCA, turnaround, frame, and for a unicast frame the wait for
//! its acknowledgement. A busy CCA leads to another backoff. Too many busy CCAs are a channel
//! access failure, which ends the frame immediately, also in a retry. After a missing
//! acknowledgement all steps are repeated.
//!
//! Choices that the standard leaves open: a radio that turns around to send an acknowledgement, or
//! sends it, cannot assess the channel; a CCA in this time finds the channel busy. A radio is back
//! in reception immediately after it has sent. While it waits for an acknowledgement it receives
//! all frames, and acknowledges them. A CCA finds the channel busy if it is busy at any time within
//! the eight symbols. A further frame waits for the interframe space before its backoff begins.

use anabranch_core::time::{Duration, Instant};

use super::csl::Listener;
use super::metrics::StationMetrics;
use super::state::{Alarm, FrameEnd, State};
use super::{Csl, Effect, FrameKind, MEDIUM, Outcome, Outgoing, Radio, Station};
use crate::air::medium::Reception;
use crate::air::meter::{Activity, Meter};
use crate::event::{Agenda, Event};
use crate::random::Stream;

/// The transmission of a station at this time.
#[derive(Clone, Copy, Debug)]
struct OnAir {
    start: Instant,
    frame: Outgoing,
    serial: u32,
    kind: FrameKind,
}

/// An acknowledgement that is due.
#[derive(Clone, Copy, Debug)]
struct PendingAck {
    frame: Outgoing,
    serial: u32,
}

/// MAC state of one station.
#[derive(Debug)]
pub(super) struct Mac {
    up: bool,
    state: State,
    frame: Option<Outgoing>,
    /// Index of the link to the destination, if anything is received there.
    link: Option<usize>,
    /// Number of frames of the station. Its lowest byte is the sequence number in the frame.
    /// Duplicates are detected by the whole number, so a frame is not taken for a duplicate of one
    /// that was sent 256 frames before.
    serial: u32,
    /// NB: busy CCAs in this run of CSMA-CA.
    nb: u8,
    /// BE: backoff exponent.
    be: u8,
    /// Transmissions of the current frame.
    attempts: u8,
    /// End of the interframe space, before which no backoff begins.
    ready: Instant,
    access_from: Instant,
    cca_from: Instant,
    /// End of the last transmission of any kind.
    sent_until: Instant,
    /// Generation of the frame's timer; an increment makes the pending event void.
    generation: u32,
    /// Generation of all timers: the number of times that the station went down.
    epoch: u32,
    on_air: Option<OnAir>,
    ack: Option<PendingAck>,
    pub(super) csl: Option<Box<Listener>>,
    random: Stream,
    pub(super) meter: Meter,
    pub(super) metrics: StationMetrics,
}

impl Mac {
    pub(super) fn new(random: Stream, csl: Option<Box<Listener>>) -> Self {
        Self {
            up: true,
            state: State::Idle,
            frame: None,
            link: None,
            serial: 0,
            nb: 0,
            be: 0,
            attempts: 0,
            ready: Instant::ZERO,
            access_from: Instant::ZERO,
            cca_from: Instant::ZERO,
            sent_until: Instant::ZERO,
            generation: 0,
            epoch: 0,
            on_air: None,
            ack: None,
            csl,
            random,
            meter: Meter::new(),
            metrics: StationMetrics::default(),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.up
    }

    /// Whether no frame is being sent.
    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Whether the station needs its radio: it assesses the channel, sends, or waits for an
    /// acknowledgement.
    pub(super) fn is_engaged(&self) -> bool {
        self.ack.is_some() || self.on_air.is_some() || !matches!(self.state, State::Idle | State::Backoff)
    }

    pub(super) fn is_first_attempt(&self) -> bool {
        self.attempts == 0
    }

    pub(super) fn frame(&self) -> Option<Outgoing> {
        self.frame
    }

    pub(super) fn epoch(&self) -> u32 {
        self.epoch
    }

    pub(super) fn set_state(&mut self, state: State) {
        self.state = state;
    }
}

impl Radio {
    /// Accepts a checked frame at an idle station.
    pub(super) fn accept(
        &mut self,
        now: Instant,
        station: u32,
        frame: Outgoing,
        again: bool,
        agenda: &mut Agenda,
    ) {
        let link = frame.to.and_then(|to| self.medium.neighbours.find(station, to.0));
        let mac = &mut self.macs[station as usize];
        mac.metrics.offered += 1;
        if !again {
            // 0 stands for no frame.
            mac.serial = mac.serial.wrapping_add(1).max(1);
        }
        (mac.frame, mac.link, mac.attempts) = (Some(frame), link, 0);
        let from = now.max(mac.ready);
        self.access(from, station, agenda);
    }

    pub(super) fn alarm(
        &mut self,
        now: Instant,
        station: u32,
        what: u32,
        generation: u32,
        agenda: &mut Agenda,
    ) {
        let Some(alarm) = Alarm::of(what) else { return };
        let mac = &self.macs[station as usize];
        let due = match alarm {
            Alarm::CcaStart | Alarm::CcaEnd | Alarm::FrameStart | Alarm::AckTimeout => {
                generation == mac.generation
            }
            Alarm::AckStart | Alarm::AirEnd | Alarm::Sample => generation == mac.epoch,
            Alarm::Doze | Alarm::Rendezvous => {
                mac.csl.as_ref().is_some_and(|csl| csl.is_due(alarm, generation))
            }
        };
        if !due {
            return;
        }
        match alarm {
            Alarm::CcaEnd => self.cca_end(now, station, agenda),
            Alarm::FrameStart => self.frame_start(now, station, agenda),
            Alarm::AckTimeout => self.ack_timeout(now, station, agenda),
            Alarm::AckStart => self.ack_start(now, station, agenda),
            Alarm::AirEnd => self.air_end(now, station, agenda),
            Alarm::CcaStart => self.cca_start(now, station, agenda),
            Alarm::Sample => self.sample(now, station, agenda),
            Alarm::Doze => self.doze(now, station, agenda),
            Alarm::Rendezvous => self.meet(now, station, agenda),
        }
    }

    /// Sets the timer of a station's frame and makes the previous one void.
    fn set_alarm(&mut self, at: Instant, station: u32, alarm: Alarm, agenda: &mut Agenda) {
        let mac = &mut self.macs[station as usize];
        mac.generation = mac.generation.wrapping_add(1);
        agenda.push(
            at,
            Event::Medium { medium: MEDIUM, station, what: alarm as u32, generation: mac.generation },
        );
    }

    /// Begins a run of CSMA-CA.
    fn access(&mut self, from: Instant, station: u32, agenda: &mut Agenda) {
        let mac = &mut self.macs[station as usize];
        (mac.nb, mac.be, mac.state, mac.access_from) = (0, self.mac.min_be, State::Backoff, from);
        self.back_off(from, station, agenda);
    }

    /// Schedules a backoff and the following CCA: one event for both, unless the station can sleep
    /// in between.
    fn back_off(&mut self, from: Instant, station: u32, agenda: &mut Agenda) {
        let mac = &mut self.macs[station as usize];
        let periods = mac.random.range(0..=(1 << mac.be) - 1);
        if let Some(csl) = &mac.csl {
            let from = from.max(csl.taken_until());
            let (cca_from, wakeups) = self.plan_access(from, station, periods);
            let mac = &mut self.macs[station as usize];
            mac.cca_from = cca_from;
            if let Some(csl) = &mut mac.csl {
                csl.wakeups = wakeups;
            }
            self.set_alarm(cca_from, station, Alarm::CcaStart, agenda);
            return;
        }
        mac.cca_from = from + self.phy.backoff_period * periods;
        let end = mac.cca_from + self.phy.cca;
        self.set_alarm(end, station, Alarm::CcaEnd, agenda);
    }

    /// Begins the CCA of a station that can sleep.
    fn cca_start(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        match self.begin_assessment(now, station) {
            true => self.set_alarm(now + self.phy.cca, station, Alarm::CcaEnd, agenda),
            false => self.back_off(now, station, agenda),
        }
    }

    fn cca_end(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let mac = &mut self.macs[station as usize];
        let engaged = mac.ack.is_some() || mac.on_air.is_some() || mac.sent_until > mac.cca_from;
        let busy = engaged || self.medium.was_busy(station, mac.cca_from, now);
        mac.metrics.ccas += 1;
        mac.metrics.busy_ccas += u64::from(busy);
        // An announced transmission does not count as a channel access failure.
        let taken = mac.csl.as_ref().is_some_and(|csl| csl.taken_until() > now);
        let failed = busy && !taken && mac.nb == self.mac.max_csma_backoffs;
        if failed || !busy {
            mac.metrics.accesses += 1;
            mac.metrics.access_time += now.saturating_since(mac.access_from);
        }
        if failed {
            self.finish(now, station, Outcome::ChannelAccessFailure);
            self.relax(now, station, agenda);
        } else if busy {
            if !taken {
                mac.nb += 1;
                mac.be = (mac.be + 1).min(self.mac.max_be);
            }
            mac.state = State::Backoff;
            self.look_around(now, station, agenda);
            self.back_off(now, station, agenda);
        } else {
            mac.state = State::Turnaround;
            self.medium.close(station);
            self.set_alarm(now + self.phy.turnaround, station, Alarm::FrameStart, agenda);
        }
    }

    fn frame_start(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let mac = &mut self.macs[station as usize];
        let frame = mac.frame.expect("a station turns around for a frame");
        mac.state = State::OnAir;
        if let Some(csl) = mac.csl.as_mut().filter(|csl| csl.wakeups > 0) {
            csl.wakeups -= 1;
            let others = csl.wakeups;
            mac.metrics.wakeups += 1;
            let serial = mac.serial;
            let (psdu_len, rendezvous) = (self.phy.wakeup_psdu(), self.rendezvous(others));
            let frame = Outgoing { psdu_len, ..frame };
            let on_air = OnAir { start: now, frame, serial, kind: FrameKind::Wakeup { rendezvous } };
            return self.transmit(now, station, on_air, agenda);
        }
        mac.metrics.transmissions += 1;
        mac.metrics.retries += u64::from(mac.attempts > 0);
        mac.attempts += 1;
        if let Some(link) = mac.link {
            self.medium.neighbours.links[link].metrics.sent += 1;
        }
        let serial = mac.serial;
        // A receiver that samples the channel answers with an enhanced acknowledgement, which only
        // frames of version 2 request.
        let version = if frame.to.is_some_and(|to| self.sleeps(to)) { 2 } else { 0 };
        let kind = FrameKind::Data { version, pending: frame.pending };
        let on_air = OnAir { start: now, frame, serial, kind };
        self.transmit(now, station, on_air, agenda);
    }

    fn ack_start(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let mac = &mut self.macs[station as usize];
        let Some(PendingAck { frame, serial }) = mac.ack.take() else { return };
        mac.metrics.acks += 1;
        let kind = FrameKind::Ack(self.say_phase(now, station));
        self.transmit(now, station, OnAir { start: now, frame, serial, kind }, agenda);
    }

    fn transmit(&mut self, now: Instant, station: u32, on_air: OnAir, agenda: &mut Agenda) {
        let end = now + self.phy.airtime(on_air.frame.psdu_len);
        let busy = self.medium.busy_time(station, now);
        let mac = &mut self.macs[station as usize];
        mac.on_air = Some(on_air);
        mac.meter.enter(now, Activity::Transmit, busy);
        agenda.push(
            end,
            Event::Medium { medium: MEDIUM, station, what: Alarm::AirEnd as u32, generation: mac.epoch },
        );
        // All stations that are awake receive wake-up frames. A missed one does not count, since
        // the next one has the same content.
        let (to, counts) = match on_air.kind {
            FrameKind::Wakeup { .. } => (None, false),
            FrameKind::Data { .. } | FrameKind::Ack(_) => (on_air.frame.to.map(|to| to.0), true),
        };
        self.medium.begin(now, station, end, (to, counts), &mut self.receptions);
    }

    fn air_end(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let busy = self.medium.busy_time(station, now);
        let mac = &mut self.macs[station as usize];
        let on_air = mac.on_air.take().expect("the end of a frame has its frame");
        mac.sent_until = now;
        let is_wakeup = matches!(on_air.kind, FrameKind::Wakeup { .. });
        // After a wake-up frame, the next frame follows immediately, so the radio stays in
        // transmission.
        if !is_wakeup {
            mac.meter.enter(now, Activity::Hear, busy);
        }
        let mut receptions = std::mem::take(&mut self.receptions);
        self.medium.end(now, station, &mut receptions);
        if !is_wakeup {
            self.medium.open(station);
        }
        self.show(now, station, &on_air, Some(&receptions));
        let broadcast = on_air.frame.to.is_none();
        let is_data = matches!(on_air.kind, FrameKind::Data { .. });
        if is_data && !broadcast {
            self.macs[station as usize].state = State::AckWait;
            let wait = self.phy.ack_wait(self.ack_psdu(on_air.frame.to));
            self.set_alarm(now + wait, station, Alarm::AckTimeout, agenda);
        }
        for reception in receptions.drain(..) {
            let at = reception.station;
            match on_air.kind {
                FrameKind::Ack(csl) => {
                    self.receive_ack(now, at, (station, &on_air), csl);
                    self.relax(now, at, agenda);
                }
                FrameKind::Data { .. } => self.receive(now, station, reception, &on_air, agenda),
                FrameKind::Wakeup { rendezvous } => {
                    self.receive_wakeup(now, at, (on_air.frame.to, rendezvous), agenda);
                }
            }
        }
        self.receptions = receptions;
        match on_air.kind {
            // Back to back: the announced frame, or the next wake-up frame.
            FrameKind::Wakeup { .. } => self.frame_start(now, station, agenda),
            FrameKind::Ack(_) => self.served(now, station, agenda),
            FrameKind::Data { .. } if broadcast => {
                // After the receptions: from here on the sender may drop the packet.
                self.finish(now, station, Outcome::Sent);
                self.relax(now, station, agenda);
            }
            FrameKind::Data { .. } => {}
        }
    }

    fn receive_ack(&mut self, now: Instant, station: u32, (from, ack): (u32, &OnAir), csl: Option<Csl>) {
        let mac = &self.macs[station as usize];
        if mac.state == State::AckWait && mac.serial == ack.serial {
            if let Some(csl) = csl {
                self.hear_phase(now, station, from, (ack.start, csl));
            }
            self.finish(now, station, Outcome::Acknowledged);
        }
    }

    /// Length of the PSDU of an acknowledgement from a station, in bytes.
    fn ack_psdu(&self, from: Option<Station>) -> u16 {
        match from.is_some_and(|from| self.sleeps(from)) {
            true => self.phy.enh_ack_psdu(),
            false => self.phy.ack_psdu,
        }
    }

    /// Handles a correctly received frame: it is delivered once, and acknowledged each time.
    fn receive(&mut self, now: Instant, from: u32, got: Reception, on_air: &OnAir, agenda: &mut Agenda) {
        let Reception { station: at, link, lqi, rssi_dbm } = got;
        let last_serial = &mut self.medium.neighbours.links[link].last_serial;
        let copy = std::mem::replace(last_serial, on_air.serial) == on_air.serial;
        let ack_psdu = self.ack_psdu(Some(Station(at)));
        let mac = &mut self.macs[at as usize];
        mac.metrics.duplicates += u64::from(copy);
        mac.metrics.received += u64::from(!copy);
        if !copy {
            let Outgoing { tag, psdu_len, .. } = on_air.frame;
            let (at, from) = (Station(at), Station(from));
            self.effects.push_back(Effect::Received { at, from, tag, psdu_len, lqi, rssi_dbm });
        }
        if on_air.frame.to.is_some() {
            let (to, tag) = (Some(Station(from)), on_air.frame.tag);
            let frame = Outgoing { to, psdu_len: ack_psdu, tag, pending: false };
            mac.ack = Some(PendingAck { frame, serial: on_air.serial });
            if let Some(csl) = &mut mac.csl {
                csl.more_follows = on_air.frame.pending;
            }
            let (what, generation) = (Alarm::AckStart as u32, mac.epoch);
            self.medium.close(at);
            agenda.push(
                now + self.phy.turnaround,
                Event::Medium { medium: MEDIUM, station: at, what, generation },
            );
        } else {
            self.served(now, at, agenda);
        }
    }

    fn ack_timeout(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let mac = &mut self.macs[station as usize];
        if let Some(link) = mac.link {
            self.medium.neighbours.links[link].metrics.lost += 1;
        }
        if mac.attempts > self.mac.max_frame_retries {
            self.finish(now, station, Outcome::NoAck);
            self.relax(now, station, agenda);
            return;
        }
        let most = self.mac.retry_delay.as_nanos();
        // Draws no random number for a zero delay, so that the MAC of the standard keeps its
        // sequence of random numbers.
        let delay = if most == 0 { 0 } else { mac.random.range(0..=most) };
        self.access(now + Duration::from_nanos(delay), station, agenda);
        self.relax(now, station, agenda);
    }

    /// Finishes a frame.
    fn finish(&mut self, now: Instant, station: u32, outcome: Outcome) {
        let mac = &mut self.macs[station as usize];
        let frame = mac.frame.take().expect("what ends has been under way");
        mac.state = State::Idle;
        mac.generation = mac.generation.wrapping_add(1);
        let metrics = &mut mac.metrics;
        match outcome {
            Outcome::Acknowledged => {
                metrics.acknowledged += 1;
                if let Some(link) = mac.link {
                    self.medium.neighbours.links[link].metrics.acknowledged += 1;
                }
            }
            Outcome::Sent => metrics.broadcast += 1,
            Outcome::NoAck => metrics.no_ack += 1,
            Outcome::ChannelAccessFailure => metrics.channel_access_failures += 1,
            Outcome::Down => metrics.down += 1,
        }
        if let Outcome::Acknowledged | Outcome::Sent = outcome {
            mac.ready = now + self.phy.interframe_space(frame.psdu_len);
        }
        let attempts = mac.attempts;
        if let (Some(to), true) = (frame.to, mac.csl.is_some()) {
            let end = match outcome {
                Outcome::Acknowledged => FrameEnd::Acknowledged { pending: frame.pending },
                Outcome::NoAck => FrameEnd::NoAck,
                Outcome::Sent | Outcome::ChannelAccessFailure | Outcome::Down => FrameEnd::Other,
            };
            self.note_end(now, station, to.0, end);
        }
        let station = Station(station);
        self.effects.push_back(Effect::Done { station, tag: frame.tag, outcome, attempts });
    }

    /// Takes a station down; its transmission is cut off.
    pub(super) fn go_down(&mut self, now: Instant, station: u32) {
        let busy = self.medium.busy_time(station, now);
        self.medium.close(station);
        let mac = &mut self.macs[station as usize];
        mac.up = false;
        mac.epoch = mac.epoch.wrapping_add(1);
        mac.ack = None;
        mac.meter.enter(now, Activity::Off, busy);
        let has_frame = mac.frame.is_some();
        if let Some(on_air) = mac.on_air.take() {
            mac.sent_until = now;
            self.medium.cut(now, station, &mut self.receptions);
            self.show(now, station, &on_air, None);
        }
        if has_frame {
            self.finish(now, station, Outcome::Down);
        }
        if let Some(csl) = &mut self.macs[station as usize].csl {
            csl.reset();
        }
    }

    /// Brings a station up in its initial state.
    pub(super) fn come_up(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let busy = self.medium.busy_time(station, now);
        let mac = &mut self.macs[station as usize];
        mac.up = true;
        mac.meter.enter(now, Activity::Hear, busy);
        self.medium.open(station);
        self.sample_from(now, station, agenda);
    }

    /// Reports a transmission that has ended, with its receivers, to observers; `None` if it was
    /// cut off.
    fn show(&mut self, end: Instant, from: u32, on_air: &OnAir, receivers: Option<&[Reception]>) {
        if self.shows_frames {
            let &OnAir { start, frame: Outgoing { to, psdu_len, tag, .. }, serial, kind } = on_air;
            let (from, seq) = (Station(from), serial as u8);
            let cut = receivers.is_none();
            // All stations that are awake receive a wake-up frame, but only its destination counts.
            let meant = |r: &&Reception| to.is_none_or(|to| to.0 == r.station);
            let receivers = receivers.map_or(0, |all| all.iter().filter(meant).count()) as u32;
            self.effects.push_back(Effect::Frame {
                start,
                end,
                from,
                to,
                seq,
                psdu_len,
                tag,
                kind,
                cut,
                receivers,
            });
        }
    }
}
