//! `anabranch multipath`: a host in user space that speaks Multipath TCP over all interfaces.
//!
//! * [`stack`] is the host: packets in, packets out, without a clock or a device.
//! * [`proxy`] reads what clients of SOCKS and HTTP CONNECT say.
//! * `engine` connects the stack with TUN devices, `relay` with sockets of the kernel.
//! * `links` follows the interfaces, `report` says what each carries.

#[cfg(feature = "program")]
pub mod engine;
#[cfg(feature = "program")]
mod links;
#[cfg(feature = "program")]
mod program;
pub mod proxy;
#[cfg(feature = "program")]
mod relay;
#[cfg(feature = "program")]
mod report;
pub mod stack;

#[cfg(feature = "program")]
pub use program::{Arguments, main, program, run};
