//! A host in user space that speaks Multipath TCP.
//!
//! * [`stack`] is the host: packets in, packets out, without a clock or a device.
//! * [`proxy`] reads what clients of SOCKS and HTTP CONNECT say.

pub mod proxy;
pub mod stack;
