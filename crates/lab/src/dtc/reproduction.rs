//! Section V in the report.

use super::Dtc;
use super::claims;
use super::figures;
use super::tables::Tables;
use crate::reproduction::{self, Figure, Options, Paper, ReproduceError, Reproduction};
use crate::work::Work;

/// The paper.
pub const PAPER: Paper = Paper {
    id: "dtc",
    title: "Distributed TCP Caching for Wireless Sensor Networks",
    citation: "A. Dunkels, J. Alonso, T. Voigt, H. Ritter, 2004.",
    about: "Section V: TCP carries 500 segments over a chain of 6 or 11 lossy hops, with and without nodes that cache \
            segments and repeat them.",
    page: "docs/evidence/dtc-experiments.md",
    runs: 30,
    quick_runs: 5,
    cost: 1_200,
    open: super::open::OPEN,
    reference: &[],
    is_baseline: |id| id.starts_with("dtc.nodtc_"),
    experiment: &Dtc,
    targets: super::TARGETS,
    errata: include_str!("errata.toml"),
    planned,
    reproduce,
};

/// Number of runs that [`reproduce`] makes.
pub fn planned(options: &Options) -> usize {
    Tables::planned(options.runs_of(&PAPER)) + figures::RUNS
}

/// Measures all tables and figures and judges every claim.
///
/// # Errors
///
/// A run failed, or a figure could not be drawn.
pub fn reproduce(options: Options, work: &Work<'_>) -> Result<Reproduction, ReproduceError> {
    let tables = Tables::run(work)?;
    let drawn = figures::draw(&tables, work)?;
    let command = |runs: usize, assignments: &[&str]| {
        let assignments: Vec<String> = assignments.iter().map(|a| (*a).to_owned()).collect();
        options.run_command(&PAPER, runs, &assignments)
    };
    let points: &[&str] = &["mode=tcp,dtc-paper,dtc", "hops=11"];
    let figures = drawn.iter().map(|figure| {
        let runs = if figure.id == "5" { work.runs } else { 1 };
        let flying: &[&str] = &["mode=dtc-paper", "hops=11", "flying_start=on,off"];
        Ok(Figure {
            name: format!("figure-{}", figure.id),
            caption: figure.chart.title.clone(),
            svg: figure.chart.svg()?,
            csv: figure.chart.csv(),
            command: command(runs, if figure.id == "9" { flying } else { points }),
        })
    });
    let figures = figures.collect::<Result<_, ReproduceError>>()?;
    Ok(Reproduction {
        paper: &PAPER,
        options,
        notes: NOTES.map(str::to_owned).to_vec(),
        tables: tables.pages(command),
        figures,
        verdicts: claims::verdicts(&tables, &drawn),
        parameters: reproduction::parameters(&Dtc, &PAPER.targets(), ours),
        errata: PAPER.errata(),
        map: None,
    })
}

const NOTES: [&str; 3] = [
    "The paper's nodes follow its section IV (`mode=dtc-paper`); ours are our own algorithm (`mode=dtc`).",
    "End-to-end retransmissions are time-outs and fast retransmits of the sender (D6), counted, like all transmissions, until the \
     acknowledgement of the last segment arrives, without the handshake (D8).",
    "Figures 6 to 9 are of the first run of the seed, the paper's \"typical run\"; the paper prints them without numbers.",
];

/// The parameter's value in our experiment.
fn ours(name: &str) -> &'static str {
    match name {
        "segments" => "500: segments",
        "segments_short" => "20: segments, Table IV",
        "payload" => "100B: payload",
        "cache_segments" => "1: cache_segments",
        "cache_probability" => "0.5 for the paper's nodes: cache_probability",
        "ack_loss_factor" => "0.5: ack_loss_factor, none on the last hop (D7)",
        "link_ack_loss_factor" => "0.25: link_ack_loss_factor",
        "runs" => "30 unless told otherwise",
        "delayed_acks" => "none",
        _ => "",
    }
}
