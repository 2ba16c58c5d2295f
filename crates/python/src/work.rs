//! Work on a separate thread, while the calling thread waits.

#![expect(clippy::disallowed_types, reason = "how often one looks for Ctrl-C alters no result")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::fault::Fault;
use crate::policy::Call;

/// Interval at which the waiting thread checks for Ctrl-C and reports progress.
const PERIOD: Duration = Duration::from_millis(50);
/// Time to wait for work that was told to stop. Longer work ends later by itself, and its result is
/// dropped.
const GRACE: Duration = Duration::from_millis(500);

/// Does `work` on another thread, without the interpreter's lock. Meanwhile `look` and Python's
/// signal handlers are called regularly. If one of them raises, `stop` is set and the exception is
/// the result.
pub(crate) fn work<T: Send + 'static>(
    py: Python<'_>,
    stop: &AtomicBool,
    mut look: impl FnMut(Python<'_>) -> PyResult<()>,
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> PyResult<T> {
    let (done, mut waits) = sync_channel(1);
    let call = Arc::new(Call::default());
    let calls = call.clone();
    let doing = move || {
        let _entered = calls.enter();
        // The receiver is gone if the work was told to stop.
        let _ = done.send(caught(work));
    };
    std::thread::Builder::new()
        .name("anabranch".to_owned())
        .spawn(doing)
        .map_err(|error| Fault::new(format!("cannot start a thread: {error}")))?;
    loop {
        let result;
        (result, waits) = wait(py, waits, PERIOD);
        match result {
            Ok(result) => {
                if let Some(raised) = call.take() {
                    return Err(raised);
                }
                look(py)?;
                return Ok(result?);
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Fault::new("a thread has gone without a word").into());
            }
            Err(RecvTimeoutError::Timeout) => {
                // A policy raised an exception, which ends the work.
                if call.is_over() {
                    stop.store(true, Ordering::Relaxed);
                }
                if let Err(raised) = py.check_signals().and_then(|()| look(py)) {
                    stop.store(true, Ordering::Relaxed);
                    // A thread that cannot be interrupted is not waited for.
                    let _ = call.interrupt(py);
                    drop(wait(py, waits, GRACE));
                    return Err(raised);
                }
            }
        }
    }
}

/// Does `work` on this thread, without the interpreter's lock, for work shorter than the time to
/// wake another thread. `work` calls its argument regularly, and ends when `stop` is set; otherwise
/// this is like [`work`].
pub(crate) fn alone(
    py: Python<'_>,
    stop: &AtomicBool,
    look: impl Fn(Python<'_>) -> PyResult<()> + Sync,
    work: impl FnOnce(&dyn Fn()) -> Result<(), Fault> + Send,
) -> PyResult<()> {
    let (raised, last) = (Mutex::new(None), Mutex::new(Instant::now()));
    let call = Arc::new(Call::default());
    let poll = || {
        if call.is_over() {
            stop.store(true, Ordering::Relaxed);
        }
        let mut last = last.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if last.elapsed() < PERIOD || stop.load(Ordering::Relaxed) {
            return;
        }
        *last = Instant::now();
        if let Err(error) = Python::attach(|py| py.check_signals().and_then(|()| look(py))) {
            *raised.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(error);
            stop.store(true, Ordering::Relaxed);
        }
    };
    let result = py.detach(|| {
        let _entered = call.enter();
        caught(|| work(&poll))
    });
    if let Some(error) = call.take() {
        return Err(error);
    }
    let raised = raised.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
    if let Some(error) = raised {
        return Err(error);
    }
    look(py)?;
    Ok(result?)
}

/// Does `work` and converts a panic to an error.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Fault::panicked(&*panic)))
}

type Waited<T> = Result<Result<T, Fault>, RecvTimeoutError>;
type Waits<T> = Receiver<Result<T, Fault>>;

fn wait<T: Send>(py: Python<'_>, waits: Waits<T>, time: Duration) -> (Waited<T>, Waits<T>) {
    py.detach(move || (waits.recv_timeout(time), waits))
}
