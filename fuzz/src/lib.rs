//! Fuzz targets for every parser and machine, and the runner that drives them. Never part of the
//! product.
//!
//! Code map: [`targets`] are functions from octets to a panic or none; [`probe`] is what a target
//! tells of itself while it runs; [`runner`] feeds them and keeps what shows something new;
//! [`mutate`] makes an input of others; [`crash`] catches, shrinks and stores, [`watchdog`] does
//! the same for what never ends. `README.md` says why the runner is our own.

#![forbid(unsafe_code)]

pub mod crash;
pub mod mutate;
pub mod probe;
pub mod runner;
pub mod targets;
pub mod watchdog;
