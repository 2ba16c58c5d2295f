//! CUBIC (RFC 9438) in integer arithmetic: windows in bytes, time in milliseconds, and an integer
//! cube root. C is 0.4, beta 0.7, and alpha 9/17 = 3 (1 - beta) / (1 + beta).

use super::{Controller, Repair, View, Windows};
use crate::time::{Duration, Instant};

/// State of CUBIC.
#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    cwnd: u32,
    ssthresh: u32,
    /// W_max (section 4.1.2).
    w_max: u32,
    /// cwnd_prior: the window before the last reduction.
    cwnd_prior: u32,
    /// Accumulated fraction of a byte of growth, in units of 1/cwnd.
    owed: u64,
    epoch: Option<Epoch>,
    /// Whether the reduction before this epoch came from a time-out, or there was none (section
    /// 4.8).
    fresh: bool,
    /// Time of the last acknowledgement.
    counted: Instant,
    /// State changed by the last reduction besides window and threshold (section 4.9).
    before: Option<Shape>,
}

/// Position on the cubic function.
#[derive(Clone, Copy, Debug)]
struct Shape {
    w_max: u32,
    cwnd_prior: u32,
    epoch: Option<Epoch>,
    fresh: bool,
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// K in milliseconds.
    k: i64,
    /// W_max of this stage in bytes: the plateau of the function.
    origin: u32,
    /// W_est: the window that Reno would have (section 4.3).
    w_est: u32,
    /// Accumulated fraction of a byte of W_est, in units of 1/(17 cwnd).
    owed: u64,
}

impl Cubic {
    pub(crate) fn new(cwnd: u32, ssthresh: u32) -> Self {
        Self {
            cwnd,
            ssthresh,
            w_max: 0,
            cwnd_prior: 0,
            owed: 0,
            epoch: None,
            fresh: true,
            counted: Instant::ZERO,
            before: None,
        }
    }

    fn begin(&mut self, now: Instant, view: &View) -> Epoch {
        if self.fresh {
            // Section 4.8: after a time-out, W_max is the window at the beginning of congestion
            // avoidance.
            self.w_max = self.cwnd;
        }
        let origin = self.w_max.max(self.cwnd);
        let k = root_of(origin - self.cwnd, view.mss);
        let epoch = Epoch { start: now, k, origin, w_est: self.cwnd, owed: 0 };
        self.owed = 0;
        self.epoch = Some(epoch);
        epoch
    }

    fn avoid_congestion(&mut self, now: Instant, view: &View, acked: u32) {
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin(now, view));
        let t = now.saturating_since(epoch.start);
        self.grow_estimate(&mut epoch, view, acked);
        self.epoch = Some(epoch);
        if window_at(&epoch, t, view.mss) < epoch.w_est {
            // The Reno-friendly region (section 4.3): below Reno's window, CUBIC must be at least
            // as aggressive as Reno.
            self.cwnd = self.cwnd.max(epoch.w_est);
            return;
        }
        // Section 4.2: the target lies between the window and 1.5 times the window.
        let ahead = t + view.srtt.unwrap_or(Duration::ZERO);
        let target =
            window_at(&epoch, ahead, view.mss).clamp(self.cwnd, self.cwnd.saturating_add(self.cwnd / 2));
        self.owed += u64::from(target - self.cwnd) * u64::from(acked);
        let cwnd = u64::from(self.cwnd.max(1));
        self.cwnd = self.cwnd.saturating_add((self.owed / cwnd) as u32);
        self.owed %= cwnd;
    }

    /// W_est += alpha * acked / cwnd (section 4.3). alpha becomes 1 once the window before the loss
    /// is regained.
    fn grow_estimate(&self, epoch: &mut Epoch, view: &View, acked: u32) {
        let alpha = if epoch.w_est >= self.cwnd_prior { 17 } else { 9 };
        let unit = 17 * u64::from(self.cwnd.max(1));
        epoch.owed = epoch.owed.saturating_add(alpha * u64::from(acked) * u64::from(view.mss));
        epoch.w_est = epoch.w_est.saturating_add((epoch.owed / unit) as u32);
        epoch.owed %= unit;
    }

    /// Multiplicative decrease and fast convergence (sections 4.6 and 4.7).
    fn reduce(&mut self, view: &View, (num, den): (u32, u32)) {
        let Self { w_max, cwnd_prior, epoch, fresh, .. } = *self;
        self.before = Some(Shape { w_max, cwnd_prior, epoch, fresh });
        self.cwnd_prior = self.cwnd;
        // Fast convergence: 0.85 = (1 + beta) / 2. A window below the last W_max means that a new
        // flow needs room, so the plateau moves down.
        self.w_max = if self.cwnd < self.w_max { scale(self.cwnd, 17, 20) } else { self.cwnd };
        self.ssthresh = scale(view.in_flight, num, den).max(view.least_ssthresh);
        self.epoch = None;
    }

    /// Excludes time in which the window was not the limit from the epoch (sections 4.2 and 5.8).
    /// Growth would otherwise jump after an idle time.
    fn pause_until(&mut self, now: Instant) {
        let since = now.saturating_since(core::mem::replace(&mut self.counted, now));
        if let Some(epoch) = &mut self.epoch {
            epoch.start += since;
        }
    }

    /// Handles a loss or a mark without a time-out.
    fn back_off(&mut self, view: &View, beta: (u32, u32)) {
        self.reduce(view, beta);
        self.cwnd = self.ssthresh;
        self.fresh = false;
    }
}

