//! Files that the person at the keyboard has named.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anabranch_secure::FileDigest;
use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::error::Error;

/// A whole file; `-` is standard input.
pub(crate) fn read(path: &Path) -> Result<Bytes, Error> {
    let octets = if path == Path::new("-") {
        let mut octets = Vec::new();
        io::stdin().lock().read_to_end(&mut octets).map(|_| octets)
    } else {
        fs::read(path)
    };
    octets
        .map(Bytes::from)
        .map_err(|e| Error::unreadable(path, &e).with_hint("name a file that you may read"))
}

/// Whether a file can be put there, without putting one.
pub(crate) fn check_writable(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Err(Error::input(format!("cannot write {}: it is a directory", path.display()))
            .with_hint("name a file in it"));
    }
    let tried = if is_special(path) {
        fs::OpenOptions::new().write(true).open(path).map(drop)
    } else {
        tempfile::NamedTempFile::new_in(folder(path)).map(drop)
    };
    tried.map_err(|e| Error::unwritable(path, &e))
}

/// A device, a pipe or a socket: it is written to where it stands, never replaced or removed.
pub(crate) fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| !m.is_file())
}

/// Writes a file that is there whole or not at all.
pub(crate) fn write_whole(path: &Path, octets: &[u8]) -> Result<(), Error> {
    let failed = |e: io::Error| Error::job(format!("cannot write {}: {e}", path.display()));
    if is_special(path) {
        return fs::write(path, octets).map_err(failed);
    }
    let mut file = tempfile::NamedTempFile::new_in(folder(path)).map_err(failed)?;
    file.write_all(octets).and_then(|()| hand_over(file.as_file(), path)).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map(drop).map_err(|e| failed(e.error))
}

/// What was its owner's alone while it came may be read by whom its place says: those who could read the file that was there, or
/// those whom the umask allows.
pub(crate) fn hand_over(file: &File, place: &Path) -> io::Result<()> {
    let there = place.metadata().ok().filter(Metadata::is_file);
    let mode = there.map_or_else(|| 0o666 & !umask(), |file| file.permissions().mode() & 0o777);
    file.set_permissions(Permissions::from_mode(mode))
}

/// It cannot be asked for without setting it, but for here (proc_pid_status(5)).
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let said = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    said.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o077)
}

/// Where it is, or will be.
pub(crate) fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What a file is, read through once, and the file.
pub(crate) fn digest(path: &Path) -> Result<(File, FileDigest), Error> {
    let unreadable = |e: io::Error| Error::unreadable(path, &e).with_hint("name a file that you may read");
    let mut file = File::open(path).map_err(unreadable)?;
    let (mut sha256, mut length, mut octets) = (Sha256::new(), 0, vec![0; 64 << 10]);
    loop {
        match file.read(&mut octets).map_err(unreadable)? {
            0 => return Ok((file, FileDigest { length, sha256: sha256.finalize().into() })),
            n => {
                sha256.update(&octets[..n]);
                length += n as u64;
            }
        }
    }
}
