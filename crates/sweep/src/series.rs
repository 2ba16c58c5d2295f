//! Time series of the runs of a sweep. Each run has its own file for each table with rows, so that
//! runs can execute in parallel, in several processes, and resume after an interruption.
//!
//! `connections/POINT-SEED-RUN.parquet` contains the rows of [`anabranch_scenario::series::TABLES`],
//! preceded by columns that identify the run: `point`, the parameters, `seed` and `run`. The files
//! of a folder together form one table (`pyarrow.dataset`, `polars.scan_parquet("…/*.parquet")`).
//! `runs/POINT-SEED-RUN.parquet` has one row for the run. It is written last, so its presence means
//! that the run is complete.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_core::time::{Duration, Instant};
use anabranch_scenario::series::{Cell, Rows, Sampler, TABLES};
use anabranch_scenario::{Planned, Scenario};
use anabranch_sim::sim::{Pause, Simulation};
use sha2::{Digest, Sha256};

use crate::address::{Address, RunKey};
use crate::error::Error;
use crate::experiment::RunError;
use crate::points::{Point, Sweep};
use crate::table::{Column, Frame, Values, parameters};
use crate::task::{Look, Recorder};

/// File format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// Apache Parquet, with units in the metadata of columns.
    #[default]
    Parquet,
    /// CSV (RFC 4180), with units in the header.
    Csv,
}

impl Format {
    fn extension(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
        }
    }
}

/// Where time series are written, and how often.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Series {
    /// The folder.
    pub folder: PathBuf,
    /// Shortest interval between two rows of the same object, greater than zero.
    pub every: Duration,
    /// The file format.
    pub format: Format,
}

/// The table of runs, written last.
const RUNS: &str = "runs";

impl Series {
    fn file(&self, table: &str, point: usize, RunKey { seed, run }: RunKey) -> PathBuf {
        self.folder.join(table).join(format!("{point:05}-{seed}-{run:04}.{}", self.format.extension()))
    }

    /// True if all files of a run exist.
    fn has(&self, point: usize, key: RunKey) -> bool {
        self.file(RUNS, point, key).exists()
    }

    /// Creates the folder for points with this digest, or checks that it belongs to them. Rows of
    /// other points, another interval or other columns do not belong to the same table. More seeds
    /// and runs do.
    fn claim(&self, digest: [u8; 32]) -> Result<(), Error> {
        let text = format!("{{\"points\":\"{}\",\"every_ns\":{}}}\n", Address(digest), self.every.as_nanos());
        let path = self.folder.join(format!("sweep-{}.json", self.format.extension()));
        let failed = |error: io::Error| Error::Store { doing: "write", path: path.clone(), error };
        fs::create_dir_all(&self.folder).map_err(failed)?;
        match fs::read_to_string(&path) {
            Ok(there) if there == text => Ok(()),
            Ok(_) => Err(Error::Impossible {
                message: format!(
                    "{} has time series of other points, of another build, or at another interval",
                    self.folder.display()
                ),
                hint: "choose another folder, or remove this one".to_owned(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                whole(&path, |file| file.write_all(text.as_bytes()).map_err(failed))
            }
            Err(error) => Err(Error::Store { doing: "read", path, error }),
        }
    }
}

/// Writes a file atomically. A killed process leaves a file whose name readers of the folder skip.
fn whole(path: &Path, fill: impl FnOnce(&mut File) -> Result<(), Error>) -> Result<(), Error> {
    let failed = |error: io::Error| Error::Store { doing: "write", path: path.to_owned(), error };
    let folder = path.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder).map_err(failed)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // In the same folder, since a rename is atomic only within one file system. The process id
    // keeps concurrent writers apart.
    let part = folder.join(format!(".{name}.{}.part", std::process::id()));
    let written = File::create(&part).map_err(failed).and_then(|mut file| {
        fill(&mut file)?;
        file.flush().and_then(|()| fs::rename(&part, path)).map_err(failed)
    });
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

/// Writes the time series of all runs.
#[derive(Debug)]
struct SeriesRecorder {
    series: Series,
    /// The parameters, with a value for each point.
    parameters: Vec<Column>,
}

impl Recorder for SeriesRecorder {
    fn has(&self, point: usize, key: RunKey) -> bool {
        self.series.has(point, key)
    }

    fn look(&self, point: usize, key: RunKey) -> Box<dyn Look + '_> {
        Box::new(Recording { recorder: self, point, key, sampler: None })
    }
}

/// The series of a run in progress.
struct Recording<'r> {
    recorder: &'r SeriesRecorder,
    point: usize,
    key: RunKey,
    /// Present once the run has begun.
    sampler: Option<Sampler<Columns>>,
}

