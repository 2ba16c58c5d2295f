//! `anabranch lab robustness`: counts in how many settings of a paper's open parameters each of its
//! claims holds.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anabranch_deploy::error::Error;
use anabranch_deploy::files::Whole;
use anabranch_deploy::output;
use anabranch_deploy::say;
use anabranch_lab::PAPERS;
use anabranch_lab::experiment::BUILD as LAB;
use anabranch_lab::reproduction::{Extent, Options, Paper};
use anabranch_lab::robustness::{Map, Row, Setting, Study};
use anabranch_scenario::identity::{BUILD, VERSION};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::progress::Progress;
use super::{not_reproduced, until_interrupted};
use crate::sweep::unwritten;

/// Options of `lab robustness`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Paper to study
    #[arg(value_name = "PAPER", value_parser = PAPERS.map(|paper| paper.id))]
    paper: String,
    /// Number of random settings of the open parameters, in addition to the reference setting
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    settings: u32,
    /// Write the results to this folder; the same command resumes from stored settings.
    ///
    /// The files are PAPER.md, PAPER.svg and PAPER.csv, and PAPER.jsonl with the results of each
    /// setting.
    #[arg(long, value_name = "DIR", default_value = "robustness")]
    out: PathBuf,
    /// Measure fewer points, as `lab reproduce --quick` does
    #[arg(long)]
    quick: bool,
    /// Number of runs of each point with random input, in each setting
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Seed of all runs and of the settings
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the claims as JSON, one object per line
    #[arg(long)]
    json: bool,
    /// Do not show progress
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn main(arguments: &Arguments) -> Result<(), Error> {
    let paper = anabranch_lab::paper(&arguments.paper).expect("checked by the parser");
    let options = Options {
        extent: Extent::of(arguments.quick),
        runs: Some(arguments.runs as usize),
        seed: arguments.seed,
    };
    let study = Study { paper, settings: arguments.settings, options };
    let journal = Arc::new(Journal::open(&journal(&arguments.out, paper), study)?);
    let missing = journal.missing();
    let total = paper.planned(&options) as u64 * missing.len() as u64;
    let progress = Arc::new(if arguments.quiet { Progress::none() } else { Progress::new(total) });
    let (worker, kept) = (Arc::clone(&progress), Arc::clone(&journal));
    let made = until_interrupted(move || kept.fill(missing, &worker));
    progress.finish();
    if matches!(made, Err(Error::Interrupted)) {
        say!(
            "interrupted: {} are kept; repeat the command to resume",
            share(study.own(journal.rows()).len(), study)
        );
    }
    made??;
    let map = study.map(journal.rows());
    for (kind, text) in [("svg", map.svg()), ("csv", map.csv()), ("md", map.page())] {
        let path = arguments.out.join(format!("{}.{kind}", paper.id));
        let mut file = Whole::create(&path)?;
        file.write_all(text.as_bytes()).map_err(|error| unwritten(&path, &error))?;
        file.keep()?;
    }
    said(&map, arguments)
}

fn said(map: &Map, arguments: &Arguments) -> Result<(), Error> {
    if arguments.json {
        return map.robust().iter().try_for_each(output::json);
    }
    let page = arguments.out.join(format!("{}.md", arguments.paper));
    output::text(&format!("{}written to {}\n", map.fit(), page.display()))
}

/// The first line of a journal. It identifies study and build, since rows of another study or build
/// must not be mixed in.
#[derive(PartialEq, Debug, Serialize, Deserialize)]
struct Head {
    paper: String,
    settings: u32,
    quick: bool,
    runs: usize,
    seed: u64,
    version: String,
    build: String,
}

impl Head {
    fn of(study: Study) -> Self {
        let Study { paper, settings, options } = study;
        Self {
            paper: paper.id.to_owned(),
            settings,
            quick: options.extent == Extent::Quick,
            runs: options.runs_of(paper),
            seed: options.seed,
            version: VERSION.to_owned(),
            build: format!("{BUILD} {LAB}"),
        }
    }

    fn study(&self) -> Option<Study> {
        let paper = anabranch_lab::paper(&self.paper)?;
        let options = Options { extent: Extent::of(self.quick), runs: Some(self.runs), seed: self.seed };
        Some(Study { paper, settings: self.settings, options })
    }
}

