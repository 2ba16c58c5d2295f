//! Time series of a run as tables.

use anabranch_core::time::Duration;
use anabranch_sim::series::{Cell, Rows, Sampler, TABLES};
use anabranch_sweep::table::{self, Column, Values};

use super::*;

/// Makes a run and returns its time series, by name: those that have rows.
pub(crate) fn series(
    scenario: &Scenario,
    files: &Files,
    (seed, run): (u64, u64),
    every: Duration,
    stop: &AtomicBool,
) -> Result<Vec<(&'static str, table::Frame)>, Fault> {
    let Plan { builder, planned } = scenario
        .plan(seed, run, files)
        .map_err(|error| Fault::new(error.to_string()).with_hint(error.hint()))?;
    let mut sim = builder.build();
    let mut sampler = Sampler::new(Columns::default(), every, scenario, &planned, &mut sim);
    sim.run_in_parts(scenario.stop, |sim, end| sampler.run_until(sim, end), || look(stop))?;
    let tables = sampler.finish(&mut sim).0;
    let with_rows = TABLES.iter().zip(tables).filter(|(_, columns)| !columns.is_empty());
    with_rows.map(|(table, columns)| Ok((table.name, frame(table, columns)?))).collect()
}

/// The columns of each table; none as long as it has no row.
#[derive(Default)]
struct Columns([Vec<Values>; TABLES.len()]);

impl Rows for Columns {
    fn row(&mut self, table: usize, cells: &[Cell<'_>]) {
        let columns = &mut self.0[table];
        if columns.is_empty() {
            let empty = |column: &anabranch_sim::series::Column| match column.unit {
                Some(_) => Values::Numbers(Vec::new()),
                None => Values::Texts(Vec::new()),
            };
            columns.extend(TABLES[table].columns.iter().map(empty));
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

fn frame(table: &anabranch_sim::series::Table, columns: Vec<Values>) -> Result<table::Frame, Fault> {
    let columns = table.columns.iter().zip(columns).map(|(column, values)| Column {
        name: column.name.to_owned(),
        unit: column.unit.unwrap_or_default().to_owned(),
        values,
    });
    table::Frame::new(columns.collect()).map_err(Fault::from)
}
