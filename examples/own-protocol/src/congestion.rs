//! A congestion control that uses delays, after TCP Vegas (Brakmo and Peterson, IEEE JSAC 13(8),
//! 1995): it keeps between two and four of its own segments queued in the network.

use anabranch_core::tcp::CustomCongestion;
use anabranch_core::tcp::congestion::{Controller, Start, View};
use anabranch_core::time::Instant;

pub(crate) const VEGAS: CustomCongestion = CustomCongestion::new("vegas", |start| {
    Box::new(Vegas { cwnd: start.cwnd, ssthresh: start.ssthresh, start, look_at: Instant::ZERO })
});

#[derive(Debug)]
struct Vegas {
    cwnd: u32,
    ssthresh: u32,
    start: Start,
    /// Time of the next adjustment, once per round trip.
    look_at: Instant,
}

impl Controller for Vegas {
    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    fn on_ack(&mut self, now: Instant, view: &View, acked: u32) {
        let (Some(srtt), Some(least)) = (view.srtt, view.min_rtt) else { return };
        // Queued segments: the part of the window that exceeds what the path holds without a queue.
        let waiting = f64::from(self.cwnd) * (1.0 - least.as_secs_f64() / srtt.as_secs_f64());
        let segments = waiting / f64::from(view.mss);
        if self.cwnd < self.ssthresh && segments < 2.0 {
            self.cwnd += acked.min(view.mss);
        } else if now >= self.look_at {
            self.look_at = now + srtt;
            self.ssthresh = self.ssthresh.min(self.cwnd);
            if segments < 2.0 {
                self.cwnd += view.mss;
            } else if segments > 4.0 {
                self.cwnd -= view.mss.min(self.cwnd);
            }
        }
        self.cwnd = self.cwnd.clamp(2 * view.mss, view.limit.max(2 * view.mss));
    }

    fn on_loss(&mut self, _: Instant, view: &View) {
        self.ssthresh = (view.in_flight / 4 * 3).max(2 * view.mss);
        self.cwnd = self.ssthresh;
    }

    fn on_timeout(&mut self, _: Instant, view: &View) {
        self.ssthresh = (view.in_flight / 2).max(2 * view.mss);
        self.cwnd = self.start.cwnd.min(view.initial_window);
    }
}
