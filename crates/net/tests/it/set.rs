//! Tests of SET over the kernel's sockets: sender, gateways and node in one process, over the
//! loopback device.

mod faults;
mod goodput;
mod hostile;
mod keys;
mod pace;
mod resume;
mod security;
mod transfers;
mod world;
