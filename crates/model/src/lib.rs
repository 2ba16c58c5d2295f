//! anabranch-model
