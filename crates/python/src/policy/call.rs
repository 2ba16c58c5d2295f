//! The call of Python on whose behalf runs are made, and what a policy has raised in it.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;

use super::lock;

thread_local! {
    /// On whose behalf this thread makes runs.
    static HERE: RefCell<Option<Arc<Call>>> = const { RefCell::new(None) };
}

/// A call of Python that makes runs.
#[derive(Default, Debug)]
pub(crate) struct Call {
    raised: Mutex<Option<PyErr>>,
    over: AtomicBool,
    /// Identifiers, as Python has them, of the threads that make its runs and that Python knows.
    threads: Mutex<Vec<u64>>,
}

/// This thread makes runs on behalf of a call until this is dropped.
#[derive(Debug)]
pub(crate) struct Entered(Option<Arc<Call>>);

impl Call {
    /// Lets this thread make runs on its behalf. A policy may itself make runs: that is another
    /// call, inside of this one.
    pub(crate) fn enter(self: &Arc<Self>) -> Entered {
        Entered(HERE.replace(Some(self.clone())))
    }

    /// Notes that Python knows this thread, for [`Call::interrupt`].
    pub(crate) fn join(&self, py: Python<'_>) -> PyResult<()> {
        let own = py.import("threading")?.call_method0("get_ident")?.extract()?;
        lock(&self.threads).push(own);
        Ok(())
    }

    /// Ends the call, and has a method that runs at this moment in another thread raise
    /// `KeyboardInterrupt`: it may loop for ever, and Python itself interrupts its main thread
    /// only.
    pub(crate) fn interrupt(&self, py: Python<'_>) -> PyResult<()> {
        self.end();
        let threads = std::mem::take(&mut *lock(&self.threads));
        if threads.is_empty() {
            return Ok(());
        }
        py.import("anabranch._policies")?.call_method1("interrupt", (threads,)).map(drop)
    }

    /// The call on whose behalf this thread makes runs.
    pub(crate) fn here() -> Arc<Self> {
        HERE.with_borrow(|here| here.clone().unwrap_or_default())
    }

    /// Runs are to be given up. Policies are called no more.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Runs are to be given up.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// What a policy has raised.
    pub(crate) fn take(&self) -> Option<PyErr> {
        lock(&self.raised).take()
    }

    /// Calls Python. What it raises ends the call, with a note of the `place`; of several in
    /// parallel runs the first counts. `None` once the call is over.
    pub(crate) fn python<T>(
        &self,
        place: impl Fn() -> String,
        ask: impl FnOnce(Python<'_>) -> PyResult<T>,
    ) -> Option<T> {
        if self.is_over() {
            return None;
        }
        // At the interpreter's end there is no Python any more.
        let noted = |py: Python<'_>| {
            ask(py).inspect_err(|error| {
                // A note is a courtesy: the error stands without it.
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
