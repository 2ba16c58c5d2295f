//! Congestion control: one trait, dispatched by an enum. [`CongestionAlgorithm::Custom`] is one of
//! somebody else's.
//!
//! A controller says how large the window is and nothing else. What is sent again, and the
//! inflation of the window during fast recovery (RFC 5681 section 3.2), belong to the sender.

mod adaptive;
mod bbr;
mod coupled;
mod cubic;
mod newreno;
mod sample;
mod westwood;

use adaptive::Adaptive;
use bbr::Bbr;
use coupled::Coupled;
pub(crate) use coupled::Coupling;
use cubic::Cubic;
use newreno::NewReno;
pub use sample::{LostSegment, RateSample};
use westwood::Westwood;

use alloc::boxed::Box;
use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::policy::Custom;
use crate::time::{Duration, Instant};

/// How the congestion window grows and shrinks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Congestion"))]
pub enum CongestionAlgorithm {
    /// RFC 5681 with the window arithmetic of RFC 6582.
    #[cfg_attr(feature = "serde", serde(rename = "newreno"))]
    NewReno,
    /// RFC 9438.
    Cubic,
    /// RFC 6356: as NewReno, but the windows of all subflows of one Multipath TCP connection
    /// together grow no faster than one. On a connection that is no subflow it is NewReno.
    Coupled,
    /// TCP Westwood+: NewReno, but a loss sets the window to what the path was seen to deliver
    /// (Grieco and Mascolo, CCR 34(2), 2004).
    Westwood,
    /// BBR version 3 (draft-ietf-ccwg-bbr): rate and window follow a model of the path. Always
    /// paced; a mark counts as a loss.
    Bbr,
    /// A-NewReno, NewReno between two windows for long paths over radio ("Multipath TCP Over
    /// Multi-Hop Heterogeneous Wireless IoT Networks", ICC 2024, section IV).
    #[cfg_attr(feature = "serde", serde(rename = "adaptive-newreno"))]
    AdaptiveNewReno(AdaptiveNewReno),
    /// A user's own. Its window is taken to be a segment where it says less.
    #[cfg_attr(feature = "serde", serde(skip))]
    Custom(CustomCongestion),
}

/// The bounds of A-NewReno. The owner derives them, and the time-out, from the length of the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct AdaptiveNewReno {
    /// Window at the start and after a time-out, in segments.
    pub w_min: u16,
    /// Largest window, in segments.
    pub w_max: u16,
    /// Rounds without loss from one growth to the next, at least 1.
    pub update_every: u16,
    /// Whether the window grows up to its bound, or is chosen by what it delivers.
    #[cfg_attr(feature = "serde", serde(default))]
    pub phases: AdaptivePhases,
}

/// What A-NewReno does with the window while nothing is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AdaptivePhases {
    /// The window grows once in `update_every` rounds, up to its bound.
    #[default]
    Grow,
    /// The window grows in each round as long as that delivers more per second. Then the window
    /// that has delivered most is held until it delivers less than half of that, or until a loss;
    /// `update_every` does not count.
    ExploreHold,
}

/// What one acknowledgement is worth when the window grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ByteCounting {
    /// The same whatever it covers: one segment in slow start, its share of one segment afterwards,
    /// so that delayed acknowledgements slow the growth down. The TCP of the papers' models.
    Off,
    /// What it covers (RFC 3465, RFC 5681 section 3.1).
    On {
        /// Most segments that one acknowledgement may add in slow start (`L` of RFC 3465 section
        /// 2.2: 1 or 2); 1 while a time-out is repaired.
        limit: u8,
    },
}

/// A congestion control that is not ours.
pub type CustomCongestion = Custom<dyn Controller, Start>;

/// What a controller is made from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    /// The initial window, in bytes. Before the handshake is over it is one segment, and a
    /// controller is made again then.
    pub cwnd: u32,
    /// The slow-start threshold, in bytes; `u32::MAX` is unbounded.
    pub ssthresh: u32,
    /// Largest payload, in bytes.
    pub mss: u32,
    /// Differs from connection to connection, for random choices.
    pub seed: u32,
}

/// What a controller may know of its connection.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Largest payload, in bytes.
    pub mss: u32,
    /// SND.NXT - SND.UNA in bytes when a loss, a time-out or the end of a recovery is told.
    pub in_flight: u32,
    /// How far the window being acknowledged was used.
    pub usage: Usage,
    /// The window never grows past this, in bytes; each algorithm keeps to it by itself.
    pub limit: u32,
    /// Bytes of the initial window.
    pub initial_window: u32,
    /// The slow-start threshold never falls below this, in bytes.
    pub least_ssthresh: u32,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time measured.
    pub min_rtt: Option<Duration>,
    /// What one acknowledgement is worth.
    pub byte_counting: ByteCounting,
    /// What slow start adds is divided by this: above 1 in the Conservative Slow Start of HyStart++
    /// (RFC 9406 section 4.2).
    pub slow_start_divisor: u32,
    /// How the loss at hand is repaired.
    pub repair: Repair,
    /// A mark takes less than a loss (RFC 8511).
    pub abe: bool,
}

