//! Tests of the library for C: memory bounds, header and hostile input.
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

/// Counts allocations for all tests of this binary; each thread has its own counters.
#[global_allocator]
static COUNTING: Counting = Counting;
