//! anabranch-lab
