//! Striping policies of SET.

use std::sync::Arc;

use anabranch_core::set::striping::{self as core, Striping};
use pyo3::prelude::*;

use super::{Call, Object, read};

/// Makes the striping policy of a transfer.
pub(super) fn make(number: usize, (): ()) -> Box<dyn Striping> {
    let call = Call::here();
    let object = call.python(|| "a new transfer".to_owned(), |py| Object::make(py, number, "Striping", ()));
    Box::new(Written { call, object })
}

/// A striping policy that is written in Python.
#[derive(Debug)]
struct Written {
    call: Arc<Call>,
    object: Option<Object>,
}

impl Striping for Written {
    fn choose(&mut self, paths: &[core::PathView], file: &core::FileView) -> Option<usize> {
        let Object { object, class } = self.object.as_ref()?;
        let chosen = self.call.python(
            || format!("{class}.choose"),
            |py| {
                let sessions: Vec<Session> = paths.iter().map(|path| Session(*path)).collect();
                let said = object.bind(py).call_method1("choose", (sessions, File(*file)))?;
                if said.is_none() {
                    return Ok(None);
                }
                let index = said.extract::<usize>().ok().filter(|index| *index < paths.len());
                let expected = || format!("None or the index of a session, less than {}", paths.len());
                index.map(Some).ok_or_else(|| read::returned(class, "choose", &said, &expected()))
            },
        );
        chosen.flatten()
    }
}

/// A session as a policy sees it.
#[pyclass(frozen, module = "anabranch.policy")]
pub(crate) struct Session(core::PathView);

#[pymethods]
impl Session {
    #[getter]
    fn room(&self) -> u32 {
        self.0.room
    }

    #[getter]
    fn chunk(&self) -> u64 {
        self.0.chunk
    }

    #[getter]
    fn outstanding(&self) -> u64 {
        self.0.outstanding
    }

    #[getter]
    fn rate(&self) -> Option<u64> {
        self.0.rate
    }

    #[getter]
    fn capacity(&self) -> u64 {
        self.0.capacity
    }

    #[getter]
    fn time_for_chunk(&self) -> f64 {
        self.0.time_for_chunk.as_secs_f64()
    }

    #[getter]
    fn usable(&self) -> bool {
        self.0.usable
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// The file as a policy sees it.
#[pyclass(frozen, module = "anabranch.policy")]
pub(crate) struct File(core::FileView);

#[pymethods]
impl File {
    #[getter]
    fn unassigned(&self) -> u64 {
        self.0.unassigned
    }

    #[getter]
    fn buffer(&self) -> u64 {
        self.0.buffer
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}
