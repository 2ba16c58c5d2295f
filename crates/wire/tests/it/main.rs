//! Tests of wire formats, byte by byte and against other implementations.
//!
//! One binary for all files: linking one per file would take longer than compiling them.

mod aodv;
mod coap;
mod ip_properties;
mod ip_vectors;
mod rdca;
mod rpl;
mod set;
mod sixlowpan;
