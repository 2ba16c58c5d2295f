//! Tests of `anabranch-cache` and `anabranch-multipath` as processes, between hosts that are
//! network namespaces.

mod capture;
mod chain;
mod hostile;
mod links;
mod multipath;
mod program;
mod rules;
mod world;
