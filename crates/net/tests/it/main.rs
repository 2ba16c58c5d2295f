//! Tests of the transports over the kernel's sockets.
//!
//! One binary for all files: linking one per file would take longer than compiling them.

mod rdca;
mod set;
mod sockbuf;
