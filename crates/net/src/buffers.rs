//! Socket memory: current use and limits.
//!
//! This module distinguishes two quantities. *Payload* is what the application has written. *Kernel
//! memory* is what the kernel accounts for it: payload plus overhead (`sk_buff`, `skb_shared_info`,
//! unused space). SO_SNDBUF and SO_RCVBUF limit kernel memory. The kernel expects as much overhead
//! as payload, so it doubles the value that is set (socket(7)) and returns the doubled value. All
//! sizes of this module are doubled values.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use libc::c_int;

use crate::os;

/// Smallest send buffer that the kernel allows, in bytes of kernel memory (SOCK_MIN_SNDBUF on 64
/// bits).
pub const LEAST_SEND_BUFFER: u64 = 4608;

/// Kernel memory of a socket (SO_MEMINFO).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    /// Bytes received and not yet read.
    pub received: u64,
    /// Limit of `received`, SO_RCVBUF.
    pub receive_buffer: u64,
    /// Bytes in the send queue, written and not acknowledged, with overhead (`sk_wmem_queued`).
    pub queued: u64,
    /// Limit of `queued`, SO_SNDBUF. The queue accepts no further packet while it holds at least
    /// this much; the last packet that it accepts may exceed the limit.
    pub send_buffer: u64,
    /// Bytes of packets between the queue and the wire, which are copies of queued bytes
    /// (`sk_wmem_alloc`).
    pub in_devices: u64,
}

impl Memory {
    /// Reads the memory of a socket.
    ///
    /// # Errors
    /// The descriptor is not a socket, or the kernel is older than 4.12.
    pub fn read(socket: impl AsFd) -> io::Result<Self> {
        let mut octets = [0; 4 * WORDS];
        let len = os::read(socket.as_fd(), (libc::SOL_SOCKET, libc::SO_MEMINFO), &mut octets)?;
        if len < 4 * (WMEM_QUEUED + 1) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let (words, _) = octets.as_chunks::<4>();
        let word = |i: usize| u64::from(u32::from_ne_bytes(words[i]));
        Ok(Self {
            received: word(RMEM_ALLOC),
            receive_buffer: word(RCVBUF),
            in_devices: word(WMEM_ALLOC),
            send_buffer: word(SNDBUF),
            queued: word(WMEM_QUEUED),
        })
    }
}

/// Returns the limit of the send queue in bytes of kernel memory.
///
/// # Errors
/// The descriptor is not a socket.
pub fn send_buffer(socket: impl AsFd) -> io::Result<u64> {
    read_size(socket.as_fd(), libc::SO_SNDBUF)
}

/// Sets the limit of the send queue in bytes of kernel memory and returns the limit that the kernel
/// applied. It is an even number, at least [`LEAST_SEND_BUFFER`] and at most twice
/// `net.core.wmem_max`. The kernel stops tuning this buffer.
///
/// Bytes in the queue stay there. The queue accepts more only after it has drained below the limit.
///
/// # Errors
/// The descriptor is not a socket.
pub fn set_send_buffer(socket: impl AsFd, octets: u64) -> io::Result<u64> {
    set_size(socket.as_fd(), libc::SO_SNDBUF, octets)
}

/// Like [`set_send_buffer`], without the maximum if the process has CAP_NET_ADMIN.
///
/// # Errors
/// The descriptor is not a socket.
pub fn force_send_buffer(socket: impl AsFd, octets: u64) -> io::Result<u64> {
    let forced = (libc::SOL_SOCKET, libc::SO_SNDBUFFORCE);
    match os::write_int(socket.as_fd(), forced, int(octets / 2)) {
        Ok(()) => send_buffer(socket),
        Err(_) => set_send_buffer(socket, octets),
    }
}

/// Returns whether the kernel has stopped tuning the send buffer because its limit was set
/// (SO_BUF_LOCK).
///
/// # Errors
/// The descriptor is not a socket, or the kernel is older than 5.18.
pub fn is_send_buffer_locked(socket: impl AsFd) -> io::Result<bool> {
    Ok(os::read_int(socket.as_fd(), os::BUF_LOCK)? & os::SNDBUF_LOCK != 0)
}

/// Lets the kernel tune the send buffer again, from its present limit on.
///
/// # Errors
/// The descriptor is not a socket, or the kernel is older than 5.18.
pub fn unlock_send_buffer(socket: impl AsFd) -> io::Result<()> {
    // The option sets the bits of both directions.
    let locks = os::read_int(socket.as_fd(), os::BUF_LOCK)?;
    os::write_int(socket.as_fd(), os::BUF_LOCK, locks & !os::SNDBUF_LOCK)
}

