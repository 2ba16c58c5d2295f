//! Model of the delay over a path of IEEE 802.15.4 and cellular hops: sections V and VI of
//! "Multipath TCP Over Multi-Hop Heterogeneous Wireless IoT Networks" (Guo et al.), equations 1 to
//! 11. Routers evaluate it with measured values, so it is part of the core and not of the closed
//! forms.
//!
//! * [`csma`]: non-slotted CSMA-CA, equations 1 to 4: back-off periods until the channel is gained.
//! * [`queue`]: M/M/1/K, equations 5 to 7: the waiting time before that.
//! * [`rtt`]: packets over a path, equations 8 to 11.
//!
//! If the paper contradicts itself, [`Reading`] selects the interpretation. The erratum numbers
//! (M1, M2, ...) refer to the project's errata page. Not modelled: the treatment of a frame that
//! never gains the channel (M7), collisions, and MAC retransmissions.

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
