//! `--next-hop-acks`: reports of a link layer that knows what the next hop has received.
//!
//! A report is one datagram: one byte for the outcome, then the packet as it was sent, beginning
//! with its IP header.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anabranch_core::dtc::LinkEvent;
use anabranch_deploy::error::Error;
use tokio::net::UnixDatagram;

/// The socket; its file is removed on drop.
pub(super) struct Reports {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Reports {
    /// Binds the socket. Replaces one that an earlier process has left. Only this user may send.
    pub(super) fn bind(path: &Path) -> Result<Self, Error> {
        if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
            let _ = fs::remove_file(path);
        }
        let bound = UnixDatagram::bind(path).and_then(|socket| {
            fs::set_permissions(path, Permissions::from_mode(0o600))?;
            Ok(Self { socket, path: path.to_owned() })
        });
        bound.map_err(|error| Error::unwritable(path, &error))
    }

    /// The length of the next report. Without a socket there is none.
    pub(super) async fn receive(this: Option<&Self>, report: &mut [u8]) -> io::Result<usize> {
        match this {
            Some(reports) => reports.socket.recv(report).await,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The outcome and the packet of a report; `None` if the outcome is unknown.
pub(super) fn parse(report: &[u8]) -> Option<(LinkEvent, &[u8])> {
    match report.split_first()? {
        (b'A', packet) => Some((LinkEvent::Acknowledged, packet)),
        (b'T', packet) => Some((LinkEvent::TimedOut, packet)),
        _ => None,
    }
}

/// A byte and the longest packet.
pub(super) const LONGEST_REPORT: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_an_outcome_and_a_packet() {
        assert_eq!(parse(b"Apacket"), Some((LinkEvent::Acknowledged, &b"packet"[..])));
        assert_eq!(parse(b"T"), Some((LinkEvent::TimedOut, &b""[..])));
        assert_eq!((parse(b""), parse(b"xpacket")), (None, None));
    }
}
