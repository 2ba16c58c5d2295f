//! Frame exchange: RTS, CTS, data, acknowledgement, and retries: IEEE Std 802.11-2007, clauses
//! 9.2.5.3 to 9.2.9.

use anabranch_core::time::{Duration, Instant};

use super::mac::{Alarm, Data, OnAir, Response, Stage};
use super::phy::{ACK_LEN, CTS_LEN, FrameKind, RTS_LEN};
use super::{AirFrame, Effect, Eifs, MEDIUM, Outcome, Outgoing, ResponseTimeout, Station, Wifi};
use crate::air::medium::{Reception, Witness};
use crate::air::meter::Activity;
use crate::event::{Agenda, Event};

/// Effects of the start or end of a frame on other stations.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Stations at which the channel has become busy or clear.
    turned: Vec<u32>,
    receptions: Vec<Reception>,
    /// Stations that have not received a signal, and how long they followed it: see
    /// [`Witness::failed`].
    failures: Vec<(u32, Option<Duration>)>,
}

impl Witness for Heard {
    // The NAV needs frames for other stations.
    const OVERHEARS: bool = true;

    #[inline]
    fn turned(&mut self, station: u32) {
        self.turned.push(station);
    }

    #[inline]
    fn received(&mut self, reception: Reception) {
        self.receptions.push(reception);
    }

    #[inline]
    fn failed(&mut self, station: u32, followed: Option<Duration>) {
        self.failures.push((station, followed));
    }
}

impl Wifi {
    pub(super) fn alarm(
        &mut self,
        now: Instant,
        station: u32,
        what: u32,
        generation: u32,
        agenda: &mut Agenda,
    ) {
        let Some(alarm) = Alarm::of(what) else { return };
        let Some(mac) = self.macs.get(station as usize) else { return };
        // Responses and transmissions in progress do not depend on the frame of the station: only
        // going down makes them void.
        let current = match alarm {
            Alarm::Access | Alarm::Timeout | Alarm::DataStart => mac.generation,
            Alarm::ResponseStart | Alarm::AirEnd => mac.epoch,
        };
        if generation != current {
            return;
        }
        match alarm {
            Alarm::Access => self.access(now, station, agenda),
            Alarm::Timeout => self.timeout(now, station, agenda),
            Alarm::DataStart => self.send_data(now, station, agenda),
            Alarm::ResponseStart => self.respond(now, station, agenda),
            Alarm::AirEnd => self.air_end(now, station, agenda),
        }
    }

    /// Whether a frame is preceded by RTS and CTS.
    fn is_long(&self, frame: &Outgoing) -> bool {
        frame.to.is_some() && frame.mpdu_len > self.mac.rts_threshold
    }

    /// A station gets the channel and sends.
    fn access(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let mac = &mut self.macs[station as usize];
        (mac.slots, mac.counts_from) = (None, None);
        let frame = mac.frame.expect("a station contends for a frame");
        if !self.is_long(&frame) {
            self.send_data(now, station, agenda);
            return;
        }
        let mac = &mut self.macs[station as usize];
        mac.stage = Stage::OnAir;
        mac.metrics.rts += 1;
        let rts = OnAir {
            start: now,
            kind: FrameKind::Rts,
            to: frame.to.map(|to| to.0),
            mpdu_len: RTS_LEN,
            rate: self.phy.basic_rate,
            duration: self.phy.after_rts(frame.mpdu_len),
            data: mac.data(),
        };
        self.transmit(now, station, rts, agenda);
    }

    fn send_data(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let mac = &mut self.macs[station as usize];
        let Outgoing { to, mpdu_len, .. } = mac.frame.expect("what is sent is there");
        mac.stage = Stage::OnAir;
        mac.metrics.transmissions += 1;
        mac.metrics.retries += u64::from(mac.was_on_air);
        let data = OnAir {
            start: now,
            kind: FrameKind::Data,
            to: to.map(|to| to.0),
            mpdu_len,
            rate: self.phy.rate(to.is_none()),
            duration: if to.is_some() { self.phy.after_data() } else { Duration::ZERO },
            data: mac.data(),
        };
        mac.was_on_air = true;
        if let Some(link) = mac.link {
            self.medium.neighbours.links[link].metrics.sent += 1;
        }
        self.transmit(now, station, data, agenda);
    }

