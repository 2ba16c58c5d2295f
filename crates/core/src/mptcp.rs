//! Multipath TCP: one connection over several subflows.
//!
//! Code map: [`prediction`] is how many packets a path delivers before the next slower one delivers its first.

pub mod prediction;
