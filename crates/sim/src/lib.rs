//! anabranch-sim
