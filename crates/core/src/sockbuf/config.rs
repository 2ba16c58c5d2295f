//! Options of buffer tuning: every choice that the paper leaves open or that this implementation
//! makes differently.

use thiserror::Error;

use super::pid::Gains;
use crate::time::Duration;

/// Options of a tuner. [`Config::default`] is the recommended configuration, [`Config::paper`] the
/// paper as the errata read it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Size of the pool for all send buffers in bytes, `Threshold_Mem`: 1 to 2^50. 2 MB, the
    /// paper's low memory (Table 1); its high memory is 100 MB.
    pub threshold: u64,
    /// Time between two decisions, above 0. The paper gives none; 0.5 s, because memory balancing
    /// runs twice a second (section 2.2, erratum B8).
    pub period: Duration,
    /// Size that a new connection requests until the first decision, in bytes: 128 kB (Table 1).
    pub initial: u64,
    /// The policy that divides the pool.
    pub policy: PolicyConfig,
}

/// The policy that divides the pool.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PolicyConfig {
    /// The paper's controller and resource manager (section 3).
    Pid(PidConfig),
    /// Automatic TCP buffer tuning as Figures 1 and 2 print it: twice the window, and a fair share
    /// per connection. An old connection that was small keeps its small share (erratum B10).
    Atbt,
    /// Automatic TCP buffer tuning of Semke, Mahdavi and Mathis (1998): between two and four
    /// windows, and one fair share for all, which converges to the max-min share (errata B10, B18).
    AtbtOriginal,
    /// Dynamic right-sizing: twice the bytes acknowledged within a round trip.
    RightSizing,
    /// Twice the bandwidth-delay product of each connection according to the link layers' reports,
    /// at most a max-min fair share: the inputs of the paper's controller without the controller.
    Product,
    /// This many bytes for each connection.
    Fixed(u64),
}

/// Options of the paper's controller, agent and manager.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PidConfig {
    /// Constants of the controller.
    pub gains: Gains,
    /// The controller's set-point.
    pub set_point: SetPoint,
    /// The set-point in bandwidth-delay products, above 0 and at most 1000: 2 (Figure 6 line 2).
    pub products: f64,
    /// Weight of the newest occupancy in its average, above 0 and at most 1: 0.3 (section 3.1,
    /// erratum B12).
    pub alpha: f64,
    /// Weight of the newest deviation in its average: 0.3.
    pub beta: f64,
    /// How the deviation of the occupancy is computed.
    pub deviation: Deviation,
    /// Weights by which the other connections divide the rest.
    pub excess: Excess,
    /// How the manager allocates memory.
    pub allocation: Allocation,
    /// Guaranteed part of an equal share, 0 to 1. The paper has 0, which leaves one segment. A
    /// single connection with a small bandwidth-delay product then gets little, and a striped
    /// connection whose links were down for some time finds no unused memory. No effect with
    /// [`Allocation::Printed`].
    pub guarantee: f64,
}

/// The bandwidth-delay product of a striped connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SetPoint {
    /// The sum over the micro-flows of bandwidth times RTT (erratum B9).
    PerFlow,
    /// Total bandwidth times the longest RTT. This is the need of one buffer whose bytes leave in
    /// order: bytes of fast flows wait for those of the slowest (RFC 6182, section 5.3).
    Slowest,
}

/// Computation of the deviation that is averaged besides the occupancy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Deviation {
    /// The absolute distance from the average, as in Jacobson's RTT estimator (erratum B4).
    Absolute,
    /// The signed distance, as printed (Figure 4 line 3): its average tends to 0.
    Signed,
}

/// Weights by which the rest is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Excess {
    /// Bandwidth (Figure 4 line 10).
    Bandwidth,
    /// Bandwidth times RTT, as section 2.2 argues (erratum B11): of two connections with equal
    /// bandwidth the one with the longer path needs more.
    Product,
}

/// The allocation of Figure 5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Allocation {
    /// As the text describes it (errata B1, B2): the striped connection gets the controller's
    /// output, at most the unused memory, and the others share the rest of the pool.
    Corrected,
    /// As printed, lines 4 to 10. If the output is less than the unused memory, even if negative,
    /// the striped connection gets all unused memory; otherwise it gets the whole output, even if
    /// it does not exist. Each other connection gets its proportion of the pool minus its old size;
    /// the proportions include all connections. The controller has no range, and its error sum
    /// grows without bound. The pool cuts allocations that do not fit, and counts them
    /// (`Counters::cut`).
    Printed,
}

