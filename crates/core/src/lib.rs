//! The transports as sans-IO state machines. This crate never touches a clock, a socket, a file, a
//! thread or a source of entropy: time and randomness are arguments, effects are values.
//!
//! Every machine has four kinds of method and nothing else that acts:
//!
//! * `handle_*(now, input)`: the world happened. Never blocks; remote input never panics, it is
//!   accepted or counted and dropped.
//! * commands (`open`, `write`, `close`, ...): the owner wants something.
//! * `poll_*(now) -> Option<Effect>`: what the machine wants from the world, one value at a time.
//! * `next_timeout() -> Option<Instant>`, answered by `handle_timeout(now)`.
//!
//! A driver calls any number of `handle_*` and commands, then polls until `None`, then asks for the
//! next time-out. It may not call `handle_timeout` before that instant; later is always allowed.
//!
//! Code map: [`time`] and [`segment`] are the vocabulary; [`tcp`] is TCP; [`set`] stripes one file
//! over several split-TCP sessions; [`dtc`] repairs losses on the way; [`mptcp`] is one connection
//! over several paths, which [`paths`] builds; [`rdca`] brings the data of many senders to one
//! sink; [`sockbuf`] divides the send buffers of a host; [`aodv`] finds routes in an ad hoc
//! network. [`policy`] is how somebody else's congestion control, scheduler or striping comes into
//! a configuration.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod aodv;
#[cfg(feature = "packets")]
pub mod dtc;
#[cfg(feature = "packets")]
pub mod mptcp;
pub mod paths;
pub mod policy;
pub mod rdca;
#[cfg(feature = "packets")]
pub mod segment;
pub mod set;
pub mod sockbuf;
#[cfg(feature = "packets")]
pub mod tcp;
pub mod time;
