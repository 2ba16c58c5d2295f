//! SET over simulated TCP through gateways of a simulated network.

mod faults;
pub(crate) mod star;
mod striping;
