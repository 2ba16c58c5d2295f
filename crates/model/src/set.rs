//! The latency of a SET transfer in closed form: section 5 of the paper, equations (1) to (16).
//!
//! A transfer of [`Transfer::octets`] is striped over split-TCP sessions, one through each gateway.
//! [`latency`] puts the equations together for a given number of gateways, [`best_gateways`]
//! compares all numbers from one to as many as there are. The single steps are public as well:
//!
//! * [`establishment`]: equations (1) to (5), the time until a session is open;
//! * [`windows`]: equations (6) to (9), how many windows a share takes and how long the sender
//!   stalls;
//! * [`path`]: equations (10) and (11), one share through one gateway;
//! * [`striping`]: who carries how much;
//! * [`total`]: equation (12);
//! * [`background`]: equations (13) to (16), what other transfers through the same gateway cost.
//!
//! Not modelled: losses after the establishment (the paper leaves them out), the contention of the
//! shared radio channel, and acknowledgements that compete with data for the air.

pub mod background;
mod error;
pub mod establishment;
mod parameters;
pub mod path;
mod reading;
pub mod striping;
pub mod total;
pub mod windows;

pub use error::ModelError;
pub use parameters::{Handshake, HandshakeLosses, Path, Probing, Striping, Transfer, Window};
pub use reading::{
    AckTime, AvoidanceIndex, BufferShare, Growth, HandshakeEnd, OpenWait, OtherPaths, QueueLaw, Reading,
    SessionStarts, TransmissionCount, WiredStage, WiredWindow,
};
pub use total::{Best, Latency, best_gateways, latency};

#[cfg(test)]
mod tests;