/// A controller's window and threshold at some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Windows {
    /// The congestion window, in bytes.
    pub cwnd: u32,
    /// The slow-start threshold, in bytes; `u32::MAX` is unbounded.
    pub ssthresh: u32,
}

/// How far a congestion window was used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Usage {
    /// No further segment fitted.
    Full,
    /// At most so many bytes were in flight.
    Partial {
        /// Bytes.
        peak: u32,
    },
}

/// How losses are repaired and with them the occasion of a controller's call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repair {
    /// BSD Reno.
    Reno,
    /// RFC 6582.
    NewReno,
    /// RFC 6675.
    Sack,
    /// The first time-out for this byte.
    FirstTimeout,
    /// A further time-out for the same byte.
    RepeatedTimeout,
}

#[cfg(test)]
impl View {
    /// Segments of `mss` bytes, no limit, and nothing measured yet. A test states what else it is
    /// about.
    pub(crate) fn of(mss: u32, repair: Repair) -> Self {
        Self {
            mss,
            in_flight: 0,
            usage: Usage::Full,
            limit: u32::MAX,
            initial_window: mss,
            least_ssthresh: 2 * mss,
            srtt: None,
            min_rtt: None,
            byte_counting: ByteCounting::Off,
            slow_start_divisor: 1,
            repair,
            abe: false,
        }
    }
}

impl View {
    /// The window is worth growing: it held the sender back, or in slow start more than half of it
    /// was in use (RFC 7661 section 4.2 in spirit). At half it stops, so that slow start grows it
    /// to twice the flight and no further.
    #[inline]
    pub fn uses(&self, cwnd: u32, ssthresh: u32) -> bool {
        match self.usage {
            Usage::Full => true,
            Usage::Partial { peak } => cwnd < ssthresh && peak.saturating_mul(2) > cwnd,
        }
    }

    /// Bytes that slow start adds for `acked` bytes (RFC 5681 section 3.1, RFC 3465 section 2.2).
    #[inline]
    pub fn slow_start_step(&self, acked: u32) -> u32 {
        let step = match self.byte_counting {
            ByteCounting::Off => self.mss,
            ByteCounting::On { limit } => acked.min(self.mss.saturating_mul(u32::from(limit.max(1)))),
        };
        step / self.slow_start_divisor.max(1)
    }
}

/// A congestion control algorithm. All windows are bytes. Defaults do nothing.
pub trait Controller: fmt::Debug + Send {
    /// The window.
    fn cwnd(&self) -> u32;
    /// The slow-start threshold; `u32::MAX` is unbounded.
    fn ssthresh(&self) -> u32;
    /// `acked` new bytes were acknowledged outside of recovery.
    fn on_ack(&mut self, _now: Instant, _view: &View, _acked: u32) {}
    /// An acknowledgement has come, in recovery or not, of `acked` new bytes; 0 is a duplicate.
    fn on_delivery(&mut self, _now: Instant, _mss: u32, _acked: u32) {}
    /// A round trip was measured.
    fn on_rtt(&mut self, _now: Instant, _view: &View, _rtt: Duration) {}
    /// The queue at the bottleneck grows (RFC 9406): slow start ends here, without a loss.
    fn on_slow_start_end(&mut self, _now: Instant, _view: &View) {}
    /// Duplicate acknowledgements or SACK showed a loss: once per recovery.
    fn on_loss(&mut self, _now: Instant, _view: &View) {}
    /// The peer has echoed a mark of the network (RFC 3168 section 6.1.2): once per window. As a
    /// loss, unless a controller knows better.
    fn on_mark(&mut self, now: Instant, view: &View) {
        self.on_loss(now, view);
    }
    /// The window yields to marks as RFC 3168 section 5 asks for. If not, data is never ECT.
    fn answers_marks(&self) -> bool {
        true
    }
    /// The recovery is over.
    fn on_recovered(&mut self, _now: Instant, _view: &View) {}
    /// The retransmission timer ran out.
    fn on_timeout(&mut self, _now: Instant, _view: &View) {}
    /// The last loss or time-out was none, and `prior` is how things stood before (RFC 4015). A
    /// window that has grown past that since stays. Only with
    /// [`Config::undo`](super::Config::undo).
    fn on_spurious(&mut self, _now: Instant, _view: &View, _prior: Windows) {}
    /// Data follows after longer than one time-out of silence (RFC 5681 section 4.1).
    fn on_idle(&mut self, _now: Instant, _view: &View) {}
    /// The algorithm works from rate samples. Then it is told of each one and of each segment found
    /// lost, and its window holds in a recovery too, without PRR.
    fn wants_samples(&self) -> bool {
        false
    }
    /// An acknowledgement says that something has arrived. Comes after all else that the
    /// acknowledgement has to tell.
    fn on_sample(&mut self, _now: Instant, _view: &View, _sample: &RateSample) {}
    /// A segment was found lost.
    fn on_lost(&mut self, _now: Instant, _view: &View, _lost: &LostSegment) {}
    /// Data follows after the network has become empty, because the application has had nothing to
    /// send.
    fn on_restart(&mut self, _now: Instant, _view: &View) {}
    /// Bytes per second at which data leaves; `None` leaves pacing to the window and the round
    /// trip.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }
    /// It holds back on purpose: samples of what is sent now say nothing of the path's rate.
    fn limits_itself(&self) -> bool {
        false
    }
}

