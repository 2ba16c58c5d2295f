//! anabranch-lab

pub mod plot;
pub mod stats;
