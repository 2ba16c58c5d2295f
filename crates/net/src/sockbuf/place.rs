//! Where a socket is, and how it is reached for one operation.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};

use super::process::{Foreign, Gone};
use crate::buffers;

/// A socket that a tuner can manage: anything with a descriptor, such as a `TcpStream` of std or
/// tokio.
pub trait Socket: AsFd + Send + Sync {}

impl<S: AsFd + Send + Sync + ?Sized> Socket for S {}

/// Where a socket is.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// In this process. Its owner may drop it at any time.
    Here(Weak<dyn Socket>),
    /// In another process.
    There(Foreign),
}

/// A socket that stays open while this exists.
pub(super) enum Open {
    Here(Arc<dyn Socket>),
    Duplicate(OwnedFd),
}

impl Place {
    pub(super) fn here<S: Socket + 'static>(socket: &Arc<S>) -> Self {
        Self::Here(Arc::downgrade(&(Arc::clone(socket) as Arc<dyn Socket>)))
    }

    /// Whether both are the same socket.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            // Compare addresses only, since the metadata of `dyn` pointers is not unique.
            (Self::Here(socket), Self::Here(other)) => socket.as_ptr().addr() == other.as_ptr().addr(),
            (Self::There(socket), Self::There(other)) => socket.cookie == other.cookie,
            _ => false,
        }
    }

    pub(super) fn open(&self) -> Result<Open, Gone> {
        match self {
            Self::Here(socket) => socket.upgrade().map(Open::Here).ok_or(Gone::Dropped),
            Self::There(socket) => socket.open().map(Open::Duplicate),
        }
    }

    /// The kernel's number of a socket in another process.
    pub(super) fn cookie(&self) -> Option<u64> {
        match self {
            Self::Here(_) => None,
            Self::There(socket) => Some(socket.cookie),
        }
    }

    /// Sets the limit of the send queue and returns the limit that the kernel applied.
    pub(super) fn limit(&self, open: &Open, octets: u64) -> io::Result<u64> {
        match (self, open) {
            (Self::There(socket), Open::Duplicate(duplicate)) => socket.limit(duplicate, octets),
            _ => buffers::set_send_buffer(open, octets),
        }
    }

    /// Notes the limit that was found.
    pub(super) fn found(&self, limit: u64) {
        match self {
            Self::Here(_) => {}
            Self::There(socket) => socket.found(limit),
        }
    }

    /// As [`Place::open`], for a socket that is not managed yet.
    pub(super) fn first(&self) -> io::Result<Open> {
        self.open().map_err(|_| io::ErrorKind::NotConnected.into())
    }
}

impl AsFd for Open {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Here(socket) => socket.as_fd(),
            Self::Duplicate(socket) => socket.as_fd(),
        }
    }
}
