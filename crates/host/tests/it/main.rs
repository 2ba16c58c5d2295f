//! Tests of `anabranch-cache` as a process, between hosts that are network namespaces.

mod capture;
mod chain;
mod hostile;
mod program;
mod routes;
mod rules;
mod world;
