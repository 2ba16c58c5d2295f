//! SET over simulated TCP through gateways of a simulated network.

mod faults;
mod random;
mod star;
mod striping;
