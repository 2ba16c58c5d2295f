//! Integration tests of simulations from scenario files.
//!
//! One binary for all files: linking one binary per file would take longer than compiling them.

mod caching;
mod csl_capture;
mod events;
mod marks;
mod turns;
