//! A deterministic discrete-event network simulator that drives the protocol core.
//!
//! One [`sim::Simulation`] is one run: the same seed and run number give the same bytes on every
//! machine. The crate reads no clock and no entropy, starts no threads and prints nothing.
//!
//! Non-goals: packet formats (`anabranch-wire`), protocols (`anabranch-core`), experiments and
//! statistics (`anabranch-lab`).
//!
//! Code map, from the ground up; a module uses only modules above it in this list:
//!
//! * `math`: functions with equal results on every machine;
//! * [`engine`]: the event queue; [`random`]: named random streams; [`event`]: the kinds of events;
//! * [`air`]: the channel that stations share; [`radio`]: IEEE 802.15.4 on it; [`wifi`]: IEEE
//!   802.11 on it;
//! * [`packet`], [`loss`], [`link`], [`routing`], [`fragment`] and [`network`]: transport of
//!   packets;
//! * [`transport`]: a connection over one path or several;
//! * [`host`]: the connections of a node; [`buffers`]: pools for their send buffers; [`world`]:
//!   hosts, network and time together;
//! * [`address`]: addresses of nodes; [`octets`]: packets as bytes; [`frames`]: link-layer frames;
//!   [`pcapng`]: the capture format;
//! * [`app`]: the interface of applications; [`apps`]: ready-made applications; [`trace`],
//!   [`capture`] and [`events`]: observers; [`probe`]: measurements of a part of a run;
//! * [`sim`]: the run loop.
//!
//! Scenario files and time series are in `anabranch-scenario`.

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
pub mod sim;
pub mod stream;
pub mod trace;
pub mod transport;
pub mod wifi;
pub mod world;
