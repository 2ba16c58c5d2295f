//! The library for C: its bounds, its header and hostile input.
//!
//! One binary for all files: linking one per file would take longer than compiling them.

mod bounds;
mod c;
mod examples;
mod manifest;
mod node;
mod noise;
mod packaging;
mod parts;

use anabranch_testkit::counting::Counting;

/// Serves all tests of this binary; each thread has counters of its own.
#[global_allocator]
static COUNTING: Counting = Counting;
