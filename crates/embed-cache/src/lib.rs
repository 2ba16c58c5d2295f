//! A forwarder's cache of TCP segments ([`anabranch_core::dtc::Node`]) for programs that forward
//! packets with little memory.
//!
//! The crate is sans-IO like the core: the program passes the packets that it forwards and the
//! reports of its link layer, and sends what the cache repeats. All state is in memory that the
//! program provides at the start.
//!
//! * [`cache`] is the caching node with packets in place of segments.
//! * [`sizes`] computes the required memory.
//! * [`api`] contains the types of `include/anabranch_cache.h`.
//! * `c`, with the feature of that name, contains its functions, the allocator over the caller's
//!   memory, and the panic handler.

#![no_std]

extern crate alloc;

pub mod api;
#[cfg(feature = "c")]
mod c;
pub mod cache;
pub mod sizes;
