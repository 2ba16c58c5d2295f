//! The functions of `include/anabranch_cache.h`, and the runtime items that a program without
//! Rust's standard library needs: an allocator and a panic handler.
//!
//! A cache and its heap share one block of memory, which the caller provides. Rust has a single
//! global allocator; the one here serves the cache that is being called, [`CURRENT`], and refuses
//! allocations outside of calls. Caches therefore share no state, and only one thread at a time may
//! be in the library.

#![allow(unsafe_code, reason = "C's pointers, and an allocator over C's memory")]

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_int, c_void};
use core::panic::PanicInfo;
use core::ptr::{self, NonNull};
use core::slice;
use core::sync::atomic::{AtomicPtr, Ordering};

use anabranch_core::dtc::{self, LinkEvent};
use anabranch_core::time::{Duration, Instant};

use crate::api;
use crate::cache::Cache;
use crate::sizes::{REFERENCE, Sizes};

/// A free block: it begins with a pointer to the next one.
struct Block {
    next: *mut Block,
}

/// The free blocks of one size.
struct Pool(*mut Block);

impl Pool {
    fn take(&mut self) -> *mut u8 {
        let block = self.0;
        // SAFETY: the pointer is null or a free block.
        if let Some(block) = unsafe { block.as_ref() } {
            self.0 = block.next;
        }
        block.cast()
    }

    /// SAFETY: `octets` is an unused block of this pool's size, aligned for a pointer.
    unsafe fn give(&mut self, octets: *mut u8) {
        let block = octets.cast::<Block>();
        // SAFETY: the caller guarantees that the block is unused.
        unsafe { block.write(Block { next: self.0 }) };
        self.0 = block;
    }
}

/// The heap of one cache: what lasts, from the beginning, and then blocks for payloads.
struct Arena {
    /// The memory that no allocation and no block uses yet.
    rest: *mut u8,
    left: usize,
    payloads: Pool,
    references: Pool,
}

impl Arena {
    /// Allocates memory that is never freed, aligned for every type.
    fn lasting(&mut self, octets: usize) -> *mut u8 {
        let octets = octets.next_multiple_of(align_of::<u64>());
        if octets > self.left {
            return ptr::null_mut();
        }
        let at = self.rest;
        self.rest = at.wrapping_add(octets);
        self.left -= octets;
        at
    }

    /// Which pool serves this layout: payloads are bytes, and their reference counts are words.
    fn pool(&mut self, layout: Layout) -> &mut Pool {
        if layout.align() == 1 { &mut self.payloads } else { &mut self.references }
    }

    /// Cuts the blocks for payloads out of the remaining memory. From then on nothing else is
    /// allocated.
    fn cut(&mut self, sizes: &Sizes) -> Option<()> {
        for _ in 0..sizes.blocks() {
            let octets = NonNull::new(self.lasting(sizes.block()))?;
            let reference = NonNull::new(self.lasting(REFERENCE))?;
            // SAFETY: both are unused, aligned, and as long as the blocks of their pools.
            unsafe {
                self.payloads.give(octets.as_ptr());
                self.references.give(reference.as_ptr());
            }
        }
        self.left = 0;
        Some(())
    }
}

/// `anabranch_cache`: the structure at the beginning of the caller's memory.
struct Handle {
    arena: Arena,
    /// Present once [`anabranch_cache_init`] has succeeded.
    cache: Option<Cache>,
}

/// The heap of the cache that is being called; null outside of calls.
static CURRENT: AtomicPtr<Arena> = AtomicPtr::new(ptr::null_mut());

struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: blocks are as long and as aligned as the requests that [`Arena::pool`] sends to them; a
// null pointer reports that no memory is free.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the pointer is null or the arena of the cache that is being called, to which no
        // reference exists meanwhile.
        let Some(arena) = (unsafe { CURRENT.load(Ordering::Relaxed).as_mut() }) else {
            return ptr::null_mut();
        };
        if arena.left > 0 { arena.lasting(layout.size()) } else { arena.pool(layout).take() }
    }

    unsafe fn dealloc(&self, octets: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`.
        let arena = unsafe { CURRENT.load(Ordering::Relaxed).as_mut() };
        if let (Some(arena), false) = (arena, octets.is_null()) {
            // SAFETY: a cache frees only blocks, which came from this pool, during its own calls.
            unsafe { arena.pool(layout).give(octets) };
        }
    }
}

unsafe extern "C" {
    /// Defined by the program; it must not return.
    fn anabranch_cache_panicked() -> !;
}

#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    // SAFETY: the function takes no arguments and does not return. The program defines it;
    // otherwise it would not link.
    unsafe { anabranch_cache_panicked() }
}

/// One call: until it is dropped, the allocator serves this cache.
struct Call<'a>(&'a mut Cache);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        CURRENT.store(ptr::null_mut(), Ordering::Relaxed);
    }
}

impl Call<'_> {
    /// SAFETY: `handle` is null or from [`anabranch_cache_init`], and nothing else uses it during
    /// the call.
    unsafe fn begin(handle: *mut Handle) -> Option<Self> {
        // SAFETY: the pointers refer to different fields of a valid handle.
        let (arena, cache) = unsafe {
            let handle = NonNull::new(handle)?.as_ptr();
            (&raw mut (*handle).arena, &mut (*handle).cache)
        };
        let cache = cache.as_mut()?;
        CURRENT.store(arena, Ordering::Relaxed);
        Some(Self(cache))
    }
}

fn at(nanoseconds: u64) -> Instant {
    Instant::from_nanos(nanoseconds)
}

/// The bytes of a packet; `None` if there are none, or more than an IP packet can have.
///
/// SAFETY: `octets` is null or points to `n` bytes.
unsafe fn packet<'a>(octets: *const c_void, n: usize) -> Option<&'a [u8]> {
    let octets = NonNull::new(octets.cast_mut()).filter(|_| (1..=MAX_PACKET).contains(&n))?;
    // SAFETY: the caller guarantees the contract above.
    Some(unsafe { slice::from_raw_parts(octets.as_ptr().cast(), n) })
}

/// Longest IPv6 packet in bytes, without jumbograms.
const MAX_PACKET: usize = 65_575;

impl From<&api::Config> for Sizes {
    fn from(config: &api::Config) -> Self {
        Self { segment: config.segment, segments: config.segments, connections: config.connections }
    }
}

/// True if a cache can be created with this configuration.
fn is_possible(config: &api::Config) -> bool {
    Sizes::from(config).are_possible()
        && config.idle_ms >= 1000
        && config.least_wait_ms >= 1
        && config.repeats >= 1
}

/// Bytes of memory for a cache of these sizes, at any alignment of its start.
fn memory(sizes: &Sizes) -> usize {
    align_of::<Handle>() - 1 + size_of::<Handle>() + sizes.heap()
}

/// Returns the library's [`api::VERSION`].
#[unsafe(no_mangle)]
extern "C" fn anabranch_cache_version() -> u32 {
    api::VERSION
}

/// Fills in the default configuration.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_cache_defaults(config: *mut api::Config) {
    let Some(config) = NonNull::new(config) else { return };
    let (sizes, options) = (Sizes::default(), dtc::Config::improved());
    let defaults = api::Config {
        idle_ms: options.idle.as_millis() as u32,
        least_wait_ms: options.min_rto.as_millis() as u32,
        segment: sizes.segment,
        segments: sizes.segments,
        connections: sizes.connections,
        repeats: options.max_repeats,
    };
    // SAFETY: the caller provides room for a configuration.
    unsafe { config.write(defaults) }
}

/// Returns the number of bytes that a cache needs; 0 if the configuration is invalid.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_cache_memory(config: *const api::Config) -> usize {
    // SAFETY: the pointer is null or a valid configuration.
    let config = unsafe { config.as_ref() }.filter(|config| is_possible(config));
    config.map_or(0, |config| memory(&config.into()))
}

/// Creates a cache in the caller's memory.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_cache_init(
    cache: *mut *mut Handle,
    octets: *mut c_void,
    size: usize,
    config: *const api::Config,
) -> c_int {
    // SAFETY: the pointer is null or a valid configuration.
    let config = unsafe { config.as_ref() }.filter(|config| is_possible(config));
    let (Some(cache), Some(octets), Some(config)) = (NonNull::new(cache), NonNull::new(octets), config)
    else {
        return api::ARGUMENT;
    };
    let sizes = Sizes::from(config);
    if size < memory(&sizes) {
        return api::MEMORY;
    }
    let options = dtc::Config {
        idle: Duration::from_millis(config.idle_ms.into()),
        min_rto: Duration::from_millis(config.least_wait_ms.into()),
        max_repeats: config.repeats,
        ..dtc::Config::improved()
    };
    let skipped = octets.as_ptr().align_offset(align_of::<Handle>());
    // SAFETY: the caller provides `size` bytes and does not access them afterwards; `memory` has
    // computed how many are needed. The handle is at their beginning, aligned, followed by the
    // heap.
    unsafe {
        let handle = octets.as_ptr().cast::<u8>().add(skipped).cast::<Handle>();
        let (payloads, references) = (Pool(ptr::null_mut()), Pool(ptr::null_mut()));
        let arena = Arena { rest: handle.add(1).cast(), left: sizes.heap(), payloads, references };
        handle.write(Handle { arena, cache: None });
        // From here on, allocations come from the new heap.
        CURRENT.store(&raw mut (*handle).arena, Ordering::Relaxed);
        (*handle).cache = Some(Cache::new(&sizes, options));
        CURRENT.store(ptr::null_mut(), Ordering::Relaxed);
        if (*handle).arena.cut(&sizes).is_none() {
            (*handle).cache = None;
            return api::MEMORY;
        }
        cache.write(handle);
    }
    api::OK
}

/// Returns the length of the buffer that [`anabranch_cache_poll`] needs, in bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_cache_longest(cache: *mut Handle) -> usize {
    // SAFETY: the cache is valid and in no other call.
    unsafe { Call::begin(cache) }.map_or(0, |call| call.0.longest())
}

/// Handles a packet that is about to be forwarded.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_cache_packet(
    cache: *mut Handle,
    now: u64,
    octets: *const c_void,
    n: usize,
) -> c_int {
    // SAFETY: the cache is valid and in no other call; the caller provides `n` bytes.
    let (Some(call), Some(octets)) = (unsafe { Call::begin(cache) }, unsafe { packet(octets, n) }) else {
        return api::ARGUMENT;
    };
    if call.0.packet(at(now), octets) { api::FORWARD } else { api::HOLD }
}

/// Handles a report of the link layer.
///
/// SAFETY: as [`anabranch_cache_packet`].
unsafe fn link(cache: *mut Handle, now: u64, octets: *const c_void, n: usize, event: LinkEvent) -> c_int {
    // SAFETY: the cache is valid and in no other call; the caller provides `n` bytes.
    let (Some(call), Some(octets)) = (unsafe { Call::begin(cache) }, unsafe { packet(octets, n) }) else {
        return api::ARGUMENT;
    };
    call.0.link(at(now), octets, event);
    api::OK
}

/// The next hop has acknowledged the packet.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_cache_delivered(
    cache: *mut Handle,
    now: u64,
    octets: *const c_void,
    n: usize,
) -> c_int {
    // SAFETY: the caller guarantees the contract of `link`.
    unsafe { link(cache, now, octets, n, LinkEvent::Acknowledged) }
}

/// The next hop has not acknowledged the packet.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_cache_lost(
    cache: *mut Handle,
    now: u64,
    octets: *const c_void,
    n: usize,
) -> c_int {
    // SAFETY: the caller guarantees the contract of `link`.
    unsafe { link(cache, now, octets, n, LinkEvent::TimedOut) }
}

/// Reports that a timeout has expired.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_cache_timeout(cache: *mut Handle, now: u64) -> c_int {
    // SAFETY: the cache is valid and in no other call.
    let Some(call) = (unsafe { Call::begin(cache) }) else { return api::ARGUMENT };
    call.0.timeout(at(now));
    api::OK
}

/// Returns 1 and the time of the next timeout, or 0 if there is none.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_cache_next_timeout(cache: *mut Handle, out: *mut u64) -> c_int {
    // SAFETY: the cache is valid and in no other call.
    let (Some(call), Some(out)) = (unsafe { Call::begin(cache) }, NonNull::new(out)) else {
        return api::ARGUMENT;
    };
    let Some(due) = call.0.next_timeout() else { return 0 };
    // SAFETY: the caller provides room for the value.
    unsafe { out.write(due.as_nanos()) };
    1
}

/// Writes the next packet to send; returns its length, or 0 if there is none.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_cache_poll(
    cache: *mut Handle,
    now: u64,
    out: *mut c_void,
    size: usize,
) -> c_int {
    // SAFETY: the cache is valid and in no other call.
    let (Some(call), Some(out)) = (unsafe { Call::begin(cache) }, NonNull::new(out)) else {
        return api::ARGUMENT;
    };
    let longest = call.0.longest();
    if size < longest {
        return api::ARGUMENT;
    }
    // SAFETY: the caller provides `size` bytes, which it may not have initialised. Only the part
    // that is zeroed here is used.
    let out = unsafe {
        out.as_ptr().write_bytes(0, longest);
        slice::from_raw_parts_mut(out.as_ptr().cast(), longest)
    };
    call.0.poll(at(now), out).map_or(0, |n| n as c_int)
}

/// Returns the event counters.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_cache_counters_of(cache: *mut Handle, out: *mut api::Counters) {
    // SAFETY: the cache is valid and in no other call.
    let (Some(call), Some(out)) = (unsafe { Call::begin(cache) }, NonNull::new(out)) else { return };
    // SAFETY: the caller provides room for the counters.
    unsafe { out.write(call.0.counters()) }
}
