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

use super::policies::{Policies, PolicyName};
use super::units::{Size, Span};

/// Layout of the header of a data chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LayoutName {
    /// 2 to 17 octets, mostly 2 to 4.
    Compact,
    /// The paper's 20 octets behind 3 of ours.
    Paper,
}

/// When data may follow a SETSYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StartName {
    /// At once, on the first session. A file of at most 1200 octets follows the request, and needs no session.
    Early,
    /// After the SETACK, as in the paper.
    AfterSetack,
}

/// When the next session is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OpenName {
    /// When the last has reached its gateway.
    Staggered,
    /// When the last is open, as in the paper.
    OneByOne,
    /// All together.
    AtOnce,
}

/// How long a gateway waits before its SETACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OpenWaitName {
    /// Not at all.
    None,
    /// One round trip of the wireless connection, as in the paper.
    RoundTrip,
}

/// How sessions share the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StripingName {
    /// Earliest arrival, and only where it helps.
    Predictive,
    /// Whoever has window, as in the paper.
    Window,
    /// One that the program has brought along.
    #[serde(untagged)]
    Custom(PolicyName),
}

impl StripingName {
    pub(super) fn policy(self, policies: &Policies) -> Result<StripingPolicy, String> {
        Ok(match self {
            Self::Predictive => StripingPolicy::Predictive,
            Self::Window => StripingPolicy::Window,
            Self::Custom(name) => StripingPolicy::Custom(policies.find_striping(name)?),
        })
    }
}

/// Whether an idle session copies what holds up the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ReinjectionName {
    /// It does.
    On,
    /// It does not, as in the paper.
    Off,
}

/// When a gateway whose session was lost is called again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryName {
    /// Also while others carry.
    Always,
    /// When no session is left. The paper says nothing of gateways that return.
    NoneLeft,
}

/// How the node shares its buffer among sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SharingName {
    /// The best session may have all of it.
    Overcommitted,
    /// The shares add up to it, as in the paper.
    Divided,
}

/// What the node answers to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AnswerName {
    /// ACK, with its gateway table.
    Ack,
    /// NACK: the octets come as plain TCP through the default gateway.
    Nack,
}

/// Choices of SET. The defaults are today's protocol; the paper's are named in each choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SetSection {
    /// Layout of the header of a data chunk.
    pub layout: LayoutName,
    /// When data may follow a SETSYN.
    pub start: StartName,
    /// When the next session is opened.
    pub open: OpenName,
    /// How long a gateway waits before its SETACK.
    pub open_wait: OpenWaitName,
    /// How sessions share the file.
    pub striping: StripingName,
    /// Whether an idle session copies what holds up the rest.
    pub reinjection: ReinjectionName,
    /// When a gateway whose session was lost is called again.
    pub recovery: RecoveryName,
    /// How the node shares its buffer among sessions.
    pub sharing: SharingName,
    /// What the node answers to a request.
    pub answer: AnswerName,
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
            layout: LayoutName::Compact,
            start: StartName::Early,
            open: OpenName::Staggered,
            open_wait: OpenWaitName::None,
            striping: StripingName::Predictive,
            reinjection: ReinjectionName::On,
            recovery: RecoveryName::Always,
            sharing: SharingName::Overcommitted,
            answer: AnswerName::Ack,
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
            start: StartName::AfterSetack,
            open: OpenName::OneByOne,
            open_wait: OpenWaitName::RoundTrip,
            striping: StripingName::Window,
            reinjection: ReinjectionName::Off,
            recovery: RecoveryName::NoneLeft,
            sharing: SharingName::Divided,
            ..Self::default()
        }
    }

    /// Options of the sender, whose striping has a name that the program may have brought along; its plan and its gateways are
    /// left as they are by default.
    pub(super) fn sender(&self, striping: StripingPolicy) -> SenderConfig {
        SenderConfig {
            layout: match self.layout {
                LayoutName::Compact => Layout::Compact,
                LayoutName::Paper => Layout::Paper,
            },
            start: match self.start {
                StartName::Early => Start::Early,
                StartName::AfterSetack => Start::AfterSetAck,
            },
            open: match self.open {
                OpenName::Staggered => OpenWhen::Staggered,
                OpenName::OneByOne => OpenWhen::OneByOne,
                OpenName::AtOnce => OpenWhen::AtOnce,
            },
            striping,
            reinjection: match self.reinjection {
                ReinjectionName::On => Reinjection::On,
                ReinjectionName::Off => Reinjection::Off,
            },
            recovery: match self.recovery {
                RecoveryName::Always => Recovery::Always,
                RecoveryName::NoneLeft => Recovery::NoneLeft,
            },
            stall: self.stall.0,
            ..SenderConfig::default()
        }
    }

    /// Options of a gateway whose wired segments have `segment` octets.
    pub fn relay(&self, segment: u16) -> RelayConfig {
        let segment = u32::from(segment);
        RelayConfig {
            open_wait: match self.open_wait {
                OpenWaitName::None => OpenWait::None,
                OpenWaitName::RoundTrip => OpenWait::RoundTrip,
            },
            segment,
            initial_window: 4 * segment,
            buffer: octets(self.gateway_buffer),
            ..RelayConfig::default()
        }
    }

    /// Options of a node whose wireless segments have `segment` octets; without a gateway table.
    pub fn receiver(&self, segment: u16) -> ReceiverConfig {
        let default = ReceiverConfig::default();
        let sharing = match self.sharing {
            SharingName::Overcommitted => Sharing::Overcommitted,
            SharingName::Divided => Sharing::Divided,
        };
        ReceiverConfig {
            buffer: octets(self.node_buffer),
            striping: match self.answer {
                AnswerName::Ack => NodeStriping::Supported,
                AnswerName::Nack => NodeStriping::Refused,
            },
            share: ShareConfig { sharing, segment: u32::from(segment), ..default.share },
            ..default
        }
    }
}

fn octets(size: Size) -> u32 {
    u32::try_from(size.0).unwrap_or(u32::MAX)
}
