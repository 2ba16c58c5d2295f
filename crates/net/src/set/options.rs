//! Sizes and times of sockets.

use anabranch_core::time::Duration;

/// Options of the sockets of one machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketOptions {
    /// Bytes that may wait unsent in the kernel (TCP_NOTSENT_LOWAT): as much as 25 ms of 5 Mbit/s,
    /// so that what is striped is striped late, and enough for an acknowledgement to find something
    /// to send.
    pub unsent: u32,
    /// Payload length in bytes that the kernel may hold for us unread, for each connection.
    pub receive_buffer: u32,
    /// Congestion control of connections that we make, by the kernel's name for it; the host's
    /// default if `None`.
    pub congestion: Option<&'static str>,
    /// A call that is not answered for so long is abandoned.
    pub dial_timeout: Duration,
    /// Whoever has called has to say something within this time, and who it is, where that matters.
    pub greeting_timeout: Duration,
    /// A connection that was accepted and on which nothing moves for so long is reset. `None`:
    /// never.
    pub idle: Option<Duration>,
    /// Bytes that may wait in a line to be written before reading stops.
    pub queue: u32,
    /// Connections that are open at once because others have called; further ones are reset.
    pub connections: usize,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            unsent: 16 << 10,
            receive_buffer: 1 << 20,
            congestion: None,
            dial_timeout: Duration::from_secs(10),
            greeting_timeout: Duration::from_secs(10),
            idle: Some(Duration::from_secs(120)),
            queue: 1 << 20,
            connections: 64,
        }
    }
}
