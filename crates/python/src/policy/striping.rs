//! SET striping policies written in Python.

use std::sync::Arc;

use anabranch_core::set::striping::{self as core, Striping};
use pyo3::prelude::*;

use super::told::told;
use super::{Call, Object, read};

/// Creates the striping policy of a transfer.
pub(super) fn make(number: usize, (): ()) -> Box<dyn Striping> {
    let call = Call::here();
    let object = call.python(|| "a new transfer".to_owned(), |py| Object::make(py, number, "Striping", ()));
    Box::new(Written { call, object })
}

/// A striping policy written in Python.
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

told! {
    /// A session as a policy sees it.
    Session(core::PathView) {
        room: u32, chunk: u64, outstanding: u64, rate: Option<u64>, capacity: u64, time_for_chunk: f64,
        usable: bool,
    }
}

told! {
    /// The file as a policy sees it.
    File(core::FileView) {
        unassigned: u64, buffer: u64,
    }
}
