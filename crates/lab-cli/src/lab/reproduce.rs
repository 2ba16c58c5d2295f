//! `anabranch lab reproduce`: measures the papers' results again, and writes one page with a folder
//! of figures and data for each paper.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_deploy::error::Error;
use anabranch_deploy::output;
use anabranch_lab::PAPERS;
use anabranch_lab::report;
use anabranch_lab::reproduction::{Extent, Figure, Options, Paper, Reproduction};
use anabranch_lab::verdict::{Holds, tally};
use serde::Serialize;
use tempfile::TempDir;

use super::progress::Progress;
use super::{not_reproduced, robustness, until_interrupted};

/// Options of `lab reproduce`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Papers to reproduce [default: all]
    #[arg(value_name = "PAPER", value_parser = PAPERS.map(|paper| paper.id))]
    papers: Vec<String>,
    /// Write the report to this folder, which is created if missing; files of the same names are
    /// replaced
    #[arg(long, value_name = "DIR", default_value = "reproduce")]
    out: PathBuf,
    /// Measure fewer points and runs: seconds instead of minutes
    #[arg(long)]
    quick: bool,
    /// Number of runs of each point with random input [default: a number for each paper]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Seed of all runs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Include the results that `lab robustness` has written to this folder
    #[arg(long, value_name = "DIR")]
    robustness: Option<PathBuf>,
    /// Print the verdicts as JSON, one object per line
    #[arg(long)]
    json: bool,
    /// Do not show progress
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn main(arguments: &Arguments) -> Result<(), Error> {
    let named = |paper: &Paper| arguments.papers.is_empty() || arguments.papers.iter().any(|p| p == paper.id);
    let papers: Vec<&'static Paper> = PAPERS.into_iter().filter(|paper| named(paper)).collect();
    let options = Options {
        extent: Extent::of(arguments.quick),
        runs: arguments.runs.map(|n| n as usize),
        seed: arguments.seed,
    };
    let maps = match &arguments.robustness {
        Some(folder) => maps(folder, &papers)?,
        None => Vec::new(),
    };
    // Create the folder before the first run, so that a bad path fails at once.
    let place = Place::make(&arguments.out)?;
    let total = papers.iter().map(|paper| paper.cost * paper.planned(&options) as u64).sum();
    let progress = Arc::new(if arguments.quiet { Progress::none() } else { Progress::new(total) });
    let worker = Arc::clone(&progress);
    let made = until_interrupted(move || reproduce(&papers, options, &worker));
    progress.finish();
    let mut reproductions = made??;
    for (reproduction, map) in reproductions.iter_mut().zip(maps) {
        reproduction.map = map;
    }
    place.fill(&reproductions)?;
    for reproduction in &reproductions {
        said(reproduction, arguments.json)?;
    }
    if arguments.json {
        return Ok(());
    }
    output::text(&format!("written to {}\n", arguments.out.join(REPORT).display()))
}

/// Reads the robustness figure of each paper from a folder of `lab robustness`; `None` for a paper
/// without one.
fn maps(folder: &Path, papers: &[&'static Paper]) -> Result<Vec<Option<Figure>>, Error> {
    let one = |paper: &&'static Paper| Ok(robustness::read(folder, paper)?.map(|map| map.figure()));
    let maps: Vec<Option<Figure>> = papers.iter().map(one).collect::<Result<_, Error>>()?;
    if maps.iter().all(Option::is_none) {
        return Err(Error::input(format!("{} has no results of these papers", folder.display()))
            .with_hint("`anabranch lab robustness PAPER --out DIR` computes them"));
    }
    Ok(maps)
}

fn reproduce(
    papers: &[&'static Paper],
    options: Options,
    progress: &Progress,
) -> Result<Vec<Reproduction>, Error> {
    let one = |paper: &&'static Paper| {
        progress.say(paper.id);
        paper.reproduce(options, &|| progress.advance(paper.cost)).map_err(not_reproduced)
    };
    papers.iter().map(one).collect()
}

/// A verdict with its paper, as JSON.
#[derive(Serialize)]
struct Line<'a> {
    paper: &'static str,
    #[serde(flatten)]
    verdict: anabranch_lab::verdict::Record<'a>,
}

fn said(reproduction: &Reproduction, json: bool) -> Result<(), Error> {
    let Reproduction { paper, verdicts, .. } = reproduction;
    if json {
        return verdicts
            .iter()
            .try_for_each(|verdict| output::json(&Line { paper: paper.id, verdict: verdict.record() }));
    }
    let counts =
        Holds::ALL.into_iter().zip(tally(verdicts)).map(|(holds, n)| format!("{n} {}", holds.word()));
    output::text(&format!(
        "{:8} {} claims: {}\n",
        paper.id,
        verdicts.len(),
        counts.collect::<Vec<_>>().join(", ")
    ))
}

/// File name of the page.
const REPORT: &str = "report.html";

/// An output folder that receives all files at the end, each of them complete.
struct Place {
    folder: PathBuf,
    /// Temporary folder on the same disk, for incomplete files; removed on drop.
    beside: TempDir,
    /// The output folder was created by this process.
    is_new: bool,
}

impl Place {
    fn make(folder: &Path) -> Result<Self, Error> {
        let unwritable = |error: io::Error| Error::unwritable(folder, &error);
        let is_new = !folder.exists();
        fs::create_dir_all(folder).map_err(unwritable)?;
        let beside = tempfile::Builder::new().prefix(".reproduce-").tempdir_in(folder).map_err(unwritable)?;
        Ok(Self { folder: folder.to_owned(), beside, is_new })
    }

    /// Writes all files to the temporary folder, then moves them into place, the page last.
    fn fill(mut self, reproductions: &[Reproduction]) -> Result<(), Error> {
        let mut all: Vec<(PathBuf, String)> = Vec::new();
        for reproduction in reproductions {
            let folder = PathBuf::from(reproduction.paper.id);
            all.extend(reproduction.files().into_iter().map(|(name, text)| (folder.join(name), text)));
        }
        // The page comes last, so that it never appears without the files that it links to.
        all.push((PathBuf::from(REPORT), report::page(reproductions)));
        let parent = |path: &Path| path.parent().map_or(Ok(()), fs::create_dir_all);
        for (name, text) in &all {
            let path = self.beside.path().join(name);
            parent(&path).and_then(|()| fs::write(&path, text)).map_err(|error| failed(&path, &error))?;
        }
        for (name, _) in &all {
            let path = self.folder.join(name);
            let moved = parent(&path).and_then(|()| fs::rename(self.beside.path().join(name), &path));
            moved.map_err(|error| failed(&path, &error))?;
        }
        self.is_new = false;
        Ok(())
    }
}

impl Drop for Place {
    /// Removes a folder that this process created and did not fill.
    fn drop(&mut self) {
        if self.is_new {
            // Removing either folder fails if another program has put a file into it; that file
            // must stay.
            let _ = fs::remove_dir_all(self.beside.path());
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::job(format!("cannot write {}: {error}", path.display()))
}
