//! Integration tests of the simulator through its public API.
//!
//! One binary for all files: linking one binary per file would take longer than compiling them.

// Shared by tests, benchmarks and examples.
#[path = "../../benches/support/air.rs"]
mod air;
#[path = "../../benches/support/dcf.rs"]
mod dcf;
#[path = "../../benches/support/mod.rs"]
mod networks;
#[path = "../../benches/support/hops.rs"]
mod row_of_nodes;

mod adhoc;
mod adhoc_allocations;
mod allocations;
mod aodv;
mod applications;
mod buffers;
mod capture;
mod cost;
mod determinism;
mod fragment_forwarding;
mod hops;
mod mobility;
mod outside;
mod pcapng;
mod radio;
mod radio_allocations;
mod radio_memory;
mod rpl;
mod set;
mod tap;
mod transfer;
mod wifi;
mod wifi_allocations;
mod wifi_capture;
mod wireless;
mod wireless_capture;

use anabranch_testkit::counting::Counting;

/// Serves all tests of this binary; each thread has its own counters.
#[global_allocator]
static COUNTING: Counting = Counting;
