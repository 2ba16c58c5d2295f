//! An allocator that counts per thread, for tests that bound how much their code allocates.
//!
//! The allocator serves the whole test binary, but each thread has counters of its own. libtest
//! runs every test in a thread of its own, so such a test can share its binary with others. The
//! counters of one thread miss what the code under test allocates on another thread: use them only
//! for code that starts none.
//!
//! ```
//! use anabranch_testkit::counting::{Counting, allocations};
//!
//! #[global_allocator]
//! static COUNTING: Counting = Counting;
//!
//! let before = allocations();
//! drop(Box::new(7));
//! assert_eq!(allocations() - before, 1);
//! ```

#![allow(unsafe_code, reason = "an allocator is unsafe to implement, and this one only passes on and counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts what it hands out.
#[derive(Clone, Copy, Debug)]
pub struct Counting;

/// Counters of one thread.
struct Counters {
    allocations: Cell<u64>,
    octets: Cell<u64>,
    in_use: Cell<i64>,
    watched_size: Cell<usize>,
    watched: Cell<u64>,
}

thread_local! {
    // The constant initialiser and the missing destructor keep the first access inside the
    // allocator from allocating.
    static COUNTERS: Counters = const {
        Counters {
            allocations: Cell::new(0),
            octets: Cell::new(0),
            in_use: Cell::new(0),
            watched_size: Cell::new(usize::MAX),
            watched: Cell::new(0),
        }
    };
}

/// Number of this thread's allocations so far, including those that move or grow.
pub fn allocations() -> u64 {
    COUNTERS.with(|counters| counters.allocations.get())
}

/// Sum of the sizes of this thread's allocations in bytes, each rounded up to a multiple of 16.
pub fn octets() -> u64 {
    COUNTERS.with(|counters| counters.octets.get())
}

/// Bytes that this thread allocated minus bytes that it freed, each size rounded up to a multiple
/// of 16. Negative if the thread frees memory that others allocated.
pub fn in_use() -> i64 {
    COUNTERS.with(|counters| counters.in_use.get())
}

/// Counts this thread's later allocations of exactly `size` bytes separately; see [`watched`].
pub fn watch(size: usize) {
    COUNTERS.with(|counters| counters.watched_size.set(size));
}

/// Number of this thread's allocations of the watched size.
pub fn watched() -> u64 {
    COUNTERS.with(|counters| counters.watched.get())
}

fn rounded(size: usize) -> usize {
    size.next_multiple_of(16)
}

/// Changes the counters of this thread. A thread whose thread-local storage is gone is not counted:
/// the allocator must not panic.
fn change(with: impl FnOnce(&Counters)) {
    let _ = COUNTERS.try_with(with);
}

fn add<T: Copy + std::ops::Add<Output = T>>(cell: &Cell<T>, n: T) {
    cell.set(cell.get() + n);
}

fn count(size: usize) {
    change(|counters| {
        add(&counters.allocations, 1);
        add(&counters.octets, rounded(size) as u64);
        add(&counters.in_use, rounded(size) as i64);
        if size == counters.watched_size.get() {
            add(&counters.watched, 1);
        }
    });
}

fn release(size: usize) {
    change(|counters| add(&counters.in_use, -(rounded(size) as i64)));
}

// SAFETY: every call is passed on unchanged to the system's allocator, whose contract is the same.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps to the contract of `alloc`, which is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        release(layout.size());
        // SAFETY: `pointer` came from `System` with this layout, since all of ours do.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size);
        release(layout.size());
        // SAFETY: as in `dealloc`; the caller keeps to the contract for the new size.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_counts_its_own() {
        count(17);
        let other = std::thread::spawn(|| {
            watch(17);
            (0..3).for_each(|_| count(17));
            release(5);
            (allocations(), octets(), in_use(), watched())
        });
        let other = other.join().expect("no panic");
        assert_eq!(other, (3, 96, 80, 3));
        assert_eq!((allocations(), octets(), in_use(), watched()), (1, 32, 32, 0));
    }
}
