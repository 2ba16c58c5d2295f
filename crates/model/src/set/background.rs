//! Equations (13) to (16): delay of a packet due to other transfers through the same gateway.

use super::error::{ModelError, not_negative, positive, within};
use super::reading::QueueLaw;

/// T_p = T_q + T_s, equation (13): time of a packet at a gateway in seconds, queued and served.
///
/// # Errors
/// A time is negative or not a number.
pub fn processing_time(queued: f64, service: f64) -> Result<f64, ModelError> {
    Ok(not_negative("the queueing time", queued)? + not_negative("the service time", service)?)
}

/// rho = lambda T_s, equation (14), where lambda is the sum of the arrival rates (packets per
/// second) of all flows through a gateway. The queue is stable below 1 and grows above it, that is
/// when T_s > T (S2; the text after the equation states the opposite).
///
/// # Errors
/// A rate or time is negative or not a number.
pub fn utilisation(rates: &[f64], service: f64) -> Result<f64, ModelError> {
    Ok(arrival_rate(rates)? * not_negative("the service time", service)?)
}

/// T_q = q / (lambda_1 + ... + lambda_N), equation (15): mean queueing time in seconds, from the
/// mean number of queued packets and the arrival rates (packets per second) of all flows.
///
/// # Errors
/// A quantity is negative or not a number, or the rates sum to zero.
pub fn queueing_time(queued: f64, rates: &[f64]) -> Result<f64, ModelError> {
    let total = positive("the sum of the arrival rates", arrival_rate(rates)?)?;
    Ok(not_negative("the number of queued packets", queued)? / total)
}

/// q = lambda T_q / n, the end of section 5.4: number of packets queued at each of `gateways` that
/// share the flows.
///
/// # Errors
/// [`ModelError::NoGateways`] for none; a quantity is negative or not a number.
pub fn queued_per_gateway(rates: &[f64], queued: f64, gateways: usize) -> Result<f64, ModelError> {
    if gateways == 0 {
        return Err(ModelError::NoGateways);
    }
    Ok(arrival_rate(rates)? * not_negative("the queueing time", queued)? / gateways as f64)
}

/// A packet that finds others at a gateway: the arguments of equation (16).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Queue {
    /// q: number of packets in the queue.
    pub packets: u32,
    /// epsilon: probability that a queued packet is served immediately, so that it is not ahead; 0
    /// to 1.
    pub readily: f64,
    /// Mean time per packet in seconds: the service time T_s; the printed law uses the queueing
    /// time T_q.
    pub time: f64,
}

impl Queue {
    /// P(T_q <= tau), equation (16), for `tau` in seconds. The printed law uses tau as the number
    /// of terms, sums at most q terms, and has a limit below 1 (S13).
    ///
    /// # Errors
    /// The probability is outside 0 to 1, the mean time is not greater than zero, or tau is
    /// negative (infinity is allowed).
    pub fn waits_at_most(&self, tau: f64, law: QueueLaw) -> Result<f64, ModelError> {
        within("the probability of ready service", self.readily, 0.0, 1.0)?;
        positive("the mean time per packet", self.time)?;
        within("the queueing time", tau, 0.0, f64::INFINITY)?;
        Ok(match law {
            QueueLaw::ErlangMixture => self.mixture(tau),
            QueueLaw::Printed => self.printed(tau),
        })
    }

    fn mixture(&self, tau: f64) -> f64 {
        let x = tau / self.time;
        // The Erlang distribution function of i stages is 1 minus the first i terms of a Poisson
        // distribution. The sum is extended as i grows.
        let (mut below, mut ln_factorial) = (0.0, 0.0);
        let mut sum = 0.0;
        for i in 0..=self.packets {
            sum += binomial(self.packets, i, 1.0 - self.readily) * (1.0 - below);
            below += poisson_term(x, i, ln_factorial);
            ln_factorial += f64::from(i + 1).ln();
        }
        sum.clamp(0.0, 1.0)
    }

    fn printed(&self, tau: f64) -> f64 {
        // `as` saturates: for an infinite tau, all terms are summed.
        let terms = (tau.floor() as u32).min(self.packets);
        (0..=terms)
            .map(|i| binomial(self.packets, i, self.readily) * (1.0 - (-f64::from(i) / self.time).exp()))
            .sum()
    }
}

/// The sum of the arrival rates; checks each of them.
fn arrival_rate(rates: &[f64]) -> Result<f64, ModelError> {
    rates.iter().try_fold(0.0, |sum, &rate| Ok(sum + not_negative("an arrival rate", rate)?))
}

/// `e^-x x^i / i!`, given `ln i!`; 0 for an infinite x.
fn poisson_term(x: f64, i: u32, ln_factorial: f64) -> f64 {
    if x == 0.0 {
        return if i == 0 { 1.0 } else { 0.0 };
    }
    if x.is_infinite() { 0.0 } else { (f64::from(i) * x.ln() - x - ln_factorial).exp() }
}

/// Probability of `i` successes in `n` trials, computed with logarithms so that a large n does not
/// overflow.
fn binomial(n: u32, i: u32, p: f64) -> f64 {
    if p <= 0.0 {
        return if i == 0 { 1.0 } else { 0.0 };
    }
    if p >= 1.0 {
        return if i == n { 1.0 } else { 0.0 };
    }
    let choose: f64 = (1..=i).map(|j| (f64::from(n - i + j) / f64::from(j)).ln()).sum();
    (choose + f64::from(i) * p.ln() + f64::from(n - i) * (1.0 - p).ln()).exp()
}
