//! Every choice that the paper leaves open, or that we make otherwise, as a typed option.

use thiserror::Error;

use super::pid::Gains;
use crate::time::Duration;

/// How a pool is divided. [`Config::default`] is ours, [`Config::paper`] the paper as the errata
/// read it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Octets of all send buffers together, `Threshold_Mem`: 1 to 2^50. 2 MB, the paper's low
    /// memory (Table 1); its high memory is 100 MB.
    pub threshold: u64,
    /// Time between two decisions, above 0. The paper does not say; 0.5 s, as memory balancing runs
    /// twice a second (section 2.2, erratum B8).
    pub period: Duration,
    /// What a new connection asks for until the first decision, octets: 128 kB (Table 1).
    pub initial: u64,
    /// Who divides.
    pub policy: PolicyConfig,
}

/// Who divides the pool.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PolicyConfig {
    /// The paper's controller and resource manager (section 3).
    Pid(PidConfig),
    /// Automatic TCP buffer tuning as Figures 1 and 2 print it: twice the window, and a fair share
    /// for each connection. An old connection that was small keeps its small share (erratum B10).
    Atbt,
    /// The same as Semke, Mahdavi and Mathis have it (1998): between two and four windows, and one
    /// fair share for all, which settles at the max-min share (errata B10, B18).
    AtbtOriginal,
    /// Dynamic right-sizing: twice what was acknowledged within a round trip.
    RightSizing,
    /// Twice the bandwidth-delay product of each connection by what link layers report, at most a
    /// max-min fair share: what the paper's controller knows, without the controller.
    Product,
    /// This many octets for each connection.
    Fixed(u64),
}

/// The paper's controller, agent and manager.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PidConfig {
    /// The controller's constants.
    pub gains: Gains,
    /// What the controller steers to.
    pub set_point: SetPoint,
    /// The set-point in bandwidth-delay products, above 0 and at most 1000: 2 (Figure 6 line 2).
    pub products: f64,
    /// Weight of the newest occupancy in its average, above 0 and at most 1: 0.3 (section 3.1,
    /// erratum B12).
    pub alpha: f64,
    /// The same for the deviation: 0.3.
    pub beta: f64,
    /// How occupancies deviate.
    pub deviation: Deviation,
    /// In proportion to what the other connections get the rest.
    pub excess: Excess,
    /// How the manager allocates.
    pub allocation: Allocation,
    /// The part of an n-th of the pool, with n connections, that each of them can count on: 0 to 1.
    /// The paper has 0, that is one segment: a single connection with a small bandwidth-delay
    /// product gets little, and a striped one whose links were gone for a while finds nothing
    /// unused any more. No effect with [`Allocation::Printed`].
    pub guarantee: f64,
}

/// The bandwidth-delay product of a striped connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SetPoint {
    /// Each micro-flow's bandwidth times its own RTT, added up (erratum B9).
    PerFlow,
    /// All bandwidth times the longest RTT: what one buffer must hold whose octets leave in order,
    /// since those of the fast flows wait for those of the slowest (RFC 6182, section 5.3).
    Slowest,
}

/// What is averaged beside the occupancy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Deviation {
    /// The distance from the average, as in Jacobson's RTT (erratum B4).
    Absolute,
    /// As printed (Figure 4 line 3): with its sign, so that its average tends to 0.
    Signed,
}

/// In proportion to what the rest is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Excess {
    /// Bandwidth (Figure 4 line 10).
    Bandwidth,
    /// Bandwidth times RTT, for which section 2.2 argues (erratum B11): of two connections with the
    /// same bandwidth the one with the longer way needs more.
    Product,
}

/// Figure 5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Allocation {
    /// As the text around it says (errata B1, B2): the striped connection gets the controller's
    /// output, at most what is unused, and the others share the rest of the pool.
    Corrected,
    /// As printed, lines 4 to 10. If the output is less than what is unused, be it negative, the
    /// striped connection gets all that is unused; else all of the output, though it is not there.
    /// Of each other connection its old size is taken from the pool, and it gets its proportion of
    /// that; the proportions are of all connections. The controller knows no range, and adds up
    /// errors without end. What does not fit is cut by the pool, and counted
    /// ([`Counters::cut`](super::Counters::cut)).
    Printed,
}

/// Why a configuration makes no sense.
#[derive(Clone, Copy, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A pool of nothing, or of more than reals count octet by octet.
    #[error("the threshold must be from 1 byte to 2^50 bytes, found {0}")]
    Threshold(u64),
    /// Decisions without a pause.
    #[error("the period between two decisions must be longer than 0")]
    Period,
    /// A gain that is negative, above 1000 or no number.
    #[error("the gain {name} must be 0 to 1000, not {value}")]
    Gain {
        /// `kp`, `ki` or `kd`.
        name: &'static str,
        /// What it was.
        value: f64,
    },
    /// A set-point of nothing, or of more than 1000 products.
    #[error("the set-point must be more than 0 and at most 1000 bandwidth-delay products, not {0}")]
    Products(f64),
    /// More than an n-th of the pool for each of n connections, or less than nothing.
    #[error("the guarantee must be 0 to 1 of an equal share, not {0}")]
    Guarantee(f64),
    /// A weight that is no weight.
    #[error("the weight {name} must be more than 0 and at most 1, not {value}")]
    Weight {
        /// `alpha` or `beta`.
        name: &'static str,
        /// What it was.
        value: f64,
    },
}

impl Default for Config {
    /// Ours: the controller with [`PidConfig::default`].
    fn default() -> Self {
        Self { policy: PolicyConfig::Pid(PidConfig::default()), ..Self::paper() }
    }
}

impl Default for PidConfig {
    /// Ours: [`Gains::DAMPED`], the rest in proportion to bandwidth-delay products, and a guarantee
    /// of 0.6. With a guarantee of 0.5 a connection carries slightly less than half of its share,
    /// as a smaller buffer recovers more slowly from losses.
    fn default() -> Self {
        Self { gains: Gains::DAMPED, excess: Excess::Product, guarantee: 0.6, ..Self::paper() }
    }
}

impl Config {
    /// Section 3 as the errata read it, at low memory.
    pub const fn paper() -> Self {
        Self {
            threshold: 2_000_000,
            period: Duration::from_millis(500),
            initial: 128_000,
            policy: PolicyConfig::Pid(PidConfig::paper()),
        }
    }

    /// # Errors
    /// What lies outside its range.
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

/// Octets below which a real number can tell any two sizes apart, with room for a sum of them.
const MOST_THRESHOLD: u64 = 1 << 50;
/// Beyond, a decision knows nothing but the ends of its range.
const MOST_GAIN: f64 = 1000.0;
const MOST_PRODUCTS: f64 = 1000.0;
