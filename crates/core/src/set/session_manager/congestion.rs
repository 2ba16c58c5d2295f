//! Gateways that have no room: called again after a pause that doubles, whoever else carries
//! meanwhile.

use alloc::vec::Vec;

use anabranch_wire::set::Gateway;

use super::{Failure, Phase, Sender};
use crate::set::tcp_manager::TcpManager;
use crate::time::{Duration, Instant};

/// Who has no room.
#[derive(Debug, Default)]
pub(super) struct Congestion {
    gateways: Vec<Congested>,
    /// Since when nobody else is left.
    pub(super) none_since: Option<Instant>,
}

/// A gateway that has said so.
#[derive(Debug)]
struct Congested {
    gateway: Gateway,
    /// When it is called again; `None` while it is being called.
    at: Option<Instant>,
    /// How long it is left alone when it says so again.
    pause: Duration,
}

impl Congestion {
    /// A gateway has said that it is congested.
    pub(super) fn said(&mut self, now: Instant, first: Duration, gateway: Gateway) {
        match self.gateways.iter_mut().find(|known| known.gateway == gateway) {
            Some(known) => {
                known.at = Some(now + known.pause);
                known.pause = (known.pause * 2).min(first * LONGEST);
            }
            None => self.gateways.push(Congested { gateway, at: Some(now + first), pause: first * 2 }),
        }
    }

    /// It has room again, or is gone for another reason.
    pub(super) fn forget(&mut self, gateway: &Gateway) {
        self.gateways.retain(|known| known.gateway != *gateway);
    }

    /// One whose pause is over, which is to be called.
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
    /// Nobody carries, and nobody is called, until a gateway has room.
    pub(super) fn waits_for_room(&self) -> bool {
        self.congestion.first().is_some()
            && matches!(self.phase, Phase::Sessions)
            && self.waiting.is_empty()
            && self.again.is_empty()
            && !self.sessions.iter().any(TcpManager::is_alive)
    }

    /// No session is alive and no gateway is left that could be called: wait for room, if there may
    /// be some. A copy behind the request needs no gateway: as long as the node may acknowledge it,
    /// nothing has failed.
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

    /// When a gateway is called again, or waiting for that ends.
    pub(super) fn congestion_timeout(&self) -> Option<Instant> {
        let first = self.congestion.first()?;
        let call = if self.is_calling() { first.max(self.patience) } else { first };
        let since = self.congestion.none_since.filter(|_| self.waits_for_room() && self.copy.is_none());
        let end = since.map(|since| since + self.config.congestion_patience);
        Some(end.map_or(call, |end| end.min(call)))
    }
}

/// The longest pause, in first ones.
const LONGEST: u64 = 12;
