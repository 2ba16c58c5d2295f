//! Tests of the sender for C: memory bounds, header, example and hostile input.

mod bounds;

use anabranch_testkit::counting::Counting;

/// Counts allocations for all tests of this binary; each thread has its own counters.
#[global_allocator]
static COUNTING: Counting = Counting;
