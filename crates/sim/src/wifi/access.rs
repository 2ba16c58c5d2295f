//! Channel access: carrier sense, NAV, interframe spaces and backoff, IEEE Std 802.11-2007, clauses
//! 9.2.1 to 9.2.5.2.
//!
//! A backoff is one event, at its end. When the channel becomes busy, the event is withdrawn and
//! the complete slots that have passed are counted. When the channel becomes clear, the event is
//! scheduled again. The slots of a station without a frame are counted in the same way, without an
//! event. The signals at a station change only at events of other stations, which inform all
//! stations that hear them. The end of a NAV needs no event, since its time is known.

use anabranch_core::time::{Duration, Instant};

use super::mac::{Alarm, SEQ_MASK, Stage};
use super::{Eifs, FirstAccess, MEDIUM, Outgoing, Station, Wifi, Window};
use crate::air::meter::Activity;
use crate::event::{Agenda, Event};

impl Wifi {
    /// Accepts a checked frame at an idle station.
    pub(super) fn accept(&mut self, now: Instant, station: u32, frame: Outgoing, agenda: &mut Agenda) {
        let link = frame.to.and_then(|to| self.medium.neighbours.find(station, to.0));
        let mac = &mut self.macs[station as usize];
        mac.metrics.offered += 1;
        mac.seq = (mac.seq + 1) & SEQ_MASK;
        (mac.frame, mac.link) = (Some(frame), link);
        (mac.short_retries, mac.long_retries, mac.failures, mac.was_on_air) = (0, 0, 0, false);
        // The backoff after the previous frame may have ended: it has no event.
        if let (Some(slots), Some(from)) = (mac.slots, mac.counts_from)
            && from + self.phy.slot * u64::from(slots) <= now
        {
            mac.slots = None;
        }
        if mac.slots.is_some() {
            mac.stage = Stage::Backoff;
            if mac.counts_from.is_some() {
                self.set_access(station, agenda);
            }
            return;
        }
        let unaware = match self.mac.first_access {
            FirstAccess::Immediate => self.mac.unaware,
            FirstAccess::Backoff => Duration::ZERO,
        };
        let clear = self.clear_from(now, station, unaware);
        let mac = &mut self.macs[station as usize];
        match (self.mac.first_access, clear) {
            (FirstAccess::Immediate, Some(from)) => {
                mac.stage = Stage::Defer;
                (mac.slots, mac.counts_from) = (Some(0), Some(from.max(now)));
                self.set_access(station, agenda);
            }
            (FirstAccess::Backoff, Some(from)) => {
                mac.stage = Stage::Backoff;
                mac.counts_from = Some(from.max(now + self.phy.difs()));
                self.draw_backoff(station);
                self.set_access(station, agenda);
            }
            (_, None) => {
                mac.stage = Stage::Backoff;
                mac.counts_from = None;
                self.draw_backoff(station);
            }
        }
    }

    /// Time from which a station may count slots in the present state, in the past or future;
    /// `None` while the channel is busy for it. Signals that began less than `unaware` ago are not
    /// yet noticed.
    ///
    /// EIFS is one interval that begins with the first clear channel after a frame in error. A
    /// signal that is only sensed after it is followed by DIFS (IEEE Std 802.11-2020, 10.3.2.3.7).
    fn clear_from(&self, now: Instant, station: u32, unaware: Duration) -> Option<Instant> {
        let mac = &self.macs[station as usize];
        if mac.on_air.is_some() {
            return None;
        }
        let physical = self.medium.clear_since(station, now, unaware)?.max(mac.sent_until);
        let difs = self.phy.difs();
        Some(match self.mac.eifs {
            Eifs::Frames => (physical.max(mac.nav) + difs).max(mac.eifs_end),
            Eifs::Signals => physical.max(mac.nav).max(mac.eifs_end) + difs,
            Eifs::Off => physical.max(mac.nav) + difs,
        })
    }

    /// Handles the end of a frame in error at a station: EIFS begins now, or when the channel is
    /// clear.
    pub(super) fn begin_eifs(&mut self, now: Instant, station: u32) {
        let busy = self.medium.is_busy(station);
        let mac = &mut self.macs[station as usize];
        mac.in_error = busy;
        if !busy {
            mac.eifs_end = now + self.phy.eifs();
        }
    }