/// Returns the limit of the receive queue in bytes of kernel memory.
///
/// # Errors
/// The descriptor is not a socket.
pub fn receive_buffer(socket: impl AsFd) -> io::Result<u64> {
    read_size(socket.as_fd(), libc::SO_RCVBUF)
}

/// Sets the limit of the receive queue in bytes of kernel memory and returns the limit that the
/// kernel applied. A window that was advertised is not withdrawn.
///
/// # Errors
/// The descriptor is not a socket.
pub fn set_receive_buffer(socket: impl AsFd, octets: u64) -> io::Result<u64> {
    set_size(socket.as_fd(), libc::SO_RCVBUF, octets)
}

/// Returns the largest window that is advertised to the peer, in bytes of payload
/// (TCP_WINDOW_CLAMP).
///
/// # Errors
/// The descriptor is not a TCP socket.
pub fn window_clamp(socket: impl AsFd) -> io::Result<u64> {
    let octets = os::read_int(socket.as_fd(), (libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP))?;
    Ok(u64::try_from(octets).unwrap_or(0))
}

/// Sets the largest window that is advertised to the peer, in bytes of payload. The kernel raises
/// it to at least half of the smallest receive buffer.
///
/// # Errors
/// The descriptor is not a TCP socket, or the clamp is 0 and the socket is connected (tcp(7)).
pub fn set_window_clamp(socket: impl AsFd, octets: u64) -> io::Result<()> {
    os::write_int(socket.as_fd(), (libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP), int(octets))
}

/// Returns the number of payload bytes written and not acknowledged (SIOCOUTQ).
///
/// # Errors
/// The descriptor is not a TCP socket, or is listening.
pub fn unacknowledged(socket: impl AsFd) -> io::Result<u64> {
    queue(socket.as_fd(), os::SIOCOUTQ)
}

/// Returns the number of payload bytes received and not read (SIOCINQ).
///
/// # Errors
/// The descriptor is not a TCP socket, or is listening.
pub fn unread(socket: impl AsFd) -> io::Result<u64> {
    queue(socket.as_fd(), os::SIOCINQ)
}

/// Returns the number of payload bytes written and not sent (SIOCOUTQNSD).
///
/// # Errors
/// The descriptor is not a TCP socket, or is listening.
pub fn unsent(socket: impl AsFd) -> io::Result<u64> {
    queue(socket.as_fd(), os::SIOCOUTQNSD)
}

/// Sets the number of unsent payload bytes at which the socket stops being writable
/// (TCP_NOTSENT_LOWAT). The last packet that is accepted may exceed it.
///
/// # Errors
/// The descriptor is not a TCP socket.
pub fn set_unsent_mark(socket: impl AsFd, octets: u64) -> io::Result<()> {
    os::write_int(socket.as_fd(), (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT), int(octets))
}

/// Returns the number of unsent payload bytes at which the socket stops being writable
/// (TCP_NOTSENT_LOWAT); 0 if the host's default applies.
///
/// # Errors
/// The descriptor is not a TCP socket.
pub fn unsent_mark(socket: impl AsFd) -> io::Result<u64> {
    let octets = os::read_int(socket.as_fd(), (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT))?;
    // The kernel's number has no sign, and -1 is no limit.
    Ok(u64::from(octets as u32))
}

fn queue(fd: BorrowedFd<'_>, request: libc::c_ulong) -> io::Result<u64> {
    Ok(u64::try_from(os::queue(fd, request)?).unwrap_or(0))
}

fn read_size(fd: BorrowedFd<'_>, name: c_int) -> io::Result<u64> {
    Ok(u64::try_from(os::read_int(fd, (libc::SOL_SOCKET, name))?).unwrap_or(0))
}

fn set_size(fd: BorrowedFd<'_>, name: c_int, octets: u64) -> io::Result<u64> {
    os::write_int(fd, (libc::SOL_SOCKET, name), int(octets / 2))?;
    read_size(fd, name)
}

/// Converts a size; values out of range are clamped to the maximum.
fn int(octets: u64) -> c_int {
    c_int::try_from(octets).unwrap_or(c_int::MAX)
}

