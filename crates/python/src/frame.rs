//! Tables, which other libraries can read in memory.

use std::collections::BTreeMap;

use anabranch_stats::{Median, Summary, Survival};
use anabranch_sweep::table::{self, Column, Values};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use crate::fault::Fault;

/// Columns of equal length, with names and units.
#[pyclass(frozen, module = "anabranch._anabranch")]
pub(crate) struct Frame(pub(crate) table::Frame);

#[pymethods]
impl Frame {
    /// Creates a table from columns: name, unit, type (`bool`, `int`, `float` or `str`) and values.
    #[staticmethod]
    fn of(columns: Vec<(String, String, String, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let columns = columns.into_iter().map(|(name, unit, kind, values)| {
            let values = match kind.as_str() {
                "bool" => Values::Booleans(values.extract()?),
                "int" => Values::Integers(values.extract()?),
                "float" => Values::Numbers(values.extract()?),
                _ => Values::Texts(values.extract()?),
            };
            Ok(Column { name, unit, values })
        });
        let columns = columns.collect::<PyResult<Vec<_>>>()?;
        Ok(Self(table::Frame::new(columns).map_err(Fault::from)?))
    }

    /// Reads what `to_ipc` wrote.
    #[staticmethod]
    fn from_ipc(py: Python<'_>, octets: Vec<u8>) -> PyResult<Self> {
        Ok(Self(py.detach(|| table::Frame::read_ipc(&octets)).map_err(Fault::from)?))
    }

    /// Reads what `to_parquet` or a sweep of the program wrote.
    #[staticmethod]
    fn from_parquet(py: Python<'_>, octets: Vec<u8>) -> PyResult<Self> {
        Ok(Self(py.detach(|| table::Frame::read_parquet(octets.into())).map_err(Fault::from)?))
    }

    /// Metadata of the whole table.
    fn metadata(&self) -> BTreeMap<String, String> {
        self.0.metadata().into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Names and units.
    fn columns(&self) -> Vec<(String, String)> {
        self.0.columns().map(|(name, unit)| (name.to_owned(), unit.to_owned())).collect()
    }

    /// The values of a column; `None` if there is no column of that name.
    fn values<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(values) = py.detach(|| self.0.values(name)) else { return Ok(None) };
        let list = match values {
            Values::Integers(values) => values.into_bound_py_any(py),
            Values::Numbers(values) => values.into_bound_py_any(py),
            Values::Booleans(values) => values.into_bound_py_any(py),
            Values::Texts(values) => values.into_bound_py_any(py),
        };
        list.map(Some)
    }

    /// The table through Arrow's C stream interface.
    fn stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        PyCapsule::new_with_value(py, self.0.stream(), c"arrow_array_stream")
    }

    /// The schema through Arrow's C data interface.
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = self.0.schema().map_err(Fault::from)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The table as an Arrow stream.
    fn to_ipc<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let octets = py.detach(|| octets(|out| self.0.write_ipc(out)))?;
        Ok(PyBytes::new(py, &octets))
    }

    /// The table as Parquet.
    fn to_parquet<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let octets = py.detach(|| octets(|out| self.0.write_parquet(out)))?;
        Ok(PyBytes::new(py, &octets))
    }

    /// The table as CSV.
    fn to_csv<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let octets = py.detach(|| octets(|out| self.0.write_csv(out)))?;
        Ok(PyBytes::new(py, &octets))
    }
}

fn octets(write: impl FnOnce(&mut Vec<u8>) -> Result<(), anabranch_sweep::Error>) -> Result<Vec<u8>, Fault> {
    let mut octets = Vec::new();
    write(&mut octets)?;
    Ok(octets)
}

/// Count, mean, half-width of the mean's 95 % confidence interval (with at least two values),
/// minimum and maximum; `None` without values.
#[pyfunction]
pub(crate) fn summary(values: Vec<f64>) -> PyResult<Option<Parts>> {
    if values.is_empty() {
        return Ok(None);
    }
    Ok(Some(parts(Summary::of(&values).map_err(|error| Fault::new(error.to_string()))?)))
}

/// Median of partly censored times, bounds of its 95 % confidence interval, and the numbers of
/// times and of censored times; `None` without values.
#[pyfunction]
#[allow(clippy::type_complexity, reason = "a tuple of Python's")]
pub(crate) fn survival(
    ended: Vec<f64>,
    censored: Vec<f64>,
) -> PyResult<Option<(usize, usize, Option<f64>, Option<f64>, Option<f64>)>> {
    if ended.is_empty() && censored.is_empty() {
        return Ok(None);
    }
    let found = Survival::of(&ended, &censored).map_err(|error| Fault::new(error.to_string()))?;
    let Median { median, median_ci95: (low, high), censored } = found.median();
    Ok(Some((found.runs, censored, median, low, high)))
}

type Parts = (usize, f64, Option<f64>, f64, f64);

fn parts(Summary { mean, ci95, min, max, runs }: Summary) -> Parts {
    (runs, mean, ci95, min, max)
}

/// Difference `left - right` of paired runs and ratio of their means, each as by [`summary`]; no
/// ratio if the mean of `right` is 0.
#[pyfunction]
pub(crate) fn compared(left: Vec<f64>, right: Vec<f64>) -> PyResult<(Parts, Option<Parts>)> {
    let failed = |error: anabranch_stats::StatsError| Fault::new(error.to_string());
    let difference = anabranch_stats::paired(&left, &right).map_err(failed)?;
    Ok((parts(difference), anabranch_stats::ratio(&left, &right).ok().map(parts)))
}
