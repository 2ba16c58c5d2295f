//! Packets of a Linux host: a box on the path that caches TCP segments of other hosts
//! (`anabranch cache`), and a Multipath TCP host in user space (`anabranch multipath`).

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

#[cfg(feature = "program")]
pub mod cache;
#[cfg(feature = "program")]
mod chains;
#[cfg(feature = "program")]
pub mod commands;
#[cfg(feature = "program")]
pub mod interfaces;
pub mod multipath;
pub mod nfqueue;
pub mod packets;
pub mod raw;
#[cfg(feature = "program")]
pub mod routes;
#[cfg(feature = "program")]
pub mod rules;
