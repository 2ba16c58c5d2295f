//! Run identities, as computed by the simulator, and the key of a run within its point.

pub use anabranch_scenario::identity::{BUILD, Files, Root, RunId as Address, VERSION};

/// Identifies a run within a point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RunKey {
    /// Root seed of its random streams.
    pub seed: u64,
    /// Run number, counted from 0.
    pub run: u64,
}