impl Recording<'_> {
    /// Writes the files of the run, each atomically.
    fn write(&self, tables: Tables) -> Result<(), Error> {
        let Self { recorder: SeriesRecorder { series, parameters }, point, key, .. } = self;
        let mut known = vec![Column::number("point", *point as u64)];
        known.extend(parameters.iter().map(|parameter| parameter.repeated(*point, 1)));
        known.extend([Column::number("seed", key.seed), Column::number("run", key.run)]);
        let put = |table: &str, frame: &Frame| {
            whole(&series.file(table, *point, *key), |file| match series.format {
                Format::Parquet => frame.write_parquet(file),
                Format::Csv => frame.write_csv(file),
            })
        };
        for (name, columns) in tables {
            let rows = columns.first().map_or(0, |column| column.values.len());
            let known = known.iter().map(|column| column.repeated(0, rows));
            put(name, &Frame::new(known.chain(columns).collect())?)?;
        }
        put(RUNS, &Frame::new(known)?)
    }
}

impl Look for Recording<'_> {
    fn begin(&mut self, scenario: &Scenario, planned: &Planned, sim: &mut Simulation) {
        let every = self.recorder.series.every;
        self.sampler = Some(Sampler::new(Columns::default(), every, scenario, planned, sim));
    }

    fn run_until(&mut self, sim: &mut Simulation, to: Instant) -> Pause {
        match &mut self.sampler {
            Some(sampler) => sampler.run_until(sim, to),
            None => sim.run_until(to),
        }
    }

    fn end(&mut self, sim: &mut Simulation) -> Result<(), RunError> {
        let Some(sampler) = self.sampler.take() else { return Ok(()) };
        let written = self.write(sampler.finish(sim).tables());
        written.map_err(|error| RunError::Failed(error.to_string()))
    }
}

impl Sweep {
    /// Makes the runs of this sweep also write time series. `points` come from
    /// [`Sweep::all_points`]. A run whose files are missing is due even if its row exists.
    ///
    /// # Errors
    /// [`Error::Impossible`] for an experiment, which executes its own runs; for a parameter with
    /// the name of a column; for a seed that is too large; for a folder with time series of other
    /// points, another build or another interval. Also if the folder cannot be used.
    pub fn with_series(mut self, series: Series, points: &[Point]) -> Result<Self, Error> {
        if let Some(experiment) = self.spec().experiment() {
            return Err(Error::Impossible {
                message: format!(
                    "the experiment `{}` makes its runs itself, without time series",
                    experiment.name()
                ),
                hint: "sweep over a scenario, such as a file of scenarios/papers".to_owned(),
            });
        }
        let columns = TABLES.iter().flat_map(|table| table.columns).map(|column| column.name);
        let taken: BTreeSet<&str> = columns.chain(["point", "seed", "run"]).collect();
        if let Some(name) = self.names().find(|name| taken.contains(name)) {
            return Err(Error::Impossible {
                message: format!("the parameter `{name}` has the name of a column of time series"),
                hint: "give the alias another name, or use the path that it stands for".to_owned(),
            });
        }
        if let Some(seed) = self.seeds().iter().find(|seed| i64::try_from(**seed).is_err()) {
            return Err(Error::Impossible {
                message: format!("the seed {seed} is too large for the tables of time series"),
                hint: format!("take one up to {}", i64::MAX),
            });
        }
        // Equal values with different spelling may become columns of different types.
        let spelled = (0..self.points()).map(|point| format!("{:?}", self.parameters(point)));
        let mut hash = Sha256::new();
        for (point, spelled) in points.iter().zip(spelled) {
            hash.update(point.root.run(0, 0).0);
            hash.update(Sha256::digest(spelled));
        }
        series.claim(hash.finalize().into())?;
        let parameters = parameters(&self);
        self.recorder = Some(Arc::new(SeriesRecorder { series, parameters }));
        Ok(self)
    }
}

/// The columns of the tables that have rows, by table name.
pub type Tables = Vec<(&'static str, Vec<Column>)>;

/// Rows stored as columns of each table; no columns for a table without rows.
#[derive(Default, Debug)]
pub struct Columns([Vec<Values>; TABLES.len()]);

impl Columns {
    /// The tables that have rows.
    pub fn tables(self) -> Tables {
        let with_rows = TABLES.iter().zip(self.0).filter(|(_, columns)| !columns.is_empty());
        let named = with_rows.map(|(table, columns)| {
            let columns = table.columns.iter().zip(columns).map(|(column, values)| Column {
                name: column.name.to_owned(),
                unit: column.unit.unwrap_or("1").to_owned(),
                values,
            });
            (table.name, columns.collect())
        });
        named.collect()
    }
}

impl Rows for Columns {
    fn row(&mut self, table: usize, cells: &[Cell<'_>]) {
        let columns = &mut self.0[table];
        if columns.is_empty() {
            // Columns with a unit hold numbers, others hold texts.
            columns.extend(TABLES[table].columns.iter().map(|column| match column.unit {
                Some(_) => Values::Numbers(Vec::new()),
                None => Values::Texts(Vec::new()),
            }));
        }
        for (column, cell) in columns.iter_mut().zip(cells) {
            match (column, cell) {
                (Values::Numbers(values), Cell::Figure(figure)) => values.push(*figure),
                (Values::Texts(values), Cell::Text(text)) => values.push(Some((*text).to_owned())),
                (column, cell) => unreachable!("{cell:?} in {column:?}"),
            }
        }
    }
}
