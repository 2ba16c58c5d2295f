//! Tests of the transports from outside of the crate.
//!
//! All files share one binary, because linking one per file would take longer than compiling them.

mod aodv_allocations;
mod aodv_discovery;
mod aodv_errors;
mod aodv_loops;
mod aodv_world;
mod coap;
mod coap_interop;
mod coap_world;
mod dtc_allocations;
mod dtc_chain;
mod dtc_node;
mod dtc_world;
mod mptcp_blackout;
mod mptcp_fallback;
mod mptcp_faults;
mod mptcp_hostile;
mod mptcp_in_order;
mod mptcp_mapping;
mod mptcp_predictive;
mod mptcp_send_buffer;
mod mptcp_transfer;
mod mptcp_world;
mod rdca_allocations;
mod rdca_faults;
mod rdca_neighbours;
mod rdca_rates;
mod rdca_scenarios;
mod rdca_steps;
mod rdca_trend;
mod set;
mod tcp_bbr;
mod tcp_close;
mod tcp_congestion;
mod tcp_ecn;
mod tcp_elfn;
mod tcp_fuzz;
mod tcp_handshake;
mod tcp_hostile;
mod tcp_linger;
mod tcp_loss;
mod tcp_pacing;
mod tcp_pair;
mod tcp_receive;
mod tcp_send;
mod tcp_short_queue;
mod tcp_spurious;
mod tcp_westwood;

use anabranch_testkit::counting::Counting;

/// Serves all tests of this binary; each thread has its own counters.
#[global_allocator]
static COUNTING: Counting = Counting;
