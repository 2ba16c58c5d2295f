//! Section VI-A, equations (5) to (7): the queue of one node as M/M/1/K.

use super::error::{ModelError, within};
use super::reading::{Occupancy, QueueTime, Reading, Seen};
use crate::mptcp::prediction::power;

/// A queue with one server. K includes the packet in service.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Queue {
    /// lambda: packets per second that arrive; 0..=1e9.
    pub arrivals: f64,
    /// mu: packets per second that can be served; 1e-9..=1e12.
    pub service: f64,
    /// K: largest number of packets in the system; 1..=1,000,000, `None` for no limit.
    pub capacity: Option<u32>,
}

/// Steady state of a queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Occupied {
    /// rho = lambda / mu.
    pub utilisation: f64,
    /// N_q of equation (6): mean number of packets in the system, including the one in service.
    pub packets: f64,
    /// Mean number of packets seen by an accepted packet (M11).
    pub seen: f64,
    /// p_K: probability that a packet finds the queue full; 0 without a limit.
    pub refused: f64,
    /// T_q in seconds according to the reading (M9, M11).
    pub time: f64,
    /// Seconds from arrival to the end of the service for accepted packets:
    /// `N / (lambda (1 - p_K))`.
    pub sojourn: f64,
}

impl Queue {
    pub(super) fn check(&self) -> Result<(), ModelError> {
        within("arrivals", self.arrivals, 0.0, 1e9)?;
        within("service", self.service, 1e-9, 1e12)?;
        match self.capacity {
            Some(k) => within("capacity", f64::from(k), 1.0, 1e6),
            None if self.arrivals >= self.service => {
                Err(ModelError::Unstable { utilisation: self.arrivals / self.service })
            }
            None => Ok(()),
        }
    }

    /// p_n of equation (5): probability of `n` packets in the system; 0 beyond K.
    ///
    /// # Errors
    /// A rate or capacity is outside its range, or an unlimited queue is unstable.
    pub fn probability(&self, n: u32) -> Result<f64, ModelError> {
        self.check()?;
        let rho = self.arrivals / self.service;
        let Some(k) = self.capacity else {
            return Ok((1.0 - rho) * power(rho, n));
        };
        if n > k {
            return Ok(0.0);
        }
        // Counting from the more likely end keeps the powers from overflowing.
        let (ratio, from_end) = if rho <= 1.0 { (rho, n) } else { (1.0 / rho, k - n) };
        Ok(power(ratio, from_end) / Sums::of(ratio, k).all)
    }
}

/// Computes equations (5) to (7) for `queue`. The printed mean (M1) is only used with a limit:
/// without one its second term is infinite, as is the paper's own K.
///
/// # Errors
/// A rate or capacity is outside its range, or an unlimited queue is unstable.
pub fn occupied(queue: &Queue, reading: Reading) -> Result<Occupied, ModelError> {
    queue.check()?;
    let rho = queue.arrivals / queue.service;
    let (mut packets, mut seen, mut refused) = (rho / (1.0 - rho), rho / (1.0 - rho), 0.0);
    if let Some(k) = queue.capacity {
        let size = f64::from(k);
        // An accepted packet sees a queue of the same kind with one place less.
        packets = mean(rho, k);
        seen = mean(rho, k - 1);
        refused = queue.probability(k)?;
        if reading.occupancy == Occupancy::Printed && rho != 1.0 {
            packets = rho / (1.0 - rho) - (size + 1.0) / (1.0 - power(rho, k + 1));
        }
    }
    let found = match reading.seen {
        Seen::Accepted => seen,
        Seen::AnyTime => packets,
    };
    let time = match reading.queue_time {
        QueueTime::Wait => found / queue.service,
        QueueTime::Sojourn => (found + 1.0) / queue.service,
    };
    let sojourn = (seen + 1.0) / queue.service;
    Ok(Occupied { utilisation: rho, packets, seen, refused, time, sojourn })
}

/// Mean number of packets in a system of `k` places.
fn mean(rho: f64, k: u32) -> f64 {
    if rho <= 1.0 {
        let sums = Sums::of(rho, k);
        sums.weighted / sums.all
    } else {
        let sums = Sums::of(1.0 / rho, k);
        f64::from(k) - sums.weighted / sums.all
    }
}

/// Sums of powers of a ratio of at most 1. Direct addition avoids equation (6), whose terms are
/// differences of large numbers if rho is near 1.
struct Sums {
    /// `sum r^n`
    all: f64,
    /// `sum n r^n`
    weighted: f64,
}

impl Sums {
    fn of(ratio: f64, k: u32) -> Self {
        let mut sums = Self { all: 0.0, weighted: 0.0 };
        let mut power = 1.0;
        for n in 0..=k {
            sums.all += power;
            sums.weighted += f64::from(n) * power;
            power *= ratio;
            // A million further terms of this size would not change the sum.
            if power < 1e-30 {
                break;
            }
        }
        sums
    }
}
