//! The rows of a sweep as a table: Arrow, Parquet, CSV. One row for every run, in the order of
//! points, seeds and runs.
//!
//! A row contains the number of its point, every parameter that the spec fixes or varies, seed,
//! run, hash of the resolved scenario, version, the number of gateways chosen for `"best"`
//! (`chosen.transfer.NAME.gateways`), and every metric of any run of the sweep; null if the run
//! lacks it. Quantities are numbers in SI units. The unit of a column is in its metadata (`unit`),
//! and in CSV in the header after the name, as in `link.radio.delay [s]`. Columns without a unit
//! have neither.

mod column;
mod csv;
mod frame;
mod write;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;
use std::sync::Arc;

use anabranch_scenario::record::censored_by;
use anabranch_stats::{Median, Summary, Survival};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::address::{Address, BUILD, RunKey, VERSION};
use crate::error::{Error, unknown_metric};
use crate::points::{Point, Sweep};
use crate::row;
use crate::store::Store;
use column::Parameter;

pub use frame::{Column, Frame, Values};

/// Number of rows per batch.
const BATCH: usize = 8_192;

/// The table of a sweep's results.
#[derive(Debug)]
pub struct Table<'t> {
    store: &'t Store,
    sweep: &'t Sweep,
    points: &'t [Point],
    parameters: Vec<Parameter>,
    /// The transfers with `gateways = "best"` at some point.
    chosen: Vec<String>,
    metrics: Vec<String>,
    schema: SchemaRef,
    rows: Vec<Entry>,
    missing: u64,
    unmet: Vec<usize>,
}

/// Identifies the run of a row.
#[derive(Clone, Copy, Debug)]
struct Entry {
    point: usize,
    key: RunKey,
    address: Address,
}

