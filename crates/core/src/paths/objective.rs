//! Objective functions: the cost of a path, and the resulting rank.

use super::Config;
use super::etx::ONE;
use super::message::NodeType;

/// How a node compares paths and computes its rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Objective {
    /// The smallest sum of ETX, with hysteresis: MRHOF (RFC 6719) over the ETX in DIOs (RFC 6551).
    #[default]
    Mrhof,
    /// The lowest rank, which increases with the ETX of each link: OF0 (RFC 6552).
    Of0,
    /// The fewest hops, regardless of the link quality: the rule of the paper.
    Paper,
}

/// MAX_LINK_METRIC (RFC 6719 section 5): an ETX of 4.
pub(super) const MAX_LINK_METRIC: u16 = 512;
/// MAX_PATH_COST (RFC 6719 section 5).
pub(super) const MAX_PATH_COST: u32 = 32_768;

/// MINIMUM_STEP_OF_RANK and MAXIMUM_STEP_OF_RANK (RFC 6552 section 6.3).
const STEPS_OF_RANK: core::ops::RangeInclusive<u32> = 1..=9;

/// step_of_rank of a hop over the radio in the paper; a hop over the cellular network has 1.
const RADIO_STEP: u16 = 4;

impl Objective {
    /// Whether the function uses the ETX of links.
    pub(super) fn uses_etx(self) -> bool {
        self != Self::Paper
    }

    /// Returns the cost of a path over a parent. The parent announces `rank` and the ETX `etx` of
    /// its own path; the link to it has the ETX `link`.
    pub(super) fn cost(self, config: &Config, rank: u16, etx: u16, link: u16) -> u32 {
        match self {
            // RFC 6719 section 3.1.
            Self::Mrhof => u32::from(etx) + u32::from(link),
            Self::Of0 | Self::Paper => u32::from(self.rank(config, rank, 0, link)),
        }
    }

    /// Returns the node's rank over such a parent.
    pub(super) fn rank(self, config: &Config, rank: u16, etx: u16, link: u16) -> u16 {
        let unit = config.min_hop_rank_increase.max(1);
        match self {
            // RFC 6719 section 3.3: the cost, and at least one step above the parent's rank.
            Self::Mrhof => etx.saturating_add(link).max(rank.saturating_add(unit)),
            // RFC 6552 section 4.1: (Rf * Sp + Sr) * MinHopRankIncrease with Rf 1 and Sr 0. Sp is 3
            // ETX - 2 as in RFC 8180 section 5.1.1, rounded to the nearest step: one retransmission
            // in many frames must not add a step.
            Self::Of0 | Self::Paper => {
                let step = ((3 * u32::from(link) + u32::from(ONE / 2)) / u32::from(ONE)).saturating_sub(2);
                let step = step.clamp(*STEPS_OF_RANK.start(), *STEPS_OF_RANK.end());
                let increase = u16::try_from(step * u32::from(unit)).unwrap_or(u16::MAX);
                rank.saturating_add(increase)
            }
        }
    }

    /// Returns how much lower the cost of another parent must be to replace the current one.
    pub(super) fn hysteresis(self, config: &Config) -> u32 {
        match self {
            Self::Mrhof => config.parent_switch_threshold.max(1).into(),
            // Three steps are an ETX of 1. An ETX that varies between two steps must not change
            // parents.
            Self::Of0 | Self::Paper => u32::from(config.min_hop_rank_increase.max(1)) * 3,
        }
    }
}

/// Rank increase in the paper's rule over a link between nodes of these types: four times as large
/// over the radio.
pub(super) fn paper_step(config: &Config, own: NodeType, neighbour: NodeType) -> u16 {
    let cellular = own == NodeType::BaseStation || neighbour == NodeType::BaseStation;
    config.min_hop_rank_increase.max(1).saturating_mul(if cellular { 1 } else { RADIO_STEP })
}
