//! `anabranch lab reproduce`: a paper's figures and claims beside ours, as files.

use std::path::{Path, PathBuf};

use anabranch_lab::plot::ChartError;
use anabranch_lab::set::{claims, figures};
use anabranch_lab::verdict::Verdict;
use anabranch_lab::{dtc, mptcp, rdca, sockbuf};

use crate::error::Error;
use crate::output;

/// Options of `lab reproduce`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The paper
    #[arg(value_parser = ["set", "dtc", "mptcp", "rdca", "sockbuf"])]
    paper: String,
    /// Where the files go; made if it is not there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Fewer points and runs: minutes become seconds
    #[arg(long)]
    quick: bool,
    /// Runs of every random point
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Root of all random streams
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn main(arguments: &Arguments) -> Result<(), Error> {
    let folder =
        arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("reproduce-{}", arguments.paper)));
    std::fs::create_dir_all(&folder).map_err(|error| Error::unwritable(&folder, &error))?;
    let verdicts = match arguments.paper.as_str() {
        "dtc" => reproduce_dtc(arguments, &folder)?,
        "mptcp" => reproduce_mptcp(arguments, &folder)?,
        "rdca" => reproduce_rdca(arguments, &folder)?,
        "sockbuf" => reproduce_sockbuf(arguments, &folder)?,
        _ => reproduce_set(arguments, &folder)?,
    };
    for verdict in &verdicts {
        output::text(&format!("{:41} {:10} {}\n", verdict.id, verdict.word(), verdict.measured))?;
    }
    output::text(&format!("written to {}\n", folder.display()))
}

fn reproduce_set(arguments: &Arguments, folder: &Path) -> Result<Vec<Verdict>, Error> {
    let grid = if arguments.quick { figures::Grid::Quick } else { figures::Grid::Full };
    let runs = arguments.runs.map_or(if arguments.quick { 2 } else { 10 }, |n| n as usize);
    let mut drawn = Vec::new();
    for panel in figures::panels(grid) {
        eprintln!("figure {}", panel.id);
        let panel = panel.run(runs, arguments.seed)?;
        picture(folder, &panel.id, &panel.chart.csv(), panel.chart.svg())?;
        drawn.push(panel);
    }
    let verdicts = claims::verdicts(&drawn, runs, arguments.seed)?;
    write(folder, "claims.md", &claims::markdown(&verdicts, grid, runs, arguments.seed))?;
    Ok(verdicts)
}

fn reproduce_dtc(arguments: &Arguments, folder: &Path) -> Result<Vec<Verdict>, Error> {
    let runs = arguments.runs.map_or(if arguments.quick { 5 } else { 30 }, |n| n as usize);
    eprintln!("tables I to IV");
    let tables = dtc::tables::Tables::run(runs, arguments.seed)?;
    for (name, text) in tables.csv() {
        write(folder, name, &text)?;
    }
    write(folder, "tables.md", &tables.markdown(runs, arguments.seed))?;
    eprintln!("figures 5 to 9");
    let drawn = dtc::figures::draw(&tables, arguments.seed)?;
    for figure in &drawn {
        picture(folder, figure.id, &figure.chart.csv(), figure.chart.svg())?;
    }
    let verdicts = dtc::claims::verdicts(&tables, &drawn, runs, arguments.seed)?;
    write(folder, "claims.md", &dtc::claims::markdown(&verdicts, runs, arguments.seed))?;
    Ok(verdicts)
}

fn reproduce_mptcp(arguments: &Arguments, folder: &Path) -> Result<Vec<Verdict>, Error> {
    let runs = arguments.runs.map_or(if arguments.quick { 3 } else { 30 }, |n| n as usize);
    eprintln!("section VIII: {} deployments, {runs} runs", mptcp::tables::DEPLOYMENTS.len());
    let tables = mptcp::tables::Tables::run(runs, arguments.seed)?;
    write(folder, "numbers.csv", &tables.csv())?;
    write(folder, "numbers.md", &tables.markdown(runs, arguments.seed))?;
    eprintln!("figures 2 to 11");
    for figure in mptcp::figures::draw(&tables) {
        picture(folder, figure.id, &figure.picture.csv(), figure.picture.svg())?;
    }
    let verdicts = mptcp::claims::verdicts(&tables);
    write(folder, "claims.md", &mptcp::claims::markdown(&verdicts, runs, arguments.seed))?;
    Ok(verdicts)
}

fn reproduce_rdca(arguments: &Arguments, folder: &Path) -> Result<Vec<Verdict>, Error> {
    use rdca::sweeps::{Grid, Sweeps};
    let grid = if arguments.quick { Grid::Quick } else { Grid::Full };
    let runs = arguments.runs.map_or(if arguments.quick { 2 } else { 50 }, |n| n as usize);
    eprintln!("section 4: two sweeps, {runs} runs");
    let sweeps = Sweeps::run(grid, runs, arguments.seed)?;
    for table in rdca::tables::TABLES {
        write(folder, &format!("table-{}.csv", table.id), &table.csv(&sweeps))?;
    }
    write(folder, "numbers.md", &rdca::tables::markdown(&sweeps, runs, arguments.seed))?;
    for figure in rdca::figures::draw(&sweeps) {
        picture(folder, figure.id, &figure.chart.csv(), figure.chart.svg())?;
    }
    let verdicts = rdca::claims::verdicts(&sweeps);
    write(folder, "claims.md", &rdca::claims::markdown(&verdicts, runs, arguments.seed))?;
    Ok(verdicts)
}

fn reproduce_sockbuf(arguments: &Arguments, folder: &Path) -> Result<Vec<Verdict>, Error> {
    use sockbuf::response::{self, Response};
    use sockbuf::settings::{Grid, Measured};
    let grid = if arguments.quick { Grid::Quick } else { Grid::Full };
    let runs = arguments.runs.map_or(if arguments.quick { 2 } else { 30 }, |n| n as usize);
    eprintln!("section 4.2: four settings, {runs} runs");
    let measured = Measured::run(grid, runs, arguments.seed)?;
    write(folder, "numbers.csv", &sockbuf::tables::csv(&measured))?;
    write(folder, "numbers.md", &sockbuf::tables::markdown(&measured, runs, arguments.seed))?;
    eprintln!("the loop");
    let responses = Response::run_all(grid, arguments.seed)?;
    write(folder, "loop.md", &response::markdown(&responses, arguments.seed))?;
    eprintln!("figures 8 to 16");
    for figure in sockbuf::figures::draw(&measured, &responses) {
        picture(folder, figure.id, &figure.chart.csv(), figure.chart.svg())?;
    }
    let verdicts = sockbuf::claims::verdicts(&measured, &responses);
    write(folder, "claims.md", &sockbuf::claims::markdown(&verdicts, runs, arguments.seed))?;
    Ok(verdicts)
}

fn picture(folder: &Path, id: &str, csv: &str, svg: Result<String, ChartError>) -> Result<(), Error> {
    write(folder, &format!("figure-{id}.csv"), csv)?;
    let svg = svg.map_err(|error| Error::job(error.to_string()))?;
    write(folder, &format!("figure-{id}.svg"), &svg)
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), Error> {
    let path = folder.join(name);
    std::fs::write(&path, text).map_err(|error| Error::unwritable(&path, &error))
}
