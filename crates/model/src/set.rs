//! The latency of a SET transfer in closed form: section 5 of the paper, equations (1) to (16).
//!
//! A transfer of [`Transfer::octets`] bytes is striped over split TCP sessions, one through each
//! gateway. [`latency`] combines the equations for a given number of gateways. [`best_gateways`]
//! compares all numbers of gateways. The individual steps are public as well:
//!
//! * [`establishment`]: equations (1) to (5), the time until a session is open;
//! * [`windows`]: equations (6) to (9), the number of windows of a share and the stalls of the
//!   sender;
//! * [`path`]: equations (10) and (11), one share through one gateway;
//! * [`striping`]: the size of each share;
//! * [`total`]: equation (12);
//! * [`background`]: equations (13) to (16), the cost of other transfers through the same gateway.
//!
//! Not modelled: losses after the establishment (the paper omits them), contention on the shared
//! radio channel, and acknowledgements that compete with data for the channel.

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
