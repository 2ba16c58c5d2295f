//! Saturation throughput of the IEEE 802.11 DCF: Bianchi, "Performance Analysis of the IEEE
//! 802.11 Distributed Coordination Function", IEEE Journal on Selected Areas in Communications
//! 18(3), 2000.
//!
//! n stations hear each other and always have a frame to send. A station sends in a slot with
//! probability tau, and its frame collides with probability p, independently of the past. [`solve`]
//! computes both. [`throughput`] computes the resulting throughput with the times of
//! [`Exchange::basic`] and [`Exchange::rts_cts`].
//!
//! Bianchi's stations retry forever. With a retry limit the chain is that of Wu, Peng, Long, Cheng
//! and Ma, "Performance of Reliable Transport Protocol over IEEE 802.11 Wireless LAN: Analysis and
//! Enhancement", INFOCOM 2002, the only refinement included here.
//!
//! Not modelled: hidden stations, channel losses, EIFS, capture, timeouts longer than DIFS, and the
//! freezing of a backoff while others send, which the chain counts as one slot per transmission.

use thiserror::Error;

/// Why the model has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A parameter is outside its range.
    #[error("{what} must be {range}")]
    Range {
        /// Name of the parameter.
        what: &'static str,
        /// The allowed range.
        range: &'static str,
    },
}

/// Backoff parameters. [`Backoff::default`] is DSSS with the short retry limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// W: initial number of slots to draw from, CWmin + 1; 1 to 65536.
    pub window: u32,
    /// m: number of doublings of the window; CWmax + 1 = 2^m W; 0 to 16.
    pub stages: u32,
    /// Number of attempts before a frame is dropped; at least 1. `None`: unlimited, as in Bianchi's
    /// paper.
    pub attempts: Option<u32>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { window: 32, stages: 5, attempts: Some(7) }
    }
}

impl Backoff {
    /// Bianchi's chain with the windows of DSSS.
    pub const BIANCHI: Self = Self { window: 32, stages: 5, attempts: None };

    fn check(&self) -> Result<(), ModelError> {
        let range = |what, range| Err(ModelError::Range { what, range });
        if !(1..=65_536).contains(&self.window) {
            return range("window", "from 1 to 65536");
        }
        if self.stages > 16 {
            return range("stages", "from 0 to 16");
        }
        if self.attempts == Some(0) {
            return range("attempts", "at least 1");
        }
        Ok(())
    }

    /// W_i: number of slots to draw from after i failures.
    fn window_at(&self, i: u32) -> f64 {
        f64::from(self.window) * f64::from(1_u32 << i.min(self.stages))
    }

    /// tau for a given p, 0 to 1: the number of transmissions divided by the number of slots,
    /// `sum p^i / sum p^i (W_i + 1) / 2`, where all i are below `attempts`. Without a limit this is
    /// equation (7), `2 / (1 + W + p W sum (2p)^k)` with k below m, in a form without the
    /// singularity at p = 1/2.
    ///
    /// # Errors
    /// A parameter or p is outside its range.
    pub fn tau(&self, p: f64) -> Result<f64, ModelError> {
        self.check()?;
        if !(0.0..=1.0).contains(&p) {
            return Err(ModelError::Range { what: "p", range: "from 0 to 1" });
        }
        Ok(self.tau_at(p))
    }

    fn tau_at(&self, p: f64) -> f64 {
        // After stage m all windows are equal, so the remaining sum is a geometric series.
        let last = self.attempts.map_or(self.stages, |attempts| self.stages.min(attempts - 1));
        let (mut reached, mut sent, mut slots) = (1.0, 0.0, 0.0);
        for i in 0..last {
            sent += reached;
            slots += reached * self.slots_at(i);
            reached *= p;
        }
        let rest = match self.attempts {
            None => {
                // Both sums are multiplied by (1 - p), so that they stay finite at p = 1.
                let sent = sent * (1.0 - p) + reached;
                return sent / (slots * (1.0 - p) + reached * self.slots_at(last));
            }
            Some(attempts) if p < 1.0 => reached * (1.0 - p.powf(f64::from(attempts - last))) / (1.0 - p),
            Some(attempts) => f64::from(attempts - last),
        };
        (sent + rest) / (slots + rest * self.slots_at(last))
    }

    /// Mean number of slots of the i-th backoff, including the slot of the transmission.
    fn slots_at(&self, i: u32) -> f64 {
        (self.window_at(i) + 1.0) / 2.0
    }
}

/// Result for n saturated stations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Saturation {
    /// tau: probability that a station sends in a slot.
    pub tau: f64,
    /// p: probability that a transmission collides.
    pub collision: f64,
    /// n: number of stations.
    pub stations: u32,
}