/// Indices into SO_MEMINFO (linux/sock_diag.h).
const RMEM_ALLOC: usize = 0;
const RCVBUF: usize = 1;
const WMEM_ALLOC: usize = 2;
const SNDBUF: usize = 3;
const WMEM_QUEUED: usize = 5;
/// SK_MEMINFO_VARS.
const WORDS: usize = 9;

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_kernel_says_the_size_that_was_set() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(set_send_buffer(&listener, 100_001).unwrap(), 100_000);
        assert_eq!(send_buffer(&listener).unwrap(), 100_000);
        assert_eq!(set_send_buffer(&listener, 0).unwrap(), LEAST_SEND_BUFFER);
        assert_eq!(set_receive_buffer(&listener, 60_000).unwrap(), 60_000);
        assert_eq!(receive_buffer(&listener).unwrap(), 60_000);
        // A value above the host's maximum is reduced, not refused.
        assert!(set_send_buffer(&listener, u64::MAX).unwrap() >= 200_000);
        set_window_clamp(&listener, 30_000).unwrap();
        assert_eq!(window_clamp(&listener).unwrap(), 30_000);
    }

    #[test]
    fn a_buffer_that_is_unlocked_grows_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        let Ok(false) = is_send_buffer_locked(&sender) else {
            println!("SKIPPED: the kernel has no SO_BUF_LOCK, which is of Linux 5.18");
            return;
        };
        sender.set_nonblocking(true).unwrap();
        receiver.set_nonblocking(true).unwrap();
        let mut send_some = || {
            // The kernel raises the limit for a sender that meets it.
            for _ in 0..200 {
                while (&sender).write(&[7; 4_000]).is_ok() {}
                while receiver.read(&mut [0; 4_000]).is_ok() {}
            }
            send_buffer(&sender).unwrap()
        };
        // Both directions are locked, and one is unlocked.
        set_receive_buffer(&sender, 50_000).unwrap();
        set_send_buffer(&sender, 5_000).unwrap();
        assert!(is_send_buffer_locked(&sender).unwrap());
        assert_eq!(send_some(), 5_000);
        unlock_send_buffer(&sender).unwrap();
        assert!(!is_send_buffer_locked(&sender).unwrap());
        assert_eq!(os::read_int(sender.as_fd(), os::BUF_LOCK).unwrap(), 2);
        assert!(send_some() > 5_000);
        assert_eq!(unsent_mark(&sender).unwrap(), 0);
        set_unsent_mark(&sender, 20_000).unwrap();
        assert_eq!(unsent_mark(&sender).unwrap(), 20_000);
    }

    #[test]
    fn what_nobody_reads_stays_in_the_queue() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        set_receive_buffer(&listener, 20_000).unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_receiver, _) = listener.accept().unwrap();
        let limit = set_send_buffer(&sender, 50_000).unwrap();
        sender.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(n) = sender.write(&[7; 10_000]) {
            written += n as u64;
        }
        let memory = Memory::read(&sender).unwrap();
        assert_eq!(memory.send_buffer, limit);
        let (unacknowledged, unsent) = (unacknowledged(&sender).unwrap(), unsent(&sender).unwrap());
        assert!(
            unsent > 0 && unsent <= unacknowledged && unacknowledged <= written,
            "{unsent} {unacknowledged}"
        );
        assert!(memory.queued >= unacknowledged && memory.queued >= limit, "{memory:?}");
        assert!(memory.queued < limit + 70_000, "one packet above the limit, no more: {memory:?}");
    }

    #[test]
    fn what_has_arrived_is_unread_until_it_is_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        assert_eq!(unread(&receiver).unwrap(), 0);
        sender.write_all(&[7; 10]).unwrap();
        drop(sender);
        receiver.read_exact(&mut [0; 4]).unwrap();
        assert_eq!(unread(&receiver).unwrap(), 6, "the end of the stream does not count");
        receiver.read_exact(&mut [0; 6]).unwrap();
        assert_eq!(unread(&receiver).unwrap(), 0);
        assert!(unread(&listener).is_err());
    }

    #[test]
    fn what_is_no_socket_has_no_buffer() {
        let file = File::open("/dev/null").unwrap();
        assert_eq!(send_buffer(&file).unwrap_err().raw_os_error(), Some(libc::ENOTSOCK));
        assert_eq!(set_send_buffer(&file, 1).unwrap_err().raw_os_error(), Some(libc::ENOTSOCK));
        assert!(
            Memory::read(&file).is_err() && unacknowledged(&file).is_err() && window_clamp(&file).is_err()
        );
    }
}
