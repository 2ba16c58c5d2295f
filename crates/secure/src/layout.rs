//! What a record looks like on the wire, for hosts and for small nodes.

/// Bytes of the length before a record or a message of a handshake.
pub(crate) const LENGTH: usize = 2;
/// Bytes of an authentication tag.
pub(crate) const TAG: usize = 16;
/// Bytes that a record adds to its plaintext: its length and the tag.
pub const OVERHEAD: usize = LENGTH + TAG;
/// Bytes of a JOIN, which is the first message of a session at a node.
pub(crate) const JOIN: usize = 11;
/// The control stream's number; sessions are numbered from 0.
pub(crate) const CONTROL: u8 = 255;

/// The nonce of a stream's record with this number, below 2^56. It is not sent: a record opens in
/// its own place only.
pub(crate) const fn nonce(stream: u8, record: u64) -> u64 {
    (stream as u64) << 56 | record
}
