//! What a scenario file says of a pool for the send buffers of a node ([`crate::buffers`],
//! [`anabranch_core::sockbuf`]).

use anabranch_core::sockbuf::{
    Allocation, Config, ConfigError, Deviation, Excess, PidConfig, PolicyConfig, SetPoint, Tuner,
};
use anabranch_core::time::{Duration, Instant};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::options::{Means, options};
use super::units::{Probability, Size, Span};
use crate::buffers::{BuffersConfig, Reports, Sampling};
use crate::packet::LinkId;

/// Who divides a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum BufferPolicy {
    /// A controller for the striped connection, set by `pid`; the others share the rest.
    Pid,
    /// ATBT as the socket buffer paper prints it: twice the window, and a fair share.
    Atbt,
    /// ATBT as its authors have it: between two and four windows, and one fair share for all.
    AtbtOriginal,
    /// Dynamic right-sizing: twice what was acknowledged within a round trip.
    Drs,
    /// Twice the bandwidth-delay product by what link layers report.
    Product,
    /// Always `initial`.
    Fixed,
}

/// What link layers report of their rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ReportsName {
    /// Their rate at each moment; 0 while they are down.
    Exact,
    /// Samples, as `sampling` says: late, inexact and incomplete.
    Sampled,
    /// Nothing.
    Off,
}

/// Where the constants of `[buffers.NAME.pid]` start from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PidBase {
    /// Section 3 of the socket buffer paper as the errata read it.
    Paper,
    /// Ours: well damped, shares by bandwidth-delay products, and a guarantee of 0.6.
    #[default]
    Ours,
}

/// A pool and who divides it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BuffersOptions {
    /// Who divides.
    pub policy: BufferPolicy,
    /// Octets of all send buffers together.
    pub memory: u64,
    /// Time between two decisions.
    pub period: Duration,
    /// Octets of a new connection's buffer.
    pub initial: u64,
    /// What link layers report.
    pub reports: ReportsName,
    /// How the controller is set, if it divides.
    pub pid: PidConfig,
    /// How link layers sample, if they do.
    pub sampling: Sampling,
}

impl Default for BuffersOptions {
    fn default() -> Self {
        let Config { threshold: memory, period, initial, .. } = Config::default();
        let tenth = Duration::from_millis(100);
        Self {
            policy: BufferPolicy::Pid,
            memory,
            period,
            initial,
            reports: ReportsName::Exact,
            pid: PidConfig::default(),
            sampling: Sampling { period: tenth, delay: tenth, noise: 0.1, loss: 0.05 },
        }
    }
}

impl BuffersOptions {
    /// The pool of a node with these interfaces: the number of the path that begins at each, and
    /// its link.
    pub fn config(&self, interfaces: Vec<(u8, LinkId)>) -> BuffersConfig {
        let reports = match self.reports {
            ReportsName::Exact => Reports::Rate,
            ReportsName::Sampled => Reports::Sampled(self.sampling),
            ReportsName::Off => Reports::Nothing,
        };
        BuffersConfig { tuner: self.tuner(), interfaces, reports }
    }

    fn tuner(&self) -> Config {
        let policy = match self.policy {
            BufferPolicy::Pid => PolicyConfig::Pid(self.pid),
            BufferPolicy::Atbt => PolicyConfig::Atbt,
            BufferPolicy::AtbtOriginal => PolicyConfig::AtbtOriginal,
            BufferPolicy::Drs => PolicyConfig::RightSizing,
            BufferPolicy::Product => PolicyConfig::Product,
            BufferPolicy::Fixed => PolicyConfig::Fixed(self.initial),
        };
        Config { threshold: self.memory, period: self.period, initial: self.initial, policy }
    }
}

options! {
    /// A pool for the send buffers of a node's connections, which never hold more together than
    /// `memory`.
    pub struct BuffersProfile of BuffersOptions;
    /// Who divides the pool.
    policy: BufferPolicy = policy;
    /// All send buffers together, 1 B to 2^50 B. A connection for whose first segment there is no
    /// room is refused.
    memory: Size = memory;
    /// Time between two decisions, more than 0.
    period: Span = period;
    /// Size of a new connection's buffer until the first decision; for good with the policy
    /// "fixed".
    initial: Size = initial;
    /// What link layers report of their rates. Only the policies "pid" and "product" read it.
    reports: ReportsName = reports;
    /// How the controller is set. Only the policy "pid" reads it.
    pid: PidSection = pid;
    /// How link layers sample their rates. Only with `reports = "sampled"`.
    sampling: SamplingSection = sampling;
}

