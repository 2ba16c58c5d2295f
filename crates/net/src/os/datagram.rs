//! Datagrams with their times of arrival.

use std::io;
use std::mem::zeroed;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::time::Duration;

use libc::{c_int, socklen_t};

use super::Name;

/// Receives a datagram. Returns its length, its source, and its arrival by the host's clock, as
/// time since 1970, if the kernel notes it ([`ARRIVALS`]).
pub(crate) fn receive(
    fd: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> io::Result<(usize, SocketAddr, Option<Duration>)> {
    #[repr(align(16))]
    struct Control([u8; 128]);
    let mut control = Control([0; 128]);
    // SAFETY: both structures are integers and pointers, for which zero is valid.
    let (mut name, mut head) = unsafe { (zeroed::<libc::sockaddr_in6>(), zeroed::<libc::msghdr>()) };
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    head.msg_name = ptr::from_mut(&mut name).cast();
    head.msg_namelen = size_of_val(&name) as socklen_t;
    (head.msg_iov, head.msg_iovlen) = (&raw mut part, 1);
    (head.msg_control, head.msg_controllen) = (control.0.as_mut_ptr().cast(), control.0.len() as _);
    // SAFETY: the descriptor stays open while it is borrowed. The kernel writes at most the given
    // lengths to the buffers that `head` names, which all outlive the call.
    let len = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut head, 0) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    let mut arrived = None;
    // SAFETY: the kernel has written whole messages to `control`, as many as `head` says. A message
    // of this type has a `timespec`.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(&raw const head);
        while let Some(kind) = message.as_ref() {
            if (kind.cmsg_level, kind.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
                let time = libc::CMSG_DATA(message).cast::<libc::timespec>().read_unaligned();
                let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
                arrived = Some(Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0)));
            }
            message = libc::CMSG_NXTHDR(&raw const head, message);
        }
    }
    let source = match c_int::from(name.sin6_family) {
        libc::AF_INET6 => {
            let (ip, port) = (name.sin6_addr.s6_addr.into(), u16::from_be(name.sin6_port));
            SocketAddrV6::new(ip, port, name.sin6_flowinfo, name.sin6_scope_id).into()
        }
        _ => {
            // SAFETY: the socket has one of two families, and both structures are plain integers;
            // the other one is shorter.
            let name = unsafe { ptr::from_ref(&name).cast::<libc::sockaddr_in>().read() };
            let ip = Ipv4Addr::from(name.sin_addr.s_addr.to_ne_bytes());
            SocketAddrV4::new(ip, u16::from_be(name.sin_port)).into()
        }
    };
    Ok((len, source, arrived))
}

/// Level and name of the option by which the kernel notes when datagrams arrive (socket(7)).
pub(crate) const ARRIVALS: Name = (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS);

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use anabranch_testkit::netns::{self, Broom, ip, name, within};

    use super::*;
    use crate::os::write_int;

    /// As [`UdpSocket::recv_from`], whose source names the interface of a link-local address.
    #[test]
    fn the_source_of_a_datagram_can_be_answered() {
        if netns::skipped() {
            return;
        }
        let netns = name("os");
        let _broom = Broom::new([&netns]);
        ip(&["netns", "add", &netns]);
        ip(&["-n", &netns, "link", "set", "dev", "lo", "up"]);
        ip(&["-n", &netns, "address", "add", "fe80::1/64", "dev", "lo", "nodad"]);
        within(&netns, || {
            let link_local =
                SocketAddr::from(SocketAddrV6::new("fe80::1".parse().expect("an address"), 0, 0, 1));
            let any = |text: &str| text.parse::<SocketAddr>().expect("an address");
            for (listen, from) in [
                (link_local, link_local),
                (any("[::]:0"), any("127.0.0.1:0")),
                (any("0.0.0.0:0"), any("127.0.0.1:0")),
            ] {
                let sink = UdpSocket::bind(listen).expect("a socket");
                write_int(sink.as_fd(), ARRIVALS, 1).expect("Linux has it");
                let sender = UdpSocket::bind(from).expect("a socket");
                let to = SocketAddr::new(from.ip(), sink.local_addr().expect("it is bound").port());
                let to = if from == link_local { sink.local_addr().expect("it is bound") } else { to };
                let mut buffer = [0; 10];
                sender.send_to(b"one", to).expect("it is sent");
                let (len, source, arrived) = receive(sink.as_fd(), &mut buffer).expect("it is here");
                assert_eq!((&buffer[..len], arrived.is_some()), (&b"one"[..], true));
                sender.send_to(b"two", to).expect("it is sent");
                assert_eq!(sink.recv_from(&mut buffer).expect("it is here"), (3, source));
            }
        });
    }
}
