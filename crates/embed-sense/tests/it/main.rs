//! Tests of the sender for C: memory bounds, header, sizes and hostile input. The example sends to
//! the deployed sink in the tests of `anabranch-deploy`.

mod bounds;
mod c;

use anabranch_testkit::counting::Counting;

/// Counts allocations for all tests of this binary; each thread has its own counters.
#[global_allocator]
static COUNTING: Counting = Counting;
