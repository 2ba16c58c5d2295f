//! Emulation in real time: the nodes whose transports run in the kernel, and the reaction to lag.

use std::net::IpAddr;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units::Span;
use super::{NodeSpec, Scenario};
use anabranch_core::time::Duration;
use anabranch_sim::address::address_of;
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
    /// stands for the address of the node of that name, `{NAME.INTERFACE}` for that of one of its
    /// interfaces. A command that ends in ` &` runs beside
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
    /// The devices: one for each of the node's interfaces, in order, or those of a node without
    /// `interfaces`.
    pub devices: Vec<DeviceSpec>,
    /// Network namespace of the devices; `None` is that of the program.
    pub netns: Option<String>,
    /// Addresses of hosts behind the node.
    pub prefixes: Vec<Prefix>,
}

/// A TUN device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceSpec {
    /// Name.
    pub name: String,
    /// The packets that it carries.
    pub carries: Carries,
}

/// The packets that a TUN device carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carries {
    /// All packets of the node.
    All,
    /// Those from and to nodes with a link.
    OfLinked,
    /// Those from and to nodes that are on the radio only.
    OfUnlinked,
    /// Those with the address of the interface with this index.
    OfInterface(usize),
}

impl Carries {
    /// Index of the interface, if the device is that of one.
    pub fn interface(self) -> Option<usize> {
        match self {
            Self::OfInterface(index) => Some(index),
            Self::All | Self::OfLinked | Self::OfUnlinked => None,
        }
    }
}

/// The path between two addresses of TUN ends, in both directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crossing {
    /// The ends, each with the index of the address; see [`Scenario::address`].
    pub ends: [(NodeId, usize); 2],
    /// Number of the path.
    pub path: u8,
}

impl Scenario {
    /// The address of an interface of a TUN end, by the index of the interface. That of the first
    /// one is the address of the node. The others follow the addresses of all nodes, in the order
    /// of the nodes.
    pub fn address(&self, node: NodeId, index: usize) -> IpAddr {
        let before = || self.nodes[..node.index()].iter().map(NodeSpec::further_addresses).sum::<usize>();
        let number = match index {
            0 => node.index(),
            _ => self.nodes.len() + before() + index - 1,
        };
        address_of(self.network.ip, NodeId(number as u32))
    }

    /// Number of addresses in the network, which are consecutive.
    pub fn address_count(&self) -> usize {
        self.nodes.len() + self.nodes.iter().map(NodeSpec::further_addresses).sum::<usize>()
    }
}

impl NodeSpec {
    /// Number of addresses beside that of the node.
    fn further_addresses(&self) -> usize {
        self.tun.as_ref().map_or(0, |_| self.interfaces.len().saturating_sub(1))
    }
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
