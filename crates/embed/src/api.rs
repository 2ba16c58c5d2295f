//! The types of `include/anabranch_node.h`, field by field; a test holds both against each other.

use core::ffi::c_int;

/// Changes with the header: a program compares `ANABRANCH_NODE_VERSION` with what the library says.
pub const VERSION: u32 = 3;

/// Connections at once: what one node of a B-tree holds, less what [`crate::node`] needs to begin.
pub const MAX_CONNECTIONS: u8 = 8;

/// Done.
pub const OK: c_int = 0;
/// A null pointer, or a configuration out of range.
pub const ARGUMENT: c_int = -1;
/// Too little memory.
pub const MEMORY: c_int = -2;
/// There are effects to be polled first.
pub const POLL: c_int = -3;
/// No such stream.
pub const STREAM: c_int = -4;
/// As many connections as there may be.
pub const FULL: c_int = -5;
/// No file is offered, or none is under way, or it has fewer bytes.
pub const OFFER: c_int = -6;

/// What a [`Effect`] is.
pub mod kind {
    /// Send bytes.
    pub const WRITE: u32 = 1;
    /// Offer a receive window.
    pub const LIMIT: u32 = 2;
    /// Close our direction.
    pub const SHUTDOWN: u32 = 3;
    /// Reset the connection.
    pub const RESET: u32 = 4;
    /// Bytes of the file.
    pub const DELIVER: u32 = 5;
    /// A sender offers a file.
    pub const BEGIN: u32 = 6;
    /// The file is complete, and its SHA-256 is the one announced.
    pub const END: u32 = 7;
    /// The rest of the file does not come, or the bytes were not those of the file.
    pub const ABORT: u32 = 8;
}

/// Why a transfer ended without its file: `reason` of [`kind::ABORT`].
pub mod abort {
    /// The sender gave it up.
    pub const CANCELLED: u8 = 1;
    /// No news for `idle_ms`, and no connection.
    pub const LOST: u8 = 2;
    /// No news for `idle_ms`, and another sender asked.
    pub const MADE_WAY: u8 = 3;
    /// The bytes do not have the SHA-256 that was announced.
    pub const DIGEST: u8 = 4;
    /// The program called `anabranch_node_abort`.
    pub const PROGRAM: u8 = 5;
    /// Memory was short: see [`super::Counters::restarts`].
    pub const MEMORY: u8 = 6;
    /// Its manifest expired while it came, or the time is not known any more.
    pub const EXPIRED: u8 = 7;
}

/// Why the program does not take a file: the codes of REFUSE.
pub mod refuse {
    /// Not now: the sender may ask again.
    pub const BUSY: u32 = 1;
    /// Another file is unfinished here.
    pub const UNFINISHED: u32 = 3;
    /// Not at all.
    pub const UNWANTED: u32 = 4;
    /// Longer than the program takes.
    pub const TOO_LARGE: u32 = UNWANTED | 1 << 8;
    /// No space for it.
    pub const NO_ROOM: u32 = UNWANTED | 2 << 8;
    /// No signature that the program trusts.
    pub const SIGNATURE: u32 = UNWANTED | 4 << 8;
    /// The program's storage failed.
    pub const FAILED: u32 = UNWANTED | 5 << 8;
    /// The device has a later version.
    pub const ROLLBACK: u32 = UNWANTED | 6 << 8;
    /// For another device.
    pub const WRONG_DEVICE: u32 = UNWANTED | 7 << 8;
    /// Its time is over.
    pub const EXPIRED: u32 = UNWANTED | 8 << 8;
    /// Not an image for this device's boot loader.
    pub const IMAGE: u32 = UNWANTED | 9 << 8;
}

