//! Thread pools that are kept from call to call, since starting threads takes longer than some
//! short runs.

use std::num::NonZero;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard};

use pyo3::Python;
use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};

use crate::fault::Fault;
use crate::policy::Call;

/// A pool of threads for one call, kept afterwards for the next one.
pub(crate) struct Threads(Option<Kept>);

struct Kept {
    /// Process that started the threads; a forked process has none of them.
    process: u32,
    /// Requested number of threads; 0 for one per core.
    threads: usize,
    pool: ThreadPool,
}

/// Threads of the last finished call.
static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

fn kept() -> MutexGuard<'static, Option<Kept>> {
    KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Does `work` in a new pool of at most `threads` threads (0: one per core) that call Python for
/// the current call. The pool ends with the work: Python does not shut down cleanly while threads
/// that it knows exist.
pub(crate) fn with_python<T: Send>(
    threads: usize,
    work: impl FnOnce() -> Result<T, Fault> + Send,
) -> Result<T, Fault> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let call = Call::here();
    let each = |thread: ThreadBuilder| {
        let _entered = call.enter();
        // Attach the thread to Python once. Otherwise every method call would create and destroy
        // Python's thread state.
        Python::attach(|py| {
            // A thread that Python cannot name is not interrupted by Ctrl-C.
            let _ = call.join(py);
            py.detach(|| thread.run());
        });
    };
    let pool = ThreadPoolBuilder::new().num_threads(threads.min(cores));
    let worked = pool.build_scoped(each, |pool| pool.install(work));
    worked.unwrap_or_else(|error| Err(Fault::new(format!("cannot start threads: {error}"))))
}

impl Threads {
    /// Takes a pool of at most `threads` threads; 0 for one per core.
    pub(crate) fn borrow(threads: usize) -> Result<Self, Fault> {
        let process = std::process::id();
        let before = kept().take();
        match before {
            Some(before) if (before.process, before.threads) == (process, threads) => {
                return Ok(Self(Some(before)));
            }
            // The threads belong to another process: they can be neither woken nor joined.
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
