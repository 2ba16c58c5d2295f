//! The `[buffers.NAME]` section: a pool for the send buffers of a node ([`anabranch_sim::buffers`],
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
use anabranch_sim::buffers::{BuffersConfig, Reports, Sampling};
use anabranch_sim::packet::LinkId;

/// Policy that divides a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum BufferPolicy {
    /// A PID controller (see `pid`) sets the buffer of the striped connection; the other
    /// connections share the rest.
    Pid,
    /// ATBT as the socket buffer paper describes it: twice the congestion window, limited by a fair
    /// share.
    Atbt,
    /// ATBT as its authors describe it: between two and four congestion windows, and one fair share
    /// for all connections.
    AtbtOriginal,
    /// Dynamic right-sizing: twice the amount acknowledged in one round trip.
    Drs,
    /// Twice the bandwidth-delay product, from the rates that link layers report.
    Product,
    /// Every buffer has the size `initial`.
    Fixed,
}

/// Rate reports of link layers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ReportsName {
    /// The true rate at every moment; 0 while a link is down.
    Exact,
    /// Samples of the rate with delay, noise and loss, as configured in `sampling`.
    Sampled,
    /// No reports.
    Off,
}

/// Base values of the constants in `[buffers.NAME.pid]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PidBase {
    /// Section 3 of the socket buffer paper, corrected by the errata.
    Paper,
    /// Anabranch's values: well damped, shares by bandwidth-delay product, and a guarantee of 0.6.
    #[default]
    Ours,
}

/// Options of a pool, resolved.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BuffersOptions {
    /// Policy that divides the pool.
    pub policy: BufferPolicy,
    /// Bytes of all send buffers together.
    pub memory: u64,
    /// Time between two decisions.
    pub period: Duration,
    /// Initial size of a connection's buffer in bytes.
    pub initial: u64,
    /// Rate reports of link layers.
    pub reports: ReportsName,
    /// Controller, for the policy "pid".
    pub pid: PidConfig,
    /// Sampling by the link layers, for sampled reports.
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
    /// The pool of a node. Each interface is given as the number of the path that begins at it, and
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
    /// A pool for the send buffers of a node's connections. Together they never hold more than
    /// `memory`.
    pub struct BuffersProfile of BuffersOptions;
    /// Policy that divides the pool among connections.
    policy: BufferPolicy = policy;
    /// Size of all send buffers together, 1 B to 2^50 B. A new connection is refused if the pool
    /// has no room for its first segment.
    memory: Size = memory;
    /// Time between two decisions of the policy, more than 0.
    period: Span = period;
    /// Size of a new connection's buffer until the first decision. With the policy "fixed" it never
    /// changes.
    initial: Size = initial;
    /// Rate reports of link layers. Used only by the policies "pid" and "product".
    reports: ReportsName = reports;
    /// Constants of the controller. Used only by the policy "pid".
    pid: PidSection = pid;
    /// Errors of sampled rates. Only with `reports = "sampled"`.
    sampling: SamplingSection = sampling;
}

options! {
    /// Constants of the controller of the policy "pid". `base` provides the keys that are not
    /// given.
    pub struct PidSection of PidConfig,
    /// Base values of the constants.
    base: PidBase;
    /// Proportional gain, 0 to 1000.
    kp: f64 = gains.kp;
    /// Integral gain, on the sum of all errors, 0 to 1000.
    ki: f64 = gains.ki;
    /// Differential gain, on the difference between the last two errors, 0 to 1000.
    kd: f64 = gains.kd;
    /// Occupancy that the controller steers to.
    set_point: SetPoint = set_point;
    /// Set-point in bandwidth-delay products, more than 0 and at most 1000.
    products: f64 = products;
    /// Weight of the newest occupancy in its moving average, more than 0 and at most 1.
    alpha: f64 = alpha;
    /// Weight of the newest deviation in its moving average, more than 0 and at most 1.
    beta: f64 = beta;
    /// Definition of the deviation of an occupancy from its average.
    deviation: Deviation = deviation;
    /// Quantity in proportion to which the other connections share the rest of the pool.
    excess: Excess = excess;
    /// Algorithm by which the manager allocates the pool.
    allocation: Allocation = allocation;
    /// Fraction of an equal share of the pool that each connection is guaranteed, 0 to 1.
    guarantee: f64 = guarantee;
}

options! {
    /// Errors of the rates that link layers sample while the node has connections.
    pub struct SamplingSection of Sampling;
    /// Time between two samples, more than 0.
    period: Span = period;
    /// Delay from taking a sample to its use.
    delay: Span = delay;
    /// Relative error of a sample, evenly distributed up to this fraction, 0 to 1.
    noise: f64 = noise;
    /// Probability that a sample is lost; the previous one then stays in use.
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

/// The path of keys to a fault in a profile, and the reason.
pub(super) type PoolFault = (Vec<&'static str>, String);

impl BuffersProfile {
    /// Checks the profile and fills in every default.
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
        // The controller is checked even if the policy does not use it, because a sweep may select
        // it.
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

/// The keys of the option at fault.
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