/// `anabranch_node_offer`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Number of the transfer, drawn by the sender.
    pub transfer: u64,
    /// Bytes of the file.
    pub length: u64,
    /// SHA-256 of the file.
    pub digest: [u8; 32],
    /// An Ed25519 signature over length and digest; zeros without one.
    pub signature: [u8; 64],
    /// 1 if there is a signature.
    pub has_signature: u8,
    /// 1 if the sender wants what the node has of any file thrown away.
    pub discard: u8,
    /// 1 if the sender has shown its public key.
    pub has_sender: u8,
    /// Its public key; zeros without one.
    pub sender: [u8; 32],
    /// The envelope of the file, which has been checked; null without a device.
    pub manifest: *const u8,
    /// Its length in bytes.
    pub manifest_length: usize,
    /// The sequence number in it; 0 without a device.
    pub sequence: u64,
}

/// `anabranch_node_gateway`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gateway {
    /// An IPv6 address, or an IPv4 address in the first four bytes.
    pub address: [u8; 16],
    /// In the machine's order of bytes.
    pub port: u16,
    /// Its number in the table.
    pub id: u16,
    /// Hops from the node to it, at least 1.
    pub hops: u8,
    /// 1 for IPv6, 0 for IPv4.
    pub ipv6: u8,
}

/// `anabranch_node_keys`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    /// The node's X25519 secret key, 32 bytes, or null.
    pub secret: *const u8,
    /// A key that the node shares with senders, 32 bytes, or null.
    pub shared: *const u8,
    /// X25519 public keys of senders, 32 bytes each.
    pub senders: *const u8,
    /// Their number.
    pub sender_count: u8,
    /// X25519 public keys of the gateways, 32 bytes each, or null.
    pub gateways: *const u8,
}

/// `anabranch_node_config`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Bytes that wait out of order, at most.
    pub buffer: u32,
    /// A transfer without news for so long makes way for another.
    pub idle_ms: u32,
    /// Separate pieces that wait, at most.
    pub pieces: u16,
    /// Bytes that are taken at once, at most.
    pub read: u16,
    /// Connections at once, at most.
    pub connections: u8,
    /// Entries of `gateways`.
    pub gateway_count: u8,
    /// The gateways that senders are told of.
    pub gateways: *const Gateway,
    /// Null without encryption.
    pub keys: *const Keys,
    /// Null if files are taken without manifests.
    pub device: *const Device,
    /// With a device, what it has taken before.
    pub highest: *const Highest,
}

/// `anabranch_node_device`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Identifier of the device's maker, a UUID.
    pub vendor: [u8; 16],
    /// Identifier of the kind of device, a UUID.
    pub class_id: [u8; 16],
    /// Name of the component that files are for.
    pub component: *const u8,
    /// Ed25519 public keys of signers, 32 bytes each.
    pub signers: *const u8,
    /// Seconds since 1970; null without a clock.
    pub unix_time: Option<extern "C" fn() -> u64>,
    /// Bytes of the longest envelope that is taken.
    pub envelope: u16,
    /// Bytes of `component`.
    pub component_length: u8,
    /// Number of signers.
    pub signer_count: u8,
}

/// `anabranch_node_highest`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Highest {
    /// The highest sequence number of a file that was taken.
    pub sequence: u64,
    /// SHA-256 of that file.
    pub digest: [u8; 32],
    /// 0 if no file was taken yet.
    pub known: u8,
}

/// `anabranch_node_effect`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    /// One of [`kind`].
    pub kind: u32,
    /// Of which stream.
    pub stream: u32,
    /// What to write or deliver.
    pub octets: *const u8,
    /// How many, or how large a window.
    pub n: usize,
    /// Where in the file the bytes belong; of [`kind::END`], the length of the file.
    pub offset: u64,
    /// One of [`abort`].
    pub reason: u32,
}

/// `anabranch_node_counters`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Bytes that came more than once.
    pub duplicate_octets: u64,
    /// Bytes held out of order, at most.
    pub held_peak: u64,
    /// Streams that were reset because of what came on them.
    pub rejected: u64,
    /// Connections that were refused because there were too many.
    pub refused: u64,
    /// Times that memory was short and the node began anew.
    pub restarts: u64,
}
