//! An allocator that counts, for tests of what allocates nothing. A test program installs it for all of itself, so it
//! holds one such test and nothing else: two at once would count each other's.
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
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

/// The system's allocator, which counts what it hands out.
#[derive(Clone, Copy, Debug)]
pub struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static OCTETS: AtomicU64 = AtomicU64::new(0);
static IN_USE: AtomicI64 = AtomicI64::new(0);
static WATCHED_SIZE: AtomicUsize = AtomicUsize::new(usize::MAX);
static WATCHED: AtomicU64 = AtomicU64::new(0);

/// Allocations so far, those that move or grow included.
pub fn allocations() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// Octets of all of them together, each rounded up to whole units of 16.
pub fn octets() -> u64 {
    OCTETS.load(Ordering::Relaxed)
}

/// Octets that are in use, each allocation rounded up in the same way.
pub fn in_use() -> i64 {
    IN_USE.load(Ordering::Relaxed)
}

/// From now on allocations of this very size, in octets, are counted apart as well.
pub fn watch(size: usize) {
    WATCHED_SIZE.store(size, Ordering::Relaxed);
}

/// Allocations of the size that is watched.
pub fn watched() -> u64 {
    WATCHED.load(Ordering::Relaxed)
}

fn rounded(size: usize) -> usize {
    size.next_multiple_of(16)
}

fn count(size: usize) {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    OCTETS.fetch_add(rounded(size) as u64, Ordering::Relaxed);
    IN_USE.fetch_add(rounded(size) as i64, Ordering::Relaxed);
    if size == WATCHED_SIZE.load(Ordering::Relaxed) {
        WATCHED.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed on unchanged to the system's allocator, whose contract is the same.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps to the contract of `alloc`, which is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(rounded(layout.size()) as i64, Ordering::Relaxed);
        // SAFETY: `pointer` came from `System` with this layout, since all of ours do.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size);
        IN_USE.fetch_sub(rounded(layout.size()) as i64, Ordering::Relaxed);
        // SAFETY: as in `dealloc`; the caller keeps to the contract for the new size.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