impl<'t> Table<'t> {
    /// Creates the table of the rows that a store has for the points of a sweep (see
    /// [`Sweep::all_points`]).
    ///
    /// # Errors
    /// [`Error::Table`] if two columns have the same name.
    pub fn new(sweep: &'t Sweep, points: &'t [Point], store: &'t Store) -> Result<Self, Error> {
        let (mut rows, mut missing, mut unmet) = (Vec::new(), 0, Vec::new());
        let mut metrics: BTreeMap<&str, &str> = BTreeMap::new();
        let mut last: Option<&Arc<row::Schema>> = None;
        for point in points {
            let standing = sweep.standing(point, store);
            missing += standing.missing.len() as u64;
            if standing.met == Some(false) {
                unmet.push(point.index);
            }
            for (key, address) in sweep.addresses(point, standing.runs) {
                let Some(schema) = store.schema(&address) else { continue };
                rows.push(Entry { point: point.index, key, address });
                if !last.is_some_and(|last| Arc::ptr_eq(last, schema)) {
                    metrics.extend(schema.0.iter().map(|(name, unit)| (name.as_str(), unit.as_str())));
                    last = Some(schema);
                }
            }
        }
        let parameters: Vec<Parameter> = sweep.names().map(|name| Parameter::new(sweep, name)).collect();
        let mut fields = vec![plain("point", DataType::UInt64)];
        fields.extend(parameters.iter().map(Parameter::field));
        let chosen: BTreeSet<&str> =
            points.iter().flat_map(|point| point.chosen.keys()).map(String::as_str).collect();
        let chosen: Vec<String> = chosen.into_iter().map(str::to_owned).collect();
        let column =
            |name: &String| Field::new(format!("chosen.transfer.{name}.gateways"), DataType::UInt64, true);
        fields.extend(chosen.iter().map(column));
        fields.extend([plain("seed", DataType::UInt64), plain("run", DataType::UInt64)]);
        fields.extend(["scenario_hash", "version"].map(|name| plain(name, DataType::Utf8)));
        for (name, unit) in &metrics {
            fields.push(Field::new(*name, DataType::Float64, true).with_metadata(unit_of(unit)));
        }
        let mut names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::Table(format!("a parameter and a metric are both called `{}`", twice[0])));
        }
        // Metadata that a reader cannot derive from the columns.
        let json = |value: serde_json::Result<String>| value.map_err(|e| Error::Table(e.to_string()));
        let parameter_names = json(serde_json::to_string(&sweep.names().collect::<Vec<_>>()))?;
        let varied = json(serde_json::to_string(&sweep.varied().collect::<Vec<_>>()))?;
        let (missing_runs, unmet_points) = (missing.to_string(), json(serde_json::to_string(&unmet))?);
        let mut metadata = vec![
            ("sweep", sweep.spec().name.as_str()),
            ("build", BUILD),
            ("parameters", &parameter_names),
            ("varied", &varied),
            ("missing", &missing_runs),
            ("unmet", &unmet_points),
        ];
        if let Some(experiment) = sweep.spec().experiment() {
            metadata.extend([("experiment", experiment.name()), ("experiment_build", experiment.build())]);
        }
        let metadata = metadata.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
        let metadata: HashMap<_, _> = metadata.collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        let metrics = metrics.into_keys().map(str::to_owned).collect();
        Ok(Self { store, sweep, points, parameters, chosen, metrics, schema, rows, missing, unmet })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Number of missing runs, as far as known.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// Points that have reached the upper limit of runs without the required precision.
    pub fn unmet(&self) -> &[usize] {
        &self.unmet
    }

    /// Names of the metrics.
    pub fn metrics(&self) -> &[String] {
        &self.metrics
    }

    /// The unit of a metric.
    ///
    /// # Errors
    /// [`Error::Impossible`] if no run has that metric.
    pub fn unit(&self, metric: &str) -> Result<&str, Error> {
        let known = self.metrics.iter().any(|name| name == metric);
        let field = self.schema.field_with_name(metric).ok().filter(|_| known);
        let field = field.ok_or_else(|| unknown_metric(metric, self.metrics.iter().map(String::as_str)))?;
        Ok(field.metadata().get("unit").map_or("1", |unit| unit))
    }

    /// Summary of a metric over the runs of a point that have it; `None` if there are none.
    pub fn summary(&self, point: usize, metric: &str) -> Option<Summary> {
        Summary::of(&self.values(point, metric)).ok()
    }

    /// The median latency of a transfer over all runs of a point, including runs that did not
    /// deliver it; `None` if all runs delivered it, or the metric is not a latency.
    pub fn survival(&self, point: usize, metric: &str) -> Option<Median> {
        let censored = self.values(point, &censored_by(metric)?);
        if censored.is_empty() {
            return None;
        }
        Some(Survival::of(&self.values(point, metric), &censored).ok()?.median())
    }

    /// The values of a metric over the runs of a point that have it.
    fn values(&self, point: usize, metric: &str) -> Vec<f64> {
        let start = self.rows.partition_point(|entry| entry.point < point);
        let of_point = self.rows[start..].iter().take_while(|entry| entry.point == point);
        of_point.filter_map(|entry| self.store.figure(&entry.address, metric)).collect()
    }

    /// Number of rows of a point.
    pub fn runs(&self, point: usize) -> usize {
        let start = self.rows.partition_point(|entry| entry.point < point);
        self.rows[start..].iter().take_while(|entry| entry.point == point).count()
    }

    /// Names, types and units of the columns.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The whole table as one batch.
    ///
    /// # Errors
    /// [`Error::Table`], which would be a bug of this crate.
    pub fn batch(&self) -> Result<RecordBatch, Error> {
        self.part(&self.rows)
    }

    /// The table in batches of a few thousand rows.
    pub fn batches(&self) -> impl Iterator<Item = Result<RecordBatch, Error>> + '_ {
        self.rows.chunks(BATCH).map(|rows| self.part(rows))
    }

    fn part(&self, rows: &[Entry]) -> Result<RecordBatch, Error> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        let numbers =
            |number: fn(&Entry) -> u64| Arc::new(UInt64Array::from_iter_values(rows.iter().map(number)));
        columns.push(numbers(|entry| entry.point as u64));
        // Rows of a point are adjacent.
        let mut known: Option<(usize, BTreeMap<String, serde_json::Value>)> = None;
        let mut builders: Vec<_> = self.parameters.iter().map(Parameter::builder).collect();
        for entry in rows {
            if known.as_ref().is_none_or(|(point, _)| *point != entry.point) {
                known = Some((entry.point, self.sweep.parameters(entry.point)));
            }
            let values = &known.as_ref().expect("it was set above").1;
            for (builder, parameter) in builders.iter_mut().zip(&self.parameters) {
                let value = values.get(&parameter.name).map(|value| self.sweep.shown(value));
                builder.push(value.as_deref());
            }
        }
        columns.extend(builders.into_iter().map(column::Builder::finish));
        for name in &self.chosen {
            let number = |entry: &Entry| self.points[entry.point].chosen.get(name).copied().map(u64::from);
            columns.push(Arc::new(UInt64Array::from_iter(rows.iter().map(number))));
        }
        columns.push(numbers(|entry| entry.key.seed));
        columns.push(numbers(|entry| entry.key.run));
        let hashes = rows.iter().map(|entry| self.points[entry.point].hash.as_str());
        columns.push(Arc::new(StringArray::from_iter_values(hashes)));
        columns.push(Arc::new(StringArray::from_iter_values(rows.iter().map(|_| VERSION))));
        columns.extend(self.metric_columns(rows));
        RecordBatch::try_new(self.schema(), columns).map_err(|error| Error::Table(error.to_string()))
    }

    fn metric_columns(&self, rows: &[Entry]) -> Vec<ArrayRef> {
        let mut columns: Vec<Vec<Option<f64>>> = vec![Vec::with_capacity(rows.len()); self.metrics.len()];
        // Maps the metrics of a schema to columns; computed again only when the schema changes.
        let mut places: Option<(Arc<row::Schema>, Vec<Option<usize>>)> = None;
        for entry in rows {
            let Some((schema, values)) = self.store.values(&entry.address) else {
                columns.iter_mut().for_each(|column| column.push(None));
                continue;
            };
            if !places.as_ref().is_some_and(|(known, _)| Arc::ptr_eq(known, schema)) {
                let place = |name: &String| schema.0.binary_search_by(|(known, _)| known.cmp(name)).ok();
                places = Some((schema.clone(), self.metrics.iter().map(place).collect()));
            }
            let places = &places.as_ref().expect("it was set above").1;
            for (column, place) in columns.iter_mut().zip(places) {
                column.push(place.and_then(|place| values[place]));
            }
        }
        columns.into_iter().map(|column| Arc::new(Float64Array::from(column)) as ArrayRef).collect()
    }

    /// Writes the table as Parquet. Equal rows yield equal bytes.
    ///
    /// # Errors
    /// [`Error::Table`] with the writer's message.
    pub fn write_parquet<W: Write + Send>(&self, out: W) -> Result<(), Error> {
        write::parquet(out, &self.schema, &mut self.batches())
    }

    /// Writes the table as CSV (RFC 4180) with a header; null is an empty field.
    ///
    /// # Errors
    /// [`Error::Table`] with the writer's message.
    pub fn write_csv<W: Write>(&self, out: W) -> Result<(), Error> {
        write::csv(out, &self.schema, &mut self.batches())
    }

    /// Writes the table as an Arrow stream, which all data frame libraries read.
    ///
    /// # Errors
    /// [`Error::Table`] with the writer's message.
    pub fn write_ipc<W: Write>(&self, out: W) -> Result<(), Error> {
        write::ipc(out, &self.schema, &mut self.batches())
    }
}

/// The parameters as columns with a value for each point, with the types of the sweep's table.
pub(crate) fn parameters(sweep: &Sweep) -> Vec<Column> {
    let parameters: Vec<Parameter> = sweep.names().map(|name| Parameter::new(sweep, name)).collect();
    let mut builders: Vec<_> = parameters.iter().map(Parameter::builder).collect();
    for point in 0..sweep.points() {
        let values = sweep.parameters(point);
        for (builder, parameter) in builders.iter_mut().zip(&parameters) {
            builder.push(values.get(&parameter.name).map(|value| sweep.shown(value)).as_deref());
        }
    }
    let column = |(parameter, builder): (Parameter, column::Builder)| {
        let unit = parameter.unit().to_owned();
        Column { name: parameter.name, unit, values: builder.values() }
    };
    parameters.into_iter().zip(builders).map(column).collect()
}

fn plain(name: &str, kind: DataType) -> Field {
    Field::new(name, kind, false)
}

/// Metadata of a field.
fn unit_of(unit: &str) -> HashMap<String, String> {
    if unit == "1" { HashMap::new() } else { [("unit".to_owned(), unit.to_owned())].into() }
}
