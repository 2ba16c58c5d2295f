//! Time series of the runs of a sweep: for each run and each table that has rows a file of its own, so that runs can be made side by side,
//! in several processes, and go on where they were interrupted.
//!
//! `connections/POINT-SEED-RUN.parquet` has the rows of [`anabranch_sim::series::TABLES`] behind columns that tell runs apart: `point`, the
//! parameters, `seed` and `run`. The files of a folder together are one table (`pyarrow.dataset`, `polars.scan_parquet("…/*.parquet")`).
//! `runs/POINT-SEED-RUN.parquet` has a row for the run itself; it is written last, so that a run is done once it is there.

use std::sync::Arc;

use anabranch_core::time::Instant;
use anabranch_sim::scenario::{Planned, Scenario};
use anabranch_sim::series::{Cell, Rows, Sampler, TABLES};
use anabranch_sim::sim::{Pause, Simulation};

use crate::address::RunKey;
use crate::error::Error;
use crate::experiment::RunError;
use crate::points::Sweep;
use crate::series::{Format, RUNS, Series, whole};
use crate::table::{Column, Frame, Values, single};
use crate::task::Look;

/// Writes the files of a run, each whole or not at all.
fn write(
    series: &Series,
    (point, key): (usize, RunKey),
    known: &[Column],
    tables: Tables,
) -> Result<(), Error> {
    let put = |table: &str, frame: &Frame| {
        whole(&series.file(table, point, key), |file| match series.format {
            Format::Parquet => frame.write_parquet(file),
            Format::Csv => frame.write_csv(file),
        })
    };
    for (name, columns) in tables {
        let rows = columns.first().map_or(0, |column| column.values.len());
        let known = known.iter().map(|column| column.repeated(rows));
        put(name, &Frame::new(known.chain(columns).collect())?)?;
    }
    put(RUNS, &Frame::new(known.to_vec())?)
}

/// The series of one point, with what its runs have in common.
#[derive(Clone, Debug)]
pub(crate) struct PointSeries {
    series: Series,
    point: usize,
    /// `point` and the parameters, with a value each.
    known: Vec<Column>,
}

impl PointSeries {
    pub(crate) fn shared(series: &Series, sweep: &Sweep, point: usize) -> Arc<Self> {
        let mut known = vec![Column::number("point", point as u64)];
        known.extend(single(sweep, point));
        Arc::new(Self { series: series.clone(), point, known })
    }

    /// What looks at one of its runs, and writes what it has seen.
    pub(crate) fn look(&self, key: RunKey) -> Box<dyn Look + '_> {
        Box::new(Recording { series: self, key, sampler: None })
    }
}

/// The series of a run that is under way.
struct Recording<'p> {
    series: &'p PointSeries,
    key: RunKey,
    /// There since the run has begun.
    sampler: Option<Sampler<Columns>>,
}

impl Look for Recording<'_> {
    fn begin(&mut self, scenario: &Scenario, planned: &Planned, sim: &mut Simulation) {
        let every = self.series.series.every;
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
        let own = [Column::number("seed", self.key.seed), Column::number("run", self.key.run)];
        let known: Vec<Column> = self.series.known.iter().cloned().chain(own).collect();
        let written =
            write(&self.series.series, (self.series.point, self.key), &known, sampler.finish(sim).tables());
        written.map_err(|error| RunError::Failed(error.to_string()))
    }
}

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
