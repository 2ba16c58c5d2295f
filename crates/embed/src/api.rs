//! The types of `include/anabranch_node.h`, field by field. A test compares both.

use core::ffi::c_int;

/// Version of the interface. A program compares `ANABRANCH_NODE_VERSION` of its header with the
/// library's value.
pub const VERSION: u32 = 4;

/// Upper limit of connections: the capacity of one B-tree node minus what [`crate::node`] needs to
/// start.
pub const MAX_CONNECTIONS: u8 = 8;

/// Success.
pub const OK: c_int = 0;
/// A pointer is null, or a configuration is out of range.
pub const ARGUMENT: c_int = -1;
/// Not enough memory.
pub const MEMORY: c_int = -2;
/// The effects of the last call must be polled first.
pub const POLL: c_int = -3;
/// The stream does not exist.
pub const STREAM: c_int = -4;
/// The limit of connections is reached.
pub const FULL: c_int = -5;
/// No file is offered or in transfer, or it is shorter than the given bytes.
pub const OFFER: c_int = -6;

/// Values of [`Effect::kind`].
pub mod kind {
    /// Send bytes on the stream.
    pub const WRITE: u32 = 1;
    /// Offer a receive window to the peer.
    pub const LIMIT: u32 = 2;
    /// Close the sending direction of the stream.
    pub const SHUTDOWN: u32 = 3;
    /// Reset the connection.
    pub const RESET: u32 = 4;
    /// Take bytes of the file.
    pub const DELIVER: u32 = 5;
    /// A sender offers a file.
    pub const BEGIN: u32 = 6;
    /// The file is complete, and its SHA-256 matches the announced one.
    pub const END: u32 = 7;
    /// The transfer has ended without the file.
    pub const ABORT: u32 = 8;
}

/// Why a transfer ended without the file: `reason` of [`kind::ABORT`].
pub mod abort {
    /// The sender cancelled it.
    pub const CANCELLED: u8 = 1;
    /// No progress for `idle_ms`, and no connection.
    pub const LOST: u8 = 2;
    /// No progress for `idle_ms`, and another sender made a request.
    pub const MADE_WAY: u8 = 3;
    /// The bytes do not have the announced SHA-256.
    pub const DIGEST: u8 = 4;
    /// The program called `anabranch_node_abort`.
    pub const PROGRAM: u8 = 5;
    /// Memory ran out: see [`super::Counters::restarts`].
    pub const MEMORY: u8 = 6;
    /// The manifest expired during the transfer, or the time is no longer known.
    pub const EXPIRED: u8 = 7;
}

/// Why the program refuses a file: the codes of REFUSE.
pub mod refuse {
    /// Busy; the sender may retry.
    pub const BUSY: u32 = 1;
    /// Another file is incomplete on the node.
    pub const UNFINISHED: u32 = 3;
    /// Refused without a specific reason.
    pub const UNWANTED: u32 = 4;
    /// The file is longer than the program accepts.
    pub const TOO_LARGE: u32 = UNWANTED | 1 << 8;
    /// No storage space for the file.
    pub const NO_ROOM: u32 = UNWANTED | 2 << 8;
    /// No signature of a trusted signer.
    pub const SIGNATURE: u32 = UNWANTED | 4 << 8;
    /// The storage failed.
    pub const FAILED: u32 = UNWANTED | 5 << 8;
    /// The device has a later version.
    pub const ROLLBACK: u32 = UNWANTED | 6 << 8;
    /// The file is for another device.
    pub const WRONG_DEVICE: u32 = UNWANTED | 7 << 8;
    /// The file has expired.
    pub const EXPIRED: u32 = UNWANTED | 8 << 8;
    /// The file is not an image for the boot loader of this device.
    pub const IMAGE: u32 = UNWANTED | 9 << 8;
}

