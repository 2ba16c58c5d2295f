//! Jamming: a signal that no station sends.

use anabranch_core::time::Instant;

use super::{Medium, Signal};

/// Sender of the signal of all jammers at a station. No station has this number.
const JAMMER: u32 = u32::MAX;

/// Power of a jammer at its stations in milliwatts, or as an inverse distance: more than that of
/// any station, and finite, since sums of powers are multiplied by time.
const POWER: f64 = 1e12;

impl Medium {
    /// One more jammer begins, or one ends, at a station. Returns whether the channel became busy
    /// or clear there.
    ///
    /// Until the last jammer ends, every CCA of the station finds a busy channel, and the station
    /// receives no frame, nor one that has already begun.
    pub(crate) fn jam(&mut self, now: Instant, station: u32, begins: bool) -> bool {
        let carrier = &mut self.carriers[station as usize];
        let receiver = &mut self.receivers[station as usize];
        if begins {
            carrier.jammers += 1;
            carrier.sensed += 1;
            if carrier.jammers == 1 {
                receiver.settle(now, &self.rules);
                let signal = Signal { from: JAMMER, power: POWER, end: Instant::FAR_FUTURE };
                if let Some(lock) = receiver.lock.as_mut().filter(|lock| lock.end > now) {
                    lock.disturbed = true;
                    lock.spoiled.get_or_insert(now);
                }
                receiver.signals.push(signal);
            }
        } else if carrier.jammers > 0 {
            carrier.jammers -= 1;
            carrier.sensed -= 1;
            if carrier.jammers == 0 {
                receiver.settle(now, &self.rules);
                receiver.signals.retain(|signal| signal.from != JAMMER);
            }
        }
        carrier.turn(now, carrier.sensed > 0 || receiver.has_energy(&self.rules))
    }
}
