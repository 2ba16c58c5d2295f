//! The functions of `include/anabranch_cache.h`, and the panic handler that a program without
//! Rust's standard library needs. The allocator is that of `anabranch_embed_heap`.

#![allow(unsafe_code, reason = "C's pointers")]

use core::ffi::{c_int, c_void};
use core::panic::PanicInfo;
use core::ptr::NonNull;
use core::slice;

use anabranch_core::dtc::{self, LinkEvent};
use anabranch_core::time::{Duration, Instant};
use anabranch_embed_heap::{Call, input};

use crate::api;
use crate::cache::Cache;
use crate::sizes::Sizes;

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

type Handle = anabranch_embed_heap::Handle<Cache>;

fn at(nanoseconds: u64) -> Instant {
    Instant::from_nanos(nanoseconds)
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
    config.map_or(0, |config| Handle::memory(Sizes::from(config).heap()))
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
    if size < Handle::memory(sizes.heap()) {
        return api::MEMORY;
    }
    let options = dtc::Config {
        idle: Duration::from_millis(config.idle_ms.into()),
        min_rto: Duration::from_millis(config.least_wait_ms.into()),
        max_repeats: config.repeats,
        ..dtc::Config::improved()
    };
    // SAFETY: the caller provides `size` bytes and does not access them afterwards.
    let made = unsafe {
        Handle::create(octets, size, sizes.blocks(), |place| Some(place.write(Cache::new(&sizes, options))))
    };
    let Some(made) = made else { return api::MEMORY };
    // SAFETY: the caller provides room for the pointer.
    unsafe { cache.write(made.as_ptr()) };
    api::OK
}

/// Returns the length of the buffer that [`anabranch_cache_poll`] needs, in bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_cache_longest(cache: *mut Handle) -> usize {
    // SAFETY: the cache is valid and in no other call.
    unsafe { Call::begin(cache) }.map_or(0, |call| call.longest())
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
    let (Some(mut call), Some(octets)) =
        (unsafe { Call::begin(cache) }, unsafe { input(octets, n, MAX_PACKET) })
    else {
        return api::ARGUMENT;
    };
    if call.packet(at(now), octets) { api::FORWARD } else { api::HOLD }
}

/// Handles a report of the link layer.
///
/// SAFETY: as [`anabranch_cache_packet`].
unsafe fn link(cache: *mut Handle, now: u64, octets: *const c_void, n: usize, event: LinkEvent) -> c_int {
    // SAFETY: the cache is valid and in no other call; the caller provides `n` bytes.
    let (Some(mut call), Some(octets)) =
        (unsafe { Call::begin(cache) }, unsafe { input(octets, n, MAX_PACKET) })
    else {
        return api::ARGUMENT;
    };
    call.link(at(now), octets, event);
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
    let Some(mut call) = (unsafe { Call::begin(cache) }) else { return api::ARGUMENT };
    call.timeout(at(now));
    api::OK
}

/// Returns 1 and the time of the next timeout, or 0 if there is none.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_cache_next_timeout(cache: *mut Handle, out: *mut u64) -> c_int {
    // SAFETY: the cache is valid and in no other call.
    let (Some(call), Some(out)) = (unsafe { Call::begin(cache) }, NonNull::new(out)) else {
        return api::ARGUMENT;
    };
    let Some(due) = call.next_timeout() else { return 0 };
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
    let (Some(mut call), Some(out)) = (unsafe { Call::begin(cache) }, NonNull::new(out)) else {
        return api::ARGUMENT;
    };
    let longest = call.longest();
    if size < longest {
        return api::ARGUMENT;
    }
    // SAFETY: the caller provides `size` bytes, which it may not have initialised. Only the part
    // that is zeroed here is used.
    let out = unsafe {
        out.as_ptr().write_bytes(0, longest);
        slice::from_raw_parts_mut(out.as_ptr().cast(), longest)
    };
    call.poll(at(now), out).map_or(0, |n| n as c_int)
}

/// Returns the event counters.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_cache_counters_of(cache: *mut Handle, out: *mut api::Counters) {
    // SAFETY: the cache is valid and in no other call.
    let (Some(call), Some(out)) = (unsafe { Call::begin(cache) }, NonNull::new(out)) else { return };
    // SAFETY: the caller provides room for the counters.
    unsafe { out.write(call.counters()) }
}