    /// Sends the CTS or the acknowledgement that is due, whatever the state of the channel.
    fn respond(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let mac = &mut self.macs[station as usize];
        let Some(Response { kind, to, duration, data }) = mac.response.take() else { return };
        let mpdu_len = match kind {
            FrameKind::Cts => CTS_LEN,
            FrameKind::Ack | FrameKind::Data | FrameKind::Rts => ACK_LEN,
        };
        mac.metrics.cts += u64::from(kind == FrameKind::Cts);
        mac.metrics.acks += u64::from(kind == FrameKind::Ack);
        let rate = self.phy.basic_rate;
        let response = OnAir { start: now, kind, to: Some(to), mpdu_len, rate, duration, data };
        self.transmit(now, station, response, agenda);
    }

    fn transmit(&mut self, now: Instant, station: u32, on_air: OnAir, agenda: &mut Agenda) {
        let end = now + self.phy.airtime(on_air.mpdu_len, on_air.rate);
        self.suspend(now, station);
        self.medium.close(station);
        self.enter(now, station, Activity::Transmit);
        let mac = &mut self.macs[station as usize];
        mac.on_air = Some(on_air);
        let (what, generation) = (Alarm::AirEnd as u32, mac.epoch);
        agenda.push(end, Event::Medium { medium: MEDIUM, station, what, generation });
        let mut heard = std::mem::take(&mut self.heard);
        self.medium.begin(now, station, end, (on_air.to, true), &mut heard);
        for station in heard.turned.drain(..) {
            self.turn_busy(now, station);
        }
        self.heard = heard;
    }

    fn air_end(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let mac = &mut self.macs[station as usize];
        let on_air = mac.on_air.take().expect("the end of a frame has its frame");
        mac.sent_until = now;
        self.medium.open(station);
        self.enter(now, station, Activity::Hear);
        let mut heard = std::mem::take(&mut self.heard);
        self.medium.end(now, station, &mut heard);
        let is_for = |r: &&Reception| on_air.to.is_none_or(|to| to == r.station);
        let receivers = heard.receptions.iter().filter(is_for).count() as u32;
        self.show(now, station, &on_air, Some(receivers));
        self.await_response(now, station, &on_air, agenda);
        self.hear(now, Some((station, &on_air)), &mut heard, agenda);
        self.heard = heard;
        if on_air.kind == FrameKind::Data && on_air.to.is_none() {
            // After the receptions: from here on the sender may drop the packet.
            self.finish(now, station, Outcome::Sent, agenda);
        } else if self.macs[station as usize].slots.is_some() {
            self.resume(now, station, agenda);
        }
    }

    /// Makes a station wait for the response to its RTS or unicast data.
    fn await_response(&mut self, now: Instant, station: u32, on_air: &OnAir, agenda: &mut Agenda) {
        let stage = match (on_air.kind, on_air.to) {
            (FrameKind::Rts, _) => Stage::CtsWait,
            (FrameKind::Data, Some(_)) => Stage::AckWait,
            (FrameKind::Data, None) | (FrameKind::Cts | FrameKind::Ack, _) => return,
        };
        self.macs[station as usize].stage = stage;
        let wait = match self.mac.response_timeout {
            ResponseTimeout::FrameStart => self.phy.sifs + self.phy.slot + self.phy.plcp(),
            ResponseTimeout::FrameEnd => self.phy.sifs + self.phy.ack_time() + NS2_DELAY,
        };
        self.set_alarm(now + wait, station, Alarm::Timeout, agenda);
    }

    /// Informs the stations that hear a frame of its end; `None` if it was cut off.
    fn hear(&mut self, now: Instant, frame: Option<(u32, &OnAir)>, heard: &mut Heard, agenda: &mut Agenda) {
        for (station, followed) in heard.failures.drain(..) {
            self.miss(now, station, followed, agenda);
        }
        for reception in heard.receptions.drain(..) {
            let (from, on_air) = frame.expect("what breaks off is not received");
            self.receive(now, from, reception, on_air, agenda);
        }
        for station in heard.turned.drain(..) {
            self.turn_clear(now, station, agenda);
        }
    }

    /// Handles the end of a signal that a station has not received.
    fn miss(&mut self, now: Instant, station: u32, followed: Option<Duration>, agenda: &mut Agenda) {
        let in_error = match self.mac.eifs {
            Eifs::Off => false,
            Eifs::Frames => followed.is_some_and(|time| time >= self.phy.plcp()),
            Eifs::Signals => true,
        };
        if in_error {
            self.begin_eifs(now, station);
        }
        let mac = &self.macs[station as usize];
        if mac.stage.is_late() && self.medium.lock_begun(station).is_none() {
            self.fail(now, station, agenda);
        }
    }