/// Reads the results of a paper from a folder, whichever build wrote them; `None` if the folder has
/// no journal of the paper.
pub(super) fn read(folder: &Path, paper: &Paper) -> Result<Option<Map>, Error> {
    let path = journal(folder, paper);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::unreadable(&path, &error)),
    };
    let (head, rows) = understood(&path, &text)?;
    let study = head.and_then(|head| head.study()).filter(|study| study.paper == paper);
    let map = study.ok_or_else(|| foreign(&path, None))?.map(rows);
    match map.missing() {
        0 => Ok(Some(map)),
        n => Err(Error::input(format!(
            "{} is incomplete: {n} settings of its study are missing",
            path.display()
        ))
        .with_hint(format!("resume with `{} --out {}`", map.command(), folder.display()))),
    }
}

fn journal(folder: &Path, paper: &Paper) -> PathBuf {
    folder.join(format!("{}.jsonl", paper.id))
}

/// Parses the complete lines of a journal.
fn understood(path: &Path, text: &str) -> Result<(Option<Head>, Vec<Row>), Error> {
    let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let Some(line) = lines.next() else { return Ok((None, Vec::new())) };
    let head = serde_json::from_str(line).map_err(|_| foreign(path, None))?;
    let row = |(i, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|error| Error::input(format!("{}:{}: {error}", path.display(), i + 2)))
    };
    Ok((Some(head), lines.enumerate().map(row).collect::<Result<_, _>>()?))
}

/// A file with one row per finished setting.
struct Journal {
    path: PathBuf,
    study: Study,
    file: Mutex<File>,
    rows: Mutex<Vec<Row>>,
}

impl Journal {
    fn open(path: &Path, study: Study) -> Result<Self, Error> {
        let folder = path.parent().unwrap_or(Path::new(""));
        fs::create_dir_all(folder).map_err(|error| Error::unwritable(folder, &error))?;
        let unwritable = |error: io::Error| Error::unwritable(path, &error);
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(unwritable)?;
        // Two processes at once would compute every setting twice.
        file.try_lock().map_err(|_| Error::job(format!("another process is writing {}", path.display())))?;
        let text = fs::read_to_string(path).map_err(|error| Error::unreadable(path, &error))?;
        let (before, rows) = understood(path, &text)?;
        let head = Head::of(study);
        if before.as_ref().is_some_and(|before| *before != head) {
            return Err(foreign(path, before.as_ref()));
        }
        // A process that was killed may have left an incomplete last line.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64).map_err(unwritable)?;
        let journal = Self { path: path.to_owned(), study, file: Mutex::new(file), rows: Mutex::new(rows) };
        if before.is_none() {
            journal.write(&head)?;
        }
        Ok(journal)
    }

    fn write(&self, value: &impl Serialize) -> Result<(), Error> {
        let line = serde_json::to_string(value).expect("text and finite numbers") + "\n";
        let mut file = self.file.lock().expect("nothing panics with it");
        file.write_all(line.as_bytes()).map_err(|error| unwritten(&self.path, &error))
    }

    fn rows(&self) -> Vec<Row> {
        self.rows.lock().expect("nothing panics with them").clone()
    }

    fn missing(&self) -> Vec<Setting> {
        let done = self.study.own(self.rows());
        if !done.is_empty() {
            say!("{} are already done", share(done.len(), self.study));
        }
        self.study.drawn().into_iter().filter(|setting| !done.contains_key(&setting.number)).collect()
    }

    /// Measures the missing settings.
    fn fill(&self, missing: Vec<Setting>, progress: &Progress) -> Result<(), Error> {
        let Study { paper, options, .. } = self.study;
        missing.par_iter().try_for_each(|setting| {
            let row =
                Row::measure(paper, options, setting, &|| progress.advance(1)).map_err(not_reproduced)?;
            self.write(&row)?;
            self.rows.lock().expect("nothing panics with them").push(row);
            Ok(())
        })
    }
}

/// Number of finished settings, as text.
fn share(done: usize, study: Study) -> String {
    format!("{done} of {} settings, with the reference,", study.settings + 1)
}

fn foreign(path: &Path, before: Option<&Head>) -> Error {
    let whose = match before.and_then(|head| Some((head, head.study()?))) {
        Some((Head { version, .. }, study)) => {
            format!("was written by `{}` of version {version}, by this or another build", study.command())
        }
        None => "is not a file of `lab robustness`".to_owned(),
    };
    Error::input(format!("{} {whose}", path.display()))
        .with_hint("choose another folder with --out, or remove the file")
}
