//! `anabranch lab reproduce`: papers measured again, as one page and a folder of pictures and data
//! for each.

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
    /// The papers; all if none is named
    #[arg(value_name = "PAPER", value_parser = PAPERS.map(|paper| paper.id))]
    papers: Vec<String>,
    /// Where the files go; made if it is not there. What has the name of a new file is replaced
    #[arg(long, value_name = "DIR", default_value = "reproduce")]
    out: PathBuf,
    /// Fewer points and runs: minutes become seconds
    #[arg(long)]
    quick: bool,
    /// Runs of every random point; each paper has a number of its own
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Root of all random streams
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A folder of `lab robustness`: the report begins with what it has of each paper
    #[arg(long, value_name = "DIR")]
    robustness: Option<PathBuf>,
    /// The verdicts, one JSON object a line
    #[arg(long)]
    json: bool,
    /// No progress
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
    // Whether there is a place for it is known before the first run.
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

/// What a folder of `lab robustness` has of each paper.
fn maps(folder: &Path, papers: &[&'static Paper]) -> Result<Vec<Option<Figure>>, Error> {
    let one = |paper: &&'static Paper| Ok(robustness::read(folder, paper)?.map(|map| map.figure()));
    let maps: Vec<Option<Figure>> = papers.iter().map(one).collect::<Result<_, Error>>()?;
    if maps.iter().all(Option::is_none) {
        return Err(Error::input(format!("{} has nothing of these papers", folder.display()))
            .with_hint("`anabranch lab robustness PAPER --out DIR` makes it"));
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

/// One verdict as a program reads it, with its paper.
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

/// The page's name.
const REPORT: &str = "report.html";

/// A folder that files come into whole, all at the end.
struct Place {
    folder: PathBuf,
    /// On the same disk, for what is not whole yet; gone when this is.
    beside: TempDir,
    /// It was not there before.
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

    /// Writes everything beside, then moves it to where it belongs, the page last.
    fn fill(mut self, reproductions: &[Reproduction]) -> Result<(), Error> {
        let mut all: Vec<(PathBuf, String)> = Vec::new();
        for reproduction in reproductions {
            let folder = PathBuf::from(reproduction.paper.id);
            all.extend(reproduction.files().into_iter().map(|(name, text)| (folder.join(name), text)));
        }
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
    /// A folder that was made for nothing goes again.
    fn drop(&mut self) {
        if self.is_new {
            // If either fails there is something of somebody else in it, which stays.
            let _ = fs::remove_dir_all(self.beside.path());
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::job(format!("cannot write {}: {error}", path.display()))
}
