//! SIGINT, SIGTERM and SIGHUP as a file descriptor.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level;

/// While this exists, the signals do not end the process but make its descriptor readable.
#[derive(Debug)]
pub struct Interrupt {
    readable: UnixStream,
    written: UnixStream,
    registered: Vec<SigId>,
}

impl Interrupt {
    /// Starts to catch the signals.
    pub fn catch() -> io::Result<Self> {
        let (readable, written) = UnixStream::pair()?;
        let mut this = Self { readable, written, registered: Vec::new() };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            this.registered.push(low_level::pipe::register(signal, this.written.try_clone()?)?);
        }
        Ok(this)
    }

    /// Makes the descriptor readable without a signal. A signal would end every emulation of the
    /// process; this ends only one.
    pub fn trigger(&self) -> io::Result<()> {
        (&self.written).write_all(&[0])
    }
}

impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.registered.drain(..).for_each(|id| {
            low_level::unregister(id);
        });
    }
}
