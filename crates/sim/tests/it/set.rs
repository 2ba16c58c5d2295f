//! SET over simulated TCP through gateways of a simulated network.

mod faults;
mod phases;
mod random;
pub(crate) mod star;
mod striping;
