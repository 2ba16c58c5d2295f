//! Congestion control: one trait, dispatched by an enum. [`CongestionAlgorithm::Custom`] holds a
//! user's own implementation.
//!
//! A controller determines the size of the window and nothing else. The sender chooses which data
//! to retransmit, and inflates the window during fast recovery (RFC 5681 section 3.2).

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

/// Congestion control algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Congestion"))]
pub enum CongestionAlgorithm {
    /// RFC 5681 with the window arithmetic of RFC 6582.
    #[cfg_attr(feature = "serde", serde(rename = "newreno"))]
    NewReno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// Linked increases (RFC 6356): NewReno, except that the windows of all subflows of one
    /// Multipath TCP connection together grow no faster than one flow. On a single-path connection
    /// it equals NewReno.
    Coupled,
    /// TCP Westwood+: NewReno, except that a loss sets the window to the measured delivery rate of
    /// the path times its round-trip time (Grieco and Mascolo, CCR 34(2), 2004).
    Westwood,
    /// BBR version 3 (draft-ietf-ccwg-bbr): rate and window follow a model of the path. BBR always
    /// paces and treats a mark as a loss.
    Bbr,
    /// A-NewReno: NewReno between a least and a largest window, for long radio paths ("Multipath
    /// TCP Over Multi-Hop Heterogeneous Wireless IoT Networks", ICC 2024, section IV).
    #[cfg_attr(feature = "serde", serde(rename = "adaptive-newreno"))]
    AdaptiveNewReno(AdaptiveNewReno),
    /// A controller supplied by the user. A window below one segment counts as one segment.
    #[cfg_attr(feature = "serde", serde(skip))]
    Custom(CustomCongestion),
}

/// Window bounds of A-NewReno. The owner derives them, and the time-out, from the length of the
/// path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct AdaptiveNewReno {
    /// Window at the start and after a time-out, in segments.
    pub w_min: u16,
    /// Largest window, in segments.
    pub w_max: u16,
    /// Number of loss-free rounds between two increases of the window, at least 1.
    pub update_every: u16,
    /// Whether the window grows up to its bound, or is chosen by the measured throughput.
    #[cfg_attr(feature = "serde", serde(default))]
    pub phases: AdaptivePhases,
}

/// How A-NewReno sets the window while there are no losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AdaptivePhases {
    /// The window grows once in `update_every` rounds, up to its bound.
    #[default]
    Grow,
    /// The window grows in each round as long as the throughput grows with it. Then the window with
    /// the highest throughput is held until the throughput falls below half of that, or until a
    /// loss. `update_every` has no effect.
    ExploreHold,
}

/// How much one acknowledgement contributes to the growth of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ByteCounting {
    /// A fixed amount, whatever the acknowledgement covers: one segment in slow start, its share of
    /// one segment afterwards. Delayed acknowledgements therefore slow the growth down. The TCP of
    /// the papers' models.
    Off,
    /// The number of bytes that the acknowledgement covers (RFC 3465, RFC 5681 section 3.1).
    On {
        /// Limit per acknowledgement in slow start, in segments (`L` of RFC 3465 section 2.2: 1 or
        /// 2); 1 during the recovery from a time-out.
        limit: u8,
    },
}

/// A congestion controller supplied by the user.
pub type CustomCongestion = Custom<dyn Controller, Start>;

/// Arguments of a controller's constructor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    /// Initial window in bytes. It is one segment until the handshake is complete; then the
    /// controller is constructed again.
    pub cwnd: u32,
    /// Slow-start threshold in bytes; `u32::MAX` is unbounded.
    pub ssthresh: u32,
    /// Largest payload in bytes.
    pub mss: u32,
    /// A value that differs between connections, to seed random choices.
    pub seed: u32,
}

/// The state of a connection that a controller may use.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Largest payload in bytes.
    pub mss: u32,
    /// SND.NXT - SND.UNA in bytes, valid when a loss, a time-out or the end of a recovery is
    /// reported.
    pub in_flight: u32,
    /// How much of the window that is being acknowledged was used.
    pub usage: Usage,
    /// Upper limit of the window in bytes. Each algorithm must respect it.
    pub limit: u32,
    /// Initial window in bytes.
    pub initial_window: u32,
    /// Lower limit of the slow-start threshold in bytes.
    pub least_ssthresh: u32,
    /// Smoothed round-trip time; `None` before the first measurement.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time measured so far.
    pub min_rtt: Option<Duration>,
    /// How much one acknowledgement contributes to the growth of the window.
    pub byte_counting: ByteCounting,
    /// Divisor of the growth in slow start: above 1 in the Conservative Slow Start of HyStart++
    /// (RFC 9406 section 4.2).
    pub slow_start_divisor: u32,
    /// The repair method for the loss being reported.
    pub repair: Repair,
    /// Whether a mark reduces the window less than a loss (RFC 8511).
    pub abe: bool,
}

/// A controller's window and threshold at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Windows {
    /// Congestion window in bytes.
    pub cwnd: u32,
    /// Slow-start threshold in bytes; `u32::MAX` is unbounded.
    pub ssthresh: u32,
}

/// How much of a congestion window was used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Usage {
    /// The window was full: no further segment fitted.
    Full,
    /// At most `peak` bytes were in flight.
    Partial {
        /// Largest number of bytes in flight.
        peak: u32,
    },
}