impl Saturation {
    /// P_tr, equation (10): probability that at least one station sends in a slot.
    pub fn busy(&self) -> f64 {
        1.0 - (1.0 - self.tau).powf(f64::from(self.stations))
    }

    /// P_s, equation (11): probability that a busy slot has exactly one sender.
    pub fn success(&self) -> f64 {
        let n = f64::from(self.stations);
        n * self.tau * (1.0 - self.tau).powf(n - 1.0) / self.busy()
    }
}

/// Solves tau(p) and `p = 1 - (1 - tau)^(n - 1)` by bisection. tau decreases with p and p increases
/// with tau, so there is exactly one solution (Bianchi, section IV-A).
///
/// # Errors
/// A parameter is outside its range, or the number of stations is 0 or above a million.
pub fn solve(backoff: &Backoff, stations: u32) -> Result<Saturation, ModelError> {
    backoff.check()?;
    if !(1..=1_000_000).contains(&stations) {
        return Err(ModelError::Range { what: "stations", range: "from 1 to 1,000,000" });
    }
    let others = f64::from(stations - 1);
    let collision = |tau: f64| 1.0 - (1.0 - tau).powf(others);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let p = 0.5 * (low + high);
        if collision(backoff.tau_at(p)) > p { low = p } else { high = p }
    }
    let tau = backoff.tau_at(0.5 * (low + high));
    Ok(Saturation { tau, collision: collision(tau), stations })
}

/// Times of an exchange in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    /// Transmission time of a data frame with all headers.
    pub data: f64,
    /// Transmission time of an acknowledgement.
    pub ack: f64,
    /// Transmission time of an RTS.
    pub rts: f64,
    /// Transmission time of a CTS.
    pub cts: f64,
    /// SIFS.
    pub sifs: f64,
    /// DIFS.
    pub difs: f64,
    /// delta: propagation delay.
    pub delay: f64,
}

/// Time that an exchange occupies the channel, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exchange {
    /// T_s: time of a success.
    pub success: f64,
    /// T_c: time of a collision.
    pub collision: f64,
}

impl Exchange {
    /// Basic access, equation (14), for frames of one length.
    pub fn basic(times: &Times) -> Self {
        let Times { data, ack, sifs, difs, delay, .. } = *times;
        Self { success: data + sifs + delay + ack + difs + delay, collision: data + difs + delay }
    }

    /// RTS/CTS, equation (17).
    pub fn rts_cts(times: &Times) -> Self {
        let Times { data, ack, rts, cts, sifs, difs, delay } = *times;
        let success = rts + cts + data + ack + 3.0 * sifs + difs + 4.0 * delay;
        Self { success, collision: rts + difs + delay }
    }

    fn check(&self, slot: f64) -> Result<(), ModelError> {
        let sound = |seconds: f64| seconds > 0.0 && seconds < 1e6;
        match sound(slot) && sound(self.success) && sound(self.collision) {
            true => Ok(()),
            false => Err(ModelError::Range { what: "times", range: "more than nothing and finite" }),
        }
    }

    /// The K of the best window: `sqrt(T_c / (2 slot))`, below equation (27). The optimal tau is
    /// about 1 / (n K).
    ///
    /// # Errors
    /// A time is not positive and finite.
    pub fn k(&self, slot: f64) -> Result<f64, ModelError> {
        self.check(slot)?;
        Ok((self.collision / slot / 2.0).sqrt())
    }

    /// Upper bound of the throughput for many stations and any window, in units of `payload` per
    /// second: with tau = 1 / (n K), `payload / (T_s + slot K + T_c (K (e^(1/K) - 1) - 1))`,
    /// equation (28).
    ///
    /// # Errors
    /// A time is not positive and finite.
    pub fn bound(&self, slot: f64, payload: f64) -> Result<f64, ModelError> {
        let k = self.k(slot)?;
        let collisions = self.collision * (k * ((1.0 / k).exp() - 1.0) - 1.0);
        Ok(payload / (self.success + slot * k + collisions))
    }
}

/// S, equation (13): the mean throughput in units of `payload` per second.
///
/// # Errors
/// A parameter is outside its range, or a time is not positive and finite.
pub fn throughput(
    backoff: &Backoff,
    stations: u32,
    exchange: &Exchange,
    slot: f64,
    payload: f64,
) -> Result<f64, ModelError> {
    let state = solve(backoff, stations)?;
    exchange.check(slot)?;
    let (busy, success) = (state.busy(), state.success());
    let time =
        (1.0 - busy) * slot + busy * success * exchange.success + busy * (1.0 - success) * exchange.collision;
    Ok(busy * success * payload / time)
}

#[cfg(test)]
mod tests;
