//! Estimated quality of a link over the air: sections V and VI of "Multipath TCP Over Multi-Hop
//! Heterogeneous Wireless IoT Networks", with the channel's busy time and the arrival rate that the
//! node has measured.

use anabranch_core::mptcp::travel::Reading;
use anabranch_core::mptcp::travel::csma::{Busy, Csma};
use anabranch_core::mptcp::travel::rtt::{CsmaLink, Link, Route, Sizes, Transmitter, travel_times};
use anabranch_core::paths::Metrics;
use anabranch_core::time::{Duration, Instant};

use super::{View, Wireless};
use crate::packet::NodeId;
use crate::radio::Station;

/// Bytes of a frame with a segment without payload (IPHC, RFC 6282).
const COMPRESSED: u16 = 50;

/// Largest K of the model: a longer queue would take minutes to fill.
const LONGEST_QUEUE: u32 = 1000;

/// Seconds between two measurements.
const WINDOW: f64 = 2.0;

/// Recent measurements of a station's channel and queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sight {
    since: Instant,
    busy_time: Duration,
    /// Number of frames passed to the radio since the beginning, and their bytes.
    pub(super) frames: u64,
    pub(super) octets: u64,
    frames_before: u64,
    /// p_b: fraction of the time in which other stations kept the channel busy.
    busy: f64,
    /// lambda: frames per second.
    arrivals: f64,
    /// The last result with its inputs: busy fraction, frames per second, bytes of a queued frame,
    /// and the view. Cached because the model is slow and is asked much more often than the inputs
    /// change.
    known: Option<(f64, f64, u32, View)>,
}

impl Sight {
    /// Measures again if a window has passed. The newest window counts for half of the estimate.
    fn look(&mut self, now: Instant, busy_time: Duration) {
        let window = now.saturating_since(self.since).as_secs_f64();
        if window < WINDOW {
            return;
        }
        let busy = busy_time.saturating_sub(self.busy_time).as_secs_f64() / window;
        let arrivals = (self.frames - self.frames_before) as f64 / window;
        // The estimate has no previous value before the first window.
        let weight = if self.since == Instant::ZERO { 1.0 } else { 0.5 };
        self.busy += weight * (busy.min(1.0) - self.busy);
        self.arrivals += weight * (arrivals - self.arrivals);
        (self.since, self.busy_time, self.frames_before) = (now, busy_time, self.frames);
    }
}

impl Wireless {
    /// Equation (8) for a node on the channel.
    pub(super) fn view(&mut self, now: Instant, node: NodeId) -> Option<View> {
        let station = self.station(node)?;
        let busy_time = self.radio.busy_time(now, Station(station));
        let sight = &mut self.interface(station).sight;
        sight.look(now, busy_time);
        let &mut Sight { busy, arrivals, frames, octets, known, .. } = sight;
        let capacity = Some(self.config.queue.clamp(1, LONGEST_QUEUE));
        let (phy, mac) = (*self.radio.phy(), *self.radio.mac());
        let on_air = |psdu: u16| u32::from(psdu) + u32::from(phy.header);
        let header = on_air(COMPRESSED);
        let queued = octets.checked_div(frames).map_or(header, |mean| on_air(mean as u16));
        if let Some((.., view)) =
            known.filter(|known| (known.0, known.1, known.2) == (busy, arrivals, queued))
        {
            return Some(view);
        }
        let route = Route {
            forward: vec![Transmitter {
                link: Link::Csma(CsmaLink {
                    bandwidth: phy.bit_rate as f64,
                    backoff_period: phy.backoff_period.as_secs_f64(),
                    turnaround: phy.turnaround.as_secs_f64(),
                    mac_ack: (phy.turnaround + phy.airtime(phy.ack_psdu)).as_secs_f64(),
                    csma: Csma {
                        min_be: mac.min_be.into(),
                        max_be: mac.max_be.into(),
                        max_backoffs: mac.max_csma_backoffs.into(),
                    },
                    busy: Busy::Constant(busy),
                }),
                arrivals,
                capacity,
            }],
            reverse: Vec::new(),
            sizes: Sizes { header, payload: 0, queued },
        };
        let travel = travel_times(&route, Reading::default()).ok()?;
        let metrics = Metrics {
            latency: Duration::from_secs_f64(travel.syn),
            throughput: u32::try_from(phy.bit_rate / 8).unwrap_or(u32::MAX).max(1),
        };
        let view = View { metrics, spacing: Duration::from_secs_f64(travel.t_next) };
        self.interface(station).sight.known = Some((busy, arrivals, queued, view));
        Some(view)
    }
}
