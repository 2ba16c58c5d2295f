//! Options of SET.

use anabranch_core::set::buffers::{ShareConfig, Sharing};
use anabranch_core::set::{
    Layout, NodeStriping, OpenWait, OpenWhen, ReceiverConfig, Recovery, Reinjection, RelayConfig,
    SenderConfig, Start, StripingPolicy,
};
use anabranch_core::time::Duration;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policies::Named;
use super::units::{Size, Span};

/// Options of SET. The defaults are those of Anabranch's variant; each value says where the paper
/// differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SetSection {
    /// Header format of data chunks.
    pub layout: Layout,
    /// When data may follow a SETSYN.
    pub start: Start,
    /// When the next session is opened.
    pub open: OpenWhen,
    /// Time for which a gateway waits before its SETACK.
    pub open_wait: OpenWait,
    /// Striping policy: assigns the chunks of the file to sessions.
    pub striping: Named<StripingPolicy>,
    /// Whether an idle session retransmits chunks that delay the rest.
    pub reinjection: Reinjection,
    /// When a gateway with a lost session is called again.
    pub recovery: Recovery,
    /// How the node shares its buffer among sessions.
    pub sharing: Sharing,
    /// The node's answer to a request.
    pub answer: NodeStriping,
    /// Whether the node says that it reaches its gateways over one radio channel whose MAC gives a
    /// frame up after few retries. `adaptive` striping then takes turns. The paper's table has no
    /// such field.
    pub shared_channel: bool,
    /// Size of the node's receive buffer, at least 1 byte.
    pub node_buffer: Size,
    /// Buffer of one session at a gateway, at least 1 byte.
    pub gateway_buffer: Size,
    /// Time without any delivery after which the transfer fails.
    pub stall: Span,
}

impl Default for SetSection {
    fn default() -> Self {
        Self {
            layout: Layout::Compact,
            start: Start::Early,
            open: OpenWhen::Staggered,
            open_wait: OpenWait::None,
            striping: Named::Ours(StripingPolicy::Adaptive),
            reinjection: Reinjection::On,
            recovery: Recovery::Always,
            sharing: Sharing::Overcommitted,
            answer: NodeStriping::Supported,
            shared_channel: false,
            node_buffer: Size(64_000),
            gateway_buffer: Size(640_000),
            stall: Span(Duration::from_secs(120)),
        }
    }
}

impl SetSection {
    /// The options of the protocol as published in the paper.
    pub fn paper() -> Self {
        Self {
            start: Start::AfterSetAck,
            open: OpenWhen::OneByOne,
            open_wait: OpenWait::RoundTrip,
            striping: Named::Ours(StripingPolicy::Window),
            reinjection: Reinjection::Off,
            recovery: Recovery::NoneLeft,
            sharing: Sharing::Divided,
            ..Self::default()
        }
    }

    /// Options of the sender, with its resolved striping policy. The plan and the gateways keep
    /// their defaults.
    pub(super) fn sender(&self, striping: StripingPolicy) -> SenderConfig {
        SenderConfig {
            layout: self.layout,
            start: self.start,
            open: self.open,
            striping,
            reinjection: self.reinjection,
            recovery: self.recovery,
            stall: self.stall.0,
            ..SenderConfig::default()
        }
    }

    /// Options of a gateway whose wired segments have `segment` bytes.
    pub fn relay(&self, segment: u16) -> RelayConfig {
        let segment = u32::from(segment);
        RelayConfig {
            open_wait: self.open_wait,
            segment,
            initial_window: 4 * segment,
            buffer: octets(self.gateway_buffer),
            ..RelayConfig::default()
        }
    }

    /// Options of a node whose wireless segments have `segment` bytes; without a gateway table.
    pub fn receiver(&self, segment: u16) -> ReceiverConfig {
        let default = ReceiverConfig::default();
        ReceiverConfig {
            buffer: octets(self.node_buffer),
            striping: self.answer,
            share: ShareConfig { sharing: self.sharing, segment: u32::from(segment), ..default.share },
            ..default
        }
    }
}

fn octets(size: Size) -> u32 {
    u32::try_from(size.0).unwrap_or(u32::MAX)
}
