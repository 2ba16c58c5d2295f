//! The reproduction of the papers.
//!
//! One binary for all files: linking one per file would take longer than compiling them.

mod completeness;
