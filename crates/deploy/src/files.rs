//! Files that the person at the keyboard has named.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, Metadata, Permissions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anabranch_secure::FileDigest;
use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::error::Error;

/// A whole file; `-` is standard input.
pub fn read(path: &Path) -> Result<Bytes, Error> {
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
pub fn check_writable(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Err(Error::input(format!("cannot write {}: it is a directory", path.display()))
            .with_hint("name a file in it"));
    }
    let tried = if is_special(path) {
        fs::OpenOptions::new().write(true).open(path).map(drop)
    } else {
        Temporary::beside(path).map(drop)
    };
    tried.map_err(|e| Error::unwritable(path, &e))
}

/// A device, a pipe or a socket: it is written to where it stands, never replaced or removed.
pub fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| !m.is_file())
}

/// Writes a file that is there whole or not at all.
pub fn write_whole(path: &Path, octets: &[u8]) -> Result<(), Error> {
    let mut file = Whole::open(path).map_err(|e| unwritten(path, &e))?;
    file.write_all(octets).map_err(|e| unwritten(path, &e))?;
    file.keep()
}

fn unwritten(path: &Path, error: &io::Error) -> Error {
    Error::job(format!("cannot write {}: {error}", path.display()))
}

/// Gives a file that only its owner could read the permissions of the file in its place, or those of the umask if the place is
/// empty.
pub fn hand_over(file: &File, place: &Path) -> io::Result<()> {
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

/// A file beside its place, which only its owner can read. It is removed unless it takes that place.
///
/// The crate `tempfile` does as much, but with three crates that the small programs would have for nothing else.
#[derive(Debug)]
pub struct Temporary {
    file: File,
    /// Where it is until it has its place.
    path: Option<PathBuf>,
    place: PathBuf,
}

/// Names that are tried, each drawn from 2^64.
const NAMES: usize = 100;

impl Temporary {
    /// Makes a file beside `place`, under a name that nothing has.
    ///
    /// # Errors
    /// The folder is not there, or nothing can be written to it.
    pub fn beside(place: &Path) -> io::Result<Self> {
        for _ in 0..NAMES {
            // Each state of the standard library's hasher has keys of its own.
            let number = RandomState::new().build_hasher().finish();
            let path = folder(place).join(format!(".anabranch-{number:016x}.tmp"));
            // A name that is taken, a link included, is never written to.
            match File::options().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => return Ok(Self { file, path: Some(path), place: place.to_owned() }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Gives the file its place once its bytes are on the disk, with the permissions that the place has.
    ///
    /// # Errors
    /// The disk failed. The file is removed then.
    pub fn place(mut self) -> io::Result<()> {
        hand_over(&self.file, &self.place)?;
        self.file.sync_all()?;
        if let Some(path) = &self.path {
            fs::rename(path, &self.place)?;
        }
        // The name is free again: another process may take it.
        self.path = None;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

impl Write for Temporary {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.file.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A file that is written bit by bit, and is there whole or not at all.
#[derive(Debug)]
pub struct Whole {
    path: PathBuf,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Beside(Temporary),
    /// See [`is_special`].
    There(File),
}

impl Whole {
    /// Begins a file, before the work that fills it.
    pub fn create(path: &Path) -> Result<Self, Error> {
        Self::open(path).map_err(|e| Error::unwritable(path, &e))
    }

    fn open(path: &Path) -> io::Result<Self> {
        let place = if is_special(path) {
            Place::There(fs::OpenOptions::new().write(true).open(path)?)
        } else {
            Place::Beside(Temporary::beside(path)?)
        };
        Ok(Self { path: path.to_owned(), place })
    }

    /// Gives it its name: it is whole.
    pub fn keep(self) -> Result<(), Error> {
        let failed = |e: io::Error| unwritten(&self.path, &e);
        match self.place {
            Place::Beside(file) => file.place().map_err(failed),
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
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What a file is, read through once, and the file.
pub fn digest(path: &Path) -> Result<(File, FileDigest), Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let all = fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").file_name());
        let mut names: Vec<String> = all.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_temporary_file_takes_its_place_whole_or_goes_away() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let place = folder.path().join("file");
        let mut first = Temporary::beside(&place).expect("room");
        let second = Temporary::beside(&place).expect("two at once have names of their own");
        assert_eq!(names(folder.path()).len(), 2);
        first.write_all(b"octets").expect("room");
        let mode = first.file.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "an incomplete file is readable by its owner only");
        drop(second);
        first.place().expect("room");
        assert_eq!(names(folder.path()), ["file"]);
        assert_eq!(fs::read(&place).expect("it is there"), b"octets");
        assert!(Temporary::beside(&folder.path().join("none/file")).is_err());
    }
}
