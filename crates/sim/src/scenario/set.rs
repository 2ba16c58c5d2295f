//! What a scenario may choose about SET.

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

/// Choices of SET. The defaults are today's protocol; the paper's are named in each choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SetSection {
    /// Layout of the header of a data chunk.
    pub layout: Layout,
    /// When data may follow a SETSYN.
    pub start: Start,
    /// When the next session is opened.
    pub open: OpenWhen,
    /// How long a gateway waits before its SETACK.
    pub open_wait: OpenWait,
    /// How sessions share the file.
    pub striping: Named<StripingPolicy>,
    /// Whether an idle session copies what holds up the rest.
    pub reinjection: Reinjection,
    /// When a gateway whose session was lost is called again.
    pub recovery: Recovery,
    /// How the node shares its buffer among sessions.
    pub sharing: Sharing,
    /// What the node answers to a request.
    pub answer: NodeStriping,
    /// The node's receive buffer, at least 1 octet.
    pub node_buffer: Size,
    /// What one session may have at a gateway, at least 1 octet.
    pub gateway_buffer: Size,
    /// Nothing delivered for so long ends the transfer.
    pub stall: Span,
}

impl Default for SetSection {
    fn default() -> Self {
        Self {
            layout: Layout::Compact,
            start: Start::Early,
            open: OpenWhen::Staggered,
            open_wait: OpenWait::None,
            striping: Named::Ours(StripingPolicy::Predictive),
            reinjection: Reinjection::On,
            recovery: Recovery::Always,
            sharing: Sharing::Overcommitted,
            answer: NodeStriping::Supported,
            node_buffer: Size(64_000),
            gateway_buffer: Size(640_000),
            stall: Span(Duration::from_secs(120)),
        }
    }
}

impl SetSection {
    /// The protocol as printed.
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

    /// Options of the sender, whose striping has a name that the program may have brought along;
    /// its plan and its gateways are left as they are by default.
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

    /// Options of a gateway whose wired segments have `segment` octets.
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

    /// Options of a node whose wireless segments have `segment` octets; without a gateway table.
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
