//! Section VIII in the report.

use super::Mptcp;
use super::claims;
use super::figures;
use super::tables::Tables;
use crate::reproduction::{self, Figure, Options, Paper, ReproduceError, Reproduction, Table};
use crate::work::Work;

/// The paper.
pub const PAPER: Paper = Paper {
    id: "mptcp",
    title: "Multipath TCP Over Multi-Hop Heterogeneous Wireless IoT Networks",
    citation: "J. Guo, K. Parsons, Y. Nagai, T. Sumi, N. Sakaguchi, H. Tsuchida, P. Wang, P. Orlik. IEEE International Conference on \
               Communications (ICC), 2024; MERL TR2024-071.",
    about: "Section VIII: 10 to 50 nodes with IEEE 802.15.4 radios deliver 100 packets each to a data centre, over several hops \
            and up to three paths, by conventional multipath TCP (C) and by the proposed scheme (P).",
    page: "docs/evidence/mptcp-experiments.md",
    runs: 30,
    quick_runs: 3,
    cost: 65_000,
    open: super::open::OPEN,
    reference: super::open::REFERENCE,
    is_baseline: |id| id.ends_with(".C"),
    experiment: &Mptcp,
    targets: super::TARGETS,
    errata: include_str!("errata.toml"),
    planned,
    reproduce,
};

/// Number of runs that [`reproduce`] makes.
pub fn planned(options: &Options) -> usize {
    Tables::planned(options.runs_of(&PAPER))
}

/// Measures all numbers and figures and judges every claim.
///
/// # Errors
///
/// A run failed, or a figure could not be drawn.
pub fn reproduce(options: Options, work: &Work<'_>) -> Result<Reproduction, ReproduceError> {
    written(options, &Tables::run(work)?)
}

/// Arranges the measurements for the report.
pub(crate) fn written(options: Options, tables: &Tables) -> Result<Reproduction, ReproduceError> {
    let all_runs = options.runs_of(&PAPER);
    let command = |runs, points: &[&str]| {
        let schemes = ["scheme=conventional,proposed,ours"];
        let assignments: Vec<String> = schemes.iter().chain(points).map(|a| (*a).to_owned()).collect();
        options.run_command(&PAPER, runs, &assignments)
    };
    let squares = command(all_runs, &["nodes=10,20,30,40,50"]);
    let figures = figures::draw(tables).into_iter().map(|figure| {
        let (runs, points): (usize, &[&str]) = match figure.id {
            "2" => (1, &["nodes=50"]),
            "3" | "4" => (1, &["nodes=10,20,30,40,50"]),
            "5" => (all_runs, &["nodes=10,20,30,40,50"]),
            "6" => (1, &["deployment=sunflower", "nodes=50"]),
            "7" | "8" => (1, &["deployment=sunflower,corner", "nodes=25,50", "multi_link=0,1"]),
            "9" => (all_runs, &["deployment=sunflower,corner", "nodes=25,50", "multi_link=0,1"]),
            "10" => (1, &["deployment=corner", "nodes=25"]),
            _ => (1, &["deployment=corner", "nodes=25", "multi_link=1"]),
        };
        Ok(Figure {
            name: format!("figure-{}", figure.id),
            caption: figure.picture.title().to_owned(),
            svg: figure.picture.svg()?,
            csv: figure.picture.csv(),
            command: command(runs, points),
        })
    });
    let figures = figures.collect::<Result<_, ReproduceError>>()?;
    let mut pages = tables.pages(&squares);
    pages.push(numbers(tables, squares));
    Ok(Reproduction {
        paper: &PAPER,
        options,
        notes: NOTES.map(str::to_owned).to_vec(),
        tables: pages,
        figures,
        verdicts: claims::verdicts(tables),
        parameters: reproduction::parameters(&Mptcp, &PAPER.targets(), ours),
        errata: PAPER.errata(),
        map: None,
    })
}

/// All numbers in one file, with full precision.
fn numbers(tables: &Tables, command: String) -> Table {
    Table {
        name: "numbers".to_owned(),
        title: "All numbers with all their digits".to_owned(),
        note: "Only as a file: the four tables above have the same numbers.".to_owned(),
        head: Vec::new(),
        rows: Vec::new(),
        csv: tables.csv(),
        command,
    }
}

const NOTES: [&str; 4] = [
    "C is `scheme=conventional`. P is `scheme=proposed`: all paths at once, by the scheduler of section VII, with windows that explore and \
     hold. Ours is `scheme=ours`: one path at a time, the others stand by.",
    "What the paper leaves open (M27, M28) is what comes nearest to its numbers of C, of 200 settings: `lab robustness mptcp`.",
    "Where the paper's numbers contradict each other (M24, M25, M26) the one that follows from its others stands in.",
    "Maps and curves over time are of the first run of the seed, as the paper's are of one; distributions are of all runs. Dashes \
     are C, solid lines P, dots ours. The paper prints its figures without numbers.",
];

/// The parameter's value in our experiment.
fn ours(name: &str) -> &'static str {
    match name {
        "bw15" => "100 kbit/s: phy=fsk100",
        "bw5g" => "10 Mbit/s, 15 ms each way",
        "packets_per_node" => "100: packets",
        "payload" => "100B: payload",
        "lambda" => "10 packets/s of each node: rate",
        "NP_thr" => "3: paths",
        "sst_start" => "16",
        "K" => "without end: queue",
        "rwnd" => "more than there is to send",
        "cwnd_min" => "1 to 5, linear in hops",
        "cwnd_max" => "20 to 10, linear in hops",
        "rto" => "20 s a hop, 20 to 80 s",
        _ => "",
    }
}
