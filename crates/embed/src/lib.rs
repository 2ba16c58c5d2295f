//! The node's receiver ([`anabranch_core::set::Receiver`]) for programs that have a TCP stack, a
//! clock and little memory.
//!
//! The crate is sans-IO like the core: the program reports events of its connections and carries
//! out the resulting effects. All state is in memory that the program provides at the start.
//! [`sizes`] computes the required amount in advance.
//!
//! * [`node`] is the receiver with limits on connections and on bytes per call.
//! * [`guards`] adds encryption, with the feature `noise`.
//! * [`device`] decides by manifests which files to accept, with the feature `manifest`.
//! * [`api`] contains the types of `include/anabranch_node.h`.
//! * `c`, with the feature of that name, contains its functions, the allocator over the caller's
//!   memory, and the panic handler.

#![no_std]

extern crate alloc;

pub mod api;
#[cfg(feature = "c")]
mod c;
pub mod device;
pub mod guards;
pub mod node;
pub mod sizes;
