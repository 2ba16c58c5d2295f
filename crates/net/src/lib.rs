//! The transports over the kernel's sockets, for Linux 4.12 or newer.
//!
//! This crate does not implement transport behaviour. It reads the state of sockets, passes it to
//! [`anabranch_core`], and carries out the resulting effects.
//!
//! | module | content |
//! | --- | --- |
//! | [`set`] | SET sender, gateway and node |
//! | [`rdca`] | RDCA senders and sink |
//! | [`sockbuf`] | one memory budget for the send buffers of several sockets, also of other processes |
//! | [`buffers`] | socket memory: current use and limits |
//! | [`tcp_info`] | the kernel's statistics of a TCP connection |
//! | [`clock`] | the monotonic clock |
//!
//! All raw system calls go through `os`, the only file with `unsafe` code.

#![cfg(target_os = "linux")]

pub mod buffers;
pub mod clock;
mod os;
#[cfg(feature = "rdca")]
pub mod rdca;
pub mod set;
#[cfg(feature = "sockbuf")]
pub mod sockbuf;

pub mod tcp_info;
#[cfg(feature = "rdca")]
mod timer;
