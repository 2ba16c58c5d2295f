//! A self-contained table: for other languages, which read it in memory, and for data other than
//! rows of runs.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_ipc::reader::StreamReader;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{BATCH, Table, unit_of, write};
use crate::error::Error;

/// Columns with names, units and equally many values.
#[derive(Clone, Debug)]
pub struct Frame {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

/// The values of a column.
#[derive(Clone, PartialEq, Debug)]
pub enum Values {
    /// Integers.
    Integers(Vec<Option<i64>>),
    /// Numbers.
    Numbers(Vec<Option<f64>>),
    /// Booleans.
    Booleans(Vec<Option<bool>>),
    /// Texts.
    Texts(Vec<Option<String>>),
}

/// A column to build a [`Frame`] from.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Unit; `1` if there is none.
    pub unit: String,
    /// Values.
    pub values: Values,
}

impl Values {
    pub(super) fn array(self) -> ArrayRef {
        match self {
            Self::Integers(values) => Arc::new(Int64Array::from(values)),
            Self::Numbers(values) => Arc::new(Float64Array::from(values)),
            Self::Booleans(values) => Arc::new(BooleanArray::from(values)),
            Self::Texts(values) => Arc::new(StringArray::from(values)),
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Numbers(values) => values.len(),
            Self::Booleans(values) => values.len(),
            Self::Texts(values) => values.len(),
        }
    }

    /// True without values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Repeats one value `rows` times.
    fn repeated(&self, which: usize, rows: usize) -> Self {
        fn one<T: Clone>(values: &[Option<T>], which: usize, rows: usize) -> Vec<Option<T>> {
            vec![values.get(which).cloned().flatten(); rows]
        }
        match self {
            Self::Integers(values) => Self::Integers(one(values, which, rows)),
            Self::Numbers(values) => Self::Numbers(one(values, which, rows)),
            Self::Booleans(values) => Self::Booleans(one(values, which, rows)),
            Self::Texts(values) => Self::Texts(one(values, which, rows)),
        }
    }
}

impl Column {
    /// A column with one integer.
    pub(crate) fn number(name: &str, number: u64) -> Self {
        // A seed beyond the range of `Int64` becomes text, as in a table.
        let values = match i64::try_from(number) {
            Ok(number) => Values::Integers(vec![Some(number)]),
            Err(_) => Values::Texts(vec![Some(number.to_string())]),
        };
        Self { name: name.to_owned(), unit: "1".to_owned(), values }
    }

    /// A column that repeats one of its values in `rows` rows.
    pub(crate) fn repeated(&self, which: usize, rows: usize) -> Self {
        Self { name: self.name.clone(), unit: self.unit.clone(), values: self.values.repeated(which, rows) }
    }
}

impl Frame {
    /// Creates a table of these columns.
    ///
    /// # Errors
    /// [`Error::Table`] if two have the same name or their lengths differ.
    pub fn new(columns: Vec<Column>) -> Result<Self, Error> {
        let mut fields: Vec<Field> = Vec::with_capacity(columns.len());
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
        for Column { name, unit, values } in columns {
            if fields.iter().any(|field| *field.name() == name) {
                return Err(Error::Table(format!("two columns are called `{name}`")));
            }
            let array = values.array();
            fields.push(Field::new(name, array.data_type().clone(), true).with_metadata(unit_of(&unit)));
            arrays.push(array);
        }
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        if arrays.is_empty() {
            return Ok(Self { schema, batches: Vec::new() });
        }
        let batch = RecordBatch::try_new(schema.clone(), arrays);
        let batch = batch.map_err(|error| Error::Table(error.to_string()))?;
        Ok(Self { schema, batches: vec![batch] })
    }

