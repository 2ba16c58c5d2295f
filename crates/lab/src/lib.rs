//! The papers' experiments: their parameters and scenarios, statistics over runs, published
//! numbers, verdicts and reports.
//!
//! This crate implements no protocol or network: it describes scenarios, lets the simulator run
//! them, and summarises the results. It reads no clock and no file. Results depend only on
//! parameters, seed and number of runs, never on the number of threads.
//!
//! Code map:
//!
//! * [`experiment`] runs experiments in memory and summarises the results;
//! * [`set`], [`dtc`], [`mptcp`], [`rdca`] and [`sockbuf`] are the experiments of the papers on
//!   SET, on caching nodes, on multipath TCP over IEEE 802.15.4, on sink-driven rate control over
//!   IEEE 802.11, and on send buffers of a striped connection. Each has modules for its figures (as
//!   in [`set::figures`]) and claims ([`set::claims`]);
//! * [`plan`] evaluates the closed forms;
//! * [`targets`] holds the published numbers, and [`errata`] the errors in the papers;
//! * [`stats`] and [`plot`] turn runs into statistics and figures, and [`verdict`] judges claims;
//! * [`reproduction`] is a paper as [`report`] writes it;
//! * [`robustness`] measures a paper in many settings of the parameters that it leaves [`open`];
//! * [`work`] says how many runs to make, and who is told of progress.

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

/// Papers that can be reproduced, in the order of the report.
pub const PAPERS: [&reproduction::Paper; 5] = [
    &set::reproduction::PAPER,
    &dtc::reproduction::PAPER,
    &mptcp::reproduction::PAPER,
    &rdca::reproduction::PAPER,
    &sockbuf::reproduction::PAPER,
];

/// All experiments: one per paper.
pub const EXPERIMENTS: &[&dyn experiment::Experiment] = &{
    let mut all = [PAPERS[0].experiment; PAPERS.len()];
    let mut i = 1;
    while i < all.len() {
        all[i] = PAPERS[i].experiment;
        i += 1;
    }
    all
};

/// The paper with this identifier.
pub fn paper(id: &str) -> Option<&'static reproduction::Paper> {
    PAPERS.into_iter().find(|paper| paper.id == id)
}

/// The experiment with this name.
///
/// # Errors
///
/// [`experiment::ParameterError::NoExperiment`], with the most similar name.
pub fn find(name: &str) -> Result<&'static dyn experiment::Experiment, experiment::ParameterError> {
    anabranch_sweep::experiment::find(EXPERIMENTS, name)
}
