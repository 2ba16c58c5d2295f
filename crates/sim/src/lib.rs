//! A deterministic discrete-event network that drives the core. This crate never reads a clock or
//! entropy, never starts a thread and never prints: one [`sim::Simulation`] is one run, from a seed
//! and a run number to the same bytes on every machine.
//!
//! Not here: bytes of packets (the wire's), protocols (the core's), experiments and statistics (the
//! lab's).
//!
//! Code map, from the ground up; nothing imports downward in this list:
//!
//! * `math` is a few functions that are the same on every machine;
//! * [`engine`] is the event queue, [`random`] the named random streams, [`event`] what can be
//!   pending;
//! * [`air`] is the channel that stations share, [`radio`] IEEE 802.15.4 and [`wifi`] IEEE 802.11
//!   on it;
//! * [`packet`], [`loss`], [`link`], [`routing`], [`fragment`] and [`network`] move packets;
//! * [`transport`] is a connection, over one path or several;
//! * [`host`] holds the connections of a node, [`buffers`] keeps their send buffers within a pool,
//!   [`world`] joins hosts, network and time;
//! * [`address`] gives nodes addresses, [`octets`] makes octets of packets, [`frames`] frames of
//!   these, [`pcapng`] writes captures;
//! * [`app`] is what an application sees, [`apps`] are ready ones, [`trace`] watches, and so do
//!   [`capture`], [`events`] and [`series`], which writes [`csv`]; [`probe`] measures a part of a
//!   run;
//! * [`sim`] is the run loop;
//! * [`scenario`] reads a network and its traffic from a file.

#![forbid(unsafe_code)]

pub mod address;
pub mod air;
pub mod app;
pub mod apps;
pub mod buffers;
pub mod capture;
mod control;
pub mod csv;
pub mod engine;
pub mod event;
pub mod events;
pub mod fragment;
pub mod frames;
pub mod host;
pub mod jitter;
pub mod link;
pub mod loss;
pub mod math;
pub mod network;
mod numbered;
pub mod octets;
pub mod packet;
pub mod pcapng;
pub mod probe;
pub mod radio;
pub mod random;
pub mod routing;
pub mod scenario;
pub mod series;
pub mod sim;
pub mod stream;
pub mod trace;
pub mod transport;
pub mod wifi;
pub mod world;
