//! Sockets of another process, which are duplicated for one operation at a time (pidfd_getfd(2)).
//!
//! No duplicate is kept: the connection of a socket ends only when its last descriptor is closed,
//! so a duplicate would hide from the peer that the program has closed its own.

use std::fs::{self, File, TryLockError};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, ipproto, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::buffers;

/// Why a socket is no longer managed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Gone {
    /// Its owner has dropped it.
    Dropped,
    /// Its connection is closed.
    Closed,
    /// The kernel returns an error when asked for its state.
    Unreadable,
}

/// A process whose sockets may be duplicated.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    started: u64,
    pidfd: OwnedFd,
    /// Its folder in `/proc`, locked.
    _claim: Option<File>,
}

impl Process {
    /// Opens a process.
    ///
    /// # Errors
    /// * `NotFound`: no such process.
    /// * `PermissionDenied`: the caller may not duplicate or list its descriptors. This needs the
    ///   right to trace the process (PTRACE_MODE_ATTACH_REALCREDS of ptrace(2)).
    /// * Others: the kernel is older than 5.6, or has no `/proc`.
    pub fn open(pid: u32) -> io::Result<Self> {
        let not_found = || io::Error::from(io::ErrorKind::NotFound);
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(not_found)?;
        let pidfd = pidfd_open(number, PidfdFlags::empty()).map_err(|error| match error {
            Errno::SRCH | Errno::INVAL => not_found(),
            other => other.into(),
        })?;
        let process = Self { pid, started: started(pid)?, pidfd, _claim: None };
        // The kernel checks the right before it looks for the descriptor.
        match process.duplicate(RawFd::MAX) {
            Err(Errno::SRCH) => return Err(not_found()),
            Err(Errno::BADF) | Ok(_) => {}
            Err(other) => return Err(other.into()),
        }
        process.sockets().map(|_| process)
    }