/// Why a configuration is invalid.
#[derive(Clone, Copy, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The threshold is 0, or too large for exact arithmetic on reals.
    #[error("the threshold must be from 1 byte to 2^50 bytes, found {0}")]
    Threshold(u64),
    /// The period is zero.
    #[error("the period between two decisions must be longer than 0")]
    Period,
    /// A gain is negative, above 1000 or not a number.
    #[error("the gain {name} must be 0 to 1000, not {value}")]
    Gain {
        /// `kp`, `ki` or `kd`.
        name: &'static str,
        /// The rejected value.
        value: f64,
    },
    /// The set-point is not above 0, or above 1000 products.
    #[error("the set-point must be more than 0 and at most 1000 bandwidth-delay products, not {0}")]
    Products(f64),
    /// The guarantee is outside 0 to 1.
    #[error("the guarantee must be 0 to 1 of an equal share, not {0}")]
    Guarantee(f64),
    /// A weight is outside its range.
    #[error("the weight {name} must be more than 0 and at most 1, not {value}")]
    Weight {
        /// `alpha` or `beta`.
        name: &'static str,
        /// The rejected value.
        value: f64,
    },
}

impl Default for Config {
    /// The recommended configuration: the controller with [`PidConfig::default`].
    fn default() -> Self {
        Self { policy: PolicyConfig::Pid(PidConfig::default()), ..Self::paper() }
    }
}

impl Default for PidConfig {
    /// The recommended configuration: [`Gains::DAMPED`], the rest in proportion to bandwidth-delay
    /// products, and a guarantee of 0.6. With a guarantee of 0.5 a connection carries slightly less
    /// than half of its share, because a smaller buffer recovers from losses more slowly.
    fn default() -> Self {
        Self { gains: Gains::DAMPED, excess: Excess::Product, guarantee: 0.6, ..Self::paper() }
    }
}

impl Config {
    /// Section 3 as the errata read it, with low memory.
    pub const fn paper() -> Self {
        Self {
            threshold: 2_000_000,
            period: Duration::from_millis(500),
            initial: 128_000,
            policy: PolicyConfig::Pid(PidConfig::paper()),
        }
    }

    /// Checks all ranges.
    ///
    /// # Errors
    /// The first value outside its range.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if !(1..=MOST_THRESHOLD).contains(&self.threshold) {
            return Err(ConfigError::Threshold(self.threshold));
        }
        if self.period.is_zero() {
            return Err(ConfigError::Period);
        }
        match self.policy {
            PolicyConfig::Pid(pid) => pid.check(),
            PolicyConfig::Atbt
            | PolicyConfig::AtbtOriginal
            | PolicyConfig::RightSizing
            | PolicyConfig::Product
            | PolicyConfig::Fixed(_) => Ok(()),
        }
    }
}

impl PidConfig {
    /// See [`Config::paper`].
    pub const fn paper() -> Self {
        Self {
            gains: Gains::PAPER,
            set_point: SetPoint::PerFlow,
            products: 2.0,
            alpha: 0.3,
            beta: 0.3,
            deviation: Deviation::Absolute,
            excess: Excess::Bandwidth,
            allocation: Allocation::Corrected,
            guarantee: 0.0,
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let Gains { kp, ki, kd } = self.gains;
        for (name, value) in [("kp", kp), ("ki", ki), ("kd", kd)] {
            if !(0.0..=MOST_GAIN).contains(&value) {
                return Err(ConfigError::Gain { name, value });
            }
        }
        if !(self.products > 0.0 && self.products <= MOST_PRODUCTS) {
            return Err(ConfigError::Products(self.products));
        }
        if !(0.0..=1.0).contains(&self.guarantee) {
            return Err(ConfigError::Guarantee(self.guarantee));
        }
        for (name, value) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !(value > 0.0 && value <= 1.0) {
                return Err(ConfigError::Weight { name, value });
            }
        }
        Ok(())
    }
}

/// Largest pool in bytes whose sizes a real number represents exactly, with room for sums.
const MOST_THRESHOLD: u64 = 1 << 50;
/// Larger gains make every decision hit an end of its range.
const MOST_GAIN: f64 = 1000.0;
const MOST_PRODUCTS: f64 = 1000.0;
