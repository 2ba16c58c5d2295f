//! CSV as in RFC 4180, except for line endings, which are those of text on this system.

use std::io::{self, Write};

use anabranch_sim::csv::field;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema};

/// Writes the names with their units.
pub(super) fn header(out: &mut impl Write, schema: &Schema) -> io::Result<()> {
    for (i, field) in schema.fields().iter().enumerate() {
        separate(out, i)?;
        match field.metadata().get("unit") {
            Some(unit) => text(out, &format!("{} [{unit}]", field.name()))?,
            None => text(out, field.name())?,
        }
    }
    out.write_all(b"\n")
}

/// Writes a line for each row.
pub(super) fn rows(out: &mut impl Write, batch: &RecordBatch) -> io::Result<()> {
    for row in 0..batch.num_rows() {
        for (i, column) in batch.columns().iter().enumerate() {
            separate(out, i)?;
            if column.is_null(row) {
                continue;
            }
            match column.data_type() {
                DataType::UInt64 => write!(out, "{}", column.as_primitive::<UInt64Type>().value(row))?,
                DataType::Int64 => write!(out, "{}", column.as_primitive::<Int64Type>().value(row))?,
                DataType::Float64 => number(out, column.as_primitive::<Float64Type>().value(row))?,
                DataType::Boolean => write!(out, "{}", column.as_boolean().value(row))?,
                _ => text(out, column.as_string::<i32>().value(row))?,
            }
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn separate(out: &mut impl Write, column: usize) -> io::Result<()> {
    if column > 0 { out.write_all(b",") } else { Ok(()) }
}

/// Writes the shortest decimal that identifies the number; nothing for a value that is not finite.
fn number(out: &mut impl Write, value: f64) -> io::Result<()> {
    match serde_json::Number::from_f64(value) {
        Some(number) => write!(out, "{number}"),
        None => Ok(()),
    }
}

fn text(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(field(text).as_bytes())
}
