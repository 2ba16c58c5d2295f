//! Congested gateways: they are called again after a pause that doubles, even while other sessions
//! carry the file.

use alloc::vec::Vec;

use anabranch_wire::set::Gateway;

use super::{Failure, Phase, Sender};
use crate::set::tcp_manager::TcpManager;
use crate::time::{Duration, Instant};

/// The congested gateways.
#[derive(Debug, Default)]
pub(super) struct Congestion {
    gateways: Vec<Congested>,
    /// Since when no other gateway is left.
    pub(super) none_since: Option<Instant>,
}

/// A gateway that has reported congestion.
#[derive(Debug)]
struct Congested {
    gateway: Gateway,
    /// When it is called again; `None` during the call.
    at: Option<Instant>,
    /// Pause after its next report of congestion.
    pause: Duration,
}

impl Congestion {
    /// Records a report of congestion.
    pub(super) fn said(&mut self, now: Instant, first: Duration, gateway: Gateway) {
        match self.gateways.iter_mut().find(|known| known.gateway == gateway) {
            Some(known) => {
                known.at = Some(now + known.pause);
                known.pause = (known.pause * 2).min(first * LONGEST);
            }
            None => self.gateways.push(Congested { gateway, at: Some(now + first), pause: first * 2 }),
        }
    }

    /// Removes a gateway that has room again or was lost.
    pub(super) fn forget(&mut self, gateway: &Gateway) {
        self.gateways.retain(|known| known.gateway != *gateway);
    }

    /// Takes a gateway whose pause is over, for a call.
    pub(super) fn next(&mut self, now: Instant) -> Option<Gateway> {
        let due = |known: &&mut Congested| known.at.is_some_and(|at| at <= now);
        let known = self.gateways.iter_mut().find(due)?;
        known.at = None;
        Some(known.gateway.clone())
    }

    fn first(&self) -> Option<Instant> {
        self.gateways.iter().filter_map(|known| known.at).min()
    }
}

impl Sender {
    /// Whether the transfer only waits for a congested gateway: no session is alive, and no other
    /// gateway can be called.
    pub(super) fn waits_for_room(&self) -> bool {
        self.congestion.first().is_some()
            && matches!(self.phase, Phase::Sessions)
            && self.waiting.is_empty()
            && self.again.is_empty()
            && !self.sessions.iter().any(TcpManager::is_alive)
    }

    /// Handles the case that no session is alive and no gateway can be called: waits for a
    /// congested one, or fails. The copy after the request needs no gateway, so while the node may
    /// acknowledge it, the transfer has not failed.
    pub(super) fn lack_room(&mut self, now: Instant) {
        if self.congestion.first().is_some() {
            let since = *self.congestion.none_since.get_or_insert(now);
            if now >= since + self.config.congestion_patience && self.copy.is_none() {
                self.fail(Failure::Congested);
            }
        } else if self.copy.is_none() {
            self.fail(if self.selected == 0 { Failure::NoGateway } else { Failure::GatewaysLost });
        }
    }

    /// When a congested gateway is called again, or the wait for one ends.
    pub(super) fn congestion_timeout(&self) -> Option<Instant> {
        let first = self.congestion.first()?;
        let call = if self.is_calling() { first.max(self.patience) } else { first };
        let since = self.congestion.none_since.filter(|_| self.waits_for_room() && self.copy.is_none());
        let end = since.map(|since| since + self.config.congestion_patience);
        Some(end.map_or(call, |end| end.min(call)))
    }
}

/// The longest pause as a multiple of the first.
const LONGEST: u64 = 12;
