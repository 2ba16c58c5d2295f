//! Socket buffer sizes and timeouts.

use anabranch_core::time::Duration;

/// Options of the sockets of one machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketOptions {
    /// Unsent bytes that the kernel may hold (TCP_NOTSENT_LOWAT). The value corresponds to 25 ms at
    /// 5 Mbit/s: small, so that striping decides late, and large enough that an acknowledgement
    /// finds data to send.
    pub unsent: u32,
    /// Unread payload bytes that the kernel may hold for each connection.
    pub receive_buffer: u32,
    /// Congestion control of outgoing connections, by the kernel's name; `None` is the host's
    /// default.
    pub congestion: Option<&'static str>,
    /// An outgoing connection that is not established within this time fails.
    pub dial_timeout: Duration,
    /// An incoming connection must send its first message, and authenticate where keys are used,
    /// within this time.
    pub greeting_timeout: Duration,
    /// An accepted connection without progress for this time is reset. `None`: never.
    pub idle: Option<Duration>,
    /// Number of unwritten bytes of a line at which reading stops.
    pub queue: u32,
    /// Limit of simultaneous incoming connections; further ones are reset.
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