/// One of the algorithms.
#[derive(Debug)]
pub(crate) enum AnyController {
    NewReno(NewReno),
    Cubic(Cubic),
    Coupled(Coupled),
    Adaptive(Adaptive),
    Westwood(Westwood),
    Bbr(Box<Bbr>),
    Custom(Box<dyn Controller>, AtLeast),
}

/// Bytes of a segment: a window of less would send nothing for ever.
type AtLeast = u32;

impl AnyController {
    pub(crate) fn new(algorithm: CongestionAlgorithm, start: Start) -> Self {
        let Start { cwnd, ssthresh, mss, .. } = start;
        match algorithm {
            CongestionAlgorithm::NewReno => Self::NewReno(NewReno::new(cwnd, ssthresh)),
            CongestionAlgorithm::Cubic => Self::Cubic(Cubic::new(cwnd, ssthresh)),
            CongestionAlgorithm::Coupled => Self::Coupled(Coupled::new(cwnd, ssthresh)),
            CongestionAlgorithm::Westwood => Self::Westwood(Westwood::new(cwnd, ssthresh)),
            CongestionAlgorithm::AdaptiveNewReno(options) => {
                Self::Adaptive(Adaptive::new(options, mss, ssthresh))
            }
            CongestionAlgorithm::Bbr => Self::Bbr(Box::new(Bbr::new(start))),
            CongestionAlgorithm::Custom(custom) => Self::Custom(custom.make(start), mss),
        }
    }

    /// What the other subflows are like; only [`Coupled`] asks.
    pub(crate) fn set_coupling(&mut self, coupling: Coupling) {
        if let Self::Coupled(c) = self {
            c.set_coupling(coupling);
        }
    }

    /// The window; of a controller that is not ours no less than a segment.
    #[inline]
    pub(crate) fn cwnd(&self) -> u32 {
        match self {
            Self::NewReno(c) => c.cwnd(),
            Self::Cubic(c) => c.cwnd(),
            Self::Coupled(c) => c.cwnd(),
            Self::Adaptive(c) => c.cwnd(),
            Self::Westwood(c) => c.cwnd(),
            Self::Bbr(c) => c.cwnd(),
            Self::Custom(c, least) => c.cwnd().max(*least),
        }
    }

    /// As [`Controller::on_ack`], without a virtual call for ours: it comes with each
    /// acknowledgement.
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Instant, view: &View, acked: u32) {
        match self {
            Self::NewReno(c) => c.on_ack(now, view, acked),
            Self::Cubic(c) => c.on_ack(now, view, acked),
            Self::Coupled(c) => c.on_ack(now, view, acked),
            Self::Adaptive(c) => c.on_ack(now, view, acked),
            Self::Westwood(c) => c.on_ack(now, view, acked),
            Self::Bbr(c) => c.on_ack(now, view, acked),
            Self::Custom(c, _) => c.on_ack(now, view, acked),
        }
    }
}

/// What is not above is the algorithm's own, so that no call of it can be lost.
impl Deref for AnyController {
    type Target = dyn Controller;

    #[inline]
    fn deref(&self) -> &Self::Target {
        match self {
            Self::NewReno(c) => c,
            Self::Cubic(c) => c,
            Self::Coupled(c) => c,
            Self::Adaptive(c) => c,
            Self::Westwood(c) => c,
            Self::Bbr(c) => c.as_ref(),
            Self::Custom(c, _) => c.as_ref(),
        }
    }
}

impl DerefMut for AnyController {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::NewReno(c) => c,
            Self::Cubic(c) => c,
            Self::Coupled(c) => c,
            Self::Adaptive(c) => c,
            Self::Westwood(c) => c,
            Self::Bbr(c) => c.as_mut(),
            Self::Custom(c, _) => c.as_mut(),
        }
    }
}

#[cfg(test)]
mod tests;
