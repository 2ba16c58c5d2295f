//! Emulation in real time: the nodes whose transports run in the kernel, and the reaction to lag.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units::Span;
use anabranch_core::time::Duration;

/// Implementation of a node's transport protocols.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HostKind {
    /// Simulated by the program.
    #[default]
    Simulated,
    /// The Linux kernel, behind a TUN device: for `anabranch emulate`.
    Tun,
}

impl HostKind {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Reaction when the emulation falls behind real time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OnLag {
    /// Print a warning and continue.
    #[default]
    Warn,
    /// End the emulation.
    Stop,
}

/// Options of emulation in real time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct EmulationSection {
    /// Largest tolerated lag of an event behind real time, more than 0.
    pub lag_limit: Span,
    /// Reaction to a larger lag.
    pub on_lag: OnLag,
}

impl Default for EmulationSection {
    /// 50 ms and a warning: a quarter of the shortest retransmission time-out of Linux, and far
    /// above the lag on an idle machine.
    fn default() -> Self {
        Self { lag_limit: Span(Duration::from_millis(50)), on_lag: OnLag::Warn }
    }
}

/// The TUN device of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunSpec {
    /// Name of the device.
    pub device: String,
    /// Network namespace of the device; `None` is that of the program.
    pub netns: Option<String>,
}
