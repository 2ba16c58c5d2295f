//! Ad hoc networks: IEEE 802.11, AODV, UDP, and transport protocols above them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod capture;
mod datagrams;
mod faults;
mod queue;
mod support;
mod transports;
