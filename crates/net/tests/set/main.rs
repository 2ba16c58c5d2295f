//! SET over the kernel's sockets: sender, gateways and node in one process, through the loop device.

mod faults;
mod goodput;
mod resume;
mod transfers;
mod world;
