//! Files that the person at the keyboard has named.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

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
    file.write_all(octets).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    file.persist(path).map(drop).map_err(|e| failed(e.error))
}

/// A file that is written bit by bit, and is there whole or not at all.
#[derive(Debug)]
pub(crate) struct Whole {
    path: PathBuf,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// Beside where it will be; goes away if nothing becomes of it.
    Beside(tempfile::NamedTempFile),
    /// See [`is_special`].
    There(File),
}

impl Whole {
    /// Begins a file, before the work that fills it.
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        let place = if is_special(path) {
            fs::OpenOptions::new().write(true).open(path).map(Place::There)
        } else {
            // As a file is made that is not beside its place: whoever may read files of ours may read it.
            let open = fs::Permissions::from_mode(0o666);
            let mut builder = tempfile::Builder::new();
            builder.prefix(".anabranch-").permissions(open).tempfile_in(folder(path)).map(Place::Beside)
        };
        let place = place.map_err(|e| Error::unwritable(path, &e))?;
        Ok(Self { path: path.to_owned(), place })
    }

    /// Gives it its name: it is whole.
    pub(crate) fn keep(self) -> Result<(), Error> {
        let failed = |e: io::Error| Error::job(format!("cannot write {}: {e}", self.path.display()));
        match self.place {
            Place::Beside(file) => file.persist(&self.path).map(drop).map_err(|e| failed(e.error)),
            Place::There(_) => Ok(()),
        }
    }
}

impl Write for Whole {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match &mut self.place {
            Place::Beside(file) => file.write(octets),
            Place::There(file) => file.write(octets),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.place {
            Place::Beside(file) => file.flush(),
            Place::There(file) => file.flush(),
        }
    }
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
