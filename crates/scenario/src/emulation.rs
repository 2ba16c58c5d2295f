//! Emulation in real time: the nodes whose transports run in the kernel, and the reaction to lag.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units::Span;
use anabranch_core::time::Duration;
use anabranch_sim::packet::NodeId;
use anabranch_wire::prefix::Prefix;

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
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct EmulationSection {
    /// Largest tolerated lag of an event behind real time, more than 0.
    pub lag_limit: Span,
    /// Reaction to a larger lag.
    pub on_lag: OnLag,
    /// Congestion control of the kernel's TCP at all TUN ends, by the kernel's name, as in
    /// "cubic"; the host's default if none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Commands that `anabranch emulate` runs in order, as in `"server: ping -c 3 {sensor}"`: the
    /// name of a TUN end, and a command of the shell that runs in the end's namespace. `{NAME}`
    /// stands for the address of the node of that name. A command that ends in ` &` runs beside
    /// the following ones, and is stopped after the last of the others. The emulation ends with
    /// the last command. Its exit code is that of the first command that fails.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub run: Vec<String>,
}

impl Default for EmulationSection {
    /// 50 ms and a warning: a quarter of the shortest retransmission time-out of Linux, and far
    /// above the lag on an idle machine.
    fn default() -> Self {
        Self {
            lag_limit: Span(Duration::from_millis(50)),
            on_lag: OnLag::Warn,
            congestion: None,
            run: Vec::new(),
        }
    }
}

/// The TUN devices of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunSpec {
    /// Name of the device.
    pub device: String,
    /// Name of a second device, for nodes that are on the radio only; `None` if the node has one
    /// device.
    pub radio_device: Option<String>,
    /// Network namespace of the devices; `None` is that of the program.
    pub netns: Option<String>,
    /// Addresses of hosts behind the node.
    pub prefixes: Vec<Prefix>,
}

/// A command of [`EmulationSection::run`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandSpec {
    /// The TUN end in whose namespace the command runs.
    pub node: NodeId,
    /// The command, for a shell.
    pub command: String,
    /// Whether the following commands start without waiting for this one.
    pub background: bool,
}
