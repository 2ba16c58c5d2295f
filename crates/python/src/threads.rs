//! The threads that make runs, kept from call to call: starting them takes longer than some short runs.

use std::ops::Deref;
use std::sync::{Mutex, MutexGuard};

use rayon::ThreadPool;

use crate::fault::Fault;

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