impl Controller for Cubic {
    #[inline]
    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    fn on_ack(&mut self, now: Instant, view: &View, acked: u32) {
        if !view.uses(self.cwnd, self.ssthresh) {
            return self.pause_until(now);
        }
        self.counted = now;
        if self.cwnd < self.ssthresh {
            self.cwnd = self.cwnd.saturating_add(view.slow_start_step(acked));
        } else {
            self.avoid_congestion(now, view, acked);
        }
        self.cwnd = self.cwnd.min(view.limit);
    }

    fn on_slow_start_end(&mut self, _now: Instant, _view: &View) {
        self.ssthresh = self.cwnd;
    }

    fn on_loss(&mut self, _now: Instant, view: &View) {
        self.back_off(view, BETA);
    }

    fn on_mark(&mut self, _now: Instant, view: &View) {
        let cwnd = self.cwnd;
        self.back_off(view, if view.abe { BETA_ECN } else { BETA });
        self.cwnd = self.ssthresh.min(cwnd);
        // A mark is never undone, not even if a spurious loss follows it.
        self.before = None;
    }

    fn on_recovered(&mut self, _now: Instant, view: &View) {
        if view.repair == Repair::NewReno {
            // RFC 6582 section 3.2 step 3: avoids a burst after a full acknowledgement.
            self.cwnd = self.ssthresh.min(view.in_flight.max(view.mss).saturating_add(view.mss));
        }
    }

    fn on_timeout(&mut self, _now: Instant, view: &View) {
        if view.repair != Repair::RepeatedTimeout {
            self.reduce(view, BETA);
        }
        self.cwnd = view.mss;
        self.epoch = None;
        self.fresh = true;
    }

    /// Section 4.9: restores the previous position on the cubic function.
    fn on_spurious(&mut self, _now: Instant, view: &View, prior: Windows) {
        self.cwnd = self.cwnd.max(prior.cwnd).min(view.limit);
        self.ssthresh = self.ssthresh.max(prior.ssthresh);
        if let Some(Shape { w_max, cwnd_prior, epoch, fresh }) = self.before.take() {
            (self.w_max, self.cwnd_prior, self.epoch, self.fresh) = (w_max, cwnd_prior, epoch, fresh);
        }
    }

    fn on_idle(&mut self, _now: Instant, view: &View) {
        self.cwnd = self.cwnd.min(view.initial_window);
        self.epoch = None;
    }

    fn on_restart(&mut self, now: Instant, _view: &View) {
        self.pause_until(now);
    }
}

/// W_cubic(t) = C (t - K)^3 + W_max (section 4.2 equation 1) in bytes, at least zero.
fn window_at(epoch: &Epoch, t: Duration, mss: u32) -> u32 {
    let t = t.as_millis().min(LONGEST) as i64;
    let x = i128::from((t - epoch.k).clamp(-(LONGEST as i64), LONGEST as i64));
    let delta = x * x * x * 4 * i128::from(mss) / (10 * 1_000_000_000);
    (i128::from(epoch.origin) + delta).clamp(0, i128::from(u32::MAX)) as u32
}

