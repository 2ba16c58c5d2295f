//! Batches as files: Parquet, CSV, Arrow. The same rows make the same octets.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

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
    let properties = WriterProperties::builder()
        .set_created_by(format!("anabranch {VERSION}"))
        .set_compression(Compression::SNAPPY)
        .build();
    let mut writer = ArrowWriter::try_new(out, schema.clone(), Some(properties)).map_err(failed)?;
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
