//! Replay pages of event logs.
//!
//! One binary for all files: linking one per file would take longer than compiling them.

mod idle;
mod layout;
mod log;
mod picture;