/// The repair method for a loss, which also tells why the controller is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repair {
    /// Fast retransmit of BSD Reno.
    Reno,
    /// NewReno recovery (RFC 6582).
    NewReno,
    /// SACK-based recovery (RFC 6675).
    Sack,
    /// The first time-out for this byte.
    FirstTimeout,
    /// A further time-out for the same byte.
    RepeatedTimeout,
}

#[cfg(test)]
impl View {
    /// A view with segments of `mss` bytes, no limit and no measurements. A test sets the fields
    /// that it is about.
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
    /// Whether the window may grow: it limited the sender, or in slow start more than half of it
    /// was in use (in the spirit of RFC 7661 section 4.2). At half, growth stops, so that slow
    /// start makes the window at most twice the flight.
    #[inline]
    pub fn uses(&self, cwnd: u32, ssthresh: u32) -> bool {
        match self.usage {
            Usage::Full => true,
            Usage::Partial { peak } => cwnd < ssthresh && peak.saturating_mul(2) > cwnd,
        }
    }

    /// Bytes that slow start adds for `acked` acknowledged bytes (RFC 5681 section 3.1, RFC 3465
    /// section 2.2).
    #[inline]
    pub fn slow_start_step(&self, acked: u32) -> u32 {
        let step = match self.byte_counting {
            ByteCounting::Off => self.mss,
            ByteCounting::On { limit } => acked.min(self.mss.saturating_mul(u32::from(limit.max(1)))),
        };
        step / self.slow_start_divisor.max(1)
    }
}

/// A congestion control algorithm. All windows are in bytes. Default methods do nothing.
pub trait Controller: fmt::Debug + Send {
    /// The congestion window.
    fn cwnd(&self) -> u32;
    /// The slow-start threshold; `u32::MAX` is unbounded.
    fn ssthresh(&self) -> u32;
    /// Called when `acked` new bytes were acknowledged outside of recovery.
    fn on_ack(&mut self, _now: Instant, _view: &View, _acked: u32) {}
    /// Called for every acknowledgement, in recovery or not, of `acked` new bytes; 0 for a
    /// duplicate.
    fn on_delivery(&mut self, _now: Instant, _mss: u32, _acked: u32) {}
    /// Called when a round-trip time was measured.
    fn on_rtt(&mut self, _now: Instant, _view: &View, _rtt: Duration) {}
    /// Called when HyStart++ ends slow start without a loss, because the queue at the bottleneck
    /// grows (RFC 9406).
    fn on_slow_start_end(&mut self, _now: Instant, _view: &View) {}
    /// Called once per recovery when duplicate acknowledgements or SACK show a loss.
    fn on_loss(&mut self, _now: Instant, _view: &View) {}
    /// Called once per window when the peer echoes a mark of the network (RFC 3168 section 6.1.2).
    /// By default a mark counts as a loss.
    fn on_mark(&mut self, now: Instant, view: &View) {
        self.on_loss(now, view);
    }
    /// Whether the controller reduces its window on marks, as RFC 3168 section 5 requires. If not,
    /// data is never sent as ECT.
    fn answers_marks(&self) -> bool {
        true
    }
    /// Called when the recovery ends.
    fn on_recovered(&mut self, _now: Instant, _view: &View) {}
    /// Called when the retransmission timer expires.
    fn on_timeout(&mut self, _now: Instant, _view: &View) {}
    /// Called when the last loss or time-out proves spurious; `prior` holds the windows before it
    /// (RFC 4015). A window that has meanwhile grown past `prior` must stay. Only with
    /// [`Config::undo`](super::Config::undo).
    fn on_spurious(&mut self, _now: Instant, _view: &View, _prior: Windows) {}
    /// Called before data is sent after an idle time of more than one time-out (RFC 5681 section
    /// 4.1).
    fn on_idle(&mut self, _now: Instant, _view: &View) {}
    /// Whether the algorithm works on rate samples. If so, it receives every sample and every
    /// segment found lost, and its window applies in a recovery too, without PRR.
    fn wants_samples(&self) -> bool {
        false
    }
    /// Called for an acknowledgement that delivers data, after all other calls for that
    /// acknowledgement.
    fn on_sample(&mut self, _now: Instant, _view: &View, _sample: &RateSample) {}
    /// Called for each segment found lost.
    fn on_lost(&mut self, _now: Instant, _view: &View, _lost: &LostSegment) {}
    /// Called before data is sent into an empty network because the application had nothing to
    /// send.
    fn on_restart(&mut self, _now: Instant, _view: &View) {}
    /// Pacing rate in bytes per second; `None` derives pacing from the window and the round-trip
    /// time.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }
    /// Whether the controller currently sends less than the path allows on purpose. Rate samples of
    /// data sent now do not measure the path's rate.
    fn limits_itself(&self) -> bool {
        false
    }
}

/// A controller of any kind.
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

/// Size of a segment in bytes: a window below it would never send anything.
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

    /// Sets the state of the other subflows; only [`Coupled`] uses it.
    pub(crate) fn set_coupling(&mut self, coupling: Coupling) {
        if let Self::Coupled(c) = self {
            c.set_coupling(coupling);
        }
    }

    /// The window; for a user's controller at least one segment.
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

    /// As [`Controller::on_ack`], but static dispatch for the built-in algorithms: the call is on
    /// the path of every acknowledgement.
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

/// All other methods dispatch through the trait object, so that a new trait method cannot be
/// forgotten here.
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
