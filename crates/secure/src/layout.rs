//! Layout of records on the wire, shared by the implementations for hosts and for small nodes.

/// Length of the length field before a record or a handshake message, in bytes.
pub(crate) const LENGTH: usize = 2;
/// Length of an authentication tag in bytes.
pub(crate) const TAG: usize = 16;
/// Bytes that a record adds to its plaintext: length field and tag.
pub const OVERHEAD: usize = LENGTH + TAG;
/// Length of a JOIN, the first message of a session at a node, in bytes.
pub(crate) const JOIN: usize = 11;
/// Number of the control stream. Sessions are numbered from 0.
pub(crate) const CONTROL: u8 = 255;

/// The nonce of record number `record` of a stream; `record` is below 2^56. The nonce is not sent,
/// so a record opens only at its own position.
pub(crate) const fn nonce(stream: u8, record: u64) -> u64 {
    (stream as u64) << 56 | record
}
