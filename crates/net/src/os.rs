//! Raw socket options. All `unsafe` code of this crate is here: none of the safe wrappers known to
//! us reads an option whose length the kernel decides, such as TCP_INFO and SO_MEMINFO.

#![expect(unsafe_code, reason = "getsockopt, setsockopt, ioctl and recvmsg by their raw interface")]

#[cfg(feature = "rdca")]
mod datagram;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use libc::{c_int, c_ulong, socklen_t};

#[cfg(feature = "rdca")]
pub(crate) use self::datagram::{ARRIVALS, receive};

/// Level and name of a socket option.
pub(crate) type Name = (c_int, c_int);

/// Reads an option into `buffer`, as much as fits. Returns the number of bytes read.
pub(crate) fn read(fd: BorrowedFd<'_>, (level, name): Name, buffer: &mut [u8]) -> io::Result<usize> {
    let mut len = socklen_t::try_from(buffer.len()).unwrap_or(socklen_t::MAX);
    // SAFETY: the descriptor stays open while it is borrowed. The kernel writes at most `len` bytes
    // to the buffer, which has that many, and the actual length to `len`. Every byte value is
    // valid.
    let answer = unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, name, buffer.as_mut_ptr().cast(), ptr::from_mut(&mut len))
    };
    if answer == 0 { Ok(buffer.len().min(len as usize)) } else { Err(io::Error::last_os_error()) }
}

/// Reads an integer option.
pub(crate) fn read_int(fd: BorrowedFd<'_>, name: Name) -> io::Result<c_int> {
    let mut octets = [0; size_of::<c_int>()];
    match read(fd, name, &mut octets)? {
        len if len == octets.len() => Ok(c_int::from_ne_bytes(octets)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Sets an integer option.
pub(crate) fn write_int(fd: BorrowedFd<'_>, (level, name): Name, value: c_int) -> io::Result<()> {
    const LEN: socklen_t = size_of::<c_int>() as socklen_t;
    // SAFETY: the descriptor stays open while it is borrowed. The kernel reads the bytes of one
    // integer, `value`.
    let answer = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, ptr::from_ref(&value).cast(), LEN) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the answer to SIOCOUTQ and similar requests. No other request may be passed.
pub(crate) fn queue(fd: BorrowedFd<'_>, request: c_ulong) -> io::Result<c_int> {
    debug_assert!([SIOCINQ, SIOCOUTQ, SIOCOUTQNSD].contains(&request));
    let mut value: c_int = 0;
    // SAFETY: the descriptor stays open while it is borrowed. These requests write one integer, for
    // which `value` has room.
    let answer = unsafe { libc::ioctl(fd.as_raw_fd(), request as _, ptr::from_mut(&mut value)) };
    if answer == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// Level and name of SO_BUF_LOCK, which the crate `libc` lacks (asm-generic/socket.h; other on
/// PA-RISC and SPARC).
pub(crate) const BUF_LOCK: Name = (libc::SOL_SOCKET, 72);
/// Bit of SO_BUF_LOCK: the size of the send buffer was set (linux/socket.h).
pub(crate) const SNDBUF_LOCK: c_int = 1;

/// Number of bytes in the receive queue (linux/sockios.h); same value as FIONREAD.
pub(crate) const SIOCINQ: c_ulong = libc::FIONREAD as c_ulong;
/// Number of unacknowledged bytes in the send queue (linux/sockios.h); same value as TIOCOUTQ.
pub(crate) const SIOCOUTQ: c_ulong = libc::TIOCOUTQ as c_ulong;
/// Number of unsent bytes in the send queue (linux/sockios.h).
pub(crate) const SIOCOUTQNSD: c_ulong = 0x894b;
