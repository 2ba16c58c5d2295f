//! Equations (6) to (9): the windows of a TCP sender and its stalls between them.
//!
//! Windows are real numbers, as in the paper. The conditions "if k <= K_S" of (6) and (7) are
//! circular, since k is the result. Here the windows are added up until their sum reaches the
//! number of segments (S10).

use super::parameters::Window;
use super::reading::{AckTime, AvoidanceIndex, Growth};

/// Relative tolerance when sums of windows are compared, so that rounding never adds a window.
const SLACK: f64 = 1e-9;

/// The windows of one TCP connection: growth of the sender's window up to the receiver's limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Windows {
    window: Window,
    receive: f64,
    slow_start: u64,
    growing: u64,
    avoidance: AvoidanceIndex,
    growth: Growth,
}

/// Windows and stalls for a number of segments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flight {
    /// K: number of windows; 0 for no segments.
    pub windows: u64,
    /// Total time in seconds that the sender waits for an ACK after each window except the last.
    pub stall: f64,
}

impl Windows {
    /// The windows of a connection whose receiver advertises `receive` segments (infinite for no
    /// limit). `window` must have passed [`Window::check`], and `receive` must be greater than
    /// zero.
    pub fn new(window: Window, receive: f64, avoidance: AvoidanceIndex, growth: Growth) -> Self {
        let slow_start = slow_start_windows(&window, growth);
        let steps = (f64::from(window.segments_per_ack) * (window.max - window.threshold())).ceil();
        Self {
            window,
            receive,
            slow_start,
            growing: slow_start.saturating_add(steps as u64),
            avoidance,
            growth,
        }
    }

    /// K_S: number of windows in slow start; W_sst is reached in window K_S + 1 (S11).
    pub fn slow_start(&self) -> u64 {
        self.slow_start
    }

    /// K_M: number of windows until the largest one, which is window K_M + 1 (S11).
    pub fn growing(&self) -> u64 {
        self.growing
    }

    /// Number of segments in window `k` (from 1): the summands of equations (6) and (7).
    pub fn segments(&self, k: u64) -> f64 {
        self.congestion(k, self.slow_start as f64).min(self.receive)
    }

    /// t_k, equation (8): time in seconds to transmit window `k` at `segment_time` seconds per
    /// segment.
    pub fn transmission(&self, k: u64, segment_time: f64) -> f64 {
        let origin = match self.avoidance {
            AvoidanceIndex::SlowStartWindows => self.slow_start as f64,
            AvoidanceIndex::SegmentsPerAck => f64::from(self.window.segments_per_ack),
        };
        self.congestion(k, origin).min(self.receive) * segment_time
    }

    /// Congestion window number `k`; in congestion avoidance, windows are counted from `origin`.
    fn congestion(&self, k: u64, origin: f64) -> f64 {
        let s = f64::from(self.window.segments_per_ack);
        if k <= self.slow_start {
            match self.growth {
                Growth::RealNumbers => {
                    self.window.initial * self.window.growth().powf(k.saturating_sub(1) as f64)
                }
                // A window grows by at least one, so the loop is short.
                Growth::WholeAcks => (1..k).fold(self.window.initial, |size, _| size + (size / s).ceil()),
            }
        } else if k <= self.growing {
            self.window.threshold() + (k as f64 - origin - 1.0) / s
        } else {
            self.window.max
        }
    }

    /// True if window `k` and all later windows have the same size.
    fn is_constant(&self, k: u64) -> bool {
        k > self.growing
            || (self.avoidance == AvoidanceIndex::SlowStartWindows && self.segments(k) >= self.receive)
    }

    /// K of equations (6) and (7) for `segments`, with the stalls of equation (10):
    /// `sum_{k=1}^{K-1} [T_ACK - t_k]^+`. `segment_time` and `ack_time` (see [`ack_time`]) are in
    /// seconds.
    pub fn flight(&self, segments: u64, segment_time: f64, ack_time: f64) -> Flight {
        self.steps(segments, segment_time, ack_time).fold(Flight { windows: 0, stall: 0.0 }, |sum, step| {
            Flight { windows: sum.windows + step.count, stall: sum.stall + step.count as f64 * step.stall }
        })
    }

    /// Earliest time, in seconds after the sender began, at which a slower stage behind this sender
    /// can have processed `segments`. Every segment must first arrive; then it and all later ones
    /// take `next_time` seconds each. Both times are linear within a window, so only its ends need
    /// to be checked.
    pub fn relayed(&self, segments: u64, segment_time: f64, ack_time: f64, next_time: f64) -> f64 {
        let total = segments as f64;
        let through = |before: f64, arrival: f64| arrival + (total - before) * next_time;
        let mut latest: f64 = 0.0;
        for step in self.steps(segments, segment_time, ack_time) {
            let out = step.size * segment_time;
            // Equal windows follow each other linearly too, so the first and the last of them
            // suffice.
            for i in [0, step.count - 1].map(|i| i as f64) {
                let (begin, before) = (step.begin + i * (out + step.stall), step.before + i * step.size);
                latest = latest.max(through(before, begin + segment_time.min(out)));
                latest = latest.max(through(before + (step.size - 1.0).max(0.0), begin + out));
            }
        }
        latest
    }

    /// The windows for `segments` one by one. The equal windows at the end are two steps: all
    /// except the last, and the last.
    fn steps(&self, segments: u64, segment_time: f64, ack_time: f64) -> impl Iterator<Item = Step> {
        let wanted = segments as f64;
        let (mut k, mut before, mut begin) = (0, 0.0, 0.0);
        std::iter::from_fn(move || {
            let left = wanted - before;
            if left <= wanted * SLACK {
                return None;
            }
            k += 1;
            let size = self.segments(k);
            let needed = (left / size * (1.0 - SLACK)).ceil().max(1.0);
            let (count, stall) = match (needed as u64, self.is_constant(k)) {
                (1, _) => (1, 0.0),
                (more, constant) => {
                    let stall = (ack_time - self.transmission(k, segment_time)).max(0.0);
                    (if constant { more - 1 } else { 1 }, stall)
                }
            };
            let step = Step { count, before, size: size.min(left), begin, stall };
            k += count - 1;
            before += count as f64 * step.size;
            begin += count as f64 * (step.size * segment_time + stall);
            Some(step)
        })
    }
}

/// One window, or several consecutive windows of the same size.
struct Step {
    count: u64,
    /// Number of segments sent before it.
    before: f64,
    /// Number of segments in each window.
    size: f64,
    /// Time in seconds after the sender began.
    begin: f64,
    /// Stall in seconds after each window.
    stall: f64,
}

/// T_ACK, equation (9): time in seconds from the start of a window until the ACK of its first `s`
/// segments is back, at `segment_time` seconds per segment and a round trip of `rtt` seconds.
pub fn ack_time(window: &Window, segment_time: f64, rtt: f64, reading: AckTime) -> f64 {
    let trips = match reading {
        AckTime::OneRoundTrip => 1.0,
        AckTime::TwoRoundTrips => 2.0,
    };
    f64::from(window.segments_per_ack) * segment_time + trips * rtt
}

/// K_S = ceil(log_r(W_sst / W_0)), computed by multiplication, so that exact powers are recognised.
fn slow_start_windows(window: &Window, growth: Growth) -> u64 {
    let target = window.threshold() * (1.0 - SLACK);
    let (mut size, mut windows) = (window.initial, 0);
    while size < target {
        size = match growth {
            Growth::RealNumbers => size * window.growth(),
            Growth::WholeAcks => size + (size / f64::from(window.segments_per_ack)).ceil(),
        };
        windows += 1;
    }
    windows
}
