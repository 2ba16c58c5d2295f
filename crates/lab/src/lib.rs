//! The papers' experiments as data, statistics over their runs, published targets, and reports.
//! This crate never implements a protocol or a network: it describes scenarios, lets the simulator
//! run them and sums up. It reads no clock and no file; what comes out depends on parameters, seed
//! and number of runs alone, never on the number of threads.
//!
//! Code map: [`experiment`] runs experiments in memory and sums up what came out; [`set`] is the
//! experiment of the SET paper, its figures ([`set::figures`]) and its claims ([`set::claims`]);
//! [`dtc`] that of the paper on caching nodes; [`mptcp`] that of the paper on multipath TCP over
//! IEEE 802.15.4; [`rdca`] that of the paper on sink-driven rate control over IEEE 802.11;
//! [`sockbuf`] that of the paper on send buffers of a striped connection; [`plan`] asks the closed
//! forms; [`targets`] are the published numbers, [`errata`] what is wrong with them; [`stats`] and
//! [`plot`] turn runs into statements and pictures, [`verdict`] judges; [`reproduction`] is a paper
//! as [`report`] writes it; [`robustness`] measures it in many settings of what it leaves [`open`];
//! [`work`] says how much is run, and who watches.

#![forbid(unsafe_code)]

#[cfg(test)]
mod completeness;
pub mod dtc;
pub mod errata;
pub mod experiment;
pub mod mptcp;
pub mod open;
pub mod plan;
pub mod plot;
pub mod rdca;
pub mod report;
pub mod reproduction;
pub mod robustness;
pub mod set;
pub mod sockbuf;
pub mod targets;
pub mod verdict;
pub mod work;

pub use anabranch_stats as stats;

/// Every paper that can be reproduced, in the order of the report.
pub const PAPERS: [&reproduction::Paper; 5] = [
    &set::reproduction::PAPER,
    &dtc::reproduction::PAPER,
    &mptcp::reproduction::PAPER,
    &rdca::reproduction::PAPER,
    &sockbuf::reproduction::PAPER,
];

/// Every experiment that there is: that of each paper.
pub const EXPERIMENTS: &[&dyn experiment::Experiment] = &{
    let mut all = [PAPERS[0].experiment; PAPERS.len()];
    let mut i = 1;
    while i < all.len() {
        all[i] = PAPERS[i].experiment;
        i += 1;
    }
    all
};

/// The paper of that name.
pub fn paper(id: &str) -> Option<&'static reproduction::Paper> {
    PAPERS.into_iter().find(|paper| paper.id == id)
}

/// The experiment of that name.
///
/// # Errors
///
/// [`experiment::ParameterError::NoExperiment`], with the nearest name.
pub fn find(name: &str) -> Result<&'static dyn experiment::Experiment, experiment::ParameterError> {
    anabranch_sweep::experiment::find(EXPERIMENTS, name)
}