    /// Reads a file written by [`Frame::write_parquet`] or [`Table::write_parquet`].
    ///
    /// # Errors
    /// [`Error::Unread`] if it is not Parquet, or has columns of other types than tables of this
    /// crate.
    pub fn read_parquet(octets: Bytes) -> Result<Self, Error> {
        let failed = |error: &dyn std::fmt::Display| Error::Unread(error.to_string());
        let reader = ParquetRecordBatchReaderBuilder::try_new(octets).map_err(|error| failed(&error))?;
        let schema = reader.schema().clone();
        // The batch size of a table, so that writing a table that was read yields the same bytes.
        let batches = reader.with_batch_size(BATCH).build().map_err(|error| failed(&error))?;
        let batches = batches.collect::<Result<_, _>>().map_err(|error| failed(&error))?;
        Self::known(schema, batches)
    }

    /// Reads a stream written by [`Frame::write_ipc`] or [`Table::write_ipc`].
    ///
    /// # Errors
    /// [`Error::Unread`] if it is not an Arrow stream, or has columns of other types than tables of
    /// this crate.
    pub fn read_ipc(octets: &[u8]) -> Result<Self, Error> {
        let failed = |error: arrow_schema::ArrowError| Error::Unread(error.to_string());
        let reader = StreamReader::try_new(octets, None).map_err(failed)?;
        let schema = reader.schema();
        Self::known(schema, reader.collect::<Result<_, _>>().map_err(failed)?)
    }

    /// Creates a table if [`Frame::values`] supports the types of all columns.
    fn known(schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<Self, Error> {
        let known = [DataType::UInt64, DataType::Int64, DataType::Float64, DataType::Boolean, DataType::Utf8];
        if let Some(field) = schema.fields().iter().find(|field| !known.contains(field.data_type())) {
            let (name, kind) = (field.name(), field.data_type());
            return Err(Error::Unread(format!("the column `{name}` has the type {kind}")));
        }
        Ok(Self { schema, batches })
    }

    /// Metadata of the whole table, such as the name of the sweep.
    pub fn metadata(&self) -> BTreeMap<&str, &str> {
        self.schema.metadata().iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Names and units of the columns; unit `1` if there is none.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &str)> {
        self.schema
            .fields()
            .iter()
            .map(|field| (field.name().as_str(), field.metadata().get("unit").map_or("1", |unit| unit)))
    }

    /// The values of a column; `None` if there is no such column.
    pub fn values(&self, name: &str) -> Option<Values> {
        let place = self.schema.index_of(name).ok()?;
        let arrays = self.batches.iter().map(|batch| batch.column(place));
        Some(match self.schema.field(place).data_type() {
            DataType::UInt64 => Values::Integers(
                arrays
                    .flat_map(|a| a.as_primitive::<UInt64Type>().iter().map(|v| v.map(|v| v as i64)))
                    .collect(),
            ),
            DataType::Int64 => {
                Values::Integers(arrays.flat_map(|a| a.as_primitive::<Int64Type>().iter()).collect())
            }
            DataType::Float64 => {
                Values::Numbers(arrays.flat_map(|a| a.as_primitive::<Float64Type>().iter()).collect())
            }
            DataType::Boolean => Values::Booleans(arrays.flat_map(|a| a.as_boolean().iter()).collect()),
            _ => Values::Texts(
                arrays.flat_map(|a| a.as_string::<i32>().iter().map(|v| v.map(str::to_owned))).collect(),
            ),
        })
    }

    /// Exports the table through Arrow's C stream interface. The reader shares the memory.
    pub fn stream(&self) -> FFI_ArrowArrayStream {
        let batches = self.batches.clone().into_iter().map(Ok);
        FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new(batches, self.schema.clone())))
    }

    /// Names, types and units in the form of Arrow's C data interface.
    ///
    /// # Errors
    /// [`Error::Table`], which would be a bug of this crate.
    pub fn schema(&self) -> Result<FFI_ArrowSchema, Error> {
        FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(|error| Error::Table(error.to_string()))
    }

    /// Writes the table as [`Table::write_parquet`] does.
    ///
    /// # Errors
    /// [`Error::Table`] with the writer's message.
    pub fn write_parquet<W: Write + Send>(&self, out: W) -> Result<(), Error> {
        write::parquet(out, &self.schema, &mut self.batches.iter().cloned().map(Ok))
    }

    /// Writes the table as [`Table::write_csv`] does.
    ///
    /// # Errors
    /// [`Error::Table`] with the writer's message.
    pub fn write_csv<W: Write>(&self, out: W) -> Result<(), Error> {
        write::csv(out, &self.schema, &mut self.batches.iter().cloned().map(Ok))
    }

    /// Writes the table as [`Table::write_ipc`] does.
    ///
    /// # Errors
    /// [`Error::Table`] with the writer's message.
    pub fn write_ipc<W: Write>(&self, out: W) -> Result<(), Error> {
        write::ipc(out, &self.schema, &mut self.batches.iter().cloned().map(Ok))
    }
}