options! {
    /// How the controller of the policy "pid" is set. A key that is not given is as the base has
    /// it.
    pub struct PidSection of PidConfig,
    /// Where the constants start from.
    base: PidBase;
    /// Gain on the error, 0 to 1000.
    kp: f64 = gains.kp;
    /// Gain on the sum of all errors, 0 to 1000.
    ki: f64 = gains.ki;
    /// Gain on the difference between this error and the last, 0 to 1000.
    kd: f64 = gains.kd;
    /// What the controller steers to.
    set_point: SetPoint = set_point;
    /// The set-point in bandwidth-delay products, more than 0 and at most 1000.
    products: f64 = products;
    /// Weight of the newest occupancy in its average, more than 0 and at most 1.
    alpha: f64 = alpha;
    /// Weight of the newest deviation in its average, more than 0 and at most 1.
    beta: f64 = beta;
    /// How occupancies deviate.
    deviation: Deviation = deviation;
    /// In proportion to what the single connections share the rest.
    excess: Excess = excess;
    /// How the manager allocates.
    allocation: Allocation = allocation;
    /// The part of an equal share of the pool that each connection can count on, 0 to 1.
    guarantee: f64 = guarantee;
}

options! {
    /// How link layers sample their rates while the node has connections.
    pub struct SamplingSection of Sampling;
    /// Time between two samples, more than 0.
    period: Span = period;
    /// Time from a sample to its use.
    delay: Span = delay;
    /// A sample is wrong by up to this share of it, evenly distributed, 0 to 1.
    noise: f64 = noise;
    /// Probability that a sample is lost; the one before stays in use.
    loss: Probability = loss;
}

impl Means<PidConfig> for PidSection {
    fn meant(&self) -> PidConfig {
        let mut config = match self.base {
            PidBase::Paper => PidConfig::paper(),
            PidBase::Ours => PidConfig::default(),
        };
        self.lay_over(&mut config);
        config
    }

    fn of(meant: &PidConfig) -> Self {
        let mut section = Self::default();
        section.complete(meant);
        section
    }
}

impl Means<Sampling> for SamplingSection {
    fn meant(&self) -> Sampling {
        let mut sampling = BuffersOptions::default().sampling;
        self.lay_over(&mut sampling);
        sampling
    }

    fn of(meant: &Sampling) -> Self {
        let mut section = Self::default();
        section.complete(meant);
        section
    }
}

/// The keys that lead to what is wrong in a profile, and why.
pub(super) type PoolFault = (Vec<&'static str>, String);

impl BuffersProfile {
    /// What the profile means, with every value written out.
    pub(super) fn resolve(&mut self) -> Result<BuffersOptions, PoolFault> {
        let mut options = BuffersOptions::default();
        self.lay_over(&mut options);
        let Sampling { period, noise, .. } = options.sampling;
        if period.is_zero() {
            return Err((vec!["sampling", "period"], "expected more than no time".to_owned()));
        }
        if !(0.0..=1.0).contains(&noise) {
            return Err((vec!["sampling", "noise"], format!("expected 0 to 1, found {noise}")));
        }
        // A controller that does not divide is checked too: a sweep may choose it.
        let with_pid = Config { policy: PolicyConfig::Pid(options.pid), ..options.tuner() };
        Tuner::new(Instant::ZERO, with_pid).map_err(|error| (keys(&error), error.to_string()))?;
        let base = self.pid.as_ref().map(|pid| pid.base).unwrap_or_default();
        self.complete(&options);
        if let Some(pid) = &mut self.pid {
            pid.base = base;
        }
        Ok(options)
    }
}

/// Where what is wrong with a pool stands.
fn keys(error: &ConfigError) -> Vec<&'static str> {
    match error {
        ConfigError::Threshold(_) => vec!["memory"],
        ConfigError::Period => vec!["period"],
        ConfigError::Gain { name, .. } | ConfigError::Weight { name, .. } => vec!["pid", name],
        ConfigError::Products(_) => vec!["pid", "products"],
        ConfigError::Guarantee(_) => vec!["pid", "guarantee"],
        _ => Vec::new(),
    }
}
