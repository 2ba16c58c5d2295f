//! Tests of sweeps, their store and their tables.
//!
//! One binary for all files: linking one per file would take longer than compiling them.

mod experiment;
mod memory;
mod series;
mod spec;
mod store;
mod sweep;
mod tables;

use anabranch_testkit::counting::Counting;

#[global_allocator]
static COUNTING: Counting = Counting;
