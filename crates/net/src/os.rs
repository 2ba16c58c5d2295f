//! Options of sockets as bytes and integers. All of this crate's `unsafe` is here: no safe wrapper
//! that we know reads an option of a length that the kernel decides, as TCP_INFO and SO_MEMINFO
//! are.

#![expect(unsafe_code, reason = "getsockopt, setsockopt and ioctl by their raw interface")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use libc::{c_int, c_ulong, socklen_t};

/// An option of a socket: its level and its name.
pub(crate) type Name = (c_int, c_int);

/// As much of an option as the kernel has and `buffer` holds; how many bytes that is.
pub(crate) fn read(fd: BorrowedFd<'_>, (level, name): Name, buffer: &mut [u8]) -> io::Result<usize> {
    let mut len = socklen_t::try_from(buffer.len()).unwrap_or(socklen_t::MAX);
    // SAFETY: the descriptor is open as long as it is borrowed; the kernel writes at most `len`
    // bytes to the buffer, which has that many, and the length to `len`. Bytes of any value are
    // bytes.
    let answer = unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, name, buffer.as_mut_ptr().cast(), ptr::from_mut(&mut len))
    };
    if answer == 0 { Ok(buffer.len().min(len as usize)) } else { Err(io::Error::last_os_error()) }
}

/// An option that is an integer.
pub(crate) fn read_int(fd: BorrowedFd<'_>, name: Name) -> io::Result<c_int> {
    let mut octets = [0; size_of::<c_int>()];
    match read(fd, name, &mut octets)? {
        len if len == octets.len() => Ok(c_int::from_ne_bytes(octets)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Sets an option that is an integer.
pub(crate) fn write_int(fd: BorrowedFd<'_>, (level, name): Name, value: c_int) -> io::Result<()> {
    const LEN: socklen_t = size_of::<c_int>() as socklen_t;
    // SAFETY: the descriptor is open as long as it is borrowed; the kernel reads the bytes of one
    // integer, which is there.
    let answer = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, ptr::from_ref(&value).cast(), LEN) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What SIOCOUTQ and its like answer. No other request may be passed.
pub(crate) fn queue(fd: BorrowedFd<'_>, request: c_ulong) -> io::Result<c_int> {
    debug_assert!([SIOCINQ, SIOCOUTQ, SIOCOUTQNSD].contains(&request));
    let mut value: c_int = 0;
    // SAFETY: the descriptor is open as long as it is borrowed; these requests write one integer,
    // for which there is room.
    let answer = unsafe { libc::ioctl(fd.as_raw_fd(), request as _, ptr::from_mut(&mut value)) };
    if answer == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// Bytes of the receive queue (linux/sockios.h); the number of FIONREAD.
pub(crate) const SIOCINQ: c_ulong = libc::FIONREAD as c_ulong;
/// Bytes of the send queue that are not acknowledged (linux/sockios.h); the number of TIOCOUTQ.
pub(crate) const SIOCOUTQ: c_ulong = libc::TIOCOUTQ as c_ulong;
/// Bytes of the send queue that are not sent (linux/sockios.h).
pub(crate) const SIOCOUTQNSD: c_ulong = 0x894b;
