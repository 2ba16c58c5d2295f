//! A part file and its journal in a folder.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::journal::Disk;
use crate::files::{folder, hand_over};

/// The files `.NAME.part` and `.NAME.journal`, beside the final place of the file.
#[derive(Debug)]
pub(super) struct Beside {
    part: PathBuf,
    journal: PathBuf,
    /// `None` until the part is first written.
    part_file: Option<File>,
    journal_file: Option<File>,
}

impl Beside {
    pub(super) fn new(place: &Path) -> Self {
        let beside = |end: &str| {
            let mut name = OsString::from(".");
            name.push(place.file_name().unwrap_or_default());
            name.push(end);
            folder(place).join(name)
        };
        Self { part: beside(".part"), journal: beside(".journal"), part_file: None, journal_file: None }
    }

    /// Path of the part.
    pub(super) fn part(&self) -> &Path {
        &self.part
    }

    /// Moves the part to the final place, with the permissions of the file that it replaces.
    pub(super) fn place(&mut self, place: &Path) -> io::Result<()> {
        let part = self.part_file()?;
        hand_over(part, place)?;
        part.sync_all()?;
        fs::rename(&self.part, place).inspect_err(|_| {
            // If the move failed, restore the private permissions.
            let _ = fs::set_permissions(&self.part, Permissions::from_mode(MODE));
        })?;
        self.part_file = None;
        sync_names(&self.part)
    }

    /// Allocates blocks for `length` bytes, where the file system supports it. The part's length
    /// stays as it is, since it tells how much was received.
    pub(super) fn reserve(&mut self, length: u64) -> io::Result<()> {
        let part = self.part_file()?;
        match rustix::fs::fallocate(part, FallocateFlags::KEEP_SIZE, 0, length.max(1)) {
            Err(error @ (Errno::NOSPC | Errno::DQUOT)) => {
                // A failed allocation may have reserved some blocks: release them.
                part.set_len(part.metadata()?.len())?;
                Err(error.into())
            }
            // The file system cannot allocate in advance; a full disk then shows while the file
            // arrives.
            _ => Ok(()),
        }
    }

    /// Releases the blocks that [`Beside::reserve`] allocated beyond the part's end, if the part
    /// exists.
    pub(super) fn release(&self) -> io::Result<()> {
        match File::options().write(true).open(&self.part) {
            Ok(part) => part.set_len(part.metadata()?.len()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes the part.
    pub(super) fn remove_part(&mut self) -> io::Result<()> {
        self.part_file = None;
        fs::remove_file(&self.part)
    }

    fn part_file(&mut self) -> io::Result<&File> {
        if self.part_file.is_none() {
            let mut options = File::options();
            let file = options.create(true).truncate(false).write(true).mode(MODE).open(&self.part)?;
            self.part_file = Some(file);
        }
        self.part_file.as_ref().ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn journal_file(&mut self) -> io::Result<&mut File> {
        if self.journal_file.is_none() {
            self.journal_file =
                Some(File::options().create(true).append(true).mode(MODE).open(&self.journal)?);
        }
        self.journal_file.as_mut().ok_or_else(|| ErrorKind::NotFound.into())
    }
}

/// Path of an auxiliary file beside `path`: its temporary file or its lock. Component names contain
/// no plus sign ([`crate::manifest::identifier::Component`]), so no component's file can have this
/// name.
pub(super) fn companion(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("+");
    name.push(what);
    name.into()
}

/// Replaces a file atomically, and syncs the file and its folder.
pub(super) fn replace(path: &Path, octets: &[u8]) -> io::Result<()> {
    // The name is fixed, so that the next write replaces a file left by a power cut.
    let new = companion(path, "new");
    let mut file = File::options().create(true).truncate(true).write(true).mode(MODE).open(&new)?;
    file.write_all(octets)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_names(path)
}

/// Syncs a folder: a new name survives a power cut only after that.
fn sync_names(path: &Path) -> io::Result<()> {
    File::open(folder(path))?.sync_all()
}

/// Mode of incomplete files: only their owner may open them.
pub(super) const MODE: u32 = 0o600;

impl Disk for Beside {
    fn read_journal(&mut self) -> io::Result<Vec<u8>> {
        match fs::read(&self.journal) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            read => read,
        }
    }

    fn append_journal(&mut self, octets: &[u8]) -> io::Result<()> {
        self.journal_file()?.write_all(octets)
    }

    fn sync_journal(&mut self) -> io::Result<()> {
        self.journal_file()?.sync_data()
    }

    fn replace_journal(&mut self, octets: &[u8]) -> io::Result<()> {
        self.journal_file = None;
        replace(&self.journal, octets)
    }

    fn part_length(&mut self) -> io::Result<u64> {
        match fs::metadata(&self.part) {
            Ok(metadata) => Ok(metadata.len()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        }
    }

    fn make_part(&mut self) -> io::Result<()> {
        self.part_file().map(drop)
    }

    fn write_part(&mut self, at: u64, octets: &[u8]) -> io::Result<()> {
        self.part_file()?.write_all_at(octets, at)
    }

    fn sync_part(&mut self) -> io::Result<()> {
        self.part_file()?.sync_data()
    }

    fn truncate_part(&mut self, to: u64) -> io::Result<()> {
        self.part_file()?.set_len(to)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;
    use std::thread;

    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use tempfile::TempDir;

    use super::*;

    /// Makes a pipe at `path` and reads it on a thread. Linux refuses to sync a pipe (fsync(2):
    /// EINVAL).
    fn pipe(path: &Path) -> thread::JoinHandle<Vec<u8>> {
        mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        let path = path.to_owned();
        thread::spawn(move || {
            let mut octets = Vec::new();
            File::open(path).unwrap().read_to_end(&mut octets).unwrap();
            octets
        })
    }

    /// Only a power cut shows what was not synced. A file that cannot be synced shows whether a
    /// sync was tried: the file must not get its name.
    #[test]
    fn what_cannot_be_synced_is_not_put_into_its_place() {
        let folder = TempDir::new().unwrap();
        let number = folder.path().join("number");
        replace(&number, b"old").unwrap();
        let read = pipe(&folder.path().join("number+new"));
        let error = replace(&number, b"new").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!((read.join().unwrap(), fs::read(&number).unwrap()), (b"new".to_vec(), b"old".to_vec()));

        let got = folder.path().join("got");
        fs::write(&got, "old").unwrap();
        let mut beside = Beside::new(&got);
        let read = pipe(beside.part());
        let error = beside.place(&got).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        drop(beside);
        assert_eq!((read.join().unwrap(), fs::read(&got).unwrap()), (Vec::new(), b"old".to_vec()));
    }

    /// The next start releases the space that a killed node had reserved.
    #[test]
    fn the_space_behind_a_part_is_given_back() {
        let folder = TempDir::new().unwrap();
        let place = folder.path().join("got");
        let mut beside = Beside::new(&place);
        beside.release().unwrap();
        assert!(!beside.part().exists(), "nothing is made");
        beside.write_part(0, b"the beginning").unwrap();
        beside.reserve(8 << 20).unwrap();
        let blocks = || beside.part().metadata().unwrap().blocks() * 512;
        assert!(blocks() >= 8 << 20);
        Beside::new(&place).release().unwrap();
        assert!(blocks() < 1 << 20, "{}", blocks());
        assert_eq!(fs::read(beside.part()).unwrap(), b"the beginning");
    }
}
