//! Bytes to meaning and back. This crate never acts: no clock, no socket, no state between two calls.
//!
//! Code map: [`tcp`] is the segment and its options, [`mptcp`] those of Multipath TCP, [`ip`] the packet around it (IPv4 and IPv6, with
//! fragments and checksums), [`set`] the messages of the SET session layer, which are ours. The standard
//! formats are read and written by smoltcp's `wire` module, which no other crate sees.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod ip;
pub mod mptcp;
pub mod set;
pub mod tcp;
