//! Bytes to meaning and back. This crate never acts: no clock, no socket, no state between two
//! calls.
//!
//! Code map: [`tcp`] is the segment and its options, [`mptcp`] those of Multipath TCP, [`ip`] the
//! packet around it (IPv4 and IPv6, with fragments and checksums); [`set`], the messages of the SET
//! session layer, and [`rdca`], the datagrams of RDCA, are ours. On a radio, [`ieee802154`] and
//! [`ieee80211`] are the frames, [`sixlowpan`] makes an IPv6 packet fit into frames, and [`rpl`] is
//! the routing, in messages of [`icmpv6`]; [`aodv`] is the routing of an ad hoc network.
//! [`eventlog`] is what stands for what in a run's log. IP and TCP are read and written by
//! smoltcp's `wire` module, which no other crate sees.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod aodv;
pub mod ecn;
pub mod eventlog;
#[cfg(feature = "ip")]
pub mod icmpv6;
pub mod ieee80211;
pub mod ieee802154;
#[cfg(feature = "ip")]
pub mod ip;
pub mod mptcp;
pub mod rdca;
mod reader;
#[cfg(feature = "ip")]
pub mod rpl;
pub mod set;
#[cfg(feature = "ip")]
pub mod sixlowpan;
pub mod tcp;
