//! The node's receiver ([`anabranch_core::set::Receiver`]) for programs that have a TCP stack, a
//! clock, and little memory.
//!
//! Sans-IO like the core: the program says what its connections did, and carries out what it is
//! told. All that is kept is in memory that the program gives at the beginning, and how much that
//! must be is known before: [`sizes`].
//!
//! * [`node`] is the receiver with bounds: so many connections, so much of what comes at once.
//! * [`guards`] is encryption, with the feature `noise`.
//! * [`device`] decides by manifests, with the feature `manifest`.
//! * [`api`] is what C sees: the types of `include/anabranch_node.h`.
//! * `c`, with the feature of that name: its functions, the allocator over the caller's memory, the
//!   panic handler.

#![no_std]

extern crate alloc;

pub mod api;
#[cfg(feature = "c")]
mod c;
pub mod device;
pub mod guards;
pub mod node;
pub mod sizes;
