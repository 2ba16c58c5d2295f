//! Closed forms and recursions of the papers, as pure functions. This crate does not simulate,
//! reads no file, clock or source of entropy, and keeps no state between calls.
//!
//! | module | model |
//! | --- | --- |
//! | [`set`] | latency of SET (section 5 of its paper, equations 1 to 16) |
//! | [`dtc`] | bounds for chains that cache segments |
//! | [`dcf`] | saturated stations of IEEE 802.11 |
//! | [`mptcp`] | channel access, queues and schedule of Multipath TCP over IEEE 802.15.4 |
//! | [`sockbuf`] | control loop of the send buffer of a striped connection |
//!
//! All quantities are in SI units: seconds, bit/s, bytes, packets per second.
//!
//! Where a paper contradicts itself, the corrected form is the default and the printed form can be
//! selected. The errata numbers (S1, S2, ...) are those of the project's errata page.

#![forbid(unsafe_code)]

pub mod dcf;
pub mod dtc;
pub mod mptcp;
pub mod set;
pub mod sockbuf;
