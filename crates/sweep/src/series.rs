//! Time series of the runs of a sweep: for each run and each table that has rows a file of its own, so that runs can be made side by side,
//! in several processes, and go on where they were interrupted.
//!
//! `connections/RUN.parquet` has the rows of [`anabranch_sim::series::TABLES`] behind columns that tell runs apart: `point`, the
//! parameters, `seed` and `run`. The files of a folder together are one table (`pyarrow.dataset`, `polars.scan_parquet("…/*.parquet")`).
//! `runs/RUN.parquet` has a row for the run itself; it is written last, so that a run is done once it is there.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_core::time::Duration;
use anabranch_sim::scenario::{Planned, Scenario};
use anabranch_sim::series::{Cell, Rows, Sampler, TABLES};
use anabranch_sim::sim::Simulation;

use crate::address::{Address, RunKey};
use crate::error::Error;
use crate::points::Sweep;
use crate::table::{Column, Frame, Values, single};

/// How files are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// Apache Parquet, with units as metadata of columns.
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

/// Where time series go, and how often there is a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Series {
    /// The folder.
    pub folder: PathBuf,
    /// A row of each thing at most once in that time, more than zero.
    pub every: Duration,
    /// The format.
    pub format: Format,
}

/// The table of the runs themselves.
const RUNS: &str = "runs";

impl Series {
    fn file(&self, table: &str, run: &Address) -> PathBuf {
        self.folder.join(table).join(format!("{run}.{}", self.format.extension()))
    }

    /// Whether all files of a run are there.
    pub(crate) fn has(&self, run: &Address) -> bool {
        self.file(RUNS, run).exists()
    }

    /// Writes the files of a run, each whole or not at all.
    fn write(&self, run: &Address, known: &[Column], tables: Tables) -> Result<(), Error> {
        for (name, columns) in tables {
            let rows = columns.first().map_or(0, |column| column.values.len());
            let known = known.iter().map(|column| column.repeated(rows));
            self.whole(&self.file(name, run), &Frame::new(known.chain(columns).collect())?)?;
        }
        self.whole(&self.file(RUNS, run), &Frame::new(known.to_vec())?)
    }

    fn whole(&self, path: &Path, frame: &Frame) -> Result<(), Error> {
        let failed = |error: io::Error| Error::Store { doing: "write", path: path.to_owned(), error };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        // Of another process that makes the same run.
        let part = path.with_extension(format!("{}.{}.part", self.format.extension(), std::process::id()));
        let written = File::create(&part).map_err(failed).and_then(|mut file| {
            match self.format {
                Format::Parquet => frame.write_parquet(&mut file)?,
                Format::Csv => frame.write_csv(&mut file)?,
            }
            file.flush().and_then(|()| fs::rename(&part, path)).map_err(failed)
        });
        if written.is_err() {
            let _ = fs::remove_file(&part);
        }
        written
    }
}

/// The series of one point, with what its runs have in common.
#[derive(Clone, Debug)]
pub(crate) struct PointSeries {
    series: Series,
    /// `point` and the parameters, with a value each.
    known: Vec<Column>,
}

impl PointSeries {
    pub(crate) fn shared(series: &Series, sweep: &Sweep, point: usize) -> Arc<Self> {
        let mut known = vec![Column::number("point", point as u64)];
        known.extend(single(sweep, point));
        Arc::new(Self { series: series.clone(), known })
    }

    /// What looks at a run.
    pub(crate) fn sampler(&self, scenario: &Scenario, planned: &Planned, sim: &mut Simulation) -> Collector {
        Sampler::new(Columns::default(), self.series.every, scenario, planned, sim)
    }

    /// Writes what was seen of a run that is over.
    pub(crate) fn write(
        &self,
        RunKey { seed, run }: RunKey,
        id: &Address,
        seen: Collector,
        sim: &mut Simulation,
    ) -> Result<(), Error> {
        let own = [Column::number("seed", seed), Column::number("run", run)];
        let known: Vec<Column> = self.known.iter().cloned().chain(own).collect();
        self.series.write(id, &known, seen.finish(sim).tables())
    }
}

/// Looks at a run and keeps what it sees.
pub type Collector = Sampler<Columns>;

/// The columns of the tables that have rows, by name.
pub type Tables = Vec<(&'static str, Vec<Column>)>;

/// Rows as columns of each table; none as long as it has no row.
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
