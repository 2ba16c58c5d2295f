//! Writes batches as Parquet, CSV or Arrow files. Equal rows yield equal bytes.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use super::csv;
use crate::address::VERSION;
use crate::error::Error;

type Batches<'b> = &'b mut dyn Iterator<Item = Result<RecordBatch, Error>>;

fn failed(error: impl ToString) -> Error {
    Error::Table(error.to_string())
}

pub(super) fn parquet<W: Write + Send>(
    out: W,
    schema: &SchemaRef,
    batches: Batches<'_>,
) -> Result<(), Error> {
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("anabranch {VERSION}"))
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(false);
    // A dictionary takes 20 kB while it is written, and a large network has a million metrics. Only
    // texts are long enough to benefit.
    for field in schema.fields().iter().filter(|field| *field.data_type() == DataType::Utf8) {
        properties =
            properties.set_column_dictionary_enabled(ColumnPath::from(vec![field.name().clone()]), true);
    }
    let mut writer = ArrowWriter::try_new(out, schema.clone(), Some(properties.build())).map_err(failed)?;
    for batch in batches {
        writer.write(&batch?).map_err(failed)?;
    }
    writer.close().map(drop).map_err(failed)
}

pub(super) fn csv<W: Write>(out: W, schema: &SchemaRef, batches: Batches<'_>) -> Result<(), Error> {
    let mut out = std::io::BufWriter::new(out);
    csv::header(&mut out, schema).map_err(failed)?;
    for batch in batches {
        csv::rows(&mut out, &batch?).map_err(failed)?;
    }
    out.flush().map_err(failed)
}

pub(super) fn ipc<W: Write>(out: W, schema: &SchemaRef, batches: Batches<'_>) -> Result<(), Error> {
    let mut writer = StreamWriter::try_new(out, schema).map_err(failed)?;
    for batch in batches {
        writer.write(&batch?).map_err(failed)?;
    }
    writer.finish().map_err(failed)
}
