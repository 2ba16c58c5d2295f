//! The emulator with the kernel's network stack at the other end.
//!
//! One binary for all files: linking one per file would take longer than compiling them.

mod linux_tcp;
