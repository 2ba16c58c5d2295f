//! Emulation: the simulated network in real time, behind TUN devices. This crate does not decide
//! what happens to packets. It passes packets to and from the simulator and executes the
//! simulator's events at their times.
//!
//! | module | content |
//! | --- | --- |
//! | [`driver`] | the main loop |
//! | [`device`] | TUN devices and network namespaces |
//! | [`ingress`] | packets from the kernel |
//! | [`commands`] | the commands of a scenario, in the namespaces |
//! | [`clock`] | the clock |
//! | [`lag`] | how late events are |
//! | [`interrupt`] | signals as a file descriptor |
//!
//! A single thread with a blocking `poll` is sufficient. It waits for a few descriptors and the
//! next event, and the simulator's state cannot be shared between threads. An asynchronous runtime
//! would add its scheduling delay to the lag without reducing it.

#![forbid(unsafe_code)]

pub mod clock;
pub mod commands;
pub mod device;
pub mod driver;
mod error;
pub mod ingress;
pub mod interrupt;
pub mod lag;
mod namespace;

pub use commands::{Outcome, Output};
pub use device::Ends;
pub use driver::{Ended, Report};
pub use error::Error;