    /// Handles a correctly received frame.
    fn receive(&mut self, now: Instant, from: u32, got: Reception, on_air: &OnAir, agenda: &mut Agenda) {
        let at = got.station;
        let mac = &mut self.macs[at as usize];
        // A correct frame ends EIFS (10.3.2.3.7).
        (mac.in_error, mac.eifs_end) = (false, Instant::ZERO);
        let is_mine = on_air.to == Some(at);
        let is_answer = is_mine && mac.stage.awaits(on_air.kind);
        if mac.stage.awaits_any() && !is_answer {
            // Any other frame in place of the response is a failure.
            self.fail(now, at, agenda);
        }
        let mac = &mut self.macs[at as usize];
        match (on_air.kind, on_air.to) {
            (FrameKind::Data, None) => self.deliver(from, got, on_air),
            (FrameKind::Data, Some(_)) if is_mine => {
                self.deliver(from, got, on_air);
                self.set_response(now, at, from, on_air, agenda);
            }
            // A station whose NAV is set does not answer an RTS.
            (FrameKind::Rts, Some(_)) if is_mine => match mac.nav <= now {
                true => self.set_response(now, at, from, on_air, agenda),
                false => mac.metrics.cts_withheld += 1,
            },
            (FrameKind::Cts, _) if is_answer => {
                mac.stage = Stage::Gap;
                // The RTS has succeeded. The contention window does not change (802.11-2020, 10.3.3
                // and 10.3.4.4).
                mac.short_retries = 0;
                self.set_alarm(now + self.phy.sifs, at, Alarm::DataStart, agenda);
            }
            (FrameKind::Ack, _) if is_answer => self.finish(now, at, Outcome::Acknowledged, agenda),
            // A response for which the station no longer waits.
            _ if is_mine => {}
            (kind, to) => {
                mac.nav = mac.nav.max(now + on_air.duration);
                if let (true, FrameKind::Data, Some(to)) = (self.overhears, kind, to) {
                    let (at, from, to) = (Station(at), Station(from), Station(to));
                    self.effects.push_back(Effect::Overheard { at, from, to, tag: on_air.data.tag });
                }
            }
        }
    }

    /// Delivers data at its destination, once (9.2.9).
    fn deliver(&mut self, from: u32, got: Reception, on_air: &OnAir) {
        let Reception { station: at, link, rssi_dbm, .. } = got;
        let Data { tag, seq, retry } = on_air.data;
        // Plus one, since 0 stands for no frame yet.
        let serial = u32::from(seq) + 1;
        let last = std::mem::replace(&mut self.medium.neighbours.links[link].last_serial, serial);
        let copy = retry && last == serial;
        let metrics = &mut self.macs[at as usize].metrics;
        metrics.duplicates += u64::from(copy);
        metrics.received += u64::from(!copy);
        if !copy {
            self.effects.push_back(Effect::Received {
                at: Station(at),
                from: Station(from),
                to: on_air.to.map(Station),
                tag,
                mpdu_len: on_air.mpdu_len,
                rssi_dbm: rssi_dbm.expect("thresholds know powers"),
            });
        }
    }

    /// Makes a station respond to a frame after SIFS.
    fn set_response(&mut self, now: Instant, station: u32, to: u32, cause: &OnAir, agenda: &mut Agenda) {
        let kind = if cause.kind == FrameKind::Rts { FrameKind::Cts } else { FrameKind::Ack };
        let mac = &mut self.macs[station as usize];
        let duration = cause.duration.saturating_sub(self.phy.sifs + self.phy.ack_time());
        mac.response = Some(Response { kind, to, duration, data: cause.data });
        let (what, generation) = (Alarm::ResponseStart as u32, mac.epoch);
        agenda.push(now + self.phy.sifs, Event::Medium { medium: MEDIUM, station, what, generation });
    }

    fn timeout(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let header = self.phy.plcp();
        let begun = self.medium.lock_begun(station).is_some_and(|begun| begun + header <= now);
        let mac = &mut self.macs[station as usize];
        match (self.mac.response_timeout, mac.stage) {
            (ResponseTimeout::FrameStart, Stage::CtsWait) if begun => mac.stage = Stage::CtsLate,
            (ResponseTimeout::FrameStart, Stage::AckWait) if begun => mac.stage = Stage::AckLate,
            _ => self.fail(now, station, agenda),
        }
    }

