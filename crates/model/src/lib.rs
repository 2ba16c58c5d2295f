//! Closed forms and recursions of the papers, as pure functions. This crate never simulates, never
//! reads a file, a clock or a source of entropy, and keeps nothing between two calls.
//!
//! Code map: [`set`] is the latency model of SET (section 5 of its paper, equations 1 to 16);
//! [`dtc`] the bounds for chains that cache segments; [`dcf`] saturated stations of IEEE 802.11;
//! [`mptcp`] channel access, queues, round trips and the schedule of multipath TCP over IEEE
//! 802.15.4; [`sockbuf`] the loop that steers the send buffer of a striped connection. Quantities
//! are SI throughout: seconds, bit/s, bytes, packets per second.
//!
//! Where a paper contradicts itself, the corrected form is the default and the printed one can be
//! chosen; the errata numbers (S1, S2, ...) are those of the project's errata page.

#![forbid(unsafe_code)]

pub mod dcf;
pub mod dtc;
pub mod mptcp;
pub mod set;
pub mod sockbuf;
