//! Fuzz targets for every parser and state machine, and the runner that drives them. Not part of
//! the product.
//!
//! Code map: [`targets`] are functions that take bytes and panic at a fault; [`probe`] records what
//! a target reports while it runs; [`runner`] feeds the targets and keeps inputs that reach
//! something new; [`mutate`] makes new inputs from others; `entropy` repeats with the input;
//! [`crash`] catches, minimises and stores panics, and [`watchdog`] handles inputs that run
//! forever. `README.md` says why the runner is our own.

#![forbid(unsafe_code)]

pub mod crash;
mod entropy;
pub mod mutate;
pub mod probe;
pub mod runner;
pub mod targets;
pub mod watchdog;
