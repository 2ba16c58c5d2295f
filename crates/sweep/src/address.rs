//! Identities of runs, which the simulator computes, and what tells the runs of a point apart.

pub use anabranch_sim::scenario::identity::{BUILD, Files, Root, RunId as Address, VERSION};

/// A run of a point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RunKey {
    /// Root of its random streams.
    pub seed: u64,
    /// Its number, from 0.
    pub run: u64,
}