    /// Handles a missing CTS or acknowledgement: the frame is tried again or given up (9.2.5.3).
    /// The short retry count has the failures of RTS and of data without RTS, the long retry count
    /// those of data after a CTS.
    fn fail(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let mac = &mut self.macs[station as usize];
        let frame = mac.frame.expect("what fails has been under way");
        let lacks_cts = mac.stage.awaits(FrameKind::Cts);
        mac.metrics.cts_missing += u64::from(lacks_cts);
        mac.metrics.acks_missing += u64::from(!lacks_cts);
        if let Some(link) = mac.link
            && !lacks_cts
        {
            self.medium.neighbours.links[link].metrics.lost += 1;
        }
        let is_long = self.is_long(&frame) && !lacks_cts;
        let mac = &mut self.macs[station as usize];
        let (retries, limit) = match is_long {
            true => (&mut mac.long_retries, self.mac.long_retry_limit),
            false => (&mut mac.short_retries, self.mac.short_retry_limit),
        };
        *retries += 1;
        let is_over = *retries >= limit;
        mac.failures = mac.failures.saturating_add(1);
        if is_over {
            self.finish(now, station, Outcome::NoAck, agenda);
            return;
        }
        // CW + 1 doubles: the windows of the standard are powers of two minus one.
        mac.cw = (2 * mac.cw + 1).min(self.mac.cw_max);
        mac.stage = Stage::Backoff;
        mac.generation = mac.generation.wrapping_add(1);
        self.draw_backoff(station);
        self.resume(now, station, agenda);
    }

    /// Finishes a frame. A backoff follows, whether there is another frame or not.
    fn finish(&mut self, now: Instant, station: u32, outcome: Outcome, agenda: &mut Agenda) {
        let mac = &mut self.macs[station as usize];
        let frame = mac.frame.take().expect("what ends has been under way");
        mac.stage = Stage::Idle;
        mac.generation = mac.generation.wrapping_add(1);
        mac.cw = self.mac.cw_min;
        let failures = mac.failures;
        let attempts = match outcome {
            Outcome::Acknowledged | Outcome::Sent => failures.saturating_add(1),
            Outcome::NoAck | Outcome::Down => failures,
        };
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
            Outcome::Down => metrics.down += 1,
        }
        if outcome != Outcome::Down {
            self.draw_backoff(station);
            self.resume(now, station, agenda);
        }
        self.effects.push_back(Effect::Done { station: Station(station), tag: frame.tag, outcome, attempts });
    }

    /// Takes a station down; its transmission is cut off.
    pub(super) fn go_down(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let on_air = self.macs[station as usize].on_air.take();
        self.enter(now, station, Activity::Off);
        self.medium.close(station);
        let mac = &mut self.macs[station as usize];
        mac.up = false;
        mac.epoch = mac.epoch.wrapping_add(1);
        mac.response = None;
        (mac.slots, mac.counts_from) = (None, None);
        if mac.frame.is_some() {
            self.finish(now, station, Outcome::Down, agenda);
        }
        if let Some(on_air) = on_air {
            let mut heard = std::mem::take(&mut self.heard);
            self.medium.cut(now, station, &mut heard);
            self.show(now, station, &on_air, None);
            self.hear(now, None, &mut heard, agenda);
            self.heard = heard;
        }
    }

    /// Brings a station up in its initial state, without a NAV.
    pub(super) fn come_up(&mut self, now: Instant, station: u32) {
        self.medium.open(station);
        let mac = &mut self.macs[station as usize];
        mac.up = true;
        (mac.nav, mac.sent_until) = (now, now);
        (mac.in_error, mac.eifs_end) = (false, Instant::ZERO);
        self.enter(now, station, Activity::Hear);
    }

    /// Reports a transmission that has ended, with its number of receivers, to observers; `None` if
    /// it was cut off.
    fn show(&mut self, end: Instant, from: u32, on_air: &OnAir, receivers: Option<u32>) {
        if !self.shows_frames {
            return;
        }
        let &OnAir { start, kind, to, mpdu_len, rate, duration, data } = on_air;
        self.effects.push_back(Effect::Frame(AirFrame {
            start,
            end,
            kind,
            from: Station(from),
            to: to.map(Station),
            seq: data.seq,
            retry: data.retry && kind == FrameKind::Data,
            duration,
            rate,
            mpdu_len,
            tag: data.tag,
            cut: receivers.is_none(),
            receivers: receivers.unwrap_or(0),
        }));
    }
}

/// DSSS_MaxPropagationDelay of ns-2.
const NS2_DELAY: Duration = Duration::from_micros(2);
