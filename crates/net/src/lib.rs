//! The transports over the kernel's sockets. This crate never decides how a transport behaves: it
//! reads how sockets stand, asks [`anabranch_core`], and carries out the answer. Linux only, 4.12
//! or newer.
//!
//! Code map: [`tcp_info`] is what the kernel knows of a connection, [`buffers`] how much memory a
//! socket has and may have, [`sockbuf`] holds the send buffers of several sockets under one budget,
//! [`set`] is SET's sender, gateway and node, [`clock`] is the one clock.
//!
//! All that is asked of the kernel goes through `os`, the one file with `unsafe` in it.

#![cfg(target_os = "linux")]

pub mod buffers;
pub mod clock;
mod os;
pub mod set;
pub mod sockbuf;

pub mod tcp_info;
