//! SET over simulated TCP through gateways of a simulated network.

mod random;
mod star;
mod striping;
