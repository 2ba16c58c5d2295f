//! anabranch-sim

pub mod pcapng;
