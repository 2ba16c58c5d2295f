//! The choice between predictive striping and turns.
//!
//! Turns are faster where all paths share one radio channel and its MAC gives up early, predictive
//! striping is faster nearly everywhere else. The node knows its radio, and says so in the rows of
//! its gateways. The sender takes turns from the first chunk on while that holds for all gateways
//! that have a session or get one soon. If a measurement refutes the node, predictive striping
//! remains for the rest of the transfer.

use alloc::vec::Vec;

use super::Sender;
use super::decision::{StripingChoice, StripingDecision, StripingReason};
use super::turns::Turns;
use crate::set::striping::StripingPolicy;
use crate::set::tcp_manager::{State, TcpManager};
use crate::time::Instant;

/// Largest rate of turns in bytes per second. Over two hops and more of IEEE 802.15.4 at 250 kbit/s
/// they reach at most 60 kbit/s. Over one hop a packet meets none on its way, and a single one is
/// faster than this.
const FASTEST: u64 = 80_000 / 8;

/// State of the choice.
#[derive(Debug, Default)]
pub(super) struct Adaptive {
    in_turns: bool,
    /// Whether a measurement has refuted the node.
    is_refuted: bool,
    decisions: Vec<StripingDecision>,
}

impl Sender {
    /// The policy by which chunks are assigned now.
    pub(super) fn policy(&self) -> StripingPolicy {
        match self.config.striping {
            StripingPolicy::Adaptive if self.adaptive.in_turns => StripingPolicy::Turns,
            StripingPolicy::Adaptive => StripingPolicy::Predictive,
            policy => policy,
        }
    }

    /// What [`StripingPolicy::Adaptive`] has decided so far, first to last. Empty with other
    /// policies, and while predictive striping is the only choice.
    pub fn decisions(&self) -> &[StripingDecision] {
        &self.adaptive.decisions
    }

    /// Chooses the policy for the next chunks.
    pub(super) fn adapt(&mut self, now: Instant) {
        if self.config.striping != StripingPolicy::Adaptive || self.adaptive.is_refuted {
            return;
        }
        let is_near = |s: &&TcpManager| match s.state {
            State::Opened => true,
            State::Calling | State::OpenWait { .. } => s.lost.is_none() && now < self.patience,
            State::Released | State::Closed(_) => false,
        };
        let near = self.sessions.iter().filter(is_near).map(|s| &s.gateway).chain(&self.waiting);
        let (mut shared, mut outside) = (0u64, 0u64);
        for gateway in near {
            *(if gateway.shared_channel { &mut shared } else { &mut outside }) += 1;
        }
        let is_refuted = self.adaptive.in_turns && self.turns.fastest > FASTEST;
        let (reason, measured, limit) = match (is_refuted, shared, outside) {
            // The sessions that return may be as those before.
            (false, 0, 0) => return,
            (true, ..) => (StripingReason::TurnsRate, self.turns.fastest * 8, FASTEST * 8),
            (_, sessions, 0) => (StripingReason::Sessions, sessions, 1),
            (_, _, sessions) => (StripingReason::Outside, sessions, 0),
        };
        let in_turns = reason == StripingReason::Sessions;
        if in_turns == self.adaptive.in_turns {
            return;
        }
        self.adaptive.in_turns = in_turns;
        self.adaptive.is_refuted = is_refuted;
        let choice = if in_turns { StripingChoice::Turns } else { StripingChoice::Predictive };
        let (measured, limit) = (measured as f64, limit as f64);
        self.adaptive.decisions.push(StripingDecision { at: now, choice, reason, measured, limit });
        self.turns = Turns::new(now);
        if in_turns {
            // With the latencies of full queues, a gateway that dies would hold up the turns of all
            // for minutes, as its silence would be usual.
            self.sessions.iter_mut().for_each(|s| s.estimate.forget_latency());
        }
    }
}
