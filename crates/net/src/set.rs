//! SET over the kernel's sockets: the machines of [`anabranch_core::set`] as a sender, a gateway
//! and a node that a person starts.
//!
//! [`Push`] delivers a file, [`Gateway`] relays to whom [`Allow`] says, [`Node`] receives into a
//! [`Sink`]. Each is a future that its owner awaits, on a runtime of any kind; whoever drops it
//! resets nothing and closes all. A task owns its machine and all of its sockets.
//!
//! With keys ([`anabranch_secure`]) sender and node know each other and encrypt from end to end,
//! and a gateway serves only whom it knows. Without, nothing is encrypted and nobody is
//! authenticated: that is for networks whose every host is trusted.

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

/// The port on which a node takes requests and sessions, unless told otherwise.
pub const NODE_PORT: u16 = 47_200;
/// The port on which a gateway takes sessions, unless told otherwise.
pub const GATEWAY_PORT: u16 = 47_201;

/// A gateway of which we know where it is and perhaps its key, nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownGateway {
    /// Where it takes sessions.
    pub address: SocketAddr,
    /// Its public key.
    pub key: Option<PublicKey>,
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
            neighbours: Vec::new(),
        }
    }
}

impl From<SocketAddr> for KnownGateway {
    fn from(address: SocketAddr) -> Self {
        Self { address, key: None }
    }
}

/// Seconds for which the kernel keeps a silent caller before accept (TCP_DEFER_ACCEPT). Callers
/// speak first in SET, so a burst of silent callers takes no place from the others.
const SILENCE: i32 = 3;

/// Calls that the kernel keeps until they are accepted.
const BACKLOG: u32 = 1024;

/// A listener with a receive buffer of this size for each connection. The size decides the window
/// scale, so it is set before `listen`.
fn listen(address: SocketAddr, receive_buffer: u32) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    window::bound(&socket, receive_buffer)?;
    // Only a defence against floods: its failure is no reason to refuse service.
    let _ = os::write_int(socket.as_fd(), (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT), SILENCE);
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
