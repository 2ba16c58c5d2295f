//! Scenarios in real time: which nodes the kernel stands for, and what is done about lag.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units::Span;
use anabranch_core::time::Duration;

/// What stands for a node's transports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HostKind {
    /// The simulator.
    #[default]
    Simulated,
    /// The kernel, behind a TUN device: for `anabranch emulate`.
    Tun,
}

impl HostKind {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What is done when the emulation falls behind real time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OnLag {
    /// It says so.
    #[default]
    Warn,
    /// It ends.
    Stop,
}

/// What holds in real time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct EmulationSection {
    /// How far events may come behind their time.
    pub lag_limit: Span,
    /// What is done when they come later than that.
    pub on_lag: OnLag,
}

impl Default for EmulationSection {
    /// 50 ms, and a warning: a quarter of the shortest retransmission time-out of Linux, and far
    /// above what an idle machine shows.
    fn default() -> Self {
        Self { lag_limit: Span(Duration::from_millis(50)), on_lag: OnLag::Warn }
    }
}

/// The TUN device that stands for a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunSpec {
    /// Its name.
    pub device: String,
    /// Its network namespace; that of the program if there is none.
    pub netns: Option<String>,
}