/// K = cbrt((W_max - cwnd) / C) (section 4.2 equation 2), in milliseconds.
fn root_of(gap: u32, mss: u32) -> i64 {
    let cube = u128::from(gap) * 10 * 1_000_000_000 / (4 * u128::from(mss.max(1)));
    cube_root(cube) as i64
}

/// The largest integer whose cube is at most `n`, computed bit by bit.
fn cube_root(n: u128) -> u64 {
    let mut root = 0_u128;
    for bit in (0..24).rev() {
        let trial = root | 1 << bit;
        if trial * trial * trial <= n {
            root = trial;
        }
    }
    root as u64
}

fn scale(n: u32, num: u32, den: u32) -> u32 {
    (u64::from(n) * u64::from(num) / u64::from(den)) as u32
}

/// beta_cubic (RFC 9438 section 4.6) and beta_ecn (RFC 8511 section 3).
const BETA: (u32, u32) = (7, 10);
const BETA_ECN: (u32, u32) = (17, 20);
/// Time in milliseconds after which the function is constant; by then it exceeds every window.
const LONGEST: u64 = 4_000_000;

#[cfg(test)]
mod tests {
    use super::super::{ByteCounting, Usage};
    use super::*;

    #[test]
    fn cube_roots_are_exact_below() {
        for n in [0, 1, 7, 8, 26, 27, 1_000_000, 999_999, 4_000_000_000_000_u128] {
            let root = u128::from(cube_root(n));
            assert!(root.pow(3) <= n && n < (root + 1).pow(3), "{n}");
        }
    }

    #[test]
    fn k_is_the_time_to_regain_the_window() {
        // W_max 100 segments, cwnd 70: K = cbrt(30 / 0.4) = 4.217 s.
        assert_eq!(root_of(30_000, 1000), 4217);
        let epoch = Epoch { start: Instant::ZERO, k: 4217, origin: 100_000, w_est: 0, owed: 0 };
        assert_eq!(window_at(&epoch, Duration::from_millis(4217), 1000), 100_000);
        assert!(window_at(&epoch, Duration::ZERO, 1000).abs_diff(70_000) < 20);
        assert!(window_at(&epoch, Duration::from_millis(8434), 1000).abs_diff(130_000) < 20);
    }

    /// RFC 9438 section 5.8: a sender that did not use its window for 10 s continues where it was.
    #[test]
    fn time_without_use_of_the_window_does_not_count() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let full = View {
            in_flight: 100_000,
            srtt: Some(Duration::from_millis(100)),
            ..View::of(1000, Repair::Sack)
        };
        let idle = View { usage: Usage::Partial { peak: 1000 }, ..full };
        let window = |pause: u64| {
            let mut cubic = Cubic::new(100_000, u32::MAX);
            cubic.on_loss(at(0), &full);
            (1..10).for_each(|n| cubic.on_ack(at(100 * n), &full, 70_000));
            (1..=pause).for_each(|n| cubic.on_ack(at(900 + 100 * n), &idle, 1000));
            (10..20).for_each(|n| cubic.on_ack(at(100 * (n + pause)), &full, 70_000));
            cubic.cwnd()
        };
        assert_eq!(window(0), window(100));
    }

    /// RFC 9438 section 4.2: the target is at most 1.5 times the window, however far the cubic
    /// function is ahead.
    #[test]
    fn the_window_grows_by_half_in_a_round_trip_at_most() {
        let view = View {
            in_flight: 100_000,
            initial_window: 10_000,
            srtt: Some(Duration::from_secs(10)),
            byte_counting: ByteCounting::On { limit: 2 },
            ..View::of(1000, Repair::Sack)
        };
        let mut cubic = Cubic::new(100_000, 100_000);
        cubic.on_ack(Instant::ZERO, &view, 1000);
        let before = cubic.cwnd();
        // W_cubic(t + RTT) is 100 + 0.4 * 20^3 = 3300 segments.
        cubic.on_ack(Instant::ZERO + Duration::from_secs(10), &view, before);
        assert_eq!(cubic.cwnd(), before + before / 2);
    }
}
