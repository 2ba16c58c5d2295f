//! SET over simulated TCP through gateways of a simulated network.

mod dbg;
mod random;
mod star;
mod striping;
