//! The functions of `include/anabranch_sense.h`, and the panic handler that a program without
//! Rust's standard library needs. The allocator is that of `anabranch_embed_heap`.

#![allow(unsafe_code, reason = "C's pointers")]

use core::ffi::{CStr, c_int, c_void};
use core::panic::PanicInfo;
use core::ptr::{self, NonNull};

use anabranch_core::rdca::WriteError;
use anabranch_core::time::Instant;
use anabranch_embed_heap::{Call, input};
use anabranch_secure::datagram::Name;
use anabranch_secure::{NoEntropy, SharedKey};

use crate::api;
use crate::node::Node;
use crate::sizes::Sizes;

unsafe extern "C" {
    /// Defined by the program; it must not return.
    fn anabranch_sense_panicked() -> !;
    /// Defined by the program: fills `n` bytes with unpredictable random numbers and returns 0.
    fn anabranch_sense_entropy(octets: *mut c_void, n: usize) -> c_int;
}

#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    // SAFETY: the function takes no arguments and does not return. The program defines it;
    // otherwise it would not link.
    unsafe { anabranch_sense_panicked() }
}

fn entropy(octets: &mut [u8]) -> Result<(), NoEntropy> {
    // SAFETY: the slice has this length.
    let done = unsafe { anabranch_sense_entropy(octets.as_mut_ptr().cast(), octets.len()) };
    if done == 0 { Ok(()) } else { Err(NoEntropy) }
}

type Handle = anabranch_embed_heap::Handle<Node>;

fn at(nanoseconds: u64) -> Instant {
    Instant::from_nanos(nanoseconds)
}

/// Longest UDP datagram in bytes.
const MAX_DATAGRAM: usize = 65_535;

impl From<&api::Config> for Sizes {
    fn from(config: &api::Config) -> Self {
        Self { payload: config.payload, packets: config.packets }
    }
}

/// Returns the library's [`api::VERSION`].
#[unsafe(no_mangle)]
extern "C" fn anabranch_sense_version() -> u32 {
    api::VERSION
}

/// Fills in the default configuration, without name and key.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_sense_defaults(config: *mut api::Config) {
    let Some(config) = NonNull::new(config) else { return };
    let Sizes { payload, packets } = Sizes::default();
    let defaults = api::Config { name: ptr::null(), shared: ptr::null(), payload, packets, insecure: 0 };
    // SAFETY: the caller provides room for a configuration.
    unsafe { config.write(defaults) }
}

/// Returns the number of bytes that a sender needs; 0 if the configuration is invalid.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_sense_memory(config: *const api::Config) -> usize {
    // SAFETY: the pointer is null or a valid configuration.
    let sizes = unsafe { config.as_ref() }.map(Sizes::from).filter(Sizes::are_possible);
    sizes.map_or(0, |sizes| Handle::memory(sizes.heap()))
}

/// Not inlined, so that its stack is not in use during the handshake.
///
/// SAFETY: as [`Handle::create`].
#[inline(never)]
unsafe fn create(
    octets: NonNull<c_void>,
    size: usize,
    sizes: &Sizes,
    name: &Name,
    shared: Option<&[u8; 32]>,
) -> Result<NonNull<Handle>, c_int> {
    let mut run = [0; 8];
    entropy(&mut run).map_err(|_| api::ENTROPY)?;
    let run = u64::from_be_bytes(run);
    // SAFETY: the caller guarantees the contract.
    let made = unsafe {
        Handle::create(octets, size, sizes.blocks(), |place| {
            let shared = shared.copied().map(SharedKey::from_octets);
            Some(place.write(Node::new(sizes, name, run, shared, entropy)))
        })
    };
    made.ok_or(api::MEMORY)
}

/// Creates a sender in the caller's memory.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_sense_init(
    sense: *mut *mut Handle,
    now: u64,
    octets: *mut c_void,
    size: usize,
    config: *const api::Config,
) -> c_int {
    // SAFETY: the pointer is null or a valid configuration.
    let config = unsafe { config.as_ref() };
    let (Some(sense), Some(octets), Some(config)) = (NonNull::new(sense), NonNull::new(octets), config)
    else {
        return api::ARGUMENT;
    };
    let sizes = Sizes::from(config);
    // SAFETY: the pointer is null or refers to 32 bytes.
    let shared = unsafe { config.shared.cast::<[u8; 32]>().as_ref() };
    // SAFETY: the pointer is null or a text that ends with a zero byte.
    let name = NonNull::new(config.name.cast_mut()).map(|name| unsafe { CStr::from_ptr(name.as_ptr()) });
    let name = name.and_then(|name| name.to_str().ok()?.parse::<Name>().ok());
    // Without a key the program must say that it wants none.
    let (Some(name), true) = (name, shared.is_some() || config.insecure == 1) else { return api::ARGUMENT };
    if !sizes.are_possible() {
        return api::ARGUMENT;
    }
    if size < Handle::memory(sizes.heap()) {
        return api::MEMORY;
    }
    // SAFETY: the caller provides `size` bytes and does not access them afterwards.
    let made = unsafe { create(octets, size, &sizes, &name, shared) };
    let made = match made {
        Ok(made) => made,
        Err(error) => return error,
    };
    // SAFETY: the sender was created above.
    if let Some(mut call) = unsafe { Call::begin(made.as_ptr()) } {
        call.open(at(now));
    }
    // SAFETY: the caller provides room for the pointer.
    unsafe { sense.write(made.as_ptr()) };
    api::OK
}

