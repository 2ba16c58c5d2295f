//! The heap of a machine behind a C interface, in memory that the caller provides.
//!
//! A [`Handle`] is the structure at the beginning of that memory. The rest is a heap for one
//! machine: what is allocated while the machine is created lasts, and from then on there are only
//! blocks of a few sizes ([`Blocks`]). Blocks of one size cannot fragment, so a machine with a
//! known number of allocations never runs out of them.
//!
//! Rust has a single global allocator. The one here serves the machine that is being called
//! ([`Call`]) and refuses allocations outside of calls. Machines therefore share no state, and only
//! one thread at a time may be in the library.

#![no_std]
#![allow(unsafe_code, reason = "an allocator over C's memory")]

#[cfg(test)]
extern crate std;

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, Ordering};

/// Alignment of every allocation in bytes.
const ALIGNMENT: usize = align_of::<u64>();

/// Blocks of one size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blocks {
    /// Size of a block in bytes.
    pub octets: usize,
    /// Number of blocks.
    pub count: usize,
    kind: Kind,
}

/// What blocks are for. The two kinds have blocks of their own: otherwise a reference count could
/// take the last block that is long enough for a byte buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Byte buffers.
    Octets,
    /// Everything else.
    Words,
}

impl Kind {
    const fn of(layout: Layout) -> Self {
        if layout.align() == 1 { Self::Octets } else { Self::Words }
    }
}

impl Blocks {
    /// No blocks.
    pub const NONE: Self = Self::octets(0, 0);

    /// Blocks for byte buffers of this length.
    pub const fn octets(octets: usize, count: usize) -> Self {
        Self { octets, count, kind: Kind::Octets }
    }

    /// Blocks for the reference counts of `count` byte buffers: pointer, capacity and count.
    pub const fn references(count: usize) -> Self {
        Self { octets: 3 * size_of::<usize>(), count, kind: Kind::Words }
    }

    const fn stride(self) -> usize {
        self.octets.next_multiple_of(ALIGNMENT)
    }

    /// Bytes of heap for all of them.
    pub const fn heap(self) -> usize {
        self.stride() * self.count
    }
}

/// Bytes of heap for an allocation of this size that lasts.
pub const fn lasting(octets: usize) -> usize {
    octets.next_multiple_of(ALIGNMENT)
}

/// A free block: it begins with a pointer to the next one.
struct Free {
    next: *mut Free,
}

/// The blocks of one size.
struct Pool {
    free: *mut Free,
    /// End of the blocks, counted from the first block of all.
    end: u32,
    octets: u16,
    kind: Kind,
}

impl Pool {
    const NONE: Self = Self { free: ptr::null_mut(), end: 0, octets: 0, kind: Kind::Octets };

    fn take(&mut self) -> *mut u8 {
        let block = self.free;
        // SAFETY: the pointer is null or a free block.
        if let Some(free) = unsafe { block.as_ref() } {
            self.free = free.next;
        }
        block.cast()
    }

    /// SAFETY: `octets` is an unused block of this pool.
    unsafe fn give(&mut self, octets: *mut u8) {
        let block = octets.cast::<Free>();
        // SAFETY: the caller guarantees that the block is unused; blocks are aligned.
        unsafe { block.write(Free { next: self.free }) };
        self.free = block;
    }
}

/// The heap of one machine.
struct Arena {
    /// The memory that nothing uses yet; then the first block.
    rest: *mut u8,
    left: usize,
    /// Smaller blocks first.
    pools: [Pool; 3],
}

impl Arena {
    fn last(&mut self, octets: usize) -> *mut u8 {
        let octets = lasting(octets);
        if octets > self.left {
            return ptr::null_mut();
        }
        let at = self.rest;
        self.rest = at.wrapping_add(octets);
        self.left -= octets;
        at
    }

    /// Cuts the blocks out of the remaining memory. From then on nothing lasts. Returns false if
    /// there is too little memory.
    fn cut(&mut self, blocks: [Blocks; 3]) -> bool {
        let mut end = 0;
        for (pool, blocks) in self.pools.iter_mut().zip(blocks) {
            let start = end;
            end += blocks.heap();
            let (Ok(octets), Ok(ends)) = (u16::try_from(blocks.octets), u32::try_from(end)) else {
                return false;
            };
            if end > self.left {
                return false;
            }
            (pool.end, pool.octets, pool.kind) = (ends, octets, blocks.kind);
            for n in 0..blocks.count {
                // SAFETY: the block is within the memory, and nothing else is there.
                unsafe { pool.give(self.rest.add(start + n * blocks.stride())) };
            }
        }
        self.left = 0;
        true
    }

    fn allocate(&mut self, layout: Layout) -> *mut u8 {
        if layout.align() > ALIGNMENT {
            return ptr::null_mut();
        }
        if self.left > 0 {
            return self.last(layout.size());
        }
        let fits =
            |pool: &&mut Pool| pool.kind == Kind::of(layout) && usize::from(pool.octets) >= layout.size();
        let pool = self.pools.iter_mut().filter(fits).find(|pool| !pool.free.is_null());
        pool.map_or(ptr::null_mut(), Pool::take)
    }

