//! Raw sockets: whole packets to the kernel's forwarding.

use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};

/// Sends packets that this host did not make. They carry a mark, so that rules can recognise them.
#[derive(Debug)]
pub struct RawSender {
    v4: Socket,
    /// `None` on a host without IPv6.
    v6: Option<Socket>,
}

impl RawSender {
    /// Opens the sockets.
    ///
    /// # Errors
    /// `PermissionDenied`: CAP_NET_RAW or, for the mark, CAP_NET_ADMIN is missing.
    pub fn open(mark: u32) -> io::Result<Self> {
        let open = |domain| {
            let socket = Socket::new(domain, Type::RAW.nonblocking().cloexec(), Some(Protocol::from(RAW)))?;
            socket.set_mark(mark)?;
            Ok::<_, io::Error>(socket)
        };
        let v4 = open(Domain::IPV4)?;
        v4.set_header_included_v4(true)?;
        let v6 = match open(Domain::IPV6) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
            // The kernel was built without IPv6, or it is switched off.
            Err(_) => None,
            Ok(socket) => {
                socket.set_header_included_v6(true)?;
                Some(socket)
            }
        };
        Ok(Self { v4, v6 })
    }

    /// Sends a packet, which begins with its IP header, towards `destination`.
    ///
    /// # Errors
    /// There is no route, the packet is longer than the MTU, a rule drops it, or the queue of the
    /// device is full.
    pub fn send(&self, packet: &[u8], destination: IpAddr) -> io::Result<()> {
        let socket = match destination {
            IpAddr::V4(_) => &self.v4,
            IpAddr::V6(_) => self.v6.as_ref().ok_or(io::ErrorKind::Unsupported)?,
        };
        socket.send_to(packet, &SocketAddr::new(destination, 0).into()).map(drop)
    }
}

/// IPPROTO_RAW (raw(7)): the socket only sends.
const RAW: i32 = 255;
