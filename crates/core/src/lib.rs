//! The transport protocols as sans-IO state machines.
//!
//! This crate never reads a clock, opens a socket or file, starts a thread or draws random numbers.
//! Time and randomness are arguments; effects are return values. The same machine therefore runs in
//! the simulator, in emulation and in a deployed node.
//!
//! Every machine has four kinds of method:
//!
//! * `handle_*(now, input)` reports an event to the machine. It never blocks. Remote input never
//!   causes a panic: the machine accepts it, or counts and drops it.
//! * Commands (`open`, `write`, `close`, ...) carry requests of the owner.
//! * `poll_*(now) -> Option<Effect>` returns the next effect that the driver has to carry out.
//! * `next_timeout() -> Option<Instant>` returns the next deadline; `handle_timeout(now)` answers
//!   it.
//!
//! A driver calls any number of `handle_*` methods and commands, polls until `None`, and then asks
//! for the next time-out. It must not call `handle_timeout` before that instant; a late call is
//! always allowed.
//!
//! Code map:
//!
//! * [`time`] and [`segment`] define the shared types.
//! * [`tcp`] is TCP.
//! * [`set`] stripes one file over several split-TCP sessions.
//! * [`dtc`] caches TCP segments in forwarding nodes and repairs losses there.
//! * [`mptcp`] runs one connection over several paths; [`paths`] builds these paths.
//! * [`rdca`] collects data from many senders at one sink.
//! * [`coap`] carries a body in blocks over CoAP.
//! * [`sockbuf`] divides a pool of send buffers among the connections of a host.
//! * [`aodv`] finds routes in an ad hoc network.
//! * [`policy`] lets a configuration name a user's congestion control, scheduler or striping
//!   policy.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod aodv;
pub mod coap;
#[cfg(feature = "packets")]
pub mod dtc;
#[cfg(feature = "packets")]
pub mod mptcp;
pub mod paths;
pub mod policy;
mod rates;
pub mod rdca;
#[cfg(feature = "packets")]
pub mod segment;
pub mod set;
pub mod sockbuf;
#[cfg(feature = "packets")]
pub mod tcp;
pub mod time;
