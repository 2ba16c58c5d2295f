//! The papers' experiments as data, statistics over their runs, published targets, and reports. This crate
//! never implements a protocol or a network: it describes scenarios, lets the simulator run them and sums up.
//! It reads no clock and no file; what comes out depends on parameters, seed and number of runs alone, never
//! on the number of threads.
//!
//! Code map: [`experiment`] runs experiments in memory and sums up what came out; [`set`] is the
//! experiment of the SET paper, its figures ([`set::figures`]) and its claims ([`set::claims`]); [`dtc`] that of the
//! paper on caching nodes; [`mptcp`] that of the paper on multipath TCP over IEEE 802.15.4; [`rdca`] that of the paper on
//! sink-driven rate control over IEEE 802.11; [`sockbuf`] that of the paper on send buffers of a striped connection;
//! [`campaign`] runs many random cases in search of a bad one; [`plan`] asks the closed forms; [`targets`] are the published
//! numbers, [`errata`] what is wrong with them; [`stats`] and [`plot`] turn runs into statements and pictures, [`verdict`] judges; [`reproduction`] is a paper as
//! [`report`] writes it; [`work`] says how much is run, and who watches.

#![forbid(unsafe_code)]

pub mod campaign;
#[cfg(test)]
mod completeness;
pub mod dtc;
pub mod errata;
pub mod experiment;
pub mod mptcp;
pub mod plan;
pub mod plot;
pub mod rdca;
pub mod report;
pub mod reproduction;
pub mod set;
pub mod sockbuf;
pub mod targets;
pub mod verdict;
pub mod work;

pub use anabranch_stats as stats;

/// Every experiment that there is.
pub const EXPERIMENTS: &[&dyn experiment::Experiment] =
    &[&set::Set, &dtc::Dtc, &mptcp::Mptcp, &rdca::Rdca, &sockbuf::Sockbuf];

/// Every paper that can be reproduced, in the order of the report.
pub const PAPERS: [&reproduction::Paper; 5] = [
    &set::reproduction::PAPER,
    &dtc::reproduction::PAPER,
    &mptcp::reproduction::PAPER,
    &rdca::reproduction::PAPER,
    &sockbuf::reproduction::PAPER,
];

/// Runs that [`reproduce`] makes of a paper, each of which is told of.
///
/// # Panics
///
/// If it is none of [`PAPERS`].
pub fn planned(paper: &reproduction::Paper, options: &reproduction::Options) -> usize {
    match paper.id {
        "set" => set::reproduction::planned(options),
        "dtc" => dtc::reproduction::planned(options),
        "mptcp" => mptcp::reproduction::planned(options),
        "rdca" => rdca::reproduction::planned(options),
        "sockbuf" => sockbuf::reproduction::planned(options),
        other => unreachable!("`{other}` is no paper of ours"),
    }
}

/// Measures a paper again, on all threads; `watch` is told of every run that is over. What comes out depends on the options alone.
///
/// # Errors
///
/// A run that could not be made, a picture that could not be drawn.
///
/// # Panics
///
/// If it is none of [`PAPERS`].
pub fn reproduce(
    paper: &reproduction::Paper,
    options: reproduction::Options,
    watch: &(dyn Fn() + Sync),
) -> Result<reproduction::Reproduction, reproduction::ReproduceError> {
    let work = work::Work::new(options.runs_of(paper), options.seed).watched(watch);
    match paper.id {
        "set" => set::reproduction::reproduce(options, &work),
        "dtc" => dtc::reproduction::reproduce(options, &work),
        "mptcp" => mptcp::reproduction::reproduce(options, &work),
        "rdca" => rdca::reproduction::reproduce(options, &work),
        "sockbuf" => sockbuf::reproduction::reproduce(options, &work),
        other => unreachable!("`{other}` is no paper of ours"),
    }
}

/// The experiment of that name.
///
/// # Errors
///
/// [`experiment::ParameterError::NoExperiment`], with the nearest name.
pub fn find(name: &str) -> Result<&'static dyn experiment::Experiment, experiment::ParameterError> {
    anabranch_sweep::experiment::find(EXPERIMENTS, name)
}
