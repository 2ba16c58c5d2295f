//! How long packets take over a path of IEEE 802.15.4 and cellular hops: sections V and VI of
//! "Multipath TCP Over Multi-Hop Heterogeneous Wireless IoT Networks" (Guo et al.), equations 1 to 11.
//! Routers evaluate them over what they measure, so they are here and not among the closed forms.
//!
//! * [`csma`]: non-slotted CSMA-CA, equations 1 to 4: back-off periods until the channel is gained.
//! * [`queue`]: M/M/1/K, equations 5 to 7: the wait before that.
//! * [`rtt`]: packets over a path, equations 8 to 11.
//!
//! Where the paper contradicts itself [`Reading`] chooses; the errata numbers (M1, M2, ...) are
//! those of the project's errata page. Not modelled: what a node does with a frame for which it
//! never gains the channel (M7), collisions, and repetitions of the MAC.

mod error;
mod reading;

pub mod csma;
pub mod queue;
pub mod rtt;

pub use error::ModelError;
pub use reading::{
    AccessTime, BurstWait, FirstPacket, FurtherPacket, Occupancy, OctetTime, QueueTime, Reading, ReturnPath,
    Rounding, Seen, Service, StageWeights, StartPeriod,
};
