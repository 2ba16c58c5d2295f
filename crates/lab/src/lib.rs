//! The papers' experiments as data, statistics over their runs, published targets, and reports. This crate
//! never implements a protocol or a network: it describes scenarios, lets the simulator run them and sums up.
//! It reads no clock and no file; what comes out depends on parameters, seed and number of runs alone, never
//! on the number of threads.
//!
//! Code map: [`experiment`] is what every experiment looks like and how a grid of it is run; [`set`] is the
//! experiment of the SET paper, its figures ([`set::figures`]) and its claims ([`set::claims`]); [`dtc`] that of the
//! paper on caching nodes; [`mptcp`] that of the paper on multipath TCP over IEEE 802.15.4; [`rdca`] that of the paper on
//! sink-driven rate control over IEEE 802.11; [`sockbuf`] that of the paper on send buffers of a striped connection;
//! [`campaign`] runs many random cases in search of a bad one; [`targets`] are the published numbers;
//! [`stats`] and [`plot`] turn runs into statements and pictures.

#![forbid(unsafe_code)]

pub mod campaign;
pub mod dtc;
pub mod experiment;
pub mod mptcp;
mod places;
pub mod plot;
pub mod rdca;
pub mod set;
pub mod sockbuf;
pub mod targets;
pub mod verdict;

pub use anabranch_model::stats;

/// Every experiment that there is.
pub const EXPERIMENTS: &[&dyn experiment::Experiment] =
    &[&set::Set, &dtc::Dtc, &mptcp::Mptcp, &rdca::Rdca, &sockbuf::Sockbuf];

/// The experiment of that name.
///
/// # Errors
///
/// [`experiment::ParameterError::NoExperiment`], with the name that was probably meant.
pub fn find(name: &str) -> Result<&'static dyn experiment::Experiment, experiment::ParameterError> {
    EXPERIMENTS.iter().copied().find(|e| e.name() == name).ok_or_else(|| {
        let known: Vec<&str> = EXPERIMENTS.iter().map(|e| e.name()).collect();
        experiment::ParameterError::no_experiment(name, &known)
    })
}
