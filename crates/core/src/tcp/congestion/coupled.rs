//! The linked increases of RFC 6356: what one subflow gains depends on all.

use super::newreno::NewReno;
use super::{Controller, View};
use crate::time::{Duration, Instant};

/// What a subflow must know of all together (RFC 6356 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Coupling {
    /// alpha, times [`Coupling::ONE`].
    pub(crate) alpha: u64,
    /// The sum of all congestion windows, in octets.
    pub(crate) total: u64,
}

impl Coupling {
    /// alpha = 1. RFC 6356 section 4 asks for 512 at least.
    pub(crate) const ONE: u64 = 1 << 16;
}

/// As NewReno, but in congestion avoidance an acknowledgement of a octets adds
/// min(alpha a mss / total, a mss / cwnd).
#[derive(Clone, Debug)]
pub(crate) struct Coupled {
    base: NewReno,
    coupling: Option<Coupling>,
    /// Octets of growth, times [`Coupling::ONE`], that are not whole yet.
    fraction: u64,
}

impl Coupled {
    pub(crate) fn new(cwnd: u32, ssthresh: u32) -> Self {
        Self { base: NewReno::new(cwnd, ssthresh), coupling: None, fraction: 0 }
    }

    pub(crate) fn set_coupling(&mut self, coupling: Coupling) {
        self.coupling = Some(coupling);
    }
}

impl Controller for Coupled {
    fn cwnd(&self) -> u32 {
        self.base.cwnd()
    }

    fn ssthresh(&self) -> u32 {
        self.base.ssthresh()
    }

    fn on_ack(&mut self, now: Instant, view: &View, acked: u32) {
        let cwnd = u64::from(self.cwnd().max(1));
        let Some(coupling) = self.coupling.filter(|_| self.cwnd() >= self.ssthresh()) else {
            return self.base.on_ack(now, view, acked);
        };
        if !view.uses(self.cwnd(), self.ssthresh()) {
            return;
        }
        let gained = u64::from(acked) * u64::from(view.mss);
        let linked = u128::from(gained) * u128::from(coupling.alpha) / u128::from(coupling.total.max(1));
        let alone = gained * Coupling::ONE / cwnd;
        self.fraction += (linked.min(u128::from(alone))) as u64;
        let whole = self.fraction / Coupling::ONE;
        self.fraction %= Coupling::ONE;
        self.base.grow(whole as u32, view.limit);
    }

    fn on_rtt(&mut self, now: Instant, view: &View, rtt: Duration) {
        self.base.on_rtt(now, view, rtt);
    }

    fn on_loss(&mut self, now: Instant, view: &View) {
        self.base.on_loss(now, view);
    }

    fn on_recovered(&mut self, now: Instant, view: &View) {
        self.base.on_recovered(now, view);
    }

    fn on_timeout(&mut self, now: Instant, view: &View) {
        self.base.on_timeout(now, view);
    }

    fn on_idle(&mut self, now: Instant, view: &View) {
        self.base.on_idle(now, view);
    }
}
