//! Legs of moving nodes in a log: one record when a node begins to move in a straight line.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anabranch_core::time::Instant;

use crate::air::motion::{Leg, Mover};

/// The legs of all moving nodes that have not begun.
#[derive(Debug, Default)]
pub(super) struct Legs {
    movers: Vec<(u32, Mover)>,
    /// Start of the next leg of each node, with the node's index.
    next: BinaryHeap<Reverse<(Instant, usize)>>,
}

impl Legs {
    /// The legs of the moving nodes among these.
    pub(super) fn of<'m>(nodes: impl Iterator<Item = Option<&'m Mover>>) -> Self {
        let movers: Vec<(u32, Mover)> =
            (0..).zip(nodes).filter_map(|(node, mover)| Some((node, mover?.clone()))).collect();
        let next = (0..movers.len()).map(|i| Reverse((Instant::ZERO, i))).collect();
        Self { movers, next }
    }

    /// Whether no node moves.
    pub(super) fn is_empty(&self) -> bool {
        self.movers.is_empty()
    }

    /// The next leg that has begun by then, in order of time, without rests.
    pub(super) fn next_until(&mut self, now: Instant) -> Option<(u32, Leg)> {
        loop {
            let &Reverse((at, i)) = self.next.peek().filter(|Reverse((at, _))| *at <= now)?;
            self.next.pop();
            let (node, mover) = &mut self.movers[i];
            let leg = mover.leg_at(at);
            // The last leg lasts for ever, as does that of a finished movement file.
            if leg.end > at && leg.end < Instant::FAR_FUTURE {
                self.next.push(Reverse((leg.end, i)));
            }
            if leg.end > at && leg.from != leg.to {
                return Some((*node, leg));
            }
        }
    }
}