impl Table<'_> {
    /// Copies the table, so that it no longer borrows from the store, the sweep and the points.
    ///
    /// # Errors
    /// As [`Table::batches`].
    pub fn frame(&self) -> Result<Frame, Error> {
        Ok(Frame { schema: self.schema(), batches: self.batches().collect::<Result<_, _>>()? })
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::ffi_stream::RecordBatchStreamReader;

    use super::*;

    fn column(name: &str, unit: &str, values: Values) -> Column {
        Column { name: name.to_owned(), unit: unit.to_owned(), values }
    }

    #[test]
    fn what_is_read_in_memory_is_what_was_put_in() {
        let columns = vec![
            column("hops", "1", Values::Integers(vec![Some(1), None])),
            column("rtt", "s", Values::Numbers(vec![Some(0.25), Some(1.5)])),
            column("stable", "1", Values::Booleans(vec![Some(true), Some(false)])),
            column("over", "1", Values::Texts(vec![None, Some("fsk100".to_owned())])),
        ];
        let frame = Frame::new(columns.clone()).expect("equally long");
        assert_eq!(frame.columns().map(|(_, unit)| unit).collect::<Vec<_>>(), ["1", "s", "1", "1"]);
        for column in columns {
            assert_eq!(frame.values(&column.name), Some(column.values), "{}", column.name);
        }
        let reader = RecordBatchStreamReader::try_new(frame.stream()).expect("a stream");
        let batches: Vec<RecordBatch> = reader.map(|batch| batch.expect("a batch")).collect();
        assert_eq!(batches, frame.batches);
        for (again, parquet) in [(write_read(&frame, false), false), (write_read(&frame, true), true)] {
            assert_eq!(again.schema.fields(), frame.schema.fields(), "parquet: {parquet}");
            assert_eq!(again.batches, frame.batches, "parquet: {parquet}");
        }
        let mut csv = Vec::new();
        frame.write_csv(&mut csv).expect("memory");
        assert_eq!(
            String::from_utf8_lossy(&csv),
            "hops,rtt [s],stable,over\n1,0.25,true,\n,1.5,false,fsk100\n"
        );
    }

    fn write_read(frame: &Frame, parquet: bool) -> Frame {
        let mut octets = Vec::new();
        if parquet {
            frame.write_parquet(&mut octets).expect("memory");
            return Frame::read_parquet(octets.into()).expect("it was just written");
        }
        frame.write_ipc(&mut octets).expect("memory");
        Frame::read_ipc(&octets).expect("it was just written")
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for octets in [&b""[..], b"PAR1", b"point,seed\n1,2\n", &[0xff; 64]] {
            assert!(matches!(Frame::read_parquet(octets.to_vec().into()), Err(Error::Unread(_))));
            assert!(Frame::read_ipc(octets).is_err() || octets.is_empty());
        }
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, true)]));
        let error = Frame::known(schema, Vec::new()).expect_err("no table of ours has it").to_string();
        assert_eq!(error, "cannot read the table: the column `a` has the type Int32");
    }

    #[test]
    fn columns_that_do_not_fit_are_refused() {
        let one = || column("a", "1", Values::Integers(vec![Some(1)]));
        let longer = column("b", "1", Values::Integers(vec![Some(1), Some(2)]));
        assert!(matches!(Frame::new(vec![one(), one()]), Err(Error::Table(_))));
        assert!(matches!(Frame::new(vec![one(), longer]), Err(Error::Table(_))));
        assert!(Frame::new(Vec::new()).expect("nothing").is_empty());
    }
}
