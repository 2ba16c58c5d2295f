//! Bulk TCP over a path with random loss, compared with the window that theory predicts for the
//! loss rate.
//!
//! The path has no other limit: its rate is far above the window's, its queue never fills, and
//! neither buffer bounds the window. Losses are independent. Windows are means in segments.

use anabranch_core::tcp::{self, CongestionAlgorithm, DelayedAck};
use anabranch_core::time::Duration;

use super::bottleneck::Cell;

/// A path with random loss.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Lossy {
    /// Congestion control.
    pub controller: CongestionAlgorithm,
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Round-trip time without a queue.
    pub rtt: Duration,
}

/// Mean window in segments by Mathis, Semke, Mahdavi and Ott, "The Macroscopic Behavior of the TCP
/// Congestion Avoidance Algorithm", CCR 27(3), 1997: sqrt(3/2) / sqrt(p), with an acknowledgement
/// per segment and losses 1/p segments apart.
pub fn mathis(loss: f64) -> f64 {
    (1.5 / loss).sqrt()
}

/// Mean window in segments by RFC 9438, section 5.1, with C = 0.4 and beta = 0.7: 1.054 RTT^(3/4) /
/// p^(3/4), with losses 1/p segments apart.
pub fn cubic(loss: f64, rtt: Duration) -> f64 {
    let (c, beta) = (0.4_f64, 0.7_f64);
    (c * (3.0 + beta) / (4.0 * (1.0 - beta))).powf(0.25) * (rtt.as_secs_f64() / loss).powf(0.75)
}

impl Lossy {
    /// Measures the mean window of a flow over `losses` losses, after a warm-up of a twentieth of
    /// that.
    pub fn window(&self, seed: u64, losses: f64) -> f64 {
        let expected = match self.controller {
            CongestionAlgorithm::Cubic => cubic(self.loss, self.rtt),
            _ => mathis(self.loss),
        };
        let rtt = self.rtt.as_secs_f64();
        let span = losses / self.loss / expected * rtt;
        // The rate allows 40 windows of 1500-byte segments per round trip.
        let rate = 40.0 * expected * 12_000.0 / rtt;
        let cell = Cell {
            controller: self.controller,
            rate: rate as u64,
            delay: self.rtt / 2,
            queue: 1.0,
            flows: 1,
            loss: self.loss,
        };
        let tcp = tcp::Config { delayed_ack: DelayedAck::Off, ..tcp::Config::modern() };
        let outcome = cell.measure(tcp, seed, span / 20.0, span);
        let segment = f64::from(tcp.mss - TIMESTAMPS) * 8.0;
        outcome.goodput * rtt / segment
    }
}

/// Length of the timestamps option in each segment, in bytes.
const TIMESTAMPS: u16 = 12;

#[cfg(test)]
mod tests;