/// Returns the length of the longest datagram that the sender sends, in bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_sense_longest(config: *const api::Config) -> usize {
    // SAFETY: the pointer is null or a valid configuration.
    let sizes = unsafe { config.as_ref() }.map(Sizes::from).filter(Sizes::are_possible);
    sizes.map_or(0, |sizes| sizes.longest())
}

/// Queues a record, and stores its number if `number` is not null.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_sense_write(
    sense: *mut Handle,
    now: u64,
    created: u64,
    octets: *const c_void,
    n: usize,
    number: *mut u64,
) -> c_int {
    // SAFETY: the caller provides `n` bytes.
    let octets = if n == 0 { Some(&[][..]) } else { unsafe { input(octets, n, MAX_DATAGRAM) } };
    // SAFETY: the sender is valid and in no other call.
    let (Some(mut call), Some(octets)) = (unsafe { Call::begin(sense) }, octets) else {
        return api::ARGUMENT;
    };
    match call.write(at(now), created, octets) {
        Ok(written) => {
            if let Some(number) = NonNull::new(number) {
                // SAFETY: the caller provides room for the number.
                unsafe { number.write(written) };
            }
            api::OK
        }
        Err(WriteError::Full) => api::FULL,
        Err(WriteError::Closed) => api::CLOSED,
        // The record is too long; there are no other errors.
        Err(_) => api::ARGUMENT,
    }
}

/// Calls a method that cannot fail.
///
/// SAFETY: as [`Call::begin`].
unsafe fn run(sense: *mut Handle, method: impl FnOnce(&mut Node)) -> c_int {
    // SAFETY: the caller guarantees the contract.
    let Some(mut call) = (unsafe { Call::begin(sense) }) else { return api::ARGUMENT };
    method(&mut call);
    api::OK
}

/// Announces that no records follow.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_sense_close(sense: *mut Handle, now: u64) -> c_int {
    // SAFETY: the sender is valid and in no other call.
    unsafe { run(sense, |node| node.close(at(now))) }
}

/// Handles a datagram from the sink.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_sense_datagram(
    sense: *mut Handle,
    now: u64,
    octets: *const c_void,
    n: usize,
) -> c_int {
    // SAFETY: the caller provides `n` bytes.
    let Some(octets) = (unsafe { input(octets, n, MAX_DATAGRAM) }) else { return api::ARGUMENT };
    // SAFETY: the sender is valid and in no other call.
    unsafe { run(sense, |node| node.datagram(at(now), octets)) }
}

/// Reports that the network has no path to the sink.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_sense_path_lost(sense: *mut Handle, now: u64) -> c_int {
    // SAFETY: the sender is valid and in no other call.
    unsafe { run(sense, |node| node.path_lost(at(now))) }
}

/// Reports that a timeout has expired.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_sense_timeout(sense: *mut Handle, now: u64) -> c_int {
    // SAFETY: the sender is valid and in no other call.
    unsafe { run(sense, |node| node.timeout(at(now))) }
}

/// Returns 1 and the time of the next timeout, or 0 if there is none.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_sense_next_timeout(sense: *mut Handle, out: *mut u64) -> c_int {
    // SAFETY: the sender is valid and in no other call.
    let (Some(call), Some(out)) = (unsafe { Call::begin(sense) }, NonNull::new(out)) else {
        return api::ARGUMENT;
    };
    let Some(due) = call.next_timeout() else { return 0 };
    // SAFETY: the caller provides room for the value.
    unsafe { out.write(due.as_nanos()) };
    1
}

/// Returns the length of the next datagram to send and points `out` to it; 0 if there is none.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_sense_poll(sense: *mut Handle, now: u64, out: *mut *const u8) -> c_int {
    // SAFETY: the sender is valid and in no other call.
    let (Some(mut call), Some(out)) = (unsafe { Call::begin(sense) }, NonNull::new(out)) else {
        return api::ARGUMENT;
    };
    let Some(datagram) = call.poll(at(now)) else { return 0 };
    // SAFETY: the caller provides room for the pointer.
    unsafe { out.write(datagram.as_ptr()) };
    datagram.len() as c_int
}

/// Returns 1 and the next event, or 0 if there is none.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_sense_event_of(sense: *mut Handle, out: *mut api::Event) -> c_int {
    // SAFETY: the sender is valid and in no other call.
    let (Some(mut call), Some(out)) = (unsafe { Call::begin(sense) }, NonNull::new(out)) else {
        return api::ARGUMENT;
    };
    let Some(event) = call.event() else { return 0 };
    // SAFETY: the caller provides room for the event.
    unsafe { out.write(event) };
    1
}

/// Returns the counters.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_sense_counters_of(sense: *mut Handle, out: *mut api::Counters) {
    // SAFETY: the sender is valid and in no other call.
    let (Some(call), Some(out)) = (unsafe { Call::begin(sense) }, NonNull::new(out)) else { return };
    // SAFETY: the caller provides room for the counters.
    unsafe { out.write(call.counters()) }
}
