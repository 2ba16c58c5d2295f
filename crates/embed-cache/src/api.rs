//! The types of `include/anabranch_cache.h`, field by field. A test compares both.

use core::ffi::c_int;

/// Version of the interface. A program compares `ANABRANCH_CACHE_VERSION` of its header with the
/// library's value.
pub const VERSION: u32 = 1;

/// Success, or nothing to do.
pub const OK: c_int = 0;
/// Forward the packet unchanged.
pub const FORWARD: c_int = 1;
/// Drop the packet: the cache has sent it recently, or the receiver has it.
pub const HOLD: c_int = 2;
/// A pointer is null, a configuration is out of range, or a buffer is too short.
pub const ARGUMENT: c_int = -1;
/// Not enough memory.
pub const MEMORY: c_int = -2;

/// `anabranch_cache_config`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Time in ms after which a silent connection is forgotten.
    pub idle_ms: u32,
    /// Lower bound in ms of the time after which a segment is repeated.
    pub least_wait_ms: u32,
    /// Limit of the payload of a cached segment in bytes.
    pub segment: u16,
    /// Number of segments that can be cached.
    pub segments: u8,
    /// Number of connections with state.
    pub connections: u8,
    /// Number of times that one segment is repeated without a sign of success.
    pub repeats: u8,
}

/// `anabranch_cache_counters`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets that were passed on unread.
    pub unread: u32,
    /// TCP segments that were read.
    pub segments: u32,
    /// Segments that were stored.
    pub cached: u32,
    /// Data segments that were not stored, because all places were in use.
    pub not_cached: u32,
    /// Segments repeated from the cache.
    pub repeated: u32,
    /// Acknowledgements repeated.
    pub acks_repeated: u32,
    /// Packets held back.
    pub held: u32,
    /// Segments that were left to the endpoints after `repeats` repetitions.
    pub given_up: u32,
    /// Connections with state.
    pub connections: u32,
}
