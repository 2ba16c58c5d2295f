//! Tests of the cache for C: memory bounds, a chain of forwarders, header, example and hostile
//! input.

mod bounds;
mod c;
mod chain;
mod ends;
mod example;

use anabranch_testkit::counting::Counting;

/// Counts allocations for all tests of this binary; each thread has its own counters.
#[global_allocator]
static COUNTING: Counting = Counting;