    /// SAFETY: `octets` was allocated from this arena and is unused.
    unsafe fn free(&mut self, octets: *mut u8) {
        // What lasts is before the first block, so its place wraps and is in no pool.
        let at = (octets as usize).wrapping_sub(self.rest as usize);
        let pool = self.pools.iter_mut().find(|pool| at < pool.end as usize);
        if let Some(pool) = pool {
            // SAFETY: the address is that of a block of this pool.
            unsafe { pool.give(octets) };
        }
    }
}

/// The structure at the beginning of the caller's memory.
pub struct Handle<T> {
    arena: Arena,
    machine: T,
}

impl<T> Handle<T> {
    /// Bytes of memory for a machine, at any alignment of its start, with this size of the heap.
    pub const fn memory(heap: usize) -> usize {
        align_of::<Self>() - 1 + size_of::<Self>() + heap
    }

    /// Creates a machine at the beginning of `size` bytes: `make` writes it to its place, since a
    /// machine on its way through the stack would take as much stack again. The heap has what
    /// `make` allocates, and then `blocks`, smaller ones first. Returns `None` if the memory is too
    /// short for that, or if `make` returns `None`.
    ///
    /// # Safety
    ///
    /// `octets` points to `size` bytes that nothing else uses from now on.
    pub unsafe fn create(
        octets: NonNull<c_void>,
        size: usize,
        blocks: [Blocks; 3],
        make: impl FnOnce(&mut MaybeUninit<T>) -> Option<&mut T>,
    ) -> Option<NonNull<Self>> {
        let skipped = octets.align_offset(align_of::<Self>());
        let left = size.checked_sub(skipped.checked_add(size_of::<Self>())?)?;
        // SAFETY: there are at least as many bytes.
        let handle = unsafe { octets.cast::<u8>().add(skipped) }.cast::<Self>();
        // SAFETY: as above.
        let rest = unsafe { handle.add(1) }.cast().as_ptr();
        // SAFETY: both fields are aligned and within the memory.
        let (arena, machine) = unsafe {
            let arena = &raw mut (*handle.as_ptr()).arena;
            arena.write(Arena { rest, left, pools: [Pool::NONE; 3] });
            (arena, &mut *(&raw mut (*handle.as_ptr()).machine).cast::<MaybeUninit<T>>())
        };
        CURRENT.store(arena, Ordering::Relaxed);
        let is_made = make(machine).is_some();
        CURRENT.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: the arena was written above, and no other reference to it exists.
        let is_cut = unsafe { (*arena).cut(blocks) };
        (is_made && is_cut).then_some(handle)
    }
}

/// The heap of the machine that is being called; null outside of calls.
static CURRENT: AtomicPtr<Arena> = AtomicPtr::new(ptr::null_mut());

/// The allocator of a program with one of the libraries.
struct Allocator;

#[cfg_attr(all(feature = "allocator", not(test)), global_allocator)]
#[cfg_attr(any(test, not(feature = "allocator")), expect(dead_code, reason = "for archives only"))]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: what lasts and blocks are at least as long and as aligned as the requests; a null pointer
// reports that no memory is free.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the pointer is null or the arena of the machine that is being called, to which no
        // reference exists meanwhile.
        let arena = unsafe { CURRENT.load(Ordering::Relaxed).as_mut() };
        arena.map_or(ptr::null_mut(), |arena| arena.allocate(layout))
    }

    unsafe fn dealloc(&self, octets: *mut u8, _: Layout) {
        // SAFETY: as in `alloc`.
        let arena = unsafe { CURRENT.load(Ordering::Relaxed).as_mut() };
        if let Some(arena) = arena {
            // SAFETY: a machine frees only its own allocations, during its own calls.
            unsafe { arena.free(octets) };
        }
    }
}

/// One call: until it is dropped, the allocator serves this machine.
pub struct Call<'a, T>(&'a mut T);

impl<T> Call<'_, T> {
    /// Begins a call; `None` if `handle` is null.
    ///
    /// # Safety
    ///
    /// `handle` is null or from [`Handle::create`], and nothing else uses it during the call.
    pub unsafe fn begin(handle: *mut Handle<T>) -> Option<Self> {
        let handle = NonNull::new(handle)?.as_ptr();
        // SAFETY: the pointers refer to different fields of a valid handle.
        let (arena, machine) = unsafe { (&raw mut (*handle).arena, &mut (*handle).machine) };
        CURRENT.store(arena, Ordering::Relaxed);
        Some(Self(machine))
    }
}

impl<T> Deref for Call<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0
    }
}

impl<T> DerefMut for Call<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0
    }
}

impl<T> Drop for Call<'_, T> {
    fn drop(&mut self) {
        CURRENT.store(ptr::null_mut(), Ordering::Relaxed);
    }
}

/// The `n` bytes at `octets`; `None` for a null pointer, no bytes, or more than `most`.
///
/// # Safety
///
/// `octets` is null or points to `n` bytes that do not change during `'a`.
pub unsafe fn input<'a>(octets: *const c_void, n: usize, most: usize) -> Option<&'a [u8]> {
    let octets = NonNull::new(octets.cast_mut()).filter(|_| (1..=most).contains(&n))?;
    // SAFETY: the caller guarantees the contract above.
    Some(unsafe { core::slice::from_raw_parts(octets.as_ptr().cast(), n) })
}

#[cfg(test)]
mod tests;
