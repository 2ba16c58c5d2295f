//! Linked increases (RFC 6356): the growth of one subflow depends on all subflows.

use super::newreno::NewReno;
use super::{Controller, View, Windows};
use crate::time::{Duration, Instant};

/// Values of all subflows that one subflow needs (RFC 6356 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Coupling {
    /// alpha multiplied by [`Coupling::ONE`].
    pub(crate) alpha: u64,
    /// The sum of all congestion windows, in bytes.
    pub(crate) total: u64,
}

impl Coupling {
    /// Fixed-point representation of alpha = 1. RFC 6356 section 4 requires at least 512.
    pub(crate) const ONE: u64 = 1 << 16;
}

/// NewReno, except that in congestion avoidance an acknowledgement of `a` bytes adds min(alpha a
/// mss / total, a mss / cwnd).
#[derive(Clone, Debug)]
pub(crate) struct Coupled {
    base: NewReno,
    coupling: Option<Coupling>,
    /// Fraction of a byte of growth, multiplied by [`Coupling::ONE`].
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

    fn on_slow_start_end(&mut self, now: Instant, view: &View) {
        self.base.on_slow_start_end(now, view);
    }

    fn on_loss(&mut self, now: Instant, view: &View) {
        self.base.on_loss(now, view);
    }

    fn on_mark(&mut self, now: Instant, view: &View) {
        self.base.on_mark(now, view);
    }

    fn on_recovered(&mut self, now: Instant, view: &View) {
        self.base.on_recovered(now, view);
    }

    fn on_timeout(&mut self, now: Instant, view: &View) {
        self.base.on_timeout(now, view);
    }

    fn on_spurious(&mut self, now: Instant, view: &View, prior: Windows) {
        self.base.on_spurious(now, view, prior);
    }

    fn on_idle(&mut self, now: Instant, view: &View) {
        self.base.on_idle(now, view);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ByteCounting, Repair};
    use super::*;

    const MSS: u32 = 1000;

    fn view() -> View {
        View {
            in_flight: 10 * MSS,
            srtt: Some(Duration::from_millis(100)),
            byte_counting: ByteCounting::On { limit: 2 },
            ..View::of(MSS, Repair::Sack)
        }
    }

    /// Growth of a window of ten segments in bytes when all of them are acknowledged one after
    /// another.
    fn gained(coupling: Coupling) -> u32 {
        let mut coupled = Coupled::new(10 * MSS, 10 * MSS);
        coupled.set_coupling(coupling);
        (0..10).for_each(|_| coupled.on_ack(Instant::ZERO, &view(), MSS));
        coupled.cwnd() - 10 * MSS
    }

    /// RFC 6356 section 3: min(alpha bytes_acked MSS / cwnd_total, bytes_acked MSS / cwnd_i).
    #[test]
    fn rfc_6356_section_3_a_round_trip_gains_alpha_segments_for_all_and_one_for_each_at_most() {
        let total = u64::from(20 * MSS);
        // Two equal subflows: alpha is one half, and each gains half of it.
        assert_eq!(gained(Coupling { alpha: Coupling::ONE / 2, total }), 250);
        assert_eq!(gained(Coupling { alpha: Coupling::ONE, total }), 500);
        // No more than a single-path TCP, which gains slightly less than a segment because the
        // window grows meanwhile.
        assert!((950..=1000).contains(&gained(Coupling { alpha: 100 * Coupling::ONE, total })));
    }
}
