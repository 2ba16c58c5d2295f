//! Reads and checks values that policies return.

use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyString};

use crate::fault::Fault;

/// Limit on the characters of a value in an error.
const LONGEST: usize = 80;

/// A value as errors show it.
pub(super) fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map(|text| text.to_string_lossy().into_owned());
    let text = text.unwrap_or_else(|_| format!("a {}", class(value)));
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Name of a value's class in errors.
pub(super) fn class(value: &Bound<'_, PyAny>) -> String {
    value.get_type().qualname().map_or_else(|_| "value".to_owned(), |name| name.to_string())
}

/// Reads an attribute of a policy. `place` is the method that was called last.
pub(super) fn attribute<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
    place: &str,
) -> PyResult<Bound<'py, PyAny>> {
    object.getattr_opt(name)?.ok_or_else(|| {
        let class = class(object);
        let hint = format!("set `self.{name}`, or call `super().__init__(start)`, in `{class}.__init__`");
        Fault::new(format!("{class}.{place} left no `{name}`")).with_hint(hint).into()
    })
}

/// Converts a value to a number of bytes; fractions are cut off.
pub(super) fn octets(value: &Bound<'_, PyAny>) -> Option<u32> {
    let Ok(float) = value.cast::<PyFloat>() else {
        // A value that is no Python float may be a number of another library.
        return value.extract().ok().or_else(|| within(value.extract().ok()?));
    };
    within(float.extract().ok()?)
}

fn within(number: f64) -> Option<u32> {
    (0.0..f64::from(u32::MAX) + 1.0).contains(&number).then_some(number as u32)
}

/// Error for an invalid attribute; it names the method that set it.
pub(super) fn refused(
    object: &Bound<'_, PyAny>,
    place: &str,
    name: &str,
    value: &Bound<'_, PyAny>,
    expected: &str,
) -> PyErr {
    let class = class(object);
    Fault::new(format!("{class}.{place} left `{name}` = {}: expected {expected}", shown(value))).into()
}

/// Error for an invalid return value.
pub(super) fn returned(class: &str, method: &str, value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    Fault::new(format!("{class}.{method} returned {}: expected {expected}", shown(value))).into()
}
