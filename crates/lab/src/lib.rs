//! anabranch-lab

pub mod stats;
