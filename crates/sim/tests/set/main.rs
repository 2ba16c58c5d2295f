//! SET over simulated TCP through gateways of a simulated network.

mod dbg;
mod star;
mod striping;
