//! Congestion control: one trait, dispatched by an enum.
//!
//! A controller says how large the window is and nothing else. What is sent again, and the inflation of the
//! window during fast recovery (RFC 5681 section 3.2), belong to the sender.

mod adaptive;
mod coupled;
mod cubic;
mod newreno;
mod westwood;

use adaptive::Adaptive;
use coupled::Coupled;
pub(crate) use coupled::Coupling;
use cubic::Cubic;
use newreno::NewReno;
use westwood::Westwood;

use super::config::{ByteCounting, CongestionAlgorithm};
use crate::time::{Duration, Instant};

/// What a controller may know of its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// Largest payload, in octets.
    pub(crate) mss: u32,
    /// SND.NXT - SND.UNA in octets when a loss, a time-out or the end of a recovery is told.
    pub(crate) in_flight: u32,
    /// How far the window being acknowledged was used.
    pub(crate) usage: Usage,
    /// The window never grows past this, in octets.
    pub(crate) limit: u32,
    /// Octets of the initial window.
    pub(crate) initial_window: u32,
    /// The slow-start threshold never falls below this, in octets.
    pub(crate) least_ssthresh: u32,
    /// Smoothed round-trip time, once measured.
    pub(crate) srtt: Option<Duration>,
    /// Smallest round-trip time measured.
    pub(crate) min_rtt: Option<Duration>,
    /// What one acknowledgement is worth.
    pub(crate) byte_counting: ByteCounting,
    /// How the loss at hand is repaired.
    pub(crate) repair: Repair,
}

/// How far a congestion window was used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Usage {
    /// No further segment fitted.
    Full,
    /// At most so many octets were in flight.
    Partial { peak: u32 },
}

/// How losses are repaired and with them the occasion of a controller's call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Repair {
    /// BSD Reno.
    Reno,
    /// RFC 6582.
    NewReno,
    /// RFC 6675.
    Sack,
    /// The first time-out for this octet.
    FirstTimeout,
    /// A further time-out for the same octet.
    RepeatedTimeout,
}

impl View {
    /// The window is worth growing: it held the sender back, or in slow start half of it was in use
    /// (RFC 7661 section 4.2 in spirit).
    #[inline]
    pub(crate) fn uses(&self, cwnd: u32, ssthresh: u32) -> bool {
        match self.usage {
            Usage::Full => true,
            Usage::Partial { peak } => cwnd < ssthresh && peak.saturating_mul(2) >= cwnd,
        }
    }

    /// Octets that slow start adds for `acked` octets (RFC 5681 section 3.1, RFC 3465 section 2.2).
    #[inline]
    pub(crate) fn slow_start_step(&self, acked: u32) -> u32 {
        match self.byte_counting {
            ByteCounting::Off => self.mss,
            ByteCounting::On { limit } => acked.min(self.mss.saturating_mul(u32::from(limit.max(1)))),
        }
    }
}

/// A congestion control algorithm. All windows are octets. Defaults do nothing.
pub(crate) trait Controller {
    /// The window.
    fn cwnd(&self) -> u32;
    /// The slow-start threshold; `u32::MAX` is unbounded.
    fn ssthresh(&self) -> u32;
    /// `acked` new octets were acknowledged outside of recovery.
    fn on_ack(&mut self, _now: Instant, _view: &View, _acked: u32) {}
    /// An acknowledgement has come, in recovery or not, of `acked` new octets; 0 is a duplicate.
    fn on_delivery(&mut self, _now: Instant, _mss: u32, _acked: u32) {}
    /// A round trip was measured.
    fn on_rtt(&mut self, _now: Instant, _view: &View, _rtt: Duration) {}
    /// Duplicate acknowledgements or SACK showed a loss: once per recovery.
    fn on_loss(&mut self, _now: Instant, _view: &View) {}
    /// The recovery is over.
    fn on_recovered(&mut self, _now: Instant, _view: &View) {}
    /// The retransmission timer ran out.
    fn on_timeout(&mut self, _now: Instant, _view: &View) {}
    /// Data follows after longer than one time-out of silence (RFC 5681 section 4.1).
    fn on_idle(&mut self, _now: Instant, _view: &View) {}
}

