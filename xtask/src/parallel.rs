//! Runs work in parallel.

use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Number of processors available to this process; 1 if unknown.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Calls `deed` for each item in order, as many at a time as there are processors. After a `Break`
/// no further item starts.
pub(crate) fn each<T>(items: impl Iterator<Item = T> + Send, deed: impl Fn(T) -> ControlFlow<()> + Sync) {
    let (items, over) = (Mutex::new(items), AtomicBool::new(false));
    let work = || {
        while !over.load(Ordering::Relaxed) {
            let next = items.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(item) = next else { return };
            if deed(item).is_break() {
                over.store(true, Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..cores() {
            scope.spawn(work);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_done_once_and_nothing_begins_after_a_break() {
        let done = Mutex::new(Vec::new());
        let note = |item| done.lock().expect("no panic").push(item);
        each(0..5, |item| {
            note(item);
            ControlFlow::Continue(())
        });
        let mut all = std::mem::take(&mut *done.lock().expect("no panic"));
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4]);
        each(0..1_000_000, |item| {
            note(item);
            if item == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let begun = done.into_inner().expect("no panic");
        assert!(begun.contains(&2) && begun.len() < 1_000_000);
    }
}