/// `anabranch_node_offer`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Number of the transfer, drawn by the sender.
    pub transfer: u64,
    /// Length of the file in bytes.
    pub length: u64,
    /// SHA-256 of the file.
    pub digest: [u8; 32],
    /// An Ed25519 signature over length and digest; zeros if there is none.
    pub signature: [u8; 64],
    /// 1 if the offer has a signature.
    pub has_signature: u8,
    /// 1 if the sender asks the node to discard any bytes that it has stored.
    pub discard: u8,
    /// 1 if the sender has authenticated with a public key.
    pub has_sender: u8,
    /// Public key of the sender; zeros if there is none.
    pub sender: [u8; 32],
    /// The verified envelope of the file; null without a device.
    pub manifest: *const u8,
    /// Length of the envelope in bytes.
    pub manifest_length: usize,
    /// Sequence number of the manifest; 0 without a device.
    pub sequence: u64,
}

/// `anabranch_node_gateway`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gateway {
    /// An IPv6 address, or an IPv4 address in the first four bytes.
    pub address: [u8; 16],
    /// Port in native byte order.
    pub port: u16,
    /// Number in the gateway table.
    pub id: u16,
    /// Number of hops from the node to the gateway, at least 1.
    pub hops: u8,
    /// 1 for IPv6, 0 for IPv4.
    pub ipv6: u8,
    /// 1 if its path shares a radio channel with those of the other gateways with a 1.
    pub shared_channel: u8,
}

/// `anabranch_node_keys`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    /// The node's X25519 secret key, 32 bytes, or null.
    pub secret: *const u8,
    /// A pre-shared key, 32 bytes, or null.
    pub shared: *const u8,
    /// X25519 public keys of accepted senders, 32 bytes each.
    pub senders: *const u8,
    /// Number of senders.
    pub sender_count: u8,
    /// X25519 public keys of the gateways, 32 bytes each, or null.
    pub gateways: *const u8,
}

/// `anabranch_node_config`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Size of the reorder buffer in bytes.
    pub buffer: u32,
    /// A transfer without progress for this time, in ms, gives way to another.
    pub idle_ms: u32,
    /// Limit of separate ranges in the reorder buffer.
    pub pieces: u16,
    /// Limit of bytes taken per call.
    pub read: u16,
    /// Limit of simultaneous connections.
    pub connections: u8,
    /// Number of entries in `gateways`.
    pub gateway_count: u8,
    /// The gateways that the node announces to senders.
    pub gateways: *const Gateway,
    /// Keys; null without encryption.
    pub keys: *const Keys,
    /// The device; null if files are accepted without manifests.
    pub device: *const Device,
    /// With a device, the last file that it accepted.
    pub highest: *const Highest,
}

/// `anabranch_node_device`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Identifier of the vendor, a UUID.
    pub vendor: [u8; 16],
    /// Identifier of the device class, a UUID.
    pub class_id: [u8; 16],
    /// Name of the component that files are for.
    pub component: *const u8,
    /// Ed25519 public keys of trusted signers, 32 bytes each.
    pub signers: *const u8,
    /// Returns seconds since 1970; null without a clock.
    pub unix_time: Option<extern "C" fn() -> u64>,
    /// Limit of the envelope length in bytes.
    pub envelope: u16,
    /// Length of `component` in bytes.
    pub component_length: u8,
    /// Number of signers.
    pub signer_count: u8,
}

/// `anabranch_node_highest`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Highest {
    /// Highest sequence number of an accepted file.
    pub sequence: u64,
    /// SHA-256 of that file.
    pub digest: [u8; 32],
    /// 0 if no file was accepted yet.
    pub known: u8,
}

/// `anabranch_node_effect`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    /// One of [`kind`].
    pub kind: u32,
    /// The stream that the effect concerns.
    pub stream: u32,
    /// The bytes to write or deliver.
    pub octets: *const u8,
    /// Number of bytes, or the size of a window.
    pub n: usize,
    /// Position of the bytes in the file; for [`kind::END`], the length of the file.
    pub offset: u64,
    /// One of [`abort`].
    pub reason: u32,
}

/// `anabranch_node_counters`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Number of bytes received more than once.
    pub duplicate_octets: u64,
    /// Largest number of bytes held in the reorder buffer.
    pub held_peak: u64,
    /// Number of streams reset because of invalid input.
    pub rejected: u64,
    /// Number of connections refused because the limit was reached.
    pub refused: u64,
    /// Number of times that memory ran out and the node restarted.
    pub restarts: u64,
}
