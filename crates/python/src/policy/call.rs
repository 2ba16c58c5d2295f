//! The call from Python for which runs are made, and the exception that a policy raised in it.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;

use super::lock;

thread_local! {
    /// The call for which this thread makes runs.
    static HERE: RefCell<Option<Arc<Call>>> = const { RefCell::new(None) };
}

/// A call from Python that makes runs.
#[derive(Default, Debug)]
pub(crate) struct Call {
    raised: Mutex<Option<PyErr>>,
    over: AtomicBool,
    /// Python's identifiers of the threads that make its runs and that Python knows.
    threads: Mutex<Vec<u64>>,
}

/// Marks this thread as making runs for a call, until dropped.
#[derive(Debug)]
pub(crate) struct Entered(Option<Arc<Call>>);

impl Call {
    /// Marks this thread as making runs for the call. A policy may itself make runs: these belong
    /// to another, nested call.
    pub(crate) fn enter(self: &Arc<Self>) -> Entered {
        Entered(HERE.replace(Some(self.clone())))
    }

    /// Records that Python knows this thread, for [`Call::interrupt`].
    pub(crate) fn join(&self, py: Python<'_>) -> PyResult<()> {
        let own = py.import("threading")?.call_method0("get_ident")?.extract()?;
        lock(&self.threads).push(own);
        Ok(())
    }

    /// Ends the call, and raises `KeyboardInterrupt` in a method that is running on another thread.
    /// Such a method may loop forever, and Python itself interrupts only its main thread.
    pub(crate) fn interrupt(&self, py: Python<'_>) -> PyResult<()> {
        self.end();
        let threads = std::mem::take(&mut *lock(&self.threads));
        if threads.is_empty() {
            return Ok(());
        }
        py.import("anabranch._policies")?.call_method1("interrupt", (threads,)).map(drop)
    }

    /// The call for which this thread makes runs.
    pub(crate) fn here() -> Arc<Self> {
        HERE.with_borrow(|here| here.clone().unwrap_or_default())
    }

    /// Ends the call: its runs stop, and its policies are not called again.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Whether the call has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Takes the exception that a policy raised.
    pub(crate) fn take(&self) -> Option<PyErr> {
        lock(&self.raised).take()
    }

    /// Calls Python. An exception ends the call, with a note that names the `place`; of several in
    /// parallel runs the first is kept. Returns `None` once the call has ended.
    pub(crate) fn python<T>(
        &self,
        place: impl Fn() -> String,
        ask: impl FnOnce(Python<'_>) -> PyResult<T>,
    ) -> Option<T> {
        if self.is_over() {
            return None;
        }
        // While the interpreter is shutting down, Python cannot be called.
        let noted = |py: Python<'_>| {
            ask(py).inspect_err(|error| {
                // If the note cannot be added, the exception is kept without it.
                let _ = error.value(py).call_method1("add_note", (format!("in a policy: {}", place()),));
            })
        };
        match Python::try_attach(noted) {
            Some(Ok(said)) => Some(said),
            Some(Err(error)) => {
                lock(&self.raised).get_or_insert(error);
                self.end();
                None
            }
            None => {
                self.end();
                None
            }
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        HERE.set(self.0.take());
    }
}