    /// Opens a process and claims it for as long as this value exists: of two that change the
    /// buffers of one process, each would restore what the other has set.
    ///
    /// # Errors
    /// * `ResourceBusy`: the process is claimed, by whichever user, in the same PID namespace.
    /// * As [`Process::open`].
    pub fn claim(pid: u32) -> io::Result<Self> {
        let process = Self::open(pid)?;
        let folder = File::open(format!("/proc/{pid}"))?;
        match folder.try_lock() {
            Ok(()) => Ok(Self { _claim: Some(folder), ..process }),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::ResourceBusy.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// When it started, in clock ticks since the boot. With the number this identifies the process.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// Whether it has not ended yet.
    pub fn is_running(&self) -> bool {
        self.duplicate(RawFd::MAX).err() != Some(Errno::SRCH)
            && started(self.pid).is_ok_and(|started| started == self.started)
    }

    /// Numbers of its descriptors that are sockets, with the numbers of their inodes.
    pub(super) fn sockets(&self) -> io::Result<Vec<(RawFd, u64)>> {
        let inode = |text: &str| text.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
        let socket = |entry: io::Result<fs::DirEntry>| {
            let entry = entry.ok()?;
            let number = entry.file_name().to_str()?.parse().ok()?;
            Some((number, inode(fs::read_link(entry.path()).ok()?.to_str()?)?))
        };
        Ok(fs::read_dir(format!("/proc/{}/fd", self.pid))?.filter_map(socket).collect())
    }

    pub(super) fn duplicate(&self, number: RawFd) -> rustix::io::Result<OwnedFd> {
        pidfd_getfd(&self.pidfd, number, PidfdGetfdFlags::empty())
    }
}

/// Time at which a process started, in clock ticks since the boot (proc_pid_stat(5), field 22).
///
/// # Errors
/// `NotFound`: no such process, or it has ended and its parent has not noticed yet.
pub fn started(pid: u32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in brackets may contain anything.
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    if after_name.trim_start().starts_with(['Z', 'X']) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let field = after_name.split_whitespace().nth(19).and_then(|ticks| ticks.parse().ok());
    field.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// A socket of another process. Clones are the same socket.
#[derive(Clone, Debug)]
pub(super) struct Foreign {
    /// Number that the kernel gives to no other socket (SO_COOKIE).
    pub cookie: u64,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    /// A descriptor of it, which may change.
    spot: (Arc<Process>, RawFd),
    /// The limit that the tuner has set.
    limit: Option<u64>,
    /// A limit that was set after it, by the program.
    overridden: Option<u64>,
}

impl Foreign {
    pub(super) fn new(cookie: u64, process: &Arc<Process>, number: RawFd) -> Self {
        let shared = Shared { spot: (Arc::clone(process), number), limit: None, overridden: None };
        Self { cookie, shared: Arc::new(Mutex::new(shared)) }
    }

    /// Duplicates it.
    pub(super) fn open(&self) -> Result<OwnedFd, Gone> {
        let (process, number) = self.spot();
        let socket = process.duplicate(number).map_err(|_| Gone::Dropped)?;
        match sockopt::socket_cookie(&socket) {
            Ok(cookie) if cookie == self.cookie => Ok(socket),
            // The program has closed it, and the number is that of another file now.
            _ => Err(Gone::Dropped),
        }
    }

    pub(super) fn spot(&self) -> (Arc<Process>, RawFd) {
        self.shared().spot.clone()
    }

    /// The program has it under another number.
    pub(super) fn moved(&self, process: &Arc<Process>, number: RawFd) {
        self.shared().spot = (Arc::clone(process), number);
    }

    /// Sets its limit and returns the limit that the kernel applied. The program may have had more
    /// than an unprivileged process may set.
    pub(super) fn limit(&self, socket: &OwnedFd, octets: u64) -> io::Result<u64> {
        let limit = buffers::force_send_buffer(socket, octets)?;
        self.shared().limit = Some(limit);
        Ok(limit)
    }

    /// Notes the limit that was found.
    pub(super) fn found(&self, limit: u64) {
        let mut shared = self.shared();
        if shared.limit.is_some_and(|ours| ours != limit) {
            shared.overridden = Some(limit);
        }
    }

    /// The limit that the program has set since the last call.
    pub(super) fn take_overridden(&self) -> Option<u64> {
        self.shared().overridden.take()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether it is a socket of TCP. The kernel tunes the subflows of Multipath TCP itself.
pub(super) fn is_tcp(socket: &OwnedFd) -> bool {
    let is = || {
        let domain = sockopt::socket_domain(socket)?;
        let of_ip = domain == AddressFamily::INET || domain == AddressFamily::INET6;
        let is_stream = sockopt::socket_type(socket)? == SocketType::STREAM;
        Ok::<_, Errno>(of_ip && is_stream && sockopt::socket_protocol(socket)? == Some(ipproto::TCP))
    };
    is().unwrap_or(false)
}

/// Its own and its peer's address, if it is connected.
pub(super) fn ends(socket: &OwnedFd) -> Option<(SocketAddr, SocketAddr)> {
    let local = SocketAddr::try_from(rustix::net::getsockname(socket).ok()?).ok()?;
    let peer = SocketAddr::try_from(rustix::net::getpeername(socket).ok()??).ok()?;
    Some((canonical(local), canonical(peer)))
}

/// IPv4-mapped IPv6 addresses are treated as IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    let ip: IpAddr = address.ip().to_canonical();
    SocketAddr::new(ip, address.port())
}

/// What a tuner changes of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Limit of its send queue in bytes of kernel memory (SO_SNDBUF).
    pub send_buffer: u64,
    /// Whether the program has set the limit, so that the kernel does not tune it. True before
    /// Linux 5.18, which does not tell.
    pub locked: bool,
    /// Unsent bytes at which it stops being writable (TCP_NOTSENT_LOWAT); 0: the host's default.
    pub unsent_mark: u64,
}

impl Settings {
    pub(super) fn read(socket: &OwnedFd) -> io::Result<Self> {
        Ok(Self {
            send_buffer: buffers::send_buffer(socket)?,
            locked: buffers::is_send_buffer_locked(socket).unwrap_or(true),
            unsent_mark: buffers::unsent_mark(socket)?,
        })
    }

    pub(super) fn restore(&self, socket: &OwnedFd) -> io::Result<()> {
        buffers::set_unsent_mark(socket, self.unsent_mark)?;
        buffers::force_send_buffer(socket, self.send_buffer)?;
        if self.locked { Ok(()) } else { buffers::unlock_send_buffer(socket) }
    }
}
