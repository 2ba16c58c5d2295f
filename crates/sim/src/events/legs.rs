//! The ways of nodes that move, as a log has them: one record when a node begins to move in a
//! straight line.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anabranch_core::time::Instant;

use crate::air::motion::{Leg, Mover};

/// The legs that have not begun, of all nodes that move.
#[derive(Debug, Default)]
pub(super) struct Legs {
    movers: Vec<(u32, Mover)>,
    /// When the next leg of each begins, and whose it is.
    next: BinaryHeap<Reverse<(Instant, usize)>>,
}

impl Legs {
    /// Of the nodes that move among these.
    pub(super) fn of<'m>(nodes: impl Iterator<Item = Option<&'m Mover>>) -> Self {
        let movers: Vec<(u32, Mover)> =
            (0..).zip(nodes).filter_map(|(node, mover)| Some((node, mover?.clone()))).collect();
        let next = (0..movers.len()).map(|i| Reverse((Instant::ZERO, i))).collect();
        Self { movers, next }
    }

    /// No node moves.
    pub(super) fn is_empty(&self) -> bool {
        self.movers.is_empty()
    }

    /// The next leg that has begun by then, in order of time. Rests are left out.
    pub(super) fn next_until(&mut self, now: Instant) -> Option<(u32, Leg)> {
        loop {
            let &Reverse((at, i)) = self.next.peek().filter(|Reverse((at, _))| *at <= now)?;
            self.next.pop();
            let (node, mover) = &mut self.movers[i];
            let leg = mover.leg_at(at);
            // The last leg of all lasts for ever, as the last one of a file that is over does.
            if leg.end > at && leg.end < Instant::FAR_FUTURE {
                self.next.push(Reverse((leg.end, i)));
            }
            if leg.end > at && leg.from != leg.to {
                return Some((*node, leg));
            }
        }
    }
}
