//! The threads that make runs, kept from call to call: starting them takes longer than some short
//! runs.

use std::num::NonZero;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard};

use pyo3::Python;
use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};

use crate::fault::Fault;
use crate::policy::Call;

/// A pool of threads that one call has for itself; it is kept for the next one.
pub(crate) struct Threads(Option<Kept>);

struct Kept {
    /// The process that has started them: one that was forked from it has none of them.
    process: u32,
    /// How many were asked for; 0 for all cores.
    threads: usize,
    pool: ThreadPool,
}

/// The threads of the last call that is over.
static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

fn kept() -> MutexGuard<'static, Option<Kept>> {
    KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Does `work` in a pool of at most `threads` threads, 0 for one on each core, that call Python on
/// behalf of the call that this thread works for. They are gone when it is done: Python ends badly
/// for threads that it knows.
pub(crate) fn with_python<T: Send>(
    threads: usize,
    work: impl FnOnce() -> Result<T, Fault> + Send,
) -> Result<T, Fault> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let call = Call::here();
    let each = |thread: ThreadBuilder| {
        let _entered = call.enter();
        // Python knows the thread for as long as it lives. Otherwise it would have to be told anew
        // for each call of a method.
        Python::attach(|py| {
            // A thread that Python cannot name is one that Ctrl-C does not interrupt.
            let _ = call.join(py);
            py.detach(|| thread.run());
        });
    };
    let pool = ThreadPoolBuilder::new().num_threads(threads.min(cores));
    let worked = pool.build_scoped(each, |pool| pool.install(work));
    worked.unwrap_or_else(|error| Err(Fault::new(format!("cannot start threads: {error}"))))
}

impl Threads {
    /// At most `threads` threads, 0 for one on each core.
    pub(crate) fn borrow(threads: usize) -> Result<Self, Fault> {
        let process = std::process::id();
        let before = kept().take();
        match before {
            Some(before) if (before.process, before.threads) == (process, threads) => {
                return Ok(Self(Some(before)));
            }
            // Its threads are another process's: there is nothing to wake or to wait for.
            Some(before) if before.process != process => std::mem::forget(before),
            _ => {}
        }
        Ok(Self(Some(Kept { process, threads, pool: anabranch_sweep::pool(threads)? })))
    }
}

impl Deref for Threads {
    type Target = ThreadPool;

    fn deref(&self) -> &ThreadPool {
        &self.0.as_ref().expect("it is there until it is dropped").pool
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        *kept() = self.0.take();
    }
}