    pub(super) fn draw_backoff(&mut self, station: u32) {
        let mac = &mut self.macs[station as usize];
        let most = match self.mac.window {
            Window::Inclusive => mac.cw,
            Window::Exclusive => mac.cw - 1,
        };
        mac.slots = Some(mac.draw(most));
    }

    /// Schedules the end of a backoff that counts.
    fn set_access(&mut self, station: u32, agenda: &mut Agenda) {
        if let Some(at) = self.access_at(station) {
            self.set_alarm(at, station, Alarm::Access, agenda);
        }
    }

    fn access_at(&self, station: u32) -> Option<Instant> {
        let mac = &self.macs[station as usize];
        Some(mac.counts_from? + self.phy.slot * u64::from(mac.slots?))
    }

    /// Sets the timer of a station's frame and makes the previous one void.
    pub(super) fn set_alarm(&mut self, at: Instant, station: u32, alarm: Alarm, agenda: &mut Agenda) {
        let mac = &mut self.macs[station as usize];
        mac.generation = mac.generation.wrapping_add(1);
        agenda.push(
            at,
            Event::Medium { medium: MEDIUM, station, what: alarm as u32, generation: mac.generation },
        );
    }

    /// Resumes a backoff now or at the end of an interframe space, if the channel is clear.
    pub(super) fn resume(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        let clear = self.clear_from(now, station, Duration::ZERO);
        let mac = &mut self.macs[station as usize];
        mac.counts_from = clear.map(|from| from.max(now));
        if mac.counts_from.is_some() && mac.stage.contends() {
            self.set_access(station, agenda);
        }
    }

    /// Suspends a backoff.
    pub(super) fn suspend(&mut self, now: Instant, station: u32) {
        let mac = &mut self.macs[station as usize];
        let Some(from) = mac.counts_from.take() else { return };
        let passed = now.saturating_since(from).as_nanos() / self.phy.slot.as_nanos();
        if mac.stage == Stage::Defer {
            // The channel was clear for less than DIFS, so a backoff is needed after all.
            mac.stage = Stage::Backoff;
            self.draw_backoff(station);
        } else if let Some(slots) = mac.slots {
            let left = u64::from(slots).saturating_sub(passed) as u32;
            // A backoff without a frame may have ended; one with a frame would have led to a
            // transmission.
            let is_over = left == 0 && from <= now && !mac.stage.contends();
            mac.slots = (!is_over).then_some(left);
        }
        // Makes the access event void.
        if self.macs[station as usize].stage.contends() {
            let mac = &mut self.macs[station as usize];
            mac.generation = mac.generation.wrapping_add(1);
        }
    }

    /// Handles a channel that becomes busy at a station.
    pub(super) fn turn_busy(&mut self, now: Instant, station: u32) {
        self.watch_energy(now, station);
        let mac = &self.macs[station as usize];
        if mac.counts_from.is_none() {
            return;
        }
        // A station that is about to send does not notice the signal in time.
        let too_late = |at: Instant| at <= now || at < now + self.mac.unaware;
        if mac.stage.contends() && self.access_at(station).is_some_and(too_late) {
            return;
        }
        self.suspend(now, station);
    }

    /// Handles a channel that becomes clear at a station.
    pub(super) fn turn_clear(&mut self, now: Instant, station: u32, agenda: &mut Agenda) {
        self.watch_energy(now, station);
        if self.macs[station as usize].in_error {
            self.begin_eifs(now, station);
        }
        let mac = &self.macs[station as usize];
        if mac.slots.is_some() && mac.counts_from.is_none() {
            self.resume(now, station, agenda);
        }
    }

    /// Changes the state of a station's radio.
    pub(super) fn enter(&mut self, now: Instant, station: u32, activity: Activity) {
        let busy = self.medium.busy_time(station, now);
        self.macs[station as usize].meter.enter(now, activity, busy);
        self.watch_energy(now, station);
    }

    /// Notes a station that has used up its energy. Called when the state of its radio changes; a
    /// transmission is finished first.
    #[inline]
    fn watch_energy(&mut self, now: Instant, station: u32) {
        // Most runs end earlier, and this function is called for every signal at every station.
        if now < self.sated_until {
            return;
        }
        let mac = &self.macs[station as usize];
        let is_empty = |joules| self.energy_j(now, Station(station)) >= joules;
        if mac.up && mac.on_air.is_none() && self.energy.is_some_and(is_empty) {
            self.exhausted.push(station);
        }
    }
}
