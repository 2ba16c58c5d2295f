//! Tests of `anabranch-cache` as a process, between hosts that are network namespaces.

mod capture;
mod chain;
mod hostile;
mod program;
mod rules;
mod world;
