//! SET over the kernel's sockets: sender, gateway and node, built on the machines of
//! [`anabranch_core::set`].
//!
//! [`Push`] delivers a file, [`Gateway`] relays to the addresses that [`Allow`] permits, and
//! [`Node`] receives into a [`Sink`]. Its owner awaits each of them on a tokio runtime of any
//! flavour. Dropping one closes its connections without a reset. Each task owns its machine and all
//! of its sockets.
//!
//! With keys ([`anabranch_secure`]), sender and node authenticate each other and encrypt end to
//! end, and a gateway serves only known senders. Without keys nothing is encrypted or
//! authenticated: use that only on networks whose every host is trusted.

mod allow;
mod crowd;
mod driver;
mod gateway;
mod line;
mod machine;
mod node;
mod options;
mod pace;
mod push;
mod security;
mod window;

pub use crate::clock::{greeting_number, unix_time};

pub use self::allow::{Allow, BadAllow};
pub use self::driver::LineError;
pub use self::gateway::{Gateway, GatewayConfig, GatewayEvent, Gauges};
pub use self::node::{Announced, Node, NodeConfig, NodeEvent, Offer, Refusal, Sink, Verdict};
pub use self::options::SocketOptions;
pub use self::push::{Push, PushConfig, PushFile};
pub use self::security::RefusedCounters;

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use anabranch_core::set::Energy;
use anabranch_secure::PublicKey;
use tokio::net::{TcpListener, TcpSocket};

use crate::os;

/// Default port on which a node accepts requests and sessions.
pub const NODE_PORT: u16 = 47_200;
/// Default port on which a gateway accepts sessions.
pub const GATEWAY_PORT: u16 = 47_201;

/// A gateway with a known address and optionally a known key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownGateway {
    /// Address at which it accepts sessions.
    pub address: SocketAddr,
    /// Its public key.
    pub key: Option<PublicKey>,
    /// Whether its path shares a radio channel: see
    /// [`Gateway::shared_channel`](anabranch_core::set::Gateway::shared_channel).
    pub shared_channel: bool,
}

impl KnownGateway {
    /// A row of the gateway table.
    fn row(&self, id: u16) -> anabranch_core::set::Gateway {
        anabranch_core::set::Gateway {
            id,
            address: self.address,
            key: self.key.map(|key| key.0),
            energy: Energy::High,
            hops: 1,
            shared_channel: self.shared_channel,
            neighbours: Vec::new(),
        }
    }
}

impl From<SocketAddr> for KnownGateway {
    fn from(address: SocketAddr) -> Self {
        Self { address, key: None, shared_channel: false }
    }
}

/// Seconds that the kernel keeps a silent connection before accept (TCP_DEFER_ACCEPT). Clients
/// speak first in SET, so a burst of silent connections does not take the place of others.
const SILENCE: i32 = 3;

/// Length of the accept queue.
const BACKLOG: u32 = 1024;

/// Creates a listener whose connections have a receive buffer of this size. The size determines the
/// window scale, so it must be set before `listen`.
fn listen(address: SocketAddr, receive_buffer: u32) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    window::bound(&socket, receive_buffer)?;
    // Only a defence against floods, so its failure is ignored.
    let _ = os::write_int(socket.as_fd(), (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT), SILENCE);
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