/// One of the algorithms.
#[derive(Clone, Debug)]
pub(crate) enum AnyController {
    NewReno(NewReno),
    Cubic(Cubic),
    Coupled(Coupled),
    Adaptive(Adaptive),
    Westwood(Westwood),
}

impl AnyController {
    /// `start` is the window and the size of a segment, in octets.
    pub(crate) fn new(algorithm: CongestionAlgorithm, start: (u32, u32), ssthresh: Option<u32>) -> Self {
        let (cwnd, mss) = start;
        let ssthresh = ssthresh.unwrap_or(u32::MAX);
        match algorithm {
            CongestionAlgorithm::NewReno => Self::NewReno(NewReno::new(cwnd, ssthresh)),
            CongestionAlgorithm::Cubic => Self::Cubic(Cubic::new(cwnd, ssthresh)),
            CongestionAlgorithm::Coupled => Self::Coupled(Coupled::new(cwnd, ssthresh)),
            CongestionAlgorithm::Westwood => Self::Westwood(Westwood::new(cwnd, ssthresh)),
            CongestionAlgorithm::AdaptiveNewReno(options) => {
                Self::Adaptive(Adaptive::new(options, mss, ssthresh))
            }
        }
    }

    /// What the other subflows are like; only [`Coupled`] asks.
    pub(crate) fn set_coupling(&mut self, coupling: Coupling) {
        if let Self::Coupled(c) = self {
            c.set_coupling(coupling);
        }
    }

    #[inline]
    fn get(&self) -> &dyn Controller {
        match self {
            Self::NewReno(c) => c,
            Self::Cubic(c) => c,
            Self::Coupled(c) => c,
            Self::Adaptive(c) => c,
            Self::Westwood(c) => c,
        }
    }

    #[inline]
    fn get_mut(&mut self) -> &mut dyn Controller {
        match self {
            Self::NewReno(c) => c,
            Self::Cubic(c) => c,
            Self::Coupled(c) => c,
            Self::Adaptive(c) => c,
            Self::Westwood(c) => c,
        }
    }
}

impl Controller for AnyController {
    #[inline]
    fn cwnd(&self) -> u32 {
        match self {
            Self::NewReno(c) => c.cwnd(),
            Self::Cubic(c) => c.cwnd(),
            Self::Coupled(c) => c.cwnd(),
            Self::Adaptive(c) => c.cwnd(),
            Self::Westwood(c) => c.cwnd(),
        }
    }

    fn ssthresh(&self) -> u32 {
        self.get().ssthresh()
    }

    #[inline]
    fn on_ack(&mut self, now: Instant, view: &View, acked: u32) {
        match self {
            Self::NewReno(c) => c.on_ack(now, view, acked),
            Self::Cubic(c) => c.on_ack(now, view, acked),
            Self::Coupled(c) => c.on_ack(now, view, acked),
            Self::Adaptive(c) => c.on_ack(now, view, acked),
            Self::Westwood(c) => c.on_ack(now, view, acked),
        }
    }

    #[inline]
    fn on_delivery(&mut self, now: Instant, mss: u32, acked: u32) {
        match self {
            Self::Westwood(c) => c.on_delivery(now, mss, acked),
            Self::NewReno(_) | Self::Cubic(_) | Self::Coupled(_) | Self::Adaptive(_) => {}
        }
    }

    fn on_rtt(&mut self, now: Instant, view: &View, rtt: Duration) {
        self.get_mut().on_rtt(now, view, rtt);
    }

    fn on_loss(&mut self, now: Instant, view: &View) {
        self.get_mut().on_loss(now, view);
    }

    fn on_recovered(&mut self, now: Instant, view: &View) {
        self.get_mut().on_recovered(now, view);
    }

    fn on_timeout(&mut self, now: Instant, view: &View) {
        self.get_mut().on_timeout(now, view);
    }

    fn on_idle(&mut self, now: Instant, view: &View) {
        self.get_mut().on_idle(now, view);
    }
}
