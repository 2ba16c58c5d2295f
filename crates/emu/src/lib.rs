//! The simulated network in real time, behind TUN devices. This crate never decides what happens to
//! a packet: it hands packets to the simulator and back, and lets its events happen when their time
//! has come.
//!
//! Code map: [`driver`] is the loop; [`device`] makes devices and namespaces, [`ingress`] reads
//! what comes from the kernel, [`clock`] is the one clock, [`lag`] measures how far events come
//! behind it, [`interrupt`] turns signals into an end.
//!
//! One thread and one blocking `poll` do: all that is ever waited for is a handful of descriptors
//! and the next event, and the simulator in the middle is one state that nothing can share. An
//! asynchronous runtime would add its scheduling to the lag and take nothing off it.

#![forbid(unsafe_code)]

pub mod clock;
pub mod device;
pub mod driver;
mod error;
pub mod ingress;
pub mod interrupt;
pub mod lag;

pub use device::Ends;
pub use driver::{Ended, Report};
pub use error::Error;
