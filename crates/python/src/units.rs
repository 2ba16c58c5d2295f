//! Quantities in the syntax of scenario files.

use anabranch_scenario::units::{Rate, Size, Span};
use pyo3::prelude::*;

use crate::fault::Fault;

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(seconds, module)?)?;
    module.add_function(wrap_pyfunction!(octets, module)?)?;
    module.add_function(wrap_pyfunction!(bits_per_second, module)?)
}

/// Parses a time such as `25 ms`; the result is in seconds.
#[pyfunction]
fn seconds(text: &str) -> PyResult<f64> {
    let span: Span = text.parse().map_err(|error| Fault::new(format!("`{text}`: {error}")))?;
    Ok(span.0.as_secs_f64())
}

/// Parses a size such as `129 kB`; the result is in bytes.
#[pyfunction]
fn octets(text: &str) -> PyResult<u64> {
    let size: Size = text.parse().map_err(|error| Fault::new(format!("`{text}`: {error}")))?;
    Ok(size.0)
}

/// Parses a rate such as `250 kbit/s`; the result is in bit/s.
#[pyfunction]
fn bits_per_second(text: &str) -> PyResult<f64> {
    let rate: Rate = text.parse().map_err(|error| Fault::new(format!("`{text}`: {error}")))?;
    Ok(rate.0 as f64)
}
