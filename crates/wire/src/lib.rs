//! Wire formats: conversion between protocol messages and bytes. The crate has no clock and no
//! socket. Only [`set::Decoder`] and [`ip::Reassembler`] keep input between calls.
//!
//! | module | format |
//! | --- | --- |
//! | [`tcp`], [`mptcp`] | TCP segments and options, with those of Multipath TCP |
//! | [`ip`] | IPv4 and IPv6 packets, with fragments and checksums |
//! | [`ecn`] | the ECN bits of IP headers |
//! | [`set`] | messages of the SET session layer, defined by this project |
//! | [`rdca`] | datagrams of RDCA, defined by this project |
//! | [`coap`] | messages of CoAP, with block-wise transfers |
//! | [`ieee802154`], [`ieee80211`] | radio frames |
//! | [`sixlowpan`] | IPv6 packets in frames of IEEE 802.15.4 |
//! | [`icmpv6`], [`rpl`] | ICMPv6 messages and RPL, the routing protocol carried in them |
//! | [`aodv`] | AODV, the routing protocol of ad hoc networks |
//! | [`eventlog`] | constants of the event log of a run |
//!
//! smoltcp's `wire` module reads and writes IP and TCP headers; its types do not appear in the
//! public interface.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod aodv;
pub mod coap;
pub mod ecn;
pub mod eventlog;
#[cfg(feature = "ip")]
pub mod icmpv6;
pub mod ieee80211;
pub mod ieee802154;
#[cfg(feature = "ip")]
pub mod ip;
pub mod mptcp;
pub mod prefix;
pub mod rdca;
mod reader;
#[cfg(feature = "ip")]
pub mod rpl;
pub mod set;
#[cfg(feature = "ip")]
pub mod sixlowpan;
pub mod tcp;
