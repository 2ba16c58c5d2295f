//! The types of `include/anabranch_sense.h`, field by field. A test compares both.

use core::ffi::{c_char, c_int};

/// Version of the interface. A program compares `ANABRANCH_SENSE_VERSION` of its header with the
/// library's value.
pub const VERSION: u32 = 1;

/// Success.
pub const OK: c_int = 0;
/// A pointer is null, or a value is out of range.
pub const ARGUMENT: c_int = -1;
/// Not enough memory.
pub const MEMORY: c_int = -2;
/// The program has no random numbers.
pub const ENTROPY: c_int = -3;
/// The queue is full.
pub const FULL: c_int = -4;
/// The stream is closed or closing.
pub const CLOSED: c_int = -5;

/// Values of [`Event::kind`].
pub mod kind {
    /// A session with the sink has begun.
    pub const CONNECTED: u32 = 1;
    /// The sink has stored records.
    pub const CONFIRMED: u32 = 2;
    /// There is room for records again.
    pub const WRITABLE: u32 = 3;
    /// The stream has ended.
    pub const ENDED: u32 = 4;
}

/// `anabranch_sense_config`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Name of the sender: text that ends with a zero byte.
    pub name: *const c_char,
    /// A pre-shared key, 32 bytes; null without encryption.
    pub shared: *const u8,
    /// Limit of the payload of a record in bytes.
    pub payload: u16,
    /// Capacity of the queue in records.
    pub packets: u8,
    /// 1 if the sender may run without encryption.
    pub insecure: u8,
}

/// `anabranch_sense_event`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Event {
    /// One of [`kind`].
    pub kind: u32,
    /// For [`kind::ENDED`]: 1 if the sink has stored all records.
    pub complete: u32,
    /// Number after the last record that the sink has stored.
    pub confirmed: u64,
    /// Number after the last record that was written.
    pub written: u64,
}

/// `anabranch_sense_counters`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Records sent for the first time.
    pub records: u32,
    /// Records sent again.
    pub repeated: u32,
    /// Control packets sent.
    pub control: u32,
    /// Datagrams that were dropped because they are of no known type, session or stream.
    pub strange: u32,
    /// Datagrams that were dropped because they are forged, repeated or too old.
    pub rejected: u32,
    /// Handshakes begun.
    pub handshakes: u32,
    /// Records in the queue.
    pub queued: u32,
    /// Present rate in bytes per second.
    pub rate: u32,
    /// Present round-trip time in microseconds.
    pub rtt_us: u32,
}
