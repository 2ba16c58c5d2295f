//! The functions of `include/anabranch_node.h`, and the runtime items that a program without Rust's
//! standard library needs: an allocator and a panic handler.
//!
//! A node and its heap share one block of memory, which the caller provides. Rust has a single
//! global allocator; the one here serves the node that is being called, [`CURRENT`], and refuses
//! allocations outside of calls. Nodes therefore share no state, and only one thread at a time may
//! be in the library.

#![allow(unsafe_code, reason = "C's pointers, and an allocator over C's memory")]

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_int, c_void};
use core::panic::PanicInfo;
use core::ptr::{self, NonNull};
use core::slice;
use core::sync::atomic::{AtomicPtr, Ordering};

use anabranch_core::set::{Effect, RefuseReason, StreamId};
use anabranch_core::time::{Duration, Instant};
use linked_list_allocator::Heap;

use crate::api::{self, kind, refuse};
use crate::node::{Config, Error, Event, Node};
use crate::sizes::Sizes;

/// The heap of one node.
struct Arena {
    heap: Heap,
    /// Largest number of bytes in use.
    peak: usize,
}

impl Arena {
    fn allocate(&mut self, layout: Layout) -> *mut u8 {
        // First fit is required: the bound in `sizes` relies on it.
        let octets = self.heap.allocate_first_fit(layout).map_or(ptr::null_mut(), NonNull::as_ptr);
        self.peak = self.peak.max(self.heap.used());
        octets
    }

    /// True if this many bytes are free in one piece.
    fn has_room(&mut self, octets: usize) -> bool {
        // The allocator does not report its largest free piece, so try an allocation.
        let Ok(layout) = Layout::from_size_align(octets, align_of::<usize>()) else { return false };
        match self.heap.allocate_first_fit(layout) {
            Ok(piece) => {
                // SAFETY: it was allocated just now with this layout.
                unsafe { self.heap.deallocate(piece, layout) };
                true
            }
            Err(()) => false,
        }
    }
}

/// `anabranch_node`: the structure at the beginning of the caller's memory.
struct Handle {
    arena: Arena,
    /// Present once [`anabranch_node_init`] has succeeded.
    node: Option<Node>,
    /// Owns the bytes to which the last effect points.
    polled: Option<Event>,
}

/// The heap of the node that is being called; null outside of calls.
static CURRENT: AtomicPtr<Arena> = AtomicPtr::new(ptr::null_mut());

struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: `Heap` fulfils the contract; a null pointer reports that no memory is free.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the pointer is null or the arena of the node that is being called, to which no
        // reference exists meanwhile.
        let arena = unsafe { CURRENT.load(Ordering::Relaxed).as_mut() };
        arena.map_or(ptr::null_mut(), |arena| arena.allocate(layout))
    }

    unsafe fn dealloc(&self, octets: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`.
        let arena = unsafe { CURRENT.load(Ordering::Relaxed).as_mut() };
        if let (Some(arena), Some(octets)) = (arena, NonNull::new(octets)) {
            // SAFETY: a node frees only its own allocations, during its own calls, so the block
            // came from this heap.
            unsafe { arena.heap.deallocate(octets, layout) };
        }
    }
}

unsafe extern "C" {
    /// Defined by the program; it must not return.
    fn anabranch_node_panicked() -> !;
}

#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    // SAFETY: the function takes no arguments and does not return. The program defines it;
    // otherwise it would not link.
    unsafe { anabranch_node_panicked() }
}

/// One call: until it is dropped, the allocator serves this node.
struct Call<'a> {
    node: &'a mut Node,
    polled: &'a mut Option<Event>,
    arena: *mut Arena,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        CURRENT.store(ptr::null_mut(), Ordering::Relaxed);
    }
}

impl<'a> Call<'a> {
    /// SAFETY: `handle` is null or from [`anabranch_node_init`], and nothing else uses it during
    /// the call.
    unsafe fn begin(handle: *mut Handle) -> Option<Self> {
        // SAFETY: the pointers refer to different fields of a valid handle.
        let (arena, node, polled) = unsafe {
            let handle = NonNull::new(handle)?.as_ptr();
            (&raw mut (*handle).arena, &mut (*handle).node, &mut (*handle).polled)
        };
        let node = node.as_mut()?;
        CURRENT.store(arena, Ordering::Relaxed);
        Some(Self { node, polled, arena })
    }

    /// As [`Self::begin`], for calls that allocate. Fails if the heap has not enough room for every
    /// allocation of a call.
    ///
    /// SAFETY: as [`Self::begin`].
    unsafe fn with_room(handle: *mut Handle) -> Result<Self, c_int> {
        // SAFETY: the caller guarantees the contract of `begin`.
        let call = unsafe { Self::begin(handle) }.ok_or(api::ARGUMENT)?;
        if !call.node.is_settled() {
            return Err(api::POLL);
        }
        // SAFETY: the arena exists, and no reference to it exists.
        if unsafe { (*call.arena).has_room(call.node.needs()) } {
            return Ok(call);
        }
        // An allocation within the call could fail, and a failed allocation is fatal. Give all
        // memory back instead.
        call.node.restart();
        Err(api::MEMORY)
    }
}

/// Converts the result of a call for C.
fn code(outcome: Result<c_int, Error>) -> c_int {
    match outcome {
        Ok(n) => n,
        Err(Error::Poll) => api::POLL,
        Err(Error::Stream) => api::STREAM,
        Err(Error::Full) => api::FULL,
        Err(Error::Offer) => api::OFFER,
    }
}

fn at(nanoseconds: u64) -> Instant {
    Instant::from_nanos(nanoseconds)
}

impl From<&api::Config> for Sizes {
    fn from(config: &api::Config) -> Self {
        Self {
            buffer: config.buffer,
            pieces: config.pieces,
            read: config.read,
            connections: config.connections,
            gateways: config.gateway_count,
            // SAFETY: the pointer is null or valid.
            senders: unsafe { config.keys.as_ref() }.map(|keys| keys.sender_count),
            // SAFETY: the pointer is null or valid.
            manifest: unsafe { config.device.as_ref() }.map(|device| device.envelope),
        }
    }
}

/// Bytes of memory for a node of these sizes, at any alignment of its start.
fn memory(sizes: &Sizes) -> usize {
    align_of::<Handle>() - 1 + size_of::<Handle>() + sizes.heap()
}

/// Returns the library's [`api::VERSION`].
#[unsafe(no_mangle)]
extern "C" fn anabranch_node_version() -> u32 {
    api::VERSION
}

/// Fills in the default configuration, without gateways.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_node_defaults(config: *mut api::Config) {
    let Some(config) = NonNull::new(config) else { return };
    let sizes = Sizes::default();
    let defaults = api::Config {
        buffer: sizes.buffer,
        idle_ms: 60_000,
        pieces: sizes.pieces,
        read: sizes.read,
        connections: sizes.connections,
        gateway_count: 0,
        gateways: ptr::null(),
        keys: ptr::null(),
        device: ptr::null(),
        highest: ptr::null(),
    };
    // SAFETY: the caller provides room for a configuration.
    unsafe { config.write(defaults) }
}

/// Returns the number of bytes that a node needs; 0 if the configuration is invalid.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_node_memory(config: *const api::Config) -> usize {
    // SAFETY: the pointer is null or a valid configuration.
    let Some(config) = (unsafe { config.as_ref() }) else { return 0 };
    let sizes = Sizes::from(config);
    if sizes.are_possible() { memory(&sizes) } else { 0 }
}

/// Creates a node in the caller's memory.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_node_init(
    node: *mut *mut Handle,
    octets: *mut c_void,
    size: usize,
    config: *const api::Config,
) -> c_int {
    // SAFETY: the pointer is null or a valid configuration.
    let config = unsafe { config.as_ref() };
    let (Some(node), Some(octets), Some(config)) = (NonNull::new(node), NonNull::new(octets), config) else {
        return api::ARGUMENT;
    };
    let sizes = Sizes::from(config);
    // Without the last accepted sequence number, the node would accept any version.
    if !config.device.is_null() && config.highest.is_null() {
        return api::ARGUMENT;
    }
    if !sizes.are_possible() || config.gateway_count > 0 && config.gateways.is_null() {
        return api::ARGUMENT;
    }
    if size < memory(&sizes) {
        return api::MEMORY;
    }
    let gateways = match config.gateway_count {
        0 => &[][..],
        // SAFETY: the caller provides this many entries for the lifetime of the node.
        n => unsafe { slice::from_raw_parts(config.gateways, usize::from(n)) },
    };
    let skipped = octets.as_ptr().align_offset(align_of::<Handle>());
    let Some(for_heap) = size.checked_sub(skipped + size_of::<Handle>()) else { return api::MEMORY };
    // SAFETY: the caller provides `size` bytes and does not access them afterwards; `memory` has
    // computed how many are needed. The handle is at their beginning, aligned, followed by the
    // heap.
    unsafe {
        let handle = octets.as_ptr().cast::<u8>().add(skipped).cast::<Handle>();
        let heap = Heap::new(handle.add(1).cast(), for_heap);
        handle.write(Handle { arena: Arena { heap, peak: 0 }, node: None, polled: None });
        let keys =
            config.keys.as_ref().map(|keys| keys.gateways.cast::<[u8; 32]>()).filter(|keys| !keys.is_null());
        let gateway_keys = keys.map_or(&[][..], |keys| slice::from_raw_parts(keys, gateways.len()));
        let idle = Duration::from_millis(config.idle_ms.into());
        let options = Config { sizes, idle, gateways, gateway_keys };
        // From here on, allocations come from the new heap.
        CURRENT.store(&raw mut (*handle).arena, Ordering::Relaxed);
        (*handle).node = Node::new(options);
        #[cfg(feature = "noise")]
        if let Some(keys) = config.keys.as_ref() {
            (*handle).node = (*handle).node.take().map(|node| node.secured(noise::keys(&sizes, keys)));
        }
        #[cfg(feature = "manifest")]
        if let (Some(device), Some(highest)) = (config.device.as_ref(), config.highest.as_ref()) {
            (*handle).node = (*handle).node.take().and_then(|node| manifests::of(node, device, highest));
        }
        CURRENT.store(ptr::null_mut(), Ordering::Relaxed);
        if (*handle).node.is_none() {
            return api::ARGUMENT;
        }
        node.write(handle);
    }
    api::OK
}

/// Reports an accepted connection.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_node_accepted(node: *mut Handle, now: u64, stream: *mut u32) -> c_int {
    let Some(out) = NonNull::new(stream) else { return api::ARGUMENT };
    // SAFETY: the node is valid and in no other call.
    let call = match unsafe { Call::with_room(node) } {
        Ok(call) => call,
        Err(error) => return error,
    };
    code(call.node.accepted(at(now)).map(|stream| {
        // SAFETY: the caller provides room for the value.
        unsafe { out.write(stream.0) };
        api::OK
    }))
}

/// Reports received bytes. Returns the number of bytes taken, or an error.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_node_data(
    node: *mut Handle,
    now: u64,
    stream: u32,
    octets: *const c_void,
    n: usize,
) -> c_int {
    if octets.is_null() || n == 0 {
        return if n == 0 { api::OK } else { api::ARGUMENT };
    }
    // SAFETY: the node is valid and in no other call.
    let call = match unsafe { Call::with_room(node) } {
        Ok(call) => call,
        Err(error) => return error,
    };
    // SAFETY: the caller provides `n` bytes.
    let octets = unsafe { slice::from_raw_parts(octets.cast(), n.min(usize::from(u16::MAX))) };
    code(call.node.data(at(now), StreamId(stream), octets).map(|n| n as c_int))
}

/// Reports that the peer will send no more.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_node_ended(node: *mut Handle, now: u64, stream: u32) -> c_int {
    // SAFETY: the node is valid and in no other call.
    let call = match unsafe { Call::with_room(node) } {
        Ok(call) => call,
        Err(error) => return error,
    };
    code(call.node.ended(at(now), StreamId(stream)).map(|()| api::OK))
}

/// Reports that a connection is closed.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_node_closed(node: *mut Handle, now: u64, stream: u32) -> c_int {
    // SAFETY: the node is valid and in no other call.
    let call = match unsafe { Call::with_room(node) } {
        Ok(call) => call,
        Err(error) => return error,
    };
    code(call.node.closed(at(now), StreamId(stream)).map(|()| api::OK))
}

/// Reports that a timeout has expired.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_node_timeout(node: *mut Handle, now: u64) -> c_int {
    // SAFETY: the node is valid and in no other call.
    let call = match unsafe { Call::with_room(node) } {
        Ok(call) => call,
        Err(error) => return error,
    };
    code(call.node.timeout(at(now)).map(|()| api::OK))
}

/// Returns 1 and the time of the next timeout, or 0 if there is none.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_node_next_timeout(node: *mut Handle, out: *mut u64) -> c_int {
    // SAFETY: the node is valid and in no other call.
    let (Some(call), Some(out)) = (unsafe { Call::begin(node) }, NonNull::new(out)) else {
        return api::ARGUMENT;
    };
    match call.node.next_timeout() {
        Some(due) => {
            // SAFETY: the caller provides room for the value.
            unsafe { out.write(due.as_nanos()) };
            1
        }
        None => 0,
    }
}

/// Returns 1 and the next effect, or 0 if there is none.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_node_poll(node: *mut Handle, out: *mut api::Effect) -> c_int {
    // SAFETY: the node is valid and in no other call.
    let (Some(call), Some(out)) = (unsafe { Call::begin(node) }, NonNull::new(out)) else {
        return api::ARGUMENT;
    };
    *call.polled = None;
    let event = loop {
        match call.node.poll() {
            // A receiver never dials.
            Some(Event::Stream(Effect::Dial { .. })) => {}
            Some(event) => break event,
            None => return 0,
        }
    };
    let none = api::Effect { kind: 0, stream: 0, octets: ptr::null(), n: 0, offset: 0, reason: 0 };
    let simple = |kind, stream: StreamId, n| api::Effect { kind, stream: stream.0, n, ..none };
    let told = match call.polled.insert(event) {
        Event::Begin => api::Effect { kind: kind::BEGIN, ..none },
        Event::Deliver { at, octets } => {
            api::Effect { kind: kind::DELIVER, octets: octets.as_ptr(), n: octets.len(), offset: *at, ..none }
        }
        Event::End { length } => api::Effect { kind: kind::END, offset: *length, ..none },
        Event::Abort(reason) => api::Effect { kind: kind::ABORT, reason: u32::from(*reason), ..none },
        Event::Stream(Effect::Write { stream, octets }) => {
            api::Effect { octets: octets.as_ptr(), ..simple(kind::WRITE, *stream, octets.len()) }
        }
        // A receiver sends no file, and deliveries are events of their own.
        Event::Stream(Effect::WriteFile { .. } | Effect::Deliver { .. }) => none,
        Event::Stream(Effect::LimitReceive { stream, octets }) => {
            simple(kind::LIMIT, *stream, *octets as usize)
        }
        Event::Stream(Effect::Shutdown { stream }) => simple(kind::SHUTDOWN, *stream, 0),
        Event::Stream(Effect::Abort { stream } | Effect::Dial { stream, .. }) => {
            simple(kind::RESET, *stream, 0)
        }
    };
    // SAFETY: the caller provides room for the value.
    unsafe { out.write(told) };
    1
}

/// Returns 1 and the offered file, or 0 if there is none.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_node_offered(node: *mut Handle, out: *mut api::Offer) -> c_int {
    // SAFETY: the node is valid and in no other call.
    let (Some(call), Some(out)) = (unsafe { Call::begin(node) }, NonNull::new(out)) else {
        return api::ARGUMENT;
    };
    let Some((request, file)) = call.node.offer().and_then(|request| Some((request, request.file?))) else {
        return 0;
    };
    let manifest = call.node.manifest();
    let offer = api::Offer {
        transfer: request.transfer.0,
        length: request.length,
        digest: file.digest,
        signature: file.signature.unwrap_or([0; 64]),
        has_signature: file.signature.is_some().into(),
        discard: file.discard.into(),
        has_sender: call.node.sender().is_some().into(),
        sender: call.node.sender().unwrap_or([0; 32]),
        manifest: manifest.map_or(ptr::null(), |(octets, _)| octets.as_ptr()),
        manifest_length: manifest.map_or(0, |(octets, _)| octets.len()),
        sequence: manifest.map_or(0, |(_, sequence)| sequence),
    };
    // SAFETY: the caller provides room for the value.
    unsafe { out.write(offer) };
    1
}

/// Passes bytes of the offered file that the program already has.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_node_have(node: *mut Handle, octets: *const c_void, n: usize) -> c_int {
    // SAFETY: the node is valid and in no other call.
    let Some(call) = (unsafe { Call::begin(node) }) else { return api::ARGUMENT };
    if octets.is_null() || n > isize::MAX as usize {
        return if n == 0 { api::OK } else { api::ARGUMENT };
    }
    // SAFETY: the caller provides `n` bytes.
    let octets = unsafe { slice::from_raw_parts(octets.cast(), n) };
    code(call.node.have(octets).map(|()| api::OK))
}

/// Accepts the offered file.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_node_accept(node: *mut Handle, now: u64) -> c_int {
    // SAFETY: the node is valid and in no other call.
    let call = match unsafe { Call::with_room(node) } {
        Ok(call) => call,
        Err(error) => return error,
    };
    code(call.node.accept(at(now)).map(|()| api::OK))
}

/// Refuses the offered file.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_node_refuse(
    node: *mut Handle,
    now: u64,
    reason: u32,
    delivered: u64,
) -> c_int {
    let number = u64::from(reason >> 8);
    let reason = match (reason & 0xff, RefuseReason::from_codes(reason as u8, number)) {
        (refuse::BUSY | refuse::UNFINISHED, Some(reason)) if number == 0 => reason,
        // An unknown number is treated as no specific reason.
        (refuse::UNWANTED, Some(reason)) if number == 0 || reason != RefuseReason::Unwanted => reason,
        _ => return api::ARGUMENT,
    };
    // SAFETY: the node is valid and in no other call.
    let call = match unsafe { Call::with_room(node) } {
        Ok(call) => call,
        Err(error) => return error,
    };
    code(call.node.refuse(at(now), reason, delivered).map(|()| api::OK))
}

/// Aborts the current transfer.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_node_abort(node: *mut Handle, now: u64) -> c_int {
    // SAFETY: the node is valid and in no other call.
    let Some(call) = (unsafe { Call::begin(node) }) else { return api::ARGUMENT };
    *call.polled = None;
    code(call.node.abort(at(now)).map(|()| api::OK))
}

/// Returns the number of bytes of the current transfer received in order.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_node_delivered(node: *mut Handle) -> u64 {
    // SAFETY: the node is valid and in no other call.
    unsafe { Call::begin(node) }.map_or(0, |call| call.node.delivered())
}

/// Returns 1 once the current transfer is complete and all of its effects were polled.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_node_complete(node: *mut Handle) -> c_int {
    // SAFETY: the node is valid and in no other call.
    unsafe { Call::begin(node) }.map_or(0, |call| call.node.is_complete().into())
}

/// Returns the largest number of heap bytes in use so far.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_node_peak(node: *mut Handle) -> usize {
    // SAFETY: the node is valid and in no other call; no reference to its arena exists.
    unsafe { Call::begin(node) }.map_or(0, |call| unsafe { (*call.arena).peak })
}

/// Returns the event counters.
#[unsafe(no_mangle)]
unsafe extern "C" fn anabranch_node_counters_of(node: *mut Handle, out: *mut api::Counters) {
    // SAFETY: the node is valid and in no other call.
    let (Some(call), Some(out)) = (unsafe { Call::begin(node) }, NonNull::new(out)) else { return };
    // SAFETY: the caller provides room for the counters.
    unsafe { out.write(call.node.counters()) }
}

/// Devices and sequence numbers.
#[cfg(feature = "manifest")]
mod manifests {
    use anabranch_secure::manifest::{self, MAX_COMPONENT};

    use super::*;
    use crate::device::{Admission, Device};

    /// Creates the admission of a device; `None` if the device has no signers or its component has
    /// no name.
    ///
    /// SAFETY: everything that `device` points to stays valid for the lifetime of the node.
    pub(super) unsafe fn of(
        node: Node,
        device: &'static api::Device,
        highest: &api::Highest,
    ) -> Option<Node> {
        let component = usize::from(device.component_length);
        if !(1..=MAX_COMPONENT).contains(&component) || device.component.is_null() {
            return None;
        }
        if device.signer_count == 0 || device.signers.is_null() {
            return None;
        }
        // SAFETY: the caller guarantees the contract above.
        let device = unsafe {
            Device {
                vendor: &device.vendor,
                class: &device.class_id,
                component: slice::from_raw_parts(device.component, component),
                signers: slice::from_raw_parts(device.signers.cast(), device.signer_count.into()),
                unix_time: device.unix_time,
            }
        };
        let api::Highest { sequence, digest: sha256, known } = *highest;
        let highest = (known != 0).then_some(manifest::Highest { sequence, sha256 });
        Some(node.for_device(Admission::new(device, highest)))
    }

    /// Returns 1 and the highest accepted sequence number, or 0 if there is none.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn anabranch_node_highest_of(node: *mut Handle, out: *mut api::Highest) -> c_int {
        // SAFETY: the node is valid and in no other call.
        let (Some(call), Some(out)) = (unsafe { Call::begin(node) }, NonNull::new(out)) else {
            return api::ARGUMENT;
        };
        let Some((sequence, digest)) = call.node.highest() else { return 0 };
        // SAFETY: the caller provides room for the value.
        unsafe { out.write(api::Highest { sequence, digest, known: 1 }) };
        1
    }
}

/// Keys and entropy of the program, and signatures.
#[cfg(feature = "noise")]
mod noise {
    use alloc::boxed::Box;

    use anabranch_secure::{FileDigest, NoEntropy, PublicKey, SecretKey, SharedKey, Signature, VerifyingKey};

    use super::*;
    use crate::guards::Keys;

    unsafe extern "C" {
        /// Defined by the program: fills `n` bytes with unpredictable random numbers and returns 0.
        fn anabranch_node_entropy(octets: *mut c_void, n: usize) -> c_int;
    }

    fn entropy(octets: &mut [u8]) -> Result<(), NoEntropy> {
        // SAFETY: the slice has this length.
        let done = unsafe { anabranch_node_entropy(octets.as_mut_ptr().cast(), octets.len()) };
        if done == 0 { Ok(()) } else { Err(NoEntropy) }
    }

    /// SAFETY: the pointer is null or refers to 32 bytes.
    unsafe fn key(octets: *const u8) -> Option<[u8; 32]> {
        // SAFETY: the caller guarantees the contract above.
        unsafe { octets.cast::<[u8; 32]>().as_ref() }.copied()
    }

    /// SAFETY: everything that `keys` points to is valid.
    pub(super) unsafe fn keys(sizes: &Sizes, keys: &api::Keys) -> Box<Keys> {
        // SAFETY: the caller guarantees the contract above.
        let (own, shared) = unsafe { (key(keys.secret), key(keys.shared)) };
        let own = own.map(SecretKey::from_octets);
        let shared = shared.map(SharedKey::from_octets);
        let count = if keys.senders.is_null() { 0 } else { usize::from(keys.sender_count) };
        let senders = (0..count).filter_map(|i| {
            // SAFETY: `senders` holds `count` keys of 32 bytes.
            unsafe { key(keys.senders.add(32 * i)) }.map(PublicKey)
        });
        let mut all = alloc::vec::Vec::with_capacity(count);
        all.extend(senders);
        Keys::new((sizes.buffer, sizes.connections), own, shared, all, entropy)
    }

    /// Returns 1 if the offered file has a signature of this Ed25519 key, 0 otherwise.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn anabranch_node_signed_by(node: *mut Handle, signer: *const u8) -> c_int {
        // SAFETY: the node is valid and in no other call; the key has 32 bytes.
        let (Some(call), Some(signer)) = (unsafe { Call::begin(node) }, unsafe { key(signer) }) else {
            return api::ARGUMENT;
        };
        let signed = call.node.offer().and_then(|request| {
            let file = request.file?;
            let digest = FileDigest { length: request.length, sha256: file.digest };
            let signer = VerifyingKey::from_octets(&signer)?;
            Some(signer.has_signed(&digest, &Signature(file.signature?)))
        });
        signed.unwrap_or(false).into()
    }
}
