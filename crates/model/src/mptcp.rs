//! Delays on paths of IEEE 802.15.4 and cellular hops: sections V to VII of "Multipath TCP Over
//! Multi-Hop Heterogeneous Wireless IoT Networks" (Guo et al.), equations 1 to 12.
//!
//! The equations are implemented in the core, since nodes evaluate them: [`csma`], [`queue`] and
//! [`rtt`] are [`anabranch_core::mptcp::travel`], and [`schedule`] is
//! [`anabranch_core::mptcp::prediction`].

pub mod schedule;

pub use anabranch_core::mptcp::travel::{
    AccessTime, BurstWait, FirstPacket, FurtherPacket, ModelError, Occupancy, OctetTime, QueueTime, Reading,
    ReturnPath, Rounding, Seen, Service, StageWeights, StartPeriod, csma, queue, rtt,
};

#[cfg(test)]
mod tests;
